//! When writers wait for flushes and compactions.

use super::blob_space::BlobWaste;

/// Why writers wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallCause {
    /// Too many memtables are waiting to be flushed.
    Memtables,
    /// Level 0 has too many files (universal: there are too many sorted runs).
    Level0Files,
    /// Too many bytes are waiting to be compacted.
    PendingCompactionBytes,
    /// Blob files take too much space.
    BlobSpace,
}

/// Whether writers wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WriteStall {
    /// They do not.
    Normal,
    /// They are slowed down.
    Delay {
        /// The first condition that is met.
        cause: StallCause,
        /// How far the worst condition has come from where it begins to delay (0.0) to where it
        /// stops writes (1.0, never quite): what a delay that grows smoothly goes by.
        severity: f64,
    },
    /// They stop until it is better.
    Stop {
        /// The first condition that is met.
        cause: StallCause,
    },
}

/// Where the limits of one family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallSettings {
    /// Memtables, the one being written among them, at which writes stop.
    pub max_write_buffer_number: usize,
    /// Full memtables that are flushed together.
    pub min_write_buffer_number_to_merge: usize,
    /// Files in level 0 at which writes are delayed; `None` for never, as with FIFO compaction.
    pub level0_slowdown_writes_trigger: Option<usize>,
    /// Files in level 0 at which writes stop; `None` for never, as with FIFO compaction.
    pub level0_stop_writes_trigger: Option<usize>,
    /// Bytes to be compacted at which writes are delayed; 0 for never.
    pub soft_pending_compaction_bytes_limit: u64,
    /// Bytes to be compacted at which writes stop; 0 for never.
    pub hard_pending_compaction_bytes_limit: u64,
    /// Compactions only run on request: waiting for them would not end.
    pub disable_auto_compactions: bool,
}

impl Default for StallSettings {
    fn default() -> Self {
        Self {
            max_write_buffer_number: 2,
            min_write_buffer_number_to_merge: 1,
            level0_slowdown_writes_trigger: Some(20),
            level0_stop_writes_trigger: Some(36),
            soft_pending_compaction_bytes_limit: 64 << 30,
            hard_pending_compaction_bytes_limit: 256 << 30,
            disable_auto_compactions: false,
        }
    }
}

/// How one family stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StallInput {
    /// Full memtables that are not flushed yet.
    pub unflushed_memtables: usize,
    /// Files in level 0; with universal compaction all sorted runs.
    pub level0_files: usize,
    /// Bytes waiting to be compacted.
    pub pending_compaction_bytes: u64,
    /// What blob files waste, and where that begins to delay writers and where it delays them most.
    pub blob_waste: BlobWaste,
}

/// Whether the writers of a family wait.
pub fn write_stall(settings: &StallSettings, input: &StallInput) -> WriteStall {
    let measures = measures(settings, input);
    if let Some(measure) =
        measures.iter().find(|measure| measure.stop.is_some_and(|stop| measure.now >= stop))
    {
        return WriteStall::Stop { cause: measure.cause };
    }
    let delays = |measure: &&Measure| measure.delay.is_some_and(|delay| measure.now >= delay);
    match measures.iter().find(delays) {
        None => WriteStall::Normal,
        Some(first) => {
            let severity =
                measures.iter().filter(delays).map(Measure::severity).fold(0.0, f64::max);
            WriteStall::Delay { cause: first.cause, severity }
        }
    }
}

/// How near the family is to where its writers are delayed or stopped, in percent of the limits.
pub fn percent_to_delay(settings: &StallSettings, input: &StallInput) -> u64 {
    let percent = |measure: &Measure| {
        let limit = measure.delay.or(measure.stop)?;
        measure.now.saturating_mul(100).checked_div(limit)
    };
    measures(settings, input).iter().filter_map(percent).max().unwrap_or(0)
}

/// One thing that can be too much.
struct Measure {
    cause: StallCause,
    now: u64,
    delay: Option<u64>,
    stop: Option<u64>,
    /// Where writers are delayed most without being stopped, in place of `stop`.
    worst: Option<u64>,
}

impl Measure {
    fn severity(&self) -> f64 {
        let (Some(delay), Some(most)) = (self.delay, self.stop.or(self.worst)) else { return 0.0 };
        if most <= delay {
            return 0.0;
        }
        (self.now.saturating_sub(delay) as f64 / (most - delay) as f64).min(1.0)
    }
}

/// In the order in which they are blamed.
fn measures(settings: &StallSettings, input: &StallInput) -> [Measure; 4] {
    let compacting = !settings.disable_auto_compactions;
    let files =
        |trigger: Option<usize>| trigger.filter(|_| compacting).map(|trigger| trigger as u64);
    let bytes = |limit: u64| (limit > 0 && compacting).then_some(limit);
    // With few memtables a delay at the last but one would be a delay most of the time.
    let memtable_delay = (settings.max_write_buffer_number > 3).then(|| {
        (settings.max_write_buffer_number - 1).max(settings.min_write_buffer_number_to_merge + 1)
            as u64
    });
    [
        Measure {
            cause: StallCause::Memtables,
            now: input.unflushed_memtables as u64,
            delay: memtable_delay,
            stop: Some(settings.max_write_buffer_number as u64),
            worst: None,
        },
        Measure {
            cause: StallCause::Level0Files,
            now: input.level0_files as u64,
            delay: files(settings.level0_slowdown_writes_trigger),
            stop: files(settings.level0_stop_writes_trigger),
            worst: None,
        },
        Measure {
            cause: StallCause::PendingCompactionBytes,
            now: input.pending_compaction_bytes,
            delay: bytes(settings.soft_pending_compaction_bytes_limit),
            stop: bytes(settings.hard_pending_compaction_bytes_limit),
            worst: None,
        },
        // Nobody stops for it: writers would wait for what only they make collectable.
        Measure {
            cause: StallCause::BlobSpace,
            now: input.blob_waste.bytes,
            delay: bytes(input.blob_waste.delays_at),
            stop: None,
            worst: Some(input.blob_waste.worst_at),
        },
    ]
}

#[cfg(test)]
mod tests;
