//! WALs that are missing or cut off, and those that only seem to be so to a salvage.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::*;
use flagstone::base::checksum::{crc32c, mask};
use flagstone::base::{Code, FileNumber};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, SalvageReport, salvage};
use flagstone::env::{Env, IoMode};
use flagstone::options::{FlushOptions, Options, WriteOptions};
use flagstone::wal::{Event, PredecessorWal, Reader, WalWriteMode, Writer, WriterOptions};
use testkit::fault::{Call, FaultFs, Injection, Plan, sort_of};

fn rebuild(source: &Path, target: &Path) -> SalvageReport {
    salvage(source, target, &create(), &[], &mut |_| {}).expect("salvaged")
}

fn logs(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path());
    let mut logs: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "log")).collect();
    logs.sort();
    logs
}

/// A record of a log whose headers do not carry its number.
fn physical_record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let covered = [&[kind], payload].concat();
    let length = u16::try_from(payload.len()).expect("it is short");
    [&mask(crc32c(&covered)).to_le_bytes()[..], &length.to_le_bytes(), &covered].concat()
}

fn keys(directory: &Path) -> usize {
    let db = Db::open_read_only(directory, &Options::default()).expect("it opens");
    entries(&db, db.default_column_family()).len()
}

/// The number that RocksDB notes when it opens a database is no WAL's, and its checkpoints lack an
/// empty one: `verify` had a note of the first, and a salvage of both took them for losses.
#[test]
fn no_wal_is_missing_of_what_rocksdb_has_opened_again_or_copied() {
    let Some(referee) = referee() else { return };
    let scratch = temporary();
    let (source, copy) = (scratch.path().join("source"), scratch.path().join("copy"));
    referee.ldb(&source, &["put", "--create_if_missing", "first", "1"]);
    referee.ldb(&source, &["put", "second", "2"]);
    let db = Db::open_read_only(&source, &Options::default()).expect("it opens");
    let found = db.verify(|_| {});
    assert!(found.faults.is_empty() && found.notes.is_empty(), "{found:?}");
    drop(db);
    let report = rebuild(&source, &scratch.path().join("first"));
    assert!(report.is_complete() && report.notes.is_empty(), "{report:#?}");
    assert_eq!(keys(&scratch.path().join("first")), 2);

    referee.ldb(&source, &["checkpoint", &format!("--checkpoint_dir={}", copy.display())]);
    assert!(logs(&copy).is_empty(), "an empty WAL is left out");
    let report = rebuild(&copy, &scratch.path().join("second"));
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(keys(&scratch.path().join("second")), 2);
    let noted =
        |report: &SalvageReport| report.notes.iter().any(|note| note.contains(".log is missing"));
    assert!(noted(&report), "{report:#?}");
}

/// The WAL of a database that was written to is there, whatever it holds.
#[test]
fn a_database_without_its_last_wal_is_not_complete() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.avoid_flush_during_shutdown = true;
    let db = Db::open(&source, &options).expect("it opens");
    db.put("key", "flushed").expect("a put");
    db.flush_all().expect("a flush");
    db.put("key", "newer").expect("a put");
    db.close().expect("closed");
    logs(&source).iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
    let report = rebuild(&source, &scratch.path().join("db"));
    assert!(!report.is_complete(), "{report:#?}");
}

/// Keys that end in user timestamps were rescued as keys that are longer. Where the comparator has
/// none any more they lose them, as at an opening; where it is not known, they are lost.
#[test]
fn keys_that_ended_in_user_timestamps_do_no_more() {
    for (family, has_manifest, found) in
        [(0, true, Some("key")), (0, false, None), (7, true, Some("key\x09\0\0\0\0\0\0\0"))]
    {
        let scratch = temporary();
        let source = scratch.path().join("source");
        let mut options = create();
        options.avoid_flush_during_shutdown = true;
        let db = Db::open(&source, &options).expect("it opens");
        db.put(b"key\x09\0\0\0\0\0\0\0", "value").expect("a put");
        db.close().expect("closed");
        let log = &logs(&source)[0];
        let records = std::fs::read(log).expect("a log");
        std::fs::write(log, [timestamp_sizes(family, 8), records].concat()).expect("a log");
        if !has_manifest {
            let files = std::fs::read_dir(&source).expect("listed");
            let paths = files.map(|file| file.expect("listed").path());
            let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST-");
            paths.filter(is_manifest).for_each(|path| std::fs::remove_file(path).expect("removed"));
        }
        let target = scratch.path().join("db");
        let report = rebuild(&source, &target);
        assert_eq!(report.is_complete(), found.is_some(), "{report:#?}");
        let db = Db::open(&target, &create()).expect("it opens");
        let all: Vec<_> = entries(&db, db.default_column_family());
        let keys: Vec<_> = all.iter().map(|(key, _)| key.as_slice()).collect();
        assert_eq!(keys, found.map(str::as_bytes).into_iter().collect::<Vec<_>>());
    }
}

