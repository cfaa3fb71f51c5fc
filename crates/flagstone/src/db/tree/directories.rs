//! The directories that hold tables and blob files (`db_paths`, `cf_paths`) or WALs (`wal_dir`).
//!
//! All are made, and durable, before the MANIFEST names a file in them. A file that no version has
//! is removed wherever it lies, so none of them may belong to another database (`directory_owner`).
//! Nor may a copy, whose files all lie in its own directory, be opened with those of the original:
//! it would take that one's files for its own, and remove those that it does not know.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::{DataPaths, Error, FileNumber, Result, SubCode};
use crate::db::tree::{Tree, directory_owner};
use crate::env::{self, FileSystem, Names};
use crate::manifest::VersionSet;

/// The files in the database's directory and in those of its families that have the engine's
/// names.
pub(in crate::db) fn data_files(tree: &Tree) -> Result<Vec<(PathBuf, FileKind)>> {
    let families = tree.families.read().values().cloned().collect::<Vec<_>>();
    let mut directories = BTreeSet::from([Arc::from(tree.context.path.as_path())]);
    directories.extend(families.iter().flat_map(|family| family.paths.directories()).cloned());
    let mut files = Vec::new();
    for directory in directories {
        let names = match tree.context.env.fs.list(&directory) {
            // A read-only open makes none; what should be in it is missed by its name.
            Err(error) if error.is_not_found() && tree.context.read_only => continue,
            listed => listed?,
        };
        let known =
            names.iter().filter_map(|name| Some((directory.join(name), FileKind::parse(name)?)));
        files.extend(known);
    }
    Ok(files)
}

/// Makes the directories of a new family that are not there.
pub(in crate::db) fn make_data_directories(tree: &Tree, paths: &DataPaths) -> Result<()> {
    for directory in
        paths.directories().iter().filter(|directory| ***directory != *tree.context.path)
    {
        check_directory(&*tree.context.env.fs, &tree.context.path, directory)?;
        make_directory(&tree.context.names, directory)?;
        // A number of its own: others may create families at the same time.
        take_directory(tree, directory, || tree.file_numbers.allocate())?;
    }
    Ok(())
}

/// Refuses directories in which files cannot be written around the system's cache.
///
/// # Errors
/// `InvalidArgument` if there are some; `IoError`.
pub(in crate::db) fn check_direct_writes<'a>(
    tree: &Tree,
    directories: impl IntoIterator<Item = &'a Arc<Path>>,
) -> Result<()> {
    let mut probes = directories
        .into_iter()
        .map(|directory| file_name::temporary(directory, tree.file_numbers.allocate()));
    probes.try_for_each(|probe| env::check_direct_writes(&*tree.context.env.fs, &probe))
}

/// Says in a directory, unless it is the database's own, that it belongs to it. Where the
/// directory takes no file at the moment, it does without: what lies there can be read all the
/// same.
pub(in crate::db) fn take_directory(
    tree: &Tree,
    directory: &Path,
    number: impl FnOnce() -> FileNumber,
) -> Result<()> {
    if is_own(&*tree.context.env.fs, &tree.context.path, directory)? {
        return Ok(());
    }
    match directory_owner::take_directory(
        &tree.context.names,
        &tree.context.path,
        directory,
        number,
    ) {
        Err(error) if takes_no_file(&error) => {
            tracing::warn!(%error, "cannot record which database owns a directory; a copy might be opened with it");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Whether a file could not be written for want of space, or of the right to write there.
fn takes_no_file(error: &Error) -> bool {
    let source =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    let kind = source.map(io::Error::kind);
    error.subcode() == SubCode::NoSpace
        || matches!(kind, Some(io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied))
}

/// Makes a directory for WALs, tables or blob files, if it is not there.
///
/// # Errors
/// `IoError`.
pub(in crate::db) fn make_directory(names: &Names, directory: &Path) -> Result<()> {
    match names.fs().list(directory) {
        // Whoever put a file there had made the directory durable.
        Ok(listed) if listed.iter().any(|name| FileKind::parse(name).is_some()) => return Ok(()),
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    names.create_directory(directory)
}

/// Refuses a directory of another database than that in `path`: its files would be replayed, or
/// removed as what a crash has left.
///
/// # Errors
/// `InvalidArgument`; `IoError`.
pub(in crate::db) fn check_directory(
    fs: &dyn FileSystem,
    path: &Path,
    directory: &Path,
) -> Result<()> {
    if is_database(fs, directory)? && !is_own(fs, path, directory)? {
        let message = "the directory is named in wal_dir, db_paths or cf_paths, but holds another database; name a different one";
        return Err(Error::invalid_argument(message).at(directory));
    }
    directory_owner::check_owner(fs, path, directory)
}

/// Refuses directories of families that cannot be theirs, since their files lie in that of the
/// database.
///
/// # Errors
/// `InvalidArgument`; `IoError`.
pub(in crate::db) fn check_files_are_not_here(
    fs: &dyn FileSystem,
    path: &Path,
    versions: &VersionSet,
) -> Result<()> {
    let mut elsewhere = BTreeSet::new();
    for version in versions.families().map(|family| &family.current) {
        let mut is_here = false;
        for directory in version.paths.directories() {
            is_here |= is_own(fs, path, directory)?;
        }
        if !is_here {
            elsewhere.extend(version.files().map(|(_, file)| file.number()));
            elsewhere.extend(version.blob_files.keys());
        }
    }
    let names = if elsewhere.is_empty() { Vec::new() } else { fs.list(path)? };
    let is_named = |name: &String| match FileKind::parse(name) {
        Some(FileKind::Table(number) | FileKind::Blob(number)) => elsewhere.contains(&number),
        _ => false,
    };
    let Some(name) = names.iter().find(|name| is_named(name)) else { return Ok(()) };
    Err(Error::invalid_argument(
        "the file lies in the database's own directory, but db_paths (or cf_paths) names others: a copy, such as a checkpoint, \
         has all of its files here, and is opened without these options; if the files were moved, remove this one",
    )
    .at(path.join(name)))
}

/// Whether it is the directory of the database, by whatever name.
pub(in crate::db) fn is_own(fs: &dyn FileSystem, path: &Path, directory: &Path) -> Result<bool> {
    if directory == path {
        return Ok(true);
    }
    match (id_of(fs, path)?, id_of(fs, directory)?) {
        (Some(own), Some(other)) => Ok(own == other),
        // Its contents do not tell: a copy has the same.
        _ => Ok(false),
    }
}

/// By which a directory that is there is known, whatever its name.
pub(in crate::db) fn id_of(fs: &dyn FileSystem, directory: &Path) -> Result<Option<(u64, u64)>> {
    match fs.metadata(directory) {
        Err(error) if !error.is_not_found() => Err(error),
        found => Ok(found.ok().and_then(|found| found.id)),
    }
}

/// Whether there is a file CURRENT.
pub(in crate::db) fn is_database(fs: &dyn FileSystem, directory: &Path) -> Result<bool> {
    exists(fs, &file_name::current(directory))
}

/// Whether there is such a file or directory; not to know is an error.
pub(in crate::db) fn exists(fs: &dyn FileSystem, path: &Path) -> Result<bool> {
    match fs.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}
