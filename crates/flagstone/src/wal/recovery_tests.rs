//! Recovery as text: logs in, keys out.
//!
//! A line is a directory of logs, then what each mode recovers. A log is a list of records, `/`
//! begins the next log:
//!
//! ```text
//! a            a batch that puts the key "a"; the sequence number is the letter's place in the alphabet
//! d@2          the same with sequence number 2
//! b!crc        with a damaged byte
//! b!number     with a damaged number in its header
//! b:cut        without its last bytes, at the file's end
//! b:first      only the First fragment, half of it
//! b:last       only the Last fragment, the other half; b:whole-last is a Last fragment that holds all
//! b:old        with the number of another log; b:last-old likewise
//! b:merge      a merge instead of a put, which is refused; b:refused names a blob that is not whole
//! b:tag        an operation with an unknown tag; b:prepare is a prepared section
//! b:three      a batch that puts "b", "2" and "3"
//! first tiny   an empty First fragment; a record of 3 bytes
//! header       5 bytes of a header
//! type50       a record of that type
//! stamped      says that keys of the default family end in timestamps; stamped7 says it of another, which nobody wants
//! zeros        up to the block's end; few-zeros are less than a header
//! numbered     the log's records have recyclable headers
//! ```

use std::path::Path;
use std::sync::Arc;

use super::format::*;
use super::test_support::*;
use super::*;
use crate::base::{Code, ColumnFamilyId, Error, FileNumber};
use crate::batch::{BatchView, Operation, WriteBatch, encode_header};
use crate::env::memory::MemoryFileSystem;
use crate::env::{Env, FileSystem, IoMode, RandomAccessFile};

/// What RocksDB 11.9 was seen to do, and we do.
const OBSERVED: &str = "
  logs                              Tolerate                      Absolute                    PointInTime     SkipAny
  a b!crc c                       | ERR checksum mismatch       | ERR checksum mismatch     | a             | a
  a b c!crc                       | ERR checksum mismatch       | ERR checksum mismatch     | a b           | a b
  a b header                      | a b                         | ERR truncated header      | a b           | a b
  a b c:cut                       | a b                         | ERR truncated record body | a b           | a b
  a b:first                       | a                           | ERR trailing data         | a             | a
  a b:first c                     | ERR partial record without  | ERR partial record        | a             | a c
  a b:last c                      | ERR missing start           | ERR missing start         | a             | a c
  a type200 b                     | a b                         | a b                       | a b           | a b
  a type50 b                      | ERR unknown record type 50  | ERR unknown record type   | a             | a b
  a first b:whole-last c          | a b c                       | a b c                     | a b c         | a b c
  numbered a b c:old              | a b                         | a b                       | a b           | a b
  numbered a b c!crc              | a b                         | ERR checksum mismatch     | a b           | a b
  numbered a b:first b:last-old   | a                           | ERR older log's record    | a             | a
  a b!crc / d@2                   | ERR checksum mismatch       | ERR checksum mismatch     | a d           | a d
  a b!crc / c                     | ERR checksum mismatch       | ERR checksum mismatch     | a             | a c
  a / c                           | a c                         | a c                       | a c           | a c
  b a                             | ERR goes back               | ERR goes back             | ERR goes back | ERR goes back
  a tiny b                        | ERR log record too small    | ERR log record too small  | a             | a b
  a b:tag c                       | ERR unknown WriteBatch tag  | ERR unknown WriteBatch    | ERR unknown   | ERR unknown
";

