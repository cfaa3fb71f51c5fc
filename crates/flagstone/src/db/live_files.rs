//! The files that make up a database, for whoever copies them, or runs a compaction policy of his
//! own.

use std::path::{Path, PathBuf};

use crate::base::{FileNumber, Result, SequenceNumber, Temperature};
use crate::compaction::pick::table_stats;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::ingestion::{ExternalFiles, ingest};
use crate::options::IngestExternalFileOptions;

/// One of the files that make up the database, as [`Db::live_files`] lists it (RocksDB's
/// `LiveFileMetaData`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LiveFile {
    /// The family's name.
    pub column_family: String,
    /// The file's number.
    pub number: FileNumber,
    /// Where it lies.
    pub path: PathBuf,
    /// Its level; `None` for a blob file.
    pub level: Option<usize>,
    /// Its size in bytes; of a blob file without header and footer.
    pub size: u64,
    /// The smallest user key of a table.
    pub smallest: Vec<u8>,
    /// The largest user key of a table.
    pub largest: Vec<u8>,
    /// The smallest and the largest sequence number in a table; of two tables of level 0 that
    /// overlap the newer one has the larger ones.
    pub sequences: (SequenceNumber, SequenceNumber),
    /// Entries of a table, deletions among them, and deletions of keys; `None` where the MANIFEST
    /// does not say so, as in one of RocksDB's, and the table was not opened yet.
    pub entries: Option<(u64, u64)>,
    /// When a table was written, in seconds since 1970; 0 if that is not known.
    pub created: u64,
    /// Whether a compaction has the table as its input, or could not read it
    /// ([`Db::damaged_files`]).
    pub being_compacted: bool,
    /// Of a blob file's bytes, those of values that no table refers to any longer.
    pub garbage_bytes: u64,
    /// How often a table is expected to be read.
    pub temperature: Temperature,
}

impl Db {
    /// The files of all families, by family, level and key. Reads nothing.
    pub fn live_files(&self) -> Vec<LiveFile> {
        let mut live = Vec::new();
        for family in self.column_families() {
            let version = family.0.current.load().version.clone();
            live.extend(version.files().map(|(level, file)| LiveFile {
                column_family: family.name().to_string(),
                number: file.number(),
                path: file.path(),
                level: Some(level),
                size: file.meta.size,
                smallest: file.meta.smallest.user_key().to_vec(),
                largest: file.meta.largest.user_key().to_vec(),
                sequences: (file.meta.smallest_seqno, file.meta.largest_seqno),
                entries: table_stats(file).map(|stats| (stats.entries, stats.deletions)),
                created: file.meta.file_creation_time,
                being_compacted: file.is_being_compacted(),
                garbage_bytes: 0,
                temperature: file.meta.temperature,
            }));
            live.extend(version.blob_files.values().map(|blob| LiveFile {
                column_family: family.name().to_string(),
                number: blob.file.number(),
                path: blob.file.path(),
                size: blob.file.meta.total_bytes,
                garbage_bytes: blob.garbage_bytes,
                ..LiveFile::default()
            }));
        }
        live
    }
}

/// Tables from outside.
impl Db {
    /// Makes tables that [`SstFileWriter`](crate::SstFileWriter) or RocksDB's wrote part of a
    /// family, all or none. Their entries are newer than all that was written before. Later files
    /// win over earlier ones.
    ///
    /// The tables and the change are durable when the call returns. Writers wait while it takes
    /// place; they also wait for the flush of memtables with keys in the range of a table.
    ///
    /// # Errors
    /// Each names the file. `InvalidArgument`: no files; a table without entries, of another
    /// comparator or family, that a database wrote (unless `allow_db_generated_files`), with merge
    /// operands for a family without merge operator, or that does not fit as the options ask.
    /// `Corruption`: a damaged file, or another checksum. `NotSupported`: what this engine does not
    /// read. `TryAgain`: `fail_if_not_bottommost_level`. `ColumnFamilyDropped`;
    /// `ShutdownInProgress`; `IoError`. Nothing is ingested then.
    pub fn ingest_external_files(
        &self,
        family: &ColumnFamily,
        files: &[impl AsRef<Path>],
        options: &IngestExternalFileOptions,
    ) -> Result<()> {
        let files = files.iter().map(AsRef::as_ref);
        let group = ExternalFiles { options: *options, ..ExternalFiles::new(family, files) };
        self.ingest_together(&[group])
    }

    /// As [`Db::ingest_external_files`], into several families by one atomic change.
    ///
    /// # Errors
    /// As [`Db::ingest_external_files`]; `InvalidArgument` also if a family is named twice, or for
    /// keys outside of the range that is replaced.
    pub fn ingest_together(&self, groups: &[ExternalFiles]) -> Result<()> {
        ingest(self.inner(), groups)
    }
}
