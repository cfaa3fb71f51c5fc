//! Recovery: what the WALs hold goes back into memtables, and from there to level 0.
//!
//! The rules of what to do about damage are `wal::recovery`'s; this file applies batches and writes
//! down the result:
//! 1. WALs from the oldest that any family needs are replayed in order. Older ones that are kept
//!    are looked through for transactions that are prepared (`prepared`). A family skips what its
//!    tables have already, and operations of dropped families; both keep their sequence numbers.
//!    Threads read ahead (`wal::pieces`), check blobs (`direct_blob::recover`) and insert
//!    (`replay_inserts`).
//! 2. Memtables that fill up are written to tables on the way (`replayed`), the others at the end
//!    (or kept, with `avoid_flush_during_recovery`).
//! 3. One change of the MANIFEST adds the tables and lets go of the WALs; a new WAL begins. If the
//!    replay stopped at damage, its first record says where history continues, so that a crash
//!    before the next write loses nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::{
    ColumnFamilyId, Error, FileNumber, Mutant, Result, Sometimes, TableFileCreationReason,
};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::family::direct_blobs::write_again;
use crate::db::family::generation::Generation;
use crate::db::jobs::flush_parts;
use crate::db::opening::blob_checks::BlobChecks;
use crate::db::opening::filtered::FilteredRecords;
use crate::db::opening::prepared::Prepared;
use crate::db::opening::replay_inserts::{Inserts, Targets};
use crate::db::opening::replayed::ProgressMeter;
use crate::db::tree::directories;
use crate::db::tree::state::LiveWal;
use crate::env::{IoMode, RandomAccessFile};
use crate::manifest::VersionEdit;
use crate::options::InfoLogLevel;
use crate::wal::{Reading, RecoveryOutcome, replay};

/// What replaying brought.
pub(in crate::db) struct Recovered {
    outcome: RecoveryOutcome,
    /// The WALs that were replayed, oldest first.
    wals: Vec<LiveWal>,
    /// Tables written on the way.
    edits: BTreeMap<ColumnFamilyId, VersionEdit>,
    prepared: Prepared,
}

impl DbInner {
    pub(in crate::db) fn replay_wals(
        self: &Arc<Self>,
        mut meter: ProgressMeter,
    ) -> Result<Recovered> {
        let (oldest, kept_from) =
            (self.tree.oldest_log_number(), self.tree.min_log_number_to_keep());
        let (files, wals, flushed) = self.wals_to_replay(oldest, kept_from)?;
        let prepared = self.prepared_in(&flushed)?;
        self.take_numbers_of_blob_files()?;
        let mode = self.context.settings.load().wal_recovery_mode;
        let targets = Arc::new(Targets::new(self));
        let checks = Arc::new(BlobChecks::new(self, &targets));
        let piece_size = targets.piece_size(self);
        // Most databases were closed, and leave little or nothing: that is done before a thread has
        // begun.
        let is_long = wals.iter().map(|wal| wal.bytes).sum::<u64>() > piece_size as u64;
        let with_threads = is_long && self.tree.has_workers();
        let reading = Reading {
            piece_size,
            readahead_size: self.context.settings.load().log_readahead_size as usize,
            checks: Some(checks.clone()),
            spawner: with_threads.then(|| self.context.env.spawner.clone()),
            ..Reading::default()
        };
        let mut inserts = Inserts::new(self, targets, with_threads, prepared);
        meter.replays(&wals);
        let mut filtered = FilteredRecords::begin(self);
        let job = self.context.events.next_job();
        self.context.log.recovery_started(job, wals.iter().map(|wal| wal.number.0));
        let outcome = replay(&files, oldest, mode, &reading, &mut |record| {
            meter.replaying(record.wal, record.offset, || {
                (inserts.tables_written(), checks.checked())
            });
            match &mut filtered {
                Some(filtered) => filtered.pass(record, |record| inserts.apply(record)),
                None => inserts.apply(record),
            }
        })?;
        let (edits, count, prepared) = inserts.finish()?;
        meter.replayed(count, checks.checked());
        for stop in &outcome.stops {
            tracing::warn!(wal = %stop.wal, error = %stop.error, expected = stop.is_expected, "recovery stopped");
            let level = if stop.is_expected { InfoLogLevel::Info } else { InfoLogLevel::Warn };
            let text = format!("recovery stopped in WAL {}: {}", stop.wal, stop.error);
            self.context.log.say(level, &text);
        }
        self.check_families_agree(&outcome)?;
        let recorded = self.tree.recorded_sequence();
        let replayed = outcome.next_sequence.filter(|_| !Mutant::ForgetReplayedSequence.is_on());
        let last = replayed.map_or(recorded, |next| recorded.max(next.saturating_sub(1)));
        let replayed = wals.len();
        self.context.log.recovery_finished(job);
        self.context.log.info(|| format!("replayed {replayed} WALs, up to sequence number {last}"));
        self.pipeline.set_last_sequence(last);
        self.tree.record_sequence(last);
        self.check_prepared(&prepared)?;
        // Without sections nobody needs those before the first that was replayed.
        let mut all = if prepared.is_used() { self.live_wals(&flushed)? } else { Vec::new() };
        all.extend(wals);
        Ok(Recovered { outcome, wals: all, edits, prepared })
    }

