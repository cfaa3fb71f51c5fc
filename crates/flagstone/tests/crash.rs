//! Power losses: short lives of a database on a file system that remembers every change; what is
//! left of them is opened. The laboratory's campaign (`laboratory crashes`) visits every moment and
//! every state; here it is a sample.

mod common;

use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, read_file};
use flagstone::options::Options;
use testkit::{
    Call, CrashFs, Edit, FaultFs, Injection, Plan, Sort, Survival, compare, crash, seeds, settings,
};

#[test]
fn creation() {
    crash::one_life("creation");
}

#[test]
fn log() {
    crash::one_life("log");
}

#[test]
fn log_by_hand() {
    crash::one_life("log-by-hand");
}

#[test]
fn flush() {
    crash::one_life("flush");
}

#[test]
fn flush_together() {
    crash::one_life("flush-together");
}

#[test]
fn flush_together_with_blobs() {
    crash::one_life("flush-together-blobs");
}

#[test]
fn compaction() {
    crash::one_life("compaction");
}

#[test]
fn subcompactions() {
    crash::one_life("subcompactions");
}

#[test]
fn blobs() {
    crash::one_life("blobs");
}

#[test]
fn remote_compactions() {
    crash::one_life("remote");
}

#[test]
fn blobs_at_commit() {
    crash::one_life("blobs-at-commit");
}

#[test]
fn direct() {
    crash::one_life("direct");
}

#[test]
fn blob_streams() {
    crash::one_life("blob-streams");
}

#[test]
fn families() {
    crash::one_life("families");
}

#[test]
fn recycled() {
    crash::one_life("recycled");
}

#[test]
fn recycled_unlogged() {
    crash::one_life("recycled-unlogged");
}

#[test]
fn compressed() {
    crash::one_life("compressed");
}

#[test]
fn rollover() {
    crash::one_life("rollover");
}

#[test]
fn options() {
    crash::one_life("options");
}

#[test]
fn ingestion() {
    crash::one_life("ingestion");
}

#[test]
fn ingestion_beside_blobs() {
    crash::one_life("ingestion-blobs");
}

#[test]
fn checkpoint() {
    crash::one_life("checkpoint");
}

#[test]
fn reopen() {
    crash::one_life("reopen");
}

#[test]
fn reopen_kept() {
    crash::one_life("reopen-kept");
}

#[test]
fn wal_dir() {
    crash::one_life("wal-dir");
}

#[test]
fn paths() {
    crash::one_life("paths");
}

#[test]
fn wal_limit() {
    crash::one_life("wal-limit");
}

#[test]
fn transactions() {
    crash::one_life("transactions");
}

#[test]
fn updates() {
    crash::one_life("updates");
}

#[test]
fn updates_recycled() {
    crash::one_life("updates-recycled");
}

#[test]
fn encrypted() {
    crash::one_life("encrypted");
}

#[test]
fn encrypted_holes() {
    crash::one_life("encrypted-holes");
}

#[test]
fn encrypted_long() {
    crash::one_life("encrypted-long");
}

#[test]
fn two_writers() {
    crash::one_life("two-writers");
}

#[test]
fn two_writers_plain() {
    crash::one_life("two-writers-plain");
}

#[test]
fn three_writers() {
    crash::one_life("three-writers");
}

#[test]
fn three_writers_plain() {
    crash::one_life("three-writers-plain");
}

#[test]
fn three_writers_blobs() {
    crash::one_life("three-writers-blobs");
}

#[test]
fn free_writers() {
    crash::one_life("free-writers");
}

#[test]
fn long() {
    crash::one_life("long");
}

#[test]
fn rocksdb_finds_the_same_of_writers_at_once() {
    let Some(referee) = common::referee() else { return };
    let names = ["two-writers", "two-writers-plain", "three-writers", "three-writers-plain"];
    seeds::for_each_seed(1, |seed| {
        // The variants between draw options that RocksDB need not know.
        let variant = 4 * (seed / 2) + (seed + 1) % 2;
        let compared = names.iter().map(|name| referee.compare_states(name, variant, 15));
        let states: usize = compared.sum();
        println!("seed {seed}: {states} states");
        assert!(states >= 30, "only {states} states hold a database");
    });
}

#[test]
fn a_flush_waits_for_what_other_families_wrote_before() {
    // The WAL that a flush ended was not synced: after a power loss the flushed family was there,
    // what the others had written before, even in the same batch, was not.
    let fs = CrashFs::new();
    let options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).unwrap();
    let batch = [
        ("default".to_string(), Edit::Put { key: b"half".to_vec(), value: b"1".to_vec() }),
        ("other".to_string(), Edit::Put { key: b"half".to_vec(), value: b"2".to_vec() }),
    ];
    db.write(compare::to_batch(&db, &batch)).unwrap();
    db.flush(db.default_column_family(), &Default::default()).unwrap();

    let disk = fs.after_crash(fs.changes(), Survival::Lost);
    let options = Options { env: Env::memory().with_fs(Arc::new(disk)), ..options };
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("half").unwrap().unwrap(), "1");
    assert_eq!(db.get_cf(&db.column_family("other").unwrap(), "half").unwrap().unwrap(), "2");
}

