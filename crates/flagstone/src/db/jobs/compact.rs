//! Compaction: the picker says which files, this file moves or rewrites them and installs the
//! result.
//!
//! 1. Under the state lock: for each family ask the picker for a plan; mark its inputs.
//! 2. A plan whose files may move as they are is one version edit. One whose files go reads them at
//!    most (`dropping`). Any other is a job (`output`), run without the lock.
//! 3. Under the lock again: one version edit removes the inputs and adds the outputs; readers get
//!    the new version; the inputs are removed from the disk when the last reader that has them is
//!    gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{
    CompactionFilterContext, Error, FileNumber, Result, SequenceNumber, Sometimes, SubCode,
    TableFileCreationReason, TruncatedRangeTombstones,
};
use crate::blob::{BlobGcSettings, gc_candidates};
use crate::compaction::History;
use crate::compaction::pick::{self, CompactionPlan, CompactionReason};
use crate::db::family::Family;
use crate::db::jobs::job::{
    Inherited, JobPace, JobSpec, KeptTimes, OutputPlace, Target, ToldJob, history_of,
};
use crate::db::jobs::part::{self, PartRange, epochs};
use crate::db::jobs::{Jobs, dropping, output, remote, room, tracking, write_times};
use crate::db::statistics::Ticker;
use crate::db::tree::compaction_job::{CompactionJob, Installation};
use crate::db::tree::output::JobOutput;
use crate::db::tree::{damage, told};
use crate::db::writing::direct_blob::DirectInputs;
use crate::env::{ReservedSpace, ThreadStage, enter_stage};
use crate::options::CompactionStyle;

impl Jobs {
    /// Does one compaction if any family wants one; whether one did.
    pub(in crate::db) fn compact_one(&self) -> Result<bool> {
        let free = room::free_space(self);
        let Some(job) = self.tree.take_compaction(&free) else {
            return Ok(false);
        };
        let (family, takes_turn) = (job.family.id, job.plan.takes_turn);
        let kept = self.reserve_or_let_go(&job).inspect_err(|_| {
            if takes_turn {
                self.tree.end_turn(family, false);
            }
        })?;
        let outcome = self.run_in_room(&job, kept);
        // Nobody else picks these inputs, and the next plan is another one.
        let is_given_up = outcome.as_ref().is_err_and(|error| self.is_given_up(&job, error));
        let is_put_off = outcome.is_err() && job.remote.is_put_off.load(Ordering::Relaxed);
        // Who waits for compactions to end removes their inputs then: the job must not hold them
        // any longer.
        drop(job);
        self.tree.end_compaction();
        if outcome.is_ok() && (takes_turn || self.tree.goes_on_in_pieces(family)) {
            // The next takes the room that this one frees: also where another thread is about to
            // remove its inputs.
            self.purge_all_obsolete_files();
        }
        if takes_turn {
            // What failed is tried again in a while.
            self.tree.end_turn(family, outcome.is_ok() || is_given_up);
        }
        match outcome {
            // As if there were nothing to do, so that no thread tries again at once.
            Err(_) if is_put_off => Ok(false),
            Err(_) if is_given_up => Ok(true),
            outcome => outcome.map(|_| true),
        }
    }

    /// Whether a compaction that failed so harms nothing: it is left, or its inputs are.
    pub(in crate::db) fn is_given_up(&self, job: &CompactionJob, error: &Error) -> bool {
        // What was set aside for the sake of snapshots, another thread may have taken back since.
        let waits_for_snapshots = job.is_outnumbered.load(Ordering::Relaxed);
        waits_for_snapshots
            || job.is_in_vain.load(Ordering::Relaxed)
            || error.subcode() == SubCode::CompactionAborted
            || damage::is_set_aside(&self.tree, error)
    }

    /// Runs a plan whose inputs are marked, and unmarks them; which tables it wrote. A comparator
    /// of the application may panic also where these become part of the tree: the inputs stay
    /// marked then, and the database is poisoned, so that nobody waits for them. The compaction
    /// itself has ended all the same, for which closing waits.
    pub(in crate::db) fn run_compaction(&self, job: &CompactionJob) -> Result<Vec<FileNumber>> {
        let kept = self.reserve_or_let_go(job)?;
        let outcome = self.run_in_room(job, kept);
        self.tree.end_compaction();
        outcome
    }

