//! What is done to keep a family's blob files within their room (see `blob_space`), once something
//! is due.
//!
//! 1. **Uncover** first, if a step may be hidden: tables above the bottom are merged into what lies
//!    below. That writes keys and addresses only, and what turns out to be garbage need not be
//!    moved. Where little is hidden against what is known, tables that go into the bottom empty
//!    files on the way.
//! 2. **Punch** holes where that is worth the effort (see `punch`): dead values leave the disk, and
//!    live ones stay where they are. What has left the disk does not count. What holes will give
//!    back is left to them, and writers are held up meanwhile, unless the file system is so slow
//!    with holes that to move what lives beside them is faster.
//! 3. **Empty** files for the rest: those with the largest part of garbage, of any age, until a
//!    step is gained, or as many as hold a step of live values. They are chosen once and emptied
//!    together, since mostly every table refers to every file, so that all tables are written again
//!    for one file as for ten. Each table (with neighbours, while there is little to move) is
//!    rewritten where it is. The MANIFEST says which tables refer to which files; of those that
//!    RocksDB wrote only the oldest file is known, and they may refer to any later one. When none
//!    refers to the chosen files any longer these are all garbage and go, and others may be chosen.
//!
//! Where nothing was overwritten or deleted there is no garbage, and nothing is moved. Files
//! younger than [`PickContext::forced_gc_below`] are not chosen: a filter that makes garbage of
//! what it rewrites would have no end. Nor are those to which a table refers that was set aside;
//! what they have of garbage, others need not make up for.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::blob_space::{BlobSpace, Room, above_bottom, taken};
use super::expand::{any_busy, clean_cut};
use super::leveled::{Draft, Picker};
use super::plan::{CompactionPlan, CompactionReason};
use super::punch::{left_to_holes, uncovers_for_holes};
use super::settings::{LeveledSettings, PickContext};
use crate::base::FileNumber;
use crate::blob::{BlobFileUsage, WORTHWHILE_GARBAGE};
use crate::manifest::{TableFile, Version};

/// Bytes that a compaction should move to be worth its while: tables with less take neighbours
/// along.
const MOVED_TOGETHER: u64 = 32 << 20;

/// Bytes that a compaction moves at most where it also merges tables of level 0, which wait for it
/// meanwhile.
const MOVED_WHILE_MERGING: u64 = 256 << 20;

/// With more hidden than this part of what is known to be garbage it is not known which files have
/// most of it.
const HIDDEN_MAX: f64 = 0.5;

/// What is to be done about the space of blob files.
#[derive(Debug)]
pub(super) struct BlobWork {
    /// More is taken than may be in a burst: nothing else is as urgent.
    pub(super) is_urgent: bool,
    /// Tables above the bottom are to be merged into what lies below.
    pub(super) uncovers: bool,
    /// The files to be emptied, if that is not possible.
    pub(super) emptied: BTreeSet<FileNumber>,
    /// Both may be done at once: what is hidden would hardly have other files chosen.
    pub(super) at_once: bool,
}

impl BlobWork {
    /// What there is to do, if anything.
    pub(super) fn of(
        version: &Version,
        settings: &LeveledSettings,
        context: &PickContext<'_>,
    ) -> Option<Self> {
        if version.blob_files.is_empty() {
            return None;
        }
        let kept = kept_by_damage(version);
        let space =
            BlobSpace::of(version, settings.holds_young()).without_garbage_of(version, &kept);
        let live = space.live() as f64;
        let room = Room::of(version, &space, settings.max_space_amplification)?;
        let taken = taken(version, (&space, &room), settings, context);
        let in_bursts = Room::of(version, &space, settings.burst_space_amplification)?;
        let is_urgent =
            space.total.saturating_add(context.unflushed_blob_bytes) as f64 - live > in_bursts.all;
        let at_once = space.hidden as f64 <= space.garbage as f64 * HIDDEN_MAX;
        let begun: BTreeSet<_> = context
            .collecting
            .iter()
            .copied()
            .filter(|file| is_referenced(version, *file))
            .collect();
        if !begun.is_empty() {
            return Some(Self { is_urgent, uncovers: false, emptied: begun, at_once });
        }
        let others = version.blob_files.values().filter(|blob| !kept.contains(&blob.file.number()));
        let to_holes =
            others.map(|blob| left_to_holes(blob, settings, context)).fold(0, u64::saturating_add);
        if taken - to_holes as f64 <= room.due() {
            let uncovers = uncovers_for_holes(version, &space, &room, context);
            let emptied = BTreeSet::new();
            return uncovers.then_some(Self { is_urgent, uncovers, emptied, at_once: false });
        }
        let wanted = taken - to_holes as f64 - room.due() + room.step;
        let may_empty = space.garbage.saturating_sub(to_holes) as f64 > room.largest_step();
        let emptied = if may_empty {
            files_to_empty(version, settings, context, &kept, (wanted, room.step))
        } else {
            BTreeSet::new()
        };
        let uncovers = space.hidden > 0 && (emptied.is_empty() || space.hidden as f64 > room.step);
        (uncovers || !emptied.is_empty()).then_some(Self { is_urgent, uncovers, emptied, at_once })
    }
}

