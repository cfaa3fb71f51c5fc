//! Moving a whole level after a manual compaction (RocksDB's "refit"): a change of the MANIFEST,
//! and nothing is rewritten.

use super::chosen::kept_for_ingestion;
use super::expand::any_busy;
use super::ingest::last_level;
use super::manual::RangePlan;
use super::plan::CompactionPlan;
use super::settings::LeveledSettings;
use super::targets::LevelTargets;
use crate::base::{Code, Error, Result, counted};
use crate::manifest::Version;

/// All tables of `level` move to `target`, or, if that is not said, to the first level that should
/// hold as much, and from which on down to theirs all are empty.
///
/// # Errors
/// `InvalidArgument`: there is no such level. `NotSupported`: a level on the way has tables, or it
/// would lead down from level
/// 0. `Aborted`: several tables would come to level 0, where each costs every read. These are
///    RocksDB's.
pub fn plan_refit(
    version: &Version,
    settings: &LeveledSettings,
    level: usize,
    target: Option<usize>,
) -> Result<RangePlan> {
    let files = &version.levels[level];
    let to = target.unwrap_or_else(|| lowest_fitting(version, settings, level));
    if to >= version.levels.len() {
        let count = counted(version.levels.len(), "level");
        return Err(Error::invalid_argument(format!(
            "target_level {to} does not exist: the column family has {count}"
        )));
    }
    if to > last_level(version, settings) {
        return Err(kept_for_ingestion(to));
    }
    if to == level || files.is_empty() {
        return Ok(RangePlan::Nothing);
    }
    if level == 0 {
        let message =
            "the result is in level 0, and change_level does not move tables down from there";
        return Err(Error::not_supported(message));
    }
    let mut way = if to > level { level + 1..to + 1 } else { to..level };
    if let Some(filled) = way.find(|&between| !version.levels[between].is_empty()) {
        return Err(Error::not_supported(format!(
            "level {filled}, between level {level} and target_level {to}, is not empty"
        )));
    }
    if to == 0 && files.len() > 1 {
        let message =
            "the result consists of several tables; moving them to level 0 would slow down reads";
        return Err(Error::new(Code::Aborted, message));
    }
    if any_busy(files) {
        return Ok(RangePlan::Blocked);
    }
    let plan = Box::new(CompactionPlan::moving(version, level, to));
    Ok(RangePlan::Ready { plan, rest: None })
}

fn lowest_fitting(version: &Version, settings: &LeveledSettings, level: usize) -> usize {
    let targets = LevelTargets::new(version, settings);
    let bytes = version.level_bytes(level);
    let fits = |at: &usize| version.levels[*at].is_empty() && targets.bytes(*at) >= bytes;
    (1..level).rev().take_while(fits).last().unwrap_or(level)
}
