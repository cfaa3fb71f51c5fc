//! What is drawn from the seed of a life.

use std::ops::Deref;
use std::path::PathBuf;

use std::time::Duration;

use flagstone::{Builder, Db, Result, TransactionDb, TransactionDbOptions};

use super::lists::{FAMILIES, appending};

/// Few, so that keys meet in one.
const STRIPES: usize = 2;

/// A write outside of transactions gives up soon: it may wait for one that has been forgotten.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// How a database keeps transactions apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By a validation at commit.
    Optimistic,
    /// By locks.
    Pessimistic,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Optimistic, Self::Pessimistic];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Optimistic => "optimistic",
            Self::Pessimistic => "pessimistic",
        }
    }
}

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Another process kills it.
    Killed,
    /// It closes the database.
    Closed,
}

/// A life of one directory.
#[derive(Debug, Clone)]
pub struct Life {
    /// The kind of its databases.
    pub kind: Kind,
    /// What everything random is drawn from.
    pub seed: u64,
    /// Where the database lies, and the notes.
    pub directory: PathBuf,
    /// Threads.
    pub threads: usize,
    /// Transactions of the longest rounds; most have fewer.
    pub transactions_max: u64,
}

/// An open database.
pub(super) enum Opened {
    Optimistic(Db),
    Pessimistic(TransactionDb),
}

impl Deref for Opened {
    type Target = Db;

    fn deref(&self) -> &Db {
        match self {
            Self::Optimistic(db) => db,
            Self::Pessimistic(db) => db,
        }
    }
}

impl Life {
    /// Chance for one purpose in one round.
    pub(super) fn random(&self, round: u64, purpose: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed << 32 ^ round << 16 ^ purpose)
    }

    /// How a round ends.
    pub fn ending(&self, round: u64) -> Ending {
        let is_killed = self.random(round, 1).u8(..4) > 0;
        if is_killed { Ending::Killed } else { Ending::Closed }
    }

    /// How many transactions a round has: as often few as many.
    pub(super) fn transactions(&self, round: u64) -> u64 {
        self.transactions_max >> self.random(round, 2).u32(..6)
    }

    pub(super) fn journal(&self, round: u64, thread: usize) -> PathBuf {
        self.directory.join(format!("round-{round}-thread-{thread}"))
    }

    /// What a round found.
    pub(super) fn found(&self, round: u64) -> PathBuf {
        self.directory.join(format!("round-{round}-found"))
    }

    /// Opens the database with options drawn for the round. Memtables are small, so that keys are
    /// found in tables, too, and lists may lie in blob files.
    pub(super) fn open(&self, round: u64) -> Result<Opened> {
        let mut random = self.random(round, 3);
        let mut builder = Db::builder(self.directory.join("db"));
        builder = builder.options(|options| {
            options.max_background_jobs = random.i32(1..4);
            appending(&mut options.cf);
        });
        for name in FAMILIES {
            builder = builder.column_family(name, |family| {
                family.write_buffer_size = 16 << 10 << random.u32(..4);
                family.level0_file_num_compaction_trigger = random.i32(2..5);
                family.enable_blob_files = Some(random.bool());
                family.min_blob_size = Some(1 << random.u32(5..8));
                family.max_successive_merges = if random.bool() { 0 } else { 3 };
                appending(family);
            });
        }
        self.kind.open(builder)
    }
}

impl Kind {
    fn open(self, builder: Builder) -> Result<Opened> {
        match self {
            Self::Optimistic => builder.open().map(Opened::Optimistic),
            Self::Pessimistic => {
                let options = TransactionDbOptions {
                    num_stripes: STRIPES,
                    default_lock_timeout: LOCK_TIMEOUT,
                    ..TransactionDbOptions::default()
                };
                builder.open_transaction_db(&options).map(Opened::Pessimistic)
            }
        }
    }
}
