//! A batch with an index, read by itself and over a database, beside an ordered map.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use flagstone::base::merge::StringAppendOperator;
use flagstone::base::{Code, Comparator};
use flagstone::db::{ColumnFamily, Db, Ticker};
use flagstone::transactions::{BatchEntry, InBatch, WriteBatchWithIndex};
use flagstone::{ColumnFamilyOptions, Options, ReadOptions};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn opened(directory: &tempfile::TempDir) -> Db {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    Db::open(directory.path(), &options).expect("the database opens")
}

fn texts(pairs: &[(Vec<u8>, BatchEntry)]) -> Vec<(String, BatchEntry)> {
    pairs.iter().map(|(key, entry)| (key.escape_ascii().to_string(), entry.clone())).collect()
}

#[test]
fn a_batch_reads_its_own_writes() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let family = db.default_column_family();
    db.put("a", "below").unwrap();
    let mut batch = WriteBatchWithIndex::new();
    assert_eq!(batch.get(family, "a").unwrap(), InBatch::Absent);
    batch.merge(family, "a", "1").unwrap();
    assert_eq!(batch.get(family, "a").unwrap(), InBatch::MergeInProgress);
    batch.put(family, "b", "2").unwrap();
    batch.merge(family, "b", "3").unwrap();
    batch.merge(family, "b", "4").unwrap();
    assert_eq!(batch.get(family, "b").unwrap(), InBatch::Value(b"2,3,4".to_vec()));
    batch.delete(family, "b").unwrap();
    assert_eq!(batch.get(family, "b").unwrap(), InBatch::Deleted);
    let options = ReadOptions::default();
    let value = |key| batch.get_from_batch_and_db(&db, family, key, &options).unwrap();
    assert_eq!(value("a").unwrap(), "below,1");
    assert!(value("b").is_none());
    assert!(value("c").is_none());
    let entries: Vec<_> = batch.entries(family).unwrap().collect();
    let put = |text: &str| BatchEntry::Put(text.into());
    let merge = |text: &str| BatchEntry::Merge(text.into());
    assert_eq!(
        texts(&entries),
        [
            ("a".into(), merge("1")),
            ("b".into(), BatchEntry::Delete),
            ("b".into(), merge("4")),
            ("b".into(), merge("3")),
            ("b".into(), put("2")),
        ]
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let family = db.default_column_family();
    let plain = db.create_column_family("plain", &ColumnFamilyOptions::default()).unwrap();
    let mut batch = WriteBatchWithIndex::new();
    let ranges = batch.delete_range(family, "a", "b").unwrap_err();
    assert_eq!(ranges.code(), Code::NotSupported);
    let merges = batch.merge(&plain, "a", "b").unwrap_err();
    assert_eq!(merges.code(), Code::InvalidArgument);
    assert!(merges.message().contains("'plain' has no merge operator"), "{merges}");
    assert!(batch.is_empty());
    assert_eq!(batch.rollback_to_save_point().unwrap_err().code(), Code::NotFound);
    // A batch of another database, whose family of the same number has another order.
    let other = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    options.cf.comparator = Comparator::ReverseBytewise;
    let reversed = Db::open(other.path(), &options).unwrap();
    batch.put(family, "a", "b").unwrap();
    let error = batch.get(reversed.default_column_family(), "a").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("rocksdb.ReverseBytewiseComparator"), "{error}");
}

