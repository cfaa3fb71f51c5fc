//! What the options' file manager is told and asked: it counts tables and blob files, and removes
//! obsolete files at its rate. Without one, nothing is counted, and files are removed at once.

use std::path::{Path, PathBuf};

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, Result, Sometimes};
use crate::blob::{FOOTER_SIZE, HEADER_SIZE};
use crate::db::disk::Disk;
use crate::env::ReservedSpace;
use crate::manifest::{ObsoleteFile, Version, VersionEdit, VersionSet};
use crate::options::BackgroundErrorReason;

impl Disk {
    /// Counts the files that edits have added, and suspends writes if all take too much now.
    pub(in crate::db) fn note_edits(&self, edits: Option<Vec<VersionEdit>>, versions: &VersionSet) {
        for edit in edits.into_iter().flatten() {
            if let Some(family) = versions.family(edit.family) {
                self.note_added(&edit, &family.current);
            }
        }
    }

    fn note_added(&self, edit: &VersionEdit, version: &Version) {
        let Some(tracked) = &self.tracked else { return };
        let paths = &version.paths;
        for (_, file) in &edit.new_files {
            let table = ObsoleteFile::table(paths, file.number, file.path_id);
            tracked.note(table.path(), file.size);
        }
        for blob in &edit.blob_file_additions {
            let size = file_size(blob.total_bytes);
            tracked.note(ObsoleteFile::blob(paths, blob.number).path(), size);
        }
        self.check_space_limit();
    }

    /// Whether anything counts the files.
    pub(in crate::db) fn tracks_files(&self) -> bool {
        self.tracked.is_some()
    }

    /// Counts all files of a version.
    pub(in crate::db) fn note_all(&self, version: &Version) {
        let Some(tracked) = &self.tracked else { return };
        for (_, file) in version.files() {
            tracked.note(file.path(), file.meta.size);
        }
        for blob in version.blob_files.values() {
            tracked.note(blob.file.path(), file_size(blob.file.meta.total_bytes));
        }
        self.check_space_limit();
    }

    /// The database is closed: its files are no longer counted.
    pub(in crate::db) fn forget_files(&self) {
        if let Some(tracked) = &self.tracked {
            tracked.forget();
        }
    }

    /// Whether files may take more.
    ///
    /// # Errors
    /// `IoError` with subcode `SpaceLimit`.
    pub(in crate::db) fn check_allowed_space(&self) -> Result<()> {
        self.tracked.as_ref().map_or(Ok(()), |tracked| tracked.check_room())
    }

    fn check_space_limit(&self) {
        if let Err(error) = self.check_allowed_space() {
            Sometimes::SpaceLimitReached.reached();
            self.context.poison.record(BackgroundErrorReason::Flush, &error);
        }
    }

    /// Keeps room for a compaction whose inputs have this size.
    ///
    /// # Errors
    /// `IoError` with subcode `SpaceLimit`.
    pub(in crate::db) fn reserve_room(&self, bytes: u64) -> Result<Option<ReservedSpace>> {
        let reserved = self.tracked.as_ref().map(|tracked| tracked.reserve(bytes)).transpose();
        reserved.inspect_err(|_: &Error| Sometimes::CompactionExceededSpaceLimit.reached())
    }

    /// Removes a file: a table, a blob file or a WAL at the manager's rate.
    pub(super) fn give_back(&self, path: &Path) -> Result<()> {
        let name = path.file_name().and_then(|name| name.to_str());
        let kind = name.and_then(FileKind::parse);
        match (&self.tracked, kind) {
            (Some(tracked), Some(FileKind::Table(_) | FileKind::Blob(_) | FileKind::Wal(_))) => {
                tracked.delete(path)
            }
            _ => self.context.env.fs.remove(path),
        }
    }

    /// At open: removes what waited to be removed in an earlier life.
    pub(in crate::db) fn remove_trash(&self, path: PathBuf) -> Result<()> {
        let removed = match &self.tracked {
            Some(tracked) => tracked.delete_trash(path),
            None => self.context.env.fs.remove(&path),
        };
        match removed {
            // The manager may be at it still, as another database of this process had it.
            Err(error) if error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }

    /// At open: removes the trash in the directories of WALs, unless that is the database's own.
    pub(in crate::db) fn remove_trash_of_wals(&self) -> Result<()> {
        let wals = &self.context.wal_directory;
        self.remove_trash_in(&file_name::archive(wals))?;
        if *wals == self.context.path { Ok(()) } else { self.remove_trash_in(wals) }
    }

    fn remove_trash_in(&self, directory: &Path) -> Result<()> {
        let names = match self.context.env.fs.list(directory) {
            Err(error) if error.is_not_found() => return Ok(()),
            names => names?,
        };
        let is_trash = |name: &&String| matches!(FileKind::parse(name), Some(FileKind::Trash(_)));
        names.iter().filter(is_trash).try_for_each(|name| self.remove_trash(directory.join(name)))
    }
}

fn file_size(total_bytes: u64) -> u64 {
    total_bytes.saturating_add((HEADER_SIZE + FOOTER_SIZE) as u64)
}
