//! Lives of a database whose values expire, with a clock in hand: what lives, by the clock, is
//! found, and nothing else, whatever was flushed, compacted, killed and opened again meanwhile.
//!
//! Two families with times to live of their own read strictly. Of half of them the merge operator
//! is asked, too: what is merged lives on with what it was merged onto only if that lived then. In
//! the other lives the times to live become shorter.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use flagstone::base::Snapshot;
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, ExpiringValue, TtlDb, TtlIter, TtlOptions};
use flagstone::env::{Clock, Env};
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, Options, ReadOptions, WriteOptions,
};

use crate::crash::{Disk, State};
use crate::history::block_on;
use crate::{CrashFs, HandClock, Survival, compare, fakes, settings, steps};

const DIRECTORY: &str = "/db";

/// When a life begins, in seconds since 1970.
const NOON: u64 = 1_700_000_000;

const NAMES: [&str; 2] = ["default", "other"];

/// Iterators and snapshots that are kept at a time.
const KEPT: usize = 3;

/// A value, and the last second in which it lives, if it does not live for ever.
#[derive(Clone, PartialEq, Eq)]
struct Stored {
    value: Vec<u8>,
    expiry: Option<u64>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} up to {:?}", self.value.escape_ascii(), self.expiry)
    }
}

impl Stored {
    fn lives(&self, now: u64) -> bool {
        self.expiry.is_none_or(|expiry| expiry >= now)
    }
}

/// What was written to a family.
type Contents = BTreeMap<Vec<u8>, Stored>;

/// What lives of it.
fn living(contents: &Contents, now: u64) -> Vec<(Vec<u8>, Stored)> {
    let living = contents.iter().filter(|(_, stored)| stored.lives(now));
    living.map(|(key, stored)| (key.clone(), stored.clone())).collect()
}

/// What is merged lives on with what was there if that lived at the time.
fn merge_onto(
    contents: &mut Contents,
    key: Vec<u8>,
    operand: &[u8],
    now: u64,
    expiry: Option<u64>,
) {
    let before = contents.remove(&key).filter(|before| before.lives(now));
    let value =
        before.map_or(operand.to_vec(), |before| [&before.value[..], b",", operand].concat());
    contents.insert(key, Stored { value, expiry });
}

/// An open iterator, what it must show, and where it stands.
struct Reader {
    iter: TtlIter,
    expected: Vec<(Vec<u8>, Stored)>,
    at: Option<usize>,
}

struct Life {
    random: fastrand::Rng,
    clock: Arc<HandClock>,
    disk: CrashFs,
    options: Options,
    merges: bool,
    ttls: [TtlOptions; 2],
    db: TtlDb,
    contents: [Contents; 2],
    snapshots: Vec<(Snapshot, [Contents; 2])>,
    readers: Vec<Reader>,
    /// How many values were written.
    written: u64,
}

/// Lives the life of this seed.
///
/// # Panics
/// When the engine says something else than the model, or fails.
pub fn live(seed: u64, steps: usize) {
    let mut life = Life::begin(seed);
    for step in 0..steps {
        life.step();
        if step % 40 == 39 {
            life.check();
        }
    }
    life.check();
    life.reopen();
    life.check();
    compare::check_files(life.db.base());
}

impl Life {
    fn begin(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let (disk, clock) = (CrashFs::new(), Arc::new(HandClock::at(NOON)));
        let env = Env { clock: clock.clone(), ..steps::world(Arc::new(disk.clone()), seed) };
        let mut options = settings::random(&env, &mut random);
        let merges = random.bool();
        options.cf.merge_operator = None;
        if merges {
            settings::set(&mut options, &[("merge_operator", "stringappend")]);
        }
        let of_other =
            TtlOptions { eternal_values: random.bool(), ..TtlOptions::strict(random.u64(5..40)) };
        let ttls = [TtlOptions::strict(random.u64(5..40)), of_other];
        let db = open(&options, &ttls);
        let (contents, snapshots, readers) = (Default::default(), Vec::new(), Vec::new());
        Self {
            random,
            clock,
            disk,
            options,
            merges,
            ttls,
            db,
            contents,
            snapshots,
            readers,
            written: 0,
        }
    }

