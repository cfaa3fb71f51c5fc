//! The files of a database found in its directories, identified by their names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::families::Families;
use super::history::History;
use super::report::SalvageReport;
use crate::base::file_name::{self, FileKind};
use crate::base::{Error, FileNumber, Result};
use crate::env::{FileSystem, Metadata};
use crate::options::{ColumnFamilyOptions, Options};

/// A file of the source.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// What tells it from other files, where that is known.
    id: Option<(u64, u64)>,
}

/// Files of a kind. Of a number there are several where they were copied from one directory to
/// another.
pub(super) type Files = BTreeMap<FileNumber, Vec<Listed>>;

/// Whose tables lie in a directory, as the options say.
#[derive(Debug, Clone, Default)]
struct Namers {
    /// Whether it is one for the tables of all families.
    is_of_all: bool,
    families: Vec<String>,
}

/// Where the options say that tables lie.
#[derive(Debug, Default)]
pub(super) struct DataDirectories(BTreeMap<PathBuf, Namers>);

impl DataDirectories {
    /// Those of a database and of its families.
    pub(super) fn of(options: &Options, families: &[(&str, ColumnFamilyOptions)]) -> Self {
        let mut all = Self::default();
        for (path, _) in [&options.db_paths, &options.cf.cf_paths]
            .into_iter()
            .flat_map(|list| list.directories())
        {
            all.0.entry(path).or_default().is_of_all = true;
        }
        for (name, family) in families {
            for (path, _) in family.cf_paths.directories() {
                all.0.entry(path).or_default().families.push((*name).to_string());
            }
        }
        all
    }

    /// Leaves out one that is looked at anyway.
    pub(super) fn remove(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Their paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

/// The files that hold data, by kind.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) tables: Files,
    pub(super) wals: Files,
    /// WALs that no family needs any longer, kept for others.
    pub(super) archived: Files,
    pub(super) blobs: Files,
    pub(super) manifests: Files,
    /// Those of which nothing but the name can be read.
    unreadable: Vec<(FileKind, Error)>,
    /// Directories of which not even the names can be.
    unlisted: Vec<Error>,
    /// Those of tables and blob files that are not there.
    absent: Vec<(Error, Namers)>,
    /// That of WALs, if it is not there.
    absent_wals: Option<PathBuf>,
    /// What cannot be read of the archive.
    unreadable_archive: Vec<Error>,
}

impl Directory {
    /// Lists the database's directory, those of tables and blob files beside it and, if WALs lie
    /// elsewhere, theirs.
    ///
    /// # Errors
    /// `IoError` of the database's directory.
    pub(super) fn list(
        fs: &dyn FileSystem,
        database: &Path,
        data: &DataDirectories,
        wals: Option<&Path>,
    ) -> Result<Self> {
        let mut directory = Self::default();
        directory.add(fs, database, |_| true)?;
        for (path, namers) in &data.0 {
            let found = directory
                .add(fs, path, |kind| matches!(kind, FileKind::Table(_) | FileKind::Blob(_)));
            match found {
                Err(error) if error.is_not_found() => {
                    directory.absent.push((error, namers.clone()))
                }
                // It does not keep what is in others from being saved.
                found => directory.unlisted.extend(found.err()),
            }
        }
        if let Some(wals) = wals {
            match directory.add(fs, wals, |kind| matches!(kind, FileKind::Wal(_))) {
                Err(error) if error.is_not_found() => {
                    directory.absent_wals = Some(wals.to_path_buf())
                }
                found => directory.unlisted.extend(found.err()),
            }
        }
        directory.list_archive(fs, wals.unwrap_or(database));
        Ok(directory)
    }

    /// What is in the archive, tables have: nothing is lost with it.
    fn list_archive(&mut self, fs: &dyn FileSystem, wals: &Path) {
        let mut archive = Self::default();
        let found =
            archive.add(fs, &file_name::archive(wals), |kind| matches!(kind, FileKind::Wal(_)));
        self.archived = archive.wals;
        self.unreadable_archive.extend(archive.unreadable.into_iter().map(|(_, error)| error));
        // Most databases have none.
        self.unreadable_archive.extend(found.err().filter(|error| !error.is_not_found()));
    }

