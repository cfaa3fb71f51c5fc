//! Batches of writes.

use flagstone::base::ColumnFamilyId;
use flagstone::batch::Operation;

use crate::column_family::AsColumnFamilyRef;
use crate::error::Error;

/// Several writes that take place together or not at all.
///
/// ```
/// use flagstone_rocksdb::{DB, WriteBatch};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = DB::open_default(directory.path()).unwrap();
/// let mut batch = WriteBatch::default();
/// batch.put("alan", "1912");
/// batch.delete("ada");
/// db.write(batch).unwrap();
/// ```
pub type WriteBatch = WriteBatchWithTransaction<false>;

/// The type behind [`WriteBatch`]. With `true` it is the batch of a database with transactions,
/// which deletes no ranges.
pub struct WriteBatchWithTransaction<const TRANSACTION: bool> {
    pub(crate) inner: flagstone::WriteBatch,
    /// Why an operation could not be added; writing the batch says so.
    refused: Option<Error>,
}

/// Is told the operations of a batch on the default family.
pub trait WriteBatchIterator {
    /// A key is put.
    fn put(&mut self, key: &[u8], value: &[u8]);

    /// A key is deleted.
    fn delete(&mut self, key: &[u8]);
}

/// Is told the operations of a batch, each with the number of its family.
pub trait WriteBatchIteratorCf {
    /// A key is put.
    fn put_cf(&mut self, cf_id: u32, key: &[u8], value: &[u8]);

    /// A key is deleted.
    fn delete_cf(&mut self, cf_id: u32, key: &[u8]);

    /// An operand is merged into a key.
    fn merge_cf(&mut self, cf_id: u32, key: &[u8], value: &[u8]);
}

impl<const TRANSACTION: bool> WriteBatchWithTransaction<TRANSACTION> {
    /// An empty batch.
    pub fn new() -> Self {
        Self::from_engine(flagstone::WriteBatch::new())
    }

    /// An empty batch with room for so many bytes.
    pub fn with_capacity_bytes(capacity_bytes: usize) -> Self {
        Self::from_engine(flagstone::WriteBatch::with_capacity(capacity_bytes))
    }

    /// The batch that [`data`](Self::data) gave. One made of other bytes is empty, and is refused
    /// when it is written.
    pub fn from_data(data: &[u8]) -> Self {
        match flagstone::WriteBatch::from_bytes(data.to_vec()) {
            Ok(inner) => Self::from_engine(inner),
            Err(error) => Self { refused: Some(error.into()), ..Self::new() },
        }
    }

    pub(crate) fn from_engine(inner: flagstone::WriteBatch) -> Self {
        Self { inner, refused: None }
    }

    /// The engine's batch.
    ///
    /// # Errors
    /// If an operation could not be added.
    pub(crate) fn into_engine(self) -> Result<flagstone::WriteBatch, Error> {
        match self.refused {
            Some(error) => Err(error),
            None => Ok(self.inner),
        }
    }

    /// How many operations there are. Log data does not count.
    pub fn len(&self) -> usize {
        self.inner.count() as usize
    }

    /// Its size in bytes, as it goes to the WAL.
    pub fn size_in_bytes(&self) -> usize {
        self.inner.byte_size()
    }

    /// Its bytes, as they go to the WAL.
    pub fn data(&self) -> &[u8] {
        self.inner.data()
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells the puts and deletes on the default family, in their order. As in RocksDB this ends
    /// at the first operation on another family, and at the first deletion of a range.
    pub fn iterate(&self, callbacks: &mut impl WriteBatchIterator) {
        for operation in self.inner.iter() {
            match operation {
                Ok(Operation::Put { cf: ColumnFamilyId::DEFAULT, key, value }) => {
                    callbacks.put(key, value);
                }
                Ok(Operation::Delete { cf: ColumnFamilyId::DEFAULT, key }) => callbacks.delete(key),
                Ok(
                    Operation::Merge { cf: ColumnFamilyId::DEFAULT, .. }
                    | Operation::SingleDelete { cf: ColumnFamilyId::DEFAULT, .. }
                    | Operation::LogData(_)
                    | Operation::Noop,
                ) => {}
                _ => return,
            }
        }
    }

    /// Tells the puts, deletes and merges, in their order. As in RocksDB this ends at the first
    /// deletion of a range, and at a single deletion on a family other than the default one.
    pub fn iterate_cf(&self, callbacks: &mut impl WriteBatchIteratorCf) {
        for operation in self.inner.iter() {
            match operation {
                Ok(Operation::Put { cf, key, value }) => callbacks.put_cf(cf.0, key, value),
                Ok(Operation::Delete { cf, key }) => callbacks.delete_cf(cf.0, key),
                Ok(Operation::Merge { cf, key, operand }) => callbacks.merge_cf(cf.0, key, operand),
                Ok(
                    Operation::SingleDelete { cf: ColumnFamilyId::DEFAULT, .. }
                    | Operation::LogData(_)
                    | Operation::Noop,
                ) => {}
                _ => return,
            }
        }
    }

    /// Sets a key to a value.
    pub fn put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, key: K, value: V) {
        self.add(|batch| batch.put(key, value));
    }

