//! Compactions that run in several parts at the same time leave what one in a whole leaves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{create, dump, entries, referee, temporary};
use flagstone::base::{Code, Snapshot};
use flagstone::db::{Db, Ticker};
use flagstone::env::{Env, FileSystem};
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, CompactionFilter,
    FilterDecision, FilteredKind, Options, ReadOptions,
};
use testkit::{
    Call, CrashFs, FaultFs, Generator, Injection, Model, Plan, Sort, compare, for_each_seed,
    settings,
};

/// Small tables, and nothing that happens unasked.
const QUIET: &[(&str, &str)] = &[
    ("disable_auto_compactions", "true"),
    ("write_buffer_size", "1000000"),
    ("target_file_size_base", "2000"),
    ("table.block_size", "200"),
];

const BLOBS: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("blob_commit_min_size", "150"),
    ("enable_blob_garbage_collection", "false"),
];

fn in_parts(count: u32) -> CompactRangeOptions {
    CompactRangeOptions { max_subcompactions: count, ..CompactRangeOptions::default() }
}

/// Rewrites the last level, too.
fn of_all(count: u32) -> CompactRangeOptions {
    CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..in_parts(count)
    }
}

fn compact(db: &Db, options: &CompactRangeOptions) {
    db.compact_range(db.default_column_family(), None, None, options).expect("a compaction");
}

/// In how many parts the compactions since `before` ran, each counted.
fn parts_since(db: &Db, before: u64) -> u64 {
    db.statistics().get(Ticker::Subcompactions) - before
}

fn key(number: u32) -> String {
    format!("key{number:05}")
}

/// A database with a snapshot after each flush, compacted twice with that many parts.
struct Told {
    db: Db,
    seen: Vec<(Snapshot, Model)>,
    garbage: Vec<u64>,
}

fn tell(seed: u64, count: u32) -> Told {
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, QUIET);
    settings::set(&mut options, BLOBS);
    let db = Db::open("/db", &options).expect("a new database");
    let (mut generator, mut model) = (Generator::new(seed), Model::with_families(&["default"]));
    let mut told = Told { db, seen: Vec::new(), garbage: Vec::new() };
    let db = &told.db;
    for round in 0..6 {
        for _ in 0..60 {
            let batch = generator.batch(&mut model);
            db.write_with(&Default::default(), compare::to_batch(db, &batch)).expect("a write");
        }
        told.seen.push((db.snapshot(), model.clone()));
        db.flush_all().expect("a flush");
        if round == 2 {
            compact(db, &in_parts(count));
            told.garbage.extend(garbage(db));
            // Some may drop what they see.
            told.seen.retain(|_| generator.random.bool());
        }
    }
    compact(db, &of_all(count));
    told.garbage.extend(garbage(db));
    told
}

/// Bytes of blob files that the MANIFEST counts as garbage, and all.
fn garbage(db: &Db) -> [u64; 2] {
    ["rocksdb.live-blob-file-garbage-size", "rocksdb.total-blob-file-size"]
        .map(|name| db.int_property(db.default_column_family(), name).expect("a property"))
}

#[test]
fn parts_leave_what_a_whole_leaves() {
    let several = AtomicUsize::new(0);
    for_each_seed(12, |seed| {
        let (whole, parts) = (tell(seed, 1), tell(seed, 4));
        if parts_since(&parts.db, 0) > parts_since(&whole.db, 0) {
            several.fetch_add(1, Ordering::Relaxed);
        }
        for told in [&whole, &parts] {
            let family = told.db.default_column_family();
            for (snapshot, model) in &told.seen {
                let options =
                    ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                compare::check_scans(&told.db, family, &model.families["default"], &options);
            }
            compare::check_files(&told.db);
        }
        assert_eq!(dump(&whole.db), dump(&parts.db));
        assert_eq!(whole.garbage, parts.garbage, "garbage is counted exactly, in parts, too");
    });
    assert!(several.into_inner() > 3, "compactions are cut");
}

