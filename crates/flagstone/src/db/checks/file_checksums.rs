//! Comparing whole files with the checksums that the MANIFEST has of them.

use crate::base::Result;
use crate::db::handle::Db;

impl Db {
    /// Reads all tables and blob files that have a checksum in the MANIFEST, and compares it. Files
    /// without one are not read. [`Db::verify`](crate::Db::verify) does this, too, and finds where
    /// the damage is.
    ///
    /// # Errors
    /// `Corruption` naming the first file that has another checksum; `InvalidArgument` if the
    /// function of one is not known; `IoError`.
    pub fn verify_file_checksums(&self) -> Result<()> {
        let context = &self.inner().context;
        for family in self.column_families() {
            // What is pinned is not removed meanwhile, and gets no holes.
            let current = family.0.current.load_full();
            for (_, file) in current.version.files() {
                if let Some(expected) = file.meta.checksum() {
                    context.check_checksum(
                        &super::verify::table_path(self.inner(), file),
                        &expected,
                    )?;
                }
            }
            for blob in current.version.blob_files.values() {
                if let Some(expected) = blob.file.meta.checksum() {
                    context.check_checksum(&blob.file.path(), &expected)?;
                }
            }
        }
        Ok(())
    }
}
