//! A part of a cache.
//!
//! **Thread safety.** A lookup goes through the table and the hit log, and takes no lock. Every
//! change happens under the lock of `changing`, in this order: the log's hits are told to the
//! policy; what must go leaves policy, table and usage; what comes in enters them. Values are
//! dropped by the caller, after the lock.
//!
//! **Invariants.** `charged` is the charge of all entries in the table; with `overhead`, the memory
//! of the table, of `held` and of the policy, it is not above the capacity, but for what the last
//! insertion added to the overhead, and unless that is more than a half of the capacity. Entries in
//! the table, in `held` and in the policy's order are the same.

use super::entry::CacheValue;
use super::hits::HitLog;
use super::policy::{Incoming, Policy, at_slot, memory_of};
use super::slots::{Changes, SlotHint};
use super::table::Table;
use super::{CacheKey, Priority};
use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// How many pinned entries a new one may find in its way before it is refused.
const SPARED_MAX: usize = 16;

/// What left a shard, to be dropped without its lock.
pub(super) type Dropped<V> = Vec<V>;

/// What comes into a shard.
pub(super) struct Insertion<V> {
    pub(super) hash: u64,
    pub(super) key: CacheKey,
    pub(super) value: V,
    pub(super) charge: usize,
    pub(super) priority: Priority,
}

/// Entries under one policy.
pub(super) struct Shard<V> {
    table: Table<V>,
    hits: HitLog,
    charged: AtomicUsize,
    overhead: AtomicUsize,
    len: AtomicUsize,
    inserts: AtomicU64,
    evictions: AtomicU64,
    changing: Mutex<Changing>,
}

/// What only changes need.
struct Changing {
    /// By slot.
    held: Vec<Option<Incoming>>,
    slots: Changes,
    policy: Box<dyn Policy + Send>,
    /// In bytes, for all that the shard takes.
    capacity: u64,
    /// What it takes beside its entries' charges, as the policy knows it.
    overhead: u64,
    /// The round of the hit log in which the present period began.
    period: u32,
}

impl<V: CacheValue> Shard<V> {
    /// Empty, and without capacity.
    pub(super) fn new(policy: Box<dyn Policy + Send>) -> Self {
        let (table, slots) = Table::new();
        Self {
            table,
            hits: HitLog::new(),
            charged: AtomicUsize::new(0),
            overhead: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            inserts: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            changing: Mutex::new(Changing {
                held: Vec::new(),
                slots,
                policy,
                capacity: 0,
                overhead: 0,
                period: 0,
            }),
        }
    }

