//! Faults that the laboratory found, each told by the shortest story that showed it.

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

/// Letters of either case are the same. It says that it is the order of bytes, which it is for keys
/// in one case.
struct AnyCase;

impl UserComparator for AnyCase {
    fn name(&self) -> &str {
        "leveldb.BytewiseComparator"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn keys_that_are_the_same_in_other_bytes_find_their_large_values() {
    // A record of a blob file had to be of the very bytes of the key that was looked up: under an
    // order of the application's in which others are the same, its value was corruption to lookups.
    // Where a merge met it, so it was to a compaction, which set the table aside.
    for mode in ["commit", "flush"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = Comparator::Custom(Arc::new(AnyCase));
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "100"),
            ("blob_commit_min_size", "100"),
        ];
        settings::set(&mut options, &blobs);
        settings::set(
            &mut options,
            &[("blob_write_mode", mode), ("merge_operator", "stringappend")],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let large = [b'v'; 100_000];
        ["Cat", "Dog"].iter().for_each(|key| db.put(key, large).expect("a write"));
        let found = |key| db.get(key).expect("a lookup").expect("it was written");
        for flush in [false, true] {
            if flush {
                db.flush_all().expect("a flush");
            }
            assert_eq!(found("cAT"), large, "{mode}, {flush}");
            let several = db.multi_get(&["CAT", "dog"]);
            assert!(
                several
                    .into_iter()
                    .all(|value| value.expect("a lookup").expect("a value") == large)
            );
            let (family, reading) = (db.default_column_family(), ReadOptions::default());
            let part = db.get_range(&reading, family, "CAT", 70_000..70_003).expect("a lookup");
            assert_eq!(part.expect("a value").bytes, b"vvv"[..]);
        }
        db.merge("DOG", "woof").expect("a write");
        let merged = [&large[..], b",woof"].concat();
        assert_eq!(found("dog"), merged, "{mode}");
        db.flush_all().expect("a flush");
        let family = db.default_column_family();
        db.compact_range(family, None, None, &CompactRangeOptions::default())
            .expect("a compaction");
        assert!(db.damaged_files().is_empty(), "{mode}");
        assert_eq!(found("dog"), merged, "{mode}");
    }
}

/// Keys are numbers.
struct LeadingZeros;

impl UserComparator for LeadingZeros {
    fn name(&self) -> &str {
        "LeadingZeros"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let digits =
            |key: &[u8]| key.iter().copied().skip_while(|digit| *digit == b'0').collect::<Vec<_>>();
        digits(a).cmp(&digits(b))
    }
}

#[test]
fn compactions_leave_large_values_to_the_bytes_of_their_own_keys() {
    // At the bottom an older version got the bytes of the key's newest one, which are not those in
    // the record of its value: a snapshot's scan could not read it any more, nor a salvage. And a
    // merge asked for the value by the operand's bytes, and had its compaction set the table aside
    // if there were more of them.
    let mut options = settings::tiny(&Env::memory());
    options.cf.comparator = Comparator::Custom(Arc::new(LeadingZeros));
    let changes = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("merge_operator", "stringappend"),
    ];
    settings::set(&mut options, &changes);
    let db = Db::open("/db", &options).expect("a new database");
    let large = vec![b'v'; 10_000];
    db.put("8", &large).expect("a write");
    let before = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    db.put("008", "small").expect("a write");
    db.put("7", &large).expect("a write");
    db.merge("007", "more").expect("a write");
    db.flush_all().expect("a flush");
    let family = db.default_column_family();
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(family, None, None, &everything).expect("a compaction");
    assert!(db.damaged_files().is_empty());
    assert_eq!(
        db.get("007").expect("a lookup").expect("it was merged"),
        [&large[..], b",more"].concat()
    );
    let then = testkit::compare::scan(&db, family, &before).expect("a scan");
    assert_eq!(then, [(b"8".to_vec(), large)]);
}

