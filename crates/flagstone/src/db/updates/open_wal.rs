//! A WAL that is read from its beginning.

use std::sync::Arc;

use crate::base::{Error, FileNumber, Result, SequenceNumber};
use crate::batch::BatchView;
use crate::env::RandomAccessFile;
use crate::wal::{Event, Noted, Reader, WalEnd};

/// The WAL that is being read.
pub(super) struct OpenWal {
    pub(super) number: FileNumber,
    pub(super) reader: Reader,
    /// It has had its first record.
    pub(super) has_begun: bool,
    /// Up to where it may be read.
    pub(super) limit: u64,
    /// Why its rest does not count.
    pub(super) left: Option<Error>,
}

impl OpenWal {
    pub(super) fn new(file: Arc<dyn RandomAccessFile>, number: FileNumber, limit: u64) -> Self {
        let mut reader = Reader::new(file, number);
        reader.read_until(limit);
        Self { number, reader, has_begun: false, limit, left: None }
    }

    /// The same from its beginning.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.reader.file().clone(), self.number, self.limit)
    }

    /// Where its first write begins, or the next one begins of which an empty record tells.
    pub(super) fn first_sequence(self) -> Result<Option<SequenceNumber>> {
        Ok(self.begin()?.map(|(first, _)| first))
    }

    /// Where its records end.
    pub(super) fn end(mut self) -> Result<WalEnd> {
        while let Event::Record(_) = self.reader.next_event()? {}
        Ok(self.so_far())
    }

    /// Where those end that were read.
    pub(super) fn so_far(&self) -> WalEnd {
        WalEnd { good_until: self.reader.good_until(), ..WalEnd::default() }
    }

    /// Where its first write begins, and what it says of the WAL before it.
    pub(super) fn begin(mut self) -> Result<Option<(SequenceNumber, Option<Noted>)>> {
        let Event::Record(record) = self.reader.next_event()? else { return Ok(None) };
        let Ok(batch) = BatchView::parse(record) else { return Ok(None) };
        Ok(Some((batch.sequence(), Noted::in_batch(batch, true))))
    }
}
