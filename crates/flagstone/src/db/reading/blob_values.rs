//! Values that lie in blob files: from the cache, or read.
//!
//! A large one that is in nobody's cache is counted as held for as long as somebody has it: an iterator that stands on it, the
//! result of a lookup, or a task that has not come to it yet.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::sync::Ordering;
use crate::base::{Error, FileNumber, Result, SharedPiece, colour};
use crate::blob::{
    BlobFileReader, BlobIndex, BlobReadahead, BlobRequest, BlobValue, RECORD_HEADER_SIZE, get_together,
};
use crate::cache::{COUNTED_FROM, CacheKey, Holder, Measured};
use crate::db::family::Family;
use crate::db::files::Tables;
use crate::iter::lookup::in_key;
use crate::manifest::Version;
use crate::sst::{CachedBlock, ReadSettings, Slim};

/// What a cached value takes beside its bytes.
const BLOB_OVERHEAD: usize = 64;

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

    /// The value that lies there: from the cache, or read with one positioned read; or with others that a scan will
    /// want next, if there is somewhere to keep them.
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
        let BlobPlace { index, cached_as } = *place;
        if let Some(value) = self.cached_blob(cached_as, settings)? {
            return Ok(value);
        }
        let verify = settings.verify_checksums;
        let cached_as = cached_as.filter(|_| settings.fill_cache);
        let mut counted = self.account().measured(Holder::Values);
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
        let is_kept = cached_as.is_some_and(|key| self.keep_blob(key, user_key, &value, is_read_ahead));
        Ok(if is_kept || is_read_ahead { value } else { counted_value(value, counted) })
    }

    /// Puts a value into the cache; a copy of it if it `is_part` of something larger, which it would keep in memory.
    fn keep_blob(&self, key: CacheKey, user_key: &[u8], value: &Bytes, is_part: bool) -> bool {
        self.note_cached_blob();
        self.caches().blobs().insert_made(key, value.len() + BLOB_OVERHEAD, || {
            cached_form(user_key, value, || match is_part {
                true => colour::shared_copy(value),
                false => value.clone(),
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
            self.caches().blobs().prepopulate_made(key, value.len() + BLOB_OVERHEAD, || {
                cached_form(user_key, value, || colour::shared_copy(value))
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

    /// [`Self::read_blob`] for several keys, each with its blob index: what is not cached is read together.
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
            let is_kept = cached_as.is_some_and(|key| self.keep_blob(key, wanted[*at].0, &value, false));
            let counted = self.account().measured(Holder::Values);
            uncounted_bytes += if is_kept || value.len() >= COUNTED_FROM { 0 } else { value.len() };
            values[*at] = Some(if is_kept { value } else { counted_value(value, counted) });
        }
        BlobsRead { values, reads: missing.len(), uncounted_bytes, in_kernel }
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
        match key.and_then(|key| self.caches().blobs().lookup(key)) {
            Some(CachedBlock::Blob(value)) => Ok(Some(value)),
            Some(CachedBlock::Slim(Slim::Blob(value))) => Ok(Some(Bytes::from_owner(value))),
            _ if settings.cache_only => {
                Err(Error::incomplete("the value lies in a blob file and the read must not touch the disk"))
            }
            _ => Ok(None),
        }
    }

    /// What a value is found by in the cache, if its family keeps any there.
    pub(in crate::db) fn blob_cache_key(&self, family: &Family, index: &BlobIndex) -> Option<CacheKey> {
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
fn cached_form(user_key: &[u8], value: &[u8], owned: impl FnOnce() -> Bytes) -> (CachedBlock, usize) {
    match SharedPiece::copy_of(value) {
        Some(copy) => {
            let size = copy.capacity();
            (CachedBlock::Slim(Slim::Blob(copy)), size + BLOB_OVERHEAD)
        }
        None => {
            let size = value.len() + RECORD_HEADER_SIZE + user_key.len() + colour::padding(value.len());
            (CachedBlock::Blob(owned()), size + BLOB_OVERHEAD)
        }
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
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::base::ColumnFamilyId;
    use crate::base::file_name::FileKind;
    use crate::batch::WriteBatch;
    use crate::cache::{CacheSettings, Holder};
    use crate::db::Db;
    use crate::env::Env;
    use crate::options::{BlockCache, MemoryBudget, Options, ReadOptions, WriteOptions};

    const LARGE: usize = 5 << 20;

    fn opened(changes: &[(&str, &str)]) -> Db {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        // Tests follow the account in a budget's place.
        options.db.memory_budget = MemoryBudget::None;
        changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        Db::open("/db", &options).unwrap()
    }

    fn held(db: &Db, holder: Holder) -> usize {
        db.inner().tables.account().held(holder)
    }

    /// What the cache may have while `Db` holds something, and without it.
    fn capacity(db: &Db) -> usize {
        db.inner().tables.caches().blocks().capacity()
    }

    /// A database with large values in blob files, which its cache does not take.
    fn with_values() -> Db {
        let changes = [("memory_budget", "64m"), ("enable_blob_files", "true"), ("min_blob_size", "1k")];
        let db = opened(&changes);
        for key in 0..4u8 {
            db.put([key], vec![key; LARGE]).unwrap();
            db.put([key, 0], vec![key; 2_000]).unwrap();
        }
        db.flush_all().unwrap();
        db.inner().wait_until_idle().unwrap();
        db
    }

    /// They were nobody's: ten thousand iterators that stood on large values had no limit.
    #[test]
    fn the_cache_makes_room_for_large_values_that_somebody_holds() {
        let db = with_values();
        let before = capacity(&db);
        let shrunk = |values: usize| {
            let (now, held) = (capacity(&db), held(&db, Holder::Values));
            assert!(held >= values * LARGE && held < (values + 1) * LARGE, "{held} for {values}");
            // A step of the account, and what it leaves to the passing.
            assert!(
                before - now + (64 << 20) / 32 + (64 << 20) / 128 >= held,
                "{before} to {now} for {held}"
            );
            assert_eq!(db.memory_usage().values, held as u64);
        };
        let value = db.get([1]).unwrap().unwrap();
        shrunk(1);
        let (clone, family) = (value.clone(), db.default_column_family());
        let part = db.get_range(&ReadOptions::default(), family, [2], 0..LARGE as u64).unwrap().unwrap();
        shrunk(2);
        drop(value);
        shrunk(2);
        drop((clone, part));
        shrunk(0);
        let values = db.multi_get(&[[0], [1], [2]]);
        shrunk(3);
        assert!(values.iter().all(|value| value.as_ref().unwrap().as_ref().unwrap().len() == LARGE));
        drop(values);

        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        for key in [[0], [2]] {
            iter.seek(key);
            assert_eq!(iter.value().unwrap().len(), LARGE);
            shrunk(1);
        }
        iter.next();
        assert_eq!(iter.value().unwrap().len(), 2_000);
        shrunk(0);
        drop(iter);
        assert!(capacity(&db).abs_diff(before) < 1 << 19, "a cursor is kept for the next iterator");
    }

    /// Those of one lookup of many keys are too small to be counted one by one.
    #[test]
    fn many_small_values_of_one_lookup_are_counted_until_it_ends() {
        let db = opened(&[("enable_blob_files", "true"), ("min_blob_size", "1k")]);
        let keys: Vec<[u8; 1]> = (0..=255).map(|key| [key]).collect();
        keys.iter().for_each(|key| db.put(key, [7; 4_000]).unwrap());
        let peak = peak(&db);
        for place in ["memtables", "files"] {
            let before = db.inner().tables.account().total();
            peak.store(0, Ordering::Relaxed);
            drop(db.multi_get(&keys));
            assert!(peak.load(Ordering::Relaxed) >= before + 256 * 4_000, "in {place}");
            assert_eq!(held(&db, Holder::Values), 0);
            db.flush_all().unwrap();
            db.inner().wait_until_idle().unwrap();
        }
    }

    /// The most that the account has come to since then.
    fn peak(db: &Db) -> Arc<AtomicUsize> {
        let peak = Arc::new(AtomicUsize::new(0));
        let noted = peak.clone();
        db.inner().tables.account().follow(1, move |total| {
            noted.fetch_max(total, Ordering::Relaxed);
        });
        peak
    }

    #[test]
    fn batches_count_while_they_are_written_and_buffers_of_the_log_as_long_as_it_keeps_them() {
        for (changes, copies) in [
            (vec![], 1),
            (vec![("wal_compression", "kZSTD")], 1),
            (vec![("enable_blob_files", "true"), ("min_blob_size", "1k")], 1),
            (
                vec![
                    ("enable_blob_files", "true"),
                    ("min_blob_size", "1k"),
                    ("blob_compression_type", "kZSTD"),
                ],
                2,
            ),
        ] {
            let db = opened(&changes);
            let mut batch = WriteBatch::new();
            (0..8u8).for_each(|key| batch.put([key], [key; 512 << 10]).unwrap());
            let bytes = batch.byte_size();
            let peak = peak(&db);
            let (wal, before) = (held(&db, Holder::WalBuffers), db.inner().tables.account().total());
            db.write_ref(&WriteOptions::default(), &mut batch).unwrap();
            assert!(peak.load(Ordering::Relaxed) >= before + copies * bytes, "{changes:?}");
            assert_eq!((held(&db, Holder::Writes), held(&db, Holder::Values)), (0, 0), "{changes:?}");
            let in_log = changes.first().is_none_or(|(name, _)| *name == "wal_compression");
            assert!(!in_log || held(&db, Holder::WalBuffers) > wal, "{changes:?}");
            assert_eq!(db.memory_usage().wal_buffers, held(&db, Holder::WalBuffers) as u64);

            // What is refused, too.
            batch.put_cf(ColumnFamilyId(7), b"key", b"value").unwrap();
            assert!(db.write_ref(&WriteOptions::default(), &mut batch).is_err());
            assert_eq!(held(&db, Holder::Writes), 0);
            let account = db.inner().tables.account().clone();
            db.close().unwrap();
            drop(db);
            let left = [Holder::WalBuffers, Holder::Writes, Holder::Values, Holder::Jobs, Holder::Cursors];
            assert_eq!(left.map(|holder| account.held(holder)), [0; 5], "{changes:?}");
        }
    }

    #[test]
    fn a_record_too_large_to_be_kept_leaves_nothing_in_the_log_s_buffers() {
        for changes in [vec![], vec![("wal_compression", "kZSTD")]] {
            let db = opened(&changes);
            db.put("key", vec![1; 17 << 20]).unwrap();
            // The compressor once kept room for it.
            assert!(held(&db, Holder::WalBuffers) < 1 << 20, "{changes:?} {}", db.memory_usage());
        }
    }

    #[test]
    fn the_cache_makes_room_for_values_that_are_written_piece_by_piece() {
        let db = opened(&[("memory_budget", "64m")]);
        let (before, family) = (capacity(&db), db.default_column_family());
        let options = WriteOptions::default();
        let mut writer = db.put_stream(family, "key", &options).unwrap().with_buffer(LARGE);
        writer.write_all(&vec![7; LARGE - 1]).unwrap();
        assert!(held(&db, Holder::Writes) >= LARGE - 1 && capacity(&db) < before, "{}", db.memory_usage());
        writer.write_all(&[7; 2]).unwrap();
        // They are in a file now.
        assert!(held(&db, Holder::Writes) < 1 << 20 && capacity(&db) == before, "{}", db.memory_usage());
        assert!(held(&db, Holder::Writes) > 0);
        writer.commit().unwrap();
        assert_eq!(held(&db, Holder::Writes), 0);
        let mut given_up = db.put_stream(family, "key", &options).unwrap();
        given_up.write_all(&vec![7; 1 << 19]).unwrap();
        assert!(held(&db, Holder::Writes) >= 1 << 19);
        drop(given_up);
        assert_eq!(held(&db, Holder::Writes), 0);
    }

    const VALUE: usize = 20_000;

    fn put_values(db: &Db, keys: std::ops::Range<u8>) {
        keys.clone().for_each(|key| db.put([key], [key; VALUE]).unwrap());
        db.flush_all().unwrap();
        db.inner().wait_until_idle().unwrap();
        keys.for_each(|key| assert_eq!(db.get([key]).unwrap().unwrap(), [key; VALUE][..]));
    }

    fn property(db: &Db, name: &str) -> Option<u64> {
        db.int_property(db.default_column_family(), &format!("rocksdb.{name}"))
    }

    #[test]
    fn values_with_a_cache_of_their_own_drive_out_no_blocks() {
        let changes = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "1k"),
            ("block_cache", "{capacity=1M;num_shard_bits=0;}"),
            ("blob_cache", "{capacity=500000;num_shard_bits=0;}"),
        ];
        let db = opened(&changes);
        put_values(&db, 0..100);
        let usage = db.memory_usage();
        assert_eq!(
            (usage.cache.blob, usage.cache.capacity, usage.blob_cache.capacity),
            (0, 1 << 20, 500_000)
        );
        assert!(usage.cache.data > 0 && (400_000..=500_000).contains(&usage.blob_cache.blob), "{usage}");
        assert_eq!(
            usage.total(),
            usage.blob_cache.blob + usage.cache.usage() + {
                let without = crate::db::MemoryUsage {
                    cache: Default::default(),
                    blob_cache: Default::default(),
                    ..usage.clone()
                };
                without.total()
            }
        );
        assert_eq!(property(&db, "blob-cache-capacity"), Some(500_000));
        assert_eq!(property(&db, "blob-cache-usage"), Some(usage.blob_cache.blob));
        assert_eq!(property(&db, "blob-cache-pinned-usage"), Some(0));
        let held = db.get([99]).unwrap().unwrap();
        assert_eq!(property(&db, "blob-cache-pinned-usage"), Some(db.memory_usage().blob_cache.pinned));
        assert!(db.memory_usage().blob_cache.pinned >= VALUE as u64);
        drop(held);
        let cached = ReadOptions { cache_only: true, ..ReadOptions::default() };
        let family = db.default_column_family();
        assert_eq!(db.get_with(&cached, family, [99]).unwrap().unwrap(), [99; VALUE][..]);
        assert!(db.get_with(&cached, family, [0]).is_err(), "driven out");
        assert_eq!(db.multi_get_with(&cached, family, &[[98], [99]]).iter().flatten().count(), 2);
        let stats = db.property(family, "rocksdb.stats").unwrap();
        assert!(stats.contains("rocksdb.blobdb.cache.hit COUNT : 4"), "{stats}");

        // Where nobody keeps values, there is no such cache, as in RocksDB; it may be the block cache.
        assert_eq!(property(&opened(&changes[..3]), "blob-cache-capacity"), None);
        let shared = opened(&[&changes[..3], &[("cache_blobs", "true")]].concat());
        assert_eq!(property(&shared, "blob-cache-capacity"), Some(1 << 20));
    }

    #[test]
    fn databases_share_a_cache_of_values_and_leave_it() {
        let cache = BlockCache::new(&CacheSettings::with_capacity(4 << 20));
        let open = |name: &str, blocks: Option<&BlockCache>| {
            let mut options = Options { env: Env::memory(), ..Options::default() };
            options.create_if_missing = true;
            options.set("enable_blob_files", "true").unwrap();
            (options.blob_cache, options.block_cache) = (Some(cache.clone()), blocks.cloned());
            Db::open(name, &options).unwrap()
        };
        let (first, second) = (open("/a", None), open("/b", None));
        put_values(&first, 0..10);
        put_values(&second, 0..20);
        let held = [&first, &second].map(|db| db.memory_usage().blob_cache.usage());
        assert!(held[0] > 0 && held[1] > held[0] && cache.usage() as u64 == held[0] + held[1]);
        drop(second);
        assert_eq!(cache.usage() as u64, held[0]);
        drop(first);
        assert_eq!(cache.usage(), 0);

        // One for both.
        let both = open("/c", Some(&cache));
        put_values(&both, 0..10);
        let usage = both.memory_usage();
        assert_eq!((usage.blob_cache.capacity, usage.cache.capacity), (0, 4 << 20));
        assert!(usage.cache.blob >= 10 * VALUE as u64 && usage.cache.data > 0, "{usage}");
        assert_eq!(property(&both, "blob-cache-capacity"), Some(4 << 20));

        let mut options = Options { blob_cache: Some(cache), ..Options::default() };
        options.set("memory_budget", "64m").unwrap();
        assert!(options.validate().unwrap_err().to_string().contains("blob_cache"));
    }

    /// They stayed until others drove them out.
    #[test]
    fn values_leave_the_cache_with_their_file() {
        for cache in [("blob_cache", "4m"), ("cache_blobs", "true")] {
            let db = opened(&[("enable_blob_files", "true"), ("blob_write_mode", "flush"), cache]);
            let kept = || {
                let usage = db.memory_usage();
                usage.cache.blob + usage.blob_cache.blob
            };
            put_values(&db, 0..10);
            let first = kept();
            assert!(first > 10 * VALUE as u64);
            // The first file holds nothing but garbage from then on.
            put_values(&db, 0..10);
            db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
            db.inner().wait_until_idle().unwrap();
            // Whoever wrote a table lets go of the tree before it only after it has said that it is done; the file goes then.
            let blob_files = || {
                let names = db.inner().env.fs.list(db.path()).unwrap();
                names.iter().filter(|name| matches!(FileKind::parse(name), Some(FileKind::Blob(_)))).count()
            };
            while blob_files() > 1 {
                db.inner().purge_all_obsolete_files();
                std::thread::yield_now();
            }
            assert_eq!(kept(), first, "{cache:?}");
            (0..10).for_each(|key| assert_eq!(db.get([key]).unwrap().unwrap(), [key; VALUE][..]));
        }
    }

    #[test]
    fn the_cache_of_values_has_its_share_of_the_budget() {
        let db = opened(&[("memory_budget", "64m"), ("blob_cache", "8m"), ("enable_blob_files", "true")]);
        let usage = db.memory_usage();
        let all = usage.cache.capacity + usage.blob_cache.capacity;
        assert_eq!(usage.blob_cache.capacity, 8 << 20, "{usage}");
        let held = db.inner().tables.account().hold(Holder::Tables, all as usize - (4 << 20));
        let usage = db.memory_usage();
        assert_eq!((usage.cache.capacity, usage.blob_cache.capacity), (1 << 20, 3 << 20), "{usage}");
        drop(held);
        assert_eq!(db.memory_usage().blob_cache.capacity, 8 << 20);
    }
}
