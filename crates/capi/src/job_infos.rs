//! What listeners are told of flushes and compactions.

use std::ffi::c_char;

use flagstone::base::SubCode;
use flagstone::reports::{
    CompactionReason, FlushReason, JobInfo, JobReason, StallCondition, SubcompactionInfo,
    TableInfo, TableProperties,
};
use flagstone_rocksdb as rdb;

use crate::abi::{Handle, Out, Tagged, handles};
use crate::api::{c_api, creates, destroys};
use crate::convert::Choice;
use crate::event_infos::{
    BlobAddition, BlobGarbage, FileOfJob, Part, count, int, lend, lend_at, oldest_blob_file,
    path_bytes,
};
use crate::job_stats::{Stats, blob_bytes, bytes, inputs_at_output_level, sum};
use crate::table_properties::Properties;

/// C's pointer to one of several parts; NULL behind the last.
fn part_at<T: Handle>(parts: &[Part<T>], at: usize) -> *const Tagged<T> {
    parts.get(at).map_or(std::ptr::null(), Part::pointer)
}

/// RocksDB's number of the reason of a flush.
fn flush_reason(reason: JobReason) -> u32 {
    match reason {
        JobReason::Flush(FlushReason::Copy) => 1,
        JobReason::Flush(FlushReason::Close) => 2,
        JobReason::Flush(FlushReason::Ingestion) => 3,
        JobReason::Flush(FlushReason::ManualCompaction) => 4,
        JobReason::Flush(FlushReason::MemoryLimit) => 5,
        JobReason::Flush(FlushReason::WriteBufferFull) => 6,
        JobReason::Flush(FlushReason::Manual) => 10,
        JobReason::Flush(FlushReason::WalFull) => 13,
        _ => 0,
    }
}

/// RocksDB's number of the reason of a compaction.
fn compaction_reason(reason: JobReason) -> u32 {
    match reason {
        JobReason::Compaction(reason) => number_of_reason(reason),
        JobReason::Flush(_) => 0,
    }
}

/// RocksDB's number of the reason of a compaction.
pub fn number_of_reason(reason: CompactionReason) -> u32 {
    match reason {
        CompactionReason::Level0Files | CompactionReason::IntraLevel0 => 1,
        CompactionReason::LevelSize => 2,
        CompactionReason::SizeAmplification => 3,
        CompactionReason::SizeRatio => 4,
        CompactionReason::SortedRuns => 5,
        CompactionReason::FifoSize => 6,
        CompactionReason::Manual => 9,
        CompactionReason::Marked => 10,
        CompactionReason::Bottommost => 11,
        CompactionReason::Ttl => 12,
        CompactionReason::Periodic => 15,
        CompactionReason::Temperature => 16,
        CompactionReason::BlobGarbage => 17,
        CompactionReason::Deletions => 0,
    }
}

fn is_aborted(outcome: &flagstone::Result<()>) -> bool {
    outcome.as_ref().is_err_and(|error| error.subcode() == SubCode::CompactionAborted)
}

/// The largest sequence number, which is RocksDB's smallest of no entry.
const SEQUENCE_MAX: u64 = (1 << 56) - 1;

/// A flush.
pub struct FlushInfo {
    job: JobInfo,
    path: Vec<u8>,
    properties: Part<Properties>,
    blobs: Vec<Part<BlobAddition>>,
}

impl FlushInfo {
    /// The flush as C sees it.
    pub fn of(job: &JobInfo) -> Self {
        let table = job.tables.first();
        let properties = table.and_then(|table| table.properties.clone()).unwrap_or_default();
        Self {
            path: table.map_or(Vec::new(), |table| path_bytes(&table.path).to_vec()),
            properties: Part::new(Properties::of(properties).with_seqnos(table)),
            blobs: blobs_of(job),
            job: job.clone(),
        }
    }

    fn table(&self) -> Option<&TableInfo> {
        self.job.tables.first()
    }
}

fn blobs_of(job: &JobInfo) -> Vec<Part<BlobAddition>> {
    job.blob_files.iter().map(|blob| Part::new(BlobAddition(blob.clone()))).collect()
}

/// A table of a compaction.
struct NamedFile {
    path: Vec<u8>,
    info: Part<FileOfJob>,
}

impl NamedFile {
    fn of(table: &TableInfo) -> Self {
        let path = path_bytes(&table.path).to_vec();
        Self { path, info: Part::new(FileOfJob(table.clone())) }
    }
}

