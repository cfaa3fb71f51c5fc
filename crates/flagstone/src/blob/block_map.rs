//! Which blocks of a blob file are in use: those that its header, its footer or a live record touches. The others may become
//! holes.

use std::ops::Range;

use super::format::{BlobIndex, FOOTER_SIZE, HEADER_SIZE, RECORD_HEADER_SIZE};
use crate::base::Mutant;

/// The most blocks that are asked of a hole.
const HOLE_BLOCKS_MAX: u64 = 3;

/// One bit for each block of a sealed blob file.
#[derive(Debug)]
pub struct BlockMap {
    block_size: u64,
    /// Blocks of the shortest hole.
    shortest: u64,
    /// Where the records end.
    records_end: u64,
    /// Set for blocks in use.
    words: Vec<u64>,
    live_count: u64,
    live_bytes: u64,
    /// A record was marked that the file cannot have.
    is_wrong: bool,
}

impl BlockMap {
    /// That of a file with so many records of `total_bytes` in all, none of them marked yet. Holes are as long as what an average
    /// record leaves, or have three blocks: shorter ones cost as much.
    pub fn new(total_bytes: u64, total_count: u64, block_size: u64) -> Self {
        let block_size = block_size.max(1);
        let record_blocks = total_bytes / total_count.max(1) / block_size;
        let shortest = record_blocks.saturating_sub(1).clamp(1, HOLE_BLOCKS_MAX);
        let records_end = total_bytes.saturating_add(HEADER_SIZE as u64);
        let size = records_end.saturating_add(FOOTER_SIZE as u64);
        let words = vec![0; size.div_ceil(block_size).div_ceil(64) as usize];
        let (live_count, live_bytes, is_wrong) = (0, 0, false);
        let mut map = Self { block_size, shortest, records_end, words, live_count, live_bytes, is_wrong };
        map.use_bytes(0..HEADER_SIZE as u64);
        map.use_bytes(records_end..size);
        map
    }

    /// A key of `user_key_size` bytes refers to `index`: all of its record is in use.
    pub fn mark(&mut self, user_key_size: usize, index: &BlobIndex) {
        let before = (RECORD_HEADER_SIZE + user_key_size) as u64;
        let record = index.offset.saturating_sub(before)..index.offset.saturating_add(index.size);
        if index.offset < HEADER_SIZE as u64 + before || record.end > self.records_end {
            self.is_wrong = true;
            return;
        }
        self.live_count += 1;
        self.live_bytes += record.end - record.start;
        if !(Mutant::PunchLiveRecord.is_on() && self.live_count == 1) {
            self.use_bytes(record);
        }
    }

    /// Whether exactly so many records of so many bytes were marked, all within the file: what else might be in use is unknown.
    pub fn holds(&self, live_count: u64, live_bytes: u64) -> bool {
        !self.is_wrong && (self.live_count, self.live_bytes) == (live_count, live_bytes)
    }

    /// The ranges of blocks from `offset` on that are not in use, as long as they can be, ascending. Short ones are left out:
    /// they cost as much as others.
    pub fn holes(&self, offset: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let blocks = (self.records_end + FOOTER_SIZE as u64).div_ceil(self.block_size);
        let mut at = offset / self.block_size;
        let runs = std::iter::from_fn(move || {
            let start = (at..blocks).find(|block| !self.is_used(*block))?;
            let end = (start..blocks).find(|block| self.is_used(*block)).unwrap_or(blocks);
            at = end;
            Some(start..end)
        });
        let long = runs.filter(|run| run.end - run.start >= self.shortest);
        long.map(|run| run.start * self.block_size..run.end * self.block_size)
    }

    /// Bytes that it takes in memory.
    pub fn memory_usage(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    fn is_used(&self, block: u64) -> bool {
        self.words[block as usize / 64] >> (block % 64) & 1 == 1
    }

    fn use_bytes(&mut self, bytes: Range<u64>) {
        for block in bytes.start / self.block_size..bytes.end.div_ceil(self.block_size) {
            self.words[block as usize / 64] |= 1 << (block % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::FileNumber;

    fn blob(offset: u64, size: u64) -> BlobIndex {
        BlobIndex { file: FileNumber(1), offset, size, compression: 0 }
    }

    /// A file of 100 blocks of 4096 bytes, less header and footer, with so many records.
    fn map_of(records: u64) -> BlockMap {
        BlockMap::new(100 * 4096 - (HEADER_SIZE + FOOTER_SIZE) as u64, records, 4096)
    }

    fn map() -> BlockMap {
        map_of(5)
    }

    /// The blocks of the holes, as text.
    fn holes(map: &BlockMap) -> String {
        let holes = map.holes(0).map(|hole| format!("{}-{}", hole.start / 4096, hole.end / 4096));
        holes.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn without_live_records_only_header_and_footer_are_in_use() {
        let map = map();
        assert_eq!(holes(&map), "1-99");
        assert!(map.holds(0, 0));
    }

    #[test]
    fn a_block_that_a_record_touches_is_in_use() {
        let mut map = map();
        // Its header ends one block and its value ends with the next but one.
        map.mark(10, &blob(3 * 4096 + 41, 2 * 4096 - 41));
        assert_eq!(holes(&map), "5-99", "a single block stays");
        // Another begins where that ends.
        map.mark(10, &blob(5 * 4096 + 42, 1));
        assert_eq!(holes(&map), "6-99");
        assert!(map.holds(2, 2 * 4096 + 1 + 43) && !map.holds(1, 2 * 4096 + 1));
    }

    #[test]
    fn holes_are_as_long_as_what_a_record_leaves() {
        let holes_among = |records| {
            let mut map = map_of(records);
            [1, 3, 6, 10].iter().for_each(|block| map.mark(10, &blob(block * 4096 + 42, 1)));
            holes(&map)
        };
        assert_eq!(holes_among(24), "7-10 11-99", "four blocks");
        assert_eq!(holes_among(32), "4-6 7-10 11-99", "three blocks");
        assert_eq!(holes_among(48), "2-3 4-6 7-10 11-99", "two blocks");
        assert_eq!(holes_among(4000), "2-3 4-6 7-10 11-99", "less than one");
    }

    #[test]
    fn records_that_the_file_cannot_have_are_noticed() {
        for wrong in
            [blob(10, 5), blob(50 * 4096, 60 * 4096), blob(u64::MAX - 2, 100), blob(100 * 4096 - 40, 20)]
        {
            let mut map = map();
            map.mark(3, &wrong);
            assert!(!map.holds(1, 3 + 32 + wrong.size) && !map.holds(0, 0), "{wrong:?}");
        }
    }

    #[test]
    fn small_blocks_and_files_are_like_others() {
        assert_eq!(BlockMap::new(0, 0, 4096).holes(0).count(), 0);
        let mut map = BlockMap::new(1000, 2, 64);
        map.mark(2, &blob(30 + 34 + 200, 100));
        assert!(map.holes(0).eq(std::iter::once(384..1024)));
        assert!(map.holes(500).eq(std::iter::once(448..1024)));
        assert_eq!(map.memory_usage(), 8);
    }
}
