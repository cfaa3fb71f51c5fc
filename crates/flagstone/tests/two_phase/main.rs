//! Transactions that are prepared, survive the process, and are decided later.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod policies;

use std::collections::BTreeMap;

use common::{copy_directory, create, entries, temporary};
use fastrand::Rng;
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions, RestoreOptions};
use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, TwoPhase};
use flagstone::options::{FlushOptions, Options, WriteOptions};

fn two_phase() -> Options {
    let mut options = create();
    options.set("allow_2pc", "true").unwrap();
    options
}

fn batch(pairs: &[(&str, &str)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    pairs.iter().for_each(|(key, value)| batch.put(key, value).unwrap());
    batch
}

fn names(db: &Db) -> Vec<String> {
    let prepared = TwoPhase::of(db).prepared();
    prepared.iter().map(|one| String::from_utf8_lossy(one.name()).into_owned()).collect()
}

fn prepare(db: &Db, name: &str, pairs: &[(&str, &str)]) {
    TwoPhase::of(db).prepare(&WriteOptions::default(), name, batch(pairs)).unwrap();
}

fn commit(db: &Db, name: &str) {
    TwoPhase::of(db).commit(&WriteOptions::default(), name, &WriteBatch::new()).unwrap();
}

/// The database as a process leaves it that is killed.
fn killed(db: &Db, options: &Options) -> (tempfile::TempDir, Db) {
    let copy = temporary();
    // Nothing is removed while it is copied.
    db.wait_for_compactions().unwrap();
    copy_directory(db.path(), copy.path());
    let db = Db::open(copy.path(), options).unwrap();
    (copy, db)
}

#[test]
fn what_is_prepared_is_seen_by_nobody_until_it_is_committed() {
    let directory = temporary();
    let db = Db::open(directory.path(), &two_phase()).unwrap();
    db.put("a", "old").unwrap();
    let before = db.latest_sequence_number();
    prepare(&db, "first", &[("a", "new"), ("b", "new")]);
    prepare(&db, "second", &[("c", "new")]);
    assert_eq!(db.latest_sequence_number(), before, "it takes no sequence number");
    assert_eq!(db.get("a").unwrap().unwrap(), "old");
    assert!(db.get("b").unwrap().is_none());
    assert_eq!(names(&db), ["first", "second"]);

    let beside = batch(&[("beside", "1")]);
    TwoPhase::of(&db).commit(&WriteOptions::default(), "first", &beside).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "new");
    assert_eq!(db.get("b").unwrap().unwrap(), "new");
    assert_eq!(db.get("beside").unwrap().unwrap(), "1");
    assert_eq!(db.latest_sequence_number(), before + 3);

    TwoPhase::of(&db).rollback(&WriteOptions::default(), "second").unwrap();
    assert!(db.get("c").unwrap().is_none());
    assert!(names(&db).is_empty());

    let (_copy, db) = killed(&db, &two_phase());
    assert_eq!(db.get("b").unwrap().unwrap(), "new");
    assert_eq!(db.get("beside").unwrap().unwrap(), "1");
    assert!(db.get("c").unwrap().is_none() && names(&db).is_empty());
}

#[test]
fn a_transaction_outlives_kills_flushes_and_closing() {
    let directory = temporary();
    let options = two_phase();
    let db = Db::open(directory.path(), &options).unwrap();
    prepare(&db, "kept", &[("a", "1")]);
    let wal = TwoPhase::of(&db).prepared()[0].wal_number();
    for round in 0..3 {
        db.put(format!("other{round}"), "1").unwrap();
        db.flush_all().unwrap();
    }
    assert!(directory.path().join(format!("{wal:06}.log")).exists(), "its WAL is kept");
    let (copy, again) = killed(&db, &options);
    assert_eq!(names(&again), ["kept"]);
    again.flush_all().unwrap();
    again.close().unwrap();
    drop(again);

    let again = Db::open(copy.path(), &options).unwrap();
    assert_eq!(names(&again), ["kept"]);
    commit(&again, "kept");
    // The operations lie in a WAL that is older than the commit's, up to the flush.
    again.put("behind", "1").unwrap();
    let (_copy, third) = killed(&again, &options);
    assert_eq!(third.get("a").unwrap().unwrap(), "1");
    assert!(names(&third).is_empty());

    again.flush_all().unwrap();
    assert_eq!(again.get("a").unwrap().unwrap(), "1");
    assert!(!copy.path().join(format!("{wal:06}.log")).exists(), "nobody needs it any more");
}

