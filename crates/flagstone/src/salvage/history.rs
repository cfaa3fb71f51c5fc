//! What the MANIFEST says about the database, as far as it can be read.
//!
//! 1. The MANIFEST is the one that CURRENT names, or the newest one there is. Every intact edit in
//!    it is used, even after damage.
//! 2. It is *trusted* if it is complete and matches the directory. Then the tables that it lists as
//!    live are the database, and others are leftovers. If it is not trusted, every table is used
//!    that no edit has removed.

use super::directory::Directory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::choose::Origin;
use super::report::SalvageReport;
use crate::base::file_name::{self};
use crate::base::unique_id::UniqueId;
use crate::base::{
    ColumnFamilyId, DEFAULT_COLUMN_FAMILY_NAME, Error, FileNumber, InternalKeyBuf, Result,
    SequenceNumber, Temperature,
};
use crate::blob::{FOOTER_SIZE, HEADER_SIZE};
use crate::env::{FileSystem, IoMode};
use crate::manifest::{
    FileMetadata, ManifestCheck, VersionEdit, identity_of, read_current, reader_options,
};
use crate::sst::{TableProperties, read_table_properties};
use crate::wal::{Event, Reader, ReaderOptions};

/// A family, as the MANIFEST knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedFamily {
    pub(super) name: String,
    /// The name of its comparator.
    pub(super) comparator: Option<String>,
    /// Whether its tables have the timestamps of keys that end in some.
    pub(super) persists_timestamps: Option<bool>,
    /// The oldest timestamp as of which it can be read.
    pub(super) history_low: Option<Vec<u8>>,
    /// Older WALs hold nothing of it that its tables do not hold.
    pub(super) log_number: FileNumber,
    /// The newest WAL that its edits tell of.
    pub(super) known_wal: FileNumber,
}

/// A table, as the MANIFEST knows it.
#[derive(Debug, Clone)]
pub(super) struct RecordedTable {
    pub(super) family: ColumnFamilyId,
    pub(super) bytes: u64,
    pub(super) smallest: InternalKeyBuf,
    pub(super) largest: InternalKeyBuf,
    pub(super) smallest_sequence: SequenceNumber,
    pub(super) largest_sequence: SequenceNumber,
    /// What tells it from another file of that number.
    pub(super) unique_id: Option<UniqueId>,
    temperature: Temperature,
    /// The oldest blob file that it refers to.
    oldest_blob_file: Option<FileNumber>,
}

/// A blob file that was finished, as the MANIFEST knows it.
#[derive(Debug)]
pub(super) struct RecordedBlobs {
    family: ColumnFamilyId,
    /// How large the file is.
    pub(super) bytes: u64,
    records: u64,
    garbage: u64,
}

impl RecordedBlobs {
    /// Whether it was removed, or about to be: nobody misses it.
    pub(super) fn is_all_garbage(&self) -> bool {
        self.garbage >= self.records
    }
}

/// What the intact edits of the MANIFEST add up to.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) families: BTreeMap<ColumnFamilyId, RecordedFamily>,
    dropped: BTreeSet<ColumnFamilyId>,
    /// The largest id that was ever given to a family.
    pub(super) max_family: ColumnFamilyId,
    pub(super) live: BTreeMap<FileNumber, RecordedTable>,
    pub(super) removed: BTreeSet<FileNumber>,
    pub(super) blobs: BTreeMap<FileNumber, RecordedBlobs>,
    pub(super) last_sequence: SequenceNumber,
    next_file: FileNumber,
    /// The identity of the database whose MANIFEST it is.
    pub(super) database: Option<String>,
    /// WALs from this one on are needed by some family.
    pub(super) oldest_log: FileNumber,
    /// Whether any edit of it is intact.
    has_edits: bool,
    /// Whether all edits are intact that the file has.
    pub(super) is_whole: bool,
    /// Whether it ends in an edit, or in edits of a group, of which only a part is there.
    pub(super) ends_torn: bool,
    /// Whether it says all there is to say.
    pub(super) is_trusted: bool,
}

