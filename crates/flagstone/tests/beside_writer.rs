//! Stories of a read-only handle beside a writer that takes away every file that the handle has: it
//! sees to its end what it saw at its opening.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use common::{create, entries, entries_backwards, temporary};
use flagstone::base::Result;
use flagstone::db::{ColumnFamily, Db, Ticker};
use flagstone::env::os::OsFileSystem;
use flagstone::env::{AnyFile, FileSystem, FileSystemAround, IoMode, Metadata, OpenMode};
use flagstone::options::{Options, ReadOptions};
use testkit::HandClock;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// What a handle is to see: the entries of each family.
type Contents = BTreeMap<String, Entries>;

/// A table for a few keys, a WAL for a few tables.
fn options(more: &str) -> Options {
    let mut options = create();
    options.env.clock = Arc::new(HandClock::at(1_700_000_000));
    let text = "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;compression=kNoCompression;\
                max_open_files=20";
    for setting in text.split(';').chain(more.split(';')).filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

fn put(db: &Db, family: &ColumnFamily, count: u32, size: usize, round: u8) {
    for number in 0..count {
        let key = format!("key{number:05}");
        let mut value = vec![round; size];
        value[0] = number as u8;
        db.put_cf(family, key, value).unwrap();
    }
}

fn contents(db: &Db) -> Contents {
    let families = db.column_families();
    families.iter().map(|family| (family.name().to_string(), entries(db, family))).collect()
}

/// A way to look at a family, and the entries that it shows.
type Look = (&'static str, fn(&Db, &ColumnFamily, &Entries) -> Entries);

/// Every way to read from a handle.
const LOOKS: [Look; 5] = [
    ("an iterator", |db, family, _| entries(db, family)),
    ("an iterator backwards", |db, family, _| entries_backwards(db, family)),
    ("get", |db, family, wanted| {
        let value = |key: &Vec<u8>| db.get_cf(family, key).unwrap().unwrap().to_vec();
        wanted.iter().map(|(key, _)| (key.clone(), value(key))).collect()
    }),
    ("get_range", |db, family, wanted| {
        let options = ReadOptions::default();
        let value = |key: &Vec<u8>| {
            db.get_range(&options, family, key, 0..u64::MAX).unwrap().unwrap().bytes.to_vec()
        };
        wanted.iter().map(|(key, _)| (key.clone(), value(key))).collect()
    }),
    ("multi_get", |db, family, wanted| {
        let keys: Vec<_> = wanted.iter().map(|(key, _)| key).collect();
        let found = db.multi_get_with(&ReadOptions::default(), family, &keys);
        let found = found.into_iter().map(|value| value.unwrap().unwrap().to_vec());
        wanted.iter().map(|(key, _)| key.clone()).zip(found).collect()
    }),
];

fn assert_sees(reader: &Db, expected: &Contents) {
    for family in reader.column_families() {
        let wanted = &expected[family.name()];
        for (name, look) in LOOKS {
            let found = look(reader, &family, wanted);
            assert!(
                &found == wanted,
                "{name} of {}: {} of {}",
                family.name(),
                found.len(),
                wanted.len()
            );
        }
        reader.space(&family).unwrap();
    }
    assert_eq!(reader.column_families().len(), expected.len());
    let faults = reader.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
    let faults = reader.check().unwrap().faults;
    assert!(faults.is_empty(), "{faults:?}");
}

/// The files of that kind in a directory.
fn files(directory: &Path, extension: &str) -> Vec<String> {
    let names = OsFileSystem.list(directory).unwrap();
    names.into_iter().filter(|name| name.ends_with(extension)).collect()
}

/// Opens a handle beside a writer that has written something, lets the writer go on, and looks
/// again. The handle reads nothing before. Returns what there was of files of a kind before and
/// after.
fn story(
    settings: &str,
    kind: &str,
    begin: impl Fn(&Db),
    go_on: impl Fn(&Db),
) -> (Vec<String>, Vec<String>) {
    let directory = temporary();
    let writer = Db::open(directory.path(), &options(settings)).unwrap();
    begin(&writer);
    let (expected, before) = (contents(&writer), files(directory.path(), kind));
    let reader = Db::open_read_only(directory.path(), &options(settings)).unwrap();
    go_on(&writer);
    writer.flush_all().unwrap();
    writer.wait_for_compactions().unwrap();
    let after = files(directory.path(), kind);
    assert_sees(&reader, &expected);
    writer.close().unwrap();
    drop(writer);
    assert_sees(&reader, &expected);
    (before, after)
}

fn compact(db: &Db) {
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
}

/// A scan ended at the first table that a compaction had removed.
#[test]
fn tables_that_a_compaction_removes_stay() {
    let begin = |db: &Db| {
        put(db, db.default_column_family(), 2000, 300, 1);
        db.flush_all().unwrap();
    };
    let (before, after) = story("", ".sst", begin, |db| {
        put(db, db.default_column_family(), 2000, 300, 2);
        compact(db);
    });
    assert!(
        before.len() > 5 && before.iter().all(|name| !after.contains(name)),
        "{before:?} {after:?}"
    );
}

#[test]
fn blob_files_that_a_collection_removes_stay() {
    let settings = "enable_blob_files=true;min_blob_size=100;blob_file_size=65536;enable_blob_garbage_collection=true;\
                    blob_garbage_collection_age_cutoff=1.0;blob_garbage_collection_force_threshold=0.1";
    let begin = |db: &Db| {
        put(db, db.default_column_family(), 500, 1000, 1);
        db.flush_all().unwrap();
    };
    let (before, after) = story(settings, ".blob", begin, |db| {
        put(db, db.default_column_family(), 500, 1000, 2);
        compact(db);
    });
    assert!(
        before.len() > 5 && before.iter().all(|name| !after.contains(name)),
        "{before:?} {after:?}"
    );
}

/// The values lie in blob files that no MANIFEST names yet.
#[test]
fn blob_files_that_only_a_wal_names_stay() {
    let settings = "enable_blob_files=true;min_blob_size=100;blob_commit_min_size=1000;write_buffer_size=67108864;\
                    enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0;\
                    blob_garbage_collection_force_threshold=0.1";
    let begin = |db: &Db| put(db, db.default_column_family(), 50, 20_000, 1);
    let (before, after) = story(settings, ".blob", begin, |db| {
        db.flush_all().unwrap();
        put(db, db.default_column_family(), 50, 20_000, 2);
        compact(db);
    });
    assert!(
        !before.is_empty() && before.iter().all(|name| !after.contains(name)),
        "{before:?} {after:?}"
    );
}

/// A log was begun over one that a handle had yet to read.
#[test]
fn wals_that_are_obsolete_are_not_written_over() {
    for settings in ["recycle_log_file_num=2", "recycle_log_file_num=0", "wal_write_mode=plain"] {
        let begin = |db: &Db| {
            let other = db.create_column_family("other", &options("").cf).unwrap();
            // Enough for several WALs, which the other family needs.
            db.put_cf(&other, "key", "value").unwrap();
            put(db, db.default_column_family(), 1000, 300, 1);
        };
        let (before, after) = story(settings, ".log", begin, |db| {
            for round in 2..6 {
                db.flush_all().unwrap();
                put(db, db.default_column_family(), 1000, 300, round);
            }
        });
        assert!(
            before.len() > 1 && before.iter().all(|name| !after.contains(name)),
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn families_that_are_dropped_stay() {
    let begin = |db: &Db| {
        let other = db.create_column_family("other", &options("").cf).unwrap();
        put(db, &other, 500, 300, 1);
        db.flush_all().unwrap();
        put(db, &other, 10, 300, 2);
    };
    let (before, after) = story("", ".sst", begin, |db| {
        let other = db.column_family("other").unwrap();
        db.drop_column_family(&other).unwrap();
        drop(other);
        put(db, db.default_column_family(), 500, 300, 1);
        compact(db);
    });
    assert!(
        !before.is_empty() && before.iter().all(|name| !after.contains(name)),
        "{before:?} {after:?}"
    );
}

/// Whether the file system of temporary directories punches holes.
fn has_holes() -> bool {
    let directory = temporary();
    let file = OsFileSystem.create_writable(&directory.path().join("f"), IoMode::Buffered).unwrap();
    file.write_at(0, &[1; 1 << 16]).unwrap();
    OsFileSystem.open_reclaimable(file.path()).unwrap().punch_hole(0..1 << 15).unwrap()
}

/// Bytes on the disk of each blob file.
fn on_disk(directory: &Path) -> BTreeMap<String, u64> {
    let names = files(directory, ".blob").into_iter();
    names
        .map(|name| (name.clone(), std::fs::metadata(directory.join(name)).unwrap().blocks() * 512))
        .collect()
}

/// A handle had the blob file open, and zeros in it where its values had been.
#[test]
fn files_that_a_handle_holds_get_no_holes() {
    if !has_holes() {
        return;
    }
    let settings = "enable_blob_files=true;min_blob_size=1000;blob_file_size=1000000;write_buffer_size=67108864;\
                    target_file_size_base=67108864";
    for is_held in [false, true] {
        let directory = temporary();
        let clock = Arc::new(HandClock::at(1_700_000_000));
        let mut of_writer = options(settings);
        of_writer.env.clock = clock.clone();
        let writer = Db::open(directory.path(), &of_writer).unwrap();
        let overwrite = |step: usize, round: u8| {
            for number in (0..100).step_by(step) {
                writer.put(format!("key{number:05}"), vec![round; 64 << 10]).unwrap();
            }
            writer.flush_all().unwrap();
            writer.wait_for_compactions().unwrap();
        };
        overwrite(1, 1);
        let (expected, before) = (contents(&writer), on_disk(directory.path()));
        let reader =
            is_held.then(|| Db::open_read_only(directory.path(), &options(settings)).unwrap());
        overwrite(3, 2);
        let after = on_disk(directory.path());
        let kept: Vec<_> = before.iter().filter(|(name, _)| after.contains_key(*name)).collect();
        let are_whole = kept.iter().all(|(name, bytes)| after[*name] == **bytes);
        assert!(!kept.is_empty() && are_whole == is_held, "{is_held}: {before:?} {after:?}");
        let Some(reader) = reader else { continue };
        assert_sees(&reader, &expected);
        drop(reader);
        let punched = || writer.statistics().get(Ticker::BlobPunchedBytes);
        let before = punched();
        clock.advance(61);
        overwrite(7, 3);
        assert!(punched() > before, "no handle holds them any longer");
        let faults = writer.verify(|_| {}).faults;
        assert!(faults.is_empty(), "{faults:?}");
    }
}

/// A handle closed files for others, and did not find them again.
#[test]
fn a_handle_holds_more_files_than_the_options_say() {
    let directory = temporary();
    let settings = "disable_auto_compactions=true;level0_slowdown_writes_trigger=10000;level0_stop_writes_trigger=10000";
    let writer = Db::open(directory.path(), &options(settings)).unwrap();
    for number in 0..100 {
        writer.put(format!("{number:05}"), "value").unwrap();
        // Tables that do not overlap would only be moved.
        writer.put("every table", "value").unwrap();
        writer.flush_all().unwrap();
    }
    let expected = contents(&writer);
    let reader = Db::open_read_only(directory.path(), &options(settings)).unwrap();
    compact(&writer);
    assert_eq!(files(directory.path(), ".sst").len(), 1);
    assert_sees(&reader, &expected);
}

/// What happens before a MANIFEST is opened, and before a table is.
type Happens = Box<dyn Fn(When) + Send + Sync>;

/// A file system on which something happens at a point of each opening.
struct Meanwhile {
    fs: Arc<dyn FileSystem>,
    happens: Happens,
    /// An attempt has begun, and not reached the MANIFEST.
    has_begun: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// An attempt holds the WALs, and nothing else.
    BeforeManifest,
    /// An attempt has read the MANIFEST, and has not looked for the WALs that were made since.
    BehindManifest,
}

fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"))
}

impl FileSystemAround for Meanwhile {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if is_manifest(path) && self.has_begun.swap(false, Ordering::Relaxed) {
            (self.happens)(When::BeforeManifest);
        }
        if path.extension().is_some_and(|extension| extension == "sst") {
            (self.happens)(When::BehindManifest);
        }
        mode.open(&*self.fs, path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.has_begun.store(true, Ordering::Relaxed);
        self.fs.list(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        // Whether it has changed: the attempt is over, or the next one is about to begin.
        if is_manifest(path) {
            self.has_begun.store(false, Ordering::Relaxed);
        }
        self.fs.metadata(path)
    }
}

/// Opens a handle beside a writer that does `work` at one point of each attempt. The handle must
/// see what the writer had acknowledged at some time since. Returns how many attempts there were.
fn opened_meanwhile(
    settings: &str,
    when: When,
    work: impl Fn(&Db, u8) + Send + Sync + 'static,
) -> u8 {
    let directory = temporary();
    let writer = Arc::new(Db::open(directory.path(), &options(settings)).unwrap());
    let write = |db: &Db, round| put(db, db.default_column_family(), 100, 100, round);
    write(&writer, 1);
    writer.flush_all().unwrap();
    write(&writer, 2);
    let states = Arc::new(Mutex::new(vec![contents(&writer)]));
    let attempts = Arc::new(AtomicU8::new(0));
    let happens: Happens = {
        let (writer, states, attempts) = (writer.clone(), states.clone(), attempts.clone());
        let is_done = AtomicBool::new(false);
        Box::new(move |now| {
            if now == When::BeforeManifest {
                attempts.fetch_add(1, Ordering::Relaxed);
                is_done.store(false, Ordering::Relaxed);
            }
            if now == when && !is_done.swap(true, Ordering::Relaxed) {
                let round = 2 + attempts.load(Ordering::Relaxed);
                write(&writer, round);
                states.lock().unwrap().push(contents(&writer));
                work(&writer, round);
                states.lock().unwrap().push(contents(&writer));
            }
        })
    };
    let mut of_reader = options(settings);
    let fs = Meanwhile { fs: Arc::new(OsFileSystem), happens, has_begun: AtomicBool::new(false) };
    of_reader.env = of_reader.env.clone().with_fs(Arc::new(fs));
    let reader = Db::open_read_only(directory.path(), &of_reader).unwrap();
    let seen = contents(&reader);
    let position = states.lock().unwrap().iter().position(|state| *state == seen);
    assert!(position.is_some_and(|position| position > 0), "{position:?}");
    assert_sees(&reader, &seen);
    attempts.load(Ordering::Relaxed)
}

const RECYCLING: [&str; 2] = ["recycle_log_file_num=0", "recycle_log_file_num=2"];

/// An opening was repeated until the MANIFEST did not change during one.
#[test]
fn an_opening_beside_a_writer_that_takes_nothing_away_is_the_first() {
    for settings in RECYCLING {
        for work in [|db: &Db| db.flush_all().unwrap(), compact] {
            assert_eq!(
                opened_meanwhile(settings, When::BeforeManifest, move |db, _| work(db)),
                1,
                "{settings}"
            );
        }
        let attempts = opened_meanwhile(settings, When::BehindManifest, |db, round| {
            drop(db.create_column_family(&format!("family {round}"), &options("").cf).unwrap());
        });
        assert_eq!(attempts, 1, "{settings}");
    }
}

/// The tables that the MANIFEST names are gone, or the WALs that were made since it was read.
#[test]
fn an_opening_that_lacks_something_is_repeated() {
    for settings in RECYCLING {
        let attempts = opened_meanwhile(settings, When::BehindManifest, |db, round| {
            // In the first attempts only.
            if round < 5 {
                compact(db);
            }
        });
        assert!(attempts > 1, "{settings}");
        let attempts = opened_meanwhile(settings, When::BehindManifest, |db, round| {
            for again in 0..if round < 5 { 3 } else { 0 } {
                db.flush_all().unwrap();
                put(db, db.default_column_family(), 100, 100, 10 * round + again);
            }
        });
        assert!(attempts > 1, "{settings}");
    }
}