/// A WAL whose last write had several operations, or that was followed by writes without it, was
/// taken for cut off: the one behind it notes the sequence number of the last operation, and
/// batches bear that of their first.
#[test]
fn a_whole_wal_is_no_loss_whatever_was_written_last() {
    for is_logged in [true, false] {
        let scratch = temporary();
        let (source, copy) = (scratch.path().join("source"), scratch.path().join("copy"));
        let options = create();
        let db = Db::open(&source, &options).expect("it opens");
        let other = db.create_column_family("other", &options.cf).expect("a family");
        let three = |name: &str| {
            let mut batch = WriteBatch::new();
            (0..3).for_each(|at| {
                batch.put(format!("{name}{at}").as_bytes(), b"value").expect("a put")
            });
            batch
        };
        db.put_cf(&other, "other", "value").expect("a put");
        db.write(three("batch")).expect("a write");
        if !is_logged {
            let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
            db.write_with(&unlogged, three("unlogged")).expect("a write");
        }
        db.flush(&other, &FlushOptions::default()).expect("a flush");
        db.put("behind", "value").expect("a put");
        db.flush_wal(false).expect("written");
        // As a process leaves it that is killed.
        copy_directory(&source, &copy);
        let files = logs(&copy);
        assert_eq!(files.len(), 2, "{files:?}");
        let report = rebuild(&copy, &scratch.path().join("db"));
        assert!(
            report.is_complete() && report.harmless.is_empty(),
            "logged {is_logged}: {report:#?}"
        );
        assert_eq!(keys(&scratch.path().join("db")), 4);

        // Without its last record it is cut off, cleanly.
        let file =
            Env::os().fs.open_random_access(&files[0], IoMode::Buffered).expect("it is there");
        let mut reader = Reader::new(file, FileNumber(0));
        while let Event::Record(_) = reader.next_event().expect("readable") {}
        let log = std::fs::File::options().write(true).open(&files[0]).expect("it is there");
        log.set_len(reader.record_offset()).expect("cut off");
        let report = rebuild(&copy, &scratch.path().join("cut"));
        assert_eq!(report.losses.len(), 1, "logged {is_logged}: {report:#?}");
        assert_eq!(keys(&scratch.path().join("cut")), 1);
    }
}

/// What a WAL notes of the one before is log data to RocksDB, whose `GetUpdatesSince` hands it out:
/// a replica that wrote it on, and was opened with the engine, lost what it had written behind.
/// `verify` and a salvage took such log data for a note also in a batch with operations, or behind
/// other log data.
#[test]
fn log_data_of_an_application_is_no_note_of_the_wal_before() {
    let noted = |number| PredecessorWal { number, size: 1 << 40, last_sequence: 1 << 40 }.to_note();
    let batches: [fn(&mut WriteBatch, Vec<u8>); 3] = [
        |batch, note| batch.put_log_data(note).expect("log data"),
        |batch, note| {
            batch.put_log_data(note).expect("log data");
            batch.put(b"with", b"value").expect("a put");
        },
        |batch, note| {
            batch.put_log_data("of the application").expect("log data");
            batch.put_log_data(note).expect("log data");
        },
    ];
    for (nth, change) in batches.into_iter().enumerate() {
        let scratch = temporary();
        let source = scratch.path().join("source");
        let mut options = create();
        options.avoid_flush_during_shutdown = true;
        let db = Db::open(&source, &options).expect("it opens");
        db.put("before", "value").expect("a put");
        let number = logs(&source)[0].file_stem().and_then(|name| name.to_str()?.parse().ok());
        let mut batch = WriteBatch::new();
        change(&mut batch, noted(number.expect("a number")));
        db.write(batch).expect("a write");
        db.put("behind", "value").expect("a put");
        db.close().expect("closed");
        drop(db);
        let db = Db::open_read_only(&source, &options).expect("it opens");
        let found = db.verify(|_| {});
        assert!(found.faults.is_empty() && found.notes.is_empty(), "{nth}: {found:?}");
        assert!(db.get("behind").expect("it can be read").is_some(), "{nth}");
        drop(db);
        let report = rebuild(&source, &scratch.path().join("db"));
        assert!(report.is_complete() && report.harmless.is_empty(), "{nth}: {report:#?}");
    }
}

