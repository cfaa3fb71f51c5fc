//! Lines of events that programs read: `EVENT_LOG_v1` and an object, with RocksDB's names.
//!
//! Two figures have no value here: `score` is -1, as in RocksDB's manual compactions, and the job
//! of a deletion is 0. Fields that RocksDB writes for figures that this engine does not keep are
//! left out, such as the level of an ingested table, processor time and mismatches of single
//! deletions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::base::Error;
use crate::options::{
    CompactionReason, FileCreationInfo, FileInfo, FlushReason, IngestionInfo, JobInfo, JobReason,
    TreeShape,
};
use crate::sst::TableProperties;

/// The fields of an event, in order.
pub(super) struct Fields(String);

impl Fields {
    /// Those of an event at a time, in microseconds since 1970.
    fn at(micros: u64) -> Self {
        Self(format!("EVENT_LOG_v1 {{\"time_micros\": {micros}"))
    }

    /// Those of an event of a job.
    fn of_job(micros: u64, job: u64, event: &str) -> Self {
        Self::at(micros).number("job", job).text("event", event)
    }

    fn name(&mut self, name: &str) {
        if !self.0.ends_with('{') {
            self.0.push_str(", ");
        }
        self.quote(name);
        self.0.push_str(": ");
    }

    fn quote(&mut self, text: &str) {
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                c if c.is_control() => drop(write!(self.0, "\\u{:04x}", u32::from(c))),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        self.quote(text);
        self
    }

    fn number(mut self, name: &str, number: impl std::fmt::Display) -> Self {
        self.name(name);
        let _ = write!(self.0, "{number}");
        self
    }

    fn numbers(mut self, name: &str, numbers: impl Iterator<Item = u64>) -> Self {
        self.name(name);
        let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
        let _ = write!(self.0, "[{}]", numbers.join(", "));
        self
    }

    fn object(mut self, name: &str, fields: impl FnOnce(Self) -> Self) -> Self {
        self.name(name);
        self.0.push('{');
        let mut object = fields(self);
        object.0.push('}');
        object
    }

    fn status(self, outcome: Result<(), &Error>) -> Self {
        match outcome {
            Ok(()) => self.text("status", "OK"),
            Err(error) => self.text("status", &error.to_string()),
        }
    }