/// A compaction.
pub struct CompactionInfo {
    job: JobInfo,
    inputs: Vec<NamedFile>,
    outputs: Vec<NamedFile>,
    properties: Vec<(Vec<u8>, Part<Properties>)>,
    stats: Part<Stats>,
    blobs: Vec<Part<BlobAddition>>,
    garbage: Vec<Part<BlobGarbage>>,
}

impl CompactionInfo {
    /// One that begins, as C sees it.
    pub fn begun(job: &JobInfo) -> Self {
        Self::with_outputs(job, &[])
    }

    /// One that ended, as C sees it: what was moved is an output, too.
    pub fn of(job: &JobInfo) -> Self {
        if !job.stats.is_move || job.outcome.is_err() {
            return Self::with_outputs(job, &job.tables);
        }
        let mut moved = job.inputs.clone();
        moved.iter_mut().for_each(|table| table.level = job.output_level);
        Self::with_outputs(job, &moved)
    }

    fn with_outputs(job: &JobInfo, outputs: &[TableInfo]) -> Self {
        let named = |table: &TableInfo| {
            let properties = Properties::of(table.properties.clone()?);
            Some((path_bytes(&table.path).to_vec(), Part::new(properties)))
        };
        let garbage = job.blob_garbage.iter().map(|info| Part::new(BlobGarbage(info.clone())));
        Self {
            inputs: job.inputs.iter().map(NamedFile::of).collect(),
            outputs: outputs.iter().map(NamedFile::of).collect(),
            properties: job.inputs.iter().chain(&job.tables).filter_map(named).collect(),
            stats: Part::new(Stats { job: job.clone() }),
            blobs: blobs_of(job),
            garbage: garbage.collect(),
            job: job.clone(),
        }
    }

    fn sum_of_outputs(&self, figure: impl Fn(&TableProperties) -> u64) -> u64 {
        sum(&self.job.tables, figure)
    }

    fn bytes_written(&self) -> u64 {
        bytes(&self.job.tables) + blob_bytes(&self.job)
    }

    fn inputs_at_output_level(&self) -> usize {
        inputs_at_output_level(&self.job)
    }
}

/// A part of a compaction.
pub struct PartInfo(SubcompactionInfo, Part<Stats>);

impl PartInfo {
    /// The part as C sees it.
    pub fn of(part: &SubcompactionInfo) -> Self {
        Self(part.clone(), Part::new(Stats::of_part(part)))
    }
}

impl Default for CompactionInfo {
    fn default() -> Self {
        Self::begun(&JobInfo::default())
    }
}

handles! {
    FlushInfo = "flushjobinfo",
    CompactionInfo = "compactionjobinfo",
    PartInfo = "subcompactionjobinfo",
}

creates! { rocksdb_compactionjobinfo_create: CompactionInfo, }
destroys! { rocksdb_compactionjobinfo_destroy: CompactionInfo, }

