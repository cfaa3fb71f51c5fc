//! Compresses data blocks in threads of their own, while those before are written and those behind
//! are filled.
//!
//! Blocks are gathered to batches, since to wake a thread takes about as long as to compress a
//! small block. Some batches wait, so that the threads seldom do. Where more would have to, the
//! oldest is written: the maker of the table waits for it, or compresses others meanwhile. So how
//! many blocks wait does not depend on how fast either is. A table that is smaller than a batch
//! never has a thread.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::super::block::BlockBuilder;
use super::super::format::BlockHandle;
use super::block_compressor::BlockCompressor;
use crate::base::compression::CompressionType;
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Code, Error, Result};
use crate::env::{Join, Spawn};

/// Bytes of blocks from which on a batch is handed over.
const BATCH_SIZE: usize = 256 << 10;
/// Batches that wait, are being compressed, or are not written yet, beside one for each thread;
/// fewer if they have more bytes than so many batches.
const BATCHES_WAITING: usize = 2;
/// Larger blocks are compressed where they are made: several of them would be much memory.
pub(super) const PARALLEL_BLOCK_MAX: usize = 5 << 18;

/// What parallel compression by `threads` takes in memory at most, in bytes, of entries of such a
/// size: the batches that wait, one that is being filled and one for later, and what is to be
/// stored of them.
pub fn parallel_compression_memory(threads: usize, entry_size: usize) -> usize {
    (threads + BATCHES_WAITING + 3) * 2 * entry_size.clamp(BATCH_SIZE, PARALLEL_BLOCK_MAX)
}

/// Blocks with the first and the last key of each, and what is to be stored of them.
#[derive(Default)]
pub(super) struct Batch {
    blocks: Vec<BatchedBlock>,
    /// One behind the other; elsewhere while the batch is being filled.
    raw: Vec<u8>,
    keys: Vec<u8>,
    stored: Vec<u8>,
}

/// Where in its batch a block ends; it begins where the one before ends.
#[derive(Clone, Copy, Default)]
struct BatchedBlock {
    raw_end: usize,
    first_key_end: usize,
    last_key_end: usize,
    stored_end: usize,
    kind: CompressionType,
}

/// A block of a batch that was compressed.
pub(super) struct PackedBlock<'a> {
    pub raw: &'a [u8],
    pub first_key: &'a [u8],
    pub last_key: &'a [u8],
    /// What the file is to have of it.
    pub stored: &'a [u8],
    pub kind: CompressionType,
}

impl Batch {
    fn push(&mut self, raw_end: usize, first_key: &[u8], last_key: &[u8]) {
        self.keys.extend_from_slice(first_key);
        let first_key_end = self.keys.len();
        self.keys.extend_from_slice(last_key);
        self.blocks.push(BatchedBlock {
            raw_end,
            first_key_end,
            last_key_end: self.keys.len(),
            ..BatchedBlock::default()
        });
    }

    fn raw_size(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.raw_end)
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.raw.clear();
        self.keys.clear();
        self.stored.clear();
    }

    fn compress(&mut self, compressor: &mut BlockCompressor) -> Result<()> {
        let mut start = 0;
        for block in &mut self.blocks {
            block.kind = compressor.compress(&self.raw[start..block.raw_end], &mut self.stored)?;
            block.stored_end = self.stored.len();
            start = block.raw_end;
        }
        Ok(())
    }

    /// Its blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = PackedBlock<'_>> {
        let begins = std::iter::once(BatchedBlock::default()).chain(self.blocks.iter().copied());
        begins.zip(&self.blocks).map(|(before, block)| {
            let raw = &self.raw[before.raw_end..block.raw_end];
            PackedBlock {
                raw,
                first_key: &self.keys[before.last_key_end..block.first_key_end],
                last_key: &self.keys[block.first_key_end..block.last_key_end],
                stored: match block.kind {
                    CompressionType::None => raw,
                    _ => &self.stored[before.stored_end..block.stored_end],
                },
                kind: block.kind,
            }
        })
    }
}

/// A block that was written, while the key that follows it is not known.
pub(super) struct WrittenBlock {
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    pub handle: BlockHandle,
}

/// Who compresses blocks for one table.
pub(super) struct ParallelCompressor {
    spawner: Arc<dyn Spawn>,
    shared: Arc<Shared>,
    /// For what is compressed where the table is made.
    own: BlockCompressor,
    /// Those of the threads, until these are there.
    threads: Vec<BlockCompressor>,
    running: Vec<Box<dyn Join>>,
    batches_max: usize,
    filling: Batch,
    /// Bytes of the blocks in the batches that were handed over, for each of these.
    handed_over: VecDeque<usize>,
    spare: Option<Batch>,
    /// The last block that was written.
    pub last_written: Option<WrittenBlock>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What was handed over and not taken back, in order.
    batches: VecDeque<Place>,
    /// How many were taken back.
    taken: usize,
    has_ended: bool,
}

/// How far a batch is.
enum Place {
    Waiting(Batch),
    /// Somebody compresses it.
    Busy,
    Done(Result<Batch>),
}

