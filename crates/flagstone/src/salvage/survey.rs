//! Examines tables, and chooses among several with the same number.
//!
//! A table may lie under a wrong number, for example after a mistake in copying. It is recognised
//! by its unique id, which the MANIFEST records. It waits until all tables have been examined, and
//! is used if no complete table was found under the right number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Salvage;
use super::directory::Listed;
use super::families::{Home, user_range};
use super::history::RecordedTable;
use super::report::{SalvagedFile, SalvagedKind};
use super::unknown::UnknownTable;
use crate::base::unique_id::UniqueId;
use crate::base::{Error, FileNumber, Result};
use crate::sst::{
    BlockFault, SalvageSettings, TableProperties, TableRemains, read_table_properties,
};

/// What tells a table from others. Without properties it cannot be told; without checksums a
/// flipped bit would make another of it.
fn identity(remains: &TableRemains) -> Option<UniqueId> {
    let properties = remains.properties.as_ref().filter(|_| remains.has_checksums());
    properties.and_then(TableProperties::unique_id)
}

/// Tables that may be others than their names say.
#[derive(Default)]
pub(super) struct Misnamed {
    /// Numbers under which a table was found that is their own.
    found: BTreeSet<FileNumber>,
    /// Those of which one is whole.
    whole: BTreeSet<FileNumber>,
    /// Numbers under which another one lies.
    replaced: Vec<(FileNumber, PathBuf)>,
    /// Files that do not count by their names, and why.
    suspects: Vec<(Listed, String)>,
}

impl Misnamed {
    /// Whether the table of a number was found.
    pub(super) fn has(&self, number: FileNumber) -> bool {
        self.found.contains(&number)
    }

    fn note(&mut self, number: FileNumber, remains: &TableRemains) {
        self.found.insert(number);
        if remains.faults.is_empty() {
            self.whole.insert(number);
        }
    }
}

/// Whether a table has an identity that is not the one recorded.
fn is_another(recorded: &RecordedTable, remains: &TableRemains) -> bool {
    recorded.unique_id.zip(identity(remains)).is_some_and(|(recorded, found)| recorded != found)
}

/// What speaks against a file where there are others of its number; the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flaws {
    is_another: bool,
    is_unreadable: bool,
    has_wrong_size: bool,
    faults: usize,
}

impl Flaws {
    fn of(
        recorded: Option<&RecordedTable>,
        listed: &Listed,
        survey: &Result<TableRemains>,
    ) -> Self {
        let remains = survey.as_ref().ok();
        Self {
            is_another: recorded
                .zip(remains)
                .is_some_and(|(recorded, remains)| is_another(recorded, remains)),
            is_unreadable: remains.is_none(),
            has_wrong_size: recorded.is_some_and(|recorded| recorded.bytes != listed.bytes),
            faults: remains.map_or(0, |remains| remains.faults.len()),
        }
    }

    /// Whether one with these has all that a copy of it may have, or that one is no copy.
    fn leave_nothing_to(self, other: Self) -> bool {
        let is_whole = !self.is_another && !self.is_unreadable && self.faults == 0;
        is_whole && self.has_wrong_size <= other.has_wrong_size
            || other.is_another && !self.is_another
    }
}

