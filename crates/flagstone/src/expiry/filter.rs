//! The compaction filter that drops expired values.

use std::fmt;
use std::sync::Arc;

use super::stamp::{Lifetime, split, stamped};
use crate::base::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision,
    FilteredKind, TableFileCreationReason,
};

/// What an application filters with besides, on values without stamps.
#[derive(Clone)]
enum Inner {
    Nothing,
    Shared(Arc<dyn CompactionFilter>),
    Factory(Arc<dyn CompactionFilterFactory>),
}

/// Makes filters that drop stale values, and ask the application's filter about the others.
///
/// Merge operands are not dropped for their age (as in RocksDB): what they lie on may be younger.
/// Nor is what has no stamp.
#[derive(Clone)]
pub struct TtlCompactionFilterFactory {
    lifetime: Arc<Lifetime>,
    inner: Inner,
}

impl TtlCompactionFilterFactory {
    /// RocksDB's name.
    pub const NAME: &'static str = "TtlCompactionFilterFactory";

    /// Filters by age alone.
    pub fn new(lifetime: Arc<Lifetime>) -> Self {
        Self { lifetime, inner: Inner::Nothing }
    }

    /// Filters by age, then with the application's filter, or those of its factory. One that
    /// filters by age itself is replaced.
    #[must_use]
    pub fn over(
        lifetime: Arc<Lifetime>,
        filter: Option<Arc<dyn CompactionFilter>>,
        factory: Option<Arc<dyn CompactionFilterFactory>>,
    ) -> Self {
        let inner = match (filter, factory) {
            (Some(filter), _) => Inner::Shared(filter),
            (None, Some(factory)) => match Self::find(&*factory) {
                Some(aged) => aged.inner.clone(),
                None => Inner::Factory(factory),
            },
            (None, None) => Inner::Nothing,
        };
        Self { lifetime, inner }
    }

    /// The factory as one of this kind.
    pub fn find(factory: &dyn CompactionFilterFactory) -> Option<&Self> {
        (factory as &dyn std::any::Any).downcast_ref()
    }

    /// How long values live.
    pub fn lifetime(&self) -> &Arc<Lifetime> {
        &self.lifetime
    }
}

impl CompactionFilterFactory for TtlCompactionFilterFactory {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn option_text(&self) -> String {
        let inner = match &self.inner {
            Inner::Nothing => "nullptr".to_string(),
            Inner::Shared(filter) => filter.name().to_string(),
            Inner::Factory(factory) => factory.option_text(),
        };
        format!(
            "{{id={};user_filter_factory={inner};ttl={};}}",
            Self::NAME,
            self.lifetime.seconds()
        )
    }

    fn should_filter_table_file_creation(&self, reason: TableFileCreationReason) -> bool {
        let inner_wants = || match &self.inner {
            Inner::Factory(factory) => factory.should_filter_table_file_creation(reason),
            _ => false,
        };
        reason == TableFileCreationReason::Compaction || inner_wants()
    }

    fn create_compaction_filter(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        let inner = match &self.inner {
            Inner::Factory(factory)
                if factory.should_filter_table_file_creation(context.reason) =>
            {
                Applied::Own(factory.create_compaction_filter(context))
            }
            Inner::Shared(filter) => Applied::Shared(filter.clone()),
            Inner::Nothing | Inner::Factory(_) => Applied::Own(None),
        };
        // As of one moment, so that what a compaction does follows from its beginning. Where
        // readers are strict, one that no operand comes before which cannot be looked up yet.
        let now =
            if self.lifetime.is_strict() { self.lifetime.settled() } else { self.lifetime.now() };
        Some(Box::new(TtlCompactionFilter { lifetime: self.lifetime.clone(), now, inner }))
    }
}

impl fmt::Debug for TtlCompactionFilterFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.option_text())
    }
}

enum Applied {
    Own(Option<Box<dyn CompactionFilter>>),
    Shared(Arc<dyn CompactionFilter>),
}

struct TtlCompactionFilter {
    lifetime: Arc<Lifetime>,
    now: u64,
    inner: Applied,
}

impl TtlCompactionFilter {
    fn inner(&self) -> Option<&dyn CompactionFilter> {
        match &self.inner {
            Applied::Own(filter) => filter.as_deref(),
            Applied::Shared(filter) => Some(&**filter),
        }
    }
}

impl CompactionFilter for TtlCompactionFilter {
    fn name(&self) -> &str {
        "TtlCompactionFilter"
    }

    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, stored: &[u8]) -> FilterDecision {
        let kept = |value| match self.inner() {
            Some(inner) => inner.filter(level, key, kind, value),
            None => FilterDecision::Keep,
        };
        if kind == FilteredKind::WideColumnEntity {
            return kept(stored);
        }
        let Some((value, stamp)) = split(stored) else { return FilterDecision::Keep };
        if kind == FilteredKind::Value && self.lifetime.is_stale(stamp, self.now) {
            return if self.lifetime.is_strict() {
                // It counts for who was merged onto it while it lived.
                FilterDecision::RemoveUnlessMerged
            } else {
                FilterDecision::Remove
            };
        }
        match kept(value) {
            FilterDecision::ChangeValue(changed) => {
                FilterDecision::ChangeValue(stamped(&changed, stamp))
            }
            other => other,
        }
    }

    /// Only what the application removes is decided: the age of the rest stands in the value.
    fn filter_by_key(&self, level: u32, key: &[u8]) -> Option<FilterDecision> {
        let decision = self.inner().and_then(|inner| inner.filter_by_key(level, key));
        let removes = |decision: &FilterDecision| match decision {
            FilterDecision::Remove
            | FilterDecision::RemoveUnlessMerged
            | FilterDecision::Purge
            | FilterDecision::RemoveAndSkipUntil(_) => true,
            FilterDecision::Keep
            | FilterDecision::ChangeValue(_)
            | FilterDecision::ChangeEntity(_) => false,
        };
        match decision {
            // Where values live for ever, there is nothing to look for.
            None if self.inner().is_none() && self.lifetime.seconds() == 0 => {
                Some(FilterDecision::Keep)
            }
            decision => decision.filter(removes),
        }
    }
}
