//! The settings of a whole database.

use super::choices::FileChecksumGenFactory;
use super::data_path::DataPathList;
use super::info_log::InfoLogLevel;
use super::memory_budget::MemoryBudget;
use super::table::{Section, settings};
use crate::base::Temperature;
use crate::cache::PolicyKind;
use crate::env::LowPriority;
use crate::wal::{RecoveryMode, WalCompression, WalWriteMode};

settings! {
    /// The settings of a whole database: `[DBOptions]`.
    #[allow(non_snake_case, reason = "two names begin with WAL")]
    pub struct DbSettings in Section::Db;

    /// Creates the database if it does not exist.
    fixed create_if_missing: bool = false;
    /// Creates column families that are named at open and do not exist.
    fixed create_missing_column_families: bool = false;
    /// Fails to open a database that already exists.
    fixed error_if_exists: bool = false;
    /// Checks at open that every file named in the MANIFEST exists, and that every table has the
    /// size recorded there.
    fixed paranoid_checks: bool = true;
    /// Lists what threads do for the database, in [`thread_list`](crate::thread_list).
    fixed enable_thread_tracking: bool = false;
    /// Limit on open files; -1 for none. Readers keep up to this many table and blob files open,
    /// less ten that are left to WALs and the like. Values from 0 to 19 count as 20. The index and
    /// filter of a table stay in memory when its file is closed. With a limit, a `multi_get` reads
    /// blocks one at a time. A read-only database ignores the limit and keeps all its files open.
    live max_open_files: i32 = -1, in -1..=i32::MAX;
    /// Flushes and compactions that may run at the same time. All of them may be compactions; one
    /// of these pauses when a flush is due. The default is the number of cores, at least 2 and at
    /// most 32.
    live max_background_jobs: i32 = default_background_jobs(), in 1..=1024;
    /// Flushes that may run at the same time; -1 leaves the number to `max_background_jobs`. If
    /// this option or `max_background_compactions` is set, `max_background_jobs` has no effect, and
    /// whichever of the two is still -1 counts as 1.
    live max_background_flushes: i32 = -1, in -1..=1024;
    /// Compactions that may run at the same time, not counting manual ones; -1 leaves the number to
    /// `max_background_jobs`. See `max_background_flushes`.
    live max_background_compactions: i32 = -1, in -1..=1024;
    /// Subcompactions that one compaction may be split into, each with its own thread. Applies to
    /// compactions of level 0, universal compactions and manual ones.
    live max_subcompactions: u32 = 1, in 1..=1024;
    /// Bytes written to a new table or blob file after which the system is asked to start writing
    /// them back, except the last MiB. 0 means never, with two exceptions: flushes use 1 MiB, and
    /// with a rate limiter all such files do. Files written with direct I/O need none. Linux only,
    /// and not on ZFS.
    live bytes_per_sync: u64 = 0;
    /// Bytes written to a WAL, mapped or not, after which the system is asked to start writing them
    /// back; 0 for never. A change applies to the next WAL.
    live wal_bytes_per_sync: u64 = 0;
    /// At each request made by `bytes_per_sync` or `wal_bytes_per_sync`, waits until the bytes of
    /// the previous request are on the device. Where the system offers no such request, the file is
    /// synced instead.
    fixed strict_bytes_per_sync: bool = false;
    /// Bytes buffered before a write to a table or blob file. With `manual_wal_flush` it is also
    /// the size of a WAL's buffer; there a change applies to the next WAL.
    live writable_file_max_buffer_size: u64 = 1 << 20, in 4096..=1 << 30;
    /// Bytes read at a time from WALs and the MANIFEST when the database is opened, rounded up to
    /// 32 KiB; 0 for 256 KiB.
    fixed log_readahead_size: u64 = 0, in 0..=1 << 30;
    /// What recovery does with a damaged WAL.
    fixed wal_recovery_mode: RecoveryMode = RecoveryMode::PointInTimeRecovery;
    /// Obsolete WAL files kept for reuse while the database is open, which saves the file system
    /// from allocating new blocks. None are kept with `wal_compression`, with archived WALs, or if
    /// `wal_recovery_mode` is kTolerateCorruptedTailRecords or kAbsoluteConsistency.
    fixed recycle_log_file_num: u64 = 2, in 0..=1000;
    /// How WAL files are written. `mapped` writes through a memory mapping, if the file system
    /// supports reserving space; `plain` makes one system call a record. In both modes a write
    /// survives a crash of the process.
    fixed wal_write_mode: WalWriteMode = WalWriteMode::Mapped;
    /// Whether secondary instances of RocksDB can follow the database while it is written: WALs are
    /// written as `plain` and not recycled, and values go to blob files at flush, whatever
    /// `wal_write_mode`, `recycle_log_file_num` and `blob_write_mode` say. Values cannot be written
    /// in pieces then. Secondaries of Flagstone need none of this.
    fixed readable_by_rocksdb_secondaries: bool = false;
    /// Whether the process says in the file FIGURES what the database does, every two seconds; it
    /// removes the file when it closes the database. `flagstone top` shows it.
    fixed publish_figures: bool = true;
    /// Milliseconds between two refreshes of a follower instance; 0 for none but those that are
    /// called for.
    fixed follower_refresh_catchup_period_ms: u64 = 10_000, in 0..=u64::MAX / 1000;
    /// Attempts of one refresh of a follower instance before it waits for the next; with 0 only
    /// calls refresh.
    fixed follower_catchup_retry_count: u64 = 10;
    /// Milliseconds between two attempts of a refresh of a follower instance.
    fixed follower_catchup_retry_wait_ms: u64 = 100, in 0..=u64::MAX / 1000;
    /// Eviction policy of the block cache: lru, fifo, lfu, slru, s4lru, s3_fifo, sieve or
    /// w_tiny_lfu.
    fixed cache_policy: PolicyKind = PolicyKind::Lru;
    /// Bytes of a second tier of the block cache, in addition to `block_cache`, that holds data
    /// blocks compressed; 0 for none. Within `memory_budget` it gets at most three quarters of what
    /// is left for caches.
    fixed compressed_secondary_cache_size: u64 = 0, in 0..=1 << 50;
    /// Compression of WAL records: kNoCompression or kZSTD. Compressed WAL files are not recycled.
    fixed wal_compression: WalCompression = WalCompression::None;
    /// Directory of the WAL files; empty for the database directory. Opening an existing database
    /// fails if this directory is missing.
    fixed wal_dir: String = String::new();
    /// Directories of the tables, fastest first, each with the bytes that it should hold:
    /// `{path=/fast;target_size=10737418240}:{path=/slow}`. At most four; empty for the database
    /// directory. Existing tables stay where they are, so add directories only at the end and
    /// replace none. No other database may use them.
    fixed db_paths: DataPathList = DataPathList::default();
    /// Cap in bytes on all WALs that recovery needs. At three quarters of the cap, the families
    /// that need the oldest WAL are flushed. In the last eighth writers are delayed; at the cap
    /// they wait until flushes have freed WALs. Three things may exceed the cap: a single write,
    /// writes made while a checkpoint blocks the deletion of files, and WALs of dropped families
    /// until the next flush. 0 means no cap; with more than one family, the families that need the
    /// oldest WAL are then flushed at four times the size of all write buffers.
    live max_total_wal_size: u64 = 0;
    /// Seconds for which WALs that recovery no longer needs are kept, in an `archive` directory
    /// beside the WALs; 0 for no limit. If this and `WAL_size_limit_MB` are both 0, such WALs are
    /// deleted or recycled. Archived WALs are not recycled.
    fixed WAL_ttl_seconds: u64 = 0;
    /// Size limit of the WAL archive in MiB; 0 for no limit. See `WAL_ttl_seconds`.
    fixed WAL_size_limit_MB: u64 = 0, in 0..=u64::MAX >> 20;
    /// Least level of the messages in the info log. A logger of the program
    /// ([`InfoLog::Logger`](super::InfoLog)) gets these, too.
    fixed info_log_level: InfoLogLevel = InfoLogLevel::Info;
    /// Bytes at which the file LOG is renamed and a new one begun; 0 for no limit.
    fixed max_log_file_size: u64 = 16 << 20;
    /// Seconds after which the file LOG is renamed and a new one begun; 0 for never.
    fixed log_file_time_to_roll: u64 = 0;
    /// Number of LOG files that are kept, the current one included. Older ones are removed when a
    /// new one is begun, which each opening does.
    fixed keep_log_file_num: u64 = 10, in 1..=1_000_000;
    /// The directory of the LOG files. Their names then begin with the database's path. Empty for
    /// the database's own directory.
    fixed db_log_dir: String = String::new();
    /// Seconds between two reports of counters in the info log; 0 for none. They may be some
    /// seconds late.
    live stats_dump_period_sec: u32 = 600;
    /// Seconds that one entry of the history of counters covers (`Db::stats_history`); 0 for no
    /// history. Entries may be some seconds late.
    live stats_persist_period_sec: u32 = 600;
    /// Bytes of memory that the history of counters may take; the oldest entries go first.
    live stats_history_buffer_size: u64 = 1 << 20;
    /// Size in bytes at which the MANIFEST is replaced by a new one.
    fixed max_manifest_file_size: u64 = 1 << 30, in 1..=u64::MAX;
    /// Bytes reserved ahead for the MANIFEST, without changing its size; 0 for none. Needs
    /// `allow_fallocate`. Unused bytes are released when the database is closed.
    fixed manifest_preallocation_size: u64 = 0, in 0..=1 << 30;
    /// Allows transactions that are prepared in the WAL before they are committed. Without it, a
    /// database in which one is prepared and not decided cannot be opened for writing.
    fixed allow_2pc: bool = false;
    /// Turns `cf_allow_ingest_behind` on for all families with universal compaction.
    fixed allow_ingest_behind: bool = false;
    /// Keeps writes recovered from WALs in memory where possible, instead of flushing them.
    fixed avoid_flush_during_recovery: bool = false;
    /// Closes without flushing. Writes made without the WAL are then lost.
    live avoid_flush_during_shutdown: bool = false;
    /// Flushes all column families together, and makes the flushed tables visible together. After a
    /// crash, even writes made without the WAL are recovered to one point in time across all
    /// families. `min_write_buffer_number_to_merge` has no effect then.
    fixed atomic_flush: bool = false;
    /// Buffers WAL records in memory. They are written by `flush_wal`, `sync_wal` or a write with
    /// `sync`, when `writable_file_max_buffer_size` bytes have gathered, and when the WAL ends.
    /// Buffered records are lost if the process dies.
    fixed manual_wal_flush: bool = false;
    /// Reads table and blob files with direct I/O, bypassing the system's cache. The file system
    /// must support it.
    fixed use_direct_reads: bool = false;
    /// Reads table and blob files through memory mappings, where the system has them. That saves a
    /// system call for each block that is in the system's cache and not in the block cache. If the
    /// device fails a read, or something cuts a file off, the process ends (SIGBUS). Excludes
    /// `use_direct_reads`.
    fixed allow_mmap_reads: bool = false;
    /// Flushes and compactions write with direct I/O, and compactions read tables with it. The file
    /// system must support it.
    fixed use_direct_io_for_flush_and_compaction: bool = false;
    /// Bytes of each table that a compaction reads at a time; 0 lets the engine choose.
    live compaction_readahead_size: u64 = 2 << 20, in 0..=1 << 30;
    /// Niceness added to the threads that run flushes and compactions, as long as no writer is
    /// waiting for them. Linux only.
    fixed background_niceness: i32 = if cfg!(target_os = "linux") { 10 } else { 0 }, in 0..=19;
    /// Whether these threads also have the I/O class idle meanwhile: the disk serves them only when
    /// no other thread wants it, if the scheduler of the device knows such classes. Linux only.
    fixed background_idle_io: bool = false;
    /// Bytes of disk space held back in a file `RESERVE` for when the disk is full; 0 for none.
    /// Flushes, compactions and deletions may then use them; other writes fail until there is space
    /// again.
    fixed reserved_disk_space: u64 = 0, in 0..=1 << 50;
    /// Bytes a second that writes may take while they are delayed. 0 means the rate limiter's rate,
    /// or 16 MiB without a rate limiter.
    live delayed_write_rate: u64 = 16 << 20;
    /// Limit in bytes on the memtables of all families together; 0 for none. When the active
    /// memtables reach half of it, the largest are flushed; when all memtables reach it, writers
    /// wait.
    live db_write_buffer_size: u64 = 0;
    /// Memory that the engine stays within, in bytes, at least 8 MiB; 0 for no budget. `auto` is
    /// half of the machine's memory or of the cgroup's limit, divided equally among the process's
    /// open databases with `auto`. The block cache gets what memtables, open tables, cursors and
    /// jobs leave, up to `block_cache`. If `block_cache` is not set and the budget is `auto`, the
    /// cache sizes itself, up to a quarter of the budget.
    fixed memory_budget: MemoryBudget = MemoryBudget::Auto;
    /// Percentage of the process's time that block cache misses may cost before the cache doubles,
    /// if `block_cache` is `auto`. It is measured over ten seconds; the process's time is the
    /// longer of those ten seconds and the CPU time of its threads. With 100 or more the cache
    /// stays at 32 MiB, unless several threads read at the same time.
    live block_cache_miss_percent: f64 = 2.0, in 0.0..=1e6;
    /// Seconds after which unused memory is returned to the system: what an `auto` block cache
    /// holds beyond 32 MiB, and memory kept from former memtables.
    live unused_memory_seconds: u64 = 60, in 1..=1 << 30;
    /// Checks, when a table is first used, that its unique id is the one recorded in the MANIFEST.
    fixed verify_sst_unique_id_in_manifest: bool = true;
    /// Checksum of each new table and blob file as a whole, which the MANIFEST records:
    /// FileChecksumGenCrc32cFactory, or nullptr for none. `Db::verify` and backups compare it.
    /// Blob files that have one get no holes.
    fixed file_checksum_gen_factory: FileChecksumGenFactory = FileChecksumGenFactory::None;
    /// Reserves space for WALs, and for files written with direct I/O, before they are written.
    /// Without it WALs are never mapped, and with `manual_wal_flush` a full disk may reject records
    /// buffered in memory. `RESERVE` is kept in either case.
    fixed allow_fallocate: bool = true;
    /// Temperature of new WALs, of which the file system is told; kUnknown for none.
    fixed wal_write_temperature: Temperature = Temperature::UNKNOWN;
    /// Temperature of new MANIFEST, CURRENT, IDENTITY and OPTIONS files; kUnknown for none.
    fixed metadata_write_temperature: Temperature = Temperature::UNKNOWN;
}

