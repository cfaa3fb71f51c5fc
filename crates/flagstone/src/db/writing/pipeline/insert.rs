//! Inserting a batch, without the commit lock.

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::Ordering;
use crate::base::{Code, Error, Result, SequenceNumber};
use crate::batch::{HEADER_SIZE, WriteBatch};
use crate::db::family::Family;
use crate::db::tree::Tree;
use crate::db::writing::commit::{Destination, Pins};
use crate::db::writing::direct_blob::{BlobsOfBatch, Source};
use crate::db::writing::operations;
use crate::db::writing::pipeline::Pipeline;
use crate::db::writing::pipeline::insertions::Turn;
use crate::db::writing::pipeline::named::NamedFamilies;
use crate::db::writing::successive_merges::merged_at_once;
use crate::options::BackgroundErrorReason;

/// Whether an operand may become a value when it is inserted, which depends on all before it.
#[inline]
fn merges_at_once(to: &Destination) -> bool {
    to.family.limits.max_successive_merges.load(Ordering::Relaxed) > 0
}

/// Where a comparator of the application panics, what is in the memtable of a batch is not all of
/// it.
struct WholeOrPoisoned<'a>(&'a Tree);

impl Drop for WholeOrPoisoned<'_> {
    #[cold]
    fn drop(&mut self) {
        let error = Error::new(Code::Aborted, "a write panicked halfway");
        self.0.fail(BackgroundErrorReason::Memtable, &error);
    }
}

impl Pipeline {
    /// Puts a batch into its memtables; each counted operation takes one sequence number, from
    /// `first` on, but an empty range deletion takes none away from those after it.
    ///
    /// # Errors
    /// As [`Turn::wait_for_earlier`], where the order matters; `Corruption` if an operation does
    /// not match its checksum.
    #[inline]
    pub(super) fn insert(
        &self,
        pins: &Pins,
        families: &NamedFamilies,
        batch: &WriteBatch,
        first: SequenceNumber,
        turn: &Turn<'_>,
    ) -> Result<()> {
        // A family that was dropped has no destination. Its operations are left out, as the writer
        // has asked for.
        let destinations = || families.ids().filter_map(|id| pins.get(id));
        if destinations().any(merges_at_once) {
            turn.wait_for_earlier()?;
        }
        if let Err(error) = batch.verify_checksum() {
            // It is logged, and in no memtable: only a replay makes both agree.
            self.tree.fail(BackgroundErrorReason::Memtable, &error);
            return Err(error);
        }
        let whole = WholeOrPoisoned(&self.tree);
        let time = perf::time(PerfMetric::WriteMemtableTime);
        self.insert_all(pins, batch, first);
        drop(time);
        std::mem::forget(whole);
        for to in destinations() {
            to.count(&self.memtables.bytes);
            if to.family.is_full(&to.mem) {
                self.memtables.is_any_full.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Records a batch as the program gave it, if operations are traced. Large values that came in
    /// pieces are in no batch, and left out.
    #[inline]
    pub(super) fn trace(&self, batch: &WriteBatch, blobs: &BlobsOfBatch<'_>) {
        let operations = self.context.statistics.operations();
        if operations.is_on() {
            match blobs {
                BlobsOfBatch::Nothing => operations.write(batch.data()),
                BlobsOfBatch::Separated { source: Source::Batch(given), .. } => {
                    operations.write(given.data());
                }
                BlobsOfBatch::Separated { source: Source::Put(family, key, value), .. } => {
                    let mut given = WriteBatch::new();
                    // It was checked before.
                    if given.put_cf(*family, key, value).is_ok() {
                        operations.write(given.data());
                    }
                }
                BlobsOfBatch::Whole(_) => {
                    if let Ok(Some(rest)) = without_blobs(batch) {
                        operations.write(rest.data());
                    }
                }
            }
        }
    }

    fn insert_all(&self, pins: &Pins, batch: &WriteBatch, first: SequenceNumber) {
        let mut sequence = first;
        for operation in batch.iter().map_while(Result::ok) {
            let Some(id) = operation.family() else { continue };
            let Some(to) = pins.get(id) else {
                // Its family is gone and the writer does not mind; replay counts it the same way.
                sequence += u64::from(operation.takes_sequence());
                continue;
            };
            let order = to.family.comparator();
            let merge = |key: &[u8], operand: &[u8]| {
                merged_at_once(&self.reader, to, key, operand, sequence)
            };
            sequence += u64::from(operations::insert(&to.mem, &operation, sequence, order, merge));
        }
    }
}

/// Tells scans, in the order of the writes, which keys a batch sets.
#[cold]
pub(super) fn watch(family: &Family, batch: &WriteBatch, first: SequenceNumber) {
    let operations = batch.iter().map_while(Result::ok);
    for operation in operations.filter(|operation| operation.family() == Some(family.id)) {
        family.dead_ranges.write(first - 1, operation.key_set());
    }
}

/// The operations of a batch that name no blob files; `None` if there are none.
#[cold]
fn without_blobs(batch: &WriteBatch) -> Result<Option<WriteBatch>> {
    let body = &batch.data()[HEADER_SIZE..];
    let mut rest = WriteBatch::new();
    let mut operations = batch.iter();
    let mut start = operations.offset();
    while let Some(operation) = operations.next().transpose()? {
        let end = operations.offset();
        if !operation.names_blobs() {
            rest.push_encoded(&body[start..end], operation.is_counted())?;
        }
        start = end;
    }
    Ok((!rest.is_empty()).then_some(rest))
}
