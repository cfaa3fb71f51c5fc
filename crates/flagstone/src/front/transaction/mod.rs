//! Optimistic transactions: changes that are collected, and written if what they stand on is
//! unchanged.
//!
//! 1. A key is **tracked** when it is changed or read for update: the commit fails if anybody else
//!    has written it since. Its sequence number is that of the
//!    transaction's snapshot, or the last one that was published.
//! 2. A moment of the database is kept from the first tracked key on, so that no compaction forgets
//!    that a tracked key was written.
//! 3. The commit asks for all tracked keys between taking the commit lock and taking sequence
//!    numbers (`db/reading/unchanged.rs`).

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use crate::base::{Code, ColumnFamilyId, Error, Result, SequenceNumber, Snapshot as Moment};
use crate::db::{ColumnFamily, Value};
use crate::front::database::Db;
use crate::front::family::Family;
use crate::front::view::View;
use crate::options::{ReadOptions, WriteOptions};
use crate::transactions::WriteBatchWithIndex;

/// The first pause between two attempts; each later one may be twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Changes of several keys that take place together, if nobody else has written the keys that the
/// transaction changed or read for update; otherwise none does.
///
/// Nothing is locked: who begins a transaction keeps nobody waiting, and hears of a conflict at
/// [`Transaction::commit`]. [`Db::transact`] tries again by itself. Reads see the transaction's own
/// changes. A transaction that is dropped changes nothing.
///
/// Families are given as handles; a [`Db`] stands for its family `default`.
///
/// ```
/// # use flagstone::{Code, Db};
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = Db::open(directory.path())?;
/// let mut transaction = db.begin();
/// transaction.put(&db, "ada", "1815")?;
/// assert_eq!(transaction.get(&db, "ada")?.unwrap(), "1815");
/// assert!(db.get("ada")?.is_none());
///
/// // Somebody else is faster.
/// db.put("ada", "1852")?;
/// let error = transaction.commit().unwrap_err();
/// assert_eq!(error.code(), Code::Busy);
/// assert_eq!(db.get("ada")?.unwrap(), "1852");
/// # Ok(())
/// # }
/// ```
#[must_use = "a transaction that is not committed changes nothing"]
#[doc(alias = "OptimisticTransaction")]
pub struct Transaction {
    db: Db,
    batch: WriteBatchWithIndex,
    families: HashMap<ColumnFamilyId, ColumnFamily>,
    /// The keys with the sequence numbers behind which nobody may have written them.
    tracked: HashMap<(ColumnFamilyId, Vec<u8>), SequenceNumber>,
    /// From the first tracked key or snapshot on.
    kept: Option<Moment>,
    snapshot: Option<Moment>,
    save_points: Vec<SavePoint>,
}

/// What a rollback restores, beside the batch.
#[derive(Default)]
struct SavePoint {
    /// What was tracked since.
    tracked: Vec<(ColumnFamilyId, Vec<u8>)>,
}

/// How [`Db::transact_with`] goes about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactOptions {
    /// How often it tries again after a conflict.
    pub retries: u32,
    /// How the transaction is written.
    pub write: WriteOptions,
}

impl Default for TransactOptions {
    fn default() -> Self {
        Self { retries: 100, write: WriteOptions::default() }
    }
}

impl Db {
    /// Begins a transaction. It reads the database as it is at each read;
    /// [`Transaction::set_snapshot`] makes it read as of one moment.
    #[doc(alias = "BeginTransaction")]
    pub fn begin(&self) -> Transaction {
        Transaction {
            db: self.clone(),
            batch: WriteBatchWithIndex::new(),
            families: HashMap::new(),
            tracked: HashMap::new(),
            kept: None,
            snapshot: None,
            save_points: Vec::new(),
        }
    }

