//! A column family: reads, and writes.

use std::path::PathBuf;

use flagstone::{Code, Family, IngestExternalFileOptions, Value, WriteBatch, WriteOptions};
use pyo3::PyClassInitializer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch::Batch;
use crate::bytes::Input;
use crate::entity::Pairs;
use crate::errors::{Class, error, raised};
use crate::life::wait;
use crate::options::{changes, lifetime};
use crate::reader::{Reader, missing};
use crate::snapshot::Snapshot;
use crate::stamp::{Stamp, number};

/// A column family of an open database: keys with their values, in order.
///
/// It is used like a `dict` of bytes. What is written is in the write-ahead log when the call
/// returns, so it survives the death of the process; with `synced=True` also a loss of power.
#[pyclass(frozen, subclass, extends = Reader, module = "flagstone")]
pub struct ColumnFamily;

/// A new object for a family.
pub fn initializer(reader: Reader) -> PyClassInitializer<ColumnFamily> {
    PyClassInitializer::from(reader).add_subclass(ColumnFamily)
}

/// The reads of a family.
pub fn reader<'a>(slf: &'a Bound<'_, ColumnFamily>) -> &'a Reader {
    slf.as_super().get()
}

/// How a write writes.
pub fn write_options(synced: bool) -> WriteOptions {
    if synced { WriteOptions::synced() } else { WriteOptions::new() }
}

/// Writes, detached from the interpreter.
fn write(
    slf: &Bound<'_, ColumnFamily>,
    write: impl FnOnce(&Family) -> flagstone::Result<()> + Send,
) -> PyResult<()> {
    let reader = reader(slf);
    reader.life().check(slf.py())?;
    let family = reader.family();
    wait(slf.py(), || write(family))
}

/// Writes to a key as its value demands, in one step: if another thread writes to the key
/// meanwhile, its value is read again. `fill` says whether there is anything to write. Gives the
/// value before.
fn exchange(
    slf: &Bound<'_, ColumnFamily>,
    key: &[u8],
    fill: impl Fn(&mut WriteBatch, &Family, Option<&Value>) -> flagstone::Result<bool> + Sync,
) -> PyResult<Option<Value>> {
    let reader = reader(slf);
    let (db, family) = (reader.life().db(slf.py())?, reader.family());
    wait(slf.py(), || {
        loop {
            let before = db.snapshot();
            let value = before.family(family)?.get(key)?;
            let mut batch = WriteBatch::new();
            if !fill(&mut batch, family, value.as_ref())? {
                return Ok(value);
            }
            match db.write_if_unchanged(batch, &before, &[(family, key)]) {
                Err(error) if error.code() == Code::Busy => {}
                outcome => return outcome.map(|()| value),
            }
        }
    })
}

/// Removes a key; gives its value, if it was there.
fn take(slf: &Bound<'_, ColumnFamily>, key: &[u8]) -> PyResult<Option<Value>> {
    exchange(slf, key, |batch, family, before| {
        batch.delete_cf(family, key).map(|()| before.is_some())
    })
}

/// Writes a batch of one operation as `synced` says.
fn write_one(
    slf: &Bound<'_, ColumnFamily>,
    synced: bool,
    fill: impl FnOnce(&mut WriteBatch, &Family) -> flagstone::Result<()> + Send,
) -> PyResult<()> {
    let reader = reader(slf);
    let (db, family) = (reader.life().db(slf.py())?, reader.family());
    wait(slf.py(), || {
        let mut batch = WriteBatch::new();
        fill(&mut batch, family)?;
        db.write_with(batch, &write_options(synced))
    })
}

#[pymethods]
impl ColumnFamily {
    fn __setitem__(slf: &Bound<'_, Self>, key: Input, value: Input) -> PyResult<()> {
        write(slf, |family| family.put(&key, &value))
    }

    /// Removes a key. Like that of a `dict` it raises `KeyError` if the key is not there, so it
    /// reads first; `delete()` does not.
    fn __delitem__(slf: &Bound<'_, Self>, key: Input) -> PyResult<()> {
        take(slf, &key)?.map(drop).ok_or_else(|| missing(slf.py(), &key))
    }