/// The files with the largest part of garbage, but for those `kept`: until they hold as much as is
/// wanted, while no more than `movable` of them is live; one in any case.
fn files_to_empty(
    version: &Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
    kept: &BTreeSet<FileNumber>,
    (wanted, movable): (f64, f64),
) -> BTreeSet<FileNumber> {
    let part = |file: &BlobFileUsage| file.garbage_bytes as f64 / file.total_bytes.max(1) as f64;
    let others = version.blob_files.values().filter(|blob| !kept.contains(&blob.file.number()));
    let without_holes = others.map(|blob| {
        let to_holes = left_to_holes(blob, settings, context);
        BlobFileUsage {
            number: blob.file.number(),
            total_bytes: blob.bytes_on_disk().saturating_sub(to_holes),
            garbage_bytes: blob.garbage_on_disk().saturating_sub(to_holes),
        }
    });
    let below = context.forced_gc_below;
    let mut files: Vec<_> = without_holes.collect();
    files.retain(|file| {
        file.number < below && file.garbage_bytes > 0 && part(file) >= WORTHWHILE_GARBAGE
    });
    files.sort_by(|a, b| part(b).total_cmp(&part(a)));
    let mut chosen = BTreeSet::new();
    let (mut gained, mut moved) = (0.0, 0.0);
    for file in files {
        let live = file.total_bytes.saturating_sub(file.garbage_bytes) as f64;
        if !chosen.is_empty() && (gained >= wanted || moved + live > movable) {
            break;
        }
        if !is_referenced(version, file.number) {
            continue;
        }
        gained += file.garbage_bytes as f64;
        moved += live;
        chosen.insert(file.number);
    }
    chosen
}

/// The blob files that cannot be emptied for now: tables that were set aside refer to them, as far
/// as is known.
pub fn kept_by_damage(version: &Version) -> BTreeSet<FileNumber> {
    let aside: Vec<_> =
        version.files().map(|(_, table)| table).filter(|table| table.is_set_aside()).collect();
    let mut kept = BTreeSet::new();
    if !aside.is_empty() {
        kept.extend(version.blob_files.keys());
        kept.retain(|file| aside.iter().any(|table| refers_to(table, &BTreeSet::from([*file]))));
    }
    kept
}

fn is_referenced(version: &Version, file: FileNumber) -> bool {
    let chosen = BTreeSet::from([file]);
    version.blob_files.contains_key(&file)
        && version.files().any(|(_, table)| refers_to(table, &chosen))
}

/// Whether a table refers to one of these files, as far as is known.
pub fn refers_to(table: &TableFile, files: &BTreeSet<FileNumber>) -> bool {
    match (&table.meta.blob_references, table.meta.oldest_blob_file) {
        (Some(references), _) => files.iter().any(|file| references.bytes_in(*file) > 0),
        (None, Some(oldest)) => files.last().is_some_and(|last| *last >= oldest),
        (None, None) => false,
    }
}

/// The bytes that it refers to in these files; of a table of which that is not known, as much as
/// can be.
fn bytes_in(table: &TableFile, files: &BTreeSet<FileNumber>) -> u64 {
    match &table.meta.blob_references {
        Some(references) => {
            files.iter().map(|file| references.bytes_in(*file)).fold(0, u64::saturating_add)
        }
        None if refers_to(table, files) => u64::MAX,
        None => 0,
    }
}

