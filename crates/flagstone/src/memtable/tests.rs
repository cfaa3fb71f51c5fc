//! What every kind of memtable must do, and what happens when it is read while it is written.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::base::{
    Comparator, InternalIterator, InternalKeyBuf, InternalKeyComparator, SequenceNumber, UserComparator,
    ValueType,
};

const KINDS: [MemTableKind; 2] = [MemTableKind::BTree, MemTableKind::SkipList];

/// Orders by length, then bytes: no number of leading bytes may be trusted.
struct ByLength;

impl UserComparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

fn comparators() -> [Comparator; 3] {
    [Comparator::Bytewise, Comparator::ReverseBytewise, Comparator::Custom(Arc::new(ByLength))]
}

/// A memtable of each kind in each order.
fn each_table(check: impl Fn(MemTable)) {
    for kind in KINDS {
        for comparator in comparators() {
            if kind == MemTableKind::BTree && !comparator.is_bytewise() {
                // It would be a skip list once more.
                continue;
            }
            let settings = MemTableSettings { kind, ..MemTableSettings::default() };
            check(MemTable::new(InternalKeyComparator::new(comparator), &settings));
        }
    }
}

type Version = (SequenceNumber, ValueType, Vec<u8>);

fn versions(table: &MemTable, key: &[u8], snapshot: SequenceNumber) -> Vec<Version> {
    let mut seen = Vec::new();
    table.get(key, snapshot, |sequence, value_type, value| {
        seen.push((sequence, value_type, value.to_vec()));
        ControlFlow::Continue(())
    });
    seen
}

/// Keys, newest first within one.
type ModelKey = (Vec<u8>, std::cmp::Reverse<SequenceNumber>);

#[derive(Default)]
struct Model(BTreeMap<ModelKey, Content>);

#[derive(Clone)]
struct Content {
    value_type: ValueType,
    value: Vec<u8>,
}

impl Model {
    fn insert(&mut self, key: Vec<u8>, sequence: SequenceNumber, value_type: ValueType, value: Vec<u8>) {
        self.0.insert((key, std::cmp::Reverse(sequence)), Content { value_type, value });
    }

    fn sorted(&self, order: &InternalKeyComparator) -> Vec<(InternalKeyBuf, Vec<u8>)> {
        let entries = self.0.iter().map(|((key, sequence), content)| {
            (InternalKeyBuf::new(key, sequence.0, content.value_type), content.value.clone())
        });
        let mut all: Vec<_> = entries.collect();
        all.sort_by(|a, b| order.compare(a.0.as_key(), b.0.as_key()));
        all
    }

    fn versions(&self, key: &[u8], snapshot: SequenceNumber) -> Vec<Version> {
        let from = (key.to_vec(), std::cmp::Reverse(snapshot));
        let to = (key.to_vec(), std::cmp::Reverse(0));
        let found = self.0.range(from..=to);
        found
            .map(|((_, sequence), content)| (sequence.0, content.value_type, content.value.clone()))
            .collect()
    }
}

fn fill(table: &MemTable, keys: impl Fn(&mut fastrand::Rng) -> Vec<u8>, count: u64, seed: u64) -> Model {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    for sequence in 1..=count {
        let key = keys(&mut random);
        let value_type = random.choice([ValueType::Value, ValueType::Deletion, ValueType::Merge]).unwrap();
        let value =
            if value_type == ValueType::Deletion { vec![] } else { vec![random.u8(..); random.usize(..40)] };
        table.add(sequence, value_type, &key, &value);
        model.insert(key, sequence, value_type, value);
    }
    model
}

fn assert_same(cursor: &MemTableIterator, expected: Option<&(InternalKeyBuf, Vec<u8>)>) {
    let found = cursor.valid().then(|| (cursor.key().to_buf(), cursor.value().to_vec()));
    assert_eq!(found.as_ref(), expected);
}

