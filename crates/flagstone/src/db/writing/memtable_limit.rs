//! The limit for all memtables together, `db_write_buffer_size`.
//!
//! Writers count the bytes of the memtables that are written to. Where these have half of the
//! option's bytes, the largest are switched, until half of the half is on its way to the disk. When
//! all that are not flushed have the whole, writers wait for flushes.

use std::cmp::Reverse;

use crate::base::Sometimes;
use crate::db::writing::commit::{Commit, WriteTarget};
use crate::options::FlushReason;

impl Commit {
    /// Chooses the largest memtables that are written to, until they have more than `enough`.
    pub(in crate::db) fn want_switch_of_largest(&mut self, enough: u64) {
        Sometimes::LargestMemtablesSwitched.reached();
        let mut targets: Vec<&mut WriteTarget> = self.targets.values_mut().collect();
        targets.retain(|target| target.to.counted() > 0);
        targets.sort_by_key(|target| Reverse(target.to.counted()));
        let mut chosen = 0;
        for target in targets {
            if chosen > enough {
                break;
            }
            chosen += target.to.counted();
            target.switch_wanted = Some(FlushReason::MemoryLimit);
        }
    }
}

#[cfg(test)]
mod tests;
