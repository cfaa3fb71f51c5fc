//! The tables of a level, or some of them, for cursors that open them as they come to them.

use std::sync::Arc;

use crate::base::{FragmentedRangeTombstones, InternalKey, Result, TruncatedRangeTombstones};
use crate::db::background::io_limit::Limit;
use crate::db::family::Family;
use crate::db::tables::{Tables, tombstones_of};
use crate::env::ReadAhead;
use crate::iter::{FileOpener, LevelTombstones, SortedFiles};
use crate::manifest::{TableFile, Version};
use crate::sst::{IterSettings, TableIterator};

/// Sorted, disjoint tables, opened as a cursor reaches them. Keeps them alive.
pub(in crate::db) struct LevelFiles {
    tables: Arc<Tables>,
    family: Arc<Family>,
    files: FileList,
    settings: IterSettings,
    /// Boxed: most cursors read through nothing but their tables.
    through: Option<Box<ReadThrough>>,
}

/// How a compaction reads its inputs ahead: through files of its own, if either is so.
#[derive(Clone)]
pub(in crate::db) struct ReadThrough {
    /// Around the system's cache.
    pub(in crate::db) directly: bool,
    /// As fast as this allows.
    pub(in crate::db) limit: Option<Limit>,
    /// Who fetches what comes next meanwhile.
    pub(in crate::db) ahead: Option<Arc<ReadAhead>>,
}

/// Which tables: not copied where they are a whole level, since cursors are made often.
pub(in crate::db) enum FileList {
    WholeLevel(Arc<Version>, usize),
    Chosen(Vec<Arc<TableFile>>),
}

impl FileList {
    fn as_slice(&self) -> &[Arc<TableFile>] {
        match self {
            Self::WholeLevel(version, level) => &version.levels[*level],
            Self::Chosen(files) => files,
        }
    }
}

impl LevelFiles {
    pub(in crate::db) fn new(
        tables: Arc<Tables>,
        family: Arc<Family>,
        files: FileList,
        settings: IterSettings,
    ) -> Self {
        Self { tables, family, files, settings, through: None }
    }

    /// Reads ahead through files opened for that.
    pub(in crate::db) fn reading_through(self, through: ReadThrough) -> Self {
        Self { through: Some(Box::new(through)), ..self }
    }
}

impl SortedFiles for LevelFiles {
    fn len(&self) -> usize {
        self.files.as_slice().len()
    }

    fn smallest(&self, index: usize) -> InternalKey<'_> {
        self.files.as_slice()[index].meta.smallest.as_key()
    }

    fn largest(&self, index: usize) -> InternalKey<'_> {
        self.files.as_slice()[index].meta.largest.as_key()
    }
}

impl FileOpener for LevelFiles {
    type Cursor = TableIterator;

    fn open(&self, index: usize) -> Result<TableIterator> {
        self.tables.iterate(
            &self.family,
            &self.files.as_slice()[index],
            &self.settings,
            self.through.as_deref(),
        )
    }
}

impl LevelTombstones for LevelFiles {
    fn tombstones(&self, index: usize) -> Result<Option<TruncatedRangeTombstones>> {
        let file = &self.files.as_slice()[index];
        let table = self.tables.open_for(&self.family, file, self.settings.read.cache_only)?;
        Ok(tombstones_of(table).map(|tombstones| truncated(tombstones, file)))
    }
}

/// A table's tombstones cut to the table's bounds: its neighbours may have dropped their part
/// already.
pub(in crate::db) fn truncated(
    tombstones: &Arc<FragmentedRangeTombstones>,
    file: &TableFile,
) -> TruncatedRangeTombstones {
    tombstones.truncated(file.meta.smallest.as_key(), file.meta.largest.as_key())
}
