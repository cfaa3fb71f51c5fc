//! The MANIFEST of a copy: the state of one moment, for a directory that holds all files itself.

use std::path::Path;

use super::commit::encoded;
use super::edit::VersionEdit;
use super::record::Writer;
use super::version_set::VersionSet;
use crate::base::{ColumnFamilyId, FileNumber, Result, file_name};
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, read_file};

/// What a MANIFEST of the families that are open says, with all tables in the database directory.
pub struct StateCopy {
    /// The number of the MANIFEST that it stands for.
    number: FileNumber,
    edits: Vec<VersionEdit>,
}

impl VersionSet {
    /// The state now. Costs a copy of each table's metadata; nothing is read.
    #[must_use]
    pub fn copied_state(&self) -> StateCopy {
        let mut edits = self.full_state();
        let tables = edits.iter_mut().flat_map(|edit| &mut edit.new_files);
        tables.for_each(|(_, file)| file.path_id = 0);
        StateCopy { number: self.manifest_number(), edits }
    }
}

impl StateCopy {
    /// Leaves one family, and an empty `default`, which every database has.
    #[must_use]
    pub fn of_family(mut self, id: ColumnFamilyId) -> Self {
        self.edits.retain(|edit| edit.family == id || edit.family == ColumnFamilyId::DEFAULT);
        for edit in self.edits.iter_mut().filter(|edit| edit.family != id) {
            edit.new_files.clear();
            edit.blob_file_additions.clear();
            edit.blob_file_garbages.clear();
            edit.compact_cursors.clear();
        }
        self
    }

    /// The number of the MANIFEST, and its bytes.
    ///
    /// # Errors
    /// `InvalidArgument` or `Corruption` if the state cannot be encoded.
    pub fn to_bytes(&self) -> Result<(FileNumber, Vec<u8>)> {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/"))?;
        self.write(&fs, Path::new("/"))?;
        let path = file_name::manifest(Path::new("/"), self.number);
        Ok((self.number, read_file(&fs, &path, u64::MAX)?))
    }

    /// Writes and syncs the MANIFEST in `directory`; it counts once CURRENT names it, which is left
    /// to the caller.
    ///
    /// # Errors
    /// `IoError`.
    pub fn write(&self, fs: &dyn FileSystem, directory: &Path) -> Result<FileNumber> {
        let path = file_name::manifest(directory, self.number);
        let mut writer = Writer::new(fs.create_writable(&path, IoMode::Buffered)?)?;
        for edit in &self.edits {
            writer.add(&encoded(edit))?;
        }
        writer.sync()?;
        Ok(self.number)
    }
}
