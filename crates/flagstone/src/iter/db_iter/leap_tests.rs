//! Leaps over deleted keys, by random scans of random queues: whatever a scan leaps over, it shows
//! what is there, and nothing else. Each scan is held to the list of writes; it learns from the
//! scans before it, as those of one family do.

use std::sync::Arc;

use super::*;
use crate::base::{FragmentedRangeTombstones, InternalKeyComparator, RangeTombstone};
use crate::iter::testing::VecIterator;
use crate::iter::{DeadRanges, TombstoneSource};

const KEYS: u32 = 60;

/// There are none.
struct NoBlobs;

impl ValueResolver for NoBlobs {
    fn resolve_blob(&self, user_key: &[u8], _blob_index: &[u8]) -> Result<Bytes> {
        panic!("{} has a plain value", user_key.escape_ascii())
    }
}

type Cursor = DbIter<VecIterator, NoBlobs>;

/// A family's writes, and what its scans have learnt.
struct Queue {
    random: fastrand::Rng,
    /// Of each key its versions, newest first, in the order of keys.
    entries: Vec<(InternalKeyBuf, Vec<u8>)>,
    deleted: Vec<RangeTombstone>,
    ranges: Arc<DeadRanges>,
    last: SequenceNumber,
    /// The keys before the first are deleted, and those from the second on are not written yet.
    ends: (u32, u32),
    steps: usize,
    steps_without: usize,
}

fn name(number: u32) -> Vec<u8> {
    format!("{}{number:03}", if number < KEYS / 2 { "a" } else { "b" }).into_bytes()
}

