//! Universal compaction of all runs in pieces, so that there need not be room for a second copy of
//! everything.
//!
//! 1. Up to `max_compaction_bytes` are merged at once. Of more, the tables of level 0, which cannot
//!    be cut, come first: they are merged, with the deeper runs that leave no level below them,
//!    into the level above the next older run. What is in them is written once more for that. So
//!    where nobody has set `max_compaction_bytes` it is done only if they are at most a quarter of
//!    everything; otherwise, and where no older run is left, all is merged at once.
//! 2. Then, from the smallest key on, the tables of the deeper runs that begin up to some key are
//!    merged into the last level, each with what it overlaps of older runs: all that lies below the
//!    output goes into it. What is newer, and overlaps only what reaches beyond that key, stays
//!    above. The key is the last by which the inputs have no more than `max_compaction_bytes`; at
//!    least one table goes with what it overlaps, whatever they have.
//! 3. The next piece begins at the smallest key of what is left ([`CompactionPlan::rest`]), until
//!    nothing is: each begins behind the one before. Tables at the edges are written twice.
//!
//! The inputs of a piece are given back when it ends, before the next begins. Between two pieces
//! the tree is a tree like any other, and newer runs may be merged with one another. What is
//! written meanwhile is taken along where it is overlapped, but nothing is done for its sake: it
//! ends when what was there at its beginning is merged, also if somebody else did that
//! ([`Merging::older_than`]).

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::expand::{any_busy, bounds, clean_cut, join, total_bytes};
use super::ingest::last_level;
use super::manual::RangePlan;
use super::plan::{CompactionPlan, CompactionReason, LevelInput};
use super::proximal::is_in_the_way;
use super::universal::{Output, Run, UniversalPicker};
use crate::base::{FileNumber, MAX_SEQUENCE_NUMBER, Sometimes};
use crate::manifest::{TableFile, Version};

/// What part of everything may be written once more where nobody asked for a bound.
const WRITTEN_TWICE_MAX: u64 = 4;

/// A merging of all runs in pieces that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merging {
    /// Where the next piece begins.
    pub begin: Vec<u8>,
    /// What it is for.
    pub reason: CompactionReason,
    /// The tables that were there when it began have smaller numbers.
    pub older_than: FileNumber,
}

impl Merging {
    /// Whether there is anything left to merge into the level `last`.
    pub(super) fn is_left(&self, version: &Version, last: usize) -> bool {
        Whole::begun(self).waiting(version, last, &self.begin).next().is_some()
    }
}

/// The merging of all runs that is done in pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub(super) reason: CompactionReason,
    /// Which of the family's directories the outputs go to, if somebody said so.
    pub(super) path_id: Option<u32>,
    /// Whether what lies in the last level, and overlaps nothing newer, is rewritten, too.
    pub(super) rewrites_last: bool,
    /// Only tables with smaller numbers have to go.
    pub(super) older_than: FileNumber,
}

impl Whole {
    /// That which a compaction is the first piece of, going by its reason.
    pub(super) fn for_reason(reason: CompactionReason) -> Self {
        use CompactionReason::{Deletions, Marked, Periodic};
        let rewrites_last = matches!(reason, Periodic | Deletions | Marked);
        Self { reason, path_id: None, rewrites_last, older_than: FileNumber(u64::MAX) }
    }

    pub(super) fn begun(merging: &Merging) -> Self {
        Self { older_than: merging.older_than, ..Self::for_reason(merging.reason) }
    }

    /// The tables that have to go, from a user key on.
    fn waiting<'a>(
        self,
        version: &'a Version,
        last: usize,
        begin: &[u8],
    ) -> impl Iterator<Item = &'a Arc<TableFile>> {
        let older_than = self.older_than;
        let end = if self.rewrites_last { last + 1 } else { last };
        let tables = version.levels.iter().take(end).skip(1).flatten();
        tables.filter(move |file| file.number() < older_than && !ends_before(version, file, begin))
    }
}

