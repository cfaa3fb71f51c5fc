//! Iterators with `prefix_same_as_start`: within a prefix tables and memtables may be asked for
//! that prefix only, elsewhere not.

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{create, temporary};
use flagstone::base::{Code, PrefixExtractor, Result};
use flagstone::db::{Db, Iter};
use flagstone::env::{
    AnyFile, Env, FileSystem, FileSystemAround, OpenMode, memory::MemoryFileSystem,
};
use flagstone::options::{CompactRangeOptions, ReadOptions};

fn opened(more: &[(&str, &str)]) -> (tempfile::TempDir, Db) {
    let directory = temporary();
    let mut options = create();
    let usual = [
        ("prefix_extractor", "fixed:1"),
        ("filter_policy", "bloomfilter:16"),
        ("disable_auto_compactions", "true"),
    ];
    for (name, value) in usual.iter().chain(more) {
        options.set(name, value).expect("an option");
    }
    let db = Db::open(directory.path().join("db"), &options).expect("a database");
    (directory, db)
}

fn put(db: &Db, keys: &[&str]) {
    keys.iter().for_each(|key| db.put(key, "there").expect("a write"));
}

fn scan(db: &Db, upper: Option<&str>) -> Iter {
    let iterate_upper_bound = upper.map(|upper| upper.as_bytes().to_vec());
    let options =
        ReadOptions { prefix_same_as_start: true, iterate_upper_bound, ..ReadOptions::default() };
    db.iter(&options).expect("an iterator")
}

/// The key on which a scan stands; nothing at its end.
fn at(iter: &Iter) -> String {
    iter.status().expect("no error");
    if iter.valid() { String::from_utf8(iter.key().to_vec()).expect("text") } else { String::new() }
}

/// Where values of the other entries lie: in a table, in a memtable that finds entries by their
/// prefixes, or in one with a filter.
const PLACES: [&[(&str, &str)]; 3] =
    [&[], &[("memtable", "prefix_hash:1000")], &[("memtable_prefix_bloom_size_ratio", "0.1")]];

/// A filter for prefixes answers for the key that is sought. Scans that had no prefix yet asked it
/// whenever they had to find their place again, and lost the tables without the prefix of the key
/// on which they just stood.
#[test]
fn a_scan_from_an_end_loses_no_table_when_it_passes_many_versions() {
    for place in PLACES {
        let (_directory, db) = opened(place);
        put(&db, &["m0", "m1", "m2"]);
        if place.is_empty() {
            db.flush_all().expect("a flush");
        }
        for key in ["a1", "z1"] {
            (0..12).for_each(|_| put(&db, &[key]));
            db.delete(key).expect("a deletion");
        }
        let mut iter = scan(&db, None);
        iter.seek_to_first();
        assert_eq!(at(&iter), "m0");
        iter.seek_to_last();
        assert_eq!(at(&iter), "m2");
    }
}

#[test]
fn a_scan_back_from_an_upper_bound_finds_what_has_another_prefix() {
    for place in PLACES {
        let (_directory, db) = opened(&[place, &[("target_file_size_base", "1")]].concat());
        put(&db, &["m0", "m1", "m2"]);
        if place.is_empty() {
            db.flush_all().expect("a flush");
            put(&db, &["m3", "m4"]);
            db.flush_all().expect("a flush");
        }
        let last = if place.is_empty() { "m4" } else { "m2" };
        let mut iter = scan(&db, Some("n"));
        iter.seek_to_last();
        assert_eq!(at(&iter), last);
        iter.prev();
        iter.next();
        assert_eq!(at(&iter), last);
        // Many files of one level.
        let options = CompactRangeOptions::default();
        db.compact_range(db.default_column_family(), None, None, &options).expect("a compaction");
        let mut iter = scan(&db, Some("n"));
        iter.seek_to_last();
        assert_eq!(at(&iter), last);
    }
}

