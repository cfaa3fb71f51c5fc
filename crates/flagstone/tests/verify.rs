//! What `Db::verify` says of a closed database: every file that an opening needs is looked at, and
//! a sound one is sound.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use fastrand::Rng;
use flagstone::base::checksum::{crc32c, mask};
use flagstone::base::{Code, Error};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Fault, VerifyReport, salvage};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{
    AnyFile, Env, FileAround, FileSystem, FileSystemAround, IoMode, OpenMode, read_file,
};
use flagstone::manifest::{self, VersionEdit};
use flagstone::options::{FlushOptions, Options, RecoveryMode};
use testkit::fault::{Call, FaultFs, Injection, Plan, sort_of};

const DB: &str = "/db";

type Files = BTreeMap<String, Vec<u8>>;

fn options(fs: &MemoryFileSystem) -> Options {
    let mut options = create();
    options.env = Env::os().with_fs(Arc::new(fs.clone()));
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(300);
    options.cf.blob_commit_min_size = 300;
    options.cf.disable_auto_compactions = true;
    options
}

/// A database with tables, large values, and two WALs: one family has flushed what another has not.
fn database(change: impl FnOnce(&mut Options)) -> Files {
    let fs = MemoryFileSystem::new();
    let mut options = options(&fs);
    change(&mut options);
    let db = Db::open(DB, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    let write = |from: u32| {
        for key in from..from + 20 {
            let size = if key % 3 == 0 { 400 } else { 30 };
            db.put(format!("key{key}"), vec![key as u8; size]).expect("a put");
        }
    };
    write(100);
    db.flush_all().expect("a flush");
    write(200);
    db.put_cf(&other, "key", "value").expect("a put");
    db.flush(&other, &FlushOptions::default()).expect("a flush");
    write(300);
    db.flush_wal(false).expect("written");
    // As a process leaves it that is killed: one that closes it flushes what has values in blob
    // files.
    files_of(&fs)
}

fn files_of(fs: &MemoryFileSystem) -> Files {
    let names = fs.list(Path::new(DB)).expect("files in memory");
    let read = |name: &String| read_file(fs, &Path::new(DB).join(name), 1 << 30).expect("a file");
    names.iter().map(|name| (name.clone(), read(name))).collect()
}

fn disk_of(files: &Files) -> MemoryFileSystem {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new(DB)).expect("files in memory");
    for (name, bytes) in files {
        let file = fs.create_writable(&Path::new(DB).join(name), IoMode::Buffered).expect("a file");
        file.write_at(0, bytes).expect("written");
    }
    fs
}

fn opened(files: &Files) -> Result<Db, Error> {
    let mut options = options(&disk_of(files));
    options.wal_recovery_mode = RecoveryMode::SkipAnyCorruptedRecords;
    options.paranoid_checks = false;
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    Db::open_read_only_with_families(DB, &options, &families)
}

/// What is found in these files; an error if they do not open.
fn verified(files: &Files) -> Result<VerifyReport, Error> {
    Ok(opened(files)?.verify(|_| ()))
}

fn wals(files: &Files) -> Vec<String> {
    files.keys().filter(|name| name.ends_with(".log")).cloned().collect()
}

/// Where the records of a log file end: behind are zeros, if anything.
fn records_end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1)
}

#[test]
fn a_sound_database_has_neither_faults_nor_notes() {
    for recycled in [0, 2] {
        for is_manual in [false, true] {
            let files = database(|options| {
                options.recycle_log_file_num = recycled;
                options.manual_wal_flush = is_manual;
            });
            let report = verified(&files).expect("it opens");
            assert!(report.faults.is_empty() && report.notes.is_empty(), "{report:?}");
            assert_eq!(report.wals, 2, "{report:?}");
        }
    }
}

