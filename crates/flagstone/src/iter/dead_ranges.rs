//! Ranges of keys that hold nothing, learned from scans that stepped over the deletions there.
//!
//! A queue is appended to at one end and deleted from at the other. Until compactions have removed
//! the deletions, each search for the queue's head steps over all of them: forward, or back if the
//! last keys are deleted first.
//!
//! 1. A scan that stepped over many deleted keys in a row *reports* the range, which becomes a
//!    candidate.
//! 2. The next write *watches* the candidate. Writes before it may be invisible to the scan that
//!    reported, but all later writes check the range. A write that sets a key in the range cuts off
//!    everything after that key, in the scan's direction.
//! 3. A scan that sees the writes before the watching write, and also finds nothing in the range,
//!    *confirms* what is left of it. For the scan's sequence number and all later ones the range is
//!    empty, because only deletions were written since.
//! 4. Scans at these sequence numbers leap over the range until a write cuts it.
//!
//! Forward scans and backward scans learn separately, because a write leaves each the part that it
//! reaches first.
//!
//! Flushes and compactions do not matter here: they do not change what a reader sees. Dropping
//! tables and compaction filters do: they remove keys or bring back older versions, also at earlier
//! sequence numbers. Each of these begins another [`HistoryEpoch`]. A known range belongs to one
//! epoch and is used only by scans of that epoch.
//!
//! **Invariants.** All super versions of one epoch show the same at a given sequence number. A scan
//! has the epoch of its super version, so it does not matter whether the new epoch or the new super
//! version is published first.
//!
//! **Thread safety.** Writers call [`DeadRanges::write`] one at a time, after the sequence number
//! is assigned and before it is published. So a reader at that number finds the range already cut.

use super::tombstones::Towards;
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Comparator, SequenceNumber};

/// How many ranges are remembered in each direction, and how many candidates: one for each of some
/// queues.
const RANGES: usize = 16;
const CANDIDATES: usize = 4;

/// The order in which scans in one direction come to keys.
struct ScanOrder<'a> {
    order: &'a Comparator,
    towards: Towards,
}

impl ScanOrder<'_> {
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        match self.towards {
            Towards::Later => self.order.compare(a, b),
            Towards::Earlier => self.order.compare(b, a),
        }
    }
}

/// The keys from one up to, not including, another, in the order in which a scan comes to them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    from: Vec<u8>,
    until: Vec<u8>,
}

impl Range {
    fn holds(&self, key: &[u8], course: &ScanOrder<'_>) -> bool {
        course.compare(&self.from, key).is_le() && course.compare(key, &self.until).is_lt()
    }

    fn is_empty(&self, course: &ScanOrder<'_>) -> bool {
        course.compare(&self.from, &self.until).is_ge()
    }

    /// Whether the two together are one range.
    fn touches(&self, other: &Self, course: &ScanOrder<'_>) -> bool {
        course.compare(&self.from, &other.until).is_le()
            && course.compare(&other.from, &self.until).is_le()
    }

    /// Takes away `key` and what follows it.
    fn cut(&mut self, key: &[u8], course: &ScanOrder<'_>) {
        if self.holds(key, course) {
            self.until.clear();
            self.until.extend_from_slice(key);
        }
    }

    fn intersection(&self, other: &Self, course: &ScanOrder<'_>) -> Self {
        let from =
            if course.compare(&self.from, &other.from).is_ge() { &self.from } else { &other.from };
        let until = if course.compare(&self.until, &other.until).is_le() {
            &self.until
        } else {
            &other.until
        };
        Self { from: from.clone(), until: until.clone() }
    }

    fn extend(&mut self, other: Self, course: &ScanOrder<'_>) {
        if course.compare(&other.from, &self.from).is_lt() {
            self.from = other.from;
        }
        if course.compare(&other.until, &self.until).is_gt() {
            self.until = other.until;
        }
    }
}

/// How often a family's keys were changed by other means than writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryEpoch(u64);

impl HistoryEpoch {
    /// The one after another such change.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What is known to scans in one direction.
#[derive(Default)]
struct Known {
    /// Reported; with the last sequence number that was not watched, once a write has come.
    candidates: Vec<(Range, Option<SequenceNumber>)>,
    /// Confirmed, as of that number and later ones; the one confirmed last at the end.
    dead: Vec<(Range, SequenceNumber)>,
}

impl Known {
    fn write(&mut self, before: SequenceNumber, set: Option<&[u8]>, course: &ScanOrder<'_>) {
        for (_, unwatched) in &mut self.candidates {
            unwatched.get_or_insert(before);
        }
        if let Some(key) = set {
            self.candidates.iter_mut().for_each(|(range, _)| range.cut(key, course));
            self.dead.iter_mut().for_each(|(range, _)| range.cut(key, course));
            self.candidates.retain(|(range, _)| !range.is_empty(course));
            self.dead.retain(|(range, _)| !range.is_empty(course));
        }
    }

