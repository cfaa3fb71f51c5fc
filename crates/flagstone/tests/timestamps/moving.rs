//! Copies of databases with timestamps, and what is refused of them.

use std::path::Path;

use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::base::timestamp::from_u64;
use flagstone::{
    Code, Comparator, Db, ImportColumnFamilyOptions, SstFileWriter, SstFileWriterOptions,
};

fn open(path: &Path, persists: bool) -> Db {
    let stamped = move |family: &mut flagstone::ColumnFamilyOptions| {
        family.comparator = Comparator::BytewiseU64Ts;
        family.settings.persist_user_defined_timestamps = persists;
        family.settings.enable_blob_files = Some(true);
        family.settings.min_blob_size = Some(1000);
    };
    Db::builder(path).column_family("stamped", stamped).open().unwrap()
}

fn open_again(path: &Path) -> Db {
    let stamped = |family: &mut flagstone::ColumnFamilyOptions| {
        family.comparator = Comparator::BytewiseU64Ts;
    };
    Db::builder(path)
        .column_family("stamped", stamped)
        .column_family("again", stamped)
        .open()
        .unwrap()
}

/// Versions in a table, in a blob file and in a log.
fn fill(db: &Db) {
    let family = db.column_family("stamped").unwrap();
    family.put_with_timestamp("a", from_u64(3), vec![3; 3000]).unwrap();
    family.put_with_timestamp("b", from_u64(4), "4").unwrap();
    family.flush().unwrap();
    family.increase_full_history_ts_low(from_u64(3)).unwrap();
    family.put_with_timestamp("a", from_u64(5), "5").unwrap();
    family.delete_range_with_timestamp("b".."c", from_u64(6)).unwrap();
}

fn check(db: &Db, name: &str, low: u64) {
    let family = db.column_family(name).unwrap();
    let sizes = |at: u64| {
        let view = family.as_of(from_u64(at));
        ["a", "b"].map(|key| view.get(key).unwrap().map(|value| value.len()))
    };
    assert_eq!(sizes(4), [Some(3000), Some(1)]);
    assert_eq!(sizes(6), [Some(1), None]);
    let known = family.full_history_ts_low().unwrap();
    assert_eq!(known.unwrap_or_else(|| vec![0; 8]), from_u64(low));
    let checked = family.as_of(from_u64(2)).get("a");
    assert_eq!(checked.is_err(), low > 2, "{checked:?}");
}

#[test]
fn copies_keep_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let db = open(&at("db"), true);
    fill(&db);
    check(&db, "stamped", 3);
    db.checkpoint(at("checkpoint")).unwrap();
    check(&open(&at("checkpoint"), true), "stamped", 3);

    let backups = BackupEngine::open(BackupEngineOptions::new(at("backups"))).unwrap();
    let request = CreateBackupOptions::default();
    let id = backups.create_new_backup(&db, &request).unwrap();
    backups.restore_db_from_backup(id, at("restored"), at("restored"), &<_>::default()).unwrap();
    check(&open(&at("restored"), true), "stamped", 3);

    let exported = db.column_family("stamped").unwrap().export(at("exported")).unwrap();
    let stamped = |family: &mut flagstone::ColumnFamilyOptions| {
        family.comparator = Comparator::BytewiseU64Ts;
    };
    let how = ImportColumnFamilyOptions::default();
    db.create_column_family_with_import("again", stamped, &[exported], &how).unwrap();
    check(&db, "again", 3);
    drop(db);
    check(&open_again(&at("db")), "again", 3);
}

#[test]
fn tables_without_their_timestamps_are_not_made_or_taken_in() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let db = open(&at("db"), false);
    let family = db.column_family("stamped").unwrap();
    let mut options = SstFileWriterOptions::default();
    options.family.comparator = Comparator::BytewiseU64Ts;
    let table = at("table.sst");
    let mut writer = SstFileWriter::create(&table, &options).unwrap();
    writer.put_with_timestamp("k", from_u64(1), "v").unwrap();
    writer.finish().unwrap();
    let refused = family.ingest_external_files(&[&table], &<_>::default()).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported, "{refused}");
    options.family.persist_user_defined_timestamps = false;
    let refused = SstFileWriter::create(&table, &options).map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported, "{refused}");
}
