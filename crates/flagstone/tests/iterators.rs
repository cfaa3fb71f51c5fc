//! Iterators against a model: turns, bounds, snapshots, cursors taken over from dropped iterators,
//! and runs of deletions.

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use common::{create, temporary};
use flagstone::base::{Code, FilterDecision, FilteredKind, Snapshot};
use flagstone::db::{Db, Iter};
use flagstone::env::Env;
use flagstone::options::{
    CompactFilesOptions, CompactRangeOptions, CompactionFilter, Options, ReadOptions,
};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u16) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// What an iterator is to show, and where it stands.
struct Expected {
    contents: Contents,
    at: Option<Vec<u8>>,
}

impl Expected {
    fn from(&self, bound: Bound<&Vec<u8>>) -> Option<Vec<u8>> {
        self.contents
            .range::<Vec<u8>, _>((bound, Bound::Unbounded))
            .next()
            .map(|(key, _)| key.clone())
    }

    fn back_from(&self, bound: Bound<&Vec<u8>>) -> Option<Vec<u8>> {
        self.contents
            .range::<Vec<u8>, _>((Bound::Unbounded, bound))
            .next_back()
            .map(|(key, _)| key.clone())
    }

    /// Moves both alike.
    fn step(&mut self, iter: &mut Iter, random: &mut fastrand::Rng, keys: u16) {
        let target = key(random.u16(..keys));
        match (random.u8(..10), self.at.take()) {
            (0..=3, Some(at)) => {
                iter.next();
                self.at = self.from(Bound::Excluded(&at));
            }
            (4..=6, Some(at)) => {
                iter.prev();
                self.at = self.back_from(Bound::Excluded(&at));
            }
            (7, _) => {
                iter.seek_to_last();
                self.at = self.back_from(Bound::Unbounded);
            }
            (8, _) => {
                iter.seek_for_prev(&target);
                self.at = self.back_from(Bound::Included(&target));
            }
            (9, _) => {
                iter.seek(&target);
                self.at = self.from(Bound::Included(&target));
            }
            _ => {
                iter.seek_to_first();
                self.at = self.from(Bound::Unbounded);
            }
        }
    }

    fn check(&self, iter: &mut Iter) {
        iter.status().expect("no damage");
        match &self.at {
            Some(at) => {
                assert!(iter.valid(), "the iterator ended, and {} follows", at.escape_ascii());
                assert_eq!(iter.key().escape_ascii().to_string(), at.escape_ascii().to_string());
                assert_eq!(iter.value().expect("a value"), self.contents[at]);
            }
            None => assert!(!iter.valid(), "the iterator shows {}", iter.key().escape_ascii()),
        }
    }
}

/// Deletes keys in runs, which are longer than those that scans remember.
fn change(db: &Db, contents: &mut Contents, random: &mut fastrand::Rng, keys: u16, number: u32) {
    let start = random.u16(..keys);
    match random.u8(..20) {
        0..=7 => {
            // Large ones are not copied when a scan goes back, and blocks of few entries are
            // fetched ahead.
            let value =
                format!("value {number}").repeat([1, 30, 100, 300][random.usize(..4)]).into_bytes();
            db.put(key(start), &value).expect("a write");
            contents.insert(key(start), value);
        }
        8 | 9 => {
            for number in start..keys.min(start + random.u16(..300)) {
                db.put(key(number), b"many").expect("a write");
                contents.insert(key(number), b"many".to_vec());
            }
        }
        10..=14 => {
            for number in start..keys.min(start + random.u16(..300)) {
                db.delete(key(number)).expect("a write");
                contents.remove(&key(number));
            }
        }
        15 if random.bool() => {
            let end = key(keys.min(start + random.u16(1..100)));
            db.delete_range(key(start), &end).expect("a write");
            contents.retain(|at, _| *at < key(start) || *at >= end);
        }
        15 | 16 => db.flush_all().expect("a flush"),
        17 if random.u8(..4) == 0 => {
            let options = CompactRangeOptions::default();
            db.compact_range(db.default_column_family(), None, None, &options)
                .expect("a compaction");
        }
        _ => {
            db.delete(key(start)).expect("a write");
            contents.remove(&key(start));
        }
    }
}