/// What follows from the rules beyond that, and our own: zeros end a log with numbers.
const FURTHER: &str = "
  logs                              Tolerate                      Absolute                    PointInTime     SkipAny
                                  |                             |                           |               |
  zeros zeros                     |                             |                           |               |
  / a / / b                       | a b                         | a b                       | a b           | a b
  a b:refused c                   | a                           | ERR refused               | a             | a c
  a b@99999999999999999 c         | ERR too large               | ERR too large             | a             | a c
  a b zeros c                     | a b c                       | ERR zeros                 | a b           | a b c
  a few-zeros                     | a                           | ERR truncated header      | a             | a
  numbered a b:first few-zeros    | a                           | ERR zeros inside          | a             | a
  numbered a few-zeros            | a                           | a                         | a             | a
  numbered a few-zeros / b        | a b                         | a b                       | a b           | a b
  numbered a zeros                | a                           | a                         | a             | a
  numbered a zeros c              | a                           | ERR zeros                 | a             | a c
  numbered zeros c                |                             | ERR zeros                 |               | c
  numbered a b:old c:old zeros d  | a                           | ERR older log's record    | a             | a d
  numbered a b c!number           | ERR damaged number          | ERR damaged number        | a b           | a b
  numbered a b!number c           | ERR damaged number          | ERR damaged number        | a             | a c
  numbered a!number b c           | ERR damaged number          | ERR damaged number        |               | b c
  numbered a b!number c:old       | ERR damaged number          | ERR damaged number        | a             | a
  numbered a b:first b!number c   | ERR damaged number          | ERR damaged number        | a             | a c
  numbered a zeros / b            | a b                         | a b                       | a b           | a b
  numbered a zeros / c            | a c                         | a c                       | a             | a c
  numbered a b:old / numbered b   | a b                         | a b                       | a b           | a b
  numbered a b:old / numbered c   | a c                         | a c                       | a             | a c
  numbered a b:first zeros        | a                           | ERR zeros inside          | a             | a
  a b!crc / c / b                 | ERR checksum mismatch       | ERR checksum mismatch     | a b           | ERR goes back
  a b!crc / tiny / b              | ERR checksum mismatch       | ERR checksum mismatch     | a b           | a b
  a b@1 c                         | ERR goes back               | ERR goes back             | ERR goes back | a c
  a b:three c                     | ERR goes back               | ERR goes back             | ERR goes back | ERR goes back
  a b:three d                     | ERR goes back               | ERR goes back             | ERR goes back | a b 2 3
  a b:three e                     | a b 2 3 e                   | a b 2 3 e                 | a b 2 3 e     | a b 2 3 e
  a!crc / a                       | ERR checksum mismatch       | ERR checksum mismatch     |               | a
";

/// Where RocksDB goes on without a batch, up to the log's end or behind it, though nothing is
/// damaged.
const NOT_DAMAGED: &str = "
  logs                              Tolerate                      Absolute                    PointInTime     SkipAny
  a b:merge c                     | ERR no operator             | ERR no operator           | ERR no oper   | ERR no oper
  a b:merge / c                   | ERR no operator             | ERR no operator           | ERR no oper   | ERR no oper
  a b:prepare c                   | ERR two-phase               | ERR two-phase             | ERR two-phase | ERR two-phase
  a stamped b                     | ERR user timestamps         | ERR user timestamps       | ERR user time | ERR user time
  a b!crc / stamped tiny c        | ERR checksum mismatch       | ERR checksum mismatch     | a             | ERR user time
  a stamped7 b stamped            | a b                         | a b                       | a b           | a b
";

const MODES: [RecoveryMode; 4] = [
    RecoveryMode::TolerateCorruptedTailRecords,
    RecoveryMode::AbsoluteConsistency,
    RecoveryMode::PointInTimeRecovery,
    RecoveryMode::SkipAnyCorruptedRecords,
];

/// Three puts as a write-prepared transaction has them, which ends at a mark.
fn written(key: &str, sequence: u64) -> Vec<u8> {
    let puts = [key, "2", "3"].map(|key| put(key, 0).split_off(crate::batch::HEADER_SIZE)).concat();
    [&encode_header(sequence, 3)[..], b"\x0d", &puts, b"\x0d"].concat()
}

