//! What a table says about itself: the properties block.
//!
//! An ordinary block with one restart, names ascending; numbers are varint64 unless [`name`] says
//! otherwise.

use std::collections::BTreeMap;

use crate::base::coding::{Decoder, fixed32_at, fixed64_at, put_lps, put_varint64};
use crate::base::{
    ColumnFamilyId, Error, FileNumber, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, Result,
    SequenceNumber, UniqueId, WriteTimes,
};

use super::block::{Block, BlockBuilder, BlockWalk};
use super::format::IndexType;
use super::index::IndexFlavor;

/// Names of properties that have a meaning here.
pub(crate) mod name {
    /// fixed32.
    pub const INDEX_TYPE: &str = "rocksdb.block.based.table.index.type";
    /// "0" or "1".
    pub const WHOLE_KEY_FILTERING: &str = "rocksdb.block.based.table.whole.key.filtering";
    /// "0" or "1".
    pub const PREFIX_FILTERING: &str = "rocksdb.block.based.table.prefix.filtering";
    /// "0" or "1".
    pub const DECOUPLED_FILTERS: &str = "rocksdb.block.based.table.decoupled.partitioned.filters";
    pub const INDEX_KEY_IS_USER_KEY: &str = "rocksdb.index.key.is.user.key";
    pub const INDEX_VALUE_IS_DELTA: &str = "rocksdb.index.value.is.delta.encoded";
    pub const INDEX_PARTITIONS: &str = "rocksdb.index.partitions";
    pub const TOP_LEVEL_INDEX_SIZE: &str = "rocksdb.top-level.index.size";
    pub const COMPRESSION_OPTIONS: &str = "rocksdb.compression_options";
    pub const DATA_RESTART_INTERVAL: &str = "rocksdb.data.block.restart.interval";
    pub const INDEX_RESTART_INTERVAL: &str = "rocksdb.index.block.restart.interval";
    pub const PROPERTY_COLLECTORS: &str = "rocksdb.property.collectors";
    pub const TIMESTAMP_MIN: &str = "rocksdb.timestamp_min";
    pub const TIMESTAMP_MAX: &str = "rocksdb.timestamp_max";
    pub const TIMESTAMPS_PERSISTED: &str = "rocksdb.user.defined.timestamps.persisted";
    /// Two varint64: how many values lie beside the blocks, and their bytes.
    pub const EMBEDDED_BLOBS: &str = "rocksdb.embedded.blob.stats";
    /// fixed32.
    pub const EXTERNAL_VERSION: &str = "rocksdb.external_sst_file.version";
    /// fixed64.
    pub const EXTERNAL_GLOBAL_SEQUENCE: &str = "rocksdb.external_sst_file.global_seqno";
    pub const FIXED_KEY_LENGTH: &str = "rocksdb.fixed.key.length";
    /// [`WriteTimes`](crate::base::WriteTimes) of the table's sequence numbers.
    pub const WRITE_TIMES: &str = "rocksdb.seqno.time.map";
    pub const NEWEST_KEY_TIME: &str = "rocksdb.newest.key.time";
    pub const COLUMN_FAMILY_ID: &str = "rocksdb.column.family.id";
    /// The table's bounds as the MANIFEST has them, if there are range tombstones: two internal
    /// keys, each lps.
    pub const BOUNDS: &str = "flagstone.bounds";
    /// When the table was written, tables had all writes of the family up to this sequence number.
    pub const FLUSHED_UNTIL: &str = "flagstone.flushed.until";
}

/// What the text of an absent merge operator or prefix extractor is.
const NO_COMPONENT: &str = "nullptr";
/// The number of an unknown column family.
const UNKNOWN_COLUMN_FAMILY: u64 = 0x7fff_ffff;

/// What a table that was written to be ingested says of its sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalForm {
    /// Version 1: they are 0 and stay so.
    Fixed,
    /// Version 2: all are this one, or what the MANIFEST says if it is 0.
    Numbered(SequenceNumber),
}

