//! Checksums of a batch's operations.

use super::WriteBatch;
use crate::base::Result;
use crate::batch::format::HEADER_SIZE;

impl WriteBatch {
    /// Gives checksums to the operations that have none yet, if the batch has some.
    #[inline]
    pub(super) fn protect_new(&mut self) {
        if let Some(protection) = &mut self.protection {
            protection.extend(&self.bytes[HEADER_SIZE..]);
        }
    }

    /// Gives each operation a checksum, also those that are added later, for memory that changes by
    /// itself. Writing the batch then compares them, before it is logged and before it is inserted
    /// into memtables.
    pub fn protect(&mut self) {
        self.protection.get_or_insert_default();
        self.protect_new();
    }

    /// Whether operations have checksums.
    #[inline]
    pub fn is_protected(&self) -> bool {
        self.protection.is_some()
    }

    /// Compares the operations with their checksums, if they have some.
    ///
    /// # Errors
    /// `Corruption` if an operation is not what it was when it was added.
    #[doc(alias = "VerifyChecksum")]
    #[inline]
    pub fn verify_checksum(&self) -> Result<()> {
        self.protection.as_ref().map_or(Ok(()), |protection| protection.verify(self.body()))
    }
}
