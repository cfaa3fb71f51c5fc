//! Random lives of a primary and of a replica that follows it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use flagstone::base::{Code, ColumnFamilyId, Result, SequenceNumber};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, UpdatePosition, Updates};
use flagstone::env::Env;
use flagstone::options::{Options, ReadOptions, WriteOptions};
use testkit::crash::{Disk, State};
use testkit::{CrashFs, Survival, for_each_seed, steps};

use crate::{open, options};

type Contents = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

fn apply(batch: &WriteBatch, contents: &mut Contents) {
    use flagstone::batch::Operation::{Delete, DeleteRange, Put};
    for operation in batch.iter() {
        match operation.expect("an operation") {
            Put { cf, key, value } => drop(contents.insert((cf.0, key.to_vec()), value.to_vec())),
            Delete { cf, key } => drop(contents.remove(&(cf.0, key.to_vec()))),
            DeleteRange { cf, begin, end } => {
                contents.retain(|(family, key), _| {
                    *family != cf.0 || &key[..] < begin || &key[..] >= end
                });
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
            contents.insert(
                (family.id().0, iter.key().to_vec()),
                iter.value().expect("a value").to_vec(),
            );
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
    /// Where it is, if it has applied anything since its copy.
    position: Option<UpdatePosition>,
    copies: usize,
    /// How often it was told that it holds what the primary has lost.
    diverged: usize,
    caution: Caution,
}

/// What a replica does about power losses of the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caution {
    /// There are none.
    None,
    /// It has the primary's WAL synced before it applies anything.
    Syncs,
    /// It goes on by position.
    HasPosition,
}

impl Replica {
    fn new(primary: &Db, caution: Caution) -> Self {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        let db = Db::open("/replica", &options).expect("the replica opens");
        db.create_column_family("other", &options.cf).expect("a family");
        assert_eq!(primary.latest_sequence_number(), 0);
        Self { db, next: 1, updates: None, position: None, copies: 0, diverged: 0, caution }
    }

    /// Takes over everything as it is now, but for what the primary would not have after a crash.
    fn copy(&mut self, primary: &Db) {
        primary.flush_wal(self.caution != Caution::None).expect("the WAL is flushed");
        let mut batch = WriteBatch::new();
        for family in [0, 1].map(ColumnFamilyId) {
            batch.delete_range_cf(family, "", "~").expect("a small batch");
        }
        for ((family, key), value) in contents(primary) {
            batch.put_cf(ColumnFamilyId(family), key, value).expect("a small batch");
        }
        self.db.write(batch).expect("a write");
        (self.next, self.updates, self.position) =
            (primary.latest_sequence_number() + 1, None, None);
        self.copies += 1;
    }

    fn updates_of(&self, primary: &Db) -> Result<Updates> {
        match self.position.filter(|_| self.caution == Caution::HasPosition) {
            Some(position) => primary.get_updates_after(position),
            None => primary.get_updates_since(self.next),
        }
    }

    /// Applies up to `most` writes, and compares with what the primary held after each.
    fn follow(&mut self, primary: &Db, history: &BTreeMap<SequenceNumber, Contents>, most: usize) {
        for _ in 0..most {
            let outcome = match &mut self.updates {
                Some(updates) => updates.next_update(),
                None => self.updates_of(primary).and_then(|mut updates| {
                    let update = updates.next_update();
                    self.updates = Some(updates);
                    update
                }),
            };
            match outcome {
                Ok(Some(update)) => {
                    assert_eq!(update.sequence, self.next, "nothing is left out");
                    if self.caution == Caution::Syncs {
                        primary.sync_wal().expect("a sync");
                    }
                    self.db.write(update.batch).expect("a write");
                    (self.next, self.position) = (update.next_sequence, Some(update.position));
                    assert_eq!(
                        contents(&self.db),
                        history[&self.next],
                        "before write {}",
                        self.next
                    );
                }
                Ok(None) => return,
                Err(error) if error.code() == Code::NotFound => self.copy(primary),
                Err(error) if error.code() == Code::InvalidArgument => {
                    assert_eq!(self.caution, Caution::HasPosition, "{error}");
                    self.diverged += 1;
                    self.copy(primary);
                }
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
    changes.push(if keeps_all {
        ("WAL_ttl_seconds", "1000000")
    } else {
        ("recycle_log_file_num", ["0", "1", "3"][random.usize(..3)])
    });
    let commits_blobs = random.usize(..2) == 0;
    changes.push(("blob_write_mode", if commits_blobs { "commit" } else { "flush" }));
    changes.push(("blob_commit_min_size", "200"));
    changes.push(("wal_compression", ["kNoCompression", "kZSTD"][random.usize(..2)]));
    changes.push(("manual_wal_flush", ["false", "true"][random.usize(..2)]));
    (options(&changes), keeps_all && !commits_blobs)
}

/// A life of a primary whose process is killed, or which loses power, and of its replica; how often
/// that was told that it is wrong.
fn live(seed: u64, caution: Caution) -> usize {
    let loses_power = caution != Caution::None;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disk = CrashFs::new();
    let (mut options, needs_no_copy) = random_options(&mut random);
    options.env = steps::world(Arc::new(disk.clone()), seed);
    let mut db = open(&options);
    db.create_column_family("other", &options.cf).expect("a family");
    let mut replica = Replica::new(&db, caution);
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
                // What was in memory is lost, and nobody has seen it; with the power, what was not
                // synced.
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
                db.write_with(&WriteOptions { sync, ..WriteOptions::default() }, batch)
                    .expect("a write");
                history.insert(db.latest_sequence_number() + 1, held.clone());
            }
        }
    }
    db.flush_wal(false).expect("the WAL is flushed");
    replica.follow(&db, &history, usize::MAX);
    assert_eq!(replica.next, db.latest_sequence_number() + 1);
    assert_eq!(contents(&replica.db), held);
    assert!(
        replica.copies == 0 || !needs_no_copy || loses_power,
        "all that was written could be read along"
    );
    replica.diverged
}

#[test]
fn a_replica_holds_at_every_step_what_the_primary_held() {
    for_each_seed(24, |seed| assert_eq!(live(seed, Caution::None), 0));
}

#[test]
fn a_replica_that_syncs_the_wal_before_it_applies_survives_power_losses_of_the_primary() {
    for_each_seed(24, |seed| assert_eq!(live(seed, Caution::Syncs), 0));
}

#[test]
fn a_replica_that_goes_on_by_position_is_told_when_it_holds_what_the_primary_has_lost() {
    let diverged = Cell::new(0);
    for_each_seed(24, |seed| diverged.set(diverged.get() + live(seed, Caution::HasPosition)));
    assert!(diverged.get() > 0 || std::env::var("FLAGSTONE_SEEDS").is_ok(), "it never happened");
}
