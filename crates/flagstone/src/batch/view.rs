//! Reading a write batch from borrowed bytes, such as a batch or a WAL record, without copying.

use super::format::*;
use super::write_batch::timed::TimedValue;
use crate::base::coding::{Decoder, fixed32_at, fixed64_at};
use crate::base::{ColumnFamilyId, Error, MAX_SEQUENCE_NUMBER, Result, SequenceNumber, counted};

/// How the transactions of a database write their prepared operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionPolicy {
    /// Nothing reaches the memtable before the commit.
    WriteCommitted,
    /// Operations reach the memtable at prepare.
    WritePrepared,
    /// Operations may reach the memtable before prepare.
    WriteUnprepared,
}

/// One operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what their names say, each in the order stored")]
pub enum Operation<'a> {
    /// Sets a key.
    Put { cf: ColumnFamilyId, key: &'a [u8], value: &'a [u8] },
    /// Deletes a key.
    Delete { cf: ColumnFamilyId, key: &'a [u8] },
    /// Deletes a key that was set at most once.
    SingleDelete { cf: ColumnFamilyId, key: &'a [u8] },
    /// Adds a merge operand.
    Merge { cf: ColumnFamilyId, key: &'a [u8], operand: &'a [u8] },
    /// Deletes all keys from `begin` (inclusive) to `end` (exclusive). If they are equal, it does
    /// nothing and takes no sequence number.
    DeleteRange { cf: ColumnFamilyId, begin: &'a [u8], end: &'a [u8] },
    /// Sets a key whose value lies in a blob file.
    BlobIndex { cf: ColumnFamilyId, key: &'a [u8], index: &'a [u8] },
    /// Sets a key to a wide-column entity in its encoded form.
    PutEntity { cf: ColumnFamilyId, key: &'a [u8], entity: &'a [u8] },
    /// Sets a key, as of another time.
    TimedPut { cf: ColumnFamilyId, key: &'a [u8], timed: TimedValue<'a> },
    /// Bytes for the WAL only.
    LogData(&'a [u8]),
    /// Nothing.
    Noop,
    /// A prepared section begins.
    BeginPrepare(TransactionPolicy),
    /// The prepared section of this transaction ends.
    EndPrepare { xid: &'a [u8] },
    /// The transaction is committed.
    Commit { xid: &'a [u8] },
    /// The transaction is committed as of a user timestamp.
    CommitWithTimestamp { timestamp: &'a [u8], xid: &'a [u8] },
    /// The transaction is rolled back.
    Rollback { xid: &'a [u8] },
}

impl Operation<'_> {
    /// Whether the batch's count includes it.
    #[inline]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Put { .. }
            | Self::Delete { .. }
            | Self::SingleDelete { .. }
            | Self::Merge { .. }
            | Self::DeleteRange { .. }
            | Self::BlobIndex { .. }
            | Self::PutEntity { .. }
            | Self::TimedPut { .. } => true,
            Self::LogData(_) | Self::Noop => false,
            Self::BeginPrepare(_)
            | Self::EndPrepare { .. }
            | Self::Commit { .. }
            | Self::CommitWithTimestamp { .. }
            | Self::Rollback { .. } => false,
        }
    }

    /// Bytes of what goes to a table: of a key and its value, or of the bounds of a range deletion.
    pub(super) fn entry_size(&self) -> usize {
        match self {
            Self::Delete { key, .. } | Self::SingleDelete { key, .. } => key.len(),
            Self::Put { key: a, value: b, .. }
            | Self::Merge { key: a, operand: b, .. }
            | Self::DeleteRange { begin: a, end: b, .. }
            | Self::BlobIndex { key: a, index: b, .. }
            | Self::PutEntity { key: a, entity: b, .. } => a.len() + b.len(),
            Self::TimedPut { key, timed, .. } => key.len() + timed.stored().len(),
            _ => 0,
        }
    }

    /// Whether it belongs to two-phase commit.
    pub fn is_transaction_marker(&self) -> bool {
        !self.is_counted() && !matches!(self, Self::LogData(_) | Self::Noop)
    }
}

/// The result of [`BatchView::validate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchSummary {
    /// Counted operations.
    pub count: u32,
    /// Whether there are operations whose values lie in blob files.
    pub names_blobs: bool,
    /// Whether there are transaction markers, so that `sequence + count` need not be where the next
    /// batch starts.
    pub has_transaction_markers: bool,
    /// Whether a mark without meaning ends it, as those of write-prepared transactions, whose
    /// operations have one sequence number together.
    pub ends_in_noop: bool,
}

/// A batch in borrowed bytes. Only the header is known to exist; [`BatchView::validate`] reads all
/// of it.
#[derive(Debug, Clone, Copy)]
pub struct BatchView<'a> {
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Takes a batch of unknown origin.
    ///
    /// # Errors
    /// `Corruption` if the header is cut off.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < HEADER_SIZE {
            return Err(Error::corruption(format!(
                "log record too small: {} bytes, but a write batch has a header of {HEADER_SIZE}",
                bytes.len()
            )));
        }
        Ok(Self { bytes })
    }

    /// The sequence number of the first operation.
    #[inline]
    pub fn sequence(&self) -> SequenceNumber {
        fixed64_at(self.bytes, 0).expect("the header was checked")
    }

    /// Number of operations that take a sequence number, according to the header.
    #[inline]
    pub fn count(&self) -> u32 {
        fixed32_at(self.bytes, COUNT_OFFSET).expect("the header was checked")
    }

    /// Sequence number after the batch, if each counted operation takes one.
    #[inline]
    pub fn next_sequence(&self) -> SequenceNumber {
        self.sequence().saturating_add(u64::from(self.count()))
    }

    /// Sequence number after the batch, if the deletion of an empty range takes none.
    ///
    /// # Errors
    /// `Corruption` if an operation cannot be read.
    pub(crate) fn end_without_empty_ranges(&self) -> Result<SequenceNumber> {
        self.iter().try_fold(self.sequence(), |end, operation| {
            Ok(end + u64::from(operation?.takes_sequence()))
        })
    }

    /// Header and operations, as stored.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.bytes
    }

    /// The operations, as stored.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_SIZE..]
    }

    /// The operations in order.
    #[inline]
    pub fn iter(&self) -> BatchIter<'a> {
        BatchIter::new(self.body())
    }

    /// The operations up to the first that cannot be read or that exceeds the header's count.
    pub fn readable(&self) -> impl Iterator<Item = Operation<'a>> + use<'a> {
        let mut left = self.count();
        self.iter().map_while(move |operation| {
            let operation = operation.ok()?;
            left = left.checked_sub(u32::from(operation.is_counted()))?;
            Some(operation)
        })
    }

    /// Reads every operation, but stops at the first one beyond the header's count, and compares
    /// their number with that count. Operations that are not counted, such as log data and markers,
    /// are read in any number.
    ///
    /// # Errors
    /// `Corruption` for an unknown tag, a field that is cut off, a wrong count, or a sequence
    /// number out of range.
    pub fn validate(&self) -> Result<BatchSummary> {
        let mut summary = BatchSummary::default();
        let mut found = 0u64;
        for operation in self.iter() {
            let operation = operation?;
            found += u64::from(operation.is_counted());
            if found > u64::from(self.count()) {
                // What is compressed may have billions more.
                break;
            }
            summary.names_blobs |= operation.names_blobs();
            summary.has_transaction_markers |= operation.is_transaction_marker();
            summary.ends_in_noop = matches!(operation, Operation::Noop);
        }
        summary.count = self.count();
        if found != u64::from(summary.count) {
            let (header, or_more) =
                (summary.count, if found > u64::from(summary.count) { " or more" } else { "" });
            return Err(Error::corruption(format!(
                "WriteBatch has wrong count: {}{or_more}, the header says {header}",
                counted(found, "operation")
            )));
        }
        if self.sequence() > MAX_SEQUENCE_NUMBER || self.next_sequence() > MAX_SEQUENCE_NUMBER + 1 {
            return Err(Error::corruption(format!(
                "sequence number {} is too large",
                self.sequence()
            )));
        }
        Ok(summary)
    }
}

