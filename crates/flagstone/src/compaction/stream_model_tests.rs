//! Whatever is flushed and compacted, with whatever snapshots held, every live snapshot shows what
//! the history says, by point lookup and by cursor in both directions.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::stream_model::{Blobs, File, KEYS, Level, Pairs, Tree, order};
use crate::base::{Comparator, InternalIterator, InternalKeyBuf, SequenceNumber, ValueType};
use crate::iter::testing::VecIterator;
use crate::iter::{
    ConcatIterator, DbIter, DbIterSettings, KeyBounds, Lookup, MergingIterator, TombstoneSource,
    TombstoneView,
};

impl Tree {
    /// A cursor over everything.
    fn cursor(
        &mut self,
        snapshot: SequenceNumber,
        bounds: KeyBounds,
    ) -> DbIter<Box<dyn InternalIterator>, Blobs> {
        let mut children: Vec<Box<dyn InternalIterator>> = vec![Box::new(self.memtable_cursor())];
        let mut sources = vec![(0, TombstoneSource::One(self.memtable_tombstones().untruncated()))];
        for file in &self.level0 {
            sources.push((children.len(), TombstoneSource::One(file.truncated())));
            children.push(Box::new(file.cursor()));
        }
        for level in &self.levels {
            let level = Level(level.clone());
            sources.push((children.len(), TombstoneSource::Level(Box::new(level.clone()))));
            children.push(Box::new(ConcatIterator::new(order(), level, bounds.clone())));
        }
        let settings = DbIterSettings {
            merge_operator: Some(self.operator.clone()),
            bounds,
            max_sequential_skips: self.random.usize(..5),
            ..DbIterSettings::new(Comparator::Bytewise, snapshot)
        };
        let tombstones = TombstoneView::new(Comparator::Bytewise, snapshot, sources);
        DbIter::new(settings, MergingIterator::new(order(), children), tombstones, Blobs)
    }

    fn look_up(&self, key: &[u8], snapshot: SequenceNumber) -> Option<Vec<u8>> {
        let mut lookup = Lookup::new();
        self.feed(&mut lookup, key, snapshot);
        let value = lookup.finish().resolve(key, Some(self.operator.as_ref()), &Blobs).unwrap();
        value.map(|value| value.as_ref().to_vec())
    }

    fn feed(&self, lookup: &mut Lookup<Vec<u8>>, key: &[u8], snapshot: SequenceNumber) {
        let mut source = |mut cursor: VecIterator, covering| -> ControlFlow<()> {
            lookup.cover(covering);
            cursor.seek(InternalKeyBuf::for_seek(key, snapshot).as_key());
            while cursor.valid() && cursor.key().user_key() == key {
                let entry = cursor.key();
                lookup.add(
                    entry.sequence(),
                    entry.value_type().unwrap(),
                    cursor.value().to_vec(),
                )?;
                cursor.next();
            }
            ControlFlow::Continue(())
        };
        let done =
            |flow: ControlFlow<()>, covering: SequenceNumber| flow.is_break() || covering > 0;
        let covering = self.memtable_tombstones().covering_sequence(key, snapshot);
        if done(source(self.memtable_cursor(), covering), covering) {
            return;
        }
        for file in self.level0.iter().filter(|file| file.contains(key)) {
            let covering = file.tombstones.covering_sequence(key, snapshot);
            if done(source(file.cursor(), covering), covering) {
                return;
            }
        }
        let target = InternalKeyBuf::for_seek(key, snapshot);
        for level in &self.levels {
            let first = level.partition_point(|file| {
                order().compare(file.largest.as_key(), target.as_key()).is_lt()
            });
            let mut covered = 0;
            // Older versions may lie in the next file, if this one ends with the key.
            for file in &level[first..] {
                if !file.contains(key) {
                    break;
                }
                covered = covered.max(file.tombstones.covering_sequence(key, snapshot));
                if source(file.cursor(), covered).is_break() {
                    return;
                }
                if file.largest.user_key() != key {
                    break;
                }
            }
            if covered > 0 {
                return;
            }
        }
    }

    fn check(&mut self) {
        let now = self.last_sequence();
        for snapshot in self.snapshots.clone().into_iter().chain([now]) {
            let expected = self.expected(snapshot);
            for number in 0..=KEYS {
                let key = vec![b'a' + number];
                let found = self.look_up(&key, snapshot);
                assert_eq!(found.as_ref(), expected.get(&key), "get {key:?} at {snapshot}\n{self}");
            }
            self.check_scans(snapshot, &expected);
            self.check_walk(snapshot, expected);
        }
    }

