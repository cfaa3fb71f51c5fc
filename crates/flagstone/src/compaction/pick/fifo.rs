//! FIFO compaction: the oldest tables are dropped, with what is in them.
//!
//! One at a time, for the first of these reasons that holds:
//!
//! 1. Tables are older than the time to live, counted from when their newest key was written, as
//!    far as that is known.
//! 2. All tables together are larger than `max_table_files_size`; or, where that is set, they and
//!    the values that they keep in blob files are larger than `max_data_files_size`. A blob file
//!    goes with the last table that refers to it, so a table that shares its blob files with newer
//!    ones frees little, and one after which no reference is left frees them whole. Deeper levels,
//!    which another style has left behind, are older than level 0 and go first, the deepest before
//!    the others.
//! 3. With `allow_compaction`, so that files do not become too many: small new tables are merged
//!    among themselves, or those that are small beside their values (`fifo_ratio`).
//! 4. A table has come to an age at which another temperature is asked for: it is rewritten alone,
//!    the oldest first. Only where all tables are in level 0, whose order tells their age.
//!
//! A table that is marked as being compacted while no compaction runs could not be read
//! (`db/maintenance/damaged_files.rs`). It is dropped as any other, but neither merged nor
//! rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::expand::bounds;
use super::fifo_ratio::{merge_target, tables_to_merge};
use super::plan::{
    CompactionPlan, CompactionReason, InputRange, LevelInput, OutputCompression, OutputForm,
    OutputSizes,
};
use super::settings::{LeveledSettings, PickContext};
use crate::base::{FileNumber, SequenceNumber};
use crate::manifest::{TableFile, Version};
use crate::options::{FifoCompactionOptions, FileTemperatureAges};

/// What is dropped or merged next, if anything. `write_buffer_size` tells what a small table is, in
/// bytes.
pub fn pick_fifo(
    version: &Version,
    settings: &LeveledSettings,
    fifo: &FifoCompactionOptions,
    write_buffer_size: u64,
    context: &PickContext<'_>,
) -> Option<CompactionPlan> {
    if !context.running.is_empty() {
        return None;
    }
    let picker = FifoPicker { version, settings, oldest_snapshot: context.oldest_snapshot };
    picker
        .expired(context.now_unix_seconds)
        .or_else(|| match fifo.max_data_files_size {
            0 => picker.too_large(fifo.max_table_files_size, &[], 0),
            limit => {
                picker.too_large(limit, &blob_bytes_freed(version), context.unflushed_blob_bytes)
            }
        })
        .or_else(|| match merge_target(version, settings, fifo) {
            _ if !fifo.allow_compaction => None,
            None => picker.small(write_buffer_size),
            Some(target) => picker.below(target),
        })
        .or_else(|| picker.cooled(&fifo.temperature_ages(), context.now_unix_seconds))
}

/// The most bytes that go with any one table; with `counts_blobs` those of blob files are among
/// them.
pub fn largest_dropped(version: &Version, counts_blobs: bool) -> u64 {
    let freed = if counts_blobs { blob_bytes_freed(version) } else { Vec::new() };
    let tables = oldest_first(version).enumerate();
    let sizes = tables
        .map(|(at, (_, file))| file.meta.size.saturating_add(freed.get(at).copied().unwrap_or(0)));
    sizes.max().unwrap_or(0)
}

/// All tables with their levels, the oldest first.
fn oldest_first(version: &Version) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
    let levels = version.levels.iter().enumerate().rev();
    levels.flat_map(|(level, files)| files.iter().rev().map(move |file| (level, file)))
}

/// For each table, the oldest first, the bytes of the blob files of which it is the newest table
/// that refers to them. One of which only the oldest blob file is known may refer to any later one.
/// What no table refers to goes whatever is dropped, as soon as that is known.
fn blob_bytes_freed(version: &Version) -> Vec<u64> {
    let mut newest_user: BTreeMap<FileNumber, usize> = BTreeMap::new();
    let mut users_from: BTreeMap<FileNumber, usize> = BTreeMap::new();
    for (at, (_, file)) in oldest_first(version).enumerate() {
        let files = file.meta.blob_references.as_ref().map(|known| known.files());
        newest_user.extend(files.unwrap_or_default().iter().map(|(number, _)| (*number, at)));
        if let (None, Some(oldest)) = (files, file.meta.oldest_blob_file) {
            users_from.insert(oldest, at);
        }
    }
    let mut freed = vec![0u64; version.num_files()];
    for (number, blob) in &version.blob_files {
        let may_refer = users_from.range(..=*number).map(|(_, at)| at);
        let Some(at) = newest_user.get(number).into_iter().chain(may_refer).max() else { continue };
        freed[*at] = freed[*at].saturating_add(blob.bytes_on_disk());
    }
    freed
}

struct FifoPicker<'a> {
    version: &'a Version,
    settings: &'a LeveledSettings,
    oldest_snapshot: SequenceNumber,
}

