//! Scans over values that lie here and there in blob files: the device is to read several of them
//! at a time.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::{
    Advice, AnyFile, Clock, Env, FileAround, FileSystem, FileSystemAround, OpenMode,
    memory::MemoryFileSystem,
};
use testkit::{HandClock, settings};

/// A part of a file.
type Told = (PathBuf, Range<u64>);

/// A device that has one of its reads of blob files waited for, unless it was told in time.
#[derive(Clone)]
struct Device {
    files: Arc<MemoryFileSystem>,
    /// Goes on where the device is waited for.
    time: Arc<HandClock>,
    read_us: u64,
    told: Arc<Mutex<Vec<Told>>>,
    waited: Arc<AtomicU64>,
}

struct DeviceFile {
    file: AnyFile,
    device: Device,
}

impl FileAround for DeviceFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let end = offset + buffer.len() as u64;
        let told = self.device.told.lock().unwrap();
        let is_told = told.iter().any(|(path, range)| {
            path == self.file.path() && range.start <= offset && end <= range.end
        });
        if !is_told {
            self.device.waited.fetch_add(1, Ordering::Relaxed);
            self.device.time.sleep(Duration::from_micros(self.device.read_us));
        }
        self.file.read_at(offset, buffer)
    }

    fn advise(&self, advice: Advice) {
        if let Advice::WillNeed { offset, length } = advice {
            self.device
                .told
                .lock()
                .unwrap()
                .push((self.file.path().into(), offset..offset + length));
        }
    }
}

impl FileSystemAround for Device {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.files, path)?;
        if mode.only_reads() && path.extension().is_some_and(|ending| ending == "blob") {
            Ok(AnyFile::around(DeviceFile { file, device: self.clone() }))
        } else {
            Ok(file)
        }
    }
}

const KEYS: u64 = 200;

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 300]
}

/// A database with values that were put in another order than that of their keys, opened again.
fn scattered(read_us: u64) -> (Device, Db) {
    let device = Device {
        files: Arc::default(),
        time: Arc::new(HandClock::at(1_700_000_000)),
        read_us,
        told: Arc::default(),
        waited: Arc::default(),
    };
    let env = Env { clock: device.time.clone(), ..Env::memory() }.with_fs(Arc::new(device.clone()));
    let mut options = settings::tiny(&env);
    let common = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_commit_min_size", "100"),
        ("write_buffer_size", "1m"),
        ("block_cache", "0"),
        ("max_space_amplification", "0"),
        ("disable_auto_compactions", "true"),
    ];
    settings::set(&mut options, &common);
    let db = Db::open("/db", &options).unwrap();
    for number in (0..KEYS).map(|at| at * 3 % KEYS) {
        db.put(format!("{number:03}"), value(number)).unwrap();
    }
    db.close().unwrap();
    drop(db);
    device.told.lock().unwrap().clear();
    let db = Db::open("/db", &options).unwrap();
    device.waited.store(0, Ordering::Relaxed);
    (device, db)
}

fn scan(db: &Db) {
    let mut iter = db.iter(&Default::default()).unwrap();
    iter.seek_to_first();
    for number in 0..KEYS {
        assert_eq!(iter.key(), format!("{number:03}").as_bytes());
        assert_eq!(iter.value().unwrap(), value(number));
        iter.next();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
}

#[test]
fn a_scan_tells_a_slow_device_what_it_comes_to() {
    let (device, db) = scattered(100);
    scan(&db);
    let waited = device.waited.load(Ordering::Relaxed);
    assert!(waited <= KEYS / 16, "{waited} of {KEYS}");
}

#[test]
fn what_comes_at_once_is_not_announced() {
    let (device, db) = scattered(3);
    scan(&db);
    assert_eq!(device.told.lock().unwrap().len(), 0);
    assert!(device.waited.load(Ordering::Relaxed) >= KEYS);
}
