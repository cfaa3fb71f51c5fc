//! Setters of a column family: compression.

use super::{DBCompressionType, Options};

/// What RocksDB's numbers of bytes become: none where they are negative.
fn bytes(number: i32) -> u32 {
    number.max(0) as u32
}

impl Options {
    /// How blocks are compressed. Default: LZ4.
    pub fn set_compression_type(&mut self, t: DBCompressionType) {
        self.db.cf.compression = t.into();
    }

    /// How blocks of the last level are compressed. Default: as those of others.
    pub fn set_bottommost_compression_type(&mut self, t: DBCompressionType) {
        self.db.cf.bottommost_compression = Some(t.into());
    }

    /// How blocks are compressed, by level; empty for all alike. Default: empty.
    pub fn set_compression_per_level(&mut self, level_types: &[DBCompressionType]) {
        let types = level_types.iter().map(|kind| (*kind).into());
        self.db.cf.compression_per_level = types.collect();
    }

    /// Compresses nothing above level `lvl`; negative changes nothing. Call it after the number of
    /// levels and the compression are set.
    pub fn set_min_level_to_compress(&mut self, lvl: i32) {
        let Ok(lowest) = usize::try_from(lvl) else { return };
        let family = &mut self.db.cf.settings;
        let levels = family.num_levels.max(0) as usize;
        let compression = family.compression;
        let of_level = |level| {
            if level < lowest { DBCompressionType::None.into() } else { compression }
        };
        family.compression_per_level = (0..levels).map(of_level).collect();
    }

    /// Parameters of compression: the window of zlib, the level (32767 for the algorithm's own),
    /// and bytes of a dictionary (0 for none). The strategy of zlib has no effect. Default: -14,
    /// 32767, 0, 0.
    pub fn set_compression_options(
        &mut self,
        window_bits: i32,
        level: i32,
        _strategy: i32,
        max_dict_bytes: i32,
    ) {
        let parameters = &mut self.db.cf.compression_opts;
        parameters.window_bits = window_bits;
        parameters.level = level;
        parameters.max_dict_bytes = bytes(max_dict_bytes);
    }

    /// The same for the last level; in force if `enabled`. Default: not in force.
    pub fn set_bottommost_compression_options(
        &mut self,
        window_bits: i32,
        level: i32,
        _strategy: i32,
        max_dict_bytes: i32,
        enabled: bool,
    ) {
        let parameters = &mut self.db.cf.bottommost_compression_opts;
        parameters.window_bits = window_bits;
        parameters.level = level;
        parameters.max_dict_bytes = bytes(max_dict_bytes);
        parameters.enabled = enabled;
    }

    /// Bytes of samples that Zstandard trains a dictionary from; 0 takes samples for it. Default:
    /// 0.
    pub fn set_zstd_max_train_bytes(&mut self, value: i32) {
        self.db.cf.compression_opts.zstd_max_train_bytes = bytes(value);
    }

    /// The same for the last level. `enabled` puts the parameters of the last level in force.
    /// Default: 0.
    pub fn set_bottommost_zstd_max_train_bytes(&mut self, value: i32, enabled: bool) {
        let parameters = &mut self.db.cf.bottommost_compression_opts;
        parameters.zstd_max_train_bytes = bytes(value);
        parameters.enabled = enabled;
    }

    /// Threads that compress the blocks of one table. With 1, a large flush still takes a second
    /// one if writers may soon wait for it. Default: 1.
    pub fn set_compression_options_parallel_threads(&mut self, num: i32) {
        self.db.cf.compression_opts.parallel_threads = bytes(num);
    }
}
