//! Faults that the laboratory found, each told by the shortest story that showed it.

mod orders;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Code, Comparator, UserComparator};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, salvage};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, FlushOptions, Options, ReadOptions,
    WriteOptions, load_latest,
};
use testkit::history::{Case, live};
use testkit::{CrashFs, Survival, settings};

#[test]
fn options_that_no_table_can_be_written_with_are_refused_at_once() {
    // `block_align` with compression passed for good options, and for a good change of a running
    // database: the first flush found that no table could be written so, which poisoned the
    // database.
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, &[("table.block_align", "true")]);
    let db = Db::open("/db", &options).expect("aligned blocks, not compressed");
    let family = db.default_column_family();
    for change in ["compression", "bottommost_compression"] {
        let refused = db.set_options(family, &[(change, "kZSTD")]).expect_err("a flush would fail");
        assert_eq!(refused.code(), Code::InvalidArgument, "{change}: {refused}");
    }
    db.put("k", "v").expect("a write");
    db.flush_all().expect("a flush");
    drop(db);
    settings::set(&mut options, &[("compression_per_level", "kNoCompression:kZSTD")]);
    let refused = Db::open("/db", &options).expect_err("a compaction would fail");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
}

#[test]
fn super_blocks_that_rocksdb_refuses_are_refused_at_once() {
    let env = Env::memory();
    for (name, value) in [
        ("table.super_block_alignment_size", "4095"),
        ("table.super_block_alignment_space_overhead_ratio", "3"),
    ] {
        let mut options = settings::tiny(&env);
        settings::set(&mut options, &[(name, value)]);
        let refused = Db::open("/db", &options).expect_err("RocksDB refuses it, too");
        assert_eq!(refused.code(), Code::InvalidArgument, "{name}: {refused}");
    }
    let db = Db::open("/db", &settings::tiny(&env)).expect("a new database");
    let family = db.default_column_family();
    let change = |size| db.set_options(family, &[("super_block_alignment_size", size)]);
    assert_eq!(change("4095").expect_err("a flush would fail").code(), Code::InvalidArgument);
    change("4096").expect("a power of two");
}

#[test]
fn a_salvage_writes_tables_whatever_the_options_say() {
    // One digit of OPTIONS was flipped, and nothing was saved: by what they said no table could be
    // written.
    for (changes, wrong) in [
        (&[("table.super_block_alignment_size", "4097")][..], "super_block_alignment_size is 4097"),
        (
            &[
                ("table.super_block_alignment_size", "4096"),
                ("table.super_block_alignment_space_overhead_ratio", "3"),
            ],
            "super_block_alignment_space_overhead_ratio is 3",
        ),
        (&[("table.block_align", "true"), ("compression", "kZSTD")], "block_align needs"),
        (&[("table.partition_filters", "true")], "partition_filters needs"),
        (&[("table.format_version", "9")], "'format_version' is 9"),
    ] {
        let mut options = settings::tiny(&Env::memory());
        let db = Db::open("/db", &options).expect("a new database");
        db.put("k", "v").expect("a write");
        db.flush_all().expect("a flush");
        drop(db);
        settings::set(&mut options, changes);
        let salvaged = salvage(Path::new("/db"), Path::new("/saved"), &options, &[], &mut |_| {});
        let report = salvaged.unwrap_or_else(|error| panic!("{wrong}: {error}"));
        assert!(report.is_complete(), "{wrong}: {:?}", report.losses);
        assert!(
            report.notes.iter().any(|note| note.contains(wrong)),
            "{wrong}: {:?}",
            report.notes
        );
        let mut loaded =
            load_latest(&options.env, Path::new("/saved")).expect("OPTIONS").expect("a file");
        loaded.options.env = options.env.clone();
        let db =
            Db::open("/saved", &loaded.options).unwrap_or_else(|error| panic!("{wrong}: {error}"));
        assert_eq!(db.get("k").expect("a read").as_deref(), Some(&b"v"[..]), "{wrong}");
        db.put("k", "w").expect("a write");
        db.flush_all().expect("a flush");
    }
}

