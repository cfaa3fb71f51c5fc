//! Where the values of a job's output go: into the table, or into a blob file.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use crate::base::sync::{Mutex, Ordering};
use crate::base::{
    FileNumber, InternalKey, Result, Sometimes, TableFileCreationReason, ValueType, entity,
};
use crate::blob::{
    BlobBuilderSettings, BlobFileReader, BlobIndex, BlobPieces, BlobReadahead, BlobSeparator,
    FOOTER_SIZE, HEADER_SIZE, SeparationPolicy, is_read_in_pieces, visit_references,
};
use crate::compaction::ValueSeparator;
use crate::db::family::Family;
use crate::db::jobs::job::{JobSpec, Made, Unfinished};
use crate::db::jobs::{Jobs, output};
use crate::db::tables::Tables;
use crate::db::tree::output::JobOutput;
use crate::env::{IoPriority, WritableFile};
use crate::iter::ValueResolver;
use crate::manifest::{BlobFileAddition, Version};
use crate::options::{ColumnFamilyOptions, PrepopulateBlobCache};
use crate::sst::ReadSettings;

type OpenFile<'a> = Box<dyn FnMut() -> Result<(FileNumber, Arc<dyn WritableFile>)> + Send + 'a>;

/// Moves large values to new blob files, and takes those out of files that are being collected.
pub(in crate::db) struct Placement<'a> {
    source: BlobSource<'a>,
    spec: &'a JobSpec,
    unfinished: &'a Unfinished<'a>,
    separator: BlobSeparator<OpenFile<'a>>,
    /// The blob files that are being emptied.
    emptied: &'a BTreeSet<FileNumber>,
    /// Puts what it writes into the cache, too.
    fills_cache: bool,
    /// Moves large columns of entities to blob files.
    separates_columns: bool,
    relocated_blobs: u64,
    relocated_bytes: u64,
}

impl<'a> Placement<'a> {
    pub(in crate::db) fn new(
        inner: &'a Jobs,
        spec: &'a JobSpec,
        options: &ColumnFamilyOptions,
        unfinished: &'a Unfinished<'a>,
        reads: BlobReads<'a>,
    ) -> Self {
        let settings = &options.settings;
        let separates = settings.separates_values()
            && spec.target.place.level >= settings.blob_file_starting_level.max(0) as usize;
        let policy = if separates {
            SeparationPolicy::AtLeast { min_blob_size: settings.smallest_blob() }
        } else {
            SeparationPolicy::Never
        };
        let (of_db, default) = (inner.context.settings.load(), BlobBuilderSettings::default());
        let buffer_size = of_db.writable_file_max_buffer_size as usize;
        let builder = BlobBuilderSettings {
            column_family: spec.family.id,
            compression: settings.blob_compression(),
            // Through the system's cache, larger values are better written without a copy.
            buffer_size: if of_db.use_direct_io_for_flush_and_compaction {
                buffer_size
            } else {
                buffer_size.min(default.buffer_size)
            },
            ..default
        };
        let blob_file_size = spec.family.limits.blob_file_size.load(Ordering::Relaxed);
        let open: OpenFile<'a> = Box::new(move || {
            let number = inner.tree.file_numbers.allocate();
            unfinished.create(Made::BlobFile, number, spec.family.paths.blob(number))
        });
        Self {
            unfinished,
            source: BlobSource::new(inner, &spec.family, &spec.version)
                .asking_with(spec.pace.priority)
                .reading_as(reads),
            spec,
            separator: BlobSeparator::new(policy, builder, blob_file_size, open),
            emptied: &spec.blob_gc,
            fills_cache: spec.filtered.reason == TableFileCreationReason::Flush
                && settings.prepopulate_blob_cache == PrepopulateBlobCache::FlushOnly,
            separates_columns: separates && settings.blob_entity_columns,
            relocated_blobs: 0,
            relocated_bytes: 0,
        }
    }

    pub(in crate::db) fn resolver(&self) -> BlobSource<'a> {
        self.source
    }

    /// Seals and syncs the blob files.
    pub(in crate::db) fn finish(self, output: &mut JobOutput) -> Result<()> {
        for finished in self.separator.finish()? {
            output::sync_output(self.source.inner, self.spec, &*finished.file)?;
            let size = finished.summary.total_bytes + (HEADER_SIZE + FOOTER_SIZE) as u64;
            output.counts.blob_bytes += size;
            let number = finished.summary.number;
            let checksum = self.unfinished.checksum_of(number, &*finished.file, size)?;
            let addition = BlobFileAddition {
                number,
                total_count: finished.summary.count,
                total_bytes: finished.summary.total_bytes,
                ..BlobFileAddition::default()
            };
            output.blob_files.push(addition.with_checksum(checksum));
        }
        output.counts.relocated_blobs = self.relocated_blobs;
        output.counts.relocated_bytes = self.relocated_bytes;
        Ok(())
    }
}

