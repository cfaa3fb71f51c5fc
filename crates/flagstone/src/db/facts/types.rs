//! What a diagnosis goes by.

use crate::base::Remedy;
use crate::options::CompactionStyle;
#[cfg(test)]
use crate::options::value::SettingValue;

/// All of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Of the database.
    pub database: DatabaseFacts,
    /// Of each column family.
    pub families: Vec<FamilyFacts>,
    /// Files that are missing, cut off, or were found damaged, in words.
    pub faults: Vec<String>,
    /// Files that hold what this engine cannot treat, in words.
    pub unsupported: Vec<String>,
    /// Sound tables that no compaction takes for now, in words, and what helps.
    pub aside: Vec<(String, Vec<Remedy>)>,
    /// What the operating system did not let this process look at, in words.
    pub refused: Vec<String>,
    /// What is wrong with keys, in words.
    pub key_faults: Vec<String>,
    /// What is wrong with WALs that an opening would replay.
    pub logs: Vec<LogFacts>,
}

/// Damage in a WAL, and what an opening would make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFacts {
    /// What is where, in words.
    pub what: String,
    /// What an opening would do.
    pub fate: LogFate,
    /// The option `wal_recovery_mode`, by its name.
    pub mode: String,
    /// Intact records behind the damage, in this WAL and in newer ones.
    pub records_behind: u64,
    /// Bytes of their batches.
    pub bytes_behind: u64,
}

/// What an opening would do about damage in a WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFate {
    /// The database does not open.
    Refused,
    /// History ends here: what lies behind is given up, in newer WALs as well.
    HistoryEnds,
    /// The WAL ends here; newer ones count.
    WalEnds,
    /// What is damaged is passed over, with the rest of its block, and what lies behind that
    /// counts.
    PassedOver,
    /// Nothing lies behind: a process that died while it wrote leaves a WAL so.
    TornEnd,
    /// The WAL that was written last is not there.
    Missing,
}

macro_rules! facts {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $type,)+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        #[cfg(test)]
        impl $name {
            /// Sets a fact by its name.
            pub(crate) fn set(&mut self, name: &str, value: &str) {
                match name {
                    $(stringify!($field) => self.$field.assign(value).expect("a value of the fact's type"),)+
                    _ => panic!("there is no fact {name}"),
                }
            }
        }
    };
}

