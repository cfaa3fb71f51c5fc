//! The application's say in what a compaction keeps.

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
    /// It becomes a single deletion: allowed for a key that was written at most once.
    Purge,
    /// It becomes this value (for a merge operand: this operand).
    ChangeValue(Vec<u8>),
    /// It becomes this encoded wide-column entity.
    ChangeEntity(Vec<u8>),
    /// It goes, and all entries of the compaction before this key with it, without a trace: older versions in deeper levels
    /// reappear. With `max_subcompactions` only those of the same part go; the filter is asked about the others.
    RemoveAndSkipUntil(Vec<u8>),
}

/// Decides which entries a compaction keeps. Several compactions may use it at once.
///
/// A filter sees the newest version of each key, whether or not a snapshot sees it too, and merge operands that no
/// snapshot sees. It never sees deletions, and flushes do not ask it.
pub trait CompactionFilter: Send + Sync {
    /// The name that is stored in the OPTIONS file.
    fn name(&self) -> &str;

    /// Decides about one entry of the input; `level` is the level being written to.
    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision;

    /// Decides about a value in a blob file without reading it; `None` asks for it to be read.
    fn filter_by_key(&self, _level: u32, _key: &[u8]) -> Option<FilterDecision> {
        None
    }
}