    fn report(&mut self, found: Range, snapshot: SequenceNumber, course: &ScanOrder<'_>) {
        // What was watched before the scan saw it is confirmed.
        let touched: Vec<_> = self
            .candidates
            .extract_if(.., |(candidate, unwatched)| {
                unwatched.is_some_and(|unwatched| unwatched <= snapshot)
                    && candidate.touches(&found, course)
            })
            .collect();
        for (candidate, _) in touched {
            let confirmed = candidate.intersection(&found, course);
            if !confirmed.is_empty(course) {
                self.remember(confirmed, snapshot, course);
            }
        }
        let is_known = |(range, since): &(Range, SequenceNumber)| {
            *since <= snapshot && range.intersection(&found, course) == found
        };
        if self.dead.iter().any(is_known)
            || self.candidates.iter().any(|(range, _)| range.touches(&found, course))
        {
            return;
        }
        if self.candidates.len() == CANDIDATES {
            self.candidates.remove(0);
        }
        self.candidates.push((found, None));
    }

    /// Adds a range to those that are dead.
    fn remember(&mut self, mut range: Range, mut since: SequenceNumber, course: &ScanOrder<'_>) {
        let touched: Vec<_> =
            self.dead.extract_if(.., |(other, _)| other.touches(&range, course)).collect();
        for (other, other_since) in touched {
            range.extend(other, course);
            since = since.max(other_since);
        }
        if self.dead.len() == RANGES {
            self.dead.remove(0);
        }
        self.dead.push((range, since));
    }
}

#[derive(Default)]
struct State {
    past: HistoryEpoch,
    later: Known,
    earlier: Known,
}

impl State {
    fn known(&mut self, towards: Towards) -> &mut Known {
        match towards {
            Towards::Later => &mut self.later,
            Towards::Earlier => &mut self.earlier,
        }
    }
}

/// What is known of one family's keys.
pub struct DeadRanges {
    order: Comparator,
    /// Whether writers and scans need to look at all.
    watching: AtomicBool,
    state: Mutex<State>,
}

impl DeadRanges {
    /// Nothing, of keys in that order.
    pub fn new(order: Comparator) -> Self {
        Self { order, watching: AtomicBool::new(false), state: Mutex::default() }
    }

    fn course(&self, towards: Towards) -> ScanOrder<'_> {
        ScanOrder { order: &self.order, towards }
    }

    /// Whether writes must be told of.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Acquire)
    }

    /// Told of each write, in the order of their numbers: `before` is the last number before its
    /// own, `set` the key that it sets, if it is no deletion.
    pub fn write(&self, before: SequenceNumber, set: Option<&[u8]>) {
        let mut state = self.state.lock();
        for towards in [Towards::Later, Towards::Earlier] {
            state.known(towards).write(before, set, &self.course(towards));
        }
    }

    /// Forgets everything: it was known of another past.
    pub fn begin(&self, past: HistoryEpoch) {
        *self.state.lock() = State { past, ..State::default() };
    }

    /// Where the range around `key` ends, for scans in that direction, in which nothing is seen as
    /// of `snapshot`; if one is known of the scan's past. What lies between the two is not there;
    /// what is at the end may be.
    pub(super) fn end_of(
        &self,
        key: &[u8],
        towards: Towards,
        past: HistoryEpoch,
        snapshot: SequenceNumber,
    ) -> Option<Vec<u8>> {
        if !self.is_watching() {
            return None;
        }
        let course = self.course(towards);
        let mut state = self.state.lock();
        if state.past != past {
            return None;
        }
        let dead = &state.known(towards).dead;
        let found =
            dead.iter().find(|(range, since)| *since <= snapshot && range.holds(key, &course));
        found.map(|(range, _)| range.until.clone())
    }

    /// Takes note that a scan in that direction as of `snapshot` found nothing from one key up to,
    /// not including, another; unless it reads another past.
    pub(super) fn report(
        &self,
        from: &[u8],
        until: &[u8],
        towards: Towards,
        past: HistoryEpoch,
        snapshot: SequenceNumber,
    ) {
        let course = self.course(towards);
        let found = Range { from: from.to_vec(), until: until.to_vec() };
        if found.is_empty(&course) {
            return;
        }
        let mut state = self.state.lock();
        if state.past != past {
            return;
        }
        state.known(towards).report(found, snapshot, &course);
        drop(state);
        self.watching.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
