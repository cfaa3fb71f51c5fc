//! The flags of `flagstone bench`: those of `db_bench` 7.8, with its defaults.

use std::path::{Path, PathBuf};

use clap::builder::{BoolishValueParser, RangedU64ValueParser};
use clap::{ArgAction, Args};
use flagstone::base::Result;
use flagstone::cache::{TraceFormat, TraceOptions};
use flagstone::options::Options;

/// Run benchmarks as RocksDB's db_bench does.
///
/// Benchmarks: fillseq, fillrandom, filluniquerandom, overwrite, updaterandom, fillsync, fill100K,
/// readrandom, readmissing, readseq, readreverse, multireadrandom, seekrandom, seekordered,
/// readwhilewriting, seekrandomwhilewriting, deleteseq, deleterandom, deleterange, queue, compact,
/// compactall, flush, waitforcompaction, stats, levelstats, memstats, sstables. Any RocksDB option
/// may be given as a flag of its name, too (--target_file_size_base=8M).
#[derive(Debug, Clone, Args)]
#[command(
    rename_all = "snake_case",
    rename_all_env = "snake_case",
    args_override_self = true,
    after_help = "Example:\n  flagstone bench --benchmarks=fillrandom,readrandom --db=/tmp/bench --num=1000000 --value_size=400"
)]
pub struct Flags {
    /// Benchmarks to run, in order
    #[arg(long, action = ArgAction::Set, num_args = 1, value_delimiter = ',',
          default_value = "fillseq,fillrandom,overwrite,readrandom,readseq")]
    pub benchmarks: Vec<String>,
    /// Directory of the database. A database that an earlier benchmark created there is removed
    /// first, unless --use_existing_db
    #[arg(long, default_value = "/tmp/flagstone-bench")]
    pub db: PathBuf,
    /// Number of keys in the database
    #[arg(long, default_value_t = 1_000_000)]
    pub num: u64,
    /// Keys to write per thread; -1 for --num
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub writes: i64,
    /// Keys to read per thread; -1 for --num
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub reads: i64,
    /// Keys to delete per thread; -1 for --num
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub deletes: i64,
    /// Number of ranges that deleterange deletes
    #[arg(long, default_value_t = 100_000)]
    pub max_num_range_tombstones: u64,
    /// Keys in each range that deleterange deletes
    #[arg(long, default_value_t = 4)]
    pub range_tombstone_width: u64,
    /// Seconds to run random benchmarks, instead of a number of operations; 0 to use the number
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 40))]
    pub duration: u64,
    /// Operations between checks of the clock for --duration
    #[arg(long, default_value_t = 1000)]
    pub ops_between_duration_checks: u64,
    /// Number of threads
    #[arg(long, default_value_t = 1, value_parser = up_to(4096))]
    pub threads: usize,
    /// Size of a key in bytes
    #[arg(long, default_value_t = 16, value_parser = up_to(1 << 30))]
    pub key_size: usize,
    /// Size of a value in bytes
    #[arg(long, default_value_t = 100, value_parser = up_to(1 << 32))]
    pub value_size: usize,
    /// Compressed size of a value as a fraction of its size
    #[arg(long, default_value_t = 0.5)]
    pub compression_ratio: f64,
    /// Compression of tables: none, snappy, zlib, bzip2, lz4, lz4hc or zstd
    #[arg(long, default_value = "snappy")]
    pub compression_type: String,
    /// Compression level
    #[arg(long, allow_hyphen_values = true)]
    pub compression_level: Option<i32>,
    /// Compression of values in blob files
    #[arg(long, default_value = "none")]
    pub blob_db_compression_type: String,
    /// Newer name of --blob_db_compression_type
    #[arg(long)]
    pub blob_compression_type: Option<String>,
    /// Size of the block cache in bytes
    #[arg(long, default_value = "8388608")]
    pub cache_size: String,
    /// Base-2 logarithm of the number of block cache shards; negative to derive it from the size
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub cache_numshardbits: i32,
    /// Fraction of the block cache for indexes and filters
    #[arg(long)]
    pub cache_high_pri_pool_ratio: Option<f64>,
    /// First level to compress; negative to compress every level
    #[arg(
        long,
        default_value_t = -1,
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-1..64)
    )]
    pub min_level_to_compress: i32,
    /// Checksum of blocks: 0 for none, 1 for CRC-32C, 2 for XXH32, 3 for XXH64, 4 for XXH3
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=4))]
    pub checksum_type: Option<u8>,
    /// Data structure of memtables: btree, skip_list, vector, prefix_hash or hash_linkedlist
    #[arg(long, default_value = "btree")]
    pub memtablerep: String,
    /// Size in bytes of the key prefix that prefix_hash uses; 0 for none
    #[arg(long, default_value_t = 0)]
    pub prefix_size: usize,
    /// Buckets of prefix_hash and hash_linkedlist
    #[arg(long, default_value_t = 1 << 20)]
    pub hash_bucket_count: u64,
    /// Bloom filter bits per key; negative for filter_policy's default (bloomfilter:10)
    #[arg(long, default_value_t = -1.0, allow_hyphen_values = true)]
    pub bloom_bits: f64,
    /// Files kept open; -1 for all
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub open_files: i32,
    /// Flushes and compactions at the same time
    #[arg(long, default_value_t = 2)]
    pub max_background_jobs: u32,
    /// Subcompactions of one compaction at the same time
    #[arg(long, default_value_t = 1)]
    pub subcompactions: u32,
    /// Compaction style: 0 for leveled, 1 for universal, 2 for FIFO, 3 for none; or RocksDB's name
    #[arg(long, default_value = "0")]
    pub compaction_style: String,
    /// Universal: percentage by which the next run may exceed the runs already chosen
    #[arg(long)]
    pub universal_size_ratio: Option<u32>,
    /// Universal: minimum number of runs merged at a time
    #[arg(long)]
    pub universal_min_merge_width: Option<u32>,
    /// Universal: maximum number of runs merged at a time
    #[arg(long)]
    pub universal_max_merge_width: Option<u32>,
    /// Universal: size of all newer runs as a percentage of the oldest run
    #[arg(long)]
    pub universal_max_size_amplification_percent: Option<u32>,
    /// Universal: merge one part of the key range at a time
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub universal_incremental: Option<bool>,
    /// Universal: sorted runs that may remain; 0 to derive the number from the size of the data
    #[arg(long, allow_hyphen_values = true)]
    pub universal_max_read_amp: Option<i32>,
    /// FIFO: MiB of all tables at which the oldest is dropped; 0 for the default, 1024
    #[arg(long, default_value_t = 0)]
    pub fifo_compaction_max_table_files_size_mb: u64,
    /// Sync every write to the device
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub sync: bool,
    /// Write without the WAL
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub disable_wal: bool,
    /// Keep the existing database; benchmarks that need a new one are skipped
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub use_existing_db: bool,
    /// Verify checksums when reading
    #[arg(long, num_args = 0..=1, default_value = "true", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub verify_checksum: bool,
    /// Iterate backwards in seekrandom
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub reverse_iterator: bool,
    /// Print the distribution of latencies
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub histogram: bool,
    /// Print the engine's counters at the end
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub statistics: bool,
    /// Skew of lookups: a key of rank r is looked up in proportion to 1/r, over ranks that differ
    /// by a factor of up to e to the power of this number; 0 for uniform lookups
    #[arg(long, default_value_t = 0.0)]
    pub read_random_exp_range: f64,
    /// Steps after each seek
    #[arg(long, default_value_t = 0)]
    pub seek_nexts: u64,
    /// Keys per batch, in writes and in multireadrandom
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub batch_size: u64,
    /// multireadrandom: distance between the keys of a batch; 0 for random keys
    #[arg(long, default_value_t = 0)]
    pub multiread_stride: u64,
    /// Limit in bytes a second on the keys and values that all writers together write or delete,
    /// including the writer of readwhilewriting; 0 for none
    #[arg(long, default_value_t = 0)]
    pub benchmark_write_rate_limit: u64,
    /// Bytes that iterators read ahead
    #[arg(long, default_value_t = 0)]
    pub readahead_size: u64,
    /// Record operations in this new file, in RocksDB's format, starting with the first benchmark
    /// that uses an existing database. `flagstone replay` repeats them
    #[arg(long)]
    pub trace_file: Option<PathBuf>,
    /// Record calls of files in this new file, in RocksDB's format, starting with the first
    /// benchmark that uses an existing database. `flagstone io-trace` prints them
    #[arg(long)]
    pub io_trace_file: Option<PathBuf>,
    /// Record block cache accesses in this new file, starting with the first benchmark that uses an
    /// existing database; CSV if the name ends in .csv, RocksDB's format if it ends in .rocksdb,
    /// otherwise oracleGeneral. `flagstone cache-sim` replays it
    #[arg(long)]
    pub block_cache_trace_file: Option<PathBuf>,
    /// Record one in N keys
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub block_cache_trace_sampling_frequency: u64,
    /// Maximum size of the trace file in bytes
    #[arg(long, default_value_t = 64 << 30)]
    pub block_cache_trace_max_trace_file_size_in_bytes: u64,
    /// Seconds between lines written to --report_file, each with the operations since the last; 0
    /// for none
    #[arg(long, default_value_t = 0)]
    pub report_interval_seconds: u64,
    /// CSV file for these lines; each benchmark overwrites it
    #[arg(long, default_value = "report.csv")]
    pub report_file: PathBuf,
    /// Flags of db_bench that have no effect here
    #[arg(long, hide = true)]
    pub inert: Vec<String>,
    /// Flags of db_bench for features that do not exist here
    #[arg(long, hide = true)]
    pub absent: Vec<String>,
    /// Seed of random numbers; 0 for a different one each time
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

