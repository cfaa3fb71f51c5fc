//! Checksums of the operations of a batch (`protection_bytes_per_key`), on its way to the WAL.

use crate::base::Result;
use crate::batch::WriteBatch;
use crate::options::WriteOptions;

/// Gives the operations checksums, if the write asks for them.
#[inline]
pub(super) fn protect(options: &WriteOptions, batch: &mut WriteBatch) {
    if options.protection_bytes_per_key > 0 {
        batch.protect();
    }
}

/// Compares a batch whose large values were replaced by their addresses, in another batch. The
/// options of the write of that one: it has checksums if the first has.
pub(super) fn separated(options: &WriteOptions, batch: &WriteBatch) -> Result<WriteOptions> {
    batch.verify_checksum()?;
    let protection_bytes_per_key = if batch.is_protected() { 8 } else { 0 };
    Ok(WriteOptions { protection_bytes_per_key, ..*options })
}

/// Before the batch is logged. Addresses of values in blob files are final now.
#[inline]
pub(super) fn verify(options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
    protect(options, batch);
    batch.verify_checksum()
}