    fn check_scans(&mut self, snapshot: SequenceNumber, expected: &Pairs) {
        let mut cursor = self.cursor(snapshot, KeyBounds::default());
        let mut seen = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            seen.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
            cursor.next();
        }
        cursor.status().unwrap();
        let expected: Vec<_> = expected.clone().into_iter().collect();
        assert_eq!(seen, expected, "forward at {snapshot}\n{self}");
        seen.clear();
        cursor.seek_to_last();
        while cursor.valid() {
            seen.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
            cursor.prev();
        }
        cursor.status().unwrap();
        seen.reverse();
        assert_eq!(seen, expected, "backward at {snapshot}\n{self}");
    }

    /// A random walk within random bounds.
    fn check_walk(&mut self, snapshot: SequenceNumber, mut expected: Pairs) {
        let bound = |random: &mut fastrand::Rng| {
            let key: Arc<[u8]> = vec![b'a' + random.u8(..KEYS)].into();
            (random.u8(..3) == 0).then_some(key)
        };
        let bounds = KeyBounds { lower: bound(&mut self.random), upper: bound(&mut self.random) };
        if let Some(lower) = &bounds.lower {
            expected.retain(|key, _| key[..] >= lower[..]);
        }
        if let Some(upper) = &bounds.upper {
            expected.retain(|key, _| key[..] < upper[..]);
        }
        let expected: Vec<_> = expected.into_iter().collect();
        let mut cursor = self.cursor(snapshot, bounds.clone());
        let mut at: Option<usize> = None;
        let mut walk = String::new();
        for _ in 0..12 {
            let target = vec![b'a' + self.random.u8(..=KEYS)];
            let (step, to) = match (self.random.u8(..10), at) {
                (0, _) | (_, None) if self.random.bool() => {
                    cursor.seek(&target);
                    ("seek", Some(expected.partition_point(|(key, _)| *key < target)))
                }
                (0 | 1, _) | (_, None) => {
                    cursor.seek_for_prev(&target);
                    (
                        "seek_for_prev",
                        expected.partition_point(|(key, _)| *key <= target).checked_sub(1),
                    )
                }
                (2..6, Some(position)) => {
                    cursor.next();
                    ("next", Some(position + 1))
                }
                (_, Some(position)) => {
                    cursor.prev();
                    ("prev", position.checked_sub(1))
                }
            };
            at = to.filter(|&position| position < expected.len());
            write!(walk, "{step} {} ", target.escape_ascii()).unwrap();
            cursor.status().unwrap();
            let shown = cursor.valid().then(|| {
                let key = cursor.key().to_vec();
                // Asked for sometimes only: a later step must not depend on it.
                let value = self.random.bool().then(|| cursor.value().unwrap().to_vec());
                (key, value)
            });
            let wanted = at.map(|position| expected[position].clone());
            let same = match (&shown, &wanted) {
                (Some((key, value)), Some((wanted_key, wanted_value))) => {
                    key == wanted_key && value.as_ref().is_none_or(|value| value == wanted_value)
                }
                (None, None) => true,
                _ => false,
            };
            assert!(
                same,
                "{walk}at {snapshot} within {bounds:?}: {shown:?}, not {wanted:?}\n{self}"
            );
        }
    }
}

/// More rounds by `MODEL_ROUNDS=4000 cargo test no_snapshot_notices`.
#[test]
fn no_snapshot_notices_a_flush_or_a_compaction() {
    let rounds =
        std::env::var("MODEL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(80);
    for seed in 0..rounds {
        let mut tree = Tree::new(seed);
        for _ in 0..40 {
            tree.step();
            tree.check();
        }
    }
}

/// With no snapshot held, a full compaction leaves only values, all with sequence number 0 but for
/// timed ones over which a range deletion lay.
#[test]
fn a_compaction_to_the_bottom_leaves_nothing_but_values() {
    for seed in 0..100 {
        let mut tree = Tree::new(1_000_000 + seed);
        (0..30).for_each(|_| tree.step());
        tree.snapshots.clear();
        tree.flush();
        let files: Vec<File> = tree
            .level0
            .drain(..)
            .chain(std::mem::take(&mut tree.levels).into_iter().flatten())
            .collect();
        if files.is_empty() {
            continue;
        }
        tree.compact_into(1, files);
        tree.check();
        let expected = tree.expected(tree.last_sequence());
        let entries: Vec<_> = tree.levels[1].iter().flat_map(|file| &file.entries).collect();
        assert_eq!(entries.len(), expected.len(), "{tree}");
        let kinds = [ValueType::Value, ValueType::BlobIndex, ValueType::WideColumnEntity];
        for (key, _) in entries {
            let key = key.as_key();
            let kind = key.value_type().unwrap();
            let is_left = kind == ValueType::ValuePreferredSeqno && tree.has_deleted_ranges();
            assert!(is_left || key.sequence() == 0 && kinds.contains(&kind), "{key:?}\n{tree}");
        }
        assert!(tree.levels[1].iter().all(|file| file.tombstones.is_empty()), "{tree}");
    }
}
