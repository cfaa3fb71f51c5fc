//! Locks between readers of a file and a writer that changes it in place.
//!
//! A process that reads a database without its LOCK holds a shared lock on each file. A writer that
//! is about to destroy what such a file holds (a hole in a blob file, a new log over an old one)
//! tries for the exclusive lock, and leaves the file alone if it fails.
//!
//! The locks are those of `flock`. They belong to the open file: closing another descriptor of the
//! file does not release them, a read-only descriptor can hold one, and two handles of one process
//! exclude each other. They are independent of the record locks that RocksDB takes, and RocksDB
//! takes none of these files.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

/// Takes the shared lock until the file is closed; `false` while a writer holds the exclusive one.
/// A file system without locks grants everything.
pub(super) fn share(file: &File) -> Result<bool, Errno> {
    take(file, FlockOperation::NonBlockingLockShared)
}

/// Takes the exclusive lock until the file is closed; `false` while a reader holds a shared one. A
/// file system without locks grants everything.
pub(super) fn claim(file: &File) -> Result<bool, Errno> {
    take(file, FlockOperation::NonBlockingLockExclusive)
}

fn take(file: &File, operation: FlockOperation) -> Result<bool, Errno> {
    match retry_on_intr(|| flock(file, operation)) {
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
