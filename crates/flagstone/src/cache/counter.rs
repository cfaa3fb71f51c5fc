//! A counter that threads raise without meeting each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 16;

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The next thread's stripe.
static NEXT: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

/// A sum over stripes; a thread always raises the same one.
#[derive(Default)]
pub(super) struct Counter([Stripe; STRIPES]);

impl Counter {
    #[inline]
    pub(super) fn add_one(&self) {
        let stripe = STRIPE.with(|stripe| {
            if stripe.get() == usize::MAX {
                stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
            }
            stripe.get()
        });
        self.0[stripe].0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}
