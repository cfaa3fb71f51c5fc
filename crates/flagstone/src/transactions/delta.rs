//! What a batch says of its keys.
//!
//! The index is a memtable: the sequence number of an entry is the number of its operation, so that
//! the newest operation of a key comes first. Numbers are not used again after a rollback; those
//! that were rolled back are listed, and passed over.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::base::{
    Error, InternalIterator, InternalKeyBuf, MAX_SEQUENCE_NUMBER, MergeOperator, Result,
    SequenceNumber, ValueType, WideColumns,
};
use crate::iter::ValueResolver;
use crate::iter::lookup::{columns_of, merge_over, merge_whole};
use crate::memtable::{MemTable, MemTableIterator};
use crate::transactions::streamed::StreamedValues;

/// Entries of one key that a cursor steps over one by one, before it seeks.
const STEPS_MAX: usize = 8;

/// The operations that count, by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Counting {
    /// The number after the newest operation.
    pub(super) end: SequenceNumber,
    /// What was rolled back, in order; ranges do not touch.
    undone: Arc<Vec<Range<SequenceNumber>>>,
}

impl Counting {
    /// Rolls back the operations from `start` on.
    pub(super) fn undo_from(&mut self, start: SequenceNumber) {
        if start == self.end {
            return;
        }
        let undone = Arc::make_mut(&mut self.undone);
        let mut start = start;
        while let Some(last) = undone.pop_if(|last| last.end >= start) {
            start = start.min(last.start);
        }
        undone.push(start..self.end);
    }

    pub(super) fn counts(&self, number: SequenceNumber) -> bool {
        if number >= self.end {
            return false;
        }
        let after = self.undone.partition_point(|range| range.start <= number);
        after == 0 || !self.undone[after - 1].contains(&number)
    }
}

/// What a batch says of one key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Delta {
    /// The newest operation that is no merge.
    pub(super) base: Base,
    /// The operands of newer merges, newest first.
    operands: Vec<Vec<u8>>,
}

/// See [`Delta::base`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Base {
    /// The batch has none.
    #[default]
    Below,
    Deleted,
    /// A value or an entity, as it is stored.
    Put(ValueType, Vec<u8>),
    /// A value that was streamed, by its place among them.
    Streamed(usize),
}

/// Nothing that a batch has in its own bytes lies in a blob file.
struct NoBlobs;

impl ValueResolver for NoBlobs {
    fn resolve_blob(&self, _user_key: &[u8], _blob_index: &[u8]) -> Result<Bytes> {
        Err(Error::corruption("a batch names a blob file"))
    }
}

/// The columns of an entity that a batch has encoded.
pub(super) fn decoded(entity: &[u8]) -> WideColumns {
    let stored = Bytes::copy_from_slice(entity);
    columns_of(b"", ValueType::WideColumnEntity, stored, &NoBlobs).expect("a sound entity")
}

impl Delta {
    /// What counts of `table` for `key`.
    pub(super) fn of(table: &MemTable, counting: &Counting, key: &[u8]) -> Self {
        let mut delta = Self::default();
        let looked = table.get(key, SequenceNumber::MAX, |number, value_type, value| {
            if counting.counts(number) {
                delta.add(value_type, value)
            } else {
                ControlFlow::Continue(())
            }
        });
        looked.expect("no entry has a checksum");
        delta
    }

    /// Takes up the next older operation; breaks at one that hides those below.
    fn add(&mut self, value_type: ValueType, value: &[u8]) -> ControlFlow<()> {
        self.base = match value_type {
            ValueType::Merge => {
                self.operands.push(value.to_vec());
                return ControlFlow::Continue(());
            }
            ValueType::Value | ValueType::WideColumnEntity => Base::Put(value_type, value.to_vec()),
            ValueType::BlobIndex => Base::Streamed(StreamedValues::place(value)),
            _ => Base::Deleted,
        };
        ControlFlow::Break(())
    }