impl Queue {
    fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            entries: Vec::new(),
            deleted: Vec::new(),
            ranges: Arc::new(DeadRanges::new(Comparator::Bytewise)),
            last: 0,
            ends: (0, 0),
            steps: 0,
            steps_without: 0,
        }
    }

    /// Sets or deletes a key.
    fn write(&mut self, number: u32, kind: ValueType) {
        let set = (kind == ValueType::Value).then(|| name(number));
        self.tell(set.as_deref());
        let key = InternalKeyBuf::new(&name(number), self.last, kind);
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        let at = self
            .entries
            .partition_point(|(other, _)| order.compare(other.as_key(), key.as_key()).is_lt());
        self.entries.insert(at, (key, self.last.to_string().into_bytes()));
    }

    /// Numbers the next write, and tells those that watch.
    fn tell(&mut self, set: Option<&[u8]>) {
        if self.ranges.is_watching() {
            self.ranges.write(self.last, set);
        }
        self.last += 1;
    }

    /// Appends to the end, deletes from the head or the end, or sets a key somewhere.
    fn step(&mut self) {
        let (head, end) = self.ends;
        match self.random.u8(..10) {
            0..4 => {
                let until = (end + self.random.u32(1..12)).min(KEYS);
                (end..until).for_each(|number| self.write(number, ValueType::Value));
                self.ends.1 = until;
            }
            4..7 => {
                let until = (head + self.random.u32(1..20)).min(end);
                let kind = if self.random.bool() {
                    ValueType::Deletion
                } else {
                    ValueType::SingleDeletion
                };
                (head..until).for_each(|number| self.write(number, kind));
                self.ends.0 = until;
            }
            7 => {
                let from = end.saturating_sub(self.random.u32(1..20)).max(head);
                (from..end).for_each(|number| self.write(number, ValueType::Deletion));
                self.ends.1 = from;
            }
            8 => {
                let number = self.random.u32(..KEYS);
                self.write(number, ValueType::Value);
            }
            _ => {
                let first = self.random.u32(..KEYS);
                let last = first + self.random.u32(1..20);
                self.tell(None);
                let sequence = self.last;
                self.deleted.push(RangeTombstone { start: name(first), end: name(last), sequence });
            }
        }
    }

    /// What a scan as of `snapshot` within these bounds has to show.
    fn visible(&self, snapshot: SequenceNumber, bounds: &KeyBounds) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut shown = Vec::new();
        let mut decided: Option<&[u8]> = None;
        for (key, value) in &self.entries {
            let (user_key, sequence) = (key.user_key(), key.as_key().sequence());
            if sequence > snapshot || decided == Some(user_key) {
                continue;
            }
            decided = Some(user_key);
            let covers = |range: &RangeTombstone| {
                (sequence..=snapshot).contains(&range.sequence)
                    && range.start[..] <= *user_key
                    && *user_key < range.end[..]
            };
            let is_within = bounds.lower.as_deref().is_none_or(|lower| user_key >= lower)
                && bounds.upper.as_deref().is_none_or(|upper| user_key < upper);
            let is_set = key.as_key().value_type() == Some(ValueType::Value);
            if is_set && is_within && !self.deleted.iter().any(covers) {
                shown.push((user_key.to_vec(), value.clone()));
            }
        }
        shown
    }

    fn cursor(&mut self, settings: DbIterSettings) -> Cursor {
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        let mut children = [Vec::new(), Vec::new()];
        // The newer writes in one source, the older ones in the other.
        let cut = self.random.u64(..=self.last);
        for (key, value) in &self.entries {
            children[usize::from(key.as_key().sequence() <= cut)]
                .push((key.clone(), value.clone()));
        }
        let children = children.map(|entries| VecIterator::new(order.clone(), entries)).into();
        let (older, newer): (Vec<_>, Vec<_>) =
            self.deleted.iter().cloned().partition(|range| range.sequence <= cut);
        let sources =
            [newer, older].into_iter().enumerate().filter(|(_, ranges)| !ranges.is_empty());
        let whole =
            |ranges| Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, ranges));
        let sources = sources
            .map(|(at, ranges)| (at, TombstoneSource::One(whole(ranges).untruncated())))
            .collect();
        let view = TombstoneView::new(Comparator::Bytewise, settings.snapshot, sources);
        DbIter::new(settings, MergingIterator::new(order, children), view, NoBlobs)
    }

    /// Scans forward or back from somewhere, to the end or turning round on the way, with leaps and
    /// without.
    fn scan(&mut self, seed: u64) {
        // Mostly the present.
        let snapshot = self.last.saturating_sub([0, 0, 0, 1, 9][self.random.usize(..5)]);
        let bound = |random: &mut fastrand::Rng| {
            (random.u8(..4) == 0).then(|| name(random.u32(..KEYS)).into())
        };
        let bounds = KeyBounds { lower: bound(&mut self.random), upper: bound(&mut self.random) };
        let settings = DbIterSettings {
            bounds: bounds.clone(),
            max_sequential_skips: self.random.usize(..3),
            ..DbIterSettings::new(Comparator::Bytewise, snapshot)
        };
        let leaping = DbIterSettings { dead_ranges: Some(self.ranges.clone()), ..settings.clone() };
        let expected = self.visible(snapshot, &bounds);
        let (walk, target) = (self.random.u64(..), name(self.random.u32(..KEYS)));
        let what = format!(
            "seed {seed}, as of {snapshot} within {bounds:?} from {}",
            target.escape_ascii()
        );
        let mut cursor = self.cursor(leaping);
        self.steps += follow(&mut cursor, &expected, &target, walk, &what);
        let mut cursor = self.cursor(settings);
        self.steps_without +=
            follow(&mut cursor, &expected, &target, walk, &format!("{what}, without leaps"));
    }
}

/// Moves a cursor as `walk` says, and compares; how many steps its sources were moved.
fn follow(
    cursor: &mut Cursor,
    expected: &[(Vec<u8>, Vec<u8>)],
    target: &[u8],
    walk: u64,
    what: &str,
) -> usize {
    let mut random = fastrand::Rng::with_seed(walk);
    let mut is_forward = random.bool();
    let mut at = match (random.bool(), is_forward) {
        (true, true) => {
            cursor.seek_to_first();
            Some(0)
        }
        (true, false) => {
            cursor.seek_to_last();
            expected.len().checked_sub(1)
        }
        (false, true) => {
            cursor.seek(target);
            Some(expected.partition_point(|(key, _)| key[..] < *target))
        }
        (false, false) => {
            cursor.seek_for_prev(target);
            expected.partition_point(|(key, _)| key[..] <= *target).checked_sub(1)
        }
    };
    let turns = random.u8(..3) == 0;
    loop {
        cursor.status().unwrap();
        let shown =
            cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        let wanted = at.and_then(|at| expected.get(at));
        assert_eq!(shown.as_ref(), wanted, "{what}");
        let Some(position) = at.filter(|_| cursor.valid()) else { break };
        if turns && random.u8(..8) == 0 {
            is_forward = !is_forward;
        }
        if is_forward {
            cursor.next();
            at = Some(position + 1);
        } else {
            cursor.prev();
            at = position.checked_sub(1);
        }
    }
    cursor.inner.children().iter().map(|child| child.steps).sum()
}

