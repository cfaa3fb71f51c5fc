//! Settings that are limited by other settings.

use super::assembled::ColumnFamilyOptions;
use super::memtable_factory::MemTableFactory;

/// What was asked for where [`ColumnFamilyOptions::sanitized`] puts something else in force for the
/// sake of another setting: that one may change while the database is open, and change back.
pub(crate) struct BoundedSettings {
    level0_slowdown_writes_trigger: i32,
    level0_stop_writes_trigger: i32,
    soft_pending_compaction_bytes_limit: u64,
    min_write_buffer_number_to_merge: i32,
    memtable_factory: MemTableFactory,
    zstd_max_train_bytes: [u32; 2],
}

impl BoundedSettings {
    /// Those of options as they were asked for.
    pub(crate) fn of(options: &ColumnFamilyOptions) -> Self {
        Self {
            level0_slowdown_writes_trigger: options.level0_slowdown_writes_trigger,
            level0_stop_writes_trigger: options.level0_stop_writes_trigger,
            soft_pending_compaction_bytes_limit: options.soft_pending_compaction_bytes_limit,
            min_write_buffer_number_to_merge: options.min_write_buffer_number_to_merge,
            memtable_factory: options.memtable_factory,
            zstd_max_train_bytes: [&options.compression_opts, &options.bottommost_compression_opts]
                .map(|compression| compression.zstd_max_train_bytes),
        }
    }

    /// Puts them in the place of what is in force.
    pub(crate) fn put_into(&self, options: &mut ColumnFamilyOptions) {
        let settings = &mut options.settings;
        settings.level0_slowdown_writes_trigger = self.level0_slowdown_writes_trigger;
        settings.level0_stop_writes_trigger = self.level0_stop_writes_trigger;
        settings.soft_pending_compaction_bytes_limit = self.soft_pending_compaction_bytes_limit;
        settings.min_write_buffer_number_to_merge = self.min_write_buffer_number_to_merge;
        settings.memtable_factory = self.memtable_factory;
        let compressions =
            [&mut settings.compression_opts, &mut settings.bottommost_compression_opts];
        for (compression, bytes) in compressions.into_iter().zip(self.zstd_max_train_bytes) {
            compression.zstd_max_train_bytes = bytes;
        }
    }
}
