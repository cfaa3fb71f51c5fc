//! The files that make up a database, for programs that copy them, or that have a compaction policy
//! of their own.

use std::path::{Path, PathBuf};

use crate::base::file_name::FileKind;
use crate::base::{FileChecksum, FileNumber, Result, SequenceNumber, Temperature};
use crate::compaction::pick::table_stats;
use crate::db::copied_files::{
    Change, CopiedFile, CopyOptions, FileBytes, ManifestForm, files_to_copy,
};
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::ingestion::{ExternalFiles, ingest};
use crate::env::directory_of;
use crate::options::IngestExternalFileOptions;

/// One of the files that make up the database, as [`Db::live_files`](crate::Db::live_files) lists
/// it (RocksDB's `LiveFileMetaData`).
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
    /// ([`Db::damaged_files`](crate::Db::damaged_files)).
    pub being_compacted: bool,
    /// Of a blob file's bytes, those of values that no table refers to any longer.
    pub garbage_bytes: u64,
    /// How often a table is expected to be read.
    pub temperature: Temperature,
    /// The checksum of the whole file, if the MANIFEST has one.
    pub checksum: Option<FileChecksum>,
}

/// A file that a copy of the database needs, as
/// [`Db::live_files_storage`](crate::Db::live_files_storage) lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredFile {
    /// What it is, with its number if it has one.
    pub kind: FileKind,
    /// Its name.
    pub name: String,
    /// The directory in which it lies, or would lie.
    pub directory: PathBuf,
    /// How many bytes the copy is to have.
    pub size: u64,
    /// How often a table is expected to be read.
    pub temperature: Temperature,
    /// Its checksum, if the MANIFEST has one.
    pub checksum: Option<FileChecksum>,
    /// What the copy is to hold, whatever the file itself holds, if there is one.
    pub replacement_contents: Option<Vec<u8>>,
    /// Whether the file may be longer, or grow: the copy has its first `size` bytes, so it must not
    /// be a link.
    pub trim_to_size: bool,
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
                checksum: file.meta.checksum(),
            }));
            live.extend(version.blob_files.values().map(|blob| LiveFile {
                column_family: family.name().to_string(),
                number: blob.file.number(),
                path: blob.file.path(),
                size: blob.file.meta.total_bytes,
                garbage_bytes: blob.garbage_bytes,
                checksum: blob.file.meta.checksum(),
                ..LiveFile::default()
            }));
        }
        live
    }

    /// All files that a copy of the database needs, with what of each of them, for a program that
    /// makes such a copy. CURRENT comes last; a directory without it is no database. Files stay
    /// while deletions are disabled ([`Db::disable_file_deletions`], [`Db::hold_files`]).
    ///
    /// Memtables are flushed first if the WALs that recovery would need have `wal_size_for_flush`
    /// bytes of records or more, so always with 0; `u64::MAX` is never. Those whose large values
    /// lie in blob files already are flushed in any case. The OPTIONS file is that of the database,
    /// unless it names other directories or is not up to date: then its contents are given, as for
    /// a copy in one directory.
    ///
    /// # Errors
    /// `NotSupported` for a database that is open for reading whose WALs name blob files that its
    /// MANIFEST lacks; `TryAgain` if large values are streamed so fast that each flush finds new
    /// ones; `Corruption` if a file is missing; `ShutdownInProgress`; `IoError`.
    pub fn live_files_storage(&self, wal_size_for_flush: u64) -> Result<Vec<StoredFile>> {
        let options = CopyOptions {
            manifest: ManifestForm::AsItIs,
            ..CopyOptions::whole(wal_size_for_flush)
        };
        let found = files_to_copy(self, options)?;
        let path = &self.inner().context.path;
        Ok(found.files.into_iter().map(|file| stored(path, file)).collect())
    }

    /// The names of the files that make up the database, without WALs, and how many bytes of the
    /// MANIFEST count (RocksDB's `GetLiveFiles`). [`Db::live_files_storage`] is for programs that
    /// copy them: it also has the directories, and the WALs of the same moment.
    ///
    /// # Errors
    /// As [`Db::live_files_storage`].
    pub fn live_file_names(&self, flush: bool) -> Result<(Vec<String>, u64)> {
        let options = CopyOptions {
            with_wals: false,
            manifest: ManifestForm::AsItIs,
            ..CopyOptions::whole(if flush { 0 } else { u64::MAX })
        };
        let found = files_to_copy(self, options)?;
        let mut names = Vec::new();
        let mut manifest_size = 0;
        for file in found.files {
            match (file.kind, &file.bytes) {
                (FileKind::Options(_), _) => continue,
                (FileKind::Manifest(_), FileBytes::OfFile { size, .. }) => manifest_size = *size,
                (FileKind::Manifest(_), FileBytes::Made(bytes)) => {
                    manifest_size = bytes.len() as u64;
                }
                _ => {}
            }
            names.push(file.name);
        }
        let context = &self.inner().context;
        let listed = context.env.fs.list(&context.path)?;
        let options = listed.into_iter().filter_map(|name| match FileKind::parse(&name) {
            Some(FileKind::Options(number)) => Some((number, name)),
            _ => None,
        });
        names.extend(options.max().map(|(_, name)| name));
        Ok((names, manifest_size))
    }
}

fn stored(database: &Path, file: CopiedFile) -> StoredFile {
    let CopiedFile { name, kind, bytes, temperature, checksum } = file;
    let (directory, size, replacement_contents, trim_to_size) = match bytes {
        FileBytes::OfFile { path, size, change } => {
            (directory_of(&path).to_path_buf(), size, None, change != Change::Never)
        }
        FileBytes::Made(bytes) => (database.to_path_buf(), bytes.len() as u64, Some(bytes), false),
    };
    StoredFile {
        kind,
        name,
        directory,
        size,
        temperature,
        checksum,
        replacement_contents,
        trim_to_size,
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
