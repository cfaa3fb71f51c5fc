//! Stories of column families that go from one database to another, and of what is clipped.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{create, dump_family, entries, entries_backwards, referee, temporary};
use flagstone::WriteBatch;
use flagstone::base::Code;
use flagstone::base::file_name::FileKind;
use flagstone::db::{ColumnFamily, Db, ExportedFamily};
use flagstone::env::Env;
use flagstone::options::{
    ColumnFamilyOptions, CompactRangeOptions, FlushOptions, ImportColumnFamilyOptions, Options,
    ReadOptions, load_latest,
};
use testkit::for_each_seed;

fn value(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| b'a' + (at * 31 + seed * 7) as u8 % 23).collect()
}

fn with_blobs() -> Options {
    let mut options = create();
    options
        .set_all("enable_blob_files=true;min_blob_size=1000;disable_auto_compactions=true")
        .unwrap();
    options
}

fn copied() -> ImportColumnFamilyOptions {
    ImportColumnFamilyOptions::default()
}

fn moved() -> ImportColumnFamilyOptions {
    let mut options = ImportColumnFamilyOptions::default();
    options.move_files = true;
    options
}

/// Values in tables and in blob files, deletions of keys and ranges, at several levels.
fn fill(db: &Db, family: &ColumnFamily, prefix: &str) {
    let key = |i: usize| format!("{prefix}{i:04}");
    for i in 0..200 {
        db.put_cf(family, key(i), value(i, if i % 3 == 0 { 3000 } else { 50 })).unwrap();
    }
    db.flush(family, &FlushOptions::default()).unwrap();
    db.compact_range(family, None, None, &CompactRangeOptions::default()).unwrap();
    db.delete_range_cf(family, key(20), key(40)).unwrap();
    db.flush(family, &FlushOptions::default()).unwrap();
    for i in 30..60 {
        db.put_cf(family, key(i), value(i + 1, if i % 2 == 0 { 2000 } else { 30 })).unwrap();
    }
    db.delete_cf(family, key(7)).unwrap();
    db.flush(family, &FlushOptions::default()).unwrap();
    db.put_cf(family, key(8), "in memory").unwrap();
}

/// A table's level, bounds and sequence numbers.
type Place = (usize, [Vec<u8>; 2], (u64, u64));

/// The places of a family's tables.
fn shape(db: &Db, name: &str) -> Vec<Place> {
    let files = db.live_files().into_iter().filter(|file| file.column_family == name);
    files.filter_map(|f| Some((f.level?, [f.smallest, f.largest], f.sequences))).collect()
}

