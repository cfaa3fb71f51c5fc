//! Transactions: changes of several keys that take place together, or not at all.
//!
//! One type serves both kinds of databases; they differ in how a key is **claimed** (`control`)
//! when it is changed or read for update.
//!
//! - Without locks (optimistic): the key is tracked with the sequence number of the transaction's
//!   snapshot, or the last one that was published. A moment of the database is kept from the first
//!   tracked key on, so that no compaction forgets that a tracked key was written. The commit asks
//!   for all tracked keys between taking the commit lock and taking sequence numbers
//!   (`db/reading/unchanged.rs`), and fails if anybody else has written one since.
//! - With locks ([`TransactionDb`](crate::TransactionDb)): the key is locked. If the transaction
//!   has a snapshot, it is then asked whether the key was written since. The commit is a plain
//!   write.
//!
//! - `changes`: what a transaction changes, and `pieces`: values that it writes piece by piece;
//!   `ending`: save points, commit and rollback
//! - `prepared`: transactions that outlive the process before they are decided
//! - `closure`: transactions that are tried again
//! - `raw`: what packages for other interfaces need

use std::fmt;

use crate::base::{Error, Result, Snapshot as Moment, WideColumns};
use crate::batch::WriteBatch;
use crate::db::Value;
use crate::front::database::Db;
use crate::front::family::Family;
use crate::front::groups::FamiliesCursor;
use crate::front::transaction::control::{Claim, Control};
use crate::front::transaction::stamps::TransactionStamps;
use crate::front::view::View;
use crate::options::ReadOptions;
use crate::transactions::{TrackedKeys, TransactionOptions, WriteBatchWithIndex};

mod changes;
mod closure;
mod control;
mod ending;
mod pieces;
mod prepared;
mod raw;
mod stamps;

pub use closure::TransactOptions;
pub use pieces::TransactionValueWriter;
pub(in crate::front) use prepared::{
    AllParked, Parked, all_unparked, lock_prepared, unparked_by_name,
};

/// Changes of several keys that take place together, if nobody else has written the keys that the
/// transaction changed or read for update; otherwise none does.
///
/// In most databases nothing is locked: a transaction keeps nobody waiting, and hears of a conflict
/// at [`Transaction::commit`]. In a [`TransactionDb`](crate::TransactionDb) keys are locked when
/// they are changed or read for update, others wait, and a commit meets no conflict.
/// [`Db::transact`] tries again after a conflict of either kind.
///
/// A transaction *claims* the keys that it changes or reads for update: where keys are locked it
/// locks them, otherwise its commit asks whether another has written them.
///
/// Reads see the transaction's own changes. A transaction that is dropped before its commit changes
/// nothing, and releases its locks, unless it was [prepared](Transaction::prepare). Families are
/// given as handles; a [`Db`] stands for its family `default`.
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
#[doc(alias = "PessimisticTransaction")]
pub struct Transaction {
    db: Db,
    batch: WriteBatchWithIndex,
    control: Control,
    tracked: TrackedKeys,
    /// From the first tracked key or snapshot on.
    kept: Option<Moment>,
    snapshot: Option<Moment>,
    /// The next operation takes a snapshot.
    snapshot_is_due: bool,
    /// Most bytes of the batch, if limited.
    bytes_max: Option<usize>,
    state: TransactionState,
    /// The last claim or commit met a conflict with another writer.
    met_conflict: bool,
    commit_time: WriteBatch,
    stamps: TransactionStamps,
}

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionState {
    /// It may read and change keys.
    Started,
    /// It is in the WAL, and can be committed or rolled back.
    Prepared,
    /// It was written.
    Committed,
    /// It was prepared, and then given up.
    RolledBack,
    /// It took longer than its `expiration`, and can never be written.
    Expired,
}

impl Db {
    /// Begins a transaction. It reads the database as it is at each read;
    /// [`Transaction::set_snapshot`] makes it read as of one moment. Read what your changes depend
    /// on with [`Transaction::get_for_update`]: other reads are not checked at the commit.
    #[doc(alias = "BeginTransaction")]
    pub fn begin(&self) -> Transaction {
        self.begin_with(&TransactionOptions::default())
    }

