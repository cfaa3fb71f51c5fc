//! Components of an application's own that change nothing but the way through the engine.

use std::cmp::Ordering;
use std::sync::Arc;

use flagstone::base::{Comparator, Result, UserComparator};
use flagstone::options::{
    ColumnFamilyOptions, CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision,
    FilteredKind, TableFileCreationReason,
};

/// Sets an option of a family; besides the engine's own, `comparator`, `compaction_filter` and its factory may be ours.
///
/// # Errors
/// As [`ColumnFamilyOptions::set`].
pub fn set(options: &mut ColumnFamilyOptions, name: &str, value: &str) -> Result<()> {
    match (name, value) {
        ("comparator", PlainOrder::NAME) => options.comparator = Comparator::Custom(Arc::new(PlainOrder)),
        ("compaction_filter", "nullptr") => options.compaction_filter = None,
        ("compaction_filter", SameAgain::NAME) => options.compaction_filter = Some(Arc::new(SameAgain)),
        ("compaction_filter_factory", "nullptr") => options.compaction_filter_factory = None,
        ("compaction_filter_factory", SameAgain::NAME) => {
            options.compaction_filter_factory = Some(Arc::new(SameAgain));
        }
        _ => return options.set(name, value),
    }
    Ok(())
}

/// The order of bytes, which the engine cannot know it to be.
struct PlainOrder;

impl PlainOrder {
    const NAME: &'static str = "testkit.PlainOrder";
}

impl UserComparator for PlainOrder {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

/// Keeps all values, of which it lets some be written anew and some be read in vain.
struct SameAgain;

impl SameAgain {
    const NAME: &'static str = "testkit.SameAgain";
}

impl CompactionFilter for SameAgain {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn filter(&self, _level: u32, key: &[u8], _kind: FilteredKind, value: &[u8]) -> FilterDecision {
        match key.last() {
            Some(last) if last % 2 == 0 => FilterDecision::ChangeValue(value.to_vec()),
            _ => FilterDecision::Keep,
        }
    }

    fn filter_by_key(&self, _level: u32, key: &[u8]) -> Option<FilterDecision> {
        (key.last().is_some_and(|last| last % 3 == 0)).then_some(FilterDecision::Keep)
    }
}

/// As a factory, it filters flushes and recovery, too.
impl CompactionFilterFactory for SameAgain {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn should_filter_table_file_creation(&self, _reason: TableFileCreationReason) -> bool {
        true
    }

    fn create_compaction_filter(
        &self,
        _context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        Some(Box::new(Self))
    }
}
