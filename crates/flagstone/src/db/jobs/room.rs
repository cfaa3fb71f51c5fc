//! Compactions that wait for one another, since there is no room for both.
//!
//! - Of those that merge all runs of a family, or a piece or part of them, one has its turn at a
//!   time, whoever asked for it: the scratch that `compaction/pick/scratch.rs` tells is there once.
//!   Its turn ends when its inputs are removed.
//! - On a full disk, where one has found no room, those that nobody asked for and that write tables
//!   begin one at a time until one has ended well: two together could take the space from each
//!   other, again and again. One that began before is not waited for: it may take hours, and there
//!   may be space in a moment. Nor is anything waited for where the file system tells of room for
//!   all that run and the next.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::db::jobs::Jobs;
use crate::db::tree::compaction_job::FreeSpace;

/// What is free, where a compaction has found no room: else nobody wants to know. Asked without
/// the state lock, since a file system may take its time to tell.
pub(super) fn free_space(jobs: &Jobs) -> FreeSpace {
    if jobs.context.poison.check_starved().is_ok() {
        return FreeSpace::default();
    }
    let families = jobs.tree.families.read();
    let directories =
        families.values().flat_map(|family| family.paths.directories().iter().cloned());
    let directories: BTreeSet<_> = directories.collect();
    drop(families);
    let free = |directory: Arc<Path>| {
        let free = jobs.context.env.fs.free_space(&directory).ok().flatten()?;
        Some((directory, free))
    };
    FreeSpace(directories.into_iter().filter_map(free).collect())
}

#[cfg(test)]
mod tests;
