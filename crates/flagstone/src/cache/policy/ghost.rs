//! A queue of ids without entries: what left the cache lately.
//!
//! [`NumberedGhosts`] is for callers whose ids are numbers from 0 on, below 2^32: a stamp for each
//! is then enough. [`HashedGhosts`] is for all others.
//!
//! As in the S3-FIFO paper's implementation there is no queue but a table of (id, stamp). The stamp
//! is the sum of all charges that had come in before the id did; it is in the queue while what came
//! in since, itself included, is no more than the capacity. The table, of open addressing, drops
//! what has left the queue when it fills up.

use super::at_slot;

/// The stamp of a free place.
const FREE: u64 = u64::MAX;
/// The stamp of an id that was taken out: its place stays, so that what was put beyond it is found.
const TAKEN: u64 = u64::MAX - 1;
const MIN_PLACES: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Place {
    id: u64,
    stamp: u64,
}

impl Place {
    const EMPTY: Self = Self { id: 0, stamp: FREE };
}

/// Ids that left lately.
pub trait Ghosts: Default {
    /// The queue holds ids of that many bytes.
    fn set_capacity(&mut self, capacity: u64);

    /// An id comes in.
    fn push(&mut self, id: u64, charge: u64);

    /// Whether an id is in the queue; it is taken out.
    fn take(&mut self, id: u64) -> bool;

    /// Bytes for more than a few ids.
    fn memory(&self) -> u64 {
        0
    }

    /// Reads what is kept of an id that may soon be asked for.
    #[inline]
    fn touch(&self, _id: u64) {}
}

/// Ids that are places in a vector.
#[derive(Debug, Default)]
pub struct NumberedGhosts {
    stamps: Vec<u64>,
    clock: u64,
    capacity: u64,
}

impl Ghosts for NumberedGhosts {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    #[inline]
    fn push(&mut self, id: u64, charge: u64) {
        *at_slot(&mut self.stamps, id as u32, TAKEN) = self.clock;
        self.clock += charge.max(1);
    }

    #[inline]
    fn take(&mut self, id: u64) -> bool {
        let Some(stamp) = self.stamps.get_mut(id as usize) else { return false };
        let stamp = std::mem::replace(stamp, TAKEN);
        stamp != TAKEN && self.clock - stamp <= self.capacity
    }

    #[inline]
    fn touch(&self, id: u64) {
        std::hint::black_box(self.stamps.get(id as usize).copied());
    }
}

/// Ids in a table.
#[derive(Debug)]
pub struct HashedGhosts {
    places: Vec<Place>,
    /// How many places are not free.
    used: usize,
    /// The largest capacity since they were made.
    made_for: u64,
    clock: u64,
    capacity: u64,
}

impl Default for HashedGhosts {
    fn default() -> Self {
        Self { places: vec![Place::EMPTY; MIN_PLACES], used: 0, made_for: 0, clock: 0, capacity: 0 }
    }
}

impl Ghosts for HashedGhosts {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        // A cache of a budget shrinks in many small steps.
        if capacity < self.made_for / 2 {
            self.rebuild(None);
        }
        self.made_for = self.made_for.max(capacity);
    }

    #[inline]
    fn push(&mut self, id: u64, charge: u64) {
        let place = Place { id, stamp: self.clock };
        let at = self.place_for(id);
        if self.places[at].stamp != FREE {
            self.places[at] = place;
        } else if self.used * 2 < self.places.len() {
            self.used += 1;
            self.places[at] = place;
        } else {
            self.rebuild(Some(place));
        }
        // What costs nothing must leave again, too.
        self.clock += charge.max(1);
    }

    fn memory(&self) -> u64 {
        ((self.places.len() - MIN_PLACES) * size_of::<Place>()) as u64
    }

    #[inline]
    fn take(&mut self, id: u64) -> bool {
        let at = self.find(id);
        let found = self.is_queued(self.places[at]);
        if found {
            self.places[at].stamp = TAKEN;
        }
        found
    }
}

impl HashedGhosts {
    #[inline]
    fn is_queued(&self, place: Place) -> bool {
        place.stamp < TAKEN && self.clock - place.stamp <= self.capacity
    }

    /// Where the search for an id begins.
    #[inline]
    fn start(&self, id: u64) -> usize {
        (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// Where an id is, or the free place that its search ends at.
    #[inline]
    fn find(&self, id: u64) -> usize {
        let mut at = self.start(id);
        while self.places[at].stamp != FREE && self.places[at].id != id {
            at = self.next(at);
        }
        at
    }

    /// Where to put an id: its own place, else the first on the way whose id has left, else the
    /// free one.
    #[inline]
    fn place_for(&self, id: u64) -> usize {
        let mut at = self.start(id);
        let mut left = None;
        while self.places[at].stamp != FREE && self.places[at].id != id {
            if left.is_none() && !self.is_queued(self.places[at]) {
                left = Some(at);
            }
            at = self.next(at);
        }
        if self.places[at].stamp == FREE { left.unwrap_or(at) } else { at }
    }

    /// Makes the table at most a third full, and maybe puts one more in. (Half full, a search in
    /// vain looks at two or three places; three quarters full, at eight.)
    #[cold]
    fn rebuild(&mut self, more: Option<Place>) {
        let is_queued = |place: &Place| self.is_queued(*place);
        let mut queued: Vec<Place> = self.places.iter().copied().filter(is_queued).collect();
        queued.extend(more);
        let places = (queued.len() * 3).next_power_of_two().max(MIN_PLACES);
        self.places = vec![Place::EMPTY; places];
        (self.used, self.made_for) = (queued.len(), self.capacity);
        for place in queued {
            let at = self.find(place.id);
            self.places[at] = place;
        }
    }
}

#[cfg(test)]
mod tests;
