//! Writing one table outside of a database.
//!
//! Such a table follows RocksDB's external format, version 2: every key has sequence number 0, and
//! two properties say that the database which ingests the file may give all of them another one.
//!
//! The file is complete and durable when [`SstFileWriter::finish`] returns. A writer that is
//! dropped earlier removes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::info::SstFileInfo;
use crate::base::entity;
use crate::base::unique_id::session_identity;
use crate::base::{
    ColumnFamilyId, Comparator, Crc32cFileChecksums, DataPaths, Error, FileChecksumFactory,
    FileChecksums, FileNumber, InternalKeyBuf, Result, ValueType, WideColumns, timestamp,
};
use crate::db::{compression_options, leveled_settings, strips_timestamps, table_builder_settings};
use crate::env::{Env, IoMode, Names, NewNames, WritableFile, directory_of, read_for_checksum};
use crate::options::ColumnFamilyOptions;
use crate::sst::filter::WrittenBy;
use crate::sst::{TableBuilder, TableBuilderSettings, TableProperties};

/// The database that the properties name, as RocksDB's writer does.
const IDENTITY: &str = "SST Writer";

/// How a table is written outside of a database.
#[derive(Clone)]
pub struct SstFileWriterOptions {
    /// The options of the family that the table is for. Comparator, compression, filter, block
    /// sizes and prefix extractor are used; values stay in the table whatever their size.
    pub family: ColumnFamilyOptions,
    /// Number and name of that family, as the table's properties record them; `None` leaves them
    /// out, and the table then fits any family with the same comparator.
    pub named_family: Option<(ColumnFamilyId, String)>,
    /// Keeps large values in the table beside its blocks (default: `None`, all in the blocks). The
    /// blocks stay small, and each large value is read by itself, also by a scan that asks for keys
    /// alone. RocksDB 11.8 and later read such a table. It needs `format_version` 7, and neither
    /// `block_align` nor `super_block_alignment_size`.
    pub embedded_blobs: Option<SstFileWriterEmbeddedBlobOptions>,
    /// Where files are written.
    pub env: Env,
    /// Computes the CRC32C of the finished file, which is read back for it (default: false).
    pub file_checksum: bool,
    /// Computes another checksum instead.
    pub file_checksum_factory: Option<Arc<dyn FileChecksumFactory>>,
}

/// Which values [`SstFileWriterOptions::embedded_blobs`] keeps beside the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SstFileWriterEmbeddedBlobOptions {
    /// Least size in bytes of a value, or of an entity's column, that is kept beside the blocks
    /// (default: 2048). Merge operands stay in the blocks.
    pub min_blob_size: u64,
}

impl Default for SstFileWriterEmbeddedBlobOptions {
    fn default() -> Self {
        Self { min_blob_size: 2048 }
    }
}

impl Default for SstFileWriterOptions {
    fn default() -> Self {
        Self::new(&ColumnFamilyOptions::default())
    }
}

impl SstFileWriterOptions {
    /// For families with these options.
    pub fn new(family: &ColumnFamilyOptions) -> Self {
        Self {
            family: family.clone(),
            named_family: None,
            embedded_blobs: None,
            env: Env::default(),
            file_checksum: false,
            file_checksum_factory: None,
        }
    }
}

impl SstFileWriterOptions {
    fn file_checksums(&self) -> FileChecksums {
        let built_in = self.file_checksum.then(|| Arc::new(Crc32cFileChecksums) as _);
        FileChecksums::new(self.file_checksum_factory.clone().or(built_in))
    }
}

/// Writes a table from entries in order, to be ingested by a database: this engine's
/// ([`Family::ingest_external_files`](crate::Family::ingest_external_files)) or RocksDB's.
///
/// ```
/// use flagstone::{SstFileWriter, SstFileWriterOptions};
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let table = directory.path().join("days.sst");
/// let mut writer = SstFileWriter::create(&table, &SstFileWriterOptions::default())?;
/// for day in 0..1000 {
///     writer.put(format!("day {day:03}"), "sunny")?;
/// }
/// let info = writer.finish()?;
/// assert_eq!(info.num_entries, 1000);
/// # Ok(())
/// # }
/// ```
pub struct SstFileWriter {
    unfinished: Unfinished,
    name: NewNames,
    file: Arc<dyn WritableFile>,
    builder: TableBuilder,
    comparator: Comparator,
    key: InternalKeyBuf,
    smallest: Option<Vec<u8>>,
    ranges: Ranges,
    checksums: FileChecksums,
    /// Why an earlier call failed: the table lacks an entry.
    failed: Option<Error>,
}

/// Where the range deletions of a table lie.
#[derive(Default)]
struct Ranges {
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    count: u64,
}

/// The file, which is removed unless it is finished.
struct Unfinished {
    env: Env,
    path: Option<PathBuf>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The error that led here matters more.
            let _ = self.env.fs.remove(path);
        }
    }
}

