//! Distinguishes files that this user may not read, or has no key for, from files that are lost.

use std::path::Path;

use super::directory::Directory;
use crate::base::{Result, SubCode, file_name};
use crate::env::{FileSystem, IoMode};

/// Checks that this process may read every file that was found, and CURRENT. Otherwise what they
/// hold would be left out of the new database, and called lost.
///
/// # Errors
/// `IoError` of the first file that the system refuses to this user, or for want of descriptors or
/// memory; `InvalidArgument` if one is encrypted with another key.
pub(super) fn check_permitted(
    fs: &dyn FileSystem,
    database: &Path,
    directory: &Directory,
) -> Result<()> {
    let Directory { manifests, tables, wals, blobs, archived, .. } = directory;
    let listed = [manifests, tables, wals, blobs, archived]
        .into_iter()
        .flat_map(|files| files.values().flatten());
    let paths = listed.map(|listed| listed.path.clone());
    for path in std::iter::once(file_name::current(database)).chain(paths) {
        match fs.open_random_access(&path, IoMode::Buffered) {
            Err(error) if error.is_refused() || error.subcode() == SubCode::WrongKey => {
                return Err(error);
            }
            // Whatever else is wrong with a file, it does not keep others from being saved.
            _ => {}
        }
    }
    Ok(())
}
