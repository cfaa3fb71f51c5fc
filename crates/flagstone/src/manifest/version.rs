//! The files of one column family at one moment.
//!
//! **Invariants** (checked by the version builder)
//! - Level 0 is ordered newest first; its tables may overlap.
//! - Deeper levels ascend by key, and a table's largest key is below the next one's smallest, as
//!   internal keys.
//! - A blob file's links are exactly the tables that name it as their oldest.
//!
//! A version never changes: readers share it by `Arc` and need no lock.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::live::{BlobFile, TableFile};
use super::metadata::FileMetadata;
use crate::base::{Comparator, DataPaths, FileNumber, InternalKey, InternalKeyComparator};

/// A blob file as one version sees it.
#[derive(Debug, Clone)]
pub struct BlobFileState {
    /// The file, shared by all versions.
    pub file: Arc<BlobFile>,
    /// How many of its blobs are garbage.
    pub garbage_count: u64,
    /// How many of its bytes are garbage.
    pub garbage_bytes: u64,
    /// The tables whose oldest blob file this is.
    pub linked_tables: BTreeSet<FileNumber>,
}

impl BlobFileState {
    /// Whether no blob of it is in use.
    pub fn is_all_garbage(&self) -> bool {
        self.garbage_count >= self.file.meta.total_count
    }

    /// Bytes of its garbage that are not on the disk any longer.
    pub fn punched(&self) -> u64 {
        self.file.holes.punched().min(self.garbage_bytes)
    }

    /// The same, with those that only readers keep there.
    pub fn given_back(&self) -> u64 {
        self.file.holes.given_back().min(self.garbage_bytes)
    }

    /// Bytes of its garbage that take space.
    pub fn garbage_on_disk(&self) -> u64 {
        self.garbage_bytes - self.given_back()
    }

    /// Bytes of its records that take space.
    pub fn bytes_on_disk(&self) -> u64 {
        self.file.meta.total_bytes.saturating_sub(self.given_back())
    }
}

/// An immutable set of files: level 0 newest first, deeper levels by key and disjoint.
#[derive(Debug)]
pub struct Version {
    /// The order of internal keys.
    pub comparator: InternalKeyComparator,
    /// Where its files lie.
    pub paths: Arc<DataPaths>,
    /// The tables of each level. Level 0: newest first. Others: ascending by key.
    pub levels: Vec<Vec<Arc<TableFile>>>,
    /// The blob files, by number.
    pub blob_files: BTreeMap<FileNumber, BlobFileState>,
    level_bytes: Vec<u64>,
    /// For each level from 1 on, the first eight bytes of each table's largest user key, so that a
    /// search touches one array and not the tables. Empty unless keys are ordered by their bytes.
    largest_prefixes: Vec<Vec<u64>>,
}

impl Version {
    /// No files, in `num_levels` levels.
    pub fn empty(
        comparator: InternalKeyComparator,
        paths: Arc<DataPaths>,
        num_levels: usize,
    ) -> Self {
        Self::new(comparator, paths, vec![Vec::new(); num_levels], BTreeMap::new())
    }

    /// Takes files that are in order; see the invariants.
    pub(super) fn new(
        comparator: InternalKeyComparator,
        paths: Arc<DataPaths>,
        levels: Vec<Vec<Arc<TableFile>>>,
        blob_files: BTreeMap<FileNumber, BlobFileState>,
    ) -> Self {
        let bytes_of = |files: &Vec<Arc<TableFile>>| {
            files.iter().fold(0u64, |sum, file| sum.saturating_add(file.meta.size))
        };
        let level_bytes = levels.iter().map(bytes_of).collect();
        let mut largest_prefixes = Vec::new();
        if comparator.user.is_bytewise() {
            for (level, files) in levels.iter().enumerate() {
                let searched = if level == 0 { &[][..] } else { &files[..] };
                largest_prefixes.push(
                    searched.iter().map(|file| key_prefix(file.meta.largest.user_key())).collect(),
                );
            }
        }
        Self { comparator, paths, levels, blob_files, level_bytes, largest_prefixes }
    }

    /// The position in `level` (1 or deeper) of the only table that can hold `key`: the first whose
    /// largest key is not smaller. The table may still start after `key`. The level's length if
    /// there is none.
    ///
    /// Logarithmic in the number of tables of the level.
    pub fn file_index_for_key(&self, level: usize, key: InternalKey<'_>) -> usize {
        let files = &self.levels[level];
        let unsure = self.unsure_range(level, key.user_key());
        let ends_before = |file: &Arc<TableFile>| {
            self.comparator.compare(file.meta.largest.as_key(), key).is_lt()
        };
        unsure.start + files[unsure.clone()].partition_point(ends_before)
    }

    /// The tables of a level that the prefixes alone cannot place before or after `user_key`; those
    /// in front end before it, those behind end after it.
    fn unsure_range(&self, level: usize, user_key: &[u8]) -> Range<usize> {
        let Some(prefixes) = self.largest_prefixes.get(level) else {
            return 0..self.levels[level].len();
        };
        let prefix = key_prefix(user_key);
        let start = prefixes.partition_point(|&largest| largest < prefix);
        // Equal prefixes are rare: walking over them beats a second search.
        let equal = prefixes[start..].iter().take_while(|&&largest| largest == prefix).count();
        start..start + equal
    }

