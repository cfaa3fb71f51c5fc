//! Stories that each kind of memtable lives in each order.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::*;
use super::model::{Model, assert_same, check_against, fill};
use super::{each_table, kinds, new_table};
use crate::base::{
    Comparator, InternalIterator, InternalKeyBuf, InternalKeyComparator, PrefixExtractor, ValueType,
};
use crate::cache::{MemoryAccount, MemoryKind};

/// Under Miri nodes are so small that a few entries make a tree of several levels.
const ROUNDS: u64 = if cfg!(miri) { 60 } else { 3000 };

#[test]
fn random_writes_are_read_back_like_from_a_model() {
    each_table(|table| {
        // Short keys of few bytes: many versions, many prefixes of one another, the empty key.
        let key = |random: &mut fastrand::Rng| -> Vec<u8> {
            (0..random.usize(..5)).map(|_| *random.choice(&[0u8, 1, b'a', 0xff]).unwrap()).collect()
        };
        let model = fill(&table, key, ROUNDS, 1);
        let mut random = fastrand::Rng::with_seed(2);
        let probes: Vec<_> = (0..ROUNDS / 4).map(|_| key(&mut random)).collect();
        check_against(&table, &model, &probes, ROUNDS);
        assert_eq!(table.num_entries(), ROUNDS);
        assert_eq!((table.first_sequence(), table.largest_sequence()), (Some(1), Some(ROUNDS)));
    });
}

#[test]
fn long_shared_prefixes_are_told_apart() {
    each_table(|table| {
        let prefixes: [&[u8]; 4] = [
            b"t\0\0\0\0\0\0\x01_r",
            b"t\0\0\0\0\0\0\x02_r",
            b"a very long prefix, shared by all",
            b"",
        ];
        let key = |random: &mut fastrand::Rng| -> Vec<u8> {
            let mut key = random.choice(prefixes).unwrap().to_vec();
            key.extend_from_slice(&random.u64(..2 * ROUNDS).to_be_bytes()[random.usize(..4)..]);
            key
        };
        let model = fill(&table, key, ROUNDS, 3);
        let mut random = fastrand::Rng::with_seed(4);
        let mut probes: Vec<_> = (0..ROUNDS / 4).map(|_| key(&mut random)).collect();
        probes.extend(prefixes.map(<[u8]>::to_vec));
        probes.extend(model.0.keys().take(50).map(|key| key.0.clone()));
        check_against(&table, &model, &probes, ROUNDS);
    });
}

#[test]
fn writes_in_order_and_in_reverse_order_are_sorted() {
    for ascending in [true, false] {
        each_table(|table| {
            let next = AtomicU64::new(0);
            let key = |_: &mut fastrand::Rng| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                format!("key{:016}", if ascending { n } else { ROUNDS - n }).into_bytes()
            };
            let model = fill(&table, key, ROUNDS, 5);
            let probes: Vec<_> =
                (0..ROUNDS + 2).step_by(7).map(|n| format!("key{n:016}").into_bytes()).collect();
            check_against(&table, &model, &probes, ROUNDS);
        });
    }
}

#[test]
fn keys_of_every_size() {
    each_table(|table| {
        let mut model = Model::default();
        let large = if cfg!(miri) { 1 << 12 } else { 1 << 20 };
        for (sequence, size) in [0, 1, 7, 8, 9, 255, 5000, large, large + 1].into_iter().enumerate()
        {
            let (key, value) = (vec![b'k'; size], vec![b'v'; size]);
            table.add(sequence as u64 + 1, ValueType::Value, &key, &value);
            model.insert(key, sequence as u64 + 1, ValueType::Value, value);
        }
        let probes: Vec<_> = model.0.keys().map(|key| key.0.clone()).collect();
        check_against(&table, &model, &probes, 9);
        assert!(table.memory_usage() as u64 >= table.data_size());
        assert!(table.memory_reserved() >= table.memory_usage());
    });
}

/// Keys of one byte to one megabyte, small ones as likely as large ones, that share any part of a
/// few long keys.
#[test]
fn keys_of_random_sizes_that_share_much() {
    const SIZE_MAX_LOG2: u32 = if cfg!(miri) { 10 } else { 20 };
    let count = if cfg!(miri) { 20 } else { 200 };
    let mut random = fastrand::Rng::with_seed(10);
    let long: Vec<Vec<u8>> = [0, b'a', 0xff]
        .map(|first| {
            let mut key: Vec<u8> = (0..1 << SIZE_MAX_LOG2).map(|_| random.u8(..2)).collect();
            key[..40].fill(first);
            key
        })
        .to_vec();
    let key = |random: &mut fastrand::Rng| -> Vec<u8> {
        let size =
            (1usize << random.u32(..=SIZE_MAX_LOG2)).min(random.usize(1..=1 << SIZE_MAX_LOG2));
        let mut key = random.choice(&long).unwrap()[..size].to_vec();
        if random.bool() {
            let at = size - 1 - random.usize(..size).min(random.usize(..16));
            key[at] = random.u8(..);
        }
        key
    };
    each_table(|table| {
        let model = fill(&table, key, count, 11);
        let mut random = fastrand::Rng::with_seed(12);
        let mut probes: Vec<_> = (0..count / 4).map(|_| key(&mut random)).collect();
        probes.extend(model.0.keys().take(20).map(|key| key.0.clone()));
        check_against(&table, &model, &probes, count);
    });
}