impl UniversalPicker<'_> {
    /// The first piece of merging these runs, the oldest of which is the oldest of all; `Nothing`
    /// if that is to be done at once.
    pub(super) fn first_piece(&self, whole: Whole, runs: Range<usize>) -> RangePlan {
        let Some(first) = self.before_pieces(runs.clone()) else { return RangePlan::Nothing };
        let tables = self.runs[runs].iter().flat_map(|run| run.files);
        let (smallest, _) = bounds(self.version.comparator.keys(), tables);
        if first.is_empty() {
            return self.next_piece(whole, smallest);
        }
        let compressed = self.is_compressed(&first);
        let path_id =
            whole.path_id.unwrap_or_else(|| self.path_of(bytes_of(&self.runs[first.clone()])));
        let plan = self.merged_in(path_id, whole.reason, first, compressed);
        ready(rewriting(plan), Some(smallest.to_vec()))
    }

    /// Of these runs, those that are to be merged before the others are in pieces, so that none is
    /// left in level 0; `None` if all are merged at once.
    fn before_pieces(&self, runs: Range<usize>) -> Option<Range<usize>> {
        let all = bytes_of(&self.runs[runs.clone()]);
        if all <= self.settings.effective_max_compaction_bytes() {
            return None;
        }
        let of_level0 = self.runs[runs.clone()].iter().filter(|run| run.level == 0).count();
        if of_level0 == 0 {
            return Some(runs.start..runs.start);
        }
        let end = (runs.start + of_level0..runs.end).find(|&at| self.runs[at].level > 1)?;
        let first = runs.start..end;
        let is_bound_set = self.settings.max_compaction_bytes > 0;
        (is_bound_set || bytes_of(&self.runs[first.clone()]) <= all / WRITTEN_TWICE_MAX)
            .then_some(first)
    }

    /// The most bytes that one compaction of these runs writes.
    pub(super) fn scratch(&self) -> u64 {
        let all = bytes_of(&self.runs);
        let Some((_, newer)) = self.runs.split_last() else { return 0 };
        // Garbage in blob files is uncovered by a merge of all runs at once.
        if !newer.is_empty()
            && self.settings.max_space_amplification > 0.0
            && !self.version.blob_files.is_empty()
        {
            return all;
        }
        let Some(first) = self.before_pieces(0..self.runs.len()) else { return all };
        let deeper = self.runs.iter().filter(|run| run.level > 0).flat_map(|run| run.files);
        let of_one = deeper.map(|file| {
            let inputs =
                self.inputs_between(file.meta.smallest.user_key(), file.meta.largest.user_key());
            total_bytes(inputs.iter().flat_map(|input| &input.files))
        });
        let most = self.settings.effective_max_compaction_bytes().max(of_one.max().unwrap_or(0));
        let first = &self.runs[first];
        // Without the oldest, runs of similar size are merged at once.
        bytes_of(newer).max(most.max(self.of_one_before(first)).min(all))
    }

    /// About what a piece has at least when these runs have been merged: one of their new tables,
    /// and what that overlaps.
    fn of_one_before(&self, first: &[Run<'_>]) -> u64 {
        if first.is_empty() {
            return 0;
        }
        let (smallest, largest) =
            bounds(self.version.comparator.keys(), first.iter().flat_map(|run| run.files));
        let inputs = self.inputs_between(smallest, largest);
        let overlapped = total_bytes(inputs.iter().flat_map(|input| &input.files));
        let of_level0: Vec<_> =
            first.iter().filter(|run| run.level == 0).flat_map(|run| run.files).collect();
        let tables = bytes_of(first) / self.settings.target_file_size_base.max(1);
        total_bytes(of_level0).saturating_add(overlapped) / tables.max(1)
    }

    /// The piece that begins at a user key; `Nothing` if nothing is left from there on.
    pub(super) fn next_piece(&self, whole: Whole, begin: &[u8]) -> RangePlan {
        let user = self.version.comparator.keys();
        let last = last_level(self.version, self.settings);
        let mut waiting: Vec<_> = whole.waiting(self.version, last, begin).collect();
        let first = waiting
            .iter()
            .map(|file| file.meta.smallest.user_key())
            .min_by(|a, b| user.compare(a, b));
        // What lies before it in the last level may stay there.
        let begin = first.filter(|first| user.compare(first, begin).is_gt()).unwrap_or(begin);
        waiting.sort_by(|a, b| user.compare(a.meta.largest.user_key(), b.meta.largest.user_key()));
        let most = self.settings.effective_max_compaction_bytes();
        let fitting = waiting.partition_point(|file| {
            let inputs = self.inputs_between(begin, file.meta.largest.user_key());
            total_bytes(inputs.iter().flat_map(|input| &input.files)) <= most
        });
        let Some(end) = waiting.get(fitting.saturating_sub(1)) else { return RangePlan::Nothing };
        let inputs = self.inputs_between(begin, end.meta.largest.user_key());
        if any_busy(inputs.iter().flat_map(|input| &input.files)) {
            return RangePlan::Blocked;
        }
        let path_id = whole.path_id.unwrap_or_else(|| self.path_of(bytes_of(&self.runs)));
        let output = Output { level: last, path_id, is_oldest: true, compressed: true };
        let plan = rewriting(self.planned(whole.reason, inputs, output));
        if is_in_the_way(user, self.running, &plan) {
            return RangePlan::Blocked;
        }
        let is_left = |file: &&&Arc<TableFile>| {
            plan.files().all(|(_, taken)| taken.number() != file.number())
        };
        let left = waiting.iter().filter(is_left).map(|file| file.meta.smallest.user_key());
        let rest = left.min_by(|a, b| user.compare(a, b)).map(<[u8]>::to_vec);
        Sometimes::RunsMergedInPieces.reached();
        ready(plan, rest)
    }

    /// The tables of the deeper runs with keys of a range, and what these overlap of older ones.
    fn inputs_between(&self, begin: &[u8], end: &[u8]) -> Vec<LevelInput> {
        let mut reach = (begin, end);
        let mut inputs = Vec::new();
        for run in self.runs.iter().filter(|run| run.level > 0) {
            let mut range = self.version.overlapping_range(run.level, Some(reach.0), Some(reach.1));
            if run.files[range.clone()]
                .first()
                .is_some_and(|file| ends_before(self.version, file, reach.0))
            {
                range.start += 1;
            }
            let range = clean_cut(self.version, run.level, range);
            if !range.is_empty() {
                let files = &run.files[range];
                let user = self.version.comparator.keys();
                reach = join(user, reach, bounds(user, files.iter()));
                inputs.push(LevelInput { level: run.level, files: files.to_vec() });
            }
        }
        inputs
    }
}

