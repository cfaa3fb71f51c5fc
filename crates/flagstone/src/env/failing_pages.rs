//! Reads a file of which the device cannot read some pages, as on failing disks.

use std::ops::Range;

use super::file_pool::is_out_of_descriptors;
use super::{RandomAccessFile, read_until_end};
use crate::base::Result;

/// What the device reads or refuses as a whole.
const PAGE_SIZE: u64 = 4096;
/// Stands for what cannot be read: zeros would pass for space that was reserved.
const FILLER: u8 = 0xff;

/// As [`read_until_end`]; where that fails, page by page. What cannot be read then is filled with
/// bytes that have no right checksum.
///
/// # Errors
/// `IoError` if the file cannot be opened or is gone.
pub fn read_around_failures(
    file: &dyn RandomAccessFile,
    offset: u64,
    buffer: &mut [u8],
) -> Result<usize> {
    match read_until_end(file, offset, buffer) {
        Err(error) if !error.is_not_found() && !is_out_of_descriptors(&error) => {}
        outcome => return outcome,
    }
    let length = file.size()?.saturating_sub(offset).min(buffer.len() as u64);
    let end = offset + length;
    let mut at = offset;
    while at < end {
        // As pages lie on the device, so that none is lost for its neighbour.
        let page = at..(at - at % PAGE_SIZE + PAGE_SIZE).min(end);
        let Range { start, end } = (page.start - offset) as usize..(page.end - offset) as usize;
        let bytes = &mut buffer[start..end];
        if !read_until_end(file, at, bytes).is_ok_and(|filled| filled == bytes.len()) {
            bytes.fill(FILLER);
        }
        at = page.end;
    }
    Ok(length as usize)
}

#[cfg(test)]
pub mod test_support;

#[cfg(test)]
mod tests;
