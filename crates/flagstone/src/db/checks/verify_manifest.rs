//! Checking the MANIFEST: every edit, also what an opening passes over.
//!
//! Something that is no record is damage where an intact one follows. Where none does, and it is what an opening takes for the
//! last record as a power loss leaves it (see `manifest/record.rs`), that is noted.

use std::sync::Arc;

use super::verify_logs::{LogReport, torn_end, twice_if_need_be};
use crate::base::{FileNumber, Result};
use crate::db::DbInner;
use crate::env::{File, OpenMode};
use crate::manifest::{VersionEdit, awaits_others, is_torn_end, read_current, reader_options};
use crate::wal::{Event, Reader, ReaderOptions};

impl DbInner {
    /// Reads the MANIFEST, of which an opening passes over what its writer may have left behind in a crash.
    ///
    /// # Errors
    /// `IoError`; `Corruption` if CURRENT does not name one.
    pub(in crate::db) fn verify_manifest(&self) -> Result<LogReport> {
        twice_if_need_be(|| {
            let path = read_current(&*self.context.env.fs, &self.context.path)?;
            look_through_manifest(self.context.env.fs.open(&path, OpenMode::Read)?)
        })
    }
}

pub(in crate::db) fn look_through_manifest(file: Arc<dyn File>) -> Result<LogReport> {
    let mut report = LogReport { files: 1, bytes: file.size()?, ..LogReport::default() };
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
        report.faults.extend(gap.take().map(|damage| damage.to_error(&*file)));
        if let Err(error) = decoded {
            report.faults.push(error.at(file.path()).at_offset(reader.record_offset()));
        }
    }
    if let Some(damage) = gap {
        let error = damage.to_error(&*file);
        if is_torn_end(&*file, &damage)? {
            report.notes.push(torn_end(error))
        } else {
            report.faults.push(error)
        }
    }
    Ok(report)
}
