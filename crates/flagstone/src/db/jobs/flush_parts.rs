//! What a flush writes: of each family one table in level 0 (mostly), several families at the same
//! time.

use std::sync::Arc;

use crate::base::sync::{AtomicUsize, Mutex, Ordering};
use crate::base::{Result, Sometimes, TableFileCreationReason, timestamp};
use crate::cache::MemoryKind;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::jobs::job::JobSpec;
use crate::db::jobs::part::{Cuts, Part, PartRange};
use crate::db::jobs::range_cuts::sequence_cuts;
use crate::db::jobs::{Jobs, output, overwriting, table_settings, write_times};
use crate::db::settings::preserved_seconds;
use crate::db::statistics::Ticker;
use crate::db::tree::flushes::{FlushJob, FlushPart};
use crate::db::tree::output::JobOutput;
use crate::db::writing::direct_blob::DirectInputs;
use crate::env::{Task, ThreadStage, enter_stage};
use crate::iter::newest_timestamp;

/// So many families a flush writes at the same time: they wait for syncs most of the time.
const WRITTEN_AT_ONCE: usize = 4;

/// Writes what a flush has to level 0, several families at the same time: all, or nothing that
/// stays.
pub(super) fn write_parts(jobs: &Jobs, job: &FlushJob) -> Result<Vec<JobOutput>> {
    if let [only] = &job.parts[..] {
        return Ok(vec![write_part(jobs, only)?]);
    }
    let written = Mutex::new(job.parts.iter().map(|_| None).collect::<Vec<Option<JobOutput>>>());
    let failure = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let work = || {
        while failure.lock().is_none() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = job.parts.get(index) else { break };
            match jobs.guarded("flush", || write_part(jobs, part)) {
                Ok(done) => written.lock()[index] = Some(done),
                Err(error) => drop(failure.lock().get_or_insert(error)),
            }
        }
    };
    let threads = job.parts.len().min(WRITTEN_AT_ONCE);
    jobs.context
        .env
        .spawner
        .run_all("flagstone-part", (0..threads).map(|_| Box::new(work) as Task<'_>).collect());
    let written = std::mem::take(&mut *written.lock());
    if let Some(error) = failure.lock().take() {
        for (part, output) in job.parts.iter().zip(&written) {
            output.iter().for_each(|output| output::discard(jobs, &part.family, output));
        }
        return Err(error);
    }
    Ok(written.into_iter().map(|done| done.expect("a part that has not failed is done")).collect())
}

/// Writes what a flush has of one family to level 0.
fn write_part(jobs: &Jobs, part: &FlushPart) -> Result<JobOutput> {
    let bytes = part.memtables.iter().map(|mem| mem.memory_usage() as u64).sum();
    let _buffers = output::hold_job_buffers(jobs, &part.family, 1, 0, bytes);
    enter_stage(ThreadStage::FlushWriteLevel0);
    overwriting::sample_overwrites(jobs, &part.family, &part.memtables);
    let begun_us = jobs.context.env.clock.now_us();
    let mut output = write_level0(
        jobs,
        &part.family,
        &part.memtables,
        (TableFileCreationReason::Flush, part.job),
    )?;
    output.counts.micros = jobs.context.env.clock.now_us().saturating_sub(begun_us);
    if output.tables.is_empty() {
        Sometimes::NothingLeftToFlush.reached();
    }
    let bytes: u64 = output.tables.iter().map(|table| table.size).sum();
    jobs.context.statistics.add(Ticker::FlushWriteBytes, bytes);
    jobs.context.statistics.add(Ticker::BlobFlushBytes, output.counts.blob_bytes);
    jobs.context.statistics.add(Ticker::BlobWriteBytes, output.counts.blob_bytes);
    Ok(output)
}

/// Removes what a flush that failed has written, of as many of its parts as there are outputs.
pub(super) fn discard_all(jobs: &Jobs, job: &FlushJob, outputs: &[JobOutput]) {
    job.parts
        .iter()
        .zip(outputs)
        .for_each(|(part, output)| output::discard(jobs, &part.family, output));
}

/// Writes memtables (oldest first) to one table; none if nothing survives. To several, oldest
/// first, if their range deletions are more than one can hold. The job has an id.
pub(in crate::db) fn write_level0(
    jobs: &Jobs,
    family: &Arc<Family>,
    memtables: &[Arc<Generation>],
    (reason, job): (TableFileCreationReason, u64),
) -> Result<JobOutput> {
    // Snapshots to come see all that is flushed.
    let snapshots = jobs.snapshots.sequences();
    let tombstones = memtables
        .iter()
        .filter_map(|mem| mem.needed_range_tombstones(&snapshots))
        .map(|found| found.untruncated())
        .collect();
    let mut spec = JobSpec::flush(family.clone(), tombstones, DirectInputs::of(memtables), reason);
    spec.told.id = job;
    let seconds = preserved_seconds(&family.options.load());
    spec.inherited.times = write_times::of_flush(jobs, seconds);
    let history_low = forget_history(family, memtables, &mut spec);
    let entries: u64 = memtables.iter().map(|mem| mem.num_entries()).sum();
    spec.wants_key_filter =
        family.wants_key_filter(entries, jobs.context.statistics.get(Ticker::KeysRead));
    // A hash of each key, and its ten bits.
    let _hashes = spec.wants_key_filter.then(|| {
        jobs.tables.account().hold(MemoryKind::Jobs, entries as usize * (size_of::<u64>() + 2))
    });
    let bytes: u64 = memtables.iter().map(|mem| mem.memory_usage() as u64).sum();
    spec.pace.compresses_in_parallel = table_settings::compresses_in_parallel(jobs, family, bytes);
    spec.pace.entry_size = (bytes / entries.max(1)) as usize;
    let output = output::run_job(jobs, &spec, |surviving| {
        let most = jobs.limits.range_deletion_bytes_max();
        let ranges = match sequence_cuts(surviving, most) {
            several if several.len() > 1 => {
                several.into_iter().map(PartRange::of_sequences).collect()
            }
            _ => vec![PartRange::default()],
        };
        let part = |range| Part {
            range,
            sources: memtables.iter().rev().map(|mem| mem.iter().into()).collect(),
            readahead_bytes: 0,
            read_cache_hits: Arc::default(),
            cuts: Cuts::default(),
            proximal_cuts: None,
        };
        Ok(ranges.into_iter().map(part).collect())
    })?;
    Ok(JobOutput { history_low, ..output })
}

/// Where tables have no timestamps: the one from which on the family can be read then, as the flush
/// forgets those of what it writes.
fn forget_history(
    family: &Family,
    memtables: &[Arc<Generation>],
    spec: &mut JobSpec,
) -> Option<Vec<u8>> {
    let history = spec.history.as_mut().filter(|history| history.is_stripped)?;
    let newest = memtables.iter().filter_map(|mem| newest_timestamp(mem, &family.order));
    let newest = newest.filter_map(|stamp| timestamp::to_u64(&stamp)).max()?;
    let known = history.low.as_deref().and_then(timestamp::to_u64).unwrap_or(0);
    let low = timestamp::from_u64(newest.saturating_add(1).max(known)).to_vec();
    history.low = Some(low.clone());
    Some(low)
}
