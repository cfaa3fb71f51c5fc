//! The engine's handle behind a `DB`, whether its values expire or not.

use flagstone::base::Snapshot;
use flagstone::db::{ColumnFamily, Db, Iter, TtlDb, TtlIter, TtlOptions};
use flagstone::transactions::OverlaidIter;
use flagstone::{ColumnFamilyOptions, ReadOptions, Result, Value, WriteBatch, WriteOptions};

use crate::following::Following;
use crate::options::Opened;
use crate::statistics::Histogram;

/// An open database of the engine, and what belongs to it.
pub struct Store {
    /// Declared before the handle: it holds the database open.
    opened: Opened,
    handle: Handle,
}

/// A handle of the engine.
pub(crate) enum Handle {
    /// Values live until they are deleted.
    Plain(Db),
    /// Values end with the time of their writing, and expire.
    Expiring(TtlDb),
    /// There are transactions, with locks or without.
    Transactional(flagstone::Db),
    /// Another process writes the database.
    Following(Box<Following>),
}

impl Handle {
    pub(crate) fn db(&self) -> &Db {
        match self {
            Self::Plain(db) => db,
            Self::Expiring(expiring) => expiring.base(),
            Self::Transactional(db) => db.engine(),
            Self::Following(following) => following.first(),
        }
    }
}

impl Store {
    pub(crate) fn new(opened: Opened, handle: Handle) -> Self {
        Self { opened, handle }
    }

    pub(crate) fn db(&self) -> &Db {
        self.handle.db()
    }

    /// The database as transactions see it.
    ///
    /// # Panics
    /// In a database that was opened without transactions.
    pub(crate) fn transactional(&self) -> &flagstone::Db {
        match &self.handle {
            Handle::Transactional(db) => db,
            _ => unreachable!("only databases with transactions begin some"),
        }
    }

    pub(crate) fn drop_family(&self, family: &ColumnFamily) -> Result<()> {
        match &self.handle {
            Handle::Transactional(db) => db.drop_column_family(&db.family_of(family)),
            _ => self.db().drop_column_family(family),
        }
    }

    pub(crate) fn default_family(&self) -> &ColumnFamily {
        self.db().default_column_family()
    }

    pub(crate) fn get(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
    ) -> Result<Option<Value>> {
        self.opened.measure(Histogram::DbGet, || match &self.handle {
            Handle::Plain(db) => db.get_with(options, family, key),
            Handle::Transactional(db) => db.engine().get_with(options, family, key),
            Handle::Expiring(expiring) => expiring.get_with(options, family, key),
            Handle::Following(following) => {
                let (db, family) = following.current(family)?;
                db.get_with(options, &family, key)
            }
        })
    }

    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        self.opened.measure(Histogram::DbMultiget, || match &self.handle {
            Handle::Plain(db) => db.multi_get_with(options, family, keys),
            Handle::Transactional(db) => db.engine().multi_get_with(options, family, keys),
            Handle::Expiring(expiring) => expiring.multi_get_with(options, family, keys),
            Handle::Following(following) => match following.current(family) {
                Ok((db, family)) => db.multi_get_with(options, &family, keys),
                Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
            },
        })
    }

    pub(crate) fn cursor(&self, options: &ReadOptions, family: &ColumnFamily) -> Result<Cursor> {
        Ok(match &self.handle {
            Handle::Plain(db) => Cursor::Plain(db.iter_cf(family, options)?),
            Handle::Transactional(db) => Cursor::Plain(db.engine().iter_cf(family, options)?),
            Handle::Expiring(expiring) => Cursor::Expiring(expiring.iter_cf(family, options)?),
            Handle::Following(following) => {
                let (db, family) = following.current(family)?;
                Cursor::Plain(db.iter_cf(&family, options)?)
            }
        })
    }

    /// A snapshot with which lookups in several families see one moment; `None` if they do anyway.
    pub(crate) fn common_snapshot(&self) -> Option<Snapshot> {
        match &self.handle {
            // It changes only when it catches up.
            Handle::Following(_) => None,
            _ => Some(self.db().snapshot()),
        }
    }

    pub(crate) fn latest_sequence_number(&self) -> u64 {
        match &self.handle {
            Handle::Following(following) => following.latest_sequence_number(),
            _ => self.db().latest_sequence_number(),
        }
    }

    /// Goes on with what another process has written since.
    ///
    /// # Errors
    /// `NotSupported` unless it follows another process; what an opening says.
    pub(crate) fn catch_up(&self) -> Result<()> {
        match &self.handle {
            Handle::Following(following) => following.catch_up(),
            _ => Err(flagstone::Error::not_supported("only a secondary database catches up")),
        }
    }

    /// Does a seek of a cursor, and measures how long it takes.
    pub(crate) fn measure_seek<T>(&self, seek: impl FnOnce() -> T) -> T {
        self.opened.measure(Histogram::DbSeek, seek)
    }

    pub(crate) fn write(&self, options: &WriteOptions, batch: WriteBatch) -> Result<()> {
        self.opened.measure(Histogram::DbWrite, || match &self.handle {
            Handle::Plain(db) => db.write_with(options, batch),
            Handle::Transactional(db) => db.write_with(batch, options),
            Handle::Expiring(expiring) => expiring.write_with(options, &batch),
            Handle::Following(following) => following.first().write_with(options, batch),
        })
    }

    pub(crate) fn create_family(
        &self,
        name: &str,
        options: &ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        match &self.handle {
            Handle::Plain(db) => db.create_column_family(name, options),
            Handle::Transactional(db) => db.engine().create_column_family(name, options),
            // As in RocksDB, its values are stamped and do not expire until the next opening.
            Handle::Expiring(expiring) => {
                expiring.create_column_family(name, options, TtlOptions::default())
            }
            Handle::Following(following) => following.first().create_column_family(name, options),
        }
    }
}

