//! What the engine does with one operation of a batch, live and in replay.

use crate::base::{Comparator, SequenceNumber, ValueType};
use crate::batch::Operation;
use crate::memtable::MemTable;

/// Inserts one operation; whether it took a sequence number. An empty range deletion takes none.
/// `merge` may give the value that goes in the place of a key's operand.
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
        Operation::DeleteRange { begin, end, .. }
            if comparator.compare_keys(begin, end).is_ge() =>
        {
            return false;
        }
        _ => match operation.entry() {
            Some((ValueType::Deletion, key, value)) if comparator.timestamp_size() > 0 => {
                mem.add(sequence, ValueType::DeletionWithTimestamp, key, value);
            }
            Some((kind, key, value)) => mem.add(sequence, kind, key, value),
            None => return false,
        },
    }
    true
}
