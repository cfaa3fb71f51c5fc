//! What every part of a database is handed: where it is, how the world is reached, what its options
//! say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::sync::{ArcSwap, AtomicBool, Ordering};
use crate::base::unique_id::session_identity;
use crate::base::{Code, Error, FileChecksum, FileChecksums, Result};
use crate::db::events::Events;
use crate::db::info_log::InfoLogger;
use crate::db::poison::Poison;
use crate::db::statistics::Statistics;
use crate::db::stats_history::StatsHistory;
use crate::env::{Env, IoMode, Names, Process, read_for_checksum};
use crate::manifest::VersionSet;
use crate::options::{EventListener, Options};

/// For table properties.
pub(super) struct Identity {
    pub(super) database: String,
    /// Of this opening.
    pub(super) session: String,
}

/// One for each open database, shared by its parts.
pub(super) struct Context {
    pub(super) path: PathBuf,
    pub(super) wal_directory: PathBuf,
    pub(super) env: Env,
    pub(super) names: Arc<Names>,
    pub(super) read_only: bool,
    pub(super) opened_at_us: u64,
    pub(super) settings: ArcSwap<Options>,
    pub(super) identity: Identity,
    pub(super) events: Arc<Events>,
    pub(super) log: Arc<InfoLogger>,
    pub(super) statistics: Arc<Statistics>,
    /// What these have grown by.
    pub(super) history: StatsHistory,
    /// What ended writing, if anything did.
    pub(super) poison: Poison,
    /// Somebody closes the database.
    pub(super) closing: AtomicBool,
    /// The process that opened the database.
    pub(super) process: Process,
}

impl Context {
    pub(super) fn new(
        path: &Path,
        options: Options,
        read_only: bool,
        versions: &VersionSet,
        statistics: &Arc<Statistics>,
    ) -> Self {
        let env = options.env.clone();
        let wal_directory = match options.wal_dir.as_str() {
            "" => path.to_path_buf(),
            directory => PathBuf::from(directory),
        };
        let opened_at_us = env.clock.now_us();
        let log = Arc::new(InfoLogger::new(path, &options, read_only));
        let told = (!log.is_off()).then(|| log.clone() as Arc<dyn EventListener>);
        let events = Arc::new(Events::new(options.listeners.clone(), told));
        Self {
            path: path.to_path_buf(),
            wal_directory,
            read_only,
            opened_at_us,
            history: StatsHistory::new(opened_at_us),
            identity: Identity {
                database: versions.db_id().to_string(),
                session: session_identity(env.random.next_u64(), env.random.next_u64()),
            },
            env,
            names: versions.names().clone(),
            poison: Poison::new(events.clone()),
            events,
            log,
            statistics: statistics.clone(),
            closing: AtomicBool::new(false),
            process: Process::this(),
            settings: ArcSwap::from_pointee(options),
        }
    }

    /// WALs that are kept for reuse, where the file system lets them be written over.
    pub(in crate::db) fn recycled_wals(&self) -> usize {
        if self.env.fs.may_write_over() { self.settings.load().recycled_wals() } else { 0 }
    }

    /// The functions for checksums of whole files.
    pub(in crate::db) fn checksums(&self) -> FileChecksums {
        self.settings.load().file_checksums()
    }

    /// The checksum of a new file, if these get one; reads the file.
    ///
    /// # Errors
    /// `Corruption` if the file is shorter than `size`; `IoError`.
    pub(in crate::db) fn checksum_of_new_file(
        &self,
        path: &Path,
        size: u64,
    ) -> Result<Option<FileChecksum>> {
        let Some(running) = self.checksums().for_new_file()? else { return Ok(None) };
        let file = self.env.fs.open_random_access(path, IoMode::Buffered)?;
        read_for_checksum(&*file, size, running).map(Some)
    }

    /// Compares a file with its checksum.
    ///
    /// # Errors
    /// `Corruption`; `InvalidArgument` if the function is not known; `IoError`.
    pub(in crate::db) fn check_checksum(&self, path: &Path, expected: &FileChecksum) -> Result<()> {
        let running = self.checksums().of_function(&expected.function)?;
        let file = self.env.fs.open_random_access(path, IoMode::Buffered)?;
        let found = read_for_checksum(&*file, file.size()?, running)?;
        expected.check(&found).map_err(|error| error.at(path))
    }

    /// Ends a period of the history of counters if it is over, and writes them to the log if due.
    pub(in crate::db) fn note_history(&self) {
        let (settings, clock) = (self.settings.load(), &*self.env.clock);
        self.history.note(&settings, clock, &self.statistics);
        self.log.dump_counters(settings.stats_dump_period_sec, clock, &self.statistics);
    }

    /// # Errors
    /// `NotSupported` in a forked child or for a read-only database, `ShutdownInProgress` after
    /// close, or what poisoned it.
    pub(in crate::db) fn check_writable(&self) -> Result<()> {
        self.process.check()?;
        if self.read_only {
            return Err(Error::not_supported(
                "the database is open read-only; open it for writing",
            ));
        }
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::new(Code::ShutdownInProgress, "the database is closed"));
        }
        self.poison.check()
    }

    /// # Errors
    /// `ShutdownInProgress`, once somebody closes the database; `NotSupported` in a forked child.
    pub(in crate::db) fn check_open(&self) -> Result<()> {
        self.process.check()?;
        if self.closing.load(Ordering::Acquire) {
            Err(Error::new(Code::ShutdownInProgress, "the database is closing"))
        } else {
            Ok(())
        }
    }

    /// As [`DbInner::check_writable`], also while a full disk refuses writes: what was written
    /// before has its space.
    pub(in crate::db) fn check_syncable(&self) -> Result<()> {
        match self.check_writable() {
            Err(error) if error.waits_for_space() => self.poison.check_fatal(),
            outcome => outcome,
        }
    }
}