/// A cursor of the engine.
pub enum Cursor {
    Plain(Iter),
    Expiring(TtlIter),
    /// The changes of a transaction over the database.
    Overlaid(Box<OverlaidIter>),
}

/// Calls a method of whichever cursor it is.
macro_rules! either {
    ($cursor:expr, $inner:ident => $call:expr) => {
        match $cursor {
            Cursor::Plain($inner) => $call,
            Cursor::Expiring($inner) => $call,
            Cursor::Overlaid($inner) => $call,
        }
    };
}

impl Cursor {
    pub(crate) fn valid(&self) -> bool {
        either!(self, inner => inner.valid())
    }

    pub(crate) fn status(&self) -> Result<()> {
        either!(self, inner => inner.status())
    }

    pub(crate) fn seek_to_first(&mut self) {
        either!(self, inner => inner.seek_to_first());
    }

    pub(crate) fn seek_to_last(&mut self) {
        either!(self, inner => inner.seek_to_last());
    }

    pub(crate) fn seek(&mut self, key: &[u8]) {
        either!(self, inner => inner.seek(key));
    }

    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        either!(self, inner => inner.seek_for_prev(key));
    }

    pub(crate) fn next(&mut self) {
        either!(self, inner => inner.next());
    }

    pub(crate) fn prev(&mut self) {
        either!(self, inner => inner.prev());
    }

    pub(crate) fn refresh(&mut self) -> Result<()> {
        match self {
            Self::Plain(inner) => inner.refresh(),
            Self::Expiring(inner) => inner.refresh(),
            Self::Overlaid(_) => {
                let message = "an iterator of a transaction is not refreshed; make another";
                Err(flagstone::Error::not_supported(message))
            }
        }
    }

    /// Finds the value, reading its blob file if it lies in one.
    pub(crate) fn load_value(&mut self) -> Result<()> {
        either!(self, inner => inner.value().map(|_| ()))
    }

    /// The key; the cursor must be valid.
    pub(crate) fn key(&self) -> &[u8] {
        either!(self, inner => inner.key())
    }

    /// The value that `load_value` found.
    pub(crate) fn found_value(&self) -> Option<&[u8]> {
        either!(self, inner => inner.found_value())
    }
}
