//! Reading along: the writes of a database out of its WALs, applied to another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use flagstone::base::{Code, ColumnFamilyId, SequenceNumber};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Updates};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{Options, ReadOptions, WriteOptions};
use testkit::crash::{Disk, State};
use testkit::{CrashFs, Survival, for_each_seed, settings, steps};

const PRIMARY: &str = "/primary";

fn options(changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), 1));
    settings::set(&mut options, changes);
    options
}

fn open(options: &Options) -> Db {
    Db::open(PRIMARY, options).expect("the primary opens")
}

/// The keys that the next updates put.
fn keys(updates: &mut Updates) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(update) = updates.next_update().expect("an update") {
        for operation in update.batch.iter() {
            if let flagstone::batch::Operation::Put { key, .. } = operation.expect("an operation") {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
        }
    }
    keys
}

#[test]
fn writes_come_in_their_order_also_from_the_archive() {
    let db = open(&options(&[("WAL_ttl_seconds", "100")]));
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
        db.flush_all().unwrap();
    }
    assert_eq!(db.oldest_update().unwrap(), Some(1));
    let mut updates = db.get_updates_since(1).unwrap();
    assert_eq!(keys(&mut updates), ["a", "b", "c"]);
    assert_eq!(updates.next_sequence(), 4);
    db.put("d", "value").unwrap();
    assert_eq!(keys(&mut updates), ["d"], "it sees what is written later");
    db.flush_all().unwrap();
    db.put("e", "value").unwrap();
    assert_eq!(keys(&mut updates), ["e"], "in another WAL, too");
    assert_eq!(keys(&mut db.get_updates_since(3).unwrap()), ["c", "d", "e"]);
}

#[test]
fn whoever_asks_for_the_middle_of_a_batch_has_all_of_it() {
    let db = open(&options(&[]));
    let mut batch = WriteBatch::new();
    ["a", "b", "c"].iter().for_each(|key| batch.put(key, "value").unwrap());
    db.write(batch).unwrap();
    db.put("d", "value").unwrap();
    let update = db.get_updates_since(2).unwrap().next_update().unwrap().unwrap();
    assert_eq!((update.sequence, update.next_sequence, update.batch.count()), (1, 4, 3));
}

#[test]
fn log_data_is_handed_on_and_what_the_engine_notes_is_not() {
    let db = open(&options(&[("WAL_ttl_seconds", "100")]));
    db.put("a", "value").unwrap();
    db.flush_all().unwrap();
    let mut batch = WriteBatch::new();
    batch.put_log_data("a word to the replica").unwrap();
    db.write(batch).unwrap();
    db.put("b", "value").unwrap();
    let mut updates = db.get_updates_since(1).unwrap();
    let counts: Vec<u32> =
        std::iter::from_fn(|| updates.next_update().unwrap()).map(|update| update.batch.count()).collect();
    assert_eq!(counts, [1, 0, 1]);
}

#[test]
fn what_is_no_longer_there_is_said_to_be() {
    let db = open(&options(&[("recycle_log_file_num", "0")]));
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    let mut behind = db.get_updates_since(2).unwrap();
    db.flush_all().unwrap();
    db.put("d", "value").unwrap();
    let error = db.get_updates_since(2).expect_err("it is gone");
    assert_eq!(error.code(), Code::NotFound);
    assert!(
        error.to_string().contains("number 2 is in the WALs no longer: the oldest that is there begins at 4"),
        "{error}"
    );
    assert_eq!(keys(&mut behind), ["b", "c", "d"], "who had it open reads on");
    assert_eq!(keys(&mut db.get_updates_since(4).unwrap()), ["d"]);
}