#[test]
fn a_cursor_goes_on_seeing_what_it_saw() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let family = db.default_column_family();
    let mut batch = WriteBatchWithIndex::new();
    batch.put(family, "a", "1").unwrap();
    batch.set_save_point();
    batch.put(family, "b", "2").unwrap();
    let mut cursor = batch.iter_over(&db, family, &ReadOptions::default()).unwrap();
    batch.rollback_to_save_point().unwrap();
    batch.delete(family, "a").unwrap();
    let mut seen = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        seen.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        cursor.next();
    }
    assert_eq!(seen, [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
    assert_eq!(batch.count(), 2);
    batch.clear();
    assert_eq!(batch.get(family, "a").unwrap(), InBatch::Absent);
}

/// A life of a batch over a database, with a map for each.
struct Life {
    rng: Rng,
    db: Db,
    families: Vec<ColumnFamily>,
    batch: WriteBatchWithIndex,
    /// What each family will hold.
    expected: Vec<Model>,
    save_points: Vec<Vec<Model>>,
}

impl Life {
    fn new(seed: u64, directory: &tempfile::TempDir) -> Self {
        let db = opened(directory);
        let append = || Some(Arc::new(StringAppendOperator::new(",")) as _);
        let mut reversed = ColumnFamilyOptions::default();
        reversed.comparator = Comparator::ReverseBytewise;
        reversed.merge_operator = append();
        let families = vec![
            db.default_column_family().clone(),
            db.create_column_family("reversed", &reversed).expect("the batch can do that"),
        ];
        let mut life = Self {
            rng: Rng::with_seed(seed),
            db,
            families,
            batch: WriteBatchWithIndex::new(),
            expected: vec![Model::new(); 2],
            save_points: Vec::new(),
        };
        for at in 0..2 {
            for _ in 0..life.rng.usize(0..30) {
                let (key, value) = (life.key(), life.value());
                life.db.put_cf(&life.families[at], &key, &value).expect("the batch can do that");
                life.expected[at].insert(key, value);
            }
        }
        life
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:02}", self.rng.u8(0..40)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let size = if self.rng.u8(0..20) == 0 { 5000 } else { self.rng.usize(0..6) };
        std::iter::repeat_with(|| self.rng.alphanumeric() as u8).take(size).collect()
    }

    fn change(&mut self) {
        let at = self.rng.usize(0..2);
        let (key, value) = (self.key(), self.value());
        let (family, model) = (&self.families[at], &mut self.expected[at]);
        match self.rng.u8(0..10) {
            0..4 => {
                self.batch.put(family, &key, &value).expect("the batch can do that");
                model.insert(key, value);
            }
            4..6 => {
                self.batch.delete(family, &key).expect("the batch can do that");
                model.remove(&key);
            }
            6..8 => {
                self.batch.merge(family, &key, &value).expect("the batch can do that");
                let merged = match model.get(&key) {
                    Some(old) => [old, &b","[..], &value].concat(),
                    None => value,
                };
                model.insert(key, merged);
            }
            8 => {
                self.batch.set_save_point();
                self.save_points.push(self.expected.clone());
            }
            _ => match self.save_points.pop() {
                Some(_) if self.rng.bool() => {
                    self.batch.pop_save_point().expect("the batch can do that")
                }
                Some(before) => {
                    self.batch.rollback_to_save_point().expect("the batch can do that");
                    self.expected = before;
                }
                None => assert!(self.batch.pop_save_point().is_err()),
            },
        }
    }

    /// What a map shows in the order of family `at`, within the options' bounds.
    fn shown(&self, at: usize, options: &ReadOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
        let order = self.families[at].comparator();
        let within = |key: &[u8]| {
            let lower = options.iterate_lower_bound.as_ref();
            let upper = options.iterate_upper_bound.as_ref();
            lower.is_none_or(|lower| order.compare(key, lower).is_ge())
                && upper.is_none_or(|upper| order.compare(key, upper).is_lt())
        };
        let mut all: Vec<_> = self.expected[at]
            .iter()
            .filter(|(key, _)| within(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        all.sort_by(|a, b| order.compare(&a.0, &b.0));
        all
    }

    fn check(&mut self) {
        let at = self.rng.usize(0..2);
        let options = ReadOptions::default();
        let keys: Vec<Vec<u8>> = (0..5).map(|_| self.key()).collect();
        let family = &self.families[at];
        let many = self.batch.multi_get_from_batch_and_db(&self.db, family, &keys, &options);
        let many = many.expect("the orders are one");
        for (key, found) in keys.iter().zip(many) {
            let expected = self.expected[at].get(key);
            assert_eq!(
                found.expect("the batch can do that").as_deref(),
                expected.map(Vec::as_slice)
            );
            let one = self
                .batch
                .get_from_batch_and_db(&self.db, family, key, &options)
                .expect("the batch can do that");
            assert_eq!(one.as_deref(), expected.map(Vec::as_slice));
        }
        self.check_cursor(at);
    }

    /// Moves a cursor about, and compares each place with the place in a list.
    fn check_cursor(&mut self, at: usize) {
        let mut options = ReadOptions::default();
        options.iterate_lower_bound = (self.rng.u8(0..3) == 0).then(|| self.key());
        options.iterate_upper_bound = (self.rng.u8(0..3) == 0).then(|| self.key());
        let all = self.shown(at, &options);
        let family = self.families[at].clone();
        let order = family.comparator();
        let mut cursor =
            self.batch.iter_over(&self.db, &family, &options).expect("the batch can do that");
        let mut place: Option<usize> = None;
        for _ in 0..20 {
            let target = self.key();
            place = match self.rng.u8(0..8) {
                0 => {
                    cursor.seek_to_first();
                    Some(0)
                }
                1 => {
                    cursor.seek_to_last();
                    all.len().checked_sub(1)
                }
                2 => {
                    cursor.seek(&target);
                    Some(all.partition_point(|(key, _)| order.compare(key, &target).is_lt()))
                }
                3 => {
                    cursor.seek_for_prev(&target);
                    let after = all.partition_point(|(key, _)| order.compare(key, &target).is_le());
                    after.checked_sub(1)
                }
                4 | 5 if place.is_some() => {
                    cursor.next();
                    place.map(|place| place + 1)
                }
                6 | 7 if place.is_some() => {
                    cursor.prev();
                    place.and_then(|place| place.checked_sub(1))
                }
                _ => place,
            };
            place = place.filter(|place| *place < all.len());
            cursor.status().expect("the batch can do that");
            assert_eq!(cursor.valid(), place.is_some());
            if let Some(place) = place {
                assert_eq!(cursor.key(), all[place].0);
                assert_eq!(cursor.value().expect("the batch can do that"), all[place].1);
            }
        }
    }
}

#[test]
fn a_batch_over_a_database_is_what_writing_it_makes() {
    for seed in 0..30 {
        let directory = tempfile::tempdir().unwrap();
        let mut life = Life::new(seed, &directory);
        for _ in 0..60 {
            life.change();
            life.check();
        }
        life.db.write(life.batch.into_batch()).unwrap();
        for (family, expected) in life.families.iter().zip(life.expected) {
            let mut cursor = life.db.iter_cf(family, &ReadOptions::default()).unwrap();
            let mut found = Model::new();
            cursor.seek_to_first();
            while let Some((key, value)) = cursor.next_entry().unwrap() {
                found.insert(key, value);
            }
            assert_eq!(found, expected, "seed {seed}");
        }
    }
}

/// The names of files in a database that have this end.
fn files(directory: &tempfile::TempDir, end: &str) -> Vec<String> {
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(end)).collect()
}

fn all(db: &Db, family: &ColumnFamily) -> Vec<(String, String)> {
    let mut iter = db.iter_cf(family, &ReadOptions::default()).unwrap();
    let mut found = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        found.push((text(iter.key()), text(iter.value().unwrap())));
        iter.next();
    }
    iter.status().unwrap();
    found
}

