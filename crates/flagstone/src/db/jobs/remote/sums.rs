//! Sums of whole files, by which a database finds out whether a worker's files came over whole.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::base::{Error, FileChecksum, Result, RunningFileChecksum};
use crate::compaction::remote::SummedOutput;
use crate::env::{Advice, FileSystem, IoMode};

/// Bytes that are read at a time.
const PIECE: u64 = 1 << 20;

/// XXH3-64 of the bytes of a file, and its checksum if one is computed.
///
/// # Errors
/// `Corruption` if the file has another size; `IoError`.
pub(in crate::db) fn sum_of_file(
    fs: &dyn FileSystem,
    path: &Path,
    size: u64,
    mut running: Option<RunningFileChecksum>,
    before_read: impl Fn(u64),
) -> Result<(u64, Option<FileChecksum>)> {
    let file = fs.open_random_access(path, IoMode::Buffered)?;
    let found = file.size()?;
    if found != size {
        let message = format!("the file has {found} bytes instead of {size}");
        return Err(Error::corruption(message).at(path));
    }
    file.advise(Advice::Sequential);
    let mut sum = Xxh3::new();
    let mut buffer = vec![0; PIECE.min(size) as usize];
    let mut offset = 0;
    while offset < size {
        let wanted = (buffer.len() as u64).min(size - offset) as usize;
        before_read(wanted as u64);
        let read = file.read_at(offset, &mut buffer[..wanted])?;
        if read == 0 {
            let message = format!("the file ends before its {size} bytes");
            return Err(Error::corruption(message).at(path).at_offset(offset));
        }
        sum.update(&buffer[..read]);
        if let Some(running) = &mut running {
            running.update(&buffer[..read]);
        }
        offset += read as u64;
    }
    Ok((sum.digest(), running.map(RunningFileChecksum::finish)))
}

/// Compares a file with what the worker says of it; its checksum, if one is computed.
///
/// # Errors
/// `Corruption` if it has other bytes; `IoError`.
pub(super) fn check_file(
    fs: &dyn FileSystem,
    path: &Path,
    expected: &SummedOutput,
    running: Option<RunningFileChecksum>,
    before_read: impl Fn(u64),
) -> Result<Option<FileChecksum>> {
    let (sum, checksum) = sum_of_file(fs, path, expected.size, running, before_read)?;
    if sum == expected.sum {
        return Ok(checksum);
    }
    let message = "the file does not have the bytes that the worker wrote";
    Err(Error::corruption(message).at(path))
}
