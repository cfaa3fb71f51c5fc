//! Databases whose values expire, with a clock in hand; RocksDB's `ldb --ttl` as referee.

mod common;
#[path = "common/expiry.rs"]
mod expiry;

use std::path::Path;
use std::sync::Arc;

use common::{create, open_as_written, referee, temporary};
use expiry::{NOON, compact, entries, world};
use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, TtlDb, TtlOptions};
use flagstone::env::{Clock, Env};
use flagstone::options::{
    ColumnFamilyOptions, CompactFilesOptions, CompactionFilter, CompactionFilterContext,
    CompactionFilterFactory, Options, ReadOptions, TableFileCreationReason, WriteOptions,
    load_latest,
};
use testkit::{compare, settings};

fn keys(db: &TtlDb) -> String {
    entries(db).into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_has_expired_is_found_until_a_compaction_comes_by() {
    let (env, clock) = world();
    let db = TtlDb::open(
        "/db",
        &settings::tiny(&env),
        TtlOptions { ttl_seconds: 60, ..TtlOptions::default() },
    );
    let db = db.unwrap();
    db.put("a", "early").unwrap();
    clock.advance(50);
    db.put("b", "late").unwrap();
    clock.advance(11);
    assert_eq!(db.get("a").unwrap().unwrap(), "early");
    assert_eq!(keys(&db), "a b");
    compact(&db);
    assert!(db.get("a").unwrap().is_none());
    assert_eq!(entries(&db), [("b".to_string(), "late".to_string())]);
    assert_eq!(db.base().get("b").unwrap().unwrap().len(), 8, "four bytes more");
}

#[test]
fn strict_reads_find_nothing_that_has_expired() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    for (key, wait) in [("a", 0), ("b", 30), ("c", 0), ("d", 20)] {
        clock.advance(wait);
        db.put(key, key.repeat(3)).unwrap();
    }
    assert_eq!(keys(&db), "a b c d");
    let mut standing =
        db.iter_cf(db.base().default_column_family(), &ReadOptions::default()).unwrap();
    clock.advance(11);
    assert_eq!(keys(&db), "b c d");
    let all = db.multi_get_with(
        &ReadOptions::default(),
        db.base().default_column_family(),
        &["a", "b", "x"],
    );
    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert!(all[0].is_none() && all[2].is_none());
    assert_eq!(all[1].as_ref().unwrap(), "bbb");
    standing.seek("a");
    assert_eq!(standing.key(), b"a", "a cursor sees what was there when it was made");
    clock.advance(30);
    assert_eq!(keys(&db), "d");
    let mut iter = db.iter_cf(db.base().default_column_family(), &ReadOptions::default()).unwrap();
    iter.seek_for_prev("c");
    assert!(!iter.valid());
    iter.seek("a");
    assert_eq!(iter.key(), b"d");
    assert_eq!(iter.expiry().unwrap(), Some(NOON + 110));
    db.put("a", "again").unwrap();
    assert_eq!(keys(&db), "a d");
}