impl History {
    /// Reads the MANIFEST, if there is one; damage goes into the report.
    pub(super) fn read(
        fs: &dyn FileSystem,
        source: &Path,
        directory: &Directory,
        report: &mut SalvageReport,
    ) -> Self {
        let mut history = Self::default();
        let default = RecordedFamily {
            name: DEFAULT_COLUMN_FAMILY_NAME.to_string(),
            ..RecordedFamily::default()
        };
        history.families.insert(ColumnFamilyId::DEFAULT, default);
        let named = read_current(fs, source);
        let chosen = match &named {
            Ok(path) if fs.metadata(path).is_ok() => Some(path.clone()),
            Ok(path) => {
                let lost =
                    Error::corruption("CURRENT names this MANIFEST, but it is missing").at(path);
                report.pass_over(lost);
                None
            }
            Err(error) => {
                report.pass_over(error.clone().at(file_name::current(source)));
                None
            }
        };
        let is_named = chosen.is_some();
        let others = directory.manifests.values().rev().flatten().map(|listed| listed.path.clone());
        let candidates: Vec<PathBuf> = chosen.into_iter().chain(others).collect();
        let Some(path) = history.take_first_of_its_own(fs, source, directory, &candidates, report)
        else {
            report.note(
                "There is no MANIFEST, so every table is used. Tables that a compaction had replaced but not yet removed may \
                 bring back older versions, and a missing table or WAL goes unnoticed.",
            );
            return history;
        };
        let is_named = is_named && candidates.first() == Some(&path);
        let has_names = is_named || directory.manifests.len() == 1;
        history.is_trusted = history.is_whole && has_names && history.agrees_with(directory);
        if history.is_trusted {
            history.give_up_older_blobs();
        } else {
            report.note(format!(
                "{} is incomplete or does not match the directory, so every table is used that no intact part of it removes.",
                path.display()
            ));
        }
        history
    }

    /// Reads the first of these MANIFESTs that is not another database's; which that is. One of
    /// which no edit can be read counts where there is no other.
    fn take_first_of_its_own(
        &mut self,
        fs: &dyn FileSystem,
        source: &Path,
        directory: &Directory,
        candidates: &[PathBuf],
        report: &mut SalvageReport,
    ) -> Option<PathBuf> {
        let mut seen = BTreeSet::new();
        let mut without_edits = None;
        let mut found = None;
        for path in candidates.iter().filter(|path| seen.insert(*path)) {
            let mut read = Self { families: self.families.clone(), ..Self::default() };
            let damages = match read.read_edits(fs, path) {
                Ok(damages) => damages,
                Err(error) => vec![error],
            };
            if read.is_of_another_database(fs, source, directory) {
                report.note(format!(
                    "{} was left out: it belongs to another database, {}, and neither a table here nor the file IDENTITY does.",
                    path.display(),
                    read.database.as_deref().unwrap_or_default()
                ));
                continue;
            }
            read.is_whole = damages.is_empty();
            damages.into_iter().for_each(|error| report.pass_over(error));
            if read.has_edits {
                found = Some((read, path));
                break;
            }
            without_edits.get_or_insert((read, path));
        }
        let (read, path) = found.or(without_edits)?;
        *self = read;
        if self.ends_torn {
            report.note(format!(
                "{} ends in an incomplete edit, as after a power loss; that edit never took effect.",
                path.display()
            ));
        }
        Some(path.clone())
    }

    /// Whether IDENTITY says so, and all tables agree: what was copied or ingested may have tables
    /// of other databases, and what was restored another identity. At least one must bear witness
    /// to IDENTITY, which may be damaged: nothing protects it.
    fn is_of_another_database(
        &self,
        fs: &dyn FileSystem,
        source: &Path,
        directory: &Directory,
    ) -> bool {
        let (Some(own), Ok(Some(identity))) = (&self.database, identity_of(fs, source)) else {
            return false;
        };
        if identity == *own || directory.tables.is_empty() {
            return false;
        }
        let mut has_witness = false;
        let none_is_own = directory.tables.values().flatten().all(|listed| {
            let properties = fs
                .open_random_access(&listed.path, IoMode::Buffered)
                .and_then(|file| read_table_properties(file, listed.bytes));
            properties.is_ok_and(|TableProperties { db_identity, .. }| {
                has_witness |= db_identity == identity;
                !db_identity.is_empty() && db_identity != *own
            })
        });
        none_is_own && has_witness
    }