/// Skips the deletions behind a key with this value.
struct Skipping;

impl CompactionFilter for Skipping {
    fn name(&self) -> &str {
        "Skipping"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, value: &[u8]) -> FilterDecision {
        match value {
            b"skip" => FilterDecision::RemoveAndSkipUntil(key(160)),
            _ => FilterDecision::Keep,
        }
    }
}

/// Scans forward and back over the deleted keys, and a write after each: the third leaps.
fn walk(db: &Db, iter: &mut Iter) -> (Vec<u8>, Vec<u8>) {
    let mut found = Default::default();
    for _ in 0..3 {
        iter.seek(key(100));
        found = (iter.key().to_vec(), Vec::new());
        iter.seek_for_prev(key(199));
        found.1 = iter.key().to_vec();
        db.put(b"z", b"a write").expect("a write");
    }
    found
}

/// A table with deletions goes, or a filter skips them, and older versions come back: `get` found
/// them, and scans leapt over them, by what they or iterators of before knew. Those go on with what
/// they began with, whatever new ones find.
#[test]
fn what_comes_back_is_not_leapt_over() {
    for is_skipped in [false, true] {
        let directory = temporary();
        let mut options = create();
        options.set("level_compaction_dynamic_level_bytes", "false").unwrap();
        options.set("disable_auto_compactions", "true").expect("valid");
        options.cf.compaction_filter = Some(Arc::new(Skipping));
        let db = Db::open(directory.path(), &options).unwrap();
        let family = db.default_column_family();
        (0..300).for_each(|number| db.put(key(number), b"old").unwrap());
        let down =
            CompactRangeOptions { change_level: true, target_level: 6, ..Default::default() };
        db.compact_range(family, None, None, &down).unwrap();
        if is_skipped {
            db.put(key(139), b"skip").unwrap();
        }
        (140..160).for_each(|number| db.delete(key(number)).unwrap());
        db.flush_all().unwrap();
        let newest = [db.live_files().iter().find(|file| file.level == Some(0)).unwrap().number];
        let merge =
            || db.compact_files(family, &newest, 1, &CompactFilesOptions::default()).unwrap();
        if !is_skipped {
            merge();
        }
        // In the memtable: no compaction of what is older takes them along.
        (100..140).chain(160..200).for_each(|number| db.delete(key(number)).unwrap());

        let mut before = db.iter(&ReadOptions::default()).unwrap();
        let without = (key(200), key(99));
        assert_eq!(walk(&db, &mut before), without);
        assert_eq!(walk(&db, &mut db.iter(&ReadOptions::default()).unwrap()), without);
        if is_skipped {
            drop(merge())
        } else {
            db.delete_files_in_ranges(family, &[(Some(&key(140)), Some(&key(160)))], false).unwrap()
        }
        assert_eq!(db.get(key(150)).unwrap().as_deref(), Some(&b"old"[..]));
        for _ in 0..2 {
            let mut iter = db.iter(&ReadOptions::default()).unwrap();
            assert_eq!(walk(&db, &mut iter), (key(140), key(159)), "skipped: {is_skipped}");
            assert_eq!(walk(&db, &mut before), without);
        }
    }
}

