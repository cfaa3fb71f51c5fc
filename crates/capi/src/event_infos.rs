//! What listeners are told of files, memtables, errors and stalls.

use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flagstone::reports::{
    self, BlobFileInfo, BlobGarbageInfo, IngestionInfo, StallCondition, TableInfo, WriteStallInfo,
};
use flagstone_rocksdb as rdb;

use crate::abi::{Handle, Out, Tagged, handles, make, unmake};
use crate::api::c_api;
use crate::table_properties::Properties;

/// An object of C's that is part of another.
pub struct Part<T: Handle>(*mut Tagged<T>);

impl<T: Handle> Part<T> {
    /// Makes it.
    pub fn new(value: T) -> Self {
        Self(make(value))
    }

    /// C's pointer to it.
    pub fn pointer(&self) -> *const Tagged<T> {
        self.0
    }
}

impl<T: Handle> Drop for Part<T> {
    fn drop(&mut self) {
        unmake(self.0);
    }
}

/// Bytes that stay as long as the object.
pub fn lend(bytes: &[u8], len: Out<usize>) -> *const c_char {
    len.set(bytes.len());
    bytes.as_ptr().cast()
}

/// As above, for the element at an index; NULL if the index is out of range.
pub fn lend_at(bytes: Option<&[u8]>, len: Out<usize>) -> *const c_char {
    match bytes {
        Some(bytes) => lend(bytes, len),
        None => {
            len.set(0);
            std::ptr::null()
        }
    }
}

