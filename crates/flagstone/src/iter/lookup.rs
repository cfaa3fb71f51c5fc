//! The result of the versions of one key.
//!
//! Versions are taken from newest to oldest. `T` is the newest visible range tombstone that covers
//! the key in the sources seen so far. A version older than `T` counts as a deletion.
//!
//! ```text
//! version                  no operands yet        operands collected
//! value, blob, entity      found                  merge over it
//! any deletion             not found              merge over nothing
//! merge operand            collect, go on         collect, go on
//! no more                  not found              merge over nothing
//! ```

use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use crate::base::entity::{self, DefaultColumn};
use crate::base::merge::{full_merge, refused};
use crate::base::perf::{self, PerfMetric};
use crate::base::{
    Error, MergeBase, MergeOperator, Merged, Result, SequenceNumber, ValueType, WideColumns,
    key_in_words,
};
use crate::blob::{BlobIndex, visit_references};

/// Fetches values that lie in blob files.
pub trait ValueResolver {
    /// Reads the value to which `blob_index` (as stored in the tree) points.
    ///
    /// # Errors
    /// What reading the blob file says; `Corruption` if the index or the blob is damaged.
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes>;

    /// [`Self::resolve_blob`] for a scan that comes then to the indexes that `upcoming` shows to
    /// whom it is given, until told `false`: a hint.
    ///
    /// # Errors
    /// The same.
    fn resolve_in_scan(
        &self,
        user_key: &[u8],
        blob_index: &[u8],
        upcoming: &Upcoming<'_>,
    ) -> Result<Bytes> {
        let _ = upcoming;
        self.resolve_blob(user_key, blob_index)
    }
}

/// Shows blob indexes to whom it is given, until told `false`.
pub type Upcoming<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> bool) + 'a;

impl<R: ValueResolver + ?Sized> ValueResolver for &R {
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        (**self).resolve_blob(user_key, blob_index)
    }
}

impl<R: ValueResolver + ?Sized> ValueResolver for std::sync::Arc<R> {
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        (**self).resolve_blob(user_key, blob_index)
    }
}

/// The state of a point lookup; `V` is a value that the caller keeps pinned.
///
/// For each source, newest first: [`Lookup::cover`], then [`Lookup::add`] for its versions of the
/// key, until [`Lookup::is_done`].
#[derive(Debug)]
pub struct Lookup<V> {
    /// Newest first.
    operands: Vec<V>,
    base: Option<(ValueType, V)>,
    covering: SequenceNumber,
    ended: bool,
}

/// What the versions of the key amount to.
#[derive(Debug)]
pub enum Outcome<V> {
    /// The key does not exist.
    NotFound,
    /// One entry has it all: its type says how the value is stored.
    Found(ValueType, V),
    /// Operands, newest first, over a base.
    Merge {
        /// The entry under the operands, if there is one.
        base: Option<(ValueType, V)>,
        /// The operands, newest first.
        operands: Vec<V>,
    },
}

/// A value that was looked up.
#[derive(Debug)]
pub enum LookupValue<V> {
    /// The bytes `start..end` of a pinned value.
    Pinned {
        /// The stored value.
        value: V,
        /// Where the user's value starts in it.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// Made for this lookup: merged, or read from a blob file.
    Owned(Bytes),
}

impl<V> Default for Lookup<V> {
    fn default() -> Self {
        Self { operands: Vec::new(), base: None, covering: 0, ended: false }
    }
}

impl<V: AsRef<[u8]>> Lookup<V> {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the newest visible tombstone (0: none) that covers the key in the source whose entries
    /// come next.
    #[inline]
    pub fn cover(&mut self, sequence: SequenceNumber) {
        self.covering = self.covering.max(sequence);
    }

