//! Databases and OPTIONS files of RocksDB's releases from 5.0 on.
//!
//! `scripts/releases.sh` makes more of both, with whatever releases there are.

mod common;

use std::path::{Path, PathBuf};

use common::{copy_directory, dump, open_as_written, referee, temporary};
use flagstone::db::Db;
use flagstone::env::{Env, IoMode};
use flagstone::options::file::{parse, print};
use flagstone::options::{ColumnFamilyOptions, LoadedOptions, load_latest};

fn below_fixtures(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let entries = std::fs::read_dir(&root).expect("the fixtures");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// An OPTIONS file of each release, by the release's number.
fn options_files() -> Vec<(String, String)> {
    let read = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_str().expect("text");
        let release = name.strip_prefix("OPTIONS-").expect("an OPTIONS file").to_string();
        (release, std::fs::read_to_string(path).expect("text"))
    };
    let files: Vec<_> = below_fixtures("options").iter().map(read).collect();
    for major in 5..=11 {
        let prefix = format!("{major}.");
        assert!(
            files.iter().any(|(release, _)| release.starts_with(&prefix)),
            "none of release {major}"
        );
    }
    files
}

/// The options, as from the directory of a database.
fn load(text: &str) -> LoadedOptions {
    let (env, directory) = (Env::memory(), Path::new("/written"));
    env.fs.create_directory(directory).expect("a directory");
    let file = env
        .fs
        .create_writable(&directory.join("OPTIONS-000007"), IoMode::Buffered)
        .expect("a file");
    file.write_at(0, text.as_bytes()).expect("a write");
    load_latest(&env, directory).unwrap_or_else(|error| panic!("{error}")).expect("there is one")
}

/// Text as this engine writes it.
fn printed(loaded: &LoadedOptions) -> String {
    let families: Vec<_> =
        loaded.families.iter().map(|(name, family)| (name.as_str(), family)).collect();
    print(&loaded.options, &families)
}

/// A new database with these options.
fn create(env: &Env, path: &Path, loaded: &LoadedOptions) -> Db {
    let mut options = loaded.options.clone();
    // Old releases name the directory that their database was in.
    options.wal_dir.clear();
    options.env = env.clone();
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    let families: Vec<(&str, ColumnFamilyOptions)> =
        loaded.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    Db::open_with_families(path, &options, &families).unwrap_or_else(|error| panic!("{error}"))
}

fn fill(db: &Db) {
    let words = db.column_family("words").expect("a family");
    for number in 0..20 {
        db.put(format!("key{number}"), [b'a'; 300]).expect("a put");
        db.merge_cf(&words, format!("word{}", number % 7), format!("part {number}"))
            .expect("a merge");
    }
    db.flush(&words, &Default::default()).expect("a flush");
}

/// RocksDB's databases of six releases, one of which did not open.
#[test]
fn databases_of_releases_read_as_they_were_written() {
    let all = below_fixtures("rocksdb-releases");
    let expected =
        std::fs::read_to_string(all.last().expect("the contents")).expect("the contents");
    let databases: Vec<_> = all.into_iter().filter(|path| path.is_dir()).collect();
    assert!(databases.len() >= 6, "{databases:?}");
    for path in databases {
        let db = open_as_written(&path, true);
        assert!(dump(&db) == expected, "{} differs", path.display());
        drop(db);
        let directory = temporary();
        let copy = directory.path().join("db");
        copy_directory(&path, &copy);
        let db = open_as_written(&copy, false);
        db.compact_range(db.default_column_family(), None, None, &Default::default())
            .expect("a compaction");
        assert!(dump(&db) == expected, "{} differs after a compaction", path.display());
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{}: {:?}", path.display(), report.faults);
        db.close().expect("a clean close");
        drop(db);
        assert!(
            dump(&open_as_written(&copy, true)) == expected,
            "{} differs when reopened",
            path.display()
        );
    }
}

/// Their tables with range deletions were called damaged: before 6.0 these are left out of one
/// count or another.
#[test]
fn tables_of_rocksdb_5_with_range_deletions_are_sound() {
    let databases: Vec<_> =
        below_fixtures("rocksdb-5").into_iter().filter(|path| path.is_dir()).collect();
    assert_eq!(databases.len(), 2, "{databases:?}");
    for path in databases {
        let expected =
            std::fs::read_to_string(format!("{}.expected", path.display())).expect("the contents");
        let db = open_as_written(&path, true);
        assert!(dump(&db) == expected, "{} differs", path.display());
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{}: {:?}", path.display(), report.faults);
    }
}

