//! Searches of one block against a sorted list, over many shapes of keys.

use std::cmp::Ordering;
use std::sync::Arc;

use super::*;
use crate::base::{
    Comparator, InternalKeyBuf, InternalKeyComparator, MAX_SEQUENCE_NUMBER, UserComparator,
    ValueType,
};

type Shape = fn(&mut fastrand::Rng) -> Vec<u8>;

const SHAPES: [(&str, Shape); 8] = [
    ("numbers", |random| (random.u64(..3000) * 7).to_be_bytes().to_vec()),
    ("decimal numbers of any length", |random| format!("user{}", random.u32(..2000)).into_bytes()),
    ("one byte", |random| vec![random.u8(..)]),
    ("prefixes of one another", |random| b"abababababab"[..random.usize(..=12)].to_vec()),
    ("few letters", |random| {
        (0..random.usize(..7)).map(|_| [0, 1, b'a', 0xff][random.usize(..4)]).collect()
    }),
    ("long common prefix", |random| {
        format!("{}{:05}", "/a/long/way/to/go".repeat(4), random.u32(..9000)).into_bytes()
    }),
    ("two groups", |random| {
        format!("{}/{:06}", ["apple", "orange"][random.usize(..2)], random.u32(..900)).into_bytes()
    }),
    ("anything", |random| (0..random.usize(..30)).map(|_| random.u8(..)).collect()),
];

/// Entries of one block in order, few of them with several versions.
fn entries(shape: Shape, count: usize, random: &mut fastrand::Rng) -> Vec<InternalKeyBuf> {
    let sequence = |random: &mut fastrand::Rng| {
        [0, 1, 255, 256, 257, random.u64(..1 << 40)][random.usize(..6)]
    };
    let mut keys: Vec<_> = (0..count)
        .map(|_| InternalKeyBuf::new(&shape(random), sequence(random), ValueType::Value))
        .collect();
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    keys.sort_by(|a, b| order.compare(a.as_key(), b.as_key()));
    keys.dedup();
    keys
}

fn block(keys: &[InternalKeyBuf], restart_interval: usize, hash_ratio: Option<f64>) -> Block {
    let mut builder = BlockBuilder::new(restart_interval, hash_ratio);
    for key in keys {
        builder.add(key.as_bytes(), key.user_key());
    }
    Block::new(builder.finish()).unwrap()
}

