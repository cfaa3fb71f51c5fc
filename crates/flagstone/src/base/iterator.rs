//! The cursor that every sorted structure offers.

use std::fmt;
use std::ops::Range;

use super::{InternalKey, Result, SharedPiece};

/// A cursor over entries in internal-key order.
///
/// A cursor starts out invalid. An error makes it invalid and is kept in
/// [`InternalIterator::status`] until the next seek; callers that see an invalid cursor ask for the
/// status before they take it for the end.
pub trait InternalIterator: Send {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;

    /// Moves to the first entry.
    fn seek_to_first(&mut self);

    /// Moves to the last entry.
    fn seek_to_last(&mut self);

    /// Moves to the first entry at or after `target`.
    fn seek(&mut self, target: InternalKey<'_>);

    /// Moves to the last entry at or before `target`.
    fn seek_for_prev(&mut self, target: InternalKey<'_>);

    /// Says whether from now on only keys with the prefix of the key sought are wanted: whoever has
    /// a filter for prefixes, or finds entries by them, may then leave out others. Until it is
    /// said, all keys are.
    fn confine(&mut self, to_prefix: bool) {
        let _ = to_prefix;
    }

    /// Moves on; the cursor must be valid.
    fn next(&mut self);

    /// Moves back; the cursor must be valid.
    fn prev(&mut self);

    /// [`InternalIterator::next`], and the key to which it led, if any: one call where a step is
    /// all there is to do.
    #[inline]
    fn next_key(&mut self) -> Option<InternalKey<'_>> {
        self.next();
        if self.valid() { Some(self.key()) } else { None }
    }

    /// [`InternalIterator::prev`], and the key to which it led, if any.
    #[inline]
    fn prev_key(&mut self) -> Option<InternalKey<'_>> {
        self.prev();
        if self.valid() { Some(self.key()) } else { None }
    }

    /// The entry's key; the cursor must be valid.
    fn key(&self) -> InternalKey<'_>;

    /// The entry's value; the cursor must be valid.
    fn value(&self) -> &[u8];

    /// The entry's value, so that it stays when the cursor moves on; `None` where it has to be
    /// copied for that. The cursor must be valid.
    #[inline]
    fn pin_value(&self) -> Option<PinnedValue> {
        None
    }

    /// Shows `visit` entries behind this one in their order, as type and value, until it says
    /// `false`. A hint about what a scan will come to: shows only what lies at hand, and may leave
    /// out anything. The cursor must be valid.
    #[inline]
    fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        let _ = visit;
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// `Corruption`, `IoError`, or `Incomplete` for a cursor that must not touch the disk.
    fn status(&self) -> Result<()>;
}

/// A value that is a part of what its owner holds.
#[derive(Clone)]
pub struct PinnedValue {
    owner: SharedPiece,
    range: Range<usize>,
}

impl PinnedValue {
    /// The bytes `range` of `owner`.
    ///
    /// # Panics
    /// When it is looked at, if these are more than the owner has.
    pub fn new(owner: SharedPiece, range: Range<usize>) -> Self {
        Self { owner, range }
    }

    /// The value.
    pub fn as_bytes(&self) -> &[u8] {
        &self.owner[self.range.clone()]
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedValue({:?})", self.range)
    }
}

impl<I: InternalIterator + ?Sized> InternalIterator for Box<I> {
    fn valid(&self) -> bool {
        (**self).valid()
    }

    fn seek_to_first(&mut self) {
        (**self).seek_to_first();
    }

    fn seek_to_last(&mut self) {
        (**self).seek_to_last();
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        (**self).seek(target);
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        (**self).seek_for_prev(target);
    }

    fn confine(&mut self, to_prefix: bool) {
        (**self).confine(to_prefix);
    }

    fn next(&mut self) {
        (**self).next();
    }

    fn prev(&mut self) {
        (**self).prev();
    }

    fn key(&self) -> InternalKey<'_> {
        (**self).key()
    }

    fn value(&self) -> &[u8] {
        (**self).value()
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        (**self).pin_value()
    }

    fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        (**self).upcoming(visit);
    }

    fn status(&self) -> Result<()> {
        (**self).status()
    }
}
