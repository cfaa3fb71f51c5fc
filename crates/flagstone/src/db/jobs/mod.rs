//! Work in the background: what is to be done, flushes and compactions, and what becomes of tables
//! that they cannot read.

pub(super) mod compact;
pub(super) mod deletions;
pub(super) mod dropping;
mod figures;
pub(super) mod flush;
pub(super) mod flush_parts;
pub(super) mod job;
pub(super) mod merged_onto;
pub(super) mod obsolete;
mod outlets;
pub(super) mod output;
pub(super) mod overwriting;
pub(super) mod part;
pub(super) mod placement;
pub(super) mod punch;
mod range_cuts;
#[cfg(test)]
mod recycling_tests;
pub(super) mod remote;
mod room;
mod steps;
mod table_settings;
mod table_writer;
pub(super) mod tracking;
mod write_buffers;
mod write_times;
pub(super) mod written;

use std::sync::Arc;

use crate::base::SnapshotList;
use crate::db::background::Background;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::limits::Limits;
use crate::db::options_file::OptionsFile;
use crate::db::reading::Reader;
use crate::db::tables::Tables;
use crate::db::tree::{Below, Tree};
use crate::db::writing::pipeline::Pipeline;
use crate::memtable::ArenaPool;

/// Flushes, compactions, and what they do to the disk.
pub(super) struct Jobs {
    context: Arc<Context>,
    tree: Arc<Tree>,
    pipeline: Arc<Pipeline>,
    disk: Arc<Disk>,
    limits: Arc<Limits>,
    tables: Arc<Tables>,
    reader: Arc<Reader>,
    snapshots: Arc<SnapshotList>,
    arenas: Arc<ArenaPool>,
    background: Arc<Background>,
    options_file: Arc<OptionsFile>,
    figures: figures::Published,
    /// When sequence numbers were written.
    write_times: write_times::WriteTimeSamples,
    /// The threads that wait for a compaction service.
    awaiting: remote::Awaiting,
}

impl Jobs {
    pub(super) fn new(
        below: Below,
        tree: Arc<Tree>,
        pipeline: Arc<Pipeline>,
        reader: Arc<Reader>,
        arenas: Arc<ArenaPool>,
        options_file: Arc<OptionsFile>,
    ) -> Self {
        Self {
            context: below.context,
            tree,
            pipeline,
            disk: below.disk,
            limits: below.limits,
            tables: below.tables,
            reader,
            snapshots: below.snapshots,
            arenas,
            background: below.background,
            options_file,
            figures: figures::Published::default(),
            write_times: write_times::WriteTimeSamples::default(),
            awaiting: remote::Awaiting::default(),
        }
    }
}
