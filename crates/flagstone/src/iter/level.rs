//! The files of one level as one cursor.

use super::KeyBounds;
use crate::base::{
    Error, InternalIterator, InternalKey, InternalKeyComparator, PinnedValue, PrefixExtractor,
    Result,
};

/// The files of a level >= 1: sorted, and disjoint in internal-key order.
pub trait SortedFiles: Send {
    /// How many files there are.
    fn len(&self) -> usize;

    /// Whether the level is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest key of the file at `index`, range tombstones included.
    fn smallest(&self, index: usize) -> InternalKey<'_>;

    /// The largest key of the file at `index`, range tombstones included.
    fn largest(&self, index: usize) -> InternalKey<'_>;
}

/// The first index below `len` of which `before` does not hold; it must hold for a prefix. Binary
/// search.
pub(super) fn partition_point(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Opens cursors over a level's files.
pub trait FileOpener: SortedFiles {
    /// The cursor over one file.
    type Cursor: InternalIterator;

    /// Opens the file at `index`; the cursor need not be positioned.
    ///
    /// # Errors
    /// What opening the file says.
    fn open(&self, index: usize) -> Result<Self::Cursor>;
}

/// A cursor over all files of one level; a file is opened when the cursor reaches it.
pub struct ConcatIterator<F: FileOpener> {
    comparator: InternalKeyComparator,
    files: F,
    /// What the cursors of files are told.
    confined: bool,
    /// Boxed: few cursors have any.
    limits: Option<Box<Limits>>,
    /// The file opened last; kept past its end, for the next seek may come back to it.
    open: Option<(usize, F::Cursor)>,
    valid: bool,
    error: Option<Error>,
}

/// What rules out whole files, which are not opened then.
#[derive(Default)]
struct Limits {
    bounds: KeyBounds,
    prefixes: Option<PrefixExtractor>,
    /// That of the key sought last, while seeks are confined to prefixes.
    prefix: Option<Vec<u8>>,
}

impl<F: FileOpener> ConcatIterator<F> {
    /// A cursor, not positioned yet. Files entirely outside `bounds` are not opened.
    pub fn new(comparator: InternalKeyComparator, files: F, bounds: KeyBounds) -> Self {
        let has_bounds = bounds.lower.is_some() || bounds.upper.is_some();
        let limits = has_bounds.then(|| Box::new(Limits { bounds, ..Limits::default() }));
        Self { comparator, files, confined: false, limits, open: None, valid: false, error: None }
    }

    /// While seeks are confined to a prefix, no file is opened that lies beyond the keys with that
    /// prefix; they stand together in the order of the keys.
    #[must_use]
    pub fn with_prefixes(mut self, prefixes: Option<PrefixExtractor>) -> Self {
        if prefixes.is_some() {
            self.limits.get_or_insert_default().prefixes = prefixes;
        }
        self
    }

    /// The cursor over the file in which this one stands; it must be valid.
    #[inline]
    pub fn current(&self) -> &F::Cursor {
        debug_assert!(self.valid);
        &self.open.as_ref().expect("a valid cursor stands in an open file").1
    }

    /// The cursor over the file opened last, from which this one must then be moved by a seek.
    pub fn open_cursor(&mut self) -> Option<&mut F::Cursor> {
        self.valid = false;
        self.open.as_mut().map(|(_, cursor)| cursor)
    }

    /// Puts the file at `index` into `open` and moves its cursor; whether that is valid afterwards.
    /// `None` after an error.
    fn enter(&mut self, index: usize, seek: impl FnOnce(&mut F::Cursor)) -> Option<bool> {
        if self.open.as_ref().is_none_or(|(opened, _)| *opened != index) {
            match self.files.open(index) {
                Ok(mut cursor) => {
                    cursor.confine(self.confined);
                    self.open = Some((index, cursor));
                }
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
        }
        let (_, cursor) = self.open.as_mut()?;
        seek(cursor);
        self.valid = cursor.valid();
        match cursor.status() {
            Err(error) if !self.valid => {
                self.error = Some(error);
                None
            }
            _ => Some(self.valid),
        }
    }

    fn invalidate(&mut self) {
        self.valid = false;
        self.error = None;
    }

    /// To what prefix the moves up to the next seek are confined.
    fn confine_to_prefix_of(&mut self, target: InternalKey<'_>) {
        if let Some(Limits { prefixes: Some(prefixes), prefix, .. }) = self.limits.as_deref_mut() {
            *prefix = None;
            if self.confined {
                *prefix = prefixes.prefix(target.user_key()).map(<[u8]>::to_vec);
            }
        }
    }

    /// Whether the end of a file to which a move comes first lies outside the prefix: so does the
    /// rest of the file then.
    fn leaves_prefix(&self, end: InternalKey<'_>) -> bool {
        match self.limits.as_deref() {
            Some(Limits { prefixes: Some(prefixes), prefix: Some(prefix), .. }) => {
                prefixes.prefix(end.user_key()) != Some(prefix)
            }
            _ => false,
        }
    }

    fn starts_behind_bounds(&self, index: usize) -> bool {
        let upper = self.limits.as_deref().and_then(|limits| limits.bounds.upper.as_deref());
        upper.is_some_and(|upper| {
            self.comparator.user.compare(self.files.smallest(index).user_key(), upper).is_ge()
        })
    }

    fn ends_before_bounds(&self, index: usize) -> bool {
        let lower = self.limits.as_deref().and_then(|limits| limits.bounds.lower.as_deref());
        lower.is_some_and(|lower| {
            self.comparator.user.compare(self.files.largest(index).user_key(), lower).is_lt()
        })
    }

    /// Moves to the first entry of the first non-empty file from `index` on.
    fn settle_forward(&mut self, mut index: usize) {
        self.valid = false;
        while index < self.files.len()
            && !self.starts_behind_bounds(index)
            && !self.leaves_prefix(self.files.smallest(index))
        {
            match self.enter(index, InternalIterator::seek_to_first) {
                Some(false) => index += 1,
                Some(true) | None => return,
            }
        }
    }

    /// Moves to the last entry of the last non-empty file before `end`.
    fn settle_backward(&mut self, mut end: usize) {
        self.valid = false;
        while end > 0
            && !self.ends_before_bounds(end - 1)
            && !self.leaves_prefix(self.files.largest(end - 1))
        {
            match self.enter(end - 1, InternalIterator::seek_to_last) {
                Some(false) => end -= 1,
                Some(true) | None => return,
            }
        }
    }

    /// After a step within a file: notes whether it left the file, and if so which one.
    #[inline]
    fn left_file(&mut self) -> Option<usize> {
        let (index, cursor) = self.open.as_ref()?;
        self.valid = cursor.valid();
        if self.valid {
            return None;
        }
        if let Err(error) = cursor.status() {
            self.error = Some(error);
            return None;
        }
        Some(*index)
    }
}

impl<F: FileOpener> InternalIterator for ConcatIterator<F> {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) {
        self.invalidate();
        self.settle_forward(0);
    }

    fn seek_to_last(&mut self) {
        self.invalidate();
        self.settle_backward(self.files.len());
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        self.invalidate();
        let ends_before =
            |index| self.comparator.compare(self.files.largest(index), target).is_lt();
        let index = partition_point(self.files.len(), ends_before);
        if index == self.files.len() || self.starts_behind_bounds(index) {
            return;
        }
        self.confine_to_prefix_of(target);
        let smallest = self.files.smallest(index);
        if self.comparator.compare(smallest, target).is_gt() && self.leaves_prefix(smallest) {
            return;
        }
        // A file that ends with a range tombstone may have no entry as late as its largest key.
        if self.enter(index, |cursor| cursor.seek(target)) == Some(false) {
            self.settle_forward(index + 1);
        }
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        self.invalidate();
        let starts_by = |index| self.comparator.compare(self.files.smallest(index), target).is_le();
        let Some(index) = partition_point(self.files.len(), starts_by).checked_sub(1) else {
            return;
        };
        if self.ends_before_bounds(index) {
            return;
        }
        self.confine_to_prefix_of(target);
        let largest = self.files.largest(index);
        if self.comparator.compare(largest, target).is_lt() && self.leaves_prefix(largest) {
            return;
        }
        if self.enter(index, |cursor| cursor.seek_for_prev(target)) == Some(false) {
            self.settle_backward(index);
        }
    }

    fn confine(&mut self, to_prefix: bool) {
        self.confined = to_prefix;
        if let Some(limits) = self.limits.as_deref_mut() {
            limits.prefix = None;
        }
        if let Some((_, cursor)) = &mut self.open {
            cursor.confine(to_prefix);
        }
    }

    #[inline]
    fn next(&mut self) {
        if let Some((_, cursor)) = &mut self.open {
            cursor.next();
        }
        if let Some(left) = self.left_file() {
            self.settle_forward(left + 1);
        }
    }

    #[inline]
    fn prev(&mut self) {
        if let Some((_, cursor)) = &mut self.open {
            cursor.prev();
        }
        if let Some(left) = self.left_file() {
            self.settle_backward(left);
        }
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        self.current().key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().value()
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        self.current().pin_value()
    }

    fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        self.current().upcoming(visit);
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
