//! What a WAL says of the one before it, and whether that one holds it: for recovery, `verify`, a
//! salvage and updates alike.
//!
//! 1. The engine's own note is alone in a batch without operations, in front of all other batches
//!    of its WAL. Elsewhere its bytes are an application's: one that replicates by RocksDB's
//!    `GetUpdatesSince` is given the note as log data, and may write it on.
//! 2. The note knows to which byte the WAL before goes; RocksDB's record knows which batch was its
//!    last.
//! 3. A WAL that is missing ends where it begins.

use super::format::PredecessorWal;
use super::reader::Reader;
use crate::base::{FileNumber, SequenceNumber};
use crate::batch::{BatchView, Operation};

/// How far a WAL was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WalEnd {
    /// Where its last intact record ends.
    pub good_until: u64,
    /// The number in the header of its last batch, be that an empty one.
    pub last_sequence: SequenceNumber,
}

/// Who says how the WAL before ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Witness {
    /// The engine's own note.
    Own,
    /// RocksDB's record.
    RocksDb,
}

/// What a WAL says of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// That one.
    pub wal: PredecessorWal,
    witness: Witness,
}

impl PredecessorWal {
    /// What a batch says, if it has the form of the engine's own note.
    pub fn from_batch(batch: BatchView<'_>) -> Option<Self> {
        if batch.count() > 0 {
            return None;
        }
        let mut operations = batch.iter();
        match (operations.next()?, operations.next()) {
            (Ok(Operation::LogData(data)), None) => Self::from_note(data),
            _ => None,
        }
    }
}

impl Noted {
    /// By a batch; `is_first` says whether it is the first one of its WAL that is intact.
    pub fn in_batch(batch: BatchView<'_>, is_first: bool) -> Option<Self> {
        let wal = is_first.then(|| PredecessorWal::from_batch(batch)).flatten()?;
        Some(Self { wal, witness: Witness::Own })
    }

    /// By RocksDB, as far as the WAL was read.
    pub fn by_rocksdb(reader: &Reader) -> Option<Self> {
        reader.predecessor().map(|wal| Self { wal, witness: Witness::RocksDb })
    }

    /// The number of the WAL before.
    pub fn number(&self) -> FileNumber {
        FileNumber(self.wal.number)
    }

    /// Whether a WAL that ends so holds all that is noted of it.
    pub fn is_held(&self, end: WalEnd) -> bool {
        match self.witness {
            Witness::Own => end.good_until >= self.wal.size,
            Witness::RocksDb => end.last_sequence >= self.wal.last_sequence,
        }
    }

    /// What a WAL that ends so lacks, in words.
    pub fn missed(&self, end: WalEnd) -> String {
        match self.witness {
            Witness::Own => {
                format!("up to byte {}; intact records end at {}", self.wal.size, end.good_until)
            }
            Witness::RocksDb => format!(
                "up to the batch of sequence number {}; the last one found has {}",
                self.wal.last_sequence, end.last_sequence
            ),
        }
    }
}

#[cfg(test)]
mod tests;
