//! Stories of a last level that gets no young entries (`preclude_last_level_data_seconds`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/aging.rs"]
mod aging;
mod common;

use std::collections::BTreeMap;

use aging::{BEGIN, World};
use common::{dump, referee};
use flagstone::base::{Code, ColumnFamilyId, Comparator, Snapshot};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::options::{CompactFilesOptions, CompactRangeOptions, ReadOptions};

/// Entries are young for a thousand seconds.
const YOUNG: &str = "preclude_last_level_data_seconds=1000;num_levels=4;\
                     disable_auto_compactions=true";

fn write(db: &Db, keys: &[&str]) {
    keys.iter().for_each(|key| db.put(key, "value").unwrap());
    db.flush_all().unwrap();
}

fn compact(db: &Db) {
    let all = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &all).unwrap();
}

/// The tables of each level that has some, as `level: smallest-largest`.
fn levels(db: &Db) -> String {
    let mut tables: Vec<_> = db.live_files();
    tables.retain(|file| file.level.is_some());
    tables.sort_by_key(|file| (file.level, file.smallest.clone()));
    let word = |file: &flagstone::db::LiveFile| {
        let (smallest, largest) = (file.smallest.escape_ascii(), file.largest.escape_ascii());
        format!("{}: {smallest}-{largest}", file.level.unwrap())
    };
    tables.iter().map(word).collect::<Vec<_>>().join(", ")
}

type Contents = BTreeMap<String, Vec<u8>>;

/// Everything, now or as of a snapshot; read forwards and backwards.
fn contents(db: &Db, snapshot: Option<&Snapshot>) -> Contents {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
    let mut iter = db.iter(&options).unwrap();
    let read = |iter: &mut flagstone::db::Iter| {
        let key = String::from_utf8(iter.key().to_vec()).unwrap();
        (key, iter.value().unwrap().to_vec())
    };
    let (mut forwards, mut backwards) = (Contents::new(), Contents::new());
    iter.seek_to_first();
    while iter.valid() {
        forwards.extend([read(&mut iter)]);
        iter.next();
    }
    iter.seek_to_last();
    while iter.valid() {
        backwards.extend([read(&mut iter)]);
        iter.prev();
    }
    iter.status().unwrap();
    assert_eq!(forwards, backwards);
    forwards
}

const STYLES: [&str; 2] = ["kCompactionStyleLevel", "kCompactionStyleUniversal"];

#[test]
fn young_entries_stay_above_the_last_level() {
    for style in STYLES {
        let world = World::new();
        let db = world.open(&format!("{YOUNG};compaction_style={style}"));
        write(&db, &["a", "c", "e"]);
        world.time.advance(500);
        write(&db, &["b", "d"]);
        compact(&db);
        assert_eq!(levels(&db), "2: a-e", "{style}");
        // The first three become old; later the others.
        world.time.advance(600);
        write(&db, &["f"]);
        compact(&db);
        assert_eq!(levels(&db), "2: b-f, 3: a-e", "{style}");
        world.time.advance(2000);
        write(&db, &["b"]);
        compact(&db);
        assert_eq!(levels(&db), "2: b-b, 3: a-f", "{style}");
        assert_eq!(dump(&db).lines().count(), 6);
    }
}

/// Newer versions lie above older ones; deletions cover what lies below.
#[test]
fn versions_and_deletions_are_divided_by_age() {
    let world = World::new();
    let db = world.open(YOUNG);
    write(&db, &["a", "b", "c", "d"]);
    let before = db.snapshot();
    world.time.advance(2000);
    db.put("a", "new").unwrap();
    db.delete("b").unwrap();
    db.delete_range("c", "d").unwrap();
    db.flush_all().unwrap();
    compact(&db);
    assert_eq!(levels(&db), "2: a-d, 3: a-d");
    let read = |key: &str| db.get(key).unwrap().map(|value| value.to_vec());
    assert_eq!(read("a").unwrap(), b"new");
    assert_eq!((read("b"), read("c")), (None, None));
    assert_eq!(contents(&db, Some(&before)).len(), 4);
    drop(before);
    compact(&db);
    assert_eq!(levels(&db), "2: a-a, 3: d-d", "what was deleted is gone from both");
}

/// What lies in the last level when the option is set does not come back up.
#[test]
fn the_option_changes_while_the_database_is_open() {
    let world = World::new();
    let db = world.open("num_levels=4;disable_auto_compactions=true");
    write(&db, &["a", "b"]);
    compact(&db);
    assert_eq!(levels(&db), "3: a-b");
    let set = |seconds: &str| {
        let changes = [("preclude_last_level_data_seconds", seconds)];
        db.set_options(db.default_column_family(), &changes).unwrap();
    };
    set("1000");
    write(&db, &["a", "c"]);
    compact(&db);
    assert_eq!(levels(&db), "2: a-c, 3: b-b");
    set("0");
    write(&db, &["d"]);
    compact(&db);
    assert_eq!(levels(&db), "3: a-d");
}

