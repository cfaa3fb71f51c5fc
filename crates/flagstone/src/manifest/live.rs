//! Files in use: what the versions of a family share, and how a file is noticed that nobody uses
//! any longer.
//!
//! **Invariants**
//! - A table or blob file has one [`Claim`] on its name. Normally one `Arc<TableFile>` or
//!   `Arc<BlobFile>`, shared by all versions, holds it; when an edit changes what is recorded of a
//!   table, the old and the new `TableFile` share it.
//! - A claim is marked obsolete once the newest version no longer contains the file and that is
//!   durable.
//! - A blob file that is written before an edit adds it has its claim from then on
//!   ([`BlobFileClaim`]): whoever reads it by way of a memtable, without a version that has it,
//!   keeps it as well.
//! - When the last owner of a marked claim lets go (an old version, an iterator), the file is
//!   pushed to the [`ObsoleteFiles`] queue, once; the database's purger then removes it from the
//!   disk.
//!
//! **Thread safety**: everything is shared and dropped freely across threads; only the holder of
//! the version set marks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use super::edit::VersionEdit;
use super::holes::Holes;
use super::metadata::{BlobFileAddition, FileMetadata};
use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{
    DataPaths, FileNumber, FragmentedRangeTombstones, Mutant, SequenceNumber, file_name,
};
use crate::env::RandomAccessFile;
use crate::sst::Table;

/// A file that nothing refers to any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObsoleteFile {
    /// A table.
    Table {
        /// The table's number.
        number: FileNumber,
        /// Where it lies.
        directory: Arc<Path>,
    },
    /// A blob file.
    Blob {
        /// The file's number.
        number: FileNumber,
        /// Where it lies.
        directory: Arc<Path>,
    },
}

impl ObsoleteFile {
    /// The table with that number and path id.
    pub fn table(paths: &DataPaths, number: FileNumber, path_id: u32) -> Self {
        Self::Table { number, directory: paths.directory(path_id).clone() }
    }

    /// The blob file with that number.
    pub fn blob(paths: &DataPaths, number: FileNumber) -> Self {
        Self::Blob { number, directory: paths.of_blobs().clone() }
    }

    /// The files that an edit adds, for when it turns out not to count.
    pub fn added_by(edit: &VersionEdit, paths: &DataPaths) -> Vec<Self> {
        let tables = edit.new_files.iter();
        let tables = tables.map(|(_, file)| Self::table(paths, file.number, file.path_id));
        let blobs = edit.blob_file_additions.iter().map(|blob| Self::blob(paths, blob.number));
        tables.chain(blobs).collect()
    }

    /// Its name.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Table { number, directory } => file_name::table(directory, *number),
            Self::Blob { number, directory } => file_name::blob(directory, *number),
        }
    }
}

/// The queue of files that may be removed from the disk.
#[derive(Debug, Default)]
pub struct ObsoleteFiles {
    queue: Mutex<Vec<ObsoleteFile>>,
    /// How many more were taken, and are not removed yet.
    taken: AtomicUsize,
    /// Of tables, those that were open.
    retired: Mutex<Vec<Arc<Table>>>,
    /// Held by who frees what memory holds of those.
    uncaching: Mutex<()>,
    /// Of blob files that were claimed before an edit added them.
    claimed: Mutex<BTreeMap<FileNumber, Weak<Claim>>>,
}

impl ObsoleteFiles {
    /// Takes so many at most of those that have gathered, the oldest; [`ObsoleteFiles::put_back`]
    /// says what became of them.
    pub fn take(&self, at_most: usize) -> Vec<ObsoleteFile> {
        let mut queue = self.queue.lock();
        let count = at_most.min(queue.len());
        let taken: Vec<_> = queue.drain(..count).collect();
        self.taken.fetch_add(taken.len(), Ordering::Relaxed);
        taken
    }

