//! Stories of large values that go to blob files when they are committed.

#[path = "../common/mod.rs"]
mod common;
mod pieces;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{create, entries, temporary};
use flagstone::base::file_name::FileKind;
use flagstone::batch::WriteBatch;
use flagstone::blob::{BlobFileScan, BlobRecord};
use flagstone::db::{Db, Ticker, ValueWriter};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, IoMode};
use flagstone::options::{CompactRangeOptions, FlushOptions, Options, ReadOptions, WriteOptions};

/// A database in memory, whose process can die.
struct World {
    fs: MemoryFileSystem,
    settings: Vec<(&'static str, &'static str)>,
}

const DB: &str = "/db";

fn value(key: &str, size: usize) -> Vec<u8> {
    key.bytes().cycle().take(size).collect()
}

impl World {
    fn new(settings: &[(&'static str, &'static str)]) -> Self {
        Self { fs: MemoryFileSystem::new(), settings: settings.to_vec() }
    }

    fn options(&self) -> Options {
        let mut options = create();
        options.env = Env::os().with_fs(Arc::new(self.fs.clone()));
        // What compactions of their own accord leave for a moment would be taken for a mistake.
        for (name, value) in [("enable_blob_files", "true"), ("max_space_amplification", "0")]
            .iter()
            .chain(&self.settings)
        {
            options.set(name, value).expect("an option");
        }
        options
    }

    fn open(&self) -> Db {
        Db::open(DB, &self.options()).expect("a database")
    }

    /// The same files, as a process finds them whose predecessor died now.
    fn after_death(&self) -> Self {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new(DB)).expect("a directory");
        for (path, bytes) in self.fs.files() {
            fs.put(&path, bytes);
        }
        Self { fs, settings: self.settings.clone() }
    }

    fn blob_files(&self) -> Vec<PathBuf> {
        let is_blob = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            matches!(FileKind::parse(name), Some(FileKind::Blob(_)))
        };
        self.fs.files().into_iter().map(|(path, _)| path).filter(is_blob).collect()
    }

    fn records(&self, path: &Path) -> Vec<BlobRecord> {
        let file = self.fs.open_random_access(path, IoMode::Buffered).expect("a file");
        let scan = BlobFileScan::new(file).expect("a blob file");
        scan.map(|record| record.expect("a sound record")).collect()
    }

    /// Changes one byte of the value of a key in an unsealed file.
    fn damage(&self, key: &str) {
        let (path, at) = self
            .blob_files()
            .into_iter()
            .find_map(|path| {
                let file = self.fs.open_random_access(&path, IoMode::Buffered).expect("a file");
                // What follows the records of an unsealed file is reported as an error.
                let records = BlobFileScan::new(file).expect("a blob file").filter_map(Result::ok);
                let found = records.into_iter().find(|record| record.key == key.as_bytes())?;
                Some((path, found.offset + found.size() - 1))
            })
            .expect("the key's value is in a blob file");
        let file = self.fs.reopen_writable(&path).expect("a file");
        file.write_at(at, b"\xff").expect("a write");
    }
}

/// Everything the tools would complain about.
fn assert_sound(db: &Db) {
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
    let report = db.check().expect("a listing");
    assert!(report.faults.is_empty(), "{report:?}");
}

/// The same for a database that has just been opened, whose directory has nothing that it does not
/// need.
fn assert_tidy(db: &Db) {
    assert_sound(db);
    let strays = db.check().expect("a listing").strays;
    assert!(strays.is_empty(), "{strays:?}");
}

/// Garbage of all blob files as the MANIFEST has it against what no entry refers to.
fn blob_property(db: &Db, name: &str) -> u64 {
    db.property(db.default_column_family(), &format!("rocksdb.{name}"))
        .expect(name)
        .parse()
        .expect("a number")
}

