//! What a worker is told.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::file_name;
use crate::compaction::remote::{CompactionOrder, OrderedPlan};
use crate::db::jobs::Jobs;
use crate::db::jobs::job::flushed_until;
use crate::db::tree::compaction_job::CompactionJob;
use crate::manifest::TableFile;
use crate::options::CompactionServiceJobInfo;

/// The fewest file numbers that a job reserves.
const NUMBERS_MIN: u64 = 1024;
/// The fewest where a partitioner decides where tables end.
const NUMBERS_OF_PARTITIONER: u64 = 1 << 20;
/// The most file numbers that a job reserves.
const NUMBERS_MAX: u64 = 1 << 32;

/// Uncompressed outputs may take so many times the bytes of the inputs; more is rare, and the
/// compaction is then done here.
const EXPANSION_MAX: u64 = 16;

/// The order; `None` while there is no MANIFEST that a worker could read.
pub(super) fn order_of(jobs: &Jobs, job: &CompactionJob) -> Option<CompactionOrder> {
    let manifest = jobs.tree.manifest_on_disk()?;
    let numbers = numbers_for(job);
    let random = &jobs.context.env.random;
    let token = [random.next_u64().to_le_bytes(), random.next_u64().to_le_bytes()].concat();
    Some(CompactionOrder {
        token: token.try_into().expect("two times eight bytes"),
        db_id: jobs.context.identity.database.clone(),
        family: job.family.id,
        family_name: job.family.name.clone(),
        manifest,
        first_number: jobs.tree.file_numbers.allocate_block(numbers),
        numbers,
        options: jobs.options_file.text_of_family(job.family.id),
        plan: OrderedPlan::of(&job.plan),
        snapshots: jobs.snapshots.sequences(),
        flushed_until: flushed_until(&job.family, &job.version),
        is_manual: job.is_manual,
        blob_gc: (job.blob_gc.enabled, job.blob_gc.age_cutoff),
        max_subcompactions: job.max_subcompactions,
    })
}

/// How many files the worker may make.
fn numbers_for(job: &CompactionJob) -> u64 {
    let bytes = |file: &Arc<TableFile>| file.meta.size;
    let tables = job.plan.files().map(|(_, file)| bytes(file)).fold(0, u64::saturating_add);
    let blobs = job.version.blob_bytes();
    let options = job.family.options.load();
    let each = job.plan.sizes.target.min(options.blob_file_size).max(1);
    let most = tables.saturating_add(blobs).saturating_mul(EXPANSION_MAX) / each;
    let least = match options.sst_partitioner_factory {
        Some(_) => NUMBERS_OF_PARTITIONER,
        None => NUMBERS_MIN,
    };
    most.saturating_add(least).min(NUMBERS_MAX)
}

/// What the service is told.
pub(super) fn info_of(
    jobs: &Jobs,
    job: &CompactionJob,
    order: &CompactionOrder,
) -> CompactionServiceJobInfo {
    let (context, plan) = (&jobs.context, &job.plan);
    CompactionServiceJobInfo {
        db_path: context.path.clone(),
        db_id: context.identity.database.clone(),
        db_session_id: context.identity.session.clone(),
        family: job.family.id,
        family_name: job.family.name.clone(),
        job: job.told.lock().as_ref().map_or_else(|| context.events.next_job(), |told| told.job),
        reason: plan.reason,
        start_level: plan.start_level(),
        output_level: plan.output_level,
        is_full: plan.files().count() == job.version.files().count(),
        is_manual: job.is_manual,
        is_bottommost: plan.bottommost,
        input_bytes: plan.input_bytes(),
        output_directory: directory_of(jobs, order),
    }
}

/// The directory that a worker is offered.
pub(super) fn directory_of(jobs: &Jobs, order: &CompactionOrder) -> PathBuf {
    let token = u128::from_be_bytes(order.token);
    file_name::remote_compactions(&jobs.context.path).join(format!("{token:032x}"))
}

/// Whether a directory has the name of one that a worker was offered.
pub(super) fn is_directory_of_job(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
