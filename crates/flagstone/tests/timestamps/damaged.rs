//! Keys that are too short for their timestamps, in files from anybody.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use flagstone::base::timestamp::from_u64;
use flagstone::base::{InternalIterator, InternalKeyBuf};
use flagstone::env::{Env, IoMode};
use flagstone::sst::{IterSettings, Table, TableReadSettings};
use flagstone::{Code, Comparator, Db, Result, UserComparator};

/// An order that relies on what it was promised: keys have their timestamps.
struct Trusting {
    size: usize,
}

impl Trusting {
    fn split<'a>(&self, key: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        key.split_at(key.len().checked_sub(self.size).expect("a key with its timestamp"))
    }
}

impl UserComparator for Trusting {
    fn name(&self) -> &str {
        "test.Trusting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ((a, a_stamp), (b, b_stamp)) = (self.split(a), self.split(b));
        a.cmp(b).then_with(|| self.compare_timestamps(b_stamp, a_stamp))
    }

    fn timestamp_size(&self) -> usize {
        self.size
    }

    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        assert_eq!([a.len(), b.len()], [self.size; 2]);
        a.iter().rev().cmp(b.iter().rev())
    }
}

fn trusting(size: usize) -> Comparator {
    Comparator::Custom(Arc::new(Trusting { size }))
}

/// A table of a family without timestamps, opened as if they were in it.
fn open_table(directory: &Path, fill: impl Fn(&Db), comparator: Comparator) -> Result<Arc<Table>> {
    let db = Db::open(directory).unwrap();
    fill(&db);
    db.flush().unwrap();
    let tables = db.live_files();
    let table = tables.iter().find(|file| file.entries.is_some()).unwrap();
    let file = Env::default().fs.open_random_access(&table.path, IoMode::Buffered).unwrap();
    Table::open(file, table.size, TableReadSettings { comparator, ..Default::default() })
}

#[test]
fn a_range_deletion_too_short_for_its_timestamp_is_damage() {
    for (start, end) in [("a", "b"), ("a", "long enough"), ("long enough", "m")] {
        for comparator in [Comparator::BytewiseU64Ts, trusting(8)] {
            let directory = tempfile::tempdir().unwrap();
            let fill = |db: &Db| db.delete_range(start..end).unwrap();
            let opened = open_table(directory.path(), fill, comparator);
            let error = opened.map(drop).unwrap_err();
            assert_eq!(error.code(), Code::Corruption, "{error}");
            assert!(error.path().is_some() && error.offset().is_some(), "{error:?}");
            assert!(error.to_string().contains("too short for its timestamp"), "{error}");
        }
    }
}

#[test]
fn an_order_of_the_application_is_not_asked_about_keys_without_their_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let keys = ["", "a", "b", "key-and-8-bytes-more", "short"];
    let fill = |db: &Db| keys.iter().for_each(|key| db.put(key, "v").unwrap());
    let table = open_table(directory.path(), fill, trusting(8)).unwrap();
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    while iter.valid() {
        iter.next();
    }
    iter.seek_to_last();
    while iter.valid() {
        iter.prev();
    }
    for key in keys {
        let target = InternalKeyBuf::for_seek(key.as_bytes(), 1 << 20);
        iter.seek(target.as_key());
        iter.seek_for_prev(target.as_key());
    }
}

#[test]
fn short_keys_have_an_order_too() {
    let order = trusting(2);
    let ascending: [&[u8]; 6] = [b"", b"a", b"b", b"\xff\xff", b"k\x02\0", b"k\x01\0"];
    for (at, a) in ascending.iter().enumerate() {
        for (other, b) in ascending.iter().enumerate() {
            assert_eq!(order.compare(a, b), at.cmp(&other), "{a:?} {b:?}");
        }
    }
    assert_eq!(order.compare_keys(b"k\x02\0", b"k\x01\0"), Ordering::Equal);
    assert_eq!(order.compare_keys(b"k", b"k\x01\0"), Ordering::Less);
    assert_eq!(order.compare_timestamps(b"k", b"\0\0"), Ordering::Greater);
    let mut key = b"k".to_vec();
    order.find_shortest_separator(&mut key, b"l");
    order.find_short_successor(&mut key);
}

#[test]
fn a_low_mark_of_another_size_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let open = |size| {
        let own = move |family: &mut flagstone::ColumnFamilyOptions| {
            family.comparator = trusting(size);
        };
        Db::builder(directory.path()).column_family("f", own).open()
    };
    let db = open(8).unwrap();
    db.column_family("f").unwrap().increase_full_history_ts_low(from_u64(5)).unwrap();
    drop(db);
    let error = open(4).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::Corruption, "{error}");
    assert!(error.to_string().contains("full_history_ts_low has 8 bytes"), "{error}");
    open(8).unwrap();
}
