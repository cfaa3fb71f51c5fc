//! Flagstone: a storage engine for fast storage, an LSM tree with large values kept apart in blob
//! files.
//!
//! It reads and writes RocksDB's own files. The map of the house (dependencies point downwards
//! only):
//!
//! - [`base`]: keys, comparators, encodings, checksums, compression, errors, file names
//! - [`mod@env`]: file system, clock, randomness, threads, as traits; the operating system's
//!   underneath
//! - [`batch`]: what one write is made of; [`cache`]: blocks and blobs kept in memory; [`expiry`]:
//!   values with a time to live
//! - [`wal`], [`memtable`], [`sst`], [`blob`]: one kind of file or structure each
//! - [`options`]: every setting once; [`manifest`]: which files make up the database
//! - [`iter`], [`compaction`]: merging what the structures hold, and rewriting it
//! - [`db`]: the engine's public face
//! - over the engine, as its users: [`doctor`], what is wrong in words; [`salvage`], a database
//!   from what is left of one; [`ttl`], a handle whose values expire
//!
//! Begin at [`db::Db`]. Who knows RocksDB finds in docs/rocksdb-differences.md which call of it is
//! which one here, and what there is not.
//!
//! ```
//! use flagstone::db::Db;
//! use flagstone::options::Options;
//!
//! # fn main() -> flagstone::base::Result<()> {
//! # let directory = tempfile::tempdir().expect("a temporary directory");
//! let mut options = Options::default();
//! options.create_if_missing = true;
//! let db = Db::open(directory.path().join("db"), &options)?;
//! db.put("stone", "flag")?;
//! assert_eq!(db.get("stone")?.expect("it was put"), "flag");
//! db.close()?;
//! # Ok(())
//! # }
//! ```

pub mod base;
pub mod batch;
pub mod blob;
pub mod cache;
pub mod compaction;
pub mod db;
pub mod doctor;
pub mod env;
pub mod expiry;
pub mod iter;
pub mod manifest;
pub mod memtable;
pub mod options;
pub mod salvage;
pub mod sst;
pub mod ttl;
pub mod wal;

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
