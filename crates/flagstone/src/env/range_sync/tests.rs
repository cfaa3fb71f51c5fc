use super::*;
use crate::env::{self, AnyFile, FileSystem, IoMode, memory::MemoryFileSystem, os::OsFileSystem};

const MIB: u64 = 1 << 20;

/// A file that notes what it is asked, and fails if told to.
struct Noted {
    inner: AnyFile,
    can: bool,
    fails: bool,
    asked: Mutex<Vec<(Range<u64>, bool)>>,
    syncs: AtomicU64,
}

impl env::FileAround for Noted {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        self.asked.lock().push((range, strict));
        if self.fails {
            Err(Error::io("write back", self.path(), io::Error::other("broken")))
        } else {
            Ok(self.can)
        }
    }

    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }
}

fn noted(can: bool, fails: bool) -> Arc<Noted> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/d")).unwrap();
    let inner = fs.create_writable(Path::new("/d/f"), IoMode::Buffered).unwrap();
    Arc::new(Noted {
        inner: inner.into(),
        can,
        fails,
        asked: Mutex::default(),
        syncs: AtomicU64::new(0),
    })
}

#[test]
fn each_so_many_bytes_are_asked_for_once_and_the_last_mib_never() {
    let file = noted(true, false);
    let synced = RangeSyncedFile::following(file.clone(), RangeSyncs::new(10_000, false).unwrap());
    for at in (0..MIB + 24_000).step_by(1000) {
        synced.write_at(at, &[7; 1000]).unwrap();
    }
    synced.write_vectored_at(2 * MIB, &[&[1; 500], &[2; 500]]).unwrap();
    let expected = [(0..12_288, false), (12_288..MIB, false)];
    assert_eq!(*file.asked.lock(), expected);
    assert_eq!(file.syncs.load(Ordering::Relaxed), 0);
}

#[test]
fn where_the_system_cannot_only_the_strict_sync() {
    for strict in [false, true] {
        let file = noted(false, false);
        let synced = RangeSyncedFile::told(file.clone(), RangeSyncs::new(MIB, strict).unwrap());
        synced.write_at(0, &[0; 4 << 20]).unwrap();
        assert!(file.asked.lock().is_empty(), "it was not told");
        synced.note_written(4 * MIB).unwrap();
        assert_eq!(*file.asked.lock(), [(0..3 * MIB, strict)]);
        assert_eq!(file.syncs.load(Ordering::Relaxed), u64::from(strict));
    }
    assert!(RangeSyncs::new(0, true).is_none());
}

/// The kernel tells each failure once: what was told to a range sync, no sync may pass over.
#[test]
fn after_a_range_sync_that_failed_no_sync_succeeds() {
    let file = noted(true, true);
    let synced = RangeSyncedFile::following(file.clone(), RangeSyncs::new(1, false).unwrap());
    synced.write_at(0, b"short").unwrap();
    synced.sync().unwrap();
    assert!(synced.write_at(0, &[0; 2 << 20]).unwrap_err().to_string().contains("broken"));
    synced.write_at(0, b"short").unwrap();
    assert!(synced.sync().unwrap_err().to_string().contains("broken"));
    assert_eq!(file.syncs.load(Ordering::Relaxed), 1);
}

#[test]
fn the_system_takes_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = OsFileSystem.create_writable(&directory.path().join("f"), IoMode::Buffered).unwrap();
    file.write_at(0, &[5; 3 << 20]).unwrap();
    for strict in [false, true] {
        assert_eq!(file.range_sync(MIB..2 * MIB, strict).unwrap(), cfg!(target_os = "linux"));
    }
    file.sync().unwrap();
}
