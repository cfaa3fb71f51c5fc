//! What blocks of tables are read for.

use std::cell::Cell;

use super::{PerfLevelMetric, PerfMetric, Timer, add, count_at_level, counts, time};

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
    add(PerfMetric::BlockReadCount, 1);
    add(PerfMetric::BlockReadByte, bytes);
    match KIND.get() {
        BlockKind::Data => add(PerfMetric::DataBlockReadByte, bytes),
        BlockKind::Index => {
            add(PerfMetric::IndexBlockReadCount, 1);
            add(PerfMetric::IndexBlockReadByte, bytes);
        }
        BlockKind::Filter => {
            add(PerfMetric::FilterBlockReadCount, 1);
            add(PerfMetric::FilterBlockReadByte, bytes);
        }
        BlockKind::Dictionary => {
            add(PerfMetric::CompressionDictBlockReadCount, 1);
            add(PerfMetric::CompressionDictBlockReadByte, bytes);
        }
        BlockKind::Metadata => add(PerfMetric::MetadataBlockReadByte, bytes),
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
    add(PerfMetric::BlockCacheHitCount, 1);
    add(PerfMetric::BlockCacheReadByte, bytes);
    count_at_level(PerfLevelMetric::BlockCacheHitCount, 1);
    match kind {
        BlockKind::Index => {
            add(PerfMetric::BlockCacheIndexHitCount, 1);
            add(PerfMetric::BlockCacheIndexReadByte, bytes);
        }
        BlockKind::Filter => {
            add(PerfMetric::BlockCacheFilterHitCount, 1);
            add(PerfMetric::BlockCacheFilterReadByte, bytes);
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
    add(metric, 1);
    count_at_level(at_level, 1);
}
