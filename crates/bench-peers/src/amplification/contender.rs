//! Who takes part, each as its own documentation sets it up, all with the same memory and threads.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::task::{Exercise, Task};
use crate::cell::EngineName;
use crate::tuning::{FILTER_BITS, Tuning};

/// An engine with its way of compaction.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// Flagstone, leveled; large values in blob files.
    Flagstone,
    /// Flagstone, universal.
    FlagstoneUniversal,
    /// RocksDB, leveled.
    RocksdbLeveled,
    /// RocksDB, universal.
    RocksdbUniversal,
    /// RocksDB, leveled, with blob files and their collection.
    RocksdbBlob,
}

impl Contender {
    /// The name for tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Flagstone => "Flagstone",
            Self::FlagstoneUniversal => "Flagstone, universal",
            Self::RocksdbLeveled => "RocksDB, leveled",
            Self::RocksdbUniversal => "RocksDB, universal",
            Self::RocksdbBlob => "RocksDB, BlobDB",
        }
    }

    /// The engine.
    pub fn engine(self) -> EngineName {
        match self {
            Self::Flagstone | Self::FlagstoneUniversal => EngineName::Flagstone,
            Self::RocksdbLeveled | Self::RocksdbUniversal => EngineName::Rocksdb,
            Self::RocksdbBlob => EngineName::RocksdbBlob,
        }
    }

    /// Its set-up for a task on a machine with so many `cores`.
    pub fn tuning(self, task: &Task, cores: u64) -> Tuning {
        let jobs = cores.max(2);
        let is_rocksdb = self.engine() != EngineName::Flagstone;
        let mut options = shared_options(task.exercise, jobs);
        if matches!(self, Self::FlagstoneUniversal | Self::RocksdbUniversal) {
            options.push(("compaction_style", "kCompactionStyleUniversal".to_string()));
        }
        if is_rocksdb {
            options.push(("stats_dump_period_sec", "0".to_string()));
            options.push(("enable_pipelined_write", "true".to_string()));
        }
        let has_large = task.exercise == Exercise::Space;
        if self == Self::RocksdbBlob || has_large && !is_rocksdb {
            options.push(("enable_blob_files", "true".to_string()));
            options.push(("min_blob_size", "1024".to_string()));
        }
        if has_large && !is_rocksdb {
            // What is looked at is how it keeps to its limit at every moment.
            options.push(("burst_space_amplification", "0".to_string()));
        }
        if self == Self::RocksdbBlob {
            // As its scripts of benchmarks have it, which is by default but for the first and the
            // last.
            options.push(("enable_blob_garbage_collection", "true".to_string()));
            options.push(("blob_garbage_collection_age_cutoff", "0.25".to_string()));
            options.push(("blob_garbage_collection_force_threshold", "1.0".to_string()));
            options.push(("blob_file_size", task.exercise.memtable_bytes().to_string()));
        }
        let named = options.into_iter().map(|(name, value)| (name.to_string(), value));
        Tuning {
            options: named.chain(task.options.iter().cloned()).collect(),
            cache_bytes: Some(task.exercise.memtable_bytes() * 4),
            counts_writes: true,
            ..Tuning::default()
        }
    }
}

/// A tree with the proportions of RocksDB's defaults (64 MiB a memtable and a table, 256 MiB in
/// level 1) for less data.
fn shared_options(exercise: Exercise, jobs: u64) -> Vec<(&'static str, String)> {
    let memtable = exercise.memtable_bytes();
    let compression = match exercise {
        Exercise::Space => "kNoCompression",
        Exercise::Steady => "kLZ4Compression",
    };
    vec![
        ("write_buffer_size", memtable.to_string()),
        ("max_write_buffer_number", "4".to_string()),
        ("target_file_size_base", memtable.to_string()),
        ("max_bytes_for_level_base", (memtable * 4).to_string()),
        ("max_background_jobs", jobs.to_string()),
        ("max_subcompactions", jobs.to_string()),
        ("compression", compression.to_string()),
        (
            "block_based_table_factory",
            format!("{{filter_policy=bloomfilter:{FILTER_BITS}:false;}}"),
        ),
    ]
}

#[cfg(test)]
mod tests;