#[test]
fn an_ingested_batch_is_there_at_once_and_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let family = db.default_column_family();
    let other = db.create_column_family("other", &ColumnFamilyOptions::default()).unwrap();
    for key in ["a", "b", "c", "d"] {
        db.put(key, "below").unwrap();
    }
    let before = db.snapshot();
    let mut batch = WriteBatchWithIndex::new();
    batch.put(family, "a", "1").unwrap();
    batch.put(family, "a", "2").unwrap();
    batch.delete(family, "b").unwrap();
    batch.merge(family, "c", "1").unwrap();
    batch.merge(family, "c", "2").unwrap();
    batch.merge(family, "c", "3").unwrap();
    batch.put(family, "e", "new").unwrap();
    batch.merge(family, "e", "er").unwrap();
    batch.put(family, "f", "put").unwrap();
    batch.single_delete(family, "f").unwrap();
    batch.put_entity(&other, "entity", [("column", "1")]).unwrap();
    batch.set_save_point();
    batch.put(family, "g", "rolled back").unwrap();
    batch.rollback_to_save_point().unwrap();
    let written = db.statistics().get(Ticker::KeysWritten);
    batch.ingest(&db).unwrap();
    assert_eq!(db.statistics().get(Ticker::KeysWritten), written, "not through memtables");
    let expected = [("a", "2"), ("c", "below,1,2,3"), ("d", "below"), ("e", "new,er")];
    let expected: Vec<_> =
        expected.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    assert_eq!(all(&db, family), expected);
    assert_eq!(
        db.get_entity(&ReadOptions::default(), &other, "entity").unwrap().unwrap().iter().count(),
        1
    );
    let seen = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
    assert_eq!(db.get_with(&seen, family, "b").unwrap().unwrap(), "below");
    assert!(db.get_with(&seen, family, "e").unwrap().is_none());
    drop(seen);
    // It may be ingested again, over what is there now.
    batch.ingest(&db).unwrap();
    assert_eq!(db.get("c").unwrap().unwrap(), "below,1,2,3,1,2,3");
    WriteBatchWithIndex::new().ingest(&db).unwrap();
    assert_eq!(files(&directory, ".dbtmp"), Vec::<String>::new());
    db.close().unwrap();
    let db = opened(&directory);
    assert_eq!(db.get("e").unwrap().unwrap(), "new,er");
    assert!(db.get("b").unwrap().is_none() && db.get("f").unwrap().is_none());
}