    fn step(&mut self) {
        match self.random.u32(..100) {
            0..30 => self.put(),
            30..45 if self.merges => self.merge(),
            30..45 => self.put(),
            45..52 => self.write_batch(),
            52..56 => self.put_stream(),
            56..62 => self.delete(),
            62..70 => self.clock.advance(self.random.u64(1..4)),
            70..74 => self.db.base().flush_all().expect("a flush"),
            74..76 => self.compact(),
            76..79 => {
                self.db.base().background_step().expect("a step");
            }
            79..81 => match self.random.u32(..3) {
                0 => self.reopen(),
                1 => self.lose(true),
                _ => self.lose(false),
            },
            81..84 => self.take_snapshot(),
            84..87 => self.open_iterator(),
            87..91 => self.move_iterator(),
            91 if !self.merges => self.shorten(),
            _ => self.look_up(),
        }
    }

    fn now(&self) -> u64 {
        self.clock.unix_seconds()
    }

    /// One of the families.
    fn family(&mut self) -> (usize, ColumnFamily) {
        let which = self.random.usize(..NAMES.len());
        (which, self.db.base().column_family(NAMES[which]).expect("it is always there"))
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:02}", self.random.u32(..if self.merges { 10 } else { 60 })).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.written += 1;
        format!("{}-", self.written).repeat(self.random.usize(1..60)).into_bytes()
    }

    /// When what is written now expires, if it has no expiry of its own.
    fn expiry(&self, which: usize) -> Option<u64> {
        let ttl = self.ttls[which];
        (!ttl.eternal_values).then(|| self.now() + ttl.ttl_seconds)
    }

    fn put(&mut self) {
        let ((which, family), key, value) = (self.family(), self.key(), self.value());
        let options = WriteOptions { sync: self.random.u8(..8) == 0, ..WriteOptions::default() };
        let expiry = match self.random.u8(..4) {
            0 => {
                self.db.put_for_ever(&options, &family, &key, &value).expect("a write");
                None
            }
            1 => {
                let expiry = self.now() + self.random.u64(..60);
                self.db.put_until(&options, &family, &key, &value, expiry).expect("a write");
                Some(expiry)
            }
            _ => {
                let expiry = self.expiry(which);
                self.db.put_cf(&family, &key, &value).expect("a write");
                expiry
            }
        };
        self.contents[which].insert(key, Stored { value, expiry });
    }

    fn merge(&mut self) {
        let ((which, family), key, value) = (self.family(), self.key(), self.value());
        let (now, expiry) = (self.now(), self.expiry(which));
        self.db.merge_cf(&family, &key, &value).expect("a write");
        merge_onto(&mut self.contents[which], key, &value, now, expiry);
    }

    /// Several operations on both families, with one expiry for all values or with theirs.
    fn write_batch(&mut self) {
        let now = self.now();
        let until = (self.random.u8(..3) == 0).then(|| now + self.random.u64(..60));
        let (mut batch, mut contents) = (WriteBatch::new(), self.contents.clone());
        for _ in 0..self.random.usize(1..6) {
            let ((which, family), key, value) = (self.family(), self.key(), self.value());
            let expiry = self.expiry(which);
            match self.random.u8(..6) {
                0 => {
                    batch.delete_cf(&family, &key).expect("room");
                    contents[which].remove(&key);
                }
                1 => {
                    let mut ends = [key, self.key()];
                    ends.sort_unstable();
                    let [begin, end] = ends;
                    batch.delete_range_cf(&family, &begin, &end).expect("room");
                    contents[which].retain(|key, _| *key < begin || *key >= end);
                }
                2 if self.merges => {
                    batch.merge_cf(&family, &key, &value).expect("room");
                    merge_onto(&mut contents[which], key, &value, now, expiry);
                }
                _ => {
                    batch.put_cf(&family, &key, &value).expect("room");
                    let expiry = if until.is_some() { until } else { expiry };
                    contents[which].insert(key, Stored { value, expiry });
                }
            }
        }
        let options = WriteOptions::default();
        match until {
            Some(expiry) => self.db.write_until(&options, &batch, expiry).expect("a write"),
            None => self.db.write_with(&options, &batch).expect("a write"),
        }
        self.contents = contents;
    }

    fn put_stream(&mut self) {
        if self.db.base().options().readable_by_rocksdb_secondaries {
            return; // It is refused.
        }
        let ((which, family), key) = (self.family(), self.key());
        let mut writer =
            self.db.put_stream(&family, &key, &WriteOptions::default()).expect("a stream");
        let mut whole = Vec::new();
        for _ in 0..self.random.usize(..5) {
            let piece = self.value();
            writer.append(&piece).expect("a piece");
            whole.extend(piece);
        }
        let expiry = self.expiry(which);
        writer.commit().expect("a write");
        self.contents[which].insert(key, Stored { value: whole, expiry });
    }

    fn delete(&mut self) {
        let ((which, family), key) = (self.family(), self.key());
        self.db.delete_cf(&family, &key).expect("a write");
        self.contents[which].remove(&key);
    }

    /// All of a family, so that what has expired goes.
    fn compact(&mut self) {
        let (_, family) = self.family();
        let everything = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        self.db.base().compact_range(&family, None, None, &everything).expect("a compaction");
    }

    /// Values of a family have less time from now on, those stored, too. (With more of it what has
    /// expired would come back, unless a compaction has dropped it.)
    fn shorten(&mut self) {
        let (which, family) = self.family();
        let before = self.ttls[which].ttl_seconds;
        let after = before.saturating_sub(self.random.u64(..5)).max(2);
        self.readers.clear();
        self.db.set_ttl(&family, after).expect("a time to live");
        self.ttls[which].ttl_seconds = after;
        let snapshots = self.snapshots.iter_mut().map(|(_, contents)| &mut contents[which]);
        for contents in snapshots.chain([&mut self.contents[which]]) {
            contents.values_mut().for_each(|stored| {
                stored.expiry = stored.expiry.map(|expiry| expiry + after - before);
            });
        }
    }

    fn forget_readers(&mut self) {
        self.readers.clear();
        self.snapshots.clear();
    }

    fn reopen(&mut self) {
        self.forget_readers();
        self.db.base().close().expect("a clean close");
        self.db = open(&self.options, &self.ttls);
    }

    /// The process dies after a sync, or the power fails.
    fn lose(&mut self, power: bool) {
        self.forget_readers();
        self.db.base().sync_wal().expect("a sync");
        self.disk = if power {
            let survival = if self.random.bool() {
                Survival::Lost
            } else {
                Survival::Random(self.random.u64(..))
            };
            let left = self.disk.after_crash(self.disk.changes(), survival);
            CrashFs::on(Disk::holding(&State::of(&left)))
        } else {
            self.disk.kill()
        };
        // What is dead cannot, but lets go of the lock.
        let _ = self.db.base().close();
        self.options.env.fs = fakes::around(Arc::new(self.disk.clone()));
        self.db = open(&self.options, &self.ttls);
    }

    fn take_snapshot(&mut self) {
        if self.snapshots.len() == KEPT {
            self.snapshots.swap_remove(self.random.usize(..KEPT));
        }
        self.snapshots.push((self.db.base().snapshot(), self.contents.clone()));
    }

    /// How to read at present, or as a snapshot sees it; what is to be found of a family.
    fn moment(&mut self, which: usize) -> (ReadOptions, Vec<(Vec<u8>, Stored)>) {
        let now = self.now();
        let index = self.random.usize(..2 * KEPT);
        match self.snapshots.get(index) {
            Some((snapshot, contents)) => {
                let options =
                    ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                (options, living(&contents[which], now))
            }
            None => (ReadOptions::default(), living(&self.contents[which], now)),
        }
    }

    fn open_iterator(&mut self) {
        let (which, family) = self.family();
        let (mut options, mut expected) = self.moment(which);
        if self.random.bool() {
            let bound = self.key();
            expected.retain(|(key, _)| *key >= bound);
            options.iterate_lower_bound = Some(bound);
        }
        if self.random.u8(..3) == 0 {
            let bound = self.key();
            expected.retain(|(key, _)| *key < bound);
            options.iterate_upper_bound = Some(bound);
        }
        let iter = self.db.iter_cf(&family, &options).expect("an iterator");
        if self.readers.len() == KEPT {
            self.readers.swap_remove(self.random.usize(..KEPT));
        }
        self.readers.push(Reader { iter, expected, at: None });
    }

    fn move_iterator(&mut self) {
        let Some(last) = self.readers.len().checked_sub(1) else { return };
        let (index, count) = (self.random.usize(..=last), self.random.usize(1..20));
        for _ in 0..count {
            let (key, choice) = (self.key(), self.random.u8(..10));
            self.readers[index].go(choice, &key);
        }
    }

    /// One key, in every way.
    fn look_up(&mut self) {
        let ((which, family), keys) = (self.family(), [self.key(), self.key()]);
        let (options, expected) = self.moment(which);
        let expected: BTreeMap<_, _> = expected.into_iter().collect();
        let joint = self.db.multi_get_with(&options, &family, &keys);
        let by_task = block_on(self.db.multi_get_async(&options, &family, keys.to_vec()));
        for ((key, joint), by_task) in keys.iter().zip(joint).zip(by_task) {
            let wanted = expected.get(key);
            let value = wanted.map(|stored| &stored.value[..]);
            let found = self.db.get_with_expiry(&options, &family, key).expect("a lookup");
            let found = found
                .map(|ExpiringValue { value, expiry }| Stored { value: value.into_vec(), expiry });
            assert_eq!(found.as_ref(), wanted, "{} in {}", key.escape_ascii(), NAMES[which]);
            let alone = block_on(self.db.get_async(&options, &family, key));
            for (way, found) in
                [("multi_get", joint), ("multi_get_async", by_task), ("get_async", alone)]
            {
                assert_eq!(
                    found.expect("a lookup").as_deref(),
                    value,
                    "{way}: {}",
                    key.escape_ascii()
                );
            }
            let start = self.random.u64(..40);
            let range = start..start + self.random.u64(..400);
            let part = self.db.get_range(&options, &family, key, range.clone()).expect("a part");
            let part = part.map(|part| (part.bytes.to_vec(), part.value_size));
            let whole = value.map(|value| {
                let end = (range.end as usize).min(value.len());
                let cut = value.get(range.start as usize..end).unwrap_or_default();
                (cut.to_vec(), value.len() as u64)
            });
            assert_eq!(part, whole, "{range:?} of {}", key.escape_ascii());
        }
    }

    /// All of both families, as of now and of the snapshots, in both directions and in batches.
    fn check(&self) {
        let now = self.now();
        for (which, name) in NAMES.iter().enumerate() {
            let family = self.db.base().column_family(name).expect("it is always there");
            let at_snapshots =
                self.snapshots.iter().map(|(snapshot, contents)| (Some(snapshot), contents));
            for (snapshot, contents) in at_snapshots.chain([(None, &self.contents)]) {
                let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
                let expected = living(&contents[which], now);
                let iter = self.db.iter_cf(&family, &options).expect("an iterator");
                let mut reader = Reader { iter, expected, at: None };
                reader.walk_through();
                let mut scan = self.db.iter_async(&family, &options).expect("a cursor");
                let mut found = Vec::new();
                loop {
                    let batch = block_on(scan.next_batch(1 + found.len() % 5)).expect("a batch");
                    if batch.is_empty() {
                        break;
                    }
                    found.extend(batch);
                }
                let expected = reader.expected.into_iter().map(|(key, stored)| (key, stored.value));
                assert!(expected.eq(found), "{name}: what a task finds");
            }
        }
    }
}