/// The rest of an older record behind the last one of a recycled WAL looks like a damaged one:
/// `salvage` reported a loss.
#[test]
fn what_is_left_of_a_recycled_wals_earlier_life_is_no_damage() {
    for seed in 0..20 {
        let mut random = Rng::with_seed(seed);
        let fs = MemoryFileSystem::new();
        let mut options = options(&fs);
        options.recycle_log_file_num = 2;
        options.cf.enable_blob_files = Some(false);
        let db = Db::open(DB, &options).expect("a database");
        for records in [60, 50, 40, 30, 20, 10] {
            for key in 0..records {
                db.put(format!("key{key}"), vec![key as u8; random.usize(1..2000)]).expect("a put");
            }
            if records > 10 {
                db.flush_all().expect("a flush");
            }
        }
        db.create_column_family("other", &options.cf).expect("a family");
        let files = files_of(&fs);
        let report = verified(&files).expect("it opens");
        assert!(report.faults.is_empty() && report.notes.is_empty(), "seed {seed}: {report:?}");
        let disk = disk_of(&files);
        options.env = Env::os().with_fs(Arc::new(disk));
        let report = salvage(Path::new(DB), Path::new("/new"), &options, &[], &mut |_| {})
            .expect("salvaged");
        assert!(report.is_complete() && report.harmless.is_empty(), "seed {seed}: {report:?}");
        // A record of its own that is damaged is told, wherever it stands.
        let last = wals(&files).pop().expect("a WAL");
        let mut damaged = files.clone();
        let bytes = damaged.get_mut(&last).expect("it is there");
        let at = bytes.windows(4).position(|window| window == b"key9").expect("the last key");
        bytes[at + 5] ^= 1;
        let report = verified(&damaged).expect("it opens");
        assert_eq!((report.faults.len(), report.notes.len()), (0, 1), "seed {seed}: {report:?}");
    }
}

/// WALs were not looked at, and edits of the MANIFEST that an opening passes over not either.
#[test]
fn no_flipped_bit_of_any_file_goes_unnoticed() {
    let files = database(|_| {});
    let mut random = Rng::with_seed(11);
    for (name, bytes) in &files {
        if ["LOCK", "LOG", "IDENTITY", "OPTIONS"].iter().any(|other| name.starts_with(other)) {
            continue;
        }
        // Behind the records of WALs and of blob files that are being written are zeros, and a
        // table's footer has some to fill it up.
        let end = match name.rsplit_once('.') {
            Some((_, "log" | "blob")) => records_end(bytes),
            Some((_, "sst")) => bytes.len() - 53,
            _ => bytes.len(),
        };
        for _ in 0..60 {
            let mut damaged = files.clone();
            let at = random.usize(..end);
            damaged.get_mut(name).expect("it is there")[at] ^= 1 << random.u8(..8);
            match verified(&damaged) {
                Err(error) => {
                    assert!(
                        error.is_corruption() || error.is_not_found(),
                        "{name} at {at}: {error}"
                    )
                }
                Ok(report) => {
                    let is_told = !report.faults.is_empty() || !report.notes.is_empty();
                    assert!(is_told, "nothing is said of {name} flipped at {at} of {end}");
                }
            }
        }
    }
}

#[test]
fn damage_in_a_wal_is_told_with_file_and_offset() {
    let files = database(|_| {});
    for name in wals(&files) {
        let mut damaged = files.clone();
        let bytes = damaged.get_mut(&name).expect("it is there");
        let record = bytes
            .windows(6)
            .position(|window| window.starts_with(b"key2") || window.starts_with(b"key3"));
        let at = record.expect("there are some");
        bytes[at + 3] ^= 1;
        let report = verified(&damaged).expect("it opens");
        let [fault] = &report.faults[..] else { panic!("{name}: {report:?}") };
        assert!(fault.error.path().is_some_and(|path| path.ends_with(&name)), "{fault:?}");
        assert!(fault.error.offset().is_some_and(|offset| offset as usize <= at), "{fault:?}");
        assert!(report.notes.is_empty(), "{report:?}");
    }
}

