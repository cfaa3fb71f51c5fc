//! The names in a directory of backups.
//!
//! ```text
//! LOCK                                              held by an engine that writes
//! meta/<id>                                         what the backup consists of
//! meta/.<id>.tmp                                    a meta file that is not complete
//! private/<id>/<name>                               a file that only this backup has
//! shared/<name>                                     a table or blob file, by its number alone
//! shared_checksum/<number>_s<session>_<size>.sst    a table, by the session that wrote it
//! shared_checksum/<number>_<crc32c>_<size>.<kind>   a table or blob file, by its checksum
//! shared_checksum/.<anything>.tmp                   a file that is not complete
//! ```
//!
//! `_<size>` may be missing behind a session. Numbers are decimal.

use std::path::{Path, PathBuf};

use crate::base::file_name::FileKind;
use crate::base::{Error, Result};

use super::options::BackupId;

pub(super) const META: &str = "meta";
pub(super) const PRIVATE: &str = "private";
pub(super) const SHARED: &str = "shared";
pub(super) const SHARED_CHECKSUM: &str = "shared_checksum";

/// Where a meta file says that a file of its backup lies, relative to the directory of backups.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BackupPath(String);

/// What a [`BackupPath`] begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Private(BackupId),
    Shared,
    SharedChecksum,
}

impl BackupPath {
    /// The path that a meta file names.
    ///
    /// # Errors
    /// `Corruption` if it is not of a form that is described above, or if the file has no name of
    /// a database's file.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let path = Self(text.to_string());
        let is_known = path.place().is_some() && path.kind().is_some();
        if is_known {
            Ok(path)
        } else {
            Err(Error::corruption(format!("no path of a backup's file: {text:?}")))
        }
    }

    pub(super) fn private(id: BackupId, name: &str) -> Self {
        Self(format!("{PRIVATE}/{id}/{name}"))
    }

    pub(super) fn shared(name: &str) -> Self {
        Self(format!("{SHARED}/{name}"))
    }

    pub(super) fn by_session(name: &str, session: &str, size: Option<u64>) -> Self {
        let (number, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let size = size.map(|size| format!("_{size}")).unwrap_or_default();
        Self(format!("{SHARED_CHECKSUM}/{number}_s{session}{size}.{extension}"))
    }

    pub(super) fn by_checksum(name: &str, crc32c: u32, size: u64) -> Self {
        let (number, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        Self(format!("{SHARED_CHECKSUM}/{number}_{crc32c}_{size}.{extension}"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn within(&self, directory: &Path) -> PathBuf {
        directory.join(&self.0)
    }

    fn place(&self) -> Option<Place> {
        let (directory, name) = self.0.rsplit_once('/')?;
        // One name, and no way out of the directory: a database's files have no such names.
        if name.is_empty() || name.starts_with('.') {
            return None;
        }
        match directory.split_once('/') {
            None if directory == SHARED => Some(Place::Shared),
            None if directory == SHARED_CHECKSUM => Some(Place::SharedChecksum),
            Some((PRIVATE, id)) => parse_id(id).map(Place::Private),
            _ => None,
        }
    }

    /// Whether other backups may have the file, too.
    pub(super) fn is_shared(&self) -> bool {
        !matches!(self.place(), Some(Place::Private(_)))
    }

    /// Whether it is shared, or private to this backup.
    pub(super) fn may_belong_to(&self, id: BackupId) -> bool {
        match self.place() {
            Some(Place::Private(owner)) => owner == id,
            Some(Place::Shared | Place::SharedChecksum) => true,
            None => false,
        }
    }

    /// The file's name in a database directory.
    pub(super) fn database_name(&self) -> String {
        let name = self.0.rsplit('/').next().unwrap_or_default();
        let parts = (name.split_once('_'), name.rsplit_once('.'));
        match (self.place(), parts) {
            (Some(Place::SharedChecksum), (Some((number, _)), Some((_, extension)))) => {
                format!("{number}.{extension}")
            }
            _ => name.to_string(),
        }
    }

    /// What the file is in a database directory.
    pub(super) fn kind(&self) -> Option<FileKind> {
        FileKind::parse(&self.database_name())
    }

    /// The size that the name tells.
    pub(super) fn named_size(&self) -> Option<u64> {
        if self.place() != Some(Place::SharedChecksum) {
            return None;
        }
        let (stem, _) = self.0.rsplit_once('.')?;
        let mut parts = stem.rsplit('_');
        let last = parts.next()?;
        // Of `000012_sSESSION` the last part is no size, even if it has only digits.
        parts.next().filter(|part| !part.contains('/')).and_then(|_| decimal(last))
    }
}

/// The number of a backup in the name of a file or directory.
pub(super) fn parse_id(name: &str) -> Option<BackupId> {
    let id = decimal(name).and_then(|id| BackupId::try_from(id).ok()).filter(|id| *id > 0)?;
    (id.to_string() == name).then_some(id)
}

/// Decimal digits alone.
pub(super) fn decimal(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Whether a name in a directory of shared files is of a file that an engine may have put there.
pub(super) fn is_of_shared_file(directory: &str, name: &str) -> bool {
    is_temporary(name) || BackupPath::parse(&format!("{directory}/{name}")).is_ok()
}

/// Whether a name is of a file that was not complete when its writer stopped.
pub(super) fn is_temporary(name: &str) -> bool {
    name.len() > ".tmp".len() && name.starts_with('.') && name.ends_with(".tmp")
}
