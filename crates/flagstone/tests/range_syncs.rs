//! Files that are written back while they grow: `bytes_per_sync`, `wal_bytes_per_sync`,
//! `strict_bytes_per_sync`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use flagstone::base::{Result, SubCode};
use flagstone::db::Db;
use flagstone::env::{
    AnyFile, Env, FileAround, FileSystem, FileSystemAround, Mapping, OpenMode, RateLimiter,
    RateLimiterOptions,
};
use flagstone::options::{CompactRangeOptions, Options, WriteOptions};
use testkit::{Call, CrashFs, FaultFs, Injection, Plan, Sort, settings};

const MIB: u64 = 1 << 20;

type Asked = Arc<Mutex<Vec<(String, Range<u64>, bool)>>>;

/// Files that the system can be asked to write back, and notes of what it was asked.
#[derive(Clone)]
struct Disk {
    files: CrashFs,
    asked: Asked,
}

struct DiskFile {
    file: AnyFile,
    asked: Asked,
}

impl FileAround for DiskFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        let name = self.file.path().extension().unwrap().to_str().unwrap();
        assert!(range.end <= FileAround::size(self)?, "{name}: {range:?}");
        self.asked.lock().unwrap().push((name.to_string(), range, strict));
        Ok(true)
    }

    fn is_mappable(&self) -> bool {
        self.file.is_mappable()
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        self.file.map(offset, length)
    }
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&self.files, path)?;
        Ok(AnyFile::around(DiskFile { file, asked: self.asked.clone() }))
    }
}

impl Disk {
    fn new() -> Self {
        Self { files: CrashFs::new(), asked: Asked::default() }
    }

    fn options(&self, changes: &[(&str, &str)]) -> Options {
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(self.clone())));
        settings::set(
            &mut options,
            &[("write_buffer_size", "64m"), ("target_file_size_base", "64m")],
        );
        settings::set(&mut options, changes);
        options
    }

    /// What was asked for since the last time of files with this ending; ranges that follow one
    /// another, but for a new file's.
    fn asked(&self, ending: &str) -> Vec<Range<u64>> {
        let all = std::mem::take(&mut *self.asked.lock().unwrap());
        let ranges: Vec<_> = all
            .into_iter()
            .filter(|(name, ..)| name == ending)
            .map(|(_, range, _)| range)
            .collect();
        for pair in ranges.windows(2) {
            assert!(pair[1].start == pair[0].end || pair[1].start == 0, "{ranges:?}");
        }
        ranges
    }
}

/// Writes so many MiB of values that do not shrink.
fn fill(db: &Db, mib: u64) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut value = vec![0; 16 << 10];
    for number in 0..mib * 64 {
        random.fill(&mut value);
        db.put(format!("{number:06}"), &value).unwrap();
    }
}

/// A writer may wait for the sync at a flush's end, which took a fifth of the flush.
#[test]
fn tables_are_written_back_as_they_grow_of_flushes_in_any_case() {
    let disk = Disk::new();
    let db = Db::open("/db", &disk.options(&[])).unwrap();
    for wanted in ["0", "1m"] {
        db.set_db_options(&[("bytes_per_sync", wanted)]).unwrap();
        fill(&db, 4);
        db.flush_all().unwrap();
        let asked = disk.asked("sst");
        assert!((2..=3).contains(&asked.len()), "{asked:?}");
        assert!(asked.iter().all(|range| range.end % 4096 == 0), "{asked:?}");
        assert!(asked.last().unwrap().end >= 2 * MIB);
        db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
            .unwrap();
        assert_eq!(disk.asked("sst").is_empty(), wanted == "0", "compactions if they are to be");
    }
}

/// To wait for the device is the writers' time.
#[test]
fn what_writers_append_to_is_not_written_back_unless_it_is_to_be() {
    let disk = Disk::new();
    let db = Db::open("/db", &disk.options(&[("enable_blob_files", "true")])).unwrap();
    fill(&db, 4);
    db.flush_all().unwrap();
    assert!(disk.asked.lock().unwrap().is_empty());
}

#[test]
fn so_are_blob_files_of_flushes_of_commits_and_of_streams() {
    for mode in ["flush", "commit"] {
        let disk = Disk::new();
        let wanted =
            [("enable_blob_files", "true"), ("bytes_per_sync", "1m"), ("blob_write_mode", mode)];
        let db = Db::open("/db", &disk.options(&wanted)).unwrap();
        fill(&db, 4);
        assert_eq!(disk.asked("blob").is_empty(), mode == "flush");
        db.flush_all().unwrap();
        assert_eq!(disk.asked("blob").is_empty(), mode == "commit");
        let mut stream =
            db.put_stream(db.default_column_family(), "large", &WriteOptions::default()).unwrap();
        stream.write_all(&[7; 4 << 20]).unwrap();
        stream.commit().unwrap();
        assert!(!disk.asked("blob").is_empty(), "{mode}");
    }
}

