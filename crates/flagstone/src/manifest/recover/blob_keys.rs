//! Blob files and the comparator that a family is opened with.

use crate::base::{Comparator, Error, Result};
use crate::manifest::version::Version;

/// Blob files have keys with the timestamps that the family had when they were written.
///
/// # Errors
/// `NotSupported` where there are any and the comparator is not the stored one.
pub(super) fn check_blob_keys(
    name: &str,
    stored: Option<&str>,
    given: &Comparator,
    version: &Version,
) -> Result<()> {
    let other = stored.filter(|stored| *stored != given.name());
    let Some(stored) = other.filter(|_| !version.blob_files.is_empty()) else { return Ok(()) };
    Err(Error::not_supported(format!(
        "column family '{name}' has blob files, which were written with comparator {stored}: it cannot be opened with {}; open \
         it with its own comparator and copy its entries to a new column family that has the other one",
        given.name()
    )))
}
