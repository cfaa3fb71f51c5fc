//! The files of an import, under numbers of the database's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result, Sometimes, file_name};
use crate::blob::{BlobFileHeader, HEADER_SIZE};
use crate::db::DbInner;
use crate::db::exports::rewrite::{self, Mapping};
use crate::db::exports::source::Source;
use crate::env::{IoMode, NewNames, copy_file, hint_temperature};
use crate::manifest::{BlobFileAddition, BlobFileGarbage, FileMetadata, TableFile, VersionEdit};
use crate::options::ColumnFamilyOptions;

/// Files in the first directory of a family that is to come. They are removed unless they are kept.
pub(super) struct Brought<'a> {
    inner: &'a DbInner,
    directory: Arc<Path>,
    wanted: (&'a str, &'a ColumnFamilyOptions),
    names: NewNames,
    files: Vec<PathBuf>,
    /// The largest rank in level 0 so far.
    epoch: u64,
}

impl<'a> Brought<'a> {
    /// None as yet.
    pub(super) fn new(
        inner: &'a DbInner,
        directory: Arc<Path>,
        wanted: (&'a str, &'a ColumnFamilyOptions),
    ) -> Self {
        let names = inner.context.names.before_making(&directory);
        Self { inner, directory, wanted, names, files: Vec::new(), epoch: 0 }
    }

    /// Brings all files of a source, each synced, and says so in `edit`.
    ///
    /// # Errors
    /// `Corruption`, `IoError`.
    pub(super) fn bring(
        &mut self,
        source: &Source,
        edit: &mut VersionEdit,
        links: bool,
    ) -> Result<()> {
        let mut mapping = Mapping::new();
        for (&old, state) in &source.family().current.blob_files {
            let (number, target) = self.next(file_name::blob);
            self.bring_blob_file(source, &state.file.path(), &target, edit)?;
            mapping.insert(old, number);
            let size = self.inner.context.env.fs.metadata(&target)?.size;
            let checksum = self.inner.context.checksum_of_new_file(&target, size)?;
            let addition = BlobFileAddition {
                number,
                total_count: state.file.meta.total_count,
                total_bytes: state.file.meta.total_bytes,
                ..BlobFileAddition::default()
            };
            edit.blob_file_additions.push(addition.with_checksum(checksum));
            let (count, bytes) = (state.garbage_count, state.garbage_bytes);
            if count > 0 || bytes > 0 {
                edit.blob_file_garbages.push(BlobFileGarbage { number, count, bytes });
            }
        }
        // Tables of different sources share no keys, so neither is newer. RocksDB still requires
        // different ranks.
        let before = self.epoch;
        for (level, file) in source.tables() {
            let mut meta = self.bring_table(source, (level, file), &mapping, (edit, links))?;
            let rank = before.checked_add(file.meta.epoch_number).ok_or_else(|| {
                Error::corruption("the table's rank in level 0 is too large").at(file.path())
            })?;
            meta.epoch_number = rank;
            self.epoch = self.epoch.max(rank);
            edit.add_file(level, meta);
        }
        Ok(())
    }

    fn bring_table(
        &mut self,
        source: &Source,
        (level, file): (usize, &TableFile),
        mapping: &Mapping,
        (edit, links): (&VersionEdit, bool),
    ) -> Result<FileMetadata> {
        let (number, target) = self.next(file_name::table);
        let (meta, path) = (&file.meta, file.path());
        let known = meta.blob_references.as_ref().map_or(&[][..], |known| known.files());
        if meta.oldest_blob_file.is_some() || !known.is_empty() {
            Sometimes::ImportedTableRewritten.reached();
            let table = source.open_table(meta, &path, self.wanted.1)?;
            let written = rewrite::Rewrite {
                context: &self.inner.context,
                options: self.wanted.1,
                family: (edit.family, self.wanted.0),
                level,
                mapping,
            };
            let mut meta =
                written.run(&table, meta, number, &target).map_err(|error| error.at(path))?;
            meta.set_checksum(self.inner.context.checksum_of_new_file(&target, meta.size)?);
            return Ok(meta);
        }
        hint_temperature(&*self.inner.context.env.fs, &target, meta.temperature);
        self.link_or_copy(&path, &target, meta.size, links)?;
        let mut meta = FileMetadata { number, path_id: 0, ..meta.clone() };
        let checksums = self.inner.context.checksums();
        let function = checksums.function();
        if function.is_some_and(|function| function != meta.file_checksum_function) {
            meta.set_checksum(self.inner.context.checksum_of_new_file(&target, meta.size)?);
        }
        Ok(meta)
    }

    fn link_or_copy(&self, source: &Path, target: &Path, size: u64, links: bool) -> Result<()> {
        let fs = &*self.inner.context.env.fs;
        if links {
            match fs.link(source, target) {
                Ok(()) => return fs.reopen_writable(target)?.sync(),
                // It may have been linked all the same: the copy would be written over the
                // original.
                Err(_) => match fs.remove(target) {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => Sometimes::ImportedByCopy.reached(),
                },
            }
        }
        copy_file(fs, source, target, size, false)
    }

    /// Copies a blob file, whose header names the new family then.
    fn bring_blob_file(
        &self,
        source: &Source,
        path: &Path,
        target: &Path,
        edit: &VersionEdit,
    ) -> Result<()> {
        let fs = &*self.inner.context.env.fs;
        let file = fs.open_random_access(path, IoMode::Buffered)?;
        let size = file.size()?;
        let mut header = vec![0; HEADER_SIZE];
        let read = file.read_at(0, &mut header)?;
        let header = BlobFileHeader::decode(&header[..read]).map_err(|error| error.at(path))?;
        assert_eq!(header.column_family, source.family().id, "it was checked");
        copy_file(fs, path, target, size, false)?;
        let copy = fs.reopen_writable(target)?;
        copy.write_at(0, &BlobFileHeader { column_family: edit.family, ..header }.encode())?;
        copy.sync()
    }

    fn next(&mut self, name: fn(&Path, FileNumber) -> PathBuf) -> (FileNumber, PathBuf) {
        let number = self.inner.tree.file_numbers.allocate();
        let path = name(&self.directory, number);
        self.files.push(path.clone());
        (number, path)
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn sync(&self) -> Result<()> {
        self.names.sync()
    }

    /// The files are the tree's from now on.
    pub(super) fn keep(mut self) {
        self.files.clear();
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        for path in &self.files {
            // The error that led here matters more; what stays is removed at the next opening.
            let _ = self.inner.context.env.fs.remove(path);
        }
    }
}
