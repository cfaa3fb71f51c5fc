//! Several ranges of keys, one after the other.
//!
//! **Invariants**
//! 1. The ranges are in order and disjoint, and all are seen at one moment.
//! 2. Blocks are read ahead from the side from which the ranges are taken, when the first one is
//!    taken that was not read ahead yet.
//! 3. An entry counts against both limits when it is returned. An error counts against none.

use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{Error, Result, key_in_words};
use crate::db::{AheadLimits, UserRange};
use crate::front::entries::{Entries, Entry};
use crate::front::view::View;

/// Default of [`Ranges::read_ahead_bytes`].
const READ_AHEAD_BYTES: u64 = 1 << 20;

/// How many ranges are read ahead at a time, at most.
const READ_AHEAD_RANGES: usize = 1024;

/// The start and the end of a range.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Several ranges of keys, each an iterator of its own, all as of one moment: made by
/// [`View::ranges`](crate::View::ranges).
///
/// Blocks of the next ranges are read together into the block cache before they are asked for.
/// [`Iterator::rev`] takes the last range first; each range goes either way, too.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = flagstone::Db::open(directory.path())?;
/// for key in ["cats/kit", "cats/tom", "cows/elsa", "dogs/rex"] {
///     db.put(key, "")?;
/// }
/// for range in db.ranges(["cats/".."cats/z", "dogs/".."dogs/z"])?.limit_each(100) {
///     for entry in range {
///         let (key, _) = entry?;
///         println!("{}", key.escape_ascii());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "MultiScan")]
#[must_use = "ranges read nothing until they are iterated over"]
pub struct Ranges {
    /// As of the moment at which the ranges were made.
    view: View,
    rest: VecDeque<Bounds>,
    limit_each: Option<u64>,
    /// How many entries all ranges together may still return.
    left: Option<Arc<AtomicU64>>,
    read_ahead_bytes: u64,
    /// How many ranges at either end were read ahead.
    ahead: [usize; 2],
}

/// The entries of one of several [`Ranges`], in order, from either end.
#[must_use = "a range reads nothing until it is iterated over"]
pub struct RangeEntries {
    entries: Entries,
    /// How many it may still return.
    left_here: Option<u64>,
    /// How many all ranges together may still return.
    left: Option<Arc<AtomicU64>>,
}

