use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::ColumnFamilyId;
use crate::batch::WriteBatch;
use crate::cache::MemoryKind;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{MemoryBudget, Options, ReadOptions, WriteOptions};

const LARGE: usize = 5 << 20;

fn opened(changes: &[(&str, &str)]) -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    // Tests follow the account in a budget's place.
    options.db.memory_budget = MemoryBudget::None;
    changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    Db::open("/db", &options).unwrap()
}

fn held(db: &Db, holder: MemoryKind) -> usize {
    db.inner().tables.account().held(holder)
}

/// What the cache may have while `Db` holds something, and without it.
fn capacity(db: &Db) -> usize {
    db.inner().tables.caches().blocks().capacity()
}

/// A database with large values in blob files, which its cache does not take.
fn with_values() -> Db {
    let changes =
        [("memory_budget", "64m"), ("enable_blob_files", "true"), ("min_blob_size", "1k")];
    let db = opened(&changes);
    for key in 0..4u8 {
        db.put([key], vec![key; LARGE]).unwrap();
        db.put([key, 0], vec![key; 2_000]).unwrap();
    }
    db.flush_all().unwrap();
    db.inner().wait_until_idle().unwrap();
    db
}

/// They were nobody's: ten thousand iterators that stood on large values had no limit.
#[test]
fn the_cache_makes_room_for_large_values_that_somebody_holds() {
    let db = with_values();
    let before = capacity(&db);
    let shrunk = |values: usize| {
        let (now, held) = (capacity(&db), held(&db, MemoryKind::Values));
        assert!(held >= values * LARGE && held < (values + 1) * LARGE, "{held} for {values}");
        // A step of the account, and what it leaves to the passing.
        assert!(
            before - now + (64 << 20) / 32 + (64 << 20) / 128 >= held,
            "{before} to {now} for {held}"
        );
        assert_eq!(db.memory_usage().values, held as u64);
    };
    let value = db.get([1]).unwrap().unwrap();
    shrunk(1);
    let (clone, family) = (value.clone(), db.default_column_family());
    let part =
        db.get_range(&ReadOptions::default(), family, [2], 0..LARGE as u64).unwrap().unwrap();
    shrunk(2);
    drop(value);
    shrunk(2);
    drop((clone, part));
    shrunk(0);
    let values = db.multi_get(&[[0], [1], [2]]);
    shrunk(3);
    assert!(values.iter().all(|value| value.as_ref().unwrap().as_ref().unwrap().len() == LARGE));
    drop(values);

    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    for key in [[0], [2]] {
        iter.seek(key);
        assert_eq!(iter.value().unwrap().len(), LARGE);
        shrunk(1);
    }
    iter.next();
    assert_eq!(iter.value().unwrap().len(), 2_000);
    shrunk(0);
    drop(iter);
    assert!(capacity(&db).abs_diff(before) < 1 << 19, "a cursor is kept for the next iterator");
}

/// Those of one lookup of many keys are too small to be counted one by one.
#[test]
fn many_small_values_of_one_lookup_are_counted_until_it_ends() {
    let db = opened(&[("enable_blob_files", "true"), ("min_blob_size", "1k")]);
    let keys: Vec<[u8; 1]> = (0..=255).map(|key| [key]).collect();
    keys.iter().for_each(|key| db.put(key, [7; 4_000]).unwrap());
    let peak = peak(&db);
    for place in ["memtables", "files"] {
        let before = db.inner().tables.account().total();
        peak.store(0, Ordering::Relaxed);
        drop(db.multi_get(&keys));
        assert!(peak.load(Ordering::Relaxed) >= before + 256 * 4_000, "in {place}");
        assert_eq!(held(&db, MemoryKind::Values), 0);
        db.flush_all().unwrap();
        db.inner().wait_until_idle().unwrap();
    }
}

/// The most that the account has come to since then.
fn peak(db: &Db) -> Arc<AtomicUsize> {
    let peak = Arc::new(AtomicUsize::new(0));
    let noted = peak.clone();
    db.inner().tables.account().follow(1, move |total| {
        noted.fetch_max(total, Ordering::Relaxed);
    });
    peak
}

