//! The database as a whole, and how it is opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::{
    Builder, Db, ExportedFamily, ImportColumnFamilyOptions, Options, TransactionDbOptions,
    TransactionOptions,
};
use pyo3::PyClassInitializer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bytes::Input;
use crate::errors::{Class, error};
use crate::family::{self, ColumnFamily};
use crate::life::{Life, wait};
use crate::options::{self, FamilyChoice, changes, lifetime, set};
use crate::reader::Reader;
use crate::reports::{self, LiveFile};
use crate::snapshot::{self, Snapshot};
use crate::transaction::{self, Transaction};

/// An open database. It is its column family `default`; others are objects of their own.
///
/// `Database(path, read_only=False, locks=False, column_families=None, **options)` opens the
/// database in the directory `path` with all of its column families, and makes it if there is none.
/// With `locks=True` transactions lock the keys that they use.
///
/// Options are given by RocksDB's names for them. They are those of the database, and of each
/// column family that `column_families`, a `dict` of names and `dict`s of options, does not name.
/// A family with the option `expires_after`, in seconds or as a `timedelta`, holds values that live
/// for so long, rounded up to whole seconds; it has that from its creation on.
///
/// Close it with `close()` or a `with` statement; otherwise the interpreter's end does.
#[pyclass(frozen, extends = ColumnFamily, module = "flagstone")]
pub struct Database;

type Families = Vec<(String, FamilyChoice)>;

/// A new object for a database that was just opened.
pub fn initializer(db: Db, has_locks: bool) -> PyClassInitializer<Database> {
    let default = (*db).clone();
    let reader = Reader::now(Life::begin(db, has_locks), default);
    family::initializer(reader).add_subclass(Database)
}

/// The life of the database that an object stands for.
pub fn life<'a>(slf: &'a Bound<'_, Database>) -> &'a Arc<Life> {
    slf.as_super().as_super().get().life()
}

fn families(given: Option<&Bound<'_, PyAny>>) -> PyResult<Families> {
    let Some(given) = given else { return Ok(Families::new()) };
    let families = as_dict(given)?;
    let families = families.iter().map(|(name, options)| {
        let options = (!options.is_none()).then(|| as_dict(&options)).transpose()?;
        Ok((name.extract()?, options::family(options.as_ref())?))
    });
    families.collect()
}

/// A database that is to be opened, with these options.
pub fn builder(
    path: &Path,
    create_if_missing: bool,
    column_families: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Builder> {
    let named = families(column_families)?;
    let mut settings = Options::default();
    settings.create_if_missing = create_if_missing;
    if let Some(options) = options {
        set(&mut settings, options)?;
    }
    let mut builder = Db::builder(path).options(|options| *options = settings);
    for (name, family) in named {
        let FamilyChoice { options, lifetime } = family;
        builder = match lifetime {
            Some(lifetime) => builder.expiring_family(name, lifetime, |o| *o = options),
            None => builder.column_family(name, |o| *o = options),
        };
    }
    Ok(builder)
}

fn as_dict<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    if let Ok(dict) = mapping.cast::<PyDict>() {
        return Ok(dict.clone());
    }
    if !mapping.hasattr("keys")? {
        let of = mapping.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "column_families is a dict of names and dicts of options, with no '{of}' in it"
        )));
    }
    let dict = PyDict::new(mapping.py());
    dict.call_method1("update", (mapping,))?;
    Ok(dict)
}

/// Opens the database in the directory `path`: see `Database`.
#[pyfunction]
#[pyo3(signature = (
    path, /, *, read_only = false, locks = false, column_families = None, **options
))]
pub fn open<'py>(
    py: Python<'py>,
    path: PathBuf,
    read_only: bool,
    locks: bool,
    column_families: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Database>> {
    Bound::new(py, Database::new(py, path, read_only, locks, column_families, options)?)
}

/// Opens the database in the directory `path` with the options that it was last open with, of
/// Flagstone or RocksDB, as its newest OPTIONS file tells them.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn open_with_stored_options(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, Database>> {
    let db = wait(py, || Db::open_with_stored_options(path))?;
    Bound::new(py, initializer(db, false))
}

