//! The application's say in what a compaction keeps.
//!
//! A family has one filter that all its compactions share (`compaction_filter`), or a factory that
//! makes one for each (`compaction_filter_factory`) and knows what it is for; the filter goes
//! first, as in RocksDB.

use std::any::Any;

use super::ColumnFamilyId;

/// What kind of entry a filter is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilteredKind {
    /// A value; one that lies in a blob file was fetched.
    Value,
    /// A merge operand.
    MergeOperand,
    /// A wide-column entity, encoded.
    WideColumnEntity,
}

/// What becomes of an entry: the answer of a [`CompactionFilter`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays as it is.
    Keep,
    /// It becomes a deletion.
    Remove,
    /// It becomes a deletion, unless the newest versions of the key are merge operands, in whatever
    /// memtable or table they lie, or those that a snapshot sees: then it stays. Costs a lookup of
    /// the key in families with a merge operator, and one for each snapshot. A merge operand stays
    /// in any case, and so does what a replay writes ([`TableFileCreationReason::Recovery`]):
    /// operands may stand behind it in the log.
    RemoveUnlessMerged,
    /// It becomes a single deletion: allowed for a key that was written at most once.
    Purge,
    /// It becomes this value (for a merge operand: this operand). Of one that is too large for a
    /// write ([`MAX_ENTRY_SIZE`]) the log tells, with the key, and `flagstone.filter.unstorable`
    /// counts it: the entry stays as it is.
    ///
    /// [`MAX_ENTRY_SIZE`]: crate::batch::MAX_ENTRY_SIZE
    ChangeValue(Vec<u8>),
    /// It becomes this encoded wide-column entity. The same holds for one that is too large, or
    /// that nobody could read.
    ChangeEntity(Vec<u8>),
    /// It goes, and all entries of the compaction before this key with it, without a trace: older
    /// versions in deeper levels reappear. With `max_subcompactions` only those of the same part
    /// go; the filter is asked about the others.
    RemoveAndSkipUntil(Vec<u8>),
}

/// Decides which entries a compaction keeps. Several compactions may use one that is an option at
/// once; one that a factory made serves one part of one compaction. Between two entries a
/// compaction may pause until a flush has ended: between two calls a filter must hold no lock that
/// a flush's filter or merge operator takes.
///
/// A filter sees the newest version of each key, whether or not a snapshot sees it too, and merge
/// operands that no snapshot sees. It never sees deletions. Flushes ask a factory's filter only,
/// and only if the factory wants to.
pub trait CompactionFilter: Send + Sync {
    /// The name that is stored in the OPTIONS file.
    fn name(&self) -> &str;

    /// Decides about one entry. `level` is the level that the compaction begins at, as in RocksDB;
    /// 0 for flushes.
    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision;

    /// Decides about a value in a blob file without reading it; `None` asks for it to be read.
    fn filter_by_key(&self, _level: u32, _key: &[u8]) -> Option<FilterDecision> {
        None
    }
}

/// Why a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableFileCreationReason {
    /// Memtables are written.
    Flush,
    /// Tables are rewritten.
    Compaction,
    /// What was replayed from WALs is written, when the database is opened.
    Recovery,
}

/// What a [`CompactionFilterFactory`] is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionFilterContext {
    /// Whether all tables of the family are read.
    pub is_full_compaction: bool,
    /// Whether somebody asked for the compaction.
    pub is_manual_compaction: bool,
    /// The level that the compaction begins at; `None` for flushes.
    pub input_start_level: Option<u32>,
    /// The level that is written to.
    pub output_level: u32,
    /// The family.
    pub column_family_id: ColumnFamilyId,
    /// Why tables are written.
    pub reason: TableFileCreationReason,
}

/// Makes a filter for each part of a compaction, and for flushes if it wants to.
pub trait CompactionFilterFactory: Any + Send + Sync {
    /// The name that is stored in the OPTIONS file.
    fn name(&self) -> &str;

    /// As RocksDB writes it into an OPTIONS file: the name, or `{id=Name;option=value;}`.
    fn option_text(&self) -> String {
        self.name().to_string()
    }

    /// Whether tables that are written for `reason` are filtered; those of compactions are, unless
    /// it says otherwise.
    ///
    /// A flush has only the newest entries of a key at hand: what it removes becomes a deletion
    /// that goes on hiding what lies deeper.
    fn should_filter_table_file_creation(&self, reason: TableFileCreationReason) -> bool {
        reason == TableFileCreationReason::Compaction
    }

    /// The filter for one part of a compaction or for a flush; `None` filters nothing.
    fn create_compaction_filter(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>>;
}

/// A filter that keeps everything, under the name of one that is not at hand: a database whose
/// OPTIONS file names a filter can be written to without it, and the file goes on naming it.
#[derive(Debug, Clone)]
pub struct KeepEverything {
    name: String,
}

impl KeepEverything {
    /// Stands for the filter or factory called `name`.
    pub fn instead_of(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl CompactionFilter for KeepEverything {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(
        &self,
        _level: u32,
        _key: &[u8],
        _kind: FilteredKind,
        _value: &[u8],
    ) -> FilterDecision {
        FilterDecision::Keep
    }

    fn filter_by_key(&self, _level: u32, _key: &[u8]) -> Option<FilterDecision> {
        Some(FilterDecision::Keep)
    }
}

impl CompactionFilterFactory for KeepEverything {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_compaction_filter(
        &self,
        _context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        None
    }
}
