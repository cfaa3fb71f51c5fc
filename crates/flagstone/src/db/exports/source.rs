//! A column family that is to be imported: which files it has, and whether they fit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::{
    DataPaths, Error, InternalIterator, InternalKeyComparator, Result, SequenceNumber,
};
use crate::blob::{BlobFileReader, BlobFileScan};
use crate::db::DbInner;
use crate::db::exports::ExportedFamily;
use crate::db::settings::strips_timestamps;
use crate::db::tree::directories::{exists, is_database};
use crate::env::{Env, FileLock, FileSystem, IoMode, RandomAccessFile};
use crate::manifest::{
    Family, FamilyListing, FamilySpec, FileMetadata, TableFile, list_column_families, read_family,
};
use crate::options::{
    ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, ImportColumnFamilyOptions, load_latest,
};
use crate::sst::{IterSettings, Table, TableReadSettings};

/// A family in a directory, with files that are there and fit.
pub(super) struct Source {
    fs: Arc<dyn FileSystem>,
    directory: PathBuf,
    family: Family,
    /// Keeps writers out, if a database has been open there.
    _lock: Option<Box<dyn FileLock>>,
}

impl Source {
    /// # Errors
    /// As [`crate::db::Db::create_column_family_with_import`].
    pub(super) fn open(
        inner: &DbInner,
        exported: &ExportedFamily,
        options: &ColumnFamilyOptions,
        how: &ImportColumnFamilyOptions,
    ) -> Result<Self> {
        let (env, directory) = (&inner.context.env, &exported.directory);
        let fs = &env.fs;
        if !is_database(&**fs, directory)? {
            let message =
                "the directory is no export, or the export was interrupted: there is no CURRENT";
            return Err(Error::invalid_argument(message).at(directory));
        }
        let lock = lock(&**fs, directory, how.move_files)?;
        let listed = choose(list_column_families(env, directory)?, exported)?;
        let comparator = options.comparator.name();
        if let Some(stored) = listed.comparator.as_deref().filter(|stored| *stored != comparator) {
            let message = format!(
                "column family '{}' is ordered by comparator '{stored}', and the new one by '{comparator}'",
                listed.name
            );
            return Err(Error::invalid_argument(message).at(directory));
        }
        let spec = FamilySpec {
            name: listed.name,
            comparator: options.comparator.clone(),
            persists_timestamps: options.persist_user_defined_timestamps,
            paths: DataPaths::single(directory),
            num_levels: options.sanitized().num_levels as usize,
        };
        let family = read_family(&**fs, directory, spec)?;
        let is_stripped = |file: &Arc<TableFile>| !file.meta.user_timestamps_persisted;
        if options.comparator.timestamp_size() > 0
            && (strips_timestamps(options)
                || family.current.files().any(|(_, file)| is_stripped(file)))
        {
            let message = "a column family whose tables have no timestamps is not imported";
            return Err(Error::not_supported(message).at(directory));
        }
        let directory = directory.clone();
        let source = Self { fs: fs.clone(), directory, family, _lock: lock };
        source.check_wals(env, how.move_files)?;
        if how.move_files {
            source.check_no_strangers()?;
        }
        source.check_files(options, how.verify_checksums)?;
        Ok(source)
    }

    /// Refuses entries in WALs, which the import would lack, or lose for another family.
    fn check_wals(&self, env: &Env, moves: bool) -> Result<()> {
        let mut directories = vec![self.directory.clone()];
        let loaded = load_latest(env, &self.directory)?;
        let elsewhere = loaded.map(|loaded| loaded.options.db.wal_dir).unwrap_or_default();
        let elsewhere = PathBuf::from(elsewhere);
        // The OPTIONS of a copy by RocksDB may name the original, whose WALs are its own.
        if exists(&*self.fs, &elsewhere)? && !is_database(&*self.fs, &elsewhere)? {
            directories.push(elsewhere);
        }
        for directory in directories {
            for name in self.fs.list(&directory)? {
                let path = directory.join(&name);
                let Some(FileKind::Wal(number)) = FileKind::parse(&name) else { continue };
                if (moves || number >= self.family.log_number) && self.fs.metadata(&path)?.size > 0
                {
                    let message = "the import would lack the entries of this WAL; export the column family, or flush \
                                   and close the database";
                    return Err(Error::invalid_argument(message).at(path));
                }
            }
        }
        Ok(())
    }

    /// Refuses files of other families, which `move_files` would remove.
    fn check_no_strangers(&self) -> Result<()> {
        let version = &self.family.current;
        for name in self.fs.list(&self.directory)? {
            let is_own = match FileKind::parse(&name) {
                Some(FileKind::Table(number)) => self.tables().any(|(_, it)| it.number() == number),
                Some(FileKind::Blob(number)) => version.blob_files.contains_key(&number),
                _ => true,
            };
            if !is_own {
                let message = "another column family may need this file, and move_files would remove it; export the \
                               column family first";
                return Err(Error::invalid_argument(message).at(self.directory.join(&name)));
            }
        }
        Ok(())
    }

