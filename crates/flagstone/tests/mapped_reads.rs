//! Files that are read through memory mappings.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::sync::Arc;

use common::{create, entries, temporary};
use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::env::os::OsFileSystem;
use flagstone::env::{Env, FileSystem, IoMode};
use flagstone::options::Options;
use testkit::encrypted::ToyCipher;

fn options() -> Options {
    let mut options = create();
    for setting in "allow_mmap_reads=true;enable_blob_files=true;min_blob_size=500;\
                    block_cache=0;write_buffer_size=65536;enable_blob_garbage_collection=true;\
                    blob_garbage_collection_age_cutoff=1.0"
        .split(';')
    {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

fn fill(db: &Db, rounds: u8) {
    for round in 0..rounds {
        for number in 0..100u32 {
            let size = [20, 700, 9000][number as usize % 3];
            db.put(format!("{number:03}"), vec![round + number as u8; size]).unwrap();
        }
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
}

fn mappings_of(directory: &std::path::Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let is_data = |line: &&str| line.ends_with(".sst") || line.ends_with(".blob");
    maps.lines().filter(|line| line.contains(directory.to_str().unwrap())).filter(is_data).count()
}

#[test]
fn databases_are_read_and_written_as_without_mappings() {
    for is_encrypted in [false, true] {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = options();
        if is_encrypted {
            options.env = options.env.encrypted(Arc::new(ToyCipher { key: 3 })).unwrap();
        }
        let db = Db::open(&path, &options).unwrap();
        fill(&db, 3);
        let before = entries(&db, db.default_column_family());
        assert_eq!(before.len(), 100);
        assert!(before.iter().all(|(key, value)| {
            let number: u32 = std::str::from_utf8(key).unwrap().parse().unwrap();
            value.iter().all(|byte| *byte == 2 + number as u8)
        }));
        assert!(mappings_of(directory.path()) >= 2, "tables and blob files are mapped");
        assert!(
            db.multi_get(&["000", "001", "002"])
                .iter()
                .all(|value| { value.as_ref().is_ok_and(Option::is_some) })
        );
        assert!(db.verify(|_| {}).faults.is_empty());
        db.close().unwrap();
        drop(db);
        assert_eq!(mappings_of(directory.path()), 0);
        let db = Db::open_read_only(&path, &options).unwrap();
        assert_eq!(entries(&db, db.default_column_family()), before);
    }
}

#[test]
fn a_mapped_file_reads_like_any_other() {
    let directory = temporary();
    let path = directory.path().join("file");
    let bytes: Vec<u8> = (0..10_000).map(|at| at as u8).collect();
    for length in [0, 1, 4096, 10_000] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let mapped = OsFileSystem.open_random_access(&path, IoMode::Mapped).unwrap();
        assert_eq!(mapped.size().unwrap(), length as u64);
        for (offset, wanted) in [(0, 10), (4090, 20), (9_999, 5), (10_000, 1), (u64::MAX, 3)] {
            let mut buffer = vec![1; wanted];
            let read = mapped.read_at(offset, &mut buffer).unwrap();
            let start = length.min(usize::try_from(offset).unwrap());
            let expected = &bytes[start..length.min(start.saturating_add(wanted))];
            assert_eq!(&buffer[..read], expected, "{length} {offset}");
            let mut onto = b"before".to_vec();
            assert_eq!(mapped.read_onto(offset, wanted, &mut onto).unwrap(), read);
            assert_eq!(onto, [b"before", expected].concat());
        }
    }
    let missing = OsFileSystem.open_random_access(&directory.path().join("none"), IoMode::Mapped);
    assert!(missing.err().unwrap().is_not_found());
}

#[test]
fn damage_is_found_through_a_mapping() {
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &options()).unwrap();
    fill(&db, 1);
    db.close().unwrap();
    drop(db);
    let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "sst");
    let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let table = files.find(is_table).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let db = Db::open(&path, &options()).unwrap();
    let refused = db.get("000").unwrap_err();
    assert!(refused.is_corruption(), "{refused}");
    assert_eq!(refused.path(), Some(&*table));
}

#[test]
fn mappings_and_direct_reads_exclude_each_other() {
    let mut options = options();
    options.env = Env::memory();
    options.set("use_direct_reads", "true").unwrap();
    let refused = Db::open("/db", &options).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.to_string().contains("allow_mmap_reads"), "{refused}");
    options.set("use_direct_reads", "false").unwrap();
    let db = Db::open("/db", &options).unwrap();
    fill(&db, 1);
    assert_eq!(entries(&db, db.default_column_family()).len(), 100, "memory has no mappings");
}
