//! Whatever copies or moves entries keeps the columns of entities, inside and in blob files.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[path = "common/columns.rs"]
mod columns;
mod common;

use std::path::Path;

use columns::{contents, text};
use common::temporary;
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions, RestoreOptions};
use flagstone::{
    CompactRangeOptions, CompactionFilter, Db, FilterDecision, FilteredKind, Operation, Options,
    SstFileWriter, SstFileWriterOptions, WideColumns,
};

/// Columns inside, and in blob files.
const SETTINGS: [&str; 2] = [
    "disable_auto_compactions=true;WAL_ttl_seconds=3600",
    "disable_auto_compactions=true;WAL_ttl_seconds=3600;enable_blob_files=true;min_blob_size=1000;\
     blob_entity_columns=true;enable_blob_garbage_collection=true;\
     blob_garbage_collection_age_cutoff=1.0;blob_punch_holes=false",
];

const EXPECTED: &str = "ada: =countess born=1815 film=5000 bytes\n\
                        alan: born=1912 portrait=3000 bytes\n\
                        both: =2000 bytes film=2000 bytes\n\
                        plain: =value";

fn open(path: &Path, settings: &str) -> Db {
    let set = |options: &mut Options| options.set_all(settings).expect("settings");
    Db::builder(path).options(set).open().expect("a database")
}

fn fill(db: &Db) {
    db.put_entity("ada", [("born", &b"1815"[..]), ("", b"countess"), ("film", &[7; 5000])])
        .unwrap();
    db.put_entity("alan", [("born", &b"1912"[..]), ("portrait", &[8; 3000])]).unwrap();
    db.put_entity("both", [("", [1; 2000]), ("film", [2; 2000])]).unwrap();
    db.put("plain", "value").unwrap();
}

fn blob_files(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level.is_none()).count()
}

/// A database with [`EXPECTED`] in a table, and then in the log.
fn each_state(mut check: impl FnMut(&Path, &Db, &str)) {
    for settings in SETTINGS {
        for is_flushed in [false, true] {
            let directory = temporary();
            let path = directory.path().join("db");
            let db = open(&path, settings);
            fill(&db);
            if is_flushed {
                db.flush().unwrap();
                assert_eq!(blob_files(&db) > 0, settings.contains("blob_entity"), "{settings}");
            }
            assert_eq!(contents(&db), EXPECTED, "{settings}");
            check(directory.path(), &db, settings);
            assert!(db.verify(|_| {}).faults.is_empty(), "{settings}");
        }
    }
}

#[test]
fn flushes_compactions_and_replays() {
    each_state(|directory, db, settings| {
        db.close().unwrap();
        let db = open(&directory.join("db"), settings);
        assert_eq!(contents(&db), EXPECTED);
        db.flush().unwrap();
        db.compact_range::<&[u8]>(.., &Default::default()).unwrap();
        assert_eq!(contents(&db), EXPECTED);
        assert!(db.verify(|_| {}).faults.is_empty());
    });
}

#[test]
fn checkpoints_and_backups() {
    each_state(|directory, db, settings| {
        db.checkpoint(directory.join("copy")).unwrap();
        assert_eq!(contents(&open(&directory.join("copy"), settings)), EXPECTED);
        let options = BackupEngineOptions::new(directory.join("backups"));
        let backups = BackupEngine::open(options).unwrap();
        let id = backups.create_new_backup(db, &CreateBackupOptions::default()).unwrap();
        backups.verify_backup(id, true).unwrap();
        let restored = directory.join("restored");
        backups
            .restore_db_from_latest_backup(&restored, &restored, &RestoreOptions::default())
            .unwrap();
        assert_eq!(contents(&open(&restored, settings)), EXPECTED);
    });
}

#[test]
fn salvage() {
    each_state(|directory, db, settings| {
        db.close().unwrap();
        let (path, target) = (directory.join("db"), directory.join("salvaged"));
        let mut options = Options::default();
        options.set_all(settings).unwrap();
        let report =
            flagstone::salvage::salvage(&path, &target, &options, &[], &mut |_| {}).unwrap();
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(contents(&open(&target, settings)), EXPECTED);
    });
}

