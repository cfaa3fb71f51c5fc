//! What opening makes of logs: where history ends, and which logs it must not touch.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{add_to_manifest, create, timestamp_sizes};
use flagstone::base::{Code, ColumnFamilyId, FileNumber, MAX_SEQUENCE_NUMBER};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::{Env, IoMode, read_file};
use flagstone::manifest::VersionEdit;
use flagstone::options::{FlushOptions, Options, WriteOptions};
use flagstone::wal::{Writer, WriterOptions};
use testkit::{Call, CrashFs, FaultFs};

/// The marks of two-phase commit, by their tags, and a put of the default family.
const BEGIN: &[u8] = b"\x09";
const BEGIN_WRITTEN: &[u8] = b"\x12";
const END: &[u8] = b"\x0a\x02x1";
const COMMIT: &[u8] = b"\x0b\x02x1";
const ROLLBACK: &[u8] = b"\x0c\x02x1";
const PUT: &[u8] = b"\x01\x01a\x04in-x";

const MODES: [&str; 4] = [
    "kTolerateCorruptedTailRecords",
    "kAbsoluteConsistency",
    "kPointInTimeRecovery",
    "kSkipAnyCorruptedRecords",
];

/// The logs in a database's directory, byte by byte.
fn logs(env: &Env) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new("/db");
    let mut names = env.fs.list(directory).expect("a listing");
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
        .into_iter()
        .map(|name| {
            (name.clone(), read_file(&*env.fs, &directory.join(name), u64::MAX).expect("a log"))
        })
        .collect()
}

/// Two records of one sequence number were both taken: of two values one won, and two operands of
/// one key panicked where the memtable was written to a table, out of `Db::open` and at each
/// opening anew.
#[test]
fn a_log_that_gives_a_sequence_number_twice_is_refused() {
    let put = |value: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(b"a", value).unwrap();
        batch
    };
    let merge = |operand: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.merge(b"a", operand).unwrap();
        batch
    };
    for mode in MODES {
        for batches in [[merge(b"x"), merge(b"y")], [put(b"x"), put(b"y")]] {
            let mut options = create();
            options.env = Env::memory();
            options.set_all("merge_operator=stringappendtest").unwrap();
            options.set("wal_recovery_mode", mode).unwrap();
            Db::open("/db", &options).unwrap().close().unwrap();
            let file = options
                .env
                .fs
                .create_writable(Path::new("/db/000077.log"), IoMode::Buffered)
                .unwrap();
            let mut writer = Writer::new(file, FileNumber(77), WriterOptions::default()).unwrap();
            for mut batch in batches {
                batch.set_sequence(1);
                writer.add_record(batch.data()).unwrap();
            }
            for open in [Db::open_read_only, Db::open] {
                if mode == "kSkipAnyCorruptedRecords" {
                    let db = open("/db", &options).unwrap();
                    assert_eq!(db.get("a").unwrap().unwrap(), "x", "the second is left out");
                    continue;
                }
                let refused = open("/db", &options).map(drop).unwrap_err();
                assert!(refused.is_corruption(), "{mode}: {refused}");
                for said in ["goes back", "000077.log", "offset"] {
                    assert!(refused.to_string().contains(said), "{mode}: {refused}");
                }
            }
        }
    }
}

/// That the keys in a log end in user timestamps was read, and nobody asked: they were taken for
/// keys that are longer.
#[test]
fn keys_in_a_log_lose_the_timestamps_that_their_family_has_no_more() {
    for mode in MODES {
        for (family, key, found) in
            [(0, &b"key\x09\0\0\0\0\0\0\0"[..], &b"key"[..]), (7, b"key\x09", b"key\x09")]
        {
            let mut options = create();
            options.env = Env::memory();
            options.set("wal_recovery_mode", mode).unwrap();
            Db::open("/db", &options).unwrap().close().unwrap();
            log_with_timestamps(&options.env, family, key);
            for open in [Db::open_read_only, Db::open] {
                let db = open("/db", &options).unwrap();
                assert_eq!(db.get(found).unwrap().unwrap(), "value", "{mode}, family {family}");
            }
        }
    }
}