/// A key without prefix is a seek in total order, in which scans can turn.
#[test]
fn a_scan_in_total_order_turns_between_tables() {
    for place in PLACES {
        let (_directory, db) = opened(place);
        for keys in [["a1", "a2"], ["b1", "b2"]] {
            put(&db, &keys);
            if place.is_empty() {
                db.flush_all().expect("a flush");
            }
        }
        let mut iter = scan(&db, None);
        iter.seek("");
        iter.next();
        iter.next();
        assert_eq!(at(&iter), "b1");
        iter.prev();
        assert_eq!(at(&iter), "a2");
        iter.next();
        assert_eq!(at(&iter), "b1");
    }
}

#[test]
fn a_scan_from_an_end_leaps_over_a_range_deletion_to_another_prefix() {
    for place in PLACES {
        let (_directory, db) = opened(place);
        put(&db, &["a1", "b1", "b2", "b3", "b4", "b5", "b6", "d1"]);
        if place.is_empty() {
            db.flush_all().expect("a flush");
        }
        db.delete_range("b", "c").expect("a range deletion");
        db.delete("a1").expect("a deletion");
        let mut iter = scan(&db, None);
        iter.seek_to_first();
        assert_eq!(at(&iter), "d1");
        db.delete("d1").expect("a deletion");
        put(&db, &["a1"]);
        let mut iter = scan(&db, None);
        iter.seek_to_last();
        assert_eq!(at(&iter), "a1");
    }
}

/// Within a prefix, tables of all levels that do not have it are known by their filters.
#[test]
fn a_seek_to_a_prefix_that_no_table_has_reads_no_block() {
    let (_directory, db) = opened(&[]);
    put(&db, &["b1", "b2", "d1"]);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    put(&db, &["b2", "d2"]);
    db.flush_all().expect("a flush");
    // Opens the tables.
    scan(&db, None).seek("c1");
    let options =
        ReadOptions { prefix_same_as_start: true, cache_only: true, ..ReadOptions::default() };
    let mut iter = db.iter(&options).expect("an iterator");
    iter.seek("c1");
    assert!(!iter.valid() && iter.status().is_ok(), "{:?}", iter.status());
    iter.seek_for_prev("c1");
    assert!(!iter.valid() && iter.status().is_ok(), "{:?}", iter.status());
    for target in ["", "b1"] {
        iter.seek(target);
        assert!(iter.status().is_err_and(|error| error.code() == Code::Incomplete), "{target}");
    }
}

/// Counts how often tables are opened for reading.
#[derive(Default, Clone)]
struct Disk {
    files: Arc<MemoryFileSystem>,
    opened: Arc<AtomicUsize>,
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let is_table = path.extension().is_some_and(|ending| ending == "sst");
        self.opened.fetch_add(usize::from(is_table && mode.only_reads()), Ordering::Relaxed);
        mode.open(&*self.files, path)
    }
}

/// A database with three tables below level 0, none of which was opened yet: `b0`, `b9` and `d0`
/// lie in the first, and so on.
fn unopened() -> (Disk, Db) {
    let disk = Disk::default();
    let mut options = create();
    options.env = Env::memory().with_fs(Arc::new(disk.clone()));
    let settings = [
        ("prefix_extractor", "fixed:1"),
        ("filter_policy", "bloomfilter:16"),
        ("disable_auto_compactions", "true"),
        ("level0_slowdown_writes_trigger", "100"),
    ];
    for (name, value) in settings {
        options.set(name, value).expect("an option");
    }
    let db = Db::open("/db", &options).expect("a database");
    for letters in ["bd", "fh", "jl"] {
        let (first, last) = letters.split_at(1);
        put(&db, &[&format!("{first}0"), &format!("{first}9"), &format!("{last}0")]);
        db.flush_all().expect("a flush");
        let compact =
            CompactRangeOptions { change_level: true, target_level: 3, ..Default::default() };
        let (begin, end) = (first.as_bytes(), format!("{last}9").into_bytes());
        db.compact_range(db.default_column_family(), Some(begin), Some(&end), &compact)
            .expect("a compaction");
    }
    drop(db);
    let db = Db::open("/db", &options).expect("a database");
    assert_eq!(db.live_files().iter().filter(|file| file.level == Some(3)).count(), 3);
    disk.opened.store(0, Ordering::Relaxed);
    (disk, db)
}

