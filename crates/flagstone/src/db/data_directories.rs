//! The directories that hold tables and blob files (`db_paths`, `cf_paths`).
//!
//! All are made, and durable, before the MANIFEST names a file in them. A file that no version has is removed wherever it lies,
//! so none of them may belong to another database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::DbInner;
use crate::base::file_name::{self, FileKind};
use crate::base::{DataPaths, Error, Result};
use crate::env::{FileSystem, Names};
use crate::manifest::identity_of;

impl DbInner {
    /// The files in the database's directory and in those of its families that have the engine's names.
    pub(super) fn data_files(&self) -> Result<Vec<(PathBuf, FileKind)>> {
        let families = self.families.read().values().cloned().collect::<Vec<_>>();
        let mut directories = BTreeSet::from([Arc::from(self.path.as_path())]);
        directories.extend(families.iter().flat_map(|family| family.paths.directories()).cloned());
        let mut files = Vec::new();
        for directory in directories {
            let names = match self.env.fs.list(&directory) {
                // A read-only open makes none; what should be in it is missed by its name.
                Err(error) if error.is_not_found() && self.read_only => continue,
                listed => listed?,
            };
            let known = names.iter().filter_map(|name| Some((directory.join(name), FileKind::parse(name)?)));
            files.extend(known);
        }
        Ok(files)
    }

    /// As [`make_data_directories`], for a family of this database.
    pub(super) fn make_data_directories(&self, paths: &DataPaths) -> Result<()> {
        make_data_directories(&self.names, &self.path, paths)
    }
}

/// Makes the directories of a family of the database `path` that are not there.
///
/// # Errors
/// `InvalidArgument` if one is another database's; `IoError`.
pub(super) fn make_data_directories(names: &Names, path: &Path, paths: &DataPaths) -> Result<()> {
    let fs = names.fs();
    for directory in paths.directories().iter().filter(|directory| directory.as_ref() != path) {
        match fs.list(directory) {
            Ok(listed) => {
                check_owner(fs, path, directory)?;
                // Whoever put a file there had made the directory durable.
                if listed.iter().any(|name| FileKind::parse(name).is_some()) {
                    continue;
                }
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        names.create_directory(directory)?;
    }
    Ok(())
}

/// Its tables would be removed as what a crash has left.
fn check_owner(fs: &dyn FileSystem, path: &Path, directory: &Path) -> Result<()> {
    let is_database = match fs.metadata(&file_name::current(directory)) {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(error),
    };
    // The database's own directory may be called by another name.
    if is_database && identity_of(fs, path)? != identity_of(fs, directory)? {
        let message =
            "the directory is named in db_paths or cf_paths, but it is another database: name one of its own";
        return Err(Error::invalid_argument(message).at(directory));
    }
    Ok(())
}
