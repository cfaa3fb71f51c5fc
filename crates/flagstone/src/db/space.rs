//! Where the space of a family goes: what is live, what is garbage, and who holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::file_name::FileKind;
use crate::base::sync::Mutex;
use crate::base::{FileNumber, Result, SequenceNumber};
use crate::blob::{FOOTER_SIZE, GarbageMeter, HEADER_SIZE, visit_references};
use crate::compaction::pick::CompactionPlan;
use crate::compaction::{CompactionStream, KeepInPlace, StreamSettings, StreamTombstones};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family, SuperVersion};
use crate::db::handle::Db;
use crate::db::jobs::job::history_of;
use crate::db::jobs::part::{self, Part, PartInput, PartRange};
use crate::db::jobs::placement::BlobSource;
use crate::db::settings::scratch_bytes;
use crate::db::tree::compaction_job::{CompactionJob, check_not_canceled};
use crate::db::tree::directories;
use crate::manifest::{BlobFileState, Version};
use crate::options::CompactionControl;

/// The space of a family in bytes, as [`Family::space`](crate::Family::space) measures it.
/// `blob_bytes` is the sum of what is live, pinned by snapshots, hidden, and garbage, and of the
/// files' headers and footers. What holes have given back is in none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpaceUsage {
    /// Tables.
    pub table_bytes: u64,
    /// Blob files, but for their holes.
    pub blob_bytes: u64,
    /// Of these, the records of the newest values. What memtables hold is not known yet: see
    /// `unflushed_bytes`.
    pub live_bytes: u64,
    /// The records of values that only snapshots see.
    pub snapshot_bytes: u64,
    /// The records of values that were overwritten or deleted, while tables still refer to them.
    pub hidden_bytes: u64,
    /// The records that nothing refers to, as far as they are on the disk.
    pub garbage_bytes: u64,
    /// What holes in blob files have given back to the file system.
    pub punched_bytes: u64,
    /// Tables and blob files that are no part of the database any longer, and that iterators and
    /// other readers keep.
    pub reader_bytes: u64,
    /// Memtables, with their values in blob files. Opening for reading fills memtables from WALs.
    pub unflushed_bytes: u64,
    /// Entries of memtables. What they overwrite or delete counts as live until they are flushed.
    pub unflushed_entries: u64,
    /// The most that one compaction may write before it gives anything back, but for values in blob
    /// files: compactions need as much free space. Several that run at the same time need more.
    pub scratch_bytes: u64,
}

impl SpaceUsage {
    /// What a compaction of everything would return now: what is garbage, hidden or not.
    pub fn reclaimable_bytes(&self) -> u64 {
        self.garbage_bytes + self.hidden_bytes
    }
}

impl Db {
    /// Measures the space of a family. Reads all of its tables, but no values: of values in blob
    /// files only the addresses.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of a table, or of a value that is merged; `InvalidArgument` for a
    /// family of another database.
    pub fn space(&self, family: &ColumnFamily) -> Result<SpaceUsage> {
        self.space_followed(family, &CompactionControl::new())
    }

