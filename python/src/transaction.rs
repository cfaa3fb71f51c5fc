//! Transactions: reads and writes that take place together, unless others disturb them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use flagstone::{Family, TransactionOptions, TransactionState};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Input;
use crate::errors::{Class, error, is_of};
use crate::family::{ColumnFamily, reader, write_options};
use crate::life::{Held, wait};
use crate::range::{Items, Iterator, bounds, open};
use crate::reader::missing;

/// The first and the longest pause between two attempts of a transaction.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(20)];

/// Reads and writes that take place together or not at all, in however many column families.
///
/// `with db.transaction() as transaction:` commits it at the end of the block, and rolls it back if
/// the block raises an exception. Reads see its own writes; others see these after the commit.
///
/// In a database that was opened with `locks=True`, keys are locked when they are written or read
/// by `get_for_update`: others wait for them, and `TimedOut` or `Busy` is raised if that takes too
/// long, or would never end. In any other database `commit` raises `Busy` if somebody else has
/// written such a key meanwhile. `Database.transact` tries again after either.
///
/// Operations are on the family `default`, or on `family`. One thread at a time may use it.
#[pyclass(frozen, module = "flagstone")]
pub struct Transaction {
    default: Py<ColumnFamily>,
    synced: bool,
    running: Mutex<Held<flagstone::Transaction>>,
}

type AFamily<'a, 'py> = Option<&'a Bound<'py, ColumnFamily>>;

impl Transaction {
    /// Begins a transaction of the database whose family `default` is given.
    pub fn begin(
        default: &Bound<'_, ColumnFamily>,
        synced: bool,
        options: &TransactionOptions,
        name: Option<&[u8]>,
    ) -> PyResult<Self> {
        let py = default.py();
        let db = reader(default).life().db(py)?;
        let begun = wait(py, || {
            let mut begun = db.begin_with(options);
            name.map_or(Ok(()), |name| begun.set_name(name))?;
            Ok(begun)
        })?;
        Ok(Self::of(default, synced, begun))
    }

    /// An object for a transaction that runs.
    pub fn of(
        default: &Bound<'_, ColumnFamily>,
        synced: bool,
        running: flagstone::Transaction,
    ) -> Self {
        let running = Mutex::new(Held::new(running));
        Self { default: default.clone().unbind(), synced, running }
    }

    /// The family that is meant, if it is of the transaction's database.
    fn chosen<'a, 'py>(
        &'a self,
        py: Python<'py>,
        family: AFamily<'a, 'py>,
    ) -> PyResult<&'a Bound<'py, ColumnFamily>> {
        let own = self.default.bind(py);
        let chosen = family.unwrap_or(own);
        let life = reader(own).life();
        life.check(py)?;
        if !Arc::ptr_eq(life, reader(chosen).life()) {
            let message = "the column family is of another database";
            return Err(error(py, Class::InvalidArgument, message));
        }
        Ok(chosen)
    }

    /// The transaction, if no other thread uses it.
    fn running(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Held<flagstone::Transaction>>> {
        match self.running.try_lock() {
            Ok(running) => Ok(running),
            Err(TryLockError::Poisoned(running)) => Ok(running.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(error(py, Class::Busy, "the transaction is in use by another thread"))
            }
        }
    }

    /// Does something in a family, detached from the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        family: AFamily<'_, '_>,
        run: impl FnOnce(&mut flagstone::Transaction, &Family) -> flagstone::Result<T> + Send,
    ) -> PyResult<T> {
        let family = reader(self.chosen(py, family)?).family();
        let mut running = self.running(py)?;
        let transaction = running.part_mut();
        wait(py, || run(transaction, family))
    }

    /// Commits it, unless it was ended or prepared already.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let options = write_options(self.synced);
        self.with(py, None, |transaction, _| match transaction.state() {
            TransactionState::Started | TransactionState::Expired => {
                transaction.commit_with(&options)
            }
            _ => Ok(()),
        })
    }

    /// Rolls it back, unless it was ended or prepared already.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, None, |transaction, _| match transaction.state() {
            TransactionState::Started | TransactionState::Expired => transaction.rollback(),
            _ => Ok(()),
        })
    }
}

/// Whether an exception says that another transaction was in the way.
fn is_conflict(py: Python<'_>, raised: &PyErr) -> bool {
    let is_lock = || {
        let subcode = raised.value(py).getattr("subcode").and_then(|code| code.extract::<String>());
        subcode.is_ok_and(|subcode| subcode == "LockTimeout")
    };
    is_of(py, raised, Class::Busy)
        || is_of(py, raised, Class::TryAgain)
        || is_of(py, raised, Class::TimedOut) && is_lock()
}

/// Calls `work` with a transaction and commits that; again from the beginning after a conflict.
pub fn transact<'py>(
    default: &Bound<'py, ColumnFamily>,
    work: &Bound<'py, PyAny>,
    synced: bool,
    retries: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let py = default.py();
    let options = TransactionOptions {
        set_snapshot: !reader(default).life().has_locks(),
        deadlock_detect: true,
        ..TransactionOptions::default()
    };
    let mut pause = PAUSES[0];
    let mut left = retries;
    loop {
        let begun = Bound::new(py, Transaction::begin(default, synced, &options, None)?)?;
        let done = work.call1((&begun,)).and_then(|value| begun.get().finish(py).map(|()| value));
        let raised = match done {
            Ok(value) => return Ok(value),
            Err(raised) => raised,
        };
        begun.get().give_up(py)?;
        if left == 0 || !is_conflict(py, &raised) {
            return Err(raised);
        }
        left -= 1;
        // Two that met once shall not meet again.
        let part = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
        py.detach(|| std::thread::sleep(pause.mul_f64(part)));
        pause = (pause * 2).min(PAUSES[1]);
    }
}

