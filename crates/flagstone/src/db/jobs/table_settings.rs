//! With which settings flushes and compactions write a table.

use std::sync::Arc;

use super::job::JobSpec;
use crate::base::FileNumber;
use crate::base::sync::Ordering;
use crate::db::DbInner;
use crate::db::settings::compression_options;
use crate::options::{DataBlockIndexType, PrepopulateBlockCache};
use crate::sst::filter::WrittenBy;
use crate::sst::{Prepopulate, TableBuilderSettings, Warmth};

impl DbInner {
    /// How the blocks of the table `number` get into the cache, if they do.
    pub(super) fn prepopulate(
        &self,
        spec: &JobSpec,
        number: FileNumber,
        warmth: &Arc<Warmth>,
    ) -> Option<Prepopulate> {
        let table = &spec.family.options.load().table;
        let warmth = match table.prepopulate_block_cache {
            _ if table.no_block_cache => return None,
            PrepopulateBlockCache::FlushAndCompaction => None,
            PrepopulateBlockCache::FlushOnly if spec.is_flush => None,
            _ if spec.is_flush || !table.cache_follows_compaction => return None,
            _ => Some(warmth.clone()),
        };
        Some(self.tables.prepopulate(number, warmth))
    }

    /// How a job writes the table `number`.
    pub(super) fn table_builder_settings(&self, spec: &JobSpec, number: FileNumber) -> TableBuilderSettings {
        let options = spec.family.options.load();
        let table = &options.table;
        let now = self.env.clock.unix_seconds();
        let written_by = match spec.is_flush {
            true => WrittenBy::Flush,
            false => WrittenBy::Compaction { level: spec.output_level as u32 },
        };
        TableBuilderSettings {
            comparator: spec.family.comparator().clone(),
            format_version: table.format_version,
            checksum: table.checksum,
            compression: spec.compression.0,
            compression_options: compression_options(&options, spec.compression.1),
            verify_compression: table.verify_compression,
            compress_index: table.enable_index_compression,
            block_align: table.block_align.then_some(4096),
            block_size: table.block_size as usize,
            block_size_deviation: table.block_size_deviation as usize,
            block_restart_interval: table.block_restart_interval as usize,
            index_block_restart_interval: table.index_block_restart_interval as usize,
            index_type: table.index_type,
            metadata_block_size: table.metadata_block_size as usize,
            index_shortening: table.index_shortening,
            // Who comes as far as the oldest data will mostly find the key there.
            filter_policy: table
                .filter_policy
                .and_then(|policy| table.filter_bits_per_level.of_level(policy, spec.output_level))
                .filter(|_| spec.is_flush || !spec.bottommost || !options.optimize_filters_for_hits),
            key_filter: spec.wants_key_filter,
            written_by,
            prefix_extractor: options.prefix_extractor.clone(),
            whole_key_filtering: table.whole_key_filtering,
            partition_filters: table.partition_filters,
            data_block_hash_ratio: (table.data_block_index_type == DataBlockIndexType::BinaryAndHash)
                .then_some(table.data_block_hash_table_util_ratio)
                .filter(|_| spec.family.comparator().tells_bytes_apart()),
            column_family: spec.family.id,
            column_family_name: spec.family.name.clone(),
            merge_operator_name: options.merge_operator.as_ref().map(|operator| operator.name().to_string()),
            creation_time: if spec.oldest_ancestor_time == 0 { now } else { spec.oldest_ancestor_time },
            oldest_key_time: if spec.is_flush { now } else { 0 },
            newest_key_time: None,
            file_creation_time: if spec.file_creation_time == 0 { now } else { spec.file_creation_time },
            db_identity: self.identity.clone(),
            session_identity: self.session.clone(),
            file_number: number,
            user_properties: Vec::new(),
            buffer_size: self.settings.load().writable_file_max_buffer_size as usize,
            range_deletion_bytes_max: self.range_deletion_bytes_max.load(Ordering::Relaxed) as usize,
        }
    }
}
