//! The files that a copy of the database consists of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::base::file_name::{self, FileKind};
use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Error, FileNumber, Result, SequenceNumber, Sometimes};
use crate::db::DbInner;
use crate::db::tree::directories;
use crate::db::writing::pipeline::ActiveWal;
use crate::manifest::StateCopy;

/// What the database consists of at one moment.
pub(in crate::db) struct Contents {
    /// Tables and blob files of the current versions, which do not change.
    pub(in crate::db) linked: Vec<PathBuf>,
    /// Blob files that the WALs name and the MANIFEST lacks.
    pub(in crate::db) growing: Vec<Copied>,
    /// The WALs that the state needs.
    pub(in crate::db) wals: Vec<Copied>,
    /// The MANIFEST with its bytes, if its file says what `state` does.
    pub(in crate::db) manifest: Option<(FileNumber, u64)>,
    pub(in crate::db) state: StateCopy,
    /// The last sequence number that readers saw then.
    pub(in crate::db) sequence: SequenceNumber,
    /// The text of the OPTIONS file; it names the families that the state has.
    pub(in crate::db) options: String,
}

/// A file that is copied up to a size.
pub(in crate::db) struct Copied {
    pub(in crate::db) source: PathBuf,
    pub(in crate::db) size: u64,
    /// Whether it may be shorter by then.
    pub(in crate::db) may_shrink: bool,
}

/// The files as of now, or of `only` one family. They stay only while deletions are paused.
pub(in crate::db) fn contents(db: &DbInner, only: Option<ColumnFamilyId>) -> Result<Contents> {
    db.pipeline.between_flushed_commits(|active| contents_with(db, only, active))
}

/// No commit happens meanwhile.
fn contents_with(
    db: &DbInner,
    only: Option<ColumnFamilyId>,
    active: Option<ActiveWal>,
) -> Result<Contents> {
    let copy = db.tree.copied_state(only, || db.options_file.text_of_copy(only));
    let linked = files_to_link(db, copy.live)?;
    let growing = |source: PathBuf| -> Result<Copied> {
        let size = db.context.env.fs.metadata(&source)?.size;
        Ok(Copied { source, size, may_shrink: true })
    };
    // Blob files of memtables still grow: the WALs name no more of them than what they have
    // now. What lies behind that, zeros and places of writes that fail, may be gone when they
    // are copied.
    let growing = copy.growing.into_iter().map(growing).collect::<Result<_>>()?;
    if !copy.wals.is_empty() {
        Sometimes::CheckpointWithOlderWals.reached();
    }
    let active = active.map(|wal| (wal.number, wal.written));
    let wals = copy.wals.into_iter().chain(active).map(|(number, size)| {
        let source = file_name::wal(&db.context.wal_directory, number);
        // Another process cuts a WAL that it has done with off behind its last record.
        Copied { source, size, may_shrink: db.context.read_only }
    });
    let wals = wals.collect();
    let sequence = db.snapshots.published.load(Ordering::Acquire);
    let (manifest, state, options) = (copy.manifest, copy.state, copy.options);
    Ok(Contents { linked, growing, wals, manifest, state, sequence, options })
}

/// The tables and blob files of the current versions, by the names that they have on the disk.
fn files_to_link(db: &DbInner, mut missing: BTreeMap<FileNumber, PathBuf>) -> Result<Vec<PathBuf>> {
    let mut linked = Vec::new();
    for (path, kind) in directories::data_files(&db.tree)? {
        if let FileKind::Table(number) | FileKind::Blob(number) = kind
            && missing.remove(&number).is_some()
        {
            linked.push(path);
        }
    }
    let Some((_, place)) = missing.pop_first() else { return Ok(linked) };
    let message = "the MANIFEST lists this file, but it is missing; flagstone check lists everything that is missing";
    Err(Error::corruption(message).at(place))
}
