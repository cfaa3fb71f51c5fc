//! Reports about the files of a family, in RocksDB's shape.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::space::blob_file_bytes;
use crate::manifest::{TableFile, Version};
use crate::sst::TableProperties;

/// Bytes of blob files, but for holes.
pub(super) struct BlobFileTotals {
    pub(super) total: u64,
    pub(super) garbage: u64,
}

impl BlobFileTotals {
    /// How much more space they take than what of them is alive.
    pub(super) fn amplification(&self) -> f64 {
        match self.total.saturating_sub(self.garbage) {
            0 => 0.0,
            live => self.total as f64 / live as f64,
        }
    }
}

pub(super) fn blob_file_totals(version: &Version) -> BlobFileTotals {
    let garbage = version.blob_files.values().map(|blob| blob.garbage_bytes - blob.punched());
    BlobFileTotals {
        total: blob_file_bytes(version.blob_files.values()),
        garbage: garbage.fold(0, u64::saturating_add),
    }
}

pub(super) fn level_stats(version: &Version) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for (level, files) in version.levels.iter().enumerate() {
        let megabytes = version.level_bytes(level) as f64 / f64::from(1 << 20);
        let _ = writeln!(text, "{level:3} {:8} {megabytes:8.0}", files.len());
    }
    text
}

pub(super) fn table_list(version: &Version) -> String {
    let mut text = String::new();
    for (level, files) in version.levels.iter().enumerate() {
        let _ = writeln!(text, "--- level {level} --- version# 0 ---");
        for file in files {
            let meta = &file.meta;
            let _ = writeln!(
                text,
                " {}:{}[{:?} .. {:?}]",
                meta.number.0, meta.size, meta.smallest, meta.largest
            );
        }
    }
    text
}

pub(super) fn blob_stats(version: &Version) -> String {
    let blobs = blob_file_totals(version);
    format!(
        "Number of blob files: {}\nTotal size of blob files: {}\nTotal size of garbage in blob files: {}\n\
         Blob file space amplification: {:.2}\n",
        version.blob_files.len(),
        blobs.total,
        blobs.garbage,
        blobs.amplification()
    )
}

/// The sums that RocksDB's aggregate of table properties has; its names and times, which tell
/// nothing of several tables, are left out.
pub(super) fn aggregated_properties(sums: &TableProperties) -> String {
    let average = |bytes: u64| {
        if sums.num_entries == 0 { 0.0 } else { bytes as f64 / sums.num_entries as f64 }
    };
    let size = sums.data_size.saturating_add(sums.index_size).saturating_add(sums.filter_size);
    let fields = [
        ("# data blocks", sums.num_data_blocks.to_string()),
        ("# entries", sums.num_entries.to_string()),
        ("# deletions", sums.num_deletions.to_string()),
        ("# merge operands", sums.num_merge_operands.to_string()),
        ("# range deletions", sums.num_range_deletions.to_string()),
        ("raw key size", sums.raw_key_size.to_string()),
        ("raw average key size", format!("{:.6}", average(sums.raw_key_size))),
        ("raw value size", sums.raw_value_size.to_string()),
        ("raw average value size", format!("{:.6}", average(sums.raw_value_size))),
        ("data block size", sums.data_size.to_string()),
        ("index block size", sums.index_size.to_string()),
        ("filter block size", sums.filter_size.to_string()),
        ("# entries for filter", sums.num_filter_entries.to_string()),
        ("(estimated) table size", size.to_string()),
    ];
    fields.iter().map(|(name, value)| format!("{name}={value}; ")).collect()
}

/// The same by RocksDB's names for a map.
pub(super) fn aggregated_map(sums: &TableProperties) -> BTreeMap<String, String> {
    let fields = [
        ("data_size", sums.data_size),
        ("index_size", sums.index_size),
        ("filter_size", sums.filter_size),
        ("raw_key_size", sums.raw_key_size),
        ("raw_value_size", sums.raw_value_size),
        ("num_data_blocks", sums.num_data_blocks),
        ("num_entries", sums.num_entries),
        ("num_filter_entries", sums.num_filter_entries),
        ("num_deletions", sums.num_deletions),
        ("num_merge_operands", sums.num_merge_operands),
        ("num_range_deletions", sums.num_range_deletions),
    ];
    fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// The sums of what tables say of themselves, of one level or of all; `None` if one of them
/// cannot be opened.
pub(super) fn sum_of_properties(
    db: &DbInner,
    family: &Family,
    version: &Version,
    level: Option<usize>,
) -> Option<TableProperties> {
    let mut sums = TableProperties::default();
    for (_, file) in
        version.files().filter(|(of_file, _)| level.is_none_or(|level| level == *of_file))
    {
        sums.add(db.tables.open(family, file).ok()?.properties());
    }
    Some(sums)
}

/// How many times as large the keys and values of these tables are as their files; -1 without
/// tables.
pub(super) fn compression_ratio(
    db: &DbInner,
    family: &Family,
    files: &[Arc<TableFile>],
) -> Option<f64> {
    let (mut raw, mut stored) = (0u64, 0u64);
    for file in files {
        let table = db.tables.open(family, file).ok()?;
        let properties = table.properties();
        raw = raw.saturating_add(properties.raw_key_size).saturating_add(properties.raw_value_size);
        stored = stored.saturating_add(file.meta.size);
    }
    Some(if stored == 0 { -1.0 } else { raw as f64 / stored as f64 })
}
