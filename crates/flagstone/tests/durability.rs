//! What a power failure may take, and what callers of a closing or failing database see.

#![expect(clippy::disallowed_methods, reason = "the tests stand outside the engine")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{create, entries, temporary};
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, LiveFile, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{
    AnyFile, Env, FileAround, FileSystem, FileSystemAround, IoMode, OpenMode, read_file,
};
use flagstone::options::{CompactRangeOptions, Options, ReadOptions, WriteOptions};

/// A file system in memory that remembers what was synced. Names are durable at once.
#[derive(Clone, Default)]
struct Disk {
    live: MemoryFileSystem,
    synced: MemoryFileSystem,
    open_logs: Arc<AtomicUsize>,
    /// Syncs wait while somebody holds it.
    syncing: Arc<Mutex<()>>,
}

impl Disk {
    fn options(&self) -> Options {
        let mut options = create();
        options.env = Env::os().with_fs(Arc::new(self.clone()));
        options
    }

    /// The same world after the power failed.
    fn after_power_failure(&self) -> Options {
        let mut options = create();
        options.env = Env::os().with_fs(Arc::new(self.synced.clone()));
        options
    }

    /// Whether the synced part of any WAL holds these bytes.
    fn has_synced_in_log(&self, bytes: &[u8]) -> bool {
        let holds = |(path, synced): &(PathBuf, Arc<Vec<u8>>)| {
            path.extension().is_some_and(|extension| extension == "log")
                && synced.windows(bytes.len()).any(|window| window == bytes)
        };
        self.synced.files().iter().any(holds)
    }
}

struct DiskFile {
    file: AnyFile,
    disk: Disk,
    is_log: bool,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.disk.open_logs.fetch_sub(usize::from(self.is_log), Ordering::Relaxed);
    }
}

impl FileAround for DiskFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn sync(&self) -> Result<()> {
        let _held = self.disk.syncing.lock();
        let path = self.file.path();
        if self.disk.synced.metadata(path).is_ok() {
            let bytes = read_file(&self.disk.live, path, u64::MAX)?;
            self.disk.synced.create_writable(path, IoMode::Buffered)?.write_at(0, &bytes)?;
        }
        Ok(())
    }
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &self.live
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&self.live, path)?;
        if mode.creates() {
            mode.open(&self.synced, path)?;
        }
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        self.open_logs.fetch_add(usize::from(is_log), Ordering::Relaxed);
        Ok(AnyFile::around(DiskFile { file, disk: self.clone(), is_log }))
    }
    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.synced.rename(source, target)?;
        self.live.rename(source, target)
    }
    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.synced.link(source, target)?;
        self.live.link(source, target)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.synced.remove(path)?;
        self.live.remove(path)
    }
    fn create_directory(&self, path: &Path) -> Result<()> {
        self.synced.create_directory(path)?;
        self.live.create_directory(path)
    }
    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.synced.remove_directory(path)?;
        self.live.remove_directory(path)
    }
}

/// A flush of one family made its own writes durable and let a power failure take older writes to
/// another family: the database then refused to open, because the one was ahead of the other.
#[test]
fn a_flushed_family_does_not_outlive_older_writes_to_others() {
    let disk = Disk::default();
    let db = Db::open("/db", &disk.options()).unwrap();
    let other = db.create_column_family("other", &disk.options().cf).unwrap();
    db.put("older", "1").unwrap();
    db.put_cf(&other, "newer", "2").unwrap();
    db.flush(&other, &Default::default()).unwrap();

    let db = Db::open("/db", &disk.after_power_failure()).unwrap();
    let other = db.column_family("other").unwrap();
    assert_eq!(db.get_cf(&other, "newer").unwrap().unwrap(), "2");
    assert_eq!(db.get("older").unwrap().unwrap(), "1");
}