#[test]
fn batches_count_while_they_are_written_and_buffers_of_the_log_as_long_as_it_keeps_them() {
    for (changes, copies) in [
        (vec![], 1),
        (vec![("wal_compression", "kZSTD")], 1),
        (vec![("enable_blob_files", "true"), ("min_blob_size", "1k")], 1),
        (
            vec![
                ("enable_blob_files", "true"),
                ("min_blob_size", "1k"),
                ("blob_compression_type", "kZSTD"),
            ],
            2,
        ),
    ] {
        let db = opened(&changes);
        let mut batch = WriteBatch::new();
        (0..8u8).for_each(|key| batch.put([key], [key; 512 << 10]).unwrap());
        let bytes = batch.byte_size();
        let peak = peak(&db);
        let (wal, before) =
            (held(&db, MemoryKind::WalBuffers), db.inner().tables.account().total());
        db.write_ref(&WriteOptions::default(), &mut batch).unwrap();
        assert!(peak.load(Ordering::Relaxed) >= before + copies * bytes, "{changes:?}");
        assert_eq!(
            (held(&db, MemoryKind::Writes), held(&db, MemoryKind::Values)),
            (0, 0),
            "{changes:?}"
        );
        let in_log = changes.first().is_none_or(|(name, _)| *name == "wal_compression");
        assert!(!in_log || held(&db, MemoryKind::WalBuffers) > wal, "{changes:?}");
        assert_eq!(db.memory_usage().wal_buffers, held(&db, MemoryKind::WalBuffers) as u64);

        // What is refused, too.
        batch.put_cf(ColumnFamilyId(7), b"key", b"value").unwrap();
        assert!(db.write_ref(&WriteOptions::default(), &mut batch).is_err());
        assert_eq!(held(&db, MemoryKind::Writes), 0);
        let account = db.inner().tables.account().clone();
        db.close().unwrap();
        drop(db);
        let left = [
            MemoryKind::WalBuffers,
            MemoryKind::Writes,
            MemoryKind::Values,
            MemoryKind::Jobs,
            MemoryKind::Cursors,
        ];
        assert_eq!(left.map(|holder| account.held(holder)), [0; 5], "{changes:?}");
    }
}

#[test]
fn a_record_too_large_to_be_kept_leaves_nothing_in_the_log_s_buffers() {
    for changes in [vec![], vec![("wal_compression", "kZSTD")]] {
        let db = opened(&changes);
        db.put("key", vec![1; 17 << 20]).unwrap();
        // The compressor once kept room for it.
        assert!(held(&db, MemoryKind::WalBuffers) < 1 << 20, "{changes:?} {}", db.memory_usage());
    }
}

#[test]
fn the_cache_makes_room_for_values_that_are_written_piece_by_piece() {
    let db = opened(&[("memory_budget", "64m")]);
    let (before, family) = (capacity(&db), db.default_column_family());
    let options = WriteOptions::default();
    let mut writer = db.put_stream(family, "key", &options).unwrap().with_buffer(LARGE);
    writer.write_all(&vec![7; LARGE - 1]).unwrap();
    assert!(
        held(&db, MemoryKind::Writes) >= LARGE - 1 && capacity(&db) < before,
        "{}",
        db.memory_usage()
    );
    writer.write_all(&[7; 2]).unwrap();
    // They are in a file now.
    assert!(
        held(&db, MemoryKind::Writes) < 1 << 20 && capacity(&db) == before,
        "{}",
        db.memory_usage()
    );
    assert!(held(&db, MemoryKind::Writes) > 0);
    writer.commit().unwrap();
    assert_eq!(held(&db, MemoryKind::Writes), 0);
    let mut given_up = db.put_stream(family, "key", &options).unwrap();
    given_up.write_all(&vec![7; 1 << 19]).unwrap();
    assert!(held(&db, MemoryKind::Writes) >= 1 << 19);
    drop(given_up);
    assert_eq!(held(&db, MemoryKind::Writes), 0);
}
