//! Who holds memory, and who keeps others from giving theirs back.

use std::fmt;

use crate::base::LiveSnapshot;
use crate::manifest::Version;

/// What a cache holds of this database; all in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheMemory {
    /// The most that it may hold now, of all databases that share it.
    pub capacity: u64,
    /// Data blocks.
    pub data: u64,
    /// Index blocks.
    pub index: u64,
    /// Filter blocks.
    pub filter: u64,
    /// Values from blob files.
    pub blob: u64,
    /// What it takes to find all these and to know which goes first; 0 of a cache that others have,
    /// too (`BlockCache::overhead`).
    pub overhead: u64,
    /// The part of all kinds that somebody uses now.
    pub pinned: u64,
}

impl CacheMemory {
    /// Bytes of all kinds, and the overhead.
    pub fn usage(&self) -> u64 {
        self.data + self.index + self.filter + self.blob + self.overhead
    }
}

/// What a database holds in memory, from [`Db::memory_usage`](super::Db::memory_usage); in bytes where nothing else is said.
///
/// What the allocator loses between the pieces, the stacks of threads and small things that a
/// caller holds (batches that are not being written, values) are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryUsage {
    /// `memory_budget`; 0 without one.
    pub budget: u64,
    /// Memtables that are written to.
    pub active_memtables: u64,
    /// Memtables that wait for a flush, or are being flushed.
    pub immutable_memtables: u64,
    /// Memtables that were flushed, and that iterators or values keep.
    pub kept_memtables: u64,
    /// Memory of former memtables, for the next ones.
    pub recycled_arenas: u64,
    /// The block cache.
    pub cache: CacheMemory,
    /// The cache of values from blob files, if they have one of their own.
    pub blob_cache: CacheMemory,
    /// The second tier of the block cache, of compressed blocks.
    pub compressed_cache: u64,
    /// The most that that may hold now.
    pub compressed_cache_capacity: u64,
    /// Index blocks held by open tables of the newest versions, outside the cache.
    pub table_indexes: u64,
    /// Their filters.
    pub table_filters: u64,
    /// All that open tables hold outside the cache, also those of older versions.
    pub tables: u64,
    /// How many tables are open.
    pub open_tables: u64,
    /// Cursors and what they read ahead, without the blocks that they stand on.
    pub cursors: u64,
    /// Blocks, indexes, and small values of blob files, that iterators and values keep and the
    /// cache let go of. Counted only with a `memory_budget`, and not of caches that others have,
    /// too (`Options::block_cache`, `Options::blob_cache`).
    pub kept_blocks: u64,
    /// How many cursors there are: in use, and kept for the next iterator.
    pub open_cursors: u64,
    /// Buffers of running flushes and compactions, about.
    pub jobs: u64,
    /// Log records on their way to the WAL's file: with `manual_wal_flush`, or where syncs write
    /// many together, they wait here.
    pub wal_buffers: u64,
    /// Batches of 64 KiB and more while they are written, what is made of them on the way, and
    /// values from `Db::put_stream`.
    pub writes: u64,
    /// Values of 64 KiB and more that were read from blob files and that somebody holds, outside
    /// the cache and the buffers of cursors; and what is smaller of lookups of many keys that are
    /// under way.
    pub values: u64,
    /// Bytes of the active WAL's file that are mapped; not in [`MemoryUsage::total`], since the
    /// system can take them back.
    pub wal_mapping: u64,
    /// The oldest snapshot: what it sees cannot be dropped by compactions.
    pub oldest_snapshot: Option<LiveSnapshot>,
    /// Former states of families (memtables and files) that iterators or values keep.
    pub kept_versions: u64,
    /// For how long the longest kept of these has been out of date, in microseconds.
    pub oldest_kept_version_us: Option<u64>,
}

impl MemoryUsage {
    /// Bytes of all memtables, also of those that only readers keep.
    pub fn memtables(&self) -> u64 {
        self.active_memtables + self.immutable_memtables + self.kept_memtables
    }