fn assert_sound(db: &Db) {
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
    let report = db.check().expect("a listing");
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn an_imported_family_is_the_one_that_was_exported() {
    for (blobs, how) in [(false, copied()), (true, copied()), (false, moved()), (true, moved())] {
        let directory = temporary();
        let at = |name: &str| directory.path().join(name);
        let mut options = with_blobs();
        options.cf.enable_blob_files = Some(blobs);
        let source = Db::open(at("source"), &options).unwrap();
        let family = source.create_column_family("users", &options.cf).unwrap();
        source.put("noise", "1").unwrap();
        source.create_column_family("other", &options.cf).unwrap();
        fill(&source, &family, "key");
        let exported = source.export_column_family(&family, at("export")).unwrap();
        let expected = entries(&source, &family);
        let kept = shape(&source, "users");
        drop((source, family));
        let alone = Db::open_read_only(at("export"), &create()).unwrap();
        assert_eq!(
            alone.column_families().iter().map(|it| it.name()).collect::<Vec<_>>(),
            ["default", "users"]
        );
        assert!(entries(&alone, alone.default_column_family()).is_empty());
        drop(alone);

        let target = Db::open(at("target"), &options).unwrap();
        target.put("other", "noise").unwrap();
        let sources = std::slice::from_ref(&exported);
        let imported =
            target.create_column_family_with_import("people", &options.cf, sources, &how).unwrap();
        assert!(entries(&target, &imported) == expected, "blobs {blobs}, {how:?}");
        assert_eq!(shape(&target, "people"), kept, "levels and sequence numbers");
        assert_eq!(at("export").exists(), !how.move_files);
        assert_sound(&target);

        // Later writes win, also over a snapshot's back and across a reopening.
        target.put_cf(&imported, "key0100", "later").unwrap();
        target.flush_all().unwrap();
        target.compact_range(&imported, None, None, &CompactRangeOptions::default()).unwrap();
        drop((target, imported));
        let target = Db::open_with_families(
            at("target"),
            &options,
            &[("default", options.cf.clone()), ("people", options.cf.clone())],
        )
        .unwrap();
        let imported = target.column_family("people").unwrap();
        let mut changed = expected.clone();
        changed.iter_mut().find(|(key, _)| key == b"key0100").unwrap().1 = b"later".to_vec();
        assert!(entries(&target, &imported) == changed);
        assert_eq!(target.get("other").unwrap().unwrap(), "noise");
        assert_sound(&target);
    }
}

#[test]
fn rocksdb_reads_an_export_and_an_imported_family() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let options = with_blobs();
    let source = Db::open(at("source"), &options).unwrap();
    let family = source.create_column_family("users", &options.cf).unwrap();
    fill(&source, &family, "key");
    let exported = source.export_column_family(&family, at("export")).unwrap();
    let expected = dump_family(&source, &family);
    assert!(referee.scan(&at("export"), "users") == expected);
    let target = Db::open(at("target"), &options).unwrap();
    target.put("other", "noise").unwrap();
    // Ids and numbers are others than in the source.
    for name in ["one", "two"] {
        target.create_column_family(name, &options.cf).unwrap();
    }
    target.create_column_family_with_import("users", &options.cf, &[exported], &moved()).unwrap();
    target.close().unwrap();
    drop(target);
    referee.ldb(&at("target"), &["checkconsistency"]);
    referee.verify_tables(&at("target"));
    assert!(referee.scan(&at("target"), "users") == expected);
    referee.ldb(&at("target"), &["compact", "--column_family=users", "--try_load_options"]);
    assert!(referee.scan(&at("target"), "users") == expected);
}

#[test]
fn a_closed_database_of_rocksdb_is_imported() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    for fixture in ["basic", "blob-lz4", "universal"] {
        let db = Db::open(at(fixture), &create()).unwrap();
        let copy = at("copy");
        common::copy_directory(&common::fixtures().join(fixture), &copy);
        let reader = common::open_as_written(&copy, false);
        let family = reader.default_column_family().clone();
        let options = (*family.options()).clone();
        let exported = reader.export_column_family(&family, at("export")).unwrap();
        let expected = entries(&reader, &family);
        drop((reader, family));
        let imported =
            db.create_column_family_with_import("theirs", &options, &[exported], &moved()).unwrap();
        assert!(entries(&db, &imported) == expected, "{fixture}");
        assert_sound(&db);
        std::fs::remove_dir_all(copy).unwrap();
    }
}

/// Blob files have other numbers, also those that columns of entities lie in.
#[test]
fn large_columns_of_entities_are_imported() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let mut options = with_blobs();
    options.set("blob_entity_columns", "true").unwrap();
    let source = Db::open(at("source"), &options).unwrap();
    let family = source.create_column_family("people", &options.cf).unwrap();
    let columns = [(&b""[..], value(1, 3000)), (b"born", value(2, 4)), (b"face", value(3, 2000))];
    let mut batch = WriteBatch::new();
    batch.put_entity_cf(&family, "ada", columns).unwrap();
    batch.put_entity_cf(&family, "alan", [("born", "1912")]).unwrap();
    batch.put_cf(&family, "plain", value(4, 5000)).unwrap();
    source.write(batch).unwrap();
    let exported = source.export_column_family(&family, at("export")).unwrap();
    let target = Db::open(at("target"), &options).unwrap();
    let import = |name: &str| {
        let sources = std::slice::from_ref(&exported);
        target.create_column_family_with_import(name, &options.cf, sources, &copied()).unwrap()
    };
    let reads = ReadOptions::default();
    for imported in [import("one"), import("two")] {
        for key in ["ada", "alan", "plain"] {
            let expected = source.get_entity(&reads, &family, key).unwrap().unwrap();
            let found = target.get_entity(&reads, &imported, key).unwrap().unwrap();
            assert!(found == expected, "{key}");
        }
    }
    let blobs = |db: &Db| db.live_files().iter().filter(|file| file.level.is_none()).count();
    assert!(blobs(&source) > 0 && blobs(&target) == 2 * blobs(&source));
    assert_sound(&target);
    let everything = CompactRangeOptions::default();
    target.compact_range(&target.column_family("two").unwrap(), None, None, &everything).unwrap();
    assert_sound(&target);
}

