//! What the leveled picker goes by; `db` fills these in from the options and its state.

use std::collections::BTreeSet;

use super::deletions::DeletedRanges;
use super::entry_stats::table_stats;
use super::pieces::Merging;
use super::plan::RunningCompaction;
use crate::base::compression::CompressionType;
use crate::base::{FileNumber, MAX_SEQUENCE_NUMBER, SequenceNumber, Temperature};
use crate::blob::BlobGcSettings;
use crate::manifest::{CompactCursor, EntryStats, TableFile};
use crate::options::CompactionPri;

/// The settings of leveled compaction; the defaults are those of the options.
#[derive(Debug, Clone)]
pub struct LeveledSettings {
    /// Files in level 0 at which they are compacted.
    pub level0_file_num_compaction_trigger: usize,
    /// How many sorted runs writers bear without being delayed (universal).
    pub runs_without_delay: usize,
    /// Bytes of a memtable: about the smallest sorted run (universal).
    pub write_buffer_size: u64,
    /// Bytes that the first level below level 0 should hold at most.
    pub max_bytes_for_level_base: u64,
    /// How many times more the next level may hold.
    pub max_bytes_for_level_multiplier: f64,
    /// Further factors by level, of static sizes only; 1 where there is none.
    pub max_bytes_for_level_multiplier_additional: Vec<i32>,
    /// Derives the sizes of the levels from that of the last one.
    pub dynamic_level_bytes: bool,
    /// Bytes of a table of the first level below level 0.
    pub target_file_size_base: u64,
    /// How many times larger the tables of the next level are.
    pub target_file_size_multiplier: u64,
    /// Bytes that one compaction may read and overlap; 0 for 25 tables.
    pub max_compaction_bytes: u64,
    /// Which file of a level goes first.
    pub priority: CompactionPri,
    /// Seconds after which a table is compacted downwards; 0 for never.
    pub ttl_seconds: u64,
    /// Seconds after which a table is rewritten; 0 for never.
    pub periodic_compaction_seconds: u64,
    /// Seconds for which entries keep their sequence numbers; 0 for none.
    pub preserved_seconds: u64,
    /// Seconds for which entries stay out of the last level; 0 for none.
    pub precluded_seconds: u64,
    /// Seconds after which a table that frees much by its deletions is compacted; 0 for never.
    pub deletion_compaction_delay: u64,
    /// How many times the live data blob files may take, for as long as they are emptied to that
    /// end; 0 for any.
    pub max_space_amplification: f64,
    /// The same for a while: what is beyond is urgent.
    pub burst_space_amplification: f64,
    /// When blob files are emptied for other reasons.
    pub blob_gc: BlobGcSettings,
    /// Whether older data may be put underneath later: nothing counts as bottommost then.
    pub ingest_behind: bool,
    /// Bytes that each of the directories should hold, by path id; the last takes the rest.
    pub path_sizes: Vec<u64>,
    /// How tables are compressed.
    pub compression: CompressionType,
    /// The same by level, counted from level 0 and then from the base level; empty for
    /// `compression` everywhere.
    pub compression_per_level: Vec<CompressionType>,
    /// How tables of the deepest level with files are compressed, if otherwise.
    pub bottommost_compression: Option<CompressionType>,
    /// Temperatures of new tables.
    pub temperatures: TableTemperatures,
}

/// Temperatures of new tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableTemperatures {
    /// Temperature of tables above the last level.
    pub default: Temperature,
    /// Temperature of tables in the last level; `UNKNOWN` for `default`.
    pub last_level: Temperature,
}

impl TableTemperatures {
    /// The temperature of new tables of `level` in a tree of `levels` levels.
    pub fn of(self, level: usize, levels: usize) -> Temperature {
        if level + 1 == levels && self.last_level.is_known() {
            return self.last_level;
        }
        self.default
    }
}

impl Default for LeveledSettings {
    fn default() -> Self {
        Self {
            level0_file_num_compaction_trigger: 4,
            runs_without_delay: 19,
            write_buffer_size: 64 << 20,
            max_bytes_for_level_base: 256 << 20,
            max_bytes_for_level_multiplier: 10.0,
            max_bytes_for_level_multiplier_additional: Vec::new(),
            dynamic_level_bytes: true,
            target_file_size_base: 64 << 20,
            target_file_size_multiplier: 1,
            max_compaction_bytes: 0,
            priority: CompactionPri::MinOverlappingRatio,
            ttl_seconds: 30 * 24 * 60 * 60,
            periodic_compaction_seconds: 0,
            preserved_seconds: 0,
            precluded_seconds: 0,
            deletion_compaction_delay: 20,
            max_space_amplification: 1.3,
            burst_space_amplification: 1.3,
            blob_gc: BlobGcSettings::default(),
            ingest_behind: false,
            path_sizes: vec![u64::MAX],
            compression: CompressionType::Lz4,
            compression_per_level: Vec::new(),
            bottommost_compression: None,
            temperatures: TableTemperatures::default(),
        }
    }
}