/// Two WALs of a process that was killed, the second of which says how the first ends.
fn two_logs(source: &Path, copy: &Path) -> Vec<PathBuf> {
    let mut options = create();
    options.recycle_log_file_num = 0;
    options.wal_write_mode = WalWriteMode::Plain;
    let db = Db::open(source, &options).expect("it opens");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    for nth in 0..10 {
        db.put(format!("first{nth}"), "value").expect("a put");
    }
    db.put_cf(&other, "other", "value").expect("a put");
    db.flush(&other, &FlushOptions::default()).expect("a flush");
    db.put("second", "value").expect("a put");
    db.flush_wal(false).expect("written");
    copy_directory(source, copy);
    logs(copy)
}

/// What stood in the first WAL was lost once more, as the end of that by what the second one says.
#[test]
fn a_wal_that_cannot_be_read_is_one_loss() {
    let scratch = temporary();
    let copy = scratch.path().join("copy");
    let files = two_logs(&scratch.path().join("source"), &copy);
    let disk = FaultFs::new(Env::os().fs);
    let (broken, plans) = (files[0].clone(), disk.clone());
    disk.before_each(move |call, path| {
        if call == Call::Read && path == broken {
            plans.plan(Plan::Next { call, sort: sort_of(path), injection: Injection::Io });
        }
    });
    let mut options = create();
    options.env = options.env.with_fs(Arc::new(disk));
    let report =
        salvage(&copy, &scratch.path().join("db"), &options, &[], &mut |_| {}).expect("salvaged");
    let [loss] = &report.losses[..] else { panic!("{report:#?}") };
    assert_eq!(loss.error.code(), Code::IoError, "{report:#?}");
}

/// What its end had held was lost once more, by what the WAL behind it says; or, when that was
/// mended, only the record was told that is cut off, of however many.
#[test]
fn a_wal_that_is_torn_at_its_end_is_one_loss() {
    for cut in [1, 9, 150] {
        let scratch = temporary();
        let copy = scratch.path().join("copy");
        let files = two_logs(&scratch.path().join("source"), &copy);
        let whole = std::fs::read(&files[0]).expect("a log");
        std::fs::write(&files[0], &whole[..whole.len() - cut]).expect("a log");
        let report = rebuild(&copy, &scratch.path().join("db"));
        let [loss] = &report.losses[..] else { panic!("{report:#?}") };
        assert_eq!(
            (loss.error.code(), loss.error.path()),
            (Code::Corruption, Some(&*files[0])),
            "{report:#?}"
        );
        let went =
            format!("the log should continue up to byte {}; intact records end at ", whole.len());
        let message = loss.error.message();
        assert!(message.contains(&went) && message.contains("a record is cut off"), "{report:#?}");
    }
}

/// Damaged blocks are found before it, and where there were many, nothing told of it.
#[test]
fn a_wal_that_is_missing_is_told_before_blocks_that_are_damaged() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.avoid_flush_during_shutdown = true;
    let db = Db::open(&source, &options).expect("it opens");
    db.put("flushed", "value").expect("a put");
    db.flush_all().expect("a flush");
    db.put("newer", "value").expect("a put");
    db.close().expect("closed");
    logs(&source).iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
    let names = std::fs::read_dir(&source)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path());
    let mut tables = names.filter(|path| path.extension().is_some_and(|kind| kind == "sst"));
    let table = tables.next().expect("a table");
    let mut bytes = std::fs::read(&table).expect("a table");
    bytes[3] ^= 1;
    std::fs::write(&table, bytes).expect("written");
    let report = rebuild(&source, &scratch.path().join("db"));
    let [missing, block] = &report.losses[..] else { panic!("{report:#?}") };
    assert!(missing.error.message().contains(".log is missing"), "{report:#?}");
    assert_eq!((block.error.path(), report.whole_losses), (Some(&*table), 1), "{report:#?}");
}