#[test]
fn scans_that_leap_show_what_others_show() {
    let (mut steps, mut steps_without) = (0, 0);
    for seed in 0..60 {
        let mut queue = Queue::new(seed);
        for _ in 0..50 {
            queue.step();
            (0..4).for_each(|_| queue.scan(seed));
        }
        steps += queue.steps;
        steps_without += queue.steps_without;
    }
    assert!(
        steps < steps_without * 9 / 10,
        "{steps} steps with leaps, {steps_without} without: they leap"
    );
}

/// A queue whose head is far from the first key that it ever had, with a key that is left in the
/// middle.
fn with_a_head_far_off() -> Queue {
    let mut queue = Queue::new(0);
    for number in 0..KEYS {
        queue.write(number, ValueType::Value);
    }
    for number in (1..KEYS - 1).filter(|number| *number != KEYS / 2) {
        queue.write(number, ValueType::Deletion);
    }
    queue
}

/// The keys shown from the first or the last on, and the steps that it took.
fn shown_and_steps(
    queue: &mut Queue,
    settings: DbIterSettings,
    back: bool,
) -> (Vec<Vec<u8>>, usize) {
    let mut cursor = queue.cursor(settings);
    let mut shown = Vec::new();
    if back {
        cursor.seek_to_last()
    } else {
        cursor.seek_to_first()
    }
    while cursor.valid() {
        shown.push(cursor.key().to_vec());
        if back { cursor.prev() } else { cursor.next() }
    }
    (shown, cursor.inner.children().iter().map(|child| child.steps).sum())
}

/// Two runs in one scan, each of which is told of by itself, and each of which is leapt over;
/// within bounds, too, and as of a snapshot that is older than what was written since.
#[test]
fn each_run_of_a_scan_is_learnt_and_leapt_over() {
    for back in [false, true] {
        let mut queue = with_a_head_far_off();
        let at = |queue: &Queue, upper: Option<u32>| DbIterSettings {
            dead_ranges: Some(queue.ranges.clone()),
            max_sequential_skips: 1,
            bounds: KeyBounds { lower: None, upper: upper.map(|number| name(number).into()) },
            ..DbIterSettings::new(Comparator::Bytewise, queue.last)
        };
        let mut all = vec![name(0), name(KEYS / 2), name(KEYS - 1)];
        if back {
            all.reverse();
        }
        for learnt in [false, false, true] {
            let settings = at(&queue, None);
            let (shown, steps) = shown_and_steps(&mut queue, settings, back);
            assert_eq!(shown, all);
            assert_eq!(steps < 40, learnt, "{steps} steps, back: {back}");
            queue.write(0, ValueType::Value);
        }
        let settings = at(&queue, Some(KEYS / 2 + 10));
        let (shown, steps) = shown_and_steps(&mut queue, settings, back);
        all.retain(|key| *key < name(KEYS / 2 + 10));
        assert_eq!(
            (shown, steps < 40),
            (all.clone(), true),
            "{steps} steps within bounds, back: {back}"
        );
        // What was deleted after the snapshot is there as of it.
        let before = DbIterSettings { snapshot: u64::from(KEYS), ..at(&queue, None) };
        assert_eq!(shown_and_steps(&mut queue, before, back).0.len(), KEYS as usize);
        // A key that comes back is shown at once.
        queue.write(KEYS / 2 + 5, ValueType::Value);
        let settings = at(&queue, None);
        assert!(shown_and_steps(&mut queue, settings, back).0.contains(&name(KEYS / 2 + 5)));
    }
}
