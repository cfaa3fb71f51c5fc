//! Values handed out by reads.

use std::fmt;
use std::ops::{Deref, Range};

use bytes::Bytes;

use crate::sst::BlockSlice;

/// A value returned by a read. It is pinned in the cache if possible, otherwise owned.
///
/// Holding a value keeps its block in memory, but no lock.
#[derive(Clone)]
pub struct Value(Repr);

#[derive(Clone)]
enum Repr {
    Owned(Vec<u8>),
    Shared(Bytes),
    Pinned(BlockSlice),
}

impl Value {
    /// The bytes as an owned vector; copies pinned bytes.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Repr::Owned(bytes) => bytes,
            Repr::Shared(bytes) => bytes.into(),
            Repr::Pinned(slice) => slice.as_ref().to_vec(),
        }
    }
}

impl Value {
    /// Bytes of memory that are this value's alone.
    pub(in crate::db) fn owned_bytes(&self) -> usize {
        if let Repr::Owned(bytes) = &self.0 { bytes.len() } else { 0 }
    }

    /// A part of the bytes; copied only where they are owned, and not from the beginning.
    ///
    /// # Panics
    /// If the range leaves the value.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        match self.0 {
            Repr::Shared(bytes) => bytes.slice(range).into(),
            Repr::Pinned(slice) => slice.slice(range).into(),
            Repr::Owned(mut bytes) if range.start == 0 && range.end <= bytes.len() => {
                bytes.truncate(range.end);
                bytes.into()
            }
            whole => Self(whole)[range].to_vec().into(),
        }
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Repr::Owned(bytes))
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self(Repr::Shared(bytes))
    }
}

/// Copies the bytes if they are pinned.
impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.into_vec()
    }
}

/// Copies nothing: what is pinned stays so as long as the bytes live.
impl From<Value> for Bytes {
    fn from(value: Value) -> Self {
        match value.0 {
            Repr::Owned(bytes) => bytes.into(),
            Repr::Shared(bytes) => bytes,
            Repr::Pinned(slice) => Self::from_owner(slice),
        }
    }
}

impl From<BlockSlice> for Value {
    fn from(slice: BlockSlice) -> Self {
        Self(Repr::Pinned(slice))
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Owned(bytes) => bytes,
            Repr::Shared(bytes) => bytes,
            Repr::Pinned(slice) => slice.as_ref(),
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl Eq for Value {}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}