#[test]
fn a_key_may_have_an_expiry_of_its_own() {
    let (env, clock) = world();
    let options = settings::tiny(&env);
    let db = TtlDb::open("/db", &options, TtlOptions::strict(3600)).unwrap();
    let family = db.base().default_column_family().clone();
    let put_until =
        |key: &str, expiry| db.put_until(&WriteOptions::default(), &family, key, key, expiry);
    put_until("brief", NOON + 10).unwrap();
    put_until("long", NOON + 100_000).unwrap();
    db.put("usual", "usual").unwrap();
    let expiry = |key: &str| {
        db.get_with_expiry(&ReadOptions::default(), &family, key)
            .unwrap()
            .and_then(|found| found.expiry)
    };
    assert_eq!(expiry("brief"), Some(NOON + 10));
    assert_eq!(expiry("usual"), Some(NOON + 3600));
    clock.advance(10);
    assert_eq!(keys(&db), "brief long usual");
    clock.advance(1);
    assert_eq!(keys(&db), "long usual");
    clock.advance(3600);
    assert_eq!(keys(&db), "long");
    compact(&db);
    assert_eq!(db.base().get("brief").unwrap(), None);
    db.base().close().unwrap();
    assert_eq!(put_until("k", 0).unwrap_err().code(), Code::InvalidArgument);

    let forever = TtlDb::open("/db", &options, TtlOptions::default()).unwrap();
    assert_eq!(keys(&forever), "long");
    let refused = forever.put_until(&WriteOptions::default(), &family, "k", "v", NOON).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[test]
fn large_values_expire_and_leave_their_blob_files() {
    let (env, clock) = world();
    let mut options = settings::tiny(&env);
    let blobs =
        [("enable_blob_files", "true"), ("min_blob_size", "100"), ("blob_commit_min_size", "100")];
    settings::set(&mut options, &blobs);
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    for number in 0..20 {
        db.put(format!("k{number:02}"), "v".repeat(2000)).unwrap();
        clock.advance(5);
    }
    assert_eq!(entries(&db).len(), 12);
    compact(&db);
    assert_eq!(entries(&db).len(), 12);
    assert_eq!(common::entries(db.base(), db.base().default_column_family()).len(), 12);
    assert!(entries(&db).iter().all(|(_, value)| value.len() == 2000));
    compare::check_files(db.base());
}

#[test]
fn a_merged_value_is_as_young_as_the_merge() {
    let (env, clock) = world();
    let ttl = TtlOptions { ttl_seconds: 60, ..TtlOptions::default() };
    let db = TtlDb::open("/db", &settings::tiny(&env), ttl).unwrap();
    let family = db.base().default_column_family().clone();
    db.merge_cf(&family, "k", "a").unwrap();
    clock.advance(30);
    db.merge_cf(&family, "k", "b").unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), "a,b");
    clock.advance(1000);
    assert_eq!(db.get("k").unwrap().unwrap(), "a,b", "operands do not expire, as in RocksDB");
    compact(&db);
    let found = db.get_with_expiry(&ReadOptions::default(), &family, "k").unwrap().unwrap();
    assert_eq!(
        (found.value.into_vec(), found.expiry),
        (b"a,b".to_vec(), Some(clock.unix_seconds() + 60))
    );
    clock.advance(61);
    compact(&db);
    assert!(db.get("k").unwrap().is_none());
}

/// Went wrong: what was merged never expired as long as no compaction put it together, and then
/// lived as long again.
#[test]
fn where_reads_are_strict_a_merged_value_lives_from_its_last_operand() {
    for compacts in [false, true] {
        let (env, clock) = world();
        let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
        let family = db.base().default_column_family().clone();
        let expiry = || {
            if compacts {
                compact(&db);
            }
            let found = db.get_with_expiry(&ReadOptions::default(), &family, "k").unwrap();
            found.map(|found| (found.value.into_vec(), found.expiry.unwrap() - NOON))
        };
        db.merge_cf(&family, "k", "a").unwrap();
        clock.advance(30);
        db.merge_cf(&family, "k", "b").unwrap();
        clock.advance(20);
        assert_eq!(expiry(), Some((b"a,b".to_vec(), 90)));
        clock.advance(40);
        assert_eq!(expiry(), Some((b"a,b".to_vec(), 90)));
        clock.advance(1);
        assert_eq!((expiry(), keys(&db)), (None, String::new()), "compacts: {compacts}");
        // What had expired is not merged onto.
        db.put("k", "old").unwrap();
        clock.advance(61);
        db.merge_cf(&family, "k", "new").unwrap();
        assert_eq!(db.get("k").unwrap().unwrap(), "new");
        assert_eq!(expiry().unwrap().0, b"new");
    }
}

