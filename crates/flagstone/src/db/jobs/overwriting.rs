//! Whether what is flushed takes the place of something older: a few keys are looked up, before a
//! merge tells for all.
//!
//! Only where memtables hold values that lie in blob files or will: what these leave behind is what
//! blob files may waste, and the keys are few.

use std::sync::Arc;

use crate::base::{InternalIterator, InternalKey, Result, ValueType};
use crate::blob::visit_references;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::jobs::Jobs;
use crate::db::statistics::Ticker;
use crate::iter::Outcome;
use crate::options::ReadOptions;

/// How many keys of a memtable are looked up.
const SAMPLES: u64 = 16;

/// Looks up some keys of the newest of these memtables, and notes how many of them overwrite
/// something.
pub(in crate::db) fn sample_overwrites(
    jobs: &Jobs,
    family: &Arc<Family>,
    memtables: &[Arc<Generation>],
) {
    if family.order.timestamp_size() > 0 {
        // Each timestamp is a version of its own, which overwrites nothing.
        return;
    }
    let options = family.options.load();
    let bounds_space = options.separates_values() && options.max_space_amplification > 0.0;
    // Smaller ones lie in the memtable itself until it is flushed.
    let is_large = |newest: &Generation| {
        newest.is_mostly_blobs() || newest.mean_entry() >= options.smallest_blob()
    };
    let Some(newest) = memtables.last().filter(|newest| bounds_space && is_large(newest)) else {
        return;
    };
    // What cannot be read is met by those who need it.
    let Ok(share) = share_of_overwrites(jobs, family, newest) else {
        jobs.context.statistics.add(Ticker::TablesNotOpened, 1);
        return;
    };
    jobs.tree.note_share_of_overwrites(family, share);
}

/// About how many bytes of values in blob files become garbage with a memtable: some of its
/// keys are looked up in what is older. Merge operands do not count, as what comes of them
/// takes the place again.
pub(in crate::db) fn blob_bytes_overwritten(
    jobs: &Jobs,
    family: &Arc<Family>,
    memtable: &Generation,
) -> Result<u64> {
    let Some(first) = memtable.first_sequence() else { return Ok(0) };
    if family.order.timestamp_size() > 0 {
        return Ok(0);
    }
    let (mut looked_up, mut bytes) = (0u64, 0u64);
    look_up_some(memtable, |entry, options| {
        looked_up += 1;
        let (key, before) = (entry.user_key(), first.saturating_sub(1));
        let current = family.current.load();
        let older = jobs.reader.search(options, family, &current, before, key)?.finish();
        match older {
            Outcome::Found(kind, stored) if entry.value_type() != Some(ValueType::Merge) => {
                visit_references(Some(kind), &stored, |index| {
                    bytes = bytes.saturating_add(index.record_bytes(key.len()));
                    Ok(())
                })
            }
            _ => Ok(()),
        }
    })?;
    Ok((bytes / looked_up.max(1)).saturating_mul(memtable.num_entries()))
}

fn share_of_overwrites(jobs: &Jobs, family: &Arc<Family>, memtable: &Generation) -> Result<f64> {
    let (mut looked_up, mut overwrites) = (0u32, 0u32);
    look_up_some(memtable, |entry, options| {
        let (key, before) = (entry.user_key(), entry.sequence().saturating_sub(1));
        let current = family.current.load();
        let older = jobs.reader.search(options, family, &current, before, key)?.finish();
        looked_up += 1;
        overwrites += u32::from(!matches!(older, Outcome::NotFound));
        Ok(())
    })?;
    Ok(f64::from(overwrites) / f64::from(looked_up.max(1)))
}

/// Goes through a memtable and calls `look_up` with [`SAMPLES`] of its entries, or a few more.
fn look_up_some(
    memtable: &Generation,
    mut look_up: impl FnMut(InternalKey<'_>, &ReadOptions) -> Result<()>,
) -> Result<()> {
    let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    let stride = (memtable.num_entries() / SAMPLES).max(1);
    let mut entries = memtable.iter();
    entries.seek_to_first();
    let mut at = 0;
    while entries.valid() {
        if at % stride == 0 {
            look_up(entries.key(), &options)?;
        }
        entries.next();
        at += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