    /// Keeps room for what a plan writes whose inputs are marked. Where there is none they are
    /// unmarked, and nobody is told of a compaction.
    fn reserve_or_let_go(&self, job: &CompactionJob) -> Result<Option<ReservedSpace>> {
        if !job.plan.rewrites() {
            return Ok(None);
        }
        let bytes = job.plan.files().map(|(_, file)| file.meta.size);
        let reserved = self.disk.reserve_room(bytes.fold(0, u64::saturating_add));
        reserved.inspect_err(|_| self.tree.let_go(job))
    }

    /// [`Self::run_and_install`]; the room is kept until the outputs are counted.
    fn run_in_room(
        &self,
        job: &CompactionJob,
        _kept: Option<ReservedSpace>,
    ) -> Result<Vec<FileNumber>> {
        self.guarded("compaction", || self.run_and_install(job))
    }

    fn run_and_install(&self, job: &CompactionJob) -> Result<Vec<FileNumber>> {
        note_kind(&job.plan);
        told::note_begun(&self.tree, job, |file| {
            // The info log needs none: no table is opened for it alone.
            if !self.context.events.has_program_listeners() && !job.is_reported {
                return None;
            }
            match self.tables.open(&job.family, file) {
                Ok(table) => Some(Arc::new(table.properties().clone())),
                Err(_) => {
                    // What is wrong with it the compaction will say.
                    self.context.statistics.add(Ticker::TablesNotOpened, 1);
                    None
                }
            }
        });
        self.context.events.tell();
        let _doing = tracking::begin_compaction(self, job, ThreadStage::CompactionPrepare);
        self.follow(job);
        let outcome = if job.plan.trivial_move {
            Ok(JobOutput::default())
        } else if job.plan.drops_inputs {
            self.guarded("compaction", || dropping::drop_inputs(self, job))
        } else {
            // A filter or merge operator of the application may panic: the inputs must be let go
            // all the same.
            self.guarded("compaction", || remote::rewrite(self, job))
        };
        if let Some(control) = &job.control {
            control.end_piece(outcome.is_ok());
        }
        match self.install(job, outcome) {
            Ok(outcome) => outcome,
            Err(refused) => {
                remote::note_refused(self, job, &refused);
                let outcome = self.guarded("compaction", || self.rewrite(job));
                // No worker has written this.
                self.install(job, outcome).unwrap_or_else(Err)
            }
        }
    }

    /// Makes an output part of the tree; which tables it has.
    ///
    /// # Errors
    /// Why the output of a worker is refused. The inputs are still marked then.
    fn install(
        &self,
        job: &CompactionJob,
        output: Result<JobOutput>,
    ) -> Result<Result<Vec<FileNumber>>> {
        let to_open = output.as_ref().map_or(Vec::new(), |output| output.to_open.clone());
        enter_stage(ThreadStage::CompactionInstall);
        let (outcome, lost) = match self.tree.install_or_let_go(job, output) {
            Installation::Ended { outcome, lost } => (outcome, lost.map(|lost| *lost)),
            Installation::Refused(error) => return Err(error),
        };
        let is_installed = outcome.is_ok() && lost.is_none();
        if let Some(output) = lost {
            output::discard(self, &job.family, &output);
        }
        remote::note_installation(self, job, is_installed);
        self.open_tables(&job.family, &to_open);
        Ok(outcome)
    }

    /// What comes after a compaction that somebody asked for: its space is free and its events are
    /// told when the call returns.
    pub(in crate::db) fn end_asked_for<T>(&self, outcome: Result<T>) -> Result<T> {
        self.purge_all_obsolete_files();
        self.disk.regain_reserve();
        let outcome = outcome.inspect_err(|error| self.tree.note_full_disk(error));
        self.context.events.tell();
        outcome
    }

    /// Tells who follows a compaction what it is about to read.
    pub(in crate::db) fn follow(&self, job: &CompactionJob) {
        let Some(control) = &job.control else { return };
        let (mut tables, mut entries) = (0u64, 0u64);
        if job.plan.rewrites() {
            for (_, file) in job.plan.files() {
                tables = tables.saturating_add(file.meta.size);
                // What is wrong with it the compaction will say.
                let properties =
                    self.tables.open(&job.family, file).map(|table| table.properties());
                let of_table = properties
                    .map_or(0, |read| read.raw_key_size.saturating_add(read.raw_value_size));
                entries = entries.saturating_add(of_table);
            }
        }
        control.begin_piece(tables, entries);
    }