/// The whole of level 0 is cut by compactions that nobody asked for.
#[test]
fn level_0_is_compacted_in_parts() {
    let directory = temporary();
    let mut options = create();
    settings::set(
        &mut options,
        &[
            ("max_subcompactions", "3"),
            ("target_file_size_base", "4000"),
            ("table.block_size", "500"),
            ("compression", "kNoCompression"),
            ("level0_file_num_compaction_trigger", "2"),
        ],
    );
    let db = Db::open(directory.path(), &options).unwrap();
    for round in 0..4 {
        for number in 0..500 {
            db.put(key(number), format!("{round}{}", "x".repeat(60))).unwrap();
        }
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    let (compactions, parts) = (db.statistics().get(Ticker::Compactions), parts_since(&db, 0));
    assert!(parts >= compactions + 2, "{compactions} compactions in {parts} parts");
    assert!(entries(&db, db.default_column_family()).iter().all(|(_, value)| value[0] == b'3'));
    db.set_db_options(&[("max_subcompactions", "1")]).unwrap();
    let before = parts_since(&db, 0);
    let compactions = db.statistics().get(Ticker::Compactions);
    compact(&db, &of_all(0));
    assert_eq!(parts_since(&db, before), db.statistics().get(Ticker::Compactions) - compactions);
    compare::check_files(&db);
}

/// Sorted runs are merged in parts, wherever they begin.
#[test]
fn universal_compactions_are_cut() {
    let mut options = settings::tiny(&Env::memory());
    settings::set(
        &mut options,
        &[
            ("compaction_style", "kCompactionStyleUniversal"),
            ("max_subcompactions", "4"),
            ("write_buffer_size", "1000000"),
            ("target_file_size_base", "2000"),
            ("table.block_size", "200"),
        ],
    );
    let db = Db::open("/db", &options).unwrap();
    for round in 0..8 {
        for number in 0..200 {
            db.put(key(number), format!("{round}{}", "x".repeat(40))).unwrap();
        }
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
    }
    let (compactions, parts) = (db.statistics().get(Ticker::Compactions), parts_since(&db, 0));
    assert!(
        compactions > 0 && parts > compactions * 2,
        "{compactions} compactions in {parts} parts"
    );
    let found = entries(&db, db.default_column_family());
    assert_eq!(found.len(), 200);
    assert!(found.iter().all(|(_, value)| value[0] == b'7'));
    compare::check_files(&db);
}

/// A range deletion over nearly everything, of which a snapshot sees what was before: each part has
/// its piece of it, and those in which nothing else is left have a table for that alone.
#[test]
fn a_range_deletion_reaches_over_the_cuts() {
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, QUIET);
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    let count = || entries(&db, family).len();
    let put = |numbers: std::ops::Range<u32>, with: char| {
        numbers.for_each(|number| db.put(key(number), with.to_string().repeat(50)).unwrap());
        db.flush_all().unwrap();
    };
    // One level above the other, so that what covers the keys must stay.
    put(0..400, 'a');
    compact(&db, &in_parts(1));
    let before = db.snapshot();
    db.delete_range(key(10), key(390)).unwrap();
    db.flush_all().unwrap();
    put(0..400, 'b');
    let between = db.snapshot();
    db.delete_range(key(10), key(390)).unwrap();
    put(200..205, 'c');

    let seen = |snapshot: Option<&Snapshot>| {
        let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
        let found = compare::scan(&db, family, &options).unwrap();
        assert_eq!(found, compare::scan_back(&db, family, &options).unwrap());
        for (number, with) in [(0, b'b'), (9, b'b'), (390, b'b'), (202, b'c')] {
            let value = db.get_with(&options, family, key(number)).unwrap();
            let expected = snapshot
                .map_or(with, |at| if at.sequence() == before.sequence() { b'a' } else { b'b' });
            assert_eq!(value.unwrap()[0], expected, "{number}");
        }
        found.len()
    };
    let counts = [Some(&before), Some(&between), None].map(seen);
    assert_eq!(counts, [400, 400, 25]);
    let parts_before = parts_since(&db, 0);
    compact(&db, &of_all(4));
    assert!(parts_since(&db, parts_before) >= 4, "the compaction was cut");
    assert_eq!([Some(&before), Some(&between), None].map(seen), counts);
    compare::check_files(&db);

    drop((before, between));
    compact(&db, &of_all(4));
    assert_eq!(count(), 25);
    let bytes: u64 = db.live_files().iter().map(|file| file.size).sum();
    assert!(bytes < 8000, "what the deletion hid is gone: {bytes} bytes are left");
    compare::check_files(&db);
}

