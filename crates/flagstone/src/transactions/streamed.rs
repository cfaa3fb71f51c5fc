//! The values of a batch that were written piece by piece: they lie in blob files of their own, and
//! the batch and its index name them.

use std::sync::Arc;

use crate::base::{Error, Result};
use crate::db::StreamedValue;

/// The streamed values of a batch, in its order. Cheap to clone; a clone keeps the files in place.
#[derive(Debug, Clone, Default)]
pub struct StreamedValues(Arc<Vec<Arc<StreamedValue>>>);

impl StreamedValues {
    /// Adds a value. Returns what the index has for it.
    pub(super) fn push(&mut self, value: StreamedValue) -> [u8; 8] {
        let values = Arc::make_mut(&mut self.0);
        values.push(Arc::new(value));
        (values.len() as u64 - 1).to_le_bytes()
    }

    /// The place that an entry of the index names.
    pub(super) fn place(entry: &[u8]) -> usize {
        entry.try_into().map_or(usize::MAX, |place| u64::from_le_bytes(place) as usize)
    }

    /// The value at a place.
    ///
    /// # Errors
    /// `Corruption` if there is none, which cannot be.
    pub(super) fn at(&self, place: usize) -> Result<&Arc<StreamedValue>> {
        let value = self.0.get(place);
        value.ok_or_else(|| Error::corruption("the index names a streamed value that is not there"))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes back all but the first.
    pub(super) fn truncate(&mut self, len: usize) {
        if self.0.len() > len {
            Arc::make_mut(&mut self.0).truncate(len);
        }
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<StreamedValue>] {
        &self.0
    }
}
