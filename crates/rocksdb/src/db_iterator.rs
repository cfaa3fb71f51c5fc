//! Iterators over keys, and over the writes in the WALs.

use flagstone::db::{ColumnFamily, Update, Updates};

use crate::column_family::AsColumnFamilyRef;
use crate::db::{DB, DBAccess};
use crate::error::Error;
use crate::options::ReadOptions;
use crate::walker::Walker;
use crate::write_batch::WriteBatch;

/// A cursor over the keys of a [`DB`].
pub type DBRawIterator<'a> = DBRawIteratorWithThreadMode<'a, DB>;

/// A cursor over the keys of one column family, in their order.
///
/// It stands on no key until it is sent to one. Where it cannot go on, because of an end or an
/// error, it is not valid; [`status`](Self::status) tells which.
///
/// ```
/// use flagstone_rocksdb::DB;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = DB::open_default(directory.path()).unwrap();
/// db.put("cats/tom", "grey").unwrap();
/// let mut cursor = db.raw_iterator();
/// cursor.seek("cats/");
/// while cursor.valid() {
///     println!("{:?} is {:?}", cursor.key(), cursor.value());
///     cursor.next();
/// }
/// cursor.status().unwrap();
/// ```
pub struct DBRawIteratorWithThreadMode<'a, D: DBAccess> {
    db: &'a D,
    walker: Walker,
}

impl<'a, D: DBAccess> DBRawIteratorWithThreadMode<'a, D> {
    pub(crate) fn new(db: &'a D, options: &ReadOptions) -> Self {
        Self::over(db, db.store().default_family(), options)
    }

    pub(crate) fn new_cf(
        db: &'a D,
        family: &impl AsColumnFamilyRef,
        options: &ReadOptions,
    ) -> Self {
        Self::over(db, family.inner(), options)
    }

    fn over(db: &'a D, family: &ColumnFamily, options: &ReadOptions) -> Self {
        let cursor = db.cursor(options.engine(), family).map_err(Error::from);
        Self { db, walker: Walker::new(cursor, options.is_tailing()) }
    }

    /// Whether the cursor stands on a key.
    pub fn valid(&self) -> bool {
        self.walker.valid()
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// What reading files said, or the refusal of a merge operator.
    pub fn status(&self) -> Result<(), Error> {
        self.walker.status()
    }

    /// Shows the database as it is now. The cursor then stands on no key, and forgets its snapshot.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.walker.refresh()
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.measure(Walker::seek_to_first);
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.measure(Walker::seek_to_last);
    }

    /// Moves to `key`, or to the next one behind it.
    pub fn seek<K: AsRef<[u8]>>(&mut self, key: K) {
        self.measure(|walker| walker.seek(key.as_ref()));
    }

    /// Moves to `key`, or to the next one before it.
    pub fn seek_for_prev<K: AsRef<[u8]>>(&mut self, key: K) {
        self.measure(|walker| walker.seek_for_prev(key.as_ref()));
    }

    /// Moves to the next key; does nothing unless the cursor is valid.
    pub fn next(&mut self) {
        self.walker.next();
    }

    /// Moves to the key before; does nothing unless the cursor is valid.
    pub fn prev(&mut self) {
        self.walker.prev();
    }

    /// The key, if the cursor is valid.
    pub fn key(&self) -> Option<&[u8]> {
        self.item().map(|(key, _)| key)
    }

    /// The value, if the cursor is valid.
    pub fn value(&self) -> Option<&[u8]> {
        self.item().map(|(_, value)| value)
    }

    /// The timestamp of the version shown, if the cursor is valid; empty where keys have none.
    pub fn timestamp(&self) -> Option<&[u8]> {
        self.walker.timestamp()
    }

    /// The key and the value, if the cursor is valid.
    pub fn item(&self) -> Option<(&[u8], &[u8])> {
        self.walker.item()
    }

    fn measure(&mut self, seek: impl FnOnce(&mut Walker) -> Option<&[u8]>) {
        let db = self.db;
        db.store().measure_seek(|| seek(&mut self.walker).is_some());
    }
}

/// An iterator over the keys of a [`DB`].
pub type DBIterator<'a> = DBIteratorWithThreadMode<'a, DB>;