    /// Says that a tombstone of a newer source covers the key: no version that comes matters.
    #[inline]
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Takes the next version, newest first; all must be visible to the reader's snapshot. Breaks
    /// when older ones cannot matter.
    #[inline]
    pub fn add(
        &mut self,
        sequence: SequenceNumber,
        value_type: ValueType,
        value: V,
    ) -> ControlFlow<()> {
        debug_assert!(!self.ended);
        if self.counts(sequence) {
            match value_type {
                ValueType::Merge => {
                    self.operands.push(value);
                    return ControlFlow::Continue(());
                }
                ValueType::Value
                | ValueType::BlobIndex
                | ValueType::WideColumnEntity
                | ValueType::ValuePreferredSeqno => self.base = Some((value_type, value)),
                ValueType::Deletion
                | ValueType::SingleDeletion
                | ValueType::RangeDeletion
                | ValueType::DeletionWithTimestamp => {}
            }
        }
        self.ended = true;
        ControlFlow::Break(())
    }

    /// Whether a version with this number counts: none that a range tombstone covers does.
    #[inline]
    pub fn counts(&self, sequence: SequenceNumber) -> bool {
        sequence >= self.covering
    }

    /// Whether no older version can matter any more.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// How many versions were found that count, the one that ends the lookup included.
    #[inline]
    pub fn versions(&self) -> usize {
        self.operands.len() + usize::from(self.ended)
    }

    /// Whether a value was found, and not only operands or a deletion.
    pub fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Whether operands wait for what lies below them.
    #[inline]
    pub fn has_operands(&self) -> bool {
        !self.operands.is_empty()
    }

    /// Asked between two sources: whether older ones cannot matter any more. Under a range
    /// tombstone they cannot: what they hold of the key is older than it. The files of one level
    /// are one source: where a user key straddles two of them, ask [`Lookup::has_ended`] in
    /// between.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.ended || self.covering > 0
    }

    /// The result; call it when done, or when there are no more sources.
    pub fn finish(self) -> Outcome<V> {
        match (self.base, self.operands) {
            (None, operands) if operands.is_empty() => Outcome::NotFound,
            (Some((value_type, value)), operands) if operands.is_empty() => {
                Outcome::Found(value_type, value)
            }
            (base, operands) => Outcome::Merge { base, operands },
        }
    }
}

impl<V: AsRef<[u8]>> Outcome<V> {
    /// The user's value: fetches blobs, merges operands, takes entities' default column.
    ///
    /// # Errors
    /// `InvalidArgument` for operands without an operator; `Corruption` for undecodable values and
    /// refused merges; what `resolver` says.
    pub fn resolve(
        self,
        user_key: &[u8],
        operator: Option<&dyn MergeOperator>,
        resolver: &impl ValueResolver,
    ) -> Result<Option<LookupValue<V>>> {
        Ok(Some(match self {
            Self::NotFound => return Ok(None),
            Self::Found(value_type, value) => {
                match locate_value(user_key, value_type, value.as_ref())? {
                    Stored::Inline(Range { start, end }) => {
                        LookupValue::Pinned { value, start, end }
                    }
                    Stored::Blob(index) => {
                        let index = &value.as_ref()[index];
                        LookupValue::Owned(resolver.resolve_blob(user_key, index)?)
                    }
                }
            }
            Self::Merge { base, operands } => {
                perf::count(PerfMetric::InternalMergePointLookupCount, operands.len() as u64);
                let oldest_first: Vec<&[u8]> = operands.iter().rev().map(AsRef::as_ref).collect();
                let base = base.as_ref().map(|(value_type, value)| (*value_type, value.as_ref()));
                LookupValue::Owned(
                    merge_over(user_key, base, &oldest_first, operator, resolver)?.into(),
                )
            }
        }))
    }

