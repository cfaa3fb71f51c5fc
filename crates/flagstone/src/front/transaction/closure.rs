//! Transactions as closures, which are tried again after a conflict.

use crate::base::{Code, Error, Result, SubCode, key_in_words};
use crate::front::database::Db;
use crate::front::pauses::Pauses;
use crate::front::transaction::{Transaction, TransactionState};
use crate::options::WriteOptions;
use crate::transactions::TransactionOptions;

/// Options of [`Db::transact_with`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactOptions {
    /// How often it tries again after a conflict; 100 by default.
    pub retries: u32,
    /// How the transaction is written.
    pub write: WriteOptions,
    /// How the transaction behaves. By default it looks for deadlocks.
    pub transaction: TransactionOptions,
}

impl Default for TransactOptions {
    fn default() -> Self {
        let transaction = TransactionOptions { deadlock_detect: true, ..Default::default() };
        Self { retries: 100, write: WriteOptions::default(), transaction }
    }
}

impl Db {
    /// Runs `work` in a transaction, and commits that. After a conflict it is run again, from the
    /// beginning and in a new transaction, after a pause that grows; so `work` should change
    /// nothing but the transaction. Each transaction reads as of the moment at which it began; in a
    /// [`TransactionDb`](crate::TransactionDb), where it waits for others, as of each read.
    ///
    /// Read what the changes depend on with [`Transaction::get_for_update`]: other reads are not
    /// checked at the commit. `Ok` commits, whatever is in it. To give up, return an error, for
    /// example one with [`Code::Aborted`](crate::Code::Aborted).
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
    /// What `work` returns, and as [`Transaction::commit`]. `Busy`, `TryAgain` and the time-out of
    /// a lock count as conflicts, also where `work` returns them: up to 100 retries follow, so a
    /// key that another transaction keeps locked may cost 100 times its lock time-out. After an
    /// error nothing is written, and what `work` prepared is rolled back; if that fails, the error
    /// is that of the rollback, and the transaction stays prepared. If `work` itself commits the
    /// transaction or rolls it back, that stands; what is committed is not tried again.
    pub fn transact<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transact_with(&TransactOptions::default(), work)
    }

    /// As [`Db::transact`], with `options`.
    ///
    /// # Errors
    /// As [`Db::transact`].
    pub fn transact_with<T>(
        &self,
        options: &TransactOptions,
        work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        self.attempt(options, &Plain, work)
    }

    /// [`Db::transact`] of a closure with an error type of its own, which errors of the engine
    /// become.
    ///
    /// ```
    /// # use flagstone::Db;
    /// #[derive(Debug)]
    /// enum SaleError {
    ///     SoldOut,
    ///     Storage(flagstone::Error),
    /// }
    ///
    /// impl From<flagstone::Error> for SaleError {
    ///     fn from(error: flagstone::Error) -> Self {
    ///         Self::Storage(error)
    ///     }
    /// }
    ///
    /// /// Takes one of the tickets, and returns how many are left.
    /// fn take_ticket(db: &Db) -> Result<u8, SaleError> {
    ///     db.try_transact(|transaction| {
    ///         let left = transaction.get_for_update(db, "tickets")?.map_or(0, |left| left[0]);
    ///         let left = left.checked_sub(1).ok_or(SaleError::SoldOut)?;
    ///         transaction.put(db, "tickets", [left])?;
    ///         Ok(left)
    ///     })
    /// }
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path()).unwrap();
    /// db.put("tickets", [1]).unwrap();
    /// assert_eq!(take_ticket(&db).unwrap(), 0);
    /// assert!(matches!(take_ticket(&db), Err(SaleError::SoldOut)));
    /// ```
    ///
    /// # Errors
    /// What `work` returns, and the error of the commit. An error of `work` counts as a conflict,
    /// and `work` is run again, if the transaction's last claim or commit met one. If what `work`
    /// prepared cannot be rolled back, the error of the rollback.
    pub fn try_transact<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.try_transact_with(&TransactOptions::default(), work)
    }

    /// As [`Db::try_transact`], with `options`.
    ///
    /// # Errors
    /// As [`Db::try_transact`].
    pub fn try_transact_with<T, E: From<Error>>(
        &self,
        options: &TransactOptions,
        work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.attempt(options, &Foreign, work)
    }

    fn attempt<T, E: From<Error>>(
        &self,
        options: &TransactOptions,
        errors: &impl Errors<E>,
        mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut settings = options.transaction.clone();
        settings.set_snapshot |= !self.has_locks();
        let mut pauses = Pauses::new();
        for attempt in 0.. {
            let mut transaction = self.begin_with(&settings);
            let done = work(&mut transaction).and_then(|value| {
                commit_unless_ended(&mut transaction, &options.write)?;
                Ok(value)
            });
            let error = match done {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let is_conflict = errors.is_conflict(&transaction, &error);
            match transaction.state {
                TransactionState::Committed => return Err(error),
                TransactionState::Prepared => {
                    give_up(&mut transaction, errors.message(&error), &options.write)?;
                }
                _ => {}
            }
            if !is_conflict {
                return Err(error);
            }
            if attempt >= options.retries {
                return Err(errors.of_attempt(attempt + 1, error));
            }
            drop(transaction);
            pauses.sleep(self.engine().env());
        }
        unreachable!("the last attempt returns")
    }
}

/// What is known of the errors that a closure returns.
trait Errors<E> {
    /// Whether another attempt may do better than the one that ended with this error.
    fn is_conflict(&self, transaction: &Transaction, error: &E) -> bool;
    /// What the error says.
    fn message<'a>(&self, error: &'a E) -> Option<&'a str>;
    /// The error of the last attempt, which has this number.
    fn of_attempt(&self, attempt: u32, error: E) -> E;
}

/// The engine's own errors.
struct Plain;

impl Errors<Error> for Plain {
    fn is_conflict(&self, _transaction: &Transaction, error: &Error) -> bool {
        is_conflict(error)
    }

    fn message<'a>(&self, error: &'a Error) -> Option<&'a str> {
        Some(error.message())
    }

    fn of_attempt(&self, attempt: u32, error: Error) -> Error {
        error.context(format_args!("attempt {attempt} of a transaction"))
    }
}

/// Errors of the application, which cannot be looked into.
struct Foreign;

impl<E> Errors<E> for Foreign {
    fn is_conflict(&self, transaction: &Transaction, _error: &E) -> bool {
        transaction.met_conflict
    }

    fn message<'a>(&self, _error: &'a E) -> Option<&'a str> {
        None
    }

    fn of_attempt(&self, _attempt: u32, error: E) -> E {
        error
    }
}

fn commit_unless_ended(transaction: &mut Transaction, options: &WriteOptions) -> Result<()> {
    match transaction.state {
        TransactionState::Committed | TransactionState::RolledBack => Ok(()),
        _ => transaction.commit_with(options),
    }
}

/// Rolls back what is prepared, after an error with this message.
fn give_up(
    transaction: &mut Transaction,
    message: Option<&str>,
    options: &WriteOptions,
) -> Result<()> {
    let name = transaction.name().unwrap_or_default();
    transaction.rollback_with(options).map_err(|rollback| {
        rollback.context(format_args!(
            "transaction '{}' is not rolled back after '{}'",
            key_in_words(&name),
            message.unwrap_or("an error of the application")
        ))
    })
}

pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(
        (error.code(), error.subcode()),
        (Code::Busy | Code::TryAgain, _) | (Code::TimedOut, SubCode::LockTimeout)
    )
}
