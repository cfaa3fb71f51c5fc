//! The engines behind one face, each driven as its own documentation says it is fastest.

mod disk;
#[cfg(feature = "fjall")]
mod fjall;
mod flagstone;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::path::Path;

use crate::amplification::Written;
use crate::cell::{Durability, EngineName};
use crate::tuning::Tuning;

/// What goes wrong in an engine or in the harness; only ever shown.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result with that error.
pub type Result<T> = std::result::Result<T, Error>;

/// One entry of a batch.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// Bytes of a batch of entries, at most, for the engines that are told before: one that grows with
/// its entries is copied again and again.
fn batch_bytes(entries: &[Entry<'_>]) -> usize {
    /// Beside key and value; the batch's header is small beside that.
    const ENTRY_OVERHEAD: usize = 32;
    entries.iter().map(|(key, value)| key.len() + value.len() + ENTRY_OVERHEAD).sum()
}

/// Where a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To larger keys.
    Forward,
    /// To smaller keys.
    Backward,
}

/// An open database. Values are shown where they lie; an engine copies them only if it knows no
/// other way.
pub trait Engine: Send + Sync {
    /// Writes one entry.
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()>;

    /// Writes entries as one.
    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()>;

    /// Shows the value of a key; false if there is none.
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Shows the values of several keys; how many there are.
    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(&[u8])) -> Result<usize> {
        let mut found = 0;
        for key in keys {
            found += usize::from(self.get(key, visit)?);
        }
        Ok(found)
    }

    /// Shows up to `count` entries, first the key and then the value of each; the first entry is at
    /// `from` or next to it in the direction. How many there were.
    fn scan(
        &self,
        from: &[u8],
        direction: Direction,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize>;

    /// Brings what is in memory to the disk.
    fn flush(&self) -> Result<()>;

    /// Rewrites everything into its final form.
    fn compact(&mut self) -> Result<()>;

    /// Waits until nothing is left to do in the background.
    fn settle(&self) -> Result<()>;

    /// What it has written since it was opened, by its own count.
    fn written(&self) -> Result<Written> {
        Err("this engine does not count what it writes".into())
    }

    /// What the engine tells about itself.
    fn statistics(&self) -> String;

    /// Closes the database.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Opens the database in `directory`, making it if there is none. Writes of a class below
/// `durability` may come out as that class.
pub fn open(
    name: EngineName,
    directory: &Path,
    tuning: &Tuning,
    durability: Durability,
) -> Result<Box<dyn Engine>> {
    // Only fjall and LMDB choose when they open.
    let _ = durability;
    match name {
        EngineName::Flagstone => flagstone::open(directory, tuning),
        EngineName::Disk => disk::open(directory, tuning),
        #[cfg(feature = "rocksdb")]
        EngineName::Rocksdb | EngineName::RocksdbBlob | EngineName::RocksdbDirect => {
            rocksdb::open(directory, tuning)
        }
        #[cfg(feature = "leveldb")]
        EngineName::Leveldb => leveldb::open(directory, tuning),
        #[cfg(feature = "fjall")]
        EngineName::Fjall => fjall::open(directory, tuning, durability),
        #[cfg(feature = "redb")]
        EngineName::Redb => redb::open(directory, tuning),
        #[cfg(feature = "lmdb")]
        EngineName::Lmdb => lmdb::open(directory, durability, lmdb::Reads::EachCall),
        #[cfg(feature = "lmdb")]
        EngineName::LmdbKept => lmdb::open(directory, durability, lmdb::Reads::Once),
        #[cfg(not(all(
            feature = "rocksdb",
            feature = "leveldb",
            feature = "fjall",
            feature = "redb",
            feature = "lmdb"
        )))]
        _ => Err(format!("this program was built without {}", name.title()).into()),
    }
}
