//! What lookups take longer beside a hundred thousand range deletions, for keys of many kinds.
//!
//! ```text
//! cargo test --release -p flagstone --test beside_range_deletions -- --ignored --nocapture
//! ```
//!
//! Of 400,000 keys 100,000 draws are deleted, each by a range of its own: up to the same key with
//! its last byte one larger, or with a zero byte behind. Lookups that ask the range deletions and
//! such that ignore them take turns; all find what was written in the cache. `FLAGSTONE_TURNS` says
//! how many turns of each, 30 by default, and `FLAGSTONE_KINDS` for which kinds of keys, all by
//! default: `5,7`, say.
#![allow(clippy::unwrap_used, reason = "a measurement that fails ends the test")]
#![allow(clippy::disallowed_methods, reason = "the test measures, and asks the operating system")]

mod common;

use std::time::Instant;

use common::{create, temporary};
use flagstone::db::Db;
use flagstone::options::{BlockCache, CacheSettings, CompactRangeOptions, ReadOptions};

const KEYS: u64 = 400_000;
const RANGES: usize = 100_000;

/// Lookups in one turn.
const LOOKUPS: usize = 8000;

fn hash(number: u64) -> u64 {
    let mixed = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

fn joined(first: u64, second: u64) -> Vec<u8> {
    [first.to_be_bytes(), second.to_be_bytes()].concat()
}

type Key = fn(u64) -> Vec<u8>;

const KINDS: [(&str, Key); 9] = [
    ("8 bytes big-endian, one after the other, and 8 more", |n| joined(n, 7)),
    ("the same, a thousand apart", |n| joined(1000 * n, 7)),
    ("hashes of 8 bytes, and 8 more", |n| joined(hash(n), 7)),
    ("user and 12 digits", |n| format!("user{n:012}").into_bytes()),
    ("hashes as 16 hexadecimal digits", |n| format!("{:016x}", hash(n)).into_bytes()),
    ("8 bytes that a hundred keys share, and hashes of 8", |n| joined(hash(n / 100), hash(n))),
    ("8 bytes that a hundred keys share, and numbers of 8", |n| joined(hash(n / 100), n % 100)),
    ("16 bytes that a hundred keys share, and hashes of 8", |n| {
        [joined(hash(n / 100), hash(n / 100 + KEYS)), hash(n).to_be_bytes().to_vec()].concat()
    }),
    ("8 bytes that ten thousand keys share, and hashes of 8", |n| {
        joined(hash(n / 10_000), hash(n))
    }),
];

/// What asking adds to the median of a turn, in percent, and how many nanoseconds that median is
/// without.
fn added(db: &Db, keys: &[Vec<u8>], turns: usize) -> (f64, f64) {
    let asking = ReadOptions::default();
    let ignoring = ReadOptions { ignore_range_deletions: true, ..ReadOptions::default() };
    let random = &mut fastrand::Rng::with_seed(3);
    let mut took = [const { Vec::new() }; 2];
    for turn in 0..2 * turns {
        let drawn: Vec<&[u8]> =
            (0..LOOKUPS).map(|_| &keys[random.usize(..keys.len())][..]).collect();
        let options = if turn % 2 == 0 { &ignoring } else { &asking };
        let began = Instant::now();
        for key in drawn {
            std::hint::black_box(db.get_with(options, db.default_column_family(), key).unwrap());
        }
        took[turn % 2].push(began.elapsed().as_nanos() as f64 / LOOKUPS as f64);
    }
    let [without, with] = took.map(|mut took| {
        took.sort_by(f64::total_cmp);
        took[took.len() / 2]
    });
    (100.0 * (with / without - 1.0), without)
}

#[test]
#[ignore = "it measures; for a release build"]
fn what_a_hundred_thousand_range_deletions_add_to_lookups() {
    let turns = std::env::var("FLAGSTONE_TURNS").map_or(30, |turns| turns.parse().unwrap());
    let only = std::env::var("FLAGSTONE_KINDS").map_or((0..KINDS.len()).collect(), |only| {
        only.split(',').map(|kind| kind.parse().unwrap()).collect::<Vec<usize>>()
    });
    for (what, key) in only.into_iter().map(|kind| KINDS[kind]) {
        for with_zero in [false, true] {
            let end_of = |mut key: Vec<u8>| {
                match (with_zero, key.last_mut()) {
                    (false, Some(last)) if *last < u8::MAX => *last += 1,
                    _ => key.push(0),
                }
                key
            };
            measure(
                what,
                key,
                end_of,
                if with_zero { "to a zero byte" } else { "to the next byte" },
                turns,
            );
        }
    }
}

fn measure(what: &str, key: Key, end_of: impl Fn(Vec<u8>) -> Vec<u8>, ends: &str, turns: usize) {
    let directory = temporary();
    let mut options = create();
    options.block_cache = Some(BlockCache::new(&CacheSettings::with_capacity(1 << 30)));
    for setting in [
        "disable_auto_compactions=true",
        "compression=kNoCompression",
        "filter_policy=bloomfilter:10",
    ] {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    let db = Db::open(directory.path(), &options).unwrap();
    let random = &mut fastrand::Rng::with_seed(1);
    let mut numbers: Vec<u64> = (0..KEYS).collect();
    random.shuffle(&mut numbers);
    for &number in &numbers {
        db.put(key(number), [b'v'; 20]).unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let mut is_deleted = vec![false; KEYS as usize];
    for _ in 0..RANGES {
        let number = random.u64(..KEYS);
        db.delete_range(key(number), end_of(key(number))).unwrap();
        is_deleted[number as usize] = true;
    }
    let all: Vec<Vec<u8>> = numbers.iter().map(|&number| key(number)).collect();
    let is_left = |number: &&u64| !is_deleted[**number as usize];
    let left: Vec<Vec<u8>> = numbers.iter().filter(is_left).map(|&number| key(number)).collect();
    for place in ["memtable", "level 0"] {
        if place == "level 0" {
            db.flush_all().unwrap();
        }
        added(&db, &all, turns);
        let [(of_all, took), (of_left, _)] = [&all, &left].map(|keys| added(&db, keys, turns));
        println!(
            "{what}, {ends}, {place}: of all {of_all:+.1}%, not deleted {of_left:+.1}% ({took:.0} ns)"
        );
    }
}
