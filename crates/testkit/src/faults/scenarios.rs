//! Lives of a database, each long enough for one part of the engine to do all that it does to a
//! disk.

mod lives;

use super::life::Life;
use lives::*;

/// Options by name.
pub type Changes = &'static [(&'static str, &'static str)];

/// A life that can be lived with faults.
pub struct Scenario {
    /// As on the command line.
    pub name: &'static str,
    /// Its options, where they are others than those of all.
    options: Changes,
    /// What happens before anything may fail.
    pub(super) prepare: fn(&mut Life),
    /// What happens while it may. It goes on whatever fails.
    pub(super) live: fn(&mut Life),
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "opening", options: PLAIN, prepare: nothing, live: opening },
    Scenario { name: "flushes", options: PLAIN, prepare: nothing, live: flushes },
    Scenario { name: "compactions", options: &[], prepare: open, live: compactions },
    Scenario { name: "runs", options: RUNS, prepare: open, live: compactions },
    Scenario { name: "paths", options: PATHS, prepare: open, live: compactions },
    Scenario { name: "blobs", options: BLOBS, prepare: open, live: blobs },
    Scenario { name: "remote", options: REMOTE, prepare: open, live: blobs },
    Scenario { name: "holes", options: HOLES, prepare: open, live: holes },
    Scenario { name: "space", options: LITTLE_SPACE, prepare: open, live: holes },
    Scenario { name: "blobs_at_commit", options: AT_COMMIT, prepare: open, live: blobs_at_commit },
    Scenario { name: "families", options: &[], prepare: open, live: families },
    Scenario { name: "ingestion", options: &[], prepare: open, live: ingestion },
    Scenario { name: "wals", options: WALS, prepare: open, live: wals },
    Scenario { name: "log_by_hand", options: BY_HAND, prepare: open, live: log_by_hand },
    Scenario {
        name: "log_by_hand_plain",
        options: BY_HAND_AND_PLAIN,
        prepare: open,
        live: log_by_hand,
    },
    Scenario { name: "manifests", options: SHORT_MANIFESTS, prepare: open, live: manifests },
    Scenario { name: "options", options: &[], prepare: open, live: options },
    Scenario { name: "checkpoint", options: BLOBS, prepare: a_tree, live: checkpoint },
    Scenario {
        name: "transactions",
        options: BLOBS,
        prepare: open_for_transactions,
        live: transactions,
    },
    Scenario {
        name: "two_phases",
        options: IN_TWO_PHASES,
        prepare: open_for_two_phases,
        live: two_phases,
    },
    Scenario { name: "direct", options: DIRECT, prepare: open, live: blobs_at_commit },
    Scenario { name: "manual", options: BLOBS, prepare: a_tree, live: manual },
    Scenario { name: "subcompactions", options: IN_PARTS, prepare: a_tree, live: manual },
    Scenario { name: "syncs", options: PLAIN, prepare: open, live: syncs },
    Scenario { name: "syncs_mapped", options: &[], prepare: open, live: syncs },
    Scenario { name: "readers", options: READERS, prepare: a_tree, live: readers },
    Scenario { name: "read_only", options: BLOBS, prepare: an_end, live: read_only },
    Scenario { name: "recovery", options: BLOBS, prepare: an_end, live: recovery },
    Scenario { name: "kept_in_memory", options: KEPT_IN_MEMORY, prepare: an_end, live: recovery },
    Scenario { name: "unlogged", options: BLOBS, prepare: open_unlogged, live: unlogged },
    Scenario { name: "mixed", options: MEMTABLES, prepare: open_mixed, live: mixed },
    Scenario { name: "info_logs", options: INFO_LOGS, prepare: open, live: compactions },
    Scenario { name: "full_levels", options: STALLS, prepare: open, live: full_levels },
];

const COMMON: Changes = &[("write_buffer_size", "3000"), ("target_file_size_base", "3000")];

const IN_TWO_PHASES: Changes = &[("allow_2pc", "true")];

/// Each record of a WAL is a call that can fail.
const PLAIN: Changes = &[("wal_write_mode", "plain"), ("recycle_log_file_num", "0")];

const BLOBS: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("blob_garbage_collection_force_threshold", "0.5"),
];

/// Workers compact.
const REMOTE: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("compaction_service", "workers"),
];

/// Level 1 lies elsewhere than level 0.
const PATHS: Changes = &[
    ("db_paths", "{path=/db;target_size=4000}:/db/slow"),
    ("max_bytes_for_level_base", "3000"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "250"),
];

/// Overwritten values, and little space for them.
const HOLES: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("max_space_amplification", "1.1"),
    ("burst_space_amplification", "0"),
];

/// Overwritten values as small as their keys, several levels of them, and no holes: their files are
/// emptied.
const LITTLE_SPACE: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "10"),
    ("blob_file_size", "3000"),
    ("blob_punch_holes", "false"),
    ("max_space_amplification", "1.1"),
    ("burst_space_amplification", "0"),
    ("max_bytes_for_level_base", "3000"),
];

