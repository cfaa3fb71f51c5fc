//! Nanoseconds per operation, for whoever changes an index.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

use super::super::*;
use super::kinds;
use crate::base::{Comparator, InternalIterator, InternalKeyComparator, ValueType};

/// Makes the nth key in place of what is there. It touches no other memory, which would count as
/// the memtable's.
type KeyMaker = fn(u64, &mut Vec<u8>);

fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn put(key: &mut Vec<u8>, parts: &[&[u8]]) {
    key.clear();
    parts.iter().for_each(|part| key.extend_from_slice(part));
}

/// Ten digits, as text.
fn digits(mut n: u64) -> [u8; 10] {
    let mut text = [b'0'; 10];
    for digit in text.iter_mut().rev() {
        *digit += (n % 10) as u8;
        n /= 10;
    }
    text
}

const SHAPES: [(&str, KeyMaker); 8] = [
    ("random", |n, key| put(key, &[&mixed(n).to_be_bytes(), &mixed(!n).to_be_bytes()])),
    ("in order", |n, key| put(key, &[&[0; 8], &n.to_be_bytes()])),
    ("digits", |n, key| put(key, &[b"000000", &digits(mixed(n) % 1_000_000_000)])),
    ("user", |n, key| put(key, &[b"user", &digits(mixed(n) % 10_000_000_000), b"##"])),
    ("shared 40", |n, key| put(key, &[&[b'k'; 40], &mixed(n).to_be_bytes()])),
    ("4 x shared 40", |n, key| put(key, &[&[b'k' + (n % 4) as u8; 40], &mixed(n).to_be_bytes()])),
    ("rows", |n, key| {
        put(key, &[b"t", &(mixed(n) % 100).to_be_bytes(), b"_r", &(mixed(!n) >> 24).to_be_bytes()])
    }),
    ("lengths", |n, key| {
        put(
            key,
            &[
                &mixed(n).to_be_bytes()[..2],
                &[b'-'; 100][..(mixed(!n) % 100) as usize],
                &mixed(n).to_be_bytes(),
            ],
        )
    }),
];

/// Nanoseconds of this thread per step of `count`: others may want the core, too.
fn timed(count: u64, steps: impl FnOnce()) -> i64 {
    timed_by(ClockId::ThreadCPUTime, count, steps)
}

fn timed_by(clock: ClockId, count: u64, steps: impl FnOnce()) -> i64 {
    let start = clock_gettime(clock);
    steps();
    let end = clock_gettime(clock);
    ((end.tv_sec - start.tv_sec) * 1_000_000_000 + end.tv_nsec - start.tv_nsec) / count as i64
}

/// Measures insertions and, unless `what` is `i`, the rest.
fn measure_one(
    kind: &MemTableKind,
    shape: &(&str, KeyMaker),
    count: u64,
    what: &str,
    pool: &Arc<ArenaPool>,
) {
    let settings = MemTableSettings {
        kind: kind.clone(),
        arena_block_size: 2 << 20,
        arena_pool: Some(Arc::clone(pool)),
        filter: std::env::var("FILTER_BYTES").ok().map(|bytes| MemTableFilterSettings {
            bytes: bytes.parse().expect("a number"),
            whole_keys: true,
            prefixes: None,
        }),
        protection_bytes: 0,
    };
    let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
    let (name, make_key) = shape;
    let mut key = Vec::new();
    let insert = timed(count, || {
        for n in 0..count {
            make_key(n, &mut key);
            table.add(n + 1, ValueType::Value, &key, &[b'v'; 100]);
        }
    });
    if what.starts_with('i') {
        return println!("{kind:?}, {name}: insert {insert} ns");
    }
    let mut found = 0;
    let mut cursor = None;
    let first = timed(count, || cursor = Some(table.iter()));
    let mut look_up = |change: u8| {
        let mut random = fastrand::Rng::with_seed(1);
        timed(count, || {
            for _ in 0..count {
                make_key(random.u64(..count), &mut key);
                *key.last_mut().unwrap() ^= change;
                table
                    .get(&key, u64::MAX, |_, _, value| {
                        found += value.len();
                        ControlFlow::Break(())
                    })
                    .expect("no checksums");
            }
        })
    };
    let (get, absent) = (look_up(0), look_up(0x80));
    let mut cursor = cursor.unwrap();
    let next = timed(count, || {
        cursor.seek_to_first();
        while cursor.valid() {
            found += cursor.key().as_bytes().len() + cursor.value().len();
            cursor.next();
        }
    });
    let bytes = table.memory_usage() as u64 / count;
    println!(
        "{kind:?}, {name}: insert {insert}, get {get}, absent {absent}, cursor {first}, next {next} ns; {bytes} bytes ({found})"
    );
}