#[test]
fn a_large_value_is_written_once_and_read_from_everywhere() {
    let world = World::new(&[("min_blob_size", "4096")]);
    let db = world.open();
    db.put("small", "value").unwrap();
    db.put("key1", value("one", 100_000)).unwrap();
    let snapshot = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put(b"key1", value("two", 50_000)).unwrap();
    batch.delete(b"small").unwrap();
    batch.put(b"key2", value("three", 4096)).unwrap();
    batch.put(b"key3", b"inline").unwrap();
    db.write_ref(&WriteOptions::default(), &mut batch).unwrap();
    assert_eq!(batch.count(), 4, "the caller's batch is his");
    assert!(db.statistics().get(Ticker::WalBytes) < 1000);

    let expected = |db: &Db| {
        assert_eq!(db.get("key1").unwrap().unwrap(), value("two", 50_000));
        assert_eq!(
            db.multi_get(&["key2", "small"])[0].as_ref().unwrap().as_deref().unwrap().len(),
            4096
        );
        let all = entries(db, db.default_column_family());
        let sizes: Vec<_> = all.iter().map(|(_, value)| value.len()).collect();
        assert_eq!(sizes, [50_000, 4096, 6]);
    };
    expected(&db);
    let old = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    let seen = |db: &Db| db.get_with(&old, db.default_column_family(), "key1").unwrap().unwrap();
    assert_eq!(seen(&db), value("one", 100_000));
    assert_sound(&db);

    db.flush_all().unwrap();
    expected(&db);
    assert_eq!(seen(&db), value("one", 100_000));
    assert_sound(&db);
    assert_eq!(world.blob_files().len(), 1);
    drop(snapshot);
    db.close().unwrap();
    let db = world.open();
    expected(&db);
    assert_sound(&db);
}

#[test]
fn what_is_overwritten_before_the_flush_is_garbage_from_the_beginning() {
    let world = World::new(&[]);
    let db = world.open();
    for round in ["a", "b", "c"] {
        db.put("key", value(round, 10_000)).unwrap();
    }
    db.put("other", value("other", 5000)).unwrap();
    db.flush_all().unwrap();
    let [path] = &world.blob_files()[..] else { panic!("one file") };
    assert_eq!(world.records(path).len(), 4);
    let garbage: u64 = world.records(path)[..2].iter().map(BlobRecord::size).sum();
    assert_eq!(blob_property(&db, "live-blob-file-garbage-size"), garbage);
    // Large values were left out, however many there were.
    let live = blob_property(&db, "live-blob-file-size") - garbage;
    assert_eq!(
        blob_property(&db, "estimate-live-data-size"),
        blob_property(&db, "live-sst-files-size") + live
    );
    assert_sound(&db);

    // A file of garbage alone goes at once.
    db.put("gone", value("gone", 10_000)).unwrap();
    db.delete("gone").unwrap();
    assert_eq!(world.blob_files().len(), 2);
    db.flush_all().unwrap();
    db.close().unwrap();
    assert_eq!(world.blob_files().len(), 1);
    assert_eq!(world.open().get("key").unwrap().unwrap(), value("c", 10_000));
}

#[test]
fn a_process_that_died_loses_nothing() {
    let world = World::new(&[]);
    let db = world.open();
    db.put("flushed", value("flushed", 10_000)).unwrap();
    db.flush_all().unwrap();
    db.put("flushed", value("again", 9_000)).unwrap();
    db.put("small", "value").unwrap();
    db.put("large", value("large", 300_000)).unwrap();
    db.delete("small").unwrap();
    let expected = entries(&db, db.default_column_family());

    let died = world.after_death();
    let reader = Db::open_read_only(DB, &died.options()).unwrap();
    assert_eq!(entries(&reader, reader.default_column_family()), expected);
    assert_tidy(&reader);
    drop(reader);
    let db = died.open();
    assert_eq!(entries(&db, db.default_column_family()), expected);
    assert_tidy(&db);
    db.put("more", value("more", 8_000)).unwrap();
    let died_again = died.after_death();
    assert_eq!(died_again.open().get("more").unwrap().unwrap(), value("more", 8_000));
}

/// Of a batch that recovery refused, a memtable without entries still named the blob file, which
/// was removed: no checkpoint could be made.
#[test]
fn what_a_refused_batch_named_is_forgotten() {
    let world = World::new(&[]);
    let db = world.open();
    let mut batch = WriteBatch::new();
    batch.put(b"a", value("a", 5000)).unwrap();
    batch.put(b"b", value("b", 5000)).unwrap();
    db.write(batch).unwrap();
    let died = world.after_death();
    died.damage("b");
    let db = died.open();
    assert_eq!(entries(&db, db.default_column_family()), []);
    assert_tidy(&db);
    db.checkpoint("/copy").unwrap();
}

