use std::cell::Cell;
use std::sync::Arc;

use super::*;
use crate::base::range_tombstone::RangeTombstone;
use crate::base::{Error, FragmentedRangeTombstones, InternalKeyComparator};
use crate::iter::testing::entry_key;

struct Files(Vec<(InternalKeyBuf, InternalKeyBuf, Option<TruncatedRangeTombstones>)>);

impl SortedFiles for Files {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn smallest(&self, index: usize) -> InternalKey<'_> {
        self.0[index].0.as_key()
    }

    fn largest(&self, index: usize) -> InternalKey<'_> {
        self.0[index].1.as_key()
    }
}

impl LevelTombstones for Files {
    fn tombstones(&self, index: usize) -> Result<Option<TruncatedRangeTombstones>> {
        Ok(self.0[index].2.clone())
    }
}

fn random_key(random: &mut fastrand::Rng) -> InternalKeyBuf {
    entry_key(&[b'a' + random.u8(..5)], random.u64(..6))
}

fn random_tombstones(random: &mut fastrand::Rng) -> Arc<FragmentedRangeTombstones> {
    let tombstones = (0..random.usize(1..4)).map(|_| {
        let mut ends = [b'a' + random.u8(..6), b'a' + random.u8(..6)];
        ends.sort_unstable();
        RangeTombstone { start: vec![ends[0]], end: vec![ends[1]], sequence: random.u64(1..12) }
    });
    Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, tombstones.collect()))
}

/// One file whose tombstones cannot be read at first.
struct Unreadable(Files, Cell<usize>);

impl SortedFiles for Unreadable {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn smallest(&self, index: usize) -> InternalKey<'_> {
        self.0.smallest(index)
    }

    fn largest(&self, index: usize) -> InternalKey<'_> {
        self.0.largest(index)
    }
}

impl LevelTombstones for Unreadable {
    fn tombstones(&self, index: usize) -> Result<Option<TruncatedRangeTombstones>> {
        match self.1.get() {
            0 => self.0.tombstones(index),
            failures => {
                self.1.set(failures - 1);
                Err(Error::incomplete("not open"))
            }
        }
    }
}

/// The failed question had left an answer for all keys, "nothing is deleted", and the next seek of
/// the iterator took it.
#[test]
fn what_could_not_be_read_is_asked_for_again() {
    let whole = vec![RangeTombstone { start: b"a".to_vec(), end: b"z".to_vec(), sequence: 9 }];
    let whole = Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, whole));
    let (smallest, largest) = (entry_key(b"b", 5), entry_key(b"y", 5));
    let cut = whole.truncated(smallest.as_key(), largest.as_key());
    let level = Unreadable(Files(vec![(smallest, largest, Some(cut))]), Cell::new(2));
    let sources = vec![(0, TombstoneSource::Level(Box::new(level)))];
    let mut view = TombstoneView::new(Comparator::Bytewise, 20, sources);
    for key in [b"c", b"m"] {
        let key = entry_key(key, 3);
        view.reset();
        assert!(view.covering(key.as_key(), Towards::Later).is_err());
    }
    view.reset();
    assert_eq!(view.covering(entry_key(b"d", 3).as_key(), Towards::Later).unwrap(), 9);
}

/// Bounds fall within user keys, and questions into the gaps between files.
#[test]
fn a_scan_is_answered_like_single_questions() {
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..2000 {
        let mut all = Vec::new();
        let mut sources = Vec::new();
        for child in 0..random.usize(1..4) {
            if random.bool() {
                let whole = random_tombstones(&mut random).untruncated();
                all.push(whole.clone());
                sources.push((child, TombstoneSource::One(whole)));
                continue;
            }
            let mut ends: Vec<_> =
                (0..2 * random.usize(1..4)).map(|_| random_key(&mut random)).collect();
            ends.sort_by(|a, b| order.compare(a.as_key(), b.as_key()));
            ends.dedup();
            let files = ends.chunks_exact(2).map(|pair| {
                let cut =
                    random_tombstones(&mut random).truncated(pair[0].as_key(), pair[1].as_key());
                let kept = (random.u8(..3) > 0).then_some(cut);
                all.extend(kept.clone());
                (pair[0].clone(), pair[1].clone(), kept)
            });
            sources.push((child, TombstoneSource::Level(Box::new(Files(files.collect())))));
        }
        let snapshot = random.u64(..13);
        let mut view = TombstoneView::new(Comparator::Bytewise, snapshot, sources);
        let mut keys: Vec<_> = (0..20).map(|_| random_key(&mut random)).collect();
        keys.sort_by(|a, b| order.compare(a.as_key(), b.as_key()));
        let mut at = 0;
        for _ in 0..40 {
            let towards = if random.bool() { Towards::Later } else { Towards::Earlier };
            if random.u8(..8) == 0 {
                view.reset();
                at = random.usize(..keys.len());
            }
            at = match towards {
                Towards::Later => (at + random.usize(..3)).min(keys.len() - 1),
                Towards::Earlier => at.saturating_sub(random.usize(..3)),
            };
            let key = keys[at].as_key();
            let expected =
                all.iter().map(|one| one.covering_sequence(key, snapshot)).max().unwrap_or(0);
            assert_eq!(view.covering(key, towards).unwrap(), expected, "{key:?} at {snapshot}");
        }
    }
}
