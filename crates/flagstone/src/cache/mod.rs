//! Caches of blocks and blobs, bounded by a charge.
//!
//! - [`policy`]: which entry goes first, as plain data structures over slot numbers
//! - `table`: finds entries without a lock, in `slots`; `hits`: tells the policy of hits, without
//!   one, too
//! - `shard`: a part of the cache, with a lock for changes
//! - `Cache`: shards
//! - `misses`: what misses cost
//! - `owner`: whose entries they are
//! - `account`: who holds memory beside the cache
//! - `trace`: records what a cache is asked for
//!
//! **Thread safety.** A key's hash chooses its shard. A lookup takes no lock, and writes nothing
//! that other lookups write but the value's own count, for the first hits after a change the hit
//! log, and a hint that was wrong. A change takes the shard's lock, under which no value is
//! dropped.
//!
//! **Invariants.** The charges of a shard's entries, and what it takes to find them and to know
//! which goes first, never exceed its part of the capacity but for one entry's time: room for more
//! entries than ever before is made with an entry, and given up by others with the next. Only if
//! that is more than a half of the capacity, as where this was lowered to little or entries are of
//! a few bytes, they have the other half all the same. What is in use stays in the cache and in its
//! charge as long as it can, since to let go of it would free no memory.

mod account;
mod entry;
mod hits;
mod key;
mod misses;
mod owner;
pub mod policy;
mod shard;
mod slots;
mod table;
mod trace;
mod write_buffers;

pub use account::{COUNTED_FROM, Held, Measured, MemoryAccount, MemoryKind};
pub use entry::CacheValue;
pub use key::CacheKey;
pub use misses::{Miss, Misses};
pub use owner::CacheOwner;
pub use policy::PolicyKind;
use shard::{Insertion, Shard};
pub use slots::SlotHint;
#[cfg(test)]
pub(crate) use slots::slot_size;
pub use trace::{TraceFormat, TraceOptions, TraceSummary};
pub use write_buffers::WriteBufferManager;
pub(crate) use write_buffers::WriteBuffers;

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{Counters, Result};
use crate::env::Env;
use crate::trace::TraceType;

/// Settings of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSettings {
    /// Capacity in bytes, including the memory needed to find entries.
    pub capacity: usize,
    /// Base-2 logarithm of the number of shards, at most 16. `None` makes up to 8 shards of at
    /// least 512 KiB each, and up to 64 of at least 32 MiB. Smaller shards would fill unevenly with
    /// large entries, and evict some before the cache is full.
    pub shard_bits: Option<u32>,
    /// Whether the cache holds whole indexes and filters, which leave little room in a small shard.
    /// The minimum of 512 KiB is then 4 MiB.
    pub holds_indexes: bool,
    /// Eviction policy.
    pub policy: PolicyKind,
    /// For [`PolicyKind::Lru`]: fraction of the capacity, from 0 to 1, that entries of high
    /// priority and entries hit before keep against a flood of others.
    pub high_priority_ratio: f64,
}

impl CacheSettings {
    /// The default settings for a capacity in bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            capacity,
            shard_bits: None,
            holds_indexes: false,
            policy: PolicyKind::default(),
            high_priority_ratio: DEFAULT_HIGH_PRIORITY_RATIO,
        }
    }
}

/// How long an entry is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Data.
    #[default]
    Low,
    /// Index and filter blocks.
    High,
}

/// Counters of a cache since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not find their key.
    pub misses: u64,
    /// Entries inserted.
    pub inserts: u64,
    /// Entries evicted to make room.
    pub evictions: u64,
}

/// Where `lookups` counts what.
const HITS: usize = 0;
const MISSES: usize = 1;

const MIN_SHARD_SIZE: usize = 512 << 10;
const MIN_SHARD_SIZE_WITH_INDEXES: usize = 4 << 20;
const MAX_SMALL_SHARD_BITS: u32 = 3;
const LARGE_SHARD_SIZE: usize = 32 << 20;
const MAX_DEFAULT_SHARD_BITS: u32 = 6;

/// The logarithm of the most shards.
pub const MAX_SHARD_BITS: u32 = 16;

/// RocksDB's.
pub const DEFAULT_HIGH_PRIORITY_RATIO: f64 = 0.5;