/// The names of the column families of the database in the directory `path`, which need not be
/// open.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn list_column_families(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    wait(py, || Db::list_column_families(path))
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (
    path, /, *, read_only = false, locks = false, column_families = None, **options
))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        locks: bool,
        column_families: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if read_only && locks {
            return Err(PyTypeError::new_err("a database that is only read has no locks"));
        }
        let builder = builder(&path, !read_only, column_families, options)?;
        let open = || match (read_only, locks) {
            (true, _) => builder.open_read_only(),
            (false, false) => builder.open(),
            (false, true) => {
                let db = builder.open_transaction_db(&TransactionDbOptions::default())?;
                Ok((*db).clone())
            }
        };
        Ok(initializer(wait(py, open)?, locks))
    }

    /// Where the database is.
    #[getter]
    fn path(slf: &Bound<'_, Self>) -> PathBuf {
        life(slf).path().to_path_buf()
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(slf: &Bound<'_, Self>) -> bool {
        life(slf).is_closed()
    }

    /// The column family of that name. `NotFound` if there is none.
    #[pyo3(signature = (name, /))]
    fn column_family<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
    ) -> PyResult<Bound<'py, ColumnFamily>> {
        let life = life(slf);
        let db = life.db(slf.py())?;
        let family = wait(slf.py(), || db.column_family(name))?;
        let reader = Reader::now(Arc::clone(life), family);
        Bound::new(slf.py(), family::initializer(reader))
    }

    /// The names of all column families, in the order of their creation.
    fn column_families(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let db = life(slf).db(slf.py())?;
        let families = db.column_families();
        Ok(families.iter().map(|family| family.name().to_string()).collect())
    }

    /// Makes a column family, with options by RocksDB's names for them, and `expires_after`.
    /// Durable when the call returns.
    #[pyo3(signature = (name, /, **options))]
    fn create_column_family<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, ColumnFamily>> {
        let life = life(slf);
        let db = life.db(slf.py())?;
        let FamilyChoice { options, lifetime } = options::family(options)?;
        let family = wait(slf.py(), || match lifetime {
            Some(lifetime) => db.create_expiring_family(name, lifetime, |o| *o = options),
            None => db.create_column_family(name, |o| *o = options),
        })?;
        let reader = Reader::now(Arc::clone(life), family);
        Bound::new(slf.py(), family::initializer(reader))
    }

    /// Makes a column family of what `ColumnFamily.export` wrote to these directories, whose key
    /// ranges are apart; a checkpoint or a closed database serves, too. With `move_files=True` the
    /// files are moved, else copied. `verify_checksums=True` reads them first.
    #[pyo3(signature = (
        name, /, *directories, move_files = false, verify_checksums = false, **options
    ))]
    fn import_column_family<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        directories: Vec<PathBuf>,
        move_files: bool,
        verify_checksums: bool,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, ColumnFamily>> {
        let life = life(slf);
        let db = life.db(slf.py())?;
        let FamilyChoice { options, lifetime } = options::family(options)?;
        if lifetime.is_some() {
            let message = "values that expire are not imported; restore a checkpoint";
            return Err(error(slf.py(), Class::NotSupported, message));
        }
        let sources: Vec<_> = directories.into_iter().map(ExportedFamily::new).collect();
        let mut import = ImportColumnFamilyOptions::default();
        import.move_files = move_files;
        import.verify_checksums = verify_checksums;
        let family = wait(slf.py(), || {
            db.create_column_family_with_import(name, |o| *o = options, &sources, &import)
        })?;
        let reader = Reader::now(Arc::clone(life), family);
        Bound::new(slf.py(), family::initializer(reader))
    }

    /// Drops the column family of that name with all that it holds. Durable when the call returns.
    #[pyo3(signature = (name, /))]
    fn drop_column_family(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || db.drop_column_family(&db.column_family(name)?))
    }

    /// All column families as they are now.
    fn snapshot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Snapshot>> {
        Bound::new(slf.py(), snapshot::take(slf.py(), life(slf))?)
    }

    /// Begins a transaction: see `Transaction`. With `snapshot=True` it reads as of now. It waits
    /// for a lock for `lock_timeout`, in seconds or as a `timedelta`; after `expiration` it cannot
    /// be committed any more, and others may take its locks. With `deadlock_detect=True` a lock
    /// that would never be had is refused at once. By its `name`, of up to 512 bytes, it may be
    /// prepared. With `synced=True` it survives a loss of power.
    #[pyo3(signature = (
        *, synced = false, snapshot = false, name = None, deadlock_detect = false,
        lock_timeout = None, expiration = None
    ))]
    fn transaction(
        slf: &Bound<'_, Self>,
        synced: bool,
        snapshot: bool,
        name: Option<Input>,
        deadlock_detect: bool,
        lock_timeout: Option<&Bound<'_, PyAny>>,
        expiration: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Transaction> {
        let options = TransactionOptions {
            set_snapshot: snapshot,
            deadlock_detect,
            lock_timeout: lock_timeout.map(lifetime).transpose()?,
            expiration: expiration.map(lifetime).transpose()?,
            ..TransactionOptions::default()
        };
        Transaction::begin(slf.as_super(), synced, &options, name.as_deref())
    }

    /// Calls `work` with a transaction, commits that, and returns what `work` returned. After a
    /// conflict it is called again with a new transaction, up to `retries` times; so it should
    /// change nothing else.
    #[pyo3(signature = (work, /, *, synced = false, retries = 100))]
    fn transact<'py>(
        slf: &Bound<'py, Self>,
        work: &Bound<'py, PyAny>,
        synced: bool,
        retries: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        transaction::transact(slf.as_super(), work, synced, retries)
    }

    /// The transactions that are prepared and not decided, as far as no other object has them:
    /// those that an earlier process prepared, and those whose objects are gone.
    fn prepared_transactions(slf: &Bound<'_, Self>) -> PyResult<Vec<Transaction>> {
        let db = life(slf).db(slf.py())?;
        let prepared = wait(slf.py(), || flagstone::Transaction::all_prepared(db))?;
        let of = |one| Transaction::of(slf.as_super(), false, one);
        Ok(prepared.into_iter().map(of).collect())
    }

    /// Makes all writes so far survive a loss of power.
    fn sync_wal(slf: &Bound<'_, Self>) -> PyResult<()> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || db.sync_wal())
    }

    /// Writes the memtables of all column families to tables, and waits for that.
    fn flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || db.flush())
    }

    /// Makes a copy of the database as it is now in the directory `target`, which must not exist.
    #[pyo3(signature = (target, /))]
    fn checkpoint(slf: &Bound<'_, Self>, target: PathBuf) -> PyResult<()> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || db.checkpoint(target))
    }

    /// Changes options of the database that may change while it is open.
    #[pyo3(signature = (**options))]
    fn set_db_options(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let changes = changes(options)?;
        let db = life(slf).db(slf.py())?;
        let changes: Vec<_> = changes.iter().map(|(name, text)| (&**name, &**text)).collect();
        wait(slf.py(), || db.set_db_options(&changes))
    }

    /// The number of the last write.
    #[getter]
    fn latest_sequence_number(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || Ok(db.latest_sequence_number()))
    }

    /// The counters of the database since it was opened, by RocksDB's names for them.
    fn statistics(slf: &Bound<'_, Self>) -> PyResult<BTreeMap<&'static str, u64>> {
        Ok(reports::statistics(life(slf).db(slf.py())?))
    }

    /// Counters and figures in the text format of Prometheus.
    fn prometheus_text(slf: &Bound<'_, Self>) -> PyResult<String> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || Ok(db.prometheus_text()))
    }

    /// The tables and blob files.
    fn live_files(slf: &Bound<'_, Self>) -> PyResult<Vec<LiveFile>> {
        reports::live_files(slf.py(), life(slf).db(slf.py())?)
    }

    /// Reads all files and checks all checksums. What is wrong, in words; nothing if all is well.
    fn verify(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || Ok(reports::verify(db)))
    }

    /// Begins to record in a new file `path`: with `kind="operations"` reads and writes, which
    /// `flagstone replay` repeats; with `"block_cache"` what the block cache is asked for; with
    /// `"io"` the calls of files. One of each kind at a time. `sampling_frequency=N` records every
    /// Nth.
    #[pyo3(signature = (path, /, *, kind = "operations", sampling_frequency = 1))]
    fn start_trace(
        slf: &Bound<'_, Self>,
        path: PathBuf,
        kind: &str,
        sampling_frequency: u64,
    ) -> PyResult<()> {
        let kind = reports::trace_kind(slf.py(), kind)?;
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || reports::start_trace(db, kind, &path, sampling_frequency))
    }

    /// Ends a recording, and gives how many operations, requests or calls it has; `None` if there
    /// was none.
    #[pyo3(signature = (*, kind = "operations"))]
    fn end_trace(slf: &Bound<'_, Self>, kind: &str) -> PyResult<Option<u64>> {
        let kind = reports::trace_kind(slf.py(), kind)?;
        let db = life(slf).db(slf.py())?;
        wait(slf.py(), || reports::end_trace(db, kind))
    }

    /// Closes the database, so that it can be opened elsewhere. Whatever is used of it afterwards
    /// raises `Closed`, except for values. A second time does nothing.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        life(slf).close(slf.py())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        Self::close(slf)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let path = life(slf).path().display().to_string();
        format!("<flagstone.Database '{}'>", path.escape_debug())
    }
}