/// Two families are in one transaction, and one of them is flushed between commit and kill.
#[test]
fn a_flush_of_one_family_leaves_the_transaction_whole() {
    let directory = temporary();
    let options = two_phase();
    let db = Db::open(directory.path(), &options).unwrap();
    let other = db.create_column_family("other", &options.cf).unwrap();
    let mut operations = batch(&[("a", "1")]);
    operations.put_cf(&other, "a", "2").unwrap();
    TwoPhase::of(&db).prepare(&WriteOptions::default(), "both", operations).unwrap();
    // The commit is in another WAL than the section.
    db.put("x", "1").unwrap();
    db.flush_all().unwrap();
    commit(&db, "both");
    db.flush(&other, &FlushOptions::default()).unwrap();
    let (_copy, db) = killed(&db, &options);
    let other = db.column_family("other").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    assert_eq!(db.get_cf(&other, "a").unwrap().unwrap(), "2");
}

#[test]
fn a_database_with_something_prepared_is_opened_by_those_who_ask_for_it() {
    let directory = temporary();
    let db = Db::open(directory.path(), &two_phase()).unwrap();
    db.put("a", "old").unwrap();
    prepare(&db, "undecided", &[("a", "new")]);
    db.close().unwrap();
    drop(db);

    let refused = Db::open(directory.path(), &create()).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported);
    for said in ["transaction 'undecided' is prepared", ".log", "allow_2pc"] {
        assert!(refused.to_string().contains(said), "{refused}");
    }
    // Who only reads sees what is committed.
    let read_only = Db::open_read_only(directory.path(), &create()).unwrap();
    assert_eq!(read_only.get("a").unwrap().unwrap(), "old");
    drop(read_only);

    let db = Db::open(directory.path(), &two_phase()).unwrap();
    TwoPhase::of(&db).rollback(&WriteOptions::default(), "undecided").unwrap();
    db.close().unwrap();
    drop(db);
    let db = Db::open(directory.path(), &create()).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "old");
}

#[test]
fn names_and_options_that_cannot_be_are_refused() {
    let directory = temporary();
    let db = Db::open(directory.path(), &two_phase()).unwrap();
    let options = WriteOptions::default();
    let refused = |error: flagstone::base::Error, code, said: &str| {
        assert!(error.code() == code && error.message().contains(said), "{error}");
    };
    let one = || batch(&[("a", "1")]);
    refused(
        TwoPhase::of(&db).prepare(&options, "", one()).unwrap_err(),
        Code::InvalidArgument,
        "1 to 512",
    );
    let long = vec![0xff; 513];
    refused(
        TwoPhase::of(&db).prepare(&options, &long, one()).unwrap_err(),
        Code::InvalidArgument,
        "this one 513",
    );
    TwoPhase::of(&db).prepare(&options, &long[1..], one()).unwrap();
    let twice = TwoPhase::of(&db).prepare(&options, &long[1..], one()).unwrap_err();
    refused(twice, Code::InvalidArgument, "prepared already");
    let nothing = WriteBatch::new();
    let unknown = TwoPhase::of(&db).commit(&options, "nobody", &nothing).unwrap_err();
    refused(unknown, Code::NotFound, "'nobody'");
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let error = TwoPhase::of(&db).prepare(&unlogged, "x", one()).unwrap_err();
    refused(error, Code::InvalidArgument, "disable_wal");
    let mut merges = WriteBatch::new();
    merges.merge("a", "1").unwrap();
    let error = TwoPhase::of(&db).prepare(&options, "x", merges).unwrap_err();
    refused(error, Code::InvalidArgument, "merge operator");
    assert_eq!(TwoPhase::of(&db).prepared().len(), 1);
    let (_copy, db) = killed(&db, &two_phase());
    assert_eq!(TwoPhase::of(&db).prepared()[0].name(), &long[1..]);
    TwoPhase::of(&db).commit(&options, &long[1..], &nothing).unwrap();
    let again = TwoPhase::of(&db).commit(&options, &long[1..], &nothing).unwrap_err();
    refused(again, Code::NotFound, "is prepared");

    let plain = temporary();
    let db = Db::open(plain.path(), &create()).unwrap();
    refused(
        TwoPhase::of(&db).prepare(&options, "x", one()).unwrap_err(),
        Code::InvalidArgument,
        "allow_2pc",
    );
}

/// A transaction that is larger than the write buffer, and many small ones.
#[test]
fn large_and_many_transactions_are_recovered() {
    let directory = temporary();
    let mut options = two_phase();
    options.set("write_buffer_size", "65536").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    let mut large = WriteBatch::new();
    for key in 0..1000 {
        large.put(format!("large{key:04}"), vec![b'v'; 500]).unwrap();
    }
    TwoPhase::of(&db).prepare(&WriteOptions::default(), "large", large).unwrap();
    for number in 0..2000 {
        let name = format!("small{number:05}");
        prepare(&db, &name, &[(&name, "1")]);
    }
    let (_copy, db) = killed(&db, &options);
    assert_eq!(TwoPhase::of(&db).prepared().len(), 2001);
    for one in TwoPhase::of(&db).prepared() {
        TwoPhase::of(&db).commit(&WriteOptions::default(), one.name(), &WriteBatch::new()).unwrap();
    }
    let (_copy, db) = killed(&db, &options);
    assert_eq!(entries(&db, db.default_column_family()).len(), 3000);
}