    /// Opens tables that readers will come to at once, so that none of them has to.
    pub(in crate::db) fn open_tables(&self, family: &Family, tables: &[FileNumber]) {
        if tables.is_empty() {
            return;
        }
        let version = family.current.load().version.clone();
        for (_, file) in version.files().filter(|(_, file)| tables.contains(&file.number())) {
            // A reader who needs it opens it then, and meets what is wrong.
            if let Err(error) = self.tables.open(family, file) {
                tracing::warn!(%error, "a new table could not be opened ahead");
                self.context.statistics.add(Ticker::TablesNotOpened, 1);
            }
        }
    }

    /// Merges the inputs into new files.
    pub(in crate::db) fn rewrite(&self, job: &CompactionJob) -> Result<JobOutput> {
        let plan = &job.plan;
        let spec = self.spec_of(
            job,
            part::tombstones_of_inputs(self, job)?,
            part::inputs_flushed_until(self, job)?,
            write_times::of_compaction(self, job)?,
        );
        // Before the job lists the snapshots: all that are live then see what is older.
        let released = self.snapshots.released();
        let (oldest, begun_us) = (self.tree.oldest_snapshot(), self.context.env.clock.now_us());
        job.oldest_snapshot.store(oldest, Ordering::Relaxed);
        let (mut output, subcompactions) = self.run_in_parts(job, &spec).inspect_err(|_| {
            if job.is_in_vain.load(Ordering::Relaxed) {
                job.plan.files().for_each(|(_, file)| file.keep_apart(oldest));
            }
        })?;
        output.counts.micros = self.context.env.clock.now_us().saturating_sub(begun_us);
        output.counts.subcompactions = subcompactions;
        output.settle(plan.bottommost, released);
        let read = plan.input_bytes();
        let written: u64 = output.tables.iter().map(|table| table.size).sum();
        self.context.statistics.add(Ticker::CompactReadBytes, read);
        self.context.statistics.add(Ticker::CompactWriteBytes, written);
        self.context.statistics.add(Ticker::BlobWriteBytes, output.counts.blob_bytes);
        self.context.statistics.add(Ticker::BlobGcRelocatedKeys, output.counts.relocated_blobs);
        self.context.statistics.add(Ticker::BlobGcRelocatedBytes, output.counts.relocated_bytes);
        self.context.statistics.add(Ticker::Compactions, 1);
        self.context.statistics.add(Ticker::Subcompactions, subcompactions);
        Ok(output)
    }

    /// Runs a job in parts, which together must have read all; in how many.
    fn run_in_parts(&self, job: &CompactionJob, spec: &JobSpec) -> Result<(JobOutput, u64)> {
        let (mut count, mut buffers) = (0, None);
        enter_stage(ThreadStage::CompactionRun);
        let output = output::run_job(self, spec, |surviving| {
            let parts = part::compaction_parts(self, job, surviving)?;
            count = parts.len();
            let readahead_bytes = parts.iter().map(|part| part.readahead_bytes).sum();
            buffers =
                Some(output::hold_job_buffers(self, &job.family, count, readahead_bytes, u64::MAX));
            Ok(parts)
        })?;
        if job.plan.output_level == 0 && count > 1 {
            // Each part has read all.
            let mut output = output;
            output
                .tables
                .iter_mut()
                .zip(epochs(job))
                .for_each(|(table, epoch)| table.epoch_number = epoch);
            return Ok((output, count as u64));
        }
        let is_all = if count == 1 {
            Ok(true)
        } else {
            part::is_all_read(self, job, output.counts.entries_read)
        };
        if matches!(is_all, Ok(true)) {
            return Ok((output, count as u64));
        }
        output::discard(self, &job.family, &output);
        is_all?;
        // A table has keys beyond its bounds, or more or fewer than it says: nothing is left out
        // where there is one part.
        Ok((
            output::run_job(self, spec, |_| part::parts_of(self, job, vec![PartRange::default()]))?,
            1,
        ))
    }