/// A key that is shorter than the timestamp that it is to end in was never written.
#[test]
fn a_log_with_keys_that_are_too_short_for_their_timestamps_is_damaged() {
    for mode in MODES {
        let mut options = create();
        options.env = Env::memory();
        options.set("wal_recovery_mode", mode).unwrap();
        Db::open("/db", &options).unwrap().close().unwrap();
        log_with_timestamps(&options.env, 0, b"short");
        for open in [Db::open_read_only, Db::open] {
            let error = open("/db", &options).unwrap_err();
            assert_eq!(error.code(), Code::Corruption, "{mode}: {error}");
            assert!(error.to_string().contains("000077.log"), "{mode}: {error}");
        }
    }
}

/// A WAL that says that the keys of a family end in timestamps of eight bytes, and puts a key of
/// the default one.
fn log_with_timestamps(env: &Env, family: u32, key: &[u8]) {
    let create = |path| env.fs.create_writable(Path::new(path), IoMode::Buffered).expect("written");
    let scratch = create("/db/scratch");
    let mut writer =
        Writer::new(scratch, FileNumber(77), WriterOptions::default()).expect("written");
    let mut batch = WriteBatch::new();
    batch.put(key, b"value").expect("written");
    batch.set_sequence(1);
    writer.add_record(batch.data()).expect("written");
    let record = read_file(&*env.fs, Path::new("/db/scratch"), 1 << 20).expect("written");
    let log = [timestamp_sizes(family, 8), record].concat();
    create("/db/000077.log").write_at(0, &log).expect("written");
}

/// Who forgot the merge operator opened the database, and lost the log from the first merge on; of
/// that merge's batch, what stood before it was there after the next write.
#[test]
fn a_log_that_wants_a_merge_operator_stays_as_it_is_without_one() {
    for mode in MODES {
        let env = Env::memory();
        let options = |operator: &[&str]| {
            let mut options = Options { env: env.clone(), ..create() };
            options.set("wal_recovery_mode", mode).unwrap();
            operator.iter().for_each(|operator| options.set("merge_operator", operator).unwrap());
            options
        };
        let db = Db::open("/db", &options(&["stringappend"])).unwrap();
        db.put("before", "1").unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"half", b"2").unwrap();
        batch.merge(b"other", b"3").unwrap();
        db.write_with(&WriteOptions::default(), batch).unwrap();
        db.put("after", "4").unwrap();
        db.close().unwrap();
        drop(db);

        let written = logs(&env);
        for open in [Db::open, Db::open_read_only] {
            let refused = open("/db", &options(&[])).map(|_| ()).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{mode}: {refused}");
            assert!(refused.message().contains("has no merge operator"), "{mode}: {refused}");
            assert!(logs(&env) == written, "{mode}");
        }

        let db = Db::open("/db", &options(&["stringappend"])).unwrap();
        for (key, value) in [("before", "1"), ("half", "2"), ("other", "3"), ("after", "4")] {
            assert_eq!(db.get(key).unwrap().unwrap(), value, "{mode}");
        }
    }
}

/// Writers found families in an array by number, and one with the largest number took 137 GB.
#[test]
fn a_family_with_a_large_number_is_like_any_other() {
    let options = Options { env: Env::memory(), ..create() };
    drop(Db::open("/db", &options).unwrap());
    let last = ColumnFamilyId(u32::MAX - 1);
    let far = VersionEdit {
        family_added: Some("far".to_string()),
        comparator: Some("leveldb.BytewiseComparator".to_string()),
        log_number: Some(FileNumber(0)),
        ..VersionEdit::new(last)
    };
    add_to_manifest(&options.env, &far);

    let db = Db::open("/db", &options).unwrap();
    let further = db.create_column_family("further", &options.cf).unwrap();
    for family in [db.column_family("far").unwrap(), further] {
        db.put_cf(&family, "key", "value").unwrap();
        db.flush(&family, &FlushOptions::default()).unwrap();
        db.put_cf(&family, "other", "value").unwrap();
        for key in ["key", "other"] {
            assert_eq!(db.get_cf(&family, key).unwrap().unwrap(), "value");
        }
        db.drop_column_family(&family).unwrap();
    }
    let none_left = db.create_column_family("too far", &options.cf).map(|_| ()).unwrap_err();
    assert_eq!(none_left.code(), Code::NotSupported);
}