/// What all keys share was found out anew for each of them, in a vector.
#[test]
fn keys_each_of_which_shares_less_with_the_first() {
    let size = if cfg!(miri) { 20 } else { 1000 };
    each_table(|table| {
        let next = AtomicU64::new(0);
        let key = |_: &mut fastrand::Rng| {
            let mut key = vec![b'a'; size];
            if let Some(at) = size.checked_sub(next.fetch_add(1, Ordering::Relaxed) as usize) {
                key[at.min(size - 1)] = b'b';
            }
            key
        };
        let model = fill(&table, key, size as u64, 17);
        let probes: Vec<_> = model.0.keys().step_by(100).map(|key| key.0.clone()).collect();
        check_against(&table, &model, &probes, size as u64);
    });
}

/// Many versions of few keys, read in between: what was sorted before must be told from what came
/// since.
#[test]
fn one_key_again_and_again_read_now_and_then() {
    each_table(|table| {
        let mut model = Model::default();
        let mut random = fastrand::Rng::with_seed(13);
        for sequence in 1..=ROUNDS / 2 {
            let key = random
                .choice([&b"a long key, the same"[..], b"a long key, the same\0", b"", b"z"])
                .unwrap();
            table.add(sequence, ValueType::Value, key, &sequence.to_le_bytes());
            model.insert(key.to_vec(), sequence, ValueType::Value, sequence.to_le_bytes().to_vec());
            if random.u64(..ROUNDS / 20) == 0 {
                check_against(&table, &model, &[key.to_vec(), b"b".to_vec()], sequence);
            }
        }
        let probes: Vec<_> = model.0.keys().step_by(10).map(|key| key.0.clone()).collect();
        check_against(&table, &model, &probes, ROUNDS / 2);
    });
}

/// Within its prefix, a prefix cursor shows what a cursor shows; unless it is confined to a prefix,
/// everywhere.
#[test]
fn a_prefix_cursor_shows_all_of_a_prefix() {
    for kind in kinds() {
        let extractor = match &kind {
            MemTableKind::PrefixHash { extractor, .. } => extractor.clone(),
            _ => PrefixExtractor::FixedPrefix(2),
        };
        for comparator in [Comparator::Bytewise, Comparator::ReverseBytewise] {
            let key = |random: &mut fastrand::Rng| -> Vec<u8> {
                (0..random.usize(1..6))
                    .map(|_| *random.choice(&[0u8, b'a', b'b', 0xff]).unwrap())
                    .collect()
            };
            let prefixes = Some(extractor.clone());
            let filter = MemTableFilterSettings { bytes: 4096, whole_keys: true, prefixes };
            for filter in [None, Some(filter)] {
                let table = new_table(kind.clone(), comparator.clone(), filter);
                let model = fill(&table, key, ROUNDS, 14);
                check_prefix_cursor(&table, &model, key, |key| {
                    extractor.prefix(key).map(<[u8]>::to_vec)
                });
            }
        }
    }
}

fn check_prefix_cursor(
    table: &MemTable,
    model: &Model,
    key: impl Fn(&mut fastrand::Rng) -> Vec<u8>,
    prefix_of: impl Fn(&[u8]) -> Option<Vec<u8>>,
) {
    let (mut some, mut all) = (table.prefix_iter(), table.iter());
    let mut random = fastrand::Rng::with_seed(15);
    for _ in 0..ROUNDS / 4 {
        let (sought, forward, confined) = (key(&mut random), random.bool(), random.bool());
        some.confine(confined);
        let target = InternalKeyBuf::for_seek(&sought, random.u64(..ROUNDS));
        for cursor in [&mut some, &mut all] {
            if forward {
                cursor.seek(target.as_key())
            } else {
                cursor.seek_for_prev(target.as_key())
            }
        }
        let prefix = prefix_of(&sought).filter(|_| confined);
        // Without a prefix there is nothing to stay in.
        let is_within = |cursor: &MemTableIterator| {
            cursor.valid() && (prefix.is_none() || prefix_of(cursor.key().user_key()) == prefix)
        };
        for _ in 0..20 {
            assert_eq!(is_within(&some), is_within(&all), "{sought:?}");
            if !is_within(&all) {
                break;
            }
            assert_eq!((some.key(), some.value()), (all.key(), all.value()), "{sought:?}");
            for cursor in [&mut some, &mut all] {
                if forward { cursor.next() } else { cursor.prev() }
            }
        }
    }
    some.seek_to_first();
    assert_same(&some, model.sorted(table.comparator()).first());
    some.seek_to_last();
    assert_same(&some, model.sorted(table.comparator()).last());
}

