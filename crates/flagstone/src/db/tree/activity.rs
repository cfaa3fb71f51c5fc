//! What flushes and compactions did to a family, level by level, and how often it held writers up,
//! since the database was opened: the figures of `rocksdb.cfstats`.

use crate::compaction::pick::{CompactionPlan, StallCause, WriteStall};
use crate::db::tree::output::JobOutput;
use crate::manifest::FileMetadata;

/// What flushes and compactions did that wrote to one level. Bytes, where nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::db) struct LevelActivity {
    /// Flushes and compactions.
    pub(in crate::db) count: u64,
    /// Microseconds that they took.
    pub(in crate::db) micros: u64,
    /// Tables of other levels that they read.
    pub(in crate::db) read_above: u64,
    /// Tables of this level that they read.
    pub(in crate::db) read_here: u64,
    /// Values in blob files that they read to move them.
    pub(in crate::db) read_blob: u64,
    /// Tables that they wrote.
    pub(in crate::db) written: u64,
    /// The keys and values in these, uncompressed.
    pub(in crate::db) written_raw: u64,
    /// Blob files that they wrote, or that writers had filled for them.
    pub(in crate::db) written_blob: u64,
    /// Tables that came from other levels as they were.
    pub(in crate::db) moved: u64,
    /// Entries that they read, and those among them that they did not write.
    pub(in crate::db) entries_read: u64,
    pub(in crate::db) entries_dropped: u64,
}

impl LevelActivity {
    pub(in crate::db) fn add(&mut self, other: &Self) {
        let figures = [
            (&mut self.count, other.count),
            (&mut self.micros, other.micros),
            (&mut self.read_above, other.read_above),
            (&mut self.read_here, other.read_here),
            (&mut self.read_blob, other.read_blob),
            (&mut self.written, other.written),
            (&mut self.written_raw, other.written_raw),
            (&mut self.written_blob, other.written_blob),
            (&mut self.moved, other.moved),
            (&mut self.entries_read, other.entries_read),
            (&mut self.entries_dropped, other.entries_dropped),
        ];
        // What a MANIFEST says of sizes may be nonsense.
        figures.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    /// Bytes of all tables and values that they read.
    pub(in crate::db) fn read(&self) -> u64 {
        self.read_above.saturating_add(self.read_here).saturating_add(self.read_blob)
    }

    /// Bytes of all tables and values that they wrote.
    pub(in crate::db) fn all_written(&self) -> u64 {
        self.written.saturating_add(self.written_blob)
    }

    fn of_output(output: &JobOutput) -> Self {
        let at_commit =
            output.direct_files.iter().map(|file| file.total_bytes).fold(0, u64::saturating_add);
        Self {
            count: 1,
            micros: output.counts.micros,
            read_blob: output.counts.relocated_bytes,
            written: output.tables.iter().map(|table| table.size).sum(),
            written_raw: output.counts.raw_bytes,
            written_blob: output.counts.blob_bytes.saturating_add(at_commit),
            entries_read: output.counts.entries_read,
            ..Self::default()
        }
    }
}

/// How often something delayed writers, and stopped them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::db) struct Stalls {
    pub(in crate::db) delays: u64,
    pub(in crate::db) stops: u64,
}

impl Stalls {
    fn count(&mut self, stall: WriteStall) {
        match stall {
            WriteStall::Normal => {}
            WriteStall::Delay { .. } => self.delays += 1,
            WriteStall::Stop { .. } => self.stops += 1,
        }
    }
}

/// The figures of one family.
#[derive(Debug, Clone, Default)]
pub(in crate::db) struct Activity {
    /// By level, as far as anything was written there.
    levels: Vec<LevelActivity>,
    pub(in crate::db) flushes: LevelActivity,
    pub(in crate::db) compactions: LevelActivity,
    pub(in crate::db) by_memtables: Stalls,
    pub(in crate::db) by_level0: Stalls,
    /// Those of them while level 0 was being compacted.
    pub(in crate::db) by_busy_level0: Stalls,
    pub(in crate::db) by_pending_bytes: Stalls,
    pub(in crate::db) by_blob_space: Stalls,
    /// What held writers up when the family was looked at last, and whether that stopped them.
    last_stall: Option<(StallCause, bool)>,
}

