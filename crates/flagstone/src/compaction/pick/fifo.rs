//! FIFO compaction: the oldest tables are dropped, with what is in them.
//!
//! One at a time, for the first of these reasons that holds:
//!
//! 1. Tables are older than the time to live, counted from when they were written.
//! 2. All tables together are larger than `max_table_files_size`. Deeper levels, which another style has left behind, are
//!    older than level 0 and go first, the deepest before the others.
//! 3. With `allow_compaction`, so that files do not become too many: small new tables are merged among themselves.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expand::bounds;
use super::plan::{CompactionPlan, CompactionReason, LevelInput};
use super::settings::{LeveledSettings, PickContext};
use crate::manifest::{TableFile, Version};
use crate::options::FifoCompactionOptions;

/// What is dropped or merged next, if anything. `write_buffer_size` tells what a small table is, in bytes.
pub fn pick_fifo(
    version: &Version,
    settings: &LeveledSettings,
    fifo: &FifoCompactionOptions,
    write_buffer_size: u64,
    context: &PickContext<'_>,
) -> Option<CompactionPlan> {
    if version.files().any(|(_, file)| file.is_being_compacted()) {
        return None;
    }
    let picker = FifoPicker { version, settings };
    picker
        .expired(context.now_unix_seconds)
        .or_else(|| picker.too_large(fifo.max_table_files_size))
        .or_else(|| if fifo.allow_compaction { picker.small(write_buffer_size) } else { None })
}

struct FifoPicker<'a> {
    version: &'a Version,
    settings: &'a LeveledSettings,
}

impl FifoPicker<'_> {
    /// All tables with their levels, the oldest first.
    fn oldest_first(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        let levels = self.version.levels.iter().enumerate().rev();
        levels.flat_map(|(level, files)| files.iter().rev().map(move |file| (level, file)))
    }

    fn expired(&self, now: u64) -> Option<CompactionPlan> {
        let limit = self.settings.ttl_seconds;
        let is_old = |file: &TableFile| {
            let made = file.meta.file_creation_time;
            limit > 0 && made > 0 && made.saturating_add(limit) < now
        };
        self.dropped(CompactionReason::Ttl, self.oldest_first().take_while(|(_, file)| is_old(file)))
    }

    fn too_large(&self, limit: u64) -> Option<CompactionPlan> {
        let all = self.oldest_first().fold(0, |sum: u64, (_, file)| sum.saturating_add(file.meta.size));
        let mut surplus = all.saturating_sub(limit);
        let superfluous = self.oldest_first().take_while(|(_, file)| {
            let goes = surplus > 0;
            surplus = surplus.saturating_sub(file.meta.size);
            goes
        });
        self.dropped(CompactionReason::FifoSize, superfluous)
    }

    /// New tables, as long as each further one lowers the bytes written for each table that goes.
    fn small(&self, write_buffer_size: u64) -> Option<CompactionPlan> {
        let files = &self.version.levels[0];
        let most = self.settings.effective_max_compaction_bytes();
        let (mut bytes, mut bytes_per_file_gone, mut count) = (files.first()?.meta.size, u64::MAX, 1);
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
        worth.then(|| self.plan(CompactionReason::IntraLevel0, vec![(0, files[..count].to_vec())], false))
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
        let inputs: Vec<_> = levels.into_iter().map(|(level, files)| LevelInput { level, files }).collect();
        let files = inputs.iter().flat_map(|input| &input.files);
        let (smallest, largest) = bounds(&self.version.comparator.user, files);
        let (smallest, largest) = (smallest.to_vec(), largest.to_vec());
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
            target_file_size: u64::MAX,
            max_output_file_size: u64::MAX,
            max_compaction_bytes: u64::MAX,
            compression: self.settings.compression_of(0, 1, false),
            bottommost_compression: false,
            smallest,
            largest,
            inputs,
        }
    }
}