    /// Sets a key to a value in a family.
    pub fn put_cf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        value: V,
    ) {
        self.add(|batch| batch.put_cf(cf.inner(), key, value));
    }

    /// Sets a key to a value in a family as of a timestamp.
    pub fn put_cf_with_ts<K: AsRef<[u8]>, V: AsRef<[u8]>, S: AsRef<[u8]>>(
        &mut self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        ts: S,
        value: V,
    ) {
        self.add(|batch| batch.put_with_timestamp(cf.inner(), key, ts, value));
    }

    /// Deletes a key of a family as of a timestamp.
    pub fn delete_cf_with_ts<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &mut self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        ts: S,
    ) {
        self.add(|batch| batch.delete_with_timestamp(cf.inner(), key, ts));
    }

    pub(crate) fn put_with_ts(&mut self, key: &[u8], ts: &[u8], value: &[u8]) {
        self.add(|batch| batch.put_with_timestamp(ColumnFamilyId::DEFAULT, key, ts, value));
    }

    pub(crate) fn delete_with_ts(&mut self, key: &[u8], ts: &[u8]) {
        self.add(|batch| batch.delete_with_timestamp(ColumnFamilyId::DEFAULT, key, ts));
    }

    /// Merges an operand into a key.
    pub fn merge<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, key: K, value: V) {
        self.add(|batch| batch.merge(key, value));
    }

    /// Merges an operand into a key of a family.
    pub fn merge_cf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        value: V,
    ) {
        self.add(|batch| batch.merge_cf(cf.inner(), key, value));
    }

    /// Deletes a key.
    pub fn delete<K: AsRef<[u8]>>(&mut self, key: K) {
        self.add(|batch| batch.delete(key));
    }

    /// Deletes a key of a family.
    pub fn delete_cf<K: AsRef<[u8]>>(&mut self, cf: &impl AsColumnFamilyRef, key: K) {
        self.add(|batch| batch.delete_cf(cf.inner(), key));
    }

    /// Deletes a key that was put at most once since it was last deleted, and never merged.
    pub fn single_delete<K: AsRef<[u8]>>(&mut self, key: K) {
        self.add(|batch| batch.single_delete(key));
    }

    /// As [`single_delete`](Self::single_delete), in a family.
    pub fn single_delete_cf<K: AsRef<[u8]>>(&mut self, cf: &impl AsColumnFamilyRef, key: K) {
        self.add(|batch| batch.single_delete_cf(cf.inner(), key));
    }

    /// Adds bytes that go to the WAL alone, e.g. for replicas.
    pub fn put_log_data<V: AsRef<[u8]>>(&mut self, log_data: V) {
        self.add(|batch| batch.put_log_data(log_data));
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.inner.clear();
        self.refused = None;
    }

    /// Adds an operation. The rocksdb crate has no place for an error here; what is too large to be
    /// written is refused with the batch.
    fn add(&mut self, add: impl FnOnce(&mut flagstone::WriteBatch) -> flagstone::Result<()>) {
        if let Err(error) = add(&mut self.inner) {
            self.refused.get_or_insert(error.into());
        }
    }
}

impl WriteBatchWithTransaction<false> {
    /// Deletes the keys from `from` up to but not including `to`.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, from: K, to: K) {
        self.add(|batch| batch.delete_range(from, to));
    }

    /// As [`delete_range`](Self::delete_range), in a family.
    pub fn delete_range_cf<K: AsRef<[u8]>>(&mut self, cf: &impl AsColumnFamilyRef, from: K, to: K) {
        self.add(|batch| batch.delete_range_cf(cf.inner(), from, to));
    }
}

impl<const TRANSACTION: bool> Default for WriteBatchWithTransaction<TRANSACTION> {
    fn default() -> Self {
        Self::new()
    }
}
