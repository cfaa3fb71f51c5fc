//! Options of block-based tables; other kinds of tables are refused when a database is opened.

use std::ffi::c_char;

use flagstone::options::FilterPolicy;
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{bits_in_range, bloom};

use crate::abi::{Out, Tagged, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::cache::Cache;
use crate::convert::is_default;
use crate::event_infos::lend_at;
use crate::options::Options;
use crate::refused::{Refused, Refuses, refuses};

/// Options of block-based tables.
#[derive(Default)]
pub struct TableOptions {
    rdb: rdb::BlockBasedOptions,
    /// Names of options that cannot be had, and their values.
    refused: Vec<(&'static str, String)>,
    refused_numbers: Refused,
    known: Vec<(&'static str, String)>,
}

/// How filters are made; nothing for no filter.
pub struct Filter(Option<FilterPolicy>);

/// Options of tables that there are not.
#[derive(Default)]
pub struct Cuckoo {
    hash_table_ratio: f64,
    max_search_depth: u32,
    cuckoo_block_size: u32,
    identity_as_first_hash: bool,
    use_module_hash: bool,
}

handles! {
    TableOptions = "block_based_table_options",
    Filter = "filterpolicy",
    Cuckoo = "cuckoo_table_options",
}

refuses! { TableOptions: refused_numbers, }

impl TableOptions {
    fn refuse(&mut self, name: &'static str, value: Option<String>) {
        self.refused.retain(|(refused, _)| *refused != name);
        self.refused.extend(value.map(|value| (name, value)));
    }

    fn set_known(&mut self, name: &'static str, value: &str) {
        self.known.retain(|(known, _)| *known != name);
        self.known.push((name, value.to_string()));
        self.rdb.note(name, value);
        let is_refused = !is_default(name, value) && !rdb::parts::has_no_effect(name);
        self.refuse(name, is_refused.then(|| value.to_string()));
    }

    fn known(&self, name: &str) -> &str {
        let default = || flagstone::options::known::find(name).map_or("", |row| row.defaults[0]);
        let set = self.known.iter().find(|(known, _)| *known == name);
        set.map_or_else(default, |(_, value)| value.as_str())
    }
}

/// Sets how tables are made.
pub fn set_tables(o: &mut Options, tables: &TableOptions) {
    o.rdb.set_block_based_table_factory(&tables.rdb);
    let number = || tables.refused_numbers.first().map(|(name, number)| (name, number.to_string()));
    let first = tables.refused.first().cloned().or_else(number);
    let why = first.map(|(name, value)| {
        rdb::Error::not_supported(format_args!("option '{name}' with '{value}'"))
    });
    o.rdb.refuse("table_factory", why);
}

creates! {
    rocksdb_block_based_options_create: TableOptions,
    rocksdb_cuckoo_options_create: Cuckoo,
}

destroys! {
    rocksdb_block_based_options_destroy: TableOptions,
    rocksdb_cuckoo_options_destroy: Cuckoo,
    rocksdb_filterpolicy_destroy: Filter,
}

c_settings! { "rocksdb_block_based_options", TableOptions, |o| {
    value usize => u64, block_size: o.rdb.engine.block_size;
    value i32, block_size_deviation: o.rdb.engine.block_size_deviation;
    value i32, block_restart_interval: o.rdb.engine.block_restart_interval;
    value i32, index_block_restart_interval: o.rdb.engine.index_block_restart_interval;
    value u64, metadata_block_size: o.rdb.engine.metadata_block_size;
    value i32 => u32, format_version: o.rdb.engine.format_version;
    choice i32, index_type: o.rdb.engine.index_type;
    choice i32, index_shortening: o.rdb.engine.index_shortening;
    value u8, enable_index_compression: o.rdb.engine.enable_index_compression;
    choice i32, data_block_index_type: o.rdb.engine.data_block_index_type;
    value f64, data_block_hash_table_util_ratio: o.rdb.engine.data_block_hash_table_util_ratio;
    value u8, whole_key_filtering: o.rdb.engine.whole_key_filtering;
    value u8, partition_filters: o.rdb.engine.partition_filters;
    value u8, no_block_cache: o.rdb.engine.no_block_cache;
    choice i32, prepopulate_block_cache: o.rdb.engine.prepopulate_block_cache;
    value u8, cache_index_and_filter_blocks: o.rdb.engine.cache_index_and_filter_blocks;
    value u8, cache_index_and_filter_blocks_with_high_priority:
        o.rdb.engine.cache_index_and_filter_blocks_with_high_priority;
    value u8, pin_l0_filter_and_index_blocks_in_cache:
        o.rdb.engine.pin_l0_filter_and_index_blocks_in_cache;
    value u8, verify_compression: o.rdb.engine.verify_compression;
    value u8, block_align: o.rdb.engine.block_align;
    value usize, super_block_alignment_size: o.rdb.engine.super_block_alignment_size;
    value usize, super_block_alignment_space_overhead_ratio:
        o.rdb.engine.super_block_alignment_space_overhead_ratio;
    value usize, initial_auto_readahead_size: o.rdb.engine.initial_auto_readahead_size;
    value usize, max_auto_readahead_size: o.rdb.engine.max_auto_readahead_size;
    value u64, num_file_reads_for_auto_readahead: o.rdb.engine.num_file_reads_for_auto_readahead;
    known u8, pin_top_level_index_and_filter: "pin_top_level_index_and_filter";
    known u8, decouple_partitioned_filters: "decouple_partitioned_filters";
    known u8, optimize_filters_for_memory: "optimize_filters_for_memory";
    known u8, use_delta_encoding: "use_delta_encoding";
    known u8, use_udi_as_primary_index: "use_udi_as_primary_index";
    known u8, fail_if_no_udi_on_open: "fail_if_no_udi_on_open";
    known u8, detect_filter_construct_corruption: "detect_filter_construct_corruption";
    known u8, separate_key_value_in_data_block: "separate_key_value_in_data_block";
    known f64, uniform_cv_threshold: "uniform_cv_threshold";
    known u32, read_amp_bytes_per_bit: "read_amp_bytes_per_bit";
} }

c_settings! { "rocksdb_cuckoo_options", Cuckoo, |o| {
    value f64, hash_table_ratio: o.hash_table_ratio;
    value u32, max_search_depth: o.max_search_depth;
    value u32, cuckoo_block_size: o.cuckoo_block_size;
    value u8, identity_as_first_hash: o.identity_as_first_hash;
    value u8, use_module_hash: o.use_module_hash;
} }

fn ribbon(bits: f64, bloom_before_level: i32) -> Filter {
    let bits = bits_in_range(bits);
    Filter(bits.map(|bits| FilterPolicy::Ribbon {
        bloom_equivalent_bits_per_key: bits,
        bloom_before_level,
    }))
}

fn tier(number: i32) -> rdb::BlockBasedTablePinningTier {
    match number {
        1 => rdb::BlockBasedTablePinningTier::None,
        2 => rdb::BlockBasedTablePinningTier::FlushAndSimilar,
        3 => rdb::BlockBasedTablePinningTier::All,
        _ => rdb::BlockBasedTablePinningTier::Fallback,
    }
}

pub fn refuse_tables(o: &mut Options, kind: &str) {
    let why = rdb::Error::not_supported(format_args!("{kind} tables"));
    o.rdb.refuse("table_factory", Some(why));
}

c_api! {
    fn rocksdb_filterpolicy_create_bloom(bits: f64) -> *mut Tagged<Filter> {
        make(Filter(bloom(bits)))
    }

    fn rocksdb_filterpolicy_create_bloom_full(bits: f64) -> *mut Tagged<Filter> {
        make(Filter(bloom(bits)))
    }

    fn rocksdb_filterpolicy_create_ribbon(bits: f64) -> *mut Tagged<Filter> {
        make(ribbon(bits, 0))
    }

    fn rocksdb_filterpolicy_create_ribbon_hybrid(
        bits: f64, bloom_before_level: i32
    ) -> *mut Tagged<Filter> {
        make(ribbon(bits, bloom_before_level))
    }

    fn rocksdb_block_based_options_set_filter_policy(o: &mut TableOptions, filter: own Filter) {
        o.rdb.engine.filter_policy = filter.and_then(|filter| filter.0);
    }

    fn rocksdb_block_based_options_set_block_cache(o: &mut TableOptions, cache: ?Cache) {
        if let Some(cache) = cache {
            o.rdb.set_block_cache(&cache.0);
        }
    }

    fn rocksdb_block_based_options_set_data_block_hash_ratio(o: &mut TableOptions, ratio: f64) {
        o.rdb.engine.data_block_hash_table_util_ratio = ratio;
    }

    fn rocksdb_block_based_options_set_checksum(o: &mut TableOptions, number: std::ffi::c_char) {
        match crate::convert::Choice::from_number(number.into()) {
            Some(kind) => {
                o.rdb.engine.checksum = kind;
                o.accept("checksum");
            }
            None => o.refuse_number("checksum", number.into()),
        }
    }

    fn rocksdb_block_based_options_get_checksum(o: &TableOptions) -> i32 {
        let own = || crate::convert::Choice::number(&o.rdb.engine.checksum);
        o.refused().number("checksum").unwrap_or_else(own)
    }

    fn rocksdb_block_based_options_set_index_block_search_type(o: &mut TableOptions, kind: i32) {
        let name = match kind {
            0 => "kBinary",
            1 => "kInterpolation",
            _ => "kAuto",
        };
        o.set_known("index_block_search_type", name);
    }

    fn rocksdb_block_based_options_get_index_block_search_type(o: &TableOptions) -> i32 {
        match o.known("index_block_search_type") {
            "kInterpolation" => 1,
            "kAuto" => 2,
            _ => 0,
        }
    }

    fn rocksdb_block_based_options_set_hash_index_allow_collision(
        o: &mut TableOptions, allow: flag
    ) {
        o.set_known("hash_index_allow_collision", &allow.to_string());
    }

    fn rocksdb_block_based_options_set_user_defined_index_factory_from_string(
        _o: &mut TableOptions, text: ?[u8], error
    ) {
        if text.is_some() {
            return Err(rdb::Error::not_supported("user-defined indexes"));
        }
    }

    fn rocksdb_block_based_options_get_user_defined_index_factory_name(
        _o: &TableOptions, len: Out<usize>
    ) -> *const c_char {
        lend_at(None, len)
    }

    fn rocksdb_block_based_options_clear_user_defined_index_factory(_o: &mut TableOptions) {}

    fn rocksdb_block_based_options_set_top_level_index_pinning_tier(
        o: &mut TableOptions, number: i32
    ) {
        o.rdb.set_top_level_index_pinning_tier(tier(number));
    }

    fn rocksdb_block_based_options_set_partition_pinning_tier(o: &mut TableOptions, number: i32) {
        o.rdb.set_partition_pinning_tier(tier(number));
    }

    fn rocksdb_block_based_options_set_unpartitioned_pinning_tier(
        o: &mut TableOptions, number: i32
    ) {
        o.rdb.set_unpartitioned_pinning_tier(tier(number));
    }

    fn rocksdb_options_set_block_based_table_factory(o: &mut Options, tables: ?TableOptions) {
        if let Some(tables) = tables {
            set_tables(o, tables);
        }
    }

    fn rocksdb_cuckoo_options_set_hash_ratio(o: &mut Cuckoo, ratio: f64) {
        o.hash_table_ratio = ratio;
    }

    fn rocksdb_options_set_cuckoo_table_factory(o: &mut Options, _cuckoo: ?Cuckoo) {
        refuse_tables(o, "cuckoo");
    }

    fn rocksdb_options_set_plain_table_factory(
        o: &mut Options, _user_key_len: u32, _bloom_bits: i32, _hash_ratio: f64, _sparseness: usize,
        _huge_page_size: usize, _encoding: std::ffi::c_char, _full_scan: flag, _store_index: flag
    ) {
        refuse_tables(o, "plain");
    }
}
