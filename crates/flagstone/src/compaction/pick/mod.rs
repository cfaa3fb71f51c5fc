//! Which files to rewrite, and how: pure functions over a version.
//!
//! Leveled compaction ([`pick`], [`plan_range`], [`plan_refit`]), universal ([`pick_universal`],
//! [`plan_full`]), FIFO ([`pick_fifo`]), the shape of the tree ([`LevelTargets`], [`scores`],
//! [`pending_compaction_bytes`]), where output files end ([`OutputSplitter`]), which directory they
//! go to ([`path_of_level`], [`path_of_run`]), which blob files are emptied ([`BlobSpace`]) or get
//! holes ([`pick_punch`]), where a compaction is cut ([`subcompaction_boundaries`]), what room it
//! wants ([`leveled_scratch`], [`universal_scratch`], [`fifo_scratch`]), when writers wait
//! ([`write_stall`]), what a bound of space costs at least ([`moved_per_byte`]).

mod below;
mod blob_space;
mod blob_work;
mod chosen;
mod cleaning;
mod deletions;
mod entry_stats;
mod expand;
mod fifo;
mod fifo_ratio;
mod incremental;
mod ingest;
mod level0;
mod leveled;
mod manual;
mod output;
mod pace;
mod paths;
mod pieces;
mod plan;
mod proximal;
mod punch;
mod refit;
mod score;
mod scratch;
mod settings;
#[cfg(test)]
mod simulation_tests;
mod stall;
mod subcompactions;
mod targets;
#[cfg(test)]
mod tests;
mod universal;

pub use below::{KeysBelow, range_surely_absent};
pub use blob_space::{
    BlobMoment, BlobSpace, BlobWaste, Overwriting, blob_bytes_allowed, blob_file_size,
};
pub use blob_work::{kept_by_damage, refers_to};
pub use chosen::{in_the_way, plan_files};
pub use cleaning::{moved_per_byte, space_for};
pub use deletions::{DeletedRanges, drop_deleted};
pub use entry_stats::table_stats;
pub use fifo::{largest_dropped, pick_fifo};
pub use ingest::{Arrivals, last_level, level_above_older, level_below_all};
pub use leveled::{blob_usage, pick};
pub use manual::{KeyRange, RangePlan, RangeRequest, files_within, plan_range};
pub use output::{OutputSplitter, SplitRule};
pub use pace::{Room, Speedometer, Speeds, WriteHeadroom, memtables_left};
pub use paths::{path_of_level, path_of_run};
pub use pieces::Merging;
pub use plan::{
    CompactionPlan, CompactionReason, InputRange, LevelInput, OutputCompression, OutputForm,
    OutputSizes, RunningCompaction,
};
pub use proximal::ProximalOutput;
pub use punch::{BITMAP_BYTES_MAX, HOLE_BLOCKS_MIN, holes_are_slow, pick_punch};
pub use refit::plan_refit;
pub use score::{LevelScore, compensated_sizes, pending_compaction_bytes, scores};
pub use scratch::{fifo_scratch, leveled_scratch, universal_scratch};
pub use settings::{LeveledSettings, PickContext, TableTemperatures};
pub use stall::{StallCause, StallInput, StallSettings, WriteStall, percent_to_delay, write_stall};
pub use subcompactions::{is_divisible, subcompaction_boundaries};
pub use targets::LevelTargets;
pub use universal::{pick_universal, plan_full, sorted_runs};
