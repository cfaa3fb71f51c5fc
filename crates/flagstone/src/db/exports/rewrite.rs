//! A table whose entries refer to blob files under their new numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::{
    ColumnFamilyId, DataPaths, Error, FileNumber, InternalIterator, Result, ValueType, entity,
};
use crate::blob::BlobIndex;
use crate::db::context::Context;
use crate::db::settings::{compression_options, leveled_settings, table_builder_settings};
use crate::env::{IoMode, hint_temperature};
use crate::manifest::{BlobReferences, EntryStats, FileMetadata};
use crate::options::ColumnFamilyOptions;
use crate::sst::{IterSettings, Table, TableBuilder, TableBuilderSettings};

/// The new number of each blob file.
pub(super) type Mapping = BTreeMap<FileNumber, FileNumber>;

/// How a table is written anew.
pub(super) struct Rewrite<'a> {
    pub(super) context: &'a Context,
    pub(super) options: &'a ColumnFamilyOptions,
    pub(super) family: (ColumnFamilyId, &'a str),
    pub(super) level: usize,
    pub(super) mapping: &'a Mapping,
}

impl Rewrite<'_> {
    /// Writes and syncs the table, and returns what the MANIFEST says of it: keys, sequence numbers
    /// and range deletions are as before.
    ///
    /// # Errors
    /// `Corruption` for a reference to a blob file that is not there; `IoError`.
    pub(super) fn run(
        &self,
        table: &Arc<Table>,
        meta: &FileMetadata,
        number: FileNumber,
        target: &Path,
    ) -> Result<FileMetadata> {
        let fs = &*self.context.env.fs;
        hint_temperature(fs, target, meta.temperature);
        let file = fs.create_writable(target, IoMode::Buffered)?;
        let mut settings = self.settings(meta, number);
        settings.write_times = Some(Arc::new(table.properties().write_times()?));
        let mut builder = TableBuilder::new(file.clone(), settings)?;
        let mut iter = table.iter(IterSettings::default());
        iter.seek_to_first();
        while iter.valid() {
            let (key, value) = (iter.key(), iter.value());
            match self.changed(key.value_type(), value)? {
                Some(changed) => builder.add(key, &changed)?,
                None => builder.add(key, value)?,
            }
            iter.next();
        }
        iter.status()?;
        for deletion in table.stored_range_deletions()? {
            builder.add_range_tombstone(&deletion.start, &deletion.end, deletion.sequence);
        }
        builder.note_bounds(meta.smallest.as_key(), meta.largest.as_key());
        let written = builder.finish()?;
        file.sync()?;
        let references = meta.blob_references.as_ref().map(|known| {
            let files = known.files().iter().map(|&(file, bytes)| Ok((self.mapped(file)?, bytes)));
            Ok::<_, Error>(BlobReferences::new(known.others, files.collect::<Result<_>>()?))
        });
        Ok(FileMetadata {
            number,
            path_id: 0,
            size: written.size,
            oldest_blob_file: meta.oldest_blob_file.map(|file| self.mapped(file)).transpose()?,
            blob_references: references.transpose()?.flatten(),
            file_checksum: Vec::new(),
            file_checksum_function: String::new(),
            unique_id: written.unique_id,
            entry_stats: Some(EntryStats::of(&written.properties)),
            tail_size: written.tail_size,
            ..meta.clone()
        })
    }

    /// A value with new numbers of blob files; `None` if it names none.
    fn changed(&self, kind: Option<ValueType>, value: &[u8]) -> Result<Option<Vec<u8>>> {
        match kind {
            Some(ValueType::BlobIndex) => self.with_new_file(value).map(Some),
            Some(ValueType::WideColumnEntity) if entity::has_blobs(value)? => {
                let mut columns = entity::decode(value)?;
                let of_blobs = columns.iter().filter(|column| column.is_blob);
                let indexes = of_blobs.map(|column| self.with_new_file(column.value));
                let indexes = indexes.collect::<Result<Vec<_>>>()?;
                let of_blobs = columns.iter_mut().filter(|column| column.is_blob);
                of_blobs.zip(&indexes).for_each(|(column, index)| column.value = index);
                Ok(Some(entity::encode_stored(&columns)))
            }
            _ => Ok(None),
        }
    }

    fn with_new_file(&self, index: &[u8]) -> Result<Vec<u8>> {
        let index = BlobIndex::decode(index)?;
        let mut encoded = Vec::new();
        BlobIndex { file: self.mapped(index.file)?, ..index }.encode(&mut encoded);
        Ok(encoded)
    }

    fn mapped(&self, file: FileNumber) -> Result<FileNumber> {
        self.mapping.get(&file).copied().ok_or_else(|| {
            Error::corruption(format!("an entry refers to blob file #{file}, which is not there"))
        })
    }

    fn settings(&self, meta: &FileMetadata, number: FileNumber) -> TableBuilderSettings {
        let options = self.options;
        let last = (options.sanitized().num_levels as usize).saturating_sub(1);
        let is_last = self.level == last;
        let leveled = leveled_settings(options, &DataPaths::default());
        TableBuilderSettings {
            compression: leveled.compression_of(self.level, 1, is_last),
            compression_options: compression_options(options, is_last),
            column_family: self.family.0,
            column_family_name: self.family.1.to_string(),
            creation_time: meta.oldest_ancestor_time,
            file_creation_time: meta.file_creation_time,
            db_identity: self.context.identity.database.clone(),
            session_identity: self.context.identity.session.clone(),
            file_number: number,
            ..table_builder_settings(options, self.level, is_last)
        }
    }
}
