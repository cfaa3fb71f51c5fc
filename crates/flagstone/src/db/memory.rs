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

/// A block cache that sizes itself, because no size was given (`block_cache=auto`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoCacheMemory {
    /// Bytes that it wants to have. [`CacheMemory::capacity`] may be less, where others leave less
    /// of the `memory_budget`.
    pub capacity: u64,
    /// The most that it may come to: a quarter of the `memory_budget`.
    pub capacity_max: u64,
    /// It would have more if it could: it has the most that it may come to while misses cost too
    /// much, or memory is short.
    pub is_too_little: bool,
    /// Why it has this size, in words.
    pub why: String,
}

/// What a database holds in memory, from [`Db::memory_usage`](super::Db::memory_usage); in bytes
/// where nothing else is said.
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
    /// Its size and the reason, if it sizes itself.
    pub auto_cache: Option<AutoCacheMemory>,
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
            (
                "auto_cache_capacity_max_bytes",
                self.auto_cache.as_ref().map_or(0, |auto| auto.capacity_max),
            ),
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
        if let Some(AutoCacheMemory { capacity, why, .. }) = &self.auto_cache {
            writeln!(f, "block cache : auto, {capacity}, {why}")?;
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
pub(super) mod tests;
