//! Which sequence numbers the operations of a batch have.
//!
//! 1. As a rule each operation has a number of its own: the batch's, and those that follow.
//! 2. Where RocksDB writes transactions before they are committed (write-prepared and
//!    write-unprepared), all operations up to a marker **share** one number. An operation on a key
//!    that has this number already takes the next one, and so do those behind it. Each marker takes
//!    the next one, too; of [`Operation::Noop`](crate::batch::Operation::Noop) the one that ends
//!    operations.
//! 3. Only the markers of prepared sections say which rule holds. A plain batch of such a log ends
//!    in a `Noop`; but one of rule 1 may do so, too, if an empty transaction was written with it.
//!    [`shares_numbers`] tells them apart by what follows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::reader::{Event, Reader, ReaderOptions};
use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber, ValueType};
use crate::batch::{BatchView, Operation};
use crate::env::RandomAccessFile;

/// The sequence numbers of a batch's operations.
#[derive(Debug)]
pub struct Numbering<'a> {
    next: SequenceNumber,
    are_shared: bool,
    /// The keys that have the next one, if it is shared; whether they begin a deleted range.
    keys: BTreeSet<(ColumnFamilyId, bool, &'a [u8])>,
}

impl<'a> Numbering<'a> {
    /// From this number on.
    pub fn new(first: SequenceNumber, are_shared: bool) -> Self {
        Self { next: first, are_shared, keys: BTreeSet::new() }
    }

    /// The number behind those that were taken. Shared ones are taken only at the end of a part.
    pub fn next(&self) -> SequenceNumber {
        self.next
    }

    /// Whether operations share numbers.
    pub fn are_shared(&self) -> bool {
        self.are_shared
    }

    /// The number of the operation that follows.
    pub fn take(&mut self, operation: &Operation<'a>) -> SequenceNumber {
        let sequence = self.next;
        let place = operation.family().zip(operation.entry());
        let Some((family, (kind, key, _))) = place.filter(|_| self.are_shared) else {
            self.next += u64::from(operation.takes_sequence());
            return sequence;
        };
        let place = (family, kind == ValueType::RangeDeletion, key);
        if !self.keys.insert(place) {
            self.end_part();
            self.keys.insert(place);
        }
        self.next
    }

    /// Passes over so many numbers that somebody else has.
    pub fn skip(&mut self, count: u64) {
        self.next += count;
    }

    /// What follows has other numbers.
    pub fn end_part(&mut self) {
        self.next += u64::from(!self.keys.is_empty());
        self.keys.clear();
    }

    /// A marker ends a section.
    pub fn end_section(&mut self) {
        self.next += u64::from(self.are_shared);
        self.keys.clear();
    }
}

/// Whether batches that end at a mark have numbers for fewer operations than they hold: those of
/// write-prepared transactions do. Others end so where an empty transaction was written together
/// with them. What follows tells; if nothing does, they do.
pub fn shares_numbers(file: Arc<dyn RandomAccessFile>, number: FileNumber) -> bool {
    let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
    let mut reader = Reader::with_options(file, number, options);
    let mut behind_mark = None;
    let mut has_other = false;
    loop {
        match reader.next_event() {
            Err(_) | Ok(Event::End) => return !has_other,
            Ok(Event::Damage(_)) => behind_mark = None,
            Ok(Event::Record(record)) => {
                let Ok(batch) = BatchView::parse(record) else { continue };
                match behind_mark.take() {
                    Some(next) if batch.sequence() < next => return true,
                    Some(next) => has_other |= batch.sequence() == next,
                    None => {}
                }
                let ends_in_mark =
                    batch.validate().is_ok_and(|summary| summary.ends_in_noop && summary.count > 1);
                behind_mark = ends_in_mark.then(|| batch.next_sequence());
            }
        }
    }
}
