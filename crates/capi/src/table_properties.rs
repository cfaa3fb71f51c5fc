//! Properties of tables, as listeners are told of them.

use std::ffi::c_char;
use std::sync::Arc;

use flagstone::reports::{TableInfo, TableProperties};

use crate::abi::{Out, handles};
use crate::api::c_api;
use crate::event_infos::{lend, lend_at};

/// The number that stands for no family.
const UNKNOWN_FAMILY: u64 = 0x7fff_ffff;

/// Names of properties.
const SMALLEST_SEQNO: &str = "rocksdb.key.smallest.seqno";
const LARGEST_SEQNO: &str = "rocksdb.key.largest.seqno";

/// Properties of a table.
pub struct Properties {
    table: Arc<TableProperties>,
    /// Those that collectors gave, in RocksDB also its own, by name.
    user: Vec<(Vec<u8>, Vec<u8>)>,
    /// The smallest and the largest sequence number, of a table that a job wrote.
    seqnos: Option<(u64, u64)>,
}

impl Properties {
    /// Those of this table.
    pub fn of(table: Arc<TableProperties>) -> Self {
        let all = table.block_based_properties().chain(table.user_properties());
        let mut user: Vec<_> = all.map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        user.sort_unstable();
        Self { table, user, seqnos: None }
    }

    /// With the sequence numbers of the table, which it does not record itself.
    pub fn with_seqnos(self, table: Option<&TableInfo>) -> Self {
        Self { seqnos: table.map(|table| (table.smallest_seqno, table.largest_seqno)), ..self }
    }

    fn smallest_seqno(&self) -> Option<u64> {
        self.seqnos.map(|(smallest, _)| smallest).or_else(|| self.found(SMALLEST_SEQNO))
    }

    fn largest_seqno(&self) -> Option<u64> {
        self.seqnos.map(|(_, largest)| largest).or_else(|| self.found(LARGEST_SEQNO))
    }

    fn number(&self, name: &str) -> u64 {
        self.found(name).unwrap_or(0)
    }

    fn found(&self, name: &str) -> Option<u64> {
        self.table.number(name).ok().flatten()
    }

    fn raw(&self, name: &str) -> &[u8] {
        self.table.raw.get(name.as_bytes()).map_or(&[], Vec::as_slice)
    }
}

handles! { Properties = "table_properties", }

