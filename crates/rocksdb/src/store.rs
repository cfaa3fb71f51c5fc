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

    /// The engine's handle; in a secondary that of the opening.
    pub fn db(&self) -> &Db {
        self.handle.db()
    }

    /// The database as transactions see it.
    ///
    /// # Panics
    /// In a database that was opened without transactions.
    pub fn transactional(&self) -> &flagstone::Db {
        match &self.handle {
            Handle::Transactional(db) => db,
            _ => unreachable!("only databases with transactions begin some"),
        }
    }

    /// Drops a family.
    ///
    /// # Errors
    /// If it was dropped before; `IoError`.
    pub fn drop_family(&self, family: &ColumnFamily) -> Result<()> {
        match &self.handle {
            Handle::Transactional(db) => db.drop_column_family(&db.family_of(family)),
            _ => self.db().drop_column_family(family),
        }
    }

    /// The default family.
    pub fn default_family(&self) -> &ColumnFamily {
        self.db().default_column_family()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    #[inline]
    pub fn get(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
    ) -> Result<Option<Value>> {
        let found = self.opened.measure(Histogram::DbGet, || match &self.handle {
            Handle::Plain(db) => db.get_with(options, family, key),
            Handle::Transactional(db) => db.engine().get_with(options, family, key),
            Handle::Expiring(expiring) => expiring.get_with(options, family, key),
            Handle::Following(following) => {
                let (db, family) = following.current(family)?;
                db.get_with(options, &family, key)
            }
        });
        if let (Some(statistics), Ok(Some(value))) = (self.opened.statistics(), &found) {
            statistics.record(Histogram::BytesPerRead, value.len() as u64);
        }
        found
    }

    /// The values of several keys of a family as of one moment, in their order.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        let found = self.opened.measure(Histogram::DbMultiget, || match &self.handle {
            Handle::Plain(db) => db.multi_get_with(options, family, keys),
            Handle::Transactional(db) => db.engine().multi_get_with(options, family, keys),
            Handle::Expiring(expiring) => expiring.multi_get_with(options, family, keys),
            Handle::Following(following) => match following.current(family) {
                Ok((db, family)) => db.multi_get_with(options, &family, keys),
                Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
            },
        });
        if let Some(statistics) = self.opened.statistics() {
            let values = found.iter().filter_map(|value| value.as_ref().ok()?.as_ref());
            statistics.count_multi_get(keys.len(), values.map(|value| value.len() as u64).sum());
        }
        found
    }

    /// A cursor over a family.
    ///
    /// # Errors
    /// As [`Db::iter_cf`].
    pub fn cursor(&self, options: &ReadOptions, family: &ColumnFamily) -> Result<Cursor> {
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
    pub fn common_snapshot(&self) -> Option<Snapshot> {
        match &self.handle {
            // It changes only when it catches up.
            Handle::Following(_) => None,
            _ => Some(self.db().snapshot()),
        }
    }

    /// The sequence number of the last write.
    pub fn latest_sequence_number(&self) -> u64 {
        match &self.handle {
            Handle::Following(following) => following.latest_sequence_number(),
            _ => self.db().latest_sequence_number(),
        }
    }

    /// Goes on with what another process has written since.
    ///
    /// # Errors
    /// `NotSupported` unless it follows another process; what an opening says.
    pub fn catch_up(&self) -> Result<()> {
        match &self.handle {
            Handle::Following(following) => following.catch_up(),
            _ => Err(flagstone::Error::not_supported("only a secondary database catches up")),
        }
    }

    /// Does a seek of a cursor, and measures how long it takes.
    #[inline]
    pub fn measure_seek<T>(&self, seek: impl FnOnce() -> T) -> T {
        self.opened.measure(Histogram::DbSeek, seek)
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// As [`Db::write_with`].
    pub fn write(&self, options: &WriteOptions, batch: WriteBatch) -> Result<()> {
        self.record_write(&batch);
        self.opened.measure(Histogram::DbWrite, || match &self.handle {
            Handle::Plain(db) => db.write_with(options, batch),
            Handle::Transactional(db) => db.write_with(batch, options),
            Handle::Expiring(expiring) => expiring.write_with(options, &batch),
            Handle::Following(following) => following.first().write_with(options, batch),
        })
    }

    /// As [`write`](Self::write), leaving the batch with the caller.
    ///
    /// # Errors
    /// As [`Db::write_with`].
    pub fn write_ref(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        match &self.handle {
            Handle::Plain(db) => {
                self.record_write(batch);
                self.opened.measure(Histogram::DbWrite, || db.write_ref(options, batch))
            }
            _ => self.write(options, batch.clone()),
        }
    }

    fn record_write(&self, batch: &WriteBatch) {
        if let Some(statistics) = self.opened.statistics() {
            statistics.record(Histogram::BytesPerWrite, batch.data().len() as u64);
        }
    }

    /// Makes a family whose values expire.
    ///
    /// # Errors
    /// `NotSupported` unless values of the database expire; as [`Db::create_column_family`].
    pub fn create_expiring_family(
        &self,
        name: &str,
        options: &ColumnFamilyOptions,
        ttl_seconds: u64,
    ) -> Result<ColumnFamily> {
        match &self.handle {
            Handle::Expiring(expiring) => {
                let ttl = TtlOptions { ttl_seconds, ..TtlOptions::default() };
                expiring.create_column_family(name, options, ttl)
            }
            _ => Err(flagstone::Error::not_supported("the database was opened without a TTL")),
        }
    }

    /// Makes a family.
    ///
    /// # Errors
    /// As [`Db::create_column_family`].
    pub fn create_family(&self, name: &str, options: &ColumnFamilyOptions) -> Result<ColumnFamily> {
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
    /// Of a database whose values live until they are deleted.
    Plain(Iter),
    /// Of one whose values expire.
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
    /// Whether it stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        either!(self, inner => inner.valid())
    }

    /// What ended the iteration, if an error did.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        either!(self, inner => inner.status())
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        either!(self, inner => inner.seek_to_first());
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        either!(self, inner => inner.seek_to_last());
    }

    /// Moves to `key`, or to the next one behind it.
    pub fn seek(&mut self, key: &[u8]) {
        either!(self, inner => inner.seek(key));
    }

    /// Moves to `key`, or to the next one before it.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        either!(self, inner => inner.seek_for_prev(key));
    }

    /// Moves to the next key; it must be valid.
    #[inline]
    pub fn next(&mut self) {
        either!(self, inner => inner.next());
    }

    /// Moves to the key before; it must be valid.
    pub fn prev(&mut self) {
        either!(self, inner => inner.prev());
    }

    /// Shows the database as it is now.
    ///
    /// # Errors
    /// If a file cannot be opened; `NotSupported` in a transaction.
    pub fn refresh(&mut self) -> Result<()> {
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
    #[inline]
    pub fn load_value(&mut self) -> Result<&[u8]> {
        either!(self, inner => inner.value())
    }

    /// The key; the cursor must be valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        either!(self, inner => inner.key())
    }

    /// The value that `load_value` found.
    pub fn found_value(&self) -> Option<&[u8]> {
        either!(self, inner => inner.found_value())
    }
}
