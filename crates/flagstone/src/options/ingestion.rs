//! Options of the ingestion of tables.

/// Options of an ingestion of tables that were written outside of the database
/// (`Db::ingest_external_files`). The defaults are RocksDB's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestExternalFileOptions {
    /// Moves the files into the database: links them, and removes their own names once they are
    /// ingested (default: false, which copies).
    pub move_files: bool,
    /// Links the files into the database, and leaves their own names (default: false). The files
    /// must not be changed afterwards.
    pub link_files: bool,
    /// Copies a file that cannot be linked, for example because it lies in another file system
    /// (default: true).
    pub failed_move_fall_back_to_copy: bool,
    /// Snapshots taken before do not see the tables (default: true). `false` permits what
    /// `allow_db_generated_files` cannot do otherwise: ingestion while there are snapshots.
    pub snapshot_consistency: bool,
    /// The entries of the tables may get a sequence number (default: true). With `false` they keep
    /// number 0, and the ingestion fails if the database has a key in the range of a table, or if
    /// there are snapshots. Transactions and replicas do not notice such an ingestion.
    pub allow_global_seqno: bool,
    /// Memtables with keys in the range of a table may be flushed, while writers wait (default:
    /// true). Otherwise the ingestion fails if there are some.
    pub allow_blocking_flush: bool,
    /// Puts the tables below all that there is, into the last level, so that existing keys win
    /// (default: false). The family needs `cf_allow_ingest_behind`. Entries get sequence number 0:
    /// snapshots see them.
    pub ingest_behind: bool,
    /// Also writes the sequence number into the file, as versions of RocksDB before 5.16 need it
    /// (default: false). With `link_files` that changes the original, too.
    pub write_global_seqno: bool,
    /// Reads each table first and checks all of its checksums (default: false).
    pub verify_checksums_before_ingest: bool,
    /// Compares each file with the checksum that the caller gave (default: true). Otherwise the
    /// MANIFEST takes it on trust.
    pub verify_file_checksum: bool,
    /// Fails with `TryAgain` unless every table fits into the last level (default: false).
    pub fail_if_not_bottommost_level: bool,
    /// Accepts tables that a database wrote (default: false). Their entries keep their sequence
    /// numbers, so their ranges must not overlap each other or keys of the database.
    pub allow_db_generated_files: bool,
    /// RocksDB's hint whether reads for an ingestion fill the block cache (default: true). It has
    /// no effect: they never do.
    pub fill_cache: bool,
}

impl Default for IngestExternalFileOptions {
    fn default() -> Self {
        Self {
            move_files: false,
            link_files: false,
            failed_move_fall_back_to_copy: true,
            snapshot_consistency: true,
            allow_global_seqno: true,
            allow_blocking_flush: true,
            ingest_behind: false,
            write_global_seqno: false,
            verify_checksums_before_ingest: false,
            verify_file_checksum: true,
            fail_if_not_bottommost_level: false,
            allow_db_generated_files: false,
            fill_cache: true,
        }
    }
}
