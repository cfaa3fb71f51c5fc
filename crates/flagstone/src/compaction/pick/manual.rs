//! A compaction that somebody asked for: all of a range of keys in one level, piece by piece.

use std::cmp::Ordering;
use std::sync::Arc;

use super::expand::{clean_cut, level0_closure, overlapping, total_bytes};
use super::leveled::{Draft, Picker};
use super::plan::{CompactionPlan, CompactionReason};
use super::score::compensated_sizes;
use super::settings::{LeveledSettings, PickContext};
use super::targets::LevelTargets;
use crate::base::{FileNumber, MAX_SEQUENCE_NUMBER};
use crate::manifest::{TableFile, Version};

/// What somebody asked for.
#[derive(Debug, Clone, Copy)]
pub struct RangeRequest<'a> {
    /// The level to compact.
    pub level: usize,
    /// Where to: a deeper level, or the same to rewrite it. Level 0 goes to the base level or
    /// deeper, past empty levels only.
    pub output_level: usize,
    /// Where tables are rewritten in their level, those of this number and later ones are not.
    pub spared_from: Option<FileNumber>,
    /// The first user key; `None` for all.
    pub begin: Option<&'a [u8]>,
    /// The last user key; `None` for all.
    pub end: Option<&'a [u8]>,
    /// Which of the family's directories the outputs go to.
    pub path_id: u32,
    /// Tables that overlap nothing may change their level as they are; no if a filter is to see
    /// them.
    pub allow_trivial_move: bool,
}

/// What there is to do for a request.
#[derive(Debug)]
pub enum RangePlan {
    /// The level has nothing in that range.
    Nothing,
    /// A running compaction is in the way: ask again when one has ended.
    Blocked,
    /// Run this.
    Ready {
        /// The compaction.
        plan: Box<CompactionPlan>,
        /// Where the next piece of the range begins, if one compaction would have been too large:
        /// ask again from there afterwards.
        rest: Option<Vec<u8>>,
    },
}

/// The next compaction for a request.
///
/// # Panics
/// If the levels of the request are not there, the output level lies above, or a level between them
/// has tables.
pub fn plan_range(
    version: &Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
    request: &RangeRequest<'_>,
) -> RangePlan {
    assert!(request.output_level >= request.level && request.output_level < version.levels.len());
    let mut skipped = request.level + 1..request.output_level;
    assert!(
        skipped.all(|level| version.levels[level].is_empty()),
        "a compaction skips only empty levels"
    );
    let targets = LevelTargets::new(version, settings);
    let sizes = compensated_sizes(version, context);
    let picker = Picker { version, settings, context, targets, sizes };
    let (draft, rest) = if request.level == 0 {
        (picker.range_of_level0(request), None)
    } else {
        match picker.range_of_level(request) {
            Some((draft, rest)) => (draft, rest),
            None => return RangePlan::Nothing,
        }
    };
    match draft {
        RangeDraft::Nothing => RangePlan::Nothing,
        RangeDraft::Blocked => RangePlan::Blocked,
        RangeDraft::Ready(draft) => {
            let mut plan = picker.complete_in(request.path_id, CompactionReason::Manual, draft);
            plan.trivial_move &= request.allow_trivial_move;
            RangePlan::Ready { plan: Box::new(plan), rest }
        }
    }
}

impl RangePlan {
    /// What can be run now.
    pub(super) fn into_plan(self) -> Option<CompactionPlan> {
        match self {
            Self::Ready { plan, .. } => Some(*plan),
            Self::Nothing | Self::Blocked => None,
        }
    }
}

enum RangeDraft {
    Nothing,
    Blocked,
    Ready(Draft),
}

impl From<Option<Draft>> for RangeDraft {
    fn from(draft: Option<Draft>) -> Self {
        draft.map_or(Self::Blocked, Self::Ready)
    }
}