/// Who wrote to a database whose sequence numbers are used up panicked; of a batch of several
/// operations the later ones could become the oldest of all.
#[test]
fn where_sequence_numbers_are_used_up_nothing_is_written_any_more() {
    let options = Options { env: Env::memory(), ..create() };
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    drop(Db::open("/db", &options).unwrap());
    let last_sequence = Some(MAX_SEQUENCE_NUMBER - 3);
    add_to_manifest(&options.env, &VersionEdit { last_sequence, ..VersionEdit::default() });

    let db = Db::open("/db", &options).unwrap();
    let two = || {
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"newer").unwrap();
        batch.put(b"other", b"value").unwrap();
        db.write_with(&WriteOptions::default(), batch)
    };
    two().unwrap();
    assert_eq!(two().unwrap_err().code(), Code::NotSupported);
    db.put("last", "value").unwrap();
    assert_eq!(db.put("key", "none").unwrap_err().code(), Code::NotSupported);
    db.close().unwrap();
    drop(db);

    // A torn record behind the last number that there is.
    let (name, mut bytes) = logs(&options.env).pop().unwrap();
    assert!(!bytes.is_empty());
    bytes.extend([1, 2, 3, 4, 5]);
    let file =
        options.env.fs.create_writable(&Path::new("/db").join(name), IoMode::Buffered).unwrap();
    file.write_at(0, &bytes).unwrap();
    let db = Db::open("/db", &options).unwrap();
    for (key, value) in [("key", "newer"), ("other", "value"), ("last", "value")] {
        assert_eq!(db.get(key).unwrap().unwrap(), value);
    }
    assert_eq!(db.put("key", "none").unwrap_err().code(), Code::NotSupported);
}

/// A log may say of its first batch, if that is empty, that it starts at 0: before the first number
/// there is.
#[test]
fn a_log_whose_first_batch_is_empty_and_starts_at_nothing_is_read() {
    let options = Options { env: Env::memory(), ..create() };
    drop(Db::open("/db", &options).unwrap());
    let file =
        options.env.fs.create_writable(Path::new("/db/000900.log"), IoMode::Buffered).unwrap();
    let mut writer = Writer::new(file, FileNumber(900), WriterOptions::default()).unwrap();
    writer.add_record(WriteBatch::new().data()).unwrap();
    for open in [Db::open_read_only, Db::open] {
        let db = open("/db", &options).unwrap();
        assert_eq!(db.latest_sequence_number(), 0);
    }
}

#[test]
fn logs_are_read_as_much_at_a_time_as_is_wanted() {
    let reads = |size: &str| {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let env = Env::memory().with_fs(Arc::new(faults.clone()));
        let mut options = Options { env, ..create() };
        options
            .set_all(&format!(
                "wal_write_mode=plain;enable_blob_files=false;log_readahead_size={size}"
            ))
            .expect("options");
        let db = Db::open("/db", &options).expect("a database");
        (0..60u8).for_each(|key| db.put([key], vec![key; 10_000]).expect("a write"));
        drop(db);
        faults.record();
        let db = Db::open("/db", &options).expect("a database");
        let calls = faults.recorded();
        assert_eq!(db.get([59]).expect("a read").as_deref(), Some(&[59; 10_000][..]));
        let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "log");
        calls.iter().filter(|(call, path)| *call == Call::Read && is_log(path)).count()
    };
    let [blocks, usual, all] = ["1", "0", "4194304"].map(reads);
    assert!(blocks > 600_000 / 32_768 && blocks > usual && usual > all, "{blocks}, {usual}, {all}");
}

