//! Collectors of table properties: an application looks at each entry of a table as it is written,
//! and adds properties of its own to the table.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::{ColumnFamilyId, Result, SequenceNumber, ValueType};

/// The kind of an entry in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A value.
    Put,
    /// A deletion.
    Delete,
    /// A single deletion.
    SingleDelete,
    /// A merge operand.
    Merge,
    /// A range deletion. The key is where it begins, the value where it ends.
    RangeDelete,
    /// The address of a value in a blob file.
    BlobIndex,
    /// A deletion with a timestamp.
    DeleteWithTimestamp,
    /// An entity, in its encoded form.
    WideColumnEntity,
    /// A value with the time when it was written.
    TimedPut,
}

impl EntryKind {
    /// The kind of an entry of this type.
    pub(crate) fn of(kind: ValueType) -> Self {
        match kind {
            ValueType::Value => Self::Put,
            ValueType::Deletion => Self::Delete,
            ValueType::SingleDeletion => Self::SingleDelete,
            ValueType::Merge => Self::Merge,
            ValueType::RangeDeletion => Self::RangeDelete,
            ValueType::BlobIndex => Self::BlobIndex,
            ValueType::DeletionWithTimestamp => Self::DeleteWithTimestamp,
            ValueType::WideColumnEntity => Self::WideColumnEntity,
            ValueType::ValuePreferredSeqno => Self::TimedPut,
        }
    }

    /// Whether it deletes one key.
    pub fn is_point_deletion(self) -> bool {
        matches!(self, Self::Delete | Self::SingleDelete | Self::DeleteWithTimestamp)
    }
}

/// An entry that is written to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectedEntry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// What it is.
    pub kind: EntryKind,
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// Bytes of the file so far. Blocks that are being compressed are not included.
    pub file_size: u64,
}

impl<'a> CollectedEntry<'a> {
    pub(crate) fn new(
        (key, value): (&'a [u8], &'a [u8]),
        kind: EntryKind,
        sequence: SequenceNumber,
        file_size: u64,
    ) -> Self {
        Self { key, value, kind, sequence, file_size }
    }
}

/// What a table is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectorContext {
    /// Id of the column family; `None` for a table written outside of a database that names none.
    pub family: Option<ColumnFamilyId>,
    /// Level that the table is written to; `None` for a table written outside of a database.
    pub level: Option<usize>,
}

impl CollectorContext {
    pub(crate) fn new(family: Option<ColumnFamilyId>, level: Option<usize>) -> Self {
        Self { family, level }
    }
}

/// Properties by name.
pub type UserProperties = BTreeMap<Vec<u8>, Vec<u8>>;

/// Looks at the entries of one table and gives it properties. Calls come one at a time, from the
/// thread that writes the table. It must not call the database.
///
/// After an error or a panic the collector is not called any more: the table gets none of its
/// properties, and the error is reported to `tracing`.
pub trait TablePropertiesCollector: Send {
    /// The table gets this entry. Entries come in order; range deletions come after all others.
    ///
    /// # Errors
    /// Any error ends the collection.
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()>;

    /// A data block is complete. It has this many bytes uncompressed.
    fn block_add(&mut self, _bytes: u64) {}

    /// The table is complete. Returns its properties. Their names must not begin with `rocksdb.` or
    /// `flagstone.`, and together they may have 16 MiB.
    ///
    /// # Errors
    /// Any error: the table gets none of the properties.
    fn finish(&mut self) -> Result<UserProperties>;

    /// Whether the table should be compacted soon. Asked after `finish`.
    fn need_compact(&self) -> bool {
        false
    }
}

/// Creates a collector for each table of a column family, whether a flush, a compaction, an
/// [`SstFileWriter`](crate::SstFileWriter) or a salvage writes it. A panic counts as no collector.
pub trait TablePropertiesCollectorFactory: Send + Sync {
    /// The name. Tables list the names of the factories that were set when they were written.
    fn name(&self) -> &str;

    /// A collector for a table; `None` if it needs none.
    fn create(&self, context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>>;

    /// The text in an OPTIONS file: the name, or `{id=NAME;setting=value;}`.
    fn option_text(&self) -> String {
        self.name().to_string()
    }

    /// The text in the info log.
    fn description(&self) -> String {
        self.name().to_string()
    }
}

/// The factories of a column family.
#[derive(Clone, Default)]
pub struct CollectorFactories(pub Vec<Arc<dyn TablePropertiesCollectorFactory>>);

impl fmt::Debug for CollectorFactories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|factory| factory.option_text())).finish()
    }
}