/// One record of the line's language.
fn add(log: &mut Vec<u8>, token: &str, own: u32, numbered: bool) {
    let extra = if numbered { RECYCLABLE } else { 0 };
    let mut push =
        |kind: u8, number: u32, payload: &[u8]| log.extend(physical(kind + extra, number, payload));
    let (name, how) = token.split_at(token.find(['!', ':']).unwrap_or(token.len()));
    let (key, sequence) = match name.split_once('@') {
        Some((key, sequence)) => (key, sequence.parse().unwrap()),
        None => (name, u64::from(name.as_bytes()[0] - b'a' + 1)),
    };
    let batch = put(key, sequence);
    let (front, back) = batch.split_at(batch.len() / 2);
    match (name, how) {
        ("zeros", _) => pad(log),
        ("stamped", _) => log.extend(physical(TIMESTAMP_SIZES, own, &[0, 0, 0, 0, 8, 0])),
        ("stamped7", _) => log.extend(physical(TIMESTAMP_SIZES, own, &[7, 0, 0, 0, 8, 0])),
        ("header", _) => log.extend([1, 2, 3, 4, 0]),
        ("few-zeros", _) => log.extend([0; 6]),
        ("tiny", _) => push(FULL, own, b"abc"),
        ("first", _) => push(FIRST, own, b""),
        ("type50", _) => log.extend(physical(50, own, b"x")),
        ("type200", _) => log.extend(physical(200, own, b"x")),
        (_, "") => push(FULL, own, &batch),
        (_, ":first") => push(FIRST, own, front),
        (_, ":last") => push(LAST, own, back),
        (_, ":whole-last") => push(LAST, own, &batch),
        (_, ":last-old") => push(LAST, own + 100, back),
        (_, ":old") => push(FULL, own + 100, &batch),
        (_, ":tag") => push(FULL, own, &[&encode_header(sequence, 1)[..], b"\x7f"].concat()),
        (_, ":prepare") => {
            push(FULL, own, &[&encode_header(sequence, 0)[..], b"\x09\x0a\x01x"].concat())
        }
        (_, ":refused") => {
            let mut batch = WriteBatch::new();
            batch.put_blob_index(ColumnFamilyId::DEFAULT, key.as_bytes(), b"refused").unwrap();
            batch.set_sequence(sequence);
            push(FULL, own, batch.data());
        }
        (_, ":three") => {
            let mut three = WriteBatch::new();
            [key, "2", "3"].iter().for_each(|key| three.put(key.as_bytes(), b"").unwrap());
            three.set_sequence(sequence);
            push(FULL, own, three.data());
        }
        (_, ":written") => push(FULL, own, &written(key, sequence)),
        (_, ":merge") => {
            let mut merge = WriteBatch::new();
            merge.merge(key.as_bytes(), b"1").unwrap();
            merge.set_sequence(sequence);
            push(FULL, own, merge.data());
        }
        (_, "!crc") => {
            push(FULL, own, &batch);
            *log.last_mut().unwrap() ^= 1;
        }
        (_, "!number") => {
            let start = log.len();
            log.extend(physical(FULL + RECYCLABLE, own, &batch));
            log[start + LEGACY_HEADER_SIZE] ^= 1;
        }
        (_, ":cut") => {
            push(FULL, own, &batch);
            log.truncate(log.len() - 3);
        }
        _ => panic!("no such record: {token}"),
    }
}

fn directory(line: &str) -> Vec<(FileNumber, Arc<dyn RandomAccessFile>)> {
    let mut wals = Vec::new();
    for (number, log) in (5u32..).zip(line.split('/')) {
        let (mut bytes, mut numbered) = (Vec::new(), false);
        for token in log.split_whitespace() {
            match token {
                "numbered" => numbered = true,
                _ => add(&mut bytes, token, number, numbered),
            }
        }
        let file: Arc<dyn RandomAccessFile> = file_of(&bytes);
        wals.push((FileNumber(number.into()), file));
    }
    wals
}

