//! What a cache asks of its values.

use std::sync::Arc;

use super::MemoryAccount;
use crate::trace::TraceType;

/// What a cache can hold: handles, which a lookup clones.
pub trait CacheValue: Clone {
    /// Whether somebody else holds the value, too, so that dropping it from the cache would free no
    /// memory. May be out of date as soon as it is told.
    fn is_pinned(&self) -> bool;

    /// The value left the cache while somebody else held it: until nobody does, its memory is a
    /// piece of [`super::MemoryKind::KeptBlocks`].
    fn count_kept(&self, _account: &Arc<MemoryAccount>) {}

    /// What it is called in a trace.
    fn trace_type(&self) -> TraceType {
        TraceType::DataBlock
    }

    /// Drops a value that left the cache; what is to come in may use its memory.
    fn discard(self) {}
}

impl<T: ?Sized> CacheValue for Arc<T> {
    fn is_pinned(&self) -> bool {
        Arc::strong_count(self) > 1
    }
}