/// RocksDB notes the last batch of the WAL before (`track_and_verify_wals`). Was that one that is
/// not taken, it was missed.
#[test]
fn a_wal_that_ends_with_a_batch_that_is_not_taken_is_not_cut_off() {
    const PREDECESSOR: u8 = 130;
    let scratch = temporary();
    let copy = scratch.path().join("copy");
    let files = two_logs(&scratch.path().join("source"), &copy);
    let number: u64 =
        files[0].file_stem().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
    let mut first = std::fs::read(&files[0]).expect("a log");
    // A prepared transaction, with nothing in it.
    let prepared = [&[9u8, 10, 3][..], b"xid"].concat();
    let record = [&100u64.to_le_bytes()[..], &0u32.to_le_bytes(), &prepared].concat();
    first.extend(physical_record(1, &record));
    std::fs::write(&files[0], &first).expect("a log");
    let mut second = std::fs::read(&files[1]).expect("a log");
    let note = 7 + usize::from(u16::from_le_bytes([second[4], second[5]]));
    let noted = [number, first.len() as u64, 100].map(u64::to_le_bytes).concat();
    second.splice(..note, physical_record(PREDECESSOR, &noted));
    std::fs::write(&files[1], second).expect("a log");
    let report = rebuild(&copy, &scratch.path().join("db"));
    let [loss] = &report.losses[..] else { panic!("{report:#?}") };
    assert!(loss.error.message().contains("transaction 'xid' was prepared"), "{report:#?}");
}

/// Whoever opened what a salvage had saved with the `wal_dir` of the source had the source's WALs
/// replayed on top of it: a value that was overwritten long before came back.
#[test]
fn what_was_saved_takes_no_wal_of_the_source_for_its_own() {
    let scratch = temporary();
    let at = |name: &str| scratch.path().join(name);
    let mut options = create();
    options.db.wal_dir = at("wals").to_str().expect("text").to_string();
    let db = Db::open(at("source"), &options).expect("it opens");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put_cf(&other, "keeps", "the WAL").expect("a put");
    for value in ["old", "new"] {
        db.put("key", value).expect("a put");
        db.flush(db.default_column_family(), &FlushOptions::default()).expect("a flush");
    }
    // As a process that dies leaves it, and with a WAL lost.
    let died = at("died");
    for name in ["source", "wals"] {
        std::fs::create_dir_all(died.join(name)).expect("a directory");
        for entry in std::fs::read_dir(at(name)).expect("a directory") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), died.join(name).join(entry.file_name())).expect("copied");
        }
    }
    let wals = logs(&died.join("wals"));
    assert_eq!(wals.len(), 3);
    std::fs::remove_file(&wals[1]).expect("removed");
    options.db.wal_dir = died.join("wals").to_str().expect("text").to_string();
    salvage(&died.join("source"), &at("saved"), &options, &[], &mut |_| {}).expect("salvaged");
    let families = [("default", options.cf.clone()), ("other", options.cf.clone())];
    // Its own WAL does not lie there.
    let error =
        Db::open_with_families(at("saved"), &options, &families).expect_err("it is refused");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let own = logs(&at("saved"));
    let moved = died.join("wals").join(own[0].file_name().expect("a name"));
    std::fs::rename(&own[0], moved).expect("moved");
    let db = Db::open_with_families(at("saved"), &options, &families).expect("it opens");
    assert_eq!(db.get("key").expect("a read").expect("a value"), "new");
    let other = db.column_family("other").expect("it is there");
    assert_eq!(db.get_cf(&other, "keeps").expect("a read").expect("a value"), "the WAL");
}

/// With its first record, which says so, all of a compressed WAL was lost.
#[test]
fn a_compressed_wal_without_its_first_record_gives_the_others() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.set("wal_compression", "kZSTD").expect("a known option");
    let db = Db::open(&source, &options).expect("it opens");
    for key in ["a", "b", "c"] {
        db.put(key, [b'v'; 200]).expect("a put");
    }
    db.close().expect("closed");
    let log = logs(&source).pop().expect("a WAL");
    let mut bytes = std::fs::read(&log).expect("a file");
    bytes[2] ^= 1;
    std::fs::write(&log, bytes).expect("written");
    let report = rebuild(&source, &scratch.path().join("db"));
    assert_eq!(keys(&scratch.path().join("db")), 3, "{report:#?}");
    assert!(!report.is_complete(), "{report:#?}");
}

