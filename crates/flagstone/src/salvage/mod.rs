//! Rebuilds a database from the files that are left (RocksDB's `RepairDB` works in place and loses
//! large values).
//!
//! 1. `directory`: which files there are, and what the intact parts of the MANIFEST say.
//! 2. Tables: each is examined block by block (`sst::TableRemains`); damage is noted with the keys
//!    that it may affect.
//! 3. `logs`: what WALs hold beyond the tables. `runs`: records that are not in order are sorted
//!    into temporary tables.
//! 4. `merge`: all of a family, key by key; `keys`: what is written for each key; `choose`: which
//!    of its versions are used; `blobs`: its large values.
//!    `stamps`: what is different where keys end in timestamps.
//! 5. `output`: a new database. The source is only read.
//!
//! Unreadable data is reported and skipped. Only a failure to write the new database ends the work.

mod blobs;
mod choose;
mod directory;
mod families;
mod files;
mod flushed;
mod history;
mod keys;
mod logs;
mod losses;
mod merge;
mod output;
mod permitted;
mod prepared;
mod report;
mod runs;
mod stamps;
mod survey;
mod tombstones;
mod unknown;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::base::{
    Code, Error, FileNumber, InternalKeyComparator, Remedy, Result, SequenceNumber, file_name,
    timestamp,
};
use crate::db::another_owner;
use crate::env::{Env, FileLock, FileSystem};
use crate::manifest::identity_of;
use crate::options::{ColumnFamilyOptions, Options};
use crate::sst::TableRemains;

use blobs::{Blobs, by_recorded_sizes};
use choose::Origin;
use directory::{DataDirectories, Directory, Files, Listed};
use families::{Families, Family, Given, user_range};
use files::SourceFiles;
use history::History;
use keys::KeyWriter;
use logs::{Logs, by_own_numbers, families_in_logs};
use merge::Merge;
use output::Target;
use permitted::check_permitted;
use prepared::PreparedOperations;
pub use report::{
    LostValue, SalvageProgress, SalvageReport, SalvagedFamily, SalvagedFile, SalvagedKind,
};
use runs::{LogRuns, RUN_SIZE, Runs};
use survey::Misnamed;

/// Records between two calls of the progress callback.
const PROGRESS_INTERVAL: u64 = 10_000;

/// Rebuilds the database in `source`, whatever is left of it, in the new directory `target`. The
/// source is not changed.
///
/// Every record whose bytes are intact is taken: from intact blocks of damaged tables, also of
/// those without index or footer; from WALs, also behind damage; and large values from blob files.
/// Newer writes hide older ones, and deletions, also of ranges, those that they deleted. A key
/// whose newest write is lost may come with an older one. `families` are the options of families
/// that are known; others get `options.cf`. What was lost is in the report.
///
/// # Errors
/// - `InvalidArgument`: `target` has files, or `source` holds nothing of a database; a comparator
///   is not known.
/// - `Busy`: the source is open elsewhere.
/// - `IoError`: the source's own directory cannot be listed, or the target not written. Its files
///   are then removed.
pub fn salvage(
    source: &Path,
    target: &Path,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
    progress: &mut dyn FnMut(SalvageProgress),
) -> Result<SalvageReport> {
    rebuild(source, target, options, Given { families, are_newest: true }, progress)
}

/// [`salvage`] where the newest options are lost, and `families` come from older ones: they tell
/// the settings of families, but not which there are. A family that they do not name may have been
/// made since, and one that they name dropped.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_with_older_options(
    source: &Path,
    target: &Path,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
    progress: &mut dyn FnMut(SalvageProgress),
) -> Result<SalvageReport> {
    rebuild(source, target, options, Given { families, are_newest: false }, progress)
}

