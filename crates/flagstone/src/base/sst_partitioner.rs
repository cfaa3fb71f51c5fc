//! Partitioners: an application decides before which keys a compaction begins a new table.

use std::fmt;
use std::sync::Arc;

/// A place where the output of a compaction may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionRequest<'a> {
    /// The last key of the table that is being written.
    pub previous: &'a [u8],
    /// The next key; it may be the same key in an older version.
    pub current: &'a [u8],
    /// Bytes of the table so far.
    pub file_size: u64,
}

impl<'a> PartitionRequest<'a> {
    pub(crate) fn new(previous: &'a [u8], current: &'a [u8], file_size: u64) -> Self {
        Self { previous, current, file_size }
    }
}

/// What a partitioner is created for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionerContext {
    /// Whether the compaction reads all tables of the family.
    pub is_full_compaction: bool,
    /// Whether a caller asked for the compaction.
    pub is_manual_compaction: bool,
    /// Level that the tables are written to.
    pub output_level: usize,
    /// Smallest key of the compaction.
    pub smallest: Vec<u8>,
    /// Largest key of the compaction.
    pub largest: Vec<u8>,
}

impl PartitionerContext {
    pub(crate) fn new(
        (is_full_compaction, is_manual_compaction): (bool, bool),
        output_level: usize,
        smallest: &[u8],
        largest: &[u8],
    ) -> Self {
        let (smallest, largest) = (smallest.to_vec(), largest.to_vec());
        Self { is_full_compaction, is_manual_compaction, output_level, smallest, largest }
    }
}

/// Decides where the tables of one compaction, or of one of its parts, are cut. Tables may also end
/// elsewhere. Must not call the database: some calls come with a lock held.
pub trait SstPartitioner: Send {
    /// Whether a new table begins with `request.current`. Asked for each key but the first of a
    /// table. Tables of level 0 are never cut.
    fn should_partition(&mut self, request: &PartitionRequest<'_>) -> bool;

    /// Whether a table with these smallest and largest keys may move to the next level as it is.
    /// Otherwise it is rewritten.
    fn can_do_trivial_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool;
}

/// Creates a partitioner for each compaction of a column family.
pub trait SstPartitionerFactory: Send + Sync {
    /// The name.
    fn name(&self) -> &str;

    /// A partitioner; `None` if the tables of this compaction may end anywhere.
    fn create(&self, context: &PartitionerContext) -> Option<Box<dyn SstPartitioner>>;

    /// The text in an OPTIONS file: the name, or `{id=NAME;setting=value;}`.
    fn option_text(&self) -> String {
        self.name().to_string()
    }
}

impl fmt::Debug for dyn SstPartitionerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.option_text())
    }
}

/// Begins a new table where the first `length` bytes of the key change, like RocksDB's factory of
/// that name. Tables of one prefix can then be removed or moved without those of others.
///
/// ```
/// use std::sync::Arc;
///
/// use flagstone::{ColumnFamilyOptions, SstPartitionerFixedPrefixFactory};
///
/// let mut options = ColumnFamilyOptions::default();
/// options.sst_partitioner_factory = Some(Arc::new(SstPartitionerFixedPrefixFactory::new(4)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SstPartitionerFixedPrefixFactory {
    length: usize,
}

impl SstPartitionerFixedPrefixFactory {
    /// RocksDB's name of it.
    pub const NAME: &str = "SstPartitionerFixedPrefixFactory";

    /// A factory for prefixes of `length` bytes. A shorter key is its own prefix.
    pub fn new(length: usize) -> Self {
        Self { length }
    }

    /// Bytes of a prefix.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl SstPartitionerFactory for SstPartitionerFixedPrefixFactory {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn create(&self, _context: &PartitionerContext) -> Option<Box<dyn SstPartitioner>> {
        Some(Box::new(*self))
    }

    fn option_text(&self) -> String {
        format!("{{id={};length={};}}", Self::NAME, self.length)
    }
}

impl SstPartitioner for SstPartitionerFixedPrefixFactory {
    fn should_partition(&mut self, request: &PartitionRequest<'_>) -> bool {
        !self.can_do_trivial_move(request.previous, request.current)
    }

    fn can_do_trivial_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool {
        let length = |key: &[u8]| key.len().min(self.length);
        smallest[..length(smallest)] == largest[..length(largest)]
    }
}

/// The partitioner's factory of a column family, if it has one.
pub type Partitioning = Option<Arc<dyn SstPartitionerFactory>>;
