//! A queue of ids without entries: what left the cache lately.
//!
//! As in the S3-FIFO paper's implementation there is no queue but a table of (id, stamp). The stamp is the sum of all
//! charges that had come in before the id did; it is in the queue while what came in since, itself included, is no more
//! than the capacity. The table, of open addressing, drops what has left the queue when it fills up.

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
#[derive(Debug)]
pub(super) struct Ghost {
    places: Vec<Place>,
    /// How many places are not free.
    used: usize,
    clock: u64,
    capacity: u64,
}

impl Default for Ghost {
    fn default() -> Self {
        Self { places: vec![Place::EMPTY; MIN_PLACES], used: 0, clock: 0, capacity: 0 }
    }
}

impl Ghost {
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    /// An id comes in.
    #[inline]
    pub(super) fn push(&mut self, id: u64, charge: u64) {
        let place = Place { id, stamp: self.clock };
        let at = self.place_for(id);
        if self.places[at].stamp != FREE {
            self.places[at] = place;
        } else if self.used * 2 < self.places.len() {
            self.used += 1;
            self.places[at] = place;
        } else {
            self.rebuild(place);
        }
        // What costs nothing must leave again, too.
        self.clock += charge.max(1);
    }

    /// Whether an id is in the queue; it is taken out.
    #[inline]
    pub(super) fn take(&mut self, id: u64) -> bool {
        let at = self.find(id);
        let found = self.is_queued(self.places[at]);
        if found {
            self.places[at].stamp = TAKEN;
        }
        found
    }

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

    /// Where to put an id: its own place, else the first on the way whose id has left, else the free one.
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

    /// Makes the table at most a third full and puts one more in. (Half full, a search in vain looks at two or three
    /// places; three quarters full, at eight.)
    #[cold]
    fn rebuild(&mut self, more: Place) {
        let is_queued = |place: &Place| self.is_queued(*place);
        let mut queued: Vec<Place> = self.places.iter().copied().filter(is_queued).collect();
        queued.push(more);
        let places = (queued.len() * 3).next_power_of_two().max(MIN_PLACES);
        self.places.clear();
        self.places.resize(places, Place::EMPTY);
        self.used = queued.len();
        for place in queued {
            let at = self.find(place.id);
            self.places[at] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn it_does_what_a_queue_does() {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut ghost, mut queue) = (Ghost::default(), VecDeque::new());
        ghost.set_capacity(500);
        for _ in 0..100_000 {
            let id = random.u64(..1000);
            let expected = queue.iter().any(|(queued, _)| *queued == Some(id));
            assert_eq!(ghost.take(id), expected);
            // What is taken leaves a gap that nothing fills.
            queue.iter_mut().filter(|(queued, _)| *queued == Some(id)).for_each(|(queued, _)| *queued = None);
            let charge = random.u64(1..4);
            ghost.push(id, charge);
            queue.push_back((Some(id), charge));
            while queue.iter().map(|(_, charge)| charge).sum::<u64>() > 500 {
                queue.pop_front();
            }
        }
        assert!(ghost.places.len() <= 2048, "{} places", ghost.places.len());
    }
}
