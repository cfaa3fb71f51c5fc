//! Many cursors as one.
//!
//! The children's current keys play a knock-out tournament, kept as a loser tree:
//!
//! 1. Node `i` (from 1) of the tree holds the loser of the match between its two subtrees; node 0
//!    holds the winner of all. Child `c` enters at the leaf `c + n`, whose parent is node `(c + n)
//!    / 2`.
//! 2. When the winner has moved, it replays the matches on its way up: one comparison per level of
//!    the tree.
//! 3. Matches compare the first eight bytes of the user keys as integers, and whole keys only if
//!    these are equal.
//! 4. Of equal keys, the newer source wins when moving forward, the older one when moving back.
//! 5. To change direction, all children but the winner seek to the winner's key and step past it if
//!    necessary.

use std::cmp::Ordering;

use crate::base::perf::{self, PerfMetric};
use crate::base::{
    Comparator, Error, InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator,
    PinnedValue, Result, SequenceNumber,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// What is known of the entry on which a child stands without asking it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    valid: bool,
    /// Orders like the user key as far as it goes: see [`key_prefix`].
    pub prefix: u64,
    /// Equal user keys have equal ones; others hardly ever.
    pub fingerprint: u64,
    /// Sequence number and type.
    pub packed: u64,
}

impl Head {
    const NONE: Self = Self { valid: false, prefix: 0, fingerprint: 0, packed: 0 };

    #[inline]
    fn of(comparator: &Comparator, key: InternalKey<'_>) -> Self {
        let user_key = key.user_key();
        let prefix = key_prefix(comparator, user_key);
        let tail = user_key.last_chunk().map_or(0, |tail| u64::from_le_bytes(*tail));
        // Keys differ at their beginnings or at their ends, mostly.
        let fingerprint = prefix.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ tail;
        Self { valid: true, prefix, fingerprint, packed: key.packed() }
    }

    #[inline]
    pub fn sequence(&self) -> SequenceNumber {
        self.packed >> 8
    }
}

/// A cursor over the union of its children, in internal-key order.
///
/// Children are given newest source first. Once a child fails the cursor is invalid, since the
/// others alone would show keys that the failed one hides.
pub struct MergingIterator<I> {
    comparator: InternalKeyComparator,
    children: Vec<I>,
    heads: Vec<Head>,
    /// The loser tree; node 0 is the winner. As long as `children`.
    tree: Vec<usize>,
    direction: Direction,
    valid: bool,
    error: Option<Error>,
    /// Room for the key around which the direction changes.
    pivot: InternalKeyBuf,
}

impl<I: InternalIterator> MergingIterator<I> {
    /// Merges `children`, newest source first; not positioned yet.
    pub fn new(comparator: InternalKeyComparator, children: Vec<I>) -> Self {
        let heads = vec![Head::NONE; children.len()];
        let tree = vec![0; children.len()];
        let pivot = InternalKeyBuf::for_seek(b"", 0);
        let direction = Direction::Forward;
        Self { comparator, children, heads, tree, direction, valid: false, error: None, pivot }
    }

    /// The children, newest source first.
    pub fn children(&self) -> &[I] {
        &self.children
    }

    /// The child on whose entry the cursor stands; the cursor must be valid.
    #[inline]
    pub fn current(&self) -> &I {
        debug_assert!(self.valid);
        &self.children[self.tree[0]]
    }

    /// Stands nowhere; `rest` lets each child go of what it need not hold.
    pub(super) fn rest(&mut self, rest: impl FnMut(&mut I)) {
        self.valid = false;
        self.error = None;
        self.heads.fill(Head::NONE);
        self.children.iter_mut().for_each(rest);
    }

    /// What is known of the current entry; the cursor must be valid.
    #[inline]
    pub(super) fn head(&self) -> &Head {
        debug_assert!(self.valid);
        &self.heads[self.tree[0]]
    }

    /// Moves the children from `first` on to `target`, those that stand before it. The cursor must
    /// move forward.
    pub(super) fn skip_to(&mut self, first: usize, target: InternalKey<'_>) {
        assert!(self.direction == Direction::Forward, "children leap in the direction of the scan");
        let mut moved = false;
        for index in first..self.children.len() {
            let child = &mut self.children[index];
            if self.heads[index].valid && self.comparator.compare(child.key(), target).is_lt() {
                perf::count(PerfMetric::InternalRangeDelReseekCount, 1);
                child.seek(target);
                self.refresh(index);
                moved = true;
            }
        }
        if moved {
            self.rebuild();
        }
    }

    /// Moves the children from `first` on back to `target`, those that stand after it. The cursor
    /// must move back.
    pub(super) fn skip_back_to(&mut self, first: usize, target: InternalKey<'_>) {
        assert!(
            self.direction == Direction::Backward,
            "children leap in the direction of the scan"
        );
        let mut moved = false;
        for index in first..self.children.len() {
            let child = &mut self.children[index];
            if self.heads[index].valid && self.comparator.compare(child.key(), target).is_gt() {
                perf::count(PerfMetric::InternalRangeDelReseekCount, 1);
                child.seek_for_prev(target);
                self.refresh(index);
                moved = true;
            }
        }
        if moved {
            self.rebuild();
        }
    }

    /// Takes note of where a child stands.
    #[inline]
    fn refresh(&mut self, index: usize) {
        let child = &self.children[index];
        if child.valid() {
            self.heads[index] = Head::of(&self.comparator.user, child.key());
        } else {
            self.note_end(index);
        }
    }

    /// Takes note that a child is not valid.
    #[cold]
    fn note_end(&mut self, index: usize) {
        self.heads[index] = Head::NONE;
        if let Err(error) = self.children[index].status() {
            self.error.get_or_insert(error);
        }
    }