c_api! {
    fn rocksdb_table_properties_orig_file_number(info: &Properties) -> u64 {
        info.table.original_file_number
    }

    fn rocksdb_table_properties_data_size(info: &Properties) -> u64 {
        info.table.data_size
    }

    fn rocksdb_table_properties_index_size(info: &Properties) -> u64 {
        info.table.index_size
    }

    fn rocksdb_table_properties_index_partitions(info: &Properties) -> u64 {
        info.number("rocksdb.index.partitions")
    }

    fn rocksdb_table_properties_top_level_index_size(info: &Properties) -> u64 {
        info.number("rocksdb.top-level.index.size")
    }

    fn rocksdb_table_properties_index_key_is_user_key(info: &Properties) -> u64 {
        info.number("rocksdb.index.key.is.user.key")
    }

    fn rocksdb_table_properties_index_value_is_delta_encoded(info: &Properties) -> u64 {
        info.number("rocksdb.index.value.is.delta.encoded")
    }

    fn rocksdb_table_properties_filter_size(info: &Properties) -> u64 {
        info.table.filter_size
    }

    fn rocksdb_table_properties_raw_key_size(info: &Properties) -> u64 {
        info.table.raw_key_size
    }

    fn rocksdb_table_properties_raw_value_size(info: &Properties) -> u64 {
        info.table.raw_value_size
    }

    fn rocksdb_table_properties_num_data_blocks(info: &Properties) -> u64 {
        info.table.num_data_blocks
    }

    fn rocksdb_table_properties_num_entries(info: &Properties) -> u64 {
        info.table.num_entries
    }

    fn rocksdb_table_properties_num_filter_entries(info: &Properties) -> u64 {
        info.table.num_filter_entries
    }

    fn rocksdb_table_properties_num_deletions(info: &Properties) -> u64 {
        info.table.num_deletions
    }

    fn rocksdb_table_properties_num_merge_operands(info: &Properties) -> u64 {
        info.table.num_merge_operands
    }

    fn rocksdb_table_properties_num_range_deletions(info: &Properties) -> u64 {
        info.table.num_range_deletions
    }

    fn rocksdb_table_properties_format_version(info: &Properties) -> u64 {
        info.table.format_version
    }

    fn rocksdb_table_properties_fixed_key_len(info: &Properties) -> u64 {
        info.number("rocksdb.fixed.key.length")
    }

    fn rocksdb_table_properties_creation_time(info: &Properties) -> u64 {
        info.table.creation_time
    }

    fn rocksdb_table_properties_oldest_key_time(info: &Properties) -> u64 {
        info.table.oldest_key_time
    }

    fn rocksdb_table_properties_newest_key_time(info: &Properties) -> u64 {
        info.table.newest_key_time
    }

    fn rocksdb_table_properties_file_creation_time(info: &Properties) -> u64 {
        info.table.file_creation_time
    }

    fn rocksdb_table_properties_tail_start_offset(info: &Properties) -> u64 {
        info.table.tail_start_offset
    }

    fn rocksdb_table_properties_column_family_id(info: &Properties) -> u64 {
        info.table.column_family.map_or(UNKNOWN_FAMILY, u64::from)
    }

    fn rocksdb_table_properties_db_id(info: &Properties, len: Out<usize>) -> *const c_char {
        lend(info.table.db_identity.as_bytes(), len)
    }

    fn rocksdb_table_properties_db_session_id(info: &Properties, len: Out<usize>) -> *const c_char {
        lend(info.table.session_identity.as_bytes(), len)
    }

    fn rocksdb_table_properties_column_family_name(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.table.column_family_name.as_bytes(), len)
    }

    fn rocksdb_table_properties_filter_policy_name(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.table.filter_policy.as_bytes(), len)
    }

    fn rocksdb_table_properties_comparator_name(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.table.comparator.as_bytes(), len)
    }

    fn rocksdb_table_properties_merge_operator_name(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.raw("rocksdb.merge.operator"), len)
    }

    fn rocksdb_table_properties_prefix_extractor_name(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.raw("rocksdb.prefix.extractor.name"), len)
    }

    fn rocksdb_table_properties_property_collectors_names(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.raw("rocksdb.property.collectors"), len)
    }

    fn rocksdb_table_properties_compression_name(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.table.compression.as_bytes(), len)
    }

    fn rocksdb_table_properties_compression_options(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.raw("rocksdb.compression_options"), len)
    }

    fn rocksdb_table_properties_db_host_id(info: &Properties, len: Out<usize>) -> *const c_char {
        lend(info.raw("rocksdb.creating.host.identity"), len)
    }

    fn rocksdb_table_properties_user_collected_properties_count(info: &Properties) -> usize {
        info.user.len()
    }

    fn rocksdb_table_properties_user_collected_properties_key_at(
        info: &Properties, at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(info.user.get(at).map(|(name, _)| &**name), len)
    }

    fn rocksdb_table_properties_user_collected_properties_value_at(
        info: &Properties, at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(info.user.get(at).map(|(_, value)| &**value), len)
    }

    fn rocksdb_table_properties_num_data_blocks_compression_rejected(info: &Properties) -> u64 {
        info.number("rocksdb.num.data.blocks.compression.rejected")
    }

    fn rocksdb_table_properties_num_data_blocks_compression_bypassed(info: &Properties) -> u64 {
        info.number("rocksdb.num.data.blocks.compression.bypassed")
    }

    fn rocksdb_table_properties_num_uniform_blocks(info: &Properties) -> u64 {
        info.number("rocksdb.num.uniform.blocks")
    }

    fn rocksdb_table_properties_udi_is_primary_index(info: &Properties) -> u64 {
        info.number("rocksdb.udi.is.primary.index")
    }

    fn rocksdb_table_properties_data_block_restart_interval(info: &Properties) -> u64 {
        info.number("rocksdb.data.block.restart.interval")
    }

    fn rocksdb_table_properties_index_block_restart_interval(info: &Properties) -> u64 {
        info.number("rocksdb.index.block.restart.interval")
    }

    fn rocksdb_table_properties_separate_key_value_in_data_block(info: &Properties) -> u64 {
        info.number("rocksdb.separate.key.value.in.data.block")
    }

    fn rocksdb_table_properties_slow_compression_estimated_data_size(info: &Properties) -> u64 {
        info.number("rocksdb.sample_for_compression.slow.data.size")
    }

    fn rocksdb_table_properties_fast_compression_estimated_data_size(info: &Properties) -> u64 {
        info.number("rocksdb.sample_for_compression.fast.data.size")
    }

    fn rocksdb_table_properties_user_defined_timestamps_persisted(info: &Properties) -> u64 {
        info.found("rocksdb.user.defined.timestamps.persisted").unwrap_or(1)
    }

    fn rocksdb_table_properties_key_smallest_seqno(info: &Properties) -> u64 {
        info.smallest_seqno().unwrap_or(u64::MAX)
    }

    fn rocksdb_table_properties_has_key_smallest_seqno(info: &Properties) -> u8 {
        info.smallest_seqno().is_some().into()
    }

    fn rocksdb_table_properties_key_largest_seqno(info: &Properties) -> u64 {
        info.largest_seqno().unwrap_or(u64::MAX)
    }

    fn rocksdb_table_properties_has_key_largest_seqno(info: &Properties) -> u8 {
        info.largest_seqno().is_some().into()
    }

    fn rocksdb_table_properties_seqno_to_time_mapping(
        info: &Properties, len: Out<usize>
    ) -> *const c_char {
        lend(info.raw("rocksdb.seqno.time.map"), len)
    }

    fn rocksdb_table_properties_uncompressed_data_size(info: &Properties) -> u64 {
        info.table.uncompressed_data_size
    }
}

// What RocksDB knows only of a table that it is writing.
c_api! {
    fn rocksdb_table_properties_external_sst_file_global_seqno_offset(_info: &Properties) -> u64 {
        0
    }

    fn rocksdb_table_properties_readable_properties_count(_info: &Properties) -> usize {
        0
    }

    fn rocksdb_table_properties_readable_properties_key_at(
        _info: &Properties, _at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(None, len)
    }

    fn rocksdb_table_properties_readable_properties_value_at(
        _info: &Properties, _at: usize, len: Out<usize>
    ) -> *const c_char {
        lend_at(None, len)
    }
}
