//! The calls whose failure no caller has to hear of, and why.

use flagstone::base::file_name::FileKind;

use crate::fault::{Call, Failure, Injection, Sort, sort_of};

/// Why a failure may be passed over in silence; `None` where a caller must hear of it.
pub fn reason(failure: &Failure) -> Option<&'static str> {
    let sort = sort_of(&failure.path);
    let name = failure.path.file_name().unwrap_or_default().to_string_lossy();
    if FileKind::parse(&name) == Some(FileKind::InfoLog) {
        return Some("a log that cannot be written is given up");
    }
    let is_of_worker =
        failure.path.components().any(|part| part.as_os_str() == "remote_compactions");
    match failure.call {
        Call::List | Call::RemoveDirectory if is_of_worker => {
            return Some("what a worker leaves is removed when the database is opened next");
        }
        Call::Move if is_of_worker => return Some("what cannot be moved is copied"),
        _ => {}
    }
    match (failure.call, sort) {
        (Call::Remove, _) => {
            Some("what is not removed is tried again, at the latest when the database is opened")
        }
        (Call::Truncate, Sort::Wal) => Some(
            "space that a WAL does not use is given back when it is removed; records end where they end",
        ),
        (Call::Allocate, Sort::Wal) if failure.injection == Injection::NoSpace => {
            Some("a WAL reserves what there is room for; whether the disk is full, the write says")
        }
        (Call::Allocate, Sort::Table | Sort::Blob) => {
            Some("space is reserved ahead for speed; whether the disk is full, the write says")
        }
        (Call::Punch | Call::Update | Call::Metadata, Sort::Blob) => {
            Some("a blob file in which no holes can be punched is emptied")
        }
        (Call::Metadata, Sort::Manifest) => Some(
            "an opening for reading that does not know whether the MANIFEST has grown looks again",
        ),
        (Call::Populate, _) => {
            Some("what cannot be written to a mapping is written by calls, and those are heard")
        }
        (Call::Link, _) => Some("what cannot be linked is copied"),
        (Call::Move, Sort::Wal) => {
            Some("a WAL that cannot be archived waits for the next, or the next open")
        }
        (Call::CreateDirectory, _) if failure.path.ends_with("archive") => {
            Some("a WAL that cannot be archived waits for the next, or the next open")
        }
        (
            Call::Create | Call::Write | Call::Truncate | Call::Sync | Call::Rename,
            Sort::Table | Sort::Blob | Sort::Manifest | Sort::Temporary,
        )
        | (Call::SyncDirectory, _)
            if failure.injection == Injection::NoSpace =>
        {
            Some("a compaction that finds no room is tried again")
        }
        (Call::Read, Sort::Blob) if failure.injection == Injection::Io => Some(
            "what cannot be read ahead for a scan is read by itself, and what that says is heard",
        ),
        (Call::Read, _) if failure.injection == Injection::Short => {
            Some("what a read that stops short has left out is read again")
        }
        _ => None,
    }
}
