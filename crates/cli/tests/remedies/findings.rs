//! What the doctor finds of databases as they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flagstone::base::{MergeOperator, Remedy, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, salvage};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, IoMode};
use flagstone::options::{Options, WriteOptions};
use flagstone::{TransactionDbOptions, TransactionOptions};
use testkit::{Call, FaultFs, HandClock, Injection, Plan, QuotaFs, Sort, steps};

use super::{Tried, advised};

/// Options of a database whose files are small.
pub fn options(settings: &str) -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options
        .set_all("create_if_missing=true;write_buffer_size=65536;memory_budget=0;compression=kNoCompression")
        .unwrap();
    options.set_all(settings).unwrap();
    options
}

fn doctor(db: &Db) -> Vec<Remedy> {
    advised(&db.doctor().unwrap())
}

/// What the doctor says of a database that is only looked at.
fn looked(options: &Options) -> Vec<Remedy> {
    doctor(&Db::open_read_only("/db", options).unwrap())
}

/// Files take turns in few places.
pub fn set() -> Tried {
    let few = "disable_auto_compactions=true;level0_slowdown_writes_trigger=100;level0_stop_writes_trigger=200;\
               max_open_files=20;table.no_block_cache=true;table.filter_policy=nullptr";
    let mut options = options(few);
    let read_all = |options: &Options| {
        let db = Db::open("/db", options).unwrap();
        for round in 0..24 {
            (0..200).for_each(|key| {
                db.put(format!("{:04}", key * 10 + round % 10), [b'v'; 100]).unwrap()
            });
            db.flush_all().unwrap();
        }
        (0..4000).for_each(|key| drop(db.get(format!("{:04}x", key % 1900)).unwrap()));
        let of_files =
            |remedy: &Remedy| matches!(remedy, Remedy::Set { option: "max_open_files", .. });
        doctor(&db).into_iter().filter(of_files).collect::<Vec<_>>()
    };
    let before = read_all(&options);
    let [Remedy::Set { option, to, .. }] = &before[..] else { panic!("{before:?}") };
    options.set(option, "-1").unwrap();
    options.set(option, to).unwrap();
    Db::open("/db", &options).unwrap().compact_range_of_all();
    Tried { after: read_all(&options), before }
}

trait CompactAll {
    fn compact_range_of_all(&self);
}

impl CompactAll for Db {
    fn compact_range_of_all(&self) {
        self.compact_range(self.default_column_family(), None, None, &Default::default()).unwrap();
    }
}

pub fn share_syncs() -> Tried {
    let options = options("");
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let db = Db::open("/db", &options).unwrap();
    for key in 0..1500 {
        let mut batch = WriteBatch::new();
        batch.put(format!("{key}"), "value").unwrap();
        db.write_with(&synced, batch).unwrap();
    }
    let before = doctor(&db);
    drop(db);
    let db = Db::open("/db", &options).unwrap();
    let mut batch = WriteBatch::new();
    (0..1500).for_each(|key| batch.put(format!("{key}"), "value").unwrap());
    db.write_with(&synced, batch).unwrap();
    Tried { before, after: doctor(&db) }
}

/// A database whose next call of that kind on a table fails.
fn failing(call: Call, injection: Injection) -> (Options, Db) {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut options = options("");
    options.env = steps::world(Arc::new(fs.clone()), 1);
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    fs.plan(Plan::Next { call, sort: Sort::Table, injection });
    db.flush_all().unwrap_err();
    (options, db)
}

pub fn reopen() -> Tried {
    let (options, db) = failing(Call::Sync, Injection::Io);
    let before = doctor(&db);
    drop(db);
    Tried { before, after: doctor(&Db::open("/db", &options).unwrap()) }
}

pub fn make_space() -> Tried {
    let (_, db) = failing(Call::Create, Injection::NoSpace);
    assert_eq!(db.put("key", "newer").unwrap_err().subcode(), SubCode::NoSpace);
    let before = doctor(&db);
    // There is space now.
    db.resume().unwrap();
    db.put("key", "newer").unwrap();
    Tried { before, after: doctor(&db) }
}

pub fn make_space_for_wal() -> Tried {
    let fs = QuotaFs::new(Arc::new(MemoryFileSystem::new()), Path::new("/db"), 20 << 20).unwrap();
    let mut options = options("write_buffer_size=64m");
    options.env = options.env.clone().with_fs(Arc::new(fs.clone()));
    let db = Db::open("/db", &options).unwrap();
    let before = doctor(&db);
    fs.set_limit(1 << 30);
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.put("key", "newer").unwrap();
    Tried { before, after: doctor(&db) }
}

pub fn let_go() -> Tried {
    let db = Db::open("/db", &options("")).unwrap();
    let held = db.hold_automatic_compactions(db.default_column_family()).unwrap();
    let before = doctor(&db);
    drop(held);
    Tried { before, after: doctor(&db) }
}

