//! Telling the files of open databases from others, for programs that walk directories.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, Result};
use crate::db::DbInner;
use crate::env::{Directories, FileSystem, Listed, directory_of, list_database, open_databases};

/// The files of all databases that this process has open, read-only ones included.
///
/// A file is known by its identity, whatever its path: through a hard link, a symbolic link or a
/// bind mount, and wherever `wal_dir`, `db_paths` and `cf_paths` put it. A program that copies or
/// stores the files of a directory leaves these out, since the database changes and removes them
/// meanwhile.
#[derive(Debug, Default)]
pub struct OpenFiles {
    directories: HashSet<Identity>,
    files: HashSet<Identity>,
}

/// By device and number; by path where the file system has no numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    Number(u64, u64),
    Path(PathBuf),
}

impl Identity {
    /// # Errors
    /// `IoError`, with subcode `PathNotFound` if there is no such thing.
    fn of(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        let id = fs.metadata(path)?.id;
        Ok(id.map_or_else(
            || Self::Path(path.to_path_buf()),
            |(device, number)| Self::Number(device, number),
        ))
    }
}

impl OpenFiles {
    /// Lists the directories of all databases that are open now.
    ///
    /// # Errors
    /// `IoError`.
    pub fn of_this_process() -> Result<Self> {
        let mut open = Self::default();
        for Directories { fs, paths } in open_databases() {
            paths.iter().try_for_each(|directory| open.add(&*fs, directory))?;
        }
        Ok(open)
    }

    fn add(&mut self, fs: &dyn FileSystem, directory: &Path) -> Result<()> {
        let Some(id) = there(Identity::of(fs, directory))? else { return Ok(()) };
        self.directories.insert(id);
        for name in there(fs.list(directory))?.unwrap_or_default() {
            if FileKind::parse(&name).is_some() {
                // Background work may remove it meanwhile.
                self.files.extend(there(Identity::of(fs, &directory.join(name)))?);
            }
        }
        Ok(())
    }

    /// Whether the file at `path` is one of them. A file that a database has made since then is
    /// recognized by its name and its directory, and not by another name.
    pub fn contains(&self, fs: &dyn FileSystem, path: &Path) -> bool {
        if Identity::of(fs, path).is_ok_and(|id| self.files.contains(&id)) {
            return true;
        }
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(FileKind::parse).is_some() && self.has_directory_of(fs, path)
    }

    /// Whether the file at `path` lies in a directory of one of the databases, which a hard link to
    /// their files need not.
    pub fn has_directory_of(&self, fs: &dyn FileSystem, path: &Path) -> bool {
        Identity::of(fs, &directory_of(path)).is_ok_and(|id| self.directories.contains(&id))
    }
}

/// `None` for what is not there.
fn there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if Error::is_not_found(&error) => Ok(None),
        found => found.map(Some),
    }
}

/// Lists the database among those that this process has open.
pub(in crate::db) fn list_as_open(db: &Arc<DbInner>) {
    let inner: Weak<DbInner> = Arc::downgrade(db);
    let listed = list_database(move || inner.upgrade().map(|inner| directories(&inner)));
    *db.lifecycle.listed.lock() = Some(listed);
}

fn directories(db: &DbInner) -> Directories {
    let mut paths = vec![
        db.context.path.clone(),
        db.context.wal_directory.clone(),
        file_name::archive(&db.context.wal_directory),
    ];
    let families = db.tree.families.read();
    paths.extend(
        families
            .values()
            .flat_map(|family| family.paths.directories())
            .map(|path| path.to_path_buf()),
    );
    paths.sort();
    paths.dedup();
    Directories { fs: db.context.env.fs.clone(), paths }
}

/// Takes the database from that list.
pub(in crate::db) fn unlist(db: &DbInner) {
    let listed: Option<Listed> = db.lifecycle.listed.lock().take();
    drop(listed);
}