/// Stands in for the memtables of a database without merge operator and two-phase commit.
fn apply(record: &ReplayRecord<'_>, keys: &mut Vec<String>) -> crate::base::Result<Applied> {
    for operation in record.batch {
        match operation? {
            Operation::Put { key, .. } => keys.push(String::from_utf8_lossy(key).into_owned()),
            Operation::Merge { .. } => return Err(Error::invalid_argument("there is no operator")),
            Operation::BeginPrepare(_) => return Err(Error::not_supported("two-phase commit")),
            _ => {}
        }
    }
    Ok(Applied::Until(record.batch.next_sequence()))
}

/// Stands in for blob files that lack what batches name.
struct Refusing;

impl Checks for Refusing {
    fn wants(&self, family: ColumnFamilyId, _: FileNumber) -> bool {
        family == ColumnFamilyId::DEFAULT
    }

    fn check(
        &self,
        batches: &[(FileNumber, BatchView<'_>)],
    ) -> Vec<crate::base::Result<(), Fault>> {
        let check = |batch: BatchView<'_>| {
            for operation in batch.iter() {
                if let Ok(Operation::BlobIndex { index: b"refused", .. }) = operation {
                    return Err(Fault::Lost(Error::corruption("refused by its contents")));
                }
            }
            Ok(())
        };
        batches.iter().map(|(_, batch)| check(*batch)).collect()
    }
}

fn recover_reading(
    line: &str,
    mode: RecoveryMode,
    reading: Reading,
) -> (crate::base::Result<RecoveryOutcome>, Vec<String>) {
    let mut keys = Vec::new();
    let mut apply = |record: &ReplayRecord<'_>| apply(record, &mut keys);
    (replay(&directory(line), FileNumber(0), mode, &reading, &mut apply), keys)
}

/// Whatever is read at a time, and whoever reads it.
fn ways_to_read() -> Vec<Reading> {
    let sizes = [1, 150, 1 << 20];
    let spawners = [None, Some(Env::os().spawner)];
    let both = sizes.into_iter().flat_map(|size| spawners.clone().map(|spawner| (size, spawner)));
    let reading = |(piece_size, spawner)| Reading {
        piece_size,
        readahead_size: piece_size,
        checks: Some(Arc::new(Refusing)),
        spawner,
        ..Reading::default()
    };
    both.map(reading).collect()
}

/// However it is read, the outcome is the same.
fn recover(line: &str, mode: RecoveryMode) -> (crate::base::Result<RecoveryOutcome>, Vec<String>) {
    let mut outcomes =
        ways_to_read().into_iter().map(|reading| recover_reading(line, mode, reading));
    let first = outcomes.next().unwrap();
    for other in outcomes {
        assert_eq!(format!("{other:?}"), format!("{first:?}"), "{line}, {mode:?}");
    }
    first
}

fn check(table: &str) {
    for line in table.lines().filter(|line| line.contains('|')) {
        let mut columns = line.split('|').map(str::trim);
        let logs = columns.next().unwrap();
        for (mode, expected) in MODES.into_iter().zip(columns) {
            let (outcome, keys) = recover(logs, mode);
            match (outcome, expected.strip_prefix("ERR ")) {
                (Ok(_), None) => assert_eq!(keys.join(" "), expected, "{logs}, {mode:?}"),
                (Err(error), Some(why)) => {
                    assert!(error.message().contains(why), "{logs}, {mode:?}: {error}");
                    assert!(error.path().is_some() && error.offset().is_some(), "{error:?}");
                }
                (outcome, _) => panic!("{logs}, {mode:?}: {outcome:?}, expected {expected}"),
            }
        }
    }
}

#[test]
fn recovery_does_what_rocksdb_was_seen_to_do() {
    check(OBSERVED);
}

#[test]
fn recovery_follows_the_rules_elsewhere() {
    check(FURTHER);
}

#[test]
fn what_the_caller_lacks_is_no_damage() {
    check(NOT_DAMAGED);
}

#[test]
fn the_outcome_says_what_was_lost() {
    let mode = RecoveryMode::PointInTimeRecovery;
    let outcome = recover("a b c!crc d", mode).0.unwrap();
    assert_eq!((outcome.next_sequence, outcome.records, outcome.bytes), (Some(3), 2, 32));
    let stop = outcome.stopped.unwrap();
    assert_eq!((stop.wal, stop.is_expected), (FileNumber(5), false));
    assert_eq!(stop.error.offset(), Some(46));
    assert_eq!((outcome.wals[0].records, outcome.wals[0].good_until), (2, 46));

    // Resumed: no longer stopped, but the stop is told.
    let outcome = recover("a b!crc / b c", mode).0.unwrap();
    assert_eq!((outcome.next_sequence, outcome.stops.len()), (Some(4), 1));
    assert!(outcome.stopped.is_none());
    assert_eq!(outcome.wals.iter().map(|wal| wal.records).collect::<Vec<_>>(), [1, 2]);

    // Of several stops in a row the first is where history ends; a family that is ahead of it lacks
    // nothing behind it.
    let outcome = recover("a b!crc / numbered d e:old", mode).0.unwrap();
    let stop = outcome.stopped.unwrap();
    assert_eq!((stop.wal, stop.is_expected, outcome.stops.len()), (FileNumber(5), false, 1));
    let outcome = recover("a b!crc / numbered c!crc", mode).0.unwrap();
    assert_eq!((outcome.stopped.unwrap().wal, outcome.stops.len()), (FileNumber(5), 2));

    // The end of a recycled log is a stop, but an expected one.
    let outcome = recover("numbered a b:old", mode).0.unwrap();
    assert!(outcome.stopped.unwrap().is_expected);
    assert!(recover("numbered a zeros", mode).0.unwrap().stopped.unwrap().is_expected);
    // What had gone on behind it, there or in the next log, had not ended there.
    let holes = [
        "a zeros c",
        "numbered a zeros c",
        "numbered a b:old c",
        "numbered a zeros / d",
        "numbered a b:old / d",
    ];
    for logs in holes {
        assert!(!recover(logs, mode).0.unwrap().stopped.unwrap().is_expected, "{logs}");
    }
    assert_eq!(recover("", mode).0.unwrap().next_sequence, None);
    assert!(recover("a b", mode).0.unwrap().stops.is_empty());
}

#[test]
fn a_range_deletion_of_nothing_leaves_two_ways_to_go_on() {
    // Batch 2 takes no sequence number in RocksDB's replay, and one in a running database.
    for (next, resumes) in [(1, false), (2, true), (3, true), (4, false)] {
        let wals = directory(&format!("a b c!crc / z@{next}"));
        let mut keys = Vec::new();
        let mut apply_batch = |record: &ReplayRecord<'_>| {
            let applied = apply(record, &mut keys)?;
            let is_second = record.batch.sequence() == 2 && record.wal == FileNumber(5);
            Ok(if is_second { Applied::Until(2) } else { applied })
        };
        replay(
            &wals,
            FileNumber(0),
            RecoveryMode::PointInTimeRecovery,
            &Reading::default(),
            &mut apply_batch,
        )
        .unwrap();
        assert_eq!(keys.contains(&"z".to_string()), resumes, "{next}");
    }
}