    /// Of this many that were taken, all but `failed` are removed. How many have gathered
    /// meanwhile.
    pub fn put_back(&self, taken: usize, failed: Vec<ObsoleteFile>) -> usize {
        let mut queue = self.queue.lock();
        let gathered = queue.len();
        queue.extend(failed);
        self.taken.fetch_sub(taken, Ordering::Relaxed);
        gathered
    }

    /// The tables among those that have gathered.
    pub fn tables(&self) -> Vec<PathBuf> {
        let queue = self.queue.lock();
        let tables = queue.iter().filter(|file| matches!(file, ObsoleteFile::Table { .. }));
        tables.map(ObsoleteFile::path).collect()
    }

    /// How many have gathered, and how many more somebody is removing.
    pub fn counts(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.len(), self.taken.load(Ordering::Relaxed))
    }

    /// Frees what memory holds of the obsolete tables that were open. Whoever comes while another
    /// does it waits: when the call returns, nothing is left of what was obsolete before.
    pub fn uncache_retired(&self) {
        let _one_at_a_time = self.uncaching.lock();
        let retired = std::mem::take(&mut *self.retired.lock());
        retired.iter().for_each(|table| table.uncache());
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }

    /// Adds a file.
    pub fn push(&self, file: ObsoleteFile) {
        self.queue.lock().push(file);
    }

    fn claimed(&self, number: FileNumber) -> Option<Arc<Claim>> {
        self.claimed.lock().get(&number)?.upgrade()
    }
}

/// The right to a file's name on disk.
#[derive(Debug)]
struct Claim {
    file: ObsoleteFile,
    obsolete: AtomicBool,
    queue: Arc<ObsoleteFiles>,
}

impl Claim {
    fn new(file: ObsoleteFile, queue: Arc<ObsoleteFiles>) -> Arc<Self> {
        Arc::new(Self { file, obsolete: AtomicBool::new(false), queue })
    }

    fn mark_obsolete(&self) {
        Mutant::PurgeUnderReaders.breaks(|| self.queue.push(self.file.clone()));
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.queue.push(self.file.clone());
        }
    }
}

/// A file that is kept open.
#[derive(Clone, Default)]
struct HeldFile(OnceLock<Arc<dyn RandomAccessFile>>);

impl fmt::Debug for HeldFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "held" } else { "not held" })
    }
}

/// With fewer range deletions most keys lie beyond a table's bounds, and are told so by these.
const DELETIONS_MANY: usize = 64;

/// A table that is part of at least one version.
#[derive(Debug)]
pub struct TableFile {
    /// What the MANIFEST says of it.
    pub meta: FileMetadata,
    /// Whether a running compaction has it as input; set and cleared under the database's lock.
    pub being_compacted: AtomicBool,
    /// Whether it stays as it is: until the next opening, since it, or a blob file that it refers
    /// to, could not be read; or until the snapshots are gone that need more range deletions than a
    /// table holds.
    pub set_aside: AtomicBool,
    /// Whether somebody suggested that it be compacted.
    pub suggested: AtomicBool,
    /// Whether a compaction at the bottom has left it with sequence numbers that all snapshots see:
    /// those of operands that the merge operator refuses. Another one would leave them, too.
    pub settled: AtomicBool,
    /// See [`TableFile::keep_apart`]; 0 if it need not be.
    apart_under: AtomicU64,
    /// The open table, once somebody needed it.
    pub table: OnceLock<Arc<Table>>,
    /// Held by whoever opens it. What is read for that is as large as index and filter: others
    /// wait, instead of reading it, too.
    pub opening: Mutex<()>,
    /// All that the open table has, if those are many range deletions within the bounds of `meta`.
    deletions_only: OnceLock<Arc<FragmentedRangeTombstones>>,
    /// Whether it lies under LevelDB's name for a table, `NNNNNN.ldb`.
    has_leveldb_name: AtomicBool,
    /// See [`TableFile::hold`].
    held: HeldFile,
    /// Declared last, so that the table is closed, or among the retired, before its file may be
    /// removed.
    claim: Arc<Claim>,
}

