//! The names of the files in a database directory.

use std::path::{Path, PathBuf};

use super::ids::FileNumber;

/// What a file in a database directory is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `NNNNNN.log`
    Wal(FileNumber),
    /// `NNNNNN.sst` or `NNNNNN.ldb`
    Table(FileNumber),
    /// `NNNNNN.blob`
    Blob(FileNumber),
    /// `MANIFEST-NNNNNN`
    Manifest(FileNumber),
    /// `OPTIONS-NNNNNN`
    Options(FileNumber),
    /// `NNNNNN.dbtmp` or `OPTIONS-NNNNNN.dbtmp`
    Temporary(FileNumber),
    /// `NNNNNN.sst.trash` and so on, perhaps with digits before the last dot: a file that waits to
    /// be removed
    Trash(FileNumber),
    /// `CURRENT`
    Current,
    /// `IDENTITY`
    Identity,
    /// `LOCK`
    Lock,
    /// `LOG`, `LOG.old.N`, or LevelDB's `LOG.old`
    InfoLog,
    /// `RESERVE`: space that is kept for compactions; its bytes mean nothing
    Reserve,
    /// `OWNER`: in a directory of `wal_dir`, `db_paths` or `cf_paths`, which database has it
    Owner,
    /// `FOLLOWER`: in a follower's directory, whose tables and blob files it has
    Follower,
    /// `FIGURES`: what the process that has the database open says it does
    Figures,
}

impl FileKind {
    /// The kind of the file called `name`; `None` for names that are not the engine's, which it
    /// leaves alone.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "CURRENT" => return Some(Self::Current),
            "IDENTITY" => return Some(Self::Identity),
            "LOCK" => return Some(Self::Lock),
            "LOG" | "LOG.old" => return Some(Self::InfoLog),
            "RESERVE" => return Some(Self::Reserve),
            "OWNER" => return Some(Self::Owner),
            "FOLLOWER" => return Some(Self::Follower),
            "FIGURES" => return Some(Self::Figures),
            _ => {}
        }
        if name.starts_with("LOG.old.") {
            return Some(Self::InfoLog);
        }
        if let Some(rest) = name.strip_prefix("MANIFEST-") {
            return number(rest).map(Self::Manifest);
        }
        if let Some(rest) = name.strip_prefix("OPTIONS-") {
            return match rest.strip_suffix(".dbtmp") {
                Some(digits) => number(digits).map(Self::Temporary),
                None => number(rest).map(Self::Options),
            };
        }
        let (digits, extension) = name.split_once('.')?;
        let number = number(digits)?;
        match extension {
            "log" => Some(Self::Wal(number)),
            "sst" | "ldb" => Some(Self::Table(number)),
            "blob" => Some(Self::Blob(number)),
            "dbtmp" => Some(Self::Temporary(number)),
            _ => {
                let former =
                    extension.strip_suffix(TRASH)?.trim_end_matches(|c: char| c.is_ascii_digit());
                matches!(former, "log" | "sst" | "ldb" | "blob").then_some(Self::Trash(number))
            }
        }
    }

    /// The number in the name, if it has one.
    pub fn number(self) -> Option<FileNumber> {
        match self {
            Self::Wal(n)
            | Self::Table(n)
            | Self::Blob(n)
            | Self::Manifest(n)
            | Self::Options(n)
            | Self::Temporary(n)
            | Self::Trash(n) => Some(n),
            Self::Current
            | Self::Identity
            | Self::Lock
            | Self::InfoLog
            | Self::Reserve
            | Self::Owner
            | Self::Follower
            | Self::Figures => None,
        }
    }
}

fn number(digits: &str) -> Option<FileNumber> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(FileNumber)
}

/// Ends the name of a file that waits to be removed.
const TRASH: &str = ".trash";

/// The name under which a file waits to be removed, the `number`-th that is tried.
pub fn trash(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    if number > 0 {
        name.push(number.to_string());
    }
    name.push(TRASH);
    PathBuf::from(name)
}

/// `NNNNNN.log` in `directory`.
pub fn wal(directory: &Path, number: FileNumber) -> PathBuf {
    directory.join(format!("{number}.log"))
}

/// The directory of WALs that are kept though no family needs them, in the WALs' own.
pub fn archive(wals: &Path) -> PathBuf {
    wals.join("archive")
}

/// The directory in which workers of a compaction service write, unless told otherwise: one
/// directory a job, named by 32 digits.
pub fn remote_compactions(database: &Path) -> PathBuf {
    database.join("remote_compactions")
}

/// `FIGURES` in `directory`.
pub fn figures(directory: &Path) -> PathBuf {
    directory.join("FIGURES")
}

/// `NNNNNN.sst` in `directory`.
pub fn table(directory: &Path, number: FileNumber) -> PathBuf {
    directory.join(format!("{number}.sst"))
}

/// `NNNNNN.blob` in `directory`.
pub fn blob(directory: &Path, number: FileNumber) -> PathBuf {
    directory.join(format!("{number}.blob"))
}

/// `MANIFEST-NNNNNN` in `directory`.
pub fn manifest(directory: &Path, number: FileNumber) -> PathBuf {
    directory.join(format!("MANIFEST-{number}"))
}

/// `OPTIONS-NNNNNN` in `directory`.
pub fn options(directory: &Path, number: FileNumber) -> PathBuf {
    directory.join(format!("OPTIONS-{number}"))
}

/// `NNNNNN.dbtmp` in `directory`.
pub fn temporary(directory: &Path, number: FileNumber) -> PathBuf {
    directory.join(format!("{number}.dbtmp"))
}

/// `CURRENT` in `directory`.
pub fn current(directory: &Path) -> PathBuf {
    directory.join("CURRENT")
}

/// `IDENTITY` in `directory`.
pub fn identity(directory: &Path) -> PathBuf {
    directory.join("IDENTITY")
}

/// `LOCK` in `directory`.
pub fn lock(directory: &Path) -> PathBuf {
    directory.join("LOCK")
}

/// `RESERVE` in `directory`.
pub fn reserve(directory: &Path) -> PathBuf {
    directory.join("RESERVE")
}

/// `OWNER` in `directory`.
pub fn owner(directory: &Path) -> PathBuf {
    directory.join("OWNER")
}

/// `FOLLOWER` in `directory`.
pub fn follower(directory: &Path) -> PathBuf {
    directory.join("FOLLOWER")
}

#[cfg(test)]
mod tests;
