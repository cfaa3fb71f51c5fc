//! Comparing whole files with the checksums that the MANIFEST has of them.

use crate::base::Result;
use crate::db::checks::verify::table_path;
use crate::db::handle::Db;

/// [`Db::verify_file_checksums`].
pub(super) fn verify_file_checksums(db: &Db) -> Result<()> {
    let context = &db.inner().context;
    for family in db.column_families() {
        // What is pinned is not removed meanwhile.
        let current = family.0.current.load_full();
        for (_, file) in current.version.files() {
            if let Some(expected) = file.meta.checksum() {
                context.check_checksum(&table_path(db.inner(), file), &expected)?;
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