/// Of the first block of a table the keys were said to begin with the empty one.
#[test]
fn keys_of_a_damaged_first_block_begin_with_the_table_s_first() {
    let mut files = database(|_| {});
    let name = files.keys().find(|name| name.ends_with(".sst")).expect("a table").clone();
    files.get_mut(&name).expect("it is there")[20] ^= 1;
    let report = verified(&files).expect("it opens");
    let [fault] = &report.faults[..] else { panic!("{:?}", report.faults) };
    let (from, to) = fault.key_range.as_ref().expect("keys");
    assert_eq!((&from[..4], from <= to), (&b"key1"[..], true), "{fault:?}");
}

/// The end of the last WAL may be torn; of one that another follows it may not, wherever it is cut.
#[test]
fn a_wal_without_its_end_is_torn_if_it_is_the_last_and_damaged_if_not() {
    let files = database(|_| {});
    let wals = wals(&files);
    let mut random = Rng::with_seed(5);
    for _ in 0..40 {
        let name = &wals[random.usize(..2)];
        let mut damaged = files.clone();
        let bytes = damaged.get_mut(name).expect("it is there");
        let end = records_end(bytes);
        // In the middle of the last values: not where a record ends, and not in front of all.
        let at = end - random.usize(1..20);
        bytes.truncate(at);
        let report = verified(&damaged).expect("it opens");
        let is_last = *name == wals[1];
        assert_eq!(report.faults.is_empty(), is_last, "{name} cut at {at} of {end}: {report:?}");
        assert_eq!(report.notes.is_empty(), !is_last, "{name} cut at {at} of {end}: {report:?}");
    }
    for name in &wals {
        let mut damaged = files.clone();
        damaged.remove(name);
        let report = verified(&damaged).expect("it opens");
        // The last may have been empty.
        let is_last = *name == wals[1];
        let found = (report.faults.len(), report.notes.len());
        assert_eq!(found, if is_last { (0, 1) } else { (1, 0) }, "without {name}: {report:?}");
    }
}

/// The WAL that a family knew of was gone, since one that was dropped had been flushed after it:
/// `doctor`, `verify` and `salvage` missed it.
#[test]
fn a_wal_that_nobody_needs_any_longer_is_not_missing() {
    let fs = MemoryFileSystem::new();
    let db = Db::open(DB, &options(&fs)).expect("a database");
    db.put("key", "value").expect("a write");
    db.flush_all().expect("a flush");
    let dropped = db.create_column_family("dropped", &options(&fs).cf).expect("a family");
    db.put_cf(&dropped, "key", "value").expect("a write");
    db.flush_all().expect("a flush");
    db.drop_column_family(&dropped).expect("it is there");
    db.close().expect("a clean close");
    let db = Db::open_read_only(DB, &options(&fs)).expect("it opens");
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty() && report.notes.is_empty(), "{report:?}");
    drop(db);
    let report = salvage(Path::new(DB), Path::new("/new"), &options(&fs), &[], &mut |_| {})
        .expect("salvaged");
    assert!(
        report.is_complete() && report.harmless.is_empty() && report.notes.is_empty(),
        "{report:?}"
    );
}

/// A process that went on after a crash left the torn end in front of its own WAL: that is no
/// damage.
#[test]
fn a_torn_end_that_was_recovered_from_is_no_damage() {
    let mut files = database(|options| options.cf.enable_blob_files = Some(false));
    let last = wals(&files).pop().expect("there are two");
    let bytes = files.get_mut(&last).expect("it is there");
    let end = records_end(bytes);
    bytes.truncate(end - 5);
    let fs = disk_of(&files);
    write_after_crash(&fs, RecoveryMode::TolerateCorruptedTailRecords);
    let report = verified(&files_of(&fs)).expect("it opens");
    assert_eq!((report.wals, report.faults.len(), report.notes.len()), (3, 0, 1), "{report:?}");
    assert!(report.notes[0].path().is_some_and(|path| path.ends_with(&last)), "{report:?}");
}

