//! Pauses of automatic compactions after the compaction service has aborted one. Requested
//! compactions do not pause.

use crate::base::sync::Ordering;
use crate::db::tree::Tree;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::state::State;

/// How long a pause is, in microseconds. As threads look for work every two seconds, it lasts up to
/// twice as long.
const PAUSE_US: u64 = 2_000_000;

/// Whether automatic compactions of a family pause. Without threads none does, because no thread
/// would look again later.
pub(super) fn is_put_off(tree: &Tree, known: &FamilyState) -> bool {
    let until_us = known.compacting.put_off_until_us;
    until_us > 0 && tree.has_workers() && tree.context.env.clock.now_us() < until_us
}

/// Begins a pause if the service has aborted a job that no caller waits for.
pub(super) fn note_put_off(tree: &Tree, state: &mut State, job: &CompactionJob) {
    if job.is_manual || !job.remote.is_put_off.load(Ordering::Relaxed) {
        return;
    }
    if let Some(known) = state.families.get_mut(&job.family.id) {
        let now_us = tree.context.env.clock.now_us();
        known.compacting.put_off_until_us = now_us.saturating_add(PAUSE_US);
    }
}
