//! Values of blob files in the cache: in one of their own (`blob_cache`), or among the blocks (`cache_blobs`).

use bytes::Bytes;

use crate::base::sync::Ordering;
use crate::base::{Error, FileNumber, Result, SharedPiece};
use crate::blob::{BlobIndex, RECORD_HEADER_SIZE};
use crate::cache::CacheKey;
use crate::db::family::Family;
use crate::db::files::Tables;
use crate::sst::{CachedBlock, ReadSettings, Slim};

/// What a large value takes beside its bytes: what counts who holds it.
const BLOB_OVERHEAD: usize = 64;

impl Tables {
    /// Puts a value into the cache; a copy of it if it `is_part` of something larger, which it would keep in memory.
    pub(super) fn keep_blob(&self, key: CacheKey, user_key: &[u8], value: &Bytes, is_part: bool) -> bool {
        self.note_cached_blob();
        self.caches().blobs().insert_made(key, value.len(), || {
            cached_form(
                user_key,
                value,
                || if is_part { Bytes::copy_from_slice(value) } else { value.clone() },
            )
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
            (CachedBlock::Slim(Slim::Blob(copy)), size)
        }
        None => {
            let size = value.len() + RECORD_HEADER_SIZE + user_key.len();
            (CachedBlock::Blob(owned()), size + BLOB_OVERHEAD)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::base::file_name::FileKind;
    use crate::cache::{CacheSettings, MemoryKind};
    use crate::db::Db;
    use crate::env::Env;
    use crate::options::{BlockCache, MemoryBudget, Options, ReadOptions};

    fn opened(changes: &[(&str, &str)]) -> Db {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        // Tests follow the account in a budget's place.
        options.db.memory_budget = MemoryBudget::None;
        changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        Db::open("/db", &options).unwrap()
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
                let names = db.inner().context.env.fs.list(db.path()).unwrap();
                names.iter().filter(|name| matches!(FileKind::parse(name), Some(FileKind::Blob(_)))).count()
            };
            while blob_files() > 1 {
                db.inner().jobs.purge_all_obsolete_files();
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
        let held = db.inner().tables.account().hold(MemoryKind::Tables, all as usize - (4 << 20));
        let usage = db.memory_usage();
        assert_eq!((usage.cache.capacity, usage.blob_cache.capacity), (1 << 20, 3 << 20), "{usage}");
        drop(held);
        assert_eq!(db.memory_usage().blob_cache.capacity, 8 << 20);
    }
}