    /// Begins a transaction that behaves as `options` say.
    #[track_caller]
    pub fn begin_with(&self, options: &TransactionOptions) -> Transaction {
        let mut transaction = Transaction::with(self, Control::new(self.stamping(), options));
        transaction.bytes_max = Some(options.max_write_batch_size).filter(|most| *most > 0);
        if options.set_snapshot {
            transaction.set_snapshot();
        }
        transaction
    }
}

impl Transaction {
    fn with(db: &Db, control: Control) -> Self {
        Self {
            db: db.clone(),
            batch: WriteBatchWithIndex::new(),
            control,
            tracked: TrackedKeys::default(),
            kept: None,
            snapshot: None,
            snapshot_is_due: false,
            bytes_max: None,
            state: TransactionState::Started,
            met_conflict: false,
            commit_time: WriteBatch::new(),
            stamps: TransactionStamps::default(),
        }
    }

    /// From now on reads see the database as of this moment, and a key that another transaction has
    /// written since is refused (`Busy`): by [`Transaction::commit`], or where keys are locked by
    /// the operation that would lock it.
    #[doc(alias = "SetSnapshot")]
    #[track_caller]
    pub fn set_snapshot(&mut self) {
        let moment = self.db.engine().snapshot();
        self.kept.get_or_insert_with(|| moment.clone());
        self.snapshot = Some(moment);
        self.snapshot_is_due = false;
    }

    /// Calls [`Transaction::set_snapshot`] when a key is next changed or read for update; where
    /// keys are locked, once it is locked. So a transaction that waits for its first key does not
    /// meet what it waited for.
    #[doc(alias = "SetSnapshotOnNextOperation")]
    pub fn set_snapshot_on_next_operation(&mut self) {
        self.snapshot_is_due = true;
    }

    /// From now on reads see the database as it is at each read.
    #[doc(alias = "ClearSnapshot")]
    pub fn clear_snapshot(&mut self) {
        self.snapshot = None;
        self.snapshot_is_due = false;
    }

    /// How far it has come.
    #[doc(alias = "GetState")]
    pub fn state(&self) -> TransactionState {
        match self.state {
            TransactionState::Started if self.control.has_expired() => TransactionState::Expired,
            state => state,
        }
    }

    /// Its number, by which errors and lists name it; 0 in a database without locks.
    #[doc(alias = "GetID")]
    pub fn id(&self) -> u64 {
        self.control.owner().map_or(0, |owner| owner.id())
    }

    /// Gives it a name of 1 to 512 bytes, which no other transaction has.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken, or too long, or the transaction has one already;
    /// `NotSupported` in a database without locks.
    #[doc(alias = "SetName")]
    pub fn set_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.check_unprepared()?;
        let Some(locks) = self.control.locks() else {
            let message = "only transactions of a TransactionDb have names";
            return Err(Error::not_supported(message));
        };
        locks.set_name(name.as_ref())
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<Vec<u8>> {
        self.control.locks()?.name()
    }

    /// A column family as the transaction sees it now, with its changes so far: a [`View`] with
    /// ranges and cursors, but without streams. What is read there is not tracked.
    ///
    /// # Errors
    /// - `InvalidArgument` if the family is of another database, or after the commit.
    /// - `NotSupported` if the family's values expire. `Expired`.
    pub fn family(&self, family: &Family) -> Result<View> {
        self.check(family)?;
        let over = self.batch.overlay(family.engine_family())?;
        let view = View::clone(family).over(over, self.snapshot.clone());
        Ok(match self.stamps.read() {
            Some(stamp) if stamps::size_in(family) > 0 => view.as_of(stamp),
            _ => view,
        })
    }

    /// The value of `key`. It is not tracked: somebody else may write the key before the commit,
    /// which then goes through. Read with [`Transaction::get_for_update`] what the changes follow
    /// from.
    ///
    /// # Errors
    /// As [`View::get`] and [`Transaction::family`].
    pub fn get(&self, family: &Family, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.check(family)?;
        let options = self.reads_of(family);
        let (db, family) = (self.db.engine(), family.engine_family());
        self.batch.get_from_batch_and_db(db, family, key, &options)
    }

    /// Reads `key` and claims it: nobody else writes it before the commit. In a database without
    /// locks, others may, and the commit fails with `Busy`.
    ///
    /// # Errors
    /// - As [`Transaction::get`].
    /// - Where keys are locked: `TimedOut` with subcode `LockTimeout` if another transaction held
    ///   the key for too long; `Busy` with `Deadlock` if transactions would wait for each other,
    ///   with `LockLimit` if too many keys are locked, and without a subcode if the key was written
    ///   after the snapshot. The transaction keeps what it had, and may go on or be rolled back.
    #[doc(alias = "GetForUpdate")]
    pub fn get_for_update(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.claim(family, key, Claim::READ)?;
        self.get(family, key)
    }

