//! How large a block cache without a given size is (`block_cache=auto`): a function from what
//! was seen to the next size.
//!
//! 1. It begins with 32 MiB.
//! 2. Memory is short, or threads wait for it: it has half of what it holds, at least 4 MiB.
//! 3. Misses have cost more than `block_cache_miss_percent` of the process's time over ten seconds,
//!    and the cache is full: it doubles, up to a quarter of the `memory_budget`, if so much memory
//!    is free and none was short for ten seconds. The process's time is that of the clock, or that
//!    of the processors where threads have run for longer. What the doubling was for does not count
//!    for the next.
//! 4. No more than half of it was used for `unused_memory_seconds`: it halves, as often as that
//!    holds, down to 32 MiB.

use std::fmt;

use crate::env::MemoryState;

/// What it begins with, in bytes; RocksDB's default.
pub(in crate::db) const BEGINNING: u64 = 32 << 20;
/// What it keeps where memory is short.
const LEAST: u64 = 4 << 20;
/// Over which time the costs of misses count.
const WINDOW_US: u64 = 10_000_000;
/// How long it waits for what giving memory back has brought.
const PRESSED_EVERY_US: u64 = 2_000_000;
/// Of a limit of memory this part, but no more than so many bytes, is not enough to be free.
const SHORT_PART: u64 = 16;
const SHORT_MAX: u64 = 1 << 30;
/// Where threads have waited for memory for so many percent of the time, there is too little.
const STALLED_PERCENT: f64 = 10.0;

/// What a user may change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::db) struct Rules {
    /// `block_cache_miss_percent`
    pub(in crate::db) miss_percent: f64,
    /// `unused_memory_seconds`
    pub(in crate::db) unused_seconds: u64,
}

/// What there is to go by, at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::db) struct Seen {
    pub(in crate::db) now_us: u64,
    /// What misses have cost so far, all threads together.
    pub(in crate::db) miss_us: u64,
    /// What all threads of the process have run so far.
    pub(in crate::db) processor_us: u64,
    /// Bytes in the cache.
    pub(in crate::db) cached: u64,
    /// Bytes of it that were used in `unused_seconds`, if these are over.
    pub(in crate::db) used: Option<u64>,
    /// A quarter of the budget.
    pub(in crate::db) most: u64,
    pub(in crate::db) memory: MemoryState,
}

/// Why the cache has its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::db) enum Why {
    /// Nothing has asked for another.
    Beginning,
    /// It grew, since misses cost more than this part of the time.
    Misses { percent: f64 },
    /// Misses cost more than this part of the time, and it may not grow.
    Full { percent: f64 },
    /// Misses cost more than this part of the time, and too little memory is free.
    NoRoom { percent: f64 },
    /// It could not grow, and misses cost little since then.
    Enough,
    /// It shrank: the rest was not used for so long.
    Unused { seconds: u64 },
    /// It shrank: so many bytes were free of those that there are.
    Short { free: u64, limit: u64 },
    /// It shrank: threads waited for memory for this part of the time.
    Stalled { percent: f64 },
}

impl Why {
    /// Whether it has less than reads would have it.
    pub(in crate::db) fn is_too_little(self) -> bool {
        match self {
            Self::Full { .. } | Self::NoRoom { .. } => true,
            Self::Short { .. } | Self::Stalled { .. } => true,
            Self::Beginning | Self::Misses { .. } | Self::Enough | Self::Unused { .. } => false,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        match self {
            Self::Beginning => f.write_str("as it began"),
            Self::Misses { percent } => {
                write!(f, "it grew because misses cost more than {percent}% of the process's time")
            }
            Self::Full { percent } => {
                write!(
                    f,
                    "misses cost more than {percent}% of the process's time, but it may not grow"
                )
            }
            Self::NoRoom { percent } => {
                let rest = "of the process's time, but little memory is free";
                write!(f, "misses cost more than {percent}% {rest}")
            }
            Self::Enough => f.write_str("misses cost little"),
            Self::Unused { seconds } => {
                write!(f, "it shrank because the rest was unused for {seconds} s")
            }
            Self::Short { free, limit } => {
                let (free, limit) = (free / MIB, limit / MIB);
                write!(f, "it shrank because only {free} MiB of {limit} MiB of memory were free")
            }
            Self::Stalled { percent } => {
                write!(
                    f,
                    "it shrank because threads waited for memory for {percent:.0}% of the time"
                )
            }
        }
    }
}

/// A size, and what has to be remembered for the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::db) struct AutoSize {
    pub(in crate::db) bytes: u64,
    pub(in crate::db) why: Why,
    /// When the window began, and what misses had cost and threads had run then.
    window: (u64, u64, u64),
    /// When memory was short last.
    pressed_us: Option<u64>,
}

