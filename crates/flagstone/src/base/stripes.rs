//! Counters that threads raise without meeting each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many stripes there are.
pub const STRIPES: usize = 16;

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The next thread's stripe.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The calling thread's stripe, always the same.
#[inline]
pub fn own_stripe() -> usize {
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
}

/// Some counters that a thread raises together, on cache lines that few others write to.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

/// `N` counters, each a sum over stripes.
#[derive(Debug)]
pub struct Counters<const N: usize>([Stripe<N>; STRIPES]);

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self([const { Stripe([const { AtomicU64::new(0) }; N]) }; STRIPES])
    }
}

impl<const N: usize> Counters<N> {
    /// Adds to a counter.
    ///
    /// # Panics
    /// If there is none of that number.
    #[inline]
    pub fn add(&self, counter: usize, count: u64) {
        self.0[own_stripe()].0[counter].fetch_add(count, Ordering::Relaxed);
    }

    /// Adds to a counter that nobody else adds to meanwhile: all who do hold the same lock. It does
    /// not wait, as a locked addition does, until everything is in the cache that this processor
    /// has written.
    ///
    /// # Panics
    /// If there is none of that number.
    #[inline]
    pub fn add_alone(&self, counter: usize, count: u64) {
        let sum = &self.0[own_stripe()].0[counter];
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// A counter's value. What other threads add meanwhile may be in it or not.
    pub fn get(&self, counter: usize) -> u64 {
        self.0.iter().map(|stripe| stripe.0[counter].load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests;
