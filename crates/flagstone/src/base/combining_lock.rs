//! A lock for short pieces of work that many threads have to do: who holds it does what others wait
//! to have done, too.
//!
//! **Why.** A lock that goes from core to core takes what it guards along, line by line, and a
//! thread that slept for it takes longer to wake up than many pieces of work take. One thread that
//! does those of several finds everything in its own cache. This is "flat combining" (Hendler,
//! Incze, Shavit and Tzafrir, "Flat Combining and the Synchronization-Parallelism Tradeoff", SPAA
//! 2010).
//!
//! **Algorithm.** Whoever finds the lock free does its work, and then that of those who asked
//! meanwhile. Whoever finds it taken puts its work on a list and looks for a while whether it has
//! been done, or whether the lock is free; after that it waits for the lock. Who gets it so has its
//! work done already, or does it with the rest of the list. On one or two cores each does its own.
//!
//! **Invariants**
//! 1. Who takes the list holds the lock, and does all of it before it lets go of the lock, whatever
//!    of it panics. So while the lock is free, all work that was ever asked for is done or on the
//!    list; and who comes to hold the lock finds its own work done, or on the list.
//! 2. Work and its outcome lie in the frame of who asked, which is not left before the work is
//!    done: nothing in between can panic. It belongs to who asked until it is on the list and again
//!    once it is done; in between to who holds the lock.
#![expect(
    unsafe_code,
    reason = "what lies in the frame of one thread is used by another, which no lifetime tells"
)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::OnceLock;
use std::thread;

use super::prefetch::prefetch;
use super::sync::{
    AtomicBool, AtomicPtr, Mutex, MutexGuard, Ordering, Rank, check_order, ranked, spin_loop,
};
use super::{Mutant, Sometimes};

/// A call takes no list any more once it has done so much of others' work; what is on a list that
/// it took is done all the same. So it does less than this and one piece for each thread that
/// waits. With 64 four or sixteen writers on sixteen cores write a twentieth more than with 16, and
/// each call may take that much longer.
const OTHERS_MAX: usize = 32;

/// How often one looks whether one's work is done, until one waits for the lock: for as long as
/// some pieces of work take. None where there are few cores: there one is rarely at work with
/// another, and what is done for a thread that sleeps does not help it before it wakes up. (Four
/// writers on two cores would write a sixth less.)
fn looks() -> usize {
    static LOOKS: OnceLock<usize> = OnceLock::new();
    if cfg!(any(feature = "shuttle", miri)) {
        return 1;
    }
    *LOOKS.get_or_init(|| match thread::available_parallelism() {
        // On sixteen cores four writers write a quarter more than with 128, and no less than with
        // 2048.
        Ok(cores) if cores.get() > 2 || cfg!(test) => 512,
        _ => 0,
    })
}

/// How many looks come between two at the lock.
const LOOKS_PER_TRY: usize = if cfg!(any(feature = "shuttle", miri)) { 1 } else { 8 };

/// A lock whose holder does others' work. The list is in a line of memory of its own, since it
/// changes with each who asks; what is guarded had better be aligned so that the lock, which others
/// look at, has one of its own, too.
pub(crate) struct CombiningLock<T> {
    asked: Line<AtomicPtr<Asked<T>>>,
    inner: Mutex<T>,
}

#[derive(Default)]
#[repr(align(128))]
struct Line<P>(P);

/// Work on the list, whatever it is.
struct Asked<T> {
    /// The one that was put there before; set before this one is.
    next: UnsafeCell<*mut Self>,
    is_done: AtomicBool,
    /// Does the work and keeps its outcome; to be called once, with the lock held, on one that is
    /// the beginning of a [`Piece`].
    perform: unsafe fn(*mut Self, &mut T),
}

/// Work and what came of it, which goes back to who asked in one line of memory with the mark if it
/// is small.
#[repr(C, align(64))]
struct Piece<T, F, R> {
    asked: Asked<T>,
    outcome: UnsafeCell<Option<Result<R, Box<dyn Any + Send>>>>,
    work: UnsafeCell<Option<F>>,
}

/// Lines of memory of a piece that are asked for while the one before is being done.
const LINES_AHEAD: usize = 3;

impl<T, F: FnOnce(&mut T) -> R, R> Piece<T, F, R> {
    fn new(work: F) -> Self {
        let next = UnsafeCell::new(ptr::null_mut());
        let asked = Asked { next, is_done: AtomicBool::new(false), perform: Self::perform };
        Self { asked, outcome: UnsafeCell::new(None), work: UnsafeCell::new(Some(work)) }
    }

