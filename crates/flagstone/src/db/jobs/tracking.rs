//! What threads are listed to do (`enable_thread_tracking`).

use std::sync::Arc;

use crate::db::context::Context;
use crate::db::events::thread_id;
use crate::db::jobs::Jobs;
use crate::db::jobs::job::JobSpec;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::flushes::FlushJob;
use crate::env::{Activity, Doing, Role, ThreadOperation, ThreadStage, ThreadType, list_thread};

/// Lists this thread of the database's own.
pub(super) fn list_worker(context: &Context, role: Role) {
    if context.settings.load().enable_thread_tracking {
        let kind = match role {
            Role::Flush => ThreadType::HighPriority,
            Role::Compaction => ThreadType::LowPriority,
        };
        list_thread(thread_id(), kind);
    }
}

/// This thread does something for the database, until the answer is dropped.
pub(in crate::db) fn begin(
    context: &Context,
    kind: ThreadType,
    operation: ThreadOperation,
    stage: ThreadStage,
    details: impl FnOnce() -> (String, Vec<(&'static str, u64)>),
) -> Option<Doing> {
    if !context.settings.load().enable_thread_tracking {
        return None;
    }
    let (family_name, properties) = details();
    let activity = Activity {
        db_path: Arc::from(context.path.as_path()),
        family_name,
        operation,
        stage,
        properties,
        clock: context.env.clock.clone(),
    };
    Some(Doing::begin(thread_id(), kind, activity))
}

/// This thread flushes.
pub(super) fn begin_flush(jobs: &Jobs, job: &FlushJob) -> Option<Doing> {
    let operation = ThreadOperation::Flush;
    begin(&jobs.context, ThreadType::User, operation, ThreadStage::FlushRun, || {
        let family = match &job.parts[..] {
            [only] => only.family.name.clone(),
            _ => String::new(),
        };
        let memtables = job.parts.iter().flat_map(|part| &part.memtables);
        let bytes = memtables.map(|memtable| memtable.memory_usage() as u64).sum();
        let first = job.parts.first().map_or(0, |part| part.job);
        (family, vec![("JobID", first), ("BytesMemtables", bytes)])
    })
}

/// This thread does one of several parts of a compaction.
pub(super) fn begin_part(jobs: &Jobs, spec: &JobSpec) -> Option<Doing> {
    let (kind, stage) = (ThreadType::LowPriority, ThreadStage::CompactionProcess);
    let details = || (spec.family.name.clone(), vec![("JobID", spec.told.id)]);
    begin(&jobs.context, kind, ThreadOperation::Compaction, stage, details)
}

/// This thread compacts; `stage` says how far it has come.
pub(super) fn begin_compaction(
    jobs: &Jobs,
    job: &CompactionJob,
    stage: ThreadStage,
) -> Option<Doing> {
    begin(&jobs.context, ThreadType::User, ThreadOperation::Compaction, stage, || {
        let plan = &job.plan;
        let bytes = plan.input_bytes();
        let number = job.told.lock().as_ref().map_or(0, |told| told.job);
        let properties = vec![
            ("JobID", number),
            ("BaseInputLevel", plan.start_level() as u64),
            ("OutputLevel", plan.output_level as u64),
            ("IsManual", u64::from(job.is_manual)),
            ("IsTrivialMove", u64::from(plan.trivial_move)),
            ("TotalInputBytes", bytes),
        ];
        (job.family.name.clone(), properties)
    })
}
