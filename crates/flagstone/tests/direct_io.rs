//! Stories of files that are written and read around the system's cache.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{create, entries, temporary};
use flagstone::base::{Code, Error, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{self, AnyFile, Env, FileSystem, IoMode, OpenMode};
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, Options,
};
use testkit::{FaultFs, Injection, Plan};

const READ: OpenMode = OpenMode::RandomAccess(IoMode::Buffered);
const READ_DIRECTLY: OpenMode = OpenMode::RandomAccess(IoMode::Direct);
const CREATED: OpenMode = OpenMode::CreateWritable(IoMode::Buffered);
const CREATED_DIRECTLY: OpenMode = OpenMode::CreateWritable(IoMode::Direct);

/// A file system that may have no direct I/O, and that remembers which files were opened how.
#[derive(Clone, Default)]
struct Watched {
    inner: MemoryFileSystem,
    refuses: bool,
    opened: Arc<std::sync::Mutex<Vec<(PathBuf, OpenMode)>>>,
}

impl env::FileSystemAround for Watched {
    fn inner(&self) -> &dyn FileSystem {
        &self.inner
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if mode.is_direct() && self.refuses {
            let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
            return Err(Error::io("open directly", path, source));
        }
        let file = mode.open(&self.inner, path)?;
        self.opened.lock().expect("no panic").push((path.to_path_buf(), mode));
        Ok(file)
    }
}

impl Watched {
    fn options(&self, settings: &[(&str, &str)]) -> Options {
        let mut options = create();
        options.env = Env::os().with_fs(Arc::new(self.clone()));
        set(&mut options, &[("enable_blob_files", "false")]);
        set(&mut options, settings);
        options
    }

    /// The modes in which files with this ending were opened since the last question.
    fn modes(&self, extension: &str) -> Vec<OpenMode> {
        let all = std::mem::take(&mut *self.opened.lock().expect("no panic"));
        let with = |(path, mode): (PathBuf, OpenMode)| {
            path.extension().is_some_and(|found| found == extension).then_some(mode)
        };
        all.into_iter().filter_map(with).collect()
    }
}

fn set(options: &mut Options, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        options.set(name, value).expect("an option");
    }
}

const WRITES: (&str, &str) = ("use_direct_io_for_flush_and_compaction", "true");
const READS: (&str, &str) = ("use_direct_reads", "true");
const BLOBS: [(&str, &str); 2] = [("enable_blob_files", "true"), ("min_blob_size", "2000")];

fn value(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + seed * 7 + at / 256) as u8).collect()
}

/// Small values, values of every length around some blocks, and large ones; overwritten, flushed,
/// compacted.
fn fill(db: &Db) {
    for round in 0..3 {
        for number in 0..300 {
            db.put(format!("small{number:04}"), value(round + number, 20 + number)).expect("a put");
        }
        let around =
            (4050..4110).step_by(3).chain(8180..8200).chain(9100..9110).chain([100_000, 2_200_000]);
        for length in around {
            db.put(format!("around{length}"), value(round, length)).expect("a put");
        }
        let mut batch = WriteBatch::new();
        for length in [10, 3000, 20_000, 5000, 12_288] {
            batch.put(format!("batch{length}").as_bytes(), value(round, length)).expect("room");
        }
        db.write(batch).expect("a write");
        if round < 2 {
            db.flush_all().expect("a flush");
        }
    }
}

#[test]
fn what_is_found_does_not_depend_on_how_it_was_written_and_read() {
    let plain = temporary();
    let mut options = create();
    set(&mut options, &BLOBS);
    let db = Db::open(plain.path(), &options).expect("a database");
    fill(&db);
    let expected = entries(&db, db.default_column_family());
    for settings in
        [&[WRITES][..], &[READS], &[WRITES, READS], &[&BLOBS[..], &[WRITES, READS]].concat()]
    {
        let directory = temporary();
        let mut options = create();
        set(&mut options, settings);
        set(
            &mut options,
            &[("writable_file_max_buffer_size", "8192"), ("compaction_readahead_size", "5000")],
        );
        let db = Db::open(directory.path(), &options).expect("a database");
        fill(&db);
        assert!(entries(&db, db.default_column_family()) == expected, "{settings:?}: in memory");
        db.flush_all().expect("a flush");
        assert!(entries(&db, db.default_column_family()) == expected, "{settings:?}: flushed");
        db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
            .expect("a compaction");
        assert!(entries(&db, db.default_column_family()) == expected, "{settings:?}: compacted");
        db.close().expect("a clean close");
        drop(db);
        let db = Db::open(directory.path(), &create()).expect("a database");
        assert!(
            entries(&db, db.default_column_family()) == expected,
            "{settings:?}: opened without"
        );
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{settings:?}: {:?}", report.faults);
    }
}

