//! Iterators, as a user has them.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::base::{ColumnFamilyId, Error, Result, SequenceNumber, ValueType, WideColumns};
use crate::db::family::Family;
use crate::db::reading::Reader;
use crate::db::reading::cursor::{Cursor, make_cursor};
use crate::db::reading::cursor_blobs::CursorBlobs;
use crate::db::reading::refresh::AutoRefresh;
use crate::db::reading::source::Source;
use crate::db::statistics::{Statistics, Ticker};
use crate::db::tables::live_cursors::Origin;
use crate::env::ReadLimits;
use crate::iter::DbIter;
use crate::options::ReadOptions;
use crate::trace::OperationTrace;

/// A cursor over the keys of one family, in order, as of one moment.
///
/// It starts unpositioned. It keeps the files and memtables alive that it may read, until it is
/// dropped.
///
/// ```
/// # fn main() -> flagstone::base::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let mut options = flagstone::options::Options::default();
/// # options.create_if_missing = true;
/// # let db = flagstone::db::Db::open(directory.path(), &options)?;
/// # for key in ["cats/kit", "cats/tom", "dogs/rex"] { db.put(key, "")?; }
/// let mut iter = db.iter(&Default::default())?;
/// iter.seek("cats/l");
/// assert_eq!(iter.key(), b"cats/tom");
/// iter.prev();
/// assert_eq!(iter.key(), b"cats/kit");
/// iter.prev();
/// assert!(!iter.valid());
/// iter.status()?; // It has come to an end, and did not fail.
/// # Ok(())
/// # }
/// ```
pub struct Iter {
    /// Always there until it is dropped.
    pub(in crate::db) cursor: Option<Box<Cursor>>,
    statistics: Arc<Statistics>,
    pub(in crate::db) auto_refresh: Option<Box<AutoRefresh>>,
    limits: Option<Arc<ReadLimits>>,
    /// Whether a step may refresh the iterator, or has limits. Stays set once it is.
    is_special: bool,
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.valid() {
            write!(f, "Iter(at {})", self.key().escape_ascii())
        } else {
            f.write_str("Iter(on no key)")
        }
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        self.park();
    }
}

impl Iter {
    /// Gives the cursor back, for the family's next iterator.
    pub(in crate::db) fn park(&mut self) {
        let Some(ended) = self.cursor.as_ref().map(|cursor| cursor.entries.status()) else {
            return;
        };
        if let Err(error) = &ended {
            self.suspect(error);
        }
        if let Some(cursor) = self.cursor.take_if(|cursor| cursor.reusable && ended.is_ok()) {
            let family = cursor.entries.resolver().family.clone();
            family.parked.park(cursor, |cursor| cursor.is_current(&family));
        }
    }

    #[inline]
    pub(super) fn entries(&self) -> &DbIter<Source, CursorBlobs> {
        &self.cursor.as_ref().expect("not dropped yet").entries
    }

    #[inline]
    pub(in crate::db) fn entries_mut(&mut self) -> &mut DbIter<Source, CursorBlobs> {
        &mut self.cursor.as_mut().expect("not dropped yet").entries
    }

    /// Whether the cursor is on a key. If not, [`Iter::status`] distinguishes the end from an
    /// error.
    #[inline]
    pub fn valid(&self) -> bool {
        self.entries().valid()
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.within_limits(|iter| {
            if iter.refresh_before_seek() {
                iter.statistics.add(Ticker::Seeks, 1);
                iter.entries_mut().seek_to_first();
            }
        });
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.within_limits(|iter| {
            if !iter.refuses_to_go_back() && iter.refresh_before_seek() {
                iter.statistics.add(Ticker::Seeks, 1);
                iter.entries_mut().seek_to_last();
            }
        });
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.seek_noted(target.as_ref(), true);
    }

    /// [`Iter::seek`] that goes on with a scan whose seek is recorded already.
    pub(in crate::db) fn seek_again(&mut self, target: &[u8]) {
        self.seek_noted(target, false);
    }

    fn seek_noted(&mut self, target: &[u8], is_noted: bool) {
        self.within_limits(|iter| {
            if iter.refresh_before_seek() {
                iter.statistics.add(Ticker::Seeks, 1);
                if is_noted {
                    iter.note_seek(false, target);
                }
                iter.entries_mut().seek(target);
            }
        });
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.within_limits(|iter| {
            if !iter.refuses_to_go_back() && iter.refresh_before_seek() {
                iter.statistics.add(Ticker::Seeks, 1);
                iter.note_seek(true, target.as_ref());
                iter.entries_mut().seek_for_prev(target.as_ref());
            }
        });
    }

    /// Records a seek, if operations are traced.
    #[inline]
    fn note_seek(&self, for_prev: bool, target: &[u8]) {
        let operations = self.statistics.operations();
        if operations.is_on() {
            let CursorBlobs { family, options, .. } = self.entries().resolver();
            record_seek(operations, options, for_prev, (family.id, target));
        }
    }