    /// If history ends at damage, no family may hold, in tables, writes from behind it.
    pub(in crate::db) fn check_families_agree(&self, outcome: &RecoveryOutcome) -> Result<()> {
        let Some(stop) = outcome.stopped.as_ref().filter(|stop| !stop.is_expected) else {
            return Ok(());
        };
        let Some(family) = self.tree.family_ahead_of(stop.wal) else { return Ok(()) };
        let error = Error::corruption(format!(
            "column family '{}' is ahead of WAL {}, which is damaged ({}); restore the WAL from a copy, or open with \
             wal_recovery_mode=kSkipAnyCorruptedRecords to give up what it held",
            family, stop.wal, stop.error
        ))
        .at(file_name::wal(&self.context.wal_directory, stop.wal));
        Err(stop.error.offset().into_iter().fold(error, Error::at_offset))
    }

    /// The numbers of all blob files are taken, too: WALs may name files that the MANIFEST does not
    /// know.
    fn take_numbers_of_blob_files(&self) -> Result<()> {
        for (_, kind) in directories::data_files(&self.tree)? {
            if let FileKind::Blob(number) = kind {
                self.tree.file_numbers.mark_used(number);
            }
        }
        Ok(())
    }

    /// The WALs that any family needs, oldest first, and the numbers of those before, `kept_from`
    /// some number on. Every number seen is taken.
    #[expect(clippy::type_complexity, reason = "lists that belong together, taken apart at once")]
    fn wals_to_replay(
        &self,
        oldest: FileNumber,
        kept_from: FileNumber,
    ) -> Result<(Vec<(FileNumber, Arc<dyn RandomAccessFile>)>, Vec<LiveWal>, Vec<FileNumber>)> {
        let mut numbers = Vec::new();
        for name in self.context.env.fs.list(&self.context.wal_directory)? {
            if let Some(FileKind::Wal(number)) = FileKind::parse(&name) {
                self.tree.file_numbers.mark_used(number);
                if number >= kept_from {
                    numbers.push(number);
                }
            }
        }
        numbers.sort_unstable();
        let (flushed, needed) =
            numbers.split_at(numbers.partition_point(|number| *number < oldest));
        let (mut files, mut wals) = (Vec::new(), Vec::new());
        for &number in needed {
            let file = match self.context.env.fs.open_random_access(
                &file_name::wal(&self.context.wal_directory, number),
                IoMode::Buffered,
            ) {
                // A writer has removed it meanwhile; whether it was needed, `moving` finds out.
                Err(error) if self.context.read_only && error.is_not_found() => continue,
                opened => opened?,
            };
            wals.push(LiveWal { number, bytes: file.size()?, created_here: false });
            files.push((number, file));
        }
        Ok((files, wals, flushed.to_vec()))
    }

