//! Which entry of a cache goes first: the published policies, as plain data structures over slot
//! numbers.
//!
//! A policy knows no keys and no values. Whoever holds those (the cache, or `flagstone cache-sim`)
//! gives every entry a slot, says what happens to it, and asks [`Policy::evict`] before something
//! new comes in. All sizes are charges in bytes; with charges of one, every policy does exactly
//! what its paper says, step by step. `testdata` has traces worked by hand.
//!
//! | Name | Policy | Published by |
//! |---|---|---|
//! | `lru` | [`Lru`], with RocksDB's pool for entries of high priority | `cache/lru_cache.h` of RocksDB |
//! | `fifo` | [`Fifo`] | |
//! | `lfu` | [`Lfu`], the longest unused of the least frequent first | Shah, Mitra, Matani 2010 |
//! | `slru` | [`Segmented`], two segments | Karedla, Love, Wherry, IEEE Computer 1994 |
//! | `s4lru` | [`Segmented`], four strict quarters | Huang et al., SOSP 2013 |
//! | `s3_fifo` | [`S3Fifo`] | Yang et al., SOSP 2023 |
//! | `sieve` | [`Sieve`] | Zhang et al., NSDI 2024 |
//! | `w_tiny_lfu` | [`TinyLfu`] | Einziger, Friedman, Manes, ACM TOS 2017 |

mod fifo;
mod ghost;
mod lfu;
mod list;
mod lru;
mod s3_fifo;
mod segmented;
mod sieve;
mod sketch;
mod tiny_lfu;

pub use fifo::Fifo;
pub use ghost::{Ghosts, HashedGhosts, NumberedGhosts};
pub use lfu::Lfu;
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use segmented::Segmented;
pub use sieve::Sieve;
pub use tiny_lfu::TinyLfu;

use super::Priority;

/// What a policy is told of a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// What stays the same when the entry goes and comes back: its key, or a hash of 64 bits.
    pub id: u64,
    /// Its size in bytes.
    pub charge: u64,
    /// Only [`Lru`] looks at it.
    pub priority: Priority,
}

impl Incoming {
    /// An entry of low priority.
    pub fn new(id: u64, charge: u64) -> Self {
        Self { id, charge, priority: Priority::Low }
    }
}

/// The order in which entries leave a cache.
///
/// The caller keeps to this: a slot holds one entry at a time, from [`Policy::inserted`] until
/// [`Policy::evict`] returns it or [`Policy::removed`] names it; and nothing is inserted before
/// `evict` has returned `None` for its charge, except that what `evict` has returned may come back
/// once it has returned `None` for a charge with theirs in it, or nothing else comes in.
pub trait Policy {
    /// The capacity is now that many bytes. What no longer fits leaves by the next calls of
    /// [`Policy::evict`].
    fn set_capacity(&mut self, capacity: u64);

    /// The largest entry that may come in.
    fn largest(&self) -> u64;

    /// An entry has come into a slot that had none.
    fn inserted(&mut self, slot: u32, entry: Incoming);

    /// An entry has been used.
    fn hit(&mut self, slot: u32);

    /// Takes out the entry that must go before one with this charge may come in; `None` if there is
    /// room.
    fn evict(&mut self, incoming: u64) -> Option<u32>;

    /// An entry has left for another reason.
    fn removed(&mut self, slot: u32);

    /// Bytes that it has for entries, and for what it remembers of those that are gone, beyond what
    /// a few take.
    fn memory(&self) -> u64 {
        0
    }

    /// Reads what is kept of an id whose entry may soon come in, for callers that know what comes
    /// next: memory then need not be waited for. It changes nothing.
    #[inline]
    fn touch(&self, _id: u64) {}
}

/// The policies by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyKind {
    /// The longest unused entry goes first.
    #[default]
    Lru,
    /// The oldest goes first.
    Fifo,
    /// The least frequently used goes first.
    Lfu,
    /// Two queues: an entry that is used again moves to the protected one.
    Slru,
    /// Four queues: each use moves an entry one queue up.
    S4Lru,
    /// S3-FIFO.
    S3Fifo,
    /// SIEVE.
    Sieve,
    /// W-TinyLFU.
    WTinyLfu,
}

impl PolicyKind {
    /// All of them, with their names.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("lru", Self::Lru),
        ("fifo", Self::Fifo),
        ("lfu", Self::Lfu),
        ("slru", Self::Slru),
        ("s4lru", Self::S4Lru),
        ("s3_fifo", Self::S3Fifo),
        ("sieve", Self::Sieve),
        ("w_tiny_lfu", Self::WTinyLfu),
    ];

    /// An empty policy of this kind, without capacity; `high_priority_ratio` as for `Lru::new`.
    pub fn build(self, high_priority_ratio: f64) -> Box<dyn Policy + Send> {
        match self {
            Self::Lru => Box::new(Lru::new(high_priority_ratio)),
            Self::Fifo => Box::new(Fifo::default()),
            Self::Lfu => Box::new(Lfu::default()),
            Self::Slru => Box::new(Segmented::slru()),
            Self::S4Lru => Box::new(Segmented::s4lru()),
            Self::S3Fifo => Box::new(<S3Fifo>::default()),
            Self::Sieve => Box::new(Sieve::default()),
            Self::WTinyLfu => Box::new(TinyLfu::default()),
        }
    }
}

/// Of so many slots nobody counts what they take: a shard may be of any size.
pub(super) const FEW_SLOTS: usize = 64;

/// Room for so many is made at first.
const MIN_SLOTS: usize = 4;

/// A part of a capacity.
fn part(capacity: u64, numerator: u64, denominator: u64) -> u64 {
    (u128::from(capacity) * u128::from(numerator) / u128::from(denominator)) as u64
}

/// What a vector with something for each slot takes beyond its first few, in bytes.
#[inline]
pub(super) fn memory_of<T>(per_slot: &Vec<T>) -> u64 {
    (per_slot.capacity().saturating_sub(FEW_SLOTS) * size_of::<T>()) as u64
}

/// The place of a slot in a vector with something for each slot, which grows as slots come into
/// use: by a quarter, as what is left over is memory that entries cannot have.
pub(super) fn at_slot<T: Clone>(per_slot: &mut Vec<T>, slot: u32, empty: T) -> &mut T {
    let at = slot as usize;
    if at >= per_slot.len() {
        if at >= per_slot.capacity() {
            per_slot.reserve_exact((at + 1 + at / 4).max(MIN_SLOTS) - per_slot.len());
        }
        per_slot.resize(at + 1, empty);
    }
    &mut per_slot[at]
}

#[cfg(test)]
mod tests;
