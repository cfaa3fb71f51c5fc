//! Readers while one or several write.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::*;
use super::{each_table, filters, kinds};
use crate::base::{
    Comparator, InternalIterator, InternalKeyBuf, InternalKeyComparator, SequenceNumber, ValueType,
};

/// Sequences of writes of different shapes, all told by the number of the write.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Scattered,
    LongPrefix,
    Ascending,
    Descending,
    /// A few keys over and over.
    Hot,
}

/// For Miri those that differ in what they have an index do: the others differ in where, and short
/// races have them, too.
const SHAPES: &[Shape] = if cfg!(miri) {
    &[Shape::LongPrefix, Shape::Hot]
} else {
    &[Shape::Scattered, Shape::LongPrefix, Shape::Ascending, Shape::Descending, Shape::Hot]
};
const HOT_KEYS: u64 = if cfg!(miri) { 3 } else { 50 };
/// Lookups of what is published, before a reader asks again what is.
const LOOKUPS: usize = if cfg!(miri) { 3 } else { 20 };

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

/// Which writes are over, and the last of those before which all are.
struct Published {
    over: Vec<AtomicBool>,
    last: AtomicU64,
}

impl Published {
    fn new(total: u64) -> Self {
        let over = (0..=total).map(|_| AtomicBool::new(false)).collect();
        Self { over, last: AtomicU64::new(0) }
    }

    /// Every write up to this one is over.
    fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Whoever ends the first write that is not published publishes it, and those behind it that
    /// are over.
    fn end(&self, sequence: u64) {
        self.over[sequence as usize].store(true, Ordering::SeqCst);
        loop {
            let next = self.last.load(Ordering::SeqCst) + 1;
            if !self.over.get(next as usize).is_some_and(|over| over.load(Ordering::SeqCst)) {
                return;
            }
            let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
            let _ = self.last.compare_exchange(next - 1, next, success, failure);
        }
    }
}

/// Everything published must be found; what is found must be whole.
fn read_while_written(
    table: &MemTable,
    published: &Published,
    total: u64,
    shape: Shape,
    seed: u64,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    // A cursor shows what was published before it was made; that must last.
    let (mut cursor, mut cursor_last) = (table.iter(), 0);
    loop {
        let last = published.last();
        if random.u8(..4) == 0 {
            (cursor, cursor_last) = (table.iter(), last);
        }
        for _ in 0..LOOKUPS {
            let Some(n) = last.checked_sub(1).map(|newest| 1 + random.u64(0..=newest)) else {
                break;
            };
            let (key, newest) = (shape.key(n), shape.newest(n, last));
            let mut found = None;
            table
                .get(&key, last, |sequence, value_type, value| {
                    found = Some((sequence, value_type, value.to_vec()));
                    ControlFlow::Break(())
                })
                .expect("no checksums");
            assert_eq!(found, Some((newest, ValueType::Value, key.clone())), "{n} of {last}");
            if n > cursor_last {
                continue;
            }
            cursor.seek(InternalKeyBuf::for_seek(&key, cursor_last).as_key());
            let newest = shape.newest(n, cursor_last);
            assert_eq!((cursor.key().user_key(), cursor.key().sequence()), (&key[..], newest));
            cursor.seek_for_prev(InternalKeyBuf::new(&key, n, ValueType::Value).as_key());
            assert_eq!((cursor.key().user_key(), cursor.key().sequence()), (&key[..], n));
        }
        if random.u64(..8 + last / 500) == 0 {
            check_walk(table, &mut cursor, cursor_last, random.bool());
        }
        if last == total {
            return;
        }
    }
}