impl ValueSeparator for Placement<'_> {
    fn place(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueType>> {
        let user_key = key.user_key();
        match key.value_type() {
            Some(ValueType::Value) => match self.separator.separate(user_key, value)? {
                Some(index) => {
                    if self.fills_cache {
                        let BlobSource { inner, family, .. } = self.source;
                        inner.tables.prepopulate_blob(family, user_key, &index, value);
                    }
                    index.encode(out);
                    Ok(Some(ValueType::BlobIndex))
                }
                None => Ok(None),
            },
            Some(ValueType::BlobIndex) => {
                let index = BlobIndex::decode(value)?;
                if !self.emptied.contains(&index.file) {
                    return Ok(None);
                }
                Sometimes::BlobRelocated.reached();
                self.relocated_blobs += 1;
                self.relocated_bytes += index.size;
                self.relocate(user_key, &index, value, out).map(Some)
            }
            Some(ValueType::WideColumnEntity) => {
                let changed = self.place_columns(user_key, value)?;
                Ok(changed.map(|entity| {
                    *out = entity;
                    ValueType::WideColumnEntity
                }))
            }
            _ => Ok(None),
        }
    }
}

impl Placement<'_> {
    /// The entity with its columns where they are to lie; `None` if they lie there.
    fn place_columns(&mut self, user_key: &[u8], stored: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut has_work = self.separates_columns;
        visit_references(Some(ValueType::WideColumnEntity), stored, |index| {
            has_work |= self.emptied.contains(&index.file);
            Ok(())
        })?;
        if !has_work {
            return Ok(None);
        }
        let mut columns = entity::decode(stored)?;
        let mut moved = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let mut value = Vec::new();
            if column.is_blob {
                let index = BlobIndex::decode(column.value)?;
                if self.emptied.contains(&index.file) {
                    Sometimes::ColumnRelocated.reached();
                    self.relocated_blobs += 1;
                    self.relocated_bytes += index.size;
                    let kind = self.relocate(user_key, &index, column.value, &mut value)?;
                    moved.push((at, value, kind == ValueType::BlobIndex));
                }
            } else if self.separates_columns
                && let Some(index) = self.separator.separate(user_key, column.value)?
            {
                Sometimes::ColumnSeparated.reached();
                index.encode(&mut value);
                moved.push((at, value, true));
            }
        }
        for (at, value, is_blob) in &moved {
            (columns[*at].value, columns[*at].is_blob) = (value, *is_blob);
        }
        Ok((!moved.is_empty()).then(|| entity::encode_stored(&columns)))
    }

    /// Takes a value out of a blob file that is being emptied: to another, or, written to `out`,
    /// into the table.
    fn relocate(
        &mut self,
        user_key: &[u8],
        index: &BlobIndex,
        blob_index: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ValueType> {
        if is_read_in_pieces(index)
            && self.separator.takes_pieces(index.size)
            && let Some(moved) = self
                .separator
                .separate_pieces(user_key, &mut self.source.pieces_of(user_key, index)?)?
        {
            moved.encode(out);
            return Ok(ValueType::BlobIndex);
        }
        let blob = self.source.resolve_blob(user_key, blob_index)?;
        match self.separator.separate(user_key, &blob)? {
            Some(moved) => {
                moved.encode(out);
                Ok(ValueType::BlobIndex)
            }
            None => {
                out.extend_from_slice(&blob);
                Ok(ValueType::Value)
            }
        }
    }
}