    /// Whether the batch says nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.operands.is_empty() && self.base == Base::Below
    }

    /// The streamed value that the key has, if no merge changes it.
    pub(super) fn streamed(&self) -> Option<usize> {
        match self.base {
            Base::Streamed(place) if self.operands.is_empty() => Some(place),
            _ => None,
        }
    }

    /// The same with a streamed value read.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn loaded(self, streamed: &StreamedValues) -> Result<Self> {
        let Base::Streamed(place) = self.base else { return Ok(self) };
        let base = Base::Put(ValueType::Value, streamed.at(place)?.read()?.to_vec());
        Ok(Self { base, ..self })
    }

    /// Whether what lies below the batch counts.
    pub(super) fn needs_below(&self) -> bool {
        self.base == Base::Below
    }

    /// Whether the value of the key depends on more than the value below the batch.
    pub(super) fn needs_columns_below(&self, operator: Option<&dyn MergeOperator>) -> bool {
        self.needs_below()
            && !self.operands.is_empty()
            && operator.is_some_and(|operator| operator.merges_columns())
    }

    /// The value of `key` above `below`, the value below the batch. A streamed one must be loaded.
    /// Not for a delta that [`needs_columns_below`](Self::needs_columns_below).
    ///
    /// # Errors
    /// `InvalidArgument` for operands without an operator; the operator's refusal.
    pub(super) fn over(
        self,
        key: &[u8],
        below: Option<&[u8]>,
        operator: Option<&dyn MergeOperator>,
    ) -> Result<Option<Vec<u8>>> {
        if self.operands.is_empty() {
            return Ok(match self.base {
                Base::Below => below.map(<[u8]>::to_vec),
                Base::Deleted => None,
                Base::Put(ValueType::Value, value) => Some(value),
                Base::Put(value_type, value) => {
                    let columns = columns_of(key, value_type, value.into(), &NoBlobs)?;
                    Some(columns.get("").unwrap_or_default().to_vec())
                }
                Base::Streamed(_) => return Err(not_loaded()),
            });
        }
        let base = match &self.base {
            Base::Below => below.map(|value| (ValueType::Value, value)),
            Base::Deleted => None,
            Base::Put(value_type, value) => Some((*value_type, value.as_slice())),
            Base::Streamed(_) => return Err(not_loaded()),
        };
        merge_over(key, base, &self.oldest_first(), operator, &NoBlobs).map(Some)
    }

    /// The columns of `key` above those below the batch. A streamed value must be loaded.
    ///
    /// # Errors
    /// As [`Delta::over`].
    pub(super) fn columns_over(
        self,
        key: &[u8],
        below: Option<WideColumns>,
        operator: Option<&dyn MergeOperator>,
    ) -> Result<Option<WideColumns>> {
        if self.operands.is_empty() {
            return match self.base {
                Base::Below => Ok(below),
                Base::Deleted => Ok(None),
                Base::Put(value_type, value) => {
                    columns_of(key, value_type, value.into(), &NoBlobs).map(Some)
                }
                Base::Streamed(_) => Err(not_loaded()),
            };
        }
        // As in RocksDB, one that has nothing but the default column counts as a plain value.
        let below = below.map(|columns| match columns.only_default() {
            Some(value) => (ValueType::Value, value.to_vec()),
            None => (ValueType::WideColumnEntity, columns.encode()),
        });
        let base = match &self.base {
            Base::Below => {
                below.as_ref().map(|(value_type, value)| (*value_type, value.as_slice()))
            }
            Base::Deleted => None,
            Base::Put(value_type, value) => Some((*value_type, value.as_slice())),
            Base::Streamed(_) => return Err(not_loaded()),
        };
        let (value_type, merged) =
            merge_whole(key, base, &self.oldest_first(), operator, &NoBlobs)?;
        columns_of(key, value_type, merged.into(), &NoBlobs).map(Some)
    }

    fn oldest_first(&self) -> Vec<&[u8]> {
        self.operands.iter().rev().map(Vec::as_slice).collect()
    }
}

fn not_loaded() -> Error {
    Error::not_supported("a streamed value is read before anything is merged into it")
}

