//! Internal keys: a user key with the sequence number and kind of the write that made it.
//!
//! ```text
//! internal key = user key, fixed64 (sequence << 8 | value type)
//! order        = user key ascending by the comparator, then the packed number descending (newest first)
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::comparator::Comparator;
use super::ids::SequenceNumber;

/// The bytes that an internal key has beyond its user key.
pub const PACKED_SIZE: usize = 8;

/// What a write did to its key; the numbers are stored in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueType {
    /// The key was deleted.
    Deletion = 0x00,
    /// The key was set.
    Value = 0x01,
    /// A merge operand was added.
    Merge = 0x02,
    /// The key, written at most once before, was deleted.
    SingleDeletion = 0x07,
    /// All keys of a range were deleted.
    RangeDeletion = 0x0f,
    /// The key was set; its value lies in a blob file.
    BlobIndex = 0x11,
    /// A deletion in a family with user timestamps.
    DeletionWithTimestamp = 0x14,
    /// The key was set to an entity of named columns.
    WideColumnEntity = 0x16,
    /// The key was set; the value's last eight bytes are a preferred sequence number.
    ValuePreferredSeqno = 0x18,
}

/// `kTypeMaxValid` of RocksDB 11.8, one more than the last type of an entry.
const CUT: u8 = 0x1a;

impl ValueType {
    /// The type to seek with: sorts before every entry of the same key and sequence number.
    pub const FOR_SEEK: Self = Self::ValuePreferredSeqno;

    /// The type that a stored byte means, if any.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::Deletion,
            0x01 => Self::Value,
            0x02 => Self::Merge,
            0x07 => Self::SingleDeletion,
            0x0f => Self::RangeDeletion,
            0x11 => Self::BlobIndex,
            0x14 => Self::DeletionWithTimestamp,
            0x16 => Self::WideColumnEntity,
            0x18 => Self::ValuePreferredSeqno,
            _ => return None,
        })
    }
}

/// The largest sequence number that can be stored.
pub const MAX_SEQUENCE_NUMBER: SequenceNumber = (1 << 56) - 1;

/// Sequence number and type as one number.
#[inline]
pub fn pack_sequence_and_type(sequence: SequenceNumber, value_type: ValueType) -> u64 {
    debug_assert!(sequence <= MAX_SEQUENCE_NUMBER);
    (sequence << 8) | value_type as u64
}

/// The sequence number, and the type if its byte is one.
#[inline]
pub fn unpack_sequence_and_type(packed: u64) -> (SequenceNumber, Option<ValueType>) {
    (packed >> 8, ValueType::from_byte(packed as u8))
}

/// A borrowed internal key: at least eight bytes long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InternalKey<'a>(&'a [u8]);

impl<'a> InternalKey<'a> {
    /// Takes bytes of unknown origin; `None` if they are too short or their type is unknown.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let key = Self(bytes);
        (bytes.len() >= PACKED_SIZE && ValueType::from_byte(key.packed() as u8).is_some())
            .then_some(key)
    }

    /// Takes bytes that were checked or made here.
    ///
    /// # Panics
    /// If there are fewer than eight.
    #[inline]
    pub fn from_checked(bytes: &'a [u8]) -> Self {
        assert!(bytes.len() >= PACKED_SIZE, "an internal key has at least {PACKED_SIZE} bytes");
        Self(bytes)
    }

    /// All of it, as stored.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The application's part.
    #[inline]
    pub fn user_key(&self) -> &'a [u8] {
        &self.0[..self.0.len() - PACKED_SIZE]
    }

    /// Sequence number and type as stored.
    #[inline]
    pub fn packed(&self) -> u64 {
        let at = self.0.len() - PACKED_SIZE;
        u64::from_le_bytes(self.0[at..].try_into().expect("eight bytes"))
    }

    /// The sequence number.
    #[inline]
    pub fn sequence(&self) -> SequenceNumber {
        self.packed() >> 8
    }

    /// The type; `None` for a byte that is no type.
    #[inline]
    pub fn value_type(&self) -> Option<ValueType> {
        ValueType::from_byte(self.packed() as u8)
    }

    /// An owned copy.
    pub fn to_buf(&self) -> InternalKeyBuf {
        InternalKeyBuf(self.0.to_vec())
    }
}

/// Of a key so many bytes are told.
const BYTES_IN_WORDS: usize = 1024;