impl SstFileWriter {
    /// Begins a table at `path`. A file that is there already is removed first, not overwritten: a
    /// database may hold a link to it.
    ///
    /// # Errors
    /// `InvalidArgument` if options contradict each other; `NotSupported` for keys whose timestamps
    /// are not to be in tables; `IoError`.
    pub fn create(path: impl AsRef<Path>, options: &SstFileWriterOptions) -> Result<Self> {
        if strips_timestamps(&options.family) {
            return Err(Error::not_supported(
                "a table to be ingested has its keys' timestamps; set persist_user_defined_timestamps",
            ));
        }
        let (path, fs) = (path.as_ref(), &options.env.fs);
        let name = Names::new(fs.clone()).before_making(&directory_of(path));
        match fs.remove(path) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let file = fs.create_writable(path, IoMode::Buffered)?;
        let unfinished = Unfinished { env: options.env.clone(), path: Some(path.to_path_buf()) };
        Ok(Self {
            unfinished,
            name,
            builder: TableBuilder::new(file.clone(), builder_settings(options))?,
            file,
            comparator: options.family.comparator.clone(),
            key: InternalKeyBuf::new(b"", 0, ValueType::Value),
            smallest: None,
            ranges: Ranges::default(),
            checksums: options.file_checksums(),
            failed: None,
        })
    }

    /// Adds a key with its value. It must be larger than all keys before it.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is not, or if key and value take almost 4 GiB; `IoError`. After
    /// an error the table cannot be finished.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueType::Value, value.as_ref())
    }

    /// Adds a key with its value as of a timestamp, where the comparator has timestamps. Versions
    /// of one key come newest first.
    ///
    /// # Errors
    /// As [`Self::put`]; `InvalidArgument` for a timestamp of another size.
    pub fn put_with_timestamp(
        &mut self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let key = self.stamped(key.as_ref(), timestamp.as_ref())?;
        self.add_stored(&key, ValueType::Value, value.as_ref())
    }

    /// Adds the deletion of a key as of a timestamp.
    ///
    /// # Errors
    /// As [`Self::put_with_timestamp`].
    pub fn delete_with_timestamp(
        &mut self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let key = self.stamped(key.as_ref(), timestamp.as_ref())?;
        self.add_stored(&key, ValueType::DeletionWithTimestamp, &[])
    }

    /// Adds the deletion of all keys from `begin` to before `end` as of a timestamp, in any order.
    ///
    /// # Errors
    /// As [`Self::delete_range`]; `InvalidArgument` for a timestamp of another size.
    pub fn delete_range_with_timestamp(
        &mut self,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let begin = self.stamped(begin.as_ref(), timestamp.as_ref())?;
        let end = self.stamped(end.as_ref(), timestamp.as_ref())?;
        self.delete_stored_range(&begin, &end)
    }

    fn stamped(&mut self, key: &[u8], stamp: &[u8]) -> Result<Vec<u8>> {
        self.check_usable()?;
        let size = self.comparator.timestamp_size();
        let checked = timestamp::check_size("of the table", size, stamp.len());
        self.note(checked)?;
        Ok(timestamp::join(key, stamp))
    }

    /// Refuses a key without a timestamp where the comparator has some.
    fn check_unstamped(&mut self) -> Result<()> {
        self.check_usable()?;
        match self.comparator.timestamp_size() {
            0 => Ok(()),
            size => Err(self.refused(format!(
                "the comparator has timestamps of {size} bytes; add entries with them, as by put_with_timestamp"
            ))),
        }
    }

    /// Adds a key with an entity of these columns, which may come in any order.
    ///
    /// # Errors
    /// As [`Self::put`]; `InvalidArgument` if two columns have the same name.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        let entity = entity::encode_unsorted(columns)?;
        self.add(key.as_ref(), ValueType::WideColumnEntity, &entity)
    }

    /// Adds a key with an entity in its encoded form.
    ///
    /// # Errors
    /// As [`Self::put`]; `Corruption` or `NotSupported` if the entity cannot be decoded, or a
    /// column of it lies in a blob file.
    pub fn put_encoded_entity(
        &mut self,
        key: impl AsRef<[u8]>,
        entity: impl AsRef<[u8]>,
    ) -> Result<()> {
        let checked = WideColumns::decode(entity.as_ref()).map(|_| ());
        self.note(checked)?;
        self.add(key.as_ref(), ValueType::WideColumnEntity, entity.as_ref())
    }

    /// Adds an operand for the merge operator of the family.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueType::Merge, operand.as_ref())
    }

    /// Adds the deletion of a key.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueType::Deletion, &[])
    }

    /// Adds the deletion of a key that was put once only.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueType::SingleDeletion, &[])
    }

    /// Adds the deletion of all keys from `begin` to before `end`, in any order. It covers what the
    /// database holds when the table is ingested, and no entry of the table. An empty range is left
    /// out.
    ///
    /// # Errors
    /// `InvalidArgument` if `begin` is larger than `end`.
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.check_unstamped()?;
        self.delete_stored_range(begin.as_ref(), end.as_ref())
    }

    fn delete_stored_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        let order = self.comparator.compare_keys(begin, end);
        if order.is_gt() {
            let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
            let message = format!("the range to delete begins at '{begin}', after its end '{end}'");
            return Err(self.refused(message));
        }
        if order.is_lt() {
            self.builder.add_range_tombstone(begin, end, 0);
            self.ranges.add(&self.comparator, begin, end);
        }
        Ok(())
    }

    /// Bytes of the file so far, about.
    pub fn file_size(&self) -> u64 {
        self.builder.estimated_size()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Ends the table and makes it durable: the file and its name.
    ///
    /// # Errors
    /// `InvalidArgument` for a table without entries, or after a call that failed; `IoError`. The
    /// file is then removed.
    pub fn finish(mut self) -> Result<SstFileInfo> {
        self.check_usable()?;
        let path = self.file.path().to_path_buf();
        if self.smallest.is_none() && self.ranges.bounds.is_none() {
            let message = "a table without entries cannot be written";
            return Err(Error::invalid_argument(message).at(path));
        }
        let largest_key = self.smallest.is_some().then(|| self.key.as_key().user_key().to_vec());
        let summary = self.builder.finish()?;
        self.file.sync()?;
        self.name.sync()?;
        let read = |running| read_for_checksum(&*self.file, summary.size, running);
        let file_checksum = self.checksums.for_new_file()?.map(read).transpose()?;
        self.unfinished.path = None;
        let (smallest_range_deletion, largest_range_deletion) = self.ranges.bounds.unzip();
        Ok(SstFileInfo {
            path,
            smallest_key: self.smallest,
            largest_key,
            smallest_range_deletion,
            largest_range_deletion,
            num_entries: summary.properties.num_entries - self.ranges.count,
            num_range_deletions: self.ranges.count,
            file_size: summary.size,
            file_checksum,
        })
    }

    fn add(&mut self, key: &[u8], kind: ValueType, value: &[u8]) -> Result<()> {
        self.check_unstamped()?;
        self.add_stored(key, kind, value)
    }

    fn add_stored(&mut self, key: &[u8], kind: ValueType, value: &[u8]) -> Result<()> {
        if self.smallest.is_some() {
            let last = self.key.as_key().user_key();
            if self.comparator.compare(last, key).is_ge() {
                let (key, last) = (key.escape_ascii(), last.escape_ascii());
                let message = format!("keys must ascend, but '{key}' comes after '{last}'");
                return Err(self.refused(message));
            }
        } else {
            self.smallest = Some(key.to_vec());
        }
        self.key.set(key, 0, kind);
        let added = self.builder.add(self.key.as_key(), value);
        self.note(added)
    }

    /// Remembers a failure: the table is not what the caller believes it to be.
    fn note(&mut self, outcome: Result<()>) -> Result<()> {
        outcome.map_err(|error| {
            let error = error.at(self.file.path());
            self.failed.get_or_insert_with(|| error.clone());
            error
        })
    }

    fn refused(&mut self, message: String) -> Error {
        let error = Error::invalid_argument(message).at(self.file.path());
        self.failed = Some(error.clone());
        error
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(earlier) => {
                Err(earlier.clone().context("the table cannot be written any more, since"))
            }
        }
    }
}

