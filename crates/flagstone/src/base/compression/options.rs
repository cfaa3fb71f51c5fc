//! How hard to compress, and with what dictionary.

use std::fmt;

/// RocksDB's `CompressionOptions`, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionOptions {
    /// Deflate's window: its logarithm, negative for a raw stream. Files always hold raw streams
    /// with a window of at most 2^14, so only -9 to -14 are taken as they are.
    pub window_bits: i32,
    /// The codec's level; [`CompressionOptions::DEFAULT_LEVEL`] leaves it to the codec. For LZ4 a
    /// negative level is an acceleration.
    pub level: i32,
    /// Deflate's strategy. Kept for OPTIONS files; the default strategy is always used.
    pub strategy: i32,
    /// The largest dictionary, in bytes; 0 for none.
    pub max_dict_bytes: u32,
    /// Bytes of samples to train a zstd dictionary on; 0 uses the samples themselves.
    pub zstd_max_train_bytes: u32,
    /// Threads that compress one file.
    pub parallel_threads: u32,
    /// Whether these options apply where there are two sets of them (bottommost level).
    pub enabled: bool,
    /// Bytes of data blocks to hold back for sampling; 0 is one file's worth.
    pub max_dict_buffer_bytes: u64,
    /// Train the dictionary (true) or only finalise samples into one; the engine always trains.
    pub use_zstd_dict_trainer: bool,
    /// A block is stored compressed only if it takes at most this many bytes per KiB of its size.
    pub max_compressed_bytes_per_kb: u32,
    /// Whether zstd frames carry a checksum of their content.
    pub checksum: bool,
}

impl CompressionOptions {
    /// The level that stands for the codec's own default.
    pub const DEFAULT_LEVEL: i32 = 32767;

    /// The level, or the codec's own default.
    pub(super) fn level_or(&self, default: i32) -> i32 {
        if self.level == Self::DEFAULT_LEVEL { default } else { self.level }
    }

    /// Whether a block that was compressed from `raw_size` to `stored_size` bytes is worth storing
    /// so.
    #[inline]
    pub fn is_worthwhile(&self, raw_size: usize, stored_size: usize) -> bool {
        stored_size as u64
            <= (raw_size as u64).saturating_mul(u64::from(self.max_compressed_bytes_per_kb)) >> 10
    }
}

impl Default for CompressionOptions {
    fn default() -> Self {
        Self {
            window_bits: -14,
            level: Self::DEFAULT_LEVEL,
            strategy: 0,
            max_dict_bytes: 0,
            zstd_max_train_bytes: 0,
            parallel_threads: 1,
            enabled: false,
            max_dict_buffer_bytes: 0,
            use_zstd_dict_trainer: true,
            max_compressed_bytes_per_kb: 896,
            checksum: false,
        }
    }
}

impl fmt::Display for CompressionOptions {
    /// As in the property `rocksdb.compression_options` that RocksDB 11 writes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "window_bits={}; level={}; strategy={}; max_dict_bytes={}; zstd_max_train_bytes={}; enabled={}; \
             max_dict_buffer_bytes={}; use_zstd_dict_trainer={}; max_compressed_bytes_per_kb={}; checksum={}; ",
            self.window_bits,
            self.level,
            self.strategy,
            self.max_dict_bytes,
            self.zstd_max_train_bytes,
            u8::from(self.enabled),
            self.max_dict_buffer_bytes,
            u8::from(self.use_zstd_dict_trainer),
            self.max_compressed_bytes_per_kb,
            u8::from(self.checksum),
        )
    }
}