    /// Runs `work` in a transaction, and commits that. After a conflict it is run again, from the
    /// beginning and in a new transaction, after a pause that grows; so `work` should change
    /// nothing but the transaction. Each transaction reads as of the moment at which it began.
    ///
    /// ```
    /// # use flagstone::Db;
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path())?;
    /// // Takes one of the tickets that are left.
    /// fn take_ticket(db: &Db) -> flagstone::Result<bool> {
    ///     db.transact(|transaction| {
    ///         let left = transaction.get_for_update(db, "tickets")?.map_or(0, |left| left[0]);
    ///         if left == 0 {
    ///             return Ok(false);
    ///         }
    ///         transaction.put(db, "tickets", [left - 1])?;
    ///         Ok(true)
    ///     })
    /// }
    /// db.put("tickets", [1])?;
    /// assert!(take_ticket(&db)?);
    /// assert!(!take_ticket(&db)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `work` returns; `Busy` and `TryAgain` count as conflicts there, too, and are returned
    /// only by the last of 101 attempts. As [`Transaction::commit`]. Whatever error `work` returns,
    /// nothing is written.
    pub fn transact<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transact_with(&TransactOptions::default(), work)
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Db::transact`].
    pub fn transact_with<T>(
        &self,
        options: &TransactOptions,
        mut work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut pause = FIRST_PAUSE;
        for attempt in 0.. {
            let mut transaction = self.begin();
            transaction.set_snapshot();
            let done = work(&mut transaction)
                .and_then(|value| transaction.commit_with(&options.write).map(|()| value));
            match done {
                Err(error) if is_conflict(&error) && attempt < options.retries => {}
                Err(error) if is_conflict(&error) => {
                    return Err(
                        error.context(format_args!("attempt {} of a transaction", attempt + 1))
                    );
                }
                done => return done,
            }
            // Two that met once shall not meet again.
            let env = self.engine().env();
            let part = env.random.next_u64() as f64 / u64::MAX as f64;
            env.clock.sleep(pause.mul_f64(part));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        unreachable!("the last attempt returns")
    }
}

fn is_conflict(error: &Error) -> bool {
    matches!(error.code(), Code::Busy | Code::TryAgain)
}

impl Transaction {
    /// From now on reads see the database as of this moment, and keys that are tracked from now on
    /// may not have been written since.
    #[doc(alias = "SetSnapshot")]
    #[track_caller]
    pub fn set_snapshot(&mut self) {
        let moment = self.db.engine().snapshot();
        self.kept.get_or_insert_with(|| moment.clone());
        self.snapshot = Some(moment);
    }

    /// From now on reads see the database as it is at each read.
    #[doc(alias = "ClearSnapshot")]
    pub fn clear_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// A column family as the transaction sees it now, with its changes so far: a [`View`] with
    /// ranges and cursors, but without streams. What is read there is not tracked.
    ///
    /// # Errors
    /// `InvalidArgument` if the family is of another database; `NotSupported` if its values expire.
    pub fn family(&self, family: &Family) -> Result<View> {
        self.check(family)?;
        let over = self.batch.overlay(family.engine_family())?;
        Ok(View::clone(family).over(over, self.snapshot.clone()))
    }

    /// The value of `key`. It is not tracked: somebody else may write the key before the commit,
    /// which then goes through. Read with [`Transaction::get_for_update`] what the changes follow
    /// from.
    ///
    /// # Errors
    /// As [`View::get`] and [`Transaction::family`].
    pub fn get(&self, family: &Family, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.check(family)?;
        let options = self.reads();
        let (db, family) = (self.db.engine(), family.engine_family());
        self.batch.get_from_batch_and_db(db, family, key, &options)
    }

    /// Reads `key` and tracks it: if somebody else writes it before the commit, the commit fails
    /// with `Busy`. Nobody is kept waiting.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_for_update(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.track(family, key)?;
        self.get(family, key)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`](crate::WriteBatch::put) and [`Transaction::family`].
    pub fn put(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let key = key.as_ref();
        self.track(family, key)?;
        self.batch.put(family.engine_family(), key, value)
    }

    /// Removes `key`, which need not be there.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.track(family, key)?;
        self.batch.delete(family.engine_family(), key)
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.track(family, key)?;
        self.batch.single_delete(family.engine_family(), key)
    }

    /// Merges `operand` into the value of `key`, as the family's merge operator does.
    ///
    /// # Errors
    /// As [`Transaction::put`]; `InvalidArgument` if the family has no merge operator.
    pub fn merge(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let key = key.as_ref();
        self.track(family, key)?;
        self.batch.merge(family.engine_family(), key, operand)
    }

    /// Sets `key` to `value`, whoever else writes it meanwhile.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    #[doc(alias = "PutUntracked")]
    pub fn put_untracked(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.check(family)?;
        self.batch.put(family.engine_family(), key, value)
    }

    /// Stops tracking `key`, unless the transaction changed it.
    ///
    /// # Errors
    /// As [`Transaction::family`].
    #[doc(alias = "UndoGetForUpdate")]
    pub fn undo_get_for_update(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        self.check(family)?;
        let key = key.as_ref();
        if !self.batch.overlay(family.engine_family())?.names(key) {
            self.tracked.remove(&(family.engine_family().id(), key.to_vec()));
        }
        Ok(())
    }

    /// Remembers the present state for [`Transaction::rollback_to_save_point`]; save points nest.
    pub fn set_save_point(&mut self) {
        self.batch.set_save_point();
        self.save_points.push(SavePoint::default());
    }

    /// Takes back what was changed and tracked since the latest save point, and the save point.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        self.batch.rollback_to_save_point()?;
        for key in self.save_points.pop().unwrap_or_default().tracked {
            self.tracked.remove(&key);
        }
        Ok(())
    }

    /// Removes the latest save point and keeps what was changed since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.batch.pop_save_point()?;
        let newer = self.save_points.pop().unwrap_or_default();
        if let Some(older) = self.save_points.last_mut() {
            older.tracked.extend(newer.tracked);
        }
        Ok(())
    }

    /// How many changes it has.
    pub fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Writes the changes, if nobody else wrote a tracked key.
    ///
    /// # Errors
    /// `Busy` if somebody did; then nothing is written, and a new transaction may try again. As
    /// [`Family::put`].
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::default())
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(self, options: &WriteOptions) -> Result<()> {
        let Self { db, batch, families, tracked, kept, .. } = self;
        let mut batch = batch.into_batch();
        let Some(kept) = kept.filter(|_| !tracked.is_empty()) else {
            return if batch.is_empty() { Ok(()) } else { db.write_with(batch, options) };
        };
        let keys = tracked.iter().map(|((id, key), since)| (&families[id], key.as_slice(), *since));
        db.engine().write_if_unwritten(options, &mut batch, &kept, keys)
    }

    /// Takes back everything: changes, tracked keys and snapshot.
    pub fn rollback(&mut self) {
        *self = self.db.begin();
    }

    fn reads(&self) -> ReadOptions {
        ReadOptions { snapshot: self.snapshot.clone(), ..ReadOptions::default() }
    }

    fn check(&self, family: &Family) -> Result<()> {
        self.db.engine().check_family(family.engine_family())?;
        if family.view().expires {
            let message = format!(
                "the values of column family '{}' expire; transactions write those that do not",
                family.name()
            );
            return Err(Error::not_supported(message));
        }
        Ok(())
    }

    /// From now on nobody else may write `key`.
    fn track(&mut self, family: &Family, key: &[u8]) -> Result<()> {
        self.check(family)?;
        let family = family.engine_family();
        let name = (family.id(), key.to_vec());
        if self.tracked.contains_key(&name) {
            return Ok(());
        }
        let engine = self.db.engine();
        let kept = self.kept.get_or_insert_with(|| engine.snapshot());
        let since = match &self.snapshot {
            Some(moment) => moment.sequence(),
            None => engine.latest_sequence_number().max(kept.sequence()),
        };
        self.families.entry(name.0).or_insert_with(|| family.clone());
        if let Some(save_point) = self.save_points.last_mut() {
            save_point.tracked.push(name.clone());
        }
        self.tracked.insert(name, since);
        Ok(())
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("batch", &self.batch)
            .field("tracked", &self.tracked.len())
            .finish_non_exhaustive()
    }
}
