//! Lookups that read a block of a table in vain: their number decides when the table goes down a level (`seek_compaction_bytes`).
//!
//! A lookup asks one table after the other; each that its filter lets pass, and that has not the key, costs the search of a
//! block. LevelDB has such a table compacted into the next level when these searches have cost as much as that would.

use std::cell::Cell;

use crate::base::sync::Ordering;
use crate::compaction::pick::vain_seeks_allowed;
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::statistics::Ticker;
use crate::manifest::TableFile;

/// One of so many is counted, for all of them: readers of a table would else fight over its counter.
const COUNTED_OF: u32 = 16;

thread_local! {
    static UNCOUNTED: Cell<u32> = const { Cell::new(0) };
}

impl DbInner {
    /// Notes that a lookup searched a block of a table in vain.
    #[inline]
    pub(in crate::db) fn note_vain_seek(&self, family: &Family, file: &TableFile) {
        let bytes = family.seek_compaction_bytes.load(Ordering::Relaxed);
        if bytes > 0 {
            self.count_vain_seek(family, file, bytes);
        }
    }

    #[cold]
    fn count_vain_seek(&self, family: &Family, file: &TableFile, bytes: u64) {
        let count = UNCOUNTED.get() + 1;
        UNCOUNTED.set(count % COUNTED_OF);
        if count < COUNTED_OF {
            return;
        }
        self.statistics.add(Ticker::VainSeeks, u64::from(COUNTED_OF));
        let before = file.vain_seeks.fetch_add(COUNTED_OF, Ordering::Relaxed);
        let allowed = vain_seeks_allowed(file.meta.size, bytes);
        if before < allowed && before.saturating_add(COUNTED_OF) >= allowed {
            let mut state = self.state.lock();
            state.note(family.id);
            self.announce_work(&mut state);
        }
    }
}