/// A walk in either direction is ordered and meets every entry published before it began.
fn check_walk(
    table: &MemTable,
    cursor: &mut MemTableIterator,
    last: SequenceNumber,
    forward: bool,
) {
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

/// Writes every entry whose number is `writer`'s among `writers`, some by one right to write, and
/// pauses now and then.
fn write_share(
    table: &MemTable,
    published: &Published,
    shape: Shape,
    [writer, writers, total]: [u64; 3],
) {
    let numbers: Vec<u64> = (1..=total).filter(|n| n % writers == writer).collect();
    for (round, numbers) in numbers.chunks(3).enumerate() {
        let mut right = table.writer();
        for &sequence in numbers {
            let key = shape.key(sequence);
            if round % 2 == 0 {
                right.add(sequence, ValueType::Value, &key, &key);
            } else {
                table.add(sequence, ValueType::Value, &key, &key);
            }
            published.end(sequence);
        }
        drop(right);
        if round % 21 == 0 {
            std::thread::yield_now();
        }
    }
}

/// `writers` threads write `total` entries; two read. In the end everything is there, and counted.
fn write_and_read(writers: u64, total: u64) {
    for &shape in SHAPES {
        each_table(|table| {
            let published = Published::new(total);
            std::thread::scope(|scope| {
                let (table, published) = (&table, &published);
                for seed in 0..2 {
                    scope.spawn(move || read_while_written(table, published, total, shape, seed));
                }
                for writer in 0..writers {
                    let share = [writer, writers, total];
                    scope.spawn(move || write_share(table, published, shape, share));
                }
            });
            check_walk(&table, &mut table.iter(), total, true);
            check_walk(&table, &mut table.iter(), total, false);
            let bytes = (1..=total).map(|n| 2 * shape.key(n).len() as u64 + 8).sum::<u64>();
            assert_eq!((table.num_entries(), table.data_size()), (total, bytes));
            assert_eq!((table.first_sequence(), table.largest_sequence()), (Some(1), Some(total)));
            assert!(table.memory_usage() as u64 >= bytes);
            assert!(table.memory_reserved() >= table.memory_usage());
        });
    }
}

#[test]
fn readers_see_all_that_was_published_before() {
    write_and_read(1, if cfg!(miri) { 10 } else { 3000 });
}

#[test]
fn writers_side_by_side_lose_nothing() {
    write_and_read(3, if cfg!(miri) { 12 } else { 6000 });
}

/// So short that Miri can try many interleavings and orders of memory (`scripts/miri.sh`). Each
/// memtable lies in the memory of the one before, which another thread may have dropped.
#[test]
fn short_races() {
    race_briefly(1, 9);
}

/// The same with two writers.
#[test]
fn short_races_of_writers() {
    race_briefly(2, 10);
}

fn race_briefly(writers: u64, total: u64) {
    let arena_pool = Arc::new(ArenaPool::new(1 << 16));
    let shapes = [Shape::Scattered, Shape::LongPrefix];
    for (kind, shape) in kinds().iter().flat_map(|kind| shapes.map(|shape| (kind.clone(), shape))) {
        let [_, filter] = filters();
        let settings = MemTableSettings {
            kind,
            arena_block_size: 4096,
            arena_pool: Some(Arc::clone(&arena_pool)),
            filter: filter.filter(|_| shape == Shape::Scattered),
            protection_bytes: 0,
        };
        let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
        let shared = Arc::new((table, Published::new(total)));
        std::thread::scope(|scope| {
            for reader in 0..2 {
                let shared = Arc::clone(&shared);
                scope.spawn(move || read_briefly(&shared.0, &shared.1, shape, reader == 0));
            }
            for writer in 0..writers {
                let shared = Arc::clone(&shared);
                scope.spawn(move || {
                    let (table, published) = &*shared;
                    for sequence in (1..=total).filter(|n| n % writers == writer) {
                        let key = shape.key(sequence);
                        table.add(sequence, ValueType::Value, &key, &key);
                        // Each writer has its part of them.
                        if sequence % 4 < 2 {
                            table.add_range_tombstone(sequence, b"a", b"b");
                        }
                        published.end(sequence);
                    }
                });
            }
        });
    }
}

fn read_briefly(table: &MemTable, published: &Published, shape: Shape, forward: bool) {
    for _ in 0..2 {
        let last = published.last();
        let mut cursor = table.iter();
        if last > 0 {
            let key = shape.key(last);
            let mut found = None;
            table
                .get(&key, last, |sequence, _, value| {
                    found = Some((sequence, value.to_vec()));
                    ControlFlow::Break(())
                })
                .expect("no checksums");
            assert_eq!(found, Some((last, key)));
        }
        let covering = (1..=last).rev().find(|n| n % 4 < 2).unwrap_or(0);
        assert_eq!(table.covering_sequence(b"a", last), covering);
        check_walk(table, &mut cursor, last, forward);
    }
}

#[test]
#[ignore = "takes minutes; run it in release after every change to an index"]
fn readers_see_all_of_many() {
    write_and_read(1, 100_000);
    write_and_read(2, 100_000);
    write_and_read(6, 100_000);
}
