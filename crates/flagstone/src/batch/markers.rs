//! Batches of two-phase transactions: a prepared section, and the decision on one.

use super::format::*;
use super::write_batch::WriteBatch;
use crate::base::Result;
use crate::base::coding::put_lps;

/// The longest name of a transaction that is prepared here, in bytes; RocksDB's.
pub const TRANSACTION_NAME_MAX: usize = 512;

impl WriteBatch {
    /// A section that prepares `operations` under a name (write-committed).
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub(crate) fn prepared_section(name: &[u8], operations: &Self) -> Result<Self> {
        let mut section = Self::with_capacity(operations.byte_size() + name.len() + 8);
        section.push_section(name, operations)?;
        Ok(section)
    }

    /// Appends such a section.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub(crate) fn push_section(&mut self, name: &[u8], operations: &Self) -> Result<()> {
        self.push_encoded(&[BEGIN_PREPARE], false)?;
        self.append(operations)?;
        self.push_marker(END_PREPARE, name)
    }

    /// Marks that the transaction of that name is committed.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub(crate) fn push_commit(&mut self, name: &[u8]) -> Result<()> {
        self.push_marker(COMMIT, name)
    }

    /// Marks that it is committed as of a timestamp.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub(crate) fn push_commit_with_timestamp(&mut self, name: &[u8], stamp: &[u8]) -> Result<()> {
        let mut marker = vec![COMMIT_WITH_TIMESTAMP];
        put_lps(&mut marker, stamp);
        put_lps(&mut marker, name);
        self.push_encoded(&marker, false)
    }

    /// Marks that the transaction of that name is rolled back.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub(crate) fn push_rollback(&mut self, name: &[u8]) -> Result<()> {
        self.push_marker(ROLLBACK, name)
    }

    fn push_marker(&mut self, tag: u8, name: &[u8]) -> Result<()> {
        let mut marker = Vec::with_capacity(1 + 5 + name.len());
        marker.push(tag);
        put_lps(&mut marker, name);
        self.push_encoded(&marker, false)
    }
}
