//! A write batch with an index over its operations.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use crate::base::{
    ColumnFamilyId, Comparator, Error, InternalIterator, InternalKeyComparator, MergeOperator,
    Result, SequenceNumber, ValueType, WideColumns,
};
use crate::batch::WriteBatch;
use crate::db::{ColumnFamily, Db, StreamedValue, Value};
use crate::memtable::{MemTable, MemTableIterator, MemTableSettings};
use crate::options::ReadOptions;
use crate::transactions::delta::{Counting, Delta, decoded};
use crate::transactions::overlaid::OverlaidIter;
use crate::transactions::overlay::Overlay;
use crate::transactions::streamed::StreamedValues;

/// A [`WriteBatch`] that can be read before it is written: by itself, and as if it lay over a
/// database.
///
/// It takes the memory of its operations twice, once as they will be written and once in the index.
/// Reading one key costs a search among the operations; a batch does not become slower to write.
///
/// Range deletions are refused (`NotSupported`), as in RocksDB.
///
/// ```
/// use flagstone::transactions::WriteBatchWithIndex;
///
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let mut options = flagstone::Options::default();
/// # options.create_if_missing = true;
/// let db = flagstone::db::Db::open(directory.path(), &options)?;
/// db.put("ada", "1815")?;
/// db.put("alan", "1912")?;
/// let people = db.default_column_family();
///
/// let mut batch = WriteBatchWithIndex::new();
/// batch.put(people, "grace", "1906")?;
/// batch.delete(people, "alan")?;
/// let options = flagstone::ReadOptions::default();
/// assert_eq!(batch.get_from_batch_and_db(&db, people, "grace", &options)?.unwrap(), "1906");
/// assert!(batch.get_from_batch_and_db(&db, people, "alan", &options)?.is_none());
///
/// let mut all = batch.iter_over(&db, people, &options)?;
/// all.seek_to_first();
/// assert_eq!(all.key(), b"ada");
/// all.next();
/// assert_eq!(all.key(), b"grace");
///
/// db.write(batch.into_batch())?;
/// assert!(db.get("alan")?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct WriteBatchWithIndex {
    pub(super) batch: WriteBatch,
    indexes: BTreeMap<ColumnFamilyId, Arc<MemTable>>,
    counting: Counting,
    streamed: StreamedValues,
    /// When the save points were set: the number of the next operation, and how many values were
    /// streamed.
    save_points: Vec<(SequenceNumber, usize)>,
    /// New operations are written and not seen by reads.
    is_unindexed: bool,
}

/// What a batch alone says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InBatch<T = Vec<u8>> {
    /// Nothing.
    Absent,
    /// It deletes the key.
    Deleted,
    /// It sets the key, perhaps by a merge.
    Value(T),
    /// It merges operands into a value that it does not have (RocksDB's `MergeInProgress`).
    MergeInProgress,
}

/// An operation of a batch, as [`WriteBatchWithIndex::entries`] shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchEntry {
    /// Sets the key.
    Put(Vec<u8>),
    /// Sets the key to an entity.
    PutEntity(WideColumns),
    /// Merges an operand.
    Merge(Vec<u8>),
    /// Deletes the key.
    Delete,
    /// Deletes the key, which was put at most once.
    SingleDelete,
    /// Sets the key to a value that was written piece by piece.
    Streamed,
}

impl WriteBatchWithIndex {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. The batch is then unchanged, as after all errors of the operations
    /// below.
    pub fn put(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.batch.put_cf(family, key, value)?;
        self.index(family, ValueType::Value, key, value);
        Ok(())
    }

    /// Sets the key of a streamed value to that value. Only a write that is given the
    /// [`WriteBatchWithIndex::streamed`] values takes the batch then.
    pub(crate) fn put_streamed(
        &mut self,
        family: &ColumnFamily,
        value: StreamedValue,
    ) -> Result<()> {
        let key = value.key().to_vec();
        self.batch.put_blob_index(family.id(), &key, value.index())?;
        let entry = self.streamed.push(value);
        self.index(family, ValueType::BlobIndex, &key, &entry);
        Ok(())
    }

