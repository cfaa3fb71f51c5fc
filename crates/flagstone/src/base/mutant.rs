//! Deliberate breakages, one at a time, to see that the tests find them. Only with the feature `mutants`, which test
//! builds turn on; elsewhere [`is_on`] is constant and the compiler removes the broken branch.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicUsize, Ordering};

macro_rules! mutants {
    ($($(#[doc = $meaning:literal])+ $name:ident,)+) => {
        /// A place that can be broken on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[doc = $meaning])+ $name,)+
        }

        /// All of them: the switch, its name, what it breaks.
        pub const ALL: &[(Mutant, &str, &str)] =
            &[$((Mutant::$name, stringify!($name), concat!($($meaning),+))),+];
    };
}

mutants! {
    /// The directory is not synced after a flush or compaction created tables in it.
    SkipDirectorySync,
}

/// The one that is on, counted from 1; 0 is none.
#[cfg(feature = "mutants")]
static ON: AtomicUsize = AtomicUsize::new(0);

/// Breaks the engine of this process from now on.
#[cfg(feature = "mutants")]
pub fn turn_on(mutant: Mutant) {
    ON.store(mutant as usize + 1, Ordering::Relaxed);
}

/// Whether this place is to be broken.
#[inline(always)]
pub fn is_on(mutant: Mutant) -> bool {
    #[cfg(feature = "mutants")]
    return ON.load(Ordering::Relaxed) == mutant as usize + 1;
    #[cfg(not(feature = "mutants"))]
    {
        let _ = mutant;
        false
    }
}
