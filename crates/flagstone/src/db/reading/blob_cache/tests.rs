use crate::base::file_name::FileKind;
use crate::cache::{CacheSettings, MemoryKind};
use crate::db::handle::Db;
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
    assert!(
        usage.cache.data > 0 && (400_000..=500_000).contains(&usage.blob_cache.blob),
        "{usage}"
    );
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
        // Whoever wrote a table lets go of the tree before it only after it has said that it is
        // done; the file goes then.
        let blob_files = || {
            let names = db.inner().context.env.fs.list(db.path()).unwrap();
            names
                .iter()
                .filter(|name| matches!(FileKind::parse(name), Some(FileKind::Blob(_))))
                .count()
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
    let db =
        opened(&[("memory_budget", "64m"), ("blob_cache", "8m"), ("enable_blob_files", "true")]);
    let usage = db.memory_usage();
    let all = usage.cache.capacity + usage.blob_cache.capacity;
    assert_eq!(usage.blob_cache.capacity, 8 << 20, "{usage}");
    let held = db.inner().tables.account().hold(MemoryKind::Tables, all as usize - (4 << 20));
    let usage = db.memory_usage();
    assert_eq!((usage.cache.capacity, usage.blob_cache.capacity), (1 << 20, 3 << 20), "{usage}");
    drop(held);
    assert_eq!(db.memory_usage().blob_cache.capacity, 8 << 20);
}