/// A batch: its sequence number, the number of its operations, and these.
type Batch = (u64, u32, Vec<u8>);

/// Writes these batches in place of the last WAL of a directory.
fn replace_log(directory: &Path, batches: &[Batch]) {
    let log = logs(directory).pop().expect("a WAL");
    let number = log.file_stem().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
    let file = Env::os().fs.create_writable(&log, IoMode::Buffered).expect("a file");
    let mut writer =
        Writer::new(file, FileNumber(number), WriterOptions::default()).expect("a log");
    for (sequence, count, operations) in batches {
        let record = [&sequence.to_le_bytes()[..], &count.to_le_bytes(), operations].concat();
        writer.add_record(&record).expect("a write");
    }
}

/// Each operation of a write-prepared transaction got a number of its own, so that the last ones
/// hid what was written next.
#[test]
fn operations_of_write_prepared_transactions_share_their_numbers() {
    let put = |key: &str, value: &str| [&[1, 1], key.as_bytes(), &[1], value.as_bytes()].concat();
    let (mark, three) = (vec![0x0d], [put("a", "1"), put("b", "1"), put("c", "1")].concat());
    // What is written, and the value of `c` in the end.
    let stories: [(&[Batch], &str); 4] = [
        (
            &[(10, 3, [&three[..], &mark].concat()), (11, 1, [&put("c", "2")[..], &mark].concat())],
            "2",
        ),
        // Of two writes together the second has the next number, and so has a key that is written
        // again.
        (
            &[
                (10, 4, [&three[..], &mark, &put("c", "2"), &mark].concat()),
                (12, 1, [&put("c", "3")[..], &mark].concat()),
            ],
            "3",
        ),
        (
            &[
                (10, 4, [&three[..], &put("c", "2"), &mark].concat()),
                (12, 1, [&put("c", "3")[..], &mark].concat()),
            ],
            "3",
        ),
        // Where an empty transaction was written together with others, each operation had its own.
        (&[(10, 3, [&three[..], &mark].concat()), (13, 1, put("c", "2"))], "2"),
    ];
    for (nth, (batches, expected)) in stories.into_iter().enumerate() {
        let scratch = temporary();
        let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
        let mut options = create();
        options.avoid_flush_during_shutdown = true;
        let db = Db::open(&source, &options).expect("it opens");
        db.put("other", "value").expect("a put");
        db.close().expect("closed");
        replace_log(&source, batches);
        let report = rebuild(&source, &target);
        let db = Db::open(&target, &create()).expect("it opens");
        let value = db.get("c").expect("it can be read");
        assert_eq!(value.as_deref(), Some(expected.as_bytes()), "{nth} {report:#?}");
    }
}

/// Records of another log are what is left of a recycled file's earlier life: of two WALs that had
/// changed their names nothing came out, without a word.
#[test]
fn two_wals_that_have_changed_their_names_are_read() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let mut options = create();
    options
        .set_all("recycle_log_file_num=2;avoid_flush_during_shutdown=true")
        .expect("known options");
    let db = Db::open(&source, &options).expect("it opens");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put_cf(&other, "keeps", "the WAL").expect("a put");
    db.put("first", "value").expect("a put");
    db.flush(db.default_column_family(), &FlushOptions::default()).expect("a flush");
    db.put_cf(&other, "second", "value").expect("a put");
    db.put("second", "value").expect("a put");
    db.close().expect("closed");
    drop((other, db));
    let [older, newer] = &logs(&source)[..] else { panic!("{:?}", logs(&source)) };
    let kept = std::fs::read(older).expect("a file");
    std::fs::rename(newer, older).expect("renamed");
    std::fs::write(newer, kept).expect("written");
    let report = rebuild(&source, &target);
    let db = open_as_written(&target, true);
    let other = db.column_family("other").expect("it is there");
    assert_eq!((keys(&target), entries(&db, &other).len()), (2, 2), "{report:#?}");
}