    /// All columns: fetches blobs, and merges operands. A plain value is one column.
    ///
    /// # Errors
    /// As [`Outcome::resolve`].
    pub fn resolve_columns(
        self,
        user_key: &[u8],
        operator: Option<&dyn MergeOperator>,
        resolver: &impl ValueResolver,
    ) -> Result<Option<WideColumns>>
    where
        V: Into<Bytes>,
    {
        let (value_type, stored) = match self {
            Self::NotFound => return Ok(None),
            Self::Found(value_type, value) => (value_type, value.into()),
            Self::Merge { base, operands } => {
                perf::count(PerfMetric::InternalMergePointLookupCount, operands.len() as u64);
                let oldest_first: Vec<&[u8]> = operands.iter().rev().map(AsRef::as_ref).collect();
                let base = base.as_ref().map(|(value_type, value)| (*value_type, value.as_ref()));
                let (value_type, merged) =
                    merge_whole(user_key, base, &oldest_first, operator, resolver)?;
                (value_type, merged.into())
            }
        };
        columns_of(user_key, value_type, stored, resolver).map(Some)
    }
}

impl<V: AsRef<[u8]>> AsRef<[u8]> for LookupValue<V> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Pinned { value, start, end } => &value.as_ref()[*start..*end],
            Self::Owned(value) => value,
        }
    }
}

/// Where the user's value lies.
pub(crate) enum Stored {
    /// In this part of the stored bytes.
    Inline(Range<usize>),
    /// In a blob file; this part of the stored bytes says where.
    Blob(Range<usize>),
}

/// Finds the user's value in an entry that holds one.
#[inline]
pub(crate) fn locate_value(
    user_key: &[u8],
    value_type: ValueType,
    stored: &[u8],
) -> Result<Stored> {
    match value_type {
        ValueType::BlobIndex => Ok(Stored::Blob(0..stored.len())),
        ValueType::WideColumnEntity => match entity::default_column(stored) {
            Ok(DefaultColumn { range, is_blob: false }) => Ok(Stored::Inline(range)),
            Ok(DefaultColumn { range, is_blob: true }) => Ok(Stored::Blob(range)),
            Err(error) => Err(in_key(error, user_key)),
        },
        ValueType::ValuePreferredSeqno => {
            let length = stored.len().checked_sub(size_of::<SequenceNumber>());
            let too_short = || {
                let key = user_key.escape_ascii();
                Error::corruption(format!(
                    "key '{key}': the value is too short for a preferred sequence number"
                ))
            };
            length.map(|length| Stored::Inline(0..length)).ok_or_else(too_short)
        }
        _ => Ok(Stored::Inline(0..stored.len())),
    }
}

/// Whether the value of an entry is what its type says: asked where it is known in which table the
/// entry lies.
///
/// # Errors
/// `Corruption`, or `NotSupported`, naming the key.
#[inline]
pub(crate) fn check_value(user_key: &[u8], value_type: ValueType, stored: &[u8]) -> Result<()> {
    match value_type {
        ValueType::BlobIndex => {
            BlobIndex::decode(stored).map(drop).map_err(|error| in_key(error, user_key))
        }
        ValueType::WideColumnEntity => {
            locate_value(user_key, value_type, stored)?;
            visit_references(Some(value_type), stored, |_| Ok(()))
                .map_err(|error| in_key(error, user_key))
        }
        _ => locate_value(user_key, value_type, stored).map(drop),
    }
}

/// Says of an error which key's value it is about.
pub(crate) fn in_key(error: Error, user_key: &[u8]) -> Error {
    error.context(format!("key '{}'", user_key.escape_ascii()))
}

/// The columns of an entry that holds a value.
pub(crate) fn columns_of(
    user_key: &[u8],
    value_type: ValueType,
    stored: Bytes,
    resolver: &impl ValueResolver,
) -> Result<WideColumns> {
    if value_type == ValueType::WideColumnEntity {
        let fetch = |index: &[u8]| resolver.resolve_blob(user_key, index);
        return WideColumns::of_entity(stored, fetch).map_err(|error| in_key(error, user_key));
    }
    Ok(WideColumns::of_value(match locate_value(user_key, value_type, &stored)? {
        Stored::Inline(range) => stored.slice(range),
        Stored::Blob(index) => resolver.resolve_blob(user_key, &stored[index])?,
    }))
}

