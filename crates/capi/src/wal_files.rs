//! The WALs of a database.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use flagstone::reports::WalFile as EngineFile;
use flagstone_rocksdb as rdb;

use crate::abi::{Result, Tagged, handles, make};
use crate::api::{c_api, destroys};
use crate::db::Db;
use crate::event_infos::Part;

/// A WAL.
pub struct WalFile {
    /// Its path in the directory of WALs, after a slash.
    path: CString,
    number: u64,
    is_archived: bool,
    start_sequence: u64,
    size: u64,
}

/// WALs, oldest first.
pub struct WalFiles(Vec<Part<WalFile>>);

handles! { WalFile = "wal_file", WalFiles = "wal_files", }

destroys! {
    rocksdb_wal_file_destroy: WalFile,
    rocksdb_wal_files_destroy: WalFiles,
}

/// The header's numbers of the kinds.
const ARCHIVED: i32 = 0;
const ALIVE: i32 = 1;

impl WalFile {
    fn of(db: &Db, file: &EngineFile) -> flagstone::Result<Self> {
        let name = Path::new(file.path.file_name().unwrap_or_default());
        let name = if file.is_in_archive() { Path::new("archive").join(name) } else { name.into() };
        let path = [b"/", name.as_os_str().as_bytes()].concat();
        Ok(Self {
            path: CString::new(path).unwrap_or_default(),
            number: file.number.0,
            is_archived: file.archived,
            start_sequence: db.engine().start_of_wal(file)?.unwrap_or(0),
            size: file.size,
        })
    }
}

trait InArchive {
    fn is_in_archive(&self) -> bool;
}

impl InArchive for EngineFile {
    /// An archived WAL that was not moved yet lies with the others.
    fn is_in_archive(&self) -> bool {
        let directory = self.path.parent().and_then(Path::file_name);
        self.archived && directory.is_some_and(|name| name == "archive")
    }
}

/// A WAL that was archived or removed between the list and the look into it is left out, as is one
/// that has no record.
fn present(file: flagstone::Result<WalFile>) -> Result<Option<WalFile>> {
    match file {
        Err(error) if error.is_not_found() => Ok(None),
        Ok(file) if file.start_sequence == 0 => Ok(None),
        file => Ok(Some(file?)),
    }
}

c_api! {
    fn rocksdb_get_sorted_wal_files(db: &Db, error) -> *mut Tagged<WalFiles> {
        let files = db.engine().wal_files();
        let files = files.iter().filter_map(|file| present(WalFile::of(db, file)).transpose());
        make(WalFiles(files.map(|file| Ok(Part::new(file?))).collect::<Result<_>>()?))
    }

    fn rocksdb_get_current_wal_file(db: &Db, error) -> *mut Tagged<WalFile> {
        let files = db.engine().wal_files();
        let current = files.iter().rfind(|file| !file.archived);
        let missing = || rdb::Error::new("NotFound: the database writes to no WAL");
        make(WalFile::of(db, current.ok_or_else(missing)?)?)
    }

    fn rocksdb_wal_files_count(files: &WalFiles) -> usize {
        files.0.len()
    }

    fn rocksdb_wal_files_get_wal_file(
        files: &WalFiles, index: usize
    ) -> *const Tagged<WalFile> {
        files.0.get(index).map_or(null(), Part::pointer)
    }

    fn rocksdb_wal_file_path_name(file: &WalFile) -> *const c_char {
        file.path.as_ptr()
    }

    fn rocksdb_wal_file_log_number(file: &WalFile) -> u64 {
        file.number
    }

    fn rocksdb_wal_file_type(file: &WalFile) -> i32 {
        if file.is_archived { ARCHIVED } else { ALIVE }
    }

    fn rocksdb_wal_file_start_sequence(file: &WalFile) -> u64 {
        file.start_sequence
    }

    fn rocksdb_wal_file_size_file_bytes(file: &WalFile) -> u64 {
        file.size
    }
}
