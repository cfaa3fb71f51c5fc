//! Short lives of a database that together write every kind of file and every kind of MANIFEST
//! edit.
//!
//! What each covers is told at the head of the module above.

mod lives;

use super::explore::{Effort, Explorer};
use super::life::Life;
use lives::*;

/// A life, told by its name.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Where the database is.
    pub path: &'static str,
    /// The families it begins with.
    pub families: &'static [&'static str],
    /// Options beyond [`crate::settings::tiny`].
    pub settings: &'static [(&'static str, &'static str)],
    /// Everything after the creation.
    pub(super) live: fn(&mut Life),
}

const PATH: &str = "/db";
const TWO: &[&str] = &["default", "other"];
const THREE: &[&str] = &["default", "first", "second"];
const BLOBS: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "20"),
    ("blob_file_size", "1000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("blob_compression_type", "kLZ4Compression"),
];

/// Workers compact.
const REMOTE: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "20"),
    ("blob_file_size", "1000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("compaction_service", "workers"),
];

const AT_COMMIT: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "15"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
    ("blob_file_size", "3000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
];

const HOLES: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "30"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
    ("blob_file_size", "3000"),
    ("max_space_amplification", "1.1"),
    ("burst_space_amplification", "0"),
];

const DIRECT: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "15"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
    ("blob_file_size", "3000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("use_direct_reads", "true"),
    ("use_direct_io_for_flush_and_compaction", "true"),
    ("writable_file_max_buffer_size", "4096"),
];

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "creation",
        path: "/deep/down/db",
        families: THREE,
        settings: PLAIN,
        live: creation,
    },
    Scenario {
        name: "log",
        path: PATH,
        families: TWO,
        settings: &[("write_buffer_size", "400000")],
        live: log,
    },
    Scenario { name: "log-plain", path: PATH, families: TWO, settings: LARGE_AND_PLAIN, live: log },
    Scenario { name: "log-by-hand", path: PATH, families: TWO, settings: BY_HAND, live: by_hand },
    Scenario {
        name: "log-by-hand-plain",
        path: PATH,
        families: TWO,
        settings: BY_HAND_AND_PLAIN,
        live: by_hand,
    },
    Scenario {
        name: "transactions",
        path: PATH,
        families: TWO,
        settings: AT_COMMIT,
        live: transactions,
    },
    Scenario {
        name: "two-phase",
        path: PATH,
        families: TWO,
        settings: &[("allow_2pc", "true")],
        live: two_phase,
    },
    Scenario { name: "flush", path: PATH, families: THREE, settings: WAITING, live: flush },
    Scenario {
        name: "flush-together",
        path: PATH,
        families: THREE,
        settings: TOGETHER,
        live: together,
    },
    Scenario {
        name: "flush-together-blobs",
        path: PATH,
        families: THREE,
        settings: TOGETHER_WITH_BLOBS,
        live: together,
    },
    Scenario {
        name: "compaction",
        path: PATH,
        families: TWO,
        settings: ROUND_ROBIN,
        live: compaction,
    },
    Scenario {
        name: "subcompactions",
        path: PATH,
        families: TWO,
        settings: IN_PARTS,
        live: compaction,
    },
    Scenario { name: "blobs", path: PATH, families: TWO, settings: BLOBS, live: blobs },
    Scenario { name: "remote", path: PATH, families: TWO, settings: REMOTE, live: blobs },
    Scenario { name: "holes", path: PATH, families: TWO, settings: HOLES, live: holes },
    Scenario {
        name: "blobs-at-commit",
        path: PATH,
        families: TWO,
        settings: AT_COMMIT,
        live: at_commit,
    },
    Scenario { name: "direct", path: PATH, families: TWO, settings: DIRECT, live: at_commit },
    Scenario {
        name: "blob-streams",
        path: PATH,
        families: TWO,
        settings: AT_COMMIT,
        live: streams,
    },
    Scenario { name: "families", path: PATH, families: TWO, settings: &[], live: families },
    Scenario { name: "recycled", path: PATH, families: TWO, settings: RECYCLED, live: recycled },
    Scenario {
        name: "recycled-plain",
        path: PATH,
        families: TWO,
        settings: RECYCLED_AND_PLAIN,
        live: recycled,
    },
    Scenario {
        name: "recycled-unlogged",
        path: PATH,
        families: TWO,
        settings: RECYCLED,
        live: unlogged,
    },
    Scenario {
        name: "compressed",
        path: PATH,
        families: TWO,
        settings: COMPRESSED,
        live: recycled,
    },
    Scenario {
        name: "rollover",
        path: PATH,
        families: TWO,
        settings: SHORT_MANIFEST,
        live: rollover,
    },
    Scenario { name: "options", path: PATH, families: TWO, settings: &[], live: options },
    Scenario { name: "checkpoint", path: PATH, families: TWO, settings: BLOBS, live: checkpoint },
    Scenario { name: "ingestion", path: PATH, families: TWO, settings: &[], live: ingestion },
    Scenario {
        name: "ingestion-blobs",
        path: PATH,
        families: TWO,
        settings: AT_COMMIT,
        live: ingestion,
    },
    Scenario { name: "reopen", path: PATH, families: TWO, settings: &[], live: reopen },
    Scenario { name: "reopen-kept", path: PATH, families: TWO, settings: KEPT, live: reopen },
    Scenario {
        name: "wal-dir",
        path: PATH,
        families: TWO,
        settings: &[("wal_dir", "/wals/db")],
        live: recycled,
    },
    Scenario { name: "paths", path: PATH, families: TWO, settings: PATHS, live: compaction },
    Scenario {
        name: "wal-limit",
        path: PATH,
        families: THREE,
        settings: WAL_LIMIT,
        live: wal_limit,
    },
    Scenario { name: "updates", path: PATH, families: TWO, settings: ARCHIVE, live: updates },
    Scenario {
        name: "updates-recycled",
        path: PATH,
        families: TWO,
        settings: RECYCLED,
        live: updates,
    },
    Scenario { name: "two-writers", path: PATH, families: TWO, settings: ROOMY, live: two_writers },
    Scenario {
        name: "two-writers-plain",
        path: PATH,
        families: TWO,
        settings: ROOMY_AND_PLAIN,
        live: two_writers,
    },
    Scenario {
        name: "three-writers",
        path: PATH,
        families: TWO,
        settings: ROOMY,
        live: three_writers,
    },
    Scenario {
        name: "three-writers-plain",
        path: PATH,
        families: TWO,
        settings: ROOMY_AND_PLAIN,
        live: three_writers,
    },
    Scenario {
        name: "three-writers-blobs",
        path: PATH,
        families: TWO,
        settings: ROOMY_WITH_BLOBS,
        live: three_writers_with_blobs,
    },
    Scenario {
        name: "free-writers",
        path: PATH,
        families: TWO,
        settings: ROOMY,
        live: free_writers,
    },
    Scenario { name: "encrypted", path: PATH, families: TWO, settings: ENCRYPTED, live: at_commit },
    Scenario {
        name: "encrypted-holes",
        path: PATH,
        families: TWO,
        settings: ENCRYPTED_HOLES,
        live: holes,
    },
    Scenario {
        name: "encrypted-long",
        path: PATH,
        families: THREE,
        settings: ENCRYPTED_LONG,
        live: long,
    },
    Scenario { name: "long", path: PATH, families: THREE, settings: LONG, live: long },
];

