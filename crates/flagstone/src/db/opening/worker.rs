//! A worker of a compaction service: does one compaction of a database that another process writes.
//!
//! 1. Read the order, and make the output directory.
//! 2. Read the MANIFEST, which must have what the order goes by, into an engine that is open for
//!    reading, and reads no WALs. New files go to the output directory (`env/redirected.rs`).
//! 3. Take the snapshots of the order; run the compaction as the database would.
//! 4. Sum up the bytes of the new files, and describe them.
//!
//! **Proof** that a newer state will do than the one that the database planned from. The inputs are
//! marked there, so they stay. What lies below the output may have gone down, or gone altogether,
//! by edits that are durable; no older version of a key comes to below the output from elsewhere.
//! So an entry that is dropped because nothing lies below it hides nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::file_name::FileKind;
use crate::base::{Code, Error, InternalKeyComparator, Result, Snapshot, file_name};
use crate::cache::MemoryAccount;
use crate::compaction::remote::{CompactionOrder, CompactionResult, SummedOutput};
use crate::db::DbInner;
use crate::db::budget::BudgetRule;
use crate::db::family::generation::Generation;
use crate::db::family::{AtCommit, Family, SuperVersion};
use crate::db::inner::Shared;
use crate::db::jobs::output;
use crate::db::jobs::remote::sum_of_file;
use crate::db::settings::{data_paths, memtable_settings};
use crate::db::statistics::Ticker;
use crate::db::tables::Tables;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::output::JobOutput;
use crate::db::tree::told;
use crate::env::{FileSystem, Names, RedirectedFiles, remove_if_there};
use crate::manifest::{
    BlobFileGarbage, FamilySpec, ManifestTail, VersionEdit, VersionSet, WantedFamilies,
    current_manifest, with_current,
};
use crate::memtable::ArenaPool;
use crate::options::{
    ColumnFamilyOptions, CompactionServiceOptionsOverride, OpenAndCompactOptions, Options,
};

/// Does a compaction for the database in `path`, which another process has open for writing. That
/// process is given the result, as bytes, by its
/// [`CompactionService`](crate::CompactionService), which got `input` from it.
///
/// New tables and blob files go to `output_directory`, which is made if it does not exist, and must
/// be empty but for what an earlier attempt at this compaction has left. The database must be able
/// to reach it under the same path, and it must not be the directory of a database. Nothing else is
/// changed: the worker only reads the database's directories, and takes no lock. It must be able to
/// reach those of `db_paths` and `cf_paths` under the paths in `input`, which are the database's.
/// If it fails or is killed, its files may be removed.
///
/// Costs what the compaction costs, and reads the new files once.
///
/// # Errors
/// `InvalidArgument`: the database is another one, or no longer has the tables that are to be read;
/// a component of `overrides` has another name than the database's; the output directory has other
/// files. `TryAgain`: the database's files are older than the order, as on a network file system
/// that is behind. `NotSupported` for an input of another release, and `allow_resumption`.
/// `Incomplete` if it was canceled. `Corruption`; `IoError`.
#[doc(alias = "OpenAndCompact")]
pub fn open_and_compact(
    path: impl AsRef<Path>,
    output_directory: impl AsRef<Path>,
    input: &[u8],
    overrides: &CompactionServiceOptionsOverride,
    options: &OpenAndCompactOptions,
) -> Result<Vec<u8>> {
    let (path, directory) = (path.as_ref(), output_directory.as_ref());
    if options.allow_resumption {
        return Err(Error::not_supported("allow_resumption: a compaction begins anew"));
    }
    let order = CompactionOrder::decode(input)?;
    let (mut of_db, of_family) = overrides.applied_to(&order.options, &order.family_name)?;
    check_not_older(&*overrides.env.fs, path, &order)?;
    make_directory(&overrides.env.fs, directory, &order)?;
    let redirected = Arc::new(RedirectedFiles::new(overrides.env.fs.clone(), directory));
    of_db.env = overrides.env.clone().with_fs(redirected);
    let engine = open(path, &of_db, &of_family, &order)?;
    let worker = Worker { engine: &engine, order: &order, directory, options };
    let result = worker.run(&*overrides.env.fs);
    engine.context.events.tell();
    if let Some(receive) = &overrides.statistics {
        let statistics = &engine.context.statistics;
        let value = |ticker: &Ticker| (ticker.name(), statistics.get(*ticker));
        receive(&Ticker::ALL.iter().map(value).collect::<Vec<_>>());
    }
    let closed = engine.close();
    let result = result?;
    closed.map(|()| result.encode())
}