    fn shape(self, shape: &TreeShape) -> Self {
        let levels = shape.tables_per_level.iter().map(|count| *count as u64);
        let fields = self.numbers("lsm_state", levels);
        match shape.blob_files {
            None => fields,
            Some((head, tail)) => {
                fields.number("blob_file_head", head.0).number("blob_file_tail", tail.0)
            }
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A flush or compaction begins; nothing for a compaction that only moves tables.
pub(super) fn job_begun(micros: u64, job: &JobInfo) -> Option<String> {
    let fields = |event| Fields::of_job(micros, job.job, event);
    match job.reason {
        JobReason::Flush(reason) => {
            let memtables = &job.stats.memtables;
            let fields = fields("flush_started")
                .number("num_memtables", memtables.count)
                .number("total_num_input_entries", memtables.entries)
                .number("num_deletes", memtables.deletes)
                .number("total_data_size", memtables.data_bytes)
                .number("memory_usage", memtables.memory_bytes)
                .number("num_range_deletes", memtables.range_deletes);
            Some(fields.text("flush_reason", flush_reason(reason)).end())
        }
        JobReason::Compaction(_) if job.stats.is_move => None,
        JobReason::Compaction(reason) => {
            let mut levels: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
            for table in &job.inputs {
                levels.entry(table.level).or_default().push(table.number.0);
            }
            let mut fields = fields("compaction_started")
                .text("cf_name", &job.family_name)
                .text("compaction_reason", compaction_reason(reason));
            for (level, numbers) in levels {
                fields = fields.numbers(&format!("files_L{level}"), numbers.into_iter());
            }
            let bytes: u64 = job.inputs.iter().map(|table| table.size).sum();
            let oldest = job.stats.oldest_snapshot.map_or(-1, |oldest| oldest as i64);
            let fields = fields.number("score", -1).number("input_data_size", bytes);
            Some(fields.number("oldest_snapshot_seqno", oldest).end())
        }
    }
}

/// A flush or compaction has succeeded.
pub(super) fn job_ended(micros: u64, job: &JobInfo) -> String {
    let fields = |event| Fields::of_job(micros, job.job, event);
    let stats = &job.stats;
    match job.reason {
        JobReason::Flush(_) => fields("flush_finished")
            .text("output_compression", job.compression.property_name())
            .shape(&stats.shape)
            .number("immutable_memtables", stats.shape.immutable_memtables)
            .end(),
        JobReason::Compaction(_) if stats.is_move => {
            let bytes: u64 = job.inputs.iter().map(|table| table.size).sum();
            fields("trivial_move")
                .number("destination_level", job.output_level)
                .number("files", job.inputs.len())
                .number("total_files_size", bytes)
                .end()
        }
        JobReason::Compaction(_) => {
            let bytes: u64 = job.tables.iter().map(|table| table.size).sum();
            let mut fields = fields("compaction_finished")
                .number("compaction_time_micros", stats.micros)
                .number("output_level", job.output_level)
                .number("num_output_files", job.tables.len())
                .number("total_output_size", bytes);
            if !job.blob_files.is_empty() {
                let bytes: u64 = job.blob_files.iter().map(|blob| blob.size).sum();
                fields = fields
                    .number("num_blob_output_files", job.blob_files.len())
                    .number("total_blob_output_size", bytes);
            }
            let properties = job.tables.iter().filter_map(|table| table.properties.as_ref());
            let written: u64 = properties.map(|properties| properties.num_entries).sum();
            fields
                .number("num_input_records", stats.entries_read)
                .number("num_output_records", written)
                .number("num_subcompactions", stats.subcompactions)
                .text("output_compression", job.compression.property_name())
                .shape(&stats.shape)
                .end()
        }
    }
}

/// A table was completed, or will not be.
pub(super) fn table_created(micros: u64, file: &FileCreationInfo) -> String {
    let mut fields = file_created(micros, file, "table_file_creation")
        .number("file_size", file.size)
        .text("file_checksum", &checksum_digits(file))
        .text("file_checksum_func_name", checksum_function(file))
        .number("smallest_seqno", file.seqnos.0)
        .number("largest_seqno", file.seqnos.1);
    if let Some(properties) = &file.properties {
        fields = fields.object("table_properties", |fields| of_table(fields, properties));
    }
    if let Some(oldest) = file.oldest_blob_file {
        fields = fields.number("oldest_blob_file_number", oldest.0);
    }
    fields.status(file.outcome.as_ref().copied()).end()
}

/// A blob file was completed, or will not be.
pub(super) fn blob_file_created(micros: u64, file: &FileCreationInfo) -> String {
    file_created(micros, file, "blob_file_creation")
        .number("total_blob_count", file.count)
        .number("total_blob_bytes", file.size)
        .text("file_checksum", &checksum_digits(file))
        .text("file_checksum_func_name", checksum_function(file))
        .status(file.outcome.as_ref().copied())
        .end()
}

fn file_created(micros: u64, file: &FileCreationInfo, event: &str) -> Fields {
    Fields::at(micros)
        .text("cf_name", &file.family_name)
        .number("job", file.job)
        .text("event", event)
        .number("file_number", file.number.0)
}

fn checksum_digits(file: &FileCreationInfo) -> String {
    let value = file.checksum.iter().flat_map(|checksum| &checksum.value);
    value.map(|byte| format!("{byte:02X}")).collect()
}

fn checksum_function(file: &FileCreationInfo) -> &str {
    file.checksum.as_ref().map_or("Unknown", |checksum| &checksum.function)
}

/// A table or blob file was removed.
pub(super) fn file_deleted(micros: u64, file: &FileInfo, event: &str) -> String {
    let fields = Fields::of_job(micros, 0, event).number("file_number", file.number.0);
    fields.status(Ok(())).end()
}

/// A table from outside was ingested.
pub(super) fn ingested(micros: u64, table: &IngestionInfo) -> String {
    let fields = Fields::at(micros).text("event", "ingest_finished");
    let name = table.external_path.display().to_string();
    let mut fields = fields;
    fields.name("files_ingested");
    fields.0.push_str("[{");
    let mut fields = fields.text("file", &name).number("file_number", table.file.number.0);
    fields.0.push_str("}]");
    fields.end()
}

/// WALs are about to be replayed.
pub(super) fn recovery_started(micros: u64, job: u64, wals: impl Iterator<Item = u64>) -> String {
    Fields::of_job(micros, job, "recovery_started").numbers("wal_files", wals).end()
}

/// WALs were replayed.
pub(super) fn recovery_finished(micros: u64, job: u64) -> String {
    Fields::of_job(micros, job, "recovery_finished").status(Ok(())).end()
}

fn of_table(fields: Fields, of: &TableProperties) -> Fields {
    let average = |bytes: u64| bytes.checked_div(of.num_entries).unwrap_or(0);
    fields
        .number("data_size", of.data_size)
        .number("index_size", of.index_size)
        .number("filter_size", of.filter_size)
        .number("raw_key_size", of.raw_key_size)
        .number("raw_average_key_size", average(of.raw_key_size))
        .number("raw_value_size", of.raw_value_size)
        .number("raw_average_value_size", average(of.raw_value_size))
        .number("num_data_blocks", of.num_data_blocks)
        .number("num_entries", of.num_entries)
        .number("num_filter_entries", of.num_filter_entries)
        .number("num_deletions", of.num_deletions)
        .number("num_merge_operands", of.num_merge_operands)
        .number("num_range_deletions", of.num_range_deletions)
        .number("format_version", of.format_version)
        .text("filter_policy", &of.filter_policy)
        .text("column_family_name", &of.column_family_name)
        .number("column_family_id", of.column_family.unwrap_or(i32::MAX as u32))
        .text("comparator", &of.comparator)
        .text("merge_operator", &of.merge_operator)
        .text("prefix_extractor_name", &of.prefix_extractor)
        .text("compression", &of.compression)
        .number("creation_time", of.creation_time)
        .number("oldest_key_time", of.oldest_key_time)
        .number("newest_key_time", of.newest_key_time)
        .number("file_creation_time", of.file_creation_time)
        .text("db_id", &of.db_identity)
        .text("db_session_id", &of.session_identity)
        .number("orig_file_number", of.original_file_number)
}

/// RocksDB's words for the reason of a flush.
fn flush_reason(reason: FlushReason) -> &'static str {
    match reason {
        FlushReason::WriteBufferFull => "Write Buffer Full",
        FlushReason::MemoryLimit => "Write Buffer Manager",
        FlushReason::WalFull => "WAL Full",
        FlushReason::Manual => "Manual Flush",
        FlushReason::ManualCompaction => "Manual Compaction",
        FlushReason::Ingestion => "External File Ingestion",
        FlushReason::Copy => "Get Live Files",
        FlushReason::Close => "Shut down",
        FlushReason::Recovery | FlushReason::Deletions => "Other Reasons",
    }
}

/// RocksDB's word for the reason of a compaction, or the nearest that it has.
fn compaction_reason(reason: CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Level0Files | CompactionReason::IntraLevel0 => "LevelL0FilesNum",
        CompactionReason::LevelSize => "LevelMaxLevelSize",
        CompactionReason::SizeAmplification => "UniversalSizeAmplification",
        CompactionReason::SizeRatio => "UniversalSizeRatio",
        CompactionReason::SortedRuns => "UniversalSortedRunNum",
        CompactionReason::FifoSize => "FIFOMaxSize",
        CompactionReason::Marked | CompactionReason::Deletions => "FilesMarkedForCompaction",
        CompactionReason::Bottommost => "BottommostFiles",
        CompactionReason::Ttl => "Ttl",
        CompactionReason::Temperature => "ChangeTemperature",
        CompactionReason::Periodic => "PeriodicCompaction",
        CompactionReason::BlobGarbage => "ForcedBlobGC",
        CompactionReason::Manual => "ManualCompaction",
    }
}

#[cfg(test)]
mod tests;
