//! What a database does for others that have one limit for their memtables.

use crate::cache::WriteBuffers;
use crate::db::jobs::Jobs;
use crate::options::FlushReason;

/// Does what the manager of several databases has asked for.
pub(super) fn serve_other_databases(jobs: &Jobs) {
    let Some(buffers) = jobs.limits.write_buffers() else { return };
    if buffers.take_look() {
        jobs.tree.look_at_stall();
    }
    let is_paused = jobs.tree.are_flushes_paused();
    if buffers.take_request() {
        if !is_paused {
            make_room(jobs, buffers);
        }
        buffers.answer();
    }
    // After the answer: those whom this wakes ask another database.
    buffers.set_paused(is_paused);
}

fn make_room(jobs: &Jobs, buffers: &WriteBuffers) {
    if jobs.context.poison.is_fatal() {
        // Others would wait for its memory in vain.
        buffers.leave();
        return;
    }
    let Some(family) = jobs.tree.flush_for_others() else { return };
    if let Err(error) = jobs.pipeline.seal(&[family], FlushReason::MemoryLimit) {
        tracing::warn!(%error, "cannot flush a memtable to make room for other databases");
    }
}

#[cfg(test)]
mod tests;