impl<'a> IntoIterator for BatchView<'a> {
    type Item = Result<Operation<'a>>;
    type IntoIter = BatchIter<'a>;

    fn into_iter(self) -> BatchIter<'a> {
        self.iter()
    }
}

/// The operations of a batch in order. It ends after the first error.
#[derive(Debug, Clone)]
pub struct BatchIter<'a> {
    decoder: Decoder<'a>,
    size: usize,
}

impl<'a> BatchIter<'a> {
    /// Iterates over a batch's body: everything after its header, or several bodies in a row.
    #[inline]
    pub fn new(body: &'a [u8]) -> Self {
        Self { decoder: Decoder::new(body), size: body.len() }
    }

    /// Bytes of the body read so far, which is the offset of the next operation.
    #[inline]
    pub fn offset(&self) -> usize {
        self.size - self.decoder.rest().len()
    }

    /// The fields behind `tag`; `Ok(None)` if they are cut off.
    #[inline]
    fn fields(&mut self, tag: u8) -> Result<Option<Operation<'a>>, UnknownTag> {
        let default = ColumnFamilyId::DEFAULT;
        // The commonest first: one compare, and no detour over the family.
        if tag == PUT.short {
            return Ok(put(&mut self.decoder, default));
        }
        self.rare_fields(tag)
    }

    fn rare_fields(&mut self, tag: u8) -> Result<Option<Operation<'a>>, UnknownTag> {
        let Some((short, cf)) = family(&mut self.decoder, tag) else { return Ok(None) };
        let from = &mut self.decoder;
        Ok(match short {
            _ if short == PUT.short => put(from, cf),
            _ if short == DELETE.short => from.lps().map(|key| Operation::Delete { cf, key }),
            _ if short == SINGLE_DELETE.short => {
                from.lps().map(|key| Operation::SingleDelete { cf, key })
            }
            _ if short == MERGE.short => {
                pair(from).map(|(key, operand)| Operation::Merge { cf, key, operand })
            }
            _ if short == DELETE_RANGE.short => {
                pair(from).map(|(begin, end)| Operation::DeleteRange { cf, begin, end })
            }
            _ if short == BLOB_INDEX.short => {
                pair(from).map(|(key, index)| Operation::BlobIndex { cf, key, index })
            }
            _ if short == PUT_ENTITY.short => {
                pair(from).map(|(key, entity)| Operation::PutEntity { cf, key, entity })
            }
            _ if short == TIMED_PUT.short => timed_put(from, cf),
            LOG_DATA => from.lps().map(Operation::LogData),
            NOOP => Some(Operation::Noop),
            BEGIN_PREPARE => Some(Operation::BeginPrepare(TransactionPolicy::WriteCommitted)),
            BEGIN_PERSISTED_PREPARE => {
                Some(Operation::BeginPrepare(TransactionPolicy::WritePrepared))
            }
            BEGIN_UNPREPARE => Some(Operation::BeginPrepare(TransactionPolicy::WriteUnprepared)),
            END_PREPARE => from.lps().map(|xid| Operation::EndPrepare { xid }),
            COMMIT => from.lps().map(|xid| Operation::Commit { xid }),
            ROLLBACK => from.lps().map(|xid| Operation::Rollback { xid }),
            COMMIT_WITH_TIMESTAMP => {
                pair(from).map(|(timestamp, xid)| Operation::CommitWithTimestamp { timestamp, xid })
            }
            _ => return Err(UnknownTag),
        })
    }

    #[cold]
    fn fail(&mut self, offset: usize, what: String) -> Error {
        self.decoder = Decoder::new(&[]);
        Error::corruption(format!("{what} at byte {offset} of the write batch's body"))
    }
}