/// A cache of values (handles such as `Arc`s: a lookup clones) that is shared by threads.
pub struct Cache<V> {
    shards: Box<[Padded<Shard<V>>]>,
    shard_bits: u32,
    capacity: AtomicUsize,
    /// Bytes of the capacity that something beside the entries takes.
    reserved: Mutex<usize>,
    owners: AtomicU64,
    /// Hits and misses.
    lookups: Counters<2>,
    tracer: trace::Tracer,
    /// Who hears of what leaves while somebody uses it.
    kept: OnceLock<Weak<MemoryAccount>>,
    /// Where the costs of misses are counted.
    misses: OnceLock<Misses>,
}

/// Keeps shards off each other's cache lines.
#[repr(align(128))]
struct Padded<T>(T);

impl<V: CacheValue> Cache<V> {
    /// An empty cache.
    pub fn new(settings: &CacheSettings) -> Self {
        let shard_bits =
            settings.shard_bits.unwrap_or_else(|| default_shard_bits(settings)).min(MAX_SHARD_BITS);
        let ratio = settings.high_priority_ratio.clamp(0.0, 1.0);
        let shards =
            (0..1usize << shard_bits).map(|_| Padded(Shard::new(settings.policy.build(ratio))));
        let cache = Self {
            shards: shards.collect(),
            shard_bits,
            capacity: AtomicUsize::new(0),
            reserved: Mutex::new(0),
            owners: AtomicU64::new(0),
            lookups: Counters::default(),
            tracer: trace::Tracer::default(),
            kept: OnceLock::new(),
            misses: OnceLock::new(),
        };
        cache.set_capacity(settings.capacity);
        cache
    }

    /// From now on what leaves while somebody uses it is counted in `account`, until nobody does.
    /// The first account counts.
    pub fn count_kept_in(&self, account: &Arc<MemoryAccount>) {
        let _ = self.kept.set(Arc::downgrade(account));
    }

    /// From now on the costs of misses are counted. Once.
    ///
    /// # Panics
    /// If they are counted already.
    pub fn count_misses(&self, misses: Misses) {
        assert!(self.misses.set(misses).is_ok(), "one counts the misses");
    }

    /// The costs of misses, where they are counted.
    pub fn misses(&self) -> Option<&Misses> {
        self.misses.get()
    }