impl State {
    /// The first batch that nobody compresses yet, and its number.
    fn begin(&mut self) -> Option<(usize, Batch)> {
        let at = self.batches.iter().position(|place| matches!(place, Place::Waiting(_)))?;
        match std::mem::replace(&mut self.batches[at], Place::Busy) {
            Place::Waiting(batch) => Some((self.taken + at, batch)),
            Place::Busy | Place::Done(_) => None,
        }
    }

    fn end(&mut self, number: usize, done: Result<Batch>) {
        let at = number - self.taken;
        self.batches[at] = Place::Done(done);
    }
}

impl ParallelCompressor {
    /// Compresses in a thread of this spawner's with each of `threads`, and in the calling one with
    /// its own, which is of the same kind.
    pub fn new(
        spawner: Arc<dyn Spawn>,
        own: BlockCompressor,
        threads: Vec<BlockCompressor>,
    ) -> Self {
        Self {
            spawner,
            shared: Arc::default(),
            own,
            batches_max: threads.len() + BATCHES_WAITING,
            threads,
            running: Vec::new(),
            filling: Batch::default(),
            handed_over: VecDeque::new(),
            spare: None,
            last_written: None,
        }
    }

    /// Bytes of blocks that are not written yet.
    pub fn size(&self) -> usize {
        self.filling.raw_size() + self.handed_over.iter().sum::<usize>()
    }

    /// Notes a block of those that the builder holds, with its first and last key; whether it is
    /// time to hand them over.
    pub fn push(&mut self, raw_end: usize, first_key: &[u8], last_key: &[u8]) -> bool {
        self.filling.push(raw_end, first_key, last_key);
        raw_end >= BATCH_SIZE
    }

    /// Hands the blocks over, which are the builder's that were noted; the batch that is to be
    /// written then, if one is.
    ///
    /// # Errors
    /// `IoError` if there is no thread to be had; what compressing that batch has met.
    pub fn hand_over(&mut self, builder: &mut BlockBuilder) -> Result<Option<Batch>> {
        for compressor in std::mem::take(&mut self.threads) {
            let shared = self.shared.clone();
            let work = move || shared.compress_until_ended(compressor);
            self.running.push(self.spawner.spawn("flagstone-compress", Box::new(work))?);
        }
        let batch = self.take_filled(builder);
        self.handed_over.push_back(batch.raw.len());
        self.shared.state.lock().batches.push_back(Place::Waiting(batch));
        self.shared.changed.notify_all();
        let bytes: usize = self.handed_over.iter().sum();
        let bytes_max = (self.batches_max + 2) * BATCH_SIZE;
        let has_room = self.handed_over.len() <= self.batches_max && bytes <= bytes_max;
        if has_room { Ok(None) } else { self.take_back() }
    }

    fn take_filled(&mut self, builder: &mut BlockBuilder) -> Batch {
        let mut next = self.spare.take().unwrap_or_default();
        let raw = builder.take(std::mem::take(&mut next.raw));
        Batch { raw, ..std::mem::replace(&mut self.filling, next) }
    }

    /// The oldest batch that was handed over, compressed; `None` if there is none. While it is not,
    /// others are compressed here.
    ///
    /// # Errors
    /// What compressing it has met.
    pub fn take_back(&mut self) -> Result<Option<Batch>> {
        if self.handed_over.pop_front().is_none() {
            return Ok(None);
        }
        let mut state = self.shared.state.lock();
        loop {
            match state.batches.pop_front() {
                Some(Place::Done(done)) => {
                    state.taken += 1;
                    return done.map(Some);
                }
                Some(other) => state.batches.push_front(other),
                None => return Ok(None),
            }
            let Some((number, mut batch)) = state.begin() else {
                self.shared.changed.wait(&mut state);
                continue;
            };
            drop(state);
            let done = batch.compress(&mut self.own).map(|()| batch);
            state = self.shared.state.lock();
            state.end(number, done);
        }
    }

    /// The blocks that were not handed over, compressed here.
    ///
    /// # Errors
    /// What compressing them has met.
    pub fn take_rest(&mut self, builder: &mut BlockBuilder) -> Result<Batch> {
        let mut batch = self.take_filled(builder);
        batch.compress(&mut self.own).map(|()| batch)
    }

    /// Takes a batch, all of which is written, for the next blocks.
    pub fn reuse(&mut self, mut batch: Batch) {
        batch.clear();
        if batch.raw.capacity() <= 2 * PARALLEL_BLOCK_MAX {
            self.spare = Some(batch);
        }
    }
}

impl Shared {
    fn compress_until_ended(&self, mut compressor: BlockCompressor) {
        let mut state = self.state.lock();
        while !state.has_ended {
            let Some((number, mut batch)) = state.begin() else {
                self.changed.wait(&mut state);
                continue;
            };
            drop(state);
            let compressed = catch_unwind(AssertUnwindSafe(|| batch.compress(&mut compressor)));
            let panicked = |_| Err(Error::new(Code::Aborted, "compressing panicked"));
            let done = compressed.unwrap_or_else(panicked).map(|()| batch);
            state = self.state.lock();
            state.end(number, done);
            self.changed.notify_all();
        }
    }
}

impl Drop for ParallelCompressor {
    fn drop(&mut self) {
        self.shared.state.lock().has_ended = true;
        self.shared.changed.notify_all();
        for thread in self.running.drain(..) {
            thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