/// # Errors
/// `TryAgain` if the files are older than the order.
fn check_not_older(fs: &dyn FileSystem, path: &Path, order: &CompactionOrder) -> Result<()> {
    let (number, bytes) = order.manifest;
    let found = current_manifest(fs, path)?;
    let current = file_name::manifest(path, found);
    if found > number || found == number && fs.metadata(&current)?.size >= bytes {
        return Ok(());
    }
    let message = "the MANIFEST lacks what the compaction goes by; the files are older than it";
    Err(Error::new(Code::TryAgain, message).at(&current))
}

/// Makes the output directory, and removes what an earlier attempt has left in it.
fn make_directory(
    fs: &Arc<dyn FileSystem>,
    directory: &Path,
    order: &CompactionOrder,
) -> Result<()> {
    Names::new(fs.clone()).create_directory(directory)?;
    for name in fs.list(directory)? {
        let path = directory.join(&name);
        match FileKind::parse(&name) {
            Some(FileKind::Table(number) | FileKind::Blob(number)) if order.reserves(number) => {
                remove_if_there(&**fs, &path)?;
            }
            _ => {
                let message = "the output directory has a file that is not of this compaction";
                return Err(Error::invalid_argument(message).at(&path));
            }
        }
    }
    Ok(())
}

/// An engine that has one family, and nothing in memory.
fn open(
    path: &Path,
    options: &Options,
    family: &ColumnFamilyOptions,
    order: &CompactionOrder,
) -> Result<DbInner> {
    let versions = read_manifest(path, options, family, order)?;
    if versions.db_id() != order.db_id {
        let message = "the compaction was ordered by another database";
        return Err(Error::invalid_argument(message).at(path));
    }
    let listed = versions.family_by_name(&order.family_name);
    let Some(listed) = listed.filter(|listed| listed.id == order.family) else {
        let message = format!("column family '{}' does not exist any longer", order.family_name);
        return Err(Error::invalid_argument(message).at(path));
    };
    let account = Arc::new(MemoryAccount::default());
    let arenas = Arc::new(ArenaPool::accounted(0, account.clone()));
    let settings = memtable_settings(&options.db, family, &arenas);
    let order_of_keys = InternalKeyComparator::new(family.comparator.clone());
    let mem = Arc::new(Generation::new(order_of_keys, &settings));
    let first = SuperVersion::first(mem.clone(), listed.current.clone())
        .with_history_low(listed.full_history_ts_low.as_deref());
    let (owner, at_commit) = (versions.obsolete_files().clone(), AtCommit::of(&options.db));
    let (id, log_number) = (listed.id, listed.log_number);
    let opened = Family::new(id, &listed.name, family, first, owner, at_commit);
    let families = BTreeMap::from([(id, FamilyState::new(opened, mem, log_number))]);
    let budget = BudgetRule::new(&options.db, true).with_arenas(&arenas);
    let statistics = Arc::default();
    let tables = Arc::new(Tables::new(options, account, budget, &statistics));
    let shared = Shared { tables, arenas, statistics };
    Ok(DbInner::new(path, options.clone(), true, versions, families, shared))
}

/// The state of the database now, in which new files have the numbers of the order.
fn read_manifest(
    path: &Path,
    options: &Options,
    family: &ColumnFamilyOptions,
    order: &CompactionOrder,
) -> Result<VersionSet> {
    let spec = FamilySpec {
        name: order.family_name.clone(),
        comparator: family.comparator.clone(),
        persists_timestamps: family.persist_user_defined_timestamps,
        paths: data_paths(path, &options.db, family)?,
        num_levels: family.sanitized().num_levels as usize,
    };
    let wanted: WantedFamilies =
        Arc::new(move |name| Ok((name == spec.name).then(|| spec.clone())));
    let mut tail = with_current(&*options.env.fs, path, |_| {
        ManifestTail::open(options.env.clone(), path, wanted.clone())
    })?;
    Ok(tail.versions()?.numbered_from(order.first_number))
}