    /// Bytes of everything.
    pub fn total(&self) -> u64 {
        let caches = self.cache.usage() + self.blob_cache.usage() + self.compressed_cache;
        let read = self.tables + self.cursors + self.kept_blocks + self.values;
        self.memtables()
            + self.recycled_arenas
            + caches
            + read
            + self.jobs
            + self.wal_buffers
            + self.writes
    }

    /// The figures by name, for display: those in bytes have names that end in `_bytes`.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let cache = &self.cache;
        vec![
            ("total_bytes", self.total()),
            ("budget_bytes", self.budget),
            ("active_memtable_bytes", self.active_memtables),
            ("immutable_memtable_bytes", self.immutable_memtables),
            ("kept_memtable_bytes", self.kept_memtables),
            ("recycled_arena_bytes", self.recycled_arenas),
            ("cache_capacity_bytes", cache.capacity),
            ("cache_data_bytes", cache.data),
            ("cache_index_bytes", cache.index),
            ("cache_filter_bytes", cache.filter),
            ("cache_blob_bytes", cache.blob),
            ("cache_overhead_bytes", cache.overhead),
            ("cache_pinned_bytes", cache.pinned),
            ("blob_cache_capacity_bytes", self.blob_cache.capacity),
            ("blob_cache_bytes", self.blob_cache.usage()),
            ("blob_cache_pinned_bytes", self.blob_cache.pinned),
            ("compressed_cache_capacity_bytes", self.compressed_cache_capacity),
            ("compressed_cache_bytes", self.compressed_cache),
            ("table_index_bytes", self.table_indexes),
            ("table_filter_bytes", self.table_filters),
            ("table_bytes", self.tables),
            ("open_tables", self.open_tables),
            ("cursor_bytes", self.cursors),
            ("open_cursors", self.open_cursors),
            ("kept_block_bytes", self.kept_blocks),
            ("job_bytes", self.jobs),
            ("wal_buffer_bytes", self.wal_buffers),
            ("wal_mapping_bytes", self.wal_mapping),
            ("write_bytes", self.writes),
            ("value_bytes", self.values),
            ("kept_versions", self.kept_versions),
        ]
    }
}

impl fmt::Display for MemoryUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, figure) in self.figures() {
            writeln!(f, "{name} : {figure}")?;
        }
        if let Some(oldest) = &self.oldest_snapshot {
            let LiveSnapshot { sequence, since_unix_seconds, taken_at } = oldest;
            writeln!(
                f,
                "oldest snapshot : of {sequence}, since {since_unix_seconds}, taken at {taken_at}"
            )?;
        }
        if let Some(age) = self.oldest_kept_version_us {
            writeln!(f, "oldest kept version : out of date for {age} us")?;
        }
        Ok(())
    }
}