impl Salvage<'_> {
    /// Looks at the table of a number and hands it to its family. Of several files of that number
    /// the one counts that is whole; where none is, or nothing tells whether they are copies, all
    /// do.
    pub(super) fn survey_tables(
        &mut self,
        number: FileNumber,
        files: &[Listed],
        misnamed: &mut Misnamed,
    ) -> Result<()> {
        let recorded = self.families.history().live.get(&number).cloned();
        if let Some(why) = self.families.history().leaves_out(number) {
            misnamed.suspects.extend(files.iter().map(|listed| (listed.clone(), why.to_string())));
            return Ok(());
        }
        let mut found: Vec<_> =
            files.iter().map(|listed| (listed, self.survey(number, listed))).collect();
        found.sort_by_key(|(listed, survey)| Flaws::of(recorded.as_ref(), listed, survey));
        let mut best: Option<(&Listed, Flaws, Option<UniqueId>)> = None;
        for (listed, survey) in found {
            let flaws = Flaws::of(recorded.as_ref(), listed, &survey);
            let id = survey.as_ref().ok().and_then(identity);
            if flaws.is_another {
                misnamed.replaced.push((number, listed.path.clone()));
                misnamed.suspects.push((
                    listed.clone(),
                    "it belongs to another database, or to another time".to_string(),
                ));
                continue;
            }
            let is_named =
                |id| self.families.history().live.values().any(|table| table.unique_id == Some(id));
            if recorded.is_none() && id.is_some_and(is_named) {
                misnamed.suspects.push((
                    listed.clone(),
                    "the MANIFEST lists it under another number".to_string(),
                ));
                continue;
            }
            if let Some((known, known_flaws, known_id)) = best {
                let is_copy = || {
                    recorded.is_some()
                        || id.is_some() && id == known_id
                        || self.source.is_front(&listed.path, &known.path)
                };
                if known_flaws.leave_nothing_to(flaws) && is_copy() {
                    self.list_table(
                        listed,
                        0,
                        Some("another file with its number is used".to_string()),
                    );
                    continue;
                }
            }
            best.get_or_insert((listed, flaws, id));
            survey.iter().for_each(|remains| misnamed.note(number, remains));
            self.take_survey(number, listed, survey)?;
        }
        Ok(())
    }

    /// Looks at a table. What was put behind it hides its footer, without which one that has no
    /// checksums yields nothing: the MANIFEST says where it ends.
    fn survey(&self, number: FileNumber, listed: &Listed) -> Result<TableRemains> {
        let families = &self.families;
        let recorded = families.history().live.get(&number);
        let settings = SalvageSettings {
            comparator: &|properties| families.comparator_of(number, properties),
            largest_sequence: recorded.map(|table| table.largest_sequence),
        };
        let file = self.source.at(&listed.path);
        let ends_at = |bytes| read_table_properties(file.clone(), bytes).is_ok();
        let shorter = recorded.map(|table| table.bytes).filter(|bytes| *bytes < listed.bytes);
        match shorter.filter(|bytes| !ends_at(listed.bytes) && ends_at(*bytes)) {
            None => TableRemains::survey(file, listed.bytes, &settings),
            Some(bytes) => {
                let mut remains = TableRemains::survey(file, bytes, &settings)?;
                let what = format!("file has {} bytes, the MANIFEST says {bytes}", listed.bytes);
                remains.harmless.push(Error::corruption(what).at(&listed.path));
                Ok(remains)
            }
        }
    }

    /// Takes what lies under another number than its own, where that is missed; tells what is lost
    /// where another table lies.
    pub(super) fn take_misnamed(&mut self, misnamed: &mut Misnamed) -> Result<()> {
        let live = self.families.history().live.iter();
        let missed = live.filter(|(number, _)| !misnamed.whole.contains(number));
        let mut wanted: BTreeMap<[u8; 16], FileNumber> =
            missed.filter_map(|(&number, table)| Some((table.unique_id?.0, number))).collect();
        for (listed, why) in std::mem::take(&mut misnamed.suspects) {
            // What was put behind one hides where it ends.
            let live = &self.families.history().live;
            let shorter = || {
                let sizes = wanted.values().filter_map(|number| Some(live.get(number)?.bytes));
                sizes.filter(|bytes| *bytes < listed.bytes).collect::<BTreeSet<_>>()
            };
            let id_at = |bytes| {
                read_table_properties(self.source.at(&listed.path), bytes).ok()?.unique_id()
            };
            let read = |listed: &Listed| {
                id_at(listed.bytes).or_else(|| shorter().into_iter().find_map(id_at))
            };
            let id = if wanted.is_empty() { None } else { read(&listed) };
            let number = id.and_then(|id| wanted.get(&id.0).copied());
            let own = number.and_then(|number| Some((number, self.survey(number, &listed).ok()?)));
            match own.filter(|(_, remains)| identity(remains) == id) {
                None => self.list_table(&listed, 0, Some(why)),
                Some((number, remains)) => {
                    self.report.note(format!(
                        "{} is the table {number}.sst, judging by its properties, and was read as such.",
                        listed.path.display()
                    ));
                    misnamed.note(number, &remains);
                    wanted.retain(|_, wanted| !misnamed.whole.contains(wanted));
                    self.take_survey(number, &listed, Ok(remains))?;
                }
            }
        }
        for (number, path) in std::mem::take(&mut misnamed.replaced) {
            let recorded =
                self.families.history().live.get(&number).filter(|_| !misnamed.has(number));
            let Some(recorded) = recorded else { continue };
            let error = Error::corruption(
                "this is not the table that the MANIFEST lists, but another with its number",
            );
            let (family, range) =
                (recorded.family, user_range(&recorded.smallest, &recorded.largest));
            self.report.lose_whole(error.at(path), Some(range.clone()));
            self.families.note_loss(family, range);
        }
        Ok(())
    }

    fn list_table(&mut self, listed: &Listed, records: u64, left_out: Option<String>) {
        let (path, kind, bytes) = (listed.path.clone(), SalvagedKind::Table, listed.bytes);
        self.report.files.push(SalvagedFile { path, kind, bytes, records, left_out });
    }

    fn take_survey(
        &mut self,
        number: FileNumber,
        listed: &Listed,
        survey: Result<TableRemains>,
    ) -> Result<()> {
        let (mut records, mut left_out) = (0, None);
        match survey {
            Ok(remains) => {
                records = remains.entries + remains.tombstones.len() as u64;
                left_out = self.take_table(number, remains)?;
            }
            Err(error) => {
                let recorded = self.families.history().live.get(&number);
                let lost = recorded
                    .map(|table| (table.family, user_range(&table.smallest, &table.largest)));
                let range = lost.as_ref().map(|(_, range)| range.clone());
                self.report.lose_whole(error.at(&listed.path), range);
                match lost {
                    Some((family, range)) => self.families.note_loss(family, range),
                    None => self.families.note_loss_of_anything(),
                }
            }
        }
        self.list_table(listed, records, left_out);
        Ok(())
    }

    /// Why nothing is taken from it, if so.
    fn take_table(
        &mut self,
        number: FileNumber,
        mut remains: TableRemains,
    ) -> Result<Option<String>> {
        let history = self.families.history();
        let recorded = history.live.get(&number).cloned();
        let is_leftover = history.is_trusted && recorded.is_none();
        if let Some(table) =
            recorded.as_ref().filter(|table| table.smallest_sequence == table.largest_sequence)
        {
            remains.date(table.largest_sequence);
        }
        let whole = recorded.as_ref().map(|table| user_range(&table.smallest, &table.largest));
        if is_leftover {
            // Of a file that nobody finished, nothing but its intact blocks can be expected. One
            // that has its properties was finished, and where an edit is torn it may have been to
            // name it.
            if !history.ends_torn || remains.properties.is_none() {
                remains.faults.clear();
            }
            if remains.entries == 0 && remains.tombstones.is_empty() && remains.faults.is_empty() {
                return Ok(Some("an unfinished job left it behind".to_string()));
            }
        } else {
            remains.harmless.drain(..).for_each(|error| self.report.pass_over(error));
        }
        let whole = whole.or_else(|| remains.bounds.clone());
        let range_of = |fault: &BlockFault| fault.key_range.clone().or_else(|| whole.clone());
        let (of_table, blocks) =
            remains.faults.split_at(remains.faults_of_table.min(remains.faults.len()));
        of_table
            .iter()
            .for_each(|fault| self.report.lose_whole(fault.error.clone(), range_of(fault)));
        let places = blocks.iter().map(|fault| (fault.error.clone(), range_of(fault)));
        self.report.lose_blocks(places, whole.clone());
        self.last_sequence = self.last_sequence.max(remains.largest_sequence);
        let properties = remains.properties.take();
        let noted = properties.as_ref().and_then(|properties| properties.bounds());
        let bounds = recorded.map(|table| (table.smallest, table.largest)).or(noted);
        let counts = self.families.history().counts(number);
        match self.families.of_table(number, properties.as_ref())? {
            Home::Dropped => return Ok(Some("its column family was dropped".to_string())),
            Home::Family(family) => {
                family.add_table(number, remains, bounds, properties.as_ref(), counts)
            }
            Home::Unknown => {
                self.families.unknown.push(UnknownTable { number, remains, bounds, properties });
            }
        }
        Ok(None)
    }
}