#[test]
fn an_empty_memtable_has_nothing() {
    each_table(|table| {
        assert!(table.is_empty() && table.range_tombstones(100).is_empty());
        assert_eq!((table.first_sequence(), table.largest_sequence()), (None, None));
        check_against(&table, &Model::default(), &[b"".to_vec(), b"a".to_vec()], 1);
        assert_eq!(table.approximate_count(b"", b"z"), 0);
    });
}

#[test]
fn a_visit_ends_when_it_has_seen_enough() {
    each_table(|table| {
        for sequence in 1..=3 {
            table.add(sequence, ValueType::Merge, b"k", &[sequence as u8]);
        }
        let mut seen = Vec::new();
        table
            .get(b"k", 2, |sequence, _, _| {
                seen.push(sequence);
                ControlFlow::Break(())
            })
            .expect("no checksums");
        assert_eq!(seen, [2]);
    });
}

#[test]
fn a_range_deletion_is_seen_by_all_who_ask_after_it() {
    each_table(|table| {
        let reverse = table.comparator().user.compare(b"a", b"b").is_gt();
        let (start, end): (&[u8], &[u8]) = if reverse { (b"c", b"a") } else { (b"a", b"c") };
        table.add(1, ValueType::Value, b"b", b"x");
        for sequence in 2..5 {
            table.add(sequence, ValueType::RangeDeletion, start, end);
            assert_eq!(table.covering_sequence(b"b", 100), sequence);
            let parts = table.range_tombstones(100);
            assert_eq!(
                parts.iter().map(|part| part.covering_sequence(b"b", 100)).max(),
                Some(sequence)
            );
        }
        assert_eq!((table.num_entries(), table.num_range_tombstones()), (1, 3));
        assert_eq!(table.largest_sequence(), Some(4));
    });
}

#[test]
fn random_range_deletions_cover_what_they_should() {
    each_table(|table| {
        let mut random = fastrand::Rng::with_seed(16);
        let key = |random: &mut fastrand::Rng| vec![b'a' + random.u8(..6); random.usize(1..4)];
        let mut deletions = Vec::new();
        for sequence in 1..=ROUNDS / 30 {
            let (start, end) = (key(&mut random), key(&mut random));
            table.add(sequence, ValueType::Value, &start, b"");
            if table.comparator().user.compare(&start, &end).is_lt() {
                table.add_range_tombstone(sequence, &start, &end);
                deletions.push((sequence, start, end));
            }
            let (probe, snapshot) = (key(&mut random), random.u64(..=sequence));
            let order = |a: &[u8], b: &[u8]| table.comparator().user.compare(a, b);
            let covers = |(deleted, start, end): &&(u64, Vec<u8>, Vec<u8>)| {
                *deleted <= snapshot && order(start, &probe).is_le() && order(&probe, end).is_lt()
            };
            let expected =
                deletions.iter().rev().find(covers).map_or(0, |(sequence, ..)| *sequence);
            let found = table.covering_sequence(&probe, snapshot);
            let parts = table.range_tombstones(snapshot);
            assert_eq!(
                parts
                    .iter()
                    .map(|part| part.covering_sequence(&probe, snapshot))
                    .max()
                    .unwrap_or(0),
                found
            );
            assert_eq!(found, expected, "{probe:?}@{snapshot}");
        }
    });
}

#[test]
fn counts_of_ranges_are_about_right() {
    each_table(|table| {
        if !table.comparator().user.is_bytewise() {
            return;
        }
        let mut random = fastrand::Rng::with_seed(6);
        for sequence in 1..=ROUNDS {
            table.add(sequence, ValueType::Value, &random.u64(..).to_be_bytes(), b"");
        }
        let half = table.approximate_count(&[0x40], &[0xc0]);
        assert!((ROUNDS / 6..ROUNDS).contains(&half), "{half} of {ROUNDS}");
        assert_eq!(table.approximate_count(&[0xc0], &[0x40]), 0);
    });
}

/// Neither the buckets of a memtable by prefixes were in the account, which an empty one had
/// already, nor what was sorted of one that sorts when it is read.
#[test]
fn what_a_memtable_takes_is_in_the_account() {
    for kind in kinds() {
        let account = Arc::new(MemoryAccount::default());
        let arena_pool = Some(Arc::new(ArenaPool::accounted(0, account.clone())));
        let settings =
            MemTableSettings { kind: kind.clone(), arena_pool, ..MemTableSettings::default() };
        let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
        assert!(table.memory_reserved() <= 4096, "{kind:?}");
        for sequence in 1..=ROUNDS {
            table.add(sequence, ValueType::Value, &sequence.to_be_bytes(), b"");
        }
        table.iter().seek_to_first();
        assert_eq!(account.held(MemoryKind::Memtables), table.memory_reserved(), "{kind:?}");
        drop(table);
        assert_eq!(account.held(MemoryKind::Memtables), 0, "{kind:?}");
    }
}

#[test]
fn a_cursor_outlives_its_memtable() {
    each_table(|table| {
        table.add(1, ValueType::Value, b"k", b"v");
        let mut cursor = table.iter();
        drop(table);
        cursor.seek_to_first();
        assert_eq!((cursor.key().user_key(), cursor.value()), (&b"k"[..], &b"v"[..]));
    });
}