/// Went wrong: a compaction that put operands together forgot when the first of them had come, and
/// with it that the value below had lived then; and onto what operands came to it merged, where
/// that had expired by then, as long as no compaction had made a value of it.
#[test]
fn where_reads_are_strict_what_is_merged_onto_is_the_same_whatever_compactions_come_by() {
    // What is written when; what is there in the end.
    type Writes = [(u64, bool, &'static str)];
    let lives: [(&Writes, &str); 4] = [
        (&[(0, true, "base"), (50, false, "a"), (100, false, "b")], "base,a,b"),
        (&[(0, false, "a"), (70, false, "b"), (80, false, "c")], "b,c"),
        (&[(0, true, "base"), (50, false, "a"), (120, false, "b"), (180, false, "c")], "b,c"),
        (&[(0, true, "base"), (61, false, "a"), (61, false, "b")], "a,b"),
    ];
    for (writes, expected) in lives {
        for flushes in [0, usize::MAX] {
            for compacts in 0..1 << writes.len() {
                let (env, clock) = world();
                let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
                let family = db.base().default_column_family().clone();
                for (at, (time, is_value, text)) in writes.iter().enumerate() {
                    clock.advance(NOON + time - clock.unix_seconds());
                    if *is_value {
                        db.put("k", text).unwrap()
                    } else {
                        db.merge_cf(&family, "k", text).unwrap()
                    }
                    if flushes >> at & 1 == 1 {
                        db.base().flush_all().unwrap();
                    }
                    if compacts >> at & 1 == 1 {
                        compact(&db);
                    }
                }
                let found = db.get("k").unwrap().unwrap().into_vec();
                assert_eq!(String::from_utf8(found).unwrap(), expected, "{compacts:b}");
            }
        }
    }
}

/// Went wrong: a compaction that did not come to the operands dropped the value below for its age,
/// though it had lived when they came.
#[test]
fn where_reads_are_strict_no_value_is_dropped_that_something_was_merged_onto() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family().clone();
    for key in ["alone", "from table", "from memtable", "late"] {
        db.put(key, "base").unwrap();
    }
    compact(&db);
    let below = db.base().live_files();
    clock.advance(50);
    db.merge_cf(&family, "from table", "more").unwrap();
    db.base().flush_all().unwrap();
    db.merge_cf(&family, "from memtable", "more").unwrap();
    clock.advance(20);
    db.merge_cf(&family, "late", "more").unwrap();
    let numbers: Vec<_> = below.iter().map(|file| file.number).collect();
    db.base().compact_files(&family, &numbers, 6, &CompactFilesOptions::default()).unwrap();
    let found = entries(&db);
    let found: Vec<_> = found.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    assert_eq!(
        found,
        [("from memtable", "base,more"), ("from table", "base,more"), ("late", "more")]
    );
    assert!(db.base().get("alone").unwrap().is_none(), "its space is free");
}

/// What a replay writes on its way is filtered, too, if the application's filter wants that.
struct FiltersReplay;

impl CompactionFilterFactory for FiltersReplay {
    fn name(&self) -> &str {
        "tests.FiltersReplay"
    }

    fn should_filter_table_file_creation(&self, _reason: TableFileCreationReason) -> bool {
        true
    }

    fn create_compaction_filter(
        &self,
        _: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        None
    }
}

/// Went wrong: what had expired by the time of a replay was dropped by the table that it filled,
/// and the operand that was merged onto it in time stood behind that in the log.
#[test]
fn where_reads_are_strict_a_replay_drops_no_value_that_its_log_merges_onto() {
    let (env, clock) = world();
    let mut options = settings::tiny(&env);
    options.cf.compaction_filter_factory = Some(Arc::new(FiltersReplay));
    options.cf.settings.write_buffer_size = 1 << 20;
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family().clone();
    db.put("key", "base").unwrap();
    clock.advance(50);
    for filler in 0..40 {
        db.put(format!("filler {filler}"), "x".repeat(1000)).unwrap();
    }
    db.merge_cf(&family, "key", "more").unwrap();
    db.base().close().unwrap();
    drop((family, db));
    clock.advance(20);
    options.cf.settings.write_buffer_size = 8192;
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    assert!(db.base().live_files().len() > 2, "the replay wrote on its way");
    assert_eq!(db.get("key").unwrap().unwrap(), "base,more");
}

/// Went wrong: where something newer hid the operands, what they lay on was dropped for its age,
/// and a snapshot that saw them found them on nothing.
#[test]
fn where_reads_are_strict_a_snapshot_keeps_what_it_sees_something_merged_onto() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family().clone();
    db.put("key", "base").unwrap();
    compact(&db);
    clock.advance(50);
    db.merge_cf(&family, "key", "more").unwrap();
    let snapshot = db.base().snapshot();
    db.put("key", "another").unwrap();
    clock.advance(20);
    let seen = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    // What lies in tables, that is the value below.
    let rewrite = || {
        let tables: Vec<_> = db.base().live_files().iter().map(|file| file.number).collect();
        db.base().compact_files(&family, &tables, 6, &CompactFilesOptions::default()).unwrap();
    };
    rewrite();
    assert_eq!(db.get_with(&seen, &family, "key").unwrap().unwrap(), "base,more");
    drop(seen);
    rewrite();
    assert_eq!(db.base().live_files().len(), 0, "its space is free");
    assert_eq!(db.get("key").unwrap().unwrap(), "another");
}

