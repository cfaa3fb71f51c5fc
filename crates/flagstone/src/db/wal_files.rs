//! The WALs that there are.

use std::path::PathBuf;

use crate::base::{FileNumber, file_name};
use crate::db::DbInner;
use crate::db::handle::Db;

/// A WAL of the database, as [`Db::wal_files`](crate::Db::wal_files) lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalFile {
    /// Its number.
    pub number: FileNumber,
    /// Where it is.
    pub path: PathBuf,
    /// How many bytes of records it has.
    pub size: u64,
    /// Whether it is kept only because the options say so.
    pub archived: bool,
}

impl Db {
    /// The WALs, oldest first: archived ones, those that recovery would need, and the active one.
    pub fn wal_files(&self) -> Vec<WalFile> {
        wal_files(self.inner()).0
    }
}

/// [`Db::wal_files`], and the number of the active one, if there is one.
pub(in crate::db) fn wal_files(db: &DbInner) -> (Vec<WalFile>, Option<FileNumber>) {
    let (active, older) = db.pipeline.between_commits(|active| (active, db.tree.older_wals()));
    let here = |(number, size, archived): (FileNumber, u64, bool)| {
        let path = file_name::wal(&db.context.wal_directory, number);
        WalFile { number, path, size, archived }
    };
    let moved = older.archived.iter().map(|(number, size)| WalFile {
        number: *number,
        path: db.disk.archived(*number),
        size: *size,
        archived: true,
    });
    let waiting = older.waiting.iter().map(|(number, size)| (*number, *size, true));
    let live = older.live.iter().map(|(number, size)| (*number, *size, false));
    let written = active.map(|wal| (wal.number, wal.written, false));
    let mut files: Vec<_> = moved.chain(waiting.chain(live).chain(written).map(here)).collect();
    // What waits may be older than what was moved.
    files.sort_by_key(|file| file.number);
    (files, active.map(|wal| wal.number))
}
