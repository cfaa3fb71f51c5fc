//! The files of one column family at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::live::{BlobFile, TableFile};
use crate::base::{FileNumber, InternalKey, InternalKeyComparator};

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

/// An immutable set of files: level 0 newest first, deeper levels by key and disjoint.
#[derive(Debug)]
pub struct Version {
    /// The order of internal keys.
    pub comparator: InternalKeyComparator,
    /// The tables of each level. Level 0: newest first. Others: ascending by key.
    pub levels: Vec<Vec<Arc<TableFile>>>,
    /// The blob files, by number.
    pub blob_files: BTreeMap<FileNumber, BlobFileState>,
}

impl Version {
    /// No files, in `num_levels` levels.
    pub fn empty(comparator: InternalKeyComparator, num_levels: usize) -> Self {
        Self { comparator, levels: vec![Vec::new(); num_levels], blob_files: BTreeMap::new() }
    }

    /// The only table of `level` (1 or deeper) that can hold `key`: the first whose largest key is not smaller.
    /// The table may still start after `key`.
    ///
    /// Logarithmic in the number of tables of the level.
    pub fn file_for_key(&self, _level: usize, _key: InternalKey<'_>) -> Option<&Arc<TableFile>> {
        todo!()
    }

    /// Which tables of `level` (1 or deeper) overlap the user keys `begin..=end`; `None` is unbounded.
    pub fn overlapping_range(
        &self,
        _level: usize,
        _begin: Option<&[u8]>,
        _end: Option<&[u8]>,
    ) -> Range<usize> {
        todo!()
    }

    /// The tables of `level` that overlap the user keys `begin..=end`, in the level's order; `None` is unbounded.
    ///
    /// In level 0 every table is looked at on its own: tables that overlap only through others are not added.
    pub fn files_overlapping(
        &self,
        _level: usize,
        _begin: Option<&[u8]>,
        _end: Option<&[u8]>,
    ) -> Vec<Arc<TableFile>> {
        todo!()
    }

    /// The bytes of the tables of `level`.
    pub fn level_bytes(&self, _level: usize) -> u64 {
        todo!()
    }

    /// The bytes of all tables.
    pub fn table_bytes(&self) -> u64 {
        todo!()
    }

    /// The bytes of all blob records, garbage included.
    pub fn blob_bytes(&self) -> u64 {
        todo!()
    }

    /// The number of tables.
    pub fn num_files(&self) -> usize {
        todo!()
    }

    /// All tables with their levels, level 0 first.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.levels.iter().enumerate().flat_map(|(level, files)| files.iter().map(move |file| (level, file)))
    }

    /// The deepest level that has a table.
    pub fn last_level_with_files(&self) -> Option<usize> {
        self.levels.iter().rposition(|files| !files.is_empty())
    }
}
