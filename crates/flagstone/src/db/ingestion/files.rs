//! The files of tables under numbers of the database's own.

use std::path::{Path, PathBuf};

use crate::base::{Error, FileNumber, Result, SequenceNumber, Sometimes, Temperature, file_name};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::ingestion::ExternalFiles;
use crate::db::ingestion::candidate::Candidate;
use crate::db::settings::table_temperatures;
use crate::env::{IoMode, NewNames, copy_file, hint_temperature};
use crate::options::IngestExternalFileOptions;
use crate::sst::global_sequence_offset;

/// A file that was linked, copied or written into a family's directory.
struct OwnFile {
    number: FileNumber,
    path: PathBuf,
    /// The file that it is a link to or a copy of.
    original: Option<PathBuf>,
    temperature: Temperature,
}

/// Files in a family's first directory that are to become tables of it. They are removed unless
/// they are kept.
pub(in crate::db) struct BroughtIn<'a> {
    inner: &'a DbInner,
    family: &'a Family,
    name: NewNames,
    files: Vec<OwnFile>,
    are_kept: bool,
}

impl<'a> BroughtIn<'a> {
    /// None as yet.
    pub(in crate::db) fn new(inner: &'a DbInner, family: &'a Family) -> Self {
        let name = inner.context.names.before_making(family.paths.directory(0));
        Self { inner, family, name, files: Vec::new(), are_kept: false }
    }

    /// The number and path of a table that is about to be written. It is removed unless it is kept.
    pub(in crate::db) fn begin_new(&mut self) -> (FileNumber, PathBuf) {
        self.next(None, table_temperatures(&self.family.options.load()).default)
    }

    fn next(&mut self, original: Option<&Path>, temperature: Temperature) -> (FileNumber, PathBuf) {
        let number = self.inner.tree.file_numbers.allocate();
        let path = file_name::table(self.family.paths.directory(0), number);
        let original = original.map(Path::to_path_buf);
        self.files.push(OwnFile { number, path: path.clone(), original, temperature });
        hint_temperature(&*self.inner.context.env.fs, &path, temperature);
        (number, path)
    }

    /// Links or copies a table, and syncs the file.
    ///
    /// # Errors
    /// `IoError`.
    pub(in crate::db) fn bring(&mut self, table: &Candidate, group: &ExternalFiles) -> Result<()> {
        let options = &group.options;
        let (_, target) = self.next(Some(&table.path), group.file_temperature);
        let fs = &*self.inner.context.env.fs;
        if options.move_files || options.link_files {
            match fs.link(&table.path, &target) {
                Ok(()) => return fs.reopen_writable(&target)?.sync(),
                Err(error) if !options.failed_move_fall_back_to_copy => return Err(error),
                // It may have been linked all the same: the copy would be written over the
                // original.
                Err(_) => match fs.remove(&target) {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => Sometimes::IngestedByCopy.reached(),
                },
            }
        }
        let temperature = self.temperature_of_copy(options);
        self.files.last_mut().expect("it was noted").temperature = temperature;
        hint_temperature(fs, &target, temperature);
        copy_file(fs, &table.path, &target, table.size, false)
    }

    /// The level is not known yet, unless only the last one will do.
    fn temperature_of_copy(&self, options: &IngestExternalFileOptions) -> Temperature {
        let of_tables = table_temperatures(&self.family.options.load());
        if options.fail_if_not_bottommost_level { of_tables.last_level } else { of_tables.default }
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// `IoError`.
    pub(in crate::db) fn sync(&self) -> Result<()> {
        self.name.sync()
    }

    /// Numbers, paths and temperatures, in the order in which the files came.
    pub(in crate::db) fn files(&self) -> impl Iterator<Item = (FileNumber, &Path, Temperature)> {
        self.files.iter().map(|file| (file.number, file.path.as_path(), file.temperature))
    }

    /// Writes a table's sequence number into its file, and syncs that.
    ///
    /// # Errors
    /// `InvalidArgument` if the file has no place for it; `IoError`.
    pub(in crate::db) fn write_sequence(
        &self,
        path: &Path,
        sequence: SequenceNumber,
    ) -> Result<()> {
        let fs = &*self.inner.context.env.fs;
        let file = fs.open_random_access(path, IoMode::Buffered)?;
        let size = file.size()?;
        let Some(offset) = global_sequence_offset(file, size)? else {
            let message = "the table has no place for a sequence number";
            return Err(Error::invalid_argument(message).at(path));
        };
        let file = fs.reopen_writable(path)?;
        file.write_at(offset, &sequence.to_le_bytes())?;
        file.sync()
    }

    /// The files are the tree's from now on. With `moves` the originals lose their own names.
    pub(in crate::db) fn keep(mut self, moves: bool) {
        self.are_kept = true;
        let originals = self.files.iter().filter_map(|file| file.original.as_deref());
        for original in originals.filter(|_| moves) {
            if let Err(error) = self.inner.context.env.fs.remove(original) {
                tracing::warn!(%error, "cannot remove the original of a table that was moved");
            }
        }
    }
}

impl Drop for BroughtIn<'_> {
    fn drop(&mut self) {
        for file in self.files.iter().filter(|_| !self.are_kept) {
            // The error that led here matters more; what stays is removed at the next opening.
            let _ = self.inner.context.env.fs.remove(&file.path);
        }
    }
}