/// Reads the blobs that a job needs; always verified.
#[derive(Clone, Copy)]
pub(in crate::db) struct BlobSource<'a> {
    inner: &'a Jobs,
    family: &'a Family,
    version: &'a Version,
    /// Whether reading asks the rate limiter.
    priority: Option<IoPriority>,
    reads: BlobReads<'a>,
}

/// How a job reads blobs, if not as readers do.
#[derive(Clone, Copy, Default)]
pub(in crate::db) struct BlobReads<'a> {
    /// What reads ahead, if anything does.
    pub(in crate::db) ahead: Option<&'a Mutex<BlobReadahead>>,
    /// Files of its own, around the system's cache.
    pub(in crate::db) own_files: Option<&'a OwnBlobFiles>,
}

/// The blob files that a job has opened for itself, to read them around the system's cache: what it
/// moves would only drive out what readers want.
#[derive(Default)]
pub(in crate::db) struct OwnBlobFiles(Mutex<HashMap<FileNumber, Arc<BlobFileReader>>>);

impl OwnBlobFiles {
    /// The reader of a blob file; that of all where no version has it yet, as its end may not be
    /// written.
    fn reader(
        &self,
        tables: &Tables,
        family: &Family,
        version: &Version,
        number: FileNumber,
    ) -> Result<Arc<BlobFileReader>> {
        if !version.blob_files.contains_key(&number) {
            return tables.named_blob_file(family, version, number);
        }
        if let Some(known) = self.0.lock().get(&number) {
            return Ok(known.clone());
        }
        let reader = Arc::new(tables.blob_file_around_cache(family, number)?);
        Ok(self.0.lock().entry(number).or_insert(reader).clone())
    }
}

impl<'a> BlobSource<'a> {
    pub(in crate::db) fn new(inner: &'a Jobs, family: &'a Family, version: &'a Version) -> Self {
        Self { inner, family, version, priority: None, reads: BlobReads::default() }
    }

    fn asking_with(self, priority: IoPriority) -> Self {
        Self { priority: Some(priority), ..self }
    }

    fn reading_as(self, reads: BlobReads<'a>) -> Self {
        Self { reads, ..self }
    }

    /// A value that is read piece by piece.
    fn pieces_of(&self, user_key: &[u8], index: &BlobIndex) -> Result<BlobPieces> {
        if let Some(priority) = self.priority {
            self.inner.background.before_job_reads(index.record_bytes(user_key.len()), priority);
        }
        self.reader(index.file)?.pieces(user_key, index)
    }

    /// The reader of a blob file.
    fn reader(&self, number: FileNumber) -> Result<Arc<BlobFileReader>> {
        let (tables, family, version) = (&self.inner.tables, self.family, self.version);
        match self.reads.own_files {
            None => tables.named_blob_file(family, version, number),
            Some(own) => own.reader(tables, family, version, number),
        }
    }
}

impl ValueResolver for BlobSource<'_> {
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        let settings =
            ReadSettings { verify_checksums: true, fill_cache: false, cache_only: false };
        let place = self.inner.tables.place_of_blob(self.family, user_key, blob_index)?;
        if let Some(priority) = self.priority {
            self.inner
                .background
                .before_job_reads(place.index.record_bytes(user_key.len()), priority);
        }
        let mut ahead = self.reads.ahead.map(|ahead| ahead.lock());
        let open = || self.reader(place.index.file);
        self.inner.tables.read_blob_of(user_key, &place, &settings, ahead.as_deref_mut(), open)
    }
}