impl AutoSize {
    /// The first size. `processor_us` as in [`Seen`].
    pub(in crate::db) fn new(now_us: u64, processor_us: u64) -> Self {
        let window = (now_us, 0, processor_us);
        Self { bytes: BEGINNING, why: Why::Beginning, window, pressed_us: None }
    }

    /// The size that follows.
    #[must_use]
    pub(in crate::db) fn next(self, rules: &Rules, seen: &Seen) -> Self {
        let most = seen.most.max(BEGINNING);
        let within = Self { bytes: self.bytes.min(most), ..self };
        match shortage(&seen.memory) {
            Some(why) => within.pressed(why, seen),
            None => within.grown(rules, seen, most).shrunk(rules, seen),
        }
    }

    fn pressed(self, why: Why, seen: &Seen) -> Self {
        let window = seen.begin_window();
        let is_soon = |then| seen.now_us.saturating_sub(then) < PRESSED_EVERY_US;
        if self.pressed_us.is_some_and(is_soon) {
            return Self { window, ..self };
        }
        let half = (self.bytes.min(seen.cached) / 2).max(LEAST).min(self.bytes);
        Self { bytes: half, why, window, pressed_us: Some(seen.now_us) }
    }

    fn grown(self, rules: &Rules, seen: &Seen, most: u64) -> Self {
        let (from_us, miss_us, processor_us) = self.window;
        let passed = seen.now_us.saturating_sub(from_us);
        let ran = seen.processor_us.saturating_sub(processor_us);
        let cost = seen.miss_us.saturating_sub(miss_us);
        let percent = cost as f64 * 100.0 / passed.max(ran).max(WINDOW_US) as f64;
        let window = seen.begin_window();
        if percent > rules.miss_percent {
            let percent = rules.miss_percent;
            let is_full = seen.cached >= self.bytes - self.bytes / 8;
            let (bytes, why) = match () {
                // Another block has room in any case.
                () if !is_full => (self.bytes, self.why),
                () if self.bytes >= most => (self.bytes, Why::Full { percent }),
                () if !self.may_grow(seen) => (self.bytes, Why::NoRoom { percent }),
                () => (self.bytes.saturating_mul(2).min(most), Why::Misses { percent }),
            };
            return Self { bytes, why, window, ..self };
        }
        if passed < WINDOW_US {
            return self;
        }
        let why = match self.why {
            Why::Full { .. } | Why::NoRoom { .. } => Why::Enough,
            why => why,
        };
        Self { why, window, ..self }
    }

    /// Whether there is memory for as much again.
    fn may_grow(&self, seen: &Seen) -> bool {
        let rests = seen.memory.free_bytes.saturating_sub(self.bytes);
        let is_calm = |then| seen.now_us.saturating_sub(then) >= WINDOW_US;
        rests >= too_little(&seen.memory) * 2 && self.pressed_us.is_none_or(is_calm)
    }

    fn shrunk(self, rules: &Rules, seen: &Seen) -> Self {
        let Some(used) = seen.used else { return self };
        let mut bytes = self.bytes;
        while bytes / 2 >= BEGINNING && used <= bytes / 2 {
            bytes /= 2;
        }
        if bytes == self.bytes {
            return self;
        }
        Self { bytes, why: Why::Unused { seconds: rules.unused_seconds }, ..self }
    }
}

impl Seen {
    fn begin_window(&self) -> (u64, u64, u64) {
        (self.now_us, self.miss_us, self.processor_us)
    }
}

/// Free bytes that are too few.
fn too_little(memory: &MemoryState) -> u64 {
    (memory.limit_bytes / SHORT_PART).min(SHORT_MAX)
}

/// Why memory is to be given back.
fn shortage(memory: &MemoryState) -> Option<Why> {
    let &MemoryState { limit_bytes: limit, free_bytes: free, stalled_percent: percent } = memory;
    if free < too_little(memory) {
        return Some(Why::Short { free, limit });
    }
    (percent >= STALLED_PERCENT).then_some(Why::Stalled { percent })
}

#[cfg(test)]
mod tests;