/// Writers that never sync kept every WAL open for ever: descriptors and the space of removed files
/// ran out.
#[test]
fn obsolete_wals_are_closed_though_nobody_syncs() {
    let disk = Disk::default();
    let db = Db::open("/db", &disk.options()).unwrap();
    for round in 0..20 {
        db.put(format!("{round}"), "value").unwrap();
        db.flush_all().unwrap();
    }
    assert!(
        disk.open_logs.load(Ordering::Relaxed) <= 3,
        "{} are open",
        disk.open_logs.load(Ordering::Relaxed)
    );
}

/// An empty batch with `sync` is how applications sync what they wrote before; it returned without
/// a sync.
#[test]
fn an_empty_synced_batch_syncs_what_was_written_before() {
    let disk = Disk::default();
    let db = Db::open("/db", &disk.options()).unwrap();
    db.put("key", "value").unwrap();
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, WriteBatch::new())
        .unwrap();
    let db = Db::open("/db", &disk.after_power_failure()).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

/// A batch of log data alone has no sequence number of its own: it was taken for synced with what
/// came before it.
#[test]
fn a_synced_batch_of_log_data_is_synced() {
    let disk = Disk::default();
    let db = Db::open("/db", &disk.options()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_log_data(b"a word to the log's readers").unwrap();
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch).unwrap();
    assert!(disk.has_synced_in_log(b"a word to"));
}

/// A sync of what was written so far left out log data that had come after the last synced write.
#[test]
fn log_data_alone_is_synced_when_somebody_asks() {
    let sync: [fn(&Db) -> Result<()>; 2] = [Db::sync_wal, |db| db.flush_wal(true)];
    for sync in sync {
        let disk = Disk::default();
        let db = Db::open("/db", &disk.options()).unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"value").unwrap();
        db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch).unwrap();
        let mut batch = WriteBatch::new();
        batch.put_log_data(b"a word to the log's readers").unwrap();
        db.write(batch).unwrap();
        sync(&db).unwrap();
        assert!(disk.has_synced_in_log(b"a word to"));
        let before = db.statistics().get(Ticker::WalSyncs);
        sync(&db).unwrap();
        assert_eq!(db.statistics().get(Ticker::WalSyncs), before, "once is enough");
    }
}

/// A write that did not ask for a sync becomes visible after those before it that did; it paid for
/// a sync of its own.
#[test]
fn an_unsynced_write_waits_for_the_syncs_of_others_only() {
    let disk = Disk::default();
    let db = Db::open("/db", &disk.options()).unwrap();
    let before = db.statistics().get(Ticker::WalSyncs);
    let held = disk.syncing.lock().unwrap();
    let writers = [true, false].map(|sync| {
        let mine = db.clone();
        let writer = std::thread::spawn(move || {
            let mut batch = WriteBatch::new();
            batch.put(b"key", if sync { b"synced" } else { b"newer!" }).unwrap();
            mine.write_with(&WriteOptions { sync, ..WriteOptions::default() }, batch)
        });
        let written = || db.statistics().get(Ticker::KeysWritten);
        while written() < 2 - u64::from(sync) && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Time to elect itself.
        std::thread::sleep(Duration::from_millis(50));
        writer
    });
    assert!(db.get("key").unwrap().is_none(), "nothing is visible before its sync");
    drop(held);
    for writer in writers {
        writer.join().unwrap().unwrap();
    }
    assert_eq!(db.get("key").unwrap().unwrap(), "newer!");
    assert_eq!(db.statistics().get(Ticker::WalSyncs) - before, 1);
}

