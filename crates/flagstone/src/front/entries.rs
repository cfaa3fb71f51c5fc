//! Keys in order, as an iterator from both ends.
//!
//! **Invariants**
//! 1. Both cursors see the database at one moment, that at which the range was made.
//! 2. A cursor stands on the entry that it returned last. The ends meet where one would return what
//!    lies at or beyond the other's.
//! 3. The second cursor is opened when the range is first read from its end.
//! 4. An error is returned once; then, as behind the last entry, nothing is.

use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

use crate::base::{Comparator, Error, Result};
use crate::front::cursor::Cursor;
use crate::front::stream::RangeStream;
use crate::front::view::View;
use crate::options::ReadOptions;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The entries of a range of keys, in order, as of the moment at which it was made.
///
/// Each item is a key and its value, both copied, or the error that ends the iteration.
/// [`Iterator::rev`] goes back from the end; both ends may be used by turns and stop where they
/// meet. The range keeps the files that it may read until it is dropped.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = flagstone::Db::open(directory.path())?;
/// for key in ["cats/kit", "cats/tom", "dogs/rex"] {
///     db.put(key, "")?;
/// }
/// for entry in db.range("cats/".."cats/z").rev() {
///     let (key, _) = entry?;
///     println!("{}", key.escape_ascii());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "Range")]
#[doc(alias = "DBIterator")]
#[must_use = "a range reads nothing until it is iterated over"]
pub struct Entries {
    view: View,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    /// That of the keys that are shown.
    order: Comparator,
    /// Why there can be no entries.
    refusal: Option<Error>,
    front: Option<Cursor>,
    back: Option<Cursor>,
    has_ended: bool,
}

/// The keys of [`Entries`]. No value is read.
#[must_use = "a range reads nothing until it is iterated over"]
#[derive(Debug)]
pub struct Keys(Entries);

