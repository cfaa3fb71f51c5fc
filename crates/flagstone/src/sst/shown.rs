//! What a cursor shows where a table does not store entries as they count: keys without their
//! timestamps, which are seen as if each had the least one, and values that lie apart in the table.

use crate::base::{
    Error, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PACKED_SIZE, Result, ValueType,
    pack_sequence_and_type, timestamp,
};

use super::block::BlockIter;
use super::embedded::WholeValue;
use super::fetch::BlockSource;
use super::settings::ReadSettings;
use super::table::Table;

/// The entry on which a cursor over such a table stands.
pub(super) struct Shown {
    /// Bytes of the timestamp that keys get.
    padding: usize,
    has_records: bool,
    key: Vec<u8>,
    /// `None` if it is what is stored.
    value: Option<WholeValue>,
}

impl Shown {
    /// `None` for a table that stores entries as they count.
    pub(super) fn of(table: &Table) -> Option<Box<Self>> {
        let (padding, has_records) = (table.padding, table.source.records_end.is_some());
        let shown = Self { padding, has_records, key: vec![0; PACKED_SIZE], value: None };
        (padding > 0 || has_records).then(|| Box::new(shown))
    }

    /// Whether values lie apart.
    pub(super) fn has_records(&self) -> bool {
        self.has_records
    }

    /// The key, which was noted.
    pub(super) fn key(&self) -> InternalKey<'_> {
        InternalKey::from_checked(&self.key)
    }

    /// The value, which was noted; `None` if it is what is stored.
    pub(super) fn value(&self) -> Option<&WholeValue> {
        self.value.as_ref()
    }

    /// Notes the entry on which the cursor stands.
    ///
    /// # Errors
    /// Those of [`BlockSource::whole_value`].
    pub(super) fn note(
        &mut self,
        stored: &BlockIter,
        source: &BlockSource,
        settings: &ReadSettings,
    ) -> Result<()> {
        let key = stored.key();
        let mut packed = key.packed();
        self.value = None;
        if self.has_records {
            let kind =
                key.value_type().ok_or_else(|| Error::corruption("an entry of unknown type"))?;
            self.value = source.whole_value(kind, stored.value(), settings)?;
            if let Some(value) = &self.value {
                packed = pack_sequence_and_type(key.sequence(), value.kind);
            }
        }
        self.key.clear();
        self.key.extend_from_slice(key.user_key());
        self.key.resize(self.key.len() + self.padding, 0);
        self.key.extend_from_slice(&packed.to_le_bytes());
        Ok(())
    }

    /// Lets go of the value.
    pub(super) fn forget(&mut self) {
        self.value = None;
    }

    /// The place in the table of a place among the entries that are shown. A seek back from it
    /// finds what is shown up to it, one forward what is shown from it on: a table has one entry of
    /// a key and a number.
    pub(super) fn place(&self, place: InternalKey<'_>, back: bool) -> InternalKeyBuf {
        let mut stored = stored_place(self.padding, place);
        let key = stored.as_key();
        let (sequence, kind) = (key.sequence(), key.value_type());
        // What is shown as a value may be stored as a blob index, which sorts before it.
        let is_behind = kind.is_some_and(|kind| (0x01..=0x11).contains(&(kind as u8)));
        if self.has_records && is_behind && !back {
            stored.set_version(sequence, ValueType::BlobIndex);
        }
        stored
    }
}

/// The place, among keys stored without timestamps of `size` bytes, of a place among keys with
/// some.
pub(super) fn stored_place(size: usize, place: InternalKey<'_>) -> InternalKeyBuf {
    if size == 0 {
        return place.to_buf();
    }
    let (key, stamp) = timestamp::split(place.user_key(), size);
    let is_least = stamp.iter().all(|byte| *byte == 0);
    match place.value_type().filter(|_| is_least) {
        Some(value_type) => InternalKeyBuf::new(key, place.sequence(), value_type),
        // Before all that is stored of the key.
        None => InternalKeyBuf::new(key, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK),
    }
}

#[cfg(test)]
mod tests;