impl Ranges {
    fn add(&mut self, comparator: &Comparator, begin: &[u8], end: &[u8]) {
        self.count += 1;
        let Some((first, last)) = &mut self.bounds else {
            self.bounds = Some((begin.to_vec(), end.to_vec()));
            return;
        };
        if comparator.compare(begin, first).is_lt() {
            *first = begin.to_vec();
        }
        if comparator.compare(end, last).is_gt() {
            *last = end.to_vec();
        }
    }
}

/// As a compaction to the last level would write it.
fn builder_settings(options: &SstFileWriterOptions) -> TableBuilderSettings {
    let (env, family) = (&options.env, options.family.sanitized());
    let last_level = (family.num_levels as usize).saturating_sub(1);
    let now = env.clock.unix_seconds();
    let (column_family, column_family_name) = match &options.named_family {
        Some((id, name)) => (*id, name.clone()),
        None => (TableProperties::UNKNOWN_FAMILY, String::new()),
    };
    TableBuilderSettings {
        compression: leveled_settings(&family, &DataPaths::default())
            .compression_of(last_level, 1, true),
        compression_options: compression_options(&family, true),
        written_by: WrittenBy::Other,
        column_family,
        column_family_name,
        creation_time: now,
        file_creation_time: now,
        db_identity: IDENTITY.to_owned(),
        session_identity: session_identity(env.random.next_u64(), env.random.next_u64()),
        file_number: FileNumber(1),
        user_properties: TableProperties::external(),
        embedded_from: options.embedded_blobs.map(|embedded| embedded.min_blob_size),
        level: None,
        // Nobody knows at which level it will lie, nor what is below it.
        ..table_builder_settings(&family, last_level, false)
    }
}
