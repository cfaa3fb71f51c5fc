//! Deletions that a program has disabled, and how often.

use crate::db::tree::Tree;

/// Removes no file until [`end`] was called as often, or once with `force`.
pub(in crate::db) fn begin(tree: &Tree) {
    let mut state = tree.state.lock();
    state.paused.deletions += 1;
    state.paused.on_request += 1;
}

/// How many pauses of [`begin`] end now. They are the caller's to end.
pub(in crate::db) fn end(tree: &Tree, force: bool) -> usize {
    let mut state = tree.state.lock();
    let requested = &mut state.paused.on_request;
    let ended = if force { *requested } else { (*requested).min(1) };
    *requested -= ended;
    ended
}

/// How many pauses of [`begin`] there are.
pub(in crate::db) fn count(tree: &Tree) -> usize {
    tree.state.lock().paused.on_request
}