impl Picker<'_> {
    /// The next compaction for the sake of blob space.
    pub(super) fn by_blob_space(&self, work: &BlobWork) -> Option<CompactionPlan> {
        let both = work.at_once.then(|| self.uncover_and_empty(&work.emptied)).flatten();
        let uncovering = || work.uncovers.then(|| self.uncover()).flatten();
        both.or_else(uncovering).or_else(|| self.empty(0, &work.emptied))
    }

    /// A table above the bottom goes down: one of level 0 if there is any, else the one with the
    /// most to hide.
    fn uncover(&self) -> Option<CompactionPlan> {
        let mut above = self.hiding();
        let draft = above.find_map(|(level, position)| self.draft_down(level, position));
        draft
            .or_else(|| self.draft_all())
            .map(|draft| self.complete(CompactionReason::BlobGarbage, draft))
    }

    /// The same, into tables at the bottom that are to be rewritten anyway to empty files: they are
    /// written once for both, and what turns out to be garbage is not moved.
    fn uncover_and_empty(&self, emptied: &BTreeSet<FileNumber>) -> Option<CompactionPlan> {
        let bottom = self.version.last_level_with_files()?;
        let of = |files: &[Arc<TableFile>], bytes: &dyn Fn(&TableFile) -> u64| {
            files.iter().map(|file| bytes(file)).fold(0, u64::saturating_add)
        };
        let is_worthwhile = |draft: &Draft| {
            let moved = of(&draft.output, &|file| bytes_in(file, emptied));
            let rewritten = of(&draft.output, &|file| {
                if refers_to(file, emptied) { file.meta.size } else { 0 }
            });
            draft.output_level == bottom
                && moved > 0
                && moved <= MOVED_WHILE_MERGING
                && 2 * rewritten >= of(&draft.output, &|file| file.meta.size)
        };
        let mut above = self.hiding().filter(|_| !emptied.is_empty());
        let draft =
            above.find_map(|(level, at)| self.draft_down(level, at).filter(is_worthwhile))?;
        let plan = self.complete(CompactionReason::BlobGarbage, draft);
        Some(CompactionPlan { emptied: emptied.clone(), trivial_move: false, ..plan })
    }

    /// The tables above the bottom that may hide something, by level and position: of level 0
    /// first, then by how much.
    fn hiding(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut above: Vec<_> = above_bottom(self.version, self.settings.holds_young())
            .filter(|(_, _, file)| hides(file) > 0)
            .collect();
        above.sort_by_key(|(level, _, file)| (*level > 0, Reverse(hides(file))));
        above.into_iter().map(|(level, position, _)| (level, position))
    }

    /// Rewrites tables of `first_level` or deeper that refer to `emptied`, those with the most to
    /// move first.
    pub(super) fn empty(
        &self,
        first_level: usize,
        emptied: &BTreeSet<FileNumber>,
    ) -> Option<CompactionPlan> {
        let levels = self.version.levels.iter().enumerate().skip(first_level);
        let tables =
            levels.flat_map(|(level, files)| files.iter().enumerate().map(move |at| (level, at)));
        let mut tables: Vec<_> = tables
            .filter(|(_, (_, file))| !file.is_being_compacted() && refers_to(file, emptied))
            .map(|(level, (position, file))| (level, position, bytes_in(file, emptied)))
            .collect();
        tables.sort_by_key(|(_, _, bytes)| Reverse(*bytes));
        let mut drafts = tables.into_iter().filter_map(|(level, position, _)| match level {
            0 => self.draft_down(0, position).or_else(|| self.draft_all()),
            _ => self.draft_range(level, self.with_neighbours(level, position, emptied), level),
        });
        let plan = self.complete(CompactionReason::BlobGarbage, drafts.next()?);
        Some(CompactionPlan { emptied: emptied.clone(), ..plan })
    }

    /// Whether a table of `level` refers to `emptied`.
    pub(super) fn empties(&self, level: usize, emptied: &BTreeSet<FileNumber>) -> bool {
        self.version.levels[level].iter().any(|file| refers_to(file, emptied))
    }

    /// A table and those beside it that refer to `emptied`, too, while there is little to move and
    /// to rewrite.
    fn with_neighbours(
        &self,
        level: usize,
        position: usize,
        emptied: &BTreeSet<FileNumber>,
    ) -> Range<usize> {
        let files = &self.version.levels[level];
        let mut range = clean_cut(self.version, level, position..position + 1);
        let sum = |of: &dyn Fn(&TableFile) -> u64, range: &Range<usize>| {
            files[range.clone()].iter().map(|file| of(file)).fold(0, u64::saturating_add)
        };
        while range.end < files.len() && refers_to(&files[range.end], emptied) {
            let wider = clean_cut(self.version, level, range.start..range.end + 1);
            if any_busy(&files[wider.clone()])
                || sum(&|file| bytes_in(file, emptied), &wider) > MOVED_TOGETHER
                || sum(&|file| file.meta.size, &wider)
                    > self.settings.effective_max_compaction_bytes()
            {
                break;
            }
            range = wider;
        }
        range
    }

    /// All tables of the only level into one.
    fn draft_all(&self) -> Option<Draft> {
        let only = self.version.levels.len() == 1 && !self.version.levels[0].is_empty();
        only.then(|| self.draft_from_level0(self.version.levels[0].clone(), 0)).flatten()
    }
}

/// How much of a reason there is to merge a table into what lies below.
fn hides(file: &TableFile) -> u64 {
    match &file.meta.blob_references {
        Some(references) => references.bytes().saturating_add(references.others),
        None if file.meta.oldest_blob_file.is_some() => file.meta.size,
        None => 0,
    }
}
