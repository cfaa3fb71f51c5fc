//! Tells a policy of hits without a lock.
//!
//! Policies are changed under the shard's lock, and a hit must take none. So hits are written down
//! here, and whoever takes the lock next to change something hands them to the policy first.
//!
//! An entry is written down once between two such changes, and no more than [`LENGTH`] entries are;
//! what is hit beyond that goes untold: only its entry remembers the round. Decisions fall only
//! when something comes in, so what they are based on is which entries were hit since the last one
//! did, in the order of their first hits. A record that meets the reading of the log may be lost,
//! or name a slot that has another entry by now: a hit too few or too many.

use crate::base::sync::{AtomicU32, Ordering};

/// How many hits are told at most.
pub(super) const LENGTH: usize = 64;
/// No slot.
const NONE: u32 = u32::MAX;

/// Hits since the last change.
pub(super) struct HitLog {
    /// Counts readings, from 1.
    round: AtomicU32,
    length: AtomicU32,
    slots: [AtomicU32; LENGTH],
}

impl HitLog {
    pub(super) fn new() -> Self {
        Self {
            round: AtomicU32::new(1),
            length: AtomicU32::new(0),
            slots: [const { AtomicU32::new(NONE) }; LENGTH],
        }
    }

    /// Writes a hit down; `seen` is the entry's own, at first zero.
    #[inline]
    pub(super) fn record(&self, slot: u32, seen: &AtomicU32) {
        let round = self.round.load(Ordering::Relaxed);
        if seen.load(Ordering::Relaxed) == round {
            return;
        }
        // Also where the log is full: it says when the entry was used last.
        seen.store(round, Ordering::Relaxed);
        if self.length.load(Ordering::Relaxed) as usize >= LENGTH {
            return;
        }
        let at = self.length.fetch_add(1, Ordering::Relaxed) as usize;
        if let Some(place) = self.slots.get(at) {
            place.store(slot, Ordering::Relaxed);
        }
    }

    /// The round before the present one: what was used then is logged when it is hit.
    pub(super) fn round_before(&self) -> u32 {
        self.round.load(Ordering::Relaxed).wrapping_sub(1)
    }

    /// Begins a period, of which the round that is returned is the first; by the thread that has
    /// just read the log.
    pub(super) fn begin_period(&self) -> u32 {
        // Two rounds: what comes in belongs to the round before.
        self.round.fetch_add(2, Ordering::Relaxed).wrapping_add(1)
    }

    /// Reads the log and begins another; by one thread at a time.
    pub(super) fn read(&self, mut hit: impl FnMut(u32)) {
        let length = self.length.load(Ordering::Relaxed) as usize;
        if length == 0 {
            return;
        }
        for place in &self.slots[..length.min(LENGTH)] {
            match place.swap(NONE, Ordering::Relaxed) {
                // Claimed, and not written yet.
                NONE => {}
                slot => hit(slot),
            }
        }
        self.round.fetch_add(1, Ordering::Relaxed);
        self.length.store(0, Ordering::Relaxed);
    }
}