/// With `avoid_flush_during_recovery` the WALs of a killed process were kept without a sync, so
/// that a power failure could take them and leave newer, synced writes.
#[test]
fn wals_kept_by_recovery_are_synced() {
    let disk = Disk::default();
    let mut options = disk.options();
    options.db.avoid_flush_during_recovery = true;
    let db = Db::open("/db", &options).unwrap();
    db.put("older", "1").unwrap();
    // Killed: what was written is in the file, but nobody synced it.
    std::mem::forget(db);
    let survivor = Disk { live: copy_of(&disk.live).unwrap(), ..disk };
    options.env = Env::os().with_fs(Arc::new(survivor.clone()));
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("older").unwrap().unwrap(), "1");
    let mut batch = WriteBatch::new();
    batch.put(b"newer", b"2").unwrap();
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch).unwrap();

    let db = Db::open("/db", &survivor.after_power_failure()).unwrap();
    assert_eq!(db.get("newer").unwrap().unwrap(), "2");
    assert_eq!(db.get("older").unwrap().unwrap(), "1");
}

/// The same files without the locks of whoever died.
fn copy_of(fs: &MemoryFileSystem) -> Result<MemoryFileSystem> {
    let copy = MemoryFileSystem::new();
    copy.create_directory(Path::new("/db"))?;
    for name in fs.list(Path::new("/db"))? {
        let path = Path::new("/db").join(name);
        let bytes = read_file(fs, &path, u64::MAX)?;
        copy.create_writable(&path, IoMode::Buffered)?.write_at(0, &bytes)?;
    }
    Ok(copy)
}

/// A memtable that waits for another to be merged with is no work to wait for; and if it alone
/// keeps the oldest WAL when the WALs grow too large, it is flushed.
#[test]
fn a_lone_memtable_neither_blocks_waiting_nor_keeps_its_wal() {
    let mut options = create();
    options.env = Env::memory();
    options.cf.settings.min_write_buffer_number_to_merge = 3;
    options.cf.settings.max_write_buffer_number = 4;
    options.cf.settings.write_buffer_size = 64 << 10;
    options.db.max_total_wal_size = 200 << 10;
    let db = Db::open("/db", &options).unwrap();
    let other = db.create_column_family("other", &options.cf).unwrap();
    let value = vec![b'v'; 1000];
    for at in 0..100 {
        db.put_cf(&other, format!("{at}"), &value).unwrap();
    }
    let waiting = || db.int_property(&other, "rocksdb.num-immutable-mem-table").unwrap();
    assert!((1..3).contains(&waiting()));
    db.wait_for_compactions().unwrap();
    assert!(waiting() > 0, "a wait flushes nothing");

    for at in 0..400 {
        db.put(format!("{at}"), &value).unwrap();
    }
    db.wait_for_compactions().unwrap();
    assert_eq!(waiting(), 0);
}

/// Only what older WALs had was looked at: families that were filled evenly made one WAL as large
/// as all their memtables.
#[test]
fn the_limit_of_all_wals_holds_for_the_first_one() {
    let mut options = create();
    options.env = Env::memory();
    options.set_all("write_buffer_size=1048576;max_total_wal_size=204800").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let made = (0..8).map(|n| db.create_column_family(&format!("family{n}"), &options.cf).unwrap());
    let families: Vec<_> = made.collect();
    for at in 0..1600 {
        db.put_cf(&families[at % 8], format!("{at}"), [7; 1000]).unwrap();
        if at % 100 == 99 {
            db.wait_for_compactions().unwrap();
            let bytes: u64 = db.wal_files().iter().map(|wal| wal.size).sum();
            assert!(bytes < 320 << 10, "{bytes} bytes of WALs after {} writes", at + 1);
        }
    }
}

/// With at most two memtables and five to be merged at a time, writers waited for a flush that
/// waited for writers.
#[test]
fn memtables_to_merge_are_limited_by_memtables_allowed() {
    let mut options = create();
    options.env = Env::memory();
    options.cf.settings.min_write_buffer_number_to_merge = 5;
    options.cf.settings.max_write_buffer_number = 1;
    options.cf.settings.write_buffer_size = 16 << 10;
    let db = Db::open("/db", &options).unwrap();
    for at in 0..200 {
        db.put(format!("{at}"), vec![b'v'; 1000]).unwrap();
    }
    assert_eq!(db.column_families()[0].options().settings.min_write_buffer_number_to_merge, 1);
}