impl LeveledSettings {
    /// Whether young entries stay above the last level.
    pub fn holds_young(&self) -> bool {
        self.precluded_seconds > 0
    }

    /// Bytes that one compaction may read and overlap.
    pub fn effective_max_compaction_bytes(&self) -> u64 {
        match self.max_compaction_bytes {
            0 => self.target_file_size_base.saturating_mul(25),
            bytes => bytes,
        }
    }

    /// Bytes of a table of `level`, where level 0's files go to `base_level`. Level 0's own are not
    /// cut.
    pub fn target_file_size(&self, level: usize, base_level: usize) -> u64 {
        if level == 0 {
            return u64::MAX;
        }
        let first = if self.dynamic_level_bytes { base_level } else { 1 };
        let exponent = u32::try_from(level.saturating_sub(first)).unwrap_or(u32::MAX);
        self.target_file_size_base
            .saturating_mul(self.target_file_size_multiplier.saturating_pow(exponent))
    }

    /// How many times larger than `level` the next level is, if levels have fixed sizes.
    pub fn level_factor(&self, level: usize) -> f64 {
        let additional =
            self.max_bytes_for_level_multiplier_additional.get(level).copied().unwrap_or(1);
        self.max_bytes_for_level_multiplier * f64::from(additional)
    }

    /// Which of the directories a table lies in.
    pub fn path_of(&self, file: &TableFile) -> u32 {
        file.meta.path_id.min(self.path_sizes.len().saturating_sub(1) as u32)
    }

    /// How tables of `level` are compressed; `deepest` says that no level below it has files.
    pub fn compression_of(
        &self,
        level: usize,
        base_level: usize,
        deepest: bool,
    ) -> CompressionType {
        if let Some(compression) = self.bottommost_compression
            && deepest
        {
            return compression;
        }
        let index = if level == 0 { 0 } else { level.saturating_sub(base_level) + 1 };
        match self.compression_per_level.last() {
            None => self.compression,
            Some(&last) => self.compression_per_level.get(index).copied().unwrap_or(last),
        }
    }
}

/// What the picker needs to know of the moment.
pub struct PickContext<'a> {
    /// The compactions under way.
    pub running: &'a [RunningCompaction],
    /// Tables at the bottom with an older newest entry are rewritten, so that their sequence
    /// numbers become 0 and deletions go: the oldest snapshot when one was released last, the last
    /// sequence number if none was left; 0 for never.
    pub bottommost_threshold: SequenceNumber,
    /// Seconds since 1970.
    pub now_unix_seconds: u64,
    /// Where the next compactions of levels start, for [`CompactionPri::RoundRobin`].
    pub cursors: &'a [CompactCursor],
    /// Only older blob files may force a compaction.
    pub forced_gc_below: FileNumber,
    /// A merging of all runs that has begun (universal).
    pub merging: Option<&'a Merging>,
    /// All runs, or a piece or part of them, are being merged, or the inputs of that removed: what
    /// they take is for the next.
    pub makes_room: bool,
    /// The blob files that are being emptied to keep the family within its space.
    pub collecting: &'a BTreeSet<FileNumber>,
    /// The oldest snapshot; more than any if there is none.
    pub oldest_snapshot: SequenceNumber,
    /// Ranges that were deleted of late.
    pub deleted: &'a [DeletedRanges],
    /// Bytes of values in blob files of memtables.
    pub unflushed_blob_bytes: u64,
    /// The smallest hole, in bytes, that a blob file can be given; `None` if it is to have none.
    pub hole_size: Option<u64>,
    /// Bytes that holes gave back in a second, lately; 0 if that is not known.
    pub hole_speed: u64,
    /// What a table's entries are, as far as it is known; [`table_stats`] but for tests.
    pub stats: &'a dyn Fn(&TableFile) -> Option<EntryStats>,
}

impl Default for PickContext<'_> {
    /// Nothing runs, nothing is too old.
    fn default() -> Self {
        Self {
            running: &[],
            bottommost_threshold: 0,
            now_unix_seconds: 0,
            cursors: &[],
            forced_gc_below: FileNumber(u64::MAX),
            merging: None,
            makes_room: false,
            collecting: const { &BTreeSet::new() },
            oldest_snapshot: MAX_SEQUENCE_NUMBER,
            deleted: &[],
            unflushed_blob_bytes: 0,
            hole_size: None,
            hole_speed: 0,
            stats: &table_stats,
        }
    }
}