#[test]
fn a_recycled_wal_ends_where_its_last_record_does() {
    // A recycled WAL kept the rest of its earlier life behind its last record. Where that began in
    // the middle of an old record it passed for damage, and with one family flushed behind it the
    // database did not open again.
    let fs = MemoryFileSystem::new();
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs)));
    settings::set(&mut options, &[("recycle_log_file_num", "2"), ("write_buffer_size", "1000000")]);
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).unwrap();
    let other = db.column_family("other").unwrap();
    for round in 0..3 {
        db.put("long", vec![b'x'; 10_000]).unwrap();
        if round == 2 {
            break;
        }
        db.flush_all().unwrap();
    }
    db.flush_all().unwrap();
    db.put_cf(&other, "short", "y").unwrap();
    db.put("short", "x").unwrap();
    db.flush(db.default_column_family(), &Default::default()).unwrap();
    db.close().unwrap();
    drop((db, other));

    let db = Db::open("/db", &options).unwrap();
    let other = db.column_family("other").unwrap();
    assert_eq!(db.get_cf(&other, "short").unwrap().unwrap(), "y");
}

#[test]
fn a_recycled_wal_that_cannot_be_cut_is_not_left() {
    // The failure was only logged. After a kill recovery stopped at the rest of the file's earlier
    // life, found the flushed family ahead of that, and the database did not open.
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
    settings::set(&mut options, &[("recycle_log_file_num", "2"), ("write_buffer_size", "1000000")]);
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).unwrap();
    let other = db.column_family("other").unwrap();
    for _ in 0..3 {
        db.put("long", vec![b'x'; 10_000]).unwrap();
        db.flush_all().unwrap();
    }
    db.put_cf(&other, "short", "y").unwrap();
    fs.plan(Plan::Next { call: Call::Truncate, sort: Sort::Wal, injection: Injection::Io });
    db.put("short", "x").unwrap();
    let flushed = db.flush(db.default_column_family(), &Default::default());
    let left = MemoryFileSystem::new();
    for name in fs.list(Path::new("/db")).unwrap() {
        let path = Path::new("/db").join(name);
        left.put(&path, Arc::new(read_file(&fs, &path, u64::MAX).unwrap()));
    }

    options.env = Env::memory().with_fs(Arc::new(left));
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("short").unwrap().unwrap(), "x");
    assert_eq!(db.get_cf(&db.column_family("other").unwrap(), "short").unwrap().unwrap(), "y");
    assert!(flushed.is_err(), "the failure is not reported");
}

#[test]
fn directories_on_the_way_are_durable() {
    // Of several directories that were made on the way to a new database (or to its WALs, or to a
    // checkpoint) only the last one's name was synced; and none, if a process died between making
    // and syncing it and the next one found it.
    let fs = CrashFs::new();
    fs.create_directory(Path::new("/deep/down/db")).unwrap();
    let fs = fs.kill();
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
    settings::set(&mut options, &[("wal_dir", "/wals/of/db")]);
    let db = Db::open("/deep/down/db", &options).unwrap();
    db.put("key", "value").unwrap();
    db.sync_wal().unwrap();
    db.checkpoint("/copies/first").unwrap();

    let disk = fs.after_crash(fs.changes(), Survival::Lost);
    options.env = Env::memory().with_fs(Arc::new(disk));
    for path in ["/deep/down/db", "/copies/first"] {
        options.db.create_if_missing = false;
        options.wal_dir =
            if path == "/copies/first" { String::new() } else { "/wals/of/db".to_string() };
        assert_eq!(
            Db::open(path, &options).unwrap().get("key").unwrap().unwrap(),
            "value",
            "{path}"
        );
    }
}

#[test]
fn a_new_database_begins_with_one_edit() {
    // It began with two in one write: torn by a power loss between them and before the second, the
    // MANIFEST passed for damaged.
    let fs = CrashFs::new();
    let options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
    drop(Db::open("/db", &options).unwrap());
    let told =
        (0..=fs.changes()).map(|at| fs.describe(at)).filter(|told| told.contains("/db/MANIFEST"));
    let told: Vec<_> = told.map(|told| told.split(' ').next().unwrap().to_string()).collect();
    let first_sync = told.iter().position(|word| word == "sync").unwrap();
    assert_eq!(told[first_sync..], ["sync", "write", "sync"]);
}

#[test]
fn wals_that_are_compressed_are_not_recycled() {
    // RocksDB's recovery with `kSkipAnyCorruptedRecords` does not end with a recycled WAL whose
    // records are compressed.
    for (compression, kept) in [("kNoCompression", 2), ("kZSTD", 1)] {
        let fs = CrashFs::new();
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
        settings::set(
            &mut options,
            &[("recycle_log_file_num", "2"), ("wal_compression", compression)],
        );
        let db = Db::open("/db", &options).expect("a new database");
        for number in 0..5 {
            db.put("key", number.to_string()).expect("a write");
            db.flush_all().expect("a flush");
        }
        let names = options.env.fs.list(Path::new("/db")).expect("the directory");
        let wals = names.iter().filter(|name| name.ends_with(".log")).count();
        assert_eq!(wals, kept, "{compression}: {names:?}");
    }
}

#[test]
fn what_was_recycled_is_read_when_compression_is_switched_on() {
    let fs = CrashFs::new();
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
    settings::set(&mut options, &[("recycle_log_file_num", "2")]);
    let db = Db::open("/db", &options).expect("a new database");
    for _ in 0..4 {
        db.put("long", "x".repeat(500)).expect("a write");
        db.flush_all().expect("a flush");
    }
    db.put("short", "y").expect("a write");

    let killed = fs.after_crash(fs.changes(), Survival::Kept);
    let mut options = Options { env: Env::memory().with_fs(Arc::new(killed)), ..options };
    let changes = [("wal_compression", "kZSTD"), ("wal_recovery_mode", "kSkipAnyCorruptedRecords")];
    settings::set(&mut options, &changes);
    let db = Db::open("/db", &options).expect("the database opens");
    assert_eq!(db.get("short").expect("a lookup").expect("it was written"), "y");
    assert_eq!(db.get("long").expect("a lookup").expect("it was written").len(), 500);
}
