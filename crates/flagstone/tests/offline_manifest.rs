//! Changes to the MANIFEST of a closed database.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::collections::BTreeMap;
use std::path::Path;

use flagstone::base::{Code, FileNumber, SubCode, Temperature};
use flagstone::db::{Db, OfflineManifest, TableFacts};
use flagstone::options::{ColumnFamilyOptions, Options};

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    options
        .set_all("disable_auto_compactions=true;enable_blob_files=true;min_blob_size=100")
        .unwrap();
    options
}

/// Two families with a table each; the table of `other` refers to a blob file. A value in the WAL.
fn made(path: &Path) -> Options {
    let options = options();
    let db = Db::open(path, &options).unwrap();
    let other = db.create_column_family("other", &options.cf).unwrap();
    db.put("a", "1").unwrap();
    db.put_cf(&other, "large", "v".repeat(200)).unwrap();
    db.flush_all().unwrap();
    db.put("logged", "2").unwrap();
    db.close().unwrap();
    options
}

fn families(options: &Options) -> [(&'static str, ColumnFamilyOptions); 2] {
    [("default", options.cf.clone()), ("other", options.cf.clone())]
}

fn opened(path: &Path, options: &Options) -> OfflineManifest {
    OfflineManifest::open(path, options, &families(options)).unwrap()
}

#[test]
fn tables_of_several_families_change_together() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let mut options = made(&path);
    options.set("file_checksum_gen_factory", "FileChecksumGenCrc32cFactory").unwrap();
    let mut manifest = opened(&path, &options);
    let tables = manifest.tables();
    let named: Vec<_> = tables.iter().map(|table| (&*table.column_family, table.level)).collect();
    assert_eq!(named, [("default", 0), ("other", 0)]);
    let mut changes = BTreeMap::new();
    for table in &tables {
        let checksum = manifest.checksum_of(table).unwrap();
        assert!(checksum.is_some());
        let facts = TableFacts { temperature: Some(Temperature::COLD), checksum };
        changes.insert(table.meta.number, facts);
    }
    // One that is not there: then none changes.
    let mut with_stranger = changes.clone();
    with_stranger.insert(FileNumber(999), TableFacts::default());
    let refused = manifest.update_tables(&with_stranger).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(manifest.tables().iter().all(|table| !table.meta.temperature.is_known()));
    manifest.update_tables(&changes).unwrap();
    drop(manifest);
    let db = Db::open(&path, &options).unwrap();
    let files = db.live_files();
    let cold = files.iter().filter(|file| file.temperature == Temperature::COLD);
    assert_eq!(cold.count(), 2);
    db.verify_file_checksums().unwrap();
    assert_eq!(db.get("logged").unwrap().unwrap(), "2");
}

#[test]
fn what_a_removed_table_alone_referred_to_goes_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let options = made(&path);
    let mut manifest = opened(&path, &options);
    let number = manifest.tables()[1].meta.number;
    let removed = manifest.remove_table(number).unwrap();
    assert_eq!((removed.column_family.as_str(), removed.meta.number), ("other", number));
    assert!(manifest.remove_table(number).is_err());
    drop(manifest);
    let db = Db::open_with_families(&path, &options, &families(&options)).unwrap();
    let other = db.column_family("other").unwrap();
    assert!(db.get_cf(&other, "large").unwrap().is_none());
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    // Writes and compactions go on.
    db.put_cf(&other, "large", "w".repeat(200)).unwrap();
    db.flush_all().unwrap();
    db.compact_range(&other, None, None, &Default::default()).unwrap();
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn nobody_opens_the_database_meanwhile() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let options = made(&path);
    let manifest = opened(&path, &options);
    let refused = Db::open(&path, &options).err().unwrap();
    assert_eq!((refused.code(), refused.subcode()), (Code::Busy, SubCode::LockHeld));
    drop(manifest);
    let db = Db::open(&path, &options).unwrap();
    let refused = OfflineManifest::open(&path, &options, &families(&options)).err().unwrap();
    assert_eq!(refused.subcode(), SubCode::LockHeld);
    drop(db);
    let refused = OfflineManifest::open(&path, &options, &families(&options)[..1]).err().unwrap();
    assert!(refused.to_string().contains("other"), "{refused}");
    let none = scratch.path().join("none");
    let refused = OfflineManifest::open(&none, &options, &families(&options)).err().unwrap();
    assert!(refused.to_string().contains("there is no database here"), "{refused}");
}