struct UnknownTag;

/// The short tag that `tag` amounts to, and the family: read where the tag says that it follows.
#[inline]
fn family(from: &mut Decoder<'_>, tag: u8) -> Option<(u8, ColumnFamilyId)> {
    for tags in [DELETE, PUT, MERGE, SINGLE_DELETE, DELETE_RANGE, BLOB_INDEX, PUT_ENTITY, TIMED_PUT]
    {
        if tag == tags.with_family {
            return Some((tags.short, ColumnFamilyId(from.varint32()?)));
        }
    }
    Some((tag, ColumnFamilyId::DEFAULT))
}

#[inline]
fn pair<'a>(from: &mut Decoder<'a>) -> Option<(&'a [u8], &'a [u8])> {
    Some((from.lps()?, from.lps()?))
}

#[inline]
fn put<'a>(from: &mut Decoder<'a>, cf: ColumnFamilyId) -> Option<Operation<'a>> {
    pair(from).map(|(key, value)| Operation::Put { cf, key, value })
}

fn timed_put<'a>(from: &mut Decoder<'a>, cf: ColumnFamilyId) -> Option<Operation<'a>> {
    let (key, stored) = pair(from)?;
    Some(Operation::TimedPut { cf, key, timed: TimedValue::new(stored)? })
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = Result<Operation<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset();
        let tag = self.decoder.u8()?;
        Some(match self.fields(tag) {
            Ok(Some(operation)) => Ok(operation),
            Ok(None) => Err(self.fail(offset, format!("operation of tag {tag} is cut off"))),
            Err(UnknownTag) => Err(self.fail(offset, format!("unknown WriteBatch tag: {tag}"))),
        })
    }
}

impl std::iter::FusedIterator for BatchIter<'_> {}
