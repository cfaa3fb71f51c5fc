//! Transactions that RocksDB has prepared and neither committed nor rolled back.
//!
//! Once all families have flushed what else a WAL holds, replaying begins behind it, and only
//! `min_log_number_to_keep` says that such a transaction still stands there: who passes it over
//! forgets it. Of a write-prepared one the tables hold what it has written, and nothing there tells
//! that from what is committed.

use std::collections::BTreeMap;

use crate::base::{Error, FileNumber, Remedy, Result, file_name};
use crate::batch::{BatchView, Operation};
use crate::db::DbInner;
use crate::env::IoMode;
use crate::wal::{Event, Reader};

/// The most bytes that are kept of transactions of which nothing is known yet but that they are
/// prepared: hundreds of thousands.
const PREPARED_MAX: usize = 64 << 20;

/// What is shown of a transaction's name: RocksDB gives none more.
const NAME_MAX: usize = 512;

impl DbInner {
    /// Looks through WALs, oldest first, that are kept and need no replaying. Damage there is
    /// nobody's loss.
    ///
    /// # Errors
    /// `NotSupported` if a transaction is prepared in one, and decided in none, or more are at a
    /// time than there is memory for; `IoError`.
    pub(super) fn check_nothing_is_prepared(&self, wals: &[FileNumber]) -> Result<()> {
        let mut prepared = Prepared::default();
        for number in wals {
            let path = file_name::wal(&self.context.wal_directory, *number);
            let file = match self.context.env.fs.open_random_access(&path, IoMode::Buffered) {
                Ok(file) => file,
                // Whoever writes the database has removed it meanwhile.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let mut reader = Reader::new(file, *number);
            loop {
                match reader.next_event()? {
                    Event::End => break,
                    Event::Damage(_) => continue,
                    Event::Record(_) => {}
                }
                let Ok(batch) = BatchView::parse(reader.record()) else { continue };
                for operation in batch.readable() {
                    match operation {
                        Operation::EndPrepare { xid } => {
                            prepared.add(xid, *number, reader.record_offset())
                        }
                        Operation::Commit { xid }
                        | Operation::CommitWithTimestamp { xid, .. }
                        | Operation::Rollback { xid } => prepared.decide(xid),
                        _ => {}
                    }
                    if prepared.bytes > PREPARED_MAX {
                        return self.refuse(prepared);
                    }
                }
            }
        }
        self.refuse(prepared)
    }

    /// # Errors
    /// `NotSupported` if any is prepared.
    fn refuse(&self, mut prepared: Prepared) -> Result<()> {
        let Some((xid, (number, offset))) = prepared.places.pop_first() else { return Ok(()) };
        let name = xid[..xid.len().min(NAME_MAX)].escape_ascii();
        let message = if prepared.bytes > PREPARED_MAX {
            format!("too many transactions are prepared, among them transaction '{name}'")
        } else {
            format!("transaction '{name}' is prepared but neither committed nor rolled back")
        };
        let path = file_name::wal(&self.context.wal_directory, number);
        Err(Error::not_supported(message).advise(Remedy::DecidePrepared).at(path).at_offset(offset))
    }
}

/// Transactions that are not decided yet, by their names: where their records are.
#[derive(Default)]
struct Prepared {
    places: BTreeMap<Vec<u8>, (FileNumber, u64)>,
    /// About what they take.
    bytes: usize,
}

impl Prepared {
    fn size_of(xid: &[u8]) -> usize {
        xid.len() + size_of::<(Vec<u8>, (FileNumber, u64))>()
    }

    /// Of a name with which they take more than they may only what is shown is kept.
    fn add(&mut self, xid: &[u8], number: FileNumber, offset: u64) {
        if let Some(place) = self.places.get_mut(xid) {
            *place = (number, offset);
            return;
        }
        self.bytes += Self::size_of(xid);
        let kept = if self.bytes > PREPARED_MAX { xid.len().min(NAME_MAX) } else { xid.len() };
        self.places.insert(xid[..kept].to_vec(), (number, offset));
    }

    fn decide(&mut self, xid: &[u8]) {
        if self.places.remove(xid).is_some() {
            self.bytes -= Self::size_of(xid);
        }
    }
}

#[cfg(test)]
mod tests;
