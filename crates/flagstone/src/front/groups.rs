//! Attribute groups: the columns of one key in several families.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::base::{Comparator, Error, Result, WideColumns, entity};
use crate::front::cursor::Cursor;
use crate::front::family::Family;
use crate::options::ReadOptions;

/// A cursor over the keys of several families: made by
/// [`Db::cursor_of_families`](crate::Db::cursor_of_families). It shows each
/// key once, with its columns in all of them.
#[doc(alias = "AttributeGroupIterator")]
pub struct FamiliesCursor {
    families: Vec<(Family, Cursor)>,
    /// That of the keys that are shown.
    order: Comparator,
    is_forward: bool,
    /// The families that have the current key, in their order; none where the cursor is not valid.
    current: Vec<usize>,
    failure: Option<Error>,
}

impl FamiliesCursor {
    pub(super) fn over(
        families: &[&Family],
        options: &ReadOptions,
        open: impl Fn(&Family) -> Result<Cursor>,
    ) -> Result<Self> {
        if options.iter_start_ts.is_some() {
            return Err(Error::not_supported(
                "a cursor of families shows a key once, and not its versions; unset iter_start_ts, or scan each family",
            ));
        }
        let Some(first) = families.first() else { return Err(no_family()) };
        let order = first.engine_family().comparator().clone();
        let shown = order.without_timestamps();
        let mut cursors = Vec::with_capacity(families.len());
        for family in families {
            family.view().check_no_expiry()?;
            let other = family.engine_family().comparator();
            if other.name() != order.name() {
                return Err(Error::invalid_argument(format!(
                    "the keys of family '{}' are in the order of '{}', those of '{}' in that of '{}'",
                    first.name(),
                    order.name(),
                    family.name(),
                    other.name()
                )));
            }
            cursors.push((Family::clone(family), open(family)?));
        }
        let (current, failure) = (Vec::new(), None);
        Ok(Self { families: cursors, order: shown, is_forward: true, current, failure })
    }

    /// Whether the cursor stands on a key. If not, [`FamiliesCursor::status`] tells the end from an
    /// error.
    pub fn valid(&self) -> bool {
        !self.current.is_empty()
    }

    /// Moves to the first key of all.
    pub fn seek_to_first(&mut self) {
        self.begin(true, Cursor::seek_to_first);
    }

    /// Moves to the last key of all.
    pub fn seek_to_last(&mut self) {
        self.begin(false, Cursor::seek_to_last);
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.begin(true, |cursor| cursor.seek(target.as_ref()));
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.begin(false, |cursor| cursor.seek_for_prev(target.as_ref()));
    }

    /// Moves on.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn next(&mut self) {
        assert!(self.valid(), "next() needs a valid cursor");
        if !self.is_forward {
            let key = self.key().to_vec();
            self.seek(key);
        }
        self.leave(Cursor::next);
    }

    /// Moves back.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn prev(&mut self) {
        assert!(self.valid(), "prev() needs a valid cursor");
        if self.is_forward {
            let key = self.key().to_vec();
            self.seek_for_prev(key);
        }
        self.leave(Cursor::prev);
    }

    /// The key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn key(&self) -> &[u8] {
        self.families[self.current[0]].1.key()
    }

    /// The columns of the key in all families together. Of several columns with one name the one of
    /// the last family counts.
    ///
    /// # Errors
    /// As [`Cursor::columns`]. The cursor stays valid.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn columns(&mut self) -> Result<WideColumns> {
        let groups = self.attribute_groups()?;
        if let [(_, columns)] = groups.as_slice() {
            return Ok(columns.clone());
        }
        let all: BTreeMap<&[u8], &[u8]> =
            groups.iter().flat_map(|(_, columns)| columns.iter()).collect();
        WideColumns::decode(&entity::encode(&all.into_iter().collect::<Vec<_>>()))
    }

    /// The families that have the key, in the order in which they were given, each with the columns
    /// that the key has there.
    ///
    /// # Errors
    /// As [`Cursor::columns`]. The cursor stays valid.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn attribute_groups(&mut self) -> Result<Vec<(Family, WideColumns)>> {
        assert!(self.valid(), "attribute_groups() needs a valid cursor");
        let mut groups = Vec::with_capacity(self.current.len());
        for &at in &self.current {
            let (family, cursor) = &mut self.families[at];
            groups.push((family.clone(), cursor.columns()?));
        }
        Ok(groups)
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// As [`Cursor::status`].
    pub fn status(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn begin(&mut self, is_forward: bool, seek: impl Fn(&mut Cursor)) {
        self.is_forward = is_forward;
        self.families.iter_mut().for_each(|(_, cursor)| seek(cursor));
        self.settle();
    }

    /// Moves the cursors that stand on the current key.
    fn leave(&mut self, step: impl Fn(&mut Cursor)) {
        for at in std::mem::take(&mut self.current) {
            step(&mut self.families[at].1);
        }
        self.settle();
    }

    /// Finds the families that have the next key in the direction.
    fn settle(&mut self) {
        self.current.clear();
        self.failure = None;
        for at in 0..self.families.len() {
            let cursor = &self.families[at].1;
            if !cursor.valid() {
                if let Err(error) = cursor.status() {
                    self.failure = Some(error);
                    self.current.clear();
                    return;
                }
                continue;
            }
            let order = match self.current.first() {
                Some(&first) => self.order.compare(cursor.key(), self.families[first].1.key()),
                None => Ordering::Equal,
            };
            match (order, self.is_forward) {
                (Ordering::Equal, _) => self.current.push(at),
                (Ordering::Less, true) | (Ordering::Greater, false) => self.current = vec![at],
                _ => {}
            }
        }
    }
}

/// For groups or cursors of no family.
pub(super) fn no_family() -> Error {
    Error::invalid_argument("no column family was given")
}

impl fmt::Debug for FamiliesCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.valid().then(|| self.key().escape_ascii().to_string());
        f.debug_struct("FamiliesCursor").field("key", &key).finish_non_exhaustive()
    }
}
