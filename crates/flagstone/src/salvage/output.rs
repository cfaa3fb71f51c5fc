//! Writing the new database: tables at the bottom level, large values in blob files, then one
//! change of the MANIFEST.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blobs::LargeBlob;
use crate::base::compression::CompressionType;
use crate::base::unique_id::session_identity;
use crate::base::{
    ColumnFamilyId, Comparator, DEFAULT_COLUMN_FAMILY_NAME, DataPaths, FileNumber, InternalKey,
    Result, SequenceNumber, Temperature, file_name,
};
use crate::blob::{BlobBuilderSettings, BlobFileBuilder, BlobIndex};
use crate::db::{
    compression_options, leveled_settings, strips_timestamps, table_builder_settings,
    table_temperatures,
};
use crate::env::{Env, IoMode, Names, NewNames, WritableFile, hint_temperature};
use crate::manifest::{
    BlobFileAddition, FamilySpec, FileMetadata, FileNumbers, ManifestSettings, VersionEdit,
    VersionSet,
};
use crate::options::{self, ColumnFamilyOptions, CompactionStyle, Options};
use crate::sst::filter::WrittenBy;
use crate::sst::{TableBuilder, TableBuilderSettings};

/// The new database.
pub(super) struct Target {
    directory: PathBuf,
    env: Env,
    versions: VersionSet,
    /// Those of its tables and blob files.
    names: NewNames,
    session: String,
    /// Made with the families as they are found to be.
    edits: Vec<VersionEdit>,
    families: Vec<(String, ColumnFamilyOptions)>,
}

/// The files of a target are removed unless it is finished.
impl Target {
    /// Makes an empty database in an empty directory. It has no CURRENT until all is there: whoever
    /// opened what a killed process has left would take it for a database that holds no more.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn create(
        env: &Env,
        directory: &Path,
        default: &ColumnFamilyOptions,
        settings: &Options,
    ) -> Result<Self> {
        Names::new(env.fs.clone()).create_directory(directory)?;
        let spec = FamilySpec {
            name: DEFAULT_COLUMN_FAMILY_NAME.to_string(),
            comparator: default.comparator.clone(),
            persists_timestamps: default.persist_user_defined_timestamps,
            paths: DataPaths::single(directory),
            num_levels: default.sanitized().num_levels as usize,
        };
        let manifest = ManifestSettings {
            max_manifest_file_size: settings.max_manifest_file_size,
            ..ManifestSettings::default()
        };
        let versions = VersionSet::create_without_current(env.clone(), directory, spec, manifest)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            session: session_identity(env.random.next_u64(), env.random.next_u64()),
            env: env.clone(),
            names: versions.names().before_making(directory),
            versions,
            edits: Vec::new(),
            families: Vec::new(),
        })
    }

    /// Begins a family, which is made if it is not there. Its tables get the temperature that the
    /// options ask for, or else the `former` one.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn family(
        &mut self,
        name: &str,
        options: &ColumnFamilyOptions,
        former: Temperature,
    ) -> Result<FamilyWriter<'_>> {
        let known = self.versions.family_by_name(name).map(|family| family.id);
        let id = match known {
            Some(id) => id,
            None => {
                let spec = FamilySpec {
                    name: name.to_string(),
                    comparator: options.comparator.clone(),
                    persists_timestamps: options.persist_user_defined_timestamps,
                    paths: DataPaths::single(&self.directory),
                    num_levels: options.sanitized().num_levels as usize,
                };
                self.versions.create_column_family(spec, FileNumber(0))?
            }
        };
        let options = options.sanitized();
        let levels = options.num_levels as usize;
        let level = if options.compaction_style == CompactionStyle::Fifo { 0 } else { levels - 1 };
        let asked_for = table_temperatures(&options).of(level, levels);
        Ok(FamilyWriter {
            temperature: if asked_for.is_known() { asked_for } else { former },
            target: self,
            id,
            name: name.to_string(),
            level,
            options,
            table: None,
            blobs: BTreeMap::new(),
            edit: VersionEdit::new(id),
            smallest_blob: None,
        })
    }

    /// Makes what was written count. It has a WAL of its own, an empty one of a higher number than
    /// the source's: these are not its own, should its `wal_dir` be theirs one day.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn finish(
        mut self,
        settings: &Options,
        last_sequence: SequenceNumber,
    ) -> Result<()> {
        let wal = self.versions.file_numbers().allocate();
        self.env
            .fs
            .create_writable(&file_name::wal(&self.directory, wal), IoMode::Buffered)?
            .sync()?;
        self.names.sync()?;
        self.versions.set_last_sequence(last_sequence);
        let mut edits = std::mem::take(&mut self.edits);
        let all = self.versions.families().map(|family| family.id);
        edits.extend(all.map(|id| VersionEdit { log_number: Some(wal), ..VersionEdit::new(id) }));
        self.versions.log_and_apply(edits)?;
        let mut settings = settings.clone();
        // The source's files are there.
        settings.stand_alone();
        self.families.iter_mut().for_each(|(_, options)| options.stand_alone());
        let families: Vec<(&str, &ColumnFamilyOptions)> =
            self.families.iter().map(|(name, options)| (name.as_str(), options)).collect();
        if let Some((_, default)) =
            families.iter().find(|(name, _)| *name == DEFAULT_COLUMN_FAMILY_NAME)
        {
            settings.cf = (*default).clone();
        }
        let text = options::file::print(&settings, &families);
        let number = self.versions.file_numbers().allocate();
        let temporary = file_name::temporary(&self.directory, number);
        let target = file_name::options(&self.directory, number);
        self.versions.names().replace_file(&temporary, &target, text.as_bytes())?;
        self.versions.name_in_current()
    }

    /// The numbers of its files.
    pub(super) fn numbers(&self) -> Arc<FileNumbers> {
        self.versions.file_numbers().clone()
    }
}

