//! What the result of a worker may say. None of it is believed before.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::{Error, FileNumber, InternalKeyComparator, Result, SequenceNumber};
use crate::compaction::pick::CompactionPlan;
use crate::compaction::remote::{CompactionOrder, CompactionResult, SummedOutput};
use crate::manifest::{FileMetadata, Version, VersionEdit};

/// The files of a result by their numbers, with their sizes and sums.
pub(super) type Sums<'a> = BTreeMap<FileNumber, &'a SummedOutput>;

/// Checks what a result says against the order, and against the version whose tables were read.
///
/// # Errors
/// `Corruption`, saying what cannot be.
pub(super) fn check<'a>(
    order: &CompactionOrder,
    plan: &CompactionPlan,
    version: &Version,
    result: &'a CompactionResult,
) -> Result<Sums<'a>> {
    if result.token != order.token {
        return Err(wrong("the result is that of another order"));
    }
    check_kinds(&result.changes)?;
    let sums = sums_of(order, result)?;
    let tables = &result.changes.new_files;
    tables.iter().try_for_each(|(level, table)| {
        check_table(plan, version, *level, table)?;
        check_references(version, result, table)
    })?;
    if plan.output_level > 0 {
        check_order(&version.comparator, tables)?;
    }
    check_garbage(version, &result.changes)?;
    Ok(sums)
}

fn wrong(what: impl Into<String>) -> Error {
    Error::corruption(what)
}

/// A result adds files and garbage, and says nothing else.
fn check_kinds(changes: &VersionEdit) -> Result<()> {
    let alone = VersionEdit {
        new_files: changes.new_files.clone(),
        blob_file_additions: changes.blob_file_additions.clone(),
        blob_file_garbages: changes.blob_file_garbages.clone(),
        ..VersionEdit::default()
    };
    if *changes == alone { Ok(()) } else { Err(wrong("the result changes more than files")) }
}

/// The files, each of which has a number of its own that was reserved for it.
fn sums_of<'a>(order: &CompactionOrder, result: &'a CompactionResult) -> Result<Sums<'a>> {
    let sums: Sums<'_> = result.files.iter().map(|file| (file.number, file)).collect();
    let tables = result.changes.new_files.iter().map(|(_, table)| (table.number, Some(table.size)));
    let blobs = result.changes.blob_file_additions.iter().map(|blob| (blob.number, None));
    let mut named = BTreeSet::new();
    for (number, size) in tables.chain(blobs) {
        let known = sums.get(&number).filter(|file| size.is_none_or(|size| size == file.size));
        if known.is_none_or(|file| file.size == 0)
            || !order.reserves(number)
            || !named.insert(number)
        {
            return Err(wrong(format!("the result names file {number}, which cannot be")));
        }
    }
    if named.len() != result.files.len() || sums.len() != result.files.len() {
        return Err(wrong("the result has files that belong to no table and no blob file"));
    }
    Ok(sums)
}

fn check_table(
    plan: &CompactionPlan,
    version: &Version,
    level: usize,
    table: &FileMetadata,
) -> Result<()> {
    let cannot = |what: &str| Err(wrong(format!("table {} of the result {what}", table.number)));
    let (order, user) = (&version.comparator, version.comparator.keys());
    if level != plan.output_level || table.path_id != plan.path_id {
        return cannot("belongs to another level or directory");
    }
    let size = order.timestamp_size();
    let fits = [&table.smallest, &table.largest].iter().all(|key| key.user_key().len() >= size);
    if !fits || order.compare(table.smallest.as_key(), table.largest.as_key()).is_gt() {
        return cannot("has bounds that cannot be");
    }
    let (smallest, largest) = (table.smallest.user_key(), table.largest.user_key());
    if user.compare(smallest, &plan.range.smallest).is_lt()
        || user.compare(largest, &plan.range.largest).is_gt()
    {
        return cannot("has keys beyond those of the inputs");
    }
    // What a compaction here would give: the lowest of the inputs, or in level 0 any of them.
    let mut epochs = plan.files().map(|(_, file)| file.meta.epoch_number);
    if table.epoch_number == 0 || !epochs.any(|epoch| epoch == table.epoch_number) {
        return cannot("has the place in history of no input");
    }
    let newest: Option<SequenceNumber> =
        plan.files().map(|(_, file)| file.meta.largest_seqno).max();
    if table.smallest_seqno > table.largest_seqno || Some(table.largest_seqno) > newest {
        return cannot("has sequence numbers that no input has");
    }
    Ok(())
}

/// A table refers to blob files of the version, and to those that the worker wrote.
fn check_references(
    version: &Version,
    result: &CompactionResult,
    table: &FileMetadata,
) -> Result<()> {
    let is_new = |number: &FileNumber| {
        result.changes.blob_file_additions.iter().any(|blob| blob.number == *number)
    };
    let listed = table.blob_references.iter().flat_map(|references| references.files());
    let mut all = listed.map(|(number, _)| number).chain(&table.oldest_blob_file);
    match all.find(|number| !version.blob_files.contains_key(*number) && !is_new(number)) {
        None => Ok(()),
        Some(number) => Err(wrong(format!(
            "table {} of the result refers to blob file {number}, which does not exist",
            table.number
        ))),
    }
}

/// Tables of a deeper level ascend, and do not overlap.
fn check_order(order: &InternalKeyComparator, tables: &[(usize, FileMetadata)]) -> Result<()> {
    let mut pairs = tables.iter().zip(tables.iter().skip(1));
    let is_wrong =
        |((_, before), (_, after)): &(&(usize, FileMetadata), &(usize, FileMetadata))| {
            order.compare(before.largest.as_key(), after.smallest.as_key()).is_ge()
        };
    match pairs.find(is_wrong) {
        None => Ok(()),
        Some(((_, before), (_, after))) => Err(wrong(format!(
            "tables {} and {} of the result overlap",
            before.number, after.number
        ))),
    }
}

/// No more can become garbage of a blob file than is in use.
fn check_garbage(version: &Version, changes: &VersionEdit) -> Result<()> {
    let mut seen = BTreeSet::new();
    for garbage in &changes.blob_file_garbages {
        let is_known = version.blob_files.get(&garbage.number).is_some_and(|blob| {
            let meta = &blob.file.meta;
            garbage.count <= meta.total_count.saturating_sub(blob.garbage_count)
                && garbage.bytes <= meta.total_bytes.saturating_sub(blob.garbage_bytes)
        });
        if !is_known || !seen.insert(garbage.number) {
            return Err(wrong(format!(
                "the result has more garbage of blob file {} than there can be",
                garbage.number
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
