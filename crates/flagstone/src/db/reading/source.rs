//! One of the sources that a cursor merges, or a job.

use crate::base::perf::{self, PerfMetric, Timer};
use crate::base::{Error, InternalIterator, InternalKey, PinnedValue, Result};
use crate::db::tables::level_files::LevelFiles;
use crate::iter::ConcatIterator;
use crate::memtable::MemTableIterator;
use crate::sst::TableIterator;

/// A cursor over one source; no virtual calls.
pub(in crate::db) enum Source {
    Mem(MemTableIterator),
    Table(TableIterator),
    Level(ConcatIterator<LevelFiles>),
}

impl Source {
    /// Adds to an error about the entry on which the cursor stands, which must be valid, where that
    /// lies, if it is in a table.
    pub(in crate::db) fn locate(&self, error: Error) -> Error {
        match self {
            Self::Mem(_) => error,
            Self::Table(table) => table.locate(error),
            Self::Level(level) => level.current().locate(error),
        }
    }

    /// Counts a seek in a memtable, and takes its time.
    #[inline]
    fn begin_seek(&self) -> Option<Timer> {
        matches!(self, Self::Mem(_)).then(|| {
            perf::count(PerfMetric::SeekOnMemtableCount, 1);
            perf::time(PerfMetric::SeekOnMemtableTime)
        })
    }

    /// Counts a step in a memtable.
    #[inline]
    fn note_step(&self, metric: PerfMetric) {
        if matches!(self, Self::Mem(_)) {
            perf::count(metric, 1);
        }
    }
}

macro_rules! each_source {
    ($source:expr, $inner:ident => $call:expr) => {
        match $source {
            Source::Mem($inner) => $call,
            Source::Table($inner) => $call,
            Source::Level($inner) => $call,
        }
    };
}

impl InternalIterator for Source {
    #[inline]
    fn valid(&self) -> bool {
        each_source!(self, inner => inner.valid())
    }

    fn seek_to_first(&mut self) {
        each_source!(self, inner => inner.seek_to_first());
    }

    fn seek_to_last(&mut self) {
        each_source!(self, inner => inner.seek_to_last());
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        let _time = self.begin_seek();
        each_source!(self, inner => inner.seek(target));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        let _time = self.begin_seek();
        each_source!(self, inner => inner.seek_for_prev(target));
    }

    fn confine(&mut self, to_prefix: bool) {
        each_source!(self, inner => inner.confine(to_prefix));
    }

    #[inline]
    fn next(&mut self) {
        self.note_step(PerfMetric::NextOnMemtableCount);
        each_source!(self, inner => inner.next());
    }

    #[inline]
    fn prev(&mut self) {
        self.note_step(PerfMetric::PrevOnMemtableCount);
        each_source!(self, inner => inner.prev());
    }

    #[inline]
    fn next_key(&mut self) -> Option<InternalKey<'_>> {
        self.note_step(PerfMetric::NextOnMemtableCount);
        each_source!(self, inner => inner.next_key())
    }

    #[inline]
    fn prev_key(&mut self) -> Option<InternalKey<'_>> {
        self.note_step(PerfMetric::PrevOnMemtableCount);
        each_source!(self, inner => inner.prev_key())
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        each_source!(self, inner => inner.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        each_source!(self, inner => inner.value())
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        each_source!(self, inner => inner.pin_value())
    }

    fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        each_source!(self, inner => inner.upcoming(visit));
    }

    fn status(&self) -> Result<()> {
        each_source!(self, inner => inner.status())
    }
}

impl Source {
    /// Lets go of blocks and buffers.
    pub(super) fn rest(&mut self) {
        match self {
            Self::Mem(_) => {}
            Self::Table(inner) => inner.rest(),
            Self::Level(inner) => {
                if let Some(open) = inner.open_cursor() {
                    open.rest();
                }
            }
        }
    }

    /// Whether a cursor over this source shows what came in after it was made.
    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Mem(MemTableIterator::BTree(_) | MemTableIterator::SkipList(_)))
    }
}

impl From<MemTableIterator> for Source {
    fn from(inner: MemTableIterator) -> Self {
        Self::Mem(inner)
    }
}
