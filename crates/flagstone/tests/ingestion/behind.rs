//! Tables below all others: existing keys win.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flagstone::base::Code;
use flagstone::db::{Db, ExternalFiles};
use flagstone::options::{CompactFilesOptions, CompactRangeOptions, IngestExternalFileOptions};
use testkit::for_each_seed;

use super::common::{create, referee, temporary};
use super::{World, all};

fn behind() -> IngestExternalFileOptions {
    IngestExternalFileOptions { ingest_behind: true, ..Default::default() }
}

fn ingest_behind(db: &Db, file: &PathBuf) -> flagstone::base::Result<()> {
    db.ingest_external_files(db.default_column_family(), &[file], &behind())
}

fn universal() -> World {
    World::new().set("compaction_style", "kCompactionStyleUniversal")
}

fn compact(db: &Db) {
    let options = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &options).expect("a compaction");
}

fn last_level(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level == Some(6)).count()
}

#[test]
fn existing_keys_win() {
    let worlds = [
        universal().set("allow_ingest_behind", "true"),
        universal().set("cf_allow_ingest_behind", "true"),
    ];
    for mut world in worlds {
        let table = world.table(&["a", "b", "c", "d", "e", "f"], "behind");
        let db = world.open();
        db.put("a", "table").expect("a put");
        db.delete("b").expect("a deletion");
        db.delete_range("c", "d").expect("a deletion");
        db.flush_all().expect("a flush");
        compact(&db);
        db.put("d", "memory").expect("a put");
        assert_eq!(last_level(&db), 0, "it is kept free");
        let before = db.latest_sequence_number();
        ingest_behind(&db, &table).expect("an ingestion");
        assert_eq!(db.latest_sequence_number(), before);
        let expected = "a=table d=memory e=behind f=behind";
        assert_eq!(all(&db), expected);
        compact(&db);
        assert_eq!(all(&db), expected);
        assert_eq!(last_level(&db), 1, "no compaction takes it");
        db.close().expect("closed");
        let db = world.open();
        assert_eq!(all(&db), expected);
        assert!(db.verify(|_| {}).faults.is_empty());
        // Another one has room beside it, but not above or below it.
        let beside = world.table(&["g"], "beside");
        ingest_behind(&db, &beside).expect("an ingestion");
        let across = world.table(&["0", "b"], "across");
        assert_eq!(ingest_behind(&db, &across).expect_err("no room").code(), Code::TryAgain);
        assert_eq!(all(&db), format!("{expected} g=beside"));
    }
}

#[test]
fn a_family_without_a_level_for_it_refuses_it() {
    for (mut world, word) in [
        (World::new(), "keeps no level"),
        (universal(), "keeps no level"),
        (World::new().set("allow_ingest_behind", "true"), "keeps no level"),
    ] {
        let table = world.table(&["a"], "1");
        let db = world.open();
        let error = ingest_behind(&db, &table).expect_err("it is refused");
        assert!(error.code() == Code::InvalidArgument && error.to_string().contains(word));
        assert_eq!(world.own_tables(), 0);
    }
    let leveled = World::new().set("cf_allow_ingest_behind", "true");
    let error = Db::open("/db", &leveled.options).expect_err("it is refused");
    assert!(error.to_string().contains("kCompactionStyleUniversal"), "{error}");
}

#[test]
fn entries_without_sequence_numbers_refuse_it() {
    let world = universal().set("num_levels", "4");
    let db = world.open();
    db.put("a", "1").expect("a put");
    db.flush_all().expect("a flush");
    compact(&db);
    db.close().expect("closed");
    let mut world = world.set("num_levels", "5").set("allow_ingest_behind", "true");
    let table = world.table(&["a", "b"], "behind");
    let db = world.open();
    let error = ingest_behind(&db, &table).expect_err("it is refused");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("without sequence number in level 3"), "{error}");
    assert_eq!(all(&db), "a=1");
}

