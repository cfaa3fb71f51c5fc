//! Batches whose keys end in timestamps.
//!
//! A batch knows to which families it writes with timestamps, so that a commit can refuse what does
//! not fit the family. One that was made from bytes does not know.

use super::format::*;
use super::view::{BatchView, Operation};
use super::write_batch::WriteBatch;
use crate::base::{ColumnFamilyId, Error, Result, ValueType, timestamp};

/// What a batch knows of the timestamps in its keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stamps {
    /// The families whose keys have some, and the bytes of one, in the order of their first
    /// operation.
    families: Vec<(ColumnFamilyId, usize)>,
    /// Whether the operations came as bytes.
    from_bytes: bool,
}

/// The timestamps in a batch's keys of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampSize {
    /// The size in bytes of the timestamp at the end of each key; 0 for none.
    Known(usize),
    /// The batch came as bytes.
    Unknown,
}

impl StampSize {
    /// Whether keys fit a family whose timestamps have `size` bytes, as far as that is known
    /// without a look at the keys.
    #[inline]
    pub fn fits(self, size: usize) -> bool {
        match self {
            Self::Known(known) => known == size,
            Self::Unknown => size == 0,
        }
    }
}

impl Stamps {
    pub(super) const NONE: Self = Self { families: Vec::new(), from_bytes: false };

    pub(super) fn from_bytes() -> Self {
        Self { families: Vec::new(), from_bytes: true }
    }

    /// Whether no family is known to have some.
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.families.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::NONE;
    }

    /// Those of a batch of its operations and then `other`'s, if one of the two has some or came as
    /// bytes.
    #[cold]
    fn of_both(batch: &WriteBatch, other: &WriteBatch) -> Result<Self> {
        let (own, added) = (batch.stamps(), other.stamps());
        if own.from_bytes || added.from_bytes {
            return Ok(Self::from_bytes());
        }
        let mut both = own.clone();
        for (cf, size) in &added.families {
            match own.of(*cf) {
                Some(known) if known == *size => {}
                None if !batch.writes_to(*cf) => both.families.push((*cf, *size)),
                _ => return Err(mixed(*cf)),
            }
        }
        let is_bare = |cf| added.of(cf).is_none() && other.writes_to(cf);
        match own.families.iter().find(|(cf, _)| is_bare(*cf)) {
            Some((cf, _)) => Err(mixed(*cf)),
            None => Ok(both),
        }
    }

    fn of(&self, cf: ColumnFamilyId) -> Option<usize> {
        self.families.iter().find(|(known, _)| *known == cf).map(|(_, size)| *size)
    }
}

/// What becomes of the timestamps of a family's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampChange<'a> {
    /// They lose this number of bytes at their ends.
    Strip(usize),
    /// They lose this number of bytes, even where a blob file has the value under the longer key.
    StripAll(usize),
    /// They get the least timestamp of this size in bytes.
    Pad(usize),
    /// Each is replaced by this one, which has its size.
    Replace(&'a [u8]),
}