impl Activity {
    pub(in crate::db) fn level(&self, level: usize) -> LevelActivity {
        self.levels.get(level).copied().unwrap_or_default()
    }

    /// How often this began to delay or stop writers.
    pub(in crate::db) fn times_held_up_by(&self, cause: StallCause) -> u64 {
        let Stalls { delays, stops } = match cause {
            StallCause::Memtables => self.by_memtables,
            StallCause::Level0Files => self.by_level0,
            StallCause::PendingCompactionBytes => self.by_pending_bytes,
            StallCause::BlobSpace => self.by_blob_space,
        };
        delays.saturating_add(stops)
    }

    /// Counts anew. What holds writers up now was counted when it began.
    pub(in crate::db) fn reset(&mut self) {
        *self = Self { last_stall: self.last_stall, ..Self::default() };
    }

    fn level_mut(&mut self, level: usize) -> &mut LevelActivity {
        if self.levels.len() <= level {
            self.levels.resize(level + 1, LevelActivity::default());
        }
        &mut self.levels[level]
    }

    pub(in crate::db) fn note_flush(&mut self, output: &JobOutput) {
        // A flush has no input in the sense of the report: that is tables.
        let flush = LevelActivity { entries_read: 0, ..LevelActivity::of_output(output) };
        self.level_mut(0).add(&flush);
        self.flushes.add(&flush);
    }

    pub(in crate::db) fn note_compaction(&mut self, plan: &CompactionPlan, output: &JobOutput) {
        let level = plan.output_level;
        let bytes = |here: bool| {
            let inputs = plan.inputs.iter().filter(move |input| (input.level == level) == here);
            let files = inputs.flat_map(|input| &input.files);
            files.map(|file| file.meta.size).fold(0, u64::saturating_add)
        };
        if plan.trivial_move {
            self.level_mut(level)
                .add(&LevelActivity { moved: bytes(false), ..LevelActivity::default() });
        } else if !plan.drops_inputs {
            let written = output.tables.iter().map(point_entries).fold(0, u64::saturating_add);
            let compaction = LevelActivity {
                read_above: bytes(false),
                read_here: bytes(true),
                entries_dropped: output.counts.entries_read.saturating_sub(written),
                ..LevelActivity::of_output(output)
            };
            self.level_mut(level).add(&compaction);
            self.compactions.add(&compaction);
        }
    }

    /// Counts what holds writers up, if it did not when the family was looked at last.
    pub(in crate::db) fn note_stall(
        &mut self,
        stall: WriteStall,
        level0_is_busy: impl FnOnce() -> bool,
    ) {
        let now = match stall {
            WriteStall::Normal => None,
            WriteStall::Delay { cause, .. } => Some((cause, false)),
            WriteStall::Stop { cause } => Some((cause, true)),
        };
        let before = std::mem::replace(&mut self.last_stall, now);
        let Some((cause, _)) = now.filter(|_| now != before) else { return };
        match cause {
            StallCause::Memtables => self.by_memtables.count(stall),
            StallCause::PendingCompactionBytes => self.by_pending_bytes.count(stall),
            StallCause::BlobSpace => self.by_blob_space.count(stall),
            StallCause::Level0Files => {
                self.by_level0.count(stall);
                if level0_is_busy() {
                    self.by_busy_level0.count(stall);
                }
            }
        }
    }
}

fn point_entries(table: &FileMetadata) -> u64 {
    table.entry_stats.map_or(0, |stats| stats.entries.saturating_sub(stats.range_deletions))
}

#[cfg(test)]
mod tests;