/// Tables that were written without the option have no times; they are as old as their files.
#[test]
fn tables_without_times_become_old() {
    let world = World::new();
    let plain = "num_levels=4;disable_auto_compactions=true";
    let db = world.open(plain);
    write(&db, &["a", "z"]);
    drop(db);
    world.time.advance(900);
    let db = world.open(YOUNG);
    write(&db, &["b"]);
    compact(&db);
    assert_eq!(levels(&db), "2: a-z");
    world.time.advance(200);
    write(&db, &["c"]);
    compact(&db);
    assert_eq!(levels(&db), "2: a-z", "its file was written anew 200 seconds ago");
    // That is known of all that was there when the option was set.
    world.time.advance(850);
    write(&db, &["c"]);
    compact(&db);
    assert_eq!(levels(&db), "2: c-c, 3: a-z");
}

/// Also where no sample was taken after them, but for another family.
#[test]
fn the_last_entries_of_a_table_become_old() {
    let world = World::new();
    let db = world.open(YOUNG);
    let other = db.create_column_family("other", &world.options("").cf).unwrap();
    ["a", "b"].iter().for_each(|key| db.put(key, "value").unwrap());
    db.put_cf(&other, "x", "value").unwrap();
    db.flush_all().unwrap();
    world.time.advance(600);
    write(&db, &["c"]);
    compact(&db);
    assert_eq!(levels(&db), "0: x-x, 2: a-c");
    world.time.advance(500);
    write(&db, &["d"]);
    compact(&db);
    assert_eq!(levels(&db), "0: x-x, 2: c-d, 3: a-b");
}

/// Tables that somebody chose, with others between them, which would be in the way.
#[test]
fn chosen_tables_take_those_between_them_along() {
    let world = World::new();
    let db = world.open(&format!("{YOUNG};target_file_size_base=1"));
    let family = db.default_column_family();
    write(&db, &["f", "g"]);
    compact(&db);
    write(&db, &["m", "n"]);
    compact(&db);
    write(&db, &["a", "c"]);
    let number = |key: &str| {
        let files = db.live_files().into_iter();
        files.filter(|file| file.smallest == key.as_bytes()).map(|file| file.number).next().unwrap()
    };
    let chosen = [number("a"), number("n")];
    db.compact_files(family, &chosen, 3, &CompactFilesOptions::default()).unwrap();
    assert_eq!(contents(&db, None).len(), 6);
    assert!(!levels(&db).contains("3: "), "{}", levels(&db));
}

/// What counts as written long ago goes down at once.
#[test]
fn a_timed_value_is_placed_by_its_time() {
    for blobs in BLOBS {
        let world = World::new();
        let text = format!("{YOUNG};{blobs}");
        let db = world.open(&text);
        write(&db, &["a"]);
        world.time.advance(2000);
        let (family, value) = (db.default_column_family().id(), "v".repeat(100));
        let mut batch = WriteBatch::new();
        batch.timed_put_cf(family, "old", &value, BEGIN + 1).unwrap();
        batch.timed_put_cf(family, "new", &value, BEGIN + 1999).unwrap();
        batch.timed_put_cf(family, "now", &value, BEGIN + 5000).unwrap();
        db.write(batch).unwrap();
        let check = |db: &Db| {
            for key in ["old", "new", "now"] {
                assert_eq!(db.get(key).unwrap().unwrap(), value.as_bytes(), "{key}");
                assert_eq!(contents(db, None)[key], value.as_bytes());
            }
        };
        check(&db);
        drop(db);
        let db = world.open(&text);
        check(&db);
        db.flush_all().unwrap();
        check(&db);
        compact(&db);
        // `new` has the place of the last that was written before its time, which is `a`.
        assert_eq!(levels(&db), "2: now-now, 3: a-old");
        check(&db);
    }
}

#[test]
fn a_timed_value_has_no_user_timestamp() {
    let world = World::new();
    let mut options = world.options(YOUNG);
    options.cf.comparator = Comparator::BytewiseU64Ts;
    let db = Db::open(world.path(), &options).unwrap();
    let mut batch = WriteBatch::new();
    batch.timed_put_cf(ColumnFamilyId::DEFAULT, "keyTimestmp", "value", BEGIN).unwrap();
    let bytes = batch.data().to_vec();
    assert_eq!(db.write(batch).unwrap_err().code(), Code::InvalidArgument);
    let batch = WriteBatch::from_bytes(bytes).unwrap();
    assert_eq!(db.write(batch).unwrap_err().code(), Code::NotSupported);
}

