//! Databases whose transactions lock their keys.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::{ColumnFamilyId, Error, Result};
use crate::batch::WriteBatch;
use crate::db;
use crate::front::database::Db;
use crate::front::family;
use crate::front::locking::{Engine, Locking};
use crate::front::transaction::{Transaction, all_unparked, lock_prepared, unparked_by_name};
use crate::options::WriteOptions;
use crate::transactions::TransactionDbOptions;
use crate::transactions::locks::{self, LockMode, Owner};

/// An open database whose transactions lock the keys that they change or read for update.
///
/// It dereferences to [`Db`], and what is written there outside of transactions locks its keys,
/// too, for the time of the write. So [`Db::begin`] and [`Db::transact`] begin transactions with
/// locks, and [`Family::put`](crate::Family::put) waits for them. Files are those of any database;
/// whether it has locks is decided at each opening.
///
/// Locks make others wait where an ordinary [`Db`] lets the later commit fail: better where many
/// write the same few keys, or where work done in vain is dear.
///
/// Transactions that lock keys in different orders can wait for each other. The operation that
/// closes the circle fails at once with `deadlock_detect`, which [`Db::transact`] turns on, and
/// otherwise after `lock_timeout`.
///
/// ```
/// use flagstone::{SubCode, TransactionDb};
///
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path();
/// let db = TransactionDb::open(path)?;
/// db.put("ada", "100")?;
/// db.put("alan", "0")?;
///
/// // Moves 30 from Ada to Alan. It is tried again after a deadlock or a time-out.
/// let number = |value: Option<flagstone::Value>| -> i64 {
///     value.and_then(|value| std::str::from_utf8(&value).ok()?.parse().ok()).unwrap_or(0)
/// };
/// db.transact(|transaction| {
///     let ada = number(transaction.get_for_update(&db, "ada")?);
///     let alan = number(transaction.get_for_update(&db, "alan")?);
///     transaction.put(&db, "ada", (ada - 30).to_string())?;
///     transaction.put(&db, "alan", (alan + 30).to_string())
/// })?;
/// assert_eq!(db.get("alan")?.unwrap(), "30");
///
/// let mut first = db.begin();
/// first.put(&db, "ada", "0")?;
/// let mut options = flagstone::TransactionOptions::default();
/// options.lock_timeout = Some(std::time::Duration::ZERO);
/// let mut second = db.begin_with(&options);
/// let error = second.put(&db, "ada", "1000").unwrap_err();
/// assert_eq!(error.subcode(), SubCode::LockTimeout);
/// first.commit()?;
/// second.put(&db, "ada", "1000")?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "PessimisticTransactionDB")]
#[derive(Clone)]
pub struct TransactionDb {
    db: Db,
    locking: Arc<Locking>,
}

/// A transaction that holds locks, waits for one, or has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionInfo {
    /// Its number. Writes outside of transactions have numbers, too.
    pub id: u64,
    /// Its name, if it has one.
    pub name: Option<Vec<u8>>,
    /// How many keys it has locked.
    pub locks: u64,
    /// The key that it waits for.
    pub waits_for: Option<AwaitedKey>,
    /// It took longer than its `expiration`: others may take over its locks. Never once it is
    /// prepared.
    pub has_expired: bool,
}

/// A key that a transaction waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedKey {
    /// The column family's name.
    pub family: String,
    /// The key.
    pub key: Vec<u8>,
    /// How it is to be locked.
    pub mode: LockMode,
    /// The transactions that it waits for, by number.
    pub holders: Vec<u64>,
    /// How long it has waited so far.
    pub waited: Duration,
}

/// A key that is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyLock {
    /// The column family's name.
    pub family: String,
    /// The key.
    pub key: Vec<u8>,
    /// How it is locked.
    pub mode: LockMode,
    /// The transactions that hold it, by number.
    pub holders: Vec<u64>,
    /// Those that wait for it, the next one first.
    pub waiters: Vec<u64>,
}