/// Of one key there are more versions than a part has bytes.
#[test]
fn all_versions_of_a_key_are_in_one_part() {
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, QUIET);
    let db = Db::open("/db", &options).unwrap();
    let mut seen = Vec::new();
    for round in 0..200 {
        db.merge("m", format!("{round}")).unwrap();
        db.put(key(round), "x".repeat(40)).unwrap();
        db.put("hot", format!("{round:100}")).unwrap();
        seen.push((db.snapshot(), round));
        if round % 50 == 49 {
            db.flush_all().unwrap();
        }
    }
    compact(&db, &of_all(5));
    assert!(parts_since(&db, 0) > 1);
    for (snapshot, round) in &seen {
        let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        let family = db.default_column_family();
        let hot = db.get_with(&options, family, "hot").unwrap().unwrap();
        assert_eq!(hot.trim_ascii(), format!("{round}").as_bytes());
        let merged = db.get_with(&options, family, "m").unwrap().unwrap();
        assert_eq!(merged.split(|byte| *byte == b',').count(), *round as usize + 1);
    }
    drop(seen);
    compact(&db, &of_all(5));
    assert_eq!(entries(&db, db.default_column_family()).len(), 202);
    compare::check_files(&db);
}

/// Values move out of blob files that are being emptied, in every part.
#[test]
fn blob_files_are_emptied_by_all_parts() {
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, QUIET);
    settings::set(&mut options, BLOBS);
    settings::set(&mut options, &[("target_file_size_base", "1000")]);
    let db = Db::open("/db", &options).unwrap();
    for round in 0..2 {
        for number in (0..300).filter(|number| round == 0 || number % 2 == 0) {
            db.put(key(number), format!("{round}{}", "v".repeat(300))).unwrap();
        }
        db.flush_all().unwrap();
    }
    let force = CompactRangeOptions {
        blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
        blob_garbage_collection_age_cutoff: 1.0,
        ..of_all(4)
    };
    compact(&db, &force);
    // What became garbage only now is seen by the next one.
    compact(&db, &force);
    assert!(parts_since(&db, 0) > db.statistics().get(Ticker::Compactions));
    assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), 150);
    assert_eq!(garbage(&db)[0], 0);
    let found = entries(&db, db.default_column_family());
    assert_eq!(found.len(), 300);
    assert!(
        found
            .iter()
            .zip(0..)
            .all(|((_, value), number)| value[0] == b'0' + u8::from(number % 2 == 0))
    );
    compare::check_files(&db);
}

fn some_tables(options: &Options) -> Db {
    let db = Db::open("/db", options).unwrap();
    for round in 0..3 {
        for number in 0..300 {
            db.put(key(number), format!("{round}{}", "x".repeat(40))).unwrap();
        }
        db.flush_all().unwrap();
    }
    db
}

/// Any of the tables that are written side by side, at its creation, in its middle and at its end.
#[test]
fn a_part_that_fails_leaves_nothing_behind() {
    for call in [Call::Create, Call::Write, Call::Read] {
        let disk = CrashFs::new();
        let fs = FaultFs::above(&disk);
        // Threads, and not steps: parts fail and stop at the same time.
        let mut options = settings::tiny(&Env { fs: Arc::new(fs.clone()), ..Env::os() });
        settings::set(&mut options, QUIET);
        let db = some_tables(&options);
        let tables = || {
            let names = disk.list(Path::new("/db")).unwrap();
            names.into_iter().filter(|name| name.ends_with(".sst")).count()
        };
        let before = tables();
        fs.plan(Plan::Next { call, sort: Sort::Table, injection: Injection::NoSpace });
        let error = db
            .compact_range(db.default_column_family(), None, None, &of_all(4))
            .expect_err("one of the parts fails");
        assert!(error.to_string().contains("injected"), "not what the others say: {error}");
        assert_eq!(tables(), before, "after {call:?}");
        assert_eq!(entries(&db, db.default_column_family()).len(), 300);
        fs.heal();
        compact(&db, &of_all(4));
        assert!(parts_since(&db, 0) >= 3);
        assert_eq!(entries(&db, db.default_column_family()).len(), 300);
        compare::check_files(&db);
    }
}

