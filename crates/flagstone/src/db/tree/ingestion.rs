//! Tables that were written outside of the database become part of it.

use std::sync::Arc;

use crate::base::{Code, Error, RangeTombstone, Result, Sometimes};
use crate::compaction::pick::{DeletedRanges, last_level, level_above_older, level_below_all};
use crate::db::events::Event;
use crate::db::family::Family;
use crate::db::settings::leveled_settings;
use crate::db::tree::Tree;
use crate::db::tree::output::JobOutput;
use crate::db::tree::state::State;
use crate::manifest::{FileMetadata, TableFile, Version, VersionEdit};
use crate::options::IngestionInfo;

/// What the rank in level 0 of a table below all others is, as in RocksDB.
const EPOCH_BEHIND: u64 = 1;

/// The tables that one family takes in. Their files are in the family's directories, and synced.
pub(in crate::db) struct Arriving {
    pub(in crate::db) family: Arc<Family>,
    /// In the order of their age: a later one may overlap those before it.
    pub(in crate::db) tables: Vec<FileMetadata>,
    /// The range deletions of each, as far as these are newer than what lies below.
    pub(in crate::db) deletions: Vec<Vec<RangeTombstone>>,
    /// Whether they go below all others.
    pub(in crate::db) is_behind: bool,
    /// Whether all must fit into the last level.
    pub(in crate::db) only_last_level: bool,
    /// Whether no table of the family may overlap them.
    pub(in crate::db) must_not_overlap: bool,
    /// What listeners are told of them.
    pub(in crate::db) told: Vec<IngestionInfo>,
}

/// An ingestion begins: closing waits for its end.
///
/// # Errors
/// `ShutdownInProgress`.
pub(in crate::db) fn begin(tree: &Tree) -> Result<()> {
    let mut state = tree.state.lock();
    tree.context.check_open()?;
    state.running.ingestions += 1;
    Ok(())
}

/// What [`begin`] began has ended.
pub(in crate::db) fn end(tree: &Tree) {
    tree.state.lock().running.ingestions -= 1;
    tree.progress.notify_all();
}

/// Makes tables part of their families by one atomic change, and returns whether the MANIFEST
/// may hold it: from then on the files are the tree's. No writer inserts, and no memtable has a
/// key in the range of a table.
///
/// # Errors
/// `TryAgain` or `InvalidArgument` where a table does not fit as asked; those of the MANIFEST.
pub(in crate::db) fn install(tree: &Tree, arriving: &[Arriving]) -> (bool, Result<()>) {
    let mut state = tree.state.lock();
    let edits = match edits_of(tree, &state, arriving) {
        Ok(edits) => edits,
        Err(error) => return (false, Err(error)),
    };
    let outputs: Vec<JobOutput> = arriving
        .iter()
        .map(|one| JobOutput { tables: one.tables.clone(), ..JobOutput::default() })
        .collect();
    let written: Vec<(&Family, &JobOutput)> =
        arriving.iter().map(|one| &*one.family).zip(&outputs).collect();
    if let Err(error) = tree.apply_edits(&mut state, edits, &written) {
        return (true, Err(error));
    }
    for one in arriving {
        show_arrived(tree, &mut state, one);
    }
    tree.update_stall(&mut state);
    tree.announce_work(&mut state);
    tree.progress.notify_all();
    (true, Ok(()))
}

fn edits_of(tree: &Tree, state: &State, arriving: &[Arriving]) -> Result<Vec<VersionEdit>> {
    tree.disk.check_changeable()?;
    arriving.iter().map(|one| edit_of(state, one)).collect()
}

fn show_arrived(tree: &Tree, state: &mut State, arrived: &Arriving) {
    let id = arrived.family.id;
    let version = state.versions.family(id).expect("open").current.clone();
    let now_us = tree.context.env.clock.now_us();
    let next = tree.file_numbers.next();
    if let Some(known) = state.families.get_mut(&id) {
        // Scans that found nothing in a range must look again.
        known.note_deleted(&ranges_deleted(&version, arrived), &version);
        known.install_another_past(version, now_us);
        known.compacting.forced_gc_below = next;
    }
    for told in &arrived.told {
        tree.context.events.note(|| Event::Ingested(told.clone()));
    }
    state.note(id);
}