impl FifoPicker<'_> {
    /// Whether the table is not to be merged with others.
    fn stays(&self, file: &TableFile) -> bool {
        file.is_being_compacted() || file.is_kept_apart(self.oldest_snapshot)
    }

    fn expired(&self, now: u64) -> Option<CompactionPlan> {
        let limit = self.settings.ttl_seconds;
        let is_old = |level: usize, file: &TableFile| {
            limit > 0
                && self
                    .newest_key_time(level, file)
                    .is_some_and(|time| time.saturating_add(limit) < now)
        };
        let expired = oldest_first(self.version).take_while(|(level, file)| is_old(*level, file));
        self.dropped(CompactionReason::Ttl, expired)
    }

    /// When the newest key was written, at the latest: in level 0 before the next newer table's
    /// oldest.
    fn newest_key_time(&self, level: usize, file: &TableFile) -> Option<u64> {
        let newer = || {
            let files = &self.version.levels[0];
            let at = files.iter().position(|other| other.number() == file.number())?;
            Some(files[at.checked_sub(1)?].meta.oldest_ancestor_time)
        };
        let newer = if level == 0 { newer() } else { None };
        newer.into_iter().chain([file.meta.file_creation_time]).filter(|time| *time > 0).min()
    }

    /// The oldest tables, until the rest fits. `blobs_freed` says how many bytes of blob files go
    /// with each table, `unflushed` what stays whichever tables go.
    fn too_large(&self, limit: u64, blobs_freed: &[u64], unflushed: u64) -> Option<CompactionPlan> {
        let freed = |at: usize, file: &TableFile| {
            file.meta.size.saturating_add(blobs_freed.get(at).copied().unwrap_or(0))
        };
        let all = oldest_first(self.version).enumerate();
        let all = all.fold(unflushed, |sum, (at, (_, file))| sum.saturating_add(freed(at, file)));
        let mut surplus = all.saturating_sub(limit);
        let superfluous = oldest_first(self.version).enumerate().take_while(|(at, (_, file))| {
            let goes = surplus > 0;
            surplus = surplus.saturating_sub(freed(*at, file));
            goes
        });
        self.dropped(CompactionReason::FifoSize, superfluous.map(|(_, file)| file))
    }

    /// New tables, as long as each further one lowers the bytes written for each table that goes.
    fn small(&self, write_buffer_size: u64) -> Option<CompactionPlan> {
        let files = &self.version.levels[0];
        let most = self.settings.effective_max_compaction_bytes();
        let files = &files[..files.iter().position(|file| self.stays(file)).unwrap_or(files.len())];
        let (mut bytes, mut bytes_per_file_gone, mut count) =
            (files.first()?.meta.size, u64::MAX, 1);
        for file in &files[1..] {
            bytes = bytes.saturating_add(file.meta.size);
            let next = bytes / count as u64;
            if next > bytes_per_file_gone || bytes > most {
                break;
            }
            bytes_per_file_gone = next;
            count += 1;
        }
        let trigger = self.settings.level0_file_num_compaction_trigger.max(2);
        let worth = count >= trigger && bytes_per_file_gone < write_buffer_size / 10 * 11;
        worth.then(|| {
            self.plan(CompactionReason::IntraLevel0, vec![(0, files[..count].to_vec())], false)
        })
    }

    /// Tables that together come to the next tier below `target`.
    fn below(&self, target: u64) -> Option<CompactionPlan> {
        let files = tables_to_merge(self.version, self.settings, target, |file| self.stays(file));
        (!files.is_empty())
            .then(|| self.plan(CompactionReason::IntraLevel0, vec![(0, files)], false))
    }

    /// The oldest table that has not the temperature of its age.
    fn cooled(&self, ages: &FileTemperatureAges, now: u64) -> Option<CompactionPlan> {
        if ages.0.is_empty() || self.version.levels[1..].iter().any(|files| !files.is_empty()) {
            return None;
        }
        let age = |file| self.newest_key_time(0, file).map(|time| now.saturating_sub(time));
        let known = oldest_first(self.version).filter_map(|(_, file)| Some((file, age(file)?)));
        let mut wanted = known.map_while(|(file, age)| Some((file, ages.temperature_at(age)?)));
        let (file, temperature) = wanted.find(|(file, wanted)| {
            file.meta.temperature != *wanted && !file.is_being_compacted()
        })?;
        let inputs = vec![(0, vec![file.clone()])];
        let mut plan = self.plan(CompactionReason::Temperature, inputs, false);
        plan.form.temperature = temperature;
        Some(plan)
    }

    fn dropped<'f>(
        &self,
        reason: CompactionReason,
        files: impl Iterator<Item = (usize, &'f Arc<TableFile>)>,
    ) -> Option<CompactionPlan> {
        let mut levels: Vec<(usize, Vec<Arc<TableFile>>)> = Vec::new();
        for (level, file) in files {
            match levels.last_mut() {
                Some((known, files)) if *known == level => files.push(file.clone()),
                _ => levels.push((level, vec![file.clone()])),
            }
        }
        levels.iter_mut().for_each(|(_, files)| files.reverse());
        (!levels.is_empty()).then(|| self.plan(reason, levels, true))
    }

    fn plan(
        &self,
        reason: CompactionReason,
        levels: Vec<(usize, Vec<Arc<TableFile>>)>,
        drops_inputs: bool,
    ) -> CompactionPlan {
        let inputs: Vec<_> =
            levels.into_iter().map(|(level, files)| LevelInput { level, files }).collect();
        let files = inputs.iter().flat_map(|input| &input.files);
        let range = InputRange::of(bounds(self.version.comparator.keys(), files));
        CompactionPlan {
            reason,
            output_level: 0,
            path_id: 0,
            trivial_move: false,
            drops_inputs,
            // What is deleted must not come back from an older table.
            bottommost: false,
            emptied: BTreeSet::new(),
            grandparents: Vec::new(),
            sizes: OutputSizes::UNLIMITED,
            form: OutputForm {
                compression: OutputCompression {
                    codec: self.settings.compression_of(0, 1, false),
                    is_bottommost: false,
                },
                temperature: self.settings.temperatures.default,
            },
            range,
            rest: None,
            takes_turn: false,
            proximal: None,
            inputs,
        }
    }
}
