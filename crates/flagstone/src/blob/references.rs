//! Which blobs an entry refers to.

use super::format::BlobIndex;
use crate::base::{Result, ValueType, entity};

/// Shows the blob index of each value that an entry has in blob files: its own, or those of an
/// entity's columns. Costs little for other entries.
///
/// # Errors
/// `Corruption` or `NotSupported` for an index, or an entity of version 2, that cannot be read;
/// those of `visit`.
#[inline]
pub fn visit_references(
    kind: Option<ValueType>,
    value: &[u8],
    mut visit: impl FnMut(BlobIndex) -> Result<()>,
) -> Result<()> {
    match kind {
        Some(ValueType::BlobIndex) => visit(BlobIndex::decode(value)?),
        Some(ValueType::WideColumnEntity) => {
            entity::visit_blobs(value, |index| visit(BlobIndex::decode(index)?))
        }
        _ => Ok(()),
    }
}

/// The blobs that an entry refers to; none if that cannot be read.
pub fn references(kind: Option<ValueType>, value: &[u8]) -> Vec<BlobIndex> {
    let mut found = Vec::new();
    let note = |index| {
        found.push(index);
        Ok(())
    };
    match visit_references(kind, value, note) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}