/// Marks tables with many deletions for compaction, like RocksDB's factory of that name. Range
/// deletions do not count.
///
/// ```
/// use std::sync::Arc;
///
/// use flagstone::{ColumnFamilyOptions, CompactOnDeletionCollectorFactory};
///
/// let mut options = ColumnFamilyOptions::default();
/// // A table with 50 deletions among 100 neighbors is compacted soon.
/// let factory = CompactOnDeletionCollectorFactory::new(100, 50);
/// options.table_properties_collectors.0.push(Arc::new(factory));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactOnDeletionCollectorFactory {
    /// Number of consecutive entries in a window, rounded up to a multiple of 128; 0 for no
    /// windows.
    pub window_size: u64,
    /// Deletions among these from which on the table is marked.
    pub deletion_trigger: u64,
    /// Ratio of deletions to all entries from which on the table is marked, up to 1; 0 for never.
    pub deletion_ratio: f64,
    /// Bytes below which a table is not marked.
    pub min_file_size: u64,
}

impl CompactOnDeletionCollectorFactory {
    /// RocksDB's name of it.
    pub const NAME: &str = "CompactOnDeletionCollector";

    /// A factory that only looks at windows of `window_size` entries.
    pub fn new(window_size: u64, deletion_trigger: u64) -> Self {
        Self { window_size, deletion_trigger, deletion_ratio: 0.0, min_file_size: 0 }
    }
}

impl TablePropertiesCollectorFactory for CompactOnDeletionCollectorFactory {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn create(&self, _context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>> {
        Some(Box::new(CompactOnDeletion::new(*self)))
    }

    fn description(&self) -> String {
        let Self { window_size, deletion_trigger, deletion_ratio, .. } = self;
        format!(
            "{} (Sliding window size = {window_size} Deletion trigger = {deletion_trigger} \
             Deletion ratio = {deletion_ratio})",
            Self::NAME
        )
    }

    fn option_text(&self) -> String {
        let Self { window_size, deletion_trigger, deletion_ratio, min_file_size } = self;
        format!(
            "{{id={};window_size={window_size};deletion_trigger={deletion_trigger};deletion_ratio={deletion_ratio:.6};\
             min_file_size={min_file_size};}}",
            Self::NAME
        )
    }
}

/// Parts of a window: it moves on by one of them.
const BUCKETS: usize = 128;

struct CompactOnDeletion {
    rule: CompactOnDeletionCollectorFactory,
    /// Deletions in each bucket of the window; the last is being filled.
    buckets: VecDeque<u64>,
    in_last_bucket: u64,
    in_window: u64,
    most_in_window: u64,
    entries: u64,
    deletions: u64,
    file_size: u64,
    is_marked: bool,
}

impl CompactOnDeletion {
    fn new(rule: CompactOnDeletionCollectorFactory) -> Self {
        Self {
            rule,
            buckets: VecDeque::from([0]),
            in_last_bucket: 0,
            in_window: 0,
            most_in_window: 0,
            entries: 0,
            deletions: 0,
            file_size: 0,
            is_marked: false,
        }
    }

    fn move_window(&mut self, is_deletion: bool) {
        if self.in_last_bucket == self.rule.window_size.div_ceil(BUCKETS as u64) {
            if self.buckets.len() == BUCKETS {
                self.in_window -= self.buckets.pop_front().unwrap_or(0);
            }
            self.buckets.push_back(0);
            self.in_last_bucket = 0;
        }
        self.in_last_bucket += 1;
        if is_deletion {
            self.in_window += 1;
            if let Some(last) = self.buckets.back_mut() {
                *last += 1;
            }
            self.most_in_window = self.most_in_window.max(self.in_window);
        }
    }
}

impl TablePropertiesCollector for CompactOnDeletion {
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()> {
        let is_deletion = entry.kind.is_point_deletion();
        self.entries += 1;
        self.deletions += u64::from(is_deletion);
        self.file_size = entry.file_size;
        if self.rule.window_size > 0 && !self.is_marked {
            self.move_window(is_deletion);
            self.is_marked = self.most_in_window >= self.rule.deletion_trigger
                && entry.file_size >= self.rule.min_file_size;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<UserProperties> {
        let ratio = self.rule.deletion_ratio;
        if ratio > 0.0 && ratio <= 1.0 && self.entries > 0 {
            self.is_marked |= self.file_size >= self.rule.min_file_size
                && self.deletions as f64 / self.entries as f64 >= ratio;
        }
        Ok(UserProperties::new())
    }

    fn need_compact(&self) -> bool {
        self.is_marked
    }
}

#[cfg(test)]
mod tests;