fn rebuild(
    source: &Path,
    target: &Path,
    options: &Options,
    given: Given<'_>,
    progress: &mut dyn FnMut(SalvageProgress),
) -> Result<SalvageReport> {
    let fs = &*options.env.fs;
    let mut report = SalvageReport::default();
    let _source_lock = lock_source(fs, source, &mut report)?;
    let wals = Some(Path::new(&options.wal_dir))
        .filter(|path| !path.as_os_str().is_empty() && *path != source);
    let mut data = DataDirectories::of(options, given.families);
    data.remove(source);
    let mut directory = Directory::list(fs, source, &data, wals)?;
    if directory.is_empty() {
        return Err(Error::invalid_argument("there are no database files here").at(source));
    }
    check_permitted(fs, source, &directory)?;
    check_target(fs, target)?;
    let elsewhere = data.paths().filter(|path| fs.metadata(path).is_ok()).chain(wals);
    [source]
        .into_iter()
        .chain(elsewhere)
        .for_each(|path| note_owner(fs, source, path, &mut report));
    let history = History::read(fs, source, &directory, &mut report);
    let identity = identity_of(fs, source).ok().flatten();
    let mut families = Families::new(history, identity, options, given)?;
    if directory.report_unreadable(families.history(), &mut report) {
        families.note_loss_of_anything();
    }
    let total = 2 * bytes_of(&directory.tables) + bytes_of(&directory.wals);
    let salvage = Salvage {
        env: &options.env,
        source: SourceFiles::new(options.env.fs.clone()),
        options,
        families,
        report,
        last_sequence: 0,
        at: SalvageProgress { bytes_total: total, ..SalvageProgress::default() },
        progress,
    };
    // Whoever opens a database for writing makes its lock.
    let was_opened = fs.metadata(&file_name::lock(source)).is_ok();
    let result = salvage.run(directory, target, was_opened);
    if result.is_err() {
        remove_target(fs, target);
    }
    result
}

fn bytes_of(files: &Files) -> u64 {
    files.values().flatten().map(|listed| listed.bytes).sum()
}

/// Says of a directory of the source if it is another database's, by its OWNER: what is taken from
/// there may be that one's.
fn note_owner(fs: &dyn FileSystem, source: &Path, directory: &Path, report: &mut SalvageReport) {
    let shown = directory.display();
    match another_owner(fs, source, directory) {
        Ok(None) => {}
        Ok(Some(owner)) => report.note(format!(
            "{shown} belongs to another database, {}: files read from there may belong to it, and it may have written to them \
             meanwhile.",
            owner.display()
        )),
        Err(error) => report.note(format!("It is unknown whether {shown} belongs to another database: {error}")),
    }
}

/// Holds the source as long as it is read; a database that was never opened for writing has no lock
/// to hold. Where none can be held, of a disk that must not be written to, the source is read
/// without, and the report says so.
///
/// # Errors
/// `Busy`.
fn lock_source(
    fs: &dyn FileSystem,
    source: &Path,
    report: &mut SalvageReport,
) -> Result<Option<Box<dyn FileLock>>> {
    let path = file_name::lock(source);
    match fs.metadata(&path).and_then(|_| fs.lock_for_reading(&path)) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) if error.code() == Code::Busy => Err(error),
        Err(error) => {
            report.note(format!(
                "The database was read without its lock, so another process may have written to it meanwhile: {error}"
            ));
            Ok(None)
        }
    }
}