/// A property's name and the field that stands for it.
type Field<T> = (&'static str, fn(&mut TableProperties) -> &mut T);

/// The numbers.
const NUMBERS: [Field<u64>; 18] = [
    ("rocksdb.data.size", |p| &mut p.data_size),
    ("rocksdb.index.size", |p| &mut p.index_size),
    ("rocksdb.filter.size", |p| &mut p.filter_size),
    ("rocksdb.raw.key.size", |p| &mut p.raw_key_size),
    ("rocksdb.raw.value.size", |p| &mut p.raw_value_size),
    ("rocksdb.num.data.blocks", |p| &mut p.num_data_blocks),
    ("rocksdb.num.entries", |p| &mut p.num_entries),
    ("rocksdb.deleted.keys", |p| &mut p.num_deletions),
    ("rocksdb.merge.operands", |p| &mut p.num_merge_operands),
    ("rocksdb.num.range-deletions", |p| &mut p.num_range_deletions),
    ("rocksdb.num.filter_entries", |p| &mut p.num_filter_entries),
    ("rocksdb.format.version", |p| &mut p.format_version),
    ("rocksdb.creation.time", |p| &mut p.creation_time),
    ("rocksdb.oldest.key.time", |p| &mut p.oldest_key_time),
    ("rocksdb.file.creation.time", |p| &mut p.file_creation_time),
    ("rocksdb.newest.key.time", |p| &mut p.newest_key_time),
    ("rocksdb.tail.start.offset", |p| &mut p.tail_start_offset),
    ("rocksdb.original.file.number", |p| &mut p.original_file_number),
];

/// The texts.
const TEXTS: [Field<String>; 8] = [
    ("rocksdb.column.family.name", |p| &mut p.column_family_name),
    ("rocksdb.comparator", |p| &mut p.comparator),
    ("rocksdb.merge.operator", |p| &mut p.merge_operator),
    ("rocksdb.filter.policy", |p| &mut p.filter_policy),
    ("rocksdb.prefix.extractor.name", |p| &mut p.prefix_extractor),
    ("rocksdb.compression", |p| &mut p.compression),
    ("rocksdb.creating.db.identity", |p| &mut p.db_identity),
    ("rocksdb.creating.session.identity", |p| &mut p.session_identity),
];

/// The properties of a table; numbers that the file lacks are 0, texts empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableProperties {
    /// Everything as stored, by name.
    pub raw: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of all data blocks with their trailers, and of values between them.
    pub data_size: u64,
    /// Bytes of all data blocks before compression. The file does not record them: 0 in a table
    /// that was read.
    pub uncompressed_data_size: u64,
    /// Bytes of the index.
    pub index_size: u64,
    /// Bytes of the filter.
    pub filter_size: u64,
    /// Bytes of all internal keys, uncompressed.
    pub raw_key_size: u64,
    /// Bytes of all values, uncompressed.
    pub raw_value_size: u64,
    /// Data blocks.
    pub num_data_blocks: u64,
    /// Entries, range tombstones included.
    pub num_entries: u64,
    /// Deletions, range tombstones included.
    pub num_deletions: u64,
    /// Merge operands.
    pub num_merge_operands: u64,
    /// Range tombstones.
    pub num_range_deletions: u64,
    /// Keys and prefixes in the filter.
    pub num_filter_entries: u64,
    /// The format version that the writer noted.
    pub format_version: u64,
    /// The family's number, if noted.
    pub column_family: Option<u32>,
    /// The family's name.
    pub column_family_name: String,
    /// The comparator's name.
    pub comparator: String,
    /// The merge operator's name; empty if there is none.
    pub merge_operator: String,
    /// The prefix extractor's name; empty if there is none.
    pub prefix_extractor: String,
    /// The filter policy's name.
    pub filter_policy: String,
    /// The compression's name.
    pub compression: String,
    /// Seconds since 1970 when the oldest data was written.
    pub creation_time: u64,
    /// Seconds since 1970 of the oldest key.
    pub oldest_key_time: u64,
    /// Seconds since 1970 of the newest key.
    pub newest_key_time: u64,
    /// Seconds since 1970 when the file was made.
    pub file_creation_time: u64,
    /// Where the bytes after the last data block start.
    pub tail_start_offset: u64,
    /// The identity of the database that made the file.
    pub db_identity: String,
    /// The identity of the session that made the file.
    pub session_identity: String,
    /// The number that the file had when it was made.
    pub original_file_number: u64,
}

impl TableProperties {
    /// The oldest and the newest timestamp of the table's keys, if it says so.
    pub fn timestamps(&self) -> Option<(&[u8], &[u8])> {
        let found = |name: &str| self.raw.get(name.as_bytes()).map(Vec::as_slice);
        Some((found(name::TIMESTAMP_MIN)?, found(name::TIMESTAMP_MAX)?))
    }

    /// Whether keys have the timestamps that their order has: a table that says nothing of it has.
    pub fn has_timestamps(&self) -> bool {
        self.number(name::TIMESTAMPS_PERSISTED).ok().flatten() != Some(0)
    }