#[test]
fn a_salvage_leaves_large_values_to_the_bytes_of_their_own_keys() {
    // It asked for them by the bytes of the key's newest version: older ones, under merge operands
    // or in the place of one that is lost, came out as lost, too.
    let mut options = settings::tiny(&Env::memory());
    options.cf.comparator = Comparator::Custom(Arc::new(AnyCase));
    let blobs =
        [("enable_blob_files", "true"), ("min_blob_size", "100"), ("blob_commit_min_size", "100")];
    settings::set(&mut options, &blobs);
    settings::set(
        &mut options,
        &[("merge_operator", "stringappend"), ("disable_auto_compactions", "true")],
    );
    let db = Db::open("/db", &options).expect("a new database");
    let large = vec![b'v'; 10_000];
    ["cat", "Dog"].iter().for_each(|key| db.put(key, &large).expect("a write"));
    db.flush_all().expect("a flush");
    db.merge("CAT", "more").expect("a write");
    db.put("DOG", [b'w'; 10_000]).expect("a write");
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");
    let names = options.env.fs.list(Path::new("/db")).expect("a directory");
    let newest = names.iter().filter(|name| name.ends_with(".blob")).max().expect("there are two");
    options.env.fs.remove(&Path::new("/db").join(newest)).expect("a file");
    let families = [("default", options.cf.clone())];
    let report = salvage(Path::new("/db"), Path::new("/saved"), &options, &families, &mut |_| {})
        .expect("something is left");
    assert_eq!(report.lost_values.len(), 1, "{:?}", report.lost_values);
    let saved = Db::open("/saved", &options).expect("it opens");
    let found =
        testkit::compare::scan(&saved, saved.default_column_family(), &ReadOptions::default());
    let merged = [&large[..], b",more"].concat();
    assert_eq!(found.expect("a scan"), [(b"CAT".to_vec(), merged), (b"Dog".to_vec(), large)]);
}

#[test]
fn an_iterator_that_refreshes_itself_takes_its_step_whatever_bytes_its_key_has() {
    // It sought its key in the newer files and stepped on if it found those very bytes. Moving back
    // it stands on those of the oldest version; with that compacted away it found the others, and
    // stayed on its key, which a scan met twice.
    let mut options = settings::tiny(&Env::memory());
    options.cf.comparator = Comparator::Custom(Arc::new(AnyCase));
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    let db = Db::open("/db", &options).expect("a new database");
    let family = db.default_column_family();
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    let write = |letter: &str| {
        (100..200).for_each(|number| db.put(format!("{letter}{number}"), "v").expect("a write"));
        db.flush_all().expect("a flush");
    };
    write("k");
    // It looks for newer files every 32 steps.
    let rounds = (28..36).flat_map(|steps| [(steps, "K", false), (steps, "k", true)]);
    for (steps, letter, last_is_next) in rounds {
        write(letter);
        let reading = ReadOptions {
            snapshot: Some(db.snapshot()),
            auto_refresh_iterator_with_snapshot: true,
            ..ReadOptions::default()
        };
        let mut iter = db.iter(&reading).expect("an iterator");
        iter.seek_to_last();
        (0..steps).for_each(|_| iter.prev());
        db.compact_range(family, None, None, &everything).expect("a compaction");
        let expected = if last_is_next { 200 - steps } else { 198 - steps };
        if last_is_next {
            iter.next()
        } else {
            iter.prev()
        }
        let found = iter.key().escape_ascii().to_string().to_lowercase();
        assert_eq!(found, format!("k{expected}"), "{steps} steps, then next: {last_is_next}");
    }
}

#[test]
fn a_hash_of_bytes_hides_no_key_that_is_the_same_in_other_bytes() {
    // The hash index of a data block goes by bytes. Under such an order a lookup asked it all the
    // same, and missed keys that a scan showed. RocksDB writes none then.
    let any_case = Comparator::Custom(Arc::new(AnyCase));
    // Who finds such an index in a table, as another program has written it, does not ask it.
    for written_by in [any_case.clone(), Comparator::Bytewise] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = written_by;
        settings::set(&mut options, &[("table.data_block_index_type", "kDataBlockBinaryAndHash")]);
        let db = Db::open("/db", &options).expect("a new database");
        let key = |number: u32| format!("key{number:03}");
        (0..200).for_each(|number| db.put(key(number), "v").expect("a write"));
        db.flush_all().expect("a flush");
        db.close().expect("a clean close");
        options.cf.comparator = any_case.clone();
        let db = Db::open("/db", &options).expect("it is there");
        for number in 0..200 {
            let found = db.get(key(number).to_uppercase()).expect("a lookup");
            assert_eq!(found.expect("it was written"), b"v"[..], "{number}");
        }
    }
}

/// Spaces at the end of a key do not count.
struct AnyPadding;

impl UserComparator for AnyPadding {
    fn name(&self) -> &str {
        "AnyPadding"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.trim_ascii_end().cmp(b.trim_ascii_end())
    }
}