/// Another process recovers what is there, keeps the WALs, writes, and is killed.
fn write_after_crash(fs: &MemoryFileSystem, mode: RecoveryMode) {
    let mut options = options(fs);
    options.wal_recovery_mode = mode;
    options.avoid_flush_during_recovery = true;
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families(DB, &options, &families).expect("it opens");
    db.put("more", "more").expect("a put");
    db.flush_wal(false).expect("written");
    let killed = files_of(fs);
    db.close().expect("closed");
    for name in fs.list(Path::new(DB)).expect("files in memory") {
        fs.remove(&Path::new(DB).join(name)).expect("it is there");
    }
    for (name, bytes) in &killed {
        let file = fs.create_writable(&Path::new(DB).join(name), IoMode::Buffered).expect("a file");
        file.write_at(0, bytes).expect("written");
    }
}

/// The blobs that only WALs name were not looked at.
#[test]
fn a_blob_that_a_wal_names_and_that_is_damaged_is_told() {
    let files = database(|_| {});
    let value = [201u8; 300];
    let holds = |bytes: &Vec<u8>| bytes.windows(300).position(|window| window == value);
    let (name, at) =
        files.iter().find_map(|(name, bytes)| Some((name, holds(bytes)?))).expect("it is large");
    assert!(name.ends_with(".blob"), "{name}");
    let mut damaged = files.clone();
    damaged.get_mut(name).expect("it is there")[at] ^= 1;
    let report = verified(&damaged).expect("it opens");
    let told = report.faults.iter().any(|fault| fault.error.to_string().contains("key201"));
    assert!(told, "{report:?}");
}

/// Recovery passes by a record whose blob is lost, and the next process goes on at its number:
/// `verify` took the number for used, and that for damage.
#[test]
fn history_that_goes_on_at_a_record_whose_blob_was_lost_is_no_damage() {
    for mode in [RecoveryMode::TolerateCorruptedTailRecords, RecoveryMode::SkipAnyCorruptedRecords]
    {
        for operations in [1, 3] {
            let fs = MemoryFileSystem::new();
            let options = options(&fs);
            let db = Db::open(DB, &options).expect("a database");
            db.create_column_family("other", &options.cf).expect("a family");
            db.put("small", "value").expect("a put");
            let mut batch = WriteBatch::new();
            for key in 0..operations {
                batch.put(format!("large{key}").as_bytes(), [key; 400]).expect("a put");
            }
            db.write(batch).expect("a write");
            db.flush_wal(false).expect("written");
            let mut files = files_of(&fs);
            files.retain(|name, _| !name.ends_with(".blob"));
            let crashed = disk_of(&files);
            write_after_crash(&crashed, mode);
            let report = verified(&files_of(&crashed)).expect("it opens");
            let found = (report.wals, report.faults.len(), report.notes.len());
            assert_eq!(found, (2, 0, 1), "{mode:?}, {operations}: {report:?}");
        }
    }
}

/// Values stand in the WALs, and records of these do not carry the file's number.
fn plain(options: &mut Options) {
    options.cf.enable_blob_files = Some(false);
    options.recycle_log_file_num = 0;
}

/// Each of its records was told, so that the report grew with the file.
#[test]
fn an_older_wal_under_a_higher_number_is_told_once() {
    let files = database(plain);
    let fs = disk_of(&files);
    let options = options(&fs);
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let copy =
        fs.create_writable(&Path::new(DB).join("000099.log"), IoMode::Buffered).expect("a file");
    let db = Db::open_read_only_with_families(DB, &options, &families).expect("it opens");
    // Later: it would not open.
    copy.write_at(0, &files[&wals(&files)[0]]).expect("written");
    let report = db.verify(|_| {});
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert!(fault.error.to_string().contains("goes back"), "{report:?}");
    assert!(fault.error.path().is_some_and(|path| path.ends_with("000099.log")), "{report:?}");
}