#[test]
fn several_exports_become_one_family() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let options = with_blobs();
    let mut sources = Vec::new();
    let mut expected = Vec::new();
    for name in ["alpha", "beta", "gamma"] {
        let db = Db::open(at(name), &options).unwrap();
        fill(&db, db.default_column_family(), name);
        let family = db.default_column_family().clone();
        sources.push(db.export_column_family(&family, at(&format!("{name}-export"))).unwrap());
        expected.extend(entries(&db, &family));
    }
    let target = Db::open(at("target"), &options).unwrap();
    let import = |sources: &[ExportedFamily]| {
        target.create_column_family_with_import("all", &options.cf, sources, &copied())
    };
    let twice = [sources[0].clone(), sources[1].clone(), sources[0].clone()];
    let error = import(&twice).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("lie in the range"), "{error}");
    let all = import(&sources).unwrap();
    assert!(entries(&target, &all) == expected);
    assert_sound(&target);
    target.compact_range(&all, None, None, &CompactRangeOptions::default()).unwrap();
    assert!(entries(&target, &all) == expected);
}

#[test]
fn snapshots_and_later_sequence_numbers_are_kept_apart() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let source = Db::open(at("source"), &create()).unwrap();
    for i in 0..1000 {
        source.put(format!("key{i}"), "old").unwrap();
    }
    let family = source.default_column_family().clone();
    let exported = source.export_column_family(&family, at("export")).unwrap();
    let target = Db::open(at("target"), &create()).unwrap();
    target.put("first", "1").unwrap();
    let before = target.latest_sequence_number();
    let snapshot = ReadOptions { snapshot: Some(target.snapshot()), ..ReadOptions::default() };
    let imported = target
        .create_column_family_with_import("new", &create().cf, &[exported], &copied())
        .unwrap();
    assert!(target.latest_sequence_number() >= 1000 && before < 10);
    target.put_cf(&imported, "key5", "new").unwrap();
    assert_eq!(target.get_cf(&imported, "key5").unwrap().unwrap(), "new");
    assert_eq!(target.get_cf(&imported, "key6").unwrap().unwrap(), "old");
    let first = target.get_with(&snapshot, target.default_column_family(), "first").unwrap();
    assert_eq!(first.unwrap(), "1");
}