#[test]
fn a_log_that_is_used_again_is_no_damage() {
    let db = open(&options(&[("recycle_log_file_num", "2"), ("wal_recovery_mode", "kPointInTimeRecovery")]));
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    let mut behind = db.get_updates_since(1).unwrap();
    for key in ["d", "e", "f"] {
        db.flush_all().unwrap();
        db.put(key, "another value, longer than before").unwrap();
    }
    let mut found = Vec::new();
    let error = loop {
        match behind.next_update() {
            Ok(Some(update)) => found.push(update.sequence),
            Ok(None) => panic!("the latest writes were skipped"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(found.is_empty() || found.iter().copied().eq(1..=found.len() as u64), "{found:?}");
    let again = behind.next_update().unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "it does not go on behind what is missing");
}

#[test]
fn what_was_written_without_the_log_is_missing() {
    let db = open(&options(&[]));
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put("a", "value").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "value").unwrap();
    db.write_with(&unlogged, batch).unwrap();
    let after_a = || {
        let mut updates = db.get_updates_since(1).unwrap();
        assert_eq!(updates.next_update().unwrap().unwrap().next_sequence, 2);
        updates.next_update().unwrap_err()
    };
    let error = after_a();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(
        error.to_string().contains("number 2 is in the WALs no longer: no WAL has what follows"),
        "{error}"
    );
    db.put("c", "value").unwrap();
    let error = after_a();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(
        error.to_string().contains("number 2 is in the WALs no longer: what follows begins at 3"),
        "{error}"
    );
}

/// It was taken for the end, until something else was written.
#[test]
fn the_end_is_not_where_the_rest_is_gone() {
    let db = open(&options(&[("recycle_log_file_num", "0")]));
    db.put("a", "value").unwrap();
    let mut behind = db.get_updates_since(1).unwrap();
    assert_eq!(keys(&mut behind), ["a"]);
    for key in ["b", "c", "d"] {
        db.flush_all().unwrap();
        db.put(key, "value").unwrap();
    }
    db.flush_all().unwrap();
    let error = behind.next_update().unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
}

#[test]
fn the_future_is_refused() {
    let options = options(&[]);
    let db = open(&options);
    assert!(db.get_updates_since(0).unwrap().next_update().unwrap().is_none());
    let mut updates = db.get_updates_since(1).unwrap();
    assert!(updates.next_update().unwrap().is_none(), "nothing was written yet");
    let ahead = db.get_updates_since(2).expect_err("nobody has seen that");
    assert_eq!(ahead.code(), Code::InvalidArgument, "{ahead}");
    db.put("a", "value").unwrap();
    assert_eq!(keys(&mut updates), ["a"]);
    db.close().unwrap();
    assert_eq!(updates.next_update().unwrap_err().code(), Code::ShutdownInProgress);
    let db = Db::open_read_only(PRIMARY, &options).unwrap();
    assert_eq!(db.get_updates_since(1).unwrap_err().code(), Code::NotSupported);
}

#[test]
fn what_waits_in_memory_comes_when_it_is_written() {
    let db = open(&options(&[("manual_wal_flush", "true"), ("writable_file_max_buffer_size", "65536")]));
    db.put("a", "value").unwrap();
    let mut updates = db.get_updates_since(1).unwrap();
    assert!(updates.next_update().unwrap().is_none());
    db.flush_wal(false).unwrap();
    assert_eq!(keys(&mut updates), ["a"]);
}

/// A value that a record refers to is handed out as long as its blob file is there.
#[test]
fn values_in_blob_files_are_fetched() {
    let blobs =
        [("enable_blob_files", "true"), ("blob_write_mode", "commit"), ("blob_commit_min_size", "10")];
    let db = open(&options(&[&blobs[..], &[("WAL_ttl_seconds", "100")]].concat()));
    let large = [7; 3000];
    db.put("large", large).unwrap();
    let mut updates = db.get_updates_since(1).unwrap();
    let update = updates.next_update().unwrap().unwrap();
    let mut expected = WriteBatch::new();
    expected.put("large", large).unwrap();
    assert_eq!((update.sequence, update.batch.body()), (1, expected.body()));
    db.delete("large").unwrap();
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    let error = db.get_updates_since(1).unwrap().next_update().unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(error.to_string().contains("overwritten"), "{error}");
    assert!(updates.next_update().unwrap().is_some(), "the deletion");
}

type Contents = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

fn apply(batch: &WriteBatch, contents: &mut Contents) {
    use flagstone::batch::Operation::{Delete, DeleteRange, Put};
    for operation in batch.iter() {
        match operation.expect("an operation") {
            Put { cf, key, value } => drop(contents.insert((cf.0, key.to_vec()), value.to_vec())),
            Delete { cf, key } => drop(contents.remove(&(cf.0, key.to_vec()))),
            DeleteRange { cf, begin, end } => {
                contents.retain(|(family, key), _| *family != cf.0 || &key[..] < begin || &key[..] >= end);
            }
            other => panic!("nobody wrote {other:?}"),
        }
    }
}

fn contents(db: &Db) -> Contents {
    let mut contents = Contents::new();
    for family in db.column_families() {
        let mut iter = db.iter_cf(&family, &ReadOptions::default()).expect("an iterator");
        iter.seek_to_first();
        while iter.valid() {
            contents.insert((family.id().0, iter.key().to_vec()), iter.value().expect("a value").to_vec());
            iter.next();
        }
        iter.status().expect("no error");
    }
    contents
}

/// A database that follows another one.
struct Replica {
    db: Db,
    /// The sequence number of the primary's next write.
    next: SequenceNumber,
    updates: Option<Updates>,
    copies: usize,
    /// Whether it has the primary's WAL synced before it applies anything.
    is_never_ahead: bool,
}

impl Replica {
    fn new(primary: &Db, is_never_ahead: bool) -> Self {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        let db = Db::open("/replica", &options).expect("the replica opens");
        db.create_column_family("other", &options.cf).expect("a family");
        assert_eq!(primary.latest_sequence_number(), 0);
        Self { db, next: 1, updates: None, copies: 0, is_never_ahead }
    }

    /// Takes over everything as it is now, but for what the primary would not have after a crash.
    fn copy(&mut self, primary: &Db) {
        primary.flush_wal(self.is_never_ahead).expect("the WAL is flushed");
        let mut batch = WriteBatch::new();
        for family in [0, 1].map(ColumnFamilyId) {
            batch.delete_range_cf(family, "", "~").expect("a small batch");
        }
        for ((family, key), value) in contents(primary) {
            batch.put_cf(ColumnFamilyId(family), key, value).expect("a small batch");
        }
        self.db.write(batch).expect("a write");
        (self.next, self.updates) = (primary.latest_sequence_number() + 1, None);
        self.copies += 1;
    }

    /// Applies up to `most` writes, and compares with what the primary held after each.
    fn follow(&mut self, primary: &Db, history: &BTreeMap<SequenceNumber, Contents>, most: usize) {
        for _ in 0..most {
            let outcome = match &mut self.updates {
                Some(updates) => updates.next_update(),
                None => primary.get_updates_since(self.next).and_then(|mut updates| {
                    let update = updates.next_update();
                    self.updates = Some(updates);
                    update
                }),
            };
            match outcome {
                Ok(Some(update)) => {
                    assert_eq!(update.sequence, self.next, "nothing is left out");
                    if self.is_never_ahead {
                        primary.sync_wal().expect("a sync");
                    }
                    self.db.write(update.batch).expect("a write");
                    self.next = update.next_sequence;
                    assert_eq!(contents(&self.db), history[&self.next], "before write {}", self.next);
                }
                Ok(None) => return,
                Err(error) if error.code() == Code::NotFound => self.copy(primary),
                // It was closed, and is open again.
                Err(error) if error.code() == Code::ShutdownInProgress => self.updates = None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn random_batch(random: &mut fastrand::Rng) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for _ in 0..1 + random.usize(..4) {
        let family = ColumnFamilyId(random.u32(..2));
        let key = |random: &mut fastrand::Rng| format!("key{:02}", random.usize(..30));
        match random.usize(..10) {
            0 => batch.delete_cf(family, key(random)),
            1 => {
                let begin = random.usize(..30);
                let end = begin + random.usize(..8);
                batch.delete_range_cf(family, format!("key{begin:02}"), format!("key{end:02}"))
            }
            size => batch.put_cf(family, key(random), vec![size as u8; random.usize(..40) * size]),
        }
        .expect("a small batch");
    }
    batch
}

/// The options of a life: whether the replica can rely on the archive, and what makes WALs differ.
fn random_options(random: &mut fastrand::Rng) -> (Options, bool) {
    let keeps_all = random.usize(..2) == 0;
    let mut changes = vec![("enable_blob_files", "true"), ("min_blob_size", "100")];
    changes.push(match keeps_all {
        true => ("WAL_ttl_seconds", "1000000"),
        false => ("recycle_log_file_num", ["0", "1", "3"][random.usize(..3)]),
    });
    let commits_blobs = random.usize(..2) == 0;
    changes.push(("blob_write_mode", if commits_blobs { "commit" } else { "flush" }));
    changes.push(("blob_commit_min_size", "200"));
    changes.push(("wal_compression", ["kNoCompression", "kZSTD"][random.usize(..2)]));
    changes.push(("manual_wal_flush", ["false", "true"][random.usize(..2)]));
    (options(&changes), keeps_all && !commits_blobs)
}

/// A life of a primary whose process is killed, or which loses power, and of its replica.
fn live(seed: u64, loses_power: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disk = CrashFs::new();
    let (mut options, needs_no_copy) = random_options(&mut random);
    options.env = steps::world(Arc::new(disk.clone()), seed);
    let mut db = open(&options);
    db.create_column_family("other", &options.cf).expect("a family");
    let mut replica = Replica::new(&db, loses_power);
    let mut held = Contents::new();
    let mut history = BTreeMap::from([(1, held.clone())]);
    for _ in 0..120 {
        match random.usize(..12) {
            0 => db.flush_all().expect("a flush"),
            1 => replica.follow(&db, &history, random.usize(..20)),
            2 => db.flush_wal(random.usize(..2) == 0).expect("the WAL is flushed"),
            3 if random.bool() => {
                db.close().expect("closed");
                db = open(&options);
            }
            3 => {
                // What was in memory is lost, and nobody has seen it; with the power, what was not synced.
                let left = loses_power.then(|| {
                    let survival = Survival::Random(random.u64(..));
                    State::of(&disk.after_crash(disk.changes(), survival))
                });
                disk = disk.kill();
                if let Some(left) = left {
                    disk = CrashFs::on(Disk::holding(&left));
                }
                (replica.updates, options.env) = (None, steps::world(Arc::new(disk.clone()), seed));
                drop(db);
                db = open(&options);
                let next = db.latest_sequence_number() + 1;
                history.retain(|sequence, _| *sequence <= next);
                held = history[&next].clone();
            }
            _ => {
                let batch = random_batch(&mut random);
                let sync = random.usize(..5) == 0;
                apply(&batch, &mut held);
                db.write_with(&WriteOptions { sync, ..WriteOptions::default() }, batch).expect("a write");
                history.insert(db.latest_sequence_number() + 1, held.clone());
            }
        }
    }
    db.flush_wal(false).expect("the WAL is flushed");
    replica.follow(&db, &history, usize::MAX);
    assert_eq!(replica.next, db.latest_sequence_number() + 1);
    assert_eq!(contents(&replica.db), held);
    assert!(replica.copies == 0 || !needs_no_copy || loses_power, "all that was written could be read along");
}

#[test]
fn a_replica_holds_at_every_step_what_the_primary_held() {
    for_each_seed(24, |seed| live(seed, false));
}

#[test]
fn a_replica_that_syncs_the_wal_before_it_applies_survives_power_losses_of_the_primary() {
    for_each_seed(24, |seed| live(seed, true));
}

/// On a real disk, where the WAL is mapped, while others write and flush.
#[test]
fn a_replica_follows_writers_in_other_threads() {
    const WRITES: u64 = 2000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set_all("WAL_ttl_seconds=100000;write_buffer_size=65536").expect("options");
    let db = Db::open(directory.path().join("db"), &options).expect("a database");
    let mut next = 1;
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..WRITES / 2 {
                    let sync = n % 100 == 0;
                    let how = WriteOptions { sync, ..WriteOptions::default() };
                    let mut batch = WriteBatch::new();
                    batch.put(format!("{writer} {n}"), [7; 100]).expect("a small batch");
                    db.write_with(&how, batch).expect("a write");
                }
            });
        }
        let mut updates = db.get_updates_since(1).expect("updates");
        while next <= WRITES {
            match updates.next_update().expect("an update") {
                None => std::thread::yield_now(),
                Some(update) => {
                    assert_eq!((update.sequence, update.batch.count()), (next, 1));
                    next = update.next_sequence;
                }
            }
        }
    });
}
