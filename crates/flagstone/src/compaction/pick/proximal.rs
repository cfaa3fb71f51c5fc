//! Per-key placement: the last level holds no young entries (`preclude_last_level_data_seconds`).
//!
//! A compaction into the last level writes old entries there, and young ones to the level above,
//! which is called the proximal level. Entries are divided by sequence number, so that of each key
//! the newer versions lie above the older ones. What lies in the last level stays there.
//!
//! In the proximal level a table of young entries is left alone: a compaction would write all of
//! them there again. A table is young as long as about half of its entries are. So each entry is
//! rewritten there about once while it ages. What is known of a table's entries is that they were
//! written between its `oldest_ancestor_time` and its `file_creation_time`.

use std::sync::Arc;

use super::expand::{Bounds, is_being_written};
use super::plan::{CompactionPlan, LevelInput, OutputCompression, OutputForm, RunningCompaction};
use super::settings::{LeveledSettings, PickContext};
use crate::base::compression::CompressionType;
use crate::base::{Comparator, SequenceNumber};
use crate::manifest::{TableFile, Version};
use crate::options::CompactionReason;

/// Where the young entries of a compaction into the last level go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProximalOutput {
    /// The level above the last.
    pub level: usize,
    /// What has this or a smaller sequence number stays in the last level.
    pub kept_until: SequenceNumber,
    /// Bytes that a table should have.
    pub table_bytes: u64,
    /// What the tables are like.
    pub form: OutputForm,
}

impl ProximalOutput {
    /// What a compaction of these inputs writes above the last level; `None` if all of its outputs
    /// have one level. Level 0 goes to `base_level`. `compression` is that of a level.
    pub(super) fn of(
        version: &Version,
        settings: &LeveledSettings,
        inputs: &[LevelInput],
        output_level: usize,
        base_level: usize,
        compression: impl Fn(usize) -> CompressionType,
    ) -> Option<Self> {
        let start_level = inputs.first()?.level;
        let level = proximal_level(version, settings, start_level, output_level)?;
        let in_last = inputs.iter().filter(|input| input.level == output_level);
        let sequences = in_last.flat_map(|input| &input.files).map(|file| file.meta.largest_seqno);
        Some(Self {
            level,
            kept_until: sequences.max().unwrap_or(0),
            table_bytes: settings.target_file_size(level, base_level),
            form: OutputForm {
                compression: OutputCompression { codec: compression(level), is_bottommost: false },
                temperature: settings.temperatures.of(level, version.levels.len()),
            },
        })
    }
}

/// The level to which a compaction writes young entries; `None` if it writes them to
/// `output_level`, too.
pub(super) fn proximal_level(
    version: &Version,
    settings: &LeveledSettings,
    start_level: usize,
    output_level: usize,
) -> Option<usize> {
    let last = version.levels.len() - 1;
    let divides = settings.holds_young() && output_level == last && start_level < last;
    (divides && last > 1).then(|| last - 1)
}

/// Whether a running compaction may write to a level to which one of a plan would, too.
pub(super) fn is_in_the_way(
    user: &Comparator,
    running: &[RunningCompaction],
    plan: &CompactionPlan,
) -> bool {
    let bounds = (&plan.range.smallest[..], &plan.range.largest[..]);
    let levels = [Some(plan.output_level), plan.proximal.map(|proximal| proximal.level)];
    let levels = levels.into_iter().flatten().filter(|level| *level > 0);
    levels.into_iter().any(|level| is_being_written(user, running, level, bounds))
}

/// Whether the proximal level of a compaction is free to be written to.
pub(super) fn is_free(
    version: &Version,
    settings: &LeveledSettings,
    running: &[RunningCompaction],
    (start_level, output_level): (usize, usize),
    bounds: Bounds<'_>,
) -> bool {
    let level = proximal_level(version, settings, start_level, output_level);
    level.is_none_or(|level| !is_being_written(version.comparator.keys(), running, level, bounds))
}

/// Whether a compaction of the table, which lies in `level`, would leave most of it there.
pub(super) fn is_young(
    version: &Version,
    settings: &LeveledSettings,
    now: u64,
    level: usize,
    file: &TableFile,
) -> bool {
    if proximal_level(version, settings, level, level + 1) != Some(level) {
        return false;
    }
    let (oldest, newest) = (file.meta.oldest_ancestor_time, file.meta.file_creation_time);
    let oldest = if oldest == 0 { newest } else { oldest.min(newest) };
    let typical = oldest + (newest - oldest) / 2;
    typical.saturating_add(settings.precluded_seconds) > now
}

/// What tables count for, by level and position, becomes 0 for those that are left alone.
pub(super) fn leave_out_young(
    version: &Version,
    settings: &LeveledSettings,
    now: u64,
    sizes: &mut [Vec<u64>],
) {
    if !settings.holds_young() {
        return;
    }
    for (level, (files, sizes)) in version.levels.iter().zip(sizes).enumerate() {
        for (file, size) in files.iter().zip(sizes) {
            if is_young(version, settings, now, level, file) {
                *size = 0;
            }
        }
    }
}

/// Whether a compaction that is to make sorted runs fewer leaves as many: those of the last level
/// and of young entries above it (universal). A piece of a larger merging counts as that does.
pub(super) fn leaves_both_runs(
    version: &Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
    plan: &CompactionPlan,
) -> bool {
    use CompactionReason::{SizeAmplification, SizeRatio, SortedRuns};
    let Some(proximal) = plan.proximal else { return false };
    let is_settled = |(level, file): (usize, &Arc<TableFile>)| {
        let now = context.now_unix_seconds;
        level == plan.output_level
            || level == proximal.level && is_young(version, settings, now, level, file)
    };
    let is_whole = plan.rest.is_none() && context.merging.is_none();
    matches!(plan.reason, SizeAmplification | SizeRatio | SortedRuns)
        && (is_whole && plan.files().all(is_settled) || version.files().all(is_settled))
}