/// What `damage` does to an export is found, and leaves nothing in the database.
fn refused(damage: impl FnOnce(&Path), code: Code, word: &str) {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let options = with_blobs();
    let source = Db::open(at("source"), &options).unwrap();
    let family = source.default_column_family().clone();
    fill(&source, &family, "key");
    let exported = source.export_column_family(&family, at("export")).unwrap();
    // The original has the same inodes.
    for entry in std::fs::read_dir(at("export")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    damage(&at("export"));
    let target = Db::open(at("target"), &options).unwrap();
    let files = || {
        let listed = std::fs::read_dir(at("target")).unwrap().map(|entry| entry.unwrap().path());
        let is_data = |path: &Path| {
            let kind = FileKind::parse(path.file_name().unwrap().to_str().unwrap());
            matches!(kind, Some(FileKind::Table(_) | FileKind::Blob(_)))
        };
        listed.filter(|path| is_data(path)).count()
    };
    let mut how = moved();
    how.verify_checksums = true;
    let outcome = target.create_column_family_with_import("new", &options.cf, &[exported], &how);
    let error = outcome.map(|_| ()).unwrap_err();
    assert!(error.code() == code && error.to_string().contains(word), "{error}");
    assert!(error.path().is_some(), "{error}");
    assert!(target.column_family("new").is_none());
    assert_eq!(files(), 0, "{error}");
    assert!(at("export").exists());
    target.put("key", "1").unwrap();
    assert_sound(&target);
}

fn file(directory: &Path, extension: &str) -> std::path::PathBuf {
    let listed = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        listed.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    found.sort();
    found.remove(0)
}

fn overwrite(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_or_foreign_export_is_refused() {
    let missing = |extension: &'static str| {
        move |export: &Path| std::fs::remove_file(file(export, extension)).unwrap()
    };
    refused(missing("sst"), Code::Corruption, "missing");
    refused(missing("blob"), Code::Corruption, "missing");
    refused(
        |export| std::fs::remove_file(export.join("CURRENT")).unwrap(),
        Code::InvalidArgument,
        "interrupted",
    );
    refused(
        |export| {
            let table = file(export, "sst");
            let bytes = std::fs::read(&table).unwrap();
            std::fs::write(&table, &bytes[..bytes.len() - 7]).unwrap();
        },
        Code::Corruption,
        "bytes",
    );
    refused(|export| overwrite(&file(export, "sst"), |_| 20), Code::Corruption, "checksum");
    refused(|export| overwrite(&file(export, "sst"), |size| size - 4), Code::Corruption, "");
    refused(|export| overwrite(&file(export, "blob"), |_| 8), Code::Corruption, "family");
    refused(|export| overwrite(&file(export, "blob"), |size| size / 2), Code::Corruption, "");
    refused(
        |export| {
            let current = std::fs::read_to_string(export.join("CURRENT")).unwrap();
            overwrite(&export.join(current.trim()), |size| size / 2);
        },
        Code::Corruption,
        "",
    );
    // A table of another one under its name.
    refused(
        |export| {
            let other = export.with_extension("other");
            let db = Db::open(&other, &create()).unwrap();
            db.put("zzz", "1").unwrap();
            db.flush_all().unwrap();
            drop(db);
            std::fs::copy(file(&other, "sst"), file(export, "sst")).unwrap();
        },
        Code::Corruption,
        "bytes",
    );
}

#[test]
fn an_import_says_what_does_not_fit() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let options = create();
    let source = Db::open(at("source"), &options).unwrap();
    for name in ["cats", "dogs"] {
        let family = source.create_column_family(name, &options.cf).unwrap();
        source.put_cf(&family, "tom", name).unwrap();
    }
    source.checkpoint(at("copy")).unwrap();
    let target = Db::open(at("target"), &options).unwrap();
    let import = |name: &str, from: ExportedFamily, options: &ColumnFamilyOptions| {
        let import = moved();
        target.create_column_family_with_import(name, options, &[from], &import)
    };
    let of = |directory: &str, name: Option<&str>| ExportedFamily {
        column_family: name.map(str::to_string),
        ..ExportedFamily::new(at(directory))
    };
    let says = |outcome: flagstone::Result<ColumnFamily>, code: Code, word: &str| {
        let error = outcome.map(|_| ()).unwrap_err();
        assert!(error.code() == code && error.to_string().contains(word), "{error}");
    };
    let cf = &options.cf;
    says(import("new", of("nowhere", None), cf), Code::InvalidArgument, "no export");
    says(import("new", of("copy", None), cf), Code::InvalidArgument, "default, cats, dogs");
    says(import("new", of("copy", Some("cows")), cf), Code::InvalidArgument, "'cows'");
    says(
        import("new", of("copy", Some("cats")), cf),
        Code::InvalidArgument,
        "another column family",
    );
    says(import("default", of("copy", Some("cats")), cf), Code::InvalidArgument, "already exists");
    says(import("", of("copy", Some("cats")), cf), Code::InvalidArgument, "empty");
    says(import("new", of("source", Some("cats")), cf), Code::Busy, "");
    let mut reversed = ColumnFamilyOptions::default();
    reversed.set("comparator", "rocksdb.ReverseBytewiseComparator").unwrap();
    says(import("new", of("copy", Some("cats")), &reversed), Code::InvalidArgument, "comparator");
    let nothing = target.create_column_family_with_import("new", cf, &[], &copied());
    says(nothing, Code::InvalidArgument, "nothing to import");
    source.put_cf(&source.column_family("cats").unwrap(), "late", "1").unwrap();
    source.close().unwrap();
    says(import("new", of("source", Some("cats")), cf), Code::InvalidArgument, "WAL");
    let copy = [of("copy", Some("cats"))];
    let new = target.create_column_family_with_import("new", cf, &copy, &copied()).unwrap();
    assert_eq!(target.get_cf(&new, "tom").unwrap().unwrap(), "cats");
}