    /// WALs that need no replaying, as far as they are still there.
    fn live_wals(&self, numbers: &[FileNumber]) -> Result<Vec<LiveWal>> {
        let mut wals = Vec::new();
        for &number in numbers {
            let path = file_name::wal(&self.context.wal_directory, number);
            match self.context.env.fs.metadata(&path) {
                Ok(found) => {
                    wals.push(LiveWal { number, bytes: found.size, created_here: false });
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wals)
    }

    /// Takes a family's memtable and gives the family an empty one.
    pub(in crate::db) fn take_recovered(
        &self,
        id: ColumnFamilyId,
    ) -> (Arc<Family>, Arc<Generation>) {
        self.tree.replace_memtable(id, |family| self.pipeline.new_memtable(family))
    }

    /// Writes a family's memtable to a table of level 0 and gives the family an empty one.
    fn flush_recovered(
        &self,
        id: ColumnFamilyId,
        edits: &mut BTreeMap<ColumnFamilyId, VersionEdit>,
    ) -> Result<()> {
        let (family, mem) = self.take_recovered(id);
        let output = flush_parts::write_level0(
            &self.jobs,
            &family,
            &[mem],
            (TableFileCreationReason::Recovery, 0),
        )?;
        output.describe(edits.entry(id).or_insert_with(|| VersionEdit::new(id)), 0);
        self.tree.note_key_faults(&family, &output);
        Ok(())
    }

    /// Makes the recovered state durable and opens it for writing.
    pub(in crate::db) fn finish_recovery(&self, mut recovered: Recovered) -> Result<()> {
        let settings = self.context.settings.load();
        // What memtables have in blob files of a dead process must move to others before anything
        // is synced.
        let has_blobs = self.tree.has_blobs_in_memory();
        // What a filter left out, WALs that are kept would bring back.
        let keep_in_memory = settings.avoid_flush_during_recovery
            && settings.wal_filter.is_none()
            && !has_blobs
            && !recovered.prepared.is_used()
            && recovered.edits.is_empty()
            && recovered.outcome.stops.is_empty();
        if keep_in_memory {
            self.sync_kept_wals(&recovered)?;
        } else {
            self.keep_wals_of_prepared(&mut recovered)?;
            let filled = self.tree.filled_families();
            for id in filled {
                self.flush_recovered(id, &mut recovered.edits)?;
            }
        }
        let number = self.tree.file_numbers.allocate();
        let oldest_kept = match (keep_in_memory, recovered.wals.first()) {
            (true, Some(oldest)) if !Mutant::ForgetKeptMemtables.is_on() => oldest.number,
            _ => number,
        };
        let Recovered { edits, wals, outcome, prepared } = recovered;
        let unsettled = self.take_prepared(prepared)?;
        self.pipeline.begin(number, !outcome.stops.is_empty(), || {
            self.tree.begin_writing(edits, wals, number, oldest_kept)
        })?;
        self.settle(unsettled)
    }

    fn sync_kept_wals(&self, recovered: &Recovered) -> Result<()> {
        if recovered.outcome.records > 0 {
            Sometimes::RecoveryKeptMemtables.reached();
        }
        for wal in &recovered.wals {
            self.sync_kept_wal(wal.number, None)?;
        }
        Ok(())
    }

    /// WALs stay while they hold a transaction that is prepared. The next opening does not replay
    /// them, so it cannot tell damage that was accepted here from damage that hides something:
    /// they are cut behind what was replayed, which also gives back what was reserved.
    ///
    /// The newest one comes first. If the machine stops on the way, an older one still ends where
    /// this replay ended, and what stood in newer ones is gone.
    fn keep_wals_of_prepared(&self, recovered: &mut Recovered) -> Result<()> {
        let Some(oldest) = recovered.prepared.oldest_wal() else { return Ok(()) };
        let replayed = &recovered.outcome.wals;
        for wal in recovered.wals.iter_mut().rev().take_while(|wal| wal.number >= oldest) {
            let end = replayed.iter().find(|replayed| replayed.number == wal.number);
            let end = end.map(|replayed| replayed.good_until);
            self.sync_kept_wal(wal.number, end)?;
            wal.bytes = end.unwrap_or(wal.bytes);
        }
        Ok(())
    }

    /// The process that wrote it may have died before it synced: what is synced from now on comes
    /// after. Or it died of a sync that failed: the system then takes for clean what it has of the
    /// file, and no sync writes that to the disk. So what it holds, up to `end` if that is given,
    /// is written once more.
    fn sync_kept_wal(&self, number: FileNumber, end: Option<u64>) -> Result<()> {
        let path = file_name::wal(&self.context.wal_directory, number);
        let file = self.context.env.fs.reopen_writable(&path)?;
        if let Some(end) = end {
            file.truncate(end)?;
        }
        write_again(&*file)?;
        file.sync()
    }

    /// Shows readers what was replayed; nothing is written.
    ///
    /// # Errors
    /// As [`Self::take_prepared`].
    pub(in crate::db) fn finish_read_only(&self, recovered: Recovered) -> Result<()> {
        self.take_prepared(recovered.prepared)?;
        self.tree.show_recovered(recovered.wals);
        Ok(())
    }
}