impl TableFile {
    /// A table not yet opened; `queue` hears when it is no longer used.
    pub fn new(meta: FileMetadata, paths: &DataPaths, queue: Arc<ObsoleteFiles>) -> Self {
        let file = ObsoleteFile::table(paths, meta.number, meta.path_id);
        Self {
            meta,
            being_compacted: AtomicBool::new(false),
            set_aside: AtomicBool::new(false),
            suggested: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            apart_under: AtomicU64::new(0),
            table: OnceLock::new(),
            opening: Mutex::default(),
            deletions_only: OnceLock::new(),
            has_leveldb_name: AtomicBool::new(false),
            held: HeldFile::default(),
            claim: Claim::new(file, queue),
        }
    }

    /// Whether a compaction was asked for, by whoever wrote it or by somebody since.
    pub fn is_marked(&self) -> bool {
        self.meta.marked_for_compaction || self.suggested.load(Ordering::Relaxed)
    }

    /// Together with its neighbours in level 0 it has more range deletions than a table can hold,
    /// as long as the oldest snapshot is this one, or none: to merge them there is in vain.
    pub fn keep_apart(&self, oldest_snapshot: SequenceNumber) {
        self.apart_under.store(oldest_snapshot.max(1), Ordering::Relaxed);
    }

    /// Whether it is not to be merged within level 0, as this is the oldest snapshot.
    pub fn is_kept_apart(&self, oldest_snapshot: SequenceNumber) -> bool {
        let under = self.apart_under.load(Ordering::Relaxed);
        under > 0 && oldest_snapshot <= under
    }

    /// Whether the file is obsolete and this its last owner. Two that let go at once may both not
    /// be.
    fn is_last(&self) -> bool {
        self.claim.obsolete.load(Ordering::Acquire) && Arc::strong_count(&self.claim) == 1
    }

    /// The same file, of which the MANIFEST now says something else.
    pub(super) fn with_meta(&self, meta: FileMetadata) -> Self {
        assert_eq!(
            meta.number, self.meta.number,
            "only what is said of a file changes, never which file it is"
        );
        Self {
            meta,
            being_compacted: AtomicBool::new(false),
            set_aside: AtomicBool::new(self.set_aside.load(Ordering::Relaxed)),
            suggested: AtomicBool::new(false),
            settled: AtomicBool::new(self.settled.load(Ordering::Relaxed)),
            apart_under: AtomicU64::new(self.apart_under.load(Ordering::Relaxed)),
            table: self.table.clone(),
            opening: Mutex::default(),
            deletions_only: self.deletions_only.clone(),
            has_leveldb_name: AtomicBool::new(self.has_leveldb_name.load(Ordering::Relaxed)),
            held: self.held.clone(),
            claim: self.claim.clone(),
        }
    }

    /// Keeps the file open as long as any version has it: another process may remove its name.
    pub fn hold(&self, file: Arc<dyn RandomAccessFile>) {
        self.held.0.get_or_init(|| file);
    }

    /// Whether it is kept open.
    pub fn is_held(&self) -> bool {
        self.held.0.get().is_some()
    }

    /// Keeps the open table, unless there is one.
    pub fn opened(&self, table: Arc<Table>) -> &Arc<Table> {
        let table = self.table.get_or_init(|| table);
        let deletions = table.range_tombstones();
        if !table.has_points() && deletions.len() >= DELETIONS_MANY && self.contains(deletions) {
            self.deletions_only.get_or_init(|| deletions.clone());
        }
        table
    }

    /// All that the open table has, if it is known to be many range deletions, none of a key beyond
    /// the file's bounds.
    #[inline]
    pub fn deletions_only(&self) -> Option<&FragmentedRangeTombstones> {
        self.deletions_only.get().map(|deletions| &**deletions)
    }

