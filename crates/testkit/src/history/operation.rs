//! What may happen in the life of a database, as data.

use flagstone::options::{CompactFilesOptions, CompactRangeOptions, FlushOptions};

use crate::model::Edit;
use crate::settings::Setting;

/// How safe a write is meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// In the WAL: it survives the process.
    Logged,
    /// Synced: it survives a power loss.
    Synced,
    /// Not in the WAL: it survives a clean close, or after a flush.
    Unlogged,
    /// As tables that are ingested: it survives a power loss. Only whole batches; what cannot be
    /// ingested is logged.
    Ingested,
}

/// How an iterator moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// To the first key.
    First,
    /// To the last key.
    Last,
    /// To the key, or the next.
    Seek(Vec<u8>),
    /// To the key, or the one before.
    Back(Vec<u8>),
    /// On by one; to the first from nowhere.
    Next,
    /// Back by one; to the last from nowhere.
    Prev,
}

/// What a loss of power leaves of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Everything: only the process dies.
    Kept,
    /// Nothing.
    Lost,
    /// Each page and each name as chance says, from this seed.
    Random(u64),
}

/// A step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionStep {
    /// Reads a key.
    Get {
        /// Where.
        family: String,
        /// Which.
        key: Vec<u8>,
    },
    /// Reads a key for update.
    Track {
        /// Where.
        family: String,
        /// Which.
        key: Vec<u8>,
    },
    /// Changes a key of a family.
    Change(String, Edit),
    /// Sets a save point.
    SavePoint,
    /// Takes back what was done since the last save point, if there is one.
    RollBack,
}

/// One operation. Indexes are taken modulo what there is; families that do not exist are passed
/// over.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// A batch.
    Write {
        /// How safe.
        durability: Durability,
        /// What, in which families.
        edits: Vec<(String, Edit)>,
    },
    /// Sets a key to a value that is written piece by piece.
    PutStream {
        /// How safe.
        durability: Durability,
        /// Where.
        family: String,
        /// Which.
        key: Vec<u8>,
        /// Bytes up to which it is gathered in memory.
        buffer: usize,
        /// What the value consists of.
        pieces: Vec<Vec<u8>>,
    },
    /// Looks keys up, each alone and all together.
    Get {
        /// Where.
        family: String,
        /// In which snapshot.
        snapshot: Option<usize>,
        /// Reads no file; what is not in memory may be refused.
        only_cached: bool,
        /// Which.
        keys: Vec<Vec<u8>>,
    },
    /// Scans the keys with the prefix of a key from that key on, where the family has prefixes.
    PrefixScan {
        /// Where.
        family: String,
        /// In which snapshot.
        snapshot: Option<usize>,
        /// From where.
        key: Vec<u8>,
    },
    /// Takes a snapshot.
    TakeSnapshot,
    /// Drops one.
    DropSnapshot(usize),
    /// Opens an iterator.
    OpenIterator {
        /// Where.
        family: String,
        /// In which snapshot.
        snapshot: Option<usize>,
        /// Not before this key.
        lower: Option<Vec<u8>>,
        /// Before this key.
        upper: Option<Vec<u8>>,
    },
    /// Moves an iterator.
    MoveIterator {
        /// Which.
        index: usize,
        /// How.
        moves: Vec<Move>,
    },
    /// Drops an iterator.
    DropIterator(usize),
    /// Has an iterator show the database as it is now.
    RefreshIterator(usize),
    /// Opens a cursor for a task that must not wait.
    OpenScan {
        /// Where.
        family: String,
        /// In which snapshot.
        snapshot: Option<usize>,
        /// Not before this key.
        lower: Option<Vec<u8>>,
        /// Before this key.
        upper: Option<Vec<u8>>,
    },
    /// Reads on with such a cursor.
    NextBatch {
        /// Which.
        index: usize,
        /// From this key on, if not from where it is.
        from: Option<Vec<u8>>,
        /// At most so many entries.
        max_entries: usize,
    },
    /// Flushes a family.
    Flush {
        /// Which.
        family: String,
        /// How.
        options: FlushOptions,
    },
    /// Flushes all families.
    FlushAll,
    /// Compacts a range.
    CompactRange {
        /// Where.
        family: String,
        /// From this key on.
        begin: Option<Vec<u8>>,
        /// Up to this key.
        end: Option<Vec<u8>>,
        /// How.
        options: CompactRangeOptions,
    },
    /// Compacts chosen tables of a family.
    CompactFiles {
        /// Where.
        family: String,
        /// The level that they go to, by the number of levels.
        level: usize,
        /// Which, each counted from the first in the order of levels and keys, and by the number of
        /// tables.
        tables: Vec<usize>,
        /// How.
        options: CompactFilesOptions,
    },
    /// Asks for a range to be compacted soon.
    SuggestCompaction {
        /// Where.
        family: String,
        /// From this key on.
        begin: Option<Vec<u8>>,
        /// Up to this key.
        end: Option<Vec<u8>>,
    },
    /// Removes the tables within a range, and deletes the range then.
    DeleteFiles {
        /// Where.
        family: String,
        /// From this key on.
        begin: Vec<u8>,
        /// Up to this key.
        end: Vec<u8>,
        /// Whether that belongs to the range.
        include_end: bool,
    },
    /// Changes options of a running family, or of the running database if none is named.
    SetOptions {
        /// Whose.
        family: Option<String>,
        /// Names and values.
        changes: Vec<(String, String)>,
    },
    /// Creates families, those together that do not exist.
    CreateFamilies(Vec<String>),
    /// Drops a family.
    DropFamily(String),
    /// Makes a checkpoint, opens and compares it.
    Checkpoint,
    /// Closes and opens again, from now on with these settings, too.
    Reopen(Vec<Setting>),
    /// Opens the files for reading, beside the open database, and compares.
    ReadOnly,
    /// Does so many steps of background work, where there are no threads to do it.
    Background(usize),
    /// Waits until there is nothing left to flush or compact.
    Idle,
    /// Lets so many seconds pass.
    Pass(u64),
    /// Syncs the WAL.
    SyncWal,
    /// Brings what waits in memory into the WAL's file.
    FlushWal,
    /// The power fails so many changes of the disk ago, and the database is opened again.
    Crash {
        /// What becomes of what was not synced.
        power: Power,
        /// How many changes ago.
        back: usize,
    },
    /// Compares everything and verifies the files.
    Check,
    /// Begins a transaction.
    Begin {
        /// It reads what there is now, also later.
        in_snapshot: bool,
    },
    /// Goes on with a transaction.
    GoOn {
        /// Which.
        index: usize,
        /// What it does.
        steps: Vec<TransactionStep>,
    },
    /// Commits a transaction.
    Commit {
        /// Which.
        index: usize,
        /// How safe.
        durability: Durability,
    },
    /// Drops a transaction.
    Abandon(usize),
    /// Prepares a transaction.
    Prepare {
        /// How safe.
        durability: Durability,
        /// What it will write, in which families.
        edits: Vec<(String, Edit)>,
    },
    /// Decides a transaction that is prepared.
    Decide {
        /// Which.
        index: usize,
        /// It is committed, and otherwise rolled back.
        commits: bool,
        /// How safe.
        durability: Durability,
    },
}