/// An iterator over the keys and values of one column family, in one direction. Gives an error once
/// and then ends.
///
/// ```
/// use flagstone_rocksdb::{DB, Direction, IteratorMode};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = DB::open_default(directory.path()).unwrap();
/// for item in db.iterator(IteratorMode::From(b"cats/", Direction::Forward)) {
///     let (key, value) = item.unwrap();
///     println!("{key:?} is {value:?}");
/// }
/// ```
pub struct DBIteratorWithThreadMode<'a, D: DBAccess> {
    raw: DBRawIteratorWithThreadMode<'a, D>,
    direction: Direction,
    done: bool,
}

/// Where an iterator goes.
#[derive(Copy, Clone)]
pub enum Direction {
    /// To larger keys.
    Forward,
    /// To smaller keys.
    Reverse,
}

/// A key and a value.
pub type KVBytes = (Box<[u8]>, Box<[u8]>);

/// Where an iterator begins, and where it goes from there.
#[derive(Copy, Clone)]
pub enum IteratorMode<'a> {
    /// From the first key to the last.
    Start,
    /// From the last key to the first.
    End,
    /// From a key, or its neighbor in that direction.
    From(&'a [u8], Direction),
}

impl<'a, D: DBAccess> DBIteratorWithThreadMode<'a, D> {
    pub(crate) fn from_raw(
        raw: DBRawIteratorWithThreadMode<'a, D>,
        mode: IteratorMode<'_>,
    ) -> Self {
        let mut iterator = Self { raw, direction: Direction::Forward, done: false };
        iterator.set_mode(mode);
        iterator
    }

    /// Begins again, elsewhere.
    pub fn set_mode(&mut self, mode: IteratorMode<'_>) {
        self.done = false;
        self.direction = match mode {
            IteratorMode::Start | IteratorMode::From(_, Direction::Forward) => Direction::Forward,
            IteratorMode::End | IteratorMode::From(_, Direction::Reverse) => Direction::Reverse,
        };
        match mode {
            IteratorMode::Start => self.raw.seek_to_first(),
            IteratorMode::End => self.raw.seek_to_last(),
            IteratorMode::From(key, Direction::Forward) => self.raw.seek(key),
            IteratorMode::From(key, Direction::Reverse) => self.raw.seek_for_prev(key),
        }
    }

    /// Begins again with the database as it is now. The snapshot is forgotten.
    ///
    /// # Errors
    /// As [`DBRawIteratorWithThreadMode::refresh`].
    pub fn refresh(&mut self, mode: IteratorMode<'_>) -> Result<(), Error> {
        self.raw.refresh()?;
        self.set_mode(mode);
        Ok(())
    }
}

impl<D: DBAccess> Iterator for DBIteratorWithThreadMode<'_, D> {
    type Item = Result<KVBytes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let Some((key, value)) = self.raw.item() else {
            self.done = true;
            return self.raw.status().err().map(Err);
        };
        let item = (key.into(), value.into());
        match self.direction {
            Direction::Forward => self.raw.next(),
            Direction::Reverse => self.raw.prev(),
        }
        Some(Ok(item))
    }
}

impl<D: DBAccess> std::iter::FusedIterator for DBIteratorWithThreadMode<'_, D> {}

impl<'a, D: DBAccess> From<DBIteratorWithThreadMode<'a, D>> for DBRawIteratorWithThreadMode<'a, D> {
    fn from(iterator: DBIteratorWithThreadMode<'a, D>) -> Self {
        iterator.raw
    }
}

/// The writes in the WALs behind a sequence number, each with the sequence number of its first
/// operation.
pub struct DBWALIterator {
    updates: Updates,
    /// What comes next; an error is kept for [`DBWALIterator::status`].
    current: Result<Option<Update>, Error>,
    /// Writes that begin up to here are left out.
    seen: u64,
}

impl DBWALIterator {
    pub(crate) fn new(mut updates: Updates, seen: u64) -> Self {
        let current = updates.next_update().map_err(Error::from);
        Self { updates, current, seen }
    }

    /// Whether it stands on a write. It ends at the last one there was when it got there.
    pub fn valid(&self) -> bool {
        matches!(self.current, Ok(Some(_)))
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// `NotFound` if a write is in the WALs no longer; `Corruption`, `IOError`.
    pub fn status(&self) -> Result<(), Error> {
        self.current.as_ref().map(|_| ()).map_err(Error::clone)
    }
}

impl Iterator for DBWALIterator {
    type Item = Result<(u64, WriteBatch), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Ok(current) = &mut self.current {
            let update = current.take()?;
            self.current = self.updates.next_update().map_err(Error::from);
            if update.sequence > self.seen {
                return Some(Ok((update.sequence, WriteBatch::from_engine(update.batch))));
            }
        }
        None
    }
}