/// The first key behind all that begin with `prefix`, in the order of bytes; `None` if there is
/// none.
fn behind(prefix: &[u8]) -> Bound<Vec<u8>> {
    match prefix.iter().rposition(|byte| *byte < 0xff) {
        Some(at) => {
            let mut end = prefix[..=at].to_vec();
            end[at] += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    }
}

impl Entries {
    pub(super) fn new(mut view: View, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        view.moment = Some(view.moment.take().unwrap_or_else(|| view.db().snapshot()));
        let refusal = view.check_order::<Vec<u8>>(&(start.as_ref(), end.as_ref())).err();
        let order = view.order();
        Self { view, order, start, end, refusal, front: None, back: None, has_ended: false }
    }

    pub(super) fn of_prefix(view: View, prefix: &[u8]) -> Self {
        let is_bytewise = view.order().is_bytewise();
        let mut range = Self::new(view, Bound::Included(prefix.to_vec()), behind(prefix));
        if !is_bytewise {
            let name = range.view.family.comparator().name().to_string();
            range.refusal = Some(Error::not_supported(format!(
                "in the order '{name}' keys with one prefix may lie apart; use a range"
            )));
        }
        range
    }

    /// The keys alone. No value is read.
    pub fn keys(self) -> Keys {
        Keys(self)
    }

    /// The entries for a task that must not wait for a disk, in the order of the keys: those that
    /// this iterator would still return. What is in memory is there at the first poll; a thread of
    /// the engine reads the rest.
    ///
    /// ```
    /// # async fn count(db: flagstone::Db) -> flagstone::Result<u64> {
    /// let mut count = 0;
    /// let mut cats = db.prefix("cats/").stream();
    /// while let Some(cat) = cats.next().await {
    ///     let (_key, _value) = cat?;
    ///     count += 1;
    /// }
    /// # Ok(count)
    /// # }
    /// ```
    pub fn stream(mut self) -> RangeStream {
        let order = self.view.order();
        if self.has_ended {
            return RangeStream::ended(order);
        }
        if let Some(front) = &self.front {
            self.start = Bound::Excluded(front.key().to_vec());
        }
        if let Some(back) = &self.back {
            self.end = Bound::Excluded(back.key().to_vec());
        }
        let mut options = self.read_options();
        options.snapshot.clone_from(&self.view.moment);
        options.timestamp.clone_from(&self.view.timestamp);
        let cursor = match self.refusal.take() {
            Some(refusal) => Err(refusal),
            None => self.view.cursor_async(&options),
        };
        RangeStream::new(cursor, order, self.start, self.end)
    }

    fn cursor(&self) -> Result<Cursor> {
        self.view.cursor(&self.read_options())
    }

    fn read_options(&self) -> ReadOptions {
        let bound = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        ReadOptions {
            iterate_lower_bound: bound(&self.start),
            iterate_upper_bound: bound(&self.end)
                .filter(|_| matches!(self.end, Bound::Excluded(_))),
            total_order_seek: true,
            ..ReadOptions::default()
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.order.compare(a, b)
    }

    /// Moves the front cursor on to the next entry; whether there is one.
    fn advance(&mut self) -> Result<bool> {
        let cursor = match self.front.take() {
            Some(mut cursor) => {
                cursor.next();
                cursor
            }
            None => {
                let mut cursor = self.cursor()?;
                cursor.seek_to_first();
                if let Bound::Excluded(start) = &self.start
                    && cursor.valid()
                    && self.compare(cursor.key(), start).is_eq()
                {
                    cursor.next();
                }
                cursor
            }
        };
        if !cursor.valid() {
            return cursor.status().map(|()| false);
        }
        let is_within = match &self.end {
            Bound::Included(end) => self.compare(cursor.key(), end).is_le(),
            _ => true,
        };
        let met =
            self.back.as_ref().is_some_and(|back| self.compare(cursor.key(), back.key()).is_ge());
        self.front = Some(cursor);
        Ok(is_within && !met)
    }

    /// Moves the back cursor on to the next entry, towards the start; whether there is one.
    fn advance_back(&mut self) -> Result<bool> {
        let cursor = match self.back.take() {
            Some(mut cursor) => {
                cursor.prev();
                cursor
            }
            None => {
                let mut cursor = self.cursor()?;
                match &self.end {
                    Bound::Included(end) => cursor.seek_for_prev(end),
                    _ => cursor.seek_to_last(),
                }
                cursor
            }
        };
        if !cursor.valid() {
            return cursor.status().map(|()| false);
        }
        let is_within = match &self.start {
            Bound::Excluded(start) => self.compare(cursor.key(), start).is_gt(),
            _ => true,
        };
        let met = self
            .front
            .as_ref()
            .is_some_and(|front| self.compare(cursor.key(), front.key()).is_le());
        self.back = Some(cursor);
        Ok(is_within && !met)
    }

    /// The next item: takes a step, and reads from the cursor that took it.
    fn item<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<bool>,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Option<Result<T>> {
        if self.has_ended {
            return None;
        }
        let taken = match self.refusal.take() {
            Some(refusal) => Err(refusal),
            None => step(self),
        };
        let item = match taken {
            Ok(true) => Some(read(self)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        };
        if !matches!(item, Some(Ok(_))) {
            self.has_ended = true;
            (self.front, self.back) = (None, None);
        }
        item
    }
}

fn entry(cursor: Option<&mut Cursor>) -> Result<Entry> {
    let cursor = cursor.expect("a step was taken");
    let value = cursor.value()?.to_vec();
    Ok((cursor.key().to_vec(), value))
}

fn key(cursor: Option<&Cursor>) -> Vec<u8> {
    cursor.expect("a step was taken").key().to_vec()
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.item(Self::advance, |range| entry(range.front.as_mut()))
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.item(Self::advance_back, |range| entry(range.back.as_mut()))
    }
}

impl FusedIterator for Entries {}

impl Iterator for Keys {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.item(Entries::advance, |range| Ok(key(range.front.as_ref())))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.item(Entries::advance_back, |range| Ok(key(range.back.as_ref())))
    }
}

impl FusedIterator for Keys {}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) => format!("'{}'", key.escape_ascii()),
            Bound::Excluded(key) => format!("'{}' (excluded)", key.escape_ascii()),
            Bound::Unbounded => "any".to_string(),
        };
        f.debug_struct("Entries")
            .field("family", &self.view.family.name())
            .field("start", &words(&self.start))
            .field("end", &words(&self.end))
            .finish_non_exhaustive()
    }
}
