//! An engine that leads a turn, and what it is asked to read.

use std::path::{Path, PathBuf};

use super::choices::Settings;
use super::model::{Edit, Pair};
use crate::engine::Result;

/// Which engine leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Who {
    Flagstone,
    #[value(name = "rocksdb")]
    RocksDb,
}

impl Who {
    pub fn other(self) -> Self {
        match self {
            Self::Flagstone => Self::RocksDb,
            Self::RocksDb => Self::Flagstone,
        }
    }
}

/// Where one database lies.
#[derive(Debug, Clone)]
pub struct Place {
    pub directory: PathBuf,
    /// Directories and sizes for `db_paths`; none if all tables lie in the database's own.
    pub paths: Vec<(PathBuf, u64)>,
}

impl Place {
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), paths: Vec::new() }
    }
}

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    pub database: Settings,
    /// Of each family.
    pub families: Vec<(String, Settings)>,
    /// The settings come from the OPTIONS file of the previous open. Of `database` and `families`
    /// only the names count.
    pub from_file: bool,
    /// All that this turn writes must be there for the other engine without a clean close.
    pub for_a_crash: bool,
    pub access: Access,
    /// Values carry the time of their writing, and live so many seconds, 0 for ever.
    pub ttl: Option<u32>,
}

/// What an engine may do with a database, and what with others that have it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Lead,
    Read,
    /// As a secondary instance, which stays open beside the one that leads.
    Follow,
}

/// How a batch is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    pub sync: bool,
    pub unlogged: bool,
    /// RocksDB writes it as a transaction's commit would.
    pub committed: bool,
    /// Flagstone writes the value piece by piece, to a blob file of its own. It is one put.
    pub streamed: bool,
}

/// How a range is compacted.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// The last level is rewritten, too.
    pub to_the_bottom: bool,
    /// The level that the result moves to, if that can be; -1 for the first that should hold as
    /// much.
    pub then_to: Option<i32>,
}

/// Where a cursor is sent first.
#[derive(Debug, Clone)]
pub enum Start {
    First,
    Last,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
}

/// What a cursor does. It ends where it is not valid any longer.
#[derive(Debug, Clone)]
pub struct Walk {
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
    pub start: Start,
    /// The steps, true for one forward.
    pub moves: Vec<bool>,
    /// Stays within the prefix of the key that it was sent to.
    pub in_prefix: bool,
}

/// A table as the MANIFEST has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    pub family: String,
    pub level: usize,
    pub number: u64,
    pub size: u64,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
}

/// What can be read: the database as it is, or as it was.
pub trait View {
    fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn multi_get(&self, family: &str, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>>;
    /// The entries at which the cursor came by.
    fn walk(&self, family: &str, walk: &Walk) -> Result<Vec<Pair>>;
}

/// An open database.
pub trait Party: View {
    fn families(&self) -> Result<Vec<String>>;
    fn write(&self, batch: &[(String, Edit)], how: How) -> Result<()>;
    /// Flushes a family, or all.
    fn flush(&self, family: Option<&str>) -> Result<()>;
    fn flush_wal(&self) -> Result<()>;
    /// Waits until nothing goes on in the background.
    fn settle(&self) -> Result<()>;
    fn compact(&self, family: &str, range: [Option<&[u8]>; 2], depth: Depth) -> Result<()>;
    /// Compacts some tables, chosen by lot, to a level of theirs or a deeper one; whether the
    /// engine can, and there were any.
    fn compact_files(&self, family: &str, seed: u64) -> Result<bool>;
    /// Removes the tables that lie between these keys.
    fn delete_files(&self, family: &str, begin: &[u8], end: &[u8]) -> Result<()>;
    fn create_family(&self, name: &str, settings: &Settings) -> Result<()>;
    fn drop_family(&self, name: &str) -> Result<()>;
    /// Changes options while the family is open.
    fn set_options(&self, family: &str, settings: &Settings) -> Result<()>;
    /// Takes in tables that are written with these settings, of each list of edits one, the later
    /// the newer.
    fn ingest(
        &self,
        family: &str,
        tables: &[Vec<Edit>],
        settings: &Settings,
        scratch: &Path,
    ) -> Result<()>;
    /// Makes a checkpoint, with memtables `flushed` before, or the log copied if the engine can.
    fn checkpoint(&self, flushed: bool, directory: &Path) -> Result<()>;
    /// Makes a backup, with memtables `flushed` before or not.
    fn back_up(&self, flushed: bool, backup: &Path) -> Result<()>;
    /// Goes on to what the one that leads has written by now; only with [`Access::Follow`].
    fn catch_up(&mut self) -> Result<()>;
    fn snapshot(&self) -> Box<dyn View + '_>;
    /// All that was written, as the logs have it that are still there: what it is and where, and
    /// the value.
    fn logged(&self) -> Result<Vec<Pair>>;
    fn last_sequence(&self) -> u64;
    fn tables(&self) -> Result<Vec<Table>>;
    /// Reads every byte and checks it, as far as the engine can.
    fn verify(&self) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}
