//! Background work that a program has paused, and compactions that it has ended.
//!
//! | call | what no longer begins | what runs |
//! |---|---|---|
//! | `pause_work` | flushes, automatic compactions, holes | goes on; the call waits for it |
//! | `abort_compactions` | all compactions | ends soon; the call waits for that |
//! | `disable_requested` | requested compactions | end soon; the call waits for that |
//!
//! Each is counted, and taken back as often as it was called. Jobs read the counts of
//! [`CompactionStops`] without a lock. Whoever changes one holds the state lock, under which
//! compactions begin: none begins unseen.

use crate::base::sync::{AtomicUsize, MutexGuard, Ordering};
use crate::base::{Code, Error, Result, SubCode};
use crate::db::tree::Tree;
use crate::db::tree::state::State;

/// How often a program has stopped compactions.
#[derive(Default)]
pub(in crate::db) struct CompactionStops {
    all: AtomicUsize,
    requested: AtomicUsize,
}

impl CompactionStops {
    /// # Errors
    /// `Incomplete`, with the subcode `CompactionAborted`, or of a requested compaction
    /// `ManualCompactionPaused`, if it is not to go on.
    fn check(&self, is_requested: bool) -> Result<()> {
        let (message, subcode) = if is_requested && self.requested.load(Ordering::Acquire) > 0 {
            let message = "requested compactions are disabled until enable_manual_compaction";
            (message, SubCode::ManualCompactionPaused)
        } else if self.all.load(Ordering::Acquire) > 0 {
            let message = "all compactions are aborted until resume_all_compactions";
            (message, SubCode::CompactionAborted)
        } else {
            return Ok(());
        };
        Err(Error::new(Code::Incomplete, message).with_subcode(subcode))
    }
}

/// A requested compaction, from the end of its flush on.
pub(in crate::db) struct RequestedCompaction<'a>(&'a Tree);

impl Drop for RequestedCompaction<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running.requested -= 1;
        self.0.progress.notify_all();
    }
}

/// Begins no flush and no automatic compaction, and punches no holes, until
/// [`continue_work`] was called as often. Waits for those that run.
///
/// # Errors
/// `ShutdownInProgress` once the database is being closed, which a pause would hold up.
pub(in crate::db) fn pause_work(tree: &Tree) -> Result<()> {
    let _asleep = tree.background.sleep_for_them();
    let mut state = tree.state.lock();
    if state.paused.is_over {
        return Err(Error::new(Code::ShutdownInProgress, "the database is closing"));
    }
    state.paused.flushes += 1;
    state.paused.compactions += 1;
    // Some wait for work only as long as it is not paused.
    tree.progress.notify_all();
    while state.running.flushes > 0 || state.running.compactions > 0 {
        tree.wait_for_progress(&mut state, None);
    }
    Ok(())
}

/// # Errors
/// `InvalidArgument` if nothing is paused.
pub(in crate::db) fn continue_work(tree: &Tree) -> Result<()> {
    let mut state = tree.state.lock();
    if state.paused.flushes == 0 {
        return Err(Error::invalid_argument("background work is not paused"));
    }
    state.paused.flushes -= 1;
    state.paused.compactions -= 1;
    look_again(tree, &mut state);
    Ok(())
}

/// Waits until no flush runs. Returns `false` at once if none does, or none may begin.
pub(in crate::db) fn wait_for_running_flushes(tree: &Tree) -> bool {
    let mut state = tree.state.lock();
    let mut has_waited = false;
    while state.running.flushes > 0 && state.paused.flushes == 0 {
        has_waited = true;
        tree.wait_for_progress(&mut state, None);
    }
    has_waited
}

/// The database is being closed: what it writes last is flushed.
pub(in crate::db) fn end_pauses(tree: &Tree) {
    let mut state = tree.state.lock();
    state.paused.is_over = true;
    let ended = std::mem::take(&mut state.paused.flushes);
    state.paused.compactions -= ended;
    if ended > 0 {
        look_again(tree, &mut state);
    }
}

/// Ends all compactions, and begins none until [`resume_compactions`] was called as
/// often. Waits for those that run.
pub(in crate::db) fn abort_compactions(tree: &Tree) {
    let _asleep = tree.background.sleep_for_them();
    let mut state = tree.state.lock();
    state.paused.compactions += 1;
    tree.stops.all.fetch_add(1, Ordering::AcqRel);
    tree.progress.notify_all();
    while state.running.compactions > 0 || state.running.requested > 0 {
        tree.wait_for_progress(&mut state, None);
    }
}

/// # Errors
/// `InvalidArgument` if none are aborted.
pub(in crate::db) fn resume_compactions(tree: &Tree) -> Result<()> {
    let mut state = tree.state.lock();
    if tree.stops.all.load(Ordering::Acquire) == 0 {
        return Err(Error::invalid_argument("no compactions are aborted"));
    }
    tree.stops.all.fetch_sub(1, Ordering::AcqRel);
    state.paused.compactions -= 1;
    look_again(tree, &mut state);
    Ok(())
}

/// # Errors
/// `Aborted` while background work is paused, or compactions are aborted.
pub(in crate::db) fn check_work_goes_on(tree: &Tree) -> Result<()> {
    check_not_paused(tree, &tree.state.lock())
}

/// How often compactions were aborted and not resumed.
pub(in crate::db) fn aborts(tree: &Tree) -> usize {
    tree.stops.all.load(Ordering::Acquire)
}

/// Ends requested compactions, and begins none until [`enable_requested`] was called as
/// often. Waits for those that run.
pub(in crate::db) fn disable_requested(tree: &Tree) {
    let _asleep = tree.background.sleep_for_them();
    let mut state = tree.state.lock();
    tree.stops.requested.fetch_add(1, Ordering::AcqRel);
    tree.progress.notify_all();
    while state.running.requested > 0 {
        tree.wait_for_progress(&mut state, None);
    }
}

/// # Errors
/// `InvalidArgument` if none are disabled.
pub(in crate::db) fn enable_requested(tree: &Tree) -> Result<()> {
    let _state = tree.state.lock();
    if tree.stops.requested.load(Ordering::Acquire) == 0 {
        return Err(Error::invalid_argument("requested compactions are not disabled"));
    }
    tree.stops.requested.fetch_sub(1, Ordering::AcqRel);
    Ok(())
}

/// A requested compaction begins. Whoever stops it waits until this is dropped.
///
/// # Errors
/// `Incomplete` if none may begin.
pub(in crate::db) fn begin_requested(tree: &Tree) -> Result<RequestedCompaction<'_>> {
    let mut state = tree.state.lock();
    tree.stops.check(true)?;
    state.running.requested += 1;
    Ok(RequestedCompaction(tree))
}

/// # Errors
/// `Incomplete` if a compaction is not to begin or go on.
pub(in crate::db) fn check_not_stopped(tree: &Tree, is_requested: bool) -> Result<()> {
    tree.stops.check(is_requested)
}

fn look_again(tree: &Tree, state: &mut MutexGuard<'_, State>) {
    state.note_all();
    tree.update_stall(state);
    tree.announce_work(state);
    tree.progress.notify_all();
}

/// # Errors
/// `Aborted` while background work is paused, or compactions are aborted.
pub(in crate::db) fn check_not_paused(tree: &Tree, state: &State) -> Result<()> {
    let message = if state.paused.flushes > 0 {
        "background work is paused"
    } else if aborts(tree) > 0 {
        "all compactions are aborted"
    } else {
        return Ok(());
    };
    Err(Error::new(Code::Aborted, message))
}
