//! WALs that nobody needs for recovery, kept for those who read along: replicas, an audit, an
//! incremental backup.
//!
//! With `WAL_ttl_seconds` or `WAL_size_limit_MB` set, an obsolete WAL moves to `archive` in the
//! WALs' directory. What is too old, or too much, is removed when the next one comes, and at open.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::base::file_name::{self, FileKind};
use crate::base::{FileNumber, Result, Sometimes};
use crate::db::disk::Disk;

/// The archived WALs, oldest first. Behind the state lock.
#[derive(Default)]
pub(in crate::db) struct Archive {
    wals: VecDeque<ArchivedWal>,
    /// Obsolete ones that could not be moved, with their sizes; the next one takes them along, or
    /// the next open.
    waiting: VecDeque<(FileNumber, u64)>,
}

struct ArchivedWal {
    number: FileNumber,
    size: u64,
    /// When it was archived or, if that was before the database was opened, last written to; in
    /// seconds since 1970.
    since: u64,
}

/// How long and how much is kept; 0 is no limit.
#[derive(Clone, Copy)]
pub(in crate::db) struct Limits {
    pub(in crate::db) seconds: u64,
    pub(in crate::db) bytes: u64,
}

impl Archive {
    /// The numbers and sizes of those that are archived, and of those that wait for it.
    pub(in crate::db) fn contents(&self) -> [Vec<(FileNumber, u64)>; 2] {
        let archived = self.wals.iter().map(|wal| (wal.number, wal.size));
        [archived.collect(), self.waiting.iter().copied().collect()]
    }

    /// The oldest first: after a power loss one may have come behind those that were moved after
    /// it.
    pub(in crate::db) fn sort(&mut self) {
        self.wals.make_contiguous().sort_unstable_by_key(|wal| wal.number);
    }

    /// How many, from the oldest on, are to be removed at `now`: what is too old, then the oldest
    /// while all are too much.
    fn expired(&self, limits: Limits, now: u64) -> usize {
        let mut total: u64 = self.wals.iter().map(|wal| wal.size).sum();
        let is_expired = |wal: &&ArchivedWal| {
            let too_old = limits.seconds > 0 && now.saturating_sub(wal.since) > limits.seconds;
            let too_much = limits.bytes > 0 && total > limits.bytes;
            total -= wal.size;
            too_old || too_much
        };
        self.wals.iter().take_while(is_expired).count()
    }
}

impl Disk {
    /// Finds what earlier lives of the database archived. WALs may lie there although nothing is
    /// archived any longer.
    pub(in crate::db) fn load_archive(&self) -> Result<Archive> {
        let directory = self.archive_directory();
        let names = match self.context.env.fs.list(&directory) {
            Err(error) if error.is_not_found() => Vec::new(),
            names => names?,
        };
        let mut wals = Vec::new();
        for name in names {
            if let Some(FileKind::Wal(number)) = FileKind::parse(&name) {
                let metadata = self.context.env.fs.metadata(&directory.join(&name))?;
                let since =
                    metadata.modified.unwrap_or_else(|| self.context.env.clock.unix_seconds());
                wals.push(ArchivedWal { number, size: metadata.size, since });
            }
        }
        wals.sort_by_key(|wal| wal.number);
        Ok(Archive { wals: wals.into(), waiting: VecDeque::new() })
    }

    /// Removes an obsolete WAL of this many bytes, or moves it to the archive, after those that
    /// could not be moved before.
    pub(in crate::db) fn retire_wal(
        &self,
        archive: &mut Archive,
        number: FileNumber,
        size: u64,
    ) -> Result<()> {
        let Some(limits) = self.archive_limits() else {
            return self.remove(&file_name::wal(&self.context.wal_directory, number));
        };
        archive.waiting.push_back((number, size));
        let now = self.context.env.clock.unix_seconds();
        let mut outcome = Ok(());
        // One that cannot be moved holds up no others.
        for (number, size) in std::mem::take(&mut archive.waiting) {
            match self.move_to_archive(archive, number) {
                Ok(true) => archive.wals.push_back(ArchivedWal { number, size, since: now }),
                Ok(false) => {}
                Err(error) => {
                    archive.waiting.push_back((number, size));
                    outcome = outcome.and(Err(error));
                }
            }
        }
        archive.sort();
        outcome.and(self.shorten_archive(archive, limits, now))
    }

    /// `false` if somebody has removed the WAL.
    fn move_to_archive(&self, archive: &Archive, number: FileNumber) -> Result<bool> {
        let fs = &*self.context.env.fs;
        if archive.wals.is_empty() {
            // No more durable than the moves: recovery needs none of them.
            fs.create_directory(&self.archive_directory())?;
        }
        let (source, target) =
            (file_name::wal(&self.context.wal_directory, number), self.archived(number));
        match fs.rename(&source, &target) {
            Err(error) if !error.is_not_found() => return Err(error),
            // It was moved, though that was said to have failed.
            Err(_) if fs.metadata(&target).is_ok() => {}
            Err(_) if fs.metadata(&source).is_err_and(|error| error.is_not_found()) => {
                return Ok(false);
            }
            Err(_) => {
                // Whoever wanted the space has removed the directory, too.
                fs.create_directory(&self.archive_directory())?;
                fs.rename(&source, &target)?;
            }
            Ok(()) => {}
        }
        Sometimes::WalArchived.reached();
        Ok(true)
    }

    /// At open, by the options that count now.
    pub(in crate::db) fn tidy_archive(&self, archive: &mut Archive) -> Result<()> {
        let Some(limits) = self.archive_limits() else { return Ok(()) };
        self.shorten_archive(archive, limits, self.context.env.clock.unix_seconds())
    }

    fn shorten_archive(&self, archive: &mut Archive, limits: Limits, now: u64) -> Result<()> {
        for _ in 0..archive.expired(limits, now) {
            // What cannot be removed is listed still, and tried again.
            let Some(oldest) = archive.wals.front() else { break };
            self.remove(&self.archived(oldest.number))?;
            Sometimes::ArchivedWalRemoved.reached();
            archive.wals.pop_front();
        }
        Ok(())
    }

    fn archive_limits(&self) -> Option<Limits> {
        let settings = self.context.settings.load();
        let limits =
            Limits { seconds: settings.WAL_ttl_seconds, bytes: settings.WAL_size_limit_MB << 20 };
        settings.archives_wals().then_some(limits)
    }

    pub(in crate::db) fn archived(&self, number: FileNumber) -> PathBuf {
        file_name::wal(&self.archive_directory(), number)
    }

    fn archive_directory(&self) -> PathBuf {
        file_name::archive(&self.context.wal_directory)
    }
}

#[cfg(test)]
mod tests;