/// One compaction in a worker.
struct Worker<'a> {
    engine: &'a DbInner,
    order: &'a CompactionOrder,
    directory: &'a Path,
    options: &'a OpenAndCompactOptions,
}

impl Worker<'_> {
    fn run(&self, fs: &dyn FileSystem) -> Result<CompactionResult> {
        let _snapshots = self.take_snapshots();
        let job = self.job()?;
        self.engine.jobs.follow(&job);
        let output = self.engine.jobs.rewrite(&job)?;
        if let Some(control) = &job.control {
            control.end_piece(true);
        }
        self.describe(fs, &output).inspect_err(|_| {
            output::discard(&self.engine.jobs, &job.family, &output);
        })
    }

    /// Takes those of the order: nothing was published yet.
    fn take_snapshots(&self) -> Vec<Snapshot> {
        let list = &self.engine.snapshots;
        let take = |sequence: &u64| {
            list.publish(*sequence);
            list.take(0)
        };
        let taken = self.order.snapshots.iter().map(take).collect();
        assert_eq!(list.sequences(), self.order.snapshots, "each is at its sequence number");
        taken
    }

    fn job(&self) -> Result<CompactionJob> {
        let family = self.engine.tree.families.read().get(&self.order.family).cloned();
        let family = family.expect("it was just opened");
        let version = family.current.load().version.clone();
        let plan = self.order.plan.resolve(&version)?;
        let mut job = CompactionJob::new(family, version, plan);
        job.is_manual = self.order.is_manual;
        (job.blob_gc.enabled, job.blob_gc.age_cutoff) = self.order.blob_gc;
        job.max_subcompactions = self.order.max_subcompactions;
        job.control.clone_from(&self.options.control);
        job.remote.flushed_until = Some(self.order.flushed_until);
        let events = &self.engine.context.events;
        if events.has_listeners() {
            *job.told.lock() = Some(told::compaction_begun(&job, events.next_job(), |_| None));
        }
        Ok(job)
    }

    fn describe(&self, fs: &dyn FileSystem, output: &JobOutput) -> Result<CompactionResult> {
        let mut files = Vec::new();
        let directory = self.directory;
        let tables = output.tables.iter().map(|table| table.number);
        let tables = tables.map(|number| (number, file_name::table(directory, number)));
        let blobs = output.blob_files.iter().map(|blob| blob.number);
        let blobs = blobs.map(|number| (number, file_name::blob(directory, number)));
        for (number, path) in tables.chain(blobs) {
            if !self.order.reserves(number) {
                return Err(Error::incomplete(
                    "the compaction makes more files than numbers were reserved for it",
                ));
            }
            let size = fs.metadata(&path)?.size;
            let (sum, _) = sum_of_file(fs, &path, size, None, |_| {})?;
            files.push(SummedOutput { number, size, sum });
        }
        let faults = output.key_faults.iter();
        Ok(CompactionResult {
            token: self.order.token,
            directory: self.directory.to_path_buf(),
            changes: self.changes(output),
            files,
            is_filtered: output.is_filtered,
            key_faults: faults
                .map(|fault| (fault.user_key.clone(), fault.error.to_string()))
                .collect(),
            counts: output.counts,
        })
    }

    fn changes(&self, output: &JobOutput) -> VersionEdit {
        let mut changes = VersionEdit::default();
        for table in &output.tables {
            let mut table = table.clone();
            // Bounds go as they are, with the timestamps that the table does not store.
            table.padded_bytes = 0;
            changes.new_files.push((self.order.plan.output_level, table));
        }
        changes.blob_file_additions.clone_from(&output.blob_files);
        let garbage = output.garbage.iter().map(|delta| BlobFileGarbage {
            number: delta.number,
            count: delta.count,
            bytes: delta.bytes,
        });
        changes.blob_file_garbages = garbage.collect();
        changes
    }
}