#[test]
fn a_salvage_aligns_blocks_as_the_options_say() {
    // It never did, for fear of options that nobody had checked.
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, &[("table.block_align", "true"), ("write_buffer_size", "1000000")]);
    let db = Db::open("/db", &options).expect("a new database");
    (0..40).for_each(|key| db.put([key], [key; 3000]).expect("a write"));
    db.flush_all().expect("a flush");
    drop(db);
    salvage(Path::new("/db"), Path::new("/saved"), &options, &[], &mut |_| {})
        .expect("a new database");
    let sizes = |directory: &str| -> u64 {
        let names = options.env.fs.list(Path::new(directory)).expect("a directory");
        let tables = names.iter().filter(|name| name.ends_with(".sst"));
        let paths = tables.map(|name| Path::new(directory).join(name));
        paths.map(|path| options.env.fs.metadata(&path).expect("a file").size / 4096).sum()
    };
    assert!(
        sizes("/saved") >= sizes("/db") && sizes("/db") >= 40,
        "{} {}",
        sizes("/saved"),
        sizes("/db")
    );
}

#[test]
fn tables_end_between_two_versions_of_one_key() {
    // Snapshots keep more of one key than a table holds. Where the next table was begun such
    // versions were taken for entries out of order, which no compaction could merge.
    let mut options = settings::tiny(&Env::memory());
    settings::set(
        &mut options,
        &[("target_file_size_base", "4096"), ("compression", "kNoCompression")],
    );
    let db = Db::open("/db", &options).expect("a new database");
    let mut snapshots = Vec::new();
    for version in 0..40 {
        db.put("key", vec![version; 1000]).expect("a write");
        snapshots.push(db.snapshot());
    }
    db.flush_all().expect("a flush");
    let family = db.default_column_family();
    db.compact_range(family, None, None, &CompactRangeOptions::default()).expect("a compaction");
    for (version, snapshot) in (0..).zip(snapshots) {
        let options = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
        let found =
            db.get_with(&options, family, "key").expect("a lookup").expect("it was written");
        assert_eq!(found, vec![version; 1000]);
    }
}

#[test]
fn a_killed_process_leaves_no_old_records_where_none_are_tolerated() {
    // Behind its last record a recycled WAL holds the rest of an older one. After a kill that was
    // damage to `kAbsoluteConsistency`, and could be to `kTolerateCorruptedTailRecords`: the
    // database did not open.
    for mode in ["kAbsoluteConsistency", "kTolerateCorruptedTailRecords"] {
        let fs = CrashFs::new();
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
        settings::set(&mut options, &[("recycle_log_file_num", "2"), ("wal_recovery_mode", mode)]);
        let db = Db::open("/db", &options).expect("a new database");
        for _ in 0..4 {
            db.put("long", "x".repeat(500)).expect("a write");
            db.flush_all().expect("a flush");
        }
        db.put("short", "y").expect("a write");

        let killed = fs.after_crash(fs.changes(), Survival::Kept);
        let options = Options { env: Env::memory().with_fs(Arc::new(killed)), ..options };
        let db = Db::open("/db", &options).unwrap_or_else(|error| panic!("{mode}: {error}"));
        assert_eq!(db.get("short").expect("a lookup").expect("it was written"), "y");
    }
}

#[test]
fn garbage_that_collecting_makes_forces_no_compaction() {
    // A compaction that is forced by garbage in blob files makes new garbage if its filter changes
    // values. That forced the next one, and so on without end.
    live_through(
        "world steps 0 9
        set enable_blob_files=true
        set level0_file_num_compaction_trigger=0
        set blob_garbage_collection_age_cutoff=0.75
        set blob_garbage_collection_force_threshold=0.3
        set blob_file_starting_level=1
        set compaction_filter=testkit.SameAgain
        set enable_blob_garbage_collection=true
        write logged first put k0 x
        write logged first put k0012 x
        compact-range first - -
        write logged first put k \\e ; first put k003 x
        crash kept 0
        write logged first put k0021 x
        crash kept 0
        idle",
    );
}