    /// Bytes of obsolete tables, blob files and WALs that wait to be removed (`.trash`), by an
    /// `SstFileManager` or by the next opening. Lists the directories.
    ///
    /// # Errors
    /// `IoError`.
    pub fn trash_size(&self) -> Result<u64> {
        let inner = self.inner();
        let mut bytes = 0u64;
        for (path, kind) in directories::data_files(&inner.tree)? {
            if let FileKind::Trash(_) = kind {
                match inner.context.env.fs.metadata(&path) {
                    Ok(found) => bytes = bytes.saturating_add(found.size),
                    // It has just been removed.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(bytes)
    }

    /// [`Db::space`], whose progress another thread may ask `control` for, and which it may cancel.
    ///
    /// # Errors
    /// As [`Db::space`]; `Incomplete` if it was canceled.
    pub fn space_followed(
        &self,
        family: &ColumnFamily,
        control: &Arc<CompactionControl>,
    ) -> Result<SpaceUsage> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0)?;
        space(inner, &family.0, control)
    }
}

fn space(
    db: &DbInner,
    family: &Arc<Family>,
    control: &Arc<CompactionControl>,
) -> Result<SpaceUsage> {
    let current = family.current.load_full();
    let version = current.version.clone();
    let snapshots = db.snapshots.sequences();
    let passes = if snapshots.is_empty() { 1 } else { 2 };
    control.begin(version.table_bytes().saturating_mul(passes));
    let live_bytes = records_kept(db, family, &version, Vec::new(), control)?;
    let kept_bytes = if snapshots.is_empty() {
        live_bytes
    } else {
        records_kept(db, family, &version, snapshots, control)?
    };
    control.end();
    let sum = |of: fn(&BlobFileState) -> u64| {
        version.blob_files.values().map(of).fold(0, u64::saturating_add)
    };
    let all_garbage = sum(|blob| blob.garbage_bytes);
    let referenced = version.blob_bytes().saturating_sub(all_garbage);
    let punched_bytes = sum(BlobFileState::punched);
    Ok(SpaceUsage {
        table_bytes: version.table_bytes(),
        blob_bytes: blob_file_bytes(version.blob_files.values()),
        live_bytes,
        snapshot_bytes: kept_bytes.saturating_sub(live_bytes),
        hidden_bytes: referenced.saturating_sub(kept_bytes),
        garbage_bytes: all_garbage.saturating_sub(punched_bytes),
        punched_bytes,
        reader_bytes: pinned_bytes(db, family, &version),
        unflushed_bytes: unflushed_bytes(&current),
        unflushed_entries: current.generations().map(|memtable| memtable.num_entries()).sum(),
        scratch_bytes: scratch_bytes(&family.options.load(), &version),
    })
}

/// Bytes of the records in blob files that a compaction of all tables would keep for these
/// snapshots.
fn records_kept(
    db: &DbInner,
    family: &Arc<Family>,
    version: &Arc<Version>,
    snapshots: Vec<SequenceNumber>,
    control: &Arc<CompactionControl>,
) -> Result<u64> {
    let Some(plan) = CompactionPlan::of_all(version) else { return Ok(0) };
    let mut job = CompactionJob::new(family.clone(), version.clone(), plan);
    job.control = Some(control.clone());
    db.jobs.follow(&job);
    let parts = part::parts_of(&db.jobs, &job, vec![PartRange::default()])?;
    let tombstones = part::tombstones_of_inputs(&db.jobs, &job)?;
    let history = history_of(family);
    let tombstones = StreamTombstones::with_history(
        family.comparator(),
        &tombstones,
        &snapshots,
        history.as_ref(),
    );
    let mut bytes = 0u64;
    for Part { sources, range, .. } in parts {
        let meter = Mutex::new(GarbageMeter::new());
        let mut stream = CompactionStream::new(
            StreamSettings {
                snapshots: snapshots.clone(),
                bottommost: true,
                merge_operator: family.options.load().merge_operator.clone(),
                ingest_behind: family.options.load().cf_allow_ingest_behind,
                history: history.clone(),
                ..StreamSettings::new(family.comparator().clone())
            },
            PartInput::new(family.order.clone(), sources, &range, &meter, None)
                .followed_by(Some(control)),
            &tombstones,
            |_| true,
            None,
            BlobSource::new(&db.jobs, family, version),
            KeepInPlace,
        );
        while stream.valid() {
            check_not_canceled(Some(control))?;
            let key_size = stream.key().user_key().len();
            visit_references(stream.key().value_type(), stream.value(), |index| {
                bytes = u64::saturating_add(bytes, index.record_bytes(key_size));
                Ok(())
            })?;
            stream.next();
        }
        stream.status()?;
    }
    control.end_piece(true);
    Ok(bytes)
}

/// The versions that readers still use, the current one first.
pub(in crate::db) fn versions_in_use(db: &DbInner, family: &Family) -> Vec<Arc<Version>> {
    let replaced = db.tree.replaced(family);
    let current = family.current.load().version.clone();
    std::iter::once(current)
        .chain(replaced.iter().map(|old: &Arc<SuperVersion>| old.version.clone()))
        .collect()
}

/// Bytes of all tables, those among them that only readers keep.
pub(in crate::db) fn total_table_bytes(db: &DbInner, family: &Family) -> u64 {
    let versions = versions_in_use(db, family);
    let tables = versions.iter().flat_map(|version| version.files());
    let sizes: BTreeMap<_, _> = tables.map(|(_, file)| (file.number(), file.meta.size)).collect();
    sizes.into_values().fold(0, u64::saturating_add)
}

/// Bytes of all blob files, those among them that only readers keep.
pub(in crate::db) fn total_blob_bytes(db: &DbInner, family: &Family) -> u64 {
    let versions = versions_in_use(db, family);
    let mut seen: BTreeSet<FileNumber> = BTreeSet::new();
    let blobs = versions.iter().flat_map(|version| version.blob_files.values());
    blob_file_bytes(blobs.filter(|blob| seen.insert(blob.file.number())))
}

fn pinned_bytes(db: &DbInner, family: &Family, version: &Version) -> u64 {
    let tables = total_table_bytes(db, family).saturating_sub(version.table_bytes());
    let blobs = blob_file_bytes(version.blob_files.values());
    tables + total_blob_bytes(db, family).saturating_sub(blobs)
}

/// Bytes that a flush of all memtables has to bring to the disk.
pub(in crate::db) fn unflushed_bytes(current: &SuperVersion) -> u64 {
    current
        .generations()
        .filter(|memtable| !memtable.is_empty())
        .map(|memtable| memtable.bytes())
        .sum()
}

/// Bytes of these files on the disk, headers and footers included.
pub(in crate::db) fn blob_file_bytes<'a>(files: impl Iterator<Item = &'a BlobFileState>) -> u64 {
    let bytes = |blob: &BlobFileState| blob.file.meta.total_bytes.saturating_sub(blob.punched());
    let whole = files.map(|blob| bytes(blob).saturating_add((HEADER_SIZE + FOOTER_SIZE) as u64));
    whole.fold(0, u64::saturating_add)
}
