//! `memtable_prefix_bloom_size_ratio` and `memtable_whole_key_filtering`: what is not in a memtable
//! is not sought there.

mod common;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flagstone::base::{Comparator, UserComparator};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{Options, ReadOptions};
use testkit::steps;

/// The order of bytes, which counts its comparisons.
#[derive(Default)]
struct Counting(AtomicUsize);

impl UserComparator for Counting {
    fn name(&self) -> &str {
        "tests.Counting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fetch_add(1, Relaxed);
        a.cmp(b)
    }
}

struct World {
    db: Db,
    order: Arc<Counting>,
}

impl World {
    /// A database whose memtable has `a00` to `a99` and `c00` to `c99`.
    fn with(changes: &[(&str, &str)]) -> Self {
        let order = Arc::new(Counting::default());
        // Without threads nobody else compares anything.
        let env = steps::world(Arc::new(MemoryFileSystem::new()), 1);
        let mut options = Options { env, ..common::create() };
        options.cf.comparator = Comparator::Custom(order.clone());
        changes.iter().for_each(|(name, value)| options.set(name, value).expect("an option"));
        let db = Db::open(Path::new("/db"), &options).expect("a database");
        let world = Self { db, order };
        world.fill();
        world
    }

    fn fill(&self) {
        for n in 0..100 {
            ["a", "c"]
                .iter()
                .for_each(|prefix| self.db.put(format!("{prefix}{n:02}"), "x").expect("a write"));
        }
    }

    fn compared(&self, action: impl FnOnce(&Db)) -> usize {
        let before = self.order.0.load(Relaxed);
        action(&self.db);
        self.order.0.load(Relaxed) - before
    }

    /// Comparisons of a lookup of an absent key, alone and with another.
    fn lookups(&self) -> [usize; 2] {
        let alone = self.compared(|db| assert!(db.get("b50").expect("a read").is_none()));
        let together = self.compared(|db| {
            assert!(
                db.multi_get(&["b50", "b51"])
                    .into_iter()
                    .all(|found| found.expect("a read").is_none())
            );
        });
        [alone, together]
    }

    /// Comparisons of a seek to a prefix that no key has.
    fn seek(&self) -> usize {
        let options = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
        let mut iter = self.db.iter(&options).expect("an iterator");
        self.compared(|_| {
            iter.seek("b");
            assert!(!iter.valid() || iter.key() == b"c00");
        })
    }

    fn finds_all(&self) {
        for key in ["a00", "a99", "c00", "c99"] {
            assert!(self.db.get(key).expect("a read").is_some(), "{key}");
        }
        let options = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
        let mut iter = self.db.iter(&options).expect("an iterator");
        for prefix in ["a", "c"] {
            iter.seek(prefix);
            let mut found = 0;
            while iter.valid() && iter.key().starts_with(prefix.as_bytes()) {
                found += 1;
                iter.next();
            }
            assert_eq!(found, 100, "{prefix}");
        }
    }
}

const RATIO: (&str, &str) = ("memtable_prefix_bloom_size_ratio", "0.1");
const WHOLE_KEYS: (&str, &str) = ("memtable_whole_key_filtering", "true");
const PREFIXES: (&str, &str) = ("prefix_extractor", "fixed:1");

#[test]
fn what_is_not_in_the_memtable_is_not_sought_there() {
    for changes in [&[RATIO, PREFIXES][..], &[RATIO, WHOLE_KEYS, PREFIXES]] {
        let world = World::with(changes);
        assert_eq!((world.lookups(), world.seek()), ([0, 0], 0), "{changes:?}");
        world.finds_all();
    }
    // Without prefixes there is nothing that a seek could ask.
    let world = World::with(&[RATIO, WHOLE_KEYS]);
    assert_eq!(world.lookups(), [0, 0]);
    assert!(world.seek() > 0);
}

#[test]
fn without_a_size_or_anything_to_put_into_it_there_is_no_filter() {
    for changes in [&[WHOLE_KEYS, PREFIXES][..], &[RATIO]] {
        let world = World::with(changes);
        assert!(
            world.lookups().into_iter().chain([world.seek()]).all(|count| count > 0),
            "{changes:?}"
        );
        world.finds_all();
    }
}

#[test]
fn a_change_while_the_database_is_open_is_for_the_next_memtable() {
    let world = World::with(&[WHOLE_KEYS, ("disable_auto_compactions", "true")]);
    let family = world.db.default_column_family();
    for (ratio, is_spared) in [("0.25", true), ("0", false)] {
        let before = world.lookups()[0];
        let change = [("memtable_prefix_bloom_size_ratio", ratio)];
        world.db.set_options(family, &change).expect("a change");
        assert_eq!(world.lookups()[0], before, "it goes on as it began");
        world.db.flush_all().expect("a flush");
        // The first opens the table.
        let [_, of_tables] = [(); 2].map(|()| world.lookups()[0]);
        world.fill();
        assert_eq!(world.lookups()[0] == of_tables, is_spared, "{ratio}");
    }
    world.finds_all();
}

/// They hide what lies in tables, whether the memtable has an entry of the key or not.
#[test]
fn range_deletions_of_a_memtable_count_though_its_filter_has_no_key_of_theirs() {
    let world = World::with(&[RATIO, WHOLE_KEYS, PREFIXES]);
    world.db.flush_all().expect("a flush");
    world.db.delete_range("a10", "a20").expect("a write");
    world.db.put("c00", "again").expect("a write");
    assert!(world.db.get("a15").expect("a read").is_none());
    assert!(world.db.multi_get(&["a15"]).remove(0).expect("a read").is_none());
    assert!(world.db.get("a20").expect("a read").is_some());
    world.db.delete("a20").expect("a write");
    assert!(world.db.get("a20").expect("a read").is_none());
}