struct OpenTable {
    number: FileNumber,
    file: Arc<dyn WritableFile>,
    builder: TableBuilder,
    oldest_blob: Option<FileNumber>,
}

/// Writes one family, key by key.
pub(super) struct FamilyWriter<'a> {
    target: &'a mut Target,
    id: ColumnFamilyId,
    name: String,
    level: usize,
    temperature: Temperature,
    options: ColumnFamilyOptions,
    table: Option<OpenTable>,
    /// By the compression of their values.
    blobs: BTreeMap<u8, BlobFileBuilder>,
    edit: VersionEdit,
    /// The smallest value that lies in a blob file, and how it is compressed.
    smallest_blob: Option<(u64, u8)>,
}

impl FamilyWriter<'_> {
    /// Ends the table if it is large enough: before a new user key, never within one.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn begin_key(&mut self) -> Result<()> {
        let size_max = match self.level {
            0 => self.options.target_file_size_base,
            level => {
                leveled_settings(&self.options, &DataPaths::default()).target_file_size(level, 1)
            }
        };
        let is_full = self
            .table
            .as_ref()
            .is_some_and(|open| open.builder.estimated_size() >= size_max.max(1));
        if is_full { self.finish_table() } else { Ok(()) }
    }

    /// The order of the keys.
    pub(super) fn comparator(&self) -> &Comparator {
        &self.options.comparator
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn add(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        blob: Option<FileNumber>,
    ) -> Result<()> {
        if self.table.is_none() {
            self.table = Some(self.begin_table()?);
        }
        let open = self.table.as_mut().expect("it was begun");
        open.oldest_blob = open.oldest_blob.into_iter().chain(blob).min();
        open.builder.add(key, value)
    }

    /// Stores a large value; what refers to it.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn add_blob(
        &mut self,
        user_key: &[u8],
        value: &[u8],
        compression: u8,
    ) -> Result<BlobIndex> {
        let index = self.blob_file(compression)?.add(user_key, value)?;
        self.note_blob(value.len() as u64, compression)?;
        Ok(index)
    }

    /// Stores a large value that is stored as it is, piece by piece; what refers to it.
    ///
    /// # Errors
    /// `IoError`; `Corruption` if it is not what was found any longer.
    pub(super) fn add_large_blob(
        &mut self,
        user_key: &[u8],
        large: &mut LargeBlob,
    ) -> Result<BlobIndex> {
        let LargeBlob { header, pieces } = large;
        let compression = CompressionType::None.to_byte();
        let index =
            self.blob_file(compression)?.add_pieces(user_key, header, &mut || pieces.next())?;
        self.note_blob(header.value_size, compression)?;
        Ok(index)
    }

    /// The file to which the next value of that compression goes.
    fn blob_file(&mut self, compression: u8) -> Result<&mut BlobFileBuilder> {
        if !self.blobs.contains_key(&compression) {
            let number = self.target.versions.file_numbers().allocate();
            let path = file_name::blob(&self.target.directory, number);
            let file = self.target.env.fs.create_writable(&path, IoMode::Buffered)?;
            let settings = BlobBuilderSettings {
                column_family: self.id,
                compression: CompressionType::from_byte(compression)
                    .unwrap_or(CompressionType::None),
                ..BlobBuilderSettings::default()
            };
            self.blobs.insert(compression, BlobFileBuilder::new(file, number, &settings)?);
        }
        Ok(self.blobs.get_mut(&compression).expect("it was put there"))
    }

    /// Counts a large value, and ends its file if that is large enough.
    fn note_blob(&mut self, size: u64, compression: u8) -> Result<()> {
        let smallest = (size, compression);
        self.smallest_blob = Some(self.smallest_blob.map_or(smallest, |known| known.min(smallest)));
        let is_full = self
            .blobs
            .get(&compression)
            .is_some_and(|builder| builder.file_size() >= self.options.blob_file_size);
        if is_full { self.finish_blob(compression) } else { Ok(()) }
    }

    fn finish_blob(&mut self, compression: u8) -> Result<()> {
        let Some(builder) = self.blobs.remove(&compression) else { return Ok(()) };
        let file = builder.file().clone();
        let summary = builder.finish()?;
        file.sync()?;
        self.edit.blob_file_additions.push(BlobFileAddition {
            number: summary.number,
            total_count: summary.count,
            total_bytes: summary.total_bytes,
            ..BlobFileAddition::default()
        });
        Ok(())
    }

    fn begin_table(&self) -> Result<OpenTable> {
        let number = self.target.versions.file_numbers().allocate();
        let path = file_name::table(&self.target.directory, number);
        let fs = &*self.target.env.fs;
        hint_temperature(fs, &path, self.temperature);
        let file = fs.create_writable(&path, IoMode::Buffered)?;
        let builder = TableBuilder::new(file.clone(), self.table_settings(number))?;
        Ok(OpenTable { number, file, builder, oldest_blob: None })
    }

    fn finish_table(&mut self) -> Result<()> {
        let Some(open) = self.table.take() else { return Ok(()) };
        let summary = open.builder.finish()?;
        open.file.sync()?;
        let (Some(smallest), Some(largest)) = (summary.smallest, summary.largest) else {
            return Ok(());
        };
        let now = self.target.env.clock.unix_seconds();
        let stamps = summary.properties.timestamps();
        let (min_timestamp, max_timestamp) =
            stamps.map(|(min, max)| (min.to_vec(), max.to_vec())).unwrap_or_default();
        let file = FileMetadata {
            min_timestamp,
            max_timestamp,
            user_timestamps_persisted: !strips_timestamps(&self.options),
            number: open.number,
            size: summary.size,
            smallest,
            largest,
            smallest_seqno: summary.smallest_sequence,
            largest_seqno: summary.largest_sequence,
            oldest_blob_file: open.oldest_blob,
            oldest_ancestor_time: now,
            file_creation_time: now,
            temperature: self.temperature,
            unique_id: summary.unique_id,
            tail_size: summary.tail_size,
            ..FileMetadata::default()
        };
        self.edit.add_file(self.level, file);
        Ok(())
    }

    /// How tables are written: as a compaction to the bottom would.
    fn table_settings(&self, number: FileNumber) -> TableBuilderSettings {
        let options = &self.options;
        let now = self.target.env.clock.unix_seconds();
        TableBuilderSettings {
            compression: leveled_settings(options, &DataPaths::default())
                .compression_of(self.level, 1, true),
            compression_options: compression_options(options, true),
            written_by: WrittenBy::Compaction { level: self.level as u32 },
            column_family: self.id,
            column_family_name: self.name.clone(),
            creation_time: now,
            file_creation_time: now,
            db_identity: self.target.versions.db_id().to_string(),
            session_identity: self.target.session.clone(),
            file_number: number,
            // FIFO has no bottom: its own tables always have their filters.
            ..table_builder_settings(
                options,
                self.level,
                options.compaction_style != CompactionStyle::Fifo,
            )
        }
    }

    /// Ends the family, which can be read as of `history_low`, if it has timestamps and that is
    /// known, and of newer ones. Without options of its own it is told to keep its large values
    /// apart as they were.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn finish(
        mut self,
        has_own_options: bool,
        history_low: Option<Vec<u8>>,
    ) -> Result<()> {
        self.finish_table()?;
        for compression in self.blobs.keys().copied().collect::<Vec<_>>() {
            self.finish_blob(compression)?;
        }
        if let Some((size, compression)) = self.smallest_blob.filter(|_| !has_own_options) {
            self.options.enable_blob_files = Some(true);
            self.options.min_blob_size = Some(size);
            let compression = CompressionType::from_byte(compression);
            self.options.blob_compression_type = Some(compression.unwrap_or(CompressionType::None));
        }
        if !self.edit.new_files.is_empty() || history_low.is_some() {
            self.edit.full_history_ts_low = history_low;
            self.target.edits.push(self.edit);
        }
        self.target.families.push((self.name, self.options));
        Ok(())
    }
}
