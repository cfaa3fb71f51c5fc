//! The directory of a follower: a file FOLLOWER in it says whose tables and blob files it has.
//!
//! ```text
//! FOLLOWER = leader, identity: fields that end with a zero byte
//! leader   = absolute path of the leader's directory
//! identity = the leader's IDENTITY; empty if it has none
//! ```
//!
//! A follower removes tables and blob files that it no longer needs. So it takes a directory only
//! if that has this file, or nothing that is a database's. It refuses one that has the files of a
//! leader with another IDENTITY. One follower at a time has the directory: it holds the LOCK there.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::base::file_name::FileKind;
use crate::base::{Error, FileNumber, Result, file_name};
use crate::db::tree::directories::{exists, is_own};
use crate::env::{FileLock, FileSystem, Names, read_file};
use crate::options::Options;

/// More than a path and an identity have.
const SIZE_MAX: u64 = 64 << 10;

/// FOLLOWER is written under this temporary name; no table or blob file has the number.
const FOLLOWER_TEMPORARY: FileNumber = FileNumber(0);

/// A follower's directory, locked.
pub(super) struct Directory {
    pub(super) path: PathBuf,
    names: Names,
    _lock: Box<dyn FileLock>,
}

impl Directory {
    /// Makes the directory if it is not there, and locks it.
    ///
    /// # Errors
    /// `InvalidArgument` if it has files of a database that no follower has put there, or is the
    /// `leader`'s. `Busy` if another follower has it. `IoError`.
    pub(super) fn take(path: &Path, leader: &Path, options: &Options) -> Result<Self> {
        let names = Names::new(options.env.fs.clone());
        names.create_directory(path)?;
        let fs = names.fs();
        if is_own(fs, leader, path)? {
            let message = "a follower needs a directory of its own, not the leader's";
            return Err(Error::invalid_argument(message).at(path));
        }
        check_strange_files(fs, path)?;
        let lock = fs.lock(&file_name::lock(path))?;
        Ok(Self { path: path.to_path_buf(), names, _lock: lock })
    }

    /// Records that the directory has files of the database in `leader`.
    ///
    /// # Errors
    /// `InvalidArgument` if it has those of a database with another identity; `IoError`.
    pub(super) fn follow(&self, leader: &Path, identity: Option<&str>) -> Result<()> {
        let absolute =
            std::path::absolute(leader).map_err(|error| Error::io("resolve", leader, error))?;
        let identity = identity.unwrap_or_default();
        let file = file_name::follower(&self.path);
        let known = Known::read(self.names.fs(), &file)?;
        if let Some(known) = &known
            && known.identity != identity
        {
            let message = format!(
                "the directory has files of {}, a database with the identity '{}'; that in {} has '{identity}': give the \
                 follower another directory, or empty this one",
                known.leader.display(),
                known.identity,
                absolute.display()
            );
            return Err(Error::invalid_argument(message).at(file));
        }
        if known.is_some_and(|known| known.leader == absolute) {
            return Ok(());
        }
        let fields = [absolute.as_os_str().as_bytes(), identity.as_bytes()];
        let contents: Vec<u8> =
            fields.into_iter().flat_map(|field| [field, b"\0"].concat()).collect();
        let temporary = file_name::temporary(&self.path, FOLLOWER_TEMPORARY);
        self.names.replace_file(&temporary, &file, &contents)
    }
}

/// Refuses the directory of a follower, which is no database.
///
/// # Errors
/// `InvalidArgument`; `IoError`; `Corruption` if FOLLOWER cannot be understood.
pub fn check_no_follower(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    let file = file_name::follower(directory);
    let Some(known) = Known::read(fs, &file)? else { return Ok(()) };
    let message = format!(
        "this is the directory of a follower of {}, and no database: open that one, or follow it",
        known.leader.display()
    );
    Err(Error::invalid_argument(message).at(file))
}

/// What FOLLOWER says.
struct Known {
    leader: PathBuf,
    identity: String,
}

impl Known {
    fn read(fs: &dyn FileSystem, file: &Path) -> Result<Option<Self>> {
        if !exists(fs, file)? {
            return Ok(None);
        }
        let bytes = read_file(fs, file, SIZE_MAX)?;
        let known = Self::decoded(&bytes).ok_or_else(|| {
            let message = "the file does not say whose files the follower's directory has; \
                           give the follower another directory, or empty this one";
            Error::corruption(message).at(file)
        })?;
        Ok(Some(known))
    }

    fn decoded(bytes: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
        let [leader, identity] = fields[..] else { return None };
        let leader = PathBuf::from(std::ffi::OsStr::from_bytes(leader));
        Some(Self { leader, identity: str::from_utf8(identity).ok()?.to_string() })
    }
}

/// Refuses a directory with files that a follower would take for its own.
fn check_strange_files(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    let is_followers = exists(fs, &file_name::follower(directory))?;
    for name in fs.list(directory)? {
        let is_strange = match FileKind::parse(&name) {
            None | Some(FileKind::Lock | FileKind::InfoLog | FileKind::Follower) => false,
            // What a crash leaves of FOLLOWER.
            Some(FileKind::Temporary(FOLLOWER_TEMPORARY)) => false,
            Some(FileKind::Table(_) | FileKind::Blob(_) | FileKind::Temporary(_)) => !is_followers,
            Some(_) => true,
        };
        if is_strange {
            let message = "a follower needs a directory of its own; this file is a database's";
            return Err(Error::invalid_argument(message).at(directory.join(name)));
        }
    }
    Ok(())
}
