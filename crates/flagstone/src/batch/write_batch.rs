//! Building a write batch.

mod sums;
pub(super) mod timed;

use std::fmt;

use super::format::*;
use super::protection::BatchProtection;
use super::stamps::Stamps;
use super::view::{BatchIter, BatchView};
use crate::base::coding::{fixed32_at, put_varint32};
use crate::base::entity::encode_unsorted;
use crate::base::{
    Code, ColumnFamilyId, Error, MAX_SEQUENCE_NUMBER, Result, SequenceNumber, SubCode,
};

/// Initial capacity: enough for one small put, so that the commonest batch allocates once.
const FIRST_CAPACITY: usize = 160;

/// Maximum bytes of a tag, a family and two lengths.
const FIELDS_SIZE_MAX: usize = 1 + 5 + 5 + 5;

/// Operations that are applied in order, all or none.
///
/// ```
/// # use flagstone::{Db, WriteBatch};
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = Db::open(directory.path())?;
/// let visits = db.create_column_family("visits", |_| {})?;
/// let mut batch = WriteBatch::new();
/// batch.put("cats/tom", "grey")?;
/// batch.delete("cats/kit")?;
/// batch.put_cf(&visits, "tom", "1")?;
/// db.write(batch)?;
/// assert_eq!(visits.get("tom")?.unwrap(), "1");
/// # Ok(())
/// # }
/// ```
///
/// The batch is kept in the WAL's format, so writing it copies nothing. Column families are stored
/// by their ids, which mean other families in another database.
#[derive(Clone)]
pub struct WriteBatch {
    /// Header and operations; never shorter than the header.
    bytes: Vec<u8>,
    save_points: Vec<SavePoint>,
    /// Checksums of the operations, if they have any.
    protection: Option<Box<BatchProtection>>,
    stamps: Stamps,
    /// Most bytes, including the header.
    bytes_max: usize,
}