    /// Applies all intact edits; what is damaged. A torn end is no damage: what is left there has
    /// not taken place.
    fn read_edits(&mut self, fs: &dyn FileSystem, path: &Path) -> Result<Vec<Error>> {
        let file = fs.open_random_access(path, IoMode::Buffered)?;
        self.ends_torn = ManifestCheck::of(file.clone())
            .is_ok_and(|found| found.faults.is_empty() && found.torn_end.is_some());
        let options = ReaderOptions { search_behind_damage: true, ..reader_options() };
        let mut reader = Reader::with_options(file, FileNumber(0), options);
        let mut damages = Vec::new();
        // The edits of an atomic group that is not complete yet.
        let mut group = Vec::new();
        loop {
            let offset = reader.record_offset();
            let event = match reader.next_event()? {
                Event::Record(record) => VersionEdit::decode(record),
                Event::End => break,
                Event::Damage(_) if self.ends_torn => break,
                Event::Damage(damage) => {
                    Err(Error::corruption("a part of the MANIFEST is damaged")
                        .at_offset(damage.offset))
                }
            };
            match event {
                Ok(edit) => {
                    self.has_edits = true;
                    let is_last = edit.atomic_group_remaining.unwrap_or(0) == 0;
                    group.push(edit);
                    if is_last {
                        group.drain(..).for_each(|edit| self.apply(edit));
                    }
                }
                Err(error) => damages.push(match error.offset() {
                    None => error.at(path).at_offset(offset),
                    Some(_) => error.at(path),
                }),
            }
        }
        // One that the end cuts off never happened, but its files are no strangers. Where edits are
        // damaged, every intact one counts.
        for edit in group {
            if damages.is_empty() {
                self.next_file = self.next_file.max(edit.next_file_number.unwrap_or_default())
            } else {
                self.apply(edit)
            }
        }
        if !self.has_edits && damages.is_empty() {
            damages.push(Error::corruption("the MANIFEST is empty").at(path));
        }
        Ok(damages)
    }

