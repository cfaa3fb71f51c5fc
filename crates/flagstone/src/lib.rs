//! Flagstone: a storage engine for fast storage, an LSM tree with large values kept apart in blob
//! files.
//!
//! It reads and writes RocksDB's own files.
//!
//! ```
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("db");
//! let db = flagstone::Db::open(path)?;
//! db.put("stone", "flag")?;
//! assert_eq!(db.get("stone")?.expect("it was put"), "flag");
//! for entry in db.range("a".."z") {
//!     let (key, value) = entry?;
//!     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Begin at [`Db`]. The names at the root are the front door; the modules below are the engine
//! behind it, which the command line and the test kit use, too. They may change between versions.
//!
//! The map of the house (dependencies point downwards only):
//!
//! - [`base`]: keys, comparators, encodings, checksums, compression, errors, file names
//! - [`mod@env`]: file system, clock, randomness, threads, as traits; the operating system's
//!   underneath
//! - [`batch`]: what one write is made of; [`cache`]: blocks and blobs kept in memory; [`expiry`]:
//!   values with a time to live
//! - [`wal`], [`memtable`], [`sst`], [`blob`]: one kind of file or structure each
//! - [`options`]: every setting once; [`manifest`]: which files make up the database
//! - [`iter`], [`compaction`]: merging what the structures hold, and rewriting it
//! - [`db`]: the engine's own handles; `front`: the names at the root
//! - over the engine, as its users: [`doctor`], what is wrong in words; [`salvage`], a database
//!   from what is left of one; [`ttl`], a handle whose values expire
//!
//! Who knows RocksDB finds in docs/rocksdb-differences.md which call of it is which one here, and
//! what there is not.

pub mod base;
pub mod batch;
pub mod blob;
pub mod cache;
pub mod compaction;
pub mod db;
pub mod doctor;
pub mod env;
pub mod expiry;
mod front;
pub mod iter;
pub mod manifest;
pub mod memtable;
pub mod options;
pub mod salvage;
pub mod sst;
pub mod ttl;
pub mod wal;

pub use base::{
    Code, CompactionFilter, Comparator, Error, FilterDecision, MergeOperator, Result, SubCode,
    UserComparator,
};
pub use batch::WriteBatch;
pub use db::{Iter as Cursor, Value, ValuePart};
pub use env::Env;
pub use front::{Builder, Db, Entry, Family, Keys, Range, Snapshot, SnapshotFamily};
pub use options::{
    ColumnFamilyOptions, CompactRangeOptions, FlushOptions, Options, ReadOptions, WriteOptions,
};

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
