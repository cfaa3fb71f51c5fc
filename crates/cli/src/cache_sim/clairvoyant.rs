//! The bound that no policy can pass: evict what will be used furthest in the future, or not at all
//! (Belady 1966).
//!
//! An object that will be used later than all that would have to go for it does not come in. With
//! objects of one size no policy has more hits; with different sizes the best choice is hard to
//! find, and this one is only nearly the best.

use std::collections::BinaryHeap;

use crate::progress::Progress;

use super::replay::Counts;
use super::trace::{Request, Trace};

/// An object that is not used again, or is deleted before.
const NEVER: u32 = u32::MAX;
/// Outdated entries of the heap that are not worth clearing away.
const OUTDATED_MIN: usize = 1 << 16;
const STEP: usize = 1 << 16;

/// For each request, the number of the next use of its object.
pub fn next_uses(requests: &[Request]) -> Vec<u32> {
    let mut upcoming = Vec::new();
    let mut next = vec![NEVER; requests.len()];
    for (at, request) in requests.iter().enumerate().rev() {
        let object = request.object() as usize;
        if object >= upcoming.len() {
            upcoming.resize(object + 1, NEVER);
        }
        let this = if request.is_deletion() { NEVER } else { at as u32 };
        next[at] = std::mem::replace(&mut upcoming[object], this);
    }
    next
}

/// What is in the cache, by next use.
struct Cache<'a> {
    trace: &'a Trace,
    /// Of each object in the cache, its next use; else nothing.
    next: Vec<Option<u32>>,
    /// (next use, object); an entry is outdated if `next` says otherwise.
    order: BinaryHeap<(u32, u32)>,
    objects: usize,
    free: u64,
}

impl Cache<'_> {
    fn remove(&mut self, object: u32) {
        if self.next[object as usize].take().is_some() {
            self.objects -= 1;
            self.free += self.trace.size(object);
        }
    }

    fn put(&mut self, object: u32, next: u32) {
        self.next[object as usize] = Some(next);
        self.order.push((next, object));
        if self.order.len() > 2 * self.objects + OUTDATED_MIN {
            let next = &self.next;
            self.order.retain(|(use_, object)| next[*object as usize] == Some(*use_));
        }
    }

    /// The object used last of all, and when.
    fn furthest(&mut self) -> Option<(u32, u32)> {
        while let Some(&(next, object)) = self.order.peek() {
            if self.next[object as usize] == Some(next) {
                return Some((next, object));
            }
            self.order.pop();
        }
        None
    }

    /// Puts in an object that is not there, unless others are worth more.
    fn admit(&mut self, object: u32, next: u32, capacity: u64) {
        let size = self.trace.size(object);
        if next == NEVER || size > capacity {
            return;
        }
        while self.free < size {
            match self.furthest() {
                Some((furthest, victim)) if furthest > next => self.remove(victim),
                _ => return,
            }
        }
        self.free -= size;
        self.objects += 1;
        self.put(object, next);
    }
}

/// Replays a trace with a cache of `capacity` bytes; `future` is from [`next_uses`].
pub fn replay(trace: &Trace, future: &[u32], capacity: u64, progress: &Progress) -> Counts {
    let mut counts = Counts::default();
    let next = vec![None; trace.sizes.len()];
    let mut cache = Cache { trace, next, order: BinaryHeap::new(), objects: 0, free: capacity };
    for (requests, future) in trace.requests.chunks(STEP).zip(future.chunks(STEP)) {
        for (&request, &next) in requests.iter().zip(future) {
            let object = request.object();
            if request.is_deletion() {
                cache.remove(object);
                continue;
            }
            let is_hit = cache.next[object as usize].is_some();
            counts.count(is_hit, trace.size(object));
            match (is_hit, next) {
                (true, NEVER) => cache.remove(object),
                (true, next) => cache.put(object, next),
                (false, next) => cache.admit(object, next, capacity),
            }
        }
        progress.add(requests.len() as u64);
    }
    counts
}
