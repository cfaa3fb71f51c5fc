//! Resident memory against `memory_budget`, as the system counts it: what the process has of its
//! own.
//!
//! One story a process, as memory belongs to all of it. The whole one takes minutes and is measured
//! in a release build: `cargo test --release -p flagstone --test memory_budget -- --ignored
//! --nocapture`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]
#![allow(clippy::disallowed_methods, reason = "the test asks the operating system")]

mod common;

use std::time::Duration;

use common::resident;
use flagstone::db::Db;
use flagstone::options::{ColumnFamilyOptions, CompactRangeOptions, MemoryBudget, ReadOptions};

/// Bytes of most values.
const VALUE_SIZE: usize = 1_000;

/// What a story does, in numbers.
struct Sizes {
    budget: usize,
    data: usize,
    families: usize,
    iterators: usize,
    large_value: usize,
}

/// The most that was resident in one part of the story, beyond what was before all of it.
struct Watch {
    before: usize,
    most: usize,
    /// Parts that took too much: all parts are told of before the story fails.
    too_much: Vec<String>,
}

impl Watch {
    fn look(&mut self) {
        self.most = self.most.max(resident().saturating_sub(self.before));
    }

    /// Says what a part took, and begins the next.
    fn end(&mut self, part: &str, budget: usize, extra: usize, db: &Db) {
        self.look();
        let most = std::mem::take(&mut self.most);
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        println!(
            "{part}: {:.1} MiB resident of a budget of {:.1} MiB, counted {:.1}",
            mib(most),
            mib(budget),
            mib(db.memory_usage().total() as usize)
        );
        if most > budget + budget / 10 + extra {
            self.too_much.push(format!("{part}: {most} bytes\n{}", db.memory_usage()));
        }
    }
}

/// Bytes that no compression makes smaller.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

fn live(sizes: &Sizes) {
    let directory = common::temporary();
    let mut options = common::create();
    options.db.memory_budget = MemoryBudget::Bytes(sizes.budget as u64);
    options.set("filter_policy", "bloomfilter:10").unwrap();
    options.cf.settings.enable_blob_files = Some(true);
    options.cf.settings.min_blob_size = Some(4096);
    let mut watch = Watch { before: resident(), most: 0, too_much: Vec::new() };
    let db = Db::open(directory.path(), &options).unwrap();

    let keys = sizes.data / VALUE_SIZE;
    for key in 0..keys as u64 {
        db.put(key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), noise(key, VALUE_SIZE))
            .unwrap();
        if key % 1_000 == 0 {
            watch.look();
        }
    }
    watch.end("load", sizes.budget, 0, &db);
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    let mut entries = 0;
    while iter.valid() {
        assert_eq!(iter.value().unwrap().len(), VALUE_SIZE);
        entries += 1;
        if entries % 1_000 == 0 {
            watch.look();
        }
        iter.next();
    }
    assert_eq!(entries, keys);
    drop(iter);
    watch.end("scan", sizes.budget, 0, &db);

    // With a cache that is full by now.
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            db.compact_range(
                db.default_column_family(),
                None,
                None,
                &CompactRangeOptions::default(),
            )
            .unwrap();
        });
        while !compacting.is_finished() {
            watch.look();
            std::thread::park_timeout(Duration::from_millis(10));
        }
    });
    watch.end("compaction", sizes.budget, 0, &db);

    many_and_large(sizes, &db, &mut watch);
    assert!(watch.too_much.is_empty(), "{}", watch.too_much.join("\n"));
    db.close().unwrap();
}

/// Many iterators, many families, large values.
fn many_and_large(sizes: &Sizes, db: &Db, watch: &mut Watch) {
    let mut iterators = Vec::new();
    for at in 0..sizes.iterators as u64 {
        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek((at * 7_919).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        iterators.push(iter);
        if at % 100 == 0 {
            watch.look();
        }
    }
    watch.end("iterators", sizes.budget, 0, db);
    drop(iterators);

    let create = |at| {
        db.create_column_family(&format!("family {at}"), &ColumnFamilyOptions::default()).unwrap()
    };
    let families: Vec<_> = (0..sizes.families).map(create).collect();
    for round in 0..40u64 {
        for family in &families {
            db.put_cf(family, round.to_be_bytes(), noise(round, VALUE_SIZE)).unwrap();
        }
        watch.look();
    }
    watch.end("families", sizes.budget, 0, db);

    let large = noise(2, sizes.large_value);
    for key in 0..4 {
        db.put(format!("large {key}"), &large).unwrap();
        watch.look();
    }
    db.flush_all().unwrap();
    for key in 0..4 {
        assert_eq!(db.get(format!("large {key}")).unwrap().unwrap().len(), large.len());
        watch.look();
    }
    // The value written and the one read are the caller's; the allocator may keep their memory for
    // later.
    watch.end("large values", sizes.budget, 2 * sizes.large_value, db);
}

#[test]
fn a_small_database_keeps_to_a_small_budget() {
    live(&Sizes {
        budget: 24 << 20,
        data: 48 << 20,
        families: 50,
        iterators: 500,
        large_value: 8 << 20,
    });
}

#[test]
#[ignore = "takes minutes; alone in its process"]
fn the_cases_of_a_large_database() {
    live(&Sizes {
        budget: 128 << 20,
        data: 1280 << 20,
        families: 1_000,
        iterators: 10_000,
        large_value: 64 << 20,
    });
}
