//! How each engine is set up for a cell: the two tracks.
//!
//! Flagstone and RocksDB take the same options by the same names; what only one of them has stands
//! apart.

use crate::cell::{Cell, Compression, Effort, EngineName, Memory, Track};
use crate::workload::{Family, Workload};

/// Bytes of one memtable on the tuned track: RocksDB's default.
const MEMTABLE_BYTES: u64 = 64 << 20;
/// Bytes of one of Flagstone's. Its writers outrun the flush and use up to four, RocksDB's two;
/// larger ones are no faster.
const FLAGSTONE_MEMTABLE_BYTES: u64 = 16 << 20;
/// Bytes of one of Flagstone's beside readers: four are as much as the two that RocksDB uses.
const FLAGSTONE_MEMTABLE_BYTES_BESIDE_READERS: u64 = 32 << 20;
/// Memtables on the tuned track, the one being written among them.
const MEMTABLES: u64 = 4;
/// Bytes of the cache for workloads that are not about reading.
const CACHE_BYTES: u64 = 256 << 20;
/// Bits of a Bloom filter for a key.
pub const FILTER_BITS: u32 = 10;

/// An engine's set-up. What an engine has no setting for stays as it comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Options by name, for Flagstone and RocksDB.
    pub options: Vec<(String, String)>,
    /// Bytes of the block cache.
    pub cache_bytes: Option<u64>,
    /// Bytes of one memtable, and how many there may be.
    pub memtables: Option<(u64, u64)>,
    /// Threads in the background.
    pub jobs: Option<u64>,
    /// How blocks are compressed.
    pub compression: Option<Compression>,
    /// Whether RocksDB counts what it writes, which costs it a little; Flagstone always does.
    pub counts_writes: bool,
    /// Whether threads in the background have a lower priority; Flagstone's is among the options.
    pub background_gives_way: bool,
    /// Whether the database is opened for reading only, by Flagstone and RocksDB.
    pub is_read_only: bool,
}

impl Tuning {
    /// The set-up of `engine` in `cell` on a machine with so many `cores`; `extra` options come
    /// last.
    pub fn new(
        engine: EngineName,
        cell: &Cell,
        effort: Effort,
        cores: u64,
        extra: &[(String, String)],
    ) -> Self {
        let mut tuning = match cell.track {
            Track::Defaults => Self::default(),
            Track::Tuned => tuned(engine, cell, effort, cores),
        };
        tuning.options.extend_from_slice(extra);
        tuning
    }
}

/// Bytes of the block cache in `cell`.
fn cache_bytes(cell: &Cell, effort: Effort) -> u64 {
    match cell.memory {
        // With room for what the engine adds to the data.
        Memory::Ample if cell.workload.needs_data() => {
            CACHE_BYTES.max(cell.data_bytes(effort) * 3 / 2)
        }
        Memory::Ample => CACHE_BYTES,
        // The page cache has the other half.
        Memory::Quarter => cell.data_bytes(effort) / 8,
        Memory::Cold | Memory::Direct => cell.data_bytes(effort) / 64,
    }
}

fn tuned(engine: EngineName, cell: &Cell, effort: Effort, cores: u64) -> Tuning {
    let jobs = cores.max(2);
    let mut options = Vec::new();
    let is_rocksdb =
        matches!(engine, EngineName::Rocksdb | EngineName::RocksdbBlob | EngineName::RocksdbDirect);
    if is_rocksdb || engine == EngineName::Flagstone {
        options = shared_options(engine, cell, jobs);
        options.push(("write_buffer_size", memtable_bytes(engine, cell).to_string()));
    }
    // A reader looks into each table of level 0: beside readers there are to be no more than with
    // the others.
    if memtable_bytes(engine, cell) < MEMTABLE_BYTES && cell.workload != Workload::ReadWhileWriting
    {
        // Level 0 as large as with the others.
        options.extend([
            ("level0_file_num_compaction_trigger", "16".to_string()),
            ("level0_slowdown_writes_trigger", "80".to_string()),
            ("level0_stop_writes_trigger", "144".to_string()),
        ]);
    }
    if is_rocksdb {
        options.extend(rocksdb_options(engine, cell, jobs));
    }
    if cell.memory == Memory::Direct {
        options.push(("use_direct_reads", "true".to_string()));
    }
    let keeps_blobs = matches!(engine, EngineName::RocksdbBlob | EngineName::RocksdbDirect)
        || engine == EngineName::Flagstone && cell.workload.family() == Family::Large;
    if keeps_blobs {
        options.extend(blob_options(engine, cell));
    }
    if writes_around_cache(engine, cell) {
        options.push(("use_direct_io_for_flush_and_compaction", "true".to_string()));
    }
    if engine == EngineName::Flagstone {
        // Without readers, giving way only makes memtables wait for longer; beside them it is left
        // as it is by itself.
        if cell.workload != Workload::ReadWhileWriting {
            options.push(("background_niceness", "0".to_string()));
        }
    }
    if engine == EngineName::Flagstone && cell.memory.is_cold() {
        // RocksDB has the option, but only pads: blocks of which one and a half go into a page stay
        // where they are.
        options.push(("super_block_alignment_size", "4096".to_string()));
        options.push(("super_block_alignment_space_overhead_ratio", "8".to_string()));
    }
    if keeps_blobs && engine == EngineName::Flagstone {
        // RocksDB is given the same cache for blocks and blobs as an object.
        options.push(("cache_blobs", "true".to_string()));
        // RocksDB takes 1.4 to 2.1 times the live data, most where it is fastest; by default
        // Flagstone would keep to less.
        options.push(("max_space_amplification", "2.2".to_string()));
    }
    Tuning {
        options: options.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        cache_bytes: Some(cache_bytes(cell, effort)),
        memtables: Some((memtable_bytes(engine, cell), MEMTABLES)),
        jobs: Some(jobs),
        compression: Some(cell.compression),
        counts_writes: false,
        background_gives_way: is_rocksdb && cell.workload == Workload::ReadWhileWriting,
        is_read_only: false,
    }
}