/// One transaction waits for another while the clock goes on.
pub fn end_lock_holder() -> Tried {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::at(1_000));
    let env = Env { clock: clock.clone(), ..Env::os() };
    let db = flagstone::Db::builder(directory.path())
        .options(|options| options.env = env)
        .open_transaction_db(&TransactionDbOptions::default())
        .unwrap();
    let mut holder = db.begin();
    holder.put(&db, "key", "first").unwrap();
    let patient = TransactionOptions { lock_timeout: Some(Duration::MAX), ..Default::default() };
    let mut waiter = db.begin_with(&patient);
    let before = thread::scope(|scope| {
        let waiting = scope.spawn(|| waiter.put(&db, "key", "second").unwrap());
        while !db.transactions().iter().any(|other| other.waits_for.is_some()) {
            thread::yield_now();
        }
        let nobody = advised(&db.doctor().unwrap());
        assert!(nobody.is_empty(), "it has just begun to wait: {nobody:?}");
        clock.advance(60);
        let before = advised(&db.doctor().unwrap());
        holder.rollback().unwrap();
        waiting.join().unwrap();
        before
    });
    Tried { before, after: advised(&db.doctor().unwrap()) }
}

pub fn another_style() -> Tried {
    let options = options("compaction_style=kCompactionStyleNone");
    let before = doctor(&Db::open("/db", &options).unwrap());
    let env = options.env;
    let other = Options { env, ..self::options("") };
    Tried { before, after: doctor(&Db::open("/db", &other).unwrap()) }
}

pub fn leave_strays() -> Tried {
    let options = options("");
    Db::open("/db", &options).unwrap().close().unwrap();
    let stray =
        options.env.fs.create_writable(Path::new("/db/000099.sst"), IoMode::Buffered).unwrap();
    stray.write_at(0, b"nothing names it").unwrap();
    let before = looked(&options);
    Db::open("/db", &options).unwrap().close().unwrap();
    Tried { before, after: looked(&options) }
}

/// Appends operands until one is bad.
struct Refusing;

impl MergeOperator for Refusing {
    fn name(&self) -> &str {
        "Refusing"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let is_bad = operands.contains(&&b"bad"[..]);
        (!is_bad).then(|| [&[existing.unwrap_or_default()], operands].concat().concat())
    }
}

pub fn mend_key() -> Tried {
    let mut options = options("disable_auto_compactions=true");
    options.cf.merge_operator = Some(Arc::new(Refusing));
    let db = Db::open("/db", &options).unwrap();
    for operand in ["good", "bad"] {
        db.merge("key", operand).unwrap();
        db.flush_all().unwrap();
    }
    db.compact_range_of_all();
    let before = doctor(&db);
    db.put("key", "anew").unwrap();
    db.flush_all().unwrap();
    db.compact_range_of_all();
    Tried { before, after: doctor(&db) }
}

/// A database in a directory, of which all is in its WAL, and that WAL.
pub fn logged(root: &Path) -> (Options, PathBuf, PathBuf) {
    let mut options = Options::default();
    options.create_if_missing = true;
    let path = root.join("db");
    let db = Db::open(&path, &options).unwrap();
    (10..30).for_each(|key| db.put(format!("key{key}"), [b'v'; 100]).unwrap());
    db.close().unwrap();
    let wal = files(&path, "log").pop().unwrap();
    (options, path, wal)
}

/// The files of a directory whose names end so, in order.
pub fn files(directory: &Path, end: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = all.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    found.sort();
    found
}

fn looked_at(path: &Path, options: &Options) -> Vec<Remedy> {
    doctor(&Db::open_read_only(path, options).unwrap())
}

pub fn leave_torn_end() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, wal) = logged(scratch.path());
    let file = std::fs::File::options().write(true).open(&wal).unwrap();
    file.set_len(std::fs::metadata(&wal).unwrap().len() - 10).unwrap();
    let before = looked_at(&path, &options);
    Db::open(&path, &options).unwrap().close().unwrap();
    Tried { before, after: looked_at(&path, &options) }
}

/// All intact records are in the new database, and the WAL of the old one may come from a copy.
pub fn settle_wal() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, wal) = logged(scratch.path());
    let whole = std::fs::read(&wal).unwrap();
    let mut bytes = whole.clone();
    let fifth = bytes.windows(5).position(|window| window == b"key14").unwrap();
    bytes[fifth + 50] ^= 1;
    std::fs::write(&wal, &bytes).unwrap();
    let before = looked_at(&path, &options);
    let saved = scratch.path().join("saved");
    salvage(&path, &saved, &options, &[], &mut |_| {}).unwrap();
    let new = Db::open_read_only(&saved, &options).unwrap();
    assert!(new.get("key13").unwrap().is_some() && new.get("key29").unwrap().is_some());
    assert!(doctor(&new).is_empty());
    std::fs::write(&wal, whole).unwrap();
    Tried { before, after: looked_at(&path, &options) }
}

pub fn restore_or_salvage() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (mut options, path, _) = logged(scratch.path());
    Db::open(&path, &options).unwrap().flush_all().unwrap();
    let table = files(&path, "sst").pop().unwrap();
    let whole = std::fs::read(&table).unwrap();
    std::fs::write(&table, &whole[..whole.len() - 10]).unwrap();
    options.set("paranoid_checks", "false").unwrap();
    let before = looked_at(&path, &options);
    salvage(&path, &scratch.path().join("saved"), &options, &[], &mut |_| {}).unwrap();
    std::fs::write(&table, whole).unwrap();
    Tried { before, after: looked_at(&path, &options) }
}