/// Went wrong: a key could expire only where all others did, too.
#[test]
fn some_keys_expire_and_others_live_for_ever() {
    let (env, clock) = world();
    let options = settings::tiny(&env);
    let db = TtlDb::open("/db", &options, TtlOptions::per_key()).unwrap();
    let family = db.base().default_column_family().clone();
    let write = WriteOptions::default();
    db.put("always", "1").unwrap();
    db.put_until(&write, &family, "brief", "2", NOON + 10).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"batch", b"3").unwrap();
    batch.merge(b"merged", b"4").unwrap();
    db.write_with(&write, &batch).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"soon", b"5").unwrap();
    batch.put(b"soon, too", b"6").unwrap();
    db.write_until(&write, &batch, NOON + 20).unwrap();
    db.put_until(&write, &family, "made eternal", "7", NOON + 10).unwrap();
    db.put("made eternal", "8").unwrap();
    db.put("made mortal", "9").unwrap();
    db.put_until(&write, &family, "made mortal", "0", NOON + 10).unwrap();
    let expiry = |key: &str| {
        let found = db.get_with_expiry(&ReadOptions::default(), &family, key).unwrap();
        found.map(|found| found.expiry.map(|expiry| expiry - NOON))
    };
    assert_eq!(
        (expiry("always"), expiry("brief"), expiry("soon")),
        (Some(None), Some(Some(10)), Some(Some(20)))
    );
    assert_eq!(keys(&db), "always batch brief made eternal made mortal merged soon soon, too");
    clock.advance(11);
    assert_eq!(keys(&db), "always batch made eternal merged soon soon, too");
    let all =
        db.multi_get_with(&ReadOptions::default(), &family, &["always", "brief", "made eternal"]);
    let all: Vec<_> =
        all.into_iter().map(|found| found.unwrap().map(|value| value.into_vec())).collect();
    assert_eq!(all, [Some(b"1".to_vec()), None, Some(b"8".to_vec())]);
    compact(&db);
    assert_eq!(keys(&db), "always batch made eternal merged soon soon, too");
    assert!(db.base().get("brief").unwrap().is_none(), "its space is free");
    clock.advance(12 * 365 * 24 * 60 * 60);
    compact(&db);
    assert_eq!(keys(&db), "always batch made eternal merged", "twelve years later");
    // In a family with a time to live, too.
    let ttl = db.base().path().with_file_name("other");
    let other = TtlDb::open(ttl, &options, TtlOptions::strict(60)).unwrap();
    let family = other.base().default_column_family().clone();
    other.put_for_ever(&write, &family, "always", "1").unwrap();
    other.put("usual", "2").unwrap();
    clock.advance(61);
    compact(&other);
    assert_eq!(keys(&other), "always");
}

#[test]
fn families_have_times_of_their_own() {
    let (env, clock) = world();
    let mut options = settings::tiny(&env);
    options.create_missing_column_families = true;
    let plain = ColumnFamilyOptions::default;
    let listed =
        [("default", plain(), TtlOptions::default()), ("brief", plain(), TtlOptions::strict(5))];
    let db = TtlDb::open_with_families("/db", &options, &listed).unwrap();
    let late = db.create_column_family("late", &plain(), TtlOptions::strict(50)).unwrap();
    let brief = db.base().column_family("brief").unwrap();
    let mut batch = WriteBatch::new();
    for family in [db.base().default_column_family(), &brief, &late] {
        batch.put_cf(family, b"k", b"value").unwrap();
        batch.delete_cf(family, b"other").unwrap();
    }
    db.write_with(&WriteOptions::default(), &batch).unwrap();
    let left = || {
        db.base()
            .column_families()
            .iter()
            .filter(|family| db.get_with(&ReadOptions::default(), family, "k").unwrap().is_some())
            .count()
    };
    assert_eq!(left(), 3);
    clock.advance(6);
    assert_eq!(left(), 2);
    db.set_ttl(&late, 3).unwrap();
    assert_eq!((left(), db.ttl(&late).unwrap()), (1, 3));
    assert_eq!(db.set_ttl(&late, 1 << 40).unwrap_err().code(), Code::InvalidArgument);

    let foreign = db.base().create_column_family("foreign", &plain()).unwrap();
    assert_eq!(db.put_cf(&foreign, "k", "v").unwrap_err().code(), Code::InvalidArgument);
    let mut entity = WriteBatch::new();
    entity.put_encoded_entity(&late, b"k", b"\x01\x00").unwrap();
    assert_eq!(
        db.write_with(&WriteOptions::default(), &entity).unwrap_err().code(),
        Code::NotSupported
    );
}