/// Merges operands, oldest first, over a stored base. Over an entity it returns the new default
/// column.
pub(crate) fn merge_over(
    user_key: &[u8],
    base: Option<(ValueType, &[u8])>,
    operands: &[&[u8]],
    operator: Option<&dyn MergeOperator>,
    resolver: &impl ValueResolver,
) -> Result<Vec<u8>> {
    let operator = operator.ok_or_else(|| no_merge_operator(user_key))?;
    if operator.merges_columns() {
        let (value_type, merged) = merge_columns(user_key, base, operands, operator, resolver)?;
        return match locate_value(user_key, value_type, &merged)? {
            Stored::Inline(range) if range.len() == merged.len() => Ok(merged),
            Stored::Inline(range) | Stored::Blob(range) => Ok(merged[range].to_vec()),
        };
    }
    let Some((value_type, stored)) = base else {
        return full_merge(operator, user_key, None, operands);
    };
    match locate_value(user_key, value_type, stored)? {
        Stored::Inline(range) => full_merge(operator, user_key, Some(&stored[range]), operands),
        Stored::Blob(index) => {
            let value = resolver.resolve_blob(user_key, &stored[index])?;
            full_merge(operator, user_key, Some(&value), operands)
        }
    }
}

/// Merges operands, oldest first, over a stored base. Returns what is to be stored: a value, or an
/// entity.
pub(crate) fn merge_whole(
    user_key: &[u8],
    base: Option<(ValueType, &[u8])>,
    operands: &[&[u8]],
    operator: Option<&dyn MergeOperator>,
    resolver: &impl ValueResolver,
) -> Result<(ValueType, Vec<u8>)> {
    match operator {
        Some(operator) if operator.merges_columns() => {
            merge_columns(user_key, base, operands, operator, resolver)
        }
        _ => {
            let merged = merge_over(user_key, base, operands, operator, resolver)?;
            match base {
                Some((ValueType::WideColumnEntity, entity)) => {
                    let entity = entity::with_default_column(entity, &merged)
                        .map_err(|error| in_key(error, user_key))?;
                    Ok((ValueType::WideColumnEntity, entity))
                }
                _ => Ok((ValueType::Value, merged)),
            }
        }
    }
}

/// [`merge_whole`] by an operator that sees all columns.
fn merge_columns(
    user_key: &[u8],
    base: Option<(ValueType, &[u8])>,
    operands: &[&[u8]],
    operator: &dyn MergeOperator,
    resolver: &impl ValueResolver,
) -> Result<(ValueType, Vec<u8>)> {
    let columns = match base {
        Some((value_type, stored)) => {
            let stored = Bytes::copy_from_slice(stored);
            Some((value_type, columns_of(user_key, value_type, stored, resolver)?))
        }
        None => None,
    };
    let existing = match &columns {
        None => MergeBase::Nothing,
        Some((ValueType::WideColumnEntity, columns)) => MergeBase::Columns(columns),
        Some((_, value)) => MergeBase::Value(value.get("").unwrap_or_default()),
    };
    let time = perf::time(PerfMetric::MergeOperatorTimeNanos);
    let merged = operator.full_merge_columns(user_key, existing, operands);
    drop(time);
    let encoded = match merged {
        Some(Merged::Value(value)) => return Ok((ValueType::Value, value)),
        Some(Merged::Columns(columns)) => entity::encode_unsorted(columns).ok(),
        None => None,
    };
    match encoded {
        Some(entity) => Ok((ValueType::WideColumnEntity, entity)),
        None => Err(refused(operator, user_key, operands.len())),
    }
}

/// For operands where no operator was set.
pub(crate) fn no_merge_operator(user_key: &[u8]) -> Error {
    Error::invalid_argument(format!(
        "key '{}' has merge operands, but its column family was opened without a merge operator",
        key_in_words(user_key)
    ))
}

#[cfg(test)]
mod tests;
