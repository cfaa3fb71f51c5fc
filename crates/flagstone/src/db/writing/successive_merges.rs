//! Merging at once what would become a long chain of operands in a memtable
//! (`max_successive_merges`).
//!
//! Where the newest entries of a key in the memtable are so many operands, the next one goes there
//! as the value that all of them make. The WAL has the operand all the same, and a replay comes to
//! the same value.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::merge::full_merge;
use crate::base::sync::Ordering;
use crate::base::{MAX_SEQUENCE_NUMBER, SequenceNumber, Sometimes, ValueType};
use crate::batch::WriteBatch;
use crate::db::reading::Reader;
use crate::db::writing::commit::Destination;
use crate::iter::Outcome;
use crate::memtable::MemTable;
use crate::options::ReadOptions;

/// The value that goes into the memtable in place of an operand; `None` if the operand does. All
/// earlier writes are in the memtable.
#[inline]
pub(super) fn merged_at_once(
    reader: &Reader,
    target: &Destination,
    key: &[u8],
    operand: &[u8],
    sequence: SequenceNumber,
) -> Option<Vec<u8>> {
    match target.family.limits.max_successive_merges.load(Ordering::Relaxed) {
        0 => None,
        most => merge_now(reader, target, most, key, operand, sequence),
    }
}

#[cold]
fn merge_now(
    reader: &Reader,
    target: &Destination,
    most: u64,
    key: &[u8],
    operand: &[u8],
    sequence: SequenceNumber,
) -> Option<Vec<u8>> {
    if newest_operands(&target.mem, key, most) < most {
        return None;
    }
    let family = &target.family;
    let operator = family.options.load().merge_operator.clone()?;
    if operator.merges_columns() {
        // It may make an entity, also of values.
        return None;
    }
    // Other writers wait: what is not in memory is left to readers and compactions, and so is
    // whatever fails.
    let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let current = family.current.load_full();
    let lookup = reader.search(&options, family, &current, sequence - 1, key).ok()?;
    let outcome = lookup.finish();
    if let Outcome::Merge { base: Some((ValueType::WideColumnEntity, _)), .. } = &outcome {
        // A value would take the place of all its columns.
        return None;
    }
    // The batch is in the WAL: an operator that panics must not leave half of it in the
    // memtable.
    let merged = catch_unwind(AssertUnwindSafe(|| {
        let existing = reader.finish_outcome(&options, family, &current, key, outcome).ok()??;
        full_merge(&*operator, key, Some(&existing), &[operand]).ok()
    }));
    let panicked =
        |_| tracing::error!("a merge operator panicked during a write; the operand stays unmerged");
    let value = merged.map_err(panicked).ok()??;
    WriteBatch::check_put(key, &value).ok()?;
    Sometimes::MergedAtOnce.reached();
    Some(value)
}
/// How many of the newest entries of a key are operands, as far as that matters.
fn newest_operands(mem: &MemTable, key: &[u8], most: u64) -> u64 {
    let mut count = 0;
    let looked = mem.get(key, MAX_SEQUENCE_NUMBER, |_, kind, _| {
        count += u64::from(kind == ValueType::Merge);
        if kind == ValueType::Merge && count < most {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    // What is damaged is left to readers.
    if looked.is_ok() { count } else { 0 }
}