    /// Sets `key` to `value`. In a family whose values expire, this one lives for `expires_after`,
    /// in seconds or as a `timedelta`, if that is given; `math.inf` is for ever. It is rounded up
    /// to whole seconds, and zero is refused. In a family with user timestamps, and only there, a
    /// write has a `timestamp`, a number below 2^64.
    #[pyo3(signature = (
        key, value, /, *, synced = false, expires_after = None, timestamp = None
    ))]
    fn put(
        slf: &Bound<'_, Self>,
        key: Input,
        value: Input,
        synced: bool,
        expires_after: Option<&Bound<'_, PyAny>>,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        if let Some(timestamp) = timestamp {
            if expires_after.is_some() {
                let message = "a value with a timestamp does not expire";
                return Err(error(slf.py(), Class::NotSupported, message));
            }
            return write_one(slf, synced, |batch, family| {
                batch.put_with_timestamp(family, &key, &timestamp, &value)
            });
        }
        let Some(lifetime) = expires_after.map(lifetime).transpose()? else {
            return write(slf, |family| family.put_with(&key, &value, &write_options(synced)));
        };
        let reader = reader(slf);
        let (db, family) = (reader.life().db(slf.py())?, reader.family());
        wait(slf.py(), || {
            family.put_for(&key, &value, lifetime)?;
            if synced { db.sync_wal() } else { Ok(()) }
        })
    }

    /// How many seconds the values of the family live, or `None` for ever.
    #[getter]
    fn expires_after(slf: &Bound<'_, Self>) -> Option<u64> {
        reader(slf).family().ttl().map(|lifetime| lifetime.as_secs())
    }

    /// Removes `key`, which need not be there.
    #[pyo3(signature = (key, /, *, synced = false, timestamp = None))]
    fn delete(
        slf: &Bound<'_, Self>,
        key: Input,
        synced: bool,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        let Some(timestamp) = timestamp else {
            return write(slf, |family| family.delete_with(&key, &write_options(synced)));
        };
        write_one(slf, synced, |batch, family| {
            batch.delete_with_timestamp(family, &key, &timestamp)
        })
    }

    /// Sets `key` to columns, a mapping of names and values. A plain read gives the column `b""`.
    #[pyo3(signature = (key, columns, /, *, synced = false))]
    fn put_entity(slf: &Bound<'_, Self>, key: Input, columns: Pairs, synced: bool) -> PyResult<()> {
        write(slf, |family| family.put_entity_with(&key, columns.pairs(), &write_options(synced)))
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged.
    #[pyo3(signature = (key, /, *, synced = false))]
    fn single_delete(slf: &Bound<'_, Self>, key: Input, synced: bool) -> PyResult<()> {
        write_one(slf, synced, |batch, family| batch.single_delete_cf(family, &key))
    }

    /// Removes all keys from `start` on and before `stop`, in one step.
    #[pyo3(signature = (start, stop, /, *, synced = false, timestamp = None))]
    fn delete_range(
        slf: &Bound<'_, Self>,
        start: Input,
        stop: Input,
        synced: bool,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        write_one(slf, synced, |batch, family| match &timestamp {
            Some(timestamp) => batch.delete_range_with_timestamp(family, &start, &stop, timestamp),
            None => batch.delete_range_cf(family, &start, &stop),
        })
    }

    /// Merges `operand` into the value of `key`, as the family's merge operator does. Nothing is
    /// read now: the next read, or a compaction, brings them together.
    #[pyo3(signature = (key, operand, /, *, synced = false, timestamp = None))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: Input,
        operand: Input,
        synced: bool,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        write_one(slf, synced, |batch, family| match &timestamp {
            Some(timestamp) => batch.merge_with_timestamp(family, &key, timestamp, &operand),
            None => batch.merge_cf(family, &key, &operand),
        })
    }

    /// Makes reads as of timestamps before `timestamp` impossible, so that compactions may drop
    /// what only they would see.
    #[pyo3(signature = (timestamp, /))]
    fn increase_full_history_ts_low(slf: &Bound<'_, Self>, timestamp: Stamp) -> PyResult<()> {
        write(slf, |family| family.increase_full_history_ts_low(&timestamp))
    }

    /// The timestamp as of which reads are possible still, if that was set.
    #[getter]
    fn full_history_ts_low(slf: &Bound<'_, Self>) -> PyResult<Option<u64>> {
        let reader = reader(slf);
        reader.life().check(slf.py())?;
        let low = wait(slf.py(), || reader.family().full_history_ts_low())?;
        low.map(|low| number(slf.py(), &low)).transpose()
    }

    /// Takes tables in that `TableWriter` or RocksDB wrote, all of them or none: as if their
    /// entries were written now or, with `ingest_behind=True`, before all that there is. They are
    /// copied, or with `move_files=True` linked here and removed there.
    #[pyo3(signature = (
        files, /, *, move_files = false, ingest_behind = false, verify_checksums = false
    ))]
    fn ingest(
        slf: &Bound<'_, Self>,
        files: Vec<PathBuf>,
        move_files: bool,
        ingest_behind: bool,
        verify_checksums: bool,
    ) -> PyResult<()> {
        let mut options = IngestExternalFileOptions::default();
        options.move_files = move_files;
        options.ingest_behind = ingest_behind;
        options.verify_checksums_before_ingest = verify_checksums;
        write(slf, |family| family.ingest_external_files(&files, &options))
    }

    /// Writes the family as it is now to the directory `target`, which must not exist, for
    /// `Database.import_column_family`.
    #[pyo3(signature = (target, /))]
    fn export(slf: &Bound<'_, Self>, target: PathBuf) -> PyResult<()> {
        write(slf, |family| family.export(target).map(drop))
    }

    /// Removes `key` and returns its value, or `default` if it is not there, in one step.
    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        slf: &Bound<'py, Self>,
        key: Input,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            let message = format!("pop expected at most 2 arguments, got {}", default.len() + 1);
            return Err(pyo3::exceptions::PyTypeError::new_err(message));
        }
        match take(slf, &key)? {
            Some(value) => Ok(PyBytes::new(slf.py(), &value).into_any()),
            None => default.get_item(0).map_err(|_| missing(slf.py(), &key)),
        }
    }

    /// The value of `key`, which is set to `default` first if it is not there, in one step.
    #[pyo3(signature = (key, default, /))]
    fn setdefault<'py>(
        slf: &Bound<'py, Self>,
        key: Input,
        default: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value: Input = default.extract()?;
        let before = exchange(slf, &key, |batch, family, before| {
            batch.put_cf(family, &key, &value).map(|()| before.is_none())
        })?;
        Ok(before.map_or(default, |value| PyBytes::new(slf.py(), &value).into_any()))
    }

    /// Sets all keys of `entries`, a mapping or pairs of key and value: all of them or, if there is
    /// an error, none.
    #[pyo3(signature = (entries, /, *, synced = false))]
    fn update(slf: &Bound<'_, Self>, entries: Pairs, synced: bool) -> PyResult<()> {
        let reader = reader(slf);
        let (db, family) = (reader.life().db(slf.py())?, reader.family());
        let mut batch = WriteBatch::new();
        for (key, value) in entries.pairs() {
            batch.put_cf(family, key, value).map_err(|error| raised(slf.py(), &error, None))?;
        }
        wait(slf.py(), || db.write_with(batch, &write_options(synced)))
    }

    /// A batch of writes, which take place as a whole or not at all. In a `with` statement it is
    /// written at the end, and dropped if there is an exception. With a snapshot in `since` it is
    /// written only if keys are as they were then: see `Batch.check_unchanged`.
    #[pyo3(signature = (*, synced = false, since = None))]
    fn batch(
        slf: &Bound<'_, Self>,
        synced: bool,
        since: Option<&Bound<'_, Snapshot>>,
    ) -> PyResult<Batch> {
        Batch::begin(slf, synced, since)
    }

    /// Writes the family's memtable to a table, and waits for that.
    fn flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        write(slf, Family::flush)
    }

    /// Compacts all of the family, and waits for that.
    fn compact(slf: &Bound<'_, Self>) -> PyResult<()> {
        write(slf, Family::compact)
    }

    /// A guess at how many keys there are, from what the tables say of themselves.
    fn approximate_count(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let reader = reader(slf);
        reader.life().check(slf.py())?;
        let family = reader.family();
        wait(slf.py(), || Ok(family.int_property("rocksdb.estimate-num-keys").unwrap_or(0)))
    }

    /// A property of the family or the database, by RocksDB's name for it, or `None` if there is
    /// none of that name.
    #[pyo3(signature = (name, /))]
    fn property(slf: &Bound<'_, Self>, name: &str) -> PyResult<Option<String>> {
        let reader = reader(slf);
        reader.life().check(slf.py())?;
        let family = reader.family();
        wait(slf.py(), || Ok(family.property(name)))
    }

    /// An option of the family as it is now, by RocksDB's name for it, or `None` if there is none
    /// of that name.
    #[pyo3(signature = (name, /))]
    fn option(slf: &Bound<'_, Self>, name: &str) -> PyResult<Option<String>> {
        let reader = reader(slf);
        reader.life().check(slf.py())?;
        Ok(reader.family().options().get(name))
    }

    /// Changes options of the family that may change while the database is open.
    #[pyo3(signature = (**options))]
    fn set_options(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let changes = changes(options)?;
        let changes: Vec<_> = changes.iter().map(|(name, text)| (&**name, &**text)).collect();
        write(slf, |family| family.set_options(&changes))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!("<flagstone.ColumnFamily '{}'>", reader(slf).family().name().escape_debug())
    }
}
