//! With which settings flushes and compactions write a table.

use std::sync::Arc;

use crate::base::FileNumber;
use crate::db::family::Family;
use crate::db::jobs::Jobs;
use crate::db::jobs::job::{JobSpec, Target};
use crate::db::settings::{compression_options, table_builder_settings};
use crate::options::PrepopulateBlockCache;
use crate::sst::filter::WrittenBy;
use crate::sst::{Prepopulate, ReadCacheHits, TableBuilderSettings};

/// Bytes of memtables from which on a flush takes so long that a thread more is worth its while,
/// and its memory.
const PARALLEL_FROM: u64 = 16 << 20;

/// How the blocks of the table `number` get into the cache, if they do.
pub(super) fn prepopulate(
    jobs: &Jobs,
    spec: &JobSpec,
    number: FileNumber,
    read_cache_hits: &Arc<ReadCacheHits>,
) -> Option<Prepopulate> {
    let table = &spec.family.options.load().table;
    let read_cache_hits = match table.prepopulate_block_cache {
        _ if table.no_block_cache => return None,
        PrepopulateBlockCache::FlushAndCompaction => None,
        PrepopulateBlockCache::FlushOnly if spec.is_flush => None,
        _ if spec.is_flush || !table.cache_follows_compaction => return None,
        _ => Some(read_cache_hits.clone()),
    };
    Some(jobs.tables.prepopulate(number, read_cache_hits))
}

/// Whether a flush of so many bytes has a thread more that compresses: writers wait for it as
/// soon as the other memtable is full. Where there are more, these mostly have the processors
/// busy by themselves.
pub(super) fn compresses_in_parallel(jobs: &Jobs, family: &Family, bytes: u64) -> bool {
    let may_run = jobs.tree.has_workers() && jobs.context.settings.load().max_background_jobs > 1;
    may_run && bytes >= PARALLEL_FROM && family.options.load().max_write_buffer_number <= 2
}

/// How many threads more compress the blocks of a table: those that the options ask for beside the
/// one that makes the table.
pub(super) fn compression_threads(
    jobs: &Jobs,
    spec: &JobSpec,
    settings: &TableBuilderSettings,
) -> usize {
    let asked = settings.compression_options.parallel_threads.saturating_sub(1) as usize;
    let asked = if jobs.tree.has_workers() { asked } else { 0 };
    asked.max(usize::from(spec.pace.compresses_in_parallel))
}

/// How a job writes the table `number` of one of its levels.
pub(super) fn settings_of_table(
    jobs: &Jobs,
    spec: &JobSpec,
    target: &Target,
    number: FileNumber,
) -> TableBuilderSettings {
    let options = spec.family.options.load();
    let now = jobs.context.env.clock.unix_seconds();
    let written_by = if spec.is_flush {
        WrittenBy::Flush
    } else {
        WrittenBy::Compaction { level: target.place.level as u32 }
    };
    TableBuilderSettings {
        compression: target.compression.codec,
        compression_options: compression_options(&options, target.compression.is_bottommost),
        key_filter: spec.wants_key_filter,
        written_by,
        column_family: spec.family.id,
        column_family_name: spec.family.name.clone(),
        creation_time: target.oldest_ancestor_time_or(now),
        oldest_key_time: if spec.is_flush { now } else { 0 },
        file_creation_time: spec.inherited.file_creation_time_or(now),
        db_identity: jobs.context.identity.database.clone(),
        session_identity: jobs.context.identity.session.clone(),
        file_number: number,
        buffer_size: jobs.context.settings.load().writable_file_max_buffer_size as usize,
        range_deletion_bytes_max: jobs.limits.range_deletion_bytes_max() as usize,
        write_times: spec.inherited.times.known.clone(),
        ..table_builder_settings(
            &options,
            target.place.level,
            target.place.bottommost && !spec.is_flush,
        )
    }
}
