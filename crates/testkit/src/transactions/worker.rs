//! One thread's transactions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::time::Duration;

use flagstone::{
    Code, Db, Error, Result, Transaction, TransactionOptions, WriteBatch, WriteOptions,
};

use super::journal::Journal;
use super::lists::{IN_USE, LENGTH_MAX, Lists, to_bytes, to_element, to_key, to_list};
use crate::isolation::{self, Key, Outcome, Read, Step, Value};

/// What the threads of a round share.
pub(super) struct Shared<'a> {
    pub db: &'a Db,
    pub lists: &'a Lists,
    /// The lists in use.
    pub keys: [AtomicU64; IN_USE],
    pub next_key: AtomicU64,
    pub next_value: AtomicU64,
    /// Of all events.
    pub time: AtomicU64,
    pub begun: AtomicU64,
    pub stop: AtomicBool,
}

impl Shared<'_> {
    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn value(&self) -> Value {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    fn keys(&self) -> Vec<Key> {
        self.keys.iter().map(|key| key.load(Ordering::Relaxed)).collect()
    }

    /// Puts another list in the place of one that is full.
    fn retire(&self, full: Key) {
        for key in &self.keys {
            if key.load(Ordering::Relaxed) == full {
                let next = self.next_key.fetch_add(1, Ordering::Relaxed);
                let _ = key.compare_exchange(full, next, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

/// One thread.
pub(super) struct Worker<'a> {
    pub shared: &'a Shared<'a>,
    pub random: fastrand::Rng,
    pub journal: Journal,
    pub process: u64,
}

/// A transaction that runs.
struct Running {
    transaction: Transaction,
    is_in_snapshot: bool,
    steps: Vec<Step>,
    /// How many steps there were at each save point.
    save_points: Vec<usize>,
}

/// What others may do to a transaction.
fn is_conflict(error: &Error) -> bool {
    matches!(error.code(), Code::Busy | Code::TryAgain | Code::TimedOut | Code::Expired)
}

type Action<'a> = fn(&mut Worker<'a>) -> Result<()>;

impl<'a> Worker<'a> {
    const ACTIONS: [(u32, Action<'a>); 6] = [
        (800, Self::transaction),
        (100, Self::retried),
        (100, Self::plain_write),
        (100, Self::snapshot),
        (3, Self::flush),
        (1, Self::compact),
    ];

    /// Works until told to stop, or until something is wrong. `count` hears how many transactions
    /// all threads have begun.
    pub(super) fn work(&mut self, count: &dyn Fn(u64)) -> Result<()> {
        let total: u32 = Self::ACTIONS.iter().map(|(weight, _)| weight).sum();
        while !self.shared.stop.load(Ordering::Relaxed) {
            count(self.shared.begun.fetch_add(1, Ordering::Relaxed));
            let mut at = self.random.u32(..total);
            let action = Self::ACTIONS.iter().find(|(weight, _)| {
                let is_it = at < *weight;
                at = at.saturating_sub(*weight);
                is_it
            });
            action.expect("the weights add up to the total").1(self)?;
        }
        Ok(())
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    fn key(&mut self) -> Key {
        self.shared.keys[self.random.usize(..IN_USE)].load(Ordering::Relaxed)
    }

    fn synced(&mut self, one_in: u32) -> WriteOptions {
        WriteOptions { sync: self.chance(one_in), ..WriteOptions::default() }
    }

    /// Some transactions look for deadlocks, others run into them; a few take too long.
    fn transaction_options(&mut self, set_snapshot: bool) -> TransactionOptions {
        TransactionOptions {
            set_snapshot,
            deadlock_detect: !self.chance(8),
            lock_timeout: Some(Duration::from_millis(if self.chance(8) { 0 } else { 20 })),
            expiration: self.chance(8).then(|| Duration::from_millis(1)),
            ..TransactionOptions::default()
        }
    }

    /// Notes a transaction that does not commit, or is about to.
    fn note(&mut self, begun: u64, outcome: Outcome, steps: Vec<Step>) -> Result<()> {
        let ended = match outcome {
            Outcome::Unknown => None,
            Outcome::Committed | Outcome::Failed => Some(self.shared.tick()),
        };
        let process = self.process;
        self.journal.note(&isolation::Transaction { process, begun, ended, outcome, steps })
    }

    /// Notes how a commit ended.
    fn ended(&mut self, outcome: Result<()>) -> Result<()> {
        let ended = self.shared.tick();
        match outcome {
            Ok(()) => self.journal.ended(ended, true),
            Err(error) if is_conflict(&error) => self.journal.ended(ended, false),
            Err(error) => Err(error),
        }
    }

    fn transaction(&mut self) -> Result<()> {
        let begun = self.shared.tick();
        let is_in_snapshot = self.random.bool();
        let options = self.transaction_options(is_in_snapshot);
        let transaction = self.shared.db.begin_with(&options);
        let (steps, save_points) = (Vec::new(), Vec::new());
        let mut running = Running { transaction, is_in_snapshot, steps, save_points };
        for _ in 0..self.random.usize(1..6) {
            match self.step(&mut running) {
                Err(error) if is_conflict(&error) => {
                    return self.note(begun, Outcome::Failed, running.steps);
                }
                stepped => stepped?,
            }
        }
        if self.chance(12) {
            drop(running.transaction);
            return self.note(begun, Outcome::Failed, running.steps);
        }
        self.note(begun, Outcome::Unknown, running.steps)?;
        // A sync takes long: it is then that a transaction expires while it is written.
        let options = self.synced(if options.expiration.is_some() { 2 } else { 100 });
        let committed = running.transaction.commit_with(&options);
        self.ended(committed)
    }

    fn step(&mut self, running: &mut Running) -> Result<()> {
        let key = self.key();
        match self.random.u8(..16) {
            0..3 => self.append_by_put(running, key),
            3..6 => self.append_by_merge(running, key),
            6..9 => self.read_locked(running, key).map(drop),
            9..12 => self.read(running, key),
            12 => self.scan(running),
            13 => self.read_and_undo(running, key),
            14 => {
                running.transaction.set_save_point();
                running.save_points.push(running.steps.len());
                Ok(())
            }
            _ => {
                let Some(steps) = running.save_points.pop() else { return Ok(()) };
                running.steps.truncate(steps);
                running.transaction.rollback_to_save_point()
            }
        }
    }

    fn append_by_put(&mut self, running: &mut Running, key: Key) -> Result<()> {
        let list = self.read_locked(running, key)?;
        if list.len() >= LENGTH_MAX {
            self.shared.retire(key);
            return Ok(());
        }
        let value = self.shared.value();
        let elements: Vec<u8> = list.into_iter().chain([value]).flat_map(to_element).collect();
        let family = self.shared.lists.family(key);
        running.transaction.put(family, to_bytes(key), elements)?;
        running.steps.push(Step::Append { key, value });
        Ok(())
    }

    /// Appends without a look at the list.
    fn append_by_merge(&mut self, running: &mut Running, key: Key) -> Result<()> {
        let value = self.shared.value();
        let family = self.shared.lists.family(key);
        running.transaction.merge(family, to_bytes(key), to_element(value))?;
        running.steps.push(Step::Append { key, value });
        Ok(())
    }

    /// Reads for update. With locks, every second of these is shared; if the list is appended to
    /// then, the lock is strengthened.
    fn read_locked(&mut self, running: &mut Running, key: Key) -> Result<Vec<Value>> {
        let family = self.shared.lists.family(key);
        let found = if self.random.bool() {
            running.transaction.get_for_update(family, to_bytes(key))?
        } else {
            running.transaction.get_shared(family, to_bytes(key))?
        };
        let list = to_list(found.as_deref());
        running.steps.push(Step::Read { how: Read::Locked, key, list: list.clone() });
        Ok(list)
    }

    fn read(&mut self, running: &mut Running, key: Key) -> Result<()> {
        let found = running.transaction.get(self.shared.lists.family(key), to_bytes(key))?;
        running.add_read(key, to_list(found.as_deref()));
        Ok(())
    }

    /// Reads for update, and takes back that the key be locked: so much as a plain read.
    fn read_and_undo(&mut self, running: &mut Running, key: Key) -> Result<()> {
        let is_locked = running.steps.iter().any(|step| match step {
            Step::Append { key: other, .. } => *other == key,
            Step::Read { how, key: other, .. } => *how == Read::Locked && *other == key,
        });
        if is_locked {
            return Ok(());
        }
        let family = self.shared.lists.family(key);
        let found = running.transaction.get_for_update(family, to_bytes(key))?;
        running.add_read(key, to_list(found.as_deref()));
        running.transaction.undo_get_for_update(family, to_bytes(key))
    }

    /// Reads the lists of a family that are in use, as of one moment.
    fn scan(&mut self, running: &mut Running) -> Result<()> {
        let keys = self.shared.keys();
        let one = self.shared.lists.family(keys[0]);
        let of_family = |key: &Key| self.shared.lists.family(*key).name() == one.name();
        let mut keys: Vec<Key> = keys.into_iter().filter(of_family).collect();
        keys.sort_unstable();
        keys.dedup();
        let view = running.transaction.family(one)?;
        if self.random.bool() {
            let names: Vec<_> = keys.iter().map(|key| to_bytes(*key)).collect();
            for (key, found) in keys.iter().zip(view.get_many(&names)?) {
                running.add_read(*key, to_list(found.as_deref()));
            }
            return Ok(());
        }
        let mut found = Vec::new();
        for entry in view.range(to_bytes(keys[0])..=to_bytes(keys[keys.len() - 1])) {
            let (key, value) = entry?;
            found.push((to_key(&key), to_list(Some(&value))));
        }
        for key in keys {
            let list = found.iter().find(|(other, _)| *other == key);
            running.add_read(key, list.map_or_else(Vec::new, |(_, list)| list.clone()));
        }
        Ok(())
    }

    /// A transaction that is tried again until it commits.
    fn retried(&mut self) -> Result<()> {
        let begun = self.shared.tick();
        let (read, appended) = (self.key(), self.key());
        let mut attempts = 0;
        let lists = self.shared.lists;
        let committed = self.shared.db.transact(|transaction| {
            if attempts > 0 {
                let ended = self.shared.tick();
                self.journal.ended(ended, false)?;
            }
            let found = transaction.get_for_update(lists.family(read), to_bytes(read))?;
            let list = to_list(found.as_deref());
            let value = self.shared.value();
            transaction.merge(lists.family(appended), to_bytes(appended), to_element(value))?;
            let steps = vec![
                Step::Read { how: Read::Locked, key: read, list },
                Step::Append { key: appended, value },
            ];
            attempts += 1;
            self.note(begun, Outcome::Unknown, steps)
        });
        self.ended(committed)
    }

    /// Appends to two lists, or twice to one, without a transaction.
    fn plain_write(&mut self) -> Result<()> {
        let begun = self.shared.tick();
        let (mut batch, mut steps) = (WriteBatch::new(), Vec::new());
        for _ in 0..2 {
            let (key, value) = (self.key(), self.shared.value());
            batch.merge_cf(self.shared.lists.family(key), to_bytes(key), to_element(value))?;
            steps.push(Step::Append { key, value });
        }
        self.note(begun, Outcome::Unknown, steps)?;
        let options = self.synced(100);
        let written = self.shared.db.write_with(batch, &options);
        self.ended(written)
    }

    /// Reads all lists in use in a snapshot, without a transaction.
    fn snapshot(&mut self) -> Result<()> {
        let begun = self.shared.tick();
        let snapshot = self.shared.db.snapshot();
        let mut steps = Vec::new();
        for key in self.shared.keys() {
            let view = snapshot.family(self.shared.lists.family(key))?;
            let list = to_list(view.get(to_bytes(key))?.as_deref());
            if list.len() >= LENGTH_MAX {
                self.shared.retire(key);
            }
            steps.push(Step::Read { how: Read::Snapshot, key, list });
        }
        self.note(begun, Outcome::Committed, steps)
    }

    fn flush(&mut self) -> Result<()> {
        let family = self.random.choice(self.shared.lists.families()).expect("there are some");
        family.flush()
    }

    fn compact(&mut self) -> Result<()> {
        let family = self.random.choice(self.shared.lists.families()).expect("there are some");
        family.compact()
    }
}

impl Running {
    /// What was read without a lock: in the snapshot, if there is one.
    fn add_read(&mut self, key: Key, list: Vec<Value>) {
        let how = if self.is_in_snapshot { Read::Snapshot } else { Read::Plain };
        self.steps.push(Step::Read { how, key, list });
    }
}
