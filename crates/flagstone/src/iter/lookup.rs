//! What the versions of one key amount to.

use std::ops::ControlFlow;

use crate::base::{Error, MergeOperator, Result, SequenceNumber, ValueType};

/// Fetches values that lie in blob files.
pub trait ValueResolver {
    /// Reads the value to which `blob_index` (as stored in the tree) points.
    ///
    /// # Errors
    /// What reading the blob file says; `Corruption` if the index or the blob is damaged.
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Vec<u8>>;
}

/// For sources without blob files: a blob index is a corruption.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBlobs;

impl ValueResolver for NoBlobs {
    fn resolve_blob(&self, user_key: &[u8], _blob_index: &[u8]) -> Result<Vec<u8>> {
        let key = user_key.escape_ascii();
        Err(Error::corruption(format!("key '{key}' points to a blob, but there are no blob files")))
    }
}

/// The state of a point lookup; `V` is a value that the caller keeps pinned.
#[derive(Debug)]
pub struct Lookup<V> {
    operands: Vec<V>,
    covering: SequenceNumber,
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
    Owned(Vec<u8>),
}

impl<V: AsRef<[u8]>> Lookup<V> {
    /// Nothing seen yet.
    pub fn new() -> Self {
        todo!()
    }

    /// Notes the newest visible tombstone (0: none) that covers the key in the source whose entries come next.
    pub fn cover(&mut self, _sequence: SequenceNumber) {
        todo!()
    }

    /// Takes the next version, newest first; all must be visible to the reader's snapshot. Breaks when older ones
    /// cannot matter.
    pub fn add(&mut self, _sequence: SequenceNumber, _value_type: ValueType, _value: V) -> ControlFlow<()> {
        todo!()
    }

    /// Whether older sources cannot matter any more.
    pub fn is_done(&self) -> bool {
        todo!()
    }

    /// The result; call it when done, or when there are no more sources.
    pub fn finish(self) -> Outcome<V> {
        todo!()
    }
}

impl<V: AsRef<[u8]>> Outcome<V> {
    /// The user's value: fetches blobs, merges operands, takes entities' default column.
    ///
    /// # Errors
    /// `InvalidArgument` for operands without an operator; `Corruption` for undecodable values and refused merges; what
    /// `resolver` says.
    pub fn resolve(
        self,
        _user_key: &[u8],
        _operator: Option<&dyn MergeOperator>,
        _resolver: &impl ValueResolver,
    ) -> Result<Option<LookupValue<V>>> {
        todo!()
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