#[test]
fn iterators_show_what_the_model_holds() {
    const KEYS: u16 = 500;
    // Values in blob files are read ahead, and so is what memtables name of files that are still
    // written.
    let blobs_at_flush = [("enable_blob_files", "true"), ("blob_write_mode", "flush")];
    let blobs_at_commit = [("enable_blob_files", "true"), ("blob_commit_min_size", "0")];
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = temporary();
        let mut options = create();
        let settings: &[_] = [&[][..], &blobs_at_flush, &blobs_at_commit][seed as usize % 3];
        for (name, value) in settings {
            options.set(name, value).unwrap();
        }
        let db = Db::open(directory.path().join("db"), &options).unwrap();
        let mut contents = Contents::new();
        let mut snapshots: Vec<(Snapshot, Contents)> = Vec::new();
        let mut open: Vec<(Iter, Expected)> = Vec::new();
        for number in 0..400 {
            change(&db, &mut contents, &mut random, KEYS, number);
            if random.u8(..10) == 0 {
                snapshots.push((db.snapshot(), contents.clone()));
            }
            if snapshots.len() > 3 {
                snapshots.swap_remove(random.usize(..snapshots.len()));
            }
            let (snapshot, mut seen) =
                match random.choice(&snapshots).filter(|_| random.u8(..4) == 0) {
                    Some((snapshot, seen)) => (Some(snapshot.clone()), seen.clone()),
                    None => (None, contents.clone()),
                };
            let auto_refresh_iterator_with_snapshot = random.bool();
            let mut options = ReadOptions {
                snapshot,
                auto_refresh_iterator_with_snapshot,
                ..ReadOptions::default()
            };
            if random.u8(..4) == 0 {
                let lower = key(random.u16(..KEYS));
                seen.retain(|key, _| *key >= lower);
                options.iterate_lower_bound = Some(lower);
            }
            if random.u8(..4) == 0 {
                let upper = key(random.u16(..KEYS));
                seen.retain(|key, _| *key < upper);
                options.iterate_upper_bound = Some(upper);
            }
            let mut iter = db.iter(&options).unwrap();
            assert!(!iter.valid(), "it starts out unpositioned");
            let mut expected = Expected { contents: seen, at: None };
            for _ in 0..if settings.is_empty() { 6 } else { random.u8(..30) } {
                expected.step(&mut iter, &mut random, KEYS);
                expected.check(&mut iter);
            }
            if random.u8(..8) == 0 {
                open.push((iter, expected));
            }
            if open.len() > 4 {
                open.swap_remove(random.usize(..open.len()));
            }
            for (iter, expected) in &mut open {
                expected.step(iter, &mut random, KEYS);
                expected.check(iter);
            }
        }
    }
}

/// In memory, with tables of a few kilobytes, of which none is compacted unasked.
fn in_small_tables() -> Options {
    let mut options = Options { env: Env::memory(), ..create() };
    options
        .set_all("block_size=256;target_file_size_base=2k;compression=kNoCompression")
        .expect("valid");
    options.set("disable_auto_compactions", "true").expect("valid");
    options
}

fn compact(db: &Db) {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
}

/// A cursor that had asked for the range deletions of a table and could not read it took it that
/// there were none in its level, from then on and wherever it was sent: deleted keys came back.
#[test]
fn what_could_not_be_read_is_not_taken_for_nothing_deleted() {
    let options = in_small_tables();
    let db = Db::open("/db", &options).unwrap();
    (0..300).for_each(|number| db.put(key(number), [b'v'; 100]).unwrap());
    db.flush_all().unwrap();
    let snapshot = db.snapshot();
    db.delete_range(key(200), key(260)).unwrap();
    db.flush_all().unwrap();
    compact(&db);
    drop(snapshot);
    // Above the deepest level: a key, within a range that a scan of the level leaps over.
    db.delete_range(key(0), key(150)).unwrap();
    db.put(key(100), "new").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);

    let db = Db::open("/db", &options).unwrap();
    let whole = ReadOptions { ignore_range_deletions: true, ..ReadOptions::default() };
    for number in (0..20).chain(145..300) {
        assert!(db.get_with(&whole, db.default_column_family(), key(number)).unwrap().is_some());
    }
    let mut iter = db.iter(&ReadOptions { cache_only: true, ..ReadOptions::default() }).unwrap();
    iter.seek(key(0));
    assert_eq!(
        iter.status().unwrap_err().code(),
        Code::Incomplete,
        "the table around key 100 is not open"
    );
    iter.seek(key(200));
    iter.status().unwrap();
    assert_eq!(iter.key(), key(260));
}

