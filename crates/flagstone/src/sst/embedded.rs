//! Values that lie in their table, beside its blocks: embedded blobs, as RocksDB 11.8 can write
//! them.
//!
//! ```text
//! record   = value, compression: u8 = 0, checksum: fixed32      like an uncompressed block with its trailer
//! entry    = key of type 11, blob index: file 0, offset and size of the value, compression 0
//!            or an entity of version 2 with such indexes
//! property   rocksdb.embedded.blob.stats = varint64 records, varint64 bytes of their values
//! ```
//!
//! Records lie between data blocks, each before the block that refers to it. The property tells
//! that a table may have some; readers ignore its numbers, which [`super::Table::verify`] checks.
//!
//! **Invariant**: no other module sees a reference of this kind. Lookups, cursors, checks and
//! salvage show the value in its place, as an entry of type 01 or an entity of version 1.

use crate::base::coding::{Decoder, put_varint64};
use crate::base::entity::{self, StoredColumn};
use crate::base::perf::{self, PerfMetric};
use crate::base::{Error, PinnedValue, Result, SharedPiece, SharedRoom, ValueType};
use crate::blob::BlobIndex;

use super::block::{Block, ValueRef};
use super::fetch::BlockSource;
use super::format::{BlockHandle, TRAILER_SIZE};
use super::properties::{TableProperties, name};
use super::settings::ReadSettings;

/// The value of an entry, put together from what lies apart in the table.
pub(super) struct WholeValue {
    /// The type of the entry that has such a value.
    pub kind: ValueType,
    bytes: SharedPiece,
    size: u32,
}

impl WholeValue {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size as usize]
    }

    pub fn value_ref(&self) -> ValueRef<'_> {
        ValueRef::of_piece(&self.bytes, self.size)
    }

    pub fn pin(&self) -> PinnedValue {
        PinnedValue::new(self.bytes.clone(), 0..self.size as usize)
    }
}

/// How many records a table says that it has, and how many bytes their values have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddedStats {
    /// Records.
    pub count: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

impl EmbeddedStats {
    /// What the properties say; `None` without the property.
    ///
    /// # Errors
    /// `Corruption` if it is malformed.
    pub fn of(properties: &TableProperties) -> Result<Option<Self>> {
        let Some(stored) = properties.raw.get(name::EMBEDDED_BLOBS.as_bytes()) else {
            return Ok(None);
        };
        let mut decoder = Decoder::new(stored);
        let mut read = || Some(Self { count: decoder.varint64()?, bytes: decoder.varint64()? });
        let stats = read().filter(|stats| stats.count > 0 || stats.bytes == 0);
        stats.map(Some).ok_or_else(|| {
            Error::corruption(format!("malformed property {}", name::EMBEDDED_BLOBS))
        })
    }

    /// The property's bytes.
    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint64(&mut out, self.count);
        put_varint64(&mut out, self.bytes);
        out
    }

    /// Counts a value of so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// Before which byte of the file records end, if the table has some.
pub(super) fn records_end(properties: &TableProperties, file_size: u64) -> Option<u64> {
    let has_some = properties.raw.contains_key(name::EMBEDDED_BLOBS.as_bytes());
    has_some.then(|| match properties.tail_start_offset {
        0 => file_size,
        start => start.min(file_size),
    })
}

/// The references of an entry to records of its own table.
///
/// # Errors
/// `Corruption` if the value cannot be decoded, `NotSupported` for a later entity.
pub(super) fn records_of(kind: ValueType, stored: &[u8]) -> Result<Vec<BlobIndex>> {
    let mut records = Vec::new();
    let mut note = |index: &[u8]| {
        let index = BlobIndex::decode_in_table(index)?;
        records.extend(index.is_embedded().then_some(index));
        Ok(())
    };
    match kind {
        ValueType::BlobIndex => note(stored)?,
        ValueType::WideColumnEntity => entity::visit_blobs(stored, note)?,
        _ => {}
    }
    Ok(records)
}

