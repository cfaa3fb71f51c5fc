//! Values that a transaction writes piece by piece.
//!
//! The pieces of a large one go to a blob file of its own. The file belongs to the transaction
//! until the commit names it. Given up before, it is removed; the next opening removes it if the
//! process dies.

use std::{fmt, io};

use crate::base::Result;
use crate::db::{Streamed, ValueWriter};
use crate::front::family::Family;
use crate::front::transaction::Transaction;
use crate::front::transaction::control::Claim;
use crate::options::WriteOptions;

/// Writes a value of a transaction piece by piece, through [`std::io::Write`] or
/// [`TransactionValueWriter::append`]; [`TransactionValueWriter::finish`] puts it into the
/// transaction. Dropped before, it changes nothing but that its key is claimed.
pub struct TransactionValueWriter<'t> {
    transaction: &'t mut Transaction,
    family: Family,
    key: Vec<u8>,
    pieces: ValueWriter,
}

impl<'t> TransactionValueWriter<'t> {
    /// Claims the key, and begins to write its value.
    pub(super) fn begin(
        transaction: &'t mut Transaction,
        family: &Family,
        key: &[u8],
    ) -> Result<Self> {
        transaction.claim(family, key, Claim::WRITE)?;
        let (engine, options) = (transaction.db.engine(), WriteOptions::default());
        let pieces = engine.put_stream(family.engine_family(), key, &options)?;
        Ok(Self { family: family.clone(), transaction, key: key.to_vec(), pieces })
    }

    /// Bytes to collect in memory before the value gets a file, instead of 1 MiB.
    #[must_use]
    pub fn with_buffer(self, bytes: usize) -> Self {
        Self { pieces: self.pieces.with_buffer(bytes), ..self }
    }

    /// Appends a piece of the value.
    ///
    /// # Errors
    /// As [`ValueWriter::append`](crate::ValueWriter::append).
    pub fn append(&mut self, piece: &[u8]) -> Result<()> {
        self.pieces.append(piece)
    }

    /// Bytes of the value so far.
    pub fn size(&self) -> u64 {
        self.pieces.size()
    }

    /// Sets the key to the value, in the transaction.
    ///
    /// # Errors
    /// As [`Transaction::put`] and [`TransactionValueWriter::append`]. The transaction is then as
    /// it was before.
    pub fn finish(self) -> Result<()> {
        let Self { transaction, family, key, pieces } = self;
        transaction.check(&family)?;
        let engine_family = family.engine_family();
        match pieces.complete()? {
            Streamed::InMemory(value) => {
                transaction.check_room(engine_family.id(), &key, Some(&value))?;
                transaction.batch.put(engine_family, &key, &value)
            }
            Streamed::InFile(value) => {
                // The batch gets only the address.
                transaction.check_room(engine_family.id(), &key, Some(value.index()))?;
                transaction.batch.put_streamed(engine_family, value)
            }
        }
    }
}

impl fmt::Debug for TransactionValueWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TransactionValueWriter").field(&self.pieces).finish()
    }
}

impl io::Write for TransactionValueWriter<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.pieces.write(piece)
    }

    /// Does nothing: only [`TransactionValueWriter::finish`] makes the value part of the
    /// transaction.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
