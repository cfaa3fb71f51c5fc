//! Ranges of keys that iterators can be bounded by.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

/// A range of keys for [`ReadOptions::set_iterate_range`](crate::ReadOptions::set_iterate_range).
pub trait IterateBounds {
    /// The first key of the range and the first one behind it; `None` where it is open.
    fn into_bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>);
}

impl IterateBounds for RangeFull {
    fn into_bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (None, None)
    }
}

impl<K: Into<Vec<u8>>> IterateBounds for Range<K> {
    fn into_bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (Some(self.start.into()), Some(self.end.into()))
    }
}

impl<K: Into<Vec<u8>>> IterateBounds for RangeFrom<K> {
    fn into_bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (Some(self.start.into()), None)
    }
}

impl<K: Into<Vec<u8>>> IterateBounds for RangeTo<K> {
    fn into_bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (None, Some(self.end.into()))
    }
}

/// The keys that begin with a prefix, in the order of their bytes.
#[derive(Clone, Copy)]
pub struct PrefixRange<K>(pub K);

impl<K: Into<Vec<u8>>> IterateBounds for PrefixRange<K> {
    /// From the prefix to the smallest key that is larger than all keys with it. An empty prefix
    /// has no bounds; one of 0xff bytes alone has no upper bound.
    fn into_bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let prefix = self.0.into();
        if prefix.is_empty() {
            return (None, None);
        }
        let mut end = prefix.clone();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        match end.last_mut() {
            Some(last) => *last += 1,
            None => return (Some(prefix), None),
        }
        (Some(prefix), Some(end))
    }
}
