//! Rare branches that say when they were taken, so that a campaign of tests can report those it never reached.
//!
//! A marker costs one relaxed addition; it stands on branches that are rare by nature, never in a hot loop.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! markers {
    ($($(#[doc = $meaning:literal])+ $name:ident,)+) => {
        /// A branch that a good campaign reaches sometimes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Sometimes {
            $($(#[doc = $meaning])+ $name,)+
        }

        /// All of them, with their meanings.
        const MARKERS: &[(&str, &str)] = &[$((stringify!($name), concat!($($meaning),+))),+];
    };
}

markers! {
    /// A writer was delayed because compactions are behind.
    WriteDelayed,
    /// A writer was stopped until the tree changed.
    WriteStopped,
    /// A WAL file was used again for new records.
    WalRecycled,
}

static COUNTS: [AtomicU64; MARKERS.len()] = [const { AtomicU64::new(0) }; MARKERS.len()];

impl Sometimes {
    /// Notes that the branch was taken.
    #[inline]
    pub fn reached(self) {
        COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Every marker's name, its meaning, and how often this process reached it.
pub fn counts() -> Vec<(&'static str, &'static str, u64)> {
    let count = |index: usize| COUNTS[index].load(Ordering::Relaxed);
    MARKERS.iter().enumerate().map(|(index, (name, meaning))| (*name, meaning.trim(), count(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_counts_under_its_own_name() {
        let find = || counts().into_iter().find(|(name, ..)| *name == "WalRecycled").expect("it is listed");
        let before = find().2;
        Sometimes::WalRecycled.reached();
        let (_, meaning, after) = find();
        assert!(after > before);
        assert_eq!(meaning, "A WAL file was used again for new records.");
    }
}
