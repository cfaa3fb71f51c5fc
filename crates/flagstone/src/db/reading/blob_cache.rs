//! Values of blob files in the cache: in one of their own (`blob_cache`), or among the blocks
//! (`cache_blobs`).

use bytes::Bytes;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::Ordering;
use crate::base::{Error, FileNumber, Result, SharedPiece};
use crate::blob::{BlobIndex, RECORD_HEADER_SIZE};
use crate::cache::CacheKey;
use crate::db::family::Family;
use crate::db::tables::Tables;
use crate::sst::{CachedBlock, ReadSettings, Slim};

/// What a large value takes beside its bytes: what counts who holds it.
const BLOB_OVERHEAD: usize = 64;

impl Tables {
    /// Puts a value into the cache; a copy of it if it `is_part` of something larger, which it
    /// would keep in memory.
    pub(super) fn keep_blob(
        &self,
        key: CacheKey,
        user_key: &[u8],
        value: &Bytes,
        is_part: bool,
    ) -> bool {
        self.note_cached_blob();
        self.caches().blobs().insert_made(key, value.len(), || {
            cached_form(user_key, value, || {
                if is_part { Bytes::copy_from_slice(value) } else { value.clone() }
            })
        })
    }

    /// Puts a value that was just written there into the cache, if its family keeps any.
    pub(in crate::db) fn prepopulate_blob(
        &self,
        family: &Family,
        user_key: &[u8],
        index: &BlobIndex,
        value: &[u8],
    ) {
        if let Some(key) = self.blob_cache_key(family, index) {
            self.note_cached_blob();
            self.caches().blobs().prepopulate_made(key, value.len(), || {
                cached_form(user_key, value, || Bytes::copy_from_slice(value))
            });
        }
    }

    /// From now on blob files that are removed may have something in the cache.
    pub(in crate::db) fn note_cached_blob(&self) {
        if !self.has_cached_blobs.load(Ordering::Relaxed) {
            self.has_cached_blobs.store(true, Ordering::Relaxed);
        }
    }

    /// Takes out of the cache what it has of blob files that are about to be removed.
    pub(in crate::db) fn uncache_blob_files(&self, numbers: impl Iterator<Item = FileNumber>) {
        if !self.has_cached_blobs.load(Ordering::Relaxed) {
            return;
        }
        let mut files: Vec<_> =
            numbers.filter_map(|number| self.caches().blob_owner().named_file(number.0)).collect();
        if !files.is_empty() {
            files.sort_unstable();
            self.caches().blobs().erase_files(&files);
        }
    }

    /// The value that is in the cache as that.
    ///
    /// # Errors
    /// `Incomplete` if it is not, and the disk must not be touched.
    pub(in crate::db) fn cached_blob(
        &self,
        key: Option<CacheKey>,
        settings: &ReadSettings,
    ) -> Result<Option<Bytes>> {
        let value = match key.and_then(|key| self.caches().blobs().lookup(key)) {
            Some(CachedBlock::Blob(value)) => Some(value),
            Some(CachedBlock::Slim(Slim::Blob(value))) => Some(Bytes::from_owner(value)),
            _ => None,
        };
        match value {
            Some(value) => {
                perf::count(PerfMetric::BlobCacheHitCount, 1);
                perf::count(PerfMetric::BlobCacheReadByte, value.len() as u64);
                Ok(Some(value))
            }
            None if settings.cache_only => Err(Error::incomplete(
                "the value is in a blob file, and cache_only does not allow reading it",
            )),
            None => Ok(None),
        }
    }

    /// What a value is found by in the cache, if its family keeps any there.
    pub(in crate::db) fn blob_cache_key(
        &self,
        family: &Family,
        index: &BlobIndex,
    ) -> Option<CacheKey> {
        let is_kept = self.caches_all_blobs || family.options.load().cache_blobs;
        if is_kept { self.cache_key_of(index) } else { None }
    }

    /// The same of a family that does. Blob files have the numbers that no open table has.
    pub(in crate::db) fn cache_key_of(&self, index: &BlobIndex) -> Option<CacheKey> {
        let file = self.caches().blob_owner().named_file(index.file.0)?;
        Some(CacheKey { file, offset: index.offset })
    }

    /// Whether a value is in the cache; that is no use of it.
    pub(in crate::db) fn has_cached(&self, key: CacheKey) -> bool {
        self.caches().blobs().peek(key).is_some()
    }
}

/// A value as the cache has it, and what it takes there; `owned` is it if it is not copied.
fn cached_form(
    user_key: &[u8],
    value: &[u8],
    owned: impl FnOnce() -> Bytes,
) -> (CachedBlock, usize) {
    match SharedPiece::copy_of(value) {
        Some(copy) => {
            let size = copy.capacity();
            (CachedBlock::Slim(Slim::Blob(copy)), size)
        }
        None => {
            let size = value.len() + RECORD_HEADER_SIZE + user_key.len();
            (CachedBlock::Blob(owned()), size + BLOB_OVERHEAD)
        }
    }
}

#[cfg(test)]
mod tests;
