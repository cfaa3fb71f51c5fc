use std::cell::RefCell;

use super::*;
use crate::base::Code;

/// A WAL, memtables and readers that only note what is asked of them.
#[derive(Default)]
struct Fake {
    numbers: Numbers,
    published: RefCell<SequenceNumber>,
    /// The active WAL.
    wal: u64,
    is_full: bool,
    is_flushed_by_hand: bool,
    noted: RefCell<Vec<String>>,
}

impl CommitEnv for &mut Fake {
    fn numbers(&mut self) -> &mut Numbers {
        &mut self.numbers
    }

    fn is_flushed_by_hand(&self) -> bool {
        self.is_flushed_by_hand
    }

    fn append(&mut self, batch: &WriteBatch, joins_sync: bool) -> Result<FileNumber> {
        if self.is_full {
            return Err(Error::new(Code::IoError, "no space left"));
        }
        let how = if joins_sync { "gather" } else { "write" };
        self.note(format!("{how} {} of {}", batch.sequence(), batch.count()));
        Ok(FileNumber(self.wal))
    }

    fn pin(&mut self, batch: &WriteBatch, first: SequenceNumber, logged: Option<FileNumber>) {
        let wal = logged.map_or("no WAL".to_string(), |wal| format!("WAL {}", wal.0));
        self.note(format!("pin {first} of {} from {wal}", batch.count()));
    }

    fn published(&self) -> SequenceNumber {
        *self.published.borrow()
    }

    type Turn = Option<SequenceNumber>;

    fn take_turn(&mut self, publishes: Option<SequenceNumber>) -> Self::Turn {
        self.note(publishes.map_or("turn".to_string(), |last| format!("turn to publish {last}")));
        publishes
    }
}

impl Fake {
    fn note(&self, step: String) {
        self.noted.borrow_mut().push(step);
    }

    /// What was asked since the last look.
    fn taken(&self) -> Vec<String> {
        self.noted.take()
    }
}

fn batch(keys: u8) -> WriteBatch {
    let mut batch = WriteBatch::new();
    (0..keys).for_each(|key| batch.put([key], b"value").unwrap());
    batch
}

const SYNCED: bool = true;
const UNSYNCED: bool = false;

/// An ordinary write.
fn write(fake: &mut Fake, keys: u8, is_synced: bool) -> Committed {
    let mut batch = batch(keys);
    let mut steps = Steps::new(&mut *fake, is_synced);
    steps.check(|_| Ok(())).unwrap();
    steps.number(&mut batch).unwrap();
    let wal = steps.append(&batch).unwrap();
    steps.take_numbers(&batch, Some(wal));
    let (committed, turn) = steps.finish();
    // It is inserted at once.
    if let Some(last) = turn {
        *fake.published.borrow_mut() = last;
    }
    committed
}

#[test]
fn a_write_is_logged_then_numbered_then_takes_its_turn() {
    let fake = &mut Fake { wal: 7, ..Fake::default() };
    assert_eq!(write(fake, 2, UNSYNCED), Committed::Published);
    assert_eq!(fake.taken(), ["write 1 of 2", "pin 1 of 2 from WAL 7", "turn to publish 2"]);
    assert_eq!(write(fake, 1, UNSYNCED), Committed::Published);
    assert_eq!(fake.taken(), ["write 3 of 1", "pin 3 of 1 from WAL 7", "turn to publish 3"]);
}

#[test]
fn nothing_is_published_behind_a_write_that_waits_for_its_sync() {
    let fake = &mut Fake { wal: 7, ..Fake::default() };
    let waits = Committed::Waits { wanted: 2, last: 2, for_its_own: false };
    assert_eq!(write(fake, 2, SYNCED), waits);
    assert_eq!(fake.taken(), ["gather 1 of 2", "pin 1 of 2 from WAL 7", "turn"]);
    let waits = Committed::Waits { wanted: 2, last: 3, for_its_own: false };
    assert_eq!(write(fake, 1, UNSYNCED), waits);
    assert_eq!(fake.taken(), ["write 3 of 1", "pin 3 of 1 from WAL 7", "turn"]);
    fake.is_flushed_by_hand = true;
    write(fake, 1, UNSYNCED);
    assert_eq!(fake.taken(), ["gather 4 of 1", "pin 4 of 1 from WAL 7", "turn"]);
    // The sync has come.
    *fake.published.borrow_mut() = 4;
    assert_eq!(write(fake, 1, UNSYNCED), Committed::Published);
    assert_eq!(fake.taken(), ["write 5 of 1", "pin 5 of 1 from WAL 7", "turn to publish 5"]);
}

