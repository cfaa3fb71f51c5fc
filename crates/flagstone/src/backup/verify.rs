//! Verifying a backup.

use crate::base::{Error, Result};
use crate::env::Spawn;

use super::directory::{Backup, Directory, size_of};
use super::format::MetaFile;
use super::transfer::{Transfer, on_all};

impl Directory {
    /// Compares the files of a backup with what is recorded: their sizes, and with `checksums`
    /// every byte.
    ///
    /// # Errors
    /// `Corruption` naming the first file that differs; `IoError`.
    pub(super) fn verify(
        &self,
        backup: &Backup,
        checksums: bool,
        transfer: &Transfer<'_>,
        (spawner, threads): (&dyn Spawn, usize),
    ) -> Result<()> {
        let files: Vec<&MetaFile> = backup.meta.files.iter().collect();
        on_all(spawner, threads, files, |file| {
            let path = file.path.within(&self.path);
            self.check_size(file, size_of(self.fs(), &path)?)?;
            match file.crc32c.filter(|_| checksums) {
                Some(expected) => {
                    let found = transfer.checksum((self.fs(), &path))?.crc32c;
                    check_checksum(expected, found).map_err(|error| error.at(&path))
                }
                None => Ok(()),
            }
        })?;
        Ok(())
    }
}

/// # Errors
/// `Corruption` if they differ.
pub(super) fn check_checksum(expected: u32, found: u32) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let message = format!("the file's CRC-32C is {found:#010x}, not {expected:#010x} as recorded");
    Err(Error::corruption(message))
}
