//! One limit for the memtables of several databases: RocksDB's `WriteBufferManager`.
//!
//! 1. Each database tells what its memtables take: those that are written to, as they grow, and
//!    those that wait for a flush, whenever its tree changes.
//! 2. When those that are written to have seven eighths of the limit, or half of it while all
//!    together have reached it, the largest of a database is switched: that of the writer who
//!    notices, unless another database has twice as much. That one is asked, and its flush thread
//!    answers.
//! 3. With `allow_stall`, writers of all databases wait while all memtables together have reached
//!    the limit, of which their databases are told. They ask the database with the most memory to
//!    flush. When some is free, the databases whose writers wait are told to look again.
//!
//! A database counts until it is about to be closed, or can no longer flush. While its flushes are
//! paused it counts, and is not asked.
//!
//! **Thread safety.** The sums are relaxed, and looked at by each write. The counts of a database
//! have a lock of their own, which is held for one change. No database is called under a lock: it
//! is told by a flag, and its threads are woken.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::base::Sometimes;
use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The cache is charged by so many bytes at a time, as by RocksDB.
const CHARGE_STEP: u64 = 256 << 10;

type Charge = Box<dyn Fn(u64) + Send + Sync>;

/// Limits the memory of the memtables of all databases whose options hold it.
pub struct WriteBufferManager {
    /// 0 for no limit.
    buffer_size: AtomicU64,
    allow_stall: AtomicBool,
    /// Bytes of memtables that are written to.
    active: AtomicU64,
    /// Bytes of memtables that wait for a flush.
    waiting: AtomicU64,
    /// A database was asked, and has not answered.
    is_anyone_asked: AtomicBool,
    members: Mutex<Vec<Weak<WriteBuffers>>>,
    /// What a cache is charged, and what charges it.
    charged: Mutex<u64>,
    charge: Option<Charge>,
}

impl WriteBufferManager {
    /// A limit of `buffer_size` bytes, 0 for none. With `allow_stall` writers wait while memtables
    /// that are not flushed take as much.
    pub fn new(buffer_size: u64, allow_stall: bool) -> Arc<Self> {
        Arc::new(Self::with_charge(buffer_size, allow_stall, None))
    }

