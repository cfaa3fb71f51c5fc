//! A MANIFEST edit by edit, for people.

use std::path::Path;

use super::edit::VersionEdit;
use crate::base::Result;
use crate::env::FileSystem;

/// The edits of one MANIFEST with the file offset of each; ends after the first error.
pub struct EditIterator {}

impl Iterator for EditIterator {
    type Item = (u64, Result<VersionEdit>);

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

/// Goes through the edits of the MANIFEST at `path`.
///
/// # Errors
/// `IoError` if the file cannot be opened.
pub fn dump(_fs: &dyn FileSystem, _path: &Path) -> Result<EditIterator> {
    todo!()
}
