//! Transactions that RocksDB has prepared and neither committed nor rolled back.
//!
//! Once all families have flushed what else a WAL holds, replaying begins behind it, and only `min_log_number_to_keep` says that
//! such a transaction still stands there: who passes it over forgets it. Of a write-prepared one the tables hold what it has
//! written, and nothing there tells that from what is committed.

use std::collections::BTreeMap;

use crate::base::{Error, FileNumber, Result, file_name};
use crate::batch::{BatchView, Operation};
use crate::db::DbInner;
use crate::env::OpenMode;
use crate::wal::{DECIDE, Event, Reader};

impl DbInner {
    /// Looks through WALs, oldest first, that are kept and need no replaying. Damage there is nobody's loss.
    ///
    /// # Errors
    /// `NotSupported` if a transaction is prepared in one, and decided in none; `IoError`.
    pub(super) fn check_nothing_is_prepared(&self, wals: &[FileNumber]) -> Result<()> {
        let mut prepared = BTreeMap::new();
        for number in wals {
            let path = file_name::wal(&self.wal_directory, *number);
            let file = match self.env.fs.open(&path, OpenMode::Read) {
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
                for operation in batch.iter().map_while(Result::ok) {
                    match operation {
                        Operation::EndPrepare { xid } => {
                            prepared.insert(xid.to_vec(), (path.clone(), reader.record_offset()));
                        }
                        Operation::Commit { xid }
                        | Operation::CommitWithTimestamp { xid, .. }
                        | Operation::Rollback { xid } => drop(prepared.remove(xid)),
                        _ => {}
                    }
                }
            }
        }
        let Some((xid, (path, offset))) = prepared.pop_first() else { return Ok(()) };
        let message = format!(
            "transaction '{}' is prepared, and neither committed nor rolled back",
            xid.escape_ascii()
        );
        Err(Error::not_supported(message).advise(DECIDE).at(path).at_offset(offset))
    }
}