/// Whether a table holds nothing of a user key or what follows. That of a tombstone's end is not in
/// it.
fn ends_before(version: &Version, file: &TableFile, key: &[u8]) -> bool {
    let largest = file.meta.largest.as_key();
    match version.comparator.keys().compare(largest.user_key(), key) {
        Ordering::Less => true,
        Ordering::Equal => largest.sequence() == MAX_SEQUENCE_NUMBER,
        Ordering::Greater => false,
    }
}

/// What is to be rewritten, or to drop something, is not moved as it is: it would ask for the same
/// again.
fn rewriting(plan: CompactionPlan) -> CompactionPlan {
    use CompactionReason::{BlobGarbage, Deletions, Marked, Periodic};
    let rewrites = matches!(plan.reason, Deletions | BlobGarbage | Marked | Periodic);
    CompactionPlan { trivial_move: plan.trivial_move && !rewrites, ..plan }
}

fn ready(plan: CompactionPlan, rest: Option<Vec<u8>>) -> RangePlan {
    RangePlan::Ready {
        plan: Box::new(CompactionPlan { rest: rest.clone(), takes_turn: true, ..plan }),
        rest,
    }
}

fn bytes_of(runs: &[Run<'_>]) -> u64 {
    total_bytes(runs.iter().flat_map(|run| run.files))
}