/// It was damage, although the database opens.
#[test]
fn a_manifest_whose_last_record_lacks_a_part_is_torn() {
    let mut files = database(|_| {});
    let name =
        files.keys().find(|name| name.starts_with("MANIFEST")).expect("there is one").clone();
    let bytes = files.get_mut(&name).expect("it is there");
    let at = (bytes.len() - 12) / 8 * 8;
    assert!(bytes[at..at + 8].iter().any(|byte| *byte != 0));
    bytes[at..at + 8].fill(0);
    let report = verified(&files).expect("it opens");
    let [note] = &report.notes[..] else { panic!("{report:?}") };
    assert!(report.faults.is_empty(), "{report:?}");
    assert!(
        note.path().is_some_and(|path| path.ends_with(&name)) && note.offset().is_some(),
        "{report:?}"
    );
}

/// A record of a log whose headers do not carry its number.
fn physical_record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let covered = [&[kind], payload].concat();
    let length = u16::try_from(payload.len()).expect("it is short");
    [&mask(crc32c(&covered)).to_le_bytes()[..], &length.to_le_bytes(), &covered].concat()
}

/// RocksDB 7.8's `ldb repair` leaves a database so: tables, and blob files that are in its MANIFEST
/// no longer. It was sound.
#[test]
fn a_table_whose_large_values_lie_in_a_file_that_the_manifest_does_not_name_is_not_sound() {
    let mut files = database(|_| {});
    let name =
        files.keys().find(|name| name.starts_with("MANIFEST")).expect("there is one").clone();
    let mut repaired = Vec::new();
    for (_, edit) in
        manifest::dump(&disk_of(&files), &Path::new(DB).join(&name)).expect("it is there")
    {
        let mut payload = Vec::new();
        VersionEdit { blob_file_additions: Vec::new(), ..edit.expect("it is sound") }
            .encode(&mut payload);
        repaired.extend(physical_record(1, &payload));
    }
    files.insert(name, repaired);
    let db = opened(&files).expect("it opens");
    assert!(db.get("key102").is_err_and(|error| error.is_corruption()));
    let report = db.verify(|_| ());
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert!(fault.error.to_string().contains("6 large values lie in 0"), "{fault:?}");
    assert_eq!(fault.key_range, Some((b"key102".to_vec(), b"key117".to_vec())));
    let [fault] = &db.check().expect("a list of files").faults[..] else { panic!("one fault") };
    assert!(
        fault.error.path().is_some_and(|path| path.extension().is_some_and(|name| name == "sst"))
    );
    assert!(fault.error.to_string().contains(".blob"), "{fault:?}");
}

/// Begins the second WAL as RocksDB does since 9.11 with `track_and_verify_wals`: in the place of
/// the engine's own note.
fn as_of_rocksdb(files: &mut Files, last_sequence: u64) {
    const PREDECESSOR: u8 = 130;
    let [first, second] = &wals(files)[..] else { panic!("there are two") };
    let number: u64 = first.trim_end_matches(".log").parse().expect("a number");
    let size = records_end(&files[first]) as u64;
    let payload = [number, size, last_sequence].map(u64::to_le_bytes).concat();
    let bytes = files.get_mut(second).expect("it is there");
    let note = 7 + usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    assert!(
        bytes[..note].windows(9).any(|window| window == b"flagstone"),
        "it begins with the note"
    );
    bytes.truncate(records_end(bytes));
    bytes.splice(..note, physical_record(PREDECESSOR, &payload));
}

/// The number in the header of the last batch of a WAL.
fn last_sequence(wal: &[u8]) -> u64 {
    let (mut at, mut sequence) = (0, 0);
    while at < records_end(wal) {
        sequence = u64::from_le_bytes(wal[at + 7..at + 15].try_into().expect("eight bytes"));
        at += 7 + usize::from(u16::from_le_bytes([wal[at + 4], wal[at + 5]]));
    }
    sequence
}