/// Universal compaction.
const RUNS: Changes = &[
    ("compaction_style", "kCompactionStyleUniversal"),
    (
        "compaction_options_universal",
        "{size_ratio=50;min_merge_width=2;max_read_amp=4;incremental=true;}",
    ),
    ("enable_blob_files", "true"),
    ("min_blob_size", "250"),
];

/// A table that is opened ahead for readers and goes before one comes is missed by nobody:
/// compactions for space make such.
const READERS: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("blob_garbage_collection_force_threshold", "0.5"),
    ("max_space_amplification", "0"),
];

/// Each compaction in several parts.
const IN_PARTS: Changes = &[
    ("max_subcompactions", "4"),
    ("target_file_size_base", "700"),
    ("table.block_size", "256"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "250"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
];

const AT_COMMIT: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("blob_commit_min_size", "100"),
    ("blob_commit_synced_min_size", "0"),
    ("blob_file_size", "6000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
];

const DIRECT: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("blob_commit_min_size", "100"),
    ("blob_commit_synced_min_size", "0"),
    ("blob_file_size", "6000"),
    ("use_direct_reads", "true"),
    ("use_direct_io_for_flush_and_compaction", "true"),
    ("writable_file_max_buffer_size", "4096"),
];

const WALS: Changes = &[("recycle_log_file_num", "2")];

/// Memtables wait, and WALs with them.
const MEMTABLES: Changes = &[("recycle_log_file_num", "2"), ("max_write_buffer_number", "6")];

/// Memtables hold more than waits in memory.
const BY_HAND: Changes = &[
    ("manual_wal_flush", "true"),
    ("writable_file_max_buffer_size", "4096"),
    ("write_buffer_size", "40000"),
];

const BY_HAND_AND_PLAIN: Changes = &[
    ("manual_wal_flush", "true"),
    ("writable_file_max_buffer_size", "4096"),
    ("write_buffer_size", "10000"),
    ("wal_write_mode", "plain"),
];

const SHORT_MANIFESTS: Changes = &[("max_manifest_file_size", "500")];

const KEPT_IN_MEMORY: Changes =
    &[("avoid_flush_during_recovery", "true"), ("recycle_log_file_num", "2")];

/// The file LOG is begun anew again and again.
const INFO_LOGS: Changes =
    &[("info_log", "file"), ("max_log_file_size", "300"), ("keep_log_file_num", "3")];

const STALLS: Changes = &[
    ("level0_slowdown_writes_trigger", "3"),
    ("level0_stop_writes_trigger", "4"),
    ("max_write_buffer_number", "2"),
];

/// What a seed may change beyond a scenario's own options: what the file system sees of them.
const VARIANTS: &[(&str, &[&str])] = &[
    ("recycle_log_file_num", &["0", "2"]),
    ("wal_write_mode", &["mapped", "plain"]),
    ("manual_wal_flush", &["false", "true"]),
    ("WAL_ttl_seconds", &["0", "1000000"]),
    ("wal_compression", &["kNoCompression", "kZSTD"]),
    ("avoid_flush_during_recovery", &["false", "true"]),
    ("max_manifest_file_size", &["500", "1073741824"]),
    ("enable_blob_files", &["false", "true"]),
    ("min_blob_size", &["0", "100"]),
    ("blob_punch_holes", &["false", "true"]),
    ("max_space_amplification", &["0", "1.1", "1.3"]),
    ("burst_space_amplification", &["0", "2.2"]),
    ("blob_commit_min_size", &["50", "4096"]),
    ("use_direct_reads", &["false", "true"]),
    ("use_direct_io_for_flush_and_compaction", &["false", "true"]),
    ("compression", &["kNoCompression", "kLZ4Compression", "kZSTD"]),
    ("compaction_style", &["kCompactionStyleLevel", "kCompactionStyleUniversal"]),
    ("optimize_filters_for_hits", &["false", "true"]),
    ("atomic_flush", &["false", "true"]),
    ("min_write_buffer_number_to_merge", &["1", "2"]),
    ("max_write_buffer_number", &["2", "4"]),
    ("level_compaction_dynamic_level_bytes", &["false", "true"]),
    ("max_total_wal_size", &["0", "4000"]),
    ("wal_dir", &["", "/wal"]),
    ("max_subcompactions", &["1", "3"]),
    ("table.block_size", &["256", "4096"]),
    ("block_cache", &["0", "1000", "8388608"]),
    ("cache_blobs", &["false", "true"]),
    ("writable_file_max_buffer_size", &["4096", "1048576"]),
];

impl Scenario {
    /// The scenario of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name)
    }

    /// The options of a seed: with 0 the scenario's own, with others some drawn at random.
    pub(super) fn changes(&self, seed: u64) -> Vec<(&'static str, &'static str)> {
        let mut changes = [COMMON, self.options].concat();
        if seed > 0 {
            let mut random = fastrand::Rng::with_seed(seed);
            for (name, values) in VARIANTS {
                let value = values[random.usize(..values.len())];
                if random.bool() && !self.options.iter().any(|(own, _)| own == name) {
                    changes.push((name, value));
                }
            }
        }
        changes
    }
}
