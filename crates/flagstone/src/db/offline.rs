//! Changes to the MANIFEST of a database that is closed.
//!
//! 1. Take the LOCK, and read the MANIFEST. Neither tables nor WALs are opened, so a database that
//!    does not open for a missing table can be changed.
//! 2. Each change begins a new MANIFEST with the full state, adds its edits, syncs it, and then has
//!    CURRENT name it.
//! 3. Files are left where they are. The next opening for writing removes those that the MANIFEST
//!    no longer lists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::base::{
    ColumnFamilyId, Error, FileChecksum, FileNumber, Result, Temperature, file_name,
};
use crate::db::opening::open::{family_spec, manifest_settings, no_database};
use crate::db::tree::directories::{check_files_are_not_here, is_database};
use crate::db::tree::directory_owner::check_owner;
use crate::env::{FileLock, IoMode, read_for_checksum};
use crate::manifest::{FileMetadata, RecoverOptions, VersionEdit, VersionSet};
use crate::options::{ColumnFamilyOptions, Options};

/// The MANIFEST of a closed database, for tools that change it. While this exists, nobody else
/// opens the database for writing.
pub struct OfflineManifest {
    versions: VersionSet,
    options: Options,
    /// Declared last: it is given back when nothing is written any more.
    _lock: Box<dyn FileLock>,
}

/// A table that the MANIFEST lists.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OfflineTable {
    /// The family's name.
    pub column_family: String,
    /// Its level.
    pub level: usize,
    /// Where the MANIFEST says that it lies.
    pub path: PathBuf,
    /// What the MANIFEST says of it.
    pub meta: FileMetadata,
    family: ColumnFamilyId,
}

/// What is to be changed in the MANIFEST's entry of a table.
#[derive(Debug, Clone, Default)]
pub struct TableFacts {
    /// The temperature, if it changes.
    pub temperature: Option<Temperature>,
    /// The checksum of the whole file, if it changes.
    pub checksum: Option<FileChecksum>,
}

impl OfflineManifest {
    /// Takes the lock of the database in `path` and reads its MANIFEST. All families must be named.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no database, or families are missing; `Busy` if it is open;
    /// `Corruption`; `IoError`.
    pub fn open(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        let (path, env) = (path.as_ref(), options.env.clone());
        if !is_database(&*env.fs, path)? {
            return Err(no_database(path));
        }
        options.validate()?;
        check_owner(&*env.fs, path, path)?;
        let lock = env.fs.lock(&file_name::lock(path))?;
        let within =
            families.iter().map(|(name, family)| (*name, family.clone().within(&options.db)));
        let specs = within.map(|(name, family)| family_spec(path, &options.db, name, &family));
        let settings = manifest_settings(&options.db);
        let families = specs.collect::<Result<_>>()?;
        let recover = RecoverOptions { families, read_only: false, settings };
        let versions = VersionSet::recover(env.clone(), path, recover)?;
        check_files_are_not_here(&*env.fs, path, &versions)?;
        Ok(Self { versions, options: options.clone(), _lock: lock })
    }

    /// The tables that the MANIFEST lists, by family and level.
    #[must_use]
    pub fn tables(&self) -> Vec<OfflineTable> {
        let of_family = |family: &crate::manifest::Family| {
            let table = |(level, file): (usize, &std::sync::Arc<crate::manifest::TableFile>)| {
                let (column_family, path) = (family.name.clone(), file.path());
                OfflineTable {
                    column_family,
                    level,
                    path,
                    meta: file.meta.clone(),
                    family: family.id,
                }
            };
            family.current.files().map(table).collect::<Vec<_>>()
        };
        self.versions.families().flat_map(of_family).collect()
    }

    /// The table with that number.
    ///
    /// # Errors
    /// `InvalidArgument` if the MANIFEST lists none.
    pub fn table(&self, number: FileNumber) -> Result<OfflineTable> {
        let found = self.tables().into_iter().find(|table| table.meta.number == number);
        found.ok_or_else(|| {
            Error::invalid_argument(format!("the MANIFEST lists no table with the number {number}"))
        })
    }

    /// Removes a table from the MANIFEST. Its entries are lost. What they hid in deeper levels is
    /// seen again: older values of their keys, and keys that they deleted.
    ///
    /// # Errors
    /// As [`OfflineManifest::table`]; those of the MANIFEST, and then nothing has changed.
    pub fn remove_table(&mut self, number: FileNumber) -> Result<OfflineTable> {
        let table = self.table(number)?;
        let mut edit = VersionEdit::new(table.family);
        edit.delete_file(table.level, number);
        self.versions.log_and_apply(vec![edit])?;
        Ok(table)
    }

    /// Changes what the MANIFEST says of tables, of all or none.
    ///
    /// # Errors
    /// As [`OfflineManifest::table`]; those of the MANIFEST, and then nothing has changed.
    pub fn update_tables(&mut self, changes: &BTreeMap<FileNumber, TableFacts>) -> Result<()> {
        let mut edits: BTreeMap<ColumnFamilyId, VersionEdit> = BTreeMap::new();
        for (number, facts) in changes {
            let table = self.table(*number)?;
            let mut meta = table.meta;
            meta.temperature = facts.temperature.unwrap_or(meta.temperature);
            if facts.checksum.is_some() {
                meta.set_checksum(facts.checksum.clone());
            }
            let edit = edits.entry(table.family).or_insert_with(|| VersionEdit::new(table.family));
            edit.delete_file(table.level, *number);
            edit.add_file(table.level, meta);
        }
        if edits.is_empty() {
            return Ok(());
        }
        self.versions.log_and_apply_atomically(edits.into_values().collect())
    }

    /// Reads a table for the checksum that new files get; `None` if they get none
    /// (`file_checksum_gen_factory`).
    ///
    /// # Errors
    /// `Corruption` if the file is not as long as the MANIFEST says; `IoError`.
    pub fn checksum_of(&self, table: &OfflineTable) -> Result<Option<FileChecksum>> {
        let Some(running) = self.options.file_checksums().for_new_file()? else { return Ok(None) };
        let file = self.options.env.fs.open_random_access(&table.path, IoMode::Buffered)?;
        let (found, expected) = (file.size()?, table.meta.size);
        if found != expected {
            let message = format!("the table has {found} bytes, but {expected} by the MANIFEST");
            return Err(Error::corruption(message).at(&table.path));
        }
        read_for_checksum(&*file, expected, running).map(Some)
    }
}