/// What the tables' range deletions leave nothing of.
fn ranges_deleted(version: &Version, arrived: &Arriving) -> Vec<DeletedRanges> {
    let with_deletions = arrived.tables.iter().zip(&arrived.deletions);
    let deleted = with_deletions.filter_map(|(table, deletions)| {
        let is_it = |(_, file): &(usize, &Arc<TableFile>)| file.number() == table.number;
        let level = version.files().find(is_it).filter(|_| !deletions.is_empty())?.0;
        let bounds = (&table.smallest, &table.largest);
        DeletedRanges::new(version, level, table.number, bounds, deletions)
    });
    deleted.collect()
}

/// Where the tables of a family go.
fn edit_of(state: &State, arriving: &Arriving) -> Result<VersionEdit> {
    let Arriving { family, tables, .. } = arriving;
    family.check_alive()?;
    let known = state.families.get(&family.id).expect("alive");
    let options = family.options.load();
    let version = &state.versions.family(family.id).expect("alive").current;
    let settings = leveled_settings(&options, &version.paths);
    let running = &known.compacting.running;
    let mut edit = VersionEdit::new(family.id);
    let mut arrivals = Vec::new();
    for table in tables {
        let bounds = (table.smallest.user_key(), table.largest.user_key());
        if arriving.must_not_overlap {
            let (begin, end) = (Some(bounds.0), Some(bounds.1));
            let overlaps = (0..version.levels.len())
                .any(|level| !version.files_overlapping(level, begin, end).is_empty());
            if overlaps {
                return Err(overlapping(family, table));
            }
        }
        let level = if arriving.is_behind {
            check_numbered(family, version)?;
            level_below_all(version, running, &arrivals, bounds)
        } else {
            let style = options.compaction_style;
            let level = level_above_older(version, style, &settings, running, &arrivals, bounds);
            let is_last = level == last_level(version, &settings);
            (is_last || !arriving.only_last_level).then_some(level)
        };
        let level = level.ok_or_else(|| last_level_is_taken(family, table))?;
        if level == 0 {
            Sometimes::IngestedIntoLevel0.reached();
        }
        arrivals.push((level, bounds));
        let epoch_number = if arriving.is_behind { EPOCH_BEHIND } else { 0 };
        edit.add_file(level, FileMetadata { epoch_number, ..table.clone() });
    }
    Ok(edit)
}

/// Tables behind all others have sequence number 0, so no entry above them may have it.
fn check_numbered(family: &Family, version: &Version) -> Result<()> {
    let last = version.levels.len() - 1;
    let is_unnumbered =
        |(level, file): &(usize, &Arc<TableFile>)| *level < last && file.meta.smallest_seqno == 0;
    let Some((level, file)) = version.files().find(is_unnumbered) else { return Ok(()) };
    let message = format!(
        "column family '{}' has entries without sequence number in level {level}, so nothing can lie behind them: \
         cf_allow_ingest_behind was off when they were compacted",
        family.name
    );
    Err(Error::invalid_argument(message).at(file.path()))
}

fn last_level_is_taken(family: &Family, table: &FileMetadata) -> Error {
    let message = format!(
        "keys from '{}' to '{}' do not fit into the last level of column family '{}', for other tables or a running compaction",
        table.smallest.user_key().escape_ascii(),
        table.largest.user_key().escape_ascii(),
        family.name
    );
    Error::new(Code::TryAgain, message)
}

fn overlapping(family: &Family, table: &FileMetadata) -> Error {
    let why = match family.order.timestamp_size() {
        0 => "the entries get no sequence number",
        _ => "which of their timestamps are newer is not known",
    };
    Error::invalid_argument(format!(
        "keys from '{}' to '{}' overlap tables of column family '{}', and {why}",
        table.smallest.user_key().escape_ascii(),
        table.largest.user_key().escape_ascii(),
        family.name
    ))
}
