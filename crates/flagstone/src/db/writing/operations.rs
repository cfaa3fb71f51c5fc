//! What the engine does with one operation of a batch, live and in replay.

use crate::base::{ColumnFamilyId, Comparator, SequenceNumber, ValueType};
use crate::batch::Operation;
use crate::memtable::MemTable;

/// The family that an operation writes to; `None` for marks that write nothing.
pub(in crate::db) fn family_of(operation: &Operation<'_>) -> Option<ColumnFamilyId> {
    match operation {
        Operation::Put { cf, .. }
        | Operation::Delete { cf, .. }
        | Operation::SingleDelete { cf, .. }
        | Operation::Merge { cf, .. }
        | Operation::DeleteRange { cf, .. }
        | Operation::BlobIndex { cf, .. }
        | Operation::PutEntity { cf, .. }
        | Operation::TimedPut { cf, .. } => Some(*cf),
        _ => None,
    }
}

/// Inserts one operation; whether it took a sequence number. An empty range deletion takes none. `merge` may give the value that
/// goes in the place of a key's operand.
pub(in crate::db) fn insert(
    mem: &MemTable,
    operation: &Operation<'_>,
    sequence: SequenceNumber,
    comparator: &Comparator,
    merge: impl FnOnce(&[u8], &[u8]) -> Option<Vec<u8>>,
) -> bool {
    match *operation {
        Operation::Merge { key, operand, .. } => match merge(key, operand) {
            None => mem.add(sequence, ValueType::Merge, key, operand),
            Some(value) => mem.add(sequence, ValueType::Value, key, &value),
        },
        Operation::DeleteRange { begin, end, .. } if comparator.compare(begin, end).is_ge() => return false,
        _ => match entry_of(operation) {
            Some((kind, key, value)) => mem.add(sequence, kind, key, value),
            None => return false,
        },
    }
    true
}

/// What an operation puts into a memtable: a key and its value, or the two ends of a deleted range; `None` for marks.
#[inline]
pub(in crate::db) fn entry_of<'a>(operation: &Operation<'a>) -> Option<(ValueType, &'a [u8], &'a [u8])> {
    Some(match *operation {
        Operation::Put { key, value, .. } => (ValueType::Value, key, value),
        Operation::Delete { key, .. } => (ValueType::Deletion, key, b""),
        Operation::SingleDelete { key, .. } => (ValueType::SingleDeletion, key, b""),
        Operation::Merge { key, operand, .. } => (ValueType::Merge, key, operand),
        Operation::BlobIndex { key, index, .. } => (ValueType::BlobIndex, key, index),
        Operation::PutEntity { key, entity, .. } => (ValueType::WideColumnEntity, key, entity),
        // The write time only guides tiering, which this engine does not do: the value is what counts.
        Operation::TimedPut { key, value, .. } => (ValueType::Value, key, value),
        Operation::DeleteRange { begin, end, .. } => (ValueType::RangeDeletion, begin, end),
        _ => return None,
    })
}

/// The key to which an operation gives a value or adds an operand; `None` for deletions.
pub(in crate::db) fn key_set<'a>(operation: &Operation<'a>) -> Option<&'a [u8]> {
    match *operation {
        Operation::Put { key, .. }
        | Operation::Merge { key, .. }
        | Operation::BlobIndex { key, .. }
        | Operation::PutEntity { key, .. }
        | Operation::TimedPut { key, .. } => Some(key),
        _ => None,
    }
}

/// Whether an operation that is skipped (its family is gone, or has it already) keeps its sequence number.
pub(in crate::db) fn takes_sequence(operation: &Operation<'_>) -> bool {
    match operation {
        Operation::DeleteRange { begin, end, .. } => begin != end,
        _ => family_of(operation).is_some(),
    }
}
