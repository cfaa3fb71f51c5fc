//! A database's identity: a UUID that the MANIFEST and the file IDENTITY hold, so that copies can
//! be told apart.

use std::path::Path;

use crate::base::{Result, file_name};
use crate::env::{FileSystem, Random, read_file};

/// The content of IDENTITY, and whether it has to be written.
pub(super) fn read_identity(
    fs: &dyn FileSystem,
    directory: &Path,
) -> Result<(Option<String>, bool)> {
    match read_file(fs, &file_name::identity(directory), 4096) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).trim().to_string();
            let missing = text.is_empty();
            Ok(((!missing).then_some(text), missing))
        }
        Err(error) if error.is_not_found() => Ok((None, true)),
        Err(error) => Err(error),
    }
}

/// The identity of the database in `directory`, if it has one.
///
/// # Errors
/// `IoError`.
pub fn identity_of(fs: &dyn FileSystem, directory: &Path) -> Result<Option<String>> {
    read_identity(fs, directory).map(|(identity, _)| identity)
}

/// A random (version 4) UUID as text in lower case.
pub(super) fn new_uuid(random: &dyn Random) -> String {
    let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