    fn spec_of(
        &self,
        job: &CompactionJob,
        tombstones: Vec<TruncatedRangeTombstones>,
        inputs_flushed_until: SequenceNumber,
        times: KeptTimes,
    ) -> JobSpec {
        let plan = &job.plan;
        let inputs = || plan.files().map(|(_, file)| &file.meta);
        let ages = inputs().map(|meta| meta.oldest_ancestor_time).filter(|time| *time > 0);
        let oldest_ancestor_time = ages.min().unwrap_or(0);
        JobSpec {
            family: job.family.clone(),
            inputs: plan.files().map(|(_, file)| file.clone()).collect(),
            tombstones,
            version: job.version.clone(),
            target: Target {
                place: OutputPlace {
                    level: plan.output_level,
                    path_id: plan.path_id,
                    bottommost: plan.bottommost,
                    temperature: plan.form.temperature,
                },
                compression: plan.form.compression,
                oldest_ancestor_time,
                is_proximal: false,
            },
            proximal: self.proximal_target(job, oldest_ancestor_time),
            is_flush: false,
            wants_key_filter: false,
            pace: JobPace {
                priority: job.priority(),
                // A worker's caller waits for it.
                gives_way: !job.is_manual && !self.context.read_only,
                compresses_in_parallel: false,
                entry_size: 0,
                control: job.control.clone(),
            },
            filtered: CompactionFilterContext {
                is_full_compaction: plan.files().count() == job.version.files().count(),
                is_manual_compaction: job.is_manual,
                input_start_level: Some(plan.start_level() as u32),
                output_level: plan.output_level as u32,
                column_family_id: job.family.id,
                reason: TableFileCreationReason::Compaction,
            },
            inherited: Inherited {
                epoch_number: inputs()
                    .map(|meta| meta.epoch_number)
                    .filter(|epoch| *epoch > 0)
                    .min()
                    .unwrap_or(1),
                file_creation_time: kept_creation_time(job),
                flushed_until: inputs_flushed_until,
                ordered_flushed_until: job.remote.flushed_until,
                times,
            },
            history: history_of(&job.family)
                .map(|history| History { trim: job.trim.clone(), ..history }),
            blob_gc: self.blob_gc_candidates(job),
            direct: DirectInputs::default(),
            told: {
                let begun = job.told.lock().clone();
                ToldJob { id: begun.as_ref().map_or(0, |begun| begun.job), begun }
            },
        }
    }

    /// Where the young entries of a compaction go whose inputs are so old; they were written since
    /// they are young.
    fn proximal_target(&self, job: &CompactionJob, oldest_ancestor_time: u64) -> Option<Target> {
        let proximal = job.plan.proximal?;
        let now = self.context.env.clock.unix_seconds();
        let young = job.family.options.load().preclude_last_level_data_seconds;
        let place = OutputPlace {
            level: proximal.level,
            path_id: job.plan.path_id,
            bottommost: false,
            temperature: proximal.form.temperature,
        };
        let oldest_ancestor_time = match oldest_ancestor_time {
            0 => 0,
            time => time.max(now.saturating_sub(young)),
        };
        let compression = proximal.form.compression;
        Some(Target { place, compression, oldest_ancestor_time, is_proximal: true })
    }

    /// The blob files that are being emptied.
    fn blob_gc_candidates(&self, job: &CompactionJob) -> BTreeSet<FileNumber> {
        let options = job.family.options.load();
        let settings = BlobGcSettings {
            enabled: job.blob_gc.enabled.unwrap_or(options.enable_blob_garbage_collection),
            age_cutoff: job
                .blob_gc
                .age_cutoff
                .unwrap_or(options.blob_garbage_collection_age_cutoff),
            force_threshold: options.blob_garbage_collection_force_threshold,
        };
        let mut emptied = gc_candidates(&settings, &pick::blob_usage(&job.version));
        if job.blob_gc.enabled != Some(false) {
            emptied.extend(&job.plan.emptied);
        }
        emptied
    }
}

fn note_kind(plan: &CompactionPlan) {
    match plan.reason {
        _ if plan.trivial_move => Sometimes::TrivialMove.reached(),
        _ if plan.drops_inputs => Sometimes::TablesDropped.reached(),
        _ if plan.output_level == 0 => Sometimes::Level0Merged.reached(),
        CompactionReason::SizeAmplification => Sometimes::AllRunsMerged.reached(),
        CompactionReason::Bottommost => Sometimes::BottommostRewritten.reached(),
        CompactionReason::BlobGarbage => Sometimes::BlobGarbageForced.reached(),
        _ => {}
    }
}

/// FIFO compaction goes by age: its tables do not become younger by being rewritten. 0 for the time
/// of writing.
fn kept_creation_time(job: &CompactionJob) -> u64 {
    if job.family.options.load().compaction_style != CompactionStyle::Fifo {
        return 0;
    }
    let times = || job.plan.files().map(|(_, file)| file.meta.file_creation_time);
    let newest = times().max().unwrap_or(0);
    if times().any(|time| time == 0) { 0 } else { newest }
}