#[test]
fn what_is_not_ingested_is_refused_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let family = db.default_column_family();
    let dropped = db.create_column_family("dropped", &ColumnFamilyOptions::default()).unwrap();
    let mut options = ColumnFamilyOptions::default();
    options.comparator = Comparator::BytewiseU64Ts;
    let stamped = db.create_column_family("stamped", &options).unwrap();
    let code = |fill: &dyn Fn(&mut WriteBatchWithIndex)| {
        let mut batch = WriteBatchWithIndex::new();
        batch.put(family, "k", "v").unwrap();
        fill(&mut batch);
        batch.ingest(&db).unwrap_err().code()
    };
    let many = |batch: &mut WriteBatchWithIndex| {
        (0..65).for_each(|_| batch.merge(family, "many", "1").unwrap());
    };
    assert_eq!(code(&many), Code::InvalidArgument);
    assert_eq!(code(&|batch| batch.put(&stamped, "k", "v").unwrap()), Code::NotSupported);
    let mut lost = WriteBatchWithIndex::new();
    lost.put(&dropped, "k", "v").unwrap();
    db.drop_column_family(&dropped).unwrap();
    assert_eq!(lost.ingest(&db).unwrap_err().code(), Code::InvalidArgument);
    assert!(db.get("k").unwrap().is_none());
    assert!(files(&directory, ".dbtmp").is_empty() && files(&directory, ".sst").is_empty());
    db.drop_column_family(&stamped).unwrap();
    drop((dropped, stamped));
    db.close().unwrap();
    let db = Db::open_read_only(directory.path(), &Options::default()).unwrap();
    let mut batch = WriteBatchWithIndex::new();
    batch.put(db.default_column_family(), "k", "v").unwrap();
    assert_eq!(batch.ingest(&db).unwrap_err().code(), Code::NotSupported);
    assert!(files(&directory, ".dbtmp").is_empty());
}
