//! Write-ahead logs: records, and replaying them.

use std::sync::Arc;

use flagstone::base::FileNumber;
use flagstone::batch::BatchView;
use flagstone::env::RandomAccessFile;
use flagstone::wal::{
    Applied, Event, PredecessorWal, Reader, ReaderOptions, Reading, RecoveryMode, ReplayRecord,
    replay,
};

use super::batches::read_batch;
use super::input::{Input, file_of, ok};
use super::mend;

/// Every way of judging damage.
pub const MODES: [RecoveryMode; 4] = [
    RecoveryMode::TolerateCorruptedTailRecords,
    RecoveryMode::AbsoluteConsistency,
    RecoveryMode::PointInTimeRecovery,
    RecoveryMode::SkipAnyCorruptedRecords,
];

/// The most that a compressed record may decompress to here. A few bytes are enough for that, and
/// an input has room for thousands of such records.
pub(super) const DECOMPRESSED_MAX: usize = 64 << 10;

/// Reads a WAL record by record, as it is and with its checksums put right: a number, then the
/// file.
pub fn wal(data: &[u8]) {
    let mut input = Input::new(data);
    let number = FileNumber(u64::from(input.u32()));
    let raw = input.rest();
    let mut mended = raw.to_vec();
    mend::log(&mut mended);
    for bytes in [raw, &mended] {
        for search_behind_damage in [false, true] {
            events(bytes, number, search_behind_damage);
        }
    }
}

fn events(bytes: &[u8], number: FileNumber, search_behind_damage: bool) {
    let options = ReaderOptions {
        decompressed_size_max: DECOMPRESSED_MAX,
        search_behind_damage,
        ..ReaderOptions::default()
    };
    let mut reader = Reader::with_options(file_of(bytes), number, options);
    // Every event but the last is at least one physical record.
    for _ in 0..=bytes.len() {
        match reader.next_event() {
            Ok(Event::Record(record)) => {
                assert!(record.len() <= bytes.len().max(DECOMPRESSED_MAX));
                PredecessorWal::from_note(record);
                read_batch(record);
            }
            Ok(Event::End) | Err(_) => {
                assert!(reader.good_until() <= bytes.len() as u64);
                return;
            }
            Ok(Event::Damage(damage)) => drop(damage.to_error(&*file_of(&[]))),
        }
    }
    panic!("a log of {} bytes does not end", bytes.len());
}

/// Replays two logs in each mode: where the first ends, then both files.
pub fn wal_replay(data: &[u8]) {
    let mut input = Input::new(data);
    let split = usize::from(input.u16());
    let reading = Reading {
        piece_size: 1 + split % 500,
        decompressed_size_max: DECOMPRESSED_MAX,
        ..Reading::default()
    };
    let numbers = [FileNumber(u64::from(input.u8())), FileNumber(u64::from(input.u8()) + 256)];
    let (mut first, mut second) = (input.bytes(split).to_vec(), input.rest().to_vec());
    mend::log(&mut first);
    mend::log(&mut second);
    let wals: Vec<(FileNumber, Arc<dyn RandomAccessFile>)> =
        vec![(numbers[0], file_of(&first)), (numbers[1], file_of(&second))];
    for mode in MODES {
        let mut applied = 0;
        let mut apply = |record: &ReplayRecord<'_>| {
            applied += 1;
            Ok(Applied::Until(check_view(&record.batch)?))
        };
        if let Some(outcome) = ok(replay(&wals, numbers[0], mode, &reading, &mut apply)) {
            assert_eq!(outcome.records, applied);
            assert!(outcome.wals.iter().all(|wal| wal.good_until <= data.len() as u64));
        }
    }
}

fn check_view(batch: &BatchView<'_>) -> flagstone::base::Result<u64> {
    batch.validate()?;
    Ok(batch.next_sequence())
}