/// A WAL by its number: the batches, of the operations that each consists of.
type Log = (u64, &'static [&'static [&'static [u8]]]);

/// A database of which all is flushed, but for what WALs older than the newest hold of
/// transactions.
fn flushed_with(logs: &[Log]) -> Options {
    let options = Options { env: Env::memory(), ..create() };
    let db = Db::open("/db", &options).expect("a database");
    db.put("before", "1").expect("a write");
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");
    for (number, batches) in logs {
        let path = format!("/db/{number:06}.log");
        let file =
            options.env.fs.create_writable(Path::new(&path), IoMode::Buffered).expect("a file");
        let mut writer =
            Writer::new(file, FileNumber(*number), WriterOptions::default()).expect("a log");
        for (operations, sequence) in batches.iter().zip(50u64..) {
            let count = operations.iter().filter(|operation| **operation == PUT).count() as u32;
            let batch =
                [&sequence.to_le_bytes()[..], &count.to_le_bytes(), &operations.concat()].concat();
            writer.add_record(&batch).expect("a write");
        }
    }
    options.env.fs.create_writable(Path::new("/db/000090.log"), IoMode::Buffered).expect("a file");
    let edit = VersionEdit {
        log_number: Some(FileNumber(90)),
        next_file_number: Some(FileNumber(91)),
        last_sequence: Some(60),
        ..VersionEdit::default()
    };
    add_to_manifest(&options.env, &edit);
    options
}

/// Families that are flushed need nothing of the WAL that a transaction was prepared in: it was
/// removed, and RocksDB could not commit the transaction any more. What a write-prepared one had
/// written, tables hold: it passed for committed.
#[test]
fn a_transaction_that_is_prepared_and_not_decided_keeps_its_database_from_being_opened() {
    let undecided: [&[Log]; 3] = [
        &[(80, &[&[BEGIN, PUT, END]])],
        &[(80, &[&[BEGIN_WRITTEN, PUT, END], &[PUT]])],
        &[(80, &[&[PUT], &[BEGIN, PUT, END], &[COMMIT]]), (81, &[&[BEGIN, PUT, END], &[PUT]])],
    ];
    for logs in undecided {
        let options = flushed_with(logs);
        let error = Db::open("/db", &options).unwrap_err();
        assert_eq!(error.code(), Code::NotSupported, "{error}");
        assert!(
            error.message().contains("transaction 'x1'") && error.offset().is_some(),
            "{error}"
        );
        let path = format!("/db/{:06}.log", logs[logs.len() - 1].0);
        assert!(
            options.env.fs.open_random_access(Path::new(&path), IoMode::Buffered).is_ok(),
            "RocksDB needs it"
        );
    }
}

/// What is decided is in the tables, as far as it is to be there.
#[test]
fn transactions_that_are_decided_keep_nobody_from_opening_their_database() {
    let decided: [&[Log]; 3] = [
        &[(80, &[&[BEGIN, PUT, END], &[COMMIT]])],
        &[(80, &[&[BEGIN_WRITTEN, PUT, END]]), (81, &[&[PUT], &[ROLLBACK]])],
        &[(2, &[&[BEGIN, PUT, END]])],
    ];
    for logs in decided {
        let db = Db::open("/db", &flushed_with(logs)).unwrap();
        assert_eq!(db.get("before").unwrap().unwrap(), "1");
    }
}

/// A batch was searched for transactions to its end, however many more operations it had than it
/// counts: of a compressed one, billions.
#[test]
fn what_a_batch_does_not_count_is_not_searched_for_transactions() {
    let uncounted: &[Log] = &[(80, &[&[b"\x01\x01b\x00", END]])];
    Db::open("/db", &flushed_with(uncounted)).expect("a database");
}

/// The offset stood in the words alone, and not where a program looks for it.
#[test]
fn who_is_ahead_of_a_damaged_log_is_told_where_the_damage_is() {
    let mut options = create();
    options.env = Env::memory();
    let db = Db::open("/db", &options).unwrap();
    let other = db.create_column_family("other", &options.cf).unwrap();
    for key in 0..30 {
        db.put(format!("key{key}"), [b'v'; 100]).unwrap();
    }
    db.put_cf(&other, "key", "value").unwrap();
    db.flush(&other, &FlushOptions::default()).unwrap();
    db.close().unwrap();
    let (name, bytes) = logs(&options.env).remove(0);
    let path = Path::new("/db").join(name);
    let file = options.env.fs.reopen_writable(&path).unwrap();
    file.write_at(1000, &[bytes[1000] ^ 1]).unwrap();
    let error = Db::open("/db", &options).map(drop).unwrap_err();
    assert!(error.message().contains("is ahead of WAL"), "{error}");
    assert_eq!(error.path(), Some(path.as_path()));
    assert!(error.offset().is_some_and(|offset| (800..1000).contains(&offset)), "{error:?}");
}