#[pymethods]
impl Transaction {
    /// Its name, by which it is prepared, if it has one.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let name = self.running(py)?.part().name();
        Ok(name.map(|name| PyBytes::new(py, &name)))
    }

    /// How far it has come: `started`, `prepared`, `committed`, `rolled back` or `expired`.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match self.running(py)?.part().state() {
            TransactionState::Started => "started",
            TransactionState::Prepared => "prepared",
            TransactionState::Committed => "committed",
            TransactionState::RolledBack => "rolled back",
            TransactionState::Expired => "expired",
            _ => "unknown",
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Input) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.with(py, None, |transaction, family| transaction.get(family, &key))?;
        value.map(|value| PyBytes::new(py, &value)).ok_or_else(|| missing(py, &key))
    }

    fn __contains__(&self, py: Python<'_>, key: Input) -> PyResult<bool> {
        let value = self.with(py, None, |transaction, family| transaction.get(family, &key))?;
        Ok(value.is_some())
    }

    fn __setitem__(&self, py: Python<'_>, key: Input, value: Input) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Input) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// The value of `key`, or `default`. Others may write the key meanwhile: what the transaction's
    /// writes follow from is read with `get_for_update`.
    #[pyo3(signature = (key, default = None, /, *, family = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input,
        default: Option<Bound<'py, PyAny>>,
        family: AFamily<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.with(py, family, |transaction, family| transaction.get(family, &key))?;
        Ok(value.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// The value of `key`, or `None`, and nobody else writes the key before the commit; without
    /// locks, `commit` raises `Busy` if somebody has. With `shared=True` other transactions may
    /// read it in the same way.
    #[pyo3(signature = (key, /, *, shared = false, family = None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Input,
        shared: bool,
        family: AFamily<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, family, |transaction, family| {
            if shared {
                transaction.get_shared(family, &key)
            } else {
                transaction.get_for_update(family, &key)
            }
        })?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    /// Pairs of key and value in order, as the transaction sees them now: all, those from `start`
    /// on and before `stop`, or those whose keys begin with `prefix`.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, family = None))]
    fn items(
        &self,
        py: Python<'_>,
        start: Option<Input>,
        stop: Option<Input>,
        prefix: Option<Input>,
        family: AFamily<'_, '_>,
    ) -> PyResult<Iterator> {
        let bounds = bounds(start, stop, prefix)?;
        let entries = self.with(py, family, |transaction, family| {
            Ok(open(&transaction.family(family)?, &bounds))
        })?;
        let life = reader(self.default.bind(py)).life();
        Ok(Iterator::over(Arc::clone(life), entries, Items::Entries, false))
    }

    /// Sets `key` to `value`.
    #[pyo3(signature = (key, value, /, *, family = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Input,
        value: Input,
        family: AFamily<'_, '_>,
    ) -> PyResult<()> {
        self.with(py, family, |transaction, family| transaction.put(family, &key, &value))
    }

    /// Removes `key`, which need not be there.
    #[pyo3(signature = (key, /, *, family = None))]
    fn delete(&self, py: Python<'_>, key: Input, family: AFamily<'_, '_>) -> PyResult<()> {
        self.with(py, family, |transaction, family| transaction.delete(family, &key))
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged.
    #[pyo3(signature = (key, /, *, family = None))]
    fn single_delete(&self, py: Python<'_>, key: Input, family: AFamily<'_, '_>) -> PyResult<()> {
        self.with(py, family, |transaction, family| transaction.single_delete(family, &key))
    }

    /// Merges `operand` into the value of `key`.
    #[pyo3(signature = (key, operand, /, *, family = None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Input,
        operand: Input,
        family: AFamily<'_, '_>,
    ) -> PyResult<()> {
        self.with(py, family, |transaction, family| transaction.merge(family, &key, &operand))
    }

    /// From now on reads see the database as of this moment, and a key that others have written
    /// since is refused (`Busy`).
    fn set_snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, None, |transaction, _| {
            transaction.set_snapshot();
            Ok(())
        })
    }

    /// Remembers the present state for `rollback_to_save_point`; save points nest.
    fn set_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, None, |transaction, _| {
            transaction.set_save_point();
            Ok(())
        })
    }

    /// Takes back what was done since the latest save point, and the save point.
    fn rollback_to_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, None, |transaction, _| transaction.rollback_to_save_point())
    }

    /// How many writes there are.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.running(py)?.part().count() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Prepares the writes under the transaction's name: they survive the process, and `commit` no
    /// longer fails for a conflict. `Database.prepared_transactions` has them after the next
    /// opening. Only with locks.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        let options = write_options(self.synced);
        self.with(py, None, |transaction, _| transaction.prepare_with(&options))
    }

    /// Writes what it has written, and ends it.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let options = write_options(self.synced);
        self.with(py, None, |transaction, _| transaction.commit_with(&options))
    }

    /// Takes back everything, and releases its locks. One that is prepared ends; any other may be
    /// used again.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, None, |transaction, _| transaction.rollback())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// One that was prepared in the block stays so.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if exception.get_item(0).is_ok_and(|class| !class.is_none()) {
            return self.give_up(py);
        }
        self.finish(py)
    }

    fn __repr__(&self) -> String {
        match self.running.try_lock() {
            Ok(running) => format!("<flagstone.Transaction of {} writes>", running.part().count()),
            Err(_) => "<flagstone.Transaction in use>".to_string(),
        }
    }
}
