//! Tables whose keys are stored without timestamps, seen as if each had the least one.

use crate::base::{
    InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PACKED_SIZE, ValueType, timestamp,
};

/// The key on which a cursor over such a table stands.
pub(super) struct Padding {
    size: usize,
    key: Vec<u8>,
}

impl Padding {
    /// `None` for a table that has its timestamps.
    pub(super) fn of(size: usize) -> Option<Box<Self>> {
        (size > 0).then(|| Box::new(Self { size, key: vec![0; PACKED_SIZE] }))
    }

    /// The key, which was noted.
    pub(super) fn key(&self) -> InternalKey<'_> {
        InternalKey::from_checked(&self.key)
    }

    /// Notes the stored key on which the cursor stands.
    pub(super) fn note(&mut self, stored: InternalKey<'_>) {
        self.key.clear();
        self.key.extend_from_slice(stored.user_key());
        self.key.resize(self.key.len() + self.size, 0);
        self.key.extend_from_slice(&stored.packed().to_le_bytes());
    }

    /// The place in the table of a place among keys with timestamps of `size` bytes.
    pub(super) fn stored(size: usize, place: InternalKey<'_>) -> InternalKeyBuf {
        let (key, stamp) = timestamp::split(place.user_key(), size);
        let is_least = stamp.iter().all(|byte| *byte == 0);
        match place.value_type().filter(|_| is_least) {
            Some(value_type) => InternalKeyBuf::new(key, place.sequence(), value_type),
            // Before all that is stored of the key.
            None => InternalKeyBuf::new(key, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK),
        }
    }

    /// [`Padding::stored`] for this table.
    pub(super) fn place(&self, place: InternalKey<'_>) -> InternalKeyBuf {
        Self::stored(self.size, place)
    }
}
