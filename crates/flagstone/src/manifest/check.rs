//! Checking a MANIFEST: every edit, also what an opening passes over.
//!
//! Something that is no record is damage where an intact one follows. Where none does, and it is
//! what an opening takes for the last record as a power loss leaves it (see `record`), it is a torn
//! end.

use std::sync::Arc;

use super::edit::VersionEdit;
use super::record::{awaits_others, is_torn_end, reader_options};
use crate::base::{Error, FileNumber, Result};
use crate::env::RandomAccessFile;
use crate::wal::{Event, Reader, ReaderOptions};

/// What was found in a MANIFEST.
#[derive(Debug, Default)]
pub(crate) struct ManifestCheck {
    /// The size of the file, in bytes.
    pub(crate) bytes: u64,
    /// Damage, and edits that cannot be decoded.
    pub(crate) faults: Vec<Error>,
    /// The last record, where a power loss left it incomplete.
    pub(crate) torn_end: Option<Error>,
}

impl ManifestCheck {
    /// Reads all of `file`, and applies nothing.
    ///
    /// # Errors
    /// `IoError`.
    pub(crate) fn of(file: Arc<dyn RandomAccessFile>) -> Result<Self> {
        let mut found = Self { bytes: file.size()?, ..Self::default() };
        let options = ReaderOptions { search_behind_damage: true, ..reader_options() };
        let mut reader = Reader::with_options(file.clone(), FileNumber(0), options);
        let mut gap = None;
        loop {
            let decoded = match reader.next_event()? {
                // Behind a hole that a power loss left they may be the rest of the same write.
                Event::Record(record) if gap.is_some() && awaits_others(record) => continue,
                Event::Record(record) => VersionEdit::decode(record).map(drop),
                Event::Damage(damage) => {
                    gap.get_or_insert(damage);
                    continue;
                }
                Event::End => break,
            };
            found.faults.extend(gap.take().map(|damage| damage.to_error(&*file)));
            if let Err(error) = decoded {
                found.faults.push(error.at(file.path()).at_offset(reader.record_offset()));
            }
        }
        if let Some(damage) = gap {
            let error = damage.to_error(&*file);
            if is_torn_end(&*file, &damage)? {
                found.torn_end = Some(error)
            } else {
                found.faults.push(error)
            }
        }
        Ok(found)
    }
}