#[test]
fn the_log_is_written_back_mapped_or_not() {
    for mode in ["mapped", "plain"] {
        for kept in ["false", "true"] {
            let disk = Disk::new();
            let wanted = [
                ("wal_bytes_per_sync", "1m"),
                ("wal_write_mode", mode),
                ("manual_wal_flush", kept),
            ];
            let db = Db::open("/db", &disk.options(&wanted)).unwrap();
            fill(&db, 8);
            db.flush_wal(true).unwrap();
            let asked = disk.asked("log");
            let (first, last) = (asked.first().unwrap().clone(), asked.last().unwrap().clone());
            // Of a mapped log pages are fetched up to a MiB at a time, and then it is seen how far
            // it has come.
            assert!(
                first.start == 0 && last.end >= 5 * MIB && last.end < 8 * MIB,
                "{mode}: {asked:?}"
            );
            db.flush_all().unwrap();
            disk.asked("sst");
            // The next log goes by what is set then.
            db.set_db_options(&[("wal_bytes_per_sync", "0")]).unwrap();
            fill(&db, 1);
            db.flush_all().unwrap();
            disk.asked("log");
            fill(&db, 4);
            assert!(disk.asked("log").is_empty());
        }
    }
}

/// As in RocksDB: what a limiter spreads out, the system's cache should not gather again.
#[test]
fn with_a_rate_limiter_a_mib_is_the_default() {
    let disk = Disk::new();
    let mut options = disk.options(&[("strict_bytes_per_sync", "true")]);
    options.rate_limiter =
        Some(Arc::new(RateLimiter::new(RateLimiterOptions::new(1 << 40)).unwrap()));
    let db = Db::open("/db", &options).unwrap();
    fill(&db, 4);
    db.flush_all().unwrap();
    assert!(disk.asked.lock().unwrap().iter().all(|(.., strict)| *strict));
    assert!(!disk.asked("sst").is_empty());
}

/// The failure may have been told to nobody else: had it been passed over, a sync would have said
/// that all is well.
#[test]
fn nothing_is_acknowledged_after_a_range_sync_that_failed() {
    let sets: [(&[(&str, &str)], Sort); 3] = [
        (&[("wal_bytes_per_sync", "1m"), ("wal_write_mode", "plain")], Sort::Wal),
        (&[("wal_bytes_per_sync", "1m"), ("wal_write_mode", "mapped")], Sort::Wal),
        (&[("bytes_per_sync", "1m"), ("enable_blob_files", "true")], Sort::Blob),
    ];
    for (wanted, sort) in sets {
        let disk = Disk::new();
        let faults = FaultFs::new(Arc::new(disk.clone()));
        let mut options = disk.options(wanted);
        options.env = Env::memory().with_fs(Arc::new(faults.clone()));
        let db = Db::open("/db", &options).unwrap();
        db.put("before", "synced").unwrap();
        db.sync_wal().unwrap();
        faults.plan(Plan::Next { call: Call::RangeSync, sort, injection: Injection::Io });
        let failed = (0..100).map(|number| db.put(format!("{number}"), vec![1; 200_000]));
        let mut acknowledged = failed.take_while(Result::is_ok).count();
        assert!((5..100).contains(&acknowledged), "{sort:?}: {acknowledged}");
        let error = db.sync_wal().unwrap_err();
        assert!(error.to_string().contains("injected"), "{error}");
        assert_eq!(
            db.put("after", "refused").unwrap_err().subcode(),
            SubCode::Poisoned,
            "{sort:?}"
        );
        faults.kill();
        drop(db);
        options.env = Env::memory().with_fs(Arc::new(disk.files.kill()));
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(db.get("before").unwrap().as_deref(), Some(&b"synced"[..]));
        while acknowledged > 0 && db.get(format!("{}", acknowledged - 1)).unwrap().is_some() {
            acknowledged -= 1;
        }
        assert_eq!(acknowledged, 0, "what was not synced outlives the process");
    }
}

/// A table that could not be written back is not installed; what it was to hold is not lost.
#[test]
fn a_flush_whose_range_sync_failed_installs_nothing() {
    let disk = Disk::new();
    let faults = FaultFs::new(Arc::new(disk.clone()));
    let mut options = disk.options(&[("bytes_per_sync", "1m")]);
    options.env = Env::memory().with_fs(Arc::new(faults.clone()));
    let db = Db::open("/db", &options).unwrap();
    fill(&db, 4);
    faults.plan(Plan::Next { call: Call::RangeSync, sort: Sort::Table, injection: Injection::Io });
    assert!(db.flush_all().unwrap_err().to_string().contains("injected"));
    assert!(db.live_files().is_empty());
    drop(db);
    faults.heal();
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("000255").unwrap().unwrap().len(), 16 << 10);
}