    /// The bytes of the timestamps that the table's keys end in, if it says so.
    pub fn timestamp_size(&self) -> Option<usize> {
        self.timestamps().map(|(oldest, _)| oldest.len())
    }

    /// In a table that names no family.
    pub const UNKNOWN_FAMILY: ColumnFamilyId = ColumnFamilyId(UNKNOWN_COLUMN_FAMILY as u32);

    /// Whether the property of this name is a text in [`TableProperties::raw`]: some texts look
    /// like stored numbers.
    pub fn is_text(name: &str) -> bool {
        let others = [name::COMPRESSION_OPTIONS, name::PROPERTY_COLLECTORS];
        TEXTS.iter().map(|(text, _)| *text).chain(others).any(|text| text == name)
    }

    /// The properties that collectors and other programs gave the table, by name: those whose names
    /// begin neither with `rocksdb.` nor with `flagstone.`.
    pub fn user_properties(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let is_users = |name: &[u8]| {
            ![&b"rocksdb."[..], b"flagstone."].iter().any(|own| name.starts_with(own))
        };
        self.named(is_users)
    }

    /// Those of the index and the filter, by name, which RocksDB counts among the collected ones.
    pub fn block_based_properties(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.named(|name| name.starts_with(b"rocksdb.block.based.table."))
    }

    fn named(&self, is_wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = (&[u8], &[u8])> {
        let all = self.raw.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        all.filter(move |(name, _)| is_wanted(name))
    }

    /// Whether the writer held data blocks back to make a compression dictionary of them, if they
    /// gave one or not.
    pub fn had_dictionary(&self) -> bool {
        let options =
            self.raw.get(&b"rocksdb.compression_options"[..]).map_or(&[][..], Vec::as_slice);
        let bytes = |field: &[u8]| {
            field.trim_ascii().strip_prefix(b"max_dict_bytes=").map(|bytes| bytes != b"0")
        };
        options.split(|byte| *byte == b';').filter_map(bytes).any(|is_set| is_set)
    }

    /// Adds the figures that can be summed up over tables.
    pub(crate) fn add(&mut self, other: &Self) {
        let figures = [
            (&mut self.data_size, other.data_size),
            (&mut self.index_size, other.index_size),
            (&mut self.filter_size, other.filter_size),
            (&mut self.raw_key_size, other.raw_key_size),
            (&mut self.raw_value_size, other.raw_value_size),
            (&mut self.num_data_blocks, other.num_data_blocks),
            (&mut self.num_entries, other.num_entries),
            (&mut self.num_deletions, other.num_deletions),
            (&mut self.num_merge_operands, other.num_merge_operands),
            (&mut self.num_range_deletions, other.num_range_deletions),
            (&mut self.num_filter_entries, other.num_filter_entries),
        ];
        figures.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    /// Reads a properties block. A property that is to be a number and is none counts as missing,
    /// as in RocksDB.
    ///
    /// # Errors
    /// `Corruption` if names are out of order.
    pub fn decode(block: &Block) -> Result<Self> {
        let mut properties = Self::default();
        let mut walk = BlockWalk::new(block)?;
        while let Some(value) = walk.next()? {
            if let Some((last, _)) = properties.raw.last_key_value()
                && last.as_slice() >= walk.key()
            {
                return Err(Error::corruption("table properties are out of order"));
            }
            properties.raw.insert(walk.key().to_vec(), value.to_vec());
        }
        for (name, field) in NUMBERS {
            if let Ok(Some(number)) = properties.number(name) {
                *field(&mut properties) = number;
            }
        }
        for (name, field) in TEXTS {
            if let Some(bytes) = properties.raw.get(name.as_bytes()) {
                let text = String::from_utf8_lossy(bytes).into_owned();
                *field(&mut properties) = if text == NO_COMPONENT { String::new() } else { text };
            }
        }
        let column_family = properties.number(name::COLUMN_FAMILY_ID).ok().flatten();
        let column_family = column_family.filter(|&id| id != UNKNOWN_COLUMN_FAMILY);
        properties.column_family = column_family.and_then(|id| u32::try_from(id).ok());
        Ok(properties)
    }

    /// Fills [`TableProperties::raw`] from the fields; what is there already stays unless a field
    /// stands for it.
    pub(crate) fn fill_raw(&mut self) {
        for (name, field) in NUMBERS {
            let number = *field(self);
            // RocksDB takes a newest key time of 0 for the year 1970 and might expire the file.
            if number != 0 || name != name::NEWEST_KEY_TIME {
                self.set_number(name, number);
            }
        }
        for (name, field) in TEXTS {
            let text = field(self).clone();
            let absent = text.is_empty()
                && matches!(name, "rocksdb.merge.operator" | "rocksdb.prefix.extractor.name");
            if absent {
                self.set(name, NO_COMPONENT.as_bytes());
            } else if !text.is_empty() {
                self.set(name, text.as_bytes());
            }
        }
        self.set_number(
            name::COLUMN_FAMILY_ID,
            self.column_family.map_or(UNKNOWN_COLUMN_FAMILY, u64::from),
        );
    }

    /// The block that holds [`TableProperties::raw`].
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = BlockBuilder::new(usize::MAX, None);
        for (name, value) in &self.raw {
            block.add(name, value);
        }
        block.finish().to_vec()
    }

    /// Sets a property as it is stored.
    pub(crate) fn set(&mut self, name: &str, value: &[u8]) {
        self.raw.insert(name.as_bytes().to_vec(), value.to_vec());
    }

    /// Sets a number.
    pub(crate) fn set_number(&mut self, name: &str, value: u64) {
        let mut bytes = Vec::new();
        put_varint64(&mut bytes, value);
        self.set(name, &bytes);
    }

    /// A number by its name.
    ///
    /// # Errors
    /// `Corruption` if it is there, but no varint64.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some(bytes) = self.raw.get(name.as_bytes()) else { return Ok(None) };
        let number = Decoder::new(bytes).varint64();
        number
            .map(Some)
            .ok_or_else(|| Error::corruption(format!("table property {name} is not a number")))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.raw.get(name.as_bytes()).map(|value| value == b"1")
    }

