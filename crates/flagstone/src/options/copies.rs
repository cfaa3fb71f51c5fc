//! Options of copies of a database, or of a part of it.

/// Options of a checkpoint (`Db::checkpoint_with`). By default all is flushed, and files are
/// linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointOptions {
    /// Flushes memtables first if the WALs that recovery would need have as many bytes of records
    /// (default: 0, always; `u64::MAX` is never). Without a flush the copy has WALs, which its
    /// first opening replays, and lacks what was written without the WAL. Memtables whose large
    /// values lie in blob files already are flushed whatever this says.
    pub log_size_for_flush: u64,
    /// Links tables and blob files where the file system can (default: true). `false` copies them,
    /// so that nothing that happens to the one directory reaches the other.
    #[doc(alias = "use_link_file_when_available")]
    pub link_files: bool,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self { log_size_for_flush: 0, link_files: true }
    }
}

/// Options of an import of exported column families
/// ([`create_column_family_with_import`](crate::Db::create_column_family_with_import)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImportColumnFamilyOptions {
    /// Links tables instead of copying them where the file system can, and removes the exports once
    /// the family is there (default: false).
    pub move_files: bool,
    /// Reads each table and blob file first and checks all checksums (default: false).
    pub verify_checksums: bool,
}
