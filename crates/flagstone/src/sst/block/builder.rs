//! Puts a block together.

use crate::base::coding::{put_fixed32, put_varint32};

use super::HASH_INDEX_BIT;
use super::hash_index::HashIndexBuilder;

/// Builds one block after another from entries in order, keeping its allocations.
#[derive(Debug)]
pub struct BlockBuilder {
    buffer: Vec<u8>,
    /// Where in the buffer the block begins: behind those that wait there
    /// ([`BlockBuilder::go_on`]).
    start: usize,
    restarts: Vec<u32>,
    restart_interval: usize,
    /// Entries since the last restart.
    since_restart: usize,
    last_key: Vec<u8>,
    num_entries: usize,
    hash_index: Option<HashIndexBuilder>,
}

impl BlockBuilder {
    /// A builder with a full key every `restart_interval` entries; with `hash_ratio` it adds a hash
    /// index over the user keys of the internal keys added.
    pub fn new(restart_interval: usize, hash_ratio: Option<f64>) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            restarts: vec![0],
            restart_interval: restart_interval.max(1),
            since_restart: 0,
            last_key: Vec::new(),
            num_entries: 0,
            hash_index: hash_ratio.map(HashIndexBuilder::new),
        }
    }

    /// Appends an entry.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = self.start_entry(key);
        put_varint32(&mut self.buffer, shared as u32);
        put_varint32(&mut self.buffer, (key.len() - shared) as u32);
        put_varint32(&mut self.buffer, value.len() as u32);
        self.buffer.extend_from_slice(&key[shared..]);
        self.buffer.extend_from_slice(value);
        self.end_entry(key, shared);
        if let Some(hash_index) = &mut self.hash_index {
            let user_key = &key[..key.len().saturating_sub(crate::base::PACKED_SIZE)];
            hash_index.add(user_key, self.restarts.len() as u32 - 1);
        }
    }

    /// Appends an entry without a value length, for index blocks: `full` is written if the key
    /// shares nothing with the one before, `delta` otherwise; without a `delta` it shares nothing.
    pub fn add_without_length(&mut self, key: &[u8], full: &[u8], delta: Option<&[u8]>) {
        let shared = match (self.start_entry(key), delta) {
            (shared, Some(_)) => shared,
            (_, None) => 0,
        };
        put_varint32(&mut self.buffer, shared as u32);
        put_varint32(&mut self.buffer, (key.len() - shared) as u32);
        self.buffer.extend_from_slice(&key[shared..]);
        self.buffer.extend_from_slice(delta.filter(|_| shared > 0).unwrap_or(full));
        self.end_entry(key, shared);
    }

    #[inline]
    fn start_entry(&mut self, key: &[u8]) -> usize {
        if self.since_restart < self.restart_interval {
            return if self.num_entries == 0 { 0 } else { common_prefix(&self.last_key, key) };
        }
        self.restarts.push((self.buffer.len() - self.start) as u32);
        self.since_restart = 0;
        0
    }

    #[inline]
    fn end_entry(&mut self, key: &[u8], shared: usize) {
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.since_restart += 1;
        self.num_entries += 1;
    }

    /// Whether nothing was added since the block was started.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.num_entries == 0
    }

    /// The size that [`BlockBuilder::finish`] would give now, in bytes.
    #[inline]
    pub fn estimated_size(&self) -> usize {
        let hash_index = self.hash_index.as_ref().map_or(0, HashIndexBuilder::estimated_size);
        self.buffer.len() - self.start + 4 * self.restarts.len() + 4 + hash_index
    }

    /// The size after one more entry, at most.
    #[inline]
    pub fn estimated_size_after(&self, key: &[u8], value: &[u8]) -> usize {
        // Three numbers, a restart offset; the key may share less than hoped for.
        self.estimated_size() + key.len() + value.len() + 4 + 3 * 5
    }

    /// The size with one more entry, but for what that takes in the hash index.
    pub fn size_with(&self, key: &[u8], value: &[u8]) -> usize {
        let begins = self.since_restart >= self.restart_interval;
        let shared =
            if begins || self.num_entries == 0 { 0 } else { common_prefix(&self.last_key, key) };
        let numbers =
            [shared, key.len() - shared, value.len()].map(|number| varint_length(number as u32));
        let entry = numbers.iter().sum::<usize>() + key.len() - shared + value.len();
        self.estimated_size() + entry + if begins { 4 } else { 0 }
    }

    /// Completes the block; the bytes are valid until [`BlockBuilder::clear`].
    pub fn finish(&mut self) -> &[u8] {
        for &restart in &self.restarts {
            put_fixed32(&mut self.buffer, restart);
        }
        let mut footer = self.restarts.len() as u32;
        if let Some(hash_index) = &self.hash_index
            && hash_index.finish(&mut self.buffer, self.start)
        {
            footer |= HASH_INDEX_BIT;
        }
        put_fixed32(&mut self.buffer, footer);
        &self.buffer[self.start..]
    }

    /// Starts the next block in the place of this one.
    pub fn clear(&mut self) {
        self.buffer.truncate(self.start);
        self.begin();
    }

    /// Starts the next block behind this one, which was completed; where that ends.
    pub fn go_on(&mut self) -> usize {
        self.start = self.buffer.len();
        self.begin();
        self.start
    }

    /// The blocks that wait, one behind the other, in exchange for a buffer for the next ones. No
    /// block is begun.
    pub fn take(&mut self, spare: Vec<u8>) -> Vec<u8> {
        debug_assert!(self.is_empty() && spare.is_empty(), "blocks are taken as a whole");
        self.start = 0;
        std::mem::replace(&mut self.buffer, spare)
    }

    fn begin(&mut self) {
        self.restarts.truncate(1);
        self.since_restart = 0;
        self.last_key.clear();
        self.num_entries = 0;
        if let Some(hash_index) = &mut self.hash_index {
            hash_index.clear();
        }
    }
}

/// Bytes of a number of variable length.
fn varint_length(number: u32) -> usize {
    (u32::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// The number of bytes that `a` and `b` start with alike, eight at a time.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let limit = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= limit {
        let x = u64::from_le_bytes(a[at..at + 8].try_into().expect("eight bytes"));
        let y = u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"));
        let difference = x ^ y;
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < limit && a[at] == b[at] {
        at += 1;
    }
    at
}