const ENCRYPTED: &[(&str, &str)] = &[
    ("encryption", "on"),
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "15"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
    ("blob_file_size", "3000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
];
const ENCRYPTED_HOLES: &[(&str, &str)] = &[
    ("encryption", "on"),
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "30"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
    ("blob_file_size", "3000"),
    ("max_space_amplification", "1.1"),
    ("burst_space_amplification", "0"),
];
const ENCRYPTED_LONG: &[(&str, &str)] = &[
    ("encryption", "on"),
    ("write_buffer_size", "4096"),
    ("target_file_size_base", "4096"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("recycle_log_file_num", "1"),
];
const WAITING: &[(&str, &str)] =
    &[("min_write_buffer_number_to_merge", "2"), ("max_write_buffer_number", "4")];
const TOGETHER: &[(&str, &str)] = &[("atomic_flush", "true")];
const TOGETHER_WITH_BLOBS: &[(&str, &str)] = &[
    ("atomic_flush", "true"),
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "30"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
    ("blob_file_size", "1500"),
];
const ROUND_ROBIN: &[(&str, &str)] = &[
    ("compaction_pri", "kRoundRobin"),
    ("level_compaction_dynamic_level_bytes", "false"),
    ("max_bytes_for_level_base", "2000"),
    ("target_file_size_base", "1500"),
];
const PLAIN: &[(&str, &str)] = &[("wal_write_mode", "plain")];
const LARGE_AND_PLAIN: &[(&str, &str)] =
    &[("write_buffer_size", "1000000"), ("wal_write_mode", "plain")];
const BY_HAND: &[(&str, &str)] = &[
    ("manual_wal_flush", "true"),
    ("writable_file_max_buffer_size", "4096"),
    ("write_buffer_size", "400000"),
];
const BY_HAND_AND_PLAIN: &[(&str, &str)] = &[
    ("manual_wal_flush", "true"),
    ("writable_file_max_buffer_size", "4096"),
    ("wal_write_mode", "plain"),
];
const IN_PARTS: &[(&str, &str)] = &[
    ("max_subcompactions", "3"),
    ("target_file_size_base", "100"),
    ("table.block_size", "64"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "40"),
];
const RECYCLED_AND_PLAIN: &[(&str, &str)] =
    &[("recycle_log_file_num", "2"), ("wal_write_mode", "plain")];
const ARCHIVE: &[(&str, &str)] = &[("WAL_ttl_seconds", "1000000")];
const RECYCLED: &[(&str, &str)] = &[("recycle_log_file_num", "2")];
const COMPRESSED: &[(&str, &str)] = &[("wal_compression", "kZSTD"), ("wal_write_mode", "plain")];
const SHORT_MANIFEST: &[(&str, &str)] = &[("max_manifest_file_size", "400")];
const KEPT: &[(&str, &str)] =
    &[("avoid_flush_during_recovery", "true"), ("wal_write_mode", "plain")];
/// Level 1 lies elsewhere than level 0, and both elsewhere than the MANIFEST.
const PATHS: &[(&str, &str)] = &[
    ("db_paths", "{path=/fast;target_size=3000}:/slow/deep"),
    ("max_bytes_for_level_base", "2000"),
    ("target_file_size_base", "1500"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "40"),
    ("blob_file_size", "1000"),
];
const WAL_LIMIT: &[(&str, &str)] =
    &[("max_total_wal_size", "3000"), ("write_buffer_size", "50000")];
/// No memtable is full before it is flushed.
const ROOMY: &[(&str, &str)] = &[("write_buffer_size", "50000")];
const ROOMY_AND_PLAIN: &[(&str, &str)] =
    &[("write_buffer_size", "50000"), ("wal_write_mode", "plain")];
const ROOMY_WITH_BLOBS: &[(&str, &str)] = &[
    ("write_buffer_size", "50000"),
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "30"),
    ("blob_commit_synced_min_size", "0"),
    ("min_blob_size", "15"),
];
const LONG: &[(&str, &str)] = &[
    ("write_buffer_size", "4096"),
    ("target_file_size_base", "4096"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("recycle_log_file_num", "1"),
];

/// Explores two lives of a scenario.
///
/// # Panics
/// With the first finding.
pub fn experiment(name: &str) {
    explore_lives(name, 2);
}

/// Explores one life of a scenario, as a test has time for.
///
/// # Panics
/// With the first finding.
pub fn one_life(name: &str) {
    explore_lives(name, 1);
}

fn explore_lives(name: &str, lives: u64) {
    let explorer = Explorer::new(u64::MAX);
    let scenario =
        SCENARIOS.iter().find(|scenario| scenario.name == name).expect("a scenario's name");
    for seed in 1..=lives {
        if let Err(finding) = explorer.explore(scenario, seed, &Effort::TEST) {
            panic!("{finding}");
        }
    }
    println!("{name}: {}", explorer.figures());
}

#[cfg(test)]
#[path = "scenarios_tests.rs"]
mod tests;
