//! Merge operators and compaction filters that are closures.

use std::sync::Arc;

use crate::base::{CompactionFilter, FilterDecision, FilteredKind, MergeOperator};
use crate::options::ColumnFamilyOptions;

/// What a closure merges to: see [`ColumnFamilyOptions::merge_with`].
type Merge = dyn Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync;

/// What a closure decides of a value: see [`ColumnFamilyOptions::filter_with`].
type Filter = dyn Fn(&[u8], &[u8]) -> FilterDecision + Send + Sync;

struct MergeClosure {
    name: String,
    merge: Box<Merge>,
}

impl MergeOperator for MergeClosure {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        (self.merge)(key, existing, operands)
    }
}

struct FilterClosure {
    name: String,
    filter: Box<Filter>,
}

impl CompactionFilter for FilterClosure {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, _level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        match kind {
            FilteredKind::Value => (self.filter)(key, value),
            _ => FilterDecision::Keep,
        }
    }
}

impl ColumnFamilyOptions {
    /// Merges with a closure. It is given the key, the value before the operands, if there is one,
    /// and the operands from the oldest to the newest; it returns the new value, or `None` where
    /// the operands make no sense, which is then an error of the read (`Corruption`).
    ///
    /// `name` goes to the OPTIONS file and to each table. Nothing checks it: another operator would
    /// merge the operands of this one wrongly.
    ///
    /// RocksDB's operators need no closure. `set("merge_operator", NAME)` takes `uint64add`,
    /// `put`, `max`, `stringappend` and what else [`ColumnFamilyOptions::set`] knows.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// let db = flagstone::Db::builder(path)
    ///     .column_family("longest", |family| {
    ///         family.merge_with("longest", |_key, existing, operands| {
    ///             let all = existing.into_iter().chain(operands.iter().copied());
    ///             all.max_by_key(|word| word.len()).map(<[u8]>::to_vec)
    ///         });
    ///     })
    ///     .open()?;
    /// let longest = db.column_family("longest")?;
    /// longest.merge("animal", "cat")?;
    /// longest.merge("animal", "elephant")?;
    /// assert_eq!(longest.get("animal")?.unwrap(), "elephant");
    /// # Ok(())
    /// # }
    /// ```
    pub fn merge_with(
        &mut self,
        name: impl Into<String>,
        merge: impl Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> &mut Self {
        self.merge_operator =
            Some(Arc::new(MergeClosure { name: name.into(), merge: Box::new(merge) }));
        self
    }

    /// Has compactions ask a closure of each value that they rewrite whether it stays. It is given
    /// key and value. Merge operands and wide-column entities are kept without asking it.
    ///
    /// `name` goes to the OPTIONS file.
    pub fn filter_with(
        &mut self,
        name: impl Into<String>,
        filter: impl Fn(&[u8], &[u8]) -> FilterDecision + Send + Sync + 'static,
    ) -> &mut Self {
        self.compaction_filter =
            Some(Arc::new(FilterClosure { name: name.into(), filter: Box::new(filter) }));
        self
    }
}
