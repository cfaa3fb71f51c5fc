//! Ranges of keys in which there is nothing, remembered from scans that walked over the deletions there.
//!
//! A queue is appended to at one end and deleted from at the other. Until compactions have removed the deletions, who
//! looks for its head would walk over all of them, each time.
//!
//! 1. A scan that passed many deleted keys in a row *reports* from where to where; the range becomes a candidate.
//! 2. The next write *watches* the candidate: writes up to then may be invisible to the scan that reported, but all later
//!    ones look at the range, and one that sets a key cuts off what follows the key.
//! 3. A scan that sees the writes before that, and finds nothing there either, *confirms* what is left of the range: for
//!    its own sequence number and all later ones nothing is there, as nothing but deletions was written since.
//! 4. Scans as of these numbers leap over the range, until a write cuts it.
//!
//! What lies in memtables and tables is no part of this: flushes and compactions do not change what a reader sees. (A compaction
//! filter that skips ahead does: older versions of what it skipped may come back, and a scan leaps over those in a range.)
//!
//! **Thread safety.** Writers call [`DeadRanges::write`] one at a time, after the sequence number is assigned and before it is
//! published; so who reads as of that number finds the range cut.

use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Comparator, Mutant, SequenceNumber};

/// How many ranges are remembered, and how many candidates: one for each of some queues.
const RANGES: usize = 16;
const CANDIDATES: usize = 4;

/// The keys from one up to, not including, another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    from: Vec<u8>,
    until: Vec<u8>,
}

impl Range {
    fn holds(&self, key: &[u8], order: &Comparator) -> bool {
        order.compare(&self.from, key).is_le() && order.compare(key, &self.until).is_lt()
    }

    fn is_empty(&self, order: &Comparator) -> bool {
        order.compare(&self.from, &self.until).is_ge()
    }

    /// Whether the two together are one range.
    fn touches(&self, other: &Self, order: &Comparator) -> bool {
        order.compare(&self.from, &other.until).is_le() && order.compare(&other.from, &self.until).is_le()
    }

    /// Takes away `key` and what follows it.
    fn cut(&mut self, key: &[u8], order: &Comparator) {
        if self.holds(key, order) {
            self.until.clear();
            self.until.extend_from_slice(key);
        }
    }

    fn intersection(&self, other: &Self, order: &Comparator) -> Self {
        let from = if order.compare(&self.from, &other.from).is_ge() { &self.from } else { &other.from };
        let until = if order.compare(&self.until, &other.until).is_le() { &self.until } else { &other.until };
        Self { from: from.clone(), until: until.clone() }
    }

    fn extend(&mut self, other: Self, order: &Comparator) {
        if order.compare(&other.from, &self.from).is_lt() {
            self.from = other.from;
        }
        if order.compare(&other.until, &self.until).is_gt() {
            self.until = other.until;
        }
    }
}

#[derive(Default)]
struct State {
    /// Reported; with the last sequence number that was not watched, once a write has come.
    candidates: Vec<(Range, Option<SequenceNumber>)>,
    /// Confirmed, as of that number and later ones; the one confirmed last at the end.
    dead: Vec<(Range, SequenceNumber)>,
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

    /// Whether writes must be told of.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Acquire)
    }

    /// Told of each write, in the order of their numbers: `before` is the last number before its own, `set` the key that it
    /// sets, if it is no deletion.
    pub fn write(&self, before: SequenceNumber, set: Option<&[u8]>) {
        let mut state = self.state.lock();
        let State { candidates, dead } = &mut *state;
        for (_, unwatched) in candidates.iter_mut() {
            unwatched.get_or_insert(before);
        }
        if let Some(key) = set.filter(|_| !Mutant::LeapOverNewKey.is_on()) {
            candidates.iter_mut().for_each(|(range, _)| range.cut(key, &self.order));
            dead.iter_mut().for_each(|(range, _)| range.cut(key, &self.order));
            candidates.retain(|(range, _)| !range.is_empty(&self.order));
            dead.retain(|(range, _)| !range.is_empty(&self.order));
        }
    }

    /// The end of the range around `key` in which nothing is seen as of `snapshot`, if one is known.
    pub fn end_of(&self, key: &[u8], snapshot: SequenceNumber) -> Option<Vec<u8>> {
        if !self.is_watching() {
            return None;
        }
        let state = self.state.lock();
        let found =
            state.dead.iter().find(|(range, since)| *since <= snapshot && range.holds(key, &self.order));
        found.map(|(range, _)| range.until.clone())
    }

    /// Takes note that a scan as of `snapshot` found nothing from one key up to another.
    pub fn report(&self, from: &[u8], until: &[u8], snapshot: SequenceNumber) {
        let order = &self.order;
        let found = Range { from: from.to_vec(), until: until.to_vec() };
        if found.is_empty(order) {
            return;
        }
        let mut state = self.state.lock();
        let State { candidates, dead } = &mut *state;
        // What was watched before the scan saw it is confirmed.
        for (candidate, _) in candidates.extract_if(.., |(candidate, unwatched)| {
            unwatched.is_some_and(|unwatched| unwatched <= snapshot) && candidate.touches(&found, order)
        }) {
            let confirmed = candidate.intersection(&found, order);
            if !confirmed.is_empty(order) {
                remember(dead, confirmed, snapshot, order);
            }
        }
        let known = dead
            .iter()
            .any(|(range, since)| *since <= snapshot && range.intersection(&found, order) == found);
        if known || candidates.iter().any(|(range, _)| range.touches(&found, order)) {
            return;
        }
        if candidates.len() == CANDIDATES {
            candidates.remove(0);
        }
        candidates.push((found, None));
        self.watching.store(true, Ordering::Release);
    }
}