    pub(crate) fn charging(
        buffer_size: u64,
        allow_stall: bool,
        charge: impl Fn(u64) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self::with_charge(buffer_size, allow_stall, Some(Box::new(charge))))
    }

    fn with_charge(buffer_size: u64, allow_stall: bool, charge: Option<Charge>) -> Self {
        Self {
            buffer_size: AtomicU64::new(buffer_size),
            allow_stall: AtomicBool::new(allow_stall),
            active: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            is_anyone_asked: AtomicBool::new(false),
            members: Mutex::default(),
            charged: Mutex::new(0),
            charge,
        }
    }

    /// Whether there is a limit.
    pub fn enabled(&self) -> bool {
        self.buffer_size() > 0
    }

    /// Whether memtables are charged to a cache.
    pub fn cost_to_cache(&self) -> bool {
        self.charge.is_some()
    }

    /// The limit in bytes.
    pub fn buffer_size(&self) -> u64 {
        self.buffer_size.load(Ordering::Relaxed)
    }

    /// Changes the limit. Databases are told.
    pub fn set_buffer_size(&self, bytes: u64) {
        self.buffer_size.store(bytes, Ordering::Relaxed);
        self.wake_all();
    }

    /// Changes whether writers wait at the limit.
    pub fn set_allow_stall(&self, allow_stall: bool) {
        self.allow_stall.store(allow_stall, Ordering::Relaxed);
        self.wake_all();
    }

    /// Bytes of the memtables that no flush has written.
    pub fn memory_usage(&self) -> u64 {
        self.mutable_memtable_memory_usage().saturating_add(self.waiting.load(Ordering::Relaxed))
    }

    /// Bytes of the memtables that are written to.
    pub fn mutable_memtable_memory_usage(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Bytes that a cache is charged.
    pub fn charged_to_cache(&self) -> u64 {
        *self.charged.lock()
    }

    /// Whether a memtable is to be switched.
    #[inline]
    fn is_full(&self) -> bool {
        let (size, active) = (self.buffer_size(), self.mutable_memtable_memory_usage());
        size > 0
            && (active > size / 8 * 7 || active >= size / 2 && self.memory_usage() >= size)
            && !self.is_anyone_asked.load(Ordering::Relaxed)
    }

    /// Whether writers are to wait.
    fn is_stalling(&self) -> bool {
        let size = self.buffer_size();
        size > 0 && self.allow_stall.load(Ordering::Relaxed) && self.memory_usage() >= size
    }

    /// A member of which only the caller knows.
    pub(crate) fn join(self: &Arc<Self>) -> Arc<WriteBuffers> {
        let member = Arc::new(WriteBuffers {
            manager: self.clone(),
            counts: Mutex::default(),
            is_asked: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            looks_again: AtomicBool::new(false),
            wake: Mutex::default(),
        });
        let mut members = self.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(&member));
        member
    }

    fn members(&self) -> Vec<Arc<WriteBuffers>> {
        self.members.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Has all databases look: their writers are to wait.
    fn wake_all(&self) {
        for member in self.members() {
            member.looks_again.store(true, Ordering::Release);
            member.wake();
        }
    }

    /// Has databases whose writers wait look again.
    fn wake_stalled(&self) {
        for member in self.members() {
            if member.is_stalled.swap(false, Ordering::AcqRel) {
                member.looks_again.store(true, Ordering::Release);
                member.wake();
            }
        }
    }

    /// Charges the cache what the memtables take, in whole steps.
    fn charge(&self) {
        let Some(charge) = &self.charge else { return };
        let mut charged = self.charged.lock();
        let wanted = self.memory_usage().next_multiple_of(CHARGE_STEP);
        if wanted != *charged {
            *charged = wanted;
            charge(wanted);
        }
    }
}

impl fmt::Debug for WriteBufferManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBufferManager")
            .field("buffer_size", &self.buffer_size())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}

/// The memtables of one database, as a manager counts them.
pub(crate) struct WriteBuffers {
    manager: Arc<WriteBufferManager>,
    counts: Mutex<Counts>,
    /// To switch the largest memtable, and to flush.
    is_asked: AtomicBool,
    /// It flushes nothing for now.
    is_paused: AtomicBool,
    /// Its writers wait.
    is_stalled: AtomicBool,
    /// To work out whether its writers still have to wait.
    looks_again: AtomicBool,
    wake: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

#[derive(Default)]
struct Counts {
    active: u64,
    waiting: u64,
    has_left: bool,
}

impl WriteBuffers {
    /// Has `wake` called when the database is asked for something. It may be called under any lock
    /// of another database.
    pub(crate) fn wake_with(&self, wake: impl Fn() + Send + Sync + 'static) {
        *self.wake.lock() = Some(Arc::new(wake));
    }

