//! The levels that a part of a job writes to: one, or the last and the one above it, which gets the
//! young entries (`preclude_last_level_data_seconds`).

use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{InternalKey, Result};
use crate::blob::GarbageMeter;
use crate::db::jobs::output::Job;
use crate::db::jobs::part::{Cuts, PartRange};
use crate::db::jobs::table_writer::TableWriter;
use crate::db::tree::output::JobOutput;
use crate::sst::ReadCacheHits;

/// Takes a part's entries to the tables of its levels.
pub(super) struct Outlets<'a> {
    job: &'a Job<'a>,
    own: Outlet<'a>,
    proximal: Option<Outlet<'a>>,
}

struct Outlet<'a> {
    writer: TableWriter<'a>,
    cuts: Cuts,
}

impl<'a> Outlets<'a> {
    pub(super) fn new(
        job: &'a Job<'a>,
        range: &PartRange,
        read_cache_hits: &'a Arc<ReadCacheHits>,
        cuts: Cuts,
        proximal_cuts: Option<Cuts>,
    ) -> Self {
        let outlet = |target, cuts| Outlet {
            writer: TableWriter::new(job, target, range, read_cache_hits),
            cuts,
        };
        let proximal = job.spec.proximal.zip(proximal_cuts);
        Self {
            job,
            own: outlet(job.spec.target, cuts),
            proximal: proximal.map(|(target, cuts)| outlet(target, cuts)),
        }
    }

    /// Adds the next entry. What refers to a blob file flows out, by `meter`.
    #[inline]
    pub(super) fn add(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        meter: &Mutex<GarbageMeter>,
    ) -> Result<()> {
        let outlet = match &mut self.proximal {
            Some(proximal) if self.job.is_young(key.sequence()) => proximal,
            _ => &mut self.own,
        };
        outlet.writer.add(key, value, &mut outlet.cuts, meter)
    }

    /// Finishes the last tables.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.own.writer.finish_last()?;
        self.proximal.iter_mut().try_for_each(|proximal| proximal.writer.finish_last())
    }

    /// The tables, all of which are finished.
    pub(super) fn into_output(self) -> JobOutput {
        let mut output = self.own.writer.into_output();
        if let Some(proximal) = self.proximal {
            let above = proximal.writer.into_output();
            output.proximal = above.tables.iter().map(|table| table.number).collect();
            output.absorb(above);
        }
        output
    }
}