impl Operation {
    /// Its first word as text.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Write { .. } => "write",
            Self::PutStream { .. } => "put-stream",
            Self::Get { .. } => "get",
            Self::PrefixScan { .. } => "prefix-scan",
            Self::TakeSnapshot => "take-snapshot",
            Self::DropSnapshot(_) => "drop-snapshot",
            Self::OpenIterator { .. } => "open-iterator",
            Self::MoveIterator { .. } => "move-iterator",
            Self::DropIterator(_) => "drop-iterator",
            Self::RefreshIterator(_) => "refresh-iterator",
            Self::OpenScan { .. } => "open-scan",
            Self::NextBatch { .. } => "next-batch",
            Self::Flush { .. } => "flush",
            Self::FlushAll => "flush-all",
            Self::CompactRange { .. } => "compact-range",
            Self::CompactFiles { .. } => "compact-files",
            Self::SuggestCompaction { .. } => "suggest-compaction",
            Self::DeleteFiles { .. } => "delete-files",
            Self::SetOptions { .. } => "set-options",
            Self::CreateFamilies(_) => "create-families",
            Self::DropFamily(_) => "drop-family",
            Self::Checkpoint => "checkpoint",
            Self::Reopen(_) => "reopen",
            Self::ReadOnly => "read-only",
            Self::Background(_) => "background",
            Self::Idle => "idle",
            Self::Pass(_) => "pass",
            Self::SyncWal => "sync-wal",
            Self::FlushWal => "flush-wal",
            Self::Crash { .. } => "crash",
            Self::Check => "check",
            Self::Begin { .. } => "begin",
            Self::GoOn { .. } => "go-on",
            Self::Commit { .. } => "commit",
            Self::Abandon(_) => "abandon",
            Self::Prepare { .. } => "prepare",
            Self::Decide { .. } => "decide",
        }
    }
}