#[test]
fn entries_for_missing_families_are_dropped_if_asked() {
    let mut options = create();
    options.env = Env::memory();
    let db = Db::open("/db", &options).unwrap();
    let gone = db.create_column_family("gone", &options.cf).unwrap();
    db.drop_column_family(&gone).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put_cf(&gone, b"b", b"2").unwrap();
    batch.put(b"c", b"3").unwrap();
    assert_eq!(
        db.write_ref(&WriteOptions::default(), &mut batch).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert!(db.get("a").unwrap().is_none());

    let lenient = WriteOptions { ignore_missing_column_families: true, ..WriteOptions::default() };
    db.write_ref(&lenient, &mut batch).unwrap();
    db.put("d", "4").unwrap();
    let sequence = db.latest_sequence_number();
    db.close().unwrap();
    drop(db);
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(entries(&db, db.default_column_family()).len(), 3);
    assert_eq!(db.latest_sequence_number(), sequence, "replay counts as the writer did");
}

/// A checkpoint of a database that is open read-only asked for a WAL 0 and would have left out what
/// is not flushed.
#[test]
fn a_read_only_database_has_checkpoints_with_its_wals() {
    let directory = temporary();
    let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let db = Db::open(&path, &create()).unwrap();
    db.put("key", "in the WAL").unwrap();
    db.close().unwrap();
    let reader = Db::open_read_only(&path, &create()).unwrap();
    reader.checkpoint(&copy).unwrap();
    let db = Db::open(&copy, &create()).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "in the WAL");
}

/// A directory whose writer flushes, and writes another key, whenever it is listed.
struct Busy {
    files: MemoryFileSystem,
    writer: Db,
    turns: AtomicUsize,
}

const TURNS: usize = 8;

impl FileSystemAround for Busy {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        if turn < TURNS {
            self.writer.flush_all()?;
            self.writer.put(format!("key {}", turn + 1), "")?;
        }
        FileSystem::list(&self.files, path)
    }
}

/// Went wrong: an opening for reading read the MANIFEST, and then the WALs that were left after a
/// flush. What the flush had put into a table was in neither.
#[test]
fn an_opening_for_reading_beside_a_writer_misses_nothing() {
    let files = MemoryFileSystem::default();
    let options = |fs: Arc<dyn FileSystem>| Options { env: Env::memory().with_fs(fs), ..create() };
    let writer = Db::open("/db", &options(Arc::new(files.clone()))).unwrap();
    writer.put("key 0", "").unwrap();
    let busy = Arc::new(Busy { files, writer, turns: AtomicUsize::new(0) });
    let reader = Db::open_read_only("/db", &options(busy.clone())).unwrap();
    assert!(busy.turns.load(Ordering::Relaxed) > TURNS, "it tries again until nothing changes");
    let keys = entries(&reader, reader.default_column_family()).into_iter().map(|(key, _)| key);
    let expected = (0..=TURNS).map(|turn| format!("key {turn}").into_bytes());
    assert_eq!(keys.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// A checkpoint of a database of which some families were not open named their files, but had none
/// of them.
#[test]
fn a_checkpoint_for_reading_has_the_families_that_are_open() {
    let directory = temporary();
    let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let db = Db::open(&path, &create()).unwrap();
    let closed = db.create_column_family("closed", &create().cf).unwrap();
    for key in ["flushed", "in the WAL"] {
        db.put(key, "there").unwrap();
        db.put_cf(&closed, key, "not there").unwrap();
        if key == "flushed" {
            db.flush_all().unwrap();
        }
    }
    drop(closed);
    db.close().unwrap();
    let families = [("default", create().cf)];
    let reader = Db::open_read_only_with_families(&path, &create(), &families).unwrap();
    reader.checkpoint(&copy).unwrap();
    let db = Db::open(&copy, &create()).unwrap();
    assert_eq!(entries(&db, db.default_column_family()).len(), 2);
    assert_eq!(Db::list_column_families(&copy, &create()).unwrap(), ["default"]);
    // The number of a family that was left out is not given out again: its entries are still in the
    // WAL.
    let new = db.create_column_family("new", &create().cf).unwrap();
    assert!(entries(&db, &new).is_empty() && new.id().0 == 2);
}

/// The tables that the writer had compacted away meanwhile were left out, and the checkpoint was
/// called done. A read-only handle holds them, so that the checkpoint has what the handle shows.
#[test]
fn a_checkpoint_for_reading_has_tables_that_the_writer_removed() {
    let directory = temporary();
    let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let db = Db::open(&path, &create()).unwrap();
    for key in ["first", "second"] {
        db.put("key", key).unwrap();
        db.put(key, "there").unwrap();
        db.flush_all().unwrap();
    }
    let reader = Db::open_read_only(&path, &create()).unwrap();
    // Two tables that overlap are merged, and their space is free when the call returns.
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let is_gone = |file: &LiveFile| !file.path.exists();
    assert!(reader.live_files().iter().all(is_gone), "the writer has removed both");
    reader.checkpoint(&copy).unwrap();
    let copy = Db::open(&copy, &create()).unwrap();
    assert_eq!(
        entries(&copy, copy.default_column_family()),
        entries(&reader, reader.default_column_family())
    );
    assert_eq!(copy.live_files().len(), 2);
}

#[test]
fn a_separate_directory_for_wals_is_made() {
    let directory = temporary();
    let mut options = create();
    options.db.wal_dir = directory.path().join("logs/of/db").to_str().unwrap().to_string();
    for _ in 0..2 {
        let db = Db::open(directory.path().join("db"), &options).unwrap();
        db.put("key", "value").unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), "value");
    }
}

