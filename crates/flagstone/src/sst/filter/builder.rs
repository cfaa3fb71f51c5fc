//! Collects the hashes of a file's (or a partition's) keys and lays the filter out when all are there.

/// Collects keys and makes filters of them.
#[derive(Debug)]
pub struct FilterBuilder {
    hashes: Vec<u64>,
}

impl FilterBuilder {
    /// Adds a user key or a prefix. Repetitions of one of the last two added are left out, so that keys and their
    /// prefixes may alternate.
    pub fn add(&mut self, _key: &[u8]) {
        todo!()
    }

    /// How many keys and prefixes were added since the last filter.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// About how many bytes [`FilterBuilder::finish`] would return now.
    pub fn estimated_size(&self) -> usize {
        todo!()
    }

    /// How many keys a filter of about `size` bytes holds: where to cut partitions.
    pub fn keys_that_fit(&self, _size: usize) -> usize {
        todo!()
    }

    /// The filter with its metadata (empty for no keys); the builder is empty again.
    pub fn finish(&mut self) -> Vec<u8> {
        todo!()
    }
}
