//! Replays a trace through a policy.

use std::hint::black_box;

use flagstone::cache::PolicyKind;
use flagstone::cache::policy::{
    Fifo, Incoming, Lfu, Lru, NumberedGhosts, Policy, S3Fifo, Segmented, Sieve, TinyLfu,
};
use rustix::time::{ClockId, clock_gettime};

use crate::progress::Progress;

use super::clairvoyant;
use super::places::Places;
use super::trace::{Request, Trace};

/// Who decides what leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Player {
    /// One of the engine's policies.
    Policy(PolicyKind),
    /// One that knows the future.
    Clairvoyant,
}

/// What came of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Uses, without deletions.
    pub uses: u64,
    /// Uses that found their object.
    pub hits: u64,
    /// The bytes of all uses.
    pub bytes: u64,
    /// The bytes of those that found their object.
    pub hit_bytes: u64,
    /// Seconds of one core.
    pub seconds: f64,
}

impl Counts {
    /// The part of uses that found their object.
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.uses.max(1) as f64
    }

    /// The part of bytes used that were there.
    pub fn byte_hit_ratio(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes.max(1) as f64
    }

    /// One more use.
    #[inline]
    pub fn count(&mut self, is_hit: bool, size: u64) {
        self.uses += 1;
        self.bytes = self.bytes.saturating_add(size);
        self.hits += u64::from(is_hit);
        self.hit_bytes = self.hit_bytes.saturating_add(if is_hit { size } else { 0 });
    }
}

/// Requests after which progress is told.
const STEP: usize = 1 << 16;

impl Player {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clairvoyant => "clairvoyant",
            Self::Policy(kind) => PolicyKind::NAMES
                .iter()
                .find(|(_, known)| *known == kind)
                .map_or("", |(name, _)| name),
        }
    }

    /// Whether its replays take much longer than others'.
    pub fn is_slow(self) -> bool {
        matches!(self, Self::Clairvoyant | Self::Policy(PolicyKind::Lfu | PolicyKind::WTinyLfu))
    }

    /// Replays a trace with a cache of `capacity` bytes; `future` is for the clairvoyant only.
    pub fn play(self, trace: &Trace, future: &[u32], capacity: u64, progress: &Progress) -> Counts {
        let before = thread_seconds();
        let mut counts = match self {
            Self::Clairvoyant => clairvoyant::replay(trace, future, capacity, progress),
            Self::Policy(PolicyKind::Lru) => replay(Lru::new(0.0), trace, capacity, progress),
            Self::Policy(PolicyKind::Fifo) => replay(Fifo::default(), trace, capacity, progress),
            Self::Policy(PolicyKind::Lfu) => replay(Lfu::default(), trace, capacity, progress),
            Self::Policy(PolicyKind::Slru) => replay(Segmented::slru(), trace, capacity, progress),
            Self::Policy(PolicyKind::S4Lru) => {
                replay(Segmented::s4lru(), trace, capacity, progress)
            }
            Self::Policy(PolicyKind::S3Fifo) => {
                replay(S3Fifo::<NumberedGhosts>::default(), trace, capacity, progress)
            }
            Self::Policy(PolicyKind::Sieve) => replay(Sieve::default(), trace, capacity, progress),
            Self::Policy(PolicyKind::WTinyLfu) => {
                replay(TinyLfu::default(), trace, capacity, progress)
            }
        };
        counts.seconds = thread_seconds() - before;
        counts
    }
}

fn thread_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Requests whose memory is read ahead at a time: all their loads fit into what a processor keeps
/// in flight.
const BATCH: usize = 32;

/// Generic, so that each policy gets a loop of its own without calls.
fn replay<P: Policy>(mut policy: P, trace: &Trace, capacity: u64, progress: &Progress) -> Counts {
    policy.set_capacity(capacity);
    let mut counts = Counts::default();
    let mut places = Places::new(trace.sizes.len());
    for requests in trace.requests.chunks(STEP) {
        for batch in requests.chunks(BATCH) {
            touch(&policy, trace, &places, batch);
            for &request in batch {
                step(&mut policy, trace, &mut places, request, &mut counts);
            }
        }
        progress.add(requests.len() as u64);
    }
    counts
}

/// Brings what the requests ask for into the processor's caches. None of these loads waits for
/// another, while a step that misses memory holds up all that follow it: the processor has to guess
/// whether it is a hit, and starts again from there when it was wrong.
#[inline]
fn touch<P: Policy>(policy: &P, trace: &Trace, places: &Places, batch: &[Request]) {
    for request in batch {
        places.touch(request.object());
        black_box(trace.size(request.object()));
    }
    for request in batch {
        policy.touch(u64::from(request.object()));
    }
}

#[inline]
fn step<P: Policy>(
    policy: &mut P,
    trace: &Trace,
    places: &mut Places,
    request: Request,
    counts: &mut Counts,
) {
    let object = request.object();
    let slot = places.slot_of(object);
    if request.is_deletion() {
        if let Some(slot) = slot {
            policy.removed(slot);
            places.free(slot);
        }
        return;
    }
    let size = trace.size(object);
    counts.count(slot.is_some(), size);
    if let Some(slot) = slot {
        policy.hit(slot);
        return;
    }
    if size > policy.largest() {
        return;
    }
    while let Some(victim) = policy.evict(size) {
        places.free(victim);
    }
    policy.inserted(places.take(object), Incoming::new(u64::from(object), size));
}