c_api! {
    fn rocksdb_flushjobinfo_cf_id(info: &FlushInfo) -> u32 {
        info.job.family.0
    }

    fn rocksdb_flushjobinfo_cf_name(info: &FlushInfo, len: Out<usize>) -> *const c_char {
        lend(info.job.family_name.as_bytes(), len)
    }

    fn rocksdb_flushjobinfo_file_path(info: &FlushInfo, len: Out<usize>) -> *const c_char {
        lend(&info.path, len)
    }

    fn rocksdb_flushjobinfo_file_number(info: &FlushInfo) -> u64 {
        info.table().map_or(0, |table| table.number.0)
    }

    fn rocksdb_flushjobinfo_oldest_blob_file_number(info: &FlushInfo) -> u64 {
        info.table().map_or(0, oldest_blob_file)
    }

    fn rocksdb_flushjobinfo_thread_id(info: &FlushInfo) -> u64 {
        info.job.thread
    }

    fn rocksdb_flushjobinfo_job_id(info: &FlushInfo) -> i32 {
        int(info.job.job)
    }

    fn rocksdb_flushjobinfo_triggered_writes_slowdown(info: &FlushInfo) -> u8 {
        // What stops writers is beyond what slows them down.
        (info.job.stats.stall != StallCondition::Normal).into()
    }

    fn rocksdb_flushjobinfo_triggered_writes_stop(info: &FlushInfo) -> u8 {
        (info.job.stats.stall == StallCondition::Stopped).into()
    }

    fn rocksdb_flushjobinfo_smallest_seqno(info: &FlushInfo) -> u64 {
        info.table().map_or(SEQUENCE_MAX, |table| table.smallest_seqno)
    }

    fn rocksdb_flushjobinfo_largest_seqno(info: &FlushInfo) -> u64 {
        info.table().map_or(0, |table| table.largest_seqno)
    }

    fn rocksdb_flushjobinfo_flush_reason(info: &FlushInfo) -> u32 {
        flush_reason(info.job.reason)
    }

    fn rocksdb_flushjobinfo_blob_compression_type(info: &FlushInfo) -> u32 {
        info.job.blob_compression.number().unsigned_abs()
    }

    fn rocksdb_flushjobinfo_table_properties(info: &FlushInfo) -> *const Tagged<Properties> {
        info.properties.pointer()
    }

    fn rocksdb_flushjobinfo_blob_file_addition_infos_count(info: &FlushInfo) -> usize {
        info.blobs.len()
    }

    fn rocksdb_flushjobinfo_blob_file_addition_info_at(
        info: &FlushInfo, at: usize
    ) -> *const Tagged<BlobAddition> {
        part_at(&info.blobs, at)
    }

    fn rocksdb_compactionjobinfo_cf_id(info: &CompactionInfo) -> u32 {
        info.job.family.0
    }

    fn rocksdb_compactionjobinfo_cf_name(info: &CompactionInfo, len: Out<usize>) -> *const c_char {
        lend(info.job.family_name.as_bytes(), len)
    }

    fn rocksdb_compactionjobinfo_status(info: &CompactionInfo, error) {
        info.job.outcome.clone().map_err(rdb::Error::from)?;
    }

    fn rocksdb_compactionjobinfo_thread_id(info: &CompactionInfo) -> u64 {
        info.job.thread
    }

    fn rocksdb_compactionjobinfo_job_id(info: &CompactionInfo) -> i32 {
        int(info.job.job)
    }

    fn rocksdb_compactionjobinfo_num_l0_files(info: &CompactionInfo) -> i32 {
        count(info.job.stats.level0_files)
    }

    fn rocksdb_compactionjobinfo_base_input_level(info: &CompactionInfo) -> i32 {
        count(info.job.start_level)
    }

    fn rocksdb_compactionjobinfo_output_level(info: &CompactionInfo) -> i32 {
        count(info.job.output_level)
    }

    fn rocksdb_compactionjobinfo_compaction_reason(info: &CompactionInfo) -> u32 {
        compaction_reason(info.job.reason)
    }

    fn rocksdb_compactionjobinfo_compression(info: &CompactionInfo) -> u32 {
        info.job.compression.number().unsigned_abs()
    }

    fn rocksdb_compactionjobinfo_blob_compression_type(info: &CompactionInfo) -> u32 {
        info.job.blob_compression.number().unsigned_abs()
    }

    fn rocksdb_compactionjobinfo_aborted(info: &CompactionInfo) -> u8 {
        is_aborted(&info.job.outcome).into()
    }

    fn rocksdb_compactionjobinfo_input_files_count(info: &CompactionInfo) -> usize {
        info.inputs.len()
    }

    fn rocksdb_compactionjobinfo_output_files_count(info: &CompactionInfo) -> usize {
        info.outputs.len()
    }

    fn rocksdb_compactionjobinfo_elapsed_micros(info: &CompactionInfo) -> u64 {
        info.job.stats.micros
    }

    fn rocksdb_compactionjobinfo_num_corrupt_keys(info: &CompactionInfo) -> u64 {
        info.job.stats.key_faults
    }

    fn rocksdb_compactionjobinfo_input_records(info: &CompactionInfo) -> u64 {
        info.job.stats.entries_read
    }

    fn rocksdb_compactionjobinfo_output_records(info: &CompactionInfo) -> u64 {
        info.sum_of_outputs(|of| of.num_entries)
    }

    fn rocksdb_compactionjobinfo_total_input_bytes(info: &CompactionInfo) -> u64 {
        bytes(&info.job.inputs)
    }

    fn rocksdb_compactionjobinfo_total_output_bytes(info: &CompactionInfo) -> u64 {
        info.bytes_written()
    }

    fn rocksdb_compactionjobinfo_num_input_files(info: &CompactionInfo) -> usize {
        info.inputs.len()
    }

    fn rocksdb_compactionjobinfo_num_input_files_at_output_level(info: &CompactionInfo) -> usize {
        info.inputs_at_output_level()
    }

    fn rocksdb_compactionjobinfo_input_file_at(
        info: &CompactionInfo, at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(info.inputs.get(at).map(|file| &*file.path), len)
    }

    fn rocksdb_compactionjobinfo_output_file_at(
        info: &CompactionInfo, at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(info.outputs.get(at).map(|file| &*file.path), len)
    }

    fn rocksdb_compactionjobinfo_stats(info: &CompactionInfo) -> *const Tagged<Stats> {
        info.stats.pointer()
    }

    fn rocksdb_compactionjobinfo_input_file_infos_count(info: &CompactionInfo) -> usize {
        info.inputs.len()
    }

    fn rocksdb_compactionjobinfo_input_file_info_at(
        info: &CompactionInfo, at: usize
    ) -> *const Tagged<FileOfJob> {
        info.inputs.get(at).map_or(std::ptr::null(), |file| file.info.pointer())
    }

    fn rocksdb_compactionjobinfo_output_file_infos_count(info: &CompactionInfo) -> usize {
        info.outputs.len()
    }

    fn rocksdb_compactionjobinfo_output_file_info_at(
        info: &CompactionInfo, at: usize
    ) -> *const Tagged<FileOfJob> {
        info.outputs.get(at).map_or(std::ptr::null(), |file| file.info.pointer())
    }

    fn rocksdb_compactionjobinfo_table_properties_count(info: &CompactionInfo) -> usize {
        info.properties.len()
    }

    fn rocksdb_compactionjobinfo_table_properties_key_at(
        info: &CompactionInfo, at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(info.properties.get(at).map(|(path, _)| &**path), len)
    }

    fn rocksdb_compactionjobinfo_table_properties_value_at(
        info: &CompactionInfo, at: usize
    ) -> *const Tagged<Properties> {
        info.properties.get(at).map_or(std::ptr::null(), |(_, properties)| properties.pointer())
    }

    fn rocksdb_compactionjobinfo_blob_file_addition_infos_count(info: &CompactionInfo) -> usize {
        info.blobs.len()
    }

    fn rocksdb_compactionjobinfo_blob_file_addition_info_at(
        info: &CompactionInfo, at: usize
    ) -> *const Tagged<BlobAddition> {
        part_at(&info.blobs, at)
    }

    fn rocksdb_compactionjobinfo_blob_file_garbage_infos_count(info: &CompactionInfo) -> usize {
        info.garbage.len()
    }

    fn rocksdb_compactionjobinfo_blob_file_garbage_info_at(
        info: &CompactionInfo, at: usize
    ) -> *const Tagged<BlobGarbage> {
        part_at(&info.garbage, at)
    }

    fn rocksdb_compactionjobinfo_table_properties_for_file(
        info: &CompactionInfo, path: [u8]
    ) -> *const Tagged<Properties> {
        let found = info.properties.iter().find(|(name, _)| **name == *path);
        found.map_or(std::ptr::null(), |(_, properties)| properties.pointer())
    }

    fn rocksdb_subcompactionjobinfo_cf_id(info: &PartInfo) -> u32 {
        info.0.family.0
    }

    fn rocksdb_subcompactionjobinfo_cf_name(info: &PartInfo, len: Out<usize>) -> *const c_char {
        lend(info.0.family_name.as_bytes(), len)
    }

    fn rocksdb_subcompactionjobinfo_status(info: &PartInfo, error) {
        info.0.outcome.clone().map_err(rdb::Error::from)?;
    }

    fn rocksdb_subcompactionjobinfo_thread_id(info: &PartInfo) -> u64 {
        info.0.thread
    }

    fn rocksdb_subcompactionjobinfo_job_id(info: &PartInfo) -> i32 {
        int(info.0.job)
    }

    fn rocksdb_subcompactionjobinfo_subcompaction_job_id(info: &PartInfo) -> i32 {
        if info.0.parts > 1 { count(info.0.part) } else { -1 }
    }

    fn rocksdb_subcompactionjobinfo_base_input_level(info: &PartInfo) -> i32 {
        count(info.0.start_level)
    }

    fn rocksdb_subcompactionjobinfo_output_level(info: &PartInfo) -> i32 {
        count(info.0.output_level)
    }

    fn rocksdb_subcompactionjobinfo_compaction_reason(info: &PartInfo) -> u32 {
        compaction_reason(JobReason::Compaction(info.0.reason))
    }

    fn rocksdb_subcompactionjobinfo_compression(info: &PartInfo) -> u32 {
        info.0.compression.number().unsigned_abs()
    }

    fn rocksdb_subcompactionjobinfo_blob_compression_type(info: &PartInfo) -> u32 {
        info.0.blob_compression.number().unsigned_abs()
    }

    fn rocksdb_subcompactionjobinfo_stats(info: &PartInfo) -> *const Tagged<Stats> {
        info.1.pointer()
    }
}
