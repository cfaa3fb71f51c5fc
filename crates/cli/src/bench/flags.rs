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
    /// What to run, in order
    #[arg(long, action = ArgAction::Set, num_args = 1, value_delimiter = ',',
          default_value = "fillseq,fillrandom,overwrite,readrandom,readseq")]
    pub benchmarks: Vec<String>,
    /// Where the database will be; one that a benchmark has made there is removed first, unless
    /// --use_existing_db
    #[arg(long, default_value = "/tmp/flagstone-bench")]
    pub db: PathBuf,
    /// Keys in the database
    #[arg(long, default_value_t = 1_000_000)]
    pub num: u64,
    /// Keys to write, for each thread; -1 for --num
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub writes: i64,
    /// Keys to read, for each thread; -1 for --num
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub reads: i64,
    /// Keys to delete, for each thread; -1 for --num
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub deletes: i64,
    /// Ranges that deleterange deletes
    #[arg(long, default_value_t = 100_000)]
    pub max_num_range_tombstones: u64,
    /// Keys in each of them
    #[arg(long, default_value_t = 4)]
    pub range_tombstone_width: u64,
    /// Seconds that random benchmarks run instead of counting operations; 0 counts
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 40))]
    pub duration: u64,
    /// Operations between two looks at the clock for --duration
    #[arg(long, default_value_t = 1000)]
    pub ops_between_duration_checks: u64,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = up_to(4096))]
    pub threads: usize,
    /// Bytes of a key
    #[arg(long, default_value_t = 16, value_parser = up_to(1 << 30))]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(long, default_value_t = 100, value_parser = up_to(1 << 32))]
    pub value_size: usize,
    /// What compression leaves of a value
    #[arg(long, default_value_t = 0.5)]
    pub compression_ratio: f64,
    /// none, snappy, zlib, bzip2, lz4, lz4hc or zstd
    #[arg(long, default_value = "snappy")]
    pub compression_type: String,
    /// The compression's level
    #[arg(long, allow_hyphen_values = true)]
    pub compression_level: Option<i32>,
    /// The same for values in blob files
    #[arg(long, default_value = "none")]
    pub blob_db_compression_type: String,
    /// The same, by its newer name
    #[arg(long)]
    pub blob_compression_type: Option<String>,
    /// Bytes of the block cache
    #[arg(long, default_value = "8388608")]
    pub cache_size: String,
    /// The logarithm of the number of its shards; negative for as many as suit its size
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub cache_numshardbits: i32,
    /// The part of it for indexes and filters
    #[arg(long)]
    pub cache_high_pri_pool_ratio: Option<f64>,
    /// Levels above this one are not compressed; negative for all alike
    #[arg(
        long,
        default_value_t = -1,
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-1..64)
    )]
    pub min_level_to_compress: i32,
    /// Checksums of blocks: 0 for none, 1 for CRC-32C, 2 for XXH32, 3 for XXH64, 4 for XXH3
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=4))]
    pub checksum_type: Option<u8>,
    /// The structure of memtables: btree, skip_list, vector, prefix_hash or hash_linkedlist
    #[arg(long, default_value = "btree")]
    pub memtablerep: String,
    /// Bytes of a key's prefix, which prefix_hash goes by; 0 for none
    #[arg(long, default_value_t = 0)]
    pub prefix_size: usize,
    /// Buckets of prefix_hash and hash_linkedlist
    #[arg(long, default_value_t = 1 << 20)]
    pub hash_bucket_count: u64,
    /// Bits a key of a Bloom filter; negative for what filter_policy says (bloomfilter:10)
    #[arg(long, default_value_t = -1.0, allow_hyphen_values = true)]
    pub bloom_bits: f64,
    /// Files held open; -1 for all
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    pub open_files: i32,
    /// Background jobs
    #[arg(long, default_value_t = 2)]
    pub max_background_jobs: u32,
    /// Parts of a compaction that run at a time
    #[arg(long, default_value_t = 1)]
    pub subcompactions: u32,
    /// 0 for leveled, 1 for universal, 2 for FIFO compaction, 3 for none; or RocksDB's name of it
    #[arg(long, default_value = "0")]
    pub compaction_style: String,
    /// Universal: percent by which the next run may be larger than those already taken
    #[arg(long)]
    pub universal_size_ratio: Option<u32>,
    /// Universal: runs merged at least
    #[arg(long)]
    pub universal_min_merge_width: Option<u32>,
    /// Universal: runs merged at most
    #[arg(long)]
    pub universal_max_merge_width: Option<u32>,
    /// Universal: percent of the oldest run that the others may take together
    #[arg(long)]
    pub universal_max_size_amplification_percent: Option<u32>,
    /// Universal: merge a part of the keys at a time
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub universal_incremental: Option<bool>,
    /// Universal: sorted runs that may stay; 0 for as many as the size of the data wants
    #[arg(long, allow_hyphen_values = true)]
    pub universal_max_read_amp: Option<i32>,
    /// FIFO: MiB of all tables at which the oldest is dropped; 0 for the default, 1024
    #[arg(long, default_value_t = 0)]
    pub fifo_compaction_max_table_files_size_mb: u64,
    /// Every write is on the device before it counts
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub sync: bool,
    /// No WAL
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub disable_wal: bool,
    /// Keep the database that is there; benchmarks that want a new one are skipped
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub use_existing_db: bool,
    /// Check checksums in reads
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
    /// Some keys are looked up more often than others: a key of rank r as 1/r, of ranks that differ
    /// by up to e to the power of this number; 0 for all alike
    #[arg(long, default_value_t = 0.0)]
    pub read_random_exp_range: f64,
    /// Steps after each seek
    #[arg(long, default_value_t = 0)]
    pub seek_nexts: u64,
    /// Keys in a batch, for writing and for multireadrandom
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub batch_size: u64,
    /// multireadrandom: the distance of the keys in a batch; 0 for keys at random
    #[arg(long, default_value_t = 0)]
    pub multiread_stride: u64,
    /// Bytes of keys and values a second that all writers together may write or delete, that of
    /// readwhilewriting among them; 0 for any number
    #[arg(long, default_value_t = 0)]
    pub benchmark_write_rate_limit: u64,
    /// Bytes that iterators read ahead
    #[arg(long, default_value_t = 0)]
    pub readahead_size: u64,
    /// Record into this new file what the block cache is asked for, from the first benchmark on
    /// that uses the database as it is; CSV if the name ends in .csv, else oracleGeneral.
    /// `flagstone cache-sim` replays it
    #[arg(long)]
    pub block_cache_trace_file: Option<PathBuf>,
    /// Of so many keys one is recorded
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub block_cache_trace_sampling_frequency: u64,
    /// The most bytes of that file
    #[arg(long, default_value_t = 64 << 30)]
    pub block_cache_trace_max_trace_file_size_in_bytes: u64,
    /// Every so many seconds a line with the operations since the last goes to --report_file; 0 for
    /// none
    #[arg(long, default_value_t = 0)]
    pub report_interval_seconds: u64,
    /// The file for these lines, CSV; each benchmark begins it anew
    #[arg(long, default_value = "report.csv")]
    pub report_file: PathBuf,
    /// Flags of db_bench without effect here
    #[arg(long, hide = true)]
    pub inert: Vec<String>,
    /// Flags of db_bench that ask for what is not here
    #[arg(long, hide = true)]
    pub absent: Vec<String>,
    /// The seed of random numbers; 0 for a different one each time
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
            format: if path
                .extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
            {
                TraceFormat::Csv
            } else {
                TraceFormat::OracleGeneral
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
