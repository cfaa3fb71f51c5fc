//! Room for one key: on the stack while keys are short, so that a point lookup allocates nothing.

use super::ids::SequenceNumber;
use super::key::{InternalKey, ValueType, pack_sequence_and_type};

const INLINE: usize = 96;

/// One key.
#[derive(Debug, Clone)]
pub(crate) struct KeyBuffer {
    inline: [u8; INLINE],
    /// Holds the key once it has outgrown `inline`, and from then on.
    heap: Vec<u8>,
    length: usize,
    on_heap: bool,
}

impl KeyBuffer {
    /// Empty.
    #[inline]
    pub fn new() -> Self {
        Self { inline: [0; INLINE], heap: Vec::new(), length: 0, on_heap: false }
    }

    /// The key at which a search for `user_key` as of `sequence` starts.
    #[inline]
    pub fn for_seek(user_key: &[u8], sequence: SequenceNumber) -> Self {
        let mut key = Self::new();
        key.splice(0, user_key);
        let packed = pack_sequence_and_type(sequence, ValueType::FOR_SEEK);
        key.splice(user_key.len(), &packed.to_le_bytes());
        key
    }

    /// The key, if it is an internal one that was put together here.
    ///
    /// # Panics
    /// If it is shorter than such a key.
    #[inline]
    pub fn as_key(&self) -> InternalKey<'_> {
        InternalKey::from_checked(self.as_slice())
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        if self.on_heap { &self.heap } else { &self.inline[..self.length] }
    }

    /// The bytes, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        if self.on_heap { &mut self.heap } else { &mut self.inline[..self.length] }
    }

    /// How many bytes it has.
    #[inline]
    pub fn len(&self) -> usize {
        if self.on_heap { self.heap.len() } else { self.length }
    }

    /// Keeps the first `shared` bytes, which must be there, and appends `suffix`.
    #[inline]
    pub fn splice(&mut self, shared: usize, suffix: &[u8]) {
        if !self.on_heap {
            let length = shared + suffix.len();
            if length <= INLINE {
                self.inline[shared..length].copy_from_slice(suffix);
                self.length = length;
                return;
            }
            self.heap.clear();
            self.heap.extend_from_slice(&self.inline[..shared]);
            self.on_heap = true;
        }
        self.heap.truncate(shared);
        self.heap.extend_from_slice(suffix);
    }
}
