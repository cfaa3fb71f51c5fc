//! Compaction filters: the program's say in which values a compaction keeps.

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

use flagstone::FilterDecision;
use flagstone::options::FilteredKind;

/// What becomes of an entry.
pub enum Decision {
    /// It stays.
    Keep,
    /// It is deleted.
    Remove,
    /// It gets this value.
    Change(&'static [u8]),
}

/// Decides about the entries of a compaction.
///
/// It is asked about values, not about merge operands. Compactions that run side by side ask one
/// after the other.
pub trait CompactionFilter {
    /// Decides about one entry. `level` is the level that the compaction begins at.
    fn filter(&mut self, level: u32, key: &[u8], value: &[u8]) -> Decision;

    /// The name that the OPTIONS file stores.
    fn name(&self) -> &CStr;
}

/// A function that can be a compaction filter: of level, key and value.
pub trait CompactionFilterFn: FnMut(u32, &[u8], &[u8]) -> Decision {}

impl<F> CompactionFilterFn for F where F: FnMut(u32, &[u8], &[u8]) -> Decision + Send + 'static {}

/// A compaction filter made of a function.
pub struct CompactionFilterCallback<F: CompactionFilterFn> {
    /// The name that the OPTIONS file stores.
    pub name: CString,
    /// The function.
    pub filter_fn: F,
}

impl<F: CompactionFilterFn> CompactionFilter for CompactionFilterCallback<F> {
    fn filter(&mut self, level: u32, key: &[u8], value: &[u8]) -> Decision {
        (self.filter_fn)(level, key, value)
    }

    fn name(&self) -> &CStr {
        &self.name
    }
}

/// A filter as the engine takes it. Calls take turns.
struct Shared<F> {
    name: String,
    filter: Mutex<F>,
}

impl<F: CompactionFilter + Send> flagstone::CompactionFilter for Shared<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        if kind != FilteredKind::Value {
            return FilterDecision::Keep;
        }
        // A filter that panicked ended that compaction; others ask it as it is now.
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        match filter.filter(level, key, value) {
            Decision::Keep => FilterDecision::Keep,
            Decision::Remove => FilterDecision::Remove,
            Decision::Change(value) => FilterDecision::ChangeValue(value.to_vec()),
        }
    }
}

fn shared<F: CompactionFilter>(filter: F) -> Shared<F> {
    let name = filter.name().to_string_lossy().into_owned();
    Shared { name, filter: Mutex::new(filter) }
}

pub(crate) fn engine_filter(
    filter: impl CompactionFilter + Send + 'static,
) -> Arc<dyn flagstone::CompactionFilter> {
    Arc::new(shared(filter))
}

pub(crate) fn boxed_engine_filter(
    filter: impl CompactionFilter + Send + 'static,
) -> Box<dyn flagstone::CompactionFilter> {
    Box::new(shared(filter))
}