/// RocksDB notes the number of a WAL's last batch, also if that changes nothing; such were not
/// counted, and the WAL too short.
#[test]
fn a_wal_that_ends_with_a_batch_without_changes_is_as_long_as_rocksdb_says() {
    for log_data in [None, Some(b"of the application")] {
        let mut files = database(plain);
        let first = wals(&files).remove(0);
        let bytes = files.get_mut(&first).expect("it is there");
        bytes.truncate(records_end(bytes));
        let mut batch = WriteBatch::new();
        batch.set_sequence(last_sequence(bytes) + 1);
        if let Some(log_data) = log_data {
            batch.put_log_data(log_data).expect("log data");
        }
        let last = last_sequence(bytes) + 1;
        bytes.extend(physical_record(1, batch.data()));
        as_of_rocksdb(&mut files, last);
        let report = verified(&files).expect("it opens");
        assert!(report.faults.is_empty() && report.notes.is_empty(), "{log_data:?}: {report:?}");
        // And one more is missed.
        let mut files = database(plain);
        as_of_rocksdb(&mut files, last);
        let report = verified(&files).expect("it opens");
        assert_eq!((report.faults.len(), report.notes.len()), (1, 0), "{report:?}");
    }
}

/// It was told as torn by the records of the WAL behind, and as too short by what RocksDB notes in
/// front of these.
#[test]
fn a_wal_without_its_end_that_rocksdb_went_on_from_is_one_fault() {
    let mut files = database(plain);
    let first = wals(&files).remove(0);
    let last = last_sequence(&files[&first]);
    as_of_rocksdb(&mut files, last);
    let bytes = files.get_mut(&first).expect("it is there");
    bytes.truncate(records_end(bytes) - 3);
    let report = verified(&files).expect("it opens");
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert!(fault.error.path().is_some_and(|path| path.ends_with(&first)), "{report:?}");
    assert!(report.notes.is_empty(), "{report:?}");
}

/// What stood in it was missed once more, by what the WAL behind says of it.
#[test]
fn a_wal_that_cannot_be_read_is_one_fault() {
    let files = database(plain);
    let first = Path::new(DB).join(wals(&files).remove(0));
    let fs = disk_of(&files);
    let mut options = options(&fs);
    let disk = FaultFs::new(Arc::new(fs));
    options.env = Env::os().with_fs(Arc::new(disk.clone()));
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_read_only_with_families(DB, &options, &families).expect("it opens");
    let plans = disk.clone();
    disk.before_each(move |call, path| {
        if call == Call::Read && path == first {
            plans.plan(Plan::Next { call, sort: sort_of(path), injection: Injection::Io });
        }
    });
    let report = db.verify(|_| {});
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert_eq!((fault.error.code(), report.notes.len()), (Code::IoError, 0), "{report:?}");
}

/// Files of which the first bytes cannot be read from some moment on, if they are WALs.
struct BadSectors(MemoryFileSystem, Arc<AtomicBool>);

struct BadFront(AnyFile, Arc<AtomicBool>);

impl FileSystemAround for BadSectors {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile, Error> {
        let file = mode.open(&self.0, path)?;
        if path.extension().is_some_and(|extension| extension == "log") {
            Ok(AnyFile::around(BadFront(file, self.1.clone())))
        } else {
            Ok(file)
        }
    }
}

impl FileAround for BadFront {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        if offset < 512 && self.1.load(Ordering::Relaxed) {
            let cause = std::io::Error::from_raw_os_error(5);
            return Err(Error::io("read", self.0.path(), cause).at_offset(offset));
        }
        self.0.read_at(offset, buffer)
    }
}

/// The first of them ended the look: no other WAL was looked at.
#[test]
fn a_wal_that_begins_in_a_bad_sector_does_not_keep_the_next_from_being_read() {
    let fs = disk_of(&database(|options| options.cf.enable_blob_files = Some(false)));
    let is_bad = Arc::new(AtomicBool::new(false));
    let mut options = options(&fs);
    options.env = Env::os().with_fs(Arc::new(BadSectors(fs, is_bad.clone())));
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_read_only_with_families(DB, &options, &families).expect("it opens");
    is_bad.store(true, Ordering::Relaxed);
    let report = db.verify(|_| {});
    let is_told =
        |fault: &Fault| fault.error.code() == Code::IoError && fault.error.offset() == Some(0);
    assert_eq!(
        (report.wals, report.faults.iter().filter(|fault| is_told(fault)).count()),
        (2, 2),
        "{report:?}"
    );
}