#[test]
fn a_write_that_the_wal_refuses_takes_no_number() {
    let fake = &mut Fake { is_full: true, ..Fake::default() };
    let mut refused = batch(3);
    let mut steps = Steps::new(&mut *fake, UNSYNCED);
    steps.number(&mut refused).unwrap();
    assert_eq!(steps.append(&refused).unwrap_err().code(), Code::IoError);
    assert!(fake.taken().is_empty() && fake.numbers.last == 0);
    fake.is_full = false;
    write(fake, 1, UNSYNCED);
    assert_eq!(fake.taken()[0], "write 1 of 1");
}

/// The batch of a prepared transaction.
#[test]
fn what_is_appended_alone_takes_no_number_and_is_in_no_memtable() {
    let fake = &mut Fake { wal: 7, ..Fake::default() };
    let mut prepared = batch(2);
    let mut steps = Steps::new(&mut *fake, SYNCED);
    steps.number(&mut prepared).unwrap();
    assert_eq!(steps.append(&prepared).unwrap(), FileNumber(7));
    // It has no number that a sync of others could cover.
    let waits = Committed::Waits { wanted: 0, last: 0, for_its_own: true };
    assert_eq!(steps.finish(), (waits, None));
    assert_eq!(fake.taken(), ["gather 1 of 2", "turn"]);
    assert_eq!((fake.numbers.last, fake.numbers.unnumbered), (0, 1));
}

/// The commit of a prepared transaction.
#[test]
fn what_was_logged_earlier_is_inserted_with_new_numbers_and_keeps_its_wal() {
    let fake = &mut Fake { wal: 7, ..Fake::default() };
    let mut prepared = batch(2);
    let mut steps = Steps::new(&mut *fake, UNSYNCED);
    steps.number(&mut prepared).unwrap();
    let wal = steps.append(&prepared).unwrap();
    steps.finish();
    // Others write, and the next WAL begins.
    fake.wal = 8;
    write(fake, 3, UNSYNCED);
    fake.taken();
    let mut marker = WriteBatch::new();
    marker.put_log_data(b"commit").unwrap();
    let mut steps = Steps::new(&mut *fake, UNSYNCED);
    steps.number(&mut marker).unwrap();
    steps.append(&marker).unwrap();
    assert_eq!(steps.take_numbers(&prepared, Some(wal)), 4);
    assert_eq!(steps.finish(), (Committed::Published, Some(5)));
    assert_eq!(fake.taken(), ["write 4 of 0", "pin 4 of 2 from WAL 7", "turn to publish 5"]);
    // The marker has the numbers of what it commits.
    assert_eq!(fake.numbers.unnumbered, 1);
}

/// A conflict of an optimistic transaction.
#[test]
fn a_check_that_refuses_leaves_nothing() {
    let fake = &mut Fake { wal: 7, ..Fake::default() };
    write(fake, 2, UNSYNCED);
    fake.taken();
    // What was read at number 1 is no longer the newest.
    let conflicts = |env: &mut &mut Fake| {
        if env.numbers.last > 1 { Err(Error::new(Code::Busy, "conflict")) } else { Ok(()) }
    };
    let mut steps = Steps::new(&mut *fake, SYNCED);
    assert_eq!(steps.check(conflicts).unwrap_err().code(), Code::Busy);
    assert!(fake.taken().is_empty());
    assert_eq!((fake.numbers.last, fake.numbers.sync_target, fake.numbers.unnumbered), (2, 0, 0));
    write(fake, 1, UNSYNCED);
    assert_eq!(fake.taken()[0], "write 3 of 1");
}

#[test]
fn a_write_without_the_wal_is_inserted_from_none() {
    let fake = &mut Fake::default();
    let mut unlogged = batch(1);
    let mut steps = Steps::new(&mut *fake, UNSYNCED);
    steps.number(&mut unlogged).unwrap();
    assert_eq!(steps.take_numbers(&unlogged, None), 1);
    assert_eq!(steps.finish(), (Committed::Published, Some(1)));
    assert_eq!(fake.taken(), ["pin 1 of 1 from no WAL", "turn to publish 1"]);
}

#[test]
fn the_last_sequence_number_is_never_passed() {
    let fake = &mut Fake::default();
    fake.numbers.last = MAX_SEQUENCE_NUMBER - 1;
    let mut steps = Steps::new(&mut *fake, UNSYNCED);
    assert_eq!(steps.number(&mut batch(2)).unwrap_err().code(), Code::NotSupported);
    steps.number(&mut batch(1)).unwrap();
}
