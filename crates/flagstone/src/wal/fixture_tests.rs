//! Logs that RocksDB wrote, whole and damaged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::test_support::{contents_of, file_of};
use super::*;
use crate::base::FileNumber;
use crate::batch::{Operation, WriteBatch};
use crate::env::os::OsFileSystem;
use crate::env::{FileSystem, IoMode, RandomAccessFile};

const PLAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rocksdb-7.8/wal-plain");
const RECYCLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rocksdb-7.8/wal-recycle");

fn open(directory: &str, number: u64) -> (FileNumber, Arc<dyn RandomAccessFile>) {
    let path = crate::base::file_name::wal(Path::new(directory), FileNumber(number));
    (FileNumber(number), OsFileSystem.open_random_access(&path, IoMode::Buffered).unwrap())
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn apply(record: &ReplayRecord<'_>, model: &mut Model) -> crate::base::Result<Applied> {
    for operation in record.batch {
        match operation? {
            Operation::Put { key, value, .. } => drop(model.insert(key.to_vec(), value.to_vec())),
            Operation::Delete { key, .. } => drop(model.remove(key)),
            _ => {}
        }
    }
    Ok(Applied::Until(record.batch.next_sequence()))
}

fn expected(directory: &str) -> Model {
    let bytes =
        crate::env::read_file(&OsFileSystem, Path::new(&format!("{directory}.expected")), 1 << 24);
    let text = String::from_utf8(bytes.unwrap()).unwrap();
    let unhex = |hex: &str| {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect::<Vec<u8>>()
    };
    text.lines()
        .map(|line| {
            let mut fields = line.split(' ').skip(1);
            (unhex(fields.next().unwrap()), unhex(fields.next().unwrap_or("")))
        })
        .collect()
}

#[test]
fn a_database_that_lives_in_its_wal_is_recovered() {
    for mode in [RecoveryMode::AbsoluteConsistency, RecoveryMode::PointInTimeRecovery] {
        let mut model = Model::new();
        let outcome =
            replay(&[open(PLAIN, 4)], FileNumber(0), mode, &Reading::default(), &mut |record| {
                apply(record, &mut model)
            })
            .unwrap();
        assert!(outcome.stops.is_empty());
        assert_eq!(outcome.next_sequence, Some(1002));
        assert_eq!(outcome.wals[0].good_until, 872_156);
        assert!(model == expected(PLAIN));
    }
}

#[test]
fn several_logs_are_one_history() {
    let mut model = Model::new();
    let wals = [open(RECYCLE, 16), open(RECYCLE, 20)];
    let mode = RecoveryMode::AbsoluteConsistency;
    let outcome = replay(&wals, FileNumber(0), mode, &Reading::default(), &mut |record| {
        apply(record, &mut model)
    })
    .unwrap();
    assert!(outcome.stops.is_empty() && outcome.wals.iter().all(|wal| wal.records > 0));
    let expected = expected(RECYCLE);
    assert!(!model.is_empty() && model.iter().all(|(key, value)| expected.get(key) == Some(value)));
}

#[test]
fn what_rocksdb_wrote_is_written_again_byte_for_byte() {
    let (number, file) = open(PLAIN, 4);
    let mut writer = Writer::new(file_of(b""), number, WriterOptions::default()).unwrap();
    let mut reader = Reader::new(file.clone(), number);
    while let Event::Record(record) = reader.next_event().unwrap() {
        writer.add_record(WriteBatch::from_bytes(record.to_vec()).unwrap().data()).unwrap();
    }
    assert!(contents_of(&**writer.file()) == contents_of(&*file));
}

/// Replays damaged contents in all modes: no panic, and no record that was not written.
fn replay_damaged(contents: &[u8], number: FileNumber, originals: &BTreeMap<u64, Vec<u8>>) {
    for mode in [
        RecoveryMode::TolerateCorruptedTailRecords,
        RecoveryMode::AbsoluteConsistency,
        RecoveryMode::PointInTimeRecovery,
        RecoveryMode::SkipAnyCorruptedRecords,
    ] {
        let _ = replay(
            &[(number, file_of(contents))],
            FileNumber(0),
            mode,
            &Reading::default(),
            &mut |record| {
                assert_eq!(
                    originals.get(&record.batch.sequence()).map(Vec::as_slice),
                    Some(record.batch.data())
                );
                Ok(Applied::Until(record.batch.next_sequence()))
            },
        );
    }
}

#[test]
fn damaged_logs_yield_only_what_was_written() {
    let (number, file) = open(PLAIN, 4);
    let mut records = Vec::new();
    let mut reader = Reader::new(file, number);
    while let Event::Record(record) = reader.next_event().unwrap() {
        records.push(record.to_vec());
        if reader.good_until() > 180_000 {
            break;
        }
    }
    let sequence = |record: &Vec<u8>| u64::from_le_bytes(record[..8].try_into().unwrap());
    let originals: BTreeMap<_, _> =
        records.iter().map(|record| (sequence(record), record.clone())).collect();
    let mut random = fastrand::Rng::with_seed(11);
    for recyclable in [false, true] {
        for compression in [WalCompression::None, WalCompression::Zstd] {
            let options = WriterOptions { recyclable, compression, ..WriterOptions::default() };
            let mut writer = Writer::new(file_of(b""), number, options).unwrap();
            records.iter().for_each(|record| writer.add_record(record).unwrap());
            let contents = contents_of(&**writer.file());
            for round in 0..40 {
                let mut damaged = contents.clone();
                for _ in 0..=random.usize(0..3) {
                    let at = random.usize(0..damaged.len());
                    let end = damaged.len().min(at + random.usize(1..2_000));
                    match random.u8(0..4) {
                        0 => damaged[at] ^= 1 << random.u8(0..8),
                        1 => damaged[at..end].fill(0),
                        2 => random.fill(&mut damaged[at..end]),
                        _ => damaged.truncate(end),
                    }
                }
                if round % 4 == 0 {
                    let front = random.usize(0..=damaged.len() / 2);
                    damaged.copy_within(front.., 0);
                }
                replay_damaged(&damaged, number, &originals);
            }
        }
    }
}

#[test]
fn a_log_cut_or_flipped_anywhere_yields_a_prefix() {
    let records: Vec<Vec<u8>> =
        (0..6).map(|i| super::test_support::put(&"k".repeat(i * 3), i as u64 + 1)).collect();
    let originals: BTreeMap<_, _> = (1..).zip(records.iter().cloned()).collect();
    for recyclable in [false, true] {
        let options = WriterOptions { recyclable, ..WriterOptions::default() };
        let mut writer = Writer::new(file_of(b""), FileNumber(4), options).unwrap();
        records.iter().for_each(|record| writer.add_record(record).unwrap());
        let contents = contents_of(&**writer.file());
        for length in 0..contents.len() {
            let mut count = 0;
            let mode = RecoveryMode::TolerateCorruptedTailRecords;
            let outcome = replay(
                &[(FileNumber(4), file_of(&contents[..length]))],
                FileNumber(0),
                mode,
                &Reading::default(),
                &mut |record| {
                    count += 1;
                    assert_eq!(record.batch.data(), originals[&count]);
                    Ok(Applied::Until(record.batch.next_sequence()))
                },
            );
            assert_eq!(outcome.unwrap().records, count);
        }
        for at in 0..contents.len() {
            for bit in 0..8 {
                let mut flipped = contents.clone();
                flipped[at] ^= 1 << bit;
                replay_damaged(&flipped, FileNumber(4), &originals);
            }
        }
    }
}
