//! How far the writer of a log has come, found without reading the log.
//!
//! A log is filled in order, and each block that has anything begins with a header. So the blocks
//! that were reached are those before the first that begins with zeros, or with a header of an
//! earlier life of the file.

use super::format::{
    BLOCK_SIZE, Header, LEGACY_HEADER_SIZE, RECYCLABLE_HEADER_SIZE, ZERO, is_recyclable,
};
use crate::base::coding::fixed32_at;
use crate::base::{FileNumber, Result};
use crate::env::RandomAccessFile;

/// A place behind all that the log `number` has by now, at most a block behind it: where its last
/// block ends. It has something up to `from`. Reads some headers.
///
/// # Errors
/// `IoError`.
pub fn reached_until(file: &dyn RandomAccessFile, number: FileNumber, from: u64) -> Result<u64> {
    const BLOCK: u64 = BLOCK_SIZE as u64;
    let size = file.size()?;
    let (mut reached, mut end) = (from.div_ceil(BLOCK), size.div_ceil(BLOCK));
    while reached < end {
        let middle = reached.midpoint(end);
        if has_header(file, number, middle * BLOCK)? {
            reached = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok((reached * BLOCK).min(size))
}

/// Whether a header of this life of the file stands there.
fn has_header(file: &dyn RandomAccessFile, number: FileNumber, offset: u64) -> Result<bool> {
    let mut bytes = [0; RECYCLABLE_HEADER_SIZE];
    let read = file.read_at(offset, &mut bytes)?;
    let Some(header) = Header::parse(&bytes[..read]) else { return Ok(false) };
    if header.record_type == ZERO && header.length == 0 {
        return Ok(false);
    }
    let is_own = || fixed32_at(&bytes[..read], LEGACY_HEADER_SIZE) == Some(number.0 as u32);
    Ok(!is_recyclable(header.record_type) || is_own())
}

#[cfg(test)]
mod tests;