#[test]
fn updates_since() {
    each_state(|directory, db, settings| {
        let replica = open(&directory.join("replica"), settings);
        let mut updates = db.updates_since(0).unwrap();
        while let Some(update) = updates.next_update().unwrap() {
            for operation in update.batch.iter() {
                if let Operation::PutEntity { key: b"alan", entity, .. } = operation.unwrap() {
                    let columns = WideColumns::decode(entity).unwrap();
                    assert_eq!(text(&columns), "born=1912 portrait=3000 bytes");
                }
            }
            replica.write(update.batch).unwrap();
        }
        assert_eq!(contents(&replica), EXPECTED);
    });
}

#[test]
fn tables_from_outside() {
    for settings in SETTINGS {
        let directory = temporary();
        let table = directory.path().join("outside.sst");
        let mut writer = SstFileWriter::create(&table, &SstFileWriterOptions::default()).unwrap();
        writer
            .put_entity("ada", [("born", &b"1815"[..]), ("", b"countess"), ("film", &[7; 5000])])
            .unwrap();
        writer.put_entity("alan", [("born", &b"1912"[..]), ("portrait", &[8; 3000])]).unwrap();
        writer.put_entity("both", [("", [1; 2000]), ("film", [2; 2000])]).unwrap();
        writer.put("plain", "value").unwrap();
        writer.finish().unwrap();
        let db = open(&directory.path().join("db"), settings);
        db.ingest_external_files(&[&table], &Default::default()).unwrap();
        assert_eq!(contents(&db), EXPECTED);
        let all = CompactRangeOptions {
            bottommost_level_compaction: flagstone::BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        db.compact_range::<&[u8]>(.., &all).unwrap();
        assert_eq!(contents(&db), EXPECTED);
        assert_eq!(blob_files(&db) > 0, settings.contains("blob_entity"), "{settings}");
    }
}

/// Large columns are moved out of blob files that are being emptied, and count as garbage once
/// their key is gone.
#[test]
fn columns_in_blob_files_are_collected() {
    let directory = temporary();
    let db = open(directory.path(), SETTINGS[1]);
    fill(&db);
    db.flush().unwrap();
    let old: Vec<_> = db.live_files().into_iter().filter(|file| file.level.is_none()).collect();
    db.delete("both").unwrap();
    db.put_entity("alan", [("born", "1912")]).unwrap();
    db.flush().unwrap();
    let all = CompactRangeOptions {
        bottommost_level_compaction: flagstone::BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    // The first one makes garbage, the second moves what is left out of its way.
    db.compact_range::<&[u8]>(.., &all).unwrap();
    db.compact_range::<&[u8]>(.., &all).unwrap();
    let expected = "ada: =countess born=1815 film=5000 bytes\nalan: born=1912\nplain: =value";
    assert_eq!(contents(&db), expected);
    let left = db.live_files();
    assert!(old.iter().all(|gone| left.iter().all(|file| file.number != gone.number)), "{left:?}");
    assert!(db.verify(|_| {}).faults.is_empty());
    db.delete("ada").unwrap();
    db.flush().unwrap();
    db.compact_range::<&[u8]>(.., &all).unwrap();
    assert_eq!(blob_files(&db), 0);
}

/// Drops the column `film`, and removes entities without a column.
struct DropFilms;

impl CompactionFilter for DropFilms {
    fn name(&self) -> &str {
        "DropFilms"
    }

    fn filter(&self, _: u32, _: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        if kind != FilteredKind::WideColumnEntity {
            return FilterDecision::Keep;
        }
        let columns = WideColumns::decode(value).unwrap();
        let kept = columns.iter().filter(|(name, _)| name != b"film");
        let shortened = kept.map(|(name, value)| (name, &value[..value.len().min(4)]));
        FilterDecision::change_columns(shortened).unwrap()
    }
}

#[test]
fn filters_see_and_change_columns() {
    for settings in SETTINGS {
        let directory = temporary();
        let set = |options: &mut Options| {
            options.set_all(settings).unwrap();
            options.cf.compaction_filter = Some(std::sync::Arc::new(DropFilms));
        };
        let db = Db::builder(directory.path()).options(set).open().unwrap();
        fill(&db);
        db.flush().unwrap();
        db.compact_range::<&[u8]>(.., &Default::default()).unwrap();
        let expected = "ada: =coun born=1815\n\
                        alan: born=1912 portrait=\u{8}\u{8}\u{8}\u{8}\n\
                        both: =\u{1}\u{1}\u{1}\u{1}\n\
                        plain: =value";
        assert_eq!(contents(&db), expected, "{settings}");
        assert!(db.verify(|_| {}).faults.is_empty());
    }
}