impl BlockSource {
    /// The value of an entry that has all or parts of it in records; `None` if what is stored is
    /// the value.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported` or `IoError`, which name the file, and the record if one is at
    /// fault; `Incomplete` if the file must not be read.
    pub fn whole_value(
        &self,
        kind: ValueType,
        stored: &[u8],
        settings: &ReadSettings,
    ) -> Result<Option<WholeValue>> {
        if !matches!(kind, ValueType::BlobIndex | ValueType::WideColumnEntity) {
            return Ok(None);
        }
        let records = records_of(kind, stored)?;
        let Some(&first) = records.first() else { return Ok(None) };
        if kind == ValueType::BlobIndex {
            let bytes = self.read_record(&first, settings)?;
            return Ok(Some(WholeValue { kind: ValueType::Value, bytes, size: first.size as u32 }));
        }
        self.check_sum(&records).map_err(|error| error.at_offset(first.offset))?;
        let whole = self.whole_entity(stored, settings)?;
        let size = u32::try_from(whole.len()).ok().filter(|_| whole.len() <= Block::SIZE_MAX);
        let size = size.ok_or_else(|| too_large(whole.len() as u64))?;
        let mut room: SharedRoom = SharedRoom::new(whole.len());
        room.unwritten().copy_from(&whole);
        Ok(Some(WholeValue { kind, bytes: room.share(()), size }))
    }

    /// Refuses an entity whose values would be larger together than the file: each has a record of
    /// its own.
    fn check_sum(&self, records: &[BlobIndex]) -> Result<()> {
        let sum = records.iter().fold(0u64, |sum, index| sum.saturating_add(index.size));
        if sum <= self.file_size {
            return Ok(());
        }
        let message = format!("the columns of an entity have {sum} bytes in a smaller file");
        Err(Error::corruption(message).at(self.path()))
    }

    fn whole_entity(&self, stored: &[u8], settings: &ReadSettings) -> Result<Vec<u8>> {
        let mut columns = entity::decode(stored)?;
        let mut values: Vec<(usize, SharedPiece, usize)> = Vec::new();
        for (at, column) in columns.iter().enumerate().filter(|(_, column)| column.is_blob) {
            let index = BlobIndex::decode_in_table(column.value)?;
            if index.is_embedded() {
                values.push((at, self.read_record(&index, settings)?, index.size as usize));
            }
        }
        for (at, piece, size) in &values {
            let name = columns[*at].name;
            columns[*at] = StoredColumn { name, value: &piece[..*size], is_blob: false };
        }
        Ok(entity::encode_stored(&columns))
    }

    /// Where the record lies that `index` leads to.
    ///
    /// # Errors
    /// `Corruption` if it would not end before the blocks behind the data; `NotSupported` if it is
    /// compressed, or larger than an entry can be.
    pub fn record_handle(&self, index: &BlobIndex) -> Result<BlockHandle> {
        let &BlobIndex { offset, size, .. } = index;
        let handle = BlockHandle { offset, size };
        let end = offset.checked_add(size).and_then(|end| end.checked_add(TRAILER_SIZE as u64));
        let most = self.records_end.unwrap_or(0);
        let error = if end.is_none_or(|end| end > most) {
            Error::corruption(format!(
                "a value of {size} bytes, embedded at {offset}, must end before {most}"
            ))
        } else if index.compression != 0 {
            Error::not_supported(format!(
                "an embedded value of compression type {:#04x}",
                index.compression
            ))
        } else if size > Block::SIZE_MAX as u64 {
            too_large(size)
        } else {
            return Ok(handle);
        };
        Err(self.locate(error, handle))
    }

    /// The record that `index` leads to: its value, and its trailer behind that.
    fn read_record(&self, index: &BlobIndex, settings: &ReadSettings) -> Result<SharedPiece> {
        let handle = self.record_handle(index)?;
        if settings.cache_only {
            let error = Error::incomplete("an embedded value is not cached");
            return Err(self.locate(error, handle));
        }
        let length = handle.size as usize + TRAILER_SIZE;
        let mut room: SharedRoom = SharedRoom::new(length);
        perf::count(PerfMetric::BlobReadCount, 1);
        perf::count(PerfMetric::BlobReadByte, length as u64);
        let time = perf::time(PerfMetric::BlobReadTime);
        let filled = self.fill(handle.offset, &mut room)?;
        drop(time);
        match self.examine(&room[..filled], handle, settings.verify_checksums)? {
            0 => Ok(room.share(())),
            kind => {
                let message = format!("an embedded value has the compression type {kind:#04x}");
                Err(self.locate(Error::corruption(message), handle))
            }
        }
    }
}

fn too_large(size: u64) -> Error {
    Error::not_supported(format!(
        "an embedded value of {size} bytes; up to {} can be read",
        Block::SIZE_MAX
    ))
}