#[test]
fn keys_that_are_the_same_in_more_or_fewer_bytes_find_their_large_values() {
    // The record of a value was sought before it at the length of the key that was looked up: where
    // the key that it was written with has another, it was corruption.
    for mode in ["commit", "flush"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = Comparator::Custom(Arc::new(AnyPadding));
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "100"),
            ("blob_commit_min_size", "100"),
        ];
        settings::set(&mut options, &blobs);
        settings::set(
            &mut options,
            &[("blob_write_mode", mode), ("merge_operator", "stringappend")],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let large = [b'v'; 100_000];
        let (long, wide) = (format!("bird{}", " ".repeat(9_000)), format!("cat{}", " ".repeat(50)));
        ["ant", long.as_str(), "cat  ", "dog"]
            .iter()
            .for_each(|key| db.put(key, large).expect("a write"));
        let found = |key: &str| db.get(key).expect("a lookup").expect("it was written");
        let (family, unverified) = (
            db.default_column_family(),
            ReadOptions { verify_checksums: false, ..ReadOptions::default() },
        );
        for flush in [false, true] {
            if flush {
                db.flush_all().expect("a flush");
            }
            for key in ["ant    ", "bird", "bird ", "cat", wide.as_str(), "dog "] {
                assert_eq!(found(key), large, "{mode}, {flush}");
                for options in [&ReadOptions::default(), &unverified] {
                    let part =
                        db.get_range(options, family, key, 70_000..70_003).expect("a lookup");
                    assert_eq!(part.expect("a value").bytes, b"vvv"[..]);
                }
            }
            let several = db.multi_get(&["ant ", "bird  ", "cat"]);
            assert!(
                several
                    .into_iter()
                    .all(|value| value.expect("a lookup").expect("a value") == large)
            );
            assert_eq!(db.get("an").expect("a lookup"), None);
        }
        db.merge("dog ", "woof").expect("a write");
        let merged = [&large[..], b",woof"].concat();
        assert_eq!(found("dog  "), merged, "{mode}");
        let mut cursor = db.iter(&ReadOptions::default()).expect("an iterator");
        let mut values = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            values.push(cursor.value().expect("a value").to_vec());
            cursor.next();
        }
        assert_eq!(values, [&large[..], &large, &large, &merged], "{mode}");
    }
}

/// Keys are numbers of eight bytes each; of others it knows nothing.
struct LittleEndian;

impl UserComparator for LittleEndian {
    fn name(&self) -> &str {
        "LittleEndian"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let number =
            |key: &[u8]| u64::from_le_bytes(key.try_into().expect("a key of the application"));
        number(a).cmp(&number(b))
    }
}

#[test]
fn an_order_is_asked_about_the_applications_keys_alone() {
    // An iterator over range deletions began by comparing its first key with an empty one: an order
    // that reads eight bytes of each key panicked, or read beyond it.
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = Comparator::Custom(Arc::new(LittleEndian));
        settings::set(
            &mut options,
            &[("compaction_style", style), ("merge_operator", "stringappend")],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let family = db.default_column_family();
        let key = u64::to_le_bytes;
        for number in 0..2000 {
            db.put(key(number), [7; 50]).expect("a write");
        }
        for compact in [false, true] {
            db.delete_range(key(100), key(300)).expect("a write");
            db.merge(key(200), "back").expect("a write");
            db.delete(key(301)).expect("a write");
            let bounds = ReadOptions {
                iterate_lower_bound: Some(key(50).to_vec()),
                iterate_upper_bound: Some(key(1000).to_vec()),
                ..ReadOptions::default()
            };
            for reading in [ReadOptions::default(), bounds] {
                let mut cursor = db.iter(&reading).expect("an iterator");
                cursor.seek(key(99));
                let mut met = Vec::new();
                while cursor.valid() && met.len() < 4 {
                    met.push(u64::from_le_bytes(cursor.key().try_into().expect("eight bytes")));
                    cursor.next();
                }
                assert_eq!(met, [99, 200, 300, 302], "{style}");
                cursor.seek_for_prev(key(301));
                let mut met = Vec::new();
                while cursor.valid() && met.len() < 3 {
                    met.push(u64::from_le_bytes(cursor.key().try_into().expect("eight bytes")));
                    cursor.prev();
                }
                assert_eq!(met, [300, 200, 99], "{style}");
                cursor.seek_to_last();
                assert!(cursor.valid(), "{style}");
            }
            let found =
                [99, 100, 200].map(|number| db.get(key(number)).expect("a lookup").is_some());
            assert_eq!(found, [true, false, true], "{style}");
            db.flush_all().expect("a flush");
            if compact {
                let (from, to) = (key(10), key(1500));
                let whole = CompactRangeOptions::default();
                db.compact_range(family, Some(&from), Some(&to), &whole).expect("a compaction");
                db.compact_range(family, None, None, &whole).expect("a compaction");
            }
        }
    }
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