    /// The bounds of a table with range tombstones, if Flagstone wrote it.
    pub fn bounds(&self) -> Option<(InternalKeyBuf, InternalKeyBuf)> {
        let mut decoder = Decoder::new(self.raw.get(name::BOUNDS.as_bytes())?);
        let mut key = || InternalKey::parse(decoder.lps()?).map(|key| key.to_buf());
        Some((key()?, key()?))
    }

    /// How it is written for [`TableProperties::bounds`].
    pub(crate) fn encode_bounds(smallest: InternalKey<'_>, largest: InternalKey<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_lps(&mut bytes, smallest.as_bytes());
        put_lps(&mut bytes, largest.as_bytes());
        bytes
    }

    /// When the table was written, tables had all writes of the family up to this sequence number;
    /// `None` if it is not told.
    pub fn flushed_until(&self) -> Option<SequenceNumber> {
        self.number(name::FLUSHED_UNTIL).ok().flatten()
    }

    /// When the table's sequence numbers were written, as far as it says so
    /// (`preserve_internal_time_seconds`).
    ///
    /// # Errors
    /// `Corruption`.
    pub fn write_times(&self) -> Result<WriteTimes> {
        self.raw.get(name::WRITE_TIMES.as_bytes()).map_or(Ok(WriteTimes::default()), |bytes| {
            WriteTimes::decode(bytes).map_err(|error| error.context(name::WRITE_TIMES))
        })
    }

    /// Whether whole keys are in the filter.
    pub fn whole_key_filtering(&self) -> bool {
        self.flag(name::WHOLE_KEY_FILTERING).unwrap_or(true)
    }

    /// Whether prefixes are in the filter.
    pub fn prefix_filtering(&self) -> bool {
        self.flag(name::PREFIX_FILTERING).unwrap_or(false)
    }

    /// Whether filter partitions are cut elsewhere than the index's. All who do so put the prefixes
    /// of the keys before and behind a partition into it, too; others did that only later, and not
    /// all at once.
    pub(crate) fn decoupled_filters(&self) -> bool {
        self.flag(name::DECOUPLED_FILTERS).unwrap_or(false)
    }

    /// Whether each filter partition has the prefixes of all its keys. RocksDB 5.14 left out those
    /// that the partition before had; since 5.15 there is this property.
    pub(crate) fn repeats_prefixes(&self) -> bool {
        self.tells_index_keys()
    }

    /// Whether the table says of what kind the keys of its index are.
    pub(crate) fn tells_index_keys(&self) -> bool {
        self.raw.contains_key(name::INDEX_KEY_IS_USER_KEY.as_bytes())
    }