/// Whoever may read no file is shown the truth, or told that it cannot be had; and may seek on.
#[test]
fn a_scan_of_what_is_cached_shows_the_truth_or_says_that_it_cannot() {
    const KEYS: u16 = 300;
    let (mut missing, mut shown) = (0, 0);
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let options = in_small_tables();
        let db = Db::open("/db", &options).unwrap();
        let (mut contents, mut snapshots) = (Contents::new(), Vec::new());
        for number in 0..120 {
            change(&db, &mut contents, &mut random, KEYS, number);
            if number % 10 == 0 {
                snapshots.push(db.snapshot());
            }
            if number == 80 {
                compact(&db);
            }
        }
        db.close().unwrap();
        drop((db, snapshots));
        for _ in 0..8 {
            // No table is open, and nothing cached.
            let db = Db::open("/db", &options).unwrap();
            let read = |from: u16, steps: u8| {
                let mut iter = db.iter(&ReadOptions::default()).unwrap();
                iter.seek(key(from));
                (0..steps).for_each(|_| {
                    if iter.valid() {
                        iter.next();
                    }
                });
            };
            read(random.u16(..KEYS), 1);
            let mut iter =
                db.iter(&ReadOptions { cache_only: true, ..ReadOptions::default() }).unwrap();
            let mut expected = Expected { contents: contents.clone(), at: None };
            for _ in 0..60 {
                if random.u8(..4) == 0 {
                    read(random.u16(..KEYS), random.u8(..20));
                }
                expected.step(&mut iter, &mut random, KEYS);
                match iter.status() {
                    Ok(()) => {
                        expected.check(&mut iter);
                        shown += 1;
                    }
                    Err(error) => {
                        assert!(error.code() == Code::Incomplete && !iter.valid(), "{error}");
                        expected.at = None;
                        missing += 1;
                    }
                }
            }
        }
    }
    assert!(
        missing > 100 && shown > 100,
        "{missing} times something was missing, {shown} times not"
    );
}

/// Whoever looks for the head of a queue does not walk over all that was taken from it.
#[test]
fn the_head_of_a_queue_is_found_without_walking_over_what_was_deleted() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    for number in 0..3000 {
        db.put(key(number), b"message").unwrap();
    }
    let head = |limit| {
        let options = ReadOptions { max_skippable_internal_keys: limit, ..ReadOptions::default() };
        let mut iter = db.iter(&options).unwrap();
        iter.seek_to_first();
        iter.status().map(|()| iter.valid().then(|| iter.key().to_vec()))
    };
    for number in 0..3000 {
        // A delete and a look at the head: none of these passes more than what was deleted since
        // the last report.
        assert_eq!(head(300).unwrap(), Some(key(number)));
        db.delete(key(number)).unwrap();
        if number % 1000 == 500 {
            db.flush_all().unwrap();
        }
    }
    assert_eq!(head(300).unwrap(), None);
    db.put(key(1234), b"out of order").unwrap();
    assert_eq!(head(0).unwrap(), Some(key(1234)), "a key that comes back is seen");
}

/// The same at the other end: whoever looks for the last key walked over all that had been taken
/// from there, each time.
#[test]
fn the_top_of_a_stack_is_found_without_walking_over_what_was_deleted() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    for number in 0..3000 {
        db.put(key(number), b"message").unwrap();
    }
    let options =
        |limit| ReadOptions { max_skippable_internal_keys: limit, ..ReadOptions::default() };
    let found = |iter: &Iter| iter.status().map(|()| iter.valid().then(|| iter.key().to_vec()));
    let top = |limit| {
        let mut iter = db.iter(&options(limit)).unwrap();
        iter.seek_to_last();
        found(&iter)
    };
    let below = |bound: u16, limit| {
        let mut iter = db.iter(&options(limit)).unwrap();
        iter.seek_for_prev(key(bound));
        found(&iter)
    };
    for number in (0..3000).rev() {
        assert_eq!(top(300).unwrap(), Some(key(number)));
        db.delete(key(number)).unwrap();
        if number % 1000 == 500 {
            db.flush_all().unwrap();
        }
        if number == 1000 {
            assert_eq!(below(2500, 300).unwrap(), Some(key(999)), "from within the range, too");
            let mut iter = db.iter(&options(300)).unwrap();
            iter.seek(key(500));
            iter.prev();
            iter.next();
            assert_eq!(found(&iter).unwrap(), Some(key(500)));
        }
    }
    assert_eq!(top(300).unwrap(), None);
    db.put(key(1234), b"out of order").unwrap();
    assert_eq!(top(300).unwrap(), Some(key(1234)), "a key that comes back is seen");
    assert_eq!(top(300).unwrap(), Some(key(1234)));
    assert_eq!(below(1233, 3000).unwrap(), None);
}