impl Flags {
    /// `count`, or `--num` if it is negative.
    pub fn or_num(&self, count: i64) -> u64 {
        u64::try_from(count).unwrap_or(self.num)
    }

    /// Puts what the flags say into the options.
    pub fn apply(&self, options: &mut Options) -> Result<()> {
        options.create_if_missing = true;
        let blob_type =
            self.blob_compression_type.as_ref().unwrap_or(&self.blob_db_compression_type);
        for (name, value) in [
            ("compression", compression(&self.compression_type)),
            ("enable_blob_files", "false".to_string()),
            ("blob_compression_type", compression(blob_type)),
            ("block_cache", self.block_cache()),
            ("max_open_files", self.open_files.to_string()),
            ("max_background_jobs", self.max_background_jobs.to_string()),
            ("max_subcompactions", self.subcompactions.to_string()),
            ("memtable_factory", self.memtable()),
        ] {
            options.set(name, &value)?;
        }
        if self.prefix_size > 0 {
            options.set("prefix_extractor", &format!("fixed:{}", self.prefix_size))?;
        }
        for (name, value) in self.compaction() {
            options.set(name, &value)?;
        }
        if let Ok(first @ 1..) = usize::try_from(self.min_level_to_compress) {
            let mut levels = vec![compression("none"); first];
            levels.push(compression(&self.compression_type));
            options.set("compression_per_level", &levels.join(":"))?;
        }
        if let Some(checksum) = self.checksum_type {
            const NAMES: [&str; 5] = ["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];
            options.set("checksum", NAMES[usize::from(checksum)])?;
        }
        if let Some(level) = self.compression_level {
            options.set("compression_opts.level", &level.to_string())?;
        }
        if self.bloom_bits >= 0.0 {
            options.set("filter_policy", &format!("bloomfilter:{}", self.bloom_bits))?;
        }
        Ok(())
    }

    fn block_cache(&self) -> String {
        let mut text = self.cache_size.clone();
        if self.cache_numshardbits >= 0 || self.cache_high_pri_pool_ratio.is_some() {
            text = format!("{{capacity={text};num_shard_bits={}", self.cache_numshardbits);
            if let Some(ratio) = self.cache_high_pri_pool_ratio {
                text.push_str(&format!(";high_pri_pool_ratio={ratio}"));
            }
            text.push('}');
        }
        text
    }

    /// Where to record what the block cache is asked for, and what of it.
    pub fn block_cache_trace(&self) -> Option<(&Path, TraceOptions)> {
        let path = self.block_cache_trace_file.as_deref()?;
        let options = TraceOptions {
            sampling_frequency: self.block_cache_trace_sampling_frequency,
            max_trace_file_size: self.block_cache_trace_max_trace_file_size_in_bytes,
            format: match path.extension() {
                Some(end) if end.eq_ignore_ascii_case("csv") => TraceFormat::Csv,
                Some(end) if end.eq_ignore_ascii_case("rocksdb") => TraceFormat::RocksDb,
                _ => TraceFormat::OracleGeneral,
            },
        };
        Some((path, options))
    }

    /// The options of the compaction style that were given.
    fn compaction(&self) -> Vec<(&'static str, String)> {
        let style = match self.compaction_style.as_str() {
            "0" => "kCompactionStyleLevel",
            "1" => "kCompactionStyleUniversal",
            "2" => "kCompactionStyleFIFO",
            "3" => "kCompactionStyleNone",
            name => name,
        };
        let mut set = vec![("compaction_style", style.to_string())];
        let universal = [
            ("compaction_options_universal.size_ratio", self.universal_size_ratio),
            ("compaction_options_universal.min_merge_width", self.universal_min_merge_width),
            ("compaction_options_universal.max_merge_width", self.universal_max_merge_width),
            (
                "compaction_options_universal.max_size_amplification_percent",
                self.universal_max_size_amplification_percent,
            ),
        ];
        set.extend(
            universal.into_iter().filter_map(|(name, value)| Some((name, value?.to_string()))),
        );
        set.extend(
            self.universal_incremental
                .map(|value| ("compaction_options_universal.incremental", value.to_string())),
        );
        set.extend(
            self.universal_max_read_amp
                .map(|value| ("compaction_options_universal.max_read_amp", value.to_string())),
        );
        if self.fifo_compaction_max_table_files_size_mb > 0 {
            let bytes = self.fifo_compaction_max_table_files_size_mb.saturating_mul(1 << 20);
            set.push(("compaction_options_fifo.max_table_files_size", bytes.to_string()));
        }
        set
    }

    fn memtable(&self) -> String {
        match self.memtablerep.as_str() {
            hash @ ("prefix_hash" | "hash_linkedlist") => {
                format!("{hash}:{}", self.hash_bucket_count)
            }
            other => other.to_string(),
        }
    }
}

/// Takes numbers up to that one.
fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=most)
}

/// The option's name of a compression: `zstd` is `kZSTD`.
fn compression(short: &str) -> String {
    match short {
        "none" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "zlib" => "kZlibCompression",
        "bzip2" => "kBZip2Compression",
        "lz4" => "kLZ4Compression",
        "lz4hc" => "kLZ4HCCompression",
        "zstd" => "kZSTD",
        other => other,
    }
    .to_string()
}

#[cfg(test)]
pub(super) mod tests;
