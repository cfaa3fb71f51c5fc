//! What a file is that somebody named, by its name.

use std::path::Path;

use flagstone::base::file_name::FileKind;
use flagstone::base::{Error, Remedy};

/// What the name says.
pub fn of(path: &Path) -> Option<FileKind> {
    path.file_name()?.to_str().and_then(FileKind::parse)
}

/// That a file is not what a command is for, where neither its name nor its bytes say so; it need
/// not be damaged.
pub fn mistaken(path: &Path, wanted: &str, expected: &str) -> Error {
    let error = Error::invalid_argument(format!(
        "this is not a {wanted}, or it has lost its mark: {expected}"
    ));
    let command = match of(path) {
        Some(FileKind::Table(_)) => "flagstone sst",
        Some(FileKind::Blob(_)) => "flagstone blob",
        Some(FileKind::Wal(_)) => "flagstone wal",
        Some(FileKind::Manifest(_)) => "flagstone manifest",
        _ => return error.at(path),
    };
    error.advise(Remedy::ShowByKind { command }).at(path)
}