/// RocksDB compacts a level without end that holds back more than it may hold.
#[test]
fn more_than_the_level_may_hold_is_held_back_in_peace() {
    for style in STYLES {
        let world = World::new();
        let text = format!(
            "preclude_last_level_data_seconds=1000;num_levels=4;write_buffer_size=65536;\
             max_bytes_for_level_base=65536;target_file_size_base=16384;compression=kNoCompression;\
             enable_blob_files=false;level0_file_num_compaction_trigger=2;compaction_style={style}"
        );
        let db = world.open(&text);
        let value = [7u8; 1000];
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            db.put(rng.u32(0..10_000).to_be_bytes(), value).unwrap();
        }
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
        let deepest = |db: &Db| db.live_files().iter().filter(|file| file.level == Some(3)).count();
        assert_eq!(deepest(&db), 0, "{style}: {}", levels(&db));
        let done = db.statistics().get(Ticker::Compactions);
        for _ in 0..20 {
            world.time.advance(10);
            drop(db.snapshot());
            db.wait_for_compactions().unwrap();
        }
        assert_eq!(db.statistics().get(Ticker::Compactions), done, "{style}");
        // In time they go down by themselves, once something is written.
        world.time.advance(3000);
        for _ in 0..300 {
            db.put(rng.u32(0..10_000).to_be_bytes(), value).unwrap();
        }
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
        if style == STYLES[0] {
            assert!(deepest(&db) > 0, "{}", levels(&db));
        }
    }
}

/// Values in tables, and in blob files whose garbage is collected.
const BLOBS: [&str; 3] = [
    "enable_blob_files=false",
    "enable_blob_files=true;min_blob_size=50;blob_file_size=8192;enable_blob_garbage_collection=true;\
     blob_garbage_collection_age_cutoff=0.5",
    "enable_blob_files=true;min_blob_size=50;blob_commit_min_size=50;blob_file_size=8192;\
     max_space_amplification=1.2",
];

/// Random operations, snapshots, compactions and reopenings, while time goes on.
#[test]
fn a_random_history_reads_as_its_model() {
    for seed in 0..12 {
        let world = World::new();
        let style = STYLES[seed as usize % 2];
        let text = format!(
            "preclude_last_level_data_seconds=100;num_levels=4;write_buffer_size=65536;\
             max_bytes_for_level_base=8192;target_file_size_base=2048;max_subcompactions=2;\
             level0_file_num_compaction_trigger=2;merge_operator=stringappend;\
             compaction_style={style};{}",
            BLOBS[seed as usize % 3]
        );
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut model = Contents::new();
        let mut db = world.open(&text);
        let mut kept: Option<(Snapshot, Contents)> = None;
        for step in 0..1500u32 {
            let key = |rng: &mut fastrand::Rng| format!("{:03}", rng.u32(0..200));
            match rng.u32(0..100) {
                0..50 => {
                    let (key, value) = (key(&mut rng), format!("{step}{}", "x".repeat(90)));
                    db.put(&key, &value).unwrap();
                    model.insert(key, value.into_bytes());
                }
                50..60 => {
                    let (key, value) = (key(&mut rng), step.to_string());
                    db.merge(&key, &value).unwrap();
                    let merged = model.entry(key).or_default();
                    if !merged.is_empty() {
                        merged.push(b',');
                    }
                    merged.extend(value.bytes());
                }
                60..70 => {
                    let key = key(&mut rng);
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                70..73 => {
                    let (a, b) = (key(&mut rng), key(&mut rng));
                    let (begin, end) = if a < b { (a, b) } else { (b, a) };
                    db.delete_range(&begin, &end).unwrap();
                    model.retain(|key, _| *key < begin || *key >= end);
                }
                73..85 => world.time.advance(rng.u64(1..60)),
                85..92 => db.flush_all().unwrap(),
                92..94 => compact(&db),
                94..97 => kept = Some((db.snapshot(), model.clone())),
                97 => kept = None,
                _ => {
                    kept = None;
                    drop(db);
                    db = world.open(&text);
                }
            }
            if step % 100 == 99 {
                db.wait_for_compactions().unwrap();
                assert_eq!(contents(&db, None), model, "seed {seed}, step {step}");
                if let Some((snapshot, then)) = &kept {
                    assert_eq!(&contents(&db, Some(snapshot)), then, "seed {seed}, step {step}");
                }
            }
        }
        compact(&db);
        assert_eq!(contents(&db, None), model, "seed {seed}");
    }
}

/// RocksDB 7.8 knows the option, opens what was divided, and divides it itself.
#[test]
fn rocksdb_reads_what_was_divided() {
    let Some(referee) = referee() else { return };
    let world = World::new();
    let text = YOUNG.replace("=1000", "=1600000000");
    let db = world.open(&text);
    write(&db, &["a", "c"]);
    world.time.advance(1_650_000_000);
    write(&db, &["b", "c"]);
    compact(&db);
    assert_eq!(levels(&db), "2: b-c, 3: a-a");
    db.close().unwrap();
    drop(db);
    let path = world.path();
    referee.verify_tables(&path);
    referee.ldb(&path, &["checkconsistency"]);
    let shown = referee.ldb(&path, &["scan"]);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    referee.ldb(&path, &["compact", "--try_load_options"]);
    let db = world.open(&text);
    assert_eq!(dump(&db).lines().count(), 3);
}