    /// Bytes of entries.
    pub(super) fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }

    /// Bytes that are needed to find them and to know which goes first.
    pub(super) fn overhead(&self) -> usize {
        self.overhead.load(Ordering::Relaxed)
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::Relaxed)
    }

    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Shows `visit` each entry and its charge, under the lock.
    pub(super) fn visit(&self, visit: &mut impl FnMut(CacheKey, &V, usize)) {
        let changing = self.changing.lock();
        for (number, held) in numbered(&changing.held) {
            visit(self.table.key_of(number), self.table.get(number).value(), held.charge as usize);
        }
    }

    /// The charge of entries whose values somebody uses.
    pub(super) fn pinned_usage(&self) -> usize {
        let mut pinned = 0;
        self.visit(&mut |_, value, charge| pinned += if value.is_pinned() { charge } else { 0 });
        pinned
    }

    /// The value of a key, which counts as used now.
    #[inline]
    pub(super) fn lookup(&self, hash: u64, key: CacheKey) -> Option<V> {
        let found = self.table.find(hash, key)?;
        self.hits.record(found.number, &found.slot.seen);
        Some(found.value().clone())
    }

    /// The same for a key whose entry was in that slot once.
    #[inline]
    pub(super) fn lookup_near(&self, hash: u64, key: CacheKey, hint: &SlotHint) -> Option<V> {
        let found = self.table.find_near(hash, key, hint)?;
        self.hits.record(found.number, &found.slot.seen);
        Some(found.value().clone())
    }

    /// See [`super::Cache::prefetch_near`].
    #[inline]
    pub(super) fn prefetch_near(&self, hint: &SlotHint) {
        self.table.prefetch_near(hint);
    }

    /// See [`super::Cache::show_near`].
    #[inline]
    pub(super) fn show_near(
        &self,
        hash: u64,
        key: CacheKey,
        hint: &SlotHint,
        show: impl FnOnce(&V),
    ) {
        if let Some(found) = self.table.find_near(hash, key, hint) {
            show(found.value());
        }
    }

    /// See [`super::Cache::approach`].
    pub(super) fn approach(&self, hash: u64, key: CacheKey, step: u32, ask: impl FnOnce(&V)) {
        match step {
            0 => self.table.prefetch_bucket(hash),
            1 => self.table.prefetch_slot(hash),
            _ => {
                if let Some(found) = self.table.find(hash, key) {
                    ask(found.value());
                }
            }
        }
    }

    /// The value of a key, of which the policy hears nothing.
    pub(super) fn peek(&self, hash: u64, key: CacheKey) -> Option<V> {
        Some(self.table.find(hash, key)?.value().clone())
    }

    /// The charge of a key; takes the lock.
    pub(super) fn charge_of(&self, hash: u64, key: CacheKey) -> Option<usize> {
        let changing = self.changing.lock();
        let number = self.table.number_of(hash, key)?;
        changing.held[number as usize].map(|held| held.charge as usize)
    }

    /// Puts a value in. `false` if it does not fit, or what it would displace is in use.
    pub(super) fn insert(&self, new: Insertion<V>, dropped: &mut Dropped<V>) -> bool {
        let Insertion { hash, key, value, charge, priority } = new;
        let mut guard = self.begin(dropped);
        let changing = &mut *guard;
        self.take(changing, hash, key, dropped);
        let fits = charge as u64 <= changing.policy.largest()
            && self.make_room(changing, charge, true, dropped);
        if !fits {
            dropped.push(value);
            return false;
        }
        self.table.grow_for(
            &mut changing.slots,
            self.len(),
            numbered(&changing.held).map(|(number, _)| number),
        );
        let number = self.table.insert(&mut changing.slots, hash, key, value);
        // To be put in is to be used; the policy hears of the first hit all the same.
        self.table.seen(number).store(self.hits.round_before(), Ordering::Relaxed);
        let incoming = Incoming { id: hash, charge: charge as u64, priority };
        *at_slot(&mut changing.held, number, None) = Some(incoming);
        changing.policy.inserted(number, incoming);
        self.leave_room_for_overhead(changing);
        self.charged.fetch_add(charge, Ordering::Relaxed);
        self.len.fetch_add(1, Ordering::Relaxed);
        self.inserts.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Takes a key out if it finds it, and takes no lock where it does not. Beside changes of the
    /// same chain it may miss it, as a lookup may: then it stays until others take its room.
    pub(super) fn erase(&self, hash: u64, key: CacheKey, dropped: &mut Dropped<V>) -> Option<V> {
        let value = self.table.find(hash, key)?.value().clone();
        let mut changing = self.begin(dropped);
        if self.take(&mut changing, hash, key, dropped) {
            self.leave_room_for_overhead(&mut changing);
            return Some(value);
        }
        dropped.push(value);
        None
    }

    /// Takes out what has such a key.
    pub(super) fn erase_if(&self, is_meant: impl Fn(CacheKey) -> bool, dropped: &mut Dropped<V>) {
        self.erase_entries(|_, number| is_meant(self.table.key_of(number)), dropped);
    }

    fn erase_entries(&self, is_meant: impl Fn(&Changing, u32) -> bool, dropped: &mut Dropped<V>) {
        let mut guard = self.begin(dropped);
        let changing = &mut *guard;
        for number in 0..changing.held.len() as u32 {
            if changing.held[number as usize].is_some() && is_meant(changing, number) {
                changing.policy.removed(number);
                self.free(changing, number, dropped);
            }
        }
        self.leave_room_for_overhead(changing);
    }

    /// See [`super::Cache::begin_period`].
    pub(super) fn begin_period(&self) {
        let mut dropped = Vec::new();
        self.begin(&mut dropped).period = self.hits.begin_period();
    }

    /// See [`super::Cache::used`].
    pub(super) fn used(&self) -> usize {
        let changing = self.changing.lock();
        let used = numbered(&changing.held)
            .filter(|(number, _)| self.was_used(&changing, *number))
            .map(|(_, held)| held.charge as usize);
        used.sum()
    }

    fn was_used(&self, changing: &Changing, number: u32) -> bool {
        // Rounds may begin again at 0.
        let seen = self.table.seen(number).load(Ordering::Relaxed);
        seen.wrapping_sub(changing.period).cast_signed() >= 0
    }

    /// See [`super::Cache::erase_unused`].
    pub(super) fn erase_unused(&self, dropped: &mut Dropped<V>) {
        self.erase_entries(|changing, number| !self.was_used(changing, number), dropped);
    }

    /// Changes the capacity; what no longer fits leaves, also if it is in use.
    pub(super) fn set_capacity(&self, capacity: usize, dropped: &mut Dropped<V>) {
        let mut changing = self.begin(dropped);
        changing.capacity = capacity as u64;
        self.divide(&mut changing);
        self.make_room(&mut changing, 0, false, dropped);
        // Of what went the policy may remember more.
        while self.leave_room_for_overhead(&mut changing) {
            self.make_room(&mut changing, 0, false, dropped);
        }
    }

    /// Begins a change: the policy hears of the hits since the last one, and what somebody looked
    /// at then can go.
    fn begin(&self, dropped: &mut Dropped<V>) -> MutexGuard<'_, Changing> {
        let mut guard = self.changing.lock();
        let Changing { held, slots, policy, .. } = &mut *guard;
        self.table.sweep(slots, dropped);
        self.hits.read(|number| {
            if held.get(number as usize).is_some_and(Option::is_some) {
                policy.hit(number);
            }
        });
        guard
    }

    /// Evicts until something of this charge fits. What is in use is kept, if asked for, since that
    /// would free nothing; `false` if too much of it is in the way.
    fn make_room(
        &self,
        changing: &mut Changing,
        charge: usize,
        spare: bool,
        dropped: &mut Dropped<V>,
    ) -> bool {
        // They come back at the end: some policies would else choose the same one again and again.
        let mut spared: Vec<(u32, Incoming)> = Vec::new();
        let mut wanted = charge as u64;
        let fits = loop {
            // Where there is never so much room, all others would go in vain.
            if spared.len() == SPARED_MAX
                || wanted > changing.policy.largest() && !spared.is_empty()
            {
                break false;
            }
            let Some(number) = changing.policy.evict(wanted) else { break true };
            if spare && self.table.get(number).value().is_pinned() {
                let held = changing.held[number as usize].expect("what the policy orders is there");
                wanted += held.charge;
                spared.push((number, held));
                continue;
            }
            self.free(changing, number, dropped);
            self.evictions.fetch_add(1, Ordering::Relaxed);
        };
        for (number, held) in spared {
            changing.policy.inserted(number, held);
        }
        fits
    }

    /// Whether there was such an entry.
    fn take(
        &self,
        changing: &mut Changing,
        hash: u64,
        key: CacheKey,
        dropped: &mut Dropped<V>,
    ) -> bool {
        let Some(number) = self.table.number_of(hash, key) else { return false };
        changing.policy.removed(number);
        self.free(changing, number, dropped);
        true
    }

    /// Frees a slot that is no longer in the policy's order.
    fn free(&self, changing: &mut Changing, number: u32, dropped: &mut Dropped<V>) {
        let held = changing.held[number as usize].take().expect("a slot is freed once");
        dropped.extend(self.table.remove(&mut changing.slots, number));
        self.charged.fetch_sub(held.charge as usize, Ordering::Relaxed);
        self.len.fetch_sub(1, Ordering::Relaxed);
    }

    /// Places for entries, and what the policy knows of them and remembers of those that are gone,
    /// are memory, too: when that becomes more, the entries have less. Returns whether it has
    /// changed.
    #[inline]
    fn leave_room_for_overhead(&self, changing: &mut Changing) -> bool {
        let has_changed = self.overhead_now(changing) != changing.overhead;
        if has_changed {
            self.divide(changing);
        }
        has_changed
    }

    #[inline]
    fn overhead_now(&self, changing: &Changing) -> u64 {
        changing.policy.memory() + memory_of(&changing.held) + self.table.memory(&changing.slots)
    }

    /// Divides the capacity anew.
    fn divide(&self, changing: &mut Changing) {
        let capacity = changing.capacity;
        // May let the policy forget some.
        changing.policy.set_capacity(capacity - changing.overhead.min(capacity / 2));
        changing.overhead = self.overhead_now(changing);
        changing.policy.set_capacity(capacity - changing.overhead.min(capacity / 2));
        self.overhead.store(changing.overhead as usize, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn keys(&self) -> Vec<CacheKey> {
        let changing = self.changing.lock();
        numbered(&changing.held).map(|(number, _)| self.table.key_of(number)).collect()
    }
}

/// The slots that hold something.
fn numbered(held: &[Option<Incoming>]) -> impl Iterator<Item = (u32, Incoming)> {
    held.iter().zip(0..).filter_map(|(held, number)| Some((number, (*held)?)))
}