/// A table whose filter says that it has none of a prefix was followed by the next one, which was
/// opened although it begins behind all keys with that prefix.
#[test]
fn a_seek_to_an_absent_prefix_opens_the_table_that_could_have_it_and_no_other() {
    let seeks: [fn(&mut Iter, &str); 2] =
        [|iter, target| iter.seek(target), |iter, target| iter.seek_for_prev(target)];
    for seek in seeks {
        let (disk, db) = unopened();
        let opened = |target: &str, upper: Option<&str>| {
            let before = disk.opened.load(Ordering::Relaxed);
            let mut iter = scan(&db, upper);
            seek(&mut iter, target);
            assert_eq!(at(&iter), "", "{target}");
            disk.opened.load(Ordering::Relaxed) - before
        };
        assert_eq!(opened("e5", None), 0, "between two tables");
        assert_eq!(opened("a5", None), 0, "before all");
        assert_eq!(opened("m5", None), 0, "behind all");
        assert_eq!(opened("g5", Some("h")), 1, "within a table");
        assert_eq!(opened("g5", None), 0, "which is open now");
        assert_eq!(opened("c5", None), 1, "within another");
    }
}

/// A scan to the end of a prefix that ends with its table went on to open the next one.
#[test]
fn a_scan_whose_prefix_ends_with_a_table_opens_no_other() {
    let (disk, db) = unopened();
    let mut iter = scan(&db, None);
    iter.seek("h");
    assert_eq!(at(&iter), "h0");
    iter.next();
    assert_eq!(at(&iter), "");
    iter.seek_for_prev("f5");
    assert_eq!(at(&iter), "f0");
    iter.prev();
    assert_eq!(at(&iter), "");
    assert_eq!(disk.opened.load(Ordering::Relaxed), 1);
    // What is asked in total order goes on.
    iter.seek("");
    assert_eq!(at(&iter), "b0");
    iter.seek_to_last();
    assert_eq!(at(&iter), "l0");
    assert_eq!(disk.opened.load(Ordering::Relaxed), 3);
}

const PREFIX: PrefixExtractor = PrefixExtractor::FixedPrefix(2);

/// What a scan is to show, and where it stands.
struct Expected {
    contents: BTreeMap<Vec<u8>, Vec<u8>>,
    prefix: Option<Vec<u8>>,
    at: Option<Vec<u8>>,
}

