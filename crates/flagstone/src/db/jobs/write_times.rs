//! Samples of sequence numbers and times, for tables that say when their entries were written
//! (`preserve_internal_time_seconds`).
//!
//! 1. Workers look about every two seconds whether a sample is due, and so does each flush. A
//!    hundredth of the shortest time that a family asks for lies between two samples.
//! 2. A flush gives its table the samples about the table's own sequence numbers.
//! 3. A compaction puts the samples of its inputs together. Entries that are younger than the
//!    family's time keep their sequence numbers at the bottom, or stay out of the last level
//!    (`preclude_last_level_data_seconds`).
//!
//! The samples are in memory and in tables only. What is in memtables when the database is closed,
//! or is replayed from a WAL, counts as written when the database was opened again.

use std::sync::Arc;

use crate::base::sync::{Mutex, Ordering};
use crate::base::{MAX_SEQUENCE_NUMBER, Result, SequenceNumber, WriteTime, WriteTimes};
use crate::db::jobs::Jobs;
use crate::db::jobs::job::KeptTimes;
use crate::db::settings::preserved_seconds;
use crate::db::tree::compaction_job::CompactionJob;

/// Samples that a family's shortest time is divided into.
const SAMPLES_PER_SPAN: u64 = 100;

/// The most samples that are kept in memory, and that a compaction works with.
const SAMPLES_MAX: usize = 1000;

/// The samples since the database was opened.
#[derive(Default)]
pub(super) struct WriteTimeSamples(Mutex<WriteTimes>);

impl WriteTimeSamples {
    /// Takes a sample if it is due. Families keep times for `shortest` seconds or longer, up to
    /// `longest`.
    fn note(&self, sample: WriteTime, (shortest, longest): (u64, u64)) {
        let mut known = self.0.lock();
        let until_next = shortest.div_ceil(SAMPLES_PER_SPAN);
        let is_early =
            |last: &WriteTime| sample.time > last.time && sample.time - last.time < until_next;
        if known.samples().last().is_some_and(is_early) {
            return;
        }
        known.append(sample);
        let all = std::mem::take(&mut *known).within(sample.time, longest);
        // Thinned rarely, because each time costs as much.
        let is_full = all.samples().len() > SAMPLES_MAX + SAMPLES_MAX / 8;
        *known = if is_full { all.limited(SAMPLES_MAX) } else { all };
    }
}

/// Takes a sample of now, if a family wants any and one is due.
pub(super) fn note(jobs: &Jobs) {
    match jobs.limits.preserved_seconds() {
        None => drop(std::mem::take(&mut *jobs.write_times.0.lock())),
        Some(spans) => {
            // The sequence number first: so all up to it were written by that time.
            let sequence = jobs.snapshots.published.load(Ordering::Acquire);
            let time = jobs.context.env.clock.unix_seconds();
            jobs.write_times.note(WriteTime { sequence, time }, spans);
        }
    }
}

/// What a flush gives its table, of a family that keeps times for so many seconds.
pub(super) fn of_flush(jobs: &Jobs, seconds: u64) -> KeptTimes {
    if seconds == 0 {
        return KeptTimes::default();
    }
    note(jobs);
    let now = jobs.context.env.clock.unix_seconds();
    let known = jobs.write_times.0.lock().clone();
    let known = Some(Arc::new(known.within(now, seconds)));
    KeptTimes { known, zeroed_until: 0, old_until: MAX_SEQUENCE_NUMBER }
}

/// What a compaction keeps. A table whose samples are malformed counts as one without.
pub(super) fn of_compaction(jobs: &Jobs, job: &CompactionJob) -> Result<KeptTimes> {
    let options = job.family.options.load_full();
    let seconds = preserved_seconds(&options);
    if seconds == 0 {
        return Ok(KeptTimes::default());
    }
    let mut samples = Vec::new();
    for (_, file) in job.plan.files() {
        match jobs.tables.open(&job.family, file)?.properties().write_times() {
            Ok(known) => samples.extend_from_slice(known.samples()),
            Err(error) => {
                let error = error.at(file.path());
                tracing::warn!(%error, "a compaction goes on without the times of a table");
            }
        }
    }
    // They tell of entries, too, whose tables have no samples, or none that is late enough.
    note(jobs);
    samples.extend_from_slice(jobs.write_times.0.lock().samples());
    let now = jobs.context.env.clock.unix_seconds();
    let known = WriteTimes::of(samples).within(now, seconds);
    let zeroed_until = known.sequence_at(now.saturating_sub(seconds));
    let old_until = match job.plan.proximal {
        None => MAX_SEQUENCE_NUMBER,
        Some(proximal) => {
            let then = now.saturating_sub(options.preclude_last_level_data_seconds);
            known.sequence_at(then).max(in_tables_at(job, then)).max(proximal.kept_until)
        }
    };
    Ok(KeptTimes { known: Some(Arc::new(known.limited(SAMPLES_MAX))), zeroed_until, old_until })
}

/// The largest sequence number among inputs that were there at that time. They may have no samples,
/// having been written without the option.
fn in_tables_at(job: &CompactionJob, time: u64) -> SequenceNumber {
    let files = job.plan.files().map(|(_, file)| &file.meta);
    let made_by_then = files.filter(|meta| (1..=time).contains(&meta.file_creation_time));
    made_by_then.map(|meta| meta.largest_seqno).max().unwrap_or(0)
}

impl Default for KeptTimes {
    /// None is kept.
    fn default() -> Self {
        Self { known: None, zeroed_until: MAX_SEQUENCE_NUMBER, old_until: MAX_SEQUENCE_NUMBER }
    }
}
