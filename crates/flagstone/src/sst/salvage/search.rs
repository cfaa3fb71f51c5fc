//! Step 3: blocks that no index names.

use std::collections::HashSet;
use std::ops::Range;

use super::contents::{self, Contents};
use super::scan::{Checksums, find_blocks};
use super::{Survey, properties_handle, read_range_tombstones};
use crate::base::Result;
use crate::sst::format::{BlockHandle, Footer};

impl Survey<'_> {
    /// Where no block is known.
    pub(super) fn gaps(&self) -> Vec<Range<u64>> {
        let mut known: Vec<BlockHandle> = self.named.iter().map(|(handle, ..)| *handle).collect();
        known.extend(self.meta_blocks.iter().map(|(_, handle)| *handle));
        known.sort_by_key(|handle| handle.offset);
        let (mut gaps, mut at) = (Vec::new(), 0);
        for handle in known {
            if handle.offset > at {
                gaps.push(at..handle.offset);
            }
            at = at.max(handle.end());
        }
        gaps.push(at..self.remains.source.file_size.max(at));
        gaps
    }

    /// Step 3.
    pub(super) fn find(&mut self, range: Range<u64>, found: &mut Vec<BlockHandle>) -> Result<()> {
        let source = &mut self.remains.source;
        let checksums = &mut self.checksums;
        find_blocks(&*source.file, source.file_size, range, checksums, &mut self.effort, found)?;
        if let Checksums::Known(footer) = self.checksums {
            source.footer =
                Footer { metaindex: source.footer.metaindex, index: source.footer.index, ..footer };
        }
        Ok(())
    }

    /// Whether the index says that there is another block: what looks like one is a part of a value
    /// then.
    fn lies_in_named(&self, handle: BlockHandle) -> bool {
        let begun = self.named.partition_point(|(named, ..)| named.offset < handle.end());
        begun > 0 && handle.offset < self.named[begun - 1].0.end()
    }

    /// Takes the data blocks among those that were found.
    pub(super) fn take_found(&mut self, found: &[BlockHandle]) -> Result<()> {
        let mut known: HashSet<(u64, u64)> =
            self.named.iter().map(|(handle, ..)| (handle.offset, handle.size)).collect();
        known.extend(self.meta_blocks.iter().map(|(_, handle)| (handle.offset, handle.size)));
        known.extend(self.remains.source.footer.index.map(|handle| (handle.offset, handle.size)));
        let from_index = self.remains.blocks.len();
        let properties = self.remains.properties.as_ref();
        let data_size = properties.map(|properties| properties.data_size).filter(|&size| size > 0);
        // Properties that were only found may be those of a table in a value, unless data blocks
        // agree with them.
        let is_certain = properties_handle(&self.meta_blocks).is_some();
        let agrees = |size| found.first().is_some_and(|first| first.offset < size);
        let data_size = data_size.filter(|&size| is_certain || agrees(size));
        let found = &self.without_values(found, data_size)[..];
        for (at, &handle) in found.iter().enumerate() {
            if known.contains(&(handle.offset, handle.size)) || self.lies_in_named(handle) {
                continue;
            }
            let (source, comparator) = (&self.remains.source, &self.remains.comparator);
            match contents::tell(source, handle, &found[..at], comparator, data_size) {
                Contents::Data => {
                    if let Err(error) = self.take_block(handle) {
                        self.fault(error.at_offset(handle.offset), None);
                    }
                }
                Contents::RangeDeletions if self.remains.tombstones.is_empty() => {
                    let sequence = self.remains.global_sequence;
                    let read = read_range_tombstones(&self.remains.source, handle, sequence, true);
                    self.remains.tombstones = read.unwrap_or_default();
                }
                Contents::Unreadable(error) => self.fault(error, None),
                Contents::RangeDeletions | Contents::Other => {}
            }
        }
        let blocks = &mut self.remains.blocks;
        if from_index > 0 && blocks.len() > from_index {
            // Those that were found lie between those that the index named: what ascends is not
            // known any longer.
            blocks.sort_by_key(|handle| handle.offset);
            self.remains.is_sorted = false;
        }
        Ok(())
    }
}