    fn apply(&mut self, edit: VersionEdit) {
        let known_wal = edit.known_wal().unwrap_or_default();
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or(0));
        self.database = edit.db_id.or(self.database.take());
        self.next_file = self.next_file.max(edit.next_file_number.unwrap_or_default());
        self.oldest_log = self.oldest_log.max(edit.min_log_number_to_keep.unwrap_or_default());
        self.max_family =
            self.max_family.max(edit.max_column_family.unwrap_or_default()).max(edit.family);
        // The default family has its name, and cannot be dropped, whatever an edit says.
        let is_default = edit.family == ColumnFamilyId::DEFAULT;
        if edit.family_dropped && !is_default {
            self.families.remove(&edit.family);
            self.dropped.insert(edit.family);
            let gone: Vec<FileNumber> = self
                .live
                .iter()
                .filter(|(_, table)| table.family == edit.family)
                .map(|(&n, _)| n)
                .collect();
            for number in gone {
                self.live.remove(&number);
                self.removed.insert(number);
            }
            self.blobs
                .values_mut()
                .filter(|blobs| blobs.family == edit.family)
                .for_each(|blobs| blobs.garbage = blobs.records);
            return;
        }
        if let Some(name) = edit.family_added.filter(|_| !is_default) {
            self.families.insert(edit.family, RecordedFamily { name, ..RecordedFamily::default() });
        }
        if let Some(family) = self.families.get_mut(&edit.family) {
            family.comparator = edit.comparator.or(family.comparator.take());
            family.persists_timestamps =
                edit.persist_user_timestamps.or(family.persists_timestamps);
            family.history_low = edit.full_history_ts_low.or(family.history_low.take());
            family.log_number = family.log_number.max(edit.log_number.unwrap_or_default());
            family.known_wal = family.known_wal.max(known_wal);
        }
        for file in edit.blob_file_additions {
            let bytes = file.total_bytes.saturating_add((HEADER_SIZE + FOOTER_SIZE) as u64);
            let (family, records) = (edit.family, file.total_count);
            self.blobs.insert(file.number, RecordedBlobs { family, bytes, records, garbage: 0 });
        }
        for more in edit.blob_file_garbages {
            if let Some(blobs) = self.blobs.get_mut(&more.number) {
                blobs.garbage = blobs.garbage.saturating_add(more.count);
            }
        }
        for (_, number) in edit.deleted_files {
            self.live.remove(&number);
            self.removed.insert(number);
        }
        for (_, file) in edit.new_files {
            self.removed.remove(&file.number);
            self.live.insert(file.number, recorded(edit.family, file));
        }
    }

    /// Blob files older than any that a table of their family refers to have left the tree,
    /// whatever of them was found to be garbage: no edit says so.
    fn give_up_older_blobs(&mut self) {
        let mut oldest: BTreeMap<ColumnFamilyId, FileNumber> = BTreeMap::new();
        for table in self.live.values() {
            if let Some(blob) = table.oldest_blob_file {
                let known = oldest.entry(table.family).or_insert(blob);
                *known = blob.min(*known);
            }
        }
        for (number, blobs) in &mut self.blobs {
            if oldest.get(&blobs.family).is_none_or(|oldest| number < oldest) {
                blobs.garbage = blobs.records;
            }
        }
    }

    /// Whether the directory could be as it is after the last edit. Files that are missing beside
    /// files that no edit knows mean that edits are missing. Where the last is torn, others may be
    /// that were cut off with it: then either is enough, but for tables that are newer than the
    /// last edit, which are the torn one's.
    fn agrees_with(&self, directory: &Directory) -> bool {
        let is_missing = self.live.keys().any(|number| !directory.tables.contains_key(number));
        let is_known = |number| self.live.contains_key(number) || self.removed.contains(number);
        let mut strangers = directory.tables.keys().filter(|number| !is_known(*number));
        let are_strangers = strangers.any(|number| !self.ends_torn || *number < self.next_file);
        let lacks_edits =
            if self.ends_torn { is_missing || are_strangers } else { is_missing && are_strangers };
        self.next_file > FileNumber(0) && !lacks_edits
    }

    /// Whether the MANIFEST tells the comparator of a family.
    pub(super) fn has_comparator(&self, id: ColumnFamilyId) -> bool {
        self.families.get(&id).is_some_and(|family| family.comparator.is_some())
    }

    /// Whether a family is known to be gone. A MANIFEST that was begun anew says nothing of
    /// families that were dropped before, but how many there have been: ids are never given again.
    pub(super) fn is_dropped(&self, id: ColumnFamilyId) -> bool {
        let is_absent =
            self.is_trusted && id <= self.max_family && !self.families.contains_key(&id);
        is_absent || self.dropped.contains(&id)
    }

    /// How many families there are at least, by the ids that were given to them.
    pub(super) fn families_made(&self) -> usize {
        if self.is_trusted {
            self.families.len()
        } else {
            (self.max_family.0 as usize + 1).saturating_sub(self.dropped.len())
        }
    }

    /// What is said of a table that counts.
    pub(super) fn origin(&self, number: FileNumber) -> Origin {
        match (self.live.contains_key(&number), self.is_trusted) {
            (true, _) => Origin::Live(number),
            (false, true) => Origin::Leftover(number),
            (false, false) => Origin::Unnamed(number),
        }
    }

    /// Whether it is certain that a table counts.
    pub(super) fn counts(&self, number: FileNumber) -> bool {
        self.is_trusted && self.live.contains_key(&number)
    }

    /// The temperature that all these tables had; `UNKNOWN` if they had several.
    pub(super) fn common_temperature(
        &self,
        tables: impl Iterator<Item = FileNumber>,
    ) -> Temperature {
        let recorded = |number| self.live.get(&number).map(|table| table.temperature);
        let mut all = tables.map(|number| recorded(number).unwrap_or_default());
        let first = all.next().unwrap_or_default();
        if all.all(|other| other == first) { first } else { Temperature::UNKNOWN }
    }

    /// Why a table does not count, if so.
    pub(super) fn leaves_out(&self, number: FileNumber) -> Option<&'static str> {
        if self.removed.contains(&number) {
            return Some("the MANIFEST says that it was replaced or dropped");
        }
        let is_older_stranger =
            self.is_trusted && !self.live.contains_key(&number) && number < self.next_file;
        is_older_stranger
            .then_some("the MANIFEST does not name it: an unfinished job left it behind")
    }
}

fn recorded(family: ColumnFamilyId, file: FileMetadata) -> RecordedTable {
    RecordedTable {
        family,
        bytes: file.size,
        smallest: file.smallest,
        largest: file.largest,
        smallest_sequence: file.smallest_seqno,
        largest_sequence: file.largest_seqno,
        unique_id: file.unique_id,
        temperature: file.temperature,
        oldest_blob_file: file.oldest_blob_file,
    }
}