#[test]
fn a_commit_hands_out_what_was_prepared() {
    let directory = temporary();
    let mut options = two_phase();
    options.set("WAL_ttl_seconds", "3600").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    prepare(&db, "early", &[("a", "1"), ("b", "1")]);
    db.put("x", "1").unwrap();
    db.flush_all().unwrap();
    prepare(&db, "late", &[("c", "1")]);
    commit(&db, "early");
    commit(&db, "late");
    db.put("y", "1").unwrap();
    for from in 1..=5 {
        let mut updates = db.get_updates_since(from).unwrap();
        let mut written = Vec::new();
        while let Some(update) = updates.next_update().unwrap() {
            assert_eq!(update.sequence + u64::from(update.batch.count()), update.next_sequence);
            written.extend(update.batch.iter().map(|operation| {
                let operation = format!("{:?}", operation.unwrap());
                let key = operation.split("key: [").nth(1).unwrap();
                key[..key.find(']').unwrap()].parse::<u8>().unwrap() as char
            }));
        }
        let all = ['x', 'a', 'b', 'c', 'y'];
        // The write that has the number comes whole.
        let begin = [0, 1, 1, 3, 4][from as usize - 1];
        assert_eq!(written, all[begin..], "from {from}");
    }
    let (copy, _db) = killed(&db, &options);
    drop(db);
    let read_only = Db::open_read_only(copy.path(), &options).unwrap();
    let report = read_only.verify(|_| ());
    assert!(report.faults.is_empty() && report.wals > 0, "{:?}", report.faults);
}

/// What a batch does, by family, key and value; no value for a deletion.
type Operations = Vec<(usize, Vec<u8>, Option<Vec<u8>>)>;

/// A database of two families beside a model.
struct World {
    db: Db,
    handles: [ColumnFamily; 2],
    options: Options,
    random: Rng,
    model: [BTreeMap<Vec<u8>, Vec<u8>>; 2],
    prepared: BTreeMap<String, Operations>,
    /// The directories of the copies.
    kept: Vec<tempfile::TempDir>,
}

fn families(db: &Db) -> [ColumnFamily; 2] {
    [db.default_column_family().clone(), db.column_family("other").unwrap()]
}

impl World {
    fn new(seed: u64) -> Self {
        let mut options = two_phase();
        options.set("write_buffer_size", "65536").unwrap();
        options.set("avoid_flush_during_recovery", ["true", "false"][seed as usize % 2]).unwrap();
        let directory = temporary();
        let db = Db::open(directory.path(), &options).unwrap();
        db.create_column_family("other", &options.cf).unwrap();
        Self {
            handles: families(&db),
            db,
            options,
            random: Rng::with_seed(seed),
            model: Default::default(),
            prepared: BTreeMap::new(),
            kept: vec![directory],
        }
    }

    fn operations(&mut self) -> Operations {
        let random = &mut self.random;
        let mut operations = Vec::new();
        for _ in 0..random.usize(1..=6) {
            let size = if random.u8(0..10) == 0 { 9000 } else { 10 };
            let value = vec![random.u8(b'a'..=b'z'); size];
            let key = format!("k{}", random.u8(0..20)).into_bytes();
            operations.push((random.usize(0..2), key, Some(value).filter(|_| random.u8(0..5) > 0)));
        }
        operations
    }

