//! Reading a version edit; every byte is taken for hostile.

use super::edit::VersionEdit;
use crate::base::Result;

impl VersionEdit {
    /// Reads an edit that takes up all of `bytes`.
    ///
    /// # Errors
    /// `Corruption` that names the field; the caller adds file and offset.
    pub fn decode(_bytes: &[u8]) -> Result<Self> {
        todo!()
    }
}
