//! A column family that moves from one database to another.
//!
//! The engine imports a directory to which a family was exported, as a whole. So of a list of files
//! only the directories count.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use flagstone::db::ExportedFamily;
use flagstone::options::ImportColumnFamilyOptions;
use flagstone_rocksdb as rdb;

use crate::abi::{Result, Tagged, copied_text, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::{Db, Family};
use crate::ingest::Checkpoint;
use crate::options::Options;
use crate::report::{File, Files, tables, with_nul};

/// What was exported.
#[derive(Default)]
pub struct Exported {
    comparator: CString,
    files: Vec<File>,
}

/// How a family is imported.
#[derive(Default)]
pub struct ImportOptions(ImportColumnFamilyOptions);

handles! {
    Exported = "export_import_files_metadata",
    ImportOptions = "import_column_family_options",
}

creates! {
    rocksdb_export_import_files_metadata_create: Exported,
    rocksdb_import_column_family_options_create: ImportOptions,
}

destroys! {
    rocksdb_export_import_files_metadata_destroy: Exported,
    rocksdb_import_column_family_options_destroy: ImportOptions,
}

c_settings! { "rocksdb_import_column_family_options", ImportOptions, |o| {
    value u8, move_files: o.0.move_files;
} }

/// The files of a family that lie in the directory of an export.
fn exported_files(db: &flagstone::db::Db, family: &str, directory: &std::path::Path) -> Vec<File> {
    let family = with_nul(family.as_bytes());
    let of_family = tables(db).into_iter().filter(|file| file.family == family);
    let there = of_family.filter(|file| directory.join(file.file_name()).exists());
    there.map(|file| file.exported_to(directory)).collect()
}

impl Exported {
    fn sources(&self) -> Result<Vec<ExportedFamily>> {
        let directories = self.files.iter().map(|file| file.directory().to_path_buf());
        let mut directories: Vec<PathBuf> = directories.collect();
        directories.sort();
        directories.dedup();
        if directories.is_empty() {
            return Err(rdb::Error::invalid_argument("The list of files is empty"));
        }
        Ok(directories.into_iter().map(ExportedFamily::new).collect())
    }
}

c_api! {
    fn rocksdb_checkpoint_export_column_family(
        checkpoint: &Checkpoint, family: &Family, directory: path, error
    ) -> *mut Tagged<Exported> {
        let db = checkpoint.0.engine();
        db.export_column_family(&family.engine, directory)?;
        let comparator = CString::new(family.engine.comparator().name()).unwrap_or_default();
        let files = exported_files(db, family.engine.name(), directory);
        make(Exported { comparator, files })
    }

    fn rocksdb_export_import_files_metadata_get_db_comparator_name(
        exported: &Exported
    ) -> *mut c_char {
        copied_text(exported.comparator.as_bytes())
    }

    fn rocksdb_export_import_files_metadata_set_db_comparator_name(
        exported: &mut Exported, name: cstr
    ) {
        exported.comparator = name.to_owned();
    }

    fn rocksdb_export_import_files_metadata_get_files(exported: &Exported) -> *mut Tagged<Files> {
        make(Files(exported.files.clone()))
    }

    fn rocksdb_export_import_files_metadata_set_files(exported: &mut Exported, files: own Files) {
        exported.files = files.map(|files| files.0).unwrap_or_default();
    }

    fn rocksdb_create_column_family_with_import(
        db: &Db, options: &Options, name: str, import: &ImportOptions, exported: &Exported, error
    ) -> *mut Tagged<Family> {
        let comparator = options.rdb.db.cf.comparator.name();
        if exported.comparator.as_bytes() != comparator.as_bytes() {
            return Err(rdb::Error::invalid_argument("Comparator name mismatch"));
        }
        let (options, sources) = (options.rdb.engine_family()?, exported.sources()?);
        let engine =
            db.engine().create_column_family_with_import(name, &options, &sources, &import.0)?;
        make(Family { engine })
    }
}

impl File {
    /// Its name in its directory.
    fn file_name(&self) -> &OsStr {
        // Behind a slash, and before a NUL byte.
        OsStr::from_bytes(self.name().strip_prefix(b"/").unwrap_or(self.name()))
    }

    fn directory(&self) -> &std::path::Path {
        std::path::Path::new(OsStr::from_bytes(self.directory_name()))
    }
}