/// Whether flushes and compactions go around the system's cache: where that was measured to be
/// faster, for each engine by itself. What is read again soon is not written so.
fn writes_around_cache(engine: EngineName, cell: &Cell) -> bool {
    let is_long = cell.value_size >= 512;
    match (engine, cell.workload) {
        (EngineName::Flagstone | EngineName::Rocksdb, Workload::BulkLoad) => true,
        (EngineName::Flagstone, Workload::FillSeq | Workload::FillRandom) => is_long,
        // With one writer it is slower.
        (EngineName::Rocksdb, Workload::FillSeq | Workload::FillRandom | Workload::Overwrite) => {
            is_long && cell.threads > 1
        }
        (
            EngineName::Rocksdb | EngineName::RocksdbBlob,
            Workload::LargeLoad | Workload::LargeOverwrite,
        ) => cell.value_size <= 256 << 10,
        _ => false,
    }
}

fn memtable_bytes(engine: EngineName, cell: &Cell) -> u64 {
    match (engine, cell.workload) {
        (EngineName::Flagstone, Workload::BulkLoad) => MEMTABLE_BYTES,
        (EngineName::Flagstone, Workload::ReadWhileWriting) => {
            FLAGSTONE_MEMTABLE_BYTES_BESIDE_READERS
        }
        (EngineName::Flagstone, _) => FLAGSTONE_MEMTABLE_BYTES,
        _ => MEMTABLE_BYTES,
    }
}

type NamedOptions = Vec<(&'static str, String)>;

fn compression_text(compression: Compression) -> String {
    match compression {
        Compression::None => "kNoCompression",
        Compression::Lz4 => "kLZ4Compression",
    }
    .to_string()
}

fn shared_options(engine: EngineName, cell: &Cell, jobs: u64) -> NamedOptions {
    // With it a reader finds in the cache what was in a memtable before. RocksDB reads no faster
    // with it, and writes slower.
    let fills_cache =
        engine == EngineName::Flagstone && cell.workload == Workload::ReadWhileWriting;
    let prepopulate = if fills_cache { "prepopulate_block_cache=kFlushOnly;" } else { "" };
    let mut options: NamedOptions = vec![
        ("max_write_buffer_number", MEMTABLES.to_string()),
        ("max_background_jobs", jobs.to_string()),
        ("max_subcompactions", jobs.to_string()),
        ("compression", compression_text(cell.compression)),
        (
            "block_based_table_factory",
            format!("{{filter_policy=bloomfilter:{FILTER_BITS}:false;{prepopulate}}}"),
        ),
    ];
    if cell.workload == Workload::BulkLoad {
        // All of it is compacted once, at the end; nobody reads before.
        options.push(("memtable_factory", "vector".to_string()));
        options.push(("disable_auto_compactions", "true".to_string()));
        for trigger in [
            "level0_file_num_compaction_trigger",
            "level0_slowdown_writes_trigger",
            "level0_stop_writes_trigger",
        ] {
            options.push((trigger, "1000000".to_string()));
        }
        options.push(("soft_pending_compaction_bytes_limit", "0".to_string()));
        options.push(("hard_pending_compaction_bytes_limit", "0".to_string()));
    }
    options
}

/// What RocksDB does best, and Flagstone has not or does by itself.
fn rocksdb_options(engine: EngineName, cell: &Cell, jobs: u64) -> NamedOptions {
    let mut options: NamedOptions = vec![("stats_dump_period_sec", "0".to_string())];
    let plain_writers = engine == EngineName::RocksdbDirect || cell.workload == Workload::BulkLoad;
    // Neither direct write nor the vector memtable works with concurrent or pipelined writers.
    options.push(("allow_concurrent_memtable_write", (!plain_writers).to_string()));
    options.push(("enable_pipelined_write", (!plain_writers).to_string()));
    if cell.workload == Workload::BulkLoad {
        // By itself it would flush with one thread; where one of the two is given the other has to
        // be.
        options.push(("max_background_flushes", (jobs / 4).max(2).to_string()));
        options.push(("max_background_compactions", jobs.to_string()));
    }
    if engine == EngineName::RocksdbDirect {
        options.push(("enable_blob_direct_write", "true".to_string()));
    }
    options
}

fn blob_options(engine: EngineName, cell: &Cell) -> NamedOptions {
    // It would move values out of the oldest files as RocksDB does, beside what its limit of space
    // asks for.
    let collects = engine != EngineName::Flagstone;
    vec![
        ("enable_blob_files", "true".to_string()),
        ("min_blob_size", "1024".to_string()),
        ("blob_file_size", (256u64 << 20).to_string()),
        ("blob_compression_type", compression_text(cell.compression)),
        ("enable_blob_garbage_collection", collects.to_string()),
    ]
}

#[cfg(test)]
mod tests;