impl Ranges {
    /// # Errors
    /// `InvalidArgument` if a range ends before it starts, or does not lie behind the one before.
    pub(super) fn new<K: AsRef<[u8]>, R: RangeBounds<K>>(
        mut view: View,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<Self> {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        let ranges = ranges.into_iter();
        let rest: VecDeque<Bounds> =
            ranges.map(|range| (owned(range.start_bound()), owned(range.end_bound()))).collect();
        check(&view, &rest)?;
        view.moment = Some(view.moment.take().unwrap_or_else(|| view.db().snapshot()));
        let read_ahead_bytes = READ_AHEAD_BYTES;
        Ok(Self { view, rest, limit_each: None, left: None, read_ahead_bytes, ahead: [0; 2] })
    }

    /// Each range returns up to `entries` entries.
    pub fn limit_each(self, entries: u64) -> Self {
        Self { limit_each: Some(entries), ..self }
    }

    /// All ranges together return up to `entries` entries. Then there are no more ranges.
    pub fn limit_all(self, entries: u64) -> Self {
        Self { left: Some(Arc::new(AtomicU64::new(entries))), ..self }
    }

    /// Blocks of up to `bytes` are read ahead at a time, as they are stored; 1 MiB by default, at
    /// most about a quarter of the block cache, and nothing with 0. With a limit only the block in
    /// which a range begins is read ahead, of each table that may have it. Ranges that are taken
    /// from the back are read ahead if there is room for the whole range.
    #[doc(alias = "max_prefetch_size")]
    pub fn read_ahead_bytes(self, bytes: u64) -> Self {
        Self { read_ahead_bytes: bytes, ..self }
    }

    fn is_spent(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// Reads ahead from the first range on, or from the last, unless that one was read ahead.
    fn read_ahead(&mut self, from_back: bool) {
        let side = usize::from(from_back);
        let is_limited = self.limit_each.is_some() || self.left.is_some();
        // From the back, only the end of a limited range is read, and how far is not known.
        if self.ahead[side] > 0 || self.read_ahead_bytes == 0 || (is_limited && from_back) {
            return;
        }
        let returning = self.limit_of_ranges().unwrap_or(usize::MAX);
        // What the other end has read ahead is in the cache already.
        let rest = self.rest.len().saturating_sub(self.ahead[1 - side]);
        let count = rest.min(READ_AHEAD_RANGES).min(returning);
        if count == 0 {
            return;
        }
        let limits = AheadLimits {
            blocks_max: if is_limited { 1 } else { usize::MAX },
            bytes_max: self.read_ahead_bytes,
            // From the back, the end of a range is read first, and its blocks are planned from the
            // start.
            only_whole: from_back,
        };
        let (db, family) = (self.view.db(), &self.view.family);
        self.ahead[side] = if from_back {
            db.read_ahead(family, self.rest.iter().rev().take(count).map(borrowed), limits)
        } else {
            db.read_ahead(family, self.rest.iter().take(count).map(borrowed), limits)
        };
    }

    /// How many ranges can return an entry, if there is a limit.
    fn limit_of_ranges(&self) -> Option<usize> {
        if self.limit_each == Some(0) {
            return Some(0);
        }
        let left = self.left.as_ref()?.load(Ordering::Relaxed);
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    fn take(&mut self, from_back: bool) -> Option<RangeEntries> {
        if self.is_spent() {
            self.rest.clear();
        }
        if !self.rest.is_empty() {
            self.read_ahead(from_back);
        }
        let taken = if from_back { self.rest.pop_back() } else { self.rest.pop_front() };
        let (start, end) = taken?;
        let ahead = &mut self.ahead[usize::from(from_back)];
        *ahead = ahead.saturating_sub(1);
        let entries = Entries::new(self.view.clone(), start, end);
        Some(RangeEntries { entries, left_here: self.limit_each, left: self.left.clone() })
    }
}

fn borrowed((start, end): &Bounds) -> UserRange<'_> {
    (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice))
}

/// Refuses ranges that end before they start, overlap, or are out of order.
fn check(view: &View, ranges: &VecDeque<Bounds>) -> Result<()> {
    let order = view.order();
    for (at, (start, end)) in ranges.iter().enumerate() {
        let here = || format!("range {} of {}", at + 1, ranges.len());
        view.check_order::<Vec<u8>>(&(start.as_ref(), end.as_ref()))
            .map_err(|error| Error::invalid_argument(format!("{}: {}", here(), error.message())))?;
        let Some((_, before)) = at.checked_sub(1).and_then(|before| ranges.get(before)) else {
            continue;
        };
        let lies_behind = match (before, start) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(last), Bound::Included(first)) => order.compare(last, first).is_lt(),
            (
                Bound::Included(last) | Bound::Excluded(last),
                Bound::Included(first) | Bound::Excluded(first),
            ) => order.compare(last, first).is_le(),
        };
        if !lies_behind {
            let start = match start {
                Bound::Included(key) | Bound::Excluded(key) => {
                    format!("starts at {}", key_in_words(key))
                }
                Bound::Unbounded => "has no start".to_string(),
            };
            return Err(Error::invalid_argument(format!(
                "{} {start}, which is not behind the end of the range before it; sort the ranges, \
                 and join those that overlap",
                here()
            )));
        }
    }
    Ok(())
}

impl RangeEntries {
    /// The entry that one end comes to next, if the limits allow for one.
    fn limited(
        &mut self,
        next: impl FnOnce(&mut Entries) -> Option<Result<Entry>>,
    ) -> Option<Result<Entry>> {
        let is_spent = |left: &Arc<AtomicU64>| left.load(Ordering::Relaxed) == 0;
        if self.left_here == Some(0) || self.left.as_ref().is_some_and(is_spent) {
            return None;
        }
        let item = next(&mut self.entries)?;
        if item.is_ok() {
            // Another thread may have taken the last one of all ranges meanwhile.
            let one_less = |left: u64| left.checked_sub(1);
            if let Some(left) = &self.left
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
            {
                return None;
            }
            self.left_here = self.left_here.map(|left| left - 1);
        }
        Some(item)
    }
}

impl Iterator for Ranges {
    type Item = RangeEntries;

    fn next(&mut self) -> Option<RangeEntries> {
        self.take(false)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (if self.left.is_some() { 0 } else { self.rest.len() }, Some(self.rest.len()))
    }
}

impl DoubleEndedIterator for Ranges {
    fn next_back(&mut self) -> Option<RangeEntries> {
        self.take(true)
    }
}

impl FusedIterator for Ranges {}

impl Iterator for RangeEntries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.limited(Entries::next)
    }
}

impl DoubleEndedIterator for RangeEntries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.limited(Entries::next_back)
    }
}

impl FusedIterator for RangeEntries {}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges")
            .field("family", &self.view.name())
            .field("left", &self.rest.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RangeEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RangeEntries").field(&self.entries).finish()
    }
}
