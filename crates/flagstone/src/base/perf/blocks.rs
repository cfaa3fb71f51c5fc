//! What blocks of tables are read for.

use std::cell::Cell;

use super::{Metric, PerfLevelMetric, PerfMetric, Timer, count_at_level, counts, time};

/// What a block of a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Data,
    Index,
    Filter,
    Dictionary,
    Metadata,
}

thread_local! {
    static KIND: Cell<BlockKind> = const { Cell::new(BlockKind::Metadata) };
}

/// Restores what was read before.
#[must_use = "the kind counts until this is dropped"]
pub(crate) struct KindScope(Option<BlockKind>);

/// Until the end of the scope, the calling thread reads blocks of this kind; outside of any scope,
/// those of other kinds.
#[inline]
pub(crate) fn reading(kind: BlockKind) -> KindScope {
    KindScope(if counts() { Some(KIND.replace(kind)) } else { None })
}

impl Drop for KindScope {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            KIND.set(before);
        }
    }
}

/// Takes the time of a read of a block.
#[must_use = "a timer that is dropped at once takes no time"]
pub(crate) struct BlockRead {
    _time: Timer,
    _cpu: Timer,
}

/// A block is read from its file, `bytes` with its trailer.
#[inline]
pub(crate) fn read_block(bytes: usize) -> BlockRead {
    if counts() {
        note_read(bytes);
    }
    BlockRead { _time: time(PerfMetric::BlockReadTime), _cpu: time(PerfMetric::BlockReadCpuTime) }
}

#[cold]
#[inline(never)]
fn note_read(bytes: usize) {
    let bytes = bytes as u64;
    PerfMetric::BlockReadCount.add(1);
    PerfMetric::BlockReadByte.add(bytes);
    match KIND.get() {
        BlockKind::Data => PerfMetric::DataBlockReadByte.add(bytes),
        BlockKind::Index => {
            PerfMetric::IndexBlockReadCount.add(1);
            PerfMetric::IndexBlockReadByte.add(bytes);
        }
        BlockKind::Filter => {
            PerfMetric::FilterBlockReadCount.add(1);
            PerfMetric::FilterBlockReadByte.add(bytes);
        }
        BlockKind::Dictionary => {
            PerfMetric::CompressionDictBlockReadCount.add(1);
            PerfMetric::CompressionDictBlockReadByte.add(bytes);
        }
        BlockKind::Metadata => PerfMetric::MetadataBlockReadByte.add(bytes),
    }
}

/// The block cache has a block, of so many bytes of memory.
#[inline]
pub(crate) fn hit(kind: BlockKind, bytes: impl FnOnce() -> usize) {
    if counts() {
        note_hit(kind, bytes() as u64);
    }
}

#[cold]
#[inline(never)]
fn note_hit(kind: BlockKind, bytes: u64) {
    PerfMetric::BlockCacheHitCount.add(1);
    PerfMetric::BlockCacheReadByte.add(bytes);
    count_at_level(PerfLevelMetric::BlockCacheHitCount, 1);
    match kind {
        BlockKind::Index => {
            PerfMetric::BlockCacheIndexHitCount.add(1);
            PerfMetric::BlockCacheIndexReadByte.add(bytes);
        }
        BlockKind::Filter => {
            PerfMetric::BlockCacheFilterHitCount.add(1);
            PerfMetric::BlockCacheFilterReadByte.add(bytes);
        }
        _ => {}
    }
}

/// A filter was asked for a key.
#[inline]
pub(crate) fn asked_filter(admits: bool) {
    if counts() {
        note_filter(admits);
    }
}

#[cold]
#[inline(never)]
fn note_filter(admits: bool) {
    let (metric, at_level) = if admits {
        (PerfMetric::BloomSstHitCount, PerfLevelMetric::BloomFilterFullPositive)
    } else {
        (PerfMetric::BloomSstMissCount, PerfLevelMetric::BloomFilterUseful)
    };
    metric.add(1);
    count_at_level(at_level, 1);
}
