//! Whether something was merged onto a value that a compaction filter would remove.
//!
//! A compaction sees the newest version of a key that its inputs have. Operands may lie on it in
//! memtables, and in tables above: without the value they would come to something else. So the key
//! is looked up where the filter asks for that, as of now and as each snapshot sees it. In a replay
//! operands may still stand in the logs: what it writes keeps such values.

use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{
    CompactionFilter, FilterDecision, FilteredKind, Result, SequenceNumber, Sometimes,
    TableFileCreationReason,
};
use crate::db::family::{Family, SuperVersion};
use crate::db::jobs::Jobs;
use crate::db::jobs::job::PartFilter;
use crate::iter::Outcome;
use crate::options::ReadOptions;

/// A filter that is told what it cannot see.
pub(in crate::db) struct InformedFilter<'a> {
    pub(in crate::db) inner: &'a Jobs,
    pub(in crate::db) family: &'a Arc<Family>,
    pub(in crate::db) filter: PartFilter<'a>,
    pub(in crate::db) reason: TableFileCreationReason,
}

impl InformedFilter<'_> {
    fn inform(&self, key: &[u8], decision: FilterDecision) -> FilterDecision {
        match decision {
            FilterDecision::RemoveUnlessMerged if self.is_merged_onto(key) => {
                Sometimes::MergedOntoStale.reached();
                FilterDecision::Keep
            }
            FilterDecision::RemoveUnlessMerged => FilterDecision::Remove,
            other => other,
        }
    }

    /// Whether the newest versions of the key are operands, for anybody; also if that cannot be
    /// told.
    fn is_merged_onto(&self, key: &[u8]) -> bool {
        if self.family.options.load().merge_operator.is_none() {
            return false;
        }
        // A worker of a compaction service has no memtables.
        let is_worker = self.inner.context.read_only;
        if self.reason == TableFileCreationReason::Recovery || is_worker {
            return true;
        }
        // Not what is still being written: a snapshot may be taken meanwhile that does not see it,
        // but the operands beneath.
        let now = self.inner.snapshots.published.load(Ordering::Acquire);
        let current = self.family.current.load_full();
        let has_operands = |seen| {
            self.has_operands_on_top(&current, seen, key).unwrap_or_else(|error| {
                tracing::warn!(%error, "a value is kept because it is unknown whether something was merged onto it");
                true
            })
        };
        // Whoever takes a snapshot after these are listed sees what was there now, or what is
        // written later.
        has_operands(now) || self.inner.snapshots.sequences().into_iter().rev().any(has_operands)
    }

    fn has_operands_on_top(
        &self,
        current: &SuperVersion,
        seen: SequenceNumber,
        key: &[u8],
    ) -> Result<bool> {
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let lookup = self.inner.reader.search(&options, self.family, current, seen, key)?;
        Ok(matches!(lookup.finish(), Outcome::Merge { .. }))
    }
}

impl CompactionFilter for InformedFilter<'_> {
    fn name(&self) -> &str {
        self.filter.get().name()
    }

    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        match self.filter.get().filter(level, key, kind, value) {
            decision if kind == FilteredKind::MergeOperand => decision,
            decision => self.inform(key, decision),
        }
    }

    fn filter_by_key(&self, level: u32, key: &[u8]) -> Option<FilterDecision> {
        self.filter.get().filter_by_key(level, key).map(|decision| self.inform(key, decision))
    }
}