    /// As [`Transaction::get_for_update`], but other transactions may read the key in the same way
    /// meanwhile. A transaction that then changes the key waits until it alone holds it.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    #[doc(alias = "exclusive")]
    pub fn get_shared(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.claim(family, key, Claim::READ_SHARED)?;
        self.get(family, key)
    }

    /// [`Transaction::get_for_update`] for several keys, which are claimed in their order; their
    /// values, in that order, too.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`]; then the keys before that at fault are claimed.
    #[doc(alias = "MultiGetForUpdate")]
    pub fn get_many_for_update<K: AsRef<[u8]>>(
        &mut self,
        family: &Family,
        keys: &[K],
    ) -> Result<Vec<Option<Value>>> {
        for key in keys {
            self.claim(family, key.as_ref(), Claim::READ)?;
        }
        let options = self.reads_of(family);
        let (db, family) = (self.db.engine(), family.engine_family());
        let values = self.batch.multi_get_from_batch_and_db(db, family, keys, &options)?;
        values.into_iter().collect()
    }

    /// All columns of `key`, which is not tracked: as [`Transaction::get`] returns a value.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    #[doc(alias = "GetEntity")]
    pub fn get_entity(
        &self,
        family: &Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<WideColumns>> {
        self.check(family)?;
        let (db, options) = (self.db.engine(), self.reads_of(family));
        self.batch.get_entity_from_batch_and_db(db, family.engine_family(), key, &options)
    }

    /// All columns of `key`, which is claimed: as [`Transaction::get_for_update`] returns a value.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    #[doc(alias = "GetEntityForUpdate")]
    pub fn get_entity_for_update(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<WideColumns>> {
        let key = key.as_ref();
        self.claim(family, key, Claim::READ)?;
        self.get_entity(family, key)
    }

    /// [`Db::cursor_of_families`] over the families as the transaction sees them now, with its
    /// changes so far.
    ///
    /// # Errors
    /// As [`Db::cursor_of_families`] and [`Transaction::family`].
    #[doc(alias = "GetCoalescingIterator")]
    #[doc(alias = "GetAttributeGroupIterator")]
    pub fn cursor_of_families(
        &self,
        families: &[&Family],
        options: &ReadOptions,
    ) -> Result<FamiliesCursor> {
        FamiliesCursor::over(families, options, |family| self.family(family)?.cursor(options))
    }

    /// Takes back one [`Transaction::get_for_update`] of `key`; within a save point only one that
    /// was made since. The key is free for others unless it was read for update more often, or
    /// changed.
    ///
    /// # Errors
    /// As [`Transaction::family`].
    #[doc(alias = "UndoGetForUpdate")]
    pub fn undo_get_for_update(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        self.check_unprepared()?;
        self.check(family)?;
        let id = family.engine_family().id();
        self.tracked.undo_read(id, key.as_ref(), self.control.owner());
        Ok(())
    }

    /// How many changes it has.
    pub fn count(&self) -> u32 {
        self.batch.count()
    }

    /// How many keys it has claimed.
    #[doc(alias = "GetNumKeys")]
    pub fn claimed(&self) -> usize {
        self.tracked.len()
    }

    fn reads_of(&self, family: &Family) -> ReadOptions {
        let stamp = self.stamps.read().filter(|_| stamps::size_in(family) > 0);
        ReadOptions {
            snapshot: self.snapshot.clone(),
            timestamp: stamp.map(<[u8]>::to_vec),
            ..ReadOptions::default()
        }
    }

    /// Takes the snapshot that the next operation was to take.
    #[track_caller]
    fn take_due_snapshot(&mut self) {
        if self.snapshot_is_due {
            self.set_snapshot();
        }
    }

    /// Refuses a family that it cannot use, and everything once it has ended.
    fn check(&self, family: &Family) -> Result<()> {
        self.check_started()?;
        self.control.check_expiry()?;
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
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("id", &self.id())
            .field("batch", &self.batch)
            .field("claimed", &self.tracked.len())
            .finish_non_exhaustive()
    }
}
