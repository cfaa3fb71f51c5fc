//! What listeners are told of memtables and jobs. Nothing is made of it where nobody listens.

use std::sync::Arc;

use crate::base::{Code, Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, file_name};
use crate::compaction::pick::percent_to_delay;
use crate::db::events::{Event, thread_id};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::settings::{leveled_settings, stall_input, stall_settings};
use crate::db::tree::Tree;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::flushes::FlushPart;
use crate::db::tree::output::JobOutput;
use crate::db::tree::state::State;
use crate::manifest::{FileMetadata, TableFile};
use crate::options::{
    BackgroundJobPressure, BlobFileInfo, BlobGarbageInfo, FlushReason, JobInfo, JobReason,
    JobStats, MemtableFigures, MemtableInfo, StallCondition, TableInfo, TreeShape,
};
use crate::sst::TableProperties;

/// A memtable takes no more writes.
pub(in crate::db) fn note_sealed(
    tree: &Tree,
    family: &Family,
    memtable: &Generation,
    reason: FlushReason,
) {
    tree.context.events.note(|| {
        Event::Sealed(MemtableInfo {
            family: family.id,
            family_name: family.name.clone(),
            first_seqno: memtable.first_sequence().unwrap_or(0),
            num_entries: memtable.num_entries(),
            num_deletes: memtable.num_deletes(),
            reason,
        })
    });
}

/// A flush or compaction has ended. Looks at all families, which the info log does not need.
pub(in crate::db) fn note_job_ended(tree: &Tree, state: &State) {
    if !tree.context.events.has_program_listeners() {
        return;
    }
    let percent = |known: &FamilyState| {
        let options = known.family.options.load();
        let version = &known.family.current.load().version;
        let waste = known.blob_waste(&options, version);
        let input = stall_input(&options, version, known.immutable.len(), waste);
        percent_to_delay(&stall_settings(&options), &input)
    };
    tree.context.events.note(|| {
        Event::JobEnded(BackgroundJobPressure {
            flushes_running: state.running.flushes,
            flushes_waiting: state.agenda.waiting().count(),
            compactions_running: state.running.compactions,
            compactions_waiting: state.agenda.to_compact().count(),
            stall_proximity: state.families.values().map(percent).max().unwrap_or(0),
            stall: tree.control.condition(),
        })
    });
}

/// A compaction runs no longer.
pub(in crate::db) fn end_compaction(tree: &Tree, state: &mut State) {
    state.running.compactions -= 1;
    note_job_ended(tree, state);
}

fn figures_of(memtables: &[Arc<Generation>]) -> MemtableFigures {
    let mut figures = MemtableFigures { count: memtables.len(), ..MemtableFigures::default() };
    for memtable in memtables {
        figures.entries += memtable.num_entries();
        figures.deletes += memtable.num_deletes();
        figures.range_deletes += memtable.num_range_tombstones() as u64;
        figures.data_bytes += memtable.data_size();
        figures.memory_bytes += memtable.memory_usage() as u64;
    }
    figures
}

fn stall_by_level0(family: &Family) -> StallCondition {
    let settings = stall_settings(&family.options.load());
    let files = family.current.load().version.levels[0].len();
    let reaches = |trigger: Option<usize>| trigger.is_some_and(|trigger| files >= trigger);
    if reaches(settings.level0_stop_writes_trigger) {
        StallCondition::Stopped
    } else if reaches(settings.level0_slowdown_writes_trigger) {
        StallCondition::Delayed
    } else {
        StallCondition::Normal
    }
}

fn shape_of(family: &Family) -> TreeShape {
    let current = family.current.load();
    let blobs = &current.version.blob_files;
    let ends = blobs.keys().next().zip(blobs.keys().next_back());
    TreeShape {
        tables_per_level: current.version.levels.iter().map(Vec::len).collect(),
        blob_files: ends.map(|(first, last)| (*first, *last)),
        immutable_memtables: current.immutable.len(),
    }
}

/// What a flush of one family begins with.
pub(in crate::db) fn flush_begun(part: &FlushPart) -> JobInfo {
    let FlushPart { family, .. } = part;
    let options = family.options.load();
    let paths = &family.current.load().version.paths;
    JobInfo {
        family: family.id,
        family_name: family.name.clone(),
        job: part.job,
        thread: thread_id(),
        reason: JobReason::Flush(part.reason),
        inputs: Vec::new(),
        start_level: 0,
        output_level: 0,
        tables: Vec::new(),
        blob_files: Vec::new(),
        blob_garbage: Vec::new(),
        compression: leveled_settings(&options, paths).compression_of(0, 1, false),
        blob_compression: options.blob_compression(),
        stats: JobStats { memtables: figures_of(&part.memtables), ..JobStats::default() },
        outcome: Ok(()),
    }
}

