//! Reading a MANIFEST back.

use std::path::{Path, PathBuf};

use super::version_set::{ManifestSettings, VersionSet};
use crate::base::{ColumnFamilyId, Comparator, Result};
use crate::env::{Env, FileSystem};

/// A column family to be opened.
#[derive(Debug, Clone)]
pub struct FamilySpec {
    /// Its name.
    pub name: String,
    /// Its order; must bear the name stored in the MANIFEST.
    pub comparator: Comparator,
    /// The number of its levels, at least as many as hold files.
    pub num_levels: usize,
}

/// How to open a database's files.
#[derive(Debug, Clone)]
pub struct RecoverOptions {
    /// The families to open; `default` must be among them.
    pub families: Vec<FamilySpec>,
    /// Nothing will be written: families that are not asked for may stay closed.
    pub read_only: bool,
    /// Of the MANIFEST writer.
    pub settings: ManifestSettings,
}

/// A column family as the MANIFEST knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyListing {
    /// Its number.
    pub id: ColumnFamilyId,
    /// Its name.
    pub name: String,
    /// The name of its comparator, if stored.
    pub comparator: Option<String>,
}

/// The path of the MANIFEST that CURRENT names.
///
/// # Errors
/// `IoError` (subcode `PathNotFound` if there is no database), `Corruption` if CURRENT is malformed.
pub fn read_current(_fs: &dyn FileSystem, _directory: &Path) -> Result<PathBuf> {
    todo!()
}

/// The column families of a database, by id.
///
/// # Errors
/// `IoError`, `Corruption`.
pub fn list_column_families(_env: &Env, _directory: &Path) -> Result<Vec<FamilyListing>> {
    todo!()
}

/// Checks that every table and blob file of the open families exists, tables with exactly the recorded size.
///
/// # Errors
/// `Corruption` naming the first file that is missing or has another size; `IoError`.
pub fn check_files(_versions: &VersionSet) -> Result<()> {
    todo!()
}
