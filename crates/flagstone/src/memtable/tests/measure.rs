//! Nanoseconds per operation.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::*;
use super::kinds;
use crate::base::{Comparator, InternalIterator, InternalKeyComparator, ValueType};

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

fn measure_one(kind: &MemTableKind, name: &str, keys: &[Vec<u8>], arena_pool: &Arc<ArenaPool>) {
    // With SMALL_PAGES set, without huge pages.
    let arena_block_size = if std::env::var_os("SMALL_PAGES").is_some() { 1 << 20 } else { 2 << 20 };
    let settings =
        MemTableSettings { kind: kind.clone(), arena_block_size, arena_pool: Some(Arc::clone(arena_pool)) };
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
    for kind in kinds() {
        // The first round also brings the memory in.
        for (name, key) in std::iter::once(MEASURED[0]).chain(MEASURED) {
            let keys: Vec<_> = (0..COUNT).map(key).collect();
            measure_one(&kind, name, &keys, &arena_pool);
        }
    }
}
