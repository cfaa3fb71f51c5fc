//! The settings of a whole database.

use super::data_path::DataPathList;
use super::memory_budget::MemoryBudget;
use super::table::{Section, settings};
use crate::cache::PolicyKind;
use crate::wal::{RecoveryMode, WalCompression, WalWriteMode};

settings! {
    /// The settings of a whole database: `[DBOptions]`.
    #[allow(non_snake_case, reason = "two names begin with WAL")]
    pub struct DbSettings in Section::Db;

    /// Makes the database if there is none.
    fixed create_if_missing: bool = false;
    /// Makes the column families that are named at open and do not exist.
    fixed create_missing_column_families: bool = false;
    /// Refuses to open a database that exists.
    fixed error_if_exists: bool = false;
    /// Looks at open whether all files are there, with the sizes that the MANIFEST says.
    fixed paranoid_checks: bool = true;
    /// Table and blob files that readers hold open at a time, and ten others; never taken for less
    /// than 20; -1 for no limit. What else memory holds of a table (index, filter) stays; a joint
    /// lookup asks for blocks one by one. A database that is open read-only holds all of its files
    /// open, whatever this says.
    live max_open_files: i32 = -1, in -1..=i32::MAX;
    /// Flushes and compactions that run at a time; the default follows the number of cores. All may
    /// be compactions, of which one pauses for a flush.
    live max_background_jobs: i32 = default_background_jobs(), in 1..=1024;
    /// Flushes that run at a time; -1 leaves it to `max_background_jobs`. Where this or
    /// `max_background_compactions` is set, `max_background_jobs` has no effect, and of the other
    /// kind, if it is -1, there is one at a time.
    live max_background_flushes: i32 = -1, in -1..=1024;
    /// Compactions that run at a time, but for manual ones, as `max_background_flushes` says it of
    /// flushes.
    live max_background_compactions: i32 = -1, in -1..=1024;
    /// Parts that one compaction may be split into, each with a thread of its own: of level 0,
    /// universal, and manual.
    live max_subcompactions: u32 = 1, in 1..=1024;
    /// Bytes of a new table or blob file after which the system is asked to begin writing it back,
    /// but for its last MiB; 0 for never, but 1 MiB for what flushes write, and with a rate limiter
    /// for all. Files that go around the system's cache need none. Only on Linux, and not on ZFS.
    live bytes_per_sync: u64 = 0;
    /// The same for the WAL, mapped or not; a change takes effect with the next one.
    live wal_bytes_per_sync: u64 = 0;
    /// Whoever asks waits until what was asked for before is written; where the system cannot be
    /// asked, the file is synced.
    fixed strict_bytes_per_sync: bool = false;
    /// Bytes that are gathered before they are written to a table or blob file, or to the next WAL
    /// with `manual_wal_flush`.
    live writable_file_max_buffer_size: u64 = 1 << 20, in 4096..=1 << 30;
    /// Bytes that are read at a time of WAL and MANIFEST when the database is opened, rounded up to
    /// 32 KiB; 0 for 256 KiB.
    fixed log_readahead_size: u64 = 0, in 0..=1 << 30;
    /// What recovery does with a WAL that is not intact.
    fixed wal_recovery_mode: RecoveryMode = RecoveryMode::PointInTimeRecovery;
    /// WAL files kept for reuse while the database is open, which spares the file system the work
    /// of new blocks; none with `wal_compression`, or with a `wal_recovery_mode` that allows no
    /// damage but a torn end.
    fixed recycle_log_file_num: u64 = 2, in 0..=1000;
    /// How WAL files are written: mapped (through memory, where the file system keeps what it
    /// reserves) or plain (one system call a record). Both survive the death of the process.
    fixed wal_write_mode: WalWriteMode = WalWriteMode::Mapped;
    /// Which block leaves a full block cache first: lru, fifo, lfu, slru, s4lru, s3_fifo, sieve or
    /// w_tiny_lfu.
    fixed cache_policy: PolicyKind = PolicyKind::Lru;
    /// Bytes of a second tier of the block cache, beside `block_cache`, which holds data blocks in
    /// compressed form; 0 for none. With `memory_budget` it has three quarters of what is left to
    /// both, at most.
    fixed compressed_secondary_cache_size: u64 = 0, in 0..=1 << 50;
    /// How WAL records are compressed: kNoCompression or kZSTD. WAL files are not recycled then.
    fixed wal_compression: WalCompression = WalCompression::None;
    /// Where WAL files lie; empty for the database directory. A database that is there is not
    /// opened while the directory is not.
    fixed wal_dir: String = String::new();
    /// Where tables lie, up to four directories with the bytes that each should hold, the fastest
    /// first: `{path=/fast;target_size=10737418240}:{path=/slow}`; empty for the database
    /// directory. What was written stays where it is, so directories may be added at the end, and
    /// no others taken in their place. No other database may use them.
    fixed db_paths: DataPathList = DataPathList::default();
    /// Bytes that all WALs may have that recovery needs. At three quarters of it the families that
    /// hold the oldest are flushed, be it the only one; in the last eighth writers are slowed down,
    /// at its end they wait until flushes have let go of some. A single write may go beyond it, and
    /// so do what is written while a checkpoint keeps files from being deleted, and WALs of dropped
    /// families until the next flush. 0 for no cap: at four times all write buffers the families
    /// that hold the oldest are flushed, if there is more than one family.
    live max_total_wal_size: u64 = 0;
    /// Seconds for which WALs are kept that recovery does not need any longer, in `archive` beside
    /// the others; 0 for no limit. If this and `WAL_size_limit_MB` are 0, such WALs are removed or
    /// recycled. An archive is not recycled from.
    fixed WAL_ttl_seconds: u64 = 0;
    /// MiB of such WALs that are kept; 0 for no limit.
    fixed WAL_size_limit_MB: u64 = 0, in 0..=u64::MAX >> 20;
    /// Bytes at which a MANIFEST is replaced.
    fixed max_manifest_file_size: u64 = 1 << 30, in 1..=u64::MAX;
    /// Bytes that are reserved for a MANIFEST at a time, without changing its size, with
    /// `allow_fallocate`; 0 for none. What is left is given back when the database is closed.
    fixed manifest_preallocation_size: u64 = 0, in 0..=1 << 30;
    /// Leaves what was recovered from WALs in memory where possible.
    fixed avoid_flush_during_recovery: bool = false;
    /// Closes without flushing; what was written without the WAL is then lost.
    live avoid_flush_during_shutdown: bool = false;
    /// Flushes all families together, and makes their flushes count together: after a crash, also
    /// what was written without the WAL is there up to one moment in all of them.
    /// `min_write_buffer_number_to_merge` is not heeded then.
    fixed atomic_flush: bool = false;
    /// Log records wait in memory until `flush_wal`, `sync_wal` or a write with `sync` asks for
    /// them, they have come to `writable_file_max_buffer_size` bytes, or the WAL ends: when the
    /// process dies, what waits is lost.
    fixed manual_wal_flush: bool = false;
    /// Reads table and blob files around the system's cache. The file system must be able to.
    fixed use_direct_reads: bool = false;
    /// Flushes and compactions write, and compactions read tables, around the system's cache. The
    /// file system must be able to.
    fixed use_direct_io_for_flush_and_compaction: bool = false;
    /// Bytes of each table that a compaction reads at once; 0 leaves it to the engine.
    live compaction_readahead_size: u64 = 2 << 20, in 0..=1 << 30;
    /// How far flushes and compactions give way to others that want the processor, while no writer
    /// sleeps for them: what is added to the niceness of the threads that do what takes long. Only
    /// on Linux.
    fixed background_niceness: i32 = if cfg!(target_os = "linux") { 10 } else { 0 }, in 0..=19;
    /// Bytes of the disk that are kept, in a file `RESERVE`, for when it is full: flushes,
    /// compactions and deletions then have them, and other writes are refused until there is space
    /// again; 0 keeps none.
    fixed reserved_disk_space: u64 = 0, in 0..=1 << 50;
    /// Bytes a second that writes may take while they are delayed; 0 for as many as the rate
    /// limiter allows, or 16 MiB without one.
    live delayed_write_rate: u64 = 16 << 20;
    /// Bytes of the memtables of all families together; 0 for no common limit. When those written
    /// to have half of it, the largest are flushed; when all have it, writers wait.
    live db_write_buffer_size: u64 = 0;
    /// Bytes of memory that the engine keeps to, at least 8 MiB; 0 for no budget; `auto` for half
    /// of what the machine has, or the cgroup allows, which all open databases of the process with
    /// `auto` have together, each an equal part. The block cache has what memtables, open tables,
    /// cursors and jobs leave of it, and no more than `block_cache` says. Where that says nothing,
    /// and the budget is `auto`, the cache sizes itself up to a quarter of it.
    fixed memory_budget: MemoryBudget = MemoryBudget::Auto;
    /// The part, in percent, of the process's time over ten seconds that misses of the block cache
    /// may cost before it doubles, where `block_cache` is `auto`. The process's time is the longer
    /// of these ten seconds and of what its threads have run in them. 100 or more keeps it at its
    /// 32 MiB, if no more than one thread reads.
    live block_cache_miss_percent: f64 = 2.0, in 0.0..=1e6;
    /// Seconds after which memory that was not used goes back to the system: what a block cache
    /// that is `auto` has beyond 32 MiB, and memory that is kept of former memtables.
    live unused_memory_seconds: u64 = 60, in 1..=1 << 30;
    /// Checks, when a table is first used, that it is the one that the MANIFEST means.
    fixed verify_sst_unique_id_in_manifest: bool = true;
    /// Reserves space for WALs, and for files that are written around the system's cache, before
    /// they are written. Without it no WAL is mapped, and with `manual_wal_flush` a full disk may
    /// refuse records that wait in memory. `RESERVE` is kept anyway.
    fixed allow_fallocate: bool = true;
}

impl DbSettings {
    /// WALs that are in fact kept for reuse. None where recovery takes what a recycled file still
    /// holds of its earlier life, behind the last record, for damage: a database whose process was
    /// killed would not open again. None that are compressed: RocksDB's reader of
    /// `kSkipAnyCorruptedRecords` does not end with a recycled one.
    pub(crate) fn recycled_wals(&self) -> usize {
        if self.archives_wals() || self.wal_compression != WalCompression::None {
            return 0;
        }
        match self.wal_recovery_mode {
            RecoveryMode::PointInTimeRecovery | RecoveryMode::SkipAnyCorruptedRecords => {
                self.recycle_log_file_num as usize
            }
            RecoveryMode::TolerateCorruptedTailRecords | RecoveryMode::AbsoluteConsistency => 0,
        }
    }

    /// Whether WALs that recovery does not need are kept.
    pub(crate) fn archives_wals(&self) -> bool {
        self.WAL_ttl_seconds > 0 || self.WAL_size_limit_MB > 0
    }
}

/// One job a core, but at least two.
fn default_background_jobs() -> i32 {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 32) as i32)
}