pub(in crate::db) fn add_tables(usage: &mut MemoryUsage, version: &Version) {
    for table in version.files().filter_map(|(_, file)| file.table.get()) {
        usage.table_indexes += table.index_memory_usage() as u64;
        usage.table_filters += table.filter_memory_usage() as u64;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use crate::cache::MemoryKind;
    use crate::db::handle::Db;
    use crate::env::Env;
    use crate::options::{DbSettings, MemoryBudget, Options, ReadOptions};

    pub(in crate::db) fn opened(changes: &[(&str, &str)]) -> Db {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        Db::open("/db", &options).unwrap()
    }

    pub(in crate::db) fn fill(db: &Db, keys: std::ops::Range<u32>) {
        keys.for_each(|key| db.put(key.to_be_bytes(), [key as u8; 100]).unwrap());
    }

    /// What waits for `Db::flush_wal` was nobody's.
    #[test]
    fn a_log_that_is_flushed_by_hand_takes_memory() {
        let db = opened(&[("manual_wal_flush", "true")]);
        let before = db.memory_usage().wal_buffers;
        fill(&db, 0..1_000);
        assert!(db.memory_usage().wal_buffers - before > 100_000, "{}", db.memory_usage());
        assert!(db.memory_usage().total() > db.memory_usage().memtables() + 100_000);
    }

    #[test]
    fn every_byte_has_a_holder() {
        let db = opened(&[("filter_policy", "bloomfilter:10")]);
        fill(&db, 0..1_000);
        let usage = db.memory_usage();
        assert!(
            usage.active_memtables > 100_000 && usage.memtables() == usage.active_memtables,
            "{usage}"
        );
        assert_eq!((usage.kept_versions, usage.oldest_snapshot), (0, None));

        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        let (snapshot, line) = (db.snapshot(), line!());
        db.flush_all().unwrap();
        let usage = db.memory_usage();
        assert!(usage.kept_memtables > 100_000 && usage.active_memtables < 10_000, "{usage}");
        assert!(usage.kept_versions > 0 && usage.oldest_kept_version_us.is_some(), "{usage}");
        assert!(usage.open_cursors == 1 && usage.cursors > 0, "{usage}");
        let oldest = usage.oldest_snapshot.unwrap();
        assert_eq!((oldest.sequence, oldest.taken_at.line()), (snapshot.sequence(), line));
        assert!(usage.to_string().contains("memory.rs"), "{usage}");
        drop((iter, snapshot));
        // The flush lets go of what it has written only after it has said that it has.
        db.inner().wait_until_idle().unwrap();
        let usage = db.memory_usage();
        assert_eq!(
            (usage.kept_memtables, usage.kept_versions, usage.open_cursors),
            (0, 0, 0),
            "{usage}"
        );
        assert_eq!((usage.oldest_snapshot, usage.oldest_kept_version_us), (None, None));

        let value = db.get(7u32.to_be_bytes()).unwrap();
        let usage = db.memory_usage();
        assert!(
            usage.open_tables == 1 && usage.table_filters > 1_000 && usage.table_indexes > 0,
            "{usage}"
        );
        assert!(usage.tables > usage.table_filters + usage.table_indexes, "{usage}");
        assert!(usage.cache.data > 4_000 && usage.cache.pinned == usage.cache.data, "{usage}");
        let family = db.default_column_family();
        let property = |name: &str| db.int_property(family, name).unwrap();
        assert_eq!(property("rocksdb.block-cache-usage"), usage.cache.usage());
        assert_eq!(property("rocksdb.block-cache-pinned-usage"), usage.cache.pinned);
        assert_eq!(property("rocksdb.estimate-table-readers-mem"), usage.tables);
        drop(value);
        assert_eq!(db.memory_usage().cache.pinned, 0);
        let figures = usage.figures();
        assert_eq!(figures[0], ("total_bytes", usage.total()));
    }

    /// What a scan reads ahead of tables was nobody's.
    #[test]
    fn what_is_read_ahead_of_tables_is_the_cursors() {
        let db = opened(&[("no_block_cache", "true"), ("compression", "kNoCompression")]);
        fill(&db, 0..20_000);
        db.flush_all().unwrap();
        let cursors = || db.memory_usage().cursors;
        let in_order = ReadOptions::default();
        let at_once = ReadOptions { readahead_size: 1 << 20, ..ReadOptions::default() };
        for (options, steps, window) in [(at_once, 0, 1 << 20), (in_order, 10_000, 128 << 10)] {
            let mut iter = db.iter(&options).unwrap();
            iter.seek_to_first();
            (0..steps).for_each(|_| iter.next());
            assert!(
                iter.valid() && (window..2 * window + 4096).contains(&cursors()),
                "{}",
                db.memory_usage()
            );
            drop(iter);
            assert!(
                cursors() < 4096,
                "also one that is kept for the next iterator: {}",
                db.memory_usage()
            );
        }
    }

    fn fetch_all(db: &Db, expected: usize) {
        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        let mut entries = 0;
        while iter.valid() {
            entries += 1;
            iter.next();
        }
        iter.status().unwrap();
        assert_eq!(entries, expected);
    }

    /// Data of several times the budget, by every way that memory goes: what is counted stays
    /// within it.
    #[test]
    fn everything_keeps_to_the_budget() {
        const BUDGET: u64 = 16 << 20;
        let db = opened(&[
            ("memory_budget", "16m"),
            ("filter_policy", "bloomfilter:10"),
            ("target_file_size_base", "1m"),
            ("compression", "kNoCompression"),
        ]);
        let capacity = db.memory_usage().cache.capacity;
        assert_eq!(capacity, BUDGET - BUDGET / 6 - BUDGET / 4 - BUDGET / 3);
        let check = |db: &Db| {
            let usage = db.memory_usage();
            // The buffers of jobs do not shrink below what one block and one file need.
            assert!(usage.total() - usage.jobs < BUDGET, "{usage}");
        };
        for key in 0..30_000u32 {
            db.put(key.wrapping_mul(0x9e37_79b9).to_be_bytes(), [key as u8; 1_000]).unwrap();
            if key % 500 == 0 {
                check(&db);
            }
        }
        db.flush_all().unwrap();
        fetch_all(&db, 30_000);
        check(&db);
        // What others hold the cache gives back.
        db.inner().wait_until_idle().unwrap();
        fetch_all(&db, 30_000);
        let cache = db.inner().tables.caches().blocks();
        let before = (cache.capacity(), cache.usage());
        let held = db.inner().tables.account().hold(MemoryKind::Tables, 3 << 20);
        assert!(before.1 > 1 << 20 && cache.capacity() < before.0 - (2 << 20), "{before:?}");
        assert!(cache.usage() <= cache.capacity());
        // From here on tables leave their index to the cache.
        let tables = db.memory_usage().table_filters;
        (0..2_000u32).for_each(|key| db.put(key.to_be_bytes(), "new").unwrap());
        db.flush_all().unwrap();
        // A compaction would take these from the cache together with its inputs.
        db.inner().wait_until_idle().unwrap();
        for key in 0..2_000u32 {
            assert_eq!(db.get(key.to_be_bytes()).unwrap().unwrap(), b"new"[..]);
        }
        let usage = db.memory_usage();
        assert!(
            usage.table_filters <= tables && usage.cache.filter > 0 && usage.cache.index > 0,
            "{usage}"
        );
        drop(held);
        assert!(db.memory_usage().cache.capacity > before.0 as u64 - (1 << 20));

        let options = Options { env: Env::memory(), ..Options::default() };
        let too_small = Options {
            db: DbSettings { memory_budget: MemoryBudget::Bytes(1), ..options.db.clone() },
            ..options
        };
        let error = Db::open("/other", &too_small).unwrap_err();
        assert!(error.to_string().contains("memory_budget=1 is too small"), "{error}");
    }

    /// Nobody counted them: iterators that stood on many more blocks than the cache could hold took
    /// more than the budget.
    #[test]
    fn blocks_that_the_cache_let_go_of_are_counted_while_somebody_keeps_them() {
        let db = opened(&[("memory_budget", "24m"), ("compression", "kNoCompression")]);
        for key in 0..4_000u32 {
            db.put(key.to_be_bytes(), [key as u8; 1_000]).unwrap();
        }
        db.flush_all().unwrap();
        db.inner().wait_until_idle().unwrap();
        let mut iters: Vec<_> =
            (0..500).map(|_| db.iter(&ReadOptions::default()).unwrap()).collect();
        for (iter, key) in iters.iter_mut().zip((0u32..).step_by(8)) {
            iter.seek(key.to_be_bytes());
        }
        let usage = db.memory_usage();
        let (pinned, capacity) = (usage.cache.pinned, usage.cache.capacity);
        assert!(pinned > 500 * 4_000 && usage.kept_blocks == 0, "{usage}");
        // Others want all the memory there is.
        let account = db.inner().tables.account().clone();
        let others = account.hold(MemoryKind::Tables, 24 << 20);
        let usage = db.memory_usage();
        assert!(usage.kept_blocks > 500 * 2_000, "{usage}");
        assert_eq!(usage.cache.pinned + usage.kept_blocks, pinned, "{usage}");
        drop(others);
        // What is kept is not the cache's, which hears of it in steps.
        let step = (24 << 20) / 128;
        let left = capacity - usage.kept_blocks;
        assert!(
            (left - 2 * step..left + 2 * step).contains(&db.memory_usage().cache.capacity),
            "{capacity}, {usage}"
        );
        assert!(usage.total() > usage.kept_blocks && iters.iter().all(|iter| iter.valid()));
        drop(iters);
        let usage = db.memory_usage();
        assert!(
            usage.kept_blocks == 0 && usage.cache.capacity > capacity - 2 * step,
            "{capacity}, {usage}"
        );
    }

    /// Of indexes nobody heard: those that a cursor stands in may be megabytes.
    #[test]
    fn an_index_that_the_cache_let_go_of_is_counted_while_a_cursor_stands_in_it() {
        let db = opened(&[
            ("memory_budget", "64m"),
            ("cache_index_and_filter_blocks", "true"),
            ("compression", "kNoCompression"),
        ]);
        fill(&db, 0..20_000);
        db.flush_all().unwrap();
        db.inner().wait_until_idle().unwrap();
        let mut iters = [(); 3].map(|()| db.iter(&ReadOptions::default()).unwrap());
        iters.iter_mut().for_each(|iter| iter.seek_to_first());
        let (index, pinned) = (db.memory_usage().cache.index, db.memory_usage().cache.pinned);
        assert!(index > 10_000 && pinned > index);
        db.inner().tables.caches().blocks().set_capacity(0);
        assert_eq!(db.memory_usage().kept_blocks, pinned);
        drop(iters);
        assert_eq!(db.memory_usage().kept_blocks, 0);
    }

    /// It kept the caches of a closed database, with all that they held, by way of the account that
    /// its block is counted in.
    #[test]
    fn a_value_keeps_its_block_and_not_the_caches() {
        let db = opened(&[("memory_budget", "24m"), ("compression", "kNoCompression")]);
        fill(&db, 0..4_000);
        db.flush_all().unwrap();
        db.inner().wait_until_idle().unwrap();
        let value = db.get(7u32.to_be_bytes()).unwrap().unwrap();
        let cache = Arc::downgrade(db.inner().tables.caches().blocks());
        db.inner().tables.caches().blocks().set_capacity(0);
        let usage = db.memory_usage();
        assert!(usage.kept_blocks > 0, "{usage}");
        drop(db);
        assert!(cache.upgrade().is_none());
        assert_eq!(value, [7; 100][..]);
    }

    /// They were in no account, and neither a budget nor `stats` knew of them.
    #[test]
    fn dictionaries_of_open_tables_are_counted() {
        let tables_of = |dictionary: &str| {
            let mut options = Options { env: Env::memory(), ..Options::default() };
            options.create_if_missing = true;
            options.set("compression", "kZSTD").unwrap();
            options.set("compression_opts", &format!("{{max_dict_bytes={dictionary}}}")).unwrap();
            let db = Db::open("/db", &options).unwrap();
            (0..20_000u32).for_each(|key| {
                db.put(key.to_be_bytes(), format!("value {}", key * 7919)).unwrap()
            });
            db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
            db.flush_all().unwrap();
            assert!(db.get(7u32.to_be_bytes()).unwrap().is_some());
            db.memory_usage().tables
        };
        let (without, with) = (tables_of("0"), tables_of("16384"));
        // Its bytes, and what zstd makes of them.
        assert!(with > without + 2 * 15_000, "{without}, {with}");
    }
}
