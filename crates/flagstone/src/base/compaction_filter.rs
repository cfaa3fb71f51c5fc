//! Compaction filters: an application decides which entries a compaction keeps.
//!
//! A family has either one filter that all its compactions share (`compaction_filter`), or a
//! factory that creates one for each compaction (`compaction_filter_factory`) and knows its
//! purpose. If both are set, the filter is used, as in RocksDB.

use std::any::Any;

use super::entity::encode_unsorted;
use super::{ColumnFamilyId, Result};

/// The kind of entry passed to a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilteredKind {
    /// A value; it is fetched first if it is in a blob file.
    Value,
    /// A merge operand.
    MergeOperand,
    /// An entity, in its encoded form, which [`WideColumns::decode`](crate::WideColumns::decode)
    /// takes apart. Columns in blob files are fetched first.
    WideColumnEntity,
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterDecision {
    /// Keeps the entry.
    Keep,
    /// Replaces the entry with a deletion.
    Remove,
    /// Replaces the entry with a deletion, unless the newest versions of the key, or those that a
    /// snapshot sees, are merge operands in any memtable or table; then the entry stays. Costs a
    /// lookup of the key in families with a merge operator, and one more for each snapshot. A merge
    /// operand always stays. So does an entry written by a replay
    /// ([`TableFileCreationReason::Recovery`]), because operands may follow it in the WAL.
    RemoveUnlessMerged,
    /// Replaces the entry with a single deletion. Allowed only for a key that was written at most
    /// once.
    Purge,
    /// Replaces the value (for a merge operand: the operand). If the new value is too large for a
    /// write ([`MAX_ENTRY_SIZE`]), the entry stays unchanged, a warning names the key, and
    /// `flagstone.filter.unstorable` counts it.
    ///
    /// [`MAX_ENTRY_SIZE`]: crate::batch::MAX_ENTRY_SIZE
    ChangeValue(Vec<u8>),
    /// Replaces the entry with this encoded entity: see [`FilterDecision::change_columns`]. If it
    /// is too large or cannot be decoded, the entry stays, as for `ChangeValue`.
    ChangeEntity(Vec<u8>),
    /// Removes the entry and all entries of the compaction before this key, without leaving
    /// deletions: older versions in deeper levels reappear. With `max_subcompactions` only entries
    /// of the same part are removed; the filter is asked about the others.
    RemoveAndSkipUntil(Vec<u8>),
}

impl FilterDecision {
    /// Replaces the entry with an entity of these columns, which may come in any order.
    ///
    /// # Errors
    /// `InvalidArgument` if two columns have the same name.
    #[doc(alias = "kChangeWideColumnEntity")]
    pub fn change_columns<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        encode_unsorted(columns).map(Self::ChangeEntity)
    }
}

/// Decides which entries a compaction keeps.
///
/// A filter set as an option may be called by several compactions at once; one created by a factory
/// serves one part of one compaction. A compaction may pause between two entries until a flush has
/// ended, so between calls a filter must hold no lock that a flush's filter or merge operator
/// takes.
///
/// A filter sees the newest version of each key, even if a snapshot sees it too, and merge operands
/// that no snapshot sees. It never sees deletions. Flushes use only a factory's filter, and only if
/// the factory asks for it.
pub trait CompactionFilter: Send + Sync {
    /// Name stored in the OPTIONS file.
    fn name(&self) -> &str;

    /// Decides about one entry. `level` is the compaction's start level, as in RocksDB; 0 for
    /// flushes.
    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision;

    /// Decides about a value in a blob file without reading it; `None` to have it read first.
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

/// The circumstances passed to a [`CompactionFilterFactory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionFilterContext {
    /// Whether all tables of the family are read.
    pub is_full_compaction: bool,
    /// Whether the compaction was requested.
    pub is_manual_compaction: bool,
    /// Start level of the compaction; `None` for flushes.
    pub input_start_level: Option<u32>,
    /// Level of the output.
    pub output_level: u32,
    /// Id of the column family.
    pub column_family_id: ColumnFamilyId,
    /// Why tables are written.
    pub reason: TableFileCreationReason,
}

/// Creates a filter for each part of a compaction, and for flushes on request.
pub trait CompactionFilterFactory: Any + Send + Sync {
    /// Name stored in the OPTIONS file.
    fn name(&self) -> &str;

    /// Text stored in the OPTIONS file, in RocksDB's form: the name, or `{id=Name;option=value;}`.
    fn option_text(&self) -> String {
        self.name().to_string()
    }

    /// Whether tables written for `reason` are filtered. By default only those of compactions are.
    ///
    /// A flush has only the newest entries of a key. An entry that it removes becomes a deletion
    /// that keeps hiding older versions.
    fn should_filter_table_file_creation(&self, reason: TableFileCreationReason) -> bool {
        reason == TableFileCreationReason::Compaction
    }

    /// The filter for one part of a compaction, or for a flush; `None` filters nothing.
    fn create_compaction_filter(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>>;
}

/// A filter that keeps everything, under the name of one that is missing. It lets a program write
/// to a database whose OPTIONS file names a filter that the program does not have; the file keeps
/// the name.
#[derive(Debug, Clone)]
pub struct KeepEverything {
    name: String,
}

impl KeepEverything {
    /// Stands in for the filter or factory called `name`.
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