    fn contains(&self, deletions: &FragmentedRangeTombstones) -> bool {
        let order = deletions.comparator();
        let ends = deletions
            .get(0)
            .zip(deletions.len().checked_sub(1).and_then(|last| deletions.get(last)));
        ends.is_some_and(|(first, last)| {
            order.compare(self.meta.smallest.user_key(), first.start).is_le()
                && order.compare(last.end, self.meta.largest.user_key()).is_le()
        })
    }

    /// Its number.
    #[inline]
    pub fn number(&self) -> FileNumber {
        self.meta.number
    }

    /// Its name: LevelDB's, once it was found under that.
    pub fn path(&self) -> PathBuf {
        let path = self.claim.file.path();
        if self.has_leveldb_name.load(Ordering::Relaxed) {
            path.with_extension("ldb")
        } else {
            path
        }
    }

    /// It was found under LevelDB's name.
    pub fn note_leveldb_name(&self) {
        self.has_leveldb_name.store(true, Ordering::Relaxed);
    }

    /// Whether a running compaction has it as input.
    #[inline]
    pub fn is_being_compacted(&self) -> bool {
        self.being_compacted.load(Ordering::Relaxed)
    }

    /// Whether it stays as it is for now.
    pub fn is_set_aside(&self) -> bool {
        self.set_aside.load(Ordering::Relaxed)
    }

    /// The newest version no longer contains it.
    pub(super) fn mark_obsolete(&self) {
        self.claim.mark_obsolete();
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.is_last()
            && let Some(table) = self.table.take()
        {
            self.claim.queue.retired.lock().push(table);
        }
    }
}

/// A blob file that is part of at least one version.
#[derive(Debug)]
pub struct BlobFile {
    /// What the MANIFEST says of it.
    pub meta: BlobFileAddition,
    /// What of it is not on the disk any longer.
    pub holes: Holes,
    /// See [`BlobFile::hold`].
    held: HeldFile,
    claim: Arc<Claim>,
}

impl BlobFile {
    /// A blob file; `queue` hears when it is no longer used.
    pub fn new(meta: BlobFileAddition, paths: &DataPaths, queue: Arc<ObsoleteFiles>) -> Self {
        let file = ObsoleteFile::blob(paths, meta.number);
        let claim = queue.claimed(meta.number).unwrap_or_else(|| Claim::new(file, queue));
        Self { meta, holes: Holes::default(), held: HeldFile::default(), claim }
    }

    /// Keeps the file open as long as any version has it: another process may remove its name.
    pub fn hold(&self, file: Arc<dyn RandomAccessFile>) {
        self.held.0.get_or_init(|| file);
    }

    /// Whether it is kept open.
    pub fn is_held(&self) -> bool {
        self.held.0.get().is_some()
    }

    /// Its number.
    #[inline]
    pub fn number(&self) -> FileNumber {
        self.meta.number
    }

    /// Its name.
    pub fn path(&self) -> PathBuf {
        self.claim.file.path()
    }

    /// The newest version no longer contains it.
    pub(super) fn mark_obsolete(&self) {
        self.claim.mark_obsolete();
    }
}

/// The claim on a blob file that is to become part of a version.
#[derive(Debug)]
pub struct BlobFileClaim {
    number: FileNumber,
    claim: Arc<Claim>,
}

impl BlobFileClaim {
    /// Claims the file of that number.
    pub fn new(number: FileNumber, paths: &DataPaths, queue: &Arc<ObsoleteFiles>) -> Self {
        let claim = Claim::new(ObsoleteFile::blob(paths, number), queue.clone());
        queue.claimed.lock().insert(number, Arc::downgrade(&claim));
        Self { number, claim }
    }

    /// The file's name.
    pub fn path(&self) -> PathBuf {
        self.claim.file.path()
    }

    /// It will not become part of one.
    pub fn give_up(&self) {
        self.claim.mark_obsolete();
    }
}

impl Drop for BlobFileClaim {
    fn drop(&mut self) {
        self.claim.queue.claimed.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
