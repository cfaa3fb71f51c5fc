//! Compactions that write nothing: their tables go as they are.
//!
//! What the tables refer to in blob files is garbage then. It is counted table by table, since only
//! sums are wanted: one window that is read ahead, and one file open for it, do for any number of
//! tables.
//!
//! FIFO compaction drops also what it cannot read. What is not counted of that does no harm: it
//! drops the oldest tables, and a blob file goes, whatever its garbage, when no table refers to it
//! or to an older one.

use crate::base::{InternalIterator, Result};
use crate::blob::{GarbageMeter, references};
use crate::cache::MemoryKind;
use crate::db::jobs::{Jobs, output, part};
use crate::db::statistics::Ticker;
use crate::db::tables::damage_reports::may_be_damage;
use crate::db::tables::level_files::ReadThrough;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::output::JobOutput;
use crate::db::tree::{damage, paused_work};
use crate::manifest::TableFile;
use crate::sst::IterSettings;

/// So many entries are read between two looks at whether anybody wants them counted.
const ENTRIES_BETWEEN_LOOKS: u64 = 4096;

/// Drops the inputs, for what they refer to in blob files.
pub(in crate::db) fn drop_inputs(jobs: &Jobs, job: &CompactionJob) -> Result<JobOutput> {
    let mut output = JobOutput::default();
    if job.plan.oldest_blob_file().is_some() {
        let reads = part::reads_of(jobs, job, 1);
        let _window = jobs.tables.account().hold(MemoryKind::Jobs, reads.0.readahead_size);
        let mut meter = GarbageMeter::new();
        for (_, file) in job.plan.files().filter(|(_, file)| file.meta.oldest_blob_file.is_some()) {
            match count_references(jobs, job, file, &reads, &mut meter) {
                Err(error) if job.plan.drops_oldest() && may_be_damage(&error) => {
                    damage::note_damage(&jobs.tree, &job.family, &error);
                }
                counted => counted?,
            }
        }
        output.garbage = meter.finish()?;
    }
    jobs.context.statistics.add(Ticker::Compactions, 1);
    Ok(output)
}

fn count_references(
    jobs: &Jobs,
    job: &CompactionJob,
    file: &TableFile,
    (settings, through): &(IterSettings, ReadThrough),
    meter: &mut GarbageMeter,
) -> Result<()> {
    let mut entries = jobs.tables.iterate(&job.family, file, settings, Some(through))?;
    entries.seek_to_first();
    let mut count = 0u64;
    while entries.valid() {
        for index in references(entries.key().value_type(), entries.value()) {
            meter.flow_in(entries.key().user_key().len(), &index);
        }
        entries.next();
        count += 1;
        if count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            output::check_wanted(jobs, &job.family)?;
            // What the program drops itself is no compaction to it.
            if !job.is_manual {
                paused_work::check_not_stopped(&jobs.tree, false)?;
            }
        }
    }
    entries.status()
}
