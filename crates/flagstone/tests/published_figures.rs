//! What a database that is open says to other processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the tests stand outside the engine")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{create, entries, referee, temporary};
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::db::{Db, destroy};
use flagstone::env::Env;
use flagstone::env::process_start;
use flagstone::figures::Figures;
use flagstone::options::Options;

fn options(text: &str) -> Options {
    let mut options = create();
    options.set_all(text).unwrap();
    options
}

fn figures(path: &Path) -> Option<Figures> {
    let bytes = std::fs::read(path.join("FIGURES")).ok()?;
    Figures::parse(&bytes).ok()
}

/// Figures that have what is asked for; a worker writes them every two seconds.
fn until(path: &Path, has: impl Fn(&Figures) -> bool) -> Figures {
    for _ in 0..600 {
        if let Some(figures) = figures(path).filter(|figures| has(figures)) {
            return figures;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("{:?}", figures(path));
}

#[test]
fn an_open_database_says_what_it_does_until_it_is_closed() {
    let directory = temporary();
    let path = directory.path();
    let db = Db::open(path, &options("disable_auto_compactions=true")).unwrap();
    let first = figures(path).expect("from the beginning");
    assert_eq!(first.pid, std::process::id());
    assert_eq!(Some(first.process_start), process_start(first.pid));
    assert_eq!(first.counter("rocksdb.number.keys.written"), 0);
    let family = db.create_column_family("other one", &Default::default()).unwrap();
    (0..1000).for_each(|n| db.put(format!("key{n}"), vec![7; 100]).unwrap());
    db.put("large", vec![7; 100_000]).unwrap();
    db.put_cf(&family, "key", "value").unwrap();
    db.flush_all().unwrap();
    db.get("key7").unwrap().unwrap();
    let later = until(path, |figures| {
        figures.levels.len() == 2 && figures.counter("rocksdb.number.keys.read") == 1
    });
    assert!(later.updated_at_us > first.updated_at_us);
    assert_eq!(later.opened_at_us, first.opened_at_us);
    assert_eq!(later.counter("rocksdb.number.keys.written"), 1002);
    assert_eq!((later.figure("families"), later.figure("blob_files")), (2, 1));
    assert!(later.figure("block_cache_capacity") > 0 && later.figure("blob_bytes") > 100);
    assert_eq!(later.levels[1].family, "other one");
    assert_eq!((later.levels[0].level, later.levels[0].tables), (0, 1));
    db.close().unwrap();
    assert!(!path.join("FIGURES").exists());
}

#[test]
fn nothing_is_said_where_it_is_not_wanted_or_nobody_could_read_it() {
    let directory = temporary();
    let path = directory.path();
    let db = Db::open(path, &options("publish_figures=false")).unwrap();
    assert!(!path.join("FIGURES").exists());
    db.close().unwrap();
    let db = Db::open_read_only(path, &options("")).unwrap();
    assert!(!path.join("FIGURES").exists());
    drop(db);
    let memory = Options { env: Env::memory(), ..options("") };
    let db = Db::open("/db", &memory).unwrap();
    assert!(!memory.env.fs.list("/db".as_ref()).unwrap().contains(&"FIGURES".to_string()));
    db.close().unwrap();
    // Where the name is taken, the database opens all the same.
    std::fs::create_dir(path.join("FIGURES")).unwrap();
    let db = Db::open(path, &options("")).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
}

/// What a process that was killed has left does not matter to anybody.
#[test]
fn a_file_that_was_left_behind_is_in_nobodys_way() {
    let directory = temporary();
    let path = directory.path().join("db");
    let left = path.join("FIGURES");
    let db = Db::open(&path, &options("")).unwrap();
    (0..100).for_each(|n| db.put(format!("key{n}"), "value").unwrap());
    db.flush_all().unwrap();
    db.checkpoint(directory.path().join("copy")).unwrap();
    assert!(!directory.path().join("copy/FIGURES").exists());
    let backups = BackupEngine::open(BackupEngineOptions::new(directory.path().join("backups")));
    let backups = backups.unwrap();
    backups.create_new_backup(&db, &CreateBackupOptions::default()).unwrap();
    backups.restore_latest(directory.path().join("restored")).unwrap();
    assert!(!directory.path().join("restored/FIGURES").exists());
    let live = db.live_file_names(true).unwrap();
    assert!(!format!("{live:?}").contains("FIGURES"));
    db.close().unwrap();

    std::fs::write(&left, "left behind").unwrap();
    if let Some(referee) = referee() {
        for command in ["scan", "checkconsistency", "list_live_files_metadata", "idump"] {
            referee.ldb(&path, &[command]);
        }
        referee.ldb(&path, &["put", "--try_load_options", "from-rocksdb", "value"]);
        assert!(left.exists());
    }
    let db = Db::open_read_only(&path, &options("")).unwrap();
    assert!(entries(&db, db.default_column_family()).len() >= 100);
    assert!(db.check().unwrap().faults.is_empty());
    drop(db);
    assert_eq!(std::fs::read(&left).unwrap(), b"left behind");
    let db = Db::open(&path, &options("")).unwrap();
    assert!(figures(&path).is_some(), "it is replaced");
    db.close().unwrap();
    std::fs::write(&left, "left behind").unwrap();
    destroy(&path, &options(""), &[]).unwrap();
    assert!(!path.exists(), "with all files in it");
}
