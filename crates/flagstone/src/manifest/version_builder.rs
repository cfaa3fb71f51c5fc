//! Edits applied to a version.

use std::sync::Arc;

use super::edit::VersionEdit;
use super::live::ObsoleteFiles;
use super::version::Version;
use crate::base::Result;

/// A version in the making.
pub struct VersionBuilder {}

impl VersionBuilder {
    /// Starts from `base`.
    pub fn new(_base: &Version, _queue: Arc<ObsoleteFiles>) -> Self {
        todo!()
    }

    /// Applies the file changes of `edit`.
    ///
    /// # Errors
    /// `Corruption` if the edit does not fit; the builder is then of no further use.
    pub fn apply(&mut self, _edit: &VersionEdit) -> Result<()> {
        todo!()
    }

    /// The resulting version, in order and checked.
    ///
    /// # Errors
    /// `Corruption` if the files contradict each other.
    pub fn build(self) -> Result<Version> {
        todo!()
    }
}
