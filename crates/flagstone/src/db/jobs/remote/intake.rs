//! Taking the files of a worker into the database's directories.
//!
//! Files are moved, or copied from another device and from another user. Each is then read at its
//! place and compared with the sum that the worker made of what it wrote, and each table is opened:
//! the inputs may go as soon as the output is installed. Files and directories are synced like
//! those of other jobs.
//!
//! A result may name any directory. Nothing is taken from one that belongs to a database. If a
//! result is refused, files that came from elsewhere than the offered directory go back there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{
    Code, Error, FileChecksum, FileNumber, InternalIterator, Result, Sometimes, SubCode, file_name,
};
use crate::blob::GarbageDelta;
use crate::compaction::pick::DeletedRanges;
use crate::compaction::remote::{CompactionOrder, CompactionResult, SummedOutput};
use crate::compaction::{JobCounts, KeyError};
use crate::db::jobs::Jobs;
use crate::db::jobs::remote::check::{self, Sums};
use crate::db::jobs::remote::{check_wanted, order, sums};
use crate::db::tables::tombstones_of;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::output::JobOutput;
use crate::env::{FileSystem, IoMode, NewNames, copy_unsynced, hint_temperature};
use crate::manifest::FileMetadata;
use crate::options::BackgroundErrorReason;
use crate::sst::{IterSettings, Table, TableReadSettings};

/// A file that was taken in.
struct TakenFile {
    target: PathBuf,
    source: PathBuf,
    is_copy: bool,
}

/// Files that were taken in. Unless they are kept, they go back to their source, or are removed if
/// that is the directory that was offered.
struct Taken<'a> {
    jobs: &'a Jobs,
    files: Vec<TakenFile>,
    from_offered: bool,
}

impl Taken<'_> {
    fn keep(&mut self) {
        for file in self.files.drain(..).filter(|file| file.is_copy) {
            // The service removes what stays.
            let _ = self.jobs.context.env.fs.remove(&file.source);
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let fs = &*self.jobs.context.env.fs;
        for TakenFile { target, source, is_copy } in &self.files {
            let goes_back = !is_copy && !self.from_offered && fs.rename(target, source).is_ok();
            if !goes_back {
                // What stays is removed when the database is opened next.
                let _ = fs.remove(target);
            }
        }
    }
}

/// Takes in what a worker has done.
///
/// # Errors
/// `Corruption`, `NotSupported`: the message or a file is not what it must be. `IoError`. All
/// files are gone then that were taken in.
pub(super) fn take_in(
    jobs: &Jobs,
    job: &CompactionJob,
    order: &CompactionOrder,
    message: &[u8],
) -> Result<JobOutput> {
    let mut result = CompactionResult::decode(message)?;
    let size = job.family.order.timestamp_size();
    for (_, table) in &mut result.changes.new_files {
        // Bounds come as they are used, also of tables that store no timestamps.
        table.padded_bytes = if table.user_timestamps_persisted { 0 } else { size };
    }
    let sums = check::check(order, &job.plan, &job.version, &result)?;
    check_source(jobs, job, &result.directory)?;
    let from_offered = result.directory == order::directory_of(jobs, order);
    let mut intake = Intake {
        jobs,
        job,
        sums,
        source: &result.directory,
        names: BTreeMap::new(),
        taken: Taken { jobs, files: Vec::new(), from_offered },
    };
    let mut output = JobOutput { is_remote: true, ..JobOutput::default() };
    let directory = job.family.paths.directory(job.plan.path_id).clone();
    for (_, meta) in &result.changes.new_files {
        let path = file_name::table(&directory, meta.number);
        let checksum = intake.take(&path, meta.number)?;
        let table = open_table(jobs, job, meta, &path)?;
        note_table(jobs, job, meta, &table, &mut output);
        output.tables.push(meta.clone().with_checksum(checksum));
    }
    for meta in &result.changes.blob_file_additions {
        let checksum = intake.take(&job.family.paths.blob(meta.number), meta.number)?;
        output.blob_files.push(meta.clone().with_checksum(checksum));
    }
    intake.finish()?;
    describe(&result, &mut output);
    Ok(output)
}