#[test]
fn a_failing_disk_fails_in_every_mode() {
    for mode in MODES {
        let mut failing = |_: &ReplayRecord<'_>| Err(Error::new(Code::IoError, "injected"));
        assert_eq!(
            replay(&directory("a b"), FileNumber(0), mode, &Reading::default(), &mut failing)
                .unwrap_err()
                .code(),
            Code::IoError
        );
    }
}

/// A memtable that could not be written on the way to its table was taken for a batch that is not
/// supported: in one mode it was skipped, and with it all that it held.
#[test]
fn what_is_no_log_s_fault_fails_in_every_mode() {
    for mode in MODES {
        for code in [Code::NotSupported, Code::InvalidArgument, Code::IoError] {
            let mut failing =
                |_: &ReplayRecord<'_>| Ok(Applied::Failed(Error::new(code, "elsewhere")));
            let error =
                replay(&directory("a b"), FileNumber(0), mode, &Reading::default(), &mut failing)
                    .unwrap_err();
            assert_eq!(error.code(), code, "{mode:?}");
        }
    }
}

/// A batch without operations, by its count, was searched to its end for a note of the log before,
/// and where that told of a loss, it was left out: what made it unreadable was never met.
#[test]
fn a_batch_that_cannot_be_read_tells_nothing_of_the_log_before() {
    let noted = PredecessorWal { number: 1, size: 1000, last_sequence: 2 };
    let mut batch = WriteBatch::new();
    batch.put(b"k", b"v").unwrap();
    batch.put_log_data(noted.to_note()).unwrap();
    let record = [&encode_header(3, 0)[..], batch.body()].concat();
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/")).unwrap();
    let file = fs.create_writable(Path::new("/2"), IoMode::Buffered).unwrap();
    Writer::new(file.clone(), FileNumber(2), WriterOptions::default())
        .unwrap()
        .add_record(&record)
        .unwrap();
    for mode in MODES {
        let apply = &mut |_: &ReplayRecord<'_>| panic!("it was applied");
        let file: Arc<dyn RandomAccessFile> = file.clone();
        let logs = [(FileNumber(2), file)];
        let error = replay(&logs, FileNumber(1), mode, &Reading::default(), apply).unwrap_err();
        assert!(error.message().contains("wrong count: 1 operation or more"), "{mode:?}: {error}");
    }
}

