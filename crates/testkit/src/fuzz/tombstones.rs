//! Fragmenting range tombstones, against the plain meaning of each.

use std::sync::Arc;

use flagstone::base::{
    Comparator, FragmentedRangeTombstones, InternalKey, InternalKeyBuf, RangeTombstone, ValueType,
};

use super::input::Input;

const KEY_LENGTH_MAX: usize = 2;

/// What covers a place according to the tombstones as they came.
fn plain(tombstones: &[RangeTombstone], key: &[u8], snapshot: u64) -> u64 {
    let covers = |t: &&RangeTombstone| *t.start <= *key && *key < *t.end && t.sequence <= snapshot;
    tombstones.iter().filter(covers).map(|t| t.sequence).max().unwrap_or(0)
}

/// Fragments tombstones over a small alphabet and asks for every key.
pub fn range_tombstones(data: &[u8]) {
    let mut input = Input::new(data);
    let [low, high] = [(); 2].map(|()| key(&mut input));
    let bounds = [u64::from(input.u8() % 32) + 1, u64::from(input.u8() % 32) + 1];
    let mut snapshots: Vec<u64> = (0..3).map(|_| u64::from(input.u8() % 40)).collect();
    snapshots.sort_unstable();
    let mut tombstones = Vec::new();
    while !input.is_empty() && tombstones.len() < 64 {
        let (start, end) = (key(&mut input), key(&mut input));
        tombstones.push(RangeTombstone { start, end, sequence: u64::from(input.u8() % 32) + 1 });
    }
    let fragmented =
        Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, tombstones.clone()));
    let written = fragmented.for_writing(&snapshots);
    let rewritten = FragmentedRangeTombstones::new(&Comparator::Bytewise, written);
    for key in keys() {
        for snapshot in 0..34 {
            assert_eq!(
                fragmented.covering_sequence(&key, snapshot),
                plain(&tombstones, &key, snapshot)
            );
        }
        for &snapshot in snapshots.iter().chain([&u64::MAX]) {
            let expected = plain(&tombstones, &key, snapshot);
            assert_eq!(rewritten.covering_sequence(&key, snapshot), expected, "{snapshots:?}");
        }
    }
    let bounds = [(&low, bounds[0]), (&high, bounds[1])]
        .map(|(key, sequence)| InternalKeyBuf::new(key, sequence, ValueType::Value));
    if low < high {
        check_truncated(&fragmented, bounds[0].as_key(), bounds[1].as_key());
    }
}

/// Inside its bounds a truncated list means what it meant before; outside it covers nothing.
fn check_truncated(
    fragmented: &Arc<FragmentedRangeTombstones>,
    smallest: InternalKey<'_>,
    largest: InternalKey<'_>,
) {
    let truncated = fragmented.truncated(smallest, largest);
    for user_key in keys() {
        let place = InternalKeyBuf::new(&user_key, 40, ValueType::Value);
        let found = truncated.covering_sequence(place.as_key(), 40);
        let expected = fragmented.covering_sequence(&user_key, 40);
        let inside = smallest.user_key() < &*user_key && &*user_key < largest.user_key();
        if inside {
            assert_eq!(found, expected);
        }
        assert!(found == 0 || found == expected);
        if &*user_key < smallest.user_key() || &*user_key > largest.user_key() {
            assert_eq!(found, 0);
        }
    }
}

fn key(input: &mut Input<'_>) -> Vec<u8> {
    let shape = input.u8();
    let length = usize::from(shape >> 6).min(KEY_LENGTH_MAX);
    [shape & 3, shape >> 3 & 3][..length].iter().map(|digit| b'a' + digit).collect()
}

fn keys() -> impl Iterator<Item = Vec<u8>> {
    let letters = b'a'..b'e';
    let one = letters.clone().map(|letter| vec![letter]);
    let two = letters.flat_map(|a| (b'a'..b'e').map(move |b| vec![a, b]));
    std::iter::once(Vec::new()).chain(one).chain(two)
}