/// Every name in them is known, and what they say is in force.
#[test]
fn options_files_of_releases_are_read_and_nothing_in_them_is_unknown() {
    for (release, text) in options_files() {
        let loaded = load(&text);
        for warning in loaded.warnings() {
            assert!(
                !warning.contains("is unknown") && !warning.contains("not available here"),
                "{release}: {warning}"
            );
        }
        let words =
            loaded.family("words").unwrap_or_else(|| panic!("{release} has no such family"));
        let operator = words.merge_operator.as_ref().expect("it is built in");
        assert_eq!(operator.name(), "StringAppendOperator", "{release}");
        // Older releases name the policy without its bits; they, too, then write no filters.
        assert_eq!(
            words.table.filter_policy.is_some(),
            text.contains("=bloomfilter:10"),
            "{release}"
        );
        loaded.options.validate_for_writing().unwrap_or_else(|error| panic!("{release}: {error}"));
    }
}

#[test]
fn options_files_of_releases_survive_being_written_again() {
    for (release, text) in options_files() {
        let loaded = load(&text);
        let once = printed(&loaded);
        let again = parse(&once).unwrap_or_else(|error| panic!("{release}: {error}"));
        assert_eq!(again.options.db, loaded.options.db, "{release}");
        assert_eq!(again.warnings(), loaded.warnings(), "{release}");
        for ((name, read), (_, written)) in again.families.iter().zip(&loaded.families) {
            assert_eq!(
                (&read.settings, &read.table),
                (&written.settings, &written.table),
                "{release}: {name}"
            );
        }
        assert_eq!(printed(&again), once, "{release}");

        // A database with these options has them when it is opened again.
        let (env, path) = (Env::memory(), Path::new("/db"));
        let db = create(&env, path, &loaded);
        fill(&db);
        db.close().expect("a clean close");
        drop(db);
        let kept = load_latest(&env, path).expect("it reads").expect("there is one");
        assert_eq!(kept.warnings(), loaded.warnings(), "{release}");
        assert_eq!(kept.families.len(), loaded.families.len(), "{release}");
    }
}

/// The WALs were looked for where the database had been before it was moved.
#[test]
fn wal_dir_of_old_releases_is_not_believed_where_the_wals_are_at_home() {
    let (_, text) =
        options_files().into_iter().find(|(release, _)| release == "6.8.1").expect("that release");
    let (env, directory) = (Env::memory(), Path::new("/moved"));
    env.fs.create_directory(directory).expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        let file = env.fs.create_writable(&directory.join(name), IoMode::Buffered).expect("a file");
        file.write_at(0, bytes).expect("a write");
    };
    let wal_dir = || {
        load_latest(&env, directory)
            .expect("it reads")
            .expect("there is one")
            .options
            .wal_dir
            .clone()
    };
    write("OPTIONS-000007", text.as_bytes());
    assert!(wal_dir().ends_with("plain"), "{}", wal_dir());
    write("000009.log", b"");
    assert_eq!(wal_dir(), "");
    // A later release names it only if the program has set it.
    write(
        "OPTIONS-000010",
        text.replace("rocksdb_version=6.8.1", "rocksdb_version=7.8.3").as_bytes(),
    );
    assert!(wal_dir().ends_with("plain"), "{}", wal_dir());
}

/// Whatever release a database comes from, RocksDB 7.8 takes the OPTIONS file that this engine then
/// writes.
#[test]
fn rocksdb_loads_what_was_written_from_options_files_of_releases() {
    let Some(referee) = referee() else { return };
    for (release, text) in options_files() {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut loaded = load(&text);
        for (_, family) in &mut loaded.families {
            // What 7.8 reads; releases from 8.6 on make others.
            family.table.format_version = family.table.format_version.min(5);
        }
        let db = create(&Env::os(), &path, &loaded);
        fill(&db);
        let contents = dump(&db);
        db.close().expect("a clean close");
        drop(db);
        let mut read = referee.scan(&path, "default");
        read.push_str(&referee.scan(&path, "words"));
        assert!(read == contents, "{release} differs");
    }
}

/// A tag of a release to come, in the MANIFEST: one with the bit that lets readers skip it, and one
/// without.
#[test]
fn tags_of_manifests_to_come_are_skipped_only_where_they_may_be() {
    for (tag, says) in [(b"\xff\x40", None), (b"\xff\x1f", Some("unknown tag 4095"))] {
        let env = Env::memory();
        let mut options = common::create();
        options.env = env.clone();
        let db = Db::open("/db", &options).expect("a database");
        db.put("key", "value").expect("a put");
        db.close().expect("a clean close");
        drop(db);
        common::add_record_to_manifest(&env, [&tag[..], b"\x03new"].concat());
        match (Db::open("/db", &options), says) {
            (Ok(db), None) => {
                assert_eq!(db.get("key").expect("a read").expect("a value"), b"value"[..])
            }
            (Err(error), Some(says)) => {
                let path = error.path().expect("the file is named").to_string_lossy().into_owned();
                assert!(error.to_string().contains(says) && path.contains("MANIFEST-"), "{error}");
            }
            (Ok(_), Some(_)) => panic!("a tag that must not be skipped was skipped"),
            (Err(error), None) => panic!("{error}"),
        }
    }
}
