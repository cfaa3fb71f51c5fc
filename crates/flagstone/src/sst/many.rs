//! Point lookups of many keys at once, in stages, so that the reads of all keys go out together.
//!
//! 1. Ask the filter for each key, and the index for the block of each that passes.
//! 2. Fetch the distinct blocks: from the cache, the rest with one call.
//! 3. Search.

use std::ops::ControlFlow;

use crate::base::{InternalKey, Result, SequenceNumber, ValueType};

use super::block::ValueRef;
use super::cursor::IndexCursor;
use super::filter::FilterKey;
use super::format::BlockHandle;
use super::settings::ReadSettings;
use super::table::Table;

impl Table {
    /// [`Table::get`] for several targets: `visit` gets the target's position in `targets` too, and its break ends
    /// only that target. Returns how many targets the filter ruled out. Fastest if the targets ascend.
    ///
    /// # Errors
    /// As [`Table::get`]; targets that were not reached yet are then not searched.
    pub fn get_many(
        &self,
        targets: &[InternalKey<'_>],
        settings: &ReadSettings,
        mut visit: impl FnMut(usize, SequenceNumber, ValueType, ValueRef<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<usize> {
        let mut ruled_out = 0;
        let mut handles: Vec<BlockHandle> = Vec::new();
        // The targets that may be in the table, where the index leads them, and which of the handles that is.
        let mut wanted: Vec<(usize, IndexCursor, usize)> = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let key = FilterKey::new(target.user_key());
            if self.filters_keys() && !self.filter_admits(target.user_key(), key, settings)? {
                ruled_out += 1;
                continue;
            }
            let mut cursor = IndexCursor::default();
            cursor.seek_for_get(self, *target, settings)?;
            let Some(handle) = cursor.handle(self) else { continue };
            if handles.last() != Some(&handle) {
                handles.push(handle);
            }
            wanted.push((at, cursor, handles.len() - 1));
        }
        let blocks = self.source.data_blocks(&handles, settings)?;
        for (at, mut cursor, block) in wanted {
            let block = Some(blocks[block].clone());
            self.search(&mut cursor, block, targets[at], settings, |sequence, kind, value| {
                visit(at, sequence, kind, value)
            })?;
        }
        Ok(ruled_out)
    }
}
