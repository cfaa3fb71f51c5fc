//! Values that lie beside the blocks of a damaged table.
//!
//! A record looks like an uncompressed block, and its value is whatever somebody has written: also
//! a block of entries. Where blocks are looked for by their checksums, such a one is not taken for
//! a block of the table. It lies in front of the block that refers to it. So the blocks are gone
//! through from the last to the first, and what those that were taken refer to is none.

use std::collections::{BTreeMap, HashSet};

use super::contents::{self, Contents};
use super::{Survey, TableRemains};
use crate::base::{Comparator, InternalKey, InternalKeyBuf, Result, SequenceNumber, ValueType};
use crate::sst::block::BlockIter;
use crate::sst::embedded::{self, WholeValue, records_of};
use crate::sst::fetch::BlockSource;
use crate::sst::format::BlockHandle;
use crate::sst::settings::ReadSettings;
use crate::sst::verify::BlockFault;

/// How values are read: each with its checksum.
const CHECKED: ReadSettings =
    ReadSettings { verify_checksums: true, fill_cache: false, cache_only: false };

/// Where values begin and end.
type Values = BTreeMap<u64, u64>;

impl TableRemains {
    /// Notes whether values may lie beside the blocks: where the properties are lost, they may.
    pub(super) fn tell_records(&mut self) {
        let size = self.source.file_size;
        self.source.records_end = match &self.properties {
            Some(properties) => embedded::records_end(properties, size),
            None => Some(size),
        };
    }

    /// Gives the entries whose values are lost the sequence number that all have.
    pub(super) fn date_lost(&mut self, sequence: SequenceNumber) {
        let dated = |key: Vec<u8>| {
            let key = InternalKey::from_checked(&key);
            let kind = key.value_type().unwrap_or(ValueType::BlobIndex);
            InternalKeyBuf::new(key.user_key(), sequence, kind).as_bytes().to_vec()
        };
        self.lost = self.lost.drain().map(dated).collect();
    }

    /// The value of the entry on which `iter` stands, if it lies beside the block.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported` or `IoError`, naming the file and the place of the value.
    pub(super) fn whole_value(&self, iter: &BlockIter) -> Result<Option<WholeValue>> {
        let kind = iter.key().value_type().filter(|_| self.source.records_end.is_some());
        let whole = kind.map(|kind| self.source.whole_value(kind, iter.value(), &CHECKED));
        whole.unwrap_or(Ok(None)).map_err(|error| error.at(self.source.path()))
    }
}

/// The entries of a block whose values cannot be read: the others are left.
#[derive(Default)]
pub(super) struct LostValues {
    faults: Vec<BlockFault>,
    keys: Vec<Vec<u8>>,
    /// How many of the last ones stand next to each other, told by the last fault.
    in_a_row: u64,
}

impl LostValues {
    /// Whether the entry on which `iter` stands, behind `before`, is one.
    pub(super) fn takes(
        &mut self,
        remains: &TableRemains,
        (iter, block): (&BlockIter, BlockHandle),
        before: Option<&InternalKeyBuf>,
    ) -> bool {
        let Err(error) = remains.whole_value(iter) else {
            self.end_row();
            return false;
        };
        let error = error.at_offset(block.offset);
        let key = iter.key();
        self.keys.push(key.as_bytes().to_vec());
        self.in_a_row += 1;
        let range = self.faults.last_mut().and_then(|fault| fault.key_range.as_mut());
        match range.filter(|_| self.in_a_row > 1) {
            Some(range) => range.1 = key.user_key().to_vec(),
            None => {
                let before = before.map_or(Vec::new(), |before| before.user_key().to_vec());
                let key_range = Some((before, key.user_key().to_vec()));
                self.faults.push(BlockFault { error, key_range });
            }
        }
        true
    }

    fn end_row(&mut self) {
        if let Some(last) = self.faults.last_mut().filter(|_| self.in_a_row > 1) {
            let what = format!("the first of {} damaged values in a row", self.in_a_row);
            last.error = last.error.clone().context(what);
        }
        self.in_a_row = 0;
    }

    /// Adds them to what is known of the table.
    pub(super) fn tell(mut self, faults: &mut Vec<BlockFault>, lost: &mut HashSet<Vec<u8>>) {
        self.end_row();
        faults.append(&mut self.faults);
        lost.extend(self.keys);
    }
}

impl Survey<'_> {
    /// Leaves out of the blocks that were found those that are values beside the blocks.
    pub(super) fn without_values(
        &self,
        found: &[BlockHandle],
        data_size: Option<u64>,
    ) -> Vec<BlockHandle> {
        let remains = &self.remains;
        let (source, comparator) = (&remains.source, &remains.comparator);
        if source.records_end.is_none() {
            return found.to_vec();
        }
        let mut values = Values::new();
        let named = self.named.iter().map(|(handle, ..)| *handle);
        named.for_each(|handle| note_values(source, handle, comparator, &mut values));
        let mut left = Vec::new();
        for (at, &handle) in found.iter().enumerate().rev() {
            let before = values.range(..=handle.offset).next_back();
            if before.is_some_and(|(_, &end)| handle.end() <= end) {
                continue;
            }
            left.push(handle);
            let is_data = matches!(
                contents::tell(source, handle, &found[..at], comparator, data_size),
                Contents::Data
            );
            if is_data {
                note_values(source, handle, comparator, &mut values);
            }
        }
        left.reverse();
        left
    }
}

/// Adds where the values lie that the entries of a block refer to, as far as they can be read.
fn note_values(
    source: &BlockSource,
    handle: BlockHandle,
    comparator: &Comparator,
    values: &mut Values,
) {
    let Ok(block) = source.read_block(handle, true, true) else { return };
    let mut iter = BlockIter::new(block, comparator.clone(), None);
    iter.seek_to_first();
    while iter.valid() {
        let kind = iter.key().value_type();
        let records = kind.map(|kind| records_of(kind, iter.value()).unwrap_or_default());
        let handles = records.iter().flatten().filter_map(|index| source.record_handle(index).ok());
        // One that lies behind the block is not the table's.
        let handles = handles.filter(|value| value.end() <= handle.offset);
        for value in handles {
            let end = values.entry(value.offset).or_default();
            *end = value.end().max(*end);
        }
        iter.next();
    }
}