    fn wake(&self) {
        let wake = self.wake.lock().clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Memtables that are written to have so many bytes more.
    pub(crate) fn grow(&self, bytes: u64) {
        let mut counts = self.counts.lock();
        if counts.has_left {
            return;
        }
        let was_full = self.manager.is_stalling();
        counts.active += bytes;
        self.manager.active.fetch_add(bytes, Ordering::Relaxed);
        drop(counts);
        self.manager.charge();
        if !was_full && self.manager.is_stalling() {
            self.manager.wake_all();
        }
    }

    /// One that had so many bytes is no longer written to.
    pub(crate) fn shrink(&self, bytes: u64) {
        let mut counts = self.counts.lock();
        let bytes = bytes.min(counts.active);
        counts.active -= bytes;
        self.manager.active.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Memtables that wait for a flush have so many bytes.
    pub(crate) fn set_waiting(&self, bytes: u64) {
        let was_full = self.manager.is_stalling();
        let mut counts = self.counts.lock();
        if counts.has_left {
            return;
        }
        let before = std::mem::replace(&mut counts.waiting, bytes);
        self.manager.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.manager.waiting.fetch_sub(before, Ordering::Relaxed);
        drop(counts);
        if bytes != before {
            self.manager.charge();
        }
        let is_full = self.manager.is_stalling();
        if bytes < before || was_full && !is_full {
            self.manager.wake_stalled();
        } else if is_full && !was_full {
            self.manager.wake_all();
        }
    }

    /// Whether a writer of this database is to ask whose memtable is switched.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.manager.is_full()
    }

    /// Whether the caller is to switch its largest memtable. Otherwise another database is asked.
    pub(crate) fn takes_switch(&self) -> bool {
        let own = self.counts.lock().active;
        let others = self.manager.members();
        let others = others.iter().filter(|other| !std::ptr::eq(Arc::as_ptr(other), self));
        let largest = others.filter(|other| other.can_flush());
        let largest = largest.max_by_key(|other| other.counts.lock().active);
        match largest {
            Some(other) if other.counts.lock().active / 2 > own => {
                Sometimes::OtherDatabaseAskedToFlush.reached();
                other.ask();
                false
            }
            _ => true,
        }
    }

    /// Whether writers of this database are to wait. If so the database with the most memory is
    /// asked to flush, and this one is told when enough is free.
    pub(crate) fn stalls_writers(&self) -> bool {
        if !self.manager.is_stalling() {
            return false;
        }
        self.is_stalled.store(true, Ordering::Release);
        // Between the two looks it may have become free, and nobody was told.
        if !self.manager.is_stalling() {
            self.is_stalled.store(false, Ordering::Release);
            return false;
        }
        if !self.manager.is_anyone_asked.load(Ordering::Acquire) {
            let members = self.manager.members();
            let able = members.iter().filter(|member| member.can_flush());
            if let Some(largest) = able.max_by_key(|member| member.bytes()) {
                largest.ask();
            }
        }
        true
    }

    fn bytes(&self) -> u64 {
        let counts = self.counts.lock();
        counts.active.saturating_add(counts.waiting)
    }

    fn can_flush(&self) -> bool {
        !self.is_paused.load(Ordering::Acquire) && self.wake.lock().is_some()
    }

    fn ask(&self) {
        self.manager.is_anyone_asked.store(true, Ordering::Release);
        self.is_asked.store(true, Ordering::Release);
        // If it leaves after this look, it finds the request itself.
        if self.counts.lock().has_left {
            self.answer_if_asked();
            return;
        }
        self.wake();
    }

    fn answer_if_asked(&self) {
        if self.take_request() {
            self.answer();
        }
    }

    /// Whether the database is to switch its largest memtable, and to flush.
    pub(crate) fn take_request(&self) -> bool {
        self.is_asked.swap(false, Ordering::AcqRel)
    }

    /// It has, as far as it can.
    pub(crate) fn answer(&self) {
        self.manager.is_anyone_asked.store(false, Ordering::Release);
    }

    /// Whether the database flushes nothing for now. Others are asked in its place then.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        if self.is_paused.swap(is_paused, Ordering::AcqRel) != is_paused {
            self.manager.wake_stalled();
        }
    }

    /// Whether the database is to look again whether its writers wait.
    pub(crate) fn take_look(&self) -> bool {
        self.looks_again.swap(false, Ordering::AcqRel)
    }

    /// The database no longer counts: it is being closed, or can no longer flush.
    pub(crate) fn leave(&self) {
        *self.wake.lock() = None;
        let mut counts = self.counts.lock();
        let Counts { active, waiting, has_left } = std::mem::take(&mut *counts);
        counts.has_left = true;
        drop(counts);
        // Also of one that left before: somebody may have asked it meanwhile.
        self.answer_if_asked();
        if has_left {
            return;
        }
        self.manager.active.fetch_sub(active, Ordering::Relaxed);
        self.manager.waiting.fetch_sub(waiting, Ordering::Relaxed);
        self.manager.charge();
        self.manager.wake_stalled();
    }
}

impl Drop for WriteBuffers {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
