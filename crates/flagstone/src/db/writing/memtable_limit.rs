//! The limit for all memtables together, `db_write_buffer_size`.
//!
//! Writers count the bytes of the memtables that are written to. Where these have half of the
//! option's bytes, the largest are switched, until half of the half is on its way to the disk. When
//! all that are not flushed have the whole, writers wait for flushes.

use std::cmp::Reverse;

use crate::base::Sometimes;
use crate::db::writing::commit::{Commit, WriteTarget};

impl Commit {
    /// Whether the memtables that are written to have so many bytes together that some are to be
    /// flushed.
    #[inline]
    pub(in crate::db) fn memtables_reach(&self, limit: u64) -> bool {
        self.memtable_bytes >= limit
    }

    /// Chooses the largest memtables that are written to, until they have more than `enough`.
    pub(in crate::db) fn want_switch_of_largest(&mut self, enough: u64) {
        Sometimes::LargestMemtablesSwitched.reached();
        let mut targets: Vec<&mut WriteTarget> = self.targets.values_mut().collect();
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