impl Expected {
    fn within(
        contents: &BTreeMap<Vec<u8>, Vec<u8>>,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Self {
        let mut contents = contents.clone();
        contents.retain(|key, _| {
            lower.is_none_or(|lower| &key[..] >= lower)
                && upper.is_none_or(|upper| &key[..] < upper)
        });
        Self { contents, prefix: None, at: None }
    }

    fn go_to(&mut self, key: Option<&Vec<u8>>) {
        let stays =
            |key: &&Vec<u8>| self.prefix.is_none() || PREFIX.prefix(key) == self.prefix.as_deref();
        self.at = key.filter(stays).cloned();
    }

    fn from(&mut self, bound: Bound<&[u8]>) {
        let contents = std::mem::take(&mut self.contents);
        self.go_to(contents.range::<[u8], _>((bound, Bound::Unbounded)).next().map(|(key, _)| key));
        self.contents = contents;
    }

    fn back_from(&mut self, bound: Bound<&[u8]>) {
        let contents = std::mem::take(&mut self.contents);
        self.go_to(
            contents.range::<[u8], _>((Bound::Unbounded, bound)).next_back().map(|(key, _)| key),
        );
        self.contents = contents;
    }

    fn stay_in_prefix_of(&mut self, key: Option<&[u8]>) {
        self.prefix = key.and_then(|key| PREFIX.prefix(key)).map(<[u8]>::to_vec);
    }

    /// Moves both alike.
    fn step(&mut self, iter: &mut Iter, lower: Option<&[u8]>, random: &mut fastrand::Rng) {
        let target = some_key(random);
        match (random.u8(..14), self.at.clone()) {
            (0, _) => {
                iter.seek_to_first();
                self.stay_in_prefix_of(lower);
                self.from(Bound::Unbounded);
                if lower.is_none() {
                    self.stay_in_prefix_of(self.at.clone().as_deref());
                }
            }
            (1, _) => {
                iter.seek_to_last();
                self.prefix = None;
                self.back_from(Bound::Unbounded);
                self.stay_in_prefix_of(self.at.clone().as_deref());
            }
            (2 | 3, _) | (4..9, None) => {
                iter.seek(&target);
                self.stay_in_prefix_of(Some(&target));
                self.from(Bound::Included(&target));
            }
            (4..9, Some(at)) => {
                iter.next();
                self.from(Bound::Excluded(&at));
            }
            (9.., Some(at)) if random.u8(..8) > 0 => {
                iter.prev();
                self.back_from(Bound::Excluded(&at));
            }
            (9.., _) => {
                iter.seek_for_prev(&target);
                self.stay_in_prefix_of(Some(&target));
                self.back_from(Bound::Included(&target));
            }
        }
    }
}

/// Some are too short for a prefix; each prefix has few.
fn some_key(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = if random.u8(..6) == 0 { random.usize(..2) } else { random.usize(2..5) };
    (0..length).map(|_| random.u8(b'a'..b'f')).collect()
}

/// Writes, flushes and compacts a little.
fn change(
    db: &Db,
    contents: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    random: &mut fastrand::Rng,
    number: u32,
) {
    let key = some_key(random);
    match random.u8(..30) {
        0..=9 => {
            let value = format!("value {number}").into_bytes();
            // More than a scan steps over.
            (0..random.u8(..14)).for_each(|_| db.put(&key, "former").expect("a write"));
            db.put(&key, &value).expect("a write");
            contents.insert(key, value);
        }
        10..=23 => {
            (0..random.u8(..14)).for_each(|_| db.put(&key, "former").expect("a write"));
            db.delete(&key).expect("a write");
            contents.remove(&key);
        }
        24 | 25 => {
            let end = some_key(random);
            if key < end {
                db.delete_range(&key, &end).expect("a write");
                contents.retain(|at, _| *at < key || *at >= end);
            }
        }
        26..=28 => db.flush_all().expect("a flush"),
        _ => {
            let options = CompactRangeOptions::default();
            db.compact_range(db.default_column_family(), None, None, &options)
                .expect("a compaction");
        }
    }
}

#[test]
fn prefix_scans_show_what_the_model_holds() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let skips = format!("{}", random.u8(..9));
        let mut options = vec![
            ("prefix_extractor", "fixed:2"),
            ("max_sequential_skip_in_iterations", &skips),
            ("target_file_size_base", "1"),
        ];
        if seed % 3 == 0 {
            options.push(("memtable", "prefix_hash:100"));
        }
        let (_directory, db) = opened(&options);
        let mut contents = BTreeMap::new();
        for number in 0..200 {
            change(&db, &mut contents, &mut random, number);
            if number % 5 > 0 {
                continue;
            }
            let mut bound = |one_in| (random.u8(..one_in) == 0).then(|| some_key(&mut random));
            let (lower, upper) = (bound(4), bound(3));
            let options = ReadOptions {
                prefix_same_as_start: true,
                // Changes nothing but what is asked.
                total_order_seek: number % 20 == 0,
                iterate_lower_bound: lower.clone(),
                iterate_upper_bound: upper.clone(),
                ..ReadOptions::default()
            };
            let mut iter = db.iter(&options).expect("an iterator");
            let mut expected = Expected::within(&contents, lower.as_deref(), upper.as_deref());
            for step in 0..60 {
                expected.step(&mut iter, lower.as_deref(), &mut random);
                iter.status().expect("no error");
                let found = iter.valid().then(|| iter.key().to_vec());
                assert_eq!(
                    found, expected.at,
                    "seed {seed}, after {number} changes, step {step}; {lower:?} {upper:?}"
                );
                if let Some(at) = &expected.at {
                    assert_eq!(iter.value().expect("a value"), expected.contents[at]);
                }
            }
        }
    }
}