/// The bytes of a batch in which the timestamps of some families are changed; `None` if nothing
/// does. It keeps its sequence number and the number of its operations.
///
/// # Errors
/// `Corruption` for a key that is shorter than its timestamp, or an entity where keys had some;
/// `NotSupported` for an entity where they get some.
pub fn change_stamps<'a>(
    batch: BatchView<'_>,
    change: impl Fn(ColumnFamilyId) -> Option<StampChange<'a>>,
) -> Result<Option<Vec<u8>>> {
    let names_one = |operation: Result<Operation<'_>>| {
        operation.is_ok_and(|it| it.family().and_then(&change).is_some())
    };
    if !batch.iter().any(names_one) {
        return Ok(None);
    }
    let mut changed = WriteBatch::with_capacity(batch.data().len());
    changed.set_sequence(batch.sequence());
    let mut operations = batch.iter();
    loop {
        let start = operations.offset();
        let Some(operation) = operations.next() else { return Ok(Some(changed.into_bytes())) };
        let operation = operation?;
        let Some(change) = operation.family().and_then(&change) else {
            let encoded = &batch.body()[start..operations.offset()];
            changed.push_encoded(encoded, operation.is_counted())?;
            continue;
        };
        let key_of = |key: &[u8]| match change {
            StampChange::Pad(size) => Ok(timestamp::last_of(key, size)),
            StampChange::Strip(size) | StampChange::StripAll(size) if key.len() >= size => {
                Ok(timestamp::strip(key, size).to_vec())
            }
            StampChange::Replace(stamp) if key.len() >= stamp.len() => {
                Ok(timestamp::join(timestamp::strip(key, stamp.len()), stamp))
            }
            StampChange::Strip(size) | StampChange::StripAll(size) => {
                Err(timestamp::is_too_short(key, size))
            }
            StampChange::Replace(stamp) => Err(timestamp::is_too_short(key, stamp.len())),
        };
        match operation {
            Operation::Put { cf, key, value } => changed.put_cf(cf, key_of(key)?, value)?,
            Operation::Delete { cf, key } => changed.delete_cf(cf, key_of(key)?)?,
            Operation::SingleDelete { cf, key } => changed.single_delete_cf(cf, key_of(key)?)?,
            Operation::Merge { cf, key, operand } => changed.merge_cf(cf, key_of(key)?, operand)?,
            Operation::DeleteRange { cf, begin, end } => {
                changed.delete_range_cf(cf, key_of(begin)?, key_of(end)?)?;
            }
            Operation::TimedPut { cf, key, timed } => {
                changed.put_cf(cf, key_of(key)?, timed.value())?;
            }
            Operation::BlobIndex { cf, key, index }
                if matches!(change, StampChange::StripAll(_)) =>
            {
                changed.add_stamped_pair(BLOB_INDEX, cf, &key_of(key)?, index)?;
            }
            Operation::BlobIndex { .. } => {
                // The record in the blob file has the key as it was.
                return Err(Error::not_supported(
                    "a value that was written to a blob file at commit keeps its key's timestamp; open the family with the \
                     comparator that it was written with, and copy its entries to a new family",
                ));
            }
            _ if matches!(change, StampChange::Pad(_)) => {
                return Err(Error::not_supported(
                    "an entity cannot get a timestamp; open the family with the comparator that it was written with, \
                     and flush before you change the comparator",
                ));
            }
            _ => return Err(Error::corruption("an entity in a family with timestamps")),
        }
    }
}

/// The bytes of a batch of prepared operations that are committed as of a timestamp: keys of
/// families with timestamps, for which `size_of` says a size, end in it. `None` if there are none.
///
/// # Errors
/// As [`change_stamps`]; `Corruption` if a family's timestamps have another size.
pub fn commit_stamps(
    batch: BatchView<'_>,
    stamp: &[u8],
    size_of: impl Fn(ColumnFamilyId) -> usize,
) -> Result<Option<Vec<u8>>> {
    for operation in batch.iter() {
        let Some(cf) = operation?.family() else { continue };
        let size = size_of(cf);
        if size != 0 && size != stamp.len() {
            return Err(Error::corruption(format!(
                "a transaction is committed with a timestamp of {} bytes, but those of column family {cf} have {size}",
                stamp.len()
            )));
        }
    }
    change_stamps(batch, |cf| (size_of(cf) > 0).then_some(StampChange::Replace(stamp)))
}

fn is_unknown() -> Error {
    Error::not_supported(
        "the batch came as bytes, which do not tell whether its keys have timestamps already; add the operations to \
         a new batch, without timestamps or with",
    )
}

fn mixed(cf: ColumnFamilyId) -> Error {
    Error::invalid_argument(format!(
        "all operations of the batch on column family {cf} come with timestamps of one size only, or none has one"
    ))
}

impl WriteBatch {
    /// Sets `key` to `value` as of a timestamp, in a family whose comparator has timestamps.
    ///
    /// # Errors
    /// As [`WriteBatch::put_cf`]; `InvalidArgument` if the batch writes to the family with
    /// timestamps of another size, or without any.
    pub fn put_with_timestamp(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (cf, key) = self.stamped(cf.into(), key.as_ref(), timestamp.as_ref())?;
        self.add_stamped_pair(PUT, cf, &key, value.as_ref())
    }

