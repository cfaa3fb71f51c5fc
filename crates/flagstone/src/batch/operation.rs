//! What one operation of a batch means for a tree: its family, entry and sequence number.

use super::Operation;
use crate::base::entity::has_blobs;
use crate::base::{ColumnFamilyId, ValueType};

impl<'a> Operation<'a> {
    /// The family that an operation writes to; `None` for marks that write nothing.
    pub(crate) fn family(&self) -> Option<ColumnFamilyId> {
        match self {
            Self::Put { cf, .. }
            | Self::Delete { cf, .. }
            | Self::SingleDelete { cf, .. }
            | Self::Merge { cf, .. }
            | Self::DeleteRange { cf, .. }
            | Self::BlobIndex { cf, .. }
            | Self::PutEntity { cf, .. }
            | Self::TimedPut { cf, .. } => Some(*cf),
            _ => None,
        }
    }

    /// What an operation puts into a memtable: a key and its value, or the two ends of a deleted
    /// range; `None` for marks.
    #[inline]
    pub(crate) fn entry(&self) -> Option<(ValueType, &'a [u8], &'a [u8])> {
        Some(match *self {
            Self::Put { key, value, .. } => (ValueType::Value, key, value),
            Self::Delete { key, .. } => (ValueType::Deletion, key, b""),
            Self::SingleDelete { key, .. } => (ValueType::SingleDeletion, key, b""),
            Self::Merge { key, operand, .. } => (ValueType::Merge, key, operand),
            Self::BlobIndex { key, index, .. } => (ValueType::BlobIndex, key, index),
            Self::PutEntity { key, entity, .. } => (ValueType::WideColumnEntity, key, entity),
            // A flush puts a sequence number of that time in the place of the time.
            Self::TimedPut { key, timed, .. } => {
                (ValueType::ValuePreferredSeqno, key, timed.stored())
            }
            Self::DeleteRange { begin, end, .. } => (ValueType::RangeDeletion, begin, end),
            _ => return None,
        })
    }

    /// Whether an operation has a value, or a column of an entity, in a blob file.
    pub(crate) fn names_blobs(&self) -> bool {
        match *self {
            Self::BlobIndex { .. } => true,
            // What cannot be decoded is refused elsewhere.
            Self::PutEntity { entity, .. } => has_blobs(entity).unwrap_or(false),
            _ => false,
        }
    }

    /// The key to which an operation gives a value or adds an operand; `None` for deletions.
    pub(crate) fn key_set(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Put { key, .. }
            | Self::Merge { key, .. }
            | Self::BlobIndex { key, .. }
            | Self::PutEntity { key, .. }
            | Self::TimedPut { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Whether an operation that is skipped (its family is gone, or has it already) keeps its
    /// sequence number.
    pub(crate) fn takes_sequence(&self) -> bool {
        match self {
            Self::DeleteRange { begin, end, .. } => begin != end,
            _ => self.family().is_some(),
        }
    }
}