#[derive(Clone)]
struct SavePoint {
    size: usize,
    count: u32,
    stamps: Stamps,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::with_capacity(FIRST_CAPACITY)
    }

    /// An empty batch with capacity for `bytes` bytes, including its header.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut data = Vec::with_capacity(bytes.max(HEADER_SIZE));
        data.resize(HEADER_SIZE, 0);
        Self::of(data, Stamps::NONE)
    }

    fn of(bytes: Vec<u8>, stamps: Stamps) -> Self {
        Self { bytes, save_points: Vec::new(), protection: None, stamps, bytes_max: usize::MAX }
    }

    /// Limits the batch to so many bytes, including its header of 12: what would make it larger is
    /// refused (`Aborted` with subcode `MemoryLimit`), and the batch stays as it is. Timestamps
    /// that keys get afterwards do not count.
    #[doc(alias = "SetMaxBytes")]
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Takes over the bytes of a batch, for example from a WAL or the network, after validating
    /// them.
    ///
    /// # Errors
    /// `Corruption`: the bytes are no batch. `InvalidArgument`: see [`WriteBatch::put`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        BatchView::parse(&bytes)?.validate()?;
        let batch = Self::of(bytes, Stamps::from_bytes());
        if batch.byte_size() > MAX_ENTRY_SIZE {
            batch.check_sizes()?;
        }
        Ok(batch)
    }

    fn check_sizes(&self) -> Result<()> {
        self.iter().try_for_each(|operation| {
            check_size("an entry", operation?.entry_size(), MAX_ENTRY_SIZE)
        })
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `InvalidArgument` if key and value together exceed 4 GiB less 1 MiB, or the batch
    /// would exceed 2^32 - 1 operations. The batch is then unchanged. The same applies to all other
    /// operations.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add_pair(PUT, ColumnFamilyId::DEFAULT, key.as_ref(), value.as_ref())
    }

    /// Sets `key` to `value` in a column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn put_cf(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_pair(PUT, cf.into(), key.as_ref(), value.as_ref())
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add_key(DELETE, ColumnFamilyId::DEFAULT, key.as_ref())
    }

    /// Deletes `key` in a column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete_cf(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_key(DELETE, cf.into(), key.as_ref())
    }

    /// Deletes `key`, which must have been put at most once since it was last deleted, and never
    /// merged.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add_key(SINGLE_DELETE, ColumnFamilyId::DEFAULT, key.as_ref())
    }

    /// [`WriteBatch::single_delete`] in a column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete_cf(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_key(SINGLE_DELETE, cf.into(), key.as_ref())
    }

    /// Adds a merge operand to `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add_pair(MERGE, ColumnFamilyId::DEFAULT, key.as_ref(), operand.as_ref())
    }

    /// [`WriteBatch::merge`] in a column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge_cf(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_pair(MERGE, cf.into(), key.as_ref(), operand.as_ref())
    }

    /// Deletes all keys from `begin` (inclusive) to `end` (exclusive). Their order is checked when
    /// the batch is written, because only the column family knows its comparator.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.add_pair(DELETE_RANGE, ColumnFamilyId::DEFAULT, begin.as_ref(), end.as_ref())
    }

    /// [`WriteBatch::delete_range`] in a column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete_range_cf(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_pair(DELETE_RANGE, cf.into(), begin.as_ref(), end.as_ref())
    }

    /// Sets `key` to a value stored in a blob file at the address that `index` encodes.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put_blob_index(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        index: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_pair(BLOB_INDEX, cf.into(), key.as_ref(), index.as_ref())
    }

    /// Sets `key` to an entity of these columns, which may come in any order.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]; `InvalidArgument` if two columns have the same name.
    #[doc(alias = "PutEntity")]
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        self.put_entity_cf(ColumnFamilyId::DEFAULT, key, columns)
    }

    /// [`WriteBatch::put_entity`] in a column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put_entity`].
    pub fn put_entity_cf<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        self.put_encoded_entity(cf, key, encode_unsorted(columns)?)
    }

    /// Sets `key` to an entity in its encoded form. The write refuses one that cannot be decoded.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put_encoded_entity(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        entity: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add_pair(PUT_ENTITY, cf.into(), key.as_ref(), entity.as_ref())
    }

    /// Adds bytes that are written to the WAL only. They take no sequence number.
    ///
    /// # Errors
    /// `InvalidArgument` for 4 GiB or more.
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        let data = data.as_ref();
        check_size("log data", data.len(), MAX_LOG_DATA_SIZE)?;
        let before = self.bytes.len();
        self.bytes.push(LOG_DATA);
        self.push_lps(data);
        self.note_added(before, 0)
    }

    /// Checks a put as [`WriteBatch::put`] does.
    pub(crate) fn check_put(key: &[u8], value: &[u8]) -> Result<()> {
        check_size("an entry", key.len() + value.len(), MAX_ENTRY_SIZE)
    }

    /// Adds one operation in its encoded form.
    pub(crate) fn push_encoded(&mut self, operation: &[u8], is_counted: bool) -> Result<()> {
        let before = self.bytes.len();
        self.add_to_count(u32::from(is_counted))?;
        self.bytes.extend_from_slice(operation);
        self.note_added(before, u32::from(is_counted))
    }

    /// Number of operations that take a sequence number.
    #[inline]
    pub fn count(&self) -> u32 {
        fixed32_at(&self.bytes, COUNT_OFFSET).expect("the header is always there")
    }

    /// Whether the batch holds nothing, not even log data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER_SIZE
    }

    /// Removes all operations and save points, but keeps the allocation.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER_SIZE, 0);
        self.save_points.clear();
        self.stamps.clear();
        self.note_removed();
    }

    /// Size in bytes, including the header.
    #[inline]
    pub fn byte_size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory in use.
    pub(crate) fn memory_usage(&self) -> usize {
        let protection = self.protection.as_ref().map_or(0, |sums| sums.memory_usage());
        self.bytes.capacity() + self.save_points.capacity() * size_of::<SavePoint>() + protection
    }

    /// Header and operations, as written to the WAL.
    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.bytes
    }

    /// Operations without the header. A group of batches shares one header (`encode_header`).
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_SIZE..]
    }

    /// The bytes of the batch, without copying.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends the operations of `other`.
    ///
    /// # Errors
    /// `InvalidArgument` if the batch would exceed 2^32 - 1 operations, or write to a family with
    /// timestamps of two sizes, or with and without any; as [`WriteBatch::set_max_bytes`]. It is
    /// unchanged then.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        let stamps = self.stamps_with(other)?;
        let before = self.bytes.len();
        self.add_to_count(other.count())?;
        self.bytes.extend_from_slice(other.body());
        self.note_added(before, other.count())?;
        self.stamps = stamps;
        Ok(())
    }

    /// Saves the current state for [`WriteBatch::rollback_to_save_point`]. Save points nest.
    pub fn set_save_point(&mut self) {
        let save_point =
            SavePoint { size: self.bytes.len(), count: self.count(), stamps: self.stamps.clone() };
        self.save_points.push(save_point);
    }

    /// Removes the latest save point and everything added since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        let SavePoint { size, count, stamps } = self.take_save_point()?;
        self.stamps = stamps;
        self.bytes.truncate(size);
        self.set_count(count);
        self.note_removed();
        Ok(())
    }

    /// Removes the latest save point, and keeps what was added since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.take_save_point().map(drop)
    }

    /// The sequence number of the first operation; 0 until the batch is written.
    pub fn sequence(&self) -> SequenceNumber {
        self.as_view().sequence()
    }

    /// Sets the sequence number of the first operation.
    ///
    /// # Panics
    /// If `sequence` exceeds 56 bits; the database stops long before.
    #[inline]
    pub fn set_sequence(&mut self, sequence: SequenceNumber) {
        assert!(
            sequence <= MAX_SEQUENCE_NUMBER,
            "sequence number {sequence} has more than 56 bits"
        );
        self.bytes[..COUNT_OFFSET].copy_from_slice(&sequence.to_le_bytes());
    }

    /// The batch in borrowed form, as recovery reads it.
    #[inline]
    pub fn as_view(&self) -> BatchView<'_> {
        BatchView::parse(&self.bytes).expect("the header is always there")
    }

    /// The operations in order. They were encoded or validated by this type, so an error is a bug.
    #[inline]
    pub fn iter(&self) -> BatchIter<'_> {
        BatchIter::new(self.body())
    }

    #[inline]
    fn add_pair(&mut self, tags: Tags, cf: ColumnFamilyId, a: &[u8], b: &[u8]) -> Result<()> {
        if !self.stamps.is_none() {
            self.check_unstamped(cf)?;
        }
        self.add_stamped_pair(tags, cf, a, b)
    }

    /// Adds two fields, of which keys have their timestamps.
    #[inline]
    pub(super) fn add_stamped_pair(
        &mut self,
        tags: Tags,
        cf: ColumnFamilyId,
        a: &[u8],
        b: &[u8],
    ) -> Result<()> {
        check_size("an entry", a.len() + b.len(), MAX_ENTRY_SIZE)?;
        self.add_to_count(1)?;
        let before = self.bytes.len();
        // Once here, so that none of the pushes below has to grow.
        self.bytes.reserve(FIELDS_SIZE_MAX + a.len() + b.len());
        self.push_tag(tags, cf);
        self.push_lps(a);
        self.push_lps(b);
        self.note_added(before, 1)
    }

    #[inline]
    fn add_key(&mut self, tags: Tags, cf: ColumnFamilyId, key: &[u8]) -> Result<()> {
        if !self.stamps.is_none() {
            self.check_unstamped(cf)?;
        }
        self.add_stamped_key(tags, cf, key)
    }

    /// Adds a key with its timestamp.
    #[inline]
    pub(super) fn add_stamped_key(
        &mut self,
        tags: Tags,
        cf: ColumnFamilyId,
        key: &[u8],
    ) -> Result<()> {
        check_size("an entry", key.len(), MAX_ENTRY_SIZE)?;
        self.add_to_count(1)?;
        let before = self.bytes.len();
        self.bytes.reserve(FIELDS_SIZE_MAX + key.len());
        self.push_tag(tags, cf);
        self.push_lps(key);
        self.note_added(before, 1)
    }

    /// Keeps what was added behind the first `before` bytes, if the batch may be that large.
    #[inline]
    fn note_added(&mut self, before: usize, count: u32) -> Result<()> {
        if self.bytes.len() > self.bytes_max {
            return Err(self.take_back(before, count));
        }
        self.protect_new();
        Ok(())
    }

    #[cold]
    fn take_back(&mut self, before: usize, count: u32) -> Error {
        let message = format!(
            "the write batch would have {} bytes, and at most {} are allowed; write it first",
            self.bytes.len(),
            self.bytes_max
        );
        self.bytes.truncate(before);
        self.set_count(self.count() - count);
        Error::new(Code::Aborted, message).with_subcode(SubCode::MemoryLimit)
    }

    fn note_removed(&mut self) {
        if let Some(protection) = &mut self.protection {
            protection.truncate(self.bytes.len() - HEADER_SIZE);
        }
    }

    #[inline]
    fn push_tag(&mut self, tags: Tags, cf: ColumnFamilyId) {
        if cf == ColumnFamilyId::DEFAULT {
            self.bytes.push(tags.short);
        } else {
            self.bytes.push(tags.with_family);
            put_varint32(&mut self.bytes, cf.0);
        }
    }

    /// `bytes` is known to be shorter than 4 GiB.
    #[inline]
    fn push_lps(&mut self, bytes: &[u8]) {
        put_varint32(&mut self.bytes, bytes.len() as u32);
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    fn add_to_count(&mut self, more: u32) -> Result<()> {
        let count = self.count().checked_add(more).ok_or_else(|| {
            Error::invalid_argument("a write batch holds at most 2^32 - 1 operations; split it")
        })?;
        self.set_count(count);
        Ok(())
    }

    #[inline]
    fn set_count(&mut self, count: u32) {
        self.bytes[COUNT_OFFSET..HEADER_SIZE].copy_from_slice(&count.to_le_bytes());
    }

    pub(super) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    pub(super) fn stamps_mut(&mut self) -> &mut Stamps {
        &mut self.stamps
    }

    /// Takes the operations of another batch in the place of its own, with checksums if its own had
    /// some. Save points are gone.
    pub(super) fn replace_operations(&mut self, other: Self) {
        let (is_protected, bytes_max) = (self.is_protected(), self.bytes_max);
        *self = Self { bytes_max, ..other };
        if is_protected {
            self.protect();
        }
    }

    fn take_save_point(&mut self) -> Result<SavePoint> {
        self.save_points.pop().ok_or_else(|| Error::not_found("the write batch has no save point"))
    }
}

/// The header of several batches written as one record: the first batch's sequence number and the
/// sum of the counts.
#[inline]
pub fn encode_header(sequence: SequenceNumber, count: u32) -> [u8; HEADER_SIZE] {
    let mut header = [0; HEADER_SIZE];
    header[..COUNT_OFFSET].copy_from_slice(&sequence.to_le_bytes());
    header[COUNT_OFFSET..].copy_from_slice(&count.to_le_bytes());
    header
}

#[inline]
fn check_size(what: &str, bytes: usize, max: usize) -> Result<()> {
    if bytes <= max {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{what} of {bytes} bytes is too long; at most {max} bytes are allowed"
    )))
}

impl PartialEq for SavePoint {
    fn eq(&self, other: &Self) -> bool {
        (self.size, self.count) == (other.size, other.count)
    }
}

/// By their bytes and save points; whether operations have checksums does not matter.
impl PartialEq for WriteBatch {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.save_points == other.save_points
    }
}

impl Eq for WriteBatch {}

impl Default for WriteBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WriteBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteBatch@{} ", self.sequence())?;
        f.debug_list().entries(self.iter()).finish()
    }
}
