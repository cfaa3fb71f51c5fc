//! What a flush or compaction hands to the tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::{DataPaths, FileNumber, SequenceNumber, timestamp};
use crate::blob::GarbageDelta;
use crate::compaction::pick::DeletedRanges;
use crate::compaction::{JobCounts, KeyError};
use crate::db::family::direct_blobs::DirectFile;
use crate::manifest::{BlobFileAddition, BlobFileGarbage, FileMetadata, ObsoleteFile, VersionEdit};
use crate::sst::TableProperties;

/// The files that a job wrote, synced.
#[derive(Default)]
pub(in crate::db) struct JobOutput {
    pub(in crate::db) tables: Vec<FileMetadata>,
    /// Those of them that go to the level above the job's.
    pub(in crate::db) proximal: BTreeSet<FileNumber>,
    /// What they say of themselves, if anybody listens.
    pub(in crate::db) properties: Vec<(FileNumber, Arc<TableProperties>)>,
    /// Those of them that are opened at once: they have blocks in the block cache, or a filter that
    /// is kept for them.
    pub(in crate::db) to_open: Vec<FileNumber>,
    pub(in crate::db) blob_files: Vec<BlobFileAddition>,
    /// Blob files that were written before, and that the tables refer to.
    pub(in crate::db) direct_files: Vec<BlobFileAddition>,
    /// Blob files that were written before, and that nothing refers to.
    pub(in crate::db) unreferenced: Vec<Arc<DirectFile>>,
    pub(in crate::db) garbage: Vec<GarbageDelta>,
    /// Whole tables that these tables' range tombstones delete.
    pub(in crate::db) deleted: Vec<DeletedRanges>,
    /// Tables at the bottom that another rewriting would not change.
    pub(in crate::db) settled: Vec<FileNumber>,
    /// Whether a filter made keys go, or older versions of them come back.
    pub(in crate::db) is_filtered: bool,
    /// Whether a worker of a compaction service wrote them.
    pub(in crate::db) is_remote: bool,
    /// The first faults of keys; [`JobCounts::key_faults`] counts all.
    pub(in crate::db) key_faults: Vec<KeyError>,
    pub(in crate::db) counts: JobCounts,
    /// The timestamp before which nothing can be told apart any more, where the tables have none.
    pub(in crate::db) history_low: Option<Vec<u8>>,
}

impl JobOutput {
    /// Adds what else was written: of the keys behind these, or of another level.
    pub(in crate::db) fn absorb(&mut self, later: Self) {
        self.tables.extend(later.tables);
        self.proximal.extend(later.proximal);
        self.properties.extend(later.properties);
        self.to_open.extend(later.to_open);
        self.blob_files.extend(later.blob_files);
        self.direct_files.extend(later.direct_files);
        self.unreferenced.extend(later.unreferenced);
        self.garbage.extend(later.garbage);
        self.deleted.extend(later.deleted);
        self.settled.extend(later.settled);
        self.counts.absorb(later.counts);
        self.is_filtered |= later.is_filtered;
        self.key_faults.extend(later.key_faults);
    }

    /// Notes which tables another rewriting would not change: those at the bottom that keep
    /// sequence numbers which all snapshots see, as the oldest was `released` before the job listed
    /// them.
    pub(in crate::db) fn settle(&mut self, bottommost: bool, released: SequenceNumber) {
        let is_settled = |table: &&FileMetadata| {
            (1..released).contains(&table.largest_seqno) && !self.proximal.contains(&table.number)
        };
        let kept = self.tables.iter().filter(|_| bottommost).filter(is_settled);
        self.settled = kept.map(|table| table.number).collect();
    }

    /// What was written by the job.
    pub(in crate::db) fn files(&self, paths: &DataPaths) -> impl Iterator<Item = ObsoleteFile> {
        let table = |table: &FileMetadata| ObsoleteFile::table(paths, table.number, table.path_id);
        let blob = |blob: &BlobFileAddition| ObsoleteFile::blob(paths, blob.number);
        self.tables.iter().map(table).chain(self.blob_files.iter().map(blob))
    }

    /// Adds the files to a version edit, and from which timestamp on they can be read.
    pub(in crate::db) fn describe(&self, edit: &mut VersionEdit, level: usize) {
        // Only built-in timestamps are kept out of tables.
        let number = |low: &Option<Vec<u8>>| low.as_deref().and_then(timestamp::to_u64);
        if number(&self.history_low) > number(&edit.full_history_ts_low) {
            edit.full_history_ts_low.clone_from(&self.history_low);
        }
        for table in &self.tables {
            let is_above = self.proximal.contains(&table.number);
            edit.add_file(level - usize::from(is_above), table.clone());
        }
        edit.blob_file_additions.extend(self.blob_files.iter().chain(&self.direct_files).cloned());
        edit.blob_file_garbages.extend(self.garbage.iter().map(|delta| BlobFileGarbage {
            number: delta.number,
            count: delta.count,
            bytes: delta.bytes,
        }));
    }
}