    /// How data blocks are found. A table that does not say it has one block of separators, as
    /// RocksDB before 11 assumes, unless it counts index partitions.
    ///
    /// # Errors
    /// `Corruption` if the property names no type that is known.
    pub fn index_type(&self) -> Result<IndexType> {
        let Some(bytes) = self.raw.get(name::INDEX_TYPE.as_bytes()) else {
            return Ok(match self.number(name::INDEX_PARTITIONS)? {
                None | Some(0) => IndexType::BinarySearch,
                Some(_) => IndexType::TwoLevel,
            });
        };
        let number = fixed32_at(bytes, 0);
        number.and_then(IndexType::from_number).ok_or_else(|| {
            let value = number
                .map_or_else(|| bytes.escape_ascii().to_string(), |number| number.to_string());
            Error::corruption(format!("the table's index type is {value}; 0 to 3 are known"))
        })
    }

    /// How index blocks are stored.
    ///
    /// # Errors
    /// `Corruption` for flags that are no numbers.
    pub(crate) fn index_flavor(&self, index_type: IndexType) -> Result<IndexFlavor> {
        let set = |name| Ok(self.number(name)?.unwrap_or(0) != 0);
        Ok(IndexFlavor {
            user_keys: set(name::INDEX_KEY_IS_USER_KEY)?,
            delta_values: set(name::INDEX_VALUE_IS_DELTA)?,
            first_keys: index_type == IndexType::BinarySearchWithFirstKey,
        })
    }

    /// What a table says that is written to be ingested: RocksDB's external format, with a global
    /// sequence number that is not decided yet.
    pub fn external() -> Vec<(Vec<u8>, Vec<u8>)> {
        let property = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
        vec![
            property(name::EXTERNAL_VERSION, &2u32.to_le_bytes()),
            property(name::EXTERNAL_GLOBAL_SEQUENCE, &0u64.to_le_bytes()),
        ]
    }

    /// How the file was written to be ingested; `None` if it was not.
    ///
    /// # Errors
    /// `Corruption` if the properties contradict themselves.
    pub fn external_form(&self) -> Result<Option<ExternalForm>> {
        self.global_sequence(None)?;
        let version = self.raw.get(name::EXTERNAL_VERSION.as_bytes());
        let stored = self.raw.get(name::EXTERNAL_GLOBAL_SEQUENCE.as_bytes());
        let number = stored.and_then(|bytes| fixed64_at(bytes, 0)).unwrap_or(0);
        Ok(version.map(|version| match fixed32_at(version, 0) {
            Some(1) => ExternalForm::Fixed,
            _ => ExternalForm::Numbered(number),
        }))
    }

    /// Whether the file was written to be ingested.
    pub(crate) fn is_external(&self) -> bool {
        self.raw.contains_key(name::EXTERNAL_VERSION.as_bytes())
    }

    /// The sequence number that all keys of an ingested file have; `largest` is the MANIFEST's, if
    /// there is one.
    ///
    /// # Errors
    /// `Corruption` if the properties contradict themselves or the MANIFEST.
    pub(crate) fn global_sequence(
        &self,
        largest: Option<SequenceNumber>,
    ) -> Result<Option<SequenceNumber>> {
        let stored = self.raw.get(name::EXTERNAL_GLOBAL_SEQUENCE.as_bytes());
        let version =
            self.raw.get(name::EXTERNAL_VERSION.as_bytes()).map(|bytes| fixed32_at(bytes, 0));
        let version = match version {
            None | Some(Some(1)) if stored.is_some() => {
                return Err(Error::corruption(
                    "global sequence number in a file that must not have one",
                ));
            }
            None | Some(Some(1)) => return Ok(None),
            Some(Some(2)) => 2,
            Some(version) => {
                return Err(Error::corruption(format!("external file version {version:?}")));
            }
        };
        debug_assert_eq!(version, 2);
        let stored = match stored {
            None => 0,
            Some(bytes) => fixed64_at(bytes, 0)
                .ok_or_else(|| Error::corruption("global sequence number is not a fixed64"))?,
        };
        let effective = match largest {
            Some(largest) if stored != 0 && stored != largest => {
                return Err(Error::corruption(format!(
                    "global sequence number {stored}, but the MANIFEST says {largest}"
                )));
            }
            Some(largest) => largest,
            None => stored,
        };
        if effective > MAX_SEQUENCE_NUMBER {
            return Err(Error::corruption(format!(
                "global sequence number {effective} is too large"
            )));
        }
        Ok((effective != 0).then_some(effective))
    }

    /// The file's identity in the MANIFEST, if the properties have what it is made of.
    pub fn unique_id(&self) -> Option<UniqueId> {
        if self.db_identity.is_empty()
            || self.session_identity.is_empty()
            || self.original_file_number == 0
        {
            return None;
        }
        let number = FileNumber(self.original_file_number);
        Some(UniqueId::new(&self.db_identity, &self.session_identity, number))
    }
}

#[cfg(test)]
mod tests;