    /// Deletes `key` as of a timestamp.
    ///
    /// # Errors
    /// As [`WriteBatch::put_with_timestamp`].
    pub fn delete_with_timestamp(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (cf, key) = self.stamped(cf.into(), key.as_ref(), timestamp.as_ref())?;
        self.add_stamped_key(DELETE, cf, &key)
    }

    /// Deletes `key`, which was set at most once before, as of a timestamp.
    ///
    /// # Errors
    /// As [`WriteBatch::put_with_timestamp`].
    pub fn single_delete_with_timestamp(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (cf, key) = self.stamped(cf.into(), key.as_ref(), timestamp.as_ref())?;
        self.add_stamped_key(SINGLE_DELETE, cf, &key)
    }

    /// Adds a merge operand to `key` as of a timestamp. A read merges the operands that are not
    /// newer than its own timestamp.
    ///
    /// # Errors
    /// As [`WriteBatch::put_with_timestamp`].
    pub fn merge_with_timestamp(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (cf, key) = self.stamped(cf.into(), key.as_ref(), timestamp.as_ref())?;
        self.add_stamped_pair(MERGE, cf, &key, operand.as_ref())
    }

    /// Deletes the keys from `begin` up to but not including `end` as of a timestamp: reads as of
    /// an older one still see what was written before.
    ///
    /// A write must not have an older timestamp than what was written to the same keys before it,
    /// for range deletions as for puts: which of two writes counts is told by the order in which
    /// they were written, and not by their timestamps.
    ///
    /// # Errors
    /// As [`WriteBatch::put_with_timestamp`].
    pub fn delete_range_with_timestamp(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let stamp = timestamp.as_ref();
        let (cf, begin) = self.stamped(cf.into(), begin.as_ref(), stamp)?;
        let end = timestamp::join(end.as_ref(), stamp);
        self.add_stamped_pair(DELETE_RANGE, cf, &begin, &end)
    }

    /// Gives the operations of some families this timestamp: those for which `size_of` says a size.
    /// Keys that have a timestamp get it in its place.
    ///
    /// # Errors
    /// `InvalidArgument` if the timestamp has another size, or for an operation that no family with
    /// timestamps takes (an entity); `NotSupported` if the batch came as bytes, which do not tell
    /// whether its keys have timestamps; `Corruption` if an operation does not match its checksum.
    /// Nothing has changed then.
    #[doc(alias = "UpdateTimestamps")]
    pub fn set_timestamps(
        &mut self,
        stamp: impl AsRef<[u8]>,
        size_of: impl Fn(ColumnFamilyId) -> usize,
    ) -> Result<()> {
        self.verify_checksum()?;
        let stamp = stamp.as_ref();
        let mut all = Self::with_capacity(self.byte_size() + self.count() as usize * stamp.len());
        all.set_sequence(self.sequence());
        // What is known of the others stays so.
        let others = self.stamps().families.iter().filter(|(cf, _)| size_of(*cf) == 0);
        all.stamps_mut().families.extend(others);
        all.stamps_mut().from_bytes = self.stamps().from_bytes;
        let mut operations = self.iter();
        loop {
            let start = operations.offset();
            let Some(operation) = operations.next() else { break };
            let operation = operation?;
            let size = operation.family().map_or(0, &size_of);
            if size == 0 {
                let encoded = &self.body()[start..operations.offset()];
                all.push_encoded(encoded, operation.is_counted())?;
                continue;
            }
            timestamp::check_size("of the batch", size, stamp.len())?;
            let known = match operation.family().map(|cf| self.stamp_size(cf)) {
                Some(StampSize::Known(known)) => known,
                Some(StampSize::Unknown) => return Err(is_unknown()),
                None => 0,
            };
            let bare = |key| timestamp::strip(key, known);
            match operation {
                Operation::Put { cf, key, value } => {
                    all.put_with_timestamp(cf, bare(key), stamp, value)?;
                }
                Operation::Delete { cf, key } => {
                    all.delete_with_timestamp(cf, bare(key), stamp)?;
                }
                Operation::SingleDelete { cf, key } => {
                    all.single_delete_with_timestamp(cf, bare(key), stamp)?;
                }
                Operation::Merge { cf, key, operand } => {
                    all.merge_with_timestamp(cf, bare(key), stamp, operand)?;
                }
                Operation::DeleteRange { cf, begin, end } => {
                    all.delete_range_with_timestamp(cf, bare(begin), bare(end), stamp)?;
                }
                Operation::BlobIndex { cf, key, index } => {
                    let (cf, key) = all.stamped(cf, bare(key), stamp)?;
                    all.add_stamped_pair(BLOB_INDEX, cf, &key, index)?;
                }
                _ => {
                    return Err(Error::invalid_argument(
                        "an entity or a timed value cannot be written with a timestamp; write a value instead",
                    ));
                }
            }
        }
        self.replace_operations(all);
        Ok(())
    }

