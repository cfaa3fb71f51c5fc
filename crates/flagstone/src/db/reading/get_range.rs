//! Reading a part of a value.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::compression::CompressionType;
use crate::base::{Result, ValueType};
use crate::blob::{BlobIndex, PIECE_SIZE};
use crate::cache::{CacheKey, MemoryKind};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::Reader;
use crate::db::reading::blob_values::counted_value;
use crate::db::reading::read::read_settings;
use crate::db::reading::value::Value;
use crate::db::statistics::Ticker;
use crate::db::tables::Tables;
use crate::iter::Outcome;
use crate::iter::lookup::in_key;
use crate::options::ReadOptions;
use crate::sst::{CachedBlock, Slim};

/// What a set of checksums takes beside them.
const CHECKSUMS_OVERHEAD: usize = 64;

/// Part of a value.
#[derive(Debug, Clone)]
pub struct ValuePart {
    /// The bytes.
    pub bytes: Value,
    /// Size of the whole value in bytes.
    pub value_size: u64,
}

impl ValuePart {
    pub(crate) fn of(value: Value, range: Range<u64>) -> Self {
        let size = value.len();
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(size);
        let (start, end) = (at(range.start), at(range.end));
        Self { bytes: value.part(start..end.max(start)), value_size: size as u64 }
    }
}

/// Some bytes of a value, and its last ones, which are not of it for whoever asks.
#[derive(Debug)]
pub(crate) struct PartBeforeTail {
    /// The bytes; the tail does not count for the value's size.
    pub part: ValuePart,
    /// As many bytes as were asked for, or all that there are.
    pub tail: Vec<u8>,
}

impl PartBeforeTail {
    fn of(mut value: Value, range: Range<u64>, tail_size: usize) -> Self {
        let size = value.len().saturating_sub(tail_size);
        let tail = value[size..].to_vec();
        if !tail.is_empty() {
            value = value.part(0..size);
        }
        Self { part: ValuePart::of(value, range), tail }
    }
}

impl Reader {
    pub(in crate::db) fn get_range(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
        range: Range<u64>,
    ) -> Result<Option<ValuePart>> {
        Ok(self.get_range_before_tail(options, family, key, range, 0)?.map(|found| found.part))
    }

    /// The bytes of `range` and the last `tail_size` ones, of the same value.
    pub(in crate::db) fn get_range_before_tail(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
        range: Range<u64>,
        tail_size: usize,
    ) -> Result<Option<PartBeforeTail>> {
        self.check_family(family)?;
        self.statistics.add(Ticker::KeysRead, 1);
        self.within(options, || self.part_before_tail(options, family, key, range, tail_size))
    }

    fn part_before_tail(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
        range: Range<u64>,
        tail_size: usize,
    ) -> Result<Option<PartBeforeTail>> {
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        let outcome = self.search(options, family, &current, snapshot, key)?.finish();
        if let Outcome::Found(ValueType::BlobIndex, stored) = &outcome
            && let index = BlobIndex::decode(stored).map_err(|error| in_key(error, key))?
            && index.compression == CompressionType::None.to_byte()
            && index.size > PIECE_SIZE
        {
            let wanted = (range, tail_size);
            let found =
                self.tables.read_blob_range(family, &current, key, &index, wanted, options)?;
            self.statistics
                .add(Ticker::BytesRead, (found.part.bytes.len() + found.tail.len()) as u64);
            return Ok(Some(found));
        }
        let whole = self.finish_outcome(options, family, &current, key, outcome)?;
        Ok(whole.map(|value| PartBeforeTail::of(value, range, tail_size)))
    }
}

impl Tables {
    fn read_blob_range(
        &self,
        family: &Family,
        current: &SuperVersion,
        key: &[u8],
        index: &BlobIndex,
        (range, tail_size): (Range<u64>, usize),
        options: &ReadOptions,
    ) -> Result<PartBeforeTail> {
        let settings = read_settings(options);
        if let Some(whole) = self.cached_blob(self.blob_cache_key(family, index), &settings)? {
            return Ok(PartBeforeTail::of(whole.into(), range, tail_size));
        }
        let reader = self.named_blob_file(family, &current.version, index.file)?;
        let kept_as = self.checksums_key(index);
        let mut known = match kept_as.and_then(|key| self.caches().blobs().lookup(key)) {
            Some(CachedBlock::Slim(Slim::Pieces(known))) => Some(known),
            _ => None,
        };
        let mut read = |range: Range<u64>| -> Result<Bytes> {
            if !settings.verify_checksums {
                return Ok(reader.get_range(key, index, range)?.into());
            }
            let (bytes, made) = reader.get_verified_range(key, index, range, known.as_ref())?;
            let Some(made) = made else { return Ok(bytes) };
            if let (Some(key), true) = (kept_as, settings.fill_cache) {
                let charge = size_of_val(&*made) + CHECKSUMS_OVERHEAD;
                self.note_cached_blob();
                self.caches().blobs().insert(
                    key,
                    CachedBlock::Slim(Slim::Pieces(made.clone())),
                    charge,
                );
            }
            known = Some(made);
            Ok(bytes)
        };
        let value_size = index.size.saturating_sub(tail_size as u64);
        let bytes = read(range.start.min(value_size)..range.end.min(value_size))?;
        let tail = if tail_size == 0 { Bytes::new() } else { read(value_size..index.size)? };
        let counted = counted_value(bytes, self.account().measured(MemoryKind::Values));
        Ok(PartBeforeTail {
            part: ValuePart { bytes: counted.into(), value_size },
            tail: tail.to_vec(),
        })
    }

    /// What the checksums of a value's pieces are found by in the cache: no block and no value lies
    /// so far up.
    fn checksums_key(&self, index: &BlobIndex) -> Option<CacheKey> {
        let file = self.caches().blob_owner().named_file(index.file.0)?;
        Some(CacheKey { file, offset: index.offset.checked_add(1 << 63)? })
    }
}