#[test]
fn no_compaction_writes_to_the_last_level() {
    let world = universal().set("allow_ingest_behind", "true");
    let db = world.open();
    db.put("a", "1").expect("a put");
    db.flush_all().expect("a flush");
    let family = db.default_column_family();
    let tables: Vec<_> = db.live_files().iter().map(|file| file.number).collect();
    let options = CompactFilesOptions::default();
    let error = db.compact_files(family, &tables, 6, &options).expect_err("it is refused");
    assert!(error.to_string().contains("level 6 is kept"), "{error}");
    db.compact_files(family, &tables, 5, &options).expect("a compaction");
    let moving = CompactRangeOptions { change_level: true, target_level: 6, ..Default::default() };
    let error = db.compact_range(family, None, None, &moving).expect_err("it is refused");
    assert!(error.to_string().contains("level 6 is kept"), "{error}");
    assert_eq!(last_level(&db), 0);
}

#[test]
fn what_cannot_lie_behind_is_refused() {
    let mut world = universal().set("allow_ingest_behind", "true");
    let table = world.table(&["a"], "1");
    let db = world.open();
    let family = db.default_column_family();
    let own = IngestExternalFileOptions { allow_db_generated_files: true, ..behind() };
    let error = db.ingest_external_files(family, &[&table], &own).expect_err("it is refused");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let mut group = ExternalFiles::new(family, [&table]);
    group.options = behind();
    group.atomic_replace_range = Some((b"a".to_vec(), b"b".to_vec()));
    let error = db.ingest_together(&[group]).expect_err("it is refused");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert_eq!(all(&db), "");
}

/// Puts, deletions of keys and ranges, flushes and compactions; then a table comes behind.
#[test]
fn a_model_agrees() {
    for_each_seed(30, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = universal()
            .set("allow_ingest_behind", "true")
            .set("level0_file_num_compaction_trigger", "2");
        let key = |number: u32| format!("{number:02}");
        let keys: Vec<_> = (0..40).map(key).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        let table = world.table(&keys, "behind");
        let db = world.open();
        // `None` is a deletion, which hides what comes behind.
        let mut written: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut is_ingested = false;
        for step in 0..200 {
            let number = random.u32(0..40);
            match random.u32(0..20) {
                0..8 => {
                    db.put(key(number), format!("{step}")).expect("a put");
                    written.insert(key(number), Some(format!("{step}")));
                }
                8..12 => {
                    db.delete(key(number)).expect("a deletion");
                    written.insert(key(number), None);
                }
                12 => {
                    db.delete_range(key(number), key(number + 5)).expect("a deletion");
                    (number..number + 5).for_each(|number| {
                        written.insert(key(number), None);
                    });
                }
                13..17 => db.flush_all().expect("a flush"),
                17 => compact(&db),
                _ if step > 100 && !is_ingested => {
                    ingest_behind(&db, &table).expect("an ingestion");
                    is_ingested = true;
                }
                _ => {}
            }
        }
        let expected = (0..40).filter_map(|number| {
            let found = written.get(&key(number)).cloned();
            let value = found.unwrap_or_else(|| is_ingested.then(|| "behind".to_string()))?;
            Some(format!("{}={value}", key(number)))
        });
        assert_eq!(all(&db), expected.collect::<Vec<_>>().join(" "));
        assert!(db.verify(|_| {}).faults.is_empty());
    });
}

#[test]
fn rocksdb_reads_the_database() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let mut options = create();
    options.set_all("compaction_style=kCompactionStyleUniversal;allow_ingest_behind=true").unwrap();
    let path = directory.path().join("db");
    let db = Db::open(&path, &options).expect("a database");
    db.put("a", "table").expect("a put");
    db.flush_all().expect("a flush");
    let table = directory.path().join("1.sst");
    let writer = flagstone::ingest::SstFileWriterOptions::new(&options.cf);
    let mut writer = flagstone::ingest::SstFileWriter::create(&table, &writer).expect("a writer");
    for key in ["a", "b"] {
        writer.put(key, "behind").expect("a put");
    }
    writer.finish().expect("a table");
    ingest_behind(&db, &table).expect("an ingestion");
    db.close().expect("closed");
    referee.ldb(&path, &["checkconsistency"]);
    let scanned = referee.ldb(&path, &["scan", "--try_load_options"]);
    assert_eq!(scanned.trim(), "a : table\nb : behind");
    // Its OPTIONS file says so to RocksDB, too.
    let listed = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let written = listed.filter(|path| path.to_string_lossy().contains("OPTIONS-"));
    let text = written.map(|path| std::fs::read_to_string(path).unwrap()).last().unwrap();
    assert!(text.contains("\n  allow_ingest_behind=true"), "{text}");
}