/// A cursor over the keys of which a batch says something. It sees the batch as it was when the
/// cursor was made.
pub(super) struct DeltaCursor {
    entries: MemTableIterator,
    counting: Counting,
    /// The key that it stands on.
    current: Option<Vec<u8>>,
    delta: Delta,
    table: Arc<MemTable>,
}

/// Behind all entries of `key`: numbers begin at 1.
fn oldest(key: &[u8]) -> InternalKeyBuf {
    InternalKeyBuf::new(key, 0, ValueType::Deletion)
}

/// Before all entries of `key`.
fn newest(key: &[u8]) -> InternalKeyBuf {
    InternalKeyBuf::for_seek(key, MAX_SEQUENCE_NUMBER)
}

impl DeltaCursor {
    pub(super) fn new(table: Arc<MemTable>, counting: Counting) -> Self {
        let entries = table.iter();
        Self { entries, counting, current: None, delta: Delta::default(), table }
    }

    /// The key that it stands on, if any.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.current.as_deref()
    }

    /// What the batch says of that key.
    pub(super) fn delta(&self) -> &Delta {
        &self.delta
    }

    pub(super) fn seek_to_first(&mut self) {
        self.entries.seek_to_first();
        self.settle_forward();
    }

    pub(super) fn seek_to_last(&mut self) {
        self.entries.seek_to_last();
        self.settle_backward();
    }

    /// Moves to the first key at or after `key`.
    pub(super) fn seek(&mut self, key: &[u8]) {
        self.entries.seek(newest(key).as_key());
        self.settle_forward();
    }

    /// Moves to the last key at or before `key`.
    pub(super) fn seek_for_prev(&mut self, key: &[u8]) {
        self.entries.seek_for_prev(oldest(key).as_key());
        self.settle_backward();
    }

    /// Moves to the next key; it must stand on one.
    pub(super) fn next(&mut self) {
        let Some(key) = self.current.take() else { return };
        self.pass(&key);
        self.settle_forward();
    }

    /// Moves to the key before; it must stand on one.
    pub(super) fn prev(&mut self) {
        let Some(key) = self.current.take() else { return };
        self.before(&key);
        self.settle_backward();
    }
    /// Whether the entries stand on one of `key`.
    fn is_on(&self, key: &[u8]) -> bool {
        let order = &self.table.comparator().user;
        self.entries.valid() && order.compare(self.entries.key().user_key(), key).is_eq()
    }

    /// Moves the entries, which stand on one of `key` or on the next key, behind those of `key`.
    fn pass(&mut self, key: &[u8]) {
        for _ in 0..STEPS_MAX {
            if !self.is_on(key) {
                return;
            }
            self.entries.next();
        }
        if self.is_on(key) {
            self.entries.seek(oldest(key).as_key());
        }
    }

    /// Moves the entries to the oldest one of the key before `key`.
    fn before(&mut self, key: &[u8]) {
        self.entries.seek_for_prev(newest(key).as_key());
    }

    /// Takes up the first key, from the newest entry on which the entries stand, of which the batch
    /// says something.
    fn settle_forward(&mut self) {
        while self.entries.valid() {
            let key = self.entries.key().user_key().to_vec();
            self.delta = Delta::default();
            while self.is_on(&key) {
                let entry = self.entries.key();
                if self.counting.counts(entry.sequence())
                    && let Some(value_type) = entry.value_type()
                    && self.delta.add(value_type, self.entries.value()).is_break()
                {
                    break;
                }
                self.entries.next();
            }
            if !self.delta.is_empty() {
                self.current = Some(key);
                return;
            }
        }
        self.current = None;
    }

    /// Takes up the last key, from that of the entry on which the entries stand back, of which the
    /// batch says something.
    fn settle_backward(&mut self) {
        while self.entries.valid() {
            let key = self.entries.key().user_key().to_vec();
            self.delta = Delta::of(&self.table, &self.counting, &key);
            if !self.delta.is_empty() {
                self.current = Some(key);
                return;
            }
            self.before(&key);
        }
        self.current = None;
    }
}

#[cfg(test)]
mod tests;
