//! Figures of compactions, as listeners are told of them.

use std::ffi::c_char;

use flagstone::reports::{JobInfo, SubcompactionInfo, TableInfo, TableProperties};

use crate::abi::{Out, handles};
use crate::api::c_api;
use crate::event_infos::lend;

/// The figures of a compaction.
pub struct Stats {
    /// The compaction.
    pub job: JobInfo,
}

impl Stats {
    /// Those of a part of a compaction.
    pub fn of_part(part: &SubcompactionInfo) -> Self {
        let mut job = JobInfo::default();
        job.stats.entries_read = part.entries_read;
        Self { job }
    }
}

/// The first bytes of a key, as many as RocksDB has of it here.
fn prefix(key: &[u8]) -> &[u8] {
    &key[..key.len().min(8)]
}

handles! { Stats = "compaction_job_stats", }

/// The sum of a figure over tables whose properties are known.
pub fn sum(tables: &[TableInfo], figure: impl Fn(&TableProperties) -> u64) -> u64 {
    tables.iter().filter_map(|table| table.properties.as_deref()).map(figure).sum()
}

/// Bytes of tables.
pub fn bytes(tables: &[TableInfo]) -> u64 {
    tables.iter().map(|table| table.size).sum()
}

/// Bytes of the blob files that a job wrote.
pub fn blob_bytes(job: &JobInfo) -> u64 {
    job.blob_files.iter().map(|blob| blob.size).sum()
}

/// How many inputs of a compaction lay in the level that it writes to.
pub fn inputs_at_output_level(job: &JobInfo) -> usize {
    job.inputs.iter().filter(|input| input.level == job.output_level).count()
}

c_api! {
    fn rocksdb_compaction_job_stats_elapsed_micros(info: &Stats) -> u64 {
        info.job.stats.micros
    }

    fn rocksdb_compaction_job_stats_has_accurate_num_input_records(_info: &Stats) -> u8 {
        1
    }

    fn rocksdb_compaction_job_stats_num_input_records(info: &Stats) -> u64 {
        info.job.stats.entries_read
    }

    fn rocksdb_compaction_job_stats_num_input_files(info: &Stats) -> usize {
        info.job.inputs.len()
    }

    fn rocksdb_compaction_job_stats_num_input_files_trivially_moved(info: &Stats) -> usize {
        if info.job.stats.is_move { info.job.inputs.len() } else { 0 }
    }

    fn rocksdb_compaction_job_stats_num_input_files_at_output_level(info: &Stats) -> usize {
        inputs_at_output_level(&info.job)
    }

    fn rocksdb_compaction_job_stats_num_output_records(info: &Stats) -> u64 {
        sum(&info.job.tables, |of| of.num_entries)
    }

    fn rocksdb_compaction_job_stats_num_output_files(info: &Stats) -> usize {
        info.job.tables.len()
    }

    fn rocksdb_compaction_job_stats_num_output_files_blob(info: &Stats) -> usize {
        info.job.blob_files.len()
    }

    fn rocksdb_compaction_job_stats_is_full_compaction(info: &Stats) -> u8 {
        info.job.stats.is_full.into()
    }

    fn rocksdb_compaction_job_stats_is_manual_compaction(info: &Stats) -> u8 {
        info.job.stats.is_manual.into()
    }

    fn rocksdb_compaction_job_stats_is_remote_compaction(info: &Stats) -> u8 {
        info.job.stats.is_remote.into()
    }

    fn rocksdb_compaction_job_stats_total_input_bytes(info: &Stats) -> u64 {
        bytes(&info.job.inputs)
    }

    fn rocksdb_compaction_job_stats_total_output_bytes(info: &Stats) -> u64 {
        bytes(&info.job.tables)
    }

    fn rocksdb_compaction_job_stats_total_output_bytes_blob(info: &Stats) -> u64 {
        blob_bytes(&info.job)
    }

    fn rocksdb_compaction_job_stats_total_input_raw_key_bytes(info: &Stats) -> u64 {
        sum(&info.job.inputs, |of| of.raw_key_size)
    }

    fn rocksdb_compaction_job_stats_total_input_raw_value_bytes(info: &Stats) -> u64 {
        sum(&info.job.inputs, |of| of.raw_value_size)
    }

    fn rocksdb_compaction_job_stats_num_input_deletion_records(info: &Stats) -> u64 {
        sum(&info.job.inputs, |of| of.num_deletions)
    }

    fn rocksdb_compaction_job_stats_num_corrupt_keys(info: &Stats) -> u64 {
        info.job.stats.key_faults
    }

    fn rocksdb_compaction_job_stats_num_blobs_read(info: &Stats) -> u64 {
        info.job.stats.relocated_blobs
    }

    fn rocksdb_compaction_job_stats_total_blob_bytes_read(info: &Stats) -> u64 {
        info.job.stats.relocated_bytes
    }

    fn rocksdb_compaction_job_stats_smallest_output_key_prefix(
        info: &Stats, len: Out<usize>
    ) -> *const c_char {
        let first = info.job.tables.first();
        lend(first.map_or(&[], |table| prefix(&table.key_range.0)), len)
    }

    fn rocksdb_compaction_job_stats_largest_output_key_prefix(
        info: &Stats, len: Out<usize>
    ) -> *const c_char {
        let last = info.job.tables.last();
        lend(last.map_or(&[], |table| prefix(&table.key_range.1)), len)
    }
}

// What is not counted.
c_api! {
    fn rocksdb_compaction_job_stats_cpu_micros(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_file_fsync_nanos(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_file_prepare_write_nanos(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_file_range_sync_nanos(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_file_write_nanos(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_num_expired_deletion_records(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_num_records_replaced(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_num_single_del_fallthru(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_num_single_del_mismatch(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_total_skipped_input_bytes(_info: &Stats) -> u64 {
        0
    }

    fn rocksdb_compaction_job_stats_num_filtered_input_files(_info: &Stats) -> usize {
        0
    }

    fn rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level(
        _info: &Stats
    ) -> usize {
        0
    }
}