/// Walks, seeks and looks up everything, and compares with the model.
fn check_against(table: &MemTable, model: &Model, probes: &[Vec<u8>], last: SequenceNumber) {
    let sorted = model.sorted(table.comparator());
    let mut cursor = table.iter();
    cursor.seek_to_first();
    for entry in &sorted {
        assert_same(&cursor, Some(entry));
        cursor.next();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last();
    for entry in sorted.iter().rev() {
        assert_same(&cursor, Some(entry));
        cursor.prev();
    }
    assert!(!cursor.valid());
    let mut random = fastrand::Rng::with_seed(7);
    for probe in probes {
        let snapshot = random.u64(0..=last + 1);
        assert_eq!(versions(table, probe, snapshot), model.versions(probe, snapshot), "{probe:?}@{snapshot}");
        let target = InternalKeyBuf::for_seek(probe, snapshot);
        let order =
            |entry: &(InternalKeyBuf, Vec<u8>)| table.comparator().compare(entry.0.as_key(), target.as_key());
        let at = sorted.partition_point(|entry| order(entry).is_lt());
        cursor.seek(target.as_key());
        assert_same(&cursor, sorted.get(at));
        if cursor.valid() {
            cursor.next();
            assert_same(&cursor, sorted.get(at + 1));
        }
        cursor.seek_for_prev(target.as_key());
        assert_same(&cursor, at.checked_sub(1).map(|before| &sorted[before]));
        if let Some(entry) = sorted.get(at) {
            cursor.seek_for_prev(entry.0.as_key());
            assert_same(&cursor, Some(entry));
            cursor.prev();
            assert_same(&cursor, at.checked_sub(1).map(|before| &sorted[before]));
        }
    }
}

const ROUNDS: u64 = if cfg!(miri) { 150 } else { 3000 };

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
        let prefixes: [&[u8]; 4] =
            [b"t\0\0\0\0\0\0\x01_r", b"t\0\0\0\0\0\0\x02_r", b"a very long prefix, shared by all", b""];
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
        for (sequence, size) in [0, 1, 7, 8, 9, 255, 5000, large, large + 1].into_iter().enumerate() {
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

#[test]
fn an_empty_memtable_has_nothing() {
    each_table(|table| {
        assert!(table.is_empty() && table.range_tombstones().is_none());
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
        table.get(b"k", 2, |sequence, _, _| {
            seen.push(sequence);
            ControlFlow::Break(())
        });
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
            let tombstones = table.range_tombstones().unwrap();
            assert_eq!(tombstones.covering_sequence(b"b", 100), sequence);
            assert!(Arc::ptr_eq(&tombstones, &table.range_tombstones().unwrap()));
        }
        assert_eq!((table.num_entries(), table.num_range_tombstones()), (1, 3));
        assert_eq!(table.largest_sequence(), Some(4));
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

/// Sequences of writes of different shapes, all told by the number of the write.
#[derive(Clone, Copy)]
enum Shape {
    Scattered,
    LongPrefix,
    Ascending,
    Descending,
    /// A few keys over and over.
    Hot,
}

const SHAPES: [Shape; 5] =
    [Shape::Scattered, Shape::LongPrefix, Shape::Ascending, Shape::Descending, Shape::Hot];
const HOT_KEYS: u64 = 50;

impl Shape {
    /// The key of the nth write.
    fn key(self, n: u64) -> Vec<u8> {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self {
            Self::Scattered => mixed.to_be_bytes().to_vec(),
            Self::LongPrefix => format!("a long and common prefix {mixed:020}").into_bytes(),
            Self::Ascending => format!("{n:016}").into_bytes(),
            Self::Descending => format!("{:016}", u64::from(u32::MAX) - n).into_bytes(),
            Self::Hot => format!("hot key {}", n % HOT_KEYS).into_bytes(),
        }
    }

    /// The last write of the first `last` to the same key as the nth.
    fn newest(self, n: u64, last: u64) -> u64 {
        match self {
            Self::Hot => last - (last - n) % HOT_KEYS,
            _ => n,
        }
    }
}

/// Everything published must be found; what is found must be whole.
fn read_while_written(table: &MemTable, published: &AtomicU64, total: u64, shape: Shape, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cursor = table.iter();
    loop {
        let last = published.load(Ordering::Acquire);
        for _ in 0..20 {
            let Some(n) = last.checked_sub(1).map(|newest| 1 + random.u64(0..=newest)) else { break };
            let (key, newest) = (shape.key(n), shape.newest(n, last));
            let mut found = None;
            table.get(&key, last, |sequence, value_type, value| {
                found = Some((sequence, value_type, value.to_vec()));
                ControlFlow::Break(())
            });
            assert_eq!(found, Some((newest, ValueType::Value, key.clone())), "{n} of {last}");
            cursor.seek(InternalKeyBuf::for_seek(&key, last).as_key());
            assert_eq!((cursor.key().user_key(), cursor.key().sequence()), (&key[..], newest));
            cursor.seek_for_prev(InternalKeyBuf::new(&key, n, ValueType::Value).as_key());
            assert_eq!((cursor.key().user_key(), cursor.key().sequence()), (&key[..], n));
        }
        if random.u64(..8 + last / 500) == 0 {
            check_walk(table, &mut cursor, last, random.bool());
        }
        if last == total {
            return;
        }
    }
}

/// A walk in either direction is ordered and meets every entry published before it began.
fn check_walk(table: &MemTable, cursor: &mut MemTableIterator, last: SequenceNumber, forward: bool) {
    if forward {
        cursor.seek_to_first()
    } else {
        cursor.seek_to_last()
    }
    let (mut met, mut before) = (0, None::<InternalKeyBuf>);
    while cursor.valid() {
        let key = cursor.key();
        assert_eq!(key.user_key(), cursor.value());
        met += u64::from(key.sequence() <= last);
        if let Some(before) = &before {
            let order = table.comparator().compare(before.as_key(), key);
            assert!(if forward { order.is_lt() } else { order.is_gt() }, "{before:?} {key:?}");
        }
        before.get_or_insert_with(|| key.to_buf()).set_from(key);
        if forward { cursor.next() } else { cursor.prev() }
    }
    assert_eq!(met, last);
}

/// One thread writes `total` entries, pausing now and then; two read.
fn write_and_read(total: u64) {
    for shape in SHAPES {
        each_table(|table| {
            let published = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for seed in 0..2 {
                    let (table, published) = (&table, &published);
                    scope.spawn(move || read_while_written(table, published, total, shape, seed));
                }
                for sequence in 1..=total {
                    let key = shape.key(sequence);
                    table.add(sequence, ValueType::Value, &key, &key);
                    published.store(sequence, Ordering::Release);
                    if sequence % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        });
    }
}

#[test]
fn readers_see_all_that_was_published_before() {
    write_and_read(if cfg!(miri) { 24 } else { 3000 });
}

/// So short that Miri can try many interleavings and orders of memory (`scripts/miri.sh`). Each memtable lies in the memory
/// of the one before, which another thread may have dropped.
#[test]
fn short_races() {
    const TOTAL: u64 = 9;
    let arena_pool = Arc::new(ArenaPool::new(1 << 16));
    for (kind, shape) in
        KINDS.into_iter().flat_map(|kind| [(kind, Shape::Scattered), (kind, Shape::LongPrefix)])
    {
        let settings =
            MemTableSettings { kind, arena_block_size: 4096, arena_pool: Some(Arc::clone(&arena_pool)) };
        let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
        let shared = Arc::new((table, AtomicU64::new(0)));
        std::thread::scope(|scope| {
            for reader in 0..2 {
                let shared = Arc::clone(&shared);
                scope.spawn(move || read_briefly(&shared.0, &shared.1, shape, reader == 0));
            }
            let (table, published) = &*shared;
            for sequence in 1..=TOTAL {
                let key = shape.key(sequence);
                table.add(sequence, ValueType::Value, &key, &key);
                if sequence % 4 == 0 {
                    table.add_range_tombstone(sequence, b"a", b"b");
                }
                published.store(sequence, Ordering::Release);
            }
        });
    }
}

fn read_briefly(table: &MemTable, published: &AtomicU64, shape: Shape, forward: bool) {
    let mut cursor = table.iter();
    for _ in 0..2 {
        let last = published.load(Ordering::Acquire);
        if last > 0 {
            let key = shape.key(last);
            let mut found = None;
            table.get(&key, last, |sequence, _, value| {
                found = Some((sequence, value.to_vec()));
                ControlFlow::Break(())
            });
            assert_eq!(found, Some((last, key)));
        }
        let covering = table.range_tombstones().map_or(0, |all| all.covering_sequence(b"a", last));
        assert_eq!(covering, last / 4 * 4);
        check_walk(table, &mut cursor, last, forward);
    }
}

#[test]
#[ignore = "takes minutes; run it in release after every change to an index"]
fn readers_see_all_of_many() {
    write_and_read(100_000);
}

/// A way to make the nth key.
type KeyMaker = fn(u64) -> Vec<u8>;

fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

const MEASURED: [(&str, KeyMaker); 6] = [
    ("16 random", |n| [mixed(n).to_be_bytes(), mixed(!n).to_be_bytes()].concat()),
    ("16 in order", |n| u128::from(n).to_be_bytes().to_vec()),
    ("16 digits", |n| format!("{:016}", mixed(n) % 1_000_000_000).into_bytes()),
    ("user + 12 hex digits", |n| format!("user{:012x}", mixed(n) >> 16).into_bytes()),
    ("40 shared + 8 random", |n| [&[b'k'; 40][..], &mixed(n).to_be_bytes()].concat()),
    ("100 tables of rows", |n| {
        [b"t", &(mixed(n) % 100).to_be_bytes()[..], b"_r", &(mixed(!n) >> 24).to_be_bytes()].concat()
    }),
];

/// Nanoseconds per step of `count`.
#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn timed(count: usize, steps: impl FnOnce()) -> u128 {
    let start = std::time::Instant::now();
    steps();
    start.elapsed().as_nanos() / count as u128
}

fn measure_one(kind: MemTableKind, name: &str, keys: &[Vec<u8>], arena_pool: &Arc<ArenaPool>) {
    // With SMALL_PAGES set, without huge pages.
    let arena_block_size = if std::env::var_os("SMALL_PAGES").is_some() { 1 << 20 } else { 2 << 20 };
    let settings = MemTableSettings { kind, arena_block_size, arena_pool: Some(Arc::clone(arena_pool)) };
    let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
    let insert = timed(keys.len(), || {
        for (n, key) in keys.iter().enumerate() {
            table.add(n as u64 + 1, ValueType::Value, key, &[b'v'; 100]);
        }
    });
    let mut found = 0;
    let mut look_up = |change: u8| {
        let mut random = fastrand::Rng::with_seed(1);
        let mut key = Vec::new();
        timed(keys.len(), || {
            for _ in 0..keys.len() {
                key.clone_from(random.choice(keys).unwrap());
                *key.last_mut().unwrap() ^= change;
                table.get(&key, u64::MAX, |_, _, value| {
                    found += value.len();
                    ControlFlow::Break(())
                });
            }
        })
    };
    let (get, absent) = (look_up(0), look_up(0x80));
    let mut cursor = table.iter();
    let next = timed(keys.len(), || {
        cursor.seek_to_first();
        while cursor.valid() {
            found += cursor.value().len();
            cursor.next();
        }
    });
    let megabytes = table.memory_usage() / 1_000_000;
    println!(
        "{kind:?}, {name}: insert {insert}, get {get}, absent {absent}, next {next} ns; {megabytes} MB ({found})"
    );
}

/// Not a test: prints nanoseconds per operation.
#[test]
// cargo test --release -p flagstone --lib memtable::tests::measure -- --ignored --nocapture
#[ignore = "a measurement, run by hand in release"]
fn measure() {
    const COUNT: u64 = 400_000;
    let arena_pool = Arc::new(ArenaPool::new(200 << 20));
    for kind in KINDS {
        // The first round also brings the memory in.
        for (name, key) in std::iter::once(MEASURED[0]).chain(MEASURED) {
            let keys: Vec<_> = (0..COUNT).map(key).collect();
            measure_one(kind, name, &keys, &arena_pool);
        }
    }
}