/// A database with `count` keys, all of which were overwritten and compacted after a snapshot, and
/// an iterator of that snapshot that stands on the first key.
fn outlived(count: u32, auto_refresh: bool) -> (tempfile::TempDir, Db, Iter) {
    let directory = temporary();
    let mut options = create();
    options.set("enable_blob_files", "true").expect("an option");
    options.set("min_blob_size", "5").expect("an option");
    let db = Db::open(directory.path().join("db"), &options).expect("a database");
    let write = |value: &str| {
        (0..count).for_each(|at| {
            db.put(format!("key{at:05}"), format!("{value} {at}")).expect("a write")
        });
    };
    write("former");
    let snapshot = Some(db.snapshot());
    let mut iter = db
        .iter(&ReadOptions {
            snapshot,
            auto_refresh_iterator_with_snapshot: auto_refresh,
            ..ReadOptions::default()
        })
        .expect("an iterator");
    iter.seek_to_first();
    write("present");
    db.flush_all().expect("a flush");
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    assert_eq!(db.memory_usage().kept_versions, 1, "of the iterator");
    (directory, db, iter)
}

#[test]
fn an_iterator_that_refreshes_itself_keeps_nothing_and_goes_on_where_it_was() {
    let (_directory, db, mut iter) = outlived(1000, true);
    for at in 0..1000 {
        assert_eq!(iter.key(), format!("key{at:05}").as_bytes());
        assert_eq!(iter.value().unwrap(), format!("former {at}").as_bytes());
        iter.next();
        assert!(at < 40 || db.memory_usage().kept_versions == 0);
    }
    assert!(!iter.valid() && iter.status().is_ok());
    db.put("later", "").unwrap();
    db.flush_all().unwrap();
    assert_eq!(db.memory_usage().kept_versions, 1);
    iter.seek_to_last();
    assert_eq!(db.memory_usage().kept_versions, 0, "a seek refreshes, too");
    for at in (0..1000).rev() {
        assert_eq!(iter.value().unwrap(), format!("former {at}").as_bytes());
        if at == 500 {
            db.flush_all().unwrap();
            db.put("key00400", "again").unwrap();
            db.flush_all().unwrap();
        }
        iter.prev();
    }
    assert!(!iter.valid() && iter.status().is_ok());
    assert_eq!(db.memory_usage().kept_versions, 0);
}

#[test]
fn an_iterator_that_does_not_keeps_what_it_was_made_with_until_it_is_told() {
    let (_directory, db, mut iter) = outlived(100, false);
    for at in 0..100 {
        assert_eq!(iter.value().unwrap(), format!("former {at}").as_bytes());
        iter.next();
    }
    assert_eq!(db.memory_usage().kept_versions, 1);
    iter.refresh().unwrap();
    assert!(!iter.valid(), "it stands nowhere");
    assert_eq!(db.memory_usage().kept_versions, 0);
    db.put("key00099", "unseen").unwrap();
    iter.seek("key00099");
    assert_eq!(iter.value().unwrap(), b"present 99");
    iter.refresh().unwrap();
    iter.seek("key00099");
    assert_eq!(iter.value().unwrap(), b"unseen");
}

/// Went wrong: an iterator that was told to show the newest state went back to its snapshot as soon
/// as it refreshed itself.
#[test]
fn an_iterator_that_was_refreshed_does_not_go_back_to_its_snapshot() {
    let (_directory, db, mut iter) = outlived(100, true);
    iter.refresh().unwrap();
    db.put("later", "").unwrap();
    db.flush_all().unwrap();
    iter.seek_to_first();
    for at in 0..100 {
        assert_eq!(iter.value().unwrap(), format!("present {at}").as_bytes());
        iter.next();
    }
}
