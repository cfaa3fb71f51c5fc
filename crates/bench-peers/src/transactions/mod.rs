//! Small transactions, batches with an index, and locks that are held: Flagstone beside RocksDB.
//!
//! - [`command`]: all parts, each a process of its own, the engines in turns
//! - [`exercise`]: what a part does
//! - [`flagstone`], [`rocksdb`]: the two engines
//!
//! Nothing is synced. Both engines have the same cache, filters and memtables; otherwise they are
//! as they come.

pub mod command;
mod exercise;
mod flagstone;
mod rocksdb;

use std::path::Path;

use crate::engine::Result;

/// Bytes of the block cache of either engine.
const CACHE_BYTES: u64 = 512 << 20;
/// Bytes of a memtable of either engine.
const MEMTABLE_BYTES: u64 = 64 << 20;
/// Bytes of each value.
const VALUE_BYTES: usize = 100;

/// A key.
type Key = [u8; 16];

/// How transactions keep others away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// They lock their keys.
    Pessimistic,
    /// Their commit looks for conflicts.
    Optimistic,
}

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    Flagstone,
    Rocksdb,
}

/// An open database.
trait Database: Sync {
    /// Writes rows without transactions.
    fn fill(&self, rows: &mut dyn Iterator<Item = Key>, value: &[u8]) -> Result<()>;

    /// What one thread uses.
    fn worker(&self) -> Result<Box<dyn Worker + '_>>;

    /// A batch with an index that is empty.
    fn batch(&self) -> Result<Box<dyn Batch + '_>>;

    /// Locks keys in one transaction; `then` is called while it holds them.
    fn hold(&self, keys: &mut dyn Iterator<Item = Key>, then: &mut dyn FnMut()) -> Result<()>;

    fn close(self: Box<Self>) -> Result<()>;
}

/// Transactions of one thread.
trait Worker {
    /// Reads these rows for update, writes them, and commits; whether no conflict was in the way.
    fn update(&mut self, keys: &[Key], value: &[u8]) -> Result<bool>;
}

/// A batch with an index.
trait Batch {
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()>;

    /// Whether the key is there, in the batch or in the database.
    fn reads(&self, key: &Key) -> Result<bool>;

    /// Goes over all of batch and database; how many entries there were.
    fn iterate(&self) -> Result<u64>;
}

fn key(number: u64) -> Key {
    let mut key = *b"row0000000000000";
    let mut left = number;
    for digit in key[3..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    key
}

fn open(engine: Engine, kind: Kind, directory: &Path) -> Result<Box<dyn Database>> {
    Ok(match engine {
        Engine::Flagstone => Box::new(flagstone::Opened::open(directory, kind)?),
        Engine::Rocksdb => Box::new(rocksdb::Opened::open(directory, kind)?),
    })
}
