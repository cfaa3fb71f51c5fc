//! Reading a part of a value.

use std::ops::Range;
use std::sync::Arc;

use super::blob_values::counted_value;
use super::family::{Family, SuperVersion};
use super::files::Tables;
use super::read::read_settings;
use super::{DbInner, Ticker, Value};
use crate::base::compression::CompressionType;
use crate::base::{Result, ValueType};
use crate::blob::{BlobIndex, PIECE_SIZE};
use crate::cache::{CacheKey, Holder};
use crate::iter::Outcome;
use crate::options::ReadOptions;
use crate::sst::{CachedBlock, Slim};

/// What a set of checksums takes beside them.
const CHECKSUMS_OVERHEAD: usize = 64;

/// Some bytes of a value.
#[derive(Debug, Clone)]
pub struct ValuePart {
    /// The bytes.
    pub bytes: Value,
    /// How long the whole value is, in bytes.
    pub value_size: u64,
}

impl ValuePart {
    fn of(value: Value, range: Range<u64>) -> Self {
        let size = value.len();
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(size);
        let (start, end) = (at(range.start), at(range.end));
        Self { bytes: value.part(start..end.max(start)), value_size: size as u64 }
    }
}

impl DbInner {
    pub(super) fn get_range(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
        range: Range<u64>,
    ) -> Result<Option<ValuePart>> {
        family.check_owner(&self.obsolete)?;
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        self.statistics.add(Ticker::KeysRead, 1);
        let outcome = self.search(options, family, &current, snapshot, key)?.finish();
        if let Outcome::Found(ValueType::BlobIndex, stored) = &outcome
            && let index = BlobIndex::decode(stored)?
            && index.compression == CompressionType::None.to_byte()
            && index.size > PIECE_SIZE
        {
            let part = self.tables.read_blob_range(family, &current, key, &index, range, options)?;
            self.statistics.add(Ticker::BytesRead, part.bytes.len() as u64);
            return Ok(Some(part));
        }
        let whole = self.finish_outcome(options, family, &current, key, outcome)?;
        Ok(whole.map(|value| ValuePart::of(value, range)))
    }
}

impl Tables {
    fn read_blob_range(
        &self,
        family: &Family,
        current: &SuperVersion,
        key: &[u8],
        index: &BlobIndex,
        range: Range<u64>,
        options: &ReadOptions,
    ) -> Result<ValuePart> {
        let settings = read_settings(options);
        if let Some(whole) = self.cached_blob(self.blob_cache_key(family, index), &settings)? {
            return Ok(ValuePart::of(whole.into(), range));
        }
        let reader = self.named_blob_file(family, &current.version, index.file)?;
        let part = |bytes: Value| ValuePart { bytes, value_size: index.size };
        let counted = |bytes| Value::from(counted_value(bytes, self.account().measured(Holder::Values)));
        if !settings.verify_checksums {
            return Ok(part(counted(reader.get_range(key, index, range)?.into())));
        }
        let kept_as = self.checksums_key(index);
        let known = match kept_as.and_then(|key| self.blob_cache().lookup(key)) {
            Some(CachedBlock::Slim(Slim::Pieces(known))) => Some(known),
            _ => None,
        };
        let (bytes, made) = reader.get_verified_range(key, index, range, known.as_ref())?;
        if let (Some(made), Some(key), true) = (made, kept_as, settings.fill_cache) {
            let charge = size_of_val(&*made) + CHECKSUMS_OVERHEAD;
            self.note_cached_blob();
            self.blob_cache().insert(key, CachedBlock::Slim(Slim::Pieces(made)), charge);
        }
        Ok(part(counted(bytes)))
    }

    /// What the checksums of a value's pieces are found by in the cache: no block and no value lies so far up.
    fn checksums_key(&self, index: &BlobIndex) -> Option<CacheKey> {
        let file = self.blob_owner().named_file(index.file.0)?;
        Some(CacheKey { file, offset: index.offset.checked_add(1 << 63)? })
    }
}