/// The bytes of a path.
pub fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// A number as an `int`.
pub fn int(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A count as an `int`.
pub fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The number of the oldest blob file that a table refers to; 0 for none.
pub fn oldest_blob_file(table: &TableInfo) -> u64 {
    table.oldest_blob_file.map_or(0, |number| number.0)
}

/// A table of a compaction, without its path.
pub struct FileOfJob(pub TableInfo);

/// A blob file that a job wrote.
pub struct BlobAddition(pub BlobFileInfo);

/// Garbage that a job made in a blob file.
pub struct BlobGarbage(pub BlobGarbageInfo);

/// A table that was ingested.
pub struct IngestedInfo {
    table: IngestionInfo,
    properties: Part<Properties>,
}

impl IngestedInfo {
    /// The table as C sees it.
    pub fn of(table: &IngestionInfo) -> Self {
        let properties = Part::new(Properties::of(table.properties.clone()));
        Self { table: table.clone(), properties }
    }
}

/// A memtable.
pub struct MemtableInfo(pub reports::MemtableInfo);

/// What holds writers up, before and now.
pub struct StallInfo {
    family: String,
    before: c_int,
    now: c_int,
}

impl StallInfo {
    /// The change as C sees it.
    pub fn of(stall: &WriteStallInfo) -> Self {
        let family = stall.family_name.clone().unwrap_or_default();
        Self { family, before: stall_number(stall.before), now: stall_number(stall.now) }
    }
}

/// RocksDB's number of a condition. The header has no function that looks at one: bindings read the
/// `int` that the pointer is to.
fn stall_number(condition: StallCondition) -> c_int {
    match condition {
        StallCondition::Delayed => 0,
        StallCondition::Stopped => 1,
        StallCondition::Normal => 2,
    }
}

/// An error, until a listener resets it.
pub struct Status {
    error: Mutex<Option<rdb::Error>>,
    is_fatal: bool,
}

impl Status {
    /// This one; only reopening helps if it `is_fatal`.
    pub fn of(error: &flagstone::Error, is_fatal: bool) -> Self {
        Self { error: Mutex::new(Some(error.clone().into())), is_fatal }
    }

    fn slot(&self) -> MutexGuard<'_, Option<rdb::Error>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As RocksDB numbers `Status::Severity`: no error, a hard one, a fatal one.
    fn severity(&self) -> u8 {
        match (self.slot().is_some(), self.is_fatal) {
            (false, _) => 0,
            (true, false) => 2,
            (true, true) => 3,
        }
    }
}

handles! {
    FileOfJob = "compaction_file_info",
    BlobAddition = "blob_file_addition_info",
    BlobGarbage = "blob_file_garbage_info",
    IngestedInfo = "externalfileingestioninfo",
    MemtableInfo = "memtableinfo",
    StallInfo = "writestallinfo",
    Status = "status_ptr",
}

c_api! {
    fn rocksdb_compaction_file_info_level(info: &FileOfJob) -> i32 {
        count(info.0.level)
    }

    fn rocksdb_compaction_file_info_file_number(info: &FileOfJob) -> u64 {
        info.0.number.0
    }

    fn rocksdb_compaction_file_info_oldest_blob_file_number(info: &FileOfJob) -> u64 {
        oldest_blob_file(&info.0)
    }

    fn rocksdb_blob_file_addition_info_blob_file_path(
        info: &BlobAddition, len: Out<usize>
    ) -> *const c_char {
        lend(path_bytes(&info.0.path), len)
    }

    fn rocksdb_blob_file_addition_info_blob_file_number(info: &BlobAddition) -> u64 {
        info.0.number.0
    }

    fn rocksdb_blob_file_addition_info_total_blob_count(info: &BlobAddition) -> u64 {
        info.0.count
    }

    fn rocksdb_blob_file_addition_info_total_blob_bytes(info: &BlobAddition) -> u64 {
        info.0.size
    }

    fn rocksdb_blob_file_garbage_info_blob_file_path(
        info: &BlobGarbage, len: Out<usize>
    ) -> *const c_char {
        lend(path_bytes(&info.0.path), len)
    }

    fn rocksdb_blob_file_garbage_info_blob_file_number(info: &BlobGarbage) -> u64 {
        info.0.number.0
    }

    fn rocksdb_blob_file_garbage_info_garbage_blob_count(info: &BlobGarbage) -> u64 {
        info.0.count
    }

    fn rocksdb_blob_file_garbage_info_garbage_blob_bytes(info: &BlobGarbage) -> u64 {
        info.0.bytes
    }

    fn rocksdb_externalfileingestioninfo_cf_name(
        info: &IngestedInfo, len: Out<usize>
    ) -> *const c_char {
        lend(info.table.family_name.as_bytes(), len)
    }

    fn rocksdb_externalfileingestioninfo_external_file_path(
        info: &IngestedInfo, len: Out<usize>
    ) -> *const c_char {
        lend(path_bytes(&info.table.external_path), len)
    }

    fn rocksdb_externalfileingestioninfo_internal_file_path(
        info: &IngestedInfo, len: Out<usize>
    ) -> *const c_char {
        lend(path_bytes(&info.table.file.path), len)
    }

    fn rocksdb_externalfileingestioninfo_global_seqno(info: &IngestedInfo) -> u64 {
        info.table.global_seqno
    }

    fn rocksdb_externalfileingestioninfo_table_properties(
        info: &IngestedInfo
    ) -> *const Tagged<Properties> {
        info.properties.pointer()
    }

    fn rocksdb_memtableinfo_cf_name(info: &MemtableInfo, len: Out<usize>) -> *const c_char {
        lend(info.0.family_name.as_bytes(), len)
    }

    fn rocksdb_memtableinfo_first_seqno(info: &MemtableInfo) -> u64 {
        info.0.first_seqno
    }

    fn rocksdb_memtableinfo_earliest_seqno(info: &MemtableInfo) -> u64 {
        info.0.first_seqno
    }

    fn rocksdb_memtableinfo_num_entries(info: &MemtableInfo) -> u64 {
        info.0.num_entries
    }

    fn rocksdb_memtableinfo_num_deletes(info: &MemtableInfo) -> u64 {
        info.0.num_deletes
    }

    fn rocksdb_memtableinfo_newest_udt(_info: &MemtableInfo, len: Out<usize>) -> *const c_char {
        lend(&[], len)
    }

    fn rocksdb_writestallinfo_cf_name(info: &StallInfo, len: Out<usize>) -> *const c_char {
        lend(info.family.as_bytes(), len)
    }

    fn rocksdb_writestallinfo_cur(info: &StallInfo) -> *const c_int {
        &raw const info.now
    }

    fn rocksdb_writestallinfo_prev(info: &StallInfo) -> *const c_int {
        &raw const info.before
    }

    fn rocksdb_status_ptr_get_error(status: &Status, error) {
        let error = status.slot().clone();
        error.map_or(Ok(()), Err)?;
    }

    fn rocksdb_status_ptr_get_severity(status: &Status) -> u8 {
        status.severity()
    }

    fn rocksdb_reset_status(status: &Status) {
        *status.slot() = None;
    }
}