impl Reader {
    /// All of it, and all the way back.
    fn walk_through(&mut self) {
        self.go(0, b"");
        while self.at.is_some() {
            self.go(2, b"");
        }
        self.go(1, b"");
        while self.at.is_some() {
            self.go(5, b"");
        }
    }

    /// To one of the ends, to the key, or a step from where it stands; compares what is there.
    fn go(&mut self, choice: u8, key: &[u8]) {
        let Self { iter, expected, at } = self;
        let count = expected.len();
        let after = expected.partition_point(|(other, _)| &**other < key);
        let up_to = expected.partition_point(|(other, _)| &**other <= key);
        *at = match (choice, *at) {
            (2..5, Some(at)) => {
                iter.next();
                Some(at + 1).filter(|at| *at < count)
            }
            (5..8, Some(at)) => {
                iter.prev();
                at.checked_sub(1)
            }
            (0, _) => {
                iter.seek_to_first();
                Some(0).filter(|_| count > 0)
            }
            (1, _) => {
                iter.seek_to_last();
                count.checked_sub(1)
            }
            (8, _) => {
                iter.seek(key);
                Some(after).filter(|at| *at < count)
            }
            _ => {
                iter.seek_for_prev(key);
                up_to.checked_sub(1)
            }
        };
        iter.status().expect("no error");
        let found = iter.valid().then(|| iter.key().to_vec());
        assert_eq!(found.as_ref(), at.map(|at| &expected[at].0), "an iterator after {choice}");
        if let Some(at) = *at {
            let value = iter.value().expect("a value").to_vec();
            let expiry = iter.expiry().expect("an expiry");
            assert_eq!(
                Stored { value, expiry },
                expected[at].1,
                "{}",
                expected[at].0.escape_ascii()
            );
        }
    }
}

fn open(options: &Options, ttls: &[TtlOptions; 2]) -> TtlDb {
    let families: Vec<_> =
        NAMES.iter().zip(ttls).map(|(name, ttl)| (*name, options.cf.clone(), *ttl)).collect();
    TtlDb::open_with_families(DIRECTORY, options, &families).expect("an opening")
}