    /// Which tables of `level` (1 or deeper) overlap the user keys `begin..=end`; `None` is
    /// unbounded.
    pub fn overlapping_range(
        &self,
        level: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Range<usize> {
        let files = &self.levels[level];
        let user = self.comparator.keys();
        let start = begin.map_or(0, |begin| {
            files.partition_point(|file| user.compare(file.meta.largest.user_key(), begin).is_lt())
        });
        let count = end.map_or(files.len() - start, |end| {
            files[start..]
                .partition_point(|file| user.compare(file.meta.smallest.user_key(), end).is_le())
        });
        start..start + count
    }

    /// The tables of `level` that overlap the user keys `begin..=end`, in the level's order; `None`
    /// is unbounded.
    ///
    /// In level 0 every table is looked at on its own: tables that overlap only through others are
    /// not added.
    pub fn files_overlapping(
        &self,
        level: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Vec<Arc<TableFile>> {
        let files = &self.levels[level];
        if level > 0 {
            return files[self.overlapping_range(level, begin, end)].to_vec();
        }
        let user = self.comparator.keys();
        let overlaps = |file: &&Arc<TableFile>| {
            begin.is_none_or(|begin| user.compare(file.meta.largest.user_key(), begin).is_ge())
                && end.is_none_or(|end| user.compare(file.meta.smallest.user_key(), end).is_le())
        };
        files.iter().filter(overlaps).cloned().collect()
    }

    /// The bytes of the tables of `level`.
    #[inline]
    pub fn level_bytes(&self, level: usize) -> u64 {
        self.level_bytes[level]
    }

    /// The bytes of all tables.
    pub fn table_bytes(&self) -> u64 {
        self.level_bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }

    /// The bytes of tables from the deepest level up, without those that overlap one taken before:
    /// what newer tables hold are mostly newer versions of the same keys.
    pub fn disjoint_table_bytes(&self) -> u64 {
        // In the order of their keys.
        let mut chosen: Vec<&FileMetadata> = Vec::with_capacity(self.num_files());
        let before = |one: &FileMetadata, other: &FileMetadata| {
            self.comparator.compare(one.largest.as_key(), other.smallest.as_key()).is_lt()
        };
        for file in self.levels.iter().rev().flatten() {
            let meta = &file.meta;
            let at = chosen.partition_point(|other| before(other, meta));
            if chosen.get(at).is_none_or(|next| before(meta, next)) {
                chosen.insert(at, meta);
            }
        }
        chosen.iter().fold(0, |sum, meta| sum.saturating_add(meta.size))
    }

    /// The bytes of all blob records, garbage included.
    pub fn blob_bytes(&self) -> u64 {
        self.blob_files.values().fold(0, |sum, blob| sum.saturating_add(blob.file.meta.total_bytes))
    }

    /// The number of tables.
    pub fn num_files(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }

    /// All tables with their levels, level 0 first.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(level, files)| files.iter().map(move |file| (level, file)))
    }

    /// The deepest level that has a table.
    pub fn last_level_with_files(&self) -> Option<usize> {
        self.levels.iter().rposition(|files| !files.is_empty())
    }

    /// The smallest and the largest user key of all tables, if there are any.
    pub fn key_bounds(&self) -> Option<(&[u8], &[u8])> {
        let user = self.comparator.keys();
        let each = self.files().map(|(_, file)| &file.meta);
        let each = each.map(|meta| (meta.smallest.user_key(), meta.largest.user_key()));
        each.reduce(|a, b| {
            let smallest = if user.compare(b.0, a.0).is_lt() { b.0 } else { a.0 };
            (smallest, if user.compare(b.1, a.1).is_gt() { b.1 } else { a.1 })
        })
    }

    /// The largest sequence number of any table.
    pub fn largest_seqno(&self) -> u64 {
        self.files().map(|(_, file)| file.meta.largest_seqno).max().unwrap_or(0)
    }
}

/// The first eight bytes of a key as a number, zeros appended: a smaller number means a smaller
/// key.
fn key_prefix(user_key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = user_key.len().min(8);
    bytes[..count].copy_from_slice(&user_key[..count]);
    u64::from_be_bytes(bytes)
}

/// The order of level 0 by rank: newest first.
pub(super) fn newest_by_epoch(a: &FileMetadata, b: &FileMetadata) -> Ordering {
    b.epoch_number.cmp(&a.epoch_number).then_with(|| newest_by_seqno(a, b))
}

/// The order of level 0 before ranks were recorded: newest first.
pub(super) fn newest_by_seqno(a: &FileMetadata, b: &FileMetadata) -> Ordering {
    let key = |file: &FileMetadata| (file.largest_seqno, file.smallest_seqno, file.number);
    key(b).cmp(&key(a))
}

/// Whether two tables have a user key in common, as far as their bounds say.
pub(super) fn user_keys_overlap(user: &Comparator, a: &FileMetadata, b: &FileMetadata) -> bool {
    user.compare(a.smallest.user_key(), b.largest.user_key()).is_le()
        && user.compare(b.smallest.user_key(), a.largest.user_key()).is_le()
}

#[cfg(test)]
mod tests;