#[test]
fn history_ends_at_a_value_that_is_not_whole() {
    let world = World::new(&[]);
    let db = world.open();
    db.put("a", value("a", 5000)).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"b1", b"small").unwrap();
    batch.put(b"b2", value("b", 5000)).unwrap();
    db.write(batch).unwrap();
    db.put("c", value("c", 5000)).unwrap();
    let opened = |mode: &str| {
        let mut died = world.after_death();
        died.damage("b2");
        died.settings.push(("wal_recovery_mode", Box::leak(mode.to_string().into_boxed_str())));
        let opened = Db::open(DB, &died.options());
        opened.map(|db| {
            assert_tidy(&db);
            let keys = entries(&db, db.default_column_family()).into_iter().map(|(key, _)| key);
            String::from_utf8(keys.collect::<Vec<_>>().join(&b' ')).unwrap()
        })
    };
    assert_eq!(opened("kPointInTimeRecovery").unwrap(), "a");
    assert_eq!(opened("kTolerateCorruptedTailRecords").unwrap(), "a");
    assert_eq!(opened("kSkipAnyCorruptedRecords").unwrap(), "a c");
    let error = opened("kAbsoluteConsistency").unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("b2"), "{error}");
    // The same if the file is gone.
    let died = world.after_death();
    died.fs.remove(&died.blob_files()[0]).unwrap();
    let db = died.open();
    assert_eq!(entries(&db, db.default_column_family()), []);
}

#[test]
fn golden_record_of_the_wal() {
    let world = World::new(&[("wal_write_mode", "plain"), ("recycle_log_file_num", "0")]);
    let db = world.open();
    db.put("a2", value("v", 4096)).unwrap();
    let [path] = &world.blob_files()[..] else { panic!("one file") };
    let number = match FileKind::parse(path.file_name().unwrap().to_str().unwrap()) {
        Some(FileKind::Blob(number)) => number.0 as u8,
        other => panic!("{other:?}"),
    };
    let files = world.fs.files();
    let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
    let (_, log) = files.iter().find(|(path, _)| is_log(path)).unwrap();
    // Header of the record; sequence number 1, one operation; type, key, and the index: kind 1,
    // file, offset 64 behind the headers of file and record and the key, size 4096, no compression.
    assert_eq!(log[4..7], [23, 0, 1]);
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    expected.extend([0x11, 2, b'a', b'2', 6, 1, number, 64, 0x80, 0x20, 0]);
    assert_eq!(log[7..], expected);
}

/// What is found is what was written up to some moment, whichever byte of an unsealed blob file is
/// wrong, or missing.
#[test]
fn damage_to_an_unsealed_file_ends_history_there() {
    let world = World::new(&[("blob_commit_min_size", "10"), ("min_blob_size", "10")]);
    let db = world.open();
    let keys = ["a", "b", "c", "d"];
    for key in keys {
        db.put(key, value(key, 40)).unwrap();
    }
    let [path] = &world.blob_files()[..] else { panic!("one file") };
    let end = 30 + 4 * 73;
    let size = world.fs.open_random_access(path, IoMode::Buffered).unwrap().size().unwrap();
    assert!(size > end + 10, "zeros follow");
    for at in 0..end + 10 {
        for is_cut in [false, true] {
            let died = world.after_death();
            let file = died.fs.reopen_writable(path).unwrap();
            let mut byte = [0];
            file.read_at(at, &mut byte).unwrap();
            if is_cut { file.truncate(at) } else { file.write_at(at, &[byte[0] ^ 0x10]) }.unwrap();
            let db = died.open();
            let found = entries(&db, db.default_column_family());
            // Each record has 32 + 1 + 40 bytes; before the first is the file's header, whose
            // version, flags and dates no reader of an unsealed file may ignore either.
            let whole = at.min(end).saturating_sub(30) / 73;
            let expected =
                keys[..whole as usize].iter().map(|key| (key.as_bytes().to_vec(), value(key, 40)));
            assert_eq!(found, expected.collect::<Vec<_>>(), "byte {at}, cut: {is_cut}");
            assert_tidy(&db);
        }
    }
}

/// Writers went round and round: a batch that failed after its values were in the blob file had
/// filled this, and nobody had asked for another memtable.
#[test]
fn a_blob_file_filled_by_batches_that_failed_is_replaced() {
    let world = World::new(&[("blob_file_size", "20000")]);
    let db = world.open();
    let failing = || {
        let mut batch = WriteBatch::new();
        batch.put(b"key", value("key", 15_000)).unwrap();
        batch.merge(b"other", b"operand").unwrap();
        db.write(batch).unwrap_err()
    };
    for round in 0..3 {
        assert!(failing().message().contains("merge operator"));
        assert!(failing().message().contains("merge operator"));
        db.put("key", value(&round.to_string(), 5000)).unwrap();
    }
    assert_eq!(db.get("key").unwrap().unwrap(), value("2", 5000));
    db.flush_all().unwrap();
    assert_sound(&db);
}