facts! {
    /// Facts about a database as a whole.
    DatabaseFacts {
        /// `healthy`, or since when and why writes are refused: the property
        /// `flagstone.background-error`.
        state: String = "healthy".to_string(),
        /// It is open for writing, and not only looked at.
        is_running: bool = true,
        /// Seconds since it was opened.
        open_seconds: u64 = 0,
        /// Whether writers are held up now: `normal`, `delayed` or `stopped`.
        writers: String = "normal".to_string(),
        /// The option, as the OPTIONS file keeps it.
        paranoid_checks: bool = true,
        /// The option, as the OPTIONS file keeps it.
        wal_recovery_mode: String = "kPointInTimeRecovery".to_string(),
        /// The option.
        readable_by_rocksdb_secondaries: bool = false,
        /// Bytes that are free on the disk; the maximum where nobody knows.
        free_bytes: u64 = u64::MAX,
        /// The option.
        reserved_disk_space: u64 = 0,
        /// Bytes that the active WAL was to reserve, and found no room for; where the database is
        /// not open for writing, that a WAL would.
        wal_reserve_missing: u64 = 0,
        /// Files in the directory that nothing names.
        strays: u64 = 0,
        /// Bytes of the WALs that recovery would read.
        wal_bytes: u64 = 0,
        /// The option; 0 where nobody set it.
        max_total_wal_size: u64 = 0,
        /// The option; 0 where nobody set it.
        db_write_buffer_size: u64 = 0,
        /// The option.
        max_background_jobs: u64 = 2,
        /// Compactions at a time where they have a limit of their own; 0 where they have none.
        max_background_compactions: u64 = 0,
        /// Bytes a second that the rate limiter allows flushes and compactions; 0 where there is
        /// none.
        rate_limit: u64 = 0,
        /// Microseconds for which they have waited for it since the database was opened, all
        /// threads together.
        rate_limiter_us: u64 = 0,
        /// Bytes of memory that the process may have; the maximum where nobody knows.
        memory_bytes: u64 = u64::MAX,
        /// The option; 0 where all files may be open.
        max_open_files: u64 = 0,
        /// Tables and blob files.
        files: u64 = 0,
        /// How often one of them was opened again, as there was no place for it while others were
        /// read.
        file_reopens: u64 = 0,
        /// Keys written since the database was opened; 0 for one that is only read.
        keys_written: u64 = 0,
        /// Syncs of the WAL since then.
        wal_syncs: u64 = 0,
        /// Microseconds since then in which any writer was held up, whoever is now among them.
        stall_us: u64 = 0,
        /// Seconds for which writers have been stopped; 0 where they are not.
        stopped_seconds: u64 = 0,
        /// Bytes of the memtables of all families, where there is a limit of them.
        memtable_bytes: u64 = 0,
        /// That limit, at which writers wait for flushes; 0 where there is none.
        memtable_bytes_max: u64 = 0,
        /// How often that limit began to hold writers up since the database was opened.
        held_up_by_all_memtables: u64 = 0,
        /// Bytes of values that were written to blob files since then, not counting those that were
        /// moved there.
        blob_written_bytes: u64 = 0,
        /// Bytes of values that were moved from blob file to blob file since then.
        blob_moved_bytes: u64 = 0,
        /// Seconds for which the oldest snapshot has been there; 0 where there is none.
        snapshot_seconds: u64 = 0,
        /// How many operations were written since it was taken.
        snapshot_writes: u64 = 0,
        /// Bytes of their keys and values, by what writes have had on average since the database
        /// was opened.
        snapshot_write_bytes: u64 = 0,
        /// Where it was taken.
        snapshot_taken_at: String = String::new(),
        /// What follows is of the cache of who writes the database, and not of who looks at it.
        knows_cache: bool = true,
        /// Bytes that the block cache may have.
        cache_bytes: u64 = 32 << 20,
        /// The most bytes that it may grow to; 0 if its size was given.
        cache_auto_max: u64 = 0,
        /// It would grow if it could, or gave memory back that was short.
        cache_is_too_little: bool = false,
        /// Why it has its size, in words.
        cache_auto_why: String = String::new(),
        /// Lookups in the block cache since it was made that found their block.
        cache_hits: u64 = 0,
        /// Those that did not.
        cache_misses: u64 = 0,
        /// Blocks that it dropped to make room.
        cache_evictions: u64 = 0,
        /// Bytes of indexes and filters that go through the block cache as a whole
        /// (`cache_index_and_filter_blocks`), and are not pinned.
        cached_index_bytes: u64 = 0,
        /// Bytes of replaced memtables and files that the iterator keeps that keeps most; 0 where
        /// none keeps any.
        iterator_kept_bytes: u64 = 0,
        /// Seconds for which it has been there.
        iterator_seconds: u64 = 0,
        /// Where it was made.
        iterator_made_at: String = String::new(),
        /// Transactions that are prepared and not decided.
        prepared: u64 = 0,
        /// Of these the one with the oldest WAL: its name, as `flagstone transactions commit` takes
        /// it.
        prepared_name: String = String::new(),
        /// The number of that WAL.
        prepared_wal: u64 = 0,
        /// WALs that nothing but prepared transactions needs.
        prepared_kept_wals: u64 = 0,
        /// Bytes of them.
        prepared_kept_bytes: u64 = 0,
        /// Transactions that wait for the lock of a key.
        lock_waits: u64 = 0,
        /// Seconds for which the one that has waited longest has done so.
        lock_wait_seconds: u64 = 0,
        /// The transaction that has waited longest, by number.
        lock_waiter: u64 = 0,
        /// The key that it waits for, in words.
        lock_key: String = String::new(),
        /// The transactions that hold that key, in words.
        lock_holders: String = String::new(),
    }
}