    /// Whether child `a` comes before child `b` in the direction of the scan.
    #[inline]
    fn beats(&self, a: usize, b: usize) -> bool {
        let (head_a, head_b) = (self.heads[a], self.heads[b]);
        if !(head_a.valid && head_b.valid) {
            return head_a.valid || (!head_b.valid && a < b);
        }
        let order = head_a.prefix.cmp(&head_b.prefix).then_with(|| {
            self.comparator.compare(self.children[a].key(), self.children[b].key()).then(a.cmp(&b))
        });
        order
            == if self.direction == Direction::Forward { Ordering::Less } else { Ordering::Greater }
    }

    /// Plays the whole tournament.
    fn rebuild(&mut self) {
        let count = self.children.len();
        // Each child climbs until it loses to nobody waiting: an unplayed node (`count`) makes it
        // wait there.
        self.tree.fill(count);
        for child in 0..count {
            let mut climber = child;
            let mut node = (child + count) / 2;
            while node > 0 {
                let waiting = self.tree[node];
                if waiting == count {
                    self.tree[node] = climber;
                    break;
                }
                if self.beats(waiting, climber) {
                    self.tree[node] = climber;
                    climber = waiting;
                }
                node /= 2;
            }
            if node == 0 && count > 0 {
                self.tree[0] = climber;
            }
        }
        self.note_validity();
    }

    /// Replays the winner's matches after it moved.
    #[inline]
    fn replay(&mut self) {
        let mut climber = self.tree[0];
        let mut node = (climber + self.children.len()) / 2;
        while node > 0 {
            let waiting = self.tree[node];
            if self.beats(waiting, climber) {
                self.tree[node] = climber;
                climber = waiting;
            }
            node /= 2;
        }
        self.tree[0] = climber;
        self.note_validity();
    }

    #[inline]
    fn note_validity(&mut self) {
        let standing = self.tree.first().is_some_and(|&winner| self.heads[winner].valid);
        self.valid = standing && self.error.is_none();
    }

    /// Positions every child anew.
    fn seek_all(&mut self, direction: Direction, seek: impl Fn(&mut I)) {
        self.error = None;
        self.direction = direction;
        perf::count(PerfMetric::SeekChildSeekCount, self.children.len() as u64);
        for index in 0..self.children.len() {
            let time = perf::time(PerfMetric::SeekChildSeekTime);
            seek(&mut self.children[index]);
            drop(time);
            self.refresh(index);
        }
        let _time = perf::time(match direction {
            Direction::Forward => PerfMetric::SeekMinHeapTime,
            Direction::Backward => PerfMetric::SeekMaxHeapTime,
        });
        self.rebuild();
    }

    /// Brings all children but the winner to the other side of the winner's key.
    #[cold]
    fn turn(&mut self, direction: Direction) {
        let winner = self.tree[0];
        self.pivot.set_from(self.children[winner].key());
        self.direction = direction;
        for index in (0..self.children.len()).filter(|&index| index != winner) {
            let child = &mut self.children[index];
            let pivot = self.pivot.as_key();
            let step_over = |child: &I, from_newer: bool| {
                child.valid() && from_newer && self.comparator.compare(child.key(), pivot).is_eq()
            };
            match direction {
                Direction::Forward => {
                    child.seek(pivot);
                    if step_over(child, index < winner) {
                        child.next();
                    }
                }
                Direction::Backward => {
                    child.seek_for_prev(pivot);
                    if step_over(child, index > winner) {
                        child.prev();
                    }
                }
            }
            self.refresh(index);
        }
    }
}

/// The first eight bytes as a number that orders like the key; 0 if the order is not known.
#[inline]
pub(super) fn key_prefix(comparator: &Comparator, user_key: &[u8]) -> u64 {
    let prefix = match user_key.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut padded = [0; 8];
            padded[..user_key.len()].copy_from_slice(user_key);
            u64::from_be_bytes(padded)
        }
    };
    match comparator {
        Comparator::Bytewise => prefix,
        Comparator::ReverseBytewise => !prefix,
        Comparator::BytewiseU64Ts | Comparator::ReverseBytewiseU64Ts | Comparator::Custom(_) => 0,
    }
}

impl<I: InternalIterator> InternalIterator for MergingIterator<I> {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) {
        self.seek_all(Direction::Forward, I::seek_to_first);
    }

    fn seek_to_last(&mut self) {
        self.seek_all(Direction::Backward, I::seek_to_last);
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        self.seek_all(Direction::Forward, |child| child.seek(target));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        self.seek_all(Direction::Backward, |child| child.seek_for_prev(target));
    }

    fn confine(&mut self, to_prefix: bool) {
        self.children.iter_mut().for_each(|child| child.confine(to_prefix));
    }

    #[inline]
    fn next(&mut self) {
        assert!(self.valid, "next() needs a valid cursor");
        let turned = self.direction == Direction::Backward;
        if turned {
            self.turn(Direction::Forward);
        }
        let winner = self.tree[0];
        match self.children[winner].next_key() {
            Some(key) => self.heads[winner] = Head::of(&self.comparator.user, key),
            None => self.note_end(winner),
        }
        if turned { self.rebuild() } else { self.replay() }
    }

    #[inline]
    fn prev(&mut self) {
        assert!(self.valid, "prev() needs a valid cursor");
        let turned = self.direction == Direction::Forward;
        if turned {
            self.turn(Direction::Backward);
        }
        let winner = self.tree[0];
        match self.children[winner].prev_key() {
            Some(key) => self.heads[winner] = Head::of(&self.comparator.user, key),
            None => self.note_end(winner),
        }
        if turned { self.rebuild() } else { self.replay() }
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