    fn batch(&self, operations: &Operations) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (family, key, value) in operations {
            match value {
                Some(value) => batch.put_cf(&self.handles[*family], key, value).unwrap(),
                None => batch.delete_cf(&self.handles[*family], key).unwrap(),
            }
        }
        batch
    }

    fn apply(&mut self, operations: Operations) {
        for (family, key, value) in operations {
            match value {
                Some(value) => drop(self.model[family].insert(key, value)),
                None => drop(self.model[family].remove(&key)),
            }
        }
    }

    fn decide(&mut self, write: &WriteOptions) {
        let Some(at) =
            (!self.prepared.is_empty()).then(|| self.random.usize(0..self.prepared.len()))
        else {
            return;
        };
        let name = self.prepared.keys().nth(at).unwrap().clone();
        let prepared = self.prepared.remove(&name).unwrap();
        if self.random.u8(0..10) < 3 {
            TwoPhase::of(&self.db).rollback(write, &name).unwrap();
            return;
        }
        let beside = self.operations();
        TwoPhase::of(&self.db).commit(write, &name, &self.batch(&beside)).unwrap();
        self.apply(beside);
        self.apply(prepared);
    }

    fn reopen(&mut self) {
        if self.random.bool() {
            let (copy, again) = killed(&self.db, &self.options);
            self.db = again;
            self.kept.push(copy);
        } else {
            let path = self.db.path().to_path_buf();
            self.db.close().unwrap();
            self.db = Db::open(&path, &self.options).unwrap();
        }
        self.handles = families(&self.db);
    }

    fn step(&mut self, number: usize) {
        let write = WriteOptions { sync: self.random.u8(0..5) == 0, ..WriteOptions::default() };
        match self.random.u8(0..10) {
            0..3 => {
                let operations = self.operations();
                self.db.write_with(&write, self.batch(&operations)).unwrap();
                self.apply(operations);
            }
            3..5 => {
                let (name, operations) = (format!("t{number}"), self.operations());
                TwoPhase::of(&self.db).prepare(&write, &name, self.batch(&operations)).unwrap();
                self.prepared.insert(name, operations);
            }
            5..7 => self.decide(&write),
            7 => {
                let family = &self.handles[self.random.usize(0..2)];
                self.db.flush(family, &FlushOptions::default()).unwrap();
            }
            _ => self.reopen(),
        }
    }

    fn check(&self, what: &str) {
        assert_eq!(names(&self.db), self.prepared.keys().cloned().collect::<Vec<_>>(), "{what}");
        for (family, model) in self.handles.iter().zip(&self.model) {
            let found: BTreeMap<_, _> = entries(&self.db, family).into_iter().collect();
            assert!(found == *model, "{what}");
        }
    }
}

/// Prepared, decided, flushed and killed at random, beside a model.
#[test]
fn any_order_of_steps_leaves_what_was_decided() {
    for seed in 0..12 {
        let mut world = World::new(seed);
        for number in 0..60 {
            world.step(number);
            world.check(&format!("seed {seed}, step {number}"));
        }
        world.db.close().unwrap();
    }
}

/// What is prepared stands in a WAL that no flush makes needless: a copy without it would have
/// forgotten the transaction.
#[test]
fn copies_have_what_is_prepared() {
    let (directory, options) = (temporary(), two_phase());
    let at = |name: &str| directory.path().join(name);
    let db = Db::open(at("db"), &options).unwrap();
    prepare(&db, "early", &[("a", "1")]);
    db.put("x", "1").unwrap();
    db.flush_all().unwrap();
    prepare(&db, "late", &[("b", "1")]);
    db.put("y", "1").unwrap();

    db.checkpoint(at("flushed")).unwrap();
    db.checkpoint_with_wals(at("logged")).unwrap();
    let backups = BackupEngine::open(BackupEngineOptions::new(at("backups"))).unwrap();
    for flush_before_backup in [false, true] {
        let mut how = CreateBackupOptions::default();
        how.flush_before_backup = flush_before_backup;
        backups.create_new_backup(&db, &how).unwrap();
        let copy = at(if flush_before_backup { "restored-flushed" } else { "restored" });
        backups.restore_db_from_latest_backup(&copy, &copy, &RestoreOptions::default()).unwrap();
    }
    for copy in ["flushed", "logged", "restored", "restored-flushed"] {
        let db = Db::open(at(copy), &options).unwrap();
        assert_eq!(names(&db), ["early", "late"], "{copy}");
        commit(&db, "early");
        commit(&db, "late");
        assert_eq!(entries(&db, db.default_column_family()).len(), 4, "{copy}");
        db.close().unwrap();
    }
}

/// Whoever had followed the WALs up to a commit of something prepared could not go on from there:
/// its record alone does not say how many sequence numbers it took.
#[test]
fn a_replica_goes_on_behind_a_commit() {
    let directory = temporary();
    let mut options = two_phase();
    options.set("WAL_ttl_seconds", "3600").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    prepare(&db, "first", &[("a", "1"), ("b", "1")]);
    db.put("c", "1").unwrap();
    db.flush_all().unwrap();
    prepare(&db, "second", &[("d", "1")]);
    commit(&db, "first");
    db.put("e", "1").unwrap();
    TwoPhase::of(&db).rollback(&WriteOptions::default(), "second").unwrap();
    db.put("f", "1").unwrap();

    let mut updates = db.get_updates_since(1).unwrap();
    let mut counts = Vec::new();
    while let Some(update) = updates.next_update().unwrap() {
        let after = db.get_updates_after(update.position).unwrap();
        assert_eq!(after.next_sequence(), update.next_sequence);
        counts.push(update.batch.count());
    }
    counts.retain(|count| *count > 0);
    assert_eq!(counts, [1, 2, 1, 1]);
}
