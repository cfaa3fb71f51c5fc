//! Values that lie in blob files: from the cache ([`super::blob_cache`]), or read.
//!
//! A large one that is in nobody's cache is counted as held for as long as somebody has it: an
//! iterator that stands on it, the result of a lookup, or a task that has not come to it yet.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::Result;
use crate::blob::{BlobFileReader, BlobIndex, BlobReadahead, BlobRequest, BlobValue, get_together};
use crate::cache::{COUNTED_FROM, CacheKey, Measured, MemoryKind};
use crate::db::family::Family;
use crate::db::tables::Tables;
use crate::iter::lookup::in_key;
use crate::manifest::Version;
use crate::sst::ReadSettings;

/// Values that were read together.
pub(in crate::db) struct BlobsRead {
    /// Those that could be read; the others are to be asked for by themselves, which tells why not.
    pub values: Vec<Option<Bytes>>,
    /// How many were read from files.
    pub reads: usize,
    /// Bytes of those that are neither cached nor counted.
    pub uncounted_bytes: usize,
    /// How many of these the kernel had in hand together.
    pub in_kernel: usize,
}

/// Where a value lies.
pub(in crate::db) struct BlobPlace {
    /// In which blob file, and where in it.
    pub index: BlobIndex,
    /// What it is found by in the cache, if its family keeps any there.
    pub cached_as: Option<CacheKey>,
}

impl Tables {
    /// Where the value of a key is, to which a blob index points.
    ///
    /// # Errors
    /// `Corruption`: it is none.
    pub(in crate::db) fn place_of_blob(
        &self,
        family: &Family,
        user_key: &[u8],
        blob_index: &[u8],
    ) -> Result<BlobPlace> {
        let index = BlobIndex::decode(blob_index).map_err(|error| in_key(error, user_key))?;
        Ok(BlobPlace { cached_as: self.blob_cache_key(family, &index), index })
    }

    /// The value that lies there: from the cache, or read with one positioned read; or with others
    /// that a scan will want next, if there is somewhere to keep them.
    pub(in crate::db) fn read_blob(
        &self,
        family: &Family,
        version: &Version,
        user_key: &[u8],
        place: &BlobPlace,
        settings: &ReadSettings,
        ahead: Option<&mut BlobReadahead>,
    ) -> Result<Bytes> {
        let open = || self.named_blob_file(family, version, place.index.file);
        self.read_blob_of(user_key, place, settings, ahead, open)
    }

    /// The same, of a file that `open` opens, unless the value is cached.
    pub(in crate::db) fn read_blob_of(
        &self,
        user_key: &[u8],
        place: &BlobPlace,
        settings: &ReadSettings,
        ahead: Option<&mut BlobReadahead>,
        open: impl FnOnce() -> Result<Arc<BlobFileReader>>,
    ) -> Result<Bytes> {
        match self.cached_blob(place.cached_as, settings)? {
            Some(value) => Ok(value),
            None => self.read_uncached_blob(user_key, place, settings, ahead, open),
        }
    }

    /// The same, of a value that is not cached.
    pub(in crate::db) fn read_uncached_blob(
        &self,
        user_key: &[u8],
        place: &BlobPlace,
        settings: &ReadSettings,
        ahead: Option<&mut BlobReadahead>,
        open: impl FnOnce() -> Result<Arc<BlobFileReader>>,
    ) -> Result<Bytes> {
        let BlobPlace { index, cached_as } = *place;
        let verify = settings.verify_checksums;
        let cached_as = cached_as.filter(|_| settings.fill_cache);
        let mut counted = self.account().measured(MemoryKind::Values);
        let (value, is_read_ahead) = match ahead {
            Some(ahead) => {
                let begun = self.clock.now_us();
                let value = ahead.read(user_key, &index, verify, open)?;
                ahead.note(self.clock.now_us().saturating_sub(begun));
                (value, ahead.holds_last())
            }
            None => {
                if cached_as.is_none() {
                    // Before there is memory for it, so that others make room.
                    counted.set_large(usize::try_from(index.size).unwrap_or(usize::MAX));
                }
                (open()?.get(user_key, &index, verify)?.into_bytes(), false)
            }
        };
        let is_kept =
            cached_as.is_some_and(|key| self.keep_blob(key, user_key, &value, is_read_ahead));
        Ok(if is_kept || is_read_ahead { value } else { counted_value(value, counted) })
    }

    /// [`Self::read_blob`] for several keys, each with its blob index: what is not cached is read
    /// together.
    pub(in crate::db) fn read_blobs(
        &self,
        family: &Family,
        version: &Version,
        wanted: &[(&[u8], &[u8])],
        settings: &ReadSettings,
    ) -> BlobsRead {
        let mut values = vec![None; wanted.len()];
        let mut missing = Vec::new();
        for (at, (user_key, blob_index)) in wanted.iter().enumerate() {
            let place = self.place_of_blob(family, user_key, blob_index);
            let Ok(BlobPlace { index, cached_as }) = place else { continue };
            match self.cached_blob(cached_as, settings) {
                Ok(Some(value)) => values[at] = Some(value),
                Ok(None) => {
                    let reader = self.named_blob_file(family, version, index.file);
                    missing.extend(reader.ok().map(|reader| (at, index, cached_as, reader)));
                }
                Err(_) => {}
            }
        }
        let mut requests = Vec::with_capacity(missing.len());
        for (at, index, _, reader) in &missing {
            requests.push(BlobRequest { reader, user_key: wanted[*at].0, index: *index });
        }
        let mut uncounted_bytes = 0;
        let (read, in_kernel) = get_together(&requests, settings.verify_checksums);
        for ((at, _, cached_as, _), value) in missing.iter().zip(read) {
            let Ok(value) = value.map(BlobValue::into_bytes) else { continue };
            let cached_as = cached_as.filter(|_| settings.fill_cache);
            let is_kept =
                cached_as.is_some_and(|key| self.keep_blob(key, wanted[*at].0, &value, false));
            let counted = self.account().measured(MemoryKind::Values);
            uncounted_bytes += if is_kept || value.len() >= COUNTED_FROM { 0 } else { value.len() };
            values[*at] = Some(if is_kept { value } else { counted_value(value, counted) });
        }
        BlobsRead { values, reads: missing.len(), uncounted_bytes, in_kernel }
    }
}

/// The value, and in the account with it, if it is large.
pub(in crate::db) fn counted_value(value: Bytes, mut counted: Measured) -> Bytes {
    counted.set_large(value.len());
    match value.len() {
        ..COUNTED_FROM => value,
        _ => Bytes::from_owner(Counted { value, _counted: counted }),
    }
}

/// A value, and what it takes in the account.
struct Counted {
    value: Bytes,
    _counted: Measured,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests;
