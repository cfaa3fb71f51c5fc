//! Factories that make a compaction filter for each compaction.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::compaction_filter::{CompactionFilter, boxed_engine_filter};

/// Makes a filter for each part of a compaction.
pub trait CompactionFilterFactory {
    /// What it makes.
    type Filter: CompactionFilter;

    /// The filter for one part of a compaction.
    fn create(&mut self, context: CompactionFilterContext) -> Self::Filter;

    /// The name that the OPTIONS file stores.
    fn name(&self) -> &CStr;
}

/// What a factory is told about the compaction.
pub struct CompactionFilterContext {
    /// Whether all tables of the family are read.
    pub is_full_compaction: bool,
    /// Whether the program asked for the compaction.
    pub is_manual_compaction: bool,
}

/// A factory as the engine takes it. Calls take turns.
struct Shared<F> {
    name: String,
    factory: Mutex<F>,
}

impl<F> flagstone::options::CompactionFilterFactory for Shared<F>
where
    F: CompactionFilterFactory + Send + 'static,
    F::Filter: Send + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn create_compaction_filter(
        &self,
        context: &flagstone::options::CompactionFilterContext,
    ) -> Option<Box<dyn flagstone::CompactionFilter>> {
        let context = CompactionFilterContext {
            is_full_compaction: context.is_full_compaction,
            is_manual_compaction: context.is_manual_compaction,
        };
        let mut factory = self.factory.lock().unwrap_or_else(PoisonError::into_inner);
        Some(boxed_engine_filter(factory.create(context)))
    }
}

pub(crate) fn engine_factory<F>(factory: F) -> Arc<dyn flagstone::options::CompactionFilterFactory>
where
    F: CompactionFilterFactory + Send + 'static,
    F::Filter: Send + 'static,
{
    let name = factory.name().to_string_lossy().into_owned();
    Arc::new(Shared { name, factory: Mutex::new(factory) })
}