    /// # Safety
    /// `asked` points to a whole piece, which is on nobody's list any more and is not done, and the
    /// caller holds the lock.
    unsafe fn perform(asked: *mut Asked<T>, guarded: &mut T) {
        let piece = asked.cast::<Self>();
        // SAFETY: until it is done, the frame of who asked is not left, and the piece is the
        // caller's alone (invariant 2).
        let (work, outcome) = unsafe { (&mut *(*piece).work.get(), &mut *(*piece).outcome.get()) };
        if let Some(work) = work.take() {
            *outcome = Some(if Mutant::LetOthersPanic.is_on() {
                Ok(work(guarded))
            } else {
                catch_unwind(AssertUnwindSafe(|| work(guarded)))
            });
        }
        // SAFETY: as above; from here on it is no longer ours.
        unsafe { (*asked).is_done.store(true, Ordering::Release) };
    }

    fn into_outcome(self) -> R {
        match self.outcome.into_inner().expect("no work is forgotten") {
            Ok(outcome) => outcome,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T> CombiningLock<T> {
    /// An unlocked lock. Work that another thread does counts as that thread's, whose locks it
    /// must be allowed under; a thread asks for work only where it could take the lock.
    pub(crate) fn new(rank: Rank, value: T) -> Self {
        Self { asked: Line::default(), inner: ranked(rank, value) }
    }

    /// Waits for the lock, for what nobody else can do. What others ask for meanwhile is done by
    /// the next.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.inner.lock()
    }

    /// Has `work` done with the lock held, by this thread or by another one: it must not depend on
    /// which. The call may take longer by some work of others, so all of it should be short.
    ///
    /// # Panics
    /// As `work` does.
    #[inline]
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce(&mut T) -> R + Send) -> R
    where
        T: Send,
    {
        check_order(&self.inner);
        let Some(mut held) = self.inner.try_lock() else { return self.ask(work) };
        let outcome = work(&mut held);
        self.work_for_others(&mut held);
        outcome
    }

    #[inline(never)]
    fn ask<F: FnOnce(&mut T) -> R + Send, R: Send>(&self, work: F) -> R
    where
        T: Send,
    {
        let looks = looks();
        if looks == 0 {
            return work(&mut self.inner.lock());
        }
        let mut piece = Piece::new(work);
        let asked = (&raw mut piece).cast::<Asked<T>>();
        let mut newest = self.asked.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: it is on no list yet.
            unsafe { *(*asked).next.get() = newest };
            match self.asked.0.compare_exchange_weak(
                newest,
                asked,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        // SAFETY: the frame is not left before the piece is done. Until then only the mark is
        // looked at.
        let is_done = || unsafe { (*asked).is_done.load(Ordering::Acquire) };
        for look in 1..=looks {
            if is_done() {
                return piece.into_outcome();
            }
            spin_loop();
            if look.is_multiple_of(LOOKS_PER_TRY)
                && let Some(mut held) = self.inner.try_lock()
            {
                self.work_for_others(&mut held);
                break;
            }
        }
        if !is_done() {
            let mut held = self.inner.lock();
            if is_done() {
                // Marked only here, where somebody slept: a mark for each piece of work would go
                // from core to core, too.
                Sometimes::WorkDoneByAnother.reached();
            }
            // By invariant 1 this does it, if nobody has until here.
            self.work_for_others(&mut held);
        }
        piece.into_outcome()
    }

    /// Does what is on the list, and what comes to it meanwhile, up to a limit; all that is on it
    /// now at least.
    #[inline]
    fn work_for_others(&self, guarded: &mut T) {
        let mut count = 0;
        while count < OTHERS_MAX && !self.asked.0.load(Ordering::Relaxed).is_null() {
            let mut newest = self.asked.0.swap(ptr::null_mut(), Ordering::Acquire);
            while let Some(asked) = ptr::NonNull::new(newest) {
                let asked = asked.as_ptr();
                // SAFETY: what was on the list is ours, as we hold the lock (invariant 2), up to
                // its being done: so `next` is read before.
                unsafe {
                    newest = *(*asked).next.get();
                    prefetch(newest, LINES_AHEAD);
                    let perform = (*asked).perform;
                    if !Mutant::ForgetOthersWork.is_on() || newest.is_null() {
                        perform(asked, guarded);
                    }
                }
                count += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
