//! The files that a copy of a database needs.

use std::ffi::{CString, c_char};
use std::ptr::null;

use flagstone::reports::{FileKind, StoredFile};
use flagstone_rocksdb as rdb;

use crate::abi::{Out, Result, Tagged, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::Db;
use crate::event_infos::lend_at;
use crate::report::with_nul;

/// Files, and their names as texts.
pub struct Stored(Vec<Named>);

struct Named {
    file: StoredFile,
    name: CString,
    directory: CString,
    /// Bytes, before a NUL byte.
    checksum: Vec<u8>,
    checksum_name: CString,
}

/// How they are listed.
#[derive(Default)]
pub struct ListOptions {
    include_checksum_info: bool,
    wal_size_for_flush: u64,
    atomic_flush: bool,
}

handles! {
    Stored = "livefiles_storage_info",
    ListOptions = "livefiles_storage_info_options",
}

creates! { rocksdb_livefiles_storage_info_options_create: ListOptions, }

destroys! {
    rocksdb_livefiles_storage_info_destroy: Stored,
    rocksdb_livefiles_storage_info_options_destroy: ListOptions,
}

c_settings! { "rocksdb_livefiles_storage_info_options", ListOptions, |o| {
    value u8, include_checksum_info: o.include_checksum_info;
    value u64, wal_size_for_flush: o.wal_size_for_flush;
    value u8, atomic_flush: o.atomic_flush;
} }

/// RocksDB's number of a kind of file, and the number in its name.
fn numbers(kind: FileKind) -> (i32, u64) {
    match kind {
        FileKind::Wal(number) => (0, number.0),
        FileKind::Lock => (1, 0),
        FileKind::Table(number) => (2, number.0),
        FileKind::Manifest(number) => (3, number.0),
        FileKind::Current => (4, 0),
        FileKind::Temporary(number) | FileKind::Trash(number) => (5, number.0),
        FileKind::InfoLog => (6, 0),
        FileKind::Identity => (8, 0),
        FileKind::Options(number) => (9, number.0),
        FileKind::Blob(number) => (10, number.0),
        FileKind::Reserve | FileKind::Owner | FileKind::Follower | FileKind::Figures => (5, 0),
    }
}

/// What RocksDB calls the function of a checksum that there is not.
const UNKNOWN_FUNCTION: &str = "Unknown";

impl Named {
    fn of(file: StoredFile, with_checksum: bool) -> Self {
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let checksum = file.checksum.as_ref().filter(|_| with_checksum);
        let unknown = if with_checksum { UNKNOWN_FUNCTION } else { "" };
        let function = checksum.map_or(unknown, |checksum| &checksum.function);
        Self {
            name: text(file.name.as_bytes()),
            directory: text(file.directory.as_os_str().as_encoded_bytes()),
            checksum: with_nul(checksum.map_or(&[], |checksum| &checksum.value)),
            checksum_name: text(function.as_bytes()),
            file,
        }
    }
}

impl Stored {
    fn list(db: &Db, options: &ListOptions) -> Result<Self> {
        if options.atomic_flush && !db.flushes_atomically() {
            let what = "atomic_flush of several families without the option of the database";
            return Err(rdb::Error::not_supported(what));
        }
        let files = db.engine().live_files_storage(options.wal_size_for_flush)?.into_iter();
        Ok(Self(files.map(|file| Named::of(file, options.include_checksum_info)).collect()))
    }

    fn text(&self, index: usize, text: impl Fn(&Named) -> &CString) -> *const c_char {
        self.0.get(index).map_or(null(), |named| text(named).as_ptr())
    }

    fn number<T: Default>(&self, index: usize, number: impl Fn(&StoredFile) -> T) -> T {
        self.0.get(index).map(|named| number(&named.file)).unwrap_or_default()
    }
}

c_api! {
    fn rocksdb_get_livefiles_storage_info(
        db: &Db, options: ?ListOptions, error
    ) -> *mut Tagged<Stored> {
        make(match options {
            Some(options) => Stored::list(db, options)?,
            None => Stored::list(db, &ListOptions::default())?,
        })
    }

    fn rocksdb_livefiles_storage_info_count(files: &Stored) -> usize {
        files.0.len()
    }

    fn rocksdb_livefiles_storage_info_relative_filename(
        files: &Stored, index: usize
    ) -> *const c_char {
        files.text(index, |named| &named.name)
    }

    fn rocksdb_livefiles_storage_info_directory(files: &Stored, index: usize) -> *const c_char {
        files.text(index, |named| &named.directory)
    }

    fn rocksdb_livefiles_storage_info_file_number(files: &Stored, index: usize) -> u64 {
        files.number(index, |file| numbers(file.kind).1)
    }

    fn rocksdb_livefiles_storage_info_file_type(files: &Stored, index: usize) -> i32 {
        files.number(index, |file| numbers(file.kind).0)
    }

    fn rocksdb_livefiles_storage_info_size(files: &Stored, index: usize) -> u64 {
        files.number(index, |file| file.size)
    }

    fn rocksdb_livefiles_storage_info_temperature(files: &Stored, index: usize) -> i32 {
        files.number(index, |file| file.temperature.as_byte().into())
    }

    fn rocksdb_livefiles_storage_info_file_checksum(
        files: &Stored, index: usize
    ) -> *const c_char {
        files.0.get(index).map_or(null(), |named| named.checksum.as_ptr().cast())
    }

    fn rocksdb_livefiles_storage_info_file_checksum_func_name(
        files: &Stored, index: usize
    ) -> *const c_char {
        files.text(index, |named| &named.checksum_name)
    }

    fn rocksdb_livefiles_storage_info_replacement_contents(
        files: &Stored, index: usize, len: Out<usize>
    ) -> *const c_char {
        let file = files.0.get(index).map(|named| &named.file);
        lend_at(file.map(|file| file.replacement_contents.as_deref().unwrap_or_default()), len)
    }

    fn rocksdb_livefiles_storage_info_trim_to_size(files: &Stored, index: usize) -> u8 {
        files.number(index, |file| file.trim_to_size.into())
    }
}