    /// The timestamps that keys of a family end in.
    pub fn stamp_size(&self, cf: ColumnFamilyId) -> StampSize {
        match self.stamps().of(cf) {
            None if self.stamps().from_bytes => StampSize::Unknown,
            size => StampSize::Known(size.unwrap_or(0)),
        }
    }

    /// Takes note that the keys of a batch that came as bytes end in timestamps, in families for
    /// which `size_of` says a size.
    ///
    /// # Errors
    /// `Corruption` for a key that is shorter than its timestamp.
    pub(crate) fn know_stamps(&mut self, size_of: impl Fn(ColumnFamilyId) -> usize) -> Result<()> {
        let mut known = Stamps::NONE;
        for operation in self.iter() {
            let operation = operation?;
            let Some((cf, (kind, key, value))) = operation.family().zip(operation.entry()) else {
                continue;
            };
            let size = size_of(cf);
            let end = (kind == ValueType::RangeDeletion).then_some(value);
            if let Some(short) = [Some(key), end].into_iter().flatten().find(|key| key.len() < size)
            {
                return Err(timestamp::is_too_short(short, size));
            }
            if size > 0 && known.of(cf).is_none() {
                known.families.push((cf, size));
            }
        }
        *self.stamps_mut() = known;
        Ok(())
    }

    /// Takes note that keys are as those of another batch, from which all operations come.
    pub(crate) fn stamp_as(&mut self, other: &Self) {
        self.stamps_mut().clone_from(other.stamps());
    }

    /// What is known of the timestamps once the operations of another batch are appended.
    ///
    /// # Errors
    /// `InvalidArgument` if both write to a family, and not with timestamps of one size.
    #[inline]
    pub(super) fn stamps_with(&self, other: &Self) -> Result<Stamps> {
        if *self.stamps() == Stamps::NONE && *other.stamps() == Stamps::NONE {
            return Ok(Stamps::NONE);
        }
        Stamps::of_both(self, other)
    }

    fn writes_to(&self, cf: ColumnFamilyId) -> bool {
        let is_of_family = |operation: Result<Operation<'_>>| {
            operation.is_ok_and(|operation| operation.family() == Some(cf))
        };
        self.iter().any(is_of_family)
    }

    /// A key with its timestamp, once it is known that the batch writes to the family with such.
    fn stamped(
        &mut self,
        cf: ColumnFamilyId,
        key: &[u8],
        stamp: &[u8],
    ) -> Result<(ColumnFamilyId, Vec<u8>)> {
        if stamp.is_empty() || stamp.len() > timestamp::SIZE_MAX {
            return Err(Error::invalid_argument(format!(
                "a timestamp has 1 to {} bytes, not {}",
                timestamp::SIZE_MAX,
                stamp.len()
            )));
        }
        match self.stamps().of(cf) {
            Some(size) if size == stamp.len() => {}
            Some(_) => return Err(mixed(cf)),
            None => {
                if self.writes_to(cf) {
                    return Err(mixed(cf));
                }
                self.stamps_mut().families.push((cf, stamp.len()));
            }
        }
        Ok((cf, timestamp::join(key, stamp)))
    }

    /// Refuses an operation without a timestamp in a family that others of the batch give one.
    #[cold]
    pub(super) fn check_unstamped(&self, cf: ColumnFamilyId) -> Result<()> {
        if self.stamps().of(cf).is_some() { Err(mixed(cf)) } else { Ok(()) }
    }
}
