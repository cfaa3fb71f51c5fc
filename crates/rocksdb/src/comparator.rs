//! The program's own order of keys.

use std::cmp::Ordering;
use std::sync::Arc;

use flagstone::{Comparator, UserComparator};

/// Compares two keys.
///
/// The rocksdb crate does not ask for `Send` and `Sync`; threads of the engine call it, so it must
/// have both.
pub type CompareFn = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

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