/// Takes over what the result says beside its files.
fn describe(result: &CompactionResult, output: &mut JobOutput) {
    let garbage = result.changes.blob_file_garbages.iter();
    output.garbage = garbage
        .map(|garbage| GarbageDelta {
            number: garbage.number,
            count: garbage.count,
            bytes: garbage.bytes,
        })
        .collect();
    output.is_filtered = result.is_filtered;
    let faults = result.key_faults.iter().map(|(key, words)| KeyError {
        user_key: key.clone(),
        error: Error::new(Code::Corruption, words.clone()),
    });
    output.key_faults = faults.collect();
    let key_faults = result.counts.key_faults.max(output.key_faults.len() as u64);
    output.counts = JobCounts { key_faults, ..result.counts };
}

/// What takes files in.
struct Intake<'a> {
    jobs: &'a Jobs,
    job: &'a CompactionJob,
    sums: Sums<'a>,
    /// Where the worker has written them.
    source: &'a Path,
    names: BTreeMap<PathBuf, NewNames>,
    taken: Taken<'a>,
}

impl Intake<'_> {
    /// Takes a file in; its checksum, if new files get one.
    fn take(&mut self, target: &Path, number: FileNumber) -> Result<Option<FileChecksum>> {
        check_wanted(self.jobs, self.job)?;
        let expected: SummedOutput = *self.sums[&number];
        let (context, fs) = (&self.jobs.context, &*self.jobs.context.env.fs);
        let directory = target.parent().unwrap_or(Path::new(""));
        let new = || context.names.before_making(directory);
        self.names.entry(directory.to_path_buf()).or_insert_with(new);
        let source = self.source.join(target.file_name().unwrap_or_default());
        hint_temperature(fs, target, self.job.plan.form.temperature);
        check_size(fs, &source, expected.size)?;
        let is_moved = fs.rename(&source, target).is_ok();
        let taken = TakenFile { target: target.to_path_buf(), source, is_copy: !is_moved };
        self.taken.files.push(taken);
        if !is_moved || !self.sync_moved(target)? {
            self.copy(target, expected.size)?;
        }
        let running = context.checksums().for_new_file()?;
        let priority = self.job.priority();
        sums::check_file(fs, target, &expected, running, |bytes| {
            self.jobs.background.before_job_reads(bytes, priority);
        })
    }

    /// Syncs a file that was moved, as a worker's sync is its own machine's word. Returns `false`
    /// if the file may only be read, because it belongs to another user.
    fn sync_moved(&self, target: &Path) -> Result<bool> {
        match self.jobs.context.env.fs.reopen_writable(target) {
            Ok(file) => self.poisons(file.sync()).map(|()| true),
            Err(error) if error.is_refused() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Copies the file that was taken last, which is at its source or was moved.
    fn copy(&mut self, target: &Path, size: u64) -> Result<()> {
        Sometimes::RemoteOutputCopied.reached();
        let fs = &*self.jobs.context.env.fs;
        if let Some(taken) = self.taken.files.last_mut() {
            if !taken.is_copy {
                fs.rename(target, &taken.source)?;
                taken.is_copy = true;
            }
            let copied = copy_unsynced(fs, &taken.source, target, size, false)?;
            self.poisons(copied.sync())?;
        }
        Ok(())
    }

    /// As for other outputs, a sync that fails poisons, unless the disk is full.
    fn poisons(&self, synced: Result<()>) -> Result<()> {
        synced.inspect_err(|error| {
            if error.subcode() != SubCode::NoSpace {
                self.jobs.tree.fail(BackgroundErrorReason::Compaction, error);
            }
        })
    }

    /// Makes the names durable, and keeps the files.
    fn finish(mut self) -> Result<()> {
        self.names.values().try_for_each(|names| self.poisons(names.sync()))?;
        self.taken.keep();
        Ok(())
    }
}

/// # Errors
/// `Corruption` if files must not be taken from a directory.
fn check_source(jobs: &Jobs, job: &CompactionJob, source: &Path) -> Result<()> {
    let (context, fs) = (&jobs.context, &*jobs.context.env.fs);
    let own = job.family.paths.directories().iter().map(|directory| &**directory);
    let mut own = own.chain([&*context.path, &*context.wal_directory]);
    let is_database = own.any(|directory| directory == source)
        || match fs.metadata(&file_name::current(source)) {
            Ok(_) => true,
            Err(error) if error.is_not_found() => false,
            Err(error) => return Err(error),
        };
    if !is_database {
        return Ok(());
    }
    Err(Error::corruption("the result names the directory of a database").at(source))
}

/// # Errors
/// `Corruption` if the file has another size; `IoError`.
fn check_size(fs: &dyn FileSystem, path: &Path, expected: u64) -> Result<()> {
    let found = fs.metadata(path)?.size;
    if found == expected {
        return Ok(());
    }
    let message = format!("the file has {found} bytes instead of {expected}");
    Err(Error::corruption(message).at(path))
}

/// Opens a table that was taken in.
///
/// # Errors
/// `Corruption` if it is not what the result says.
fn open_table(
    jobs: &Jobs,
    job: &CompactionJob,
    meta: &FileMetadata,
    path: &Path,
) -> Result<Arc<Table>> {
    let fs = &*jobs.context.env.fs;
    let file = fs.open_random_access(path, IoMode::direct_if(jobs.tables.reads_directly()))?;
    let settings = TableReadSettings {
        comparator: job.family.comparator().clone(),
        is_stripped: !meta.user_timestamps_persisted,
        prefix_extractor: job.family.options.load().prefix_extractor.clone(),
        largest_sequence: Some(meta.largest_seqno),
        unique_id: meta.unique_id,
        ..TableReadSettings::default()
    };
    let table = Table::open(file, meta.size, settings)?;
    let properties = table.properties();
    let is_own = properties.column_family == Some(job.family.id.0)
        && properties.db_identity == jobs.context.identity.database
        && properties.original_file_number == meta.number.0;
    if !is_own {
        let message = "the table was not written for this database and column family";
        return Err(Error::corruption(message).at(path));
    }
    check_bounds(job, meta, &table).map_err(|error| error.at(path))?;
    Ok(table)
}

/// Compares the first and the last entry with what the MANIFEST is to say.
fn check_bounds(job: &CompactionJob, meta: &FileMetadata, table: &Arc<Table>) -> Result<()> {
    let order = &job.family.order;
    let mut cursor = table.iter(IterSettings::default());
    cursor.seek_to_first();
    let is_before = cursor.valid() && order.compare(cursor.key(), meta.smallest.as_key()).is_lt();
    cursor.status()?;
    cursor.seek_to_last();
    let is_behind = cursor.valid() && order.compare(cursor.key(), meta.largest.as_key()).is_gt();
    cursor.status()?;
    if is_before || is_behind {
        return Err(Error::corruption("the table has entries beyond its bounds"));
    }
    Ok(())
}

/// Notes what is known of a table only when it is open.
fn note_table(
    jobs: &Jobs,
    job: &CompactionJob,
    meta: &FileMetadata,
    table: &Arc<Table>,
    output: &mut JobOutput,
) {
    if jobs.context.events.has_listeners() {
        output.properties.push((meta.number, Arc::new(table.properties().clone())));
    }
    let has_history = job.family.order.timestamp_size() > 0;
    if let Some(tombstones) = tombstones_of(table).filter(|_| !has_history) {
        let tombstones = tombstones.for_writing(&[]);
        let (version, level) = (&job.version, job.plan.output_level);
        let bounds = (&meta.smallest, &meta.largest);
        output.deleted.extend(DeletedRanges::new(version, level, meta.number, bounds, &tombstones));
    }
}
