//! Lives of a database, each long enough for one part of the engine to do all that it does to a
//! disk.

use flagstone::db::Db;
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions,
};

use super::life::{DATABASE, Life};
use super::past::{LASTING, Unlogged};

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
    Scenario { name: "holes", options: HOLES, prepare: open, live: holes },
    Scenario { name: "space", options: LITTLE_SPACE, prepare: open, live: holes },
    Scenario { name: "blobs_at_commit", options: AT_COMMIT, prepare: open, live: blobs_at_commit },
    Scenario { name: "families", options: &[], prepare: open, live: families },
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
    Scenario { name: "full_levels", options: STALLS, prepare: open, live: full_levels },
];

const COMMON: Changes = &[("write_buffer_size", "3000"), ("target_file_size_base", "3000")];

/// Each record of a WAL is a call that can fail.
const PLAIN: Changes = &[("wal_write_mode", "plain"), ("recycle_log_file_num", "0")];

const BLOBS: Changes = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("blob_garbage_collection_force_threshold", "0.5"),
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

fn nothing(_life: &mut Life) {}

fn open(life: &mut Life) {
    assert!(life.open(), "a new database");
}

fn open_unlogged(life: &mut Life) {
    life.past.unlogged = Unlogged::All;
    open(life);
}

fn open_mixed(life: &mut Life) {
    life.past.unlogged = Unlogged::Some;
    open(life);
}

/// A database with several levels and something in memory.
fn a_tree(life: &mut Life) {
    open(life);
    for _ in 0..3 {
        life.writes(12, 300);
        life.flush();
    }
    life.settle();
    life.writes(6, 300);
}

/// One whose process died.
fn an_end(life: &mut Life) {
    a_tree(life);
    life.create("passing");
    life.writes(4, 300);
    life.flush();
    life.writes(14, 300);
    life.give_up();
}

/// Opening a new database, an empty one and one with contents.
fn opening(life: &mut Life) {
    for round in 0..3 {
        if life.open_twice() {
            life.writes(3 * round, 100);
            life.close();
        }
    }
    life.open_twice();
    life.read();
}

/// Several memtables, one after the other, and several at once.
fn flushes(life: &mut Life) {
    life.open_twice();
    for _ in 0..3 {
        life.writes(10, 300);
        life.flush();
    }
    for _ in 0..14 {
        life.write(false, 300);
    }
    life.settle();
    life.read();
    life.close();
    life.open_twice();
    life.read();
}

/// Tables that overlap are merged, others moved.
fn compactions(life: &mut Life) {
    for _ in 0..5 {
        life.writes(10, 300);
        life.flush();
        life.settle();
    }
    life.read();
    life.write(true, 300);
}

