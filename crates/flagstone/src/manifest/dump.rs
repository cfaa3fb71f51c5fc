//! A MANIFEST edit by edit, for people.

use std::path::Path;

use super::edit::VersionEdit;
use super::record::Reader;
use crate::base::Result;
use crate::env::FileSystem;

/// The edits of one MANIFEST with the file offset of each; ends after the first error.
pub struct EditIterator {
    reader: Reader,
    at: u64,
    failed: bool,
}

impl Iterator for EditIterator {
    type Item = (u64, Result<VersionEdit>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let edit = match self.reader.next() {
            Ok(None) => return None,
            Ok(Some((offset, record))) => {
                self.at = offset;
                VersionEdit::decode(record)
            }
            Err(error) => {
                self.at = error.offset().unwrap_or(self.at);
                Err(error)
            }
        };
        self.failed = edit.is_err();
        Some((self.at, edit.map_err(|error| error.at(self.reader.path()).at_offset(self.at))))
    }
}

/// Goes through the edits of the MANIFEST at `path`.
///
/// A record that the end of the file cuts off is taken for a crash and not shown.
///
/// # Errors
/// `IoError` if the file cannot be opened.
pub fn dump(fs: &dyn FileSystem, path: &Path) -> Result<EditIterator> {
    Ok(EditIterator { reader: Reader::open(fs, path)?, at: 0, failed: false })
}
