//! A skip list.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::base::{InternalKey, InternalKeyComparator, SequenceNumber, ValueType};

/// A skip list.
pub struct SkipList {}
/// The right to insert.
pub(super) struct SkipListWriter<'a> {
    _list: &'a SkipList,
}
/// A cursor.
pub struct SkipListIterator {}

impl SkipList {
    pub(super) fn new(_comparator: InternalKeyComparator, _block_size: usize) -> Self {
        todo!()
    }
    pub(super) fn writer(&self) -> SkipListWriter<'_> {
        todo!()
    }
    pub(super) fn get<'a>(
        &'a self,
        _user_key: &[u8],
        _snapshot: SequenceNumber,
        _visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        todo!()
    }
    pub(super) fn memory_usage(&self) -> usize {
        todo!()
    }
    pub(super) fn memory_reserved(&self) -> usize {
        todo!()
    }
    pub(super) fn approximate_count(&self, _start: &[u8], _end: &[u8]) -> u64 {
        todo!()
    }
}
impl SkipListWriter<'_> {
    pub(super) fn insert(
        &mut self,
        _user_key: &[u8],
        _sequence: SequenceNumber,
        _value_type: ValueType,
        _value: &[u8],
    ) {
        todo!()
    }
}
impl SkipListIterator {
    pub(super) fn new(_list: Arc<SkipList>) -> Self {
        todo!()
    }
    pub(super) fn valid(&self) -> bool {
        todo!()
    }
    pub(super) fn seek_to_first(&mut self) {
        todo!()
    }
    pub(super) fn seek_to_last(&mut self) {
        todo!()
    }
    pub(super) fn seek(&mut self, _target: InternalKey<'_>) {
        todo!()
    }
    pub(super) fn seek_for_prev(&mut self, _target: InternalKey<'_>) {
        todo!()
    }
    pub(super) fn next(&mut self) {
        todo!()
    }
    pub(super) fn prev(&mut self) {
        todo!()
    }
    pub(super) fn key(&self) -> InternalKey<'_> {
        todo!()
    }
    pub(super) fn value(&self) -> &[u8] {
        todo!()
    }
}
