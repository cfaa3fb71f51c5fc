//! Options, under the names of the rocksdb crate. Each setter sets one of the engine's options.
//!
//! - `database`, `wal`: setters of the database; `family`, `compaction`, `compression`, `tables`,
//!   `components`: setters of a column family; `presets`: several at once
//! - `calls`: options of single calls; `choices`: named values
//! - `defaults`: RocksDB's, also of options that only the engine has
//! - `without_effect`: options that change nothing here
//! - `by_name`: options as texts, and OPTIONS files
//! - `opening`: what an opening is given, and what follows it
//! - `info_log`: loggers of the program
//! - `write_buffer_manager`: one limit for the memtables of several databases

mod by_name;
mod calls;
mod choices;
mod compaction;
mod components;
mod compression;
mod database;
mod defaults;
mod family;
mod info_log;
mod opening;
mod presets;
mod sst_file_manager;
mod tables;
#[cfg(test)]
mod tests;
mod wal;
mod without_effect;
mod write_buffer_manager;

use std::sync::Arc;

use flagstone::options as engine;

use crate::cache::Cache;
use crate::env::Env;
use crate::error::Error;
use crate::statistics::Statistics;

pub use calls::{
    CompactOptions, FlushOptions, IngestExternalFileOptions, ReadOptions, WaitForCompactOptions,
    WriteOptions,
};
pub use choices::{
    BlockBasedIndexType, BlockBasedTablePinningTier, BottommostLevelCompaction, ChecksumType,
    CompactionPri, DBCompactionStyle, DBCompressionType, DBRecoveryMode, DataBlockIndexType,
    LogLevel, MemtableFactory, ReadTier, UniversalCompactionStopStyle,
};
pub use compaction::{FifoCompactOptions, UniversalCompactOptions};
pub use database::DBPath;
pub use info_log::InfoLogger;
pub(crate) use opening::{Opened, Opening};
pub use sst_file_manager::SstFileManager;
pub use tables::BlockBasedOptions;
#[doc(hidden)]
pub use tables::{bits_in_range, bloom};
pub use without_effect::has_no_effect;
pub use write_buffer_manager::WriteBufferManager;

/// Options of a database and of a column family.
///
/// Defaults are those of RocksDB 11.8, so that RocksDB opens what is written, also after a crash. A
/// number that lies outside the engine's range is taken for the nearest one in it. A clone shares
/// caches, statistics, the environment and the rate limiter with the original.
#[derive(Clone)]
pub struct Options {
    /// The engine's options; `db.cf` has those of the column family.
    #[doc(hidden)]
    pub db: engine::Options,
    #[doc(hidden)]
    pub block_cache: Option<Cache>,
    blob_cache: Option<Cache>,
    env: Option<Env>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    sst_file_manager: Option<SstFileManager>,
    write_buffer_manager: Option<WriteBufferManager>,
    logger: InfoLogger,
    /// Names of options that cannot be had, and why, for the opening to say.
    refused: Vec<(&'static str, Error)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            db: defaults::options(),
            block_cache: None,
            blob_cache: None,
            env: None,
            statistics: None,
            sst_file_manager: None,
            write_buffer_manager: None,
            logger: InfoLogger::default(),
            refused: Vec::new(),
        }
    }
}

impl Options {
    /// Notes why an option cannot be had: the opening will fail. `None` for one that can.
    #[doc(hidden)]
    pub fn refuse(&mut self, name: &'static str, why: Option<Error>) {
        self.refused.retain(|(refused, _)| *refused != name);
        self.refused.extend(why.map(|why| (name, why)));
    }
}