/// The WALs lie elsewhere, or have entries of another family, which `move_files` would remove.
#[test]
fn entries_in_wals_are_not_left_behind() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let target = Db::open(at("target"), &create()).unwrap();
    let import = |from: &str, name: &str, how: &ImportColumnFamilyOptions| {
        let source = ExportedFamily {
            column_family: Some(name.to_string()),
            ..ExportedFamily::new(at(from))
        };
        target.create_column_family_with_import(from, &create().cf, &[source], how).map(|_| ())
    };
    let mut elsewhere = create();
    elsewhere.set("wal_dir", at("wals").to_str().unwrap()).unwrap();
    let source = Db::open(at("apart"), &elsewhere).unwrap();
    source.put("table", "1").unwrap();
    source.flush_all().unwrap();
    source.put("wal", "1").unwrap();
    source.close().unwrap();
    let error = import("apart", "default", &copied()).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.path().unwrap().starts_with(at("wals")), "{error}");

    // RocksDB's OPTIONS of a copy name the original as the directory of WALs.
    let source = Db::open(at("original"), &create()).unwrap();
    source.put("table", "1").unwrap();
    source.flush_all().unwrap();
    let default = source.default_column_family().clone();
    source.export_column_family(&default, at("copy")).unwrap();
    source.put("wal", "1").unwrap();
    source.close().unwrap();
    let options = load_latest(&Env::os(), &at("copy")).unwrap().unwrap().path;
    let text = std::fs::read_to_string(&options).unwrap();
    let original = at("original").display().to_string();
    let named = format!("[DBOptions]\n  wal_dir={original}\n");
    assert!(text.contains("[DBOptions]\n") && !text.contains("wal_dir=/"));
    std::fs::write(&options, text.replace("[DBOptions]\n", &named)).unwrap();
    import("copy", "default", &copied()).unwrap();

    let source = Db::open(at("shared"), &create()).unwrap();
    source.put("wal", "1").unwrap();
    let cats = source.create_column_family("cats", &create().cf).unwrap();
    source.put_cf(&cats, "tom", "1").unwrap();
    source.flush(&cats, &FlushOptions::default()).unwrap();
    source.close().unwrap();
    let error = import("shared", "cats", &moved()).unwrap_err();
    assert!(error.to_string().contains("entries of this WAL"), "{error}");
    import("shared", "cats", &copied()).unwrap();
    let source = Db::open(at("shared"), &create()).unwrap();
    assert_eq!(source.get("wal").unwrap().unwrap(), "1");
}

#[test]
fn a_database_that_is_open_for_reading_exports_what_is_in_tables() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let db = Db::open(at("db"), &create()).unwrap();
    db.put("table", "1").unwrap();
    db.flush_all().unwrap();
    let export = |name: &str| {
        let reader = Db::open_read_only(at("db"), &create()).unwrap();
        let family = reader.default_column_family().clone();
        reader.export_column_family(&family, at(name)).map(|_| ())
    };
    export("export").unwrap();
    let exported = Db::open(at("export"), &create()).unwrap();
    assert_eq!(exported.get("table").unwrap().unwrap(), "1");
    let error = export("export").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    db.put("wal", "2").unwrap();
    let error = export("late").unwrap_err();
    assert_eq!(error.code(), Code::NotSupported, "{error}");
    assert!(!at("late").exists());
    let reader = Db::open_read_only(at("db"), &create()).unwrap();
    let (family, how) = (reader.default_column_family(), copied());
    let error = reader.clip_column_family(family, b"a", b"b").unwrap_err();
    assert_eq!(error.code(), Code::NotSupported, "{error}");
    let source = [ExportedFamily::new(at("export"))];
    let imported = reader.create_column_family_with_import("new", &create().cf, &source, &how);
    assert_eq!(imported.map(|_| ()).unwrap_err().code(), Code::NotSupported);
}