#[test]
fn a_block_is_searched_as_a_sorted_list_is() {
    let mut random = fastrand::Rng::with_seed(11);
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    for round in 0..30 {
        for (name, shape) in SHAPES {
            let keys = entries(shape, [1, 5, 23, 25, 36, 49, 300, 900][round % 8], &mut random);
            let block = block(&keys, [1, 2, 16, 1000][round % 4], (round % 3 == 0).then_some(0.75));
            let few = Block::with_guide_room(block.data(), GuideRoom::Few).unwrap();
            let mut iter = BlockIter::new(block.clone(), Comparator::Bytewise, None);
            for step in 0..200 {
                let near = keys[random.usize(..keys.len())].user_key().to_vec();
                let wanted = if step % 2 == 0 { near } else { shape(&mut random) };
                let newest = [0, 255, 256, MAX_SEQUENCE_NUMBER][random.usize(..4)];
                let target = InternalKeyBuf::for_seek(&wanted, newest);
                let at = keys
                    .partition_point(|key| order.compare(key.as_key(), target.as_key()).is_lt());
                let context = || format!("{name}: {target:?} among {keys:?}");
                iter.seek(target.as_key());
                let found = iter.valid().then(|| iter.key().to_buf());
                assert_eq!(found.as_ref(), keys.get(at), "{}", context());
                // By its guide, if it can have one, by a smaller one, and as one that nobody has
                // searched.
                for block in [&block, &few, &Block::new(block.data()).unwrap()] {
                    match block.find(target.as_key()) {
                        None => {}
                        Some(Found::Absent) => {
                            assert!(keys[at].user_key() > &wanted[..], "{}", context())
                        }
                        Some(Found::Beyond) => assert_eq!(at, keys.len(), "{}", context()),
                        Some(Found::Entry { sequence, value_type, value, offset, shared }) => {
                            let key = InternalKeyBuf::new(&wanted, sequence, value_type);
                            assert_eq!(Some(&key), keys.get(at), "{}", context());
                            assert_eq!(value.bytes(), wanted, "{}", context());
                            iter.move_to(offset, shared, target.as_key());
                            assert_eq!(iter.key(), key.as_key());
                            iter.next();
                            let next = iter.valid().then(|| iter.key().to_buf());
                            assert_eq!(next.as_ref(), keys.get(at + 1), "{}", context());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn plain_keys_are_found_without_a_cursor() {
    let mut random = fastrand::Rng::with_seed(3);
    for shape in [0, 1, 5] {
        let keys = entries(SHAPES[shape].1, 36, &mut random);
        let newest: Vec<_> = keys
            .iter()
            .map(|key| InternalKeyBuf::for_seek(key.user_key(), MAX_SEQUENCE_NUMBER))
            .collect();
        let block = block(&keys, 16, None);
        let found = newest
            .iter()
            .filter(|key| matches!(block.find(key.as_key()), Some(Found::Entry { .. })));
        assert!(found.count() * 10 > keys.len() * 8, "{}", SHAPES[shape].0);
    }
}

/// Bytes changed at random: whatever is found, nothing panics, and a walk ends.
#[test]
fn damaged_blocks_are_searched_without_panic() {
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..3000 {
        let shape = SHAPES[round % SHAPES.len()].1;
        let keys = entries(shape, 30, &mut random);
        let mut bytes = block(&keys, 4, (round % 2 == 0).then_some(0.75)).data().to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        let Ok(block) = Block::new(&bytes) else { continue };
        let mut iter = BlockIter::new(block.clone(), Comparator::Bytewise, None);
        for _ in 0..10 {
            let target = InternalKeyBuf::for_seek(&shape(&mut random), MAX_SEQUENCE_NUMBER);
            let _ = block.find(target.as_key());
            iter.seek_for_get(target.as_key());
            while iter.valid() {
                iter.next();
            }
        }
    }
}

/// Places in a guide have two bytes: the largest block that has one is searched as the next larger
/// one.
#[test]
fn blocks_are_searched_whatever_their_size() {
    let key = |n: u32| InternalKeyBuf::for_seek(&n.to_be_bytes(), MAX_SEQUENCE_NUMBER);
    let stored = |n: u32| InternalKeyBuf::new(&n.to_be_bytes(), 7, ValueType::Value);
    for size in 65_400..65_700usize {
        let mut builder = BlockBuilder::new(16, None);
        for n in 0..4 {
            let value = vec![n as u8; if n == 0 { size } else { 40 }];
            builder.add(stored(n).as_bytes(), &value);
        }
        let block = Block::new(builder.finish()).unwrap();
        for n in 0..4 {
            let mut iter = BlockIter::new(block.clone(), Comparator::Bytewise, None);
            iter.seek(key(n).as_key());
            assert!(
                iter.valid() && iter.key() == stored(n).as_key() && iter.value()[0] == n as u8,
                "{size} {n}"
            );
            match block.find(key(n).as_key()) {
                Some(Found::Entry { value, .. }) => assert_eq!(value.bytes()[0], n as u8, "{size}"),
                found => assert!(found.is_none(), "{size} {n}: {found:?}"),
            }
        }
    }
}

#[test]
fn the_guide_of_few_entries_knows_where_they_start() {
    let cases = [
        (1, true),
        (5, true),
        (8, true),
        (9, true),
        (11, true),
        (12, false),
        (40, false),
        (200, false),
    ];
    let rooms = [GuideRoom::Few, GuideRoom::Many];
    for ((count, is_few), room) in cases.into_iter().flat_map(|case| rooms.map(|room| (case, room)))
    {
        let is_few = is_few && (count <= 8 || room == GuideRoom::Many);
        let key = |n| InternalKeyBuf::new(format!("key{n:05}").as_bytes(), 7, ValueType::Value);
        let keys: Vec<_> = (0..count).map(key).collect();
        let block = Block::with_guide_room(block(&keys, 16, None).data(), room).unwrap();
        assert!(
            block.guide_for_search().is_none(),
            "it is made when it is searched for the second time"
        );
        assert!(!block.prefetch_few_before(usize::MAX));
        let guide = block.guide_for_search().expect("such keys can be told apart");
        let Some(places) = guide.few_places() else {
            assert!(!is_few, "{count} entries are few");
            continue;
        };
        let mut iter = BlockIter::new(block.clone(), Comparator::Bytewise, None);
        iter.seek_to_first();
        let mut starts = Vec::new();
        while iter.valid() {
            starts.push(iter.value_ref().end as usize);
            iter.next();
        }
        assert!(is_few, "{count} entries are many");
        assert_eq!(places.collect::<Vec<_>>(), starts, "each starts where the value before ends");
        assert!(block.prefetch_few_before(0));
    }
}

/// Room for 24 marks stood before each block of four entries, a 25th of its memory.
#[test]
fn a_block_has_no_more_room_for_its_guide_than_blocks_of_its_table_want() {
    let room = |entries, blocks| GuideRoom::of_table(entries, blocks);
    assert_eq!((room(4000, 1000), room(8000, 1000)), (GuideRoom::Few, GuideRoom::Few));
    assert_eq!((room(8001, 1000), room(1, 0)), (GuideRoom::Many, GuideRoom::Many));
    let bytes =
        block(&[InternalKeyBuf::new(&[b'k'; 4000], 7, ValueType::Value)], 16, None).data().to_vec();
    let [none, few, many] = [GuideRoom::None, GuideRoom::Few, GuideRoom::Many]
        .map(|room| Block::with_guide_room(&bytes, room).unwrap());
    for block in [&none, &few, &many] {
        let target = InternalKeyBuf::for_seek(&[b'k'; 4000], MAX_SEQUENCE_NUMBER);
        (0..3).for_each(|_| {
            assert!(matches!(block.find(target.as_key()), Some(Found::Entry { .. })))
        });
    }
    assert!(none.guide().is_none() && few.guide().is_some() && many.guide().is_some());
    assert!(few.memory_usage() < many.memory_usage());
}

/// An order in which keys of other bytes are the same.
struct CaseBlind;

impl UserComparator for CaseBlind {
    fn name(&self) -> &str {
        "case blind"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

fn random_order(random: &mut fastrand::Rng) -> Comparator {
    let orders = [
        Comparator::Bytewise,
        Comparator::ReverseBytewise,
        Comparator::Custom(Arc::new(CaseBlind)),
    ];
    random.choice(orders).unwrap()
}

/// Steps and seeks by turns, in any order, also with a sequence number that holds for all entries.
#[test]
fn a_cursor_moves_as_in_a_sorted_list() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let user = random_order(&mut random);
        let order = InternalKeyComparator::new(user.clone());
        let (name, shape) = random.choice(SHAPES).unwrap();
        let global = random.bool().then(|| random.u64(1..1 << 50));
        let mut stored = entries(shape, random.usize(1..120), &mut random);
        if global.is_some() {
            stored.iter_mut().for_each(|key| key.set_version(0, ValueType::Value));
        }
        stored.sort_by(|a, b| order.compare(a.as_key(), b.as_key()));
        stored.dedup_by(|a, b| order.compare(a.as_key(), b.as_key()).is_eq());
        let mut shown = stored.clone();
        if let Some(global) = global {
            shown.iter_mut().for_each(|key| key.set_version(global, ValueType::Value));
        }
        let block = block(&stored, random.choice([1, 2, 3, 16, 1000]).unwrap(), None);
        let mut iter = BlockIter::new(block, user, global);
        let mut at: Option<usize> = None;
        for step in 0..200 {
            let wanted = if random.bool() {
                shape(&mut random)
            } else {
                random.choice(&shown).unwrap().user_key().to_vec()
            };
            let sequence =
                random.choice([0, 255, 256, MAX_SEQUENCE_NUMBER, global.unwrap_or(7)]).unwrap();
            let target = InternalKeyBuf::new(&wanted, sequence, ValueType::Value);
            let upto = |reach: Ordering| {
                shown.partition_point(|key| order.compare(key.as_key(), target.as_key()) <= reach)
            };
            at = match (random.u8(..8), at) {
                (0, _) => {
                    iter.seek_to_first();
                    Some(0)
                }
                (1, _) => {
                    iter.seek_to_last();
                    Some(shown.len() - 1)
                }
                (2, _) => {
                    iter.seek(target.as_key());
                    Some(upto(Ordering::Less))
                }
                (3, _) => {
                    iter.seek_for_prev(target.as_key());
                    upto(Ordering::Equal).checked_sub(1)
                }
                (4 | 5, Some(here)) => {
                    iter.next();
                    Some(here + 1)
                }
                (_, Some(here)) => {
                    iter.prev();
                    here.checked_sub(1)
                }
                (_, None) => None,
            };
            at = at.filter(|&at| at < shown.len());
            let found = iter.valid().then(|| iter.key().to_buf());
            assert_eq!(found.as_ref(), at.map(|at| &shown[at]), "seed {seed}, step {step}: {name}");
            iter.status().unwrap();
        }
    }
}
