//! The program's own order of keys.

use std::cmp::Ordering;
use std::sync::Arc;

use flagstone::{Comparator, UserComparator};

/// Compares two keys.
///
/// The rocksdb crate does not ask for `Send` and `Sync`; threads of the engine call it, so it must
/// have both.
pub type CompareFn = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// Compares two timestamps: `Greater` if the first is newer.
pub type CompareTsFn = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// Compares two keys without their timestamps; each is told with whether it ends in one.
pub type CompareWithoutTsFn = dyn Fn(&[u8], bool, &[u8], bool) -> Ordering + Send + Sync;

/// An order of keys that end in timestamps.
pub(crate) struct Stamped {
    pub(crate) name: String,
    pub(crate) timestamp_size: usize,
    pub(crate) compare: Box<CompareFn>,
    pub(crate) compare_timestamps: Box<CompareTsFn>,
    pub(crate) compare_without: Box<CompareWithoutTsFn>,
}

impl UserComparator for Stamped {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.compare)(a, b)
    }

    fn timestamp_size(&self) -> usize {
        self.timestamp_size
    }

    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.compare_timestamps)(a, b)
    }

    fn compare_without_timestamps(
        &self,
        (a, a_has_timestamp): (&[u8], bool),
        (b, b_has_timestamp): (&[u8], bool),
    ) -> Ordering {
        (self.compare_without)(a, a_has_timestamp, b, b_has_timestamp)
    }
}

struct Named {
    name: String,
    compare: Box<CompareFn>,
}

impl UserComparator for Named {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.compare)(a, b)
    }
}

pub(crate) fn engine_comparator(name: String, compare: Box<CompareFn>) -> Comparator {
    Comparator::Custom(Arc::new(Named { name, compare }))
}