impl DbSettings {
    /// WALs that are in fact kept for reuse. None where recovery takes what a recycled file still
    /// holds of its earlier life, behind the last record, for damage: a database whose process was
    /// killed would not open again. None that secondaries of RocksDB read, which lose their place
    /// there. None that are compressed: RocksDB's reader of
    /// `kSkipAnyCorruptedRecords` does not end with a recycled one. None with `allow_2pc`: a WAL
    /// that is kept for what is prepared has others behind it, and RocksDB takes the rest of a
    /// recycled one for damage there.
    pub(crate) fn recycled_wals(&self) -> usize {
        let is_compressed = self.wal_compression != WalCompression::None;
        let is_read_as_it_is = self.archives_wals() || self.readable_by_rocksdb_secondaries;
        if is_read_as_it_is || is_compressed || self.allow_2pc {
            return 0;
        }
        match self.wal_recovery_mode {
            RecoveryMode::PointInTimeRecovery | RecoveryMode::SkipAnyCorruptedRecords => {
                self.recycle_log_file_num as usize
            }
            RecoveryMode::TolerateCorruptedTailRecords | RecoveryMode::AbsoluteConsistency => 0,
        }
    }

    /// How far background work stands back.
    pub(crate) fn low_priority(&self) -> LowPriority {
        LowPriority { niceness: self.background_niceness, idle_io: self.background_idle_io }
    }

    /// How WALs are in fact written, if the file system is able to.
    pub(crate) fn wal_mode_in_force(&self) -> WalWriteMode {
        if self.readable_by_rocksdb_secondaries { WalWriteMode::Plain } else { self.wal_write_mode }
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