/// A user key in words: of a long one the beginning, and how long it is.
pub fn key_in_words(user_key: &[u8]) -> impl fmt::Display {
    let (begin, rest) = user_key.split_at(user_key.len().min(BYTES_IN_WORDS));
    let end =
        if rest.is_empty() { String::new() } else { format!("...[{} bytes]", user_key.len()) };
    fmt::from_fn(move |f| write!(f, "{}{end}", begin.escape_ascii()))
}

impl fmt::Debug for InternalKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{:?}", key_in_words(self.user_key()), self.sequence(), self.value_type())
    }
}

/// An owned internal key.
#[derive(Clone, PartialEq, Eq)]
pub struct InternalKeyBuf(Vec<u8>);

impl InternalKeyBuf {
    /// Puts a key together.
    pub fn new(user_key: &[u8], sequence: SequenceNumber, value_type: ValueType) -> Self {
        let mut bytes = Vec::with_capacity(user_key.len() + PACKED_SIZE);
        bytes.extend_from_slice(user_key);
        bytes.extend_from_slice(&pack_sequence_and_type(sequence, value_type).to_le_bytes());
        Self(bytes)
    }

    /// The key at which a search for `user_key` as of `sequence` starts.
    pub fn for_seek(user_key: &[u8], sequence: SequenceNumber) -> Self {
        Self::new(user_key, sequence, ValueType::FOR_SEEK)
    }

    /// Takes stored bytes; `None` if they are no internal key.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        InternalKey::parse(bytes).map(|key| key.to_buf())
    }

    /// Takes the stored bound of a table: an internal key, or the place at which RocksDB 11.8 cuts
    /// a range deletion between two tables, whose type no entry has.
    pub fn parse_bound(bytes: &[u8]) -> Option<Self> {
        let is_cut = bytes.len().checked_sub(PACKED_SIZE).is_some_and(|at| bytes[at] == CUT);
        if is_cut { Some(Self(bytes.to_vec())) } else { Self::parse(bytes) }
    }

    /// Replaces the content, keeping the allocation.
    pub fn set(&mut self, user_key: &[u8], sequence: SequenceNumber, value_type: ValueType) {
        self.0.clear();
        self.0.extend_from_slice(user_key);
        self.0.extend_from_slice(&pack_sequence_and_type(sequence, value_type).to_le_bytes());
    }

    /// Replaces all but the user key.
    pub fn set_version(&mut self, sequence: SequenceNumber, value_type: ValueType) {
        let at = self.user_key().len();
        self.0[at..].copy_from_slice(&pack_sequence_and_type(sequence, value_type).to_le_bytes());
    }

    /// Becomes a copy of `key`, keeping the allocation.
    pub fn set_from(&mut self, key: InternalKey<'_>) {
        self.0.clear();
        self.0.extend_from_slice(key.as_bytes());
    }

    /// The borrowed form.
    #[inline]
    pub fn as_key(&self) -> InternalKey<'_> {
        InternalKey(&self.0)
    }

    /// The application's part.
    pub fn user_key(&self) -> &[u8] {
        self.as_key().user_key()
    }

    /// All of it, as stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for InternalKeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_key().fmt(f)
    }
}

/// The order of internal keys.
#[derive(Debug, Clone, PartialEq)]
pub struct InternalKeyComparator {
    /// The order of the user keys.
    pub user: Comparator,
    /// Only where user keys end in timestamps.
    stamped: Option<Arc<Stamped>>,
}

/// What timestamps add to the order of user keys.
#[derive(Debug, PartialEq)]
struct Stamped {
    /// The order by which all versions of a key are equal.
    keys: Comparator,
    size: usize,
}

impl InternalKeyComparator {
    /// The internal order over `user`.
    pub fn new(user: Comparator) -> Self {
        let size = user.timestamp_size();
        let stamped = (size > 0).then(|| Arc::new(Stamped { keys: user.grouping(), size }));
        Self { user, stamped }
    }

    /// The order of the user keys without regard to timestamps: all versions of a key are equal.
    #[inline]
    pub fn keys(&self) -> &Comparator {
        self.stamped.as_ref().map_or(&self.user, |stamped| &stamped.keys)
    }

    /// The bytes of the timestamp that each user key ends in; 0 if keys have none.
    #[inline]
    pub fn timestamp_size(&self) -> usize {
        self.stamped.as_ref().map_or(0, |stamped| stamped.size)
    }

    /// Compares two internal keys.
    #[inline]
    pub fn compare(&self, a: InternalKey<'_>, b: InternalKey<'_>) -> Ordering {
        self.user.compare(a.user_key(), b.user_key()).then_with(|| b.packed().cmp(&a.packed()))
    }
}

#[cfg(test)]
mod tests;