fn check_target(fs: &dyn FileSystem, target: &Path) -> Result<()> {
    match fs.list(target) {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(_) => Err(Error::invalid_argument("the directory for the new database is not empty")
            .advise(Remedy::NameEmptyTarget)
            .at(target)),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The error that led here says more than one of these would; the directory was empty before.
fn remove_target(fs: &dyn FileSystem, target: &Path) {
    for name in fs.list(target).unwrap_or_default() {
        let _ = fs.remove(&target.join(name));
    }
}

struct Salvage<'a> {
    env: &'a Env,
    source: Arc<SourceFiles>,
    options: &'a Options,
    families: Families,
    report: SalvageReport,
    last_sequence: SequenceNumber,
    at: SalvageProgress,
    progress: &'a mut dyn FnMut(SalvageProgress),
}

impl Salvage<'_> {
    fn run(
        mut self,
        mut directory: Directory,
        path: &Path,
        was_opened: bool,
    ) -> Result<SalvageReport> {
        let mut misnamed = Misnamed::default();
        for (&number, files) in &directory.tables {
            self.survey_tables(number, files, &mut misnamed)?;
            self.read(files.iter().map(|listed| listed.bytes).sum());
        }
        self.take_misnamed(&mut misnamed)?;
        directory.wals = by_own_numbers(&self.source, directory.wals, &mut self.report);
        if !self.families.history().is_trusted {
            self.families.expect_in_logs(families_in_logs(&self.source, &directory.wals));
        }
        self.families.place_unknown(&mut self.report)?;
        self.families.name_those_in_logs();
        if directory.report_absent(&self.families, &mut self.report) {
            self.families.note_loss_of_anything();
        }
        self.note_missing_tables(&directory, &misnamed);
        self.note_tables_of_archive(&directory);
        self.note_missing_log(&directory, was_opened);
        let default = &self.families.by_name[crate::base::DEFAULT_COLUMN_FAMILY_NAME];
        let mut target = Target::create(self.env, path, &default.options, self.options)?;
        let numbers = target.numbers();
        directory.wals.keys().for_each(|wal| numbers.mark_used(*wal));
        let new_runs = || Runs::new(&self.env.fs, path, &numbers, RUN_SIZE / 2);
        let mut runs = LogRuns { fresh: new_runs(), flushed: new_runs() };
        self.families.finish_losses();
        self.families.finish_flushed();
        self.read_logs(&directory.wals, &mut runs, false)?;
        if self.families.have_losses() {
            self.at.bytes_total += bytes_of(&directory.archived);
            self.read_logs(&directory.archived, &mut runs, true)?;
        }
        self.families.doubts().into_iter().for_each(|doubt| self.report.note(doubt));
        let recorded = &self.families.history().blobs;
        let files = by_recorded_sizes(recorded, directory.blobs, &mut self.report);
        let mut blobs = Blobs::new(self.source.clone(), files);
        for family in self.families.take() {
            self.write_family(family, &mut runs, &mut blobs, &mut target)?;
        }
        runs.remove()?;
        blobs.describe(self.families.history().is_trusted, &mut self.report);
        let last = self.last_sequence.max(self.families.history().last_sequence);
        target.finish(self.options, last)?;
        Ok(self.report.finish())
    }

    fn read(&mut self, bytes: u64) {
        self.at.bytes_read += bytes;
        (self.progress)(self.at);
    }

    /// Tables that the MANIFEST names are lost if they are not there. If it is not whole, they may
    /// have been replaced since.
    fn note_missing_tables(&mut self, directory: &Directory, misnamed: &Misnamed) {
        let history = self.families.history();
        let missing: Vec<_> = history
            .live
            .iter()
            .filter(|(number, _)| !directory.tables.contains_key(number) && !misnamed.has(**number))
            .map(|(&number, table)| (number, table.clone()))
            .collect();
        let doubt = if history.is_trusted {
            ""
        } else {
            "; the MANIFEST does not show for certain whether it was still needed"
        };
        for (number, table) in missing {
            let range = user_range(&table.smallest, &table.largest);
            let error = Error::corruption(format!("{number}.sst is missing{doubt}"));
            self.report.lose_whole(error, Some(range.clone()));
            self.families.note_loss(table.family, range);
        }
    }

    /// What is in the archive was flushed to tables. Where a family has none, and no MANIFEST tells
    /// that they were removed, they are gone.
    fn note_tables_of_archive(&mut self, directory: &Directory) {
        if self.families.history().is_trusted {
            return;
        }
        let flushed = families_in_logs(&self.source, &directory.archived);
        for name in self.families.note_loss_of_tables(&flushed) {
            let what = format!(
                "family '{name}' has no table although WALs in the archive were flushed to some; of their contents only what \
                 is in WALs is left"
            );
            self.report.lose_whole(Error::corruption(what), None);
        }
    }

    /// The newest log that the MANIFEST tells of is there even if it is empty, or a newer one. Only
    /// in a checkpoint by RocksDB, which nobody has opened, an empty one is left out. A family that
    /// was dropped may have outlived the newest that is noted.
    fn note_missing_log(&mut self, directory: &Directory, was_opened: bool) {
        let history = self.families.history();
        let newest =
            history.families.values().map(|family| family.log_number).max().unwrap_or_default();
        let known =
            history.families.values().map(|family| family.known_wal).max().unwrap_or_default();
        let is_needed = known > FileNumber(0) && newest >= history.oldest_log;
        if !is_needed || directory.wals.range(known..).next().is_some() {
            return;
        }
        let or_before = if known < newest { ", or the one before," } else { "" };
        let what = format!("{newest}.log{or_before} is missing; its contents, if any, are lost");
        if was_opened {
            self.report.lose_whole(Error::corruption(what), None)
        } else {
            self.report.note(format!("{what}; a checkpoint made by RocksDB omits an empty WAL."))
        }
    }

    fn read_logs(&mut self, wals: &Files, runs: &mut LogRuns<'_>, is_archive: bool) -> Result<()> {
        let mut logs = Logs {
            families: &mut self.families,
            runs,
            report: &mut self.report,
            last_sequence: &mut self.last_sequence,
            ends: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            torn: BTreeMap::new(),
            is_damaged: false,
            is_archive,
            prepared: PreparedOperations::default(),
        };
        for (&number, files) in wals {
            for listed in files {
                let is_copy_of = |other: &&Listed| {
                    other.bytes > listed.bytes && self.source.is_front(&listed.path, &other.path)
                };
                match files.iter().find(is_copy_of) {
                    Some(whole) => logs.leave_out(listed, whole),
                    None => logs.read(self.source.at(&listed.path), number, listed)?,
                }
                self.at.bytes_read += listed.bytes;
                (self.progress)(self.at);
            }
        }
        logs.finish();
        Ok(())
    }

    fn write_family(
        &mut self,
        mut family: Family,
        runs: &mut LogRuns<'_>,
        blobs: &mut Blobs,
        target: &mut Target,
    ) -> Result<()> {
        let order = InternalKeyComparator::new(family.comparator.clone());
        let tables = family.tables.iter().map(|(number, _)| *number);
        let temperature = self.families.history().common_temperature(tables);
        let is_trusted = self.families.history().is_trusted;
        let sources = self.sources(&mut family, runs)?;
        let sizes: u64 = sources.iter().map(|(_, table)| table.size()).sum();
        let entries: u64 = sources.iter().map(|(_, table)| table.entries).sum();
        family.tombstones.finish(&family.comparator);
        let mut failures = SalvageReport::default();
        let walks = sources.iter().map(|(origin, table)| (*origin, table.entries())).collect();
        let mut merge = Merge::new(order, walks, &mut |error| failures.lose(error, None));
        for wrong in family.options.mend_tables() {
            self.report.note(format!(
                "Family '{}' has default settings instead of its own, which no table can be written with: {wrong}",
                family.name
            ));
        }
        if family.stamps.low.is_none() && family.stamps.kind.kept_size() > 0 && !is_trusted {
            self.report.note(format!(
                "Family '{}' has timestamps, and the MANIFEST may have said from which on its history is complete.",
                family.name
            ));
        }
        let writer = target.family(&family.name, &family.options, temperature)?;
        let name = (family.name.clone(), family.stamps.kind);
        let mut out = KeyWriter::new(writer, name, blobs, &mut self.report);
        let (mut seen, start) = (0u64, self.at);
        while let Some((key, versions)) = merge.next_key(&mut |error| failures.lose(error, None)) {
            let before = std::mem::replace(&mut seen, merge.passed);
            match timestamp::check_length(&key, family.stamps.kind.kept_size()) {
                Ok(()) => out.write(&key, versions, |version| family.cover(&key, version))?,
                Err(error) => failures.lose(error, None),
            }
            if before / PROGRESS_INTERVAL != seen / PROGRESS_INTERVAL {
                self.at.bytes_read = start.bytes_read
                    + (sizes as f64 * (seen as f64 / entries.max(1) as f64)) as u64;
                self.at.records = start.records + out.counts.records;
                (self.progress)(self.at);
            }
        }
        let KeyWriter { writer, counts, unclear, .. } = out;
        writer.finish(family.has_own_options, family.stamps.history_low())?;
        self.at = SalvageProgress {
            bytes_read: (start.bytes_read + sizes).min(self.at.bytes_total),
            records: start.records + counts.records,
            ..start
        };
        (self.progress)(self.at);
        self.report.lose_all_of(failures);
        unclear.describe(&counts.name, &mut self.report);
        self.report.families.push(counts);
        Ok(())
    }

    /// What a family's versions come from, in order: WALs, then tables, the newest first.
    fn sources(
        &mut self,
        family: &mut Family,
        runs: &mut LogRuns<'_>,
    ) -> Result<Vec<(Origin, Arc<TableRemains>)>> {
        let is_sure = self.families.history().is_trusted || family.flushed.is_certain();
        let fresh = runs.fresh.take(&family.name)?.into_iter();
        let flushed = runs.flushed.take(&family.name)?.into_iter();
        let mut sources: Vec<_> = fresh
            .map(|run| (if is_sure { Origin::Log } else { Origin::UnsureLog }, run))
            .chain(flushed.map(|run| (Origin::FlushedLog, run)))
            .collect();
        let mut tables = std::mem::take(&mut family.tables);
        tables.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        for (number, table) in tables {
            let origin = self.families.history().origin(number);
            if table.is_sorted {
                sources.push((origin, table));
                continue;
            }
            let mut entries = table.entries();
            let lose = &mut |error| self.report.lose(error, table.bounds.clone());
            while entries.advance_past(lose) {
                let (key, value) = entries.entry();
                runs.fresh.add(&family.name, &family.comparator, key, value)?;
            }
            let sorted = runs.fresh.take(&family.name)?;
            sources.extend(sorted.into_iter().map(|run| (origin, run)));
        }
        Ok(sources)
    }
}
