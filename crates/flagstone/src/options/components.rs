//! Components: what an application supplies as code. They are not settings and have no text of their own.

/// Decides in compactions which entries to keep.
pub trait CompactionFilter: Send + Sync {
    /// The name written to the OPTIONS file.
    fn name(&self) -> &str;

    /// What becomes of `key`'s newest value when it is compacted into `level`. Only entries that no snapshot
    /// protects are asked about, and never deletions.
    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision;

    /// What becomes of a merge operand; kept unless said otherwise.
    fn filter_merge_operand(&self, _level: u32, _key: &[u8], _operand: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }
}

/// The answer of a [`CompactionFilter`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterDecision {
    /// The entry stays as it is.
    Keep,
    /// The entry goes, as if deleted.
    Remove,
    /// The entry gets this value.
    ChangeValue(Vec<u8>),
    /// The entry and all keys before this one go without a trace; older versions of them may reappear.
    RemoveAndSkipUntil(Vec<u8>),
}