    /// The values that were written piece by piece.
    pub(crate) fn streamed(&self) -> &StreamedValues {
        &self.streamed
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.batch.delete_cf(family, key)?;
        self.index(family, ValueType::Deletion, key, &[]);
        Ok(())
    }

    /// Deletes `key`, which was put at most once since it was last deleted, and never merged.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.batch.single_delete_cf(family, key)?;
        self.index(family, ValueType::SingleDeletion, key, &[]);
        Ok(())
    }

    /// Adds an operand for the family's merge operator to `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]; `InvalidArgument` if the family has no merge operator.
    pub fn merge(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        if family.options().merge_operator.is_none() {
            let message = format!("column family '{}' has no merge operator", family.name());
            return Err(Error::invalid_argument(message));
        }
        self.merge_unresolved(family, key, operand)
    }

    /// As [`WriteBatchWithIndex::merge`], also into a family that has no merge operator now: reads
    /// of the key fail then.
    pub(crate) fn merge_unresolved(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        self.batch.merge_cf(family, key, operand)?;
        self.index(family, ValueType::Merge, key, operand);
        Ok(())
    }

    /// Refused: who reads a key of the batch would have to look through all ranges.
    ///
    /// # Errors
    /// `NotSupported`, always.
    pub fn delete_range(
        &mut self,
        _family: &ColumnFamily,
        _begin: impl AsRef<[u8]>,
        _end: impl AsRef<[u8]>,
    ) -> Result<()> {
        Err(Error::not_supported(
            "a batch with an index takes no range deletions; delete the keys, or use a plain batch",
        ))
    }

    /// Adds bytes that go to the WAL and nowhere else.
    ///
    /// # Errors
    /// As [`WriteBatch::put_log_data`].
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.batch.put_log_data(data)
    }

    /// As [`WriteBatch::set_max_bytes`].
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.batch.set_max_bytes(bytes);
    }

    /// Whether operations that are added from now on are indexed. Reads do not see the others.
    pub(crate) fn set_indexed(&mut self, is_indexed: bool) {
        self.is_unindexed = !is_indexed;
    }

    /// Gives the operations of some families this timestamp, as [`WriteBatch::set_timestamps`]
    /// does. The batch is read by keys without timestamps, before and afterwards.
    ///
    /// # Errors
    /// As [`WriteBatch::set_timestamps`].
    pub fn set_timestamps(
        &mut self,
        stamp: impl AsRef<[u8]>,
        size_of: impl Fn(ColumnFamilyId) -> usize,
    ) -> Result<()> {
        self.batch.set_timestamps(stamp, size_of)
    }

    /// Remembers the present state for [`WriteBatchWithIndex::rollback_to_save_point`]; save points
    /// nest.
    pub fn set_save_point(&mut self) {
        self.batch.set_save_point();
        self.save_points.push((self.next_number(), self.streamed.len()));
    }

    /// Removes everything added since the latest save point, and the save point. The cost does not
    /// depend on how much that is; the memory of the index is kept.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        self.batch.rollback_to_save_point()?;
        if let Some((number, streamed)) = self.save_points.pop() {
            self.counting.undo_from(number);
            self.streamed.truncate(streamed);
        }
        Ok(())
    }

    /// Removes the latest save point and keeps what was added since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.batch.pop_save_point()?;
        self.save_points.pop();
        Ok(())
    }

    /// Removes all operations and save points.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.indexes.clear();
        self.counting = Counting::default();
        self.streamed = StreamedValues::default();
        self.save_points.clear();
    }

    /// How many operations it has.
    pub fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Whether there is nothing in it, not even log data.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Bytes of memory that it takes, index included.
    pub fn memory_usage(&self) -> usize {
        let indexes: usize = self.indexes.values().map(|index| index.memory_reserved()).sum();
        self.batch.memory_usage() + indexes
    }

    /// The operations, as they will be written.
    pub fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// The operations, for a write. It must not change which there are.
    pub(crate) fn batch_mut(&mut self) -> &mut WriteBatch {
        &mut self.batch
    }

    /// The batch, to be written.
    pub fn into_batch(self) -> WriteBatch {
        self.batch
    }

    /// What the batch alone says of `key`.
    ///
    /// # Errors
    /// What the family's merge operator makes of its operands; `InvalidArgument` if the family's
    /// keys have another order than those of the batch.
    pub fn get(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<InBatch> {
        let key = key.as_ref();
        let delta = self.overlay(family)?.delta(key).loaded(&self.streamed)?;
        in_batch(delta, key, family.options().merge_operator.as_deref())
    }

    /// The value that `key` would have if the batch were written. `options.snapshot` says as of
    /// when the database is read; the batch is always read as it is.
    ///
    /// # Errors
    /// As [`Db::get_with`] and [`WriteBatchWithIndex::get`].
    pub fn get_from_batch_and_db(
        &self,
        db: &Db,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Value>> {
        self.overlay(family)?.get(db, options, family, key)
    }

    /// The values that several keys would have, all as of one moment; in the order of the keys.
    ///
    /// # Errors
    /// `InvalidArgument` as [`WriteBatchWithIndex::get`]; each key has an error of its own, too.
    pub fn multi_get_from_batch_and_db<K: AsRef<[u8]>>(
        &self,
        db: &Db,
        family: &ColumnFamily,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<Value>>>> {
        Ok(self.overlay(family)?.multi_get(db, options, family, keys))
    }

    /// A cursor over the family as it would be if the batch were written.
    ///
    /// # Errors
    /// As [`Db::iter_cf`] and [`WriteBatchWithIndex::get`].
    #[track_caller]
    pub fn iter_over(
        &self,
        db: &Db,
        family: &ColumnFamily,
        options: &ReadOptions,
    ) -> Result<OverlaidIter> {
        self.overlay(family)?.iter(db, options, family)
    }

    /// The operations on the keys of a family, in the order of the keys; those on one key from the
    /// newest to the oldest.
    ///
    /// # Errors
    /// `InvalidArgument` if the family's keys have another order than those of the batch.
    pub fn entries(&self, family: &ColumnFamily) -> Result<BatchEntries> {
        let mut entries = self.index_of(family)?.map(|index| index.iter());
        if let Some(entries) = &mut entries {
            entries.seek_to_first();
        }
        Ok(BatchEntries { entries, counting: self.counting.clone() })
    }

    /// What the batch says of the default family, whose keys it has in its own order.
    pub(super) fn default_overlay(&self) -> Overlay {
        let index = self.indexes.get(&ColumnFamilyId::DEFAULT).cloned();
        Overlay::new(index, self.counting.clone(), self.streamed.clone())
    }

    /// What the batch says of `key` in the default family, without its streamed values.
    pub(super) fn default_delta(&self, key: &[u8]) -> Result<Delta> {
        self.default_overlay().delta(key).loaded(&self.streamed)
    }

    fn next_number(&self) -> SequenceNumber {
        self.counting.end.max(1)
    }

    pub(super) fn index(
        &mut self,
        family: &ColumnFamily,
        value_type: ValueType,
        key: &[u8],
        value: &[u8],
    ) {
        // Keys get their timestamps when the batch is written.
        let order = family.comparator().without_timestamps();
        self.index_at((family.id(), &order), value_type, key, value);
    }

    /// Adds an entry to the index of a family, whose keys have this order.
    pub(super) fn index_at(
        &mut self,
        (family, order): (ColumnFamilyId, &Comparator),
        value_type: ValueType,
        key: &[u8],
        value: &[u8],
    ) {
        if self.is_unindexed {
            return;
        }
        let number = self.next_number();
        let index = self.indexes.entry(family).or_insert_with(|| {
            let order = InternalKeyComparator::new(order.clone());
            Arc::new(MemTable::new(order, &MemTableSettings::default()))
        });
        index.add(number, value_type, key, value);
        self.counting.end = number + 1;
    }

    fn index_of(&self, family: &ColumnFamily) -> Result<Option<&Arc<MemTable>>> {
        let Some(index) = self.indexes.get(&family.id()) else { return Ok(None) };
        let (ours, theirs) = (&index.comparator().user, family.comparator().without_timestamps());
        if ours.name() != theirs.name() {
            return Err(Error::invalid_argument(format!(
                "the batch has the keys of column family {} in the order of '{}', but those of '{}' \
                 are in the order of '{}'",
                family.id().0,
                ours.name(),
                family.name(),
                theirs.name()
            )));
        }
        Ok(Some(index))
    }

    /// The families that operations were added to.
    pub(super) fn family_ids(&self) -> impl Iterator<Item = ColumnFamilyId> + '_ {
        self.indexes.keys().copied()
    }

    /// Visits each key of a family in order, with the operations that count, oldest first: from the
    /// newest that is no merge on. A single deletion that hides an older operation of the batch is
    /// a deletion.
    ///
    /// # Errors
    /// As [`WriteBatchWithIndex::entries`]; those of `visit`.
    pub(super) fn visit_operations(
        &self,
        family: &ColumnFamily,
        mut visit: impl FnMut(&[u8], &[(ValueType, Vec<u8>)]) -> Result<()>,
    ) -> Result<()> {
        let Some(index) = self.index_of(family)? else { return Ok(()) };
        let (mut entries, mut operations) = (index.iter(), Vec::new());
        entries.seek_to_first();
        while entries.valid() {
            let user_key = entries.key().user_key().to_vec();
            operations.clear();
            let mut is_complete = false;
            while entries.valid() && entries.key().user_key() == user_key {
                let key = entries.key();
                let kind = key.value_type().filter(|_| self.counting.counts(key.sequence()));
                match (kind, operations.last_mut()) {
                    (None, _) => {}
                    (Some(_), Some((hiding, _))) if is_complete => {
                        if *hiding == ValueType::SingleDeletion {
                            *hiding = ValueType::Deletion;
                        }
                    }
                    (Some(kind), _) => {
                        is_complete = kind != ValueType::Merge;
                        operations.push((kind, entries.value().to_vec()));
                    }
                }
                entries.next();
            }
            operations.reverse();
            if !operations.is_empty() {
                visit(&user_key, &operations)?;
            }
        }
        Ok(())
    }

    /// What the batch says of a family now.
    ///
    /// # Errors
    /// As [`WriteBatchWithIndex::entries`].
    pub fn overlay(&self, family: &ColumnFamily) -> Result<Overlay> {
        let index = self.index_of(family)?.cloned();
        Ok(Overlay::new(index, self.counting.clone(), self.streamed.clone()))
    }
}

/// The operations of a batch on one family; see [`WriteBatchWithIndex::entries`].
pub struct BatchEntries {
    entries: Option<MemTableIterator>,
    counting: Counting,
}

impl Iterator for BatchEntries {
    type Item = (Vec<u8>, BatchEntry);

    fn next(&mut self) -> Option<Self::Item> {
        let entries = self.entries.as_mut()?;
        while entries.valid() {
            let key = entries.key();
            let is_counted = self.counting.counts(key.sequence());
            let (user_key, value) = (key.user_key().to_vec(), entries.value().to_vec());
            let entry = match key.value_type() {
                Some(ValueType::Value) => BatchEntry::Put(value),
                Some(ValueType::WideColumnEntity) => BatchEntry::PutEntity(decoded(&value)),
                Some(ValueType::Merge) => BatchEntry::Merge(value),
                Some(ValueType::SingleDeletion) => BatchEntry::SingleDelete,
                Some(ValueType::BlobIndex) => BatchEntry::Streamed,
                _ => BatchEntry::Delete,
            };
            entries.next();
            if is_counted {
                return Some((user_key, entry));
            }
        }
        None
    }
}

impl FusedIterator for BatchEntries {}

/// What a batch alone says of a key.
pub(super) fn in_batch(
    delta: Delta,
    key: &[u8],
    operator: Option<&dyn MergeOperator>,
) -> Result<InBatch> {
    if delta.is_empty() {
        return Ok(InBatch::Absent);
    }
    if delta.needs_below() {
        return Ok(InBatch::MergeInProgress);
    }
    Ok(delta.over(key, None, operator)?.map_or(InBatch::Deleted, InBatch::Value))
}

impl fmt::Debug for BatchEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchEntries").finish_non_exhaustive()
    }
}

impl fmt::Debug for WriteBatchWithIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteBatchWithIndex").field(&self.batch).finish()
    }
}
