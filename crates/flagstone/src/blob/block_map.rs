//! Which blocks of a blob file are in use: those that its header, its footer or a live record
//! touches. The others may become holes.

use std::ops::Range;

use super::format::{BlobIndex, FOOTER_SIZE, HEADER_SIZE, RECORD_HEADER_SIZE};

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
    /// That of a file with so many records of `total_bytes` in all, none of them marked yet. Holes
    /// are as long as what an average record leaves, or have three blocks: shorter ones cost as
    /// much.
    pub fn new(total_bytes: u64, total_count: u64, block_size: u64) -> Self {
        let block_size = block_size.max(1);
        let record_blocks = total_bytes / total_count.max(1) / block_size;
        let shortest = record_blocks.saturating_sub(1).clamp(1, HOLE_BLOCKS_MAX);
        let records_end = total_bytes.saturating_add(HEADER_SIZE as u64);
        let size = records_end.saturating_add(FOOTER_SIZE as u64);
        let words = vec![0; size.div_ceil(block_size).div_ceil(64) as usize];
        let (live_count, live_bytes, is_wrong) = (0, 0, false);
        let mut map =
            Self { block_size, shortest, records_end, words, live_count, live_bytes, is_wrong };
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
        self.use_bytes(record);
    }

    /// Whether exactly so many records of so many bytes were marked, all within the file: what else
    /// might be in use is unknown.
    pub fn holds(&self, live_count: u64, live_bytes: u64) -> bool {
        !self.is_wrong && (self.live_count, self.live_bytes) == (live_count, live_bytes)
    }

    /// The ranges of blocks from `offset` on that are not in use, as long as they can be,
    /// ascending. Short ones are left out: they cost as much as others.
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
mod tests;
