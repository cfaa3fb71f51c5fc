//! Sums of whole files, by which a database finds out whether a worker's files came over whole.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::base::{Error, FileChecksum, Result, RunningFileChecksum};
use crate::compaction::remote::SummedOutput;
use crate::env::{FileSystem, IoMode, read_in_pieces};

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
    let mut sum = Xxh3::new();
    read_in_pieces(&*file, size, before_read, |bytes| {
        sum.update(bytes);
        if let Some(running) = &mut running {
            running.update(bytes);
        }
    })?;
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
