//! Whose a directory of `wal_dir`, `db_paths` or `cf_paths` is: a file OWNER in it says so. A copy
//! of a database, such as a checkpoint, that is opened with the original's options would otherwise
//! take the original's files for what a crash has left, and remove them.
//!
//! ```text
//! OWNER  = owner, owner's id, IDENTITY of the owner, directory, directory's id: fields that end with a zero byte
//! owner, directory = absolute paths, of the database's directory and of that which the file is in
//! id     = device, ':', number there; '-' where the file system has none
//! ```
//!
//! It holds against whoever is not the owner, by path, by id, or by where the owner's path leads,
//! as long as
//! - it is where it was written: what was copied along with a database is the copy's;
//! - the owner is where it was, with the same IDENTITY: what is left of a database that is gone, or
//!   was moved, is for the next. A copy has the same IDENTITY as its original, so that this alone
//!   does not tell them apart.
//!
//! It is written by the first opening for writing, and again by one that finds it outdated; where
//! the directory takes no file just then, the database is opened all the same. RocksDB does not
//! know the name and leaves the file alone. What is not such a file is somebody else's: it says
//! nothing, and stays.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::base::{Error, FileNumber, Remedy, Result, file_name};
use crate::db::tree::directories::{id_of, is_database, is_own};
use crate::env::{FileSystem, Names, read_file};
use crate::manifest::identity_of;

/// More than two paths have.
const SIZE_MAX: u64 = 64 << 10;

/// A directory, by the names under which it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    id: Option<(u64, u64)>,
}

/// What has the name OWNER in a directory.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Owner(Owner),
    /// A file of somebody else, or a directory.
    Strange,
}

#[derive(Debug, PartialEq, Eq)]
struct Owner {
    database: Place,
    identity: Option<String>,
    /// What the file is in.
    directory: Place,
}

/// The directory of another database that `directory`, of its `wal_dir`, `db_paths` or `cf_paths`,
/// belongs to; `None` if it is nobody's, or that of the database in `path`.
///
/// # Errors
/// `IoError`.
pub fn another_owner(
    fs: &dyn FileSystem,
    path: &Path,
    directory: &Path,
) -> Result<Option<PathBuf>> {
    let Found::Owner(owner) = Owner::read(fs, directory)? else { return Ok(None) };
    // By what its name leads to now: it may have been moved to another disk, with a link in its
    // place.
    let is_elsewhere =
        || Ok(!is_own(fs, path, &owner.database.path)? && owner.is_where_it_was(fs)?);
    let holds = !owner.database.is(&Place::of(fs, path)?)
        && owner.directory.is(&Place::of(fs, directory)?)
        && is_elsewhere().map_err(|error| unreachable_owner(error, directory))?;
    Ok(holds.then_some(owner.database.path))
}

/// Whether that database is still there, nobody knows.
fn unreachable_owner(error: Error, directory: &Path) -> Error {
    let owner = file_name::owner(directory);
    let named =
        format!("cannot find out whether the database named in {} still exists", owner.display());
    error.context(named).advise(Remedy::RemoveOwner)
}

/// Refuses a directory that is another database's than that in `path`.
///
/// # Errors
/// `InvalidArgument`; `IoError`.
pub(in crate::db) fn check_owner(fs: &dyn FileSystem, path: &Path, directory: &Path) -> Result<()> {
    let Some(owner) = another_owner(fs, path, directory)? else { return Ok(()) };
    let message = format!(
        "the directory belongs to another database, {}, which has it in its wal_dir, db_paths or cf_paths; open a copy, such \
         as a checkpoint, without these options; if that database no longer uses the directory, remove this file",
        owner.display()
    );
    Err(Error::invalid_argument(message).at(file_name::owner(directory)))
}

/// From now on it is that of the database in `path`, unless somebody else has a file of that name
/// there. The number is that of the file under its temporary name.
///
/// # Errors
/// `IoError`.
pub(in crate::db) fn take_directory(
    names: &Names,
    path: &Path,
    directory: &Path,
    number: impl FnOnce() -> FileNumber,
) -> Result<()> {
    let fs = names.fs();
    let owner = Owner {
        database: Place::of(fs, path)?,
        identity: identity_of(fs, path)?,
        directory: Place::of(fs, directory)?,
    };
    match Owner::read(fs, directory)? {
        Found::Strange => {
            let file = file_name::owner(directory);
            tracing::warn!(
                file = %file.display(),
                "cannot record which database owns the directory because another program's file has that name; a copy might be \
                 opened with it"
            );
            return Ok(());
        }
        Found::Owner(known) if known == owner => return Ok(()),
        Found::Owner(_) | Found::Nothing => {}
    }
    let temporary = file_name::temporary(directory, number());
    names.replace_file(&temporary, &file_name::owner(directory), &owner.encoded())
}

impl Place {
    fn of(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        let absolute =
            std::path::absolute(path).map_err(|error| Error::io("resolve", path, error))?;
        Ok(Self { path: absolute, id: id_of(fs, path)? })
    }

    /// Devices get other numbers, and directories other names.
    fn is(&self, other: &Self) -> bool {
        self.path == other.path || self.id.is_some() && self.id == other.id
    }
}

impl Owner {
    fn is_where_it_was(&self, fs: &dyn FileSystem) -> Result<bool> {
        let path = &self.database.path;
        if !is_database(fs, path)? {
            return Ok(false);
        }
        // One that has lost the file may still be the same.
        let found = identity_of(fs, path)?;
        Ok(self.identity.as_ref().zip(found.as_ref()).is_none_or(|(known, found)| known == found))
    }

    fn read(fs: &dyn FileSystem, directory: &Path) -> Result<Found> {
        let path = file_name::owner(directory);
        match fs.metadata(&path) {
            Err(error) if error.is_not_found() => return Ok(Found::Nothing),
            Err(error) => return Err(error),
            Ok(found) if found.is_directory || found.size > SIZE_MAX => return Ok(Found::Strange),
            Ok(_) => {}
        }
        match read_file(fs, &path, SIZE_MAX) {
            Ok(bytes) => Ok(Self::decoded(&bytes).map_or(Found::Strange, Found::Owner)),
            Err(error) if error.is_not_found() => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    fn encoded(&self) -> Vec<u8> {
        let identity = self.identity.clone().unwrap_or_default().into_bytes();
        let ([database, its_id], [directory, id]) =
            (self.database.encoded(), self.directory.encoded());
        let fields = [database, its_id, identity, directory, id];
        fields.into_iter().flat_map(|field| [field, vec![0]].concat()).collect()
    }

    fn decoded(bytes: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
        let [database, its_id, identity, directory, id] = fields[..] else { return None };
        let identity = str::from_utf8(identity).ok()?.to_string();
        Some(Self {
            database: Place::decoded(database, its_id)?,
            identity: Some(identity).filter(|identity| !identity.is_empty()),
            directory: Place::decoded(directory, id)?,
        })
    }
}

impl Place {
    fn encoded(&self) -> [Vec<u8>; 2] {
        let id = self.id.map_or("-".to_string(), |(device, number)| format!("{device}:{number}"));
        [self.path.as_os_str().as_bytes().to_vec(), id.into_bytes()]
    }

    fn decoded(path: &[u8], id: &[u8]) -> Option<Self> {
        let id = match str::from_utf8(id).ok()? {
            "-" => None,
            text => {
                let (device, number) = text.split_once(':')?;
                Some((device.parse().ok()?, number.parse().ok()?))
            }
        };
        let path = PathBuf::from(OsStr::from_bytes(path));
        path.is_absolute().then_some(Self { path, id })
    }
}

#[cfg(test)]
mod tests;
