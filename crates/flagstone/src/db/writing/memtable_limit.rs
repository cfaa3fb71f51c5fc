//! The limit for all memtables together, `db_write_buffer_size`.
//!
//! Writers count the bytes of the memtables that are written to. Where these have half of the
//! option's bytes, the largest are switched, until half of the half is on its way to the disk. When
//! all that are not flushed have the whole, writers wait for flushes.

use std::cmp::Reverse;

use crate::base::Sometimes;
use crate::db::writing::pipeline::Pipeline;
use crate::db::writing::write::{Commit, WriteTarget};

impl Pipeline {
    /// Whether the memtables that are written to have grown so large together that some are to be
    /// flushed.
    #[inline]
    pub(in crate::db) fn memtable_limit_reached(&self, commit: &Commit) -> bool {
        commit.memtable_bytes >= self.limits.memtable_bytes()
    }

    /// Chooses the largest memtables that are written to, until they have half of what all of these
    /// may have.
    pub(in crate::db) fn want_switch_of_largest(&self, commit: &mut Commit) {
        Sometimes::LargestMemtablesSwitched.reached();
        let enough = self.limits.memtable_bytes() / 2;
        let mut targets: Vec<&mut WriteTarget> = commit.targets.values_mut().collect();
        targets.retain(|target| target.counted > 0);
        targets.sort_by_key(|target| Reverse(target.counted));
        let mut chosen = 0;
        for target in targets {
            if chosen > enough {
                break;
            }
            chosen += target.counted;
            target.switch_wanted = true;
        }
    }
}

#[cfg(test)]
mod tests;