    /// The caller has missed a block, and fetches it while it holds what is returned.
    #[inline]
    pub fn begin_miss(&self) -> Option<Miss<'_>> {
        self.misses.get().map(Misses::begin)
    }

    /// Drops what left a shard, without its lock.
    fn let_go(&self, dropped: Vec<V>) {
        for value in dropped {
            if let Some(account) = self.kept.get()
                && value.is_pinned()
                && let Some(account) = account.upgrade()
            {
                value.count_kept(&account);
            }
            value.discard();
        }
    }

    /// Whoever puts entries in, with keys that no other owner has.
    pub fn new_owner(&self) -> CacheOwner {
        CacheOwner::new(self.owners.fetch_add(1, Ordering::Relaxed))
    }

    /// The value of a key, which counts as used now.
    #[inline]
    pub fn lookup(&self, key: CacheKey) -> Option<V> {
        let hash = key.hash();
        let found = if !self.tracer.is_on() {
            self.shard(hash).lookup(hash, key)
        } else {
            self.traced_lookup(hash, key)
        };
        self.lookups.add(if found.is_some() { HITS } else { MISSES }, 1);
        found
    }

    /// The same for who asks for a key again and again, and keeps a hint for it alone: mostly the
    /// first slot looked at is the right one, without a look at the key's bucket.
    #[inline]
    pub fn lookup_near(&self, key: CacheKey, hint: &SlotHint) -> Option<V> {
        if self.tracer.is_on() {
            return self.lookup(key);
        }
        let hash = key.hash();
        let found = self.shard(hash).lookup_near(hash, key, hint);
        self.lookups.add(if found.is_some() { HITS } else { MISSES }, 1);
        found
    }

    /// Asks for the memory that such a lookup looks at first.
    #[inline]
    pub fn prefetch_near(&self, key: CacheKey, hint: &SlotHint) {
        self.shard(key.hash()).prefetch_near(hint);
    }

    /// Shows the key's value, if it is there; it does not count as used, nor as asked for.
    #[inline]
    pub fn show_near(&self, key: CacheKey, hint: &SlotHint, show: impl FnOnce(&V)) {
        let hash = key.hash();
        self.shard(hash).show_near(hash, key, hint, show);
    }

    /// The value of a key, which does not count as used, nor as asked for.
    pub fn peek(&self, key: CacheKey) -> Option<V> {
        let hash = key.hash();
        self.shard(hash).peek(hash, key)
    }

    /// Asks for the memory that a lookup of the key will wait for, so that it arrives while the
    /// caller does something else: at step 0 for that of the first place it looks at, and from then
    /// on for what is to be looked at next. From step 2 on `ask` does so for what the value refers
    /// to. The value does not count as used, nor as asked for.
    pub fn approach(&self, key: CacheKey, step: u32, ask: impl FnOnce(&V)) {
        let hash = key.hash();
        self.shard(hash).approach(hash, key, step, ask);
    }

    #[cold]
    fn traced_lookup(&self, hash: u64, key: CacheKey) -> Option<V> {
        let shard = self.shard(hash);
        let value = shard.lookup(hash, key)?;
        // Evicted since then, it is not there to be asked about: one request less in the trace.
        if let Some(charge) = shard.charge_of(hash, key) {
            self.tracer.record(&trace::Access {
                key,
                kind: value.trace_type(),
                charge,
                is_hit: true,
            });
        }
        Some(value)
    }

    /// Begins to record in a new file what the cache is asked for; `flagstone cache-sim` replays
    /// it. Costs every request a lock that all threads share.
    ///
    /// # Errors
    /// `Busy` if that goes on already; `InvalidArgument` for a sampling frequency of 0 or a file
    /// that exists; `IoError`.
    pub fn start_trace(&self, env: &Env, path: &Path, options: &TraceOptions) -> Result<()> {
        self.tracer.start(env, path, options)
    }

    /// Ends the recording; `None` if there is none.
    ///
    /// # Errors
    /// The first that writing the file met; what was asked for after it is not in the file.
    pub fn end_trace(&self) -> Result<Option<TraceSummary>> {
        self.tracer.end()
    }

    /// Puts a value in, at low priority, in place of any that the key has. `charge` is all the
    /// memory it stands for, in bytes, without what the cache needs beside it. Returns `false` if
    /// it does not fit even into an empty shard, or only in the place of others that are in use;
    /// the old value is gone all the same.
    pub fn insert(&self, key: CacheKey, value: V, charge: usize) -> bool {
        self.insert_with_priority(key, value, charge, Priority::Low)
    }

    /// [`Cache::insert`] of a value that is not made if it is too large even for an empty shard:
    /// `make` returns it with its charge, which is not below `least`.
    pub fn insert_made(
        &self,
        key: CacheKey,
        least: usize,
        make: impl FnOnce() -> (V, usize),
    ) -> bool {
        if least > self.capacity() >> self.shard_bits {
            // Asked for it was.
            if self.tracer.is_on() {
                let kind = TraceType::DataBlock;
                self.tracer.record(&trace::Access { key, kind, charge: least, is_hit: false });
            }
            self.erase(key);
            return false;
        }
        let (value, charge) = make();
        self.insert(key, value, charge)
    }

    /// [`Cache::insert`] with a priority.
    pub fn insert_with_priority(
        &self,
        key: CacheKey,
        value: V,
        charge: usize,
        priority: Priority,
    ) -> bool {
        let hash = key.hash();
        if self.tracer.is_on() {
            let kind = value.trace_type();
            self.tracer.record(&trace::Access { key, kind, charge, is_hit: false });
        }
        self.put(Insertion { hash, key, value, charge, priority })
    }

    /// [`Cache::insert`] of what nobody has asked for yet: no request, for a trace.
    pub fn prepopulate(&self, key: CacheKey, value: V, charge: usize) -> bool {
        self.put(Insertion { hash: key.hash(), key, value, charge, priority: Priority::Low })
    }

    /// The same of what is made only if a shard has room for `least` bytes, its charge at the
    /// least.
    pub fn prepopulate_made(
        &self,
        key: CacheKey,
        least: usize,
        make: impl FnOnce() -> (V, usize),
    ) -> bool {
        if least > self.capacity() >> self.shard_bits {
            return false;
        }
        let (value, charge) = make();
        self.prepopulate(key, value, charge)
    }

    fn put(&self, insertion: Insertion<V>) -> bool {
        let mut dropped = Vec::new();
        let is_in = self.shard(insertion.hash).insert(insertion, &mut dropped);
        self.let_go(dropped);
        is_in
    }

    /// Takes a key out. Beside changes of others it may stay, until it is driven out.
    pub fn erase(&self, key: CacheKey) -> Option<V> {
        let hash = key.hash();
        let mut dropped = Vec::new();
        let erased = self.shard(hash).erase(hash, key, &mut dropped);
        self.let_go(dropped);
        erased
    }

    /// Takes out all entries of an owner. Looks at every entry of the cache, and holds up changes
    /// of a shard meanwhile.
    pub fn erase_all_of(&self, owner: &CacheOwner) {
        self.erase_where(|key| owner.has(key));
    }

    /// Takes out all entries of files that are gone, given their numbers in [`CacheKey::file`] in
    /// order. Looks at every entry, too.
    pub fn erase_files(&self, files: &[u64]) {
        debug_assert!(files.is_sorted());
        self.erase_where(|key| files.binary_search(&key.file).is_ok());
    }

    fn erase_where(&self, is_meant: impl Fn(CacheKey) -> bool) {
        for shard in &self.shards {
            let mut dropped = Vec::new();
            shard.0.erase_if(&is_meant, &mut dropped);
            self.let_go(dropped);
        }
    }

    /// The charge of all entries, and what it takes to find them, in bytes.
    pub fn usage(&self) -> usize {
        let charged = self.shards.iter().map(|shard| shard.0.charged()).sum::<usize>();
        self.overhead() + charged + *self.reserved.lock()
    }

    /// The part of it that is no entry's: places for them, and what the policy knows of them.
    /// Beyond some kilobytes a shard, so that one of few entries may be of any size.
    pub fn overhead(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.overhead()).sum()
    }

    /// The part of all charges that is in use outside the cache.
    pub fn pinned_usage(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.pinned_usage()).sum()
    }

    /// Shows `visit` each entry, with its charge in bytes, in no order. Holds up changes of a shard
    /// meanwhile.
    pub fn visit(&self, mut visit: impl FnMut(CacheKey, &V, usize)) {
        self.shards.iter().for_each(|shard| shard.0.visit(&mut visit));
    }

    /// Begins a period: what [`Self::used`] and [`Self::erase_unused`] go by is whether an entry
    /// was put in or found since then.
    pub fn begin_period(&self) {
        self.shards.iter().for_each(|shard| shard.0.begin_period());
    }

    /// The charges of the entries that were used in this period. Looks at every entry, and holds up
    /// changes of a shard meanwhile.
    pub fn used(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.used()).sum()
    }

    /// Takes out what was not used in this period. Looks at every entry, too.
    pub fn erase_unused(&self) {
        for shard in &self.shards {
            let mut dropped = Vec::new();
            shard.0.erase_unused(&mut dropped);
            self.let_go(dropped);
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most that all takes, in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// The largest charge that an entry should have: half of a shard.
    pub fn largest(&self) -> usize {
        (self.capacity() >> self.shard_bits) / 2
    }

    /// Changes the capacity; entries are dropped at once if it shrinks, also those in use. The
    /// number of shards stays.
    pub fn set_capacity(&self, capacity: usize) {
        let reserved = self.reserved.lock();
        self.capacity.store(capacity, Ordering::Relaxed);
        self.divide(capacity.saturating_sub(*reserved));
    }

    /// Has entries take so many bytes less than the capacity.
    pub fn reserve(&self, bytes: usize) {
        let mut reserved = self.reserved.lock();
        *reserved = bytes;
        self.divide(self.capacity().saturating_sub(bytes));
    }

    fn divide(&self, capacity: usize) {
        for shard in &self.shards {
            let mut dropped = Vec::new();
            shard.0.set_capacity(capacity >> self.shard_bits, &mut dropped);
            self.let_go(dropped);
        }
    }

    /// What the cache has done so far.
    pub fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.lookups.get(HITS),
            misses: self.lookups.get(MISSES),
            inserts: self.shards.iter().map(|shard| shard.0.inserts()).sum(),
            evictions: self.shards.iter().map(|shard| shard.0.evictions()).sum(),
        }
    }

    /// The top bits of the hash choose the shard, the low ones the bucket within it.
    #[inline]
    fn shard(&self, hash: u64) -> &Shard<V> {
        &self.shards[((hash >> 32) as usize) & (self.shards.len() - 1)].0
    }
}

impl<V> std::fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let capacity = self.capacity.load(Ordering::Relaxed);
        write!(f, "Cache({} shards, {capacity} bytes)", self.shards.len())
    }
}

fn default_shard_bits(settings: &CacheSettings) -> u32 {
    let small = if settings.holds_indexes { MIN_SHARD_SIZE_WITH_INDEXES } else { MIN_SHARD_SIZE };
    let bits = |size: usize, most: u32| (settings.capacity / size).max(1).ilog2().min(most);
    bits(small, MAX_SMALL_SHARD_BITS).max(bits(LARGE_SHARD_SIZE, MAX_DEFAULT_SHARD_BITS))
}

#[cfg(test)]
mod tests;
