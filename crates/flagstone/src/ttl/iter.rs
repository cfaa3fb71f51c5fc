//! Cursors that remove stamps.

use super::Rule;
use crate::base::{Error, Result};
use crate::db::Iter;
use crate::expiry::{STAMP_SIZE, split, unstamped};

/// A cursor over the keys of a family of a TTL database; as [`Iter`], with values without their
/// stamps. Where the family reads strictly, it passes over what had expired when it was made.
#[derive(Debug)]
pub struct TtlIter {
    pub(super) inner: Iter,
    pub(super) rule: Rule,
    /// When it was made.
    pub(super) now: u64,
    /// What was met on the way.
    error: Option<Error>,
}

/// Where a cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

impl TtlIter {
    pub(super) fn new(inner: Iter, rule: Rule) -> Self {
        let now = rule.lifetime.now();
        Self { inner, rule, now, error: None }
    }

    /// Whether the cursor stands on a key; if not, [`TtlIter::status`] tells the end from an error.
    pub fn valid(&self) -> bool {
        self.error.is_none() && self.inner.valid()
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.inner.seek_to_first();
        self.settle(Way::Forward);
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.inner.seek_to_last();
        self.settle(Way::Backward);
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.inner.seek(target);
        self.settle(Way::Forward);
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.inner.seek_for_prev(target);
        self.settle(Way::Backward);
    }

    /// Moves on.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn next(&mut self) {
        assert!(self.valid(), "next() needs a valid cursor");
        self.inner.next();
        self.settle(Way::Forward);
    }

    /// Moves back.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn prev(&mut self) {
        assert!(self.valid(), "prev() needs a valid cursor");
        self.inner.prev();
        self.settle(Way::Backward);
    }

    /// The key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The value; the cursor stays valid after an error.
    ///
    /// # Errors
    /// As [`Iter::value`]; `Corruption` for a value without a stamp.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value(&mut self) -> Result<&[u8]> {
        self.stamp()?;
        let stored = self.inner.value()?;
        Ok(&stored[..stored.len() - STAMP_SIZE])
    }

    /// The value, if it is at hand; as [`Iter::found_value`].
    pub fn found_value(&self) -> Option<&[u8]> {
        let stored = self.inner.found_value()?;
        stored.get(..stored.len().checked_sub(STAMP_SIZE)?)
    }

    /// Shows the database as it is now, and stands nowhere; as [`Iter::refresh`].
    ///
    /// # Errors
    /// As [`Iter::refresh`].
    #[track_caller]
    pub fn refresh(&mut self) -> Result<()> {
        self.inner.refresh()?;
        (self.error, self.now) = (None, self.rule.lifetime.now());
        Ok(())
    }

    /// The last second, since 1970, in which the value lives; `None` if it lives for ever.
    ///
    /// # Errors
    /// As [`TtlIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn expiry(&mut self) -> Result<Option<u64>> {
        let stamp = self.stamp()?;
        Ok(self.rule.lifetime.expiry_of(stamp))
    }

    /// The time that the value carries, in seconds since 1970: when it was written or merged. One
    /// with an expiry of its own carries the time at which it would have to be written to expire
    /// then; one that lives for ever carries [`STAMP_ETERNAL`](crate::expiry::STAMP_ETERNAL).
    ///
    /// # Errors
    /// As [`TtlIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn write_time(&mut self) -> Result<u64> {
        self.stamp().map(u64::from)
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// As [`Iter::status`]; where the family reads strictly, also what reading a value said.
    pub fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => self.inner.status(),
        }
    }

    /// The key and value, and a step forward, as [`Iter::next_entry`].
    ///
    /// # Errors
    /// As [`TtlIter::value`] and [`TtlIter::status`].
    pub fn next_entry(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.status()?;
        if self.valid() {
            self.stamp()?;
        }
        let mut entry = self.inner.next_entry()?;
        if let Some((_, value)) = &mut entry {
            value.truncate(value.len() - STAMP_SIZE);
            self.settle(Way::Forward);
        }
        Ok(entry)
    }

    fn stamp(&mut self) -> Result<u32> {
        if let Some(mut reader) = self.inner.value_in_pieces()? {
            return self.rule.take_stamp(self.inner.key(), &mut reader, self.now);
        }
        let stored = self.inner.value()?;
        if let Some((_, stamp)) = split(stored) {
            return Ok(stamp);
        }
        let stored = stored.to_vec();
        unstamped(self.inner.key(), &stored).map(|(_, stamp)| stamp)
    }

    /// Passes over what has expired.
    fn settle(&mut self, way: Way) {
        self.error = None;
        while self.rule.is_strict && self.inner.valid() {
            match self.stamp() {
                Ok(stamp) if self.rule.hides(stamp, self.now) => match way {
                    Way::Forward => self.inner.next(),
                    Way::Backward => self.inner.prev(),
                },
                Ok(_) => return,
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }
}