/// Not a test: prints nanoseconds per operation. `MEASURE="kind shape count what"` chooses, each as
/// far as given: a part of the kind's and of the shape's name (`-` for all), how many entries, and
/// `i` for insertions only. With `FILTER_BYTES` each memtable has a filter of so many bytes.
#[test]
// cargo test --release -p flagstone --lib memtable::tests::measure -- --ignored --nocapture
#[ignore = "a measurement, run by hand in release"]
fn measure() {
    let chosen = std::env::var("MEASURE").unwrap_or_default();
    let mut words = chosen.split_whitespace();
    let mut word = || words.next().filter(|word| *word != "-").unwrap_or_default();
    let (kind_name, shape_name) = (word(), word());
    let count = word().parse().unwrap_or(1_000_000);
    let what = word();
    let pool = Arc::new(ArenaPool::new(400 << 20));
    for kind in kinds().iter().filter(|kind| format!("{kind:?}").contains(kind_name)) {
        // The first round also brings the memory in.
        let shapes = SHAPES.iter().filter(|(name, _)| name.contains(shape_name));
        for shape in SHAPES.iter().take(1).chain(shapes) {
            measure_one(kind, shape, count, what, &pool);
        }
    }
}

/// Nanoseconds per insertion into one memtable by some threads: of the clock over all of them, and
/// of one thread.
fn insert_side_by_side(
    kind: &MemTableKind,
    make_key: KeyMaker,
    count: u64,
    threads: u64,
    pool: &Arc<ArenaPool>,
) -> (i64, i64) {
    let settings = MemTableSettings {
        kind: kind.clone(),
        arena_block_size: 2 << 20,
        arena_pool: Some(Arc::clone(pool)),
        filter: None,
        protection_bytes: 0,
    };
    let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
    let insert = |thread: u64| {
        let mut key = Vec::new();
        timed(count / threads, || {
            for n in (thread..count).step_by(threads as usize) {
                make_key(n, &mut key);
                table.add(n + 1, ValueType::Value, &key, &[b'v'; 100]);
            }
        })
    };
    let mut each = 0;
    let all = timed_by(ClockId::Monotonic, count, || {
        std::thread::scope(|scope| {
            let insert = &insert;
            let running: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || insert(thread))).collect();
            let took = running.into_iter().map(|one| one.join().expect("no thread panics"));
            each = took.sum::<i64>() / threads as i64;
        });
    });
    assert_eq!(table.num_entries(), count);
    (all, each)
}

/// Not a test: prints, for one and two threads in turns, nanoseconds per insertion into one
/// memtable. The threads share nothing else. `MEASURE="kind shape count"` as above.
#[test]
#[ignore = "a measurement, run by hand in release"]
fn measure_side_by_side() {
    const ROUNDS: usize = 5;
    let chosen = std::env::var("MEASURE").unwrap_or_default();
    let mut words = chosen.split_whitespace();
    let mut word = || words.next().filter(|word| *word != "-").unwrap_or_default();
    let (kind_name, shape_name) = (word(), word());
    let count = word().parse().unwrap_or(1_000_000);
    let pool = Arc::new(ArenaPool::new(400 << 20));
    for kind in kinds().iter().filter(|kind| format!("{kind:?}").contains(kind_name)) {
        for (name, make_key) in SHAPES.iter().filter(|(name, _)| name.contains(shape_name)) {
            let mut rounds: Vec<[(i64, i64); 2]> = (0..=ROUNDS)
                .map(|_| [1, 2].map(|of| insert_side_by_side(kind, *make_key, count, of, &pool)))
                .collect();
            // The first round also brings the memory in.
            rounds.remove(0);
            let median = |number: fn(&[(i64, i64); 2]) -> i64| {
                let mut all: Vec<i64> = rounds.iter().map(number).collect();
                all.sort_unstable();
                all[all.len() / 2]
            };
            let [one, two] = [median(|round| round[0].0), median(|round| round[1].0)];
            let [one_cpu, two_cpu] = [median(|round| round[0].1), median(|round| round[1].1)];
            println!(
                "{kind:?}, {name}: one {one} ns, two {two} ns together, {:.2} times; \
                 of a thread {one_cpu} and {two_cpu} ns, {:.2} times",
                one as f64 / two as f64,
                2.0 * one_cpu as f64 / two_cpu as f64,
            );
        }
    }
}