/// Two-phase transactions cannot be replayed, so a batch with their marks must not get into the
/// WAL.
#[test]
fn a_batch_that_could_not_be_replayed_is_refused() {
    const BEGIN_PREPARE: u8 = 0x9;
    const END_PREPARE: u8 = 0xa;
    let mut options = create();
    options.env = Env::memory();
    let db = Db::open("/db", &options).unwrap();
    let mut bytes = vec![0; 12];
    bytes.extend([BEGIN_PREPARE, END_PREPARE, 1, b'x']);
    let error = db.write(WriteBatch::from_bytes(bytes).unwrap()).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    db.close().unwrap();
    drop(db);
    Db::open("/db", &options).unwrap();
}

#[test]
fn a_scan_gives_up_after_as_many_hidden_entries_as_allowed() {
    let mut options = create();
    options.env = Env::memory();
    let db = Db::open("/db", &options).unwrap();
    for at in 0..100 {
        db.put(format!("{at:03}"), "value").unwrap();
        db.delete(format!("{at:03}")).unwrap();
    }
    db.put("end", "value").unwrap();
    db.put("000", "value").unwrap();
    for (limit, found) in [(0, true), (50, false), (500, true)] {
        let read = ReadOptions { max_skippable_internal_keys: limit, ..ReadOptions::default() };
        let mut iter = db.iter(&read).unwrap();
        iter.seek("001");
        assert_eq!(iter.valid(), found, "{limit}");
        assert_eq!(
            iter.status().map_err(|error| error.code()).err(),
            (!found).then_some(Code::Incomplete)
        );
        iter.seek_for_prev("099");
        assert_eq!(iter.valid(), found, "{limit}");
    }
}

/// More workers than at the start take up work at once; fewer leave it to the others.
#[test]
fn the_number_of_workers_follows_its_option() {
    let mut options = create();
    options.env = Env::memory();
    options.db.max_background_jobs = 2;
    let db = Db::open("/db", &options).unwrap();
    for jobs in ["8", "1"] {
        db.set_db_options(&[("max_background_jobs", jobs)]).unwrap();
        db.put("key", jobs).unwrap();
        db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
            .unwrap();
        db.wait_for_compactions().unwrap();
    }
    db.close().unwrap();
}