#[test]
fn options_decide_which_files_go_around_the_cache() {
    let fs = Watched::default();
    fs.create_directory(Path::new("/db")).unwrap();
    for (settings, table, blob) in [
        (&[][..], [CREATED, READ], None),
        (&[WRITES], [CREATED_DIRECTLY, READ], None),
        (&[READS], [CREATED, READ_DIRECTLY], None),
        // What is appended as it is committed never goes around the cache.
        (&[BLOBS[0], BLOBS[1], WRITES], [CREATED_DIRECTLY, READ], Some(CREATED)),
    ] {
        let mut options = fs.options(settings);
        // One would open tables, too.
        set(&mut options, &[("disable_auto_compactions", "true")]);
        let db = Db::open("/db", &options).expect("a database");
        fs.modes("sst");
        db.put("key", "value").expect("a put");
        db.flush_all().expect("a flush");
        assert_eq!(db.get("key").expect("a get").as_deref(), Some(&b"value"[..]));
        assert_eq!(fs.modes("sst"), table, "{settings:?}");
        db.put("key", value(1, 10_000)).expect("a put");
        assert_eq!(fs.modes("blob").first().copied(), blob, "{settings:?}");
        db.close().expect("a clean close");
    }
}

/// Went wrong: the values that a compaction moves were read through the cache, and drove out what
/// readers wanted.
#[test]
fn compactions_read_the_values_that_they_move_around_the_cache() {
    for (settings, directly) in [(&[][..], 0), (&[WRITES], 1)] {
        let fs = Watched::default();
        fs.create_directory(Path::new("/db")).unwrap();
        let mut options = fs.options(settings);
        set(&mut options, &[("disable_auto_compactions", "true"), ("enable_blob_files", "true")]);
        set(&mut options, &[("blob_write_mode", "flush"), ("min_blob_size", "2000")]);
        let db = Db::open("/db", &options).expect("a database");
        for step in [1, 3] {
            for number in (0..120).step_by(step) {
                // Some fill a window, two are larger than any; one of these becomes garbage.
                let is_large = number == 61 || (number, step) == (60, 1);
                let length = if is_large { 5_000_000 } else { 2000 + 40 * number };
                db.put(format!("{number:03}"), value(number * step, length)).expect("a put");
            }
            db.flush_all().expect("a flush");
        }
        let expected = entries(&db, db.default_column_family());
        let moving = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
            blob_garbage_collection_age_cutoff: 1.0,
            ..CompactRangeOptions::default()
        };
        let relocated = || db.statistics().get(Ticker::BlobGcRelocatedKeys);
        // What becomes garbage in the first the second one sees.
        for _ in 0..2 {
            fs.modes("blob");
            db.compact_range(db.default_column_family(), None, None, &moving)
                .expect("a compaction");
        }
        assert_eq!(relocated(), 80, "what was not overwritten of the first file");
        let opened = fs.modes("blob");
        let count = opened.iter().filter(|mode| **mode == READ_DIRECTLY).count();
        assert_eq!(count, directly, "{settings:?}: {opened:?}");
        assert!(entries(&db, db.default_column_family()) == expected, "{settings:?}");
    }
}

#[test]
fn a_file_system_without_direct_io_is_refused_at_open() {
    let fs = Watched { refuses: true, ..Watched::default() };
    for settings in [&[WRITES][..], &[READS]] {
        let error = Db::open("/db", &fs.options(settings)).expect_err("it cannot do that");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.to_string().contains("does not support direct I/O"), "{error}");
    }
    Db::open("/db", &fs.options(&[])).expect("a database").put("key", "value").expect("a put");
}

/// Threads write the files of a flush, which hears of what failed when it hands over the next
/// buffer, or at the end.
#[test]
fn whatever_call_of_a_flush_fails_nothing_is_lost() {
    let mut refused = 0;
    for at in 0.. {
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let mut options = create();
        options.env = Env::os().with_fs(Arc::new(fs.clone()));
        set(
            &mut options,
            &[WRITES, ("writable_file_max_buffer_size", "4096"), ("compression", "kNoCompression")],
        );
        set(
            &mut options,
            &[
                ("enable_blob_files", "true"),
                ("blob_write_mode", "flush"),
                ("min_blob_size", "1000"),
            ],
        );
        let db = Db::open("/db", &options).expect("a database");
        for number in 0..40 {
            db.put(format!("small{number:02}"), value(number, 300)).expect("a put");
        }
        for number in 0..6 {
            db.put(format!("large{number:02}"), value(number, 3000)).expect("a put");
        }
        let expected = entries(&db, db.default_column_family());
        fs.plan(Plan::Once { at, injection: Injection::Io });
        let flushed = db.flush_all();
        let has_failed = !fs.failed().is_empty();
        fs.heal();
        assert!(
            entries(&db, db.default_column_family()) == expected,
            "call {at}: in memory or flushed"
        );
        // Refused, too, where the flush was.
        let _ = db.close();
        drop(db);
        let db = Db::open("/db", &options).expect("a database");
        assert!(entries(&db, db.default_column_family()) == expected, "call {at}: opened again");
        assert!(db.verify(|_| {}).faults.is_empty(), "call {at}");
        if !has_failed {
            flushed.expect("nothing failed");
            break;
        }
        refused += usize::from(flushed.is_err());
    }
    assert!(refused > 15, "{refused}");
}