/// Batches that are refused named families, and without a MANIFEST each of them was made, with
/// nothing in it.
#[test]
fn batches_that_do_not_count_name_no_family() {
    let put = [&[5, 7, 1][..], b"k", &[1], b"v"].concat();
    let prepared = [&[9][..], &put, &[0x0a, 1], b"x"].concat();
    for (count, operations) in [(1, prepared), (2, put)] {
        let scratch = temporary();
        let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
        let db = Db::open(&source, &create()).expect("it opens");
        db.put("flushed", "value").expect("a put");
        db.flush_all().expect("a flush");
        db.close().expect("closed");
        replace_log(&source, &[(10, count, operations)]);
        for entry in
            std::fs::read_dir(&source).expect("a directory").map(|entry| entry.expect("an entry"))
        {
            if ["MANIFEST", "CURRENT"]
                .iter()
                .any(|part| entry.file_name().to_string_lossy().contains(part))
            {
                std::fs::remove_file(entry.path()).expect("removed");
            }
        }
        let report = rebuild(&source, &target);
        let names = Db::list_column_families(&target, &create()).expect("a database");
        assert_eq!(names, ["default"], "{report:#?}");
        assert!(!report.is_complete(), "{report:#?}");
    }
}

/// A record without a number between those of a WAL that have one: the sequence number of its batch
/// passed for that of the WAL that the file was, and all its own records for what was left of an
/// earlier one.
#[test]
fn a_wal_is_no_other_by_the_sequence_number_of_a_batch() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    Db::open(&source, &create()).expect("it opens").close().expect("closed");
    let log = logs(&source).pop().expect("a WAL");
    let number =
        FileNumber(log.file_stem().and_then(|name| name.to_str()?.parse().ok()).expect("a number"));
    let framed = |recyclable: bool, value_size: usize| {
        let path = scratch.path().join("framed");
        let file = Env::os().fs.create_writable(&path, IoMode::Buffered).expect("a file");
        let options = WriterOptions { recyclable, ..WriterOptions::default() };
        let mut batch = WriteBatch::new();
        batch.put("key", vec![b'v'; value_size]).expect("a put");
        batch.set_sequence(99);
        Writer::new(file, number, options)
            .expect("a log")
            .add_record(batch.data())
            .expect("a write");
        std::fs::read(&path).expect("a log")
    };
    // Of a record of two blocks only the first is left.
    let first = framed(true, 40_000)[..32_768].to_vec();
    std::fs::write(&log, [first, framed(false, 1), framed(true, 2)].concat()).expect("a log");
    let report = rebuild(&source, &target);
    let db = Db::open_read_only(&target, &Options::default()).expect("it opens");
    assert_eq!(db.get("key").expect("a read").as_deref(), Some(&b"vv"[..]), "{report:#?}");
}

/// Of two WALs of a number the second went by what the first says of shared sequence numbers.
#[test]
fn of_two_wals_of_a_number_each_says_itself_whether_numbers_are_shared() {
    let put = |key: &str, value: &str| [&[1, 1], key.as_bytes(), &[1], value.as_bytes()].concat();
    let mark = [0x0d];
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let mut options = create();
    let wals = scratch.path().join("wals");
    options.avoid_flush_during_shutdown = true;
    options.db.wal_dir = wals.to_str().expect("text").to_string();
    let db = Db::open(&source, &options).expect("it opens");
    db.put("other", "value").expect("a put");
    db.close().expect("closed");
    let log = logs(&wals).pop().expect("a WAL");
    std::fs::copy(&log, source.join(log.file_name().expect("a name"))).expect("copied");
    // Here each operation has a number of its own, there the three share one.
    let own = [put("x", "1"), put("y", "1"), put("z", "1"), mark.to_vec()].concat();
    let shared = [put("a", "1"), put("b", "1"), put("c", "1"), mark.to_vec()].concat();
    let (own, shared) =
        ([(30, 3, own), (33, 1, put("z", "2"))], [(40, 3, shared), (41, 1, put("c", "2"))]);
    let (first, second) = if source < wals { (&source, &wals) } else { (&wals, &source) };
    replace_log(first, &own);
    replace_log(second, &shared);
    let report = salvage(&source, &target, &options, &[], &mut |_| {}).expect("salvaged");
    let db = Db::open(&target, &create()).expect("it opens");
    for key in ["c", "z"] {
        let value = db.get(key).expect("it can be read");
        assert_eq!(value.as_deref(), Some(&b"2"[..]), "{key} {report:#?}");
    }
}