#[test]
fn what_is_clipped_is_gone_from_the_disk() {
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal"] {
        let directory = temporary();
        let mut options = with_blobs();
        options.set("compaction_style", style).unwrap();
        options.set("target_file_size_base", "20000").unwrap();
        let db = Db::open(directory.path(), &options).unwrap();
        let family = db.default_column_family().clone();
        fill(&db, &family, "key");
        let expected: Vec<_> = entries(&db, &family)
            .into_iter()
            .filter(|(key, _)| (&b"key0025"[..]..b"key0120").contains(&&key[..]))
            .collect();
        db.clip_column_family(&family, b"key0025", b"key0120").unwrap();
        assert!(entries(&db, &family) == expected, "{style}");
        for file in db.live_files().into_iter().filter(|file| file.level.is_some()) {
            assert!(file.smallest[..] >= b"key0025"[..], "{style}: {file:?}");
            assert!(file.largest[..] < b"key0120"[..], "{style}: {file:?}");
        }
        assert_sound(&db);
        // Nothing is left to do.
        let tables = |db: &Db| db.live_files().iter().map(|file| file.number).collect::<Vec<_>>();
        let before = tables(&db);
        db.clip_column_family(&family, b"key0025", b"key0120").unwrap();
        assert_eq!(tables(&db), before);
        let error = db.clip_column_family(&family, b"b", b"b").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}

/// Of any range, all that lies in it is kept, and nothing else.
#[test]
fn a_model_of_clipping_agrees() {
    let styles = ["kCompactionStyleLevel", "kCompactionStyleUniversal", "kCompactionStyleFIFO"];
    for_each_seed(30, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut options = Options { env: Env::memory(), ..create() };
        options.set("compaction_style", styles[seed as usize % 3]).unwrap();
        options.set("target_file_size_base", "2000").unwrap();
        let db = Db::open("/db", &options).unwrap();
        let family = db.default_column_family();
        let mut model = BTreeMap::new();
        let key = |number: u32| format!("{number:03}").into_bytes();
        for round in 0..4 {
            for _ in 0..150 {
                let number = random.u32(0..300);
                match random.u32(0..10) {
                    0 => {
                        let end = (number + 20).min(300);
                        db.delete_range(key(number), key(end)).unwrap();
                        model.retain(|at, _| *at < key(number) || *at >= key(end));
                    }
                    1 => db.flush_all().unwrap(),
                    _ => {
                        let value = value(number as usize + round, 40);
                        db.put(key(number), &value).unwrap();
                        model.insert(key(number), value);
                    }
                }
            }
            // Now and then a bound is a key, the first, the last, or beyond all.
            let (begin, end) = (key(random.u32(0..150)), key(random.u32(150..320)));
            db.clip_column_family(family, &begin, &end).unwrap();
            model.retain(|at, _| *at >= begin && *at < end);
            let expected: Vec<_> = model.clone().into_iter().collect();
            assert!(entries(&db, family) == expected, "{begin:?} to {end:?}");
            assert_eq!(entries_backwards(&db, family), expected);
        }
        assert_sound(&db);
    });
}

#[test]
fn a_snapshot_sees_what_was_clipped() {
    let directory = temporary();
    let db = Db::open(directory.path(), &create()).unwrap();
    let family = db.default_column_family().clone();
    for i in 0..100 {
        db.put(format!("key{i:02}"), "1").unwrap();
    }
    let before = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    db.clip_column_family(&family, b"key10", b"key20").unwrap();
    assert_eq!(entries(&db, &family).len(), 10);
    for key in 0..100 {
        let found = db.get_with(&before, &family, format!("key{key:02}")).unwrap();
        assert_eq!(found.unwrap(), "1");
    }
}