/// Adds a range to those that are known.
fn remember(
    dead: &mut Vec<(Range, SequenceNumber)>,
    mut range: Range,
    mut since: SequenceNumber,
    order: &Comparator,
) {
    let touched: Vec<_> = dead.extract_if(.., |(other, _)| other.touches(&range, order)).collect();
    for (other, other_since) in touched {
        range.extend(other, order);
        since = since.max(other_since);
    }
    if dead.len() == RANGES {
        dead.remove(0);
    }
    dead.push((range, since));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn known(ranges: &DeadRanges, key: &str, snapshot: SequenceNumber) -> Option<String> {
        ranges.end_of(key.as_bytes(), snapshot).map(|end| String::from_utf8(end).unwrap())
    }

    #[test]
    fn a_range_is_leapt_over_once_a_second_scan_has_found_nothing() {
        let ranges = DeadRanges::new(Comparator::Bytewise);
        ranges.report(b"b", b"k", 7);
        assert_eq!(known(&ranges, "c", 9), None, "writes that the scan did not see may have set keys");
        assert!(ranges.is_watching());
        ranges.write(8, None);
        ranges.report(b"b", b"k", 7);
        assert_eq!(known(&ranges, "c", 9), None, "this one did not see them either");
        ranges.report(b"a", b"i", 9);
        assert_eq!(known(&ranges, "c", 9), Some("i".to_string()), "found empty by both");
        assert_eq!(known(&ranges, "c", 8), None, "the key may have been there as of 8");
        assert_eq!(known(&ranges, "a", 9), None);
        assert_eq!(known(&ranges, "i", 9), None);
    }

    #[test]
    fn a_key_that_is_set_ends_the_range() {
        let ranges = DeadRanges::new(Comparator::Bytewise);
        ranges.report(b"b", b"k", 7);
        ranges.write(8, Some(b"g"));
        ranges.report(b"b", b"k", 9);
        assert_eq!(known(&ranges, "c", 9), Some("g".to_string()), "set while it was watched");
        ranges.write(9, Some(b"e"));
        assert_eq!(known(&ranges, "c", 10), Some("e".to_string()));
        assert_eq!(known(&ranges, "f", 10), None);
        ranges.write(10, Some(b"b"));
        assert_eq!(known(&ranges, "b", 11), None);
    }

    /// Writes that are published late, scans as of any number, ranges that overlap: whatever is leapt over is empty.
    #[test]
    fn nothing_that_is_there_is_leapt_over() {
        let mut leaps = 0;
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let ranges = DeadRanges::new(Comparator::Bytewise);
            // Of each key the numbers at which it was set or deleted.
            let mut history: BTreeMap<u8, Vec<(SequenceNumber, bool)>> = BTreeMap::new();
            let (mut last, mut published) = (0, 0);
            let is_there = |history: &BTreeMap<u8, Vec<(u64, bool)>>, key: u8, snapshot: u64| {
                let versions = history.get(&key).map_or(&[][..], Vec::as_slice);
                versions.iter().rev().find(|(sequence, _)| *sequence <= snapshot).is_some_and(|(_, set)| *set)
            };
            for _ in 0..200 {
                let key = random.u8(..40);
                let snapshot = if random.bool() { published } else { random.u64(..=published) };
                match random.u8(..8) {
                    0..3 => {
                        let set = random.u8(..6) == 0;
                        if ranges.is_watching() {
                            ranges.write(last, set.then_some(&[key][..]));
                        }
                        last += 1;
                        history.entry(key).or_default().push((last, set));
                    }
                    3 => published = random.u64(published..=last),
                    4..6 => {
                        let empty = (key..60).take_while(|key| !is_there(&history, *key, snapshot)).count();
                        ranges.report(&[key], &[key + empty as u8], snapshot);
                    }
                    _ => {
                        if let Some(end) = ranges.end_of(&[key], snapshot) {
                            assert!(end > vec![key]);
                            leaps += 1;
                            for key in key..end[0] {
                                assert!(
                                    !is_there(&history, key, snapshot),
                                    "seed {seed}: {key} as of {snapshot}"
                                );
                            }
                        }
                    }
                }
            }
        }
        assert!(leaps > 1000, "{leaps}");
    }
}