    fn check_files(&self, options: &ColumnFamilyOptions, verifies: bool) -> Result<()> {
        for (_, file) in self.tables() {
            let table = self.open_table(&file.meta, &file.path(), options)?;
            check_table(&self.family.comparator, &file.meta, &table)
                .map_err(|error| error.at(file.path()))?;
            if verifies {
                verify_table(&table)?;
            }
        }
        for state in self.family.current.blob_files.values() {
            let file = self.open_listed(&state.file.path())?;
            BlobFileReader::open(file.clone(), self.family.id)?;
            if verifies {
                verify_blobs(file)?;
            }
        }
        Ok(())
    }

    /// Opens a file that the MANIFEST lists.
    fn open_listed(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.fs.open_random_access(path, IoMode::Buffered).map_err(|error| {
            if !error.is_not_found() {
                return error;
            }
            Error::corruption("the MANIFEST lists this file, but it is missing").at(path)
        })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn family(&self) -> &Family {
        &self.family
    }

    /// The tables with their levels.
    pub(super) fn tables(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.family.current.files()
    }

    /// Opens a table, whose entries keep the sequence numbers that they have there.
    ///
    /// # Errors
    /// `Corruption` if it is missing, or has another size; `IoError`.
    pub(super) fn open_table(
        &self,
        meta: &FileMetadata,
        path: &Path,
        options: &ColumnFamilyOptions,
    ) -> Result<Arc<Table>> {
        let file = self.open_listed(path)?;
        let size = file.size()?;
        if size != meta.size {
            let message = format!("the file has {size} bytes, and the MANIFEST says {}", meta.size);
            return Err(Error::corruption(message).at(path));
        }
        let settings = TableReadSettings {
            comparator: options.comparator.clone(),
            use_filter: false,
            largest_sequence: Some(meta.largest_seqno),
            unique_id: meta.unique_id,
            ..TableReadSettings::default()
        };
        Table::open(file, size, settings)
    }

    /// The largest sequence number of an entry.
    pub(super) fn newest(&self) -> SequenceNumber {
        self.family.current.largest_seqno()
    }

    /// The smallest and the largest user key.
    pub(super) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        self.family.current.key_bounds()
    }

    /// Removes the export; best effort. CURRENT goes first: what may stay is no export.
    pub(super) fn remove(&self) {
        let remove = || {
            self.fs.remove(&file_name::current(&self.directory))?;
            for name in self.fs.list(&self.directory)? {
                if FileKind::parse(&name).is_some() {
                    self.fs.remove(&self.directory.join(name))?;
                }
            }
            self.fs.remove_directory(&self.directory)
        };
        if let Err(error) = remove() {
            tracing::warn!(%error, "cannot remove an export that was moved");
        }
    }
}

/// Where a database has been open it may be again.
fn lock(fs: &dyn FileSystem, directory: &Path, moves: bool) -> Result<Option<Box<dyn FileLock>>> {
    let path = file_name::lock(directory);
    match fs.metadata(&path) {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
        Ok(_) if moves => fs.lock(&path).map(Some),
        Ok(_) => fs.lock_for_reading(&path).map(Some),
    }
}

fn choose(mut listed: Vec<FamilyListing>, exported: &ExportedFamily) -> Result<FamilyListing> {
    let found = match &exported.column_family {
        Some(name) => listed.iter().position(|family| family.name == *name),
        None if listed.len() <= 2 => listed.len().checked_sub(1),
        None => {
            let names: Vec<_> = listed.iter().map(|family| family.name.as_str()).collect();
            let message = format!("name one of the column families: {}", names.join(", "));
            return Err(Error::invalid_argument(message).at(&exported.directory));
        }
    };
    let found = found.ok_or_else(|| {
        let name = exported.column_family.as_deref().unwrap_or(DEFAULT_COLUMN_FAMILY_NAME);
        let message = format!("there is no column family '{name}'");
        Error::invalid_argument(message).at(&exported.directory)
    })?;
    Ok(listed.swap_remove(found))
}

/// Whether a table is the one of which the MANIFEST speaks.
fn check_table(
    order: &InternalKeyComparator,
    meta: &FileMetadata,
    table: &Arc<Table>,
) -> Result<()> {
    let stored = &table.properties().comparator;
    let expected = order.user.name();
    if !stored.is_empty() && stored != expected {
        return Err(Error::invalid_argument(format!(
            "the table is ordered by comparator '{stored}', and its column family by '{expected}'"
        )));
    }
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    let starts_early = iter.valid() && order.compare(iter.key(), meta.smallest.as_key()).is_lt();
    // The next seek forgets an error of this one.
    iter.status()?;
    iter.seek_to_last();
    let ends_late = iter.valid() && order.compare(iter.key(), meta.largest.as_key()).is_gt();
    iter.status()?;
    if starts_early || ends_late {
        let message = "the table has keys outside of the bounds that the MANIFEST records";
        return Err(Error::corruption(message));
    }
    Ok(())
}

fn verify_table(table: &Table) -> Result<()> {
    let mut first = None;
    table.verify(&mut |fault| {
        first.get_or_insert(fault.error);
    });
    first.map_or(Ok(()), Err)
}

fn verify_blobs(file: Arc<dyn RandomAccessFile>) -> Result<()> {
    let mut records = BlobFileScan::new(file)?;
    while let Some(record) = records.next() {
        let record = record?;
        // A record without a key may fill a hole: its checksum must do.
        if !record.key.is_empty() {
            records.check_value(&record)?;
        }
    }
    Ok(())
}