/// What a compaction begins with; `properties` are those of its inputs, as far as they are known.
pub(in crate::db) fn compaction_begun(
    job: &CompactionJob,
    number: u64,
    properties: impl Fn(&TableFile) -> Option<Arc<TableProperties>>,
) -> JobInfo {
    let CompactionJob { family, plan, .. } = job;
    let inputs = plan
        .files()
        .map(|(level, file)| TableInfo {
            path: file.path(),
            ..table_info(family, &file.meta, level, properties(file))
        })
        .collect();
    JobInfo {
        family: family.id,
        family_name: family.name.clone(),
        job: number,
        thread: thread_id(),
        reason: JobReason::Compaction(plan.reason),
        inputs,
        start_level: plan.start_level(),
        output_level: plan.output_level,
        tables: Vec::new(),
        blob_files: Vec::new(),
        blob_garbage: Vec::new(),
        compression: plan.form.compression.codec,
        blob_compression: family.options.load().blob_compression(),
        stats: JobStats {
            is_manual: job.is_manual,
            is_full: plan.files().count() == job.version.files().count(),
            is_move: plan.trivial_move,
            ..JobStats::default()
        },
        outcome: Ok(()),
    }
}

/// How a job that began so has gone, as far as it is known.
pub(in crate::db) fn job_written(begun: JobInfo, family: &Family, output: &JobOutput) -> JobInfo {
    let level = begun.output_level;
    let properties_of = |number: FileNumber| {
        let written = output.properties.iter().find(|(written, _)| *written == number);
        written.map(|(_, properties)| properties.clone())
    };
    let table = |meta: &FileMetadata| {
        let level = level - usize::from(output.proximal.contains(&meta.number));
        table_info(family, meta, level, properties_of(meta.number))
    };
    let blob_files = output.blob_files.iter().chain(&output.direct_files);
    let counts = &output.counts;
    JobInfo {
        thread: thread_id(),
        tables: output.tables.iter().map(table).collect(),
        blob_files: blob_files
            .map(|meta| BlobFileInfo {
                number: meta.number,
                path: family.paths.blob(meta.number),
                count: meta.total_count,
                size: meta.total_bytes,
            })
            .collect(),
        blob_garbage: output
            .garbage
            .iter()
            .map(|delta| BlobGarbageInfo {
                number: delta.number,
                path: family.paths.blob(delta.number),
                count: delta.count,
                bytes: delta.bytes,
            })
            .collect(),
        stats: JobStats {
            micros: counts.micros,
            entries_read: counts.entries_read,
            key_faults: counts.key_faults,
            relocated_blobs: counts.relocated_blobs,
            relocated_bytes: counts.relocated_bytes,
            is_remote: output.is_remote,
            stall: stall_by_level0(family),
            shape: shape_of(family),
            subcompactions: counts.subcompactions,
            level0_files: family.current.load().version.levels[0].len(),
            ..begun.stats
        },
        ..begun
    }
}

/// A flush is part of the tree, and its family's new version known.
pub(in crate::db) fn note_flushed(tree: &Tree, part: &FlushPart, output: &JobOutput) {
    tree.context
        .events
        .note(|| Event::Flushed(job_written(flush_begun(part), &part.family, output)));
}

/// A compaction is about to become part of the tree.
pub(in crate::db) fn note_written(tree: &Tree, job: &CompactionJob, output: &JobOutput) {
    tree.context
        .events
        .note(|| Event::CompactionWritten(job_written(begun(tree, job), &job.family, output)));
}

/// A compaction is part of the tree.
pub(in crate::db) fn note_compacted(tree: &Tree, job: &CompactionJob, output: &JobOutput) {
    let written = || job_written(begun(tree, job), &job.family, output);
    if job.is_reported {
        let info = written();
        *job.told.lock() = Some(info.clone());
        tree.context.events.note(|| Event::Compacted(info));
    } else {
        tree.context.events.note(|| Event::Compacted(written()));
    }
}

/// A compaction has left everything as it was.
pub(in crate::db) fn note_not_compacted<T>(tree: &Tree, job: &CompactionJob, outcome: &Result<T>) {
    let dropped = || Error::new(Code::ColumnFamilyDropped, "the column family was dropped");
    tree.context.events.note(|| {
        let error = outcome.as_ref().err().cloned().unwrap_or_else(dropped);
        Event::Compacted(JobInfo { outcome: Err(error), ..begun(tree, job) })
    });
}

/// A compaction begins; `properties` as for [`compaction_begun`].
pub(in crate::db) fn note_begun(
    tree: &Tree,
    job: &CompactionJob,
    properties: impl Fn(&TableFile) -> Option<Arc<TableProperties>>,
) {
    if tree.context.events.has_listeners() || job.is_reported {
        let mut info = compaction_begun(job, tree.context.events.next_job(), properties);
        info.stats.oldest_snapshot =
            Some(tree.oldest_snapshot()).filter(|oldest| *oldest != MAX_SEQUENCE_NUMBER);
        *job.told.lock() = Some(info.clone());
        tree.context.events.note(|| Event::CompactionBegun(info));
    }
}

/// What was told of its beginning.
fn begun(tree: &Tree, job: &CompactionJob) -> JobInfo {
    let told = job.told.lock().clone();
    told.unwrap_or_else(|| compaction_begun(job, tree.context.events.next_job(), |_| None))
}

fn table_info(
    family: &Family,
    meta: &FileMetadata,
    level: usize,
    properties: Option<Arc<TableProperties>>,
) -> TableInfo {
    TableInfo {
        number: meta.number,
        path: file_name::table(family.paths.directory(meta.path_id), meta.number),
        size: meta.size,
        level,
        key_range: (meta.smallest.user_key().to_vec(), meta.largest.user_key().to_vec()),
        smallest_seqno: meta.smallest_seqno,
        largest_seqno: meta.largest_seqno,
        oldest_blob_file: meta.oldest_blob_file,
        properties,
    }
}
