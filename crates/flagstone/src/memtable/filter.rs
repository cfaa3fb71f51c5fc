//! A Bloom filter over the keys and prefixes of one memtable: a lookup or prefix seek that would
//! find nothing ends there.
//!
//! As in tables, all probes of a key fall into one line of 64 bytes: at most one is fetched. The
//! high half of the hash's product with the number of lines is the line; the low half of the hash,
//! multiplied by the golden ratio for each next probe, has the bits in its top nine.
//!
//! **Thread safety.** Any number of threads add and ask, and none takes a lock once there are
//! lines. Bits are only ever set, those of an entry before it is inserted: whoever must see the
//! entry sees them.

use std::sync::{Arc, OnceLock};

use super::arena::ArenaPool;
use crate::base::hash::hash64;
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{InternalIterator, InternalKey, PinnedValue, PrefixExtractor, Result};
use crate::cache::{Held, MemoryKind};

/// RocksDB's.
const PROBES: u32 = 6;

const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// What goes into a memtable's filter.
#[derive(Debug, Clone, PartialEq)]
pub struct MemTableFilterSettings {
    /// Its size, rounded up to whole lines.
    pub bytes: usize,
    /// Puts whole keys in, and lets lookups ask for them; else they ask for the key's prefix.
    pub whole_keys: bool,
    /// Puts prefixes in.
    pub prefixes: Option<PrefixExtractor>,
}

/// The filter of one memtable.
pub(super) struct MemTableFilter {
    settings: MemTableFilterSettings,
    pool: Option<Arc<ArenaPool>>,
    /// Made with the first entry: many memtables never get one.
    lines: OnceLock<Lines>,
    /// Held while they are made.
    making: Mutex<()>,
}

struct Lines {
    bits: Box<[Line]>,
    _held: Option<Held>,
}

#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; 8]);

impl MemTableFilter {
    pub(super) fn new(settings: MemTableFilterSettings, pool: Option<Arc<ArenaPool>>) -> Self {
        Self { settings, pool, lines: OnceLock::new(), making: Mutex::new(()) }
    }

    /// Whether prefix seeks can ask it.
    pub(super) fn has_prefixes(&self) -> bool {
        self.settings.prefixes.is_some()
    }

    /// Bytes that it takes.
    pub(super) fn memory_usage(&self) -> usize {
        self.lines.get().map_or(0, |lines| size_of_val(&*lines.bits))
    }

    /// Adds a key, before its entry can be found.
    pub(super) fn add(&self, user_key: &[u8]) {
        let lines = self.lines.get().unwrap_or_else(|| self.first_lines());
        if self.settings.whole_keys {
            lines.add(user_key);
        }
        if let Some(prefix) = self.prefix(user_key) {
            lines.add(prefix);
        }
    }

    /// Whether the memtable has no entry of the key.
    #[inline]
    pub(super) fn rules_out(&self, user_key: &[u8]) -> bool {
        if self.settings.whole_keys {
            !self.may_contain(user_key)
        } else {
            self.rules_out_prefix_of(user_key)
        }
    }

    /// Whether the key has a prefix, and the memtable no entry with it.
    fn rules_out_prefix_of(&self, user_key: &[u8]) -> bool {
        self.prefix(user_key).is_some_and(|prefix| !self.may_contain(prefix))
    }

    fn prefix<'a>(&self, user_key: &'a [u8]) -> Option<&'a [u8]> {
        self.settings.prefixes.as_ref()?.prefix(user_key)
    }

    #[inline]
    fn may_contain(&self, bytes: &[u8]) -> bool {
        let admits = self.lines.get().is_some_and(|lines| lines.may_contain(bytes));
        perf::count(
            if admits {
                PerfMetric::BloomMemtableHitCount
            } else {
                PerfMetric::BloomMemtableMissCount
            },
            1,
        );
        admits
    }

    #[cold]
    fn first_lines(&self) -> &Lines {
        let _one_at_a_time = self.making.lock();
        self.lines.get_or_init(|| self.make_lines())
    }

    fn make_lines(&self) -> Lines {
        let count = self.settings.bytes.div_ceil(size_of::<Line>()).max(1);
        let bits: Box<[Line]> = (0..count).map(|_| Line::default()).collect();
        let account = self.pool.as_ref().map(|pool| pool.account());
        let held = account.map(|account| account.hold(MemoryKind::Memtables, size_of_val(&*bits)));
        Lines { bits, _held: held }
    }
}

impl Lines {
    /// The line of a hash, and its first probe.
    #[inline]
    fn place(&self, bytes: &[u8]) -> (&Line, u32) {
        let hash = hash64(bytes);
        let line = (u128::from(hash) * self.bits.len() as u128) >> 64;
        (&self.bits[line as usize], hash as u32)
    }

    fn add(&self, bytes: &[u8]) {
        let (line, mut h) = self.place(bytes);
        for _ in 0..PROBES {
            let (word, bit) = probe(line, h);
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
            h = h.wrapping_mul(GOLDEN_RATIO);
        }
    }

    #[inline]
    fn may_contain(&self, bytes: &[u8]) -> bool {
        let (line, mut h) = self.place(bytes);
        (0..PROBES).all(|_| {
            let (word, bit) = probe(line, h);
            h = h.wrapping_mul(GOLDEN_RATIO);
            word.load(Ordering::Relaxed) & bit != 0
        })
    }
}

#[inline]
fn probe(line: &Line, h: u32) -> (&AtomicU64, u64) {
    let bit = h >> 23;
    (&line.0[bit as usize >> 6], 1 << (bit & 63))
}

/// A cursor that, while it is confined to prefixes, asks the filter before it seeks. It keeps its
/// memtable's entries alive.
pub struct FilteredCursor<C> {
    entries: C,
    filter: Arc<MemTableFilter>,
    confined: bool,
    /// Whether the last seek ended at the filter: `entries` is where it was before.
    ruled_out: bool,
}

impl<C: InternalIterator> FilteredCursor<C> {
    pub(super) fn new(entries: C, filter: Arc<MemTableFilter>) -> Self {
        Self { entries, filter, confined: false, ruled_out: false }
    }

    /// Whether the target may be sought.
    fn admits(&mut self, target: InternalKey<'_>) -> bool {
        self.ruled_out = self.confined && self.filter.rules_out_prefix_of(target.user_key());
        !self.ruled_out
    }
}

impl<C: InternalIterator> InternalIterator for FilteredCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        !self.ruled_out && self.entries.valid()
    }

    fn seek_to_first(&mut self) {
        self.ruled_out = false;
        self.entries.seek_to_first();
    }

    fn seek_to_last(&mut self) {
        self.ruled_out = false;
        self.entries.seek_to_last();
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        if self.admits(target) {
            self.entries.seek(target);
        }
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        if self.admits(target) {
            self.entries.seek_for_prev(target);
        }
    }

    fn confine(&mut self, to_prefix: bool) {
        self.confined = to_prefix;
        self.entries.confine(to_prefix);
    }

    #[inline]
    fn next(&mut self) {
        self.entries.next();
    }

    fn prev(&mut self) {
        self.entries.prev();
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        self.entries.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.entries.value()
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        self.entries.pin_value()
    }

    fn status(&self) -> Result<()> {
        self.entries.status()
    }
}