    fn add(
        &mut self,
        fs: &dyn FileSystem,
        directory: &Path,
        wanted: fn(FileKind) -> bool,
    ) -> Result<()> {
        for name in fs.list(directory)? {
            let path = directory.join(&name);
            let Some(kind) = FileKind::parse(&name).filter(|kind| wanted(*kind)) else { continue };
            let (files, number) = match kind {
                FileKind::Table(number) => (&mut self.tables, number),
                FileKind::Wal(number) => (&mut self.wals, number),
                FileKind::Blob(number) => (&mut self.blobs, number),
                FileKind::Manifest(number) => (&mut self.manifests, number),
                _ => continue,
            };
            match fs.metadata(&path) {
                Ok(Metadata { size: bytes, id, .. }) => {
                    let files = files.entry(number).or_default();
                    // A directory may have two names.
                    if id.is_none() || files.iter().all(|known| known.id != id) {
                        files.push(Listed { path, bytes, id });
                    }
                }
                Err(error) => self.unreadable.push((kind, error)),
            }
        }
        Ok(())
    }

    /// Whether nothing here is of a database.
    pub(super) fn is_empty(&self) -> bool {
        let files = [&self.tables, &self.wals, &self.archived, &self.blobs, &self.manifests];
        files.iter().all(|files| files.is_empty())
    }

    /// Reports what cannot be read at all, such as links to nowhere; whether tables are among it
    /// that no edit names. A value in a blob file is missed when it is referred to.
    pub(super) fn report_unreadable(
        &mut self,
        history: &History,
        report: &mut SalvageReport,
    ) -> bool {
        // Else what those should hold that are not there is named, and missed.
        if !history.is_trusted {
            self.absent_wals.iter().for_each(|wals| {
                report.note(format!(
                    "{} is missing, where the options say that the WALs are; it is unknown whether there were any.",
                    wals.display()
                ));
            });
        }
        let mut has_unnamed_tables = !self.unlisted.is_empty();
        self.unlisted.drain(..).for_each(|error| report.lose_whole(error, None));
        self.unreadable_archive.drain(..).for_each(|error| report.pass_over(error));
        for (kind, error) in std::mem::take(&mut self.unreadable) {
            let is_loss = match kind {
                FileKind::Table(number) => {
                    !history.is_trusted || history.live.contains_key(&number)
                }
                FileKind::Wal(_) => true,
                FileKind::Blob(_) => !history.is_trusted,
                _ => false,
            };
            if is_loss {
                report.lose_whole(error, None)
            } else {
                report.pass_over(error)
            }
            has_unnamed_tables |=
                matches!(kind, FileKind::Table(number) if !history.live.contains_key(&number));
        }
        has_unnamed_tables
    }

    /// Reports directories of tables that are not there, where nothing names what they had; whether
    /// something is lost with one. Of a family that older options name, and nothing that was found,
    /// it may have gone with the family.
    pub(super) fn report_absent(
        &mut self,
        families: &Families,
        report: &mut SalvageReport,
    ) -> bool {
        let mut is_any_lost = false;
        let absent = std::mem::take(&mut self.absent);
        for (error, namers) in absent.into_iter().filter(|_| !families.history().is_trusted) {
            let is_needed = families.are_given_newest()
                || namers.is_of_all
                || namers.families.iter().any(|name| families.is_known(name));
            is_any_lost |= is_needed;
            if is_needed {
                report.lose_whole(error, None);
                continue;
            }
            report.note(format!(
                "{} is missing, where older options say that tables of family '{}' are; the family may have been dropped since.",
                error.path().unwrap_or(Path::new("")).display(),
                namers.families.join("', '")
            ))
        }
        is_any_lost
    }
}