#[test]
fn who_reads_along_is_not_given_what_recovery_has_left_out() {
    // A power loss took a record without operations off the end of a WAL, and so recovery left out
    // the WAL behind it, whose write then had the number of the next one. Whoever read along was
    // given that write, and never the one that was written instead.
    live_through(
        "world steps 0 0
        set write_buffer_size=1024
        set WAL_size_limit_MB=1
        set wal_dir=/wal
        write logged default put k \\e
        write logged default put s \\e
        write logged default put k \\e
        write logged extra1 delete k0005
        idle
        flush default
        write logged default put k \\e
        crash 1834695864 0
        write logged default put k \\e",
    );
}

#[test]
fn a_database_that_is_open_for_reading_works_on_nothing() {
    // Whoever asked such a database for a step of background work, for an end of the waiting or for
    // writes to go on had it compact: tables were written beside those of whoever has it open for
    // writing, and then it called itself poisoned.
    let env = testkit::steps::world(Arc::new(MemoryFileSystem::new()), 1);
    let mut options = settings::tiny(&env);
    settings::set(
        &mut options,
        &[("disable_auto_compactions", "true"), ("avoid_flush_during_shutdown", "true")],
    );
    let db = Db::open("/db", &options).expect("a new database");
    for round in 0..12 {
        db.put("key", [round]).expect("a write");
        db.flush_all().expect("a flush");
    }
    db.put("key", "in the WAL").expect("a write");
    db.close().expect("a clean close");

    settings::set(&mut options, &[("disable_auto_compactions", "false")]);
    let listing = || {
        let mut names = env.fs.list(Path::new("/db")).expect("a listing");
        names.sort();
        names
    };
    let before = listing();
    let db = Db::open_read_only("/db", &options).expect("it is there");
    assert!(!db.background_step().expect("nothing to do"));
    db.wait_for_compactions().expect("nobody does any");
    assert_eq!(db.resume().expect_err("nothing is written").code(), Code::NotSupported);
    let state = db.property(db.default_column_family(), "flagstone.background-error");
    assert_eq!(state.as_deref(), Some("healthy"));
    assert_eq!(listing(), before);
    assert_eq!(db.get("key").expect("a lookup").as_deref(), Some(&b"in the WAL"[..]));
}

fn live_through(history: &str) {
    let case: Case =
        history.lines().map(str::trim).collect::<Vec<_>>().join("\n").parse().expect("a history");
    live(&case);
}

#[test]
fn an_empty_batch_with_a_sync_leaves_no_record_in_memory() {
    // Its record waited in memory for a sync that nobody did, as all that was written before had
    // been synced. Who read along was told that there is nothing more yet, where a write is missing
    // in the WALs.
    let options = settings::tiny(&Env::memory().with_fs(Arc::new(CrashFs::new())));
    let db = Db::open("/db", &options).expect("a new database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let of = |family: &ColumnFamily, key| {
        let mut batch = WriteBatch::new();
        batch.put_cf(family, key, "v").expect("a small batch");
        batch
    };
    db.write_with(&WriteOptions::default(), of(&other, "1")).expect("a write");
    db.write_with(&unlogged, of(db.default_column_family(), "2")).expect("a write");
    db.flush(&other, &FlushOptions::default()).expect("a flush");
    db.write_with(&synced, of(&other, "3")).expect("a write");
    db.flush(&other, &FlushOptions::default()).expect("a flush");
    db.write_with(&synced, WriteBatch::new()).expect("nothing is written");
    let mut updates = db.get_updates_since(1).expect("the first write");
    assert_eq!(updates.next_update().expect("an update").expect("the first one").next_sequence, 2);
    let error = updates.next_update().expect_err("the second write is in no WAL");
    assert_eq!(error.code(), Code::NotFound, "{error}");
}
