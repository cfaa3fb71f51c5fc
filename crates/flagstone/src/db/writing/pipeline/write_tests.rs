//! Writes that wait for a sync, step by step.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::base::Code;
use crate::base::sync::AtomicBool;
use crate::db::DbInner;
use crate::db::handle::Db;
use crate::db::writing::condition::Condition;
use crate::env::memory::MemoryFileSystem;
use crate::env::{AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode};
use crate::options::{BackgroundErrorReason, Options};

fn full_disk() -> Error {
    Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace)
}

/// A write that had asked for a sync was refused if a flush found the disk full between its record
/// in the WAL and its sync, and still took place: readers saw it later, and so did a reopening.
#[test]
fn a_write_in_the_wal_is_synced_and_acknowledged_though_the_disk_is_full_by_now() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    let inner = db.inner();
    // As far as a write with `sync` comes before it waits for its turn to sync.
    let last = inner.pipeline.commit.lock().numbers.last;
    inner.context.poison.record(BackgroundErrorReason::Flush, &full_disk());
    assert_eq!(db.put("other", "value").unwrap_err().subcode(), SubCode::NoSpace);
    let clock = &*inner.context.env.clock;
    inner.pipeline.wal_sync.wait_for(last, clock, || inner.pipeline.sync_and_publish()).unwrap();
    inner.context.poison.record_fatal(BackgroundErrorReason::Flush, &full_disk());
    let refused =
        inner.pipeline.wal_sync.wait_for(last + 1, clock, || inner.pipeline.sync_and_publish());
    assert_eq!(refused.unwrap_err().subcode(), SubCode::Poisoned);
}

/// As far as a write with `sync` comes before it waits for its turn; its sequence number.
fn write_up_to_sync(inner: &DbInner, key: &[u8]) -> SequenceNumber {
    let mut batch = WriteBatch::new();
    batch.put(key, b"value").unwrap();
    let (pipeline, mut blobs) = (&inner.pipeline, BlobsOfBatch::Nothing);
    let families = NamedFamilies::of(&batch, &blobs).unwrap();
    let options = WriteOptions { sync: true, ..WriteOptions::default() };
    let mut pins = pipeline.memtables.shown.pins();
    let commit = &mut pipeline.commit.lock();
    let locked = Locked {
        pipeline,
        commit,
        families: &families,
        blobs: &mut blobs,
        tail: None,
        pins: &mut pins,
    };
    let appended =
        pipeline.append_locked(locked, &options, &mut batch, 10, &mut Condition::Nothing);
    let Appended { first, turn, .. } = appended.unwrap();
    pipeline.insert(&pins, &families, &batch, first, &turn).unwrap();
    turn.done();
    first
}

/// A switch of memtables synced the log without what waited in memory for that sync, and showed it
/// to readers.
#[test]
fn a_switch_syncs_what_waits_for_a_sync() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options { env: Env::os(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    let inner = db.inner();
    write_up_to_sync(inner, b"key");
    let mut commit = inner.pipeline.commit.lock();
    inner.pipeline.sync_pending_writes(&mut commit).unwrap();
    let wal = commit.wal().unwrap();
    assert_eq!(wal.written(), wal.offset());
}

/// A write that waited for its sync was refused if the database was closed meanwhile, and still
/// took place: closing syncs the log.
#[test]
fn a_write_that_closing_has_synced_is_acknowledged() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    let last = write_up_to_sync(inner, b"key");
    db.close().unwrap();
    inner
        .pipeline
        .wal_sync
        .wait_for(last, &*inner.context.env.clock, || inner.pipeline.sync_and_publish())
        .unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    let again = Db::open("/db", &options).unwrap();
    assert_eq!(again.get("key").unwrap().unwrap(), "value");
}

/// Files in memory, and logs for which there may be no space.
#[derive(Clone, Default)]
struct SmallDisk {
    files: MemoryFileSystem,
    is_full: Arc<AtomicBool>,
}

struct Log(AnyFile, SmallDisk);

impl FileAround for Log {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if self.1.is_full.load(Ordering::Relaxed) {
            Err(full_disk())
        } else {
            self.0.write_at(offset, data)
        }
    }
}

impl FileSystemAround for SmallDisk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&self.files, path)?;
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        Ok(if is_log { AnyFile::around(Log(file, self.clone())) } else { file })
    }
}

/// A database whose log waits in memory until it is flushed, without space reserved for it.
fn small() -> (SmallDisk, Db) {
    let disk = SmallDisk::default();
    let mut options =
        Options { env: Env::memory().with_fs(Arc::new(disk.clone())), ..Options::default() };
    options.set_all("create_if_missing=true;manual_wal_flush=true;allow_fallocate=false").unwrap();
    let db = Db::open("/db", &options).unwrap();
    (disk, db)
}

/// Where a sync found no room for what waited in memory the database accepted nothing any more,
/// although no sync had been tried.
#[test]
fn a_sync_may_be_tried_again_where_there_was_no_room_for_what_waited() {
    let (disk, db) = small();
    let inner = db.inner();
    db.put("before", "value").unwrap();
    inner.pipeline.flush_log(&mut inner.pipeline.commit.lock()).unwrap();
    // Between the two steps of `sync_wal`.
    db.put("meanwhile", "value").unwrap();
    disk.is_full.store(true, Ordering::Relaxed);
    assert_eq!(inner.pipeline.sync_and_publish().unwrap_err().subcode(), SubCode::NoSpace);
    assert!(!inner.context.poison.is_fatal());
    disk.is_full.store(false, Ordering::Relaxed);
    db.sync_wal().unwrap();
    db.put("later", "value").unwrap();
}

/// What others had written behind a write that waits for its sync waited in memory, where no space
/// was reserved for it: the sync met the full disk, and nothing could be refused any more.
#[test]
fn a_full_disk_refuses_what_comes_behind_a_write_that_waits_for_its_sync() {
    let (disk, db) = small();
    let inner = db.inner();
    let last = write_up_to_sync(inner, b"key");
    disk.is_full.store(true, Ordering::Relaxed);
    assert_eq!(db.put("meanwhile", "value").unwrap_err().subcode(), SubCode::NoSpace);
    inner
        .pipeline
        .wal_sync
        .wait_for(last, &*inner.context.env.clock, || inner.pipeline.sync_and_publish())
        .unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    assert!(db.get("meanwhile").unwrap().is_none());
}