#[test]
fn a_value_without_a_stamp_is_corrupt_and_is_not_dropped() {
    let (env, clock) = world();
    let options = settings::tiny(&env);
    let plain = Db::open("/db", &options).unwrap();
    plain.put("k", "0000").unwrap();
    plain.put("l", "").unwrap();
    plain.close().unwrap();
    drop(plain);
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    clock.advance(1000);
    compact(&db);
    assert!(db.get("k").unwrap_err().is_corruption());
    let mut iter = db.iter_cf(db.base().default_column_family(), &ReadOptions::default()).unwrap();
    iter.seek_to_first();
    assert!(!iter.valid() && iter.status().unwrap_err().is_corruption());
    assert_eq!(db.base().get("k").unwrap().unwrap(), "0000");
}

/// The OPTIONS file says what deals with the stamps, and any program that goes by it goes on with
/// that.
#[test]
fn the_options_file_says_how_long_values_live() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    db.merge_cf(db.base().default_column_family(), "k", "a").unwrap();
    db.base().close().unwrap();
    drop(db);
    let loaded = load_latest(&env, Path::new("/db")).unwrap().unwrap();
    let family = &loaded.families[0].1;
    assert_eq!((family.recorded_ttl(), &family.kept[..]), (Some(60), &[][..]));
    assert_eq!(family.merge_operator.as_ref().unwrap().name(), "TtlMergeOperator");
    assert_eq!(ColumnFamilyOptions::default().recorded_ttl(), None);

    let again = Options { cf: family.clone(), ..loaded.options.clone() };
    let db = TtlDb::open("/db", &again, TtlOptions::strict(70)).unwrap();
    db.merge_cf(db.base().default_column_family(), "k", "b").unwrap();
    assert_eq!(
        db.get("k").unwrap().unwrap(),
        "a,b",
        "what deals with stamps already is not wrapped again"
    );
    clock.advance(1);
    db.base().close().unwrap();
}

#[test]
fn rocksdb_reads_what_we_wrote_and_we_what_it_wrote() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    referee.ldb_ttl(&path, &["put", "--create_if_missing", "by", "ldb"]);
    let db = TtlDb::open(&path, &create(), TtlOptions::strict(1000)).unwrap();
    assert_eq!(db.get("by").unwrap().unwrap(), "ldb");
    db.put("ours", "value").unwrap();
    let family = db.base().default_column_family().clone();
    let later = Env::os().clock.unix_seconds() + 5000;
    db.put_until(&WriteOptions::default(), &family, "own", "expiry", later).unwrap();
    db.base().flush_all().unwrap();
    db.base().close().unwrap();
    drop(db);

    assert_eq!(referee.ldb_ttl(&path, &["get", "ours"]).trim(), "value");
    let scanned = referee.ldb_ttl(&path, &["scan"]);
    assert_eq!(scanned.lines().collect::<Vec<_>>(), ["by : ldb", "ours : value", "own : expiry"]);
    referee.ldb_ttl(&path, &["put", "ours", "changed"]);
    // In hexadecimal: one stamp in 256 has a byte of zeros, at which `ldb` ends the text.
    let raw = referee.ldb(&path, &["get", "--value_hex", "ours"]);
    assert!(raw.starts_with("0x6368616E676564") && raw.trim().len() == 2 + 2 * (7 + 4), "{raw}");

    // Its OPTIONS file names its filter and its merge operator, which are built in.
    let plain = open_as_written(&path, false);
    assert_eq!(plain.get("ours").unwrap().unwrap().len(), "changed".len() + 4);
    plain.close().unwrap();
    drop(plain);
    let db = TtlDb::open_read_only(&path, &create(), TtlOptions::strict(1000)).unwrap();
    assert_eq!(keys(&db), "by ours own");
    assert_eq!(db.get("ours").unwrap().unwrap(), "changed");
}

/// Operands that each of the two wrote become one value, by either.
#[test]
fn rocksdb_merges_what_we_wrote() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    // That of ldb.
    options.set("merge_operator", "stringappend::").unwrap();
    let db = TtlDb::open(&path, &options, TtlOptions::default()).unwrap();
    let family = db.base().default_column_family().clone();
    db.put("k", "a").unwrap();
    db.merge_cf(&family, "k", "b").unwrap();
    db.base().flush_all().unwrap();
    db.merge_cf(&family, "k", "c").unwrap();
    db.base().close().unwrap();
    drop(db);
    assert_eq!(referee.ldb_ttl(&path, &["get", "k"]).trim(), "a:b:c");
}
