//! The power fails while a salvage writes: at every moment, with what was not synced lost, kept, or
//! by chance.
//!
//! 1. The damaged database is as it was.
//! 2. The new one is none (it has no CURRENT that can be followed), or whole.
//! 3. What is there can be removed, and salvaged again.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::*;
use flagstone::db::{Db, SalvageReport, salvage};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, IoMode, read_file};
use flagstone::options::{self, ColumnFamilyOptions, Options};
use testkit::{CrashFs, Survival};

const SOURCE: &str = "/source";
const TARGET: &str = "/new/target";

type Files = BTreeMap<String, Vec<u8>>;

fn options_on(fs: Arc<dyn FileSystem>) -> Options {
    let mut options = create();
    options.env = Env::memory().with_fs(fs);
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(300);
    options.cf.target_file_size_base = 3000;
    options.cf.blob_file_size = 5000;
    options
}

/// A database of two families that has lost its MANIFEST, and of one table a byte.
fn damaged() -> Files {
    let fs = MemoryFileSystem::new();
    let options = options_on(Arc::new(fs.clone()));
    let db = Db::open(SOURCE, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    for key in 0..60u32 {
        let size = if key % 4 == 0 { 700 } else { 100 };
        let value: Vec<u8> = (0..size).map(|at| (at * 31 + key) as u8).collect();
        db.put(format!("key{key:03}"), &value).expect("a put");
        db.put_cf(&other, format!("key{key:03}"), &value).expect("a put");
        if key == 40 {
            db.flush_all().expect("a flush");
        }
    }
    db.flush_wal(false).expect("written");
    let mut files = files_of(&fs, SOURCE);
    files.retain(|name, _| !name.starts_with("MANIFEST"));
    let table = files.iter_mut().find(|(name, _)| name.ends_with(".sst")).expect("a table");
    table.1[20] ^= 1;
    files
}

fn files_of(fs: &dyn FileSystem, directory: &str) -> Files {
    let names = fs.list(Path::new(directory)).expect("files in memory");
    let read =
        |name: &String| read_file(fs, &Path::new(directory).join(name), 1 << 30).expect("a file");
    names.iter().map(|name| (name.clone(), read(name))).collect()
}

/// The files, all of them durable.
fn put_files(fs: &CrashFs, files: &Files) {
    let directory = Path::new(SOURCE);
    fs.create_directory(directory).expect("a directory");
    for (name, bytes) in files {
        let file = fs.create_writable(&directory.join(name), IoMode::Buffered).expect("a file");
        file.write_at(0, bytes).and_then(|()| file.sync()).expect("written");
    }
    fs.sync_directory(directory).expect("synced");
    fs.sync_directory(Path::new("/")).expect("synced");
}

fn rebuild(fs: Arc<dyn FileSystem>, target: &str) -> SalvageReport {
    let env = Env::memory().with_fs(fs);
    let loaded =
        options::load_latest(&env, Path::new(SOURCE)).expect("readable").expect("it is there");
    let mut options = loaded.options;
    options.env = env;
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        loaded.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    salvage(Path::new(SOURCE), Path::new(target), &options, &listed, &mut |_| {}).expect("salvaged")
}

/// What a database holds; `None` where there is none.
fn contents(fs: &MemoryFileSystem, directory: &str) -> Option<String> {
    let mut options = options_on(Arc::new(fs.clone()));
    options.create_if_missing = false;
    if fs.metadata(&Path::new(directory).join("CURRENT")).is_err() {
        assert!(Db::open(directory, &options).is_err(), "there is none");
        return None;
    }
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_read_only_with_families(directory, &options, &families).expect("it opens");
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty() && report.notes.is_empty(), "{report:?}");
    assert!(db.check().expect("listed").faults.is_empty());
    Some(dump(&db))
}

#[test]
fn a_power_loss_during_a_salvage_leaves_the_source_and_no_half_database() {
    let files = damaged();
    let fs = CrashFs::new();
    put_files(&fs, &files);
    let begun = fs.changes();
    let report = rebuild(Arc::new(fs.clone()), TARGET);
    assert!(!report.is_complete() && report.records() > 100, "{report:?}");
    let end = fs.changes();
    let whole = contents(&fs.after_crash(end, Survival::Kept), TARGET).expect("a database");
    let (mut none, mut complete) = (0, 0);
    for at in begun..=end {
        let survivals = [Survival::Lost, Survival::Kept];
        for survival in survivals
            .into_iter()
            .chain((0..6).map(|seed| Survival::Random(seed + 1000 * at as u64)))
        {
            let what = format!("{survival:?} after {}", fs.describe(at));
            let disk = fs.after_crash(at, survival);
            assert_eq!(files_of(&disk, SOURCE), files, "{what}: the source was changed");
            match contents(&disk, TARGET) {
                None => none += 1,
                Some(found) => {
                    assert!(found == whole, "{what}: half a database");
                    complete += 1;
                }
            }
            if survival == Survival::Kept || at % 8 == 0 {
                for name in disk.list(Path::new(TARGET)).unwrap_or_default() {
                    disk.remove(&Path::new(TARGET).join(name)).expect("removed");
                }
                let again = rebuild(Arc::new(disk.clone()), TARGET);
                assert_eq!(again.records(), report.records(), "{what}");
                assert!(
                    contents(&disk, TARGET).as_ref() == Some(&whole),
                    "{what}: the second differs"
                );
            }
        }
    }
    assert!(none > 100 && complete > 3, "{none} without a database, {complete} with a whole one");
    // What salvage said was done is durable.
    for survival in [Survival::Lost, Survival::Random(1), Survival::Random(2)] {
        assert!(
            contents(&fs.after_crash(end, survival), TARGET).as_ref() == Some(&whole),
            "{survival:?}"
        );
    }
    println!(
        "{} moments: {none} states without a database, {complete} with a whole one",
        end - begun + 1
    );
}