/// Large values are separated, and their files collected.
fn blobs(life: &mut Life) {
    for _ in 0..4 {
        life.writes(8, 800);
        life.flush();
        life.settle();
        life.read();
    }
    let options = CompactRangeOptions {
        blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    life.compact(LASTING[0], [None, None], &options);
    life.read();
}

/// Large values are overwritten, and their place is given back.
fn holes(life: &mut Life) {
    for _ in 0..5 {
        life.writes(8, 800);
        life.flush();
        life.settle();
        life.read();
    }
    life.checkpoint("/copy");
    life.writes(8, 800);
    life.flush();
    life.settle();
    life.read();
    life.close();
    life.open_twice();
    life.writes(8, 800);
    life.flush();
    life.settle();
    life.read();
}

/// Large values lie in blob files before the WAL names them, and their process dies.
fn blobs_at_commit(life: &mut Life) {
    for round in 0..3 {
        life.writes(6, 800);
        life.write(true, 800);
        life.writes(3, 800);
        if round != 1 {
            life.flush();
        }
        life.settle();
        life.read();
    }
    life.sync_wal();
    life.checkpoint("/copy");
    life.writes(3, 800);
    life.give_up();
    life.open_twice();
    life.read();
    life.writes(4, 800);
    life.close();
    life.open_twice();
    life.write(true, 800);
    life.read();
}

/// Families come and go, with something in memory and in tables.
fn families(life: &mut Life) {
    for (name, previous) in
        [("first", ""), ("second", ""), ("third", "first"), ("fourth", "second")]
    {
        life.create(name);
        life.writes(5, 200);
        if previous == "first" {
            life.flush();
        }
        life.drop_family(previous);
        life.writes(3, 200);
        life.step();
    }
    life.read();
    life.close();
    life.open_twice();
    life.drop_family("third");
    life.create("fifth");
    life.writes(5, 200);
    life.read();
}

/// WALs that are recycled, synced now and then.
fn wals(life: &mut Life) {
    for _ in 0..4 {
        life.writes(9, 300);
        life.write(true, 300);
        life.flush();
    }
    life.writes(4, 300);
    life.sync_wal();
    life.write(false, 40_000);
    life.read();
    life.close();
    life.open_twice();
    life.writes(9, 300);
    life.flush();
    life.writes(2, 300);
}

/// A log whose records wait in memory until they are asked for, are synced, or are too many.
fn log_by_hand(life: &mut Life) {
    life.writes(9, 300);
    life.flush_log();
    life.writes(4, 300);
    for length in [40_000, 3_000, 3_000] {
        life.write(false, length);
    }
    life.flush_log();
    life.writes(3, 300);
    life.checkpoint("/copy");
    life.writes(3, 300);
    life.give_up();
    life.open_twice();
    life.writes(5, 300);
    life.sync_wal();
    life.writes(2, 300);
    life.flush();
    life.writes(2, 300);
    life.read();
    life.close();
    life.open_twice();
    life.writes(2, 300);
    life.flush_log();
    life.read();
}

/// MANIFESTs that are soon too large.
fn manifests(life: &mut Life) {
    for round in 0..6 {
        life.writes(4, 200);
        life.flush();
        if round % 2 == 1 {
            life.settle();
        }
    }
    life.create("passing");
    life.writes(2, 200);
    life.drop_family("passing");
    life.read();
}

/// Options that change while the database is open.
fn options(life: &mut Life) {
    life.writes(6, 200);
    life.set_options(&[("enable_blob_files", "true"), ("min_blob_size", "50")]);
    life.writes(6, 200);
    life.flush();
    life.set_options(&[("write_buffer_size", "2000")]);
    life.call("set options of the database", |db, _| {
        db.set_db_options(&[("max_background_jobs", "4")])
    });
    life.writes(6, 200);
    life.flush();
    life.read();
    life.close();
    life.open_twice();
    life.set_options(&[("enable_blob_files", "false")]);
    life.writes(3, 200);
}

/// Copies of a database that goes on.
fn checkpoint(life: &mut Life) {
    for copy in ["/copy1", "/copy2"] {
        life.checkpoint(copy);
        life.writes(6, 300);
        life.flush();
        life.settle();
    }
    life.read();
}

/// Compactions that were asked for.
fn manual(life: &mut Life) {
    let forced = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    life.compact(LASTING[0], [Some("k010"), Some("k030")], &CompactRangeOptions::default());
    life.read();
    life.compact(LASTING[0], [None, None], &forced);
    life.compact(LASTING[1], [None, None], &forced);
    life.writes(4, 300);
    life.compact(LASTING[0], [Some("k020"), None], &CompactRangeOptions::default());
    life.read();
}

/// Writes that are synced one by one, and all together.
fn syncs(life: &mut Life) {
    for round in 0..12 {
        life.write(round % 2 == 0, 400);
        if round % 5 == 4 {
            life.sync_wal();
        }
        life.step();
    }
    life.close();
    life.open_twice();
    life.write(true, 100);
    life.sync_wal();
}

/// Cursors and snapshots that are held while their files become obsolete.
fn readers(life: &mut Life) {
    for _ in 0..3 {
        life.hold();
        life.writes(5, 300);
        life.walk(7);
        life.flush();
        life.settle();
        life.read();
    }
    life.compact(LASTING[0], [None, None], &CompactRangeOptions::default());
    life.walk(1000);
    life.read();
}

/// Looking at a database whose process died, without changing it.
fn read_only(life: &mut Life) {
    for _ in 0..2 {
        let names = Db::list_column_families(DATABASE, &life.options);
        if let Some(names) = life.hear("list the families", names) {
            assert_eq!(names, ["default", "other", "passing"]);
        }
        let opened = Db::open_read_only(DATABASE, &life.options);
        if let Some(db) = life.hear("open for reading", opened) {
            life.look_at(&db);
        }
    }
    life.open_twice();
}

/// Opening a database whose process died, again and again.
fn recovery(life: &mut Life) {
    life.open_twice();
    life.read();
    life.writes(5, 300);
    life.give_up();
    life.open_twice();
    life.writes(5, 300);
    life.sync_wal();
    life.flush();
    life.read();
}

/// Writes without the WAL, which a flush makes durable, and a close.
fn unlogged(life: &mut Life) {
    life.writes(10, 300);
    life.flush();
    life.writes(10, 300);
    life.close();
    life.open_twice();
    life.read();
    life.writes(7, 300);
    life.give_up();
    life.open_twice();
    life.read();
    life.writes(3, 300);
}

/// Writes with the WAL and without it, in memtables that nobody flushes before their process dies.
fn mixed(life: &mut Life) {
    life.writes(9, 300);
    life.flush();
    for index in 0..24 {
        life.write(index % 6 == 5, 300);
    }
    life.give_up();
    life.open_twice();
    life.read();
    life.writes(5, 300);
}

/// More tables in level 0 than writers may pass.
fn full_levels(life: &mut Life) {
    for _ in 0..60 {
        life.write(false, 400);
    }
    life.read();
}
