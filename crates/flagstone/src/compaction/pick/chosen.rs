//! A compaction of tables that somebody has chosen, with those that must go with them.
//!
//! **Algorithm** (what RocksDB's `CompactFiles` does).
//! 1. From level 0 down to the output level: the chosen tables of a level, those between them, and
//!    those that overlap what was taken of the levels above; in the output level also those between
//!    these and the chosen ones; below level 0 widened to a clean cut.
//! 2. Of level 0, for the sake of a deeper one, all that overlap them, too: an older version must
//!    not stay above a newer one. What is merged within level 0 has nothing in between instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expand::{Bounds, any_busy, bounds, clean_cut, is_being_written, join, level0_closure};
use super::ingest::last_level;
use super::leveled::Picker;
use super::plan::{CompactionPlan, CompactionReason, LevelInput};
use super::proximal;
use super::score::compensated_sizes;
use super::settings::{LeveledSettings, PickContext};
use super::targets::LevelTargets;
use crate::base::{Code, Error, FileNumber, Result, counted};
use crate::manifest::{TableFile, Version};

/// The compaction of these tables into `output_level`, its outputs in the directory with that path
/// id.
///
/// # Errors
/// `InvalidArgument`: no table, one that is not there, or one below the output level; a level that
/// is not there. `Aborted`: a compaction is in the way.
pub fn plan_files(
    version: &Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
    files: &BTreeSet<FileNumber>,
    (output_level, path_id): (usize, u32),
) -> Result<CompactionPlan> {
    check(version, last_level(version, settings), files, output_level)?;
    let joined = proximal_of(version, settings, files, output_level);
    let inputs = with_those_that_must_go_along(version, files, output_level, joined);
    let all = || inputs.iter().flat_map(|input| &input.files);
    if any_busy(all()) {
        return Err(in_the_way());
    }
    let user = version.comparator.keys();
    let range = bounds(user, all());
    let start_level = inputs[0].level;
    if ((start_level + 1).min(output_level)..=output_level)
        .any(|level| is_being_written(user, context.running, level, range))
        || !proximal::is_free(
            version,
            settings,
            context.running,
            (start_level, output_level),
            range,
        )
    {
        return Err(in_the_way());
    }
    let targets = LevelTargets::new(version, settings);
    let sizes = compensated_sizes(version, context);
    let picker = Picker { version, settings, context, targets, sizes };
    Ok(picker.complete_inputs(path_id, CompactionReason::Manual, inputs, output_level))
}

/// No compaction writes to this level.
pub(super) fn kept_for_ingestion(level: usize) -> Error {
    Error::invalid_argument(format!(
        "level {level} is kept for tables that are ingested behind all others (cf_allow_ingest_behind)"
    ))
}

/// What somebody has asked for cannot be now.
pub fn in_the_way() -> Error {
    Error::new(Code::Aborted, "conflicts with a running compaction; try again when it has finished")
}

fn check(
    version: &Version,
    last: usize,
    files: &BTreeSet<FileNumber>,
    output_level: usize,
) -> Result<()> {
    if output_level > last && output_level < version.levels.len() {
        return Err(kept_for_ingestion(output_level));
    }
    if output_level >= version.levels.len() {
        return Err(Error::invalid_argument(format!(
            "output level {output_level} does not exist: the column family has {}",
            counted(version.levels.len(), "level")
        )));
    }
    if files.is_empty() {
        return Err(Error::invalid_argument("no files to compact"));
    }
    for number in files {
        let Some((level, _)) = version.files().find(|(_, file)| file.number() == *number) else {
            return Err(Error::invalid_argument(format!(
                "table {number} does not exist in the column family"
            )));
        };
        if level > output_level {
            return Err(Error::invalid_argument(format!(
                "table {number} is in level {level} and cannot move up to level {output_level}"
            )));
        }
    }
    Ok(())
}

/// The other level to which a compaction of these tables writes, if there is one.
fn proximal_of(
    version: &Version,
    settings: &LeveledSettings,
    files: &BTreeSet<FileNumber>,
    output_level: usize,
) -> Option<usize> {
    let mut levels = version.files().filter(|(_, file)| files.contains(&file.number()));
    let (start_level, _) = levels.next()?;
    proximal::proximal_level(version, settings, start_level, output_level)
}

/// By level, the first that has any first. The output goes to `output_level`, and to `joined`.
fn with_those_that_must_go_along(
    version: &Version,
    files: &BTreeSet<FileNumber>,
    output_level: usize,
    joined: Option<usize>,
) -> Vec<LevelInput> {
    let user = version.comparator.keys();
    let mut inputs = Vec::new();
    let mut taken: Option<Bounds<'_>> = None;
    for (level, tables) in version.levels.iter().enumerate().take(output_level + 1) {
        let is_chosen = |file: &Arc<TableFile>| files.contains(&file.number());
        let chosen = tables.iter().position(is_chosen).zip(tables.iter().rposition(is_chosen));
        let between = chosen.map(|(first, last)| first..last + 1);
        let found: Vec<Arc<TableFile>> = match (level, between) {
            (0, None) => Vec::new(),
            (0, Some(between)) if output_level == 0 => tables[between].to_vec(),
            (0, Some(_)) => {
                let seeds: Vec<_> =
                    (0..tables.len()).filter(|&at| is_chosen(&tables[at])).collect();
                level0_closure(version, &seeds).into_iter().map(|at| tables[at].clone()).collect()
            }
            (_, between) => {
                let is_written = level == output_level || joined == Some(level);
                let own = between.clone().filter(|_| is_written);
                let own = own.map(|own| bounds(user, tables[own].iter()));
                // An output may reach from what is taken above to what is chosen here.
                let reach = match (taken, own) {
                    (Some(taken), Some(own)) => Some(join(user, taken, own)),
                    (taken, own) => taken.or(own),
                };
                let under = reach
                    .map(|reach| version.overlapping_range(level, Some(reach.0), Some(reach.1)))
                    .filter(|under| !under.is_empty());
                let both = match (between, under) {
                    (Some(a), Some(b)) => a.start.min(b.start)..a.end.max(b.end),
                    (a, b) => a.or(b).unwrap_or(0..0),
                };
                tables[clean_cut(version, level, both)].to_vec()
            }
        };
        if !found.is_empty() {
            let of_level = bounds(
                user,
                tables.iter().filter(|file| found.iter().any(|one| Arc::ptr_eq(one, file))),
            );
            taken = Some(taken.map_or(of_level, |taken| join(user, taken, of_level)));
            inputs.push(LevelInput { level, files: found });
        }
    }
    inputs
}
