//! What entries are found by.

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// The open file, from [`super::Cache::next_file_id`].
    pub file: u64,
    /// Where in it the block or value begins.
    pub offset: u64,
}
