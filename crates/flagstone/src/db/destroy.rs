//! Removing a database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::base::Result;
use crate::base::file_name::{self, FileKind};
use crate::db::jobs::remote::remove_outputs;
use crate::db::tree::directory_owner::another_owner;
use crate::env::{FileSystem, remove_if_there};
use crate::options::{ColumnFamilyOptions, Options};

/// Removes the files of the database in `path` (RocksDB's `DestroyDB`), also those in the
/// directories that `options` and `families` name, and the directories that are empty then. Files
/// whose names are not the engine's stay, and so do directories that another database owns. There
/// need be no database.
///
/// # Errors
/// `Busy` if the database is open; `IoError`: some files may be gone then.
pub fn destroy(
    path: impl AsRef<Path>,
    options: &Options,
    families: &[&ColumnFamilyOptions],
) -> Result<()> {
    let (path, fs) = (path.as_ref(), &*options.env.fs);
    if let Err(error) = fs.metadata(path) {
        return if error.is_not_found() { Ok(()) } else { Err(error) };
    }
    let lock_file = file_name::lock(path);
    let lock = fs.lock(&lock_file)?;
    for directory in directories_elsewhere(path, options, families) {
        if fs.metadata(&directory).is_ok() && another_owner(fs, path, &directory)?.is_none() {
            remove_files(fs, &directory)?;
            remove_if_empty(fs, &directory);
        }
    }
    // CURRENT first: without it, what is left after a crash is no database.
    remove_if_there(fs, &file_name::current(path))?;
    remove_files(fs, path)?;
    remove_outputs(fs, path)?;
    drop(lock);
    remove_if_there(fs, &lock_file)?;
    remove_if_empty(fs, path);
    Ok(())
}

/// The directories of files other than `path`, and the archives of WALs before those that they lie
/// in.
fn directories_elsewhere(
    path: &Path,
    options: &Options,
    families: &[&ColumnFamilyOptions],
) -> Vec<PathBuf> {
    let mut wals = vec![path.to_path_buf()];
    if !options.db.wal_dir.is_empty() {
        wals.push(PathBuf::from(&options.db.wal_dir));
    }
    let lists = families.iter().map(|family| &family.settings.cf_paths);
    let lists = lists.chain([&options.db.db_paths, &options.cf.settings.cf_paths]);
    let data: BTreeSet<PathBuf> =
        lists.flat_map(|list| list.directories()).map(|(directory, _)| directory).collect();
    let archives: Vec<PathBuf> = wals.iter().map(|wals| file_name::archive(wals)).collect();
    let mut all = archives;
    all.extend(wals.into_iter().chain(data).filter(|directory| directory != path));
    all
}

fn remove_files(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    for name in fs.list(directory)? {
        let is_own = FileKind::parse(&name).is_some_and(|kind| kind != FileKind::Lock);
        if is_own {
            remove_if_there(fs, &directory.join(name))?;
        }
    }
    Ok(())
}

/// One in which other files lie stays.
fn remove_if_empty(fs: &dyn FileSystem, directory: &Path) {
    let _ = fs.remove_directory(directory);
}

#[cfg(test)]
mod tests;