#[test]
fn many_threads_fill_many_blob_files() {
    let directory = temporary();
    let mut options = create();
    for (name, value) in [("enable_blob_files", "true"), ("blob_file_size", "200000")] {
        options.set(name, value).unwrap();
    }
    let db = Db::open(directory.path(), &options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for i in 0..150 {
                    let key = format!("key{thread}-{}", i % 100);
                    db.put(&key, value(&format!("{key}/{i}"), 4096 + i * 10)).unwrap();
                    assert!(db.get(&key).unwrap().unwrap().starts_with(key.as_bytes()));
                }
            });
        }
    });
    let check = |db: &Db| {
        for thread in 0..4 {
            for i in 0..150 {
                let key = format!("key{thread}-{}", i % 100);
                let last = if i < 50 { i + 100 } else { i };
                let expected = value(&format!("{key}/{last}"), 4096 + last * 10);
                assert_eq!(db.get(&key).unwrap().unwrap(), expected, "{key}");
            }
        }
        assert_sound(db);
    };
    check(&db);
    db.close().unwrap();
    drop(db);
    let db = Db::open(directory.path(), &options).unwrap();
    check(&db);
}

#[test]
fn whoever_reads_by_way_of_a_memtable_keeps_its_blob_file() {
    let world = World::new(&[
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "1"),
    ]);
    let db = world.open();
    db.put("key", value("old", 10_000)).unwrap();
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    db.flush(db.default_column_family(), &FlushOptions::default()).unwrap();
    db.put("key", value("new", 10_000)).unwrap();
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    assert_eq!(iter.value().unwrap(), value("old", 10_000));
    drop(iter);
    db.close().unwrap();
    assert_eq!(world.blob_files().len(), 1);
}

#[test]
fn families_have_their_own_files_and_batches_span_them() {
    let world = World::new(&[("create_missing_column_families", "true")]);
    let db = world.open();
    let other = db.create_column_family("other", &world.options().cf).unwrap();
    let mut inline = world.options().cf;
    inline.enable_blob_files = Some(false);
    let inline = db.create_column_family("inline", &inline).unwrap();
    let mut batch = WriteBatch::new();
    for (index, family) in
        [&other, &inline, db.default_column_family(), &other].into_iter().enumerate()
    {
        let key = format!("key{index}");
        batch.put_cf(family, key.as_bytes(), value(&key, 5000 + index)).unwrap();
    }
    db.write(batch).unwrap();
    assert_eq!(world.blob_files().len(), 2);
    let died = world.after_death();
    for db in [&db, &died.open()] {
        let sizes = |name: &str| -> Vec<usize> {
            let family = db.column_family(name).unwrap();
            entries(db, &family).into_iter().map(|(_, value)| value.len()).collect()
        };
        assert_eq!(sizes("other"), [5000, 5003]);
        assert_eq!(sizes("inline"), [5001]);
        assert_eq!(sizes("default"), [5002]);
    }
    db.drop_column_family(&other).unwrap();
    drop(other);
    db.flush_all().unwrap();
    db.close().unwrap();
    assert_eq!(world.blob_files().len(), 1);
    assert_sound(&world.open());
}

#[test]
fn a_clean_close_leaves_what_rocksdb_can_open() {
    for disable_wal in [false, true] {
        let world = World::new(&[("avoid_flush_during_shutdown", "true")]);
        let db = world.open();
        let options = WriteOptions { disable_wal, ..WriteOptions::default() };
        let mut batch = WriteBatch::new();
        batch.put(b"key", value("key", 5000)).unwrap();
        db.write_with(&options, batch).unwrap();
        db.close().unwrap();
        let logs = world
            .fs
            .files()
            .into_iter()
            .filter(|(path, _)| path.extension().is_some_and(|e| e == "log"));
        assert_eq!(
            logs.map(|(_, bytes)| bytes.len()).sum::<usize>(),
            0,
            "nothing is left to replay"
        );
        let db = world.open();
        assert_eq!(db.get("key").unwrap().unwrap(), value("key", 5000));
        assert_tidy(&db);
    }
}

/// A batch that named a blob was refused, unless it had a large value as well: then readers were
/// sent to a place in a file that the engine had not chosen.
#[test]
fn addresses_come_from_the_engine_alone() {
    let db = World::new(&[]).open();
    for large in [false, true] {
        let mut batch = WriteBatch::new();
        batch
            .put_blob_index(db.default_column_family().id(), b"key", b"\x01\x07\x40\x05\x00")
            .unwrap();
        if large {
            batch.put(b"large", value("large", 10_000)).unwrap();
        }
        let error = db.write(batch).unwrap_err();
        assert_eq!(error.code(), flagstone::base::Code::NotSupported);
        assert!(db.get("key").unwrap().is_none());
    }
}