    /// Moves to the next key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn next(&mut self) {
        if self.is_special {
            return self.next_specially();
        }
        self.entries_mut().next();
    }

    /// Moves to the previous key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn prev(&mut self) {
        if self.is_special {
            return self.prev_specially();
        }
        self.entries_mut().prev();
    }

    #[cold]
    fn next_specially(&mut self) {
        self.within_limits(|iter| {
            if !iter.refresh_before_next() {
                iter.entries_mut().next();
            }
        });
    }

    #[cold]
    fn prev_specially(&mut self) {
        self.within_limits(|iter| {
            if !(iter.refuses_to_go_back() || iter.refresh_before_prev()) {
                iter.entries_mut().prev();
            }
        });
    }

    /// Moves within the limits of the options; one that begins too late fails.
    fn within_limits(&mut self, go: impl FnOnce(&mut Self)) {
        let Some(limits) = self.limits.clone() else { return go(self) };
        let moved = limits.during(|| {
            go(self);
            Ok(())
        });
        if let Err(error) = moved {
            self.entries_mut().fail(error);
        }
    }

    /// The current key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.entries().key()
    }

    /// The timestamp of the version shown; empty in a family without timestamps.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn timestamp(&self) -> &[u8] {
        self.entries().timestamp()
    }

    /// The stored key of the version shown, in an iteration over history.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn internal_key(&self) -> Option<Vec<u8>> {
        self.entries().internal_key().map(|key| key.as_bytes().to_vec())
    }

    /// What the version shown is, and its sequence number, if that is known: see
    /// [`DbIter::version`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn version(&self) -> (SequenceNumber, ValueType) {
        self.entries().version()
    }

    /// The current value. The cursor stays valid after an error. A large value is read from its
    /// blob file by this call, so a scan of keys reads no blob file. If several values in a row are
    /// close together in a file, the next ones are read along: up to 256 KiB of a file at a time, 4
    /// MiB in all.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of the blob file; a merge operator's refusal.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn value(&mut self) -> Result<&[u8]> {
        self.entries_mut().value()
    }

    /// The columns of the current key, in the order of their names; a plain value is one column,
    /// the default one. The cursor stays valid after an error.
    ///
    /// # Errors
    /// As [`Iter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn columns(&mut self) -> Result<WideColumns> {
        self.entries_mut().columns()
    }

    /// Whether the key was set to an entity, into which operands may have been merged.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn is_entity(&self) -> bool {
        self.entries().is_entity()
    }

    /// The value, if it is available without reading. It always is after [`Iter::value`], until the
    /// cursor moves. Before that it is, if it was neither merged nor is in a blob file. Needs no
    /// exclusive access.
    #[inline]
    pub fn found_value(&self) -> Option<&[u8]> {
        self.entries().found_value()
    }

    /// The error that ended the iteration, if any.
    ///
    /// # Errors
    /// `Corruption`, `IoError`; `Incomplete` for a cursor that must not touch the disk.
    pub fn status(&self) -> Result<()> {
        self.entries().status().inspect_err(|error| self.suspect(error))
    }

    /// Files that cannot be read are known to the database, whoever met them.
    #[cold]
    fn suspect(&self, error: &Error) {
        let CursorBlobs { tables, family, .. } = self.entries().resolver();
        tables.suspects().add(family, error);
    }

    /// The key and value, and a step forward; `None` at the end, and of a cursor that was not sent
    /// anywhere yet. Copies both. After an error the cursor stands where it stood.
    ///
    /// ```
    /// # fn main() -> flagstone::base::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let mut options = flagstone::options::Options::default();
    /// # options.create_if_missing = true;
    /// # let db = flagstone::db::Db::open(directory.path(), &options)?;
    /// # db.put("stone", "flag")?;
    /// let mut iter = db.iter(&Default::default())?;
    /// iter.seek_to_first();
    /// while let Some((key, value)) = iter.next_entry()? {
    ///     assert_eq!((key, value), (b"stone".to_vec(), b"flag".to_vec()));
    /// }
    /// // As an iterator of Rust's:
    /// iter.seek_to_first();
    /// assert_eq!(std::iter::from_fn(|| iter.next_entry().transpose()).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Iter::value`] and [`Iter::status`].
    pub fn next_entry(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if !self.valid() {
            return self.status().map(|()| None);
        }
        let key = self.key().to_vec();
        let value = self.value()?.to_vec();
        self.next();
        Ok(Some((key, value)))
    }
}

impl Reader {
    /// A cursor for an iterator that the caller is said to have made, or who stands behind the
    /// call.
    pub(in crate::db) fn iterate(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        made_at: &'static Location<'static>,
    ) -> Result<Iter> {
        self.check_family(family)?;
        if options.tailing && options.snapshot.is_some() {
            let message = "a tailing iterator shows what is written later, and no snapshot";
            return Err(Error::invalid_argument(message));
        }
        let (current, snapshot) = family.pinned(|| self.read_sequence(options));
        let snapshot = snapshot?;
        let origin = Origin { since_us: self.tables.coarse_us(), made_at };
        let (tables, snapshots) = (&self.tables, &self.snapshots);
        let cursor = self.within(options, || {
            make_cursor(tables, snapshots, family, current, snapshot, options, origin)
        })?;
        let auto_refresh = AutoRefresh::by(options, snapshot);
        let limits = tables.read_limits(options);
        let is_special = auto_refresh.is_some() || limits.is_some();
        let (cursor, statistics) = (Some(cursor), self.statistics.clone());
        Ok(Iter { cursor, statistics, auto_refresh, limits, is_special })
    }
}

/// Records a seek of a key of a family.
#[cold]
pub(in crate::db) fn record_seek(
    operations: &OperationTrace,
    options: &ReadOptions,
    for_prev: bool,
    target: (ColumnFamilyId, &[u8]),
) {
    let lower = options.iterate_lower_bound.as_deref().unwrap_or_default();
    let upper = options.iterate_upper_bound.as_deref().unwrap_or_default();
    operations.seek(for_prev, target, (lower, upper));
}
