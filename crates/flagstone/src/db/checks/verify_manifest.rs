//! Checking the MANIFEST of an open database.

use crate::base::Result;
use crate::db::DbInner;
use crate::db::checks::verify_logs::{LogReport, torn_end, twice_if_need_be};
use crate::env::IoMode;
use crate::manifest::{ManifestCheck, read_current};

/// Reads the MANIFEST, of which an opening passes over what its writer may have left behind in
/// a crash.
///
/// # Errors
/// `IoError`; `Corruption` if CURRENT does not name one.
pub(in crate::db) fn verify_manifest(db: &DbInner) -> Result<LogReport> {
    twice_if_need_be(|| {
        let path = read_current(&*db.context.env.fs, &db.context.path)?;
        let found =
            ManifestCheck::of(db.context.env.fs.open_random_access(&path, IoMode::Buffered)?)?;
        let notes = found.torn_end.map(torn_end).into_iter().collect();
        Ok(LogReport { files: 1, bytes: found.bytes, faults: found.faults, notes })
    })
}