/// The keys that come out of two logs with three records, and the log at which replay stopped.
/// `kept` is how many records of the first log are left, or `None` if it is gone; logs from
/// `needed_from` on are needed.
fn recovered(
    kept: Option<usize>,
    needed_from: u64,
    mode: RecoveryMode,
) -> crate::base::Result<(String, Option<u64>)> {
    let record = |sequence, key: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(key, b"").unwrap();
        batch.set_sequence(sequence);
        batch
    };
    let note = |size| {
        let noted = PredecessorWal { number: 1, size, last_sequence: 2 };
        let mut batch = WriteBatch::new();
        batch.put_log_data(noted.to_note()).unwrap();
        batch.set_sequence(3);
        batch
    };
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/")).unwrap();
    let log = |number: u64, batches: &[WriteBatch]| {
        let file = fs.create_writable(Path::new(&format!("/{number}")), IoMode::Buffered).unwrap();
        let mut writer =
            Writer::new(file.clone(), FileNumber(number), WriterOptions::default()).unwrap();
        let ends = batches.iter().map(|batch| {
            writer.add_record(batch.data()).unwrap();
            writer.offset()
        });
        (ends.collect::<Vec<_>>(), file)
    };
    let (ends, first) = log(1, &[record(1, b"a"), record(2, b"b")]);
    let (_, second) = log(2, &[note(ends[1]), record(3, b"c")]);
    first.truncate(kept.filter(|kept| *kept > 0).map_or(0, |kept| ends[kept - 1])).unwrap();
    let mut keys = Vec::new();
    let logs: [(_, Arc<dyn RandomAccessFile>); 2] =
        [(FileNumber(1), first), (FileNumber(2), second)];
    let logs = &logs[usize::from(kept.is_none())..];
    let outcome = replay(logs, FileNumber(needed_from), mode, &Reading::default(), &mut |record| {
        for operation in record.batch.iter() {
            if let Ok(Operation::Put { key, .. }) = operation {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
        }
        Ok(Applied::Until(record.batch.next_sequence()))
    });
    outcome.map(|outcome| (keys.join(" "), outcome.stopped.map(|stop| stop.wal.0)))
}