/// Transactions that waited for each other in a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlock {
    /// Each step's transaction waits for that of the next step, and the last one's for the first.
    /// The first one was refused. Empty if `limit_exceeded`.
    pub path: Vec<DeadlockStep>,
    /// The search met more waiting transactions than `deadlock_detect_depth`, and took that for a
    /// deadlock.
    pub limit_exceeded: bool,
    /// When it was found, in seconds since 1970.
    pub unix_seconds: u64,
}

/// A transaction of a [`Deadlock`], and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlockStep {
    /// The transaction, by number.
    pub transaction: u64,
    /// The column family's name.
    pub family: String,
    /// The key that it waits for.
    pub key: Vec<u8>,
    /// How it wants to lock the key.
    pub mode: LockMode,
}

impl TransactionDb {
    /// # Errors
    /// `Busy` if the database has locks already; with `LockLimit` if what is prepared has more keys
    /// than may be locked. `NotSupported` if it is open for reading.
    pub(super) fn of(db: &Db, options: &TransactionDbOptions) -> Result<Self> {
        let engine = db.stamping().with_locks(options)?;
        let locking = engine.locking().expect("it has locks now").clone();
        lock_prepared(&engine, &locking)?;
        Ok(Self { db: Db::of(&engine), locking })
    }

    /// Opens the database in the directory `path` with all of its column families, and makes it if
    /// there is none. [`Builder::open_transaction_db`](crate::Builder::open_transaction_db) opens
    /// with options.
    ///
    /// # Errors
    /// As [`Db::open`]; `Busy` with subcode `LockLimit` if prepared transactions have more keys of
    /// a family than `max_num_locks`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Db::builder(path).open_transaction_db(&TransactionDbOptions::default())
    }

    /// Transactions with locks over a database that is open already, with `allow_2pc`. Other
    /// handles of it take no locks: what is written through them neither waits for a transaction
    /// nor fails its commit. When this handle and all that it gave out are dropped, the database
    /// can be wrapped again.
    ///
    /// ```
    /// use flagstone::{Db, TransactionDb};
    ///
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::builder(directory.path()).options(|options| options.allow_2pc = true).open()?;
    /// let locking = TransactionDb::over(&db, &Default::default())?;
    /// let mut transaction = locking.begin();
    /// transaction.put(&locking, "ada", "1")?;
    /// assert_eq!(locking.locked_count(), 1);
    /// transaction.commit()?;
    /// assert_eq!(db.get("ada")?.unwrap(), "1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the database is open without `allow_2pc`; `Busy` if it has locks
    /// already, with subcode `LockLimit` as [`TransactionDb::open`]; `NotSupported` if it is open
    /// for reading.
    #[doc(alias = "WrapDB")]
    #[doc(alias = "WrapStackableDB")]
    pub fn over(db: &Db, options: &TransactionDbOptions) -> Result<Self> {
        if !db.db_options().allow_2pc {
            return Err(Error::invalid_argument(
                "a database whose transactions lock keys is opened with allow_2pc",
            ));
        }
        Self::of(db, options)
    }

    /// Transactions with locks over an engine's handle, through which alone it is then written.
    ///
    /// # Errors
    /// As [`TransactionDb::over`], but any `allow_2pc` will do.
    #[doc(hidden)]
    pub fn around(engine: &db::Db, options: &TransactionDbOptions) -> Result<Self> {
        Self::of(&Db::around(engine)?, options)
    }

    /// How it locks keys.
    pub fn transaction_db_options(&self) -> &TransactionDbOptions {
        &self.locking.options
    }

    /// Writes a batch that may delete ranges, and whose keys no transaction writes meanwhile, which
    /// nothing checks.
    ///
    /// # Errors
    /// As [`Db::write`].
    #[doc(alias = "TransactionDBWriteOptimizations")]
    #[doc(alias = "skip_concurrency_control")]
    pub fn write_without_locks(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        family::write_without_locks(self.engine_with_locks(), batch, options)
    }

    /// The transactions that are prepared and not decided, by name, as far as nobody else has a
    /// handle of them: those that an earlier process prepared, and those whose handles were
    /// dropped. Their keys are locked.
    ///
    /// Of families that have no merge operator now, keys that are merged cannot be read there, and
    /// the commit fails (`InvalidArgument`); a rollback does not.
    ///
    /// # Errors
    /// `InvalidArgument` if a family's keys are in another order now, `Corruption`; then all stay
    /// as they are.
    #[doc(alias = "GetAllPreparedTransactions")]
    pub fn prepared_transactions(&self) -> Result<Vec<Transaction>> {
        all_unparked(&self.db)
    }

    /// The transaction that is prepared under this name, if it has no handle elsewhere; see
    /// [`TransactionDb::prepared_transactions`].
    ///
    /// # Errors
    /// As there.
    #[doc(alias = "GetTransactionByName")]
    pub fn prepared_transaction(&self, name: impl AsRef<[u8]>) -> Result<Option<Transaction>> {
        unparked_by_name(&self.db, name.as_ref())
    }

    /// The transactions that hold locks, wait for one or have a name, by number; not as of one
    /// moment. Visits every lock.
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        let mut owners: BTreeMap<u64, (Arc<Owner>, u64)> = {
            let owners = self.locking.manager.owners().into_iter();
            owners.map(|(owner, locks)| (owner.id(), (owner, locks))).collect()
        };
        let mut names: HashMap<u64, Vec<u8>> = {
            let names = self.locking.names.lock();
            for named in names.values() {
                owners.entry(named.id()).or_insert_with(|| (named.clone(), 0));
            }
            names.iter().map(|(name, owner)| (owner.id(), name.clone())).collect()
        };
        let info = |(id, (owner, locks)): (u64, (Arc<Owner>, u64))| TransactionInfo {
            id,
            name: names.remove(&id),
            locks,
            waits_for: self.awaited(&owner),
            has_expired: self.locking.manager.has_expired(&owner),
        };
        owners.into_iter().map(info).collect()
    }

    fn awaited(&self, owner: &Owner) -> Option<AwaitedKey> {
        let wait = owner.waits()?;
        Some(AwaitedKey {
            family: self.family_name(wait.family()),
            key: wait.key().to_vec(),
            mode: wait.mode(),
            holders: ids(&wait.blockers(owner)),
            waited: self.locking.manager.waited(&wait),
        })
    }

    /// The keys that are locked, in order; not as of one moment. Visits every lock.
    #[doc(alias = "GetLockStatusData")]
    pub fn locked_keys(&self) -> Vec<KeyLock> {
        let locked = self.locking.manager.locked_keys().into_iter();
        let locks = locked.map(|locked| KeyLock {
            family: self.family_name(locked.family),
            key: locked.key,
            mode: locked.mode,
            holders: ids(&locked.holders),
            waiters: ids(&locked.waiters),
        });
        locks.collect()
    }

    /// How many keys are locked.
    pub fn locked_count(&self) -> u64 {
        self.locking.manager.count()
    }

    /// The deadlocks that were found last, up to `max_num_deadlocks`, the newest one first.
    #[doc(alias = "GetDeadlockInfoBuffer")]
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        let found = self.locking.manager.deadlocks().into_iter();
        found.map(|deadlock| self.with_family_names(deadlock)).collect()
    }

    fn with_family_names(&self, found: locks::Deadlock) -> Deadlock {
        let locks::Deadlock { path, limit_exceeded, unix_seconds } = found;
        let path = path.into_iter().map(|step| DeadlockStep {
            transaction: step.transaction,
            family: self.family_name(step.family),
            key: step.key,
            mode: step.mode,
        });
        Deadlock { path: path.collect(), limit_exceeded, unix_seconds }
    }

    fn engine_with_locks(&self) -> &Engine {
        self.db.stamping()
    }

    fn family_name(&self, id: ColumnFamilyId) -> String {
        let name = self.engine_with_locks().family_name(id);
        name.unwrap_or_else(|| id.0.to_string())
    }
}

fn ids(owners: &[Arc<Owner>]) -> Vec<u64> {
    owners.iter().map(|owner| owner.id()).collect()
}

impl Deref for TransactionDb {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

impl fmt::Debug for TransactionDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionDb")
            .field("path", &self.path())
            .field("locked", &self.locked_count())
            .finish_non_exhaustive()
    }
}
