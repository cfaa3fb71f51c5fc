//! Backups: copies of a database in a directory of their own, which share files.
//!
//! A [`BackupEngine`] works in one directory of backups, in the layout of RocksDB's class of that
//! name: each engine reads, restores and deletes the backups of the other. Tables and blob files
//! are copied once, however many backups have them.
//!
//! ```
//! use flagstone::Db;
//! use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
//!
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let at = |name: &str| directory.path().join(name);
//! let db = Db::open(at("db"))?;
//! db.put("stone", "flag")?;
//! let backups = BackupEngine::open(BackupEngineOptions::new(at("backups")))?;
//! let id = backups.create_new_backup(&db, &CreateBackupOptions::default())?;
//! backups.verify_backup(id, true)?;
//! backups.restore_latest(at("copy"))?;
//! let copy = Db::open(at("copy"))?;
//! assert_eq!(copy.get("stone")?.expect("it was put"), "flag");
//! # Ok(())
//! # }
//! ```
//!
//! - `format`: the grammar of a backup's meta file; `layout`: the names of files and directories
//! - `directory`: what is in a directory of backups
//! - `create`, `restore`, `verify`, `remove`: the operations; `transfer`: copying and checksums
//! - `engine`: [`BackupEngine`] and [`BackupEngineReadOnly`]; `options`, `info`: plain structs
//!
//! **Invariants**
//! - A backup exists while its file `meta/<id>` does. It is written last, once all files of the
//!   backup are durable, and removed first; files are removed once that is durable.
//! - A file that a meta file names is never written again. One that no meta file names is garbage.
//!   While there is a meta file that cannot be read, no shared file is taken for garbage.

mod create;
mod directory;
mod engine;
mod format;
mod info;
mod layout;
mod options;
mod remove;
mod restore;
mod transfer;
mod verify;

pub use engine::{BackupEngine, BackupEngineReadOnly};
pub use info::{BackupFileInfo, BackupInfo};
pub use options::{
    BackupEngineOptions, BackupId, BackupProgress, CreateBackupOptions, ExcludeFilesCallback,
    MaybeExcludeBackupFile, ProgressCallback, RestoreMode, RestoreOptions, ShareFilesNaming,
};

#[doc(hidden)]
pub use format::check_meta;

#[cfg(test)]
mod tests;