/// A range of user keys; `None` is unbounded.
pub type KeyRange<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// The tables below level 0, of those that are idle, that lie altogether within one of `ranges`,
/// are dropped; the ends belong to the ranges if `include_end`. Tables that have versions of the
/// same key go together or stay: were only the first dropped, the older versions in the next would
/// count again.
pub fn files_within(
    version: &Version,
    ranges: &[KeyRange<'_>],
    include_end: bool,
) -> Option<CompactionPlan> {
    let user = version.comparator.keys();
    let is_within = |file: &TableFile| {
        ranges.iter().any(|(begin, end)| {
            begin.is_none_or(|begin| user.compare(begin, file.meta.smallest.user_key()).is_le())
                && end.is_none_or(|end| match user.compare(file.meta.largest.user_key(), end) {
                    Ordering::Less => true,
                    // A tombstone's end is no key of the table.
                    Ordering::Equal => {
                        include_end || file.meta.largest.as_key().sequence() == MAX_SEQUENCE_NUMBER
                    }
                    Ordering::Greater => false,
                })
        })
    };
    let may_go = |file: &Arc<TableFile>| !file.is_being_compacted() && is_within(file);
    let chosen = |level: usize| -> Vec<_> {
        let files = &version.levels[level];
        let (mut chosen, mut at) = (Vec::new(), 0);
        while at < files.len() {
            let together = clean_cut(version, level, at..at + 1);
            at = together.end;
            if files[together.clone()].iter().all(may_go) {
                chosen.extend_from_slice(&files[together]);
            }
        }
        chosen
    };
    let levels = (1..version.levels.len()).map(|level| (level, chosen(level)));
    let levels = levels.filter(|(_, files)| !files.is_empty()).collect();
    CompactionPlan::dropping(version, CompactionReason::Manual, levels)
}

impl Picker<'_> {
    fn range_of_level0(&self, request: &RangeRequest<'_>) -> RangeDraft {
        let user = self.user();
        let files = &self.version.levels[0];
        let within = |at: &usize| {
            let meta = &files[*at].meta;
            request.begin.is_none_or(|begin| user.compare(meta.largest.user_key(), begin).is_ge())
                && request.end.is_none_or(|end| user.compare(meta.smallest.user_key(), end).is_le())
        };
        let mut seeds: Vec<_> = (0..files.len()).filter(within).collect();
        let Some((&newest, &oldest)) = seeds.first().zip(seeds.last()) else {
            return RangeDraft::Nothing;
        };
        if request.output_level == 0 {
            // What is merged into one place of level 0 must have nothing in between.
            seeds = (newest..=oldest).collect();
        } else {
            seeds = level0_closure(self.version, &seeds);
        }
        let start = seeds.into_iter().map(|at| files[at].clone()).collect();
        self.draft_from_level0(start, request.output_level).into()
    }

    fn range_of_level(&self, request: &RangeRequest<'_>) -> Option<(RangeDraft, Option<Vec<u8>>)> {
        let (level, output_level) = (request.level, request.output_level);
        let files = &self.version.levels[level];
        let mut touched = self.version.overlapping_range(level, request.begin, request.end);
        // A table that a range tombstone ends where the request begins holds nothing of it. It was
        // the last of the piece before; taken again it might be all that fits into this piece, and
        // so on for ever.
        if let (Some(begin), Some(first)) = (request.begin, files.get(touched.start))
            && !touched.is_empty()
            && first.meta.largest.as_key().sequence() == MAX_SEQUENCE_NUMBER
            && self.user().compare(first.meta.largest.user_key(), begin).is_eq()
        {
            touched.start += 1;
        }
        let mut all = clean_cut(self.version, level, touched);
        let is_spared = |file: &TableFile| {
            level == output_level && request.spared_from.is_some_and(|first| file.number() >= first)
        };
        all.start += files[all.clone()].iter().take_while(|file| is_spared(file)).count();
        if all.is_empty() {
            return None;
        }
        let max_bytes = self.settings.effective_max_compaction_bytes();
        let mut bytes = 0u64;
        let mut count = 0;
        for file in files[all.clone()].iter().take_while(|file| !is_spared(file)) {
            bytes = bytes.saturating_add(file.meta.size);
            count += 1;
            let range = (file.meta.smallest.user_key(), file.meta.largest.user_key());
            let overlapped = if output_level == level {
                0
            } else {
                total_bytes(
                    &self.version.levels[output_level]
                        [overlapping(self.version, output_level, range)],
                )
            };
            if bytes.saturating_add(overlapped) >= max_bytes {
                break;
            }
        }
        let piece = clean_cut(self.version, level, all.start..all.start + count);
        let rest =
            (piece.end < all.end).then(|| files[piece.end].meta.smallest.user_key().to_vec());
        Some((self.draft_range(level, piece, output_level).into(), rest))
    }
}