facts! {
    /// Facts about a column family. What is named as an option is its value.
    FamilyFacts {
        /// Its name.
        name: String = "default".to_string(),
        /// Tables.
        tables: u64 = 0,
        /// Their bytes.
        table_bytes: u64 = 0,
        /// The option.
        compaction_style: CompactionStyle = CompactionStyle::Level,
        /// Entries of the tables, deletions among them, but not those of ranges.
        entries: u64 = 0,
        /// Deletions, but for those that compactions take along before long: where these run by
        /// themselves, those of tables that were written less than ten minutes ago.
        deletions: u64 = 0,
        /// Tables of which more than half of the entries are such deletions.
        deletion_tables: u64 = 0,
        /// The deletions in them.
        dense_deletions: u64 = 0,
        /// Deletions of ranges, of the tables that `deletions` are of.
        range_deletions: u64 = 0,
        /// Entries of the tables that have filters over whole keys.
        filtered_entries: u64 = 0,
        /// Bytes of these filters.
        filter_bytes: u64 = 0,
        /// Tables in level 0; with universal compaction sorted runs, with FIFO none.
        level0_files: u64 = 0,
        /// See the option.
        level0_slowdown_writes_trigger: u64 = 20,
        /// See the option.
        level0_stop_writes_trigger: u64 = 36,
        /// Bytes that compactions have to rewrite until the tree has its shape.
        pending_compaction_bytes: u64 = 0,
        /// See the option.
        soft_pending_compaction_bytes_limit: u64 = 64 << 30,
        /// See the option.
        hard_pending_compaction_bytes_limit: u64 = 256 << 30,
        /// Bytes of memtables, with their values in blob files; where the database is not open for
        /// writing, what WALs hold.
        unflushed_bytes: u64 = 0,
        /// Full memtables that are not flushed.
        unflushed_memtables: u64 = 0,
        /// See the option.
        max_write_buffer_number: u64 = 2,
        /// See the option.
        min_write_buffer_number_to_merge: u64 = 1,
        /// See the option.
        write_buffer_size: u64 = 64 << 20,
        /// See the option.
        target_file_size_base: u64 = 64 << 20,
        /// The most that one compaction may write before it gives anything back.
        scratch_bytes: u64 = 0,
        /// How often full memtables waiting for a flush began to hold writers up since the
        /// database was opened.
        held_up_by_memtables: u64 = 0,
        /// How often tables in level 0, or sorted runs, did.
        held_up_by_level0: u64 = 0,
        /// How often bytes waiting to be compacted did.
        held_up_by_pending_bytes: u64 = 0,
        /// How often garbage in blob files did.
        held_up_by_blob_space: u64 = 0,
        /// Compactions run only on request, by the option or by the style.
        disable_auto_compactions: bool = false,
        /// Somebody holds automatic compactions back (`Db::hold_automatic_compactions`).
        compactions_are_held: bool = false,
        /// See the option.
        level0_file_num_compaction_trigger: u64 = 4,
        /// With universal compaction, bytes of the sorted runs above the oldest one.
        newer_run_bytes: u64 = 0,
        /// See the option.
        max_size_amplification_percent: u64 = 200,
        /// With FIFO compaction, bytes of what counts for the limit.
        fifo_bytes: u64 = 0,
        /// Bytes that would go with the table with which most would, those of blob files if they
        /// count for the limit.
        largest_drop_bytes: u64 = 0,
        /// Tables that were flushed before all that are there are gone.
        oldest_are_gone: bool = false,
        /// The limit: `max_data_files_size`, or `max_table_files_size`.
        fifo_limit_bytes: u64 = 1 << 30,
        /// Values in blob files count for it.
        fifo_counts_blobs: bool = false,
        /// With FIFO compaction, seconds since the oldest key was written; 0 where nobody knows.
        oldest_seconds: u64 = 0,
        /// See the option.
        ttl: u64 = 30 * 24 * 60 * 60,
        /// Bytes of blob files.
        blob_bytes: u64 = 0,
        /// Bytes of them that nothing refers to.
        blob_garbage_bytes: u64 = 0,
        /// Bytes that are garbage in blob files, or will be, as far as writers are held up for it.
        blob_waste_bytes: u64 = 0,
        /// From how many on they are; 0 for never.
        blob_waste_delays_at: u64 = 0,
        /// Values in blob files, garbage among them.
        blob_values: u64 = 0,
        /// Bytes of values, on average, from which on garbage leaves blob files through holes; none
        /// does at the maximum.
        holes_from: u64 = 8 << 10,
        /// See the option.
        max_space_amplification: f64 = 1.3,
        /// See the option: at least the one above, and 0 without a limit.
        burst_space_amplification: f64 = 2.2,
        /// See the option.
        enable_blob_garbage_collection: bool = false,
    }
}