/// Panics at one key.
struct Faint(AtomicUsize);

impl CompactionFilter for Faint {
    fn name(&self) -> &str {
        "Faint"
    }

    fn filter(&self, _level: u32, at: &[u8], _kind: FilteredKind, _value: &[u8]) -> FilterDecision {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(at != key(150).as_bytes(), "a filter that panics on purpose");
        FilterDecision::Keep
    }
}

#[test]
fn a_panic_in_a_part_poisons_and_leaves_nothing_behind() {
    let disk = CrashFs::new();
    let mut options = settings::tiny(&Env { fs: Arc::new(disk.clone()), ..Env::os() });
    settings::set(&mut options, QUIET);
    let filter = Arc::new(Faint(AtomicUsize::new(0)));
    options.cf.compaction_filter = Some(filter.clone());
    let db = some_tables(&options);
    let before = disk.list(Path::new("/db")).unwrap().len();
    let error = db.compact_range(db.default_column_family(), None, None, &of_all(4)).unwrap_err();
    assert_eq!(error.code(), Code::Aborted);
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(filter.0.load(Ordering::Relaxed) > 0);
    assert_eq!(disk.list(Path::new("/db")).unwrap().len(), before);
    assert!(db.put("key", "value").is_err(), "nothing is acknowledged after a panic");
    assert_eq!(entries(&db, db.default_column_family()).len(), 300);
}

/// Skips far beyond the part that it is asked in.
struct Leap;

impl CompactionFilter for Leap {
    fn name(&self) -> &str {
        "Leap"
    }

    fn filter(&self, _level: u32, at: &[u8], _kind: FilteredKind, _value: &[u8]) -> FilterDecision {
        match at.last() {
            Some(b'0') => FilterDecision::RemoveAndSkipUntil(b"z".to_vec()),
            _ => FilterDecision::Keep,
        }
    }
}

#[test]
fn a_filter_skips_to_the_end_of_its_part_at_most() {
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, QUIET);
    options.cf.compaction_filter = Some(Arc::new(Leap));
    let db = some_tables(&options);
    compact(&db, &of_all(4));
    let found = entries(&db, db.default_column_family());
    assert!(
        found.len() < 40,
        "only what lies before the first key of each part with a 0 is left: {}",
        found.len()
    );
    assert!(found.iter().all(|(at, _)| !at.ends_with(b"0")));
    compare::check_files(&db);
}

/// RocksDB reads what parts wrote side by side: tables that touch at a range deletion, blob files
/// of each part.
#[test]
fn rocksdb_reads_what_parts_wrote() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let mut options = create();
    settings::set(&mut options, QUIET);
    settings::set(&mut options, BLOBS);
    let path = directory.path().join("db");
    let db = Db::open(&path, &options).unwrap();
    for number in 0..600 {
        db.put(key(number), "a".repeat(60 + number as usize % 80)).unwrap();
    }
    db.flush_all().unwrap();
    compact(&db, &in_parts(4));
    let held = db.snapshot();
    db.delete_range(key(100), key(500)).unwrap();
    for number in (0..600).step_by(7) {
        db.put(key(number), "b".repeat(60 + number as usize % 80)).unwrap();
    }
    db.flush_all().unwrap();
    compact(&db, &of_all(4));
    assert!(parts_since(&db, 0) > db.statistics().get(Ticker::Compactions));
    let expected = dump(&db);
    drop(held);
    db.close().unwrap();
    drop(db);
    referee.ldb(&path, &["checkconsistency"]);
    assert!(referee.verify_tables(&path) > 10);
    assert_eq!(referee.scan(&path, "default"), expected);
}