/// A power loss took the end of a log and left the next one, whose batches were then applied over
/// the gap.
#[test]
fn a_log_that_lost_its_end_ends_history_although_the_next_is_whole() {
    let mode = RecoveryMode::PointInTimeRecovery;
    let found = |keys: &str, stopped_in| (keys.to_string(), stopped_in);
    assert_eq!(recovered(Some(2), 1, mode).unwrap(), found("a b c", None));
    assert_eq!(recovered(Some(1), 1, mode).unwrap(), found("a", Some(1)));
    assert_eq!(recovered(Some(0), 1, mode).unwrap(), found("", Some(1)));
    assert!(recovered(Some(1), 1, RecoveryMode::AbsoluteConsistency).is_err());
    assert_eq!(
        recovered(Some(1), 1, RecoveryMode::SkipAnyCorruptedRecords).unwrap(),
        found("a c", None)
    );
    // A log that was missing as a whole was not missed; then it ended history, although a power
    // loss leaves the file.
    for mode in
        [mode, RecoveryMode::TolerateCorruptedTailRecords, RecoveryMode::AbsoluteConsistency]
    {
        let error = recovered(None, 1, mode).unwrap_err();
        assert!(error.is_corruption() && error.path() == Some(Path::new("/000001.log")), "{error}");
    }
    assert_eq!(
        recovered(None, 1, RecoveryMode::SkipAnyCorruptedRecords).unwrap(),
        found("c", None)
    );
    assert_eq!(recovered(None, 2, mode).unwrap(), found("c", None));
}

/// Checks that panic.
struct Broken;

impl Checks for Broken {
    fn wants(&self, _: ColumnFamilyId, _: FileNumber) -> bool {
        true
    }

    fn check(&self, _: &[(FileNumber, BatchView<'_>)]) -> Vec<crate::base::Result<(), Fault>> {
        panic!("as told")
    }
}

#[test]
fn whoever_waits_for_a_thread_that_panicked_hears_of_it() {
    let spawner = Some(Env::os().spawner);
    let reading = Reading { checks: Some(Arc::new(Broken)), spawner, ..Reading::default() };
    let (outcome, keys) = recover_reading("a b:refused c", RecoveryMode::default(), reading);
    assert_eq!(outcome.unwrap_err().code(), Code::Aborted);
    assert!(keys.is_empty());
}

/// Each family was compared with all before it, and each record with all of them: a log of some
/// megabytes took hours.
#[test]
fn a_log_that_tells_of_very_many_families_with_timestamps_is_read_in_one_go() {
    let mut log = Vec::new();
    for record in 0..70u32 {
        let families = (0..5_000).map(|n| 1 + record * 5_000 + n);
        let sizes: Vec<u8> =
            families.flat_map(|id| [&id.to_le_bytes()[..], &[8, 0]].concat()).collect();
        log.extend(physical(TIMESTAMP_SIZES, 5, &sizes));
        pad(&mut log);
    }
    for sequence in 1..=40_000 {
        if log.len() % BLOCK_SIZE > BLOCK_SIZE - 40 {
            pad(&mut log);
        }
        log.extend(physical(FULL, 5, &put("a", sequence)));
    }
    let files: [(_, Arc<dyn RandomAccessFile>); 1] = [(FileNumber(5), file_of(&log))];
    let mut count = 0;
    let mut apply = |record: &ReplayRecord<'_>| {
        count += 1;
        Ok(Applied::Until(record.batch.next_sequence()))
    };
    let reading = Reading { checks: Some(Arc::new(Refusing)), ..Reading::default() };
    let mode = RecoveryMode::TolerateCorruptedTailRecords;
    let outcome = replay(&files, FileNumber(0), mode, &reading, &mut apply).unwrap();
    assert_eq!((count, outcome.stops.len()), (40_000, 0));
}
