/* The C API of RocksDB 11, as Flagstone has it: what is declared here is in the library.

   - Objects are made by `..._create` and the like, and destroyed by `..._destroy` or `..._close`.
   - A function that can fail has a last argument `char** errptr`. It must point to NULL, or to a
     text that the library allocated before; after a failure it points to a text that
     `rocksdb_free` or `free` frees. Success leaves it alone.
   - A truth value is an `unsigned char`: 0 is false.
   - Keys and values are a pointer and a length.

   docs/c-api.md lists what differs from RocksDB. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROCKSDB_API extern
/* RocksDB's macro, which programs use in declarations of their own. */
#define ROCKSDB_LIBRARY_API

/* Objects. */
typedef struct rocksdb_backup_engine_info_t rocksdb_backup_engine_info_t;
typedef struct rocksdb_backup_engine_options_t rocksdb_backup_engine_options_t;
typedef struct rocksdb_backup_engine_t rocksdb_backup_engine_t;
typedef struct rocksdb_blob_file_addition_info_t rocksdb_blob_file_addition_info_t;
typedef struct rocksdb_blob_file_garbage_info_t rocksdb_blob_file_garbage_info_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_block_cache_trace_options_t rocksdb_block_cache_trace_options_t;
typedef struct rocksdb_block_cache_trace_writer_options_t
    rocksdb_block_cache_trace_writer_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_checkpoint_t rocksdb_checkpoint_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_column_family_metadata_options_t rocksdb_column_family_metadata_options_t;
typedef struct rocksdb_column_family_metadata_t rocksdb_column_family_metadata_t;
typedef struct rocksdb_compaction_file_info_t rocksdb_compaction_file_info_t;
typedef struct rocksdb_compaction_job_stats_t rocksdb_compaction_job_stats_t;
typedef struct rocksdb_compaction_options_t rocksdb_compaction_options_t;
typedef struct rocksdb_compaction_service_options_override_t rocksdb_compaction_service_options_override_t;
typedef struct rocksdb_compactionfilter_t rocksdb_compactionfilter_t;
typedef struct rocksdb_compactionfiltercontext_t rocksdb_compactionfiltercontext_t;
typedef struct rocksdb_compactionfilterfactory_t rocksdb_compactionfilterfactory_t;
typedef struct rocksdb_compactionjobinfo_t rocksdb_compactionjobinfo_t;
typedef struct rocksdb_compactionservice_jobinfo_t rocksdb_compactionservice_jobinfo_t;
typedef struct rocksdb_compactionservice_scheduleresponse_t
    rocksdb_compactionservice_scheduleresponse_t;
typedef struct rocksdb_compactionservice_t rocksdb_compactionservice_t;
typedef struct rocksdb_compactoptions_t rocksdb_compactoptions_t;
typedef struct rocksdb_comparator_t rocksdb_comparator_t;
typedef struct rocksdb_create_backup_options_t rocksdb_create_backup_options_t;
typedef struct rocksdb_cuckoo_table_options_t rocksdb_cuckoo_table_options_t;
typedef struct rocksdb_dbpath_t rocksdb_dbpath_t;
typedef struct rocksdb_env_t rocksdb_env_t;
typedef struct rocksdb_envoptions_t rocksdb_envoptions_t;
typedef struct rocksdb_eventlistener_t rocksdb_eventlistener_t;
typedef struct rocksdb_export_import_files_metadata_t rocksdb_export_import_files_metadata_t;
typedef struct rocksdb_externalfileingestioninfo_t rocksdb_externalfileingestioninfo_t;
typedef struct rocksdb_fifo_compaction_options_t rocksdb_fifo_compaction_options_t;
typedef struct rocksdb_file_checksum_gen_factory_t rocksdb_file_checksum_gen_factory_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_flushjobinfo_t rocksdb_flushjobinfo_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_flushwaloptions_t rocksdb_flushwaloptions_t;
typedef struct rocksdb_hyper_clock_cache_options_t rocksdb_hyper_clock_cache_options_t;
typedef struct rocksdb_import_column_family_options_t rocksdb_import_column_family_options_t;
typedef struct rocksdb_ingestexternalfileoptions_t rocksdb_ingestexternalfileoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_level_metadata_t rocksdb_level_metadata_t;
typedef struct rocksdb_livefile_t rocksdb_livefile_t;
typedef struct rocksdb_livefiles_storage_info_options_t rocksdb_livefiles_storage_info_options_t;
typedef struct rocksdb_livefiles_storage_info_t rocksdb_livefiles_storage_info_t;
typedef struct rocksdb_livefiles_t rocksdb_livefiles_t;
typedef struct rocksdb_logger_t rocksdb_logger_t;
typedef struct rocksdb_lru_cache_options_t rocksdb_lru_cache_options_t;
typedef struct rocksdb_memory_allocator_t rocksdb_memory_allocator_t;
typedef struct rocksdb_memory_consumers_t rocksdb_memory_consumers_t;
typedef struct rocksdb_memory_usage_t rocksdb_memory_usage_t;
typedef struct rocksdb_memtableinfo_t rocksdb_memtableinfo_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_open_and_compact_options_t rocksdb_open_and_compact_options_t;
typedef struct rocksdb_optimistictransaction_options_t rocksdb_optimistictransaction_options_t;
typedef struct rocksdb_optimistictransactiondb_lock_buckets_t rocksdb_optimistictransactiondb_lock_buckets_t;
typedef struct rocksdb_optimistictransactiondb_options_t rocksdb_optimistictransactiondb_options_t;
typedef struct rocksdb_optimistictransactiondb_t rocksdb_optimistictransactiondb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_perfcontext_t rocksdb_perfcontext_t;
typedef struct rocksdb_pinnable_handle_t rocksdb_pinnable_handle_t;
typedef struct rocksdb_pinnable_multi_get_t rocksdb_pinnable_multi_get_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_ratelimiter_t rocksdb_ratelimiter_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_replay_options_t rocksdb_replay_options_t;
typedef struct rocksdb_replayer_t rocksdb_replayer_t;
typedef struct rocksdb_restore_options_t rocksdb_restore_options_t;
typedef struct rocksdb_size_approximation_options_t rocksdb_size_approximation_options_t;
typedef struct rocksdb_slicetransform_t rocksdb_slicetransform_t;
typedef struct rocksdb_snapshot_t rocksdb_snapshot_t;
typedef struct rocksdb_sst_file_manager_t rocksdb_sst_file_manager_t;
typedef struct rocksdb_sst_file_metadata_t rocksdb_sst_file_metadata_t;
typedef struct rocksdb_sst_partitioner_factory_t rocksdb_sst_partitioner_factory_t;
typedef struct rocksdb_sstfilewriter_t rocksdb_sstfilewriter_t;
typedef struct rocksdb_statistics_histogram_data_t rocksdb_statistics_histogram_data_t;
typedef struct rocksdb_status_ptr_t rocksdb_status_ptr_t;
typedef struct rocksdb_subcompactionjobinfo_t rocksdb_subcompactionjobinfo_t;
typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_table_properties_collector_factory_t rocksdb_table_properties_collector_factory_t;
typedef struct rocksdb_table_properties_t rocksdb_table_properties_t;
typedef struct rocksdb_trace_options_t rocksdb_trace_options_t;
typedef struct rocksdb_trace_reader_t rocksdb_trace_reader_t;
typedef struct rocksdb_transaction_options_t rocksdb_transaction_options_t;
typedef struct rocksdb_transaction_t rocksdb_transaction_t;
typedef struct rocksdb_transactiondb_options_t rocksdb_transactiondb_options_t;
typedef struct rocksdb_transactiondb_t rocksdb_transactiondb_t;
typedef struct rocksdb_universal_compaction_options_t rocksdb_universal_compaction_options_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_for_compact_options_t;
typedef struct rocksdb_wal_file_t rocksdb_wal_file_t;
typedef struct rocksdb_wal_files_t rocksdb_wal_files_t;
typedef struct rocksdb_wal_iterator_t rocksdb_wal_iterator_t;
typedef struct rocksdb_wal_readoptions_t rocksdb_wal_readoptions_t;
typedef struct rocksdb_walfilter_t rocksdb_walfilter_t;
typedef struct rocksdb_write_buffer_manager_t rocksdb_write_buffer_manager_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writebatch_wi_t rocksdb_writebatch_wi_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;
typedef struct rocksdb_writestallcondition_t rocksdb_writestallcondition_t;
typedef struct rocksdb_writestallinfo_t rocksdb_writestallinfo_t;

/* Bytes, and how many they are. */
typedef struct rocksdb_slice_t {
  const char* data;
  size_t size;
} rocksdb_slice_t;

/* Numbers. */
enum {
  rocksdb_size_approximation_flags_none = 0,
  rocksdb_size_approximation_flags_include_memtable = 1 << 0,
  rocksdb_size_approximation_flags_include_files = 1 << 1,
  rocksdb_size_approximation_flags_include_blob_files = 1 << 2,
};
enum {
  rocksdb_block_based_table_index_type_binary_search = 0,
  rocksdb_block_based_table_index_type_hash_search = 1,
  rocksdb_block_based_table_index_type_two_level_index_search = 2,
};
enum {
  rocksdb_block_based_table_data_block_index_type_binary_search = 0,
  rocksdb_block_based_table_data_block_index_type_binary_search_and_hash = 1,
};
enum {
  rocksdb_block_based_table_index_block_search_type_binary = 0,
  rocksdb_block_based_table_index_block_search_type_interpolation = 1,
  rocksdb_block_based_table_index_block_search_type_auto = 2,
};
enum {
  rocksdb_block_based_k_fallback_pinning_tier = 0,
  rocksdb_block_based_k_none_pinning_tier = 1,
  rocksdb_block_based_k_flush_and_similar_pinning_tier = 2,
  rocksdb_block_based_k_all_pinning_tier = 3,
};
enum {
  rocksdb_statistics_level_disable_all = 0,
  rocksdb_statistics_level_except_tickers = rocksdb_statistics_level_disable_all,
  rocksdb_statistics_level_except_histogram_or_timers = 1,
  rocksdb_statistics_level_except_timers = 2,
  rocksdb_statistics_level_except_detailed_timers = 3,
  rocksdb_statistics_level_except_time_for_mutex = 4,
  rocksdb_statistics_level_all = 5,
};
enum {
  rocksdb_prepopulate_blob_disable = 0,
  rocksdb_prepopulate_blob_flush_only = 1,
};
enum {
  rocksdb_tolerate_corrupted_tail_records_recovery = 0,
  rocksdb_absolute_consistency_recovery = 1,
  rocksdb_point_in_time_recovery = 2,
  rocksdb_skip_any_corrupted_records_recovery = 3,
};
enum {
  rocksdb_no_compression = 0,
  rocksdb_snappy_compression = 1,
  rocksdb_zlib_compression = 2,
  rocksdb_bz2_compression = 3,
  rocksdb_lz4_compression = 4,
  rocksdb_lz4hc_compression = 5,
  rocksdb_xpress_compression = 6,
  rocksdb_zstd_compression = 7,
};
enum {
  rocksdb_level_compaction = 0,
  rocksdb_universal_compaction = 1,
  rocksdb_fifo_compaction = 2,
};
enum {
  rocksdb_k_by_compensated_size_compaction_pri = 0,
  rocksdb_k_oldest_largest_seq_first_compaction_pri = 1,
  rocksdb_k_oldest_smallest_seq_first_compaction_pri = 2,
  rocksdb_k_min_overlapping_ratio_compaction_pri = 3,
  rocksdb_k_round_robin_compaction_pri = 4,
};
enum {
  rocksdb_trace_filter_none = 0,
  rocksdb_trace_filter_get = 1,
  rocksdb_trace_filter_write = 2,
  rocksdb_trace_filter_iterator_seek = 4,
  rocksdb_trace_filter_iterator_seek_for_prev = 8,
  rocksdb_trace_filter_multi_get = 16,
};
enum {
  rocksdb_uninitialized = 0,
  rocksdb_disable = 1,
  rocksdb_enable_count = 2,
  rocksdb_enable_time_except_for_mutex = 3,
  rocksdb_enable_time = 4,
  rocksdb_out_of_bounds = 5,
};
enum {
  rocksdb_user_key_comparison_count = 0,
  rocksdb_block_cache_hit_count,
  rocksdb_block_read_count,
  rocksdb_block_read_byte,
  rocksdb_block_read_time,
  rocksdb_block_checksum_time,
  rocksdb_block_decompress_time,
  rocksdb_get_read_bytes,
  rocksdb_multiget_read_bytes,
  rocksdb_iter_read_bytes,
  rocksdb_internal_key_skipped_count,
  rocksdb_internal_delete_skipped_count,
  rocksdb_internal_recent_skipped_count,
  rocksdb_internal_merge_count,
  rocksdb_get_snapshot_time,
  rocksdb_get_from_memtable_time,
  rocksdb_get_from_memtable_count,
  rocksdb_get_post_process_time,
  rocksdb_get_from_output_files_time,
  rocksdb_seek_on_memtable_time,
  rocksdb_seek_on_memtable_count,
  rocksdb_next_on_memtable_count,
  rocksdb_prev_on_memtable_count,
  rocksdb_seek_child_seek_time,
  rocksdb_seek_child_seek_count,
  rocksdb_seek_min_heap_time,
  rocksdb_seek_max_heap_time,
  rocksdb_seek_internal_seek_time,
  rocksdb_find_next_user_entry_time,
  rocksdb_write_wal_time,
  rocksdb_write_memtable_time,
  rocksdb_write_delay_time,
  rocksdb_write_pre_and_post_process_time,
  rocksdb_db_mutex_lock_nanos,
  rocksdb_db_condition_wait_nanos,
  rocksdb_merge_operator_time_nanos,
  rocksdb_read_index_block_nanos,
  rocksdb_read_filter_block_nanos,
  rocksdb_new_table_block_iter_nanos,
  rocksdb_new_table_iterator_nanos,
  rocksdb_block_seek_nanos,
  rocksdb_find_table_nanos,
  rocksdb_bloom_memtable_hit_count,
  rocksdb_bloom_memtable_miss_count,
  rocksdb_bloom_sst_hit_count,
  rocksdb_bloom_sst_miss_count,
  rocksdb_key_lock_wait_time,
  rocksdb_key_lock_wait_count,
  rocksdb_env_new_sequential_file_nanos,
  rocksdb_env_new_random_access_file_nanos,
  rocksdb_env_new_writable_file_nanos,
  rocksdb_env_reuse_writable_file_nanos,
  rocksdb_env_new_random_rw_file_nanos,
  rocksdb_env_new_directory_nanos,
  rocksdb_env_file_exists_nanos,
  rocksdb_env_get_children_nanos,
  rocksdb_env_get_children_file_attributes_nanos,
  rocksdb_env_delete_file_nanos,
  rocksdb_env_create_dir_nanos,
  rocksdb_env_create_dir_if_missing_nanos,
  rocksdb_env_delete_dir_nanos,
  rocksdb_env_get_file_size_nanos,
  rocksdb_env_get_file_modification_time_nanos,
  rocksdb_env_rename_file_nanos,
  rocksdb_env_link_file_nanos,
  rocksdb_env_lock_file_nanos,
  rocksdb_env_unlock_file_nanos,
  rocksdb_env_new_logger_nanos,
  rocksdb_number_async_seek,
  rocksdb_blob_cache_hit_count,
  rocksdb_blob_read_count,
  rocksdb_blob_read_byte,
  rocksdb_blob_read_time,
  rocksdb_blob_checksum_time,
  rocksdb_blob_decompress_time,
  rocksdb_internal_range_del_reseek_count,
  rocksdb_block_read_cpu_time,
  rocksdb_internal_merge_point_lookup_count,
  rocksdb_data_block_read_byte,
  rocksdb_index_block_read_byte,
  rocksdb_filter_block_read_byte,
  rocksdb_compression_dict_block_read_byte,
  rocksdb_metadata_block_read_byte,
  rocksdb_blob_cache_read_byte,
  rocksdb_total_metric_count = 86,
};
enum {
  rocksdb_similar_size_compaction_stop_style = 0,
  rocksdb_total_size_compaction_stop_style = 1,
};
enum {
  rocksdb_txndb_write_policy_write_committed = 0,
  rocksdb_txndb_write_policy_write_prepared = 1,
  rocksdb_txndb_write_policy_write_unprepared = 2,
};
enum {
  rocksdb_compactionservice_jobstatus_success = 0,
  rocksdb_compactionservice_jobstatus_failure = 1,
  rocksdb_compactionservice_jobstatus_aborted = 2,
  rocksdb_compactionservice_jobstatus_use_local = 3,
};
enum {
  rocksdb_pinnable_multi_get_not_found = 0,
  rocksdb_pinnable_multi_get_found = 1,
  rocksdb_pinnable_multi_get_error = 2,
  rocksdb_pinnable_multi_get_out_of_bounds = 3,
};
enum {
  rocksdb_wal_file_type_archived_log = 0,
  rocksdb_wal_file_type_alive_log = 1,
};
enum {
  rocksdb_wal_filter_continue_processing = 0,
  rocksdb_wal_filter_ignore_current_record = 1,
  rocksdb_wal_filter_stop_replay = 2,
  rocksdb_wal_filter_corrupted_record = 3,
};

/* Databases and column families: opening, closing, making, dropping, destroying. */

ROCKSDB_API void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t*);
ROCKSDB_API rocksdb_t* rocksdb_open(
    const rocksdb_options_t* options, const char* name, char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_with_ttl(
    const rocksdb_options_t* options, const char* name, int ttl, char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_for_read_only(
    const rocksdb_options_t* options, const char* name, unsigned char error_if_wal_file_exists,
    char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_as_secondary(
    const rocksdb_options_t* options, const char* name, const char* secondary_path, char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_column_families(
    const rocksdb_options_t* options, const char* name, int num_column_families, const char*
    const* column_family_names, const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles, char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_column_families_with_ttl(
    const rocksdb_options_t* options, const char* name, int num_column_families, const char*
    const* column_family_names, const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles, const int* ttls, char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_for_read_only_column_families(
    const rocksdb_options_t* options, const char* name, int num_column_families, const char*
    const* column_family_names, const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles, unsigned char
    error_if_wal_file_exists, char** errptr);
ROCKSDB_API rocksdb_t* rocksdb_open_as_secondary_column_families(
    const rocksdb_options_t* options, const char* name, const char* secondary_path, int
    num_column_families, const char* const* column_family_names, const rocksdb_options_t* const*
    column_family_options, rocksdb_column_family_handle_t** column_family_handles, char** errptr);
ROCKSDB_API void rocksdb_close(rocksdb_t* db);
ROCKSDB_API void rocksdb_try_catch_up_with_primary(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_destroy_db(
    const rocksdb_options_t* options, const char* name, char** errptr);
ROCKSDB_API void rocksdb_repair_db(
    const rocksdb_options_t* options, const char* name, char** errptr);
ROCKSDB_API char** rocksdb_list_column_families(
    const rocksdb_options_t* options, const char* name, size_t* lencf, char** errptr);
ROCKSDB_API void rocksdb_list_column_families_destroy(char** list, size_t len);
ROCKSDB_API rocksdb_column_family_handle_t* rocksdb_create_column_family(
    rocksdb_t* db, const rocksdb_options_t* column_family_options, const char* column_family_name,
    char** errptr);
ROCKSDB_API rocksdb_column_family_handle_t** rocksdb_create_column_families(
    rocksdb_t* db, const rocksdb_options_t* column_family_options, int num_column_families, const
    char* const* column_family_names, size_t* lencfs, char** errptr);
ROCKSDB_API void rocksdb_create_column_families_destroy(rocksdb_column_family_handle_t** list);
ROCKSDB_API rocksdb_column_family_handle_t* rocksdb_create_column_family_with_ttl(
    rocksdb_t* db, const rocksdb_options_t* column_family_options, const char* column_family_name,
    int ttl, char** errptr);
ROCKSDB_API void rocksdb_drop_column_family(
    rocksdb_t* db, rocksdb_column_family_handle_t* handle, char** errptr);
ROCKSDB_API rocksdb_column_family_handle_t* rocksdb_get_default_column_family_handle(rocksdb_t* db);
ROCKSDB_API uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t* handle);
ROCKSDB_API char* rocksdb_column_family_handle_get_name(
    rocksdb_column_family_handle_t* handle, size_t* name_len);
ROCKSDB_API void rocksdb_load_latest_options(
    const char* db_path, rocksdb_env_t* env, bool ignore_unknown_options, rocksdb_cache_t* cache,
    rocksdb_options_t** db_options, size_t* num_column_families, char*** column_family_names,
    rocksdb_options_t*** column_family_options, char** errptr);
ROCKSDB_API void rocksdb_load_latest_options_destroy(
    rocksdb_options_t* db_options, char** list_column_family_names, rocksdb_options_t**
    list_column_family_options, size_t len);
ROCKSDB_API void rocksdb_free(void* ptr);

/* Lookups. */

ROCKSDB_API void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* v);
ROCKSDB_API void rocksdb_pinnable_handle_destroy(rocksdb_pinnable_handle_t* handle);
ROCKSDB_API char* rocksdb_get(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t keylen, size_t*
    vallen, char** errptr);
ROCKSDB_API char* rocksdb_get_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, size_t* vallen, char** errptr);
ROCKSDB_API unsigned char rocksdb_get_into_buffer(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t keylen, char*
    buffer, size_t buffer_size, size_t* vallen, unsigned char* found, char** errptr);
ROCKSDB_API unsigned char rocksdb_get_into_buffer_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, char* buffer, size_t buffer_size, size_t*
    vallen, unsigned char* found, char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_get_pinned(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t keylen, char**
    errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API rocksdb_pinnable_handle_t* rocksdb_get_pinned_v2(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t keylen, char**
    errptr);
ROCKSDB_API rocksdb_pinnable_handle_t* rocksdb_get_pinned_cf_v2(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* t, size_t* vlen);
ROCKSDB_API const char* rocksdb_pinnable_handle_get_value(
    const rocksdb_pinnable_handle_t* handle, size_t* vallen);
ROCKSDB_API void rocksdb_multi_get(
    rocksdb_t* db, const rocksdb_readoptions_t* options, size_t num_keys, const char* const*
    keys_list, const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes,
    char** errs);
ROCKSDB_API void rocksdb_multi_get_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t*
    const* column_families, size_t num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes, char** values_list, size_t* values_list_sizes, char** errs);
ROCKSDB_API void rocksdb_batched_multi_get_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, size_t num_keys, const char* const* keys_list, const size_t* keys_list_sizes,
    rocksdb_pinnableslice_t** values, char** errs, const bool sorted_input);
ROCKSDB_API void rocksdb_batched_multi_get_cf_slice(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, size_t num_keys, const rocksdb_slice_t* keys_list, rocksdb_pinnableslice_t**
    values, char** errs, const bool sorted_input);
ROCKSDB_API unsigned char rocksdb_key_may_exist(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t key_len, char**
    value, size_t* val_len, const char* timestamp, size_t timestamp_len, unsigned char*
    value_found);
ROCKSDB_API unsigned char rocksdb_key_may_exist_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t key_len, char** value, size_t* val_len, const char*
    timestamp, size_t timestamp_len, unsigned char* value_found);
ROCKSDB_API rocksdb_pinnable_multi_get_t* rocksdb_batched_multi_get_pinned_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, size_t num_keys, const rocksdb_slice_t* keys, unsigned char sorted_input);
ROCKSDB_API size_t rocksdb_pinnable_multi_get_count(const rocksdb_pinnable_multi_get_t* multi_get);
ROCKSDB_API void rocksdb_pinnable_multi_get_destroy(rocksdb_pinnable_multi_get_t* multi_get);
ROCKSDB_API int rocksdb_pinnable_multi_get_result(
    const rocksdb_pinnable_multi_get_t* multi_get, size_t index, const char** value, size_t*
    value_size, const char** error, size_t* error_size);

/* Batches of writes. */

ROCKSDB_API rocksdb_writebatch_t* rocksdb_writebatch_create(void);
ROCKSDB_API void rocksdb_writebatch_destroy(rocksdb_writebatch_t*);
ROCKSDB_API void rocksdb_write(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_writebatch_t* batch, char**
    errptr);
ROCKSDB_API void rocksdb_put(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, const
    char* val, size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_put_cf(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, const char* val, size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_delete(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, char**
    errptr);
ROCKSDB_API void rocksdb_delete_cf(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API void rocksdb_singledelete(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, char**
    errptr);
ROCKSDB_API void rocksdb_singledelete_cf(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API void rocksdb_delete_range_cf(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* start_key, size_t start_key_len, const char* end_key, size_t
    end_key_len, char** errptr);
ROCKSDB_API void rocksdb_merge(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, const
    char* val, size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_merge_cf(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, const char* val, size_t vallen, char** errptr);
ROCKSDB_API rocksdb_writebatch_t* rocksdb_writebatch_create_from(const char* rep, size_t size);
ROCKSDB_API rocksdb_writebatch_t* rocksdb_writebatch_create_with_params(
    size_t reserved_bytes, size_t max_bytes, size_t protection_bytes_per_key, size_t
    default_cf_ts_sz);
ROCKSDB_API void rocksdb_writebatch_clear(rocksdb_writebatch_t* b);
ROCKSDB_API int rocksdb_writebatch_count(rocksdb_writebatch_t*);
ROCKSDB_API const char* rocksdb_writebatch_data(rocksdb_writebatch_t*, size_t* size);
ROCKSDB_API void rocksdb_writebatch_put(
    rocksdb_writebatch_t* b, const char* key, size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_put_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_merge(
    rocksdb_writebatch_t*, const char* key, size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_merge_cf(
    rocksdb_writebatch_t*, rocksdb_column_family_handle_t* column_family, const char* key, size_t
    klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_delete(rocksdb_writebatch_t* b, const char* key, size_t klen);
ROCKSDB_API void rocksdb_writebatch_delete_cf(
    rocksdb_writebatch_t*, rocksdb_column_family_handle_t* column_family, const char* key, size_t
    klen);
ROCKSDB_API void rocksdb_writebatch_singledelete(
    rocksdb_writebatch_t* b, const char* key, size_t klen);
ROCKSDB_API void rocksdb_writebatch_singledelete_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen);
ROCKSDB_API void rocksdb_writebatch_delete_range(
    rocksdb_writebatch_t* b, const char* start_key, size_t start_key_len, const char* end_key,
    size_t end_key_len);
ROCKSDB_API void rocksdb_writebatch_delete_range_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, const char* start_key,
    size_t start_key_len, const char* end_key, size_t end_key_len);
ROCKSDB_API void rocksdb_writebatch_put_log_data(
    rocksdb_writebatch_t* b, const char* blob, size_t len);
ROCKSDB_API void rocksdb_writebatch_put_cf_with_ts(
    rocksdb_writebatch_t*, rocksdb_column_family_handle_t* column_family, const char* key, size_t
    klen, const char* ts, size_t tslen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_delete_cf_with_ts(
    rocksdb_writebatch_t*, rocksdb_column_family_handle_t* column_family, const char* key, size_t
    klen, const char* ts, size_t tslen);
ROCKSDB_API void rocksdb_writebatch_singledelete_cf_with_ts(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, const char* ts, size_t tslen);
ROCKSDB_API void rocksdb_writebatch_set_save_point(rocksdb_writebatch_t* b);
ROCKSDB_API void rocksdb_writebatch_rollback_to_save_point(rocksdb_writebatch_t* b, char** errptr);
ROCKSDB_API void rocksdb_writebatch_pop_save_point(rocksdb_writebatch_t* b, char** errptr);
ROCKSDB_API void rocksdb_writebatch_iterate(
    rocksdb_writebatch_t*, void* state, void (*put)(void*, const char* k, size_t klen, const char*
    v, size_t vlen), void (*deleted)(void*, const char* k, size_t klen));
ROCKSDB_API void rocksdb_writebatch_iterate_cf(
    rocksdb_writebatch_t*, void* state, void (*put_cf)(void*, uint32_t cfid, const char* k, size_t
    klen, const char* v, size_t vlen), void (*deleted_cf)(void*, uint32_t cfid, const char* k,
    size_t klen), void (*merge_cf)(void*, uint32_t cfid, const char* k, size_t klen, const char*
    v, size_t vlen));
ROCKSDB_API void rocksdb_writebatch_putv(
    rocksdb_writebatch_t* b, int num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes, int num_values, const char* const* values_list, const size_t*
    values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_putv_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes, int num_values, const char* const*
    values_list, const size_t* values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_mergev(
    rocksdb_writebatch_t* b, int num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes, int num_values, const char* const* values_list, const size_t*
    values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_mergev_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes, int num_values, const char* const*
    values_list, const size_t* values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_deletev(
    rocksdb_writebatch_t* b, int num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_deletev_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_delete_rangev(
    rocksdb_writebatch_t* b, int num_keys, const char* const* start_keys_list, const size_t*
    start_keys_list_sizes, const char* const* end_keys_list, const size_t* end_keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_delete_rangev_cf(
    rocksdb_writebatch_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* start_keys_list, const size_t* start_keys_list_sizes, const char* const*
    end_keys_list, const size_t* end_keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_verify_checksum(rocksdb_writebatch_t* b, char** errptr);
ROCKSDB_API void rocksdb_writebatch_iterate_cf_ld(
    rocksdb_writebatch_t*, void* state, void (*put_cf)(void*, uint32_t cfid, const char* k, size_t
    klen, const char* v, size_t vlen), void (*deleted_cf)(void*, uint32_t cfid, const char* k,
    size_t klen), void (*merge_cf)(void*, uint32_t cfid, const char* k, size_t klen, const char* v,
    size_t vlen), void (*log_data)(void*, const char* blob, size_t blob_len));
ROCKSDB_API void rocksdb_writebatch_iterate_ld(
    rocksdb_writebatch_t*, void* state, void (*put)(void*, const char* k, size_t klen, const char*
    v, size_t vlen), void (*deleted)(void*, const char* k, size_t klen), void (*log_data)(void*,
    const char* blob, size_t blob_len));
ROCKSDB_API void rocksdb_writebatch_update_timestamps(
    rocksdb_writebatch_t* wb, const char* ts, size_t tslen, void* state, size_t
    (*get_ts_size)(void*, uint32_t), char** errptr);

/* Batches that can be read before they are written. */

ROCKSDB_API void rocksdb_writebatch_wi_destroy(rocksdb_writebatch_wi_t*);
ROCKSDB_API rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create(
    size_t reserved_bytes, unsigned char overwrite_keys);
ROCKSDB_API rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create_with_params(
    rocksdb_comparator_t* backup_index_comparator, size_t reserved_bytes, unsigned char
    overwrite_key, size_t max_bytes, size_t protection_bytes_per_key);
ROCKSDB_API void rocksdb_writebatch_wi_clear(rocksdb_writebatch_wi_t*);
ROCKSDB_API int rocksdb_writebatch_wi_count(rocksdb_writebatch_wi_t* b);
ROCKSDB_API const char* rocksdb_writebatch_wi_data(rocksdb_writebatch_wi_t* b, size_t* size);
ROCKSDB_API void rocksdb_writebatch_wi_put(
    rocksdb_writebatch_wi_t*, const char* key, size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_wi_put_cf(
    rocksdb_writebatch_wi_t*, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_wi_merge(
    rocksdb_writebatch_wi_t*, const char* key, size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_wi_merge_cf(
    rocksdb_writebatch_wi_t*, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, const char* val, size_t vlen);
ROCKSDB_API void rocksdb_writebatch_wi_delete(
    rocksdb_writebatch_wi_t*, const char* key, size_t klen);
ROCKSDB_API void rocksdb_writebatch_wi_delete_cf(
    rocksdb_writebatch_wi_t*, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen);
ROCKSDB_API void rocksdb_writebatch_wi_singledelete(
    rocksdb_writebatch_wi_t*, const char* key, size_t klen);
ROCKSDB_API void rocksdb_writebatch_wi_singledelete_cf(
    rocksdb_writebatch_wi_t*, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen);
ROCKSDB_API void rocksdb_writebatch_wi_delete_range(
    rocksdb_writebatch_wi_t* b, const char* start_key, size_t start_key_len, const char* end_key,
    size_t end_key_len);
ROCKSDB_API void rocksdb_writebatch_wi_delete_range_cf(
    rocksdb_writebatch_wi_t* b, rocksdb_column_family_handle_t* column_family, const char*
    start_key, size_t start_key_len, const char* end_key, size_t end_key_len);
ROCKSDB_API void rocksdb_writebatch_wi_put_log_data(
    rocksdb_writebatch_wi_t*, const char* blob, size_t len);
ROCKSDB_API void rocksdb_writebatch_wi_set_save_point(rocksdb_writebatch_wi_t*);
ROCKSDB_API void rocksdb_writebatch_wi_rollback_to_save_point(
    rocksdb_writebatch_wi_t*, char** errptr);
ROCKSDB_API char* rocksdb_writebatch_wi_get_from_batch(
    rocksdb_writebatch_wi_t* wbwi, const rocksdb_options_t* options, const char* key, size_t
    keylen, size_t* vallen, char** errptr);
ROCKSDB_API char* rocksdb_writebatch_wi_get_from_batch_cf(
    rocksdb_writebatch_wi_t* wbwi, const rocksdb_options_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, size_t* vallen,
    char** errptr);
ROCKSDB_API char* rocksdb_writebatch_wi_get_from_batch_and_db(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_t* db, const rocksdb_readoptions_t* options, const
    char* key, size_t keylen, size_t* vallen, char** errptr);
ROCKSDB_API char* rocksdb_writebatch_wi_get_from_batch_and_db_cf(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, size_t* vallen,
    char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_t* db, const rocksdb_readoptions_t* options, const
    char* key, size_t keylen, char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_iterator_t* base_iterator);
ROCKSDB_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_cf(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_iterator_t* base_iterator,
    rocksdb_column_family_handle_t* cf);
ROCKSDB_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_readopts(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_iterator_t* base_iterator, const rocksdb_readoptions_t*
    options);
ROCKSDB_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
    rocksdb_writebatch_wi_t* wbwi, rocksdb_iterator_t* base_iterator,
    rocksdb_column_family_handle_t* cf, const rocksdb_readoptions_t* options);
ROCKSDB_API void rocksdb_write_writebatch_wi(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_writebatch_wi_t* wbwi, char**
    errptr);
ROCKSDB_API void rocksdb_writebatch_wi_delete_rangev(
    rocksdb_writebatch_wi_t* b, int num_keys, const char* const* start_keys_list, const size_t*
    start_keys_list_sizes, const char* const* end_keys_list, const size_t* end_keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_delete_rangev_cf(
    rocksdb_writebatch_wi_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* start_keys_list, const size_t* start_keys_list_sizes, const char* const*
    end_keys_list, const size_t* end_keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_deletev(
    rocksdb_writebatch_wi_t* b, int num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_deletev_cf(
    rocksdb_writebatch_wi_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_iterate(
    rocksdb_writebatch_wi_t* b, void* state, void (*put)(void*, const char* k, size_t klen, const
    char* v, size_t vlen), void (*deleted)(void*, const char* k, size_t klen));
ROCKSDB_API void rocksdb_writebatch_wi_mergev(
    rocksdb_writebatch_wi_t* b, int num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes, int num_values, const char* const* values_list, const size_t*
    values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_mergev_cf(
    rocksdb_writebatch_wi_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes, int num_values, const char* const*
    values_list, const size_t* values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_putv(
    rocksdb_writebatch_wi_t* b, int num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes, int num_values, const char* const* values_list, const size_t*
    values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_putv_cf(
    rocksdb_writebatch_wi_t* b, rocksdb_column_family_handle_t* column_family, int num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes, int num_values, const char* const*
    values_list, const size_t* values_list_sizes);
ROCKSDB_API void rocksdb_writebatch_wi_update_timestamps(
    rocksdb_writebatch_wi_t* wbwi, const char* ts, size_t tslen, void* state, size_t
    (*get_ts_size)(void*, uint32_t), char** errptr);

/* Iterators over keys, and over the writes in the WALs. */

ROCKSDB_API void rocksdb_iter_destroy(rocksdb_iterator_t*);
ROCKSDB_API void rocksdb_wal_iter_destroy(const rocksdb_wal_iterator_t* iter);
ROCKSDB_API void rocksdb_wal_readoptions_destroy(rocksdb_wal_readoptions_t* options);
ROCKSDB_API rocksdb_iterator_t* rocksdb_create_iterator(
    rocksdb_t* db, const rocksdb_readoptions_t* options);
ROCKSDB_API rocksdb_iterator_t* rocksdb_create_iterator_cf(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family);
ROCKSDB_API void rocksdb_create_iterators(
    rocksdb_t* db, rocksdb_readoptions_t* opts, rocksdb_column_family_handle_t** column_families,
    rocksdb_iterator_t** iterators, size_t size, char** errptr);
ROCKSDB_API unsigned char rocksdb_iter_valid(const rocksdb_iterator_t*);
ROCKSDB_API void rocksdb_iter_seek_to_first(rocksdb_iterator_t*);
ROCKSDB_API void rocksdb_iter_seek_to_last(rocksdb_iterator_t*);
ROCKSDB_API void rocksdb_iter_seek(rocksdb_iterator_t*, const char* k, size_t klen);
ROCKSDB_API void rocksdb_iter_seek_for_prev(rocksdb_iterator_t*, const char* k, size_t klen);
ROCKSDB_API void rocksdb_iter_next(rocksdb_iterator_t*);
ROCKSDB_API void rocksdb_iter_prev(rocksdb_iterator_t*);
ROCKSDB_API const char* rocksdb_iter_key(const rocksdb_iterator_t*, size_t* klen);
ROCKSDB_API const char* rocksdb_iter_value(const rocksdb_iterator_t*, size_t* vlen);
ROCKSDB_API const char* rocksdb_iter_timestamp(const rocksdb_iterator_t*, size_t* tslen);
ROCKSDB_API rocksdb_slice_t rocksdb_iter_key_slice(const rocksdb_iterator_t* iter);
ROCKSDB_API rocksdb_slice_t rocksdb_iter_value_slice(const rocksdb_iterator_t* iter);
ROCKSDB_API rocksdb_slice_t rocksdb_iter_timestamp_slice(const rocksdb_iterator_t* iter);
ROCKSDB_API void rocksdb_iter_get_error(const rocksdb_iterator_t*, char** errptr);
ROCKSDB_API void rocksdb_iter_refresh(const rocksdb_iterator_t* iter, char** errptr);
ROCKSDB_API rocksdb_wal_readoptions_t* rocksdb_wal_readoptions_create(void);
ROCKSDB_API void rocksdb_wal_readoptions_set_verify_checksums(
    rocksdb_wal_readoptions_t* options, unsigned char verify_checksums);
ROCKSDB_API unsigned char rocksdb_wal_readoptions_get_verify_checksums(
    rocksdb_wal_readoptions_t* options);
ROCKSDB_API rocksdb_wal_iterator_t* rocksdb_get_updates_since(
    rocksdb_t* db, uint64_t seq_number, const rocksdb_wal_readoptions_t* options, char** errptr);
ROCKSDB_API unsigned char rocksdb_wal_iter_valid(const rocksdb_wal_iterator_t*);
ROCKSDB_API void rocksdb_wal_iter_next(rocksdb_wal_iterator_t* iter);
ROCKSDB_API void rocksdb_wal_iter_status(const rocksdb_wal_iterator_t* iter, char** errptr);
ROCKSDB_API rocksdb_writebatch_t* rocksdb_wal_iter_get_batch(
    const rocksdb_wal_iterator_t* iter, uint64_t* seq);
ROCKSDB_API uint64_t rocksdb_get_latest_sequence_number(rocksdb_t* db);

/* Snapshots. */

ROCKSDB_API const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t* db);
ROCKSDB_API void rocksdb_release_snapshot(rocksdb_t* db, const rocksdb_snapshot_t* snapshot);
ROCKSDB_API uint64_t rocksdb_snapshot_get_sequence_number(const rocksdb_snapshot_t* snapshot);

/* Flushes, compactions, options that change while a database is open, and files. */

ROCKSDB_API void rocksdb_flush(rocksdb_t* db, const rocksdb_flushoptions_t* options, char** errptr);
ROCKSDB_API void rocksdb_flush_cf(
    rocksdb_t* db, const rocksdb_flushoptions_t* options, rocksdb_column_family_handle_t*
    column_family, char** errptr);
ROCKSDB_API void rocksdb_flush_cfs(
    rocksdb_t* db, const rocksdb_flushoptions_t* options, rocksdb_column_family_handle_t**
    column_family, int num_column_families, char** errptr);
ROCKSDB_API void rocksdb_flush_wal(rocksdb_t* db, unsigned char sync, char** errptr);
ROCKSDB_API void rocksdb_flush_wal_with_options(
    rocksdb_t* db, const rocksdb_flushwaloptions_t* options, char** errptr);
ROCKSDB_API void rocksdb_compact_range(
    rocksdb_t* db, const char* start_key, size_t start_key_len, const char* limit_key, size_t
    limit_key_len);
ROCKSDB_API void rocksdb_compact_range_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* start_key, size_t
    start_key_len, const char* limit_key, size_t limit_key_len);
ROCKSDB_API void rocksdb_compact_range_opt(
    rocksdb_t* db, rocksdb_compactoptions_t* opt, const char* start_key, size_t start_key_len,
    const char* limit_key, size_t limit_key_len);
ROCKSDB_API void rocksdb_compact_range_cf_opt(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, rocksdb_compactoptions_t* opt,
    const char* start_key, size_t start_key_len, const char* limit_key, size_t limit_key_len);
ROCKSDB_API void rocksdb_disable_manual_compaction(rocksdb_t* db);
ROCKSDB_API void rocksdb_enable_manual_compaction(rocksdb_t* db);
ROCKSDB_API void rocksdb_suggest_compact_range(
    rocksdb_t* db, const char* start_key, size_t start_key_len, const char* limit_key, size_t
    limit_key_len, char** errptr);
ROCKSDB_API void rocksdb_suggest_compact_range_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* start_key, size_t
    start_key_len, const char* limit_key, size_t limit_key_len, char** errptr);
ROCKSDB_API void rocksdb_wait_for_compact(
    rocksdb_t* db, rocksdb_wait_for_compact_options_t* options, char** errptr);
ROCKSDB_API void rocksdb_set_db_options(
    rocksdb_t* db, int count, const char* const keys[], const char* const values[], char** errptr);
ROCKSDB_API void rocksdb_verify_checksum(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_verify_checksum_with_options(
    rocksdb_t* db, const rocksdb_readoptions_t* options, char** errptr);
ROCKSDB_API void rocksdb_set_options(
    rocksdb_t* db, int count, const char* const keys[], const char* const values[], char** errptr);
ROCKSDB_API void rocksdb_set_options_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* handle, int count, const char* const keys[],
    const char* const values[], char** errptr);
ROCKSDB_API void rocksdb_delete_file_in_range(
    rocksdb_t* db, const char* start_key, size_t start_key_len, const char* limit_key, size_t
    limit_key_len, char** errptr);
ROCKSDB_API void rocksdb_delete_file_in_range_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* start_key, size_t
    start_key_len, const char* limit_key, size_t limit_key_len, char** errptr);
ROCKSDB_API void rocksdb_disable_file_deletions(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_enable_file_deletions(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_pause_background_work(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_continue_background_work(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_cancel_all_background_work(rocksdb_t* db, unsigned char wait);

/* What a database tells of itself: properties, sizes, files. */

ROCKSDB_API rocksdb_livefile_t* rocksdb_livefile_create(void);
ROCKSDB_API rocksdb_livefiles_t* rocksdb_livefiles_create(void);
ROCKSDB_API rocksdb_size_approximation_options_t* rocksdb_size_approximation_options_create(void);
ROCKSDB_API void rocksdb_size_approximation_options_set_include_memtables(
    rocksdb_size_approximation_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_size_approximation_options_get_include_memtables(
    rocksdb_size_approximation_options_t* opt);
ROCKSDB_API void rocksdb_size_approximation_options_set_include_files(
    rocksdb_size_approximation_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_size_approximation_options_get_include_files(
    rocksdb_size_approximation_options_t* opt);
ROCKSDB_API void rocksdb_livefile_destroy(rocksdb_livefile_t*);
ROCKSDB_API void rocksdb_livefiles_destroy(const rocksdb_livefiles_t*);
ROCKSDB_API void rocksdb_column_family_metadata_destroy(rocksdb_column_family_metadata_t* cf_meta);
ROCKSDB_API void rocksdb_level_metadata_destroy(rocksdb_level_metadata_t* level_meta);
ROCKSDB_API void rocksdb_sst_file_metadata_destroy(rocksdb_sst_file_metadata_t* file_meta);
ROCKSDB_API void rocksdb_size_approximation_options_destroy(
    rocksdb_size_approximation_options_t* options);
ROCKSDB_API char* rocksdb_property_value(rocksdb_t* db, const char* propname);
ROCKSDB_API char* rocksdb_property_value_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* propname);
ROCKSDB_API int rocksdb_property_int(rocksdb_t* db, const char* propname, uint64_t* out_val);
ROCKSDB_API int rocksdb_property_int_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* propname, uint64_t*
    out_val);
ROCKSDB_API char* rocksdb_get_db_identity(rocksdb_t* db, size_t* id_len);
ROCKSDB_API void rocksdb_approximate_sizes(
    rocksdb_t* db, int num_ranges, const char* const* range_start_key, const size_t*
    range_start_key_len, const char* const* range_limit_key, const size_t* range_limit_key_len,
    uint64_t* sizes, char** errptr);
ROCKSDB_API void rocksdb_approximate_sizes_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, int num_ranges, const char*
    const* range_start_key, const size_t* range_start_key_len, const char* const* range_limit_key,
    const size_t* range_limit_key_len, uint64_t* sizes, char** errptr);
ROCKSDB_API void rocksdb_approximate_sizes_cf_with_flags(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, int num_ranges, const char*
    const* range_start_key, const size_t* range_start_key_len, const char* const* range_limit_key,
    const size_t* range_limit_key_len, uint8_t include_flags, uint64_t* sizes, char** errptr);
ROCKSDB_API void rocksdb_approximate_sizes_with_options(
    rocksdb_t* db, const rocksdb_size_approximation_options_t* options, int num_ranges, const
    char* const* range_start_key, const size_t* range_start_key_len, const char* const*
    range_limit_key, const size_t* range_limit_key_len, uint64_t* sizes, char** errptr);
ROCKSDB_API void rocksdb_approximate_sizes_cf_with_options(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const
    rocksdb_size_approximation_options_t* options, int num_ranges, const char* const*
    range_start_key, const size_t* range_start_key_len, const char* const* range_limit_key, const
    size_t* range_limit_key_len, uint64_t* sizes, char** errptr);
ROCKSDB_API const rocksdb_livefiles_t* rocksdb_livefiles(rocksdb_t* db);
ROCKSDB_API int rocksdb_livefiles_count(const rocksdb_livefiles_t*);
ROCKSDB_API void rocksdb_livefiles_add(rocksdb_livefiles_t*, rocksdb_livefile_t*);
ROCKSDB_API const char* rocksdb_livefiles_column_family_name(const rocksdb_livefiles_t*, int index);
ROCKSDB_API const char* rocksdb_livefiles_name(const rocksdb_livefiles_t*, int index);
ROCKSDB_API const char* rocksdb_livefiles_directory(const rocksdb_livefiles_t*, int index);
ROCKSDB_API int rocksdb_livefiles_level(const rocksdb_livefiles_t*, int index);
ROCKSDB_API size_t rocksdb_livefiles_size(const rocksdb_livefiles_t*, int index);
ROCKSDB_API uint64_t rocksdb_livefiles_entries(const rocksdb_livefiles_t*, int index);
ROCKSDB_API uint64_t rocksdb_livefiles_deletions(const rocksdb_livefiles_t*, int index);
ROCKSDB_API uint64_t rocksdb_livefiles_smallest_seqno(const rocksdb_livefiles_t*, int index);
ROCKSDB_API uint64_t rocksdb_livefiles_largest_seqno(const rocksdb_livefiles_t*, int index);
ROCKSDB_API const char* rocksdb_livefiles_smallestkey(
    const rocksdb_livefiles_t*, int index, size_t* size);
ROCKSDB_API const char* rocksdb_livefiles_largestkey(
    const rocksdb_livefiles_t*, int index, size_t* size);
ROCKSDB_API void rocksdb_livefile_set_column_family_name(rocksdb_livefile_t*, const char*);
ROCKSDB_API void rocksdb_livefile_set_level(rocksdb_livefile_t*, int);
ROCKSDB_API void rocksdb_livefile_set_name(rocksdb_livefile_t*, const char*);
ROCKSDB_API void rocksdb_livefile_set_directory(rocksdb_livefile_t*, const char*);
ROCKSDB_API void rocksdb_livefile_set_size(rocksdb_livefile_t*, size_t);
ROCKSDB_API void rocksdb_livefile_set_smallest_key(rocksdb_livefile_t*, const char*, size_t);
ROCKSDB_API void rocksdb_livefile_set_largest_key(rocksdb_livefile_t*, const char*, size_t);
ROCKSDB_API void rocksdb_livefile_set_smallest_seqno(rocksdb_livefile_t*, uint64_t);
ROCKSDB_API void rocksdb_livefile_set_largest_seqno(rocksdb_livefile_t*, uint64_t);
ROCKSDB_API void rocksdb_livefile_set_num_entries(rocksdb_livefile_t*, uint64_t);
ROCKSDB_API void rocksdb_livefile_set_num_deletions(rocksdb_livefile_t*, uint64_t);
ROCKSDB_API rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata(rocksdb_t* db);
ROCKSDB_API rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family);
ROCKSDB_API uint64_t rocksdb_column_family_metadata_get_size(
    rocksdb_column_family_metadata_t* cf_meta);
ROCKSDB_API size_t rocksdb_column_family_metadata_get_file_count(
    rocksdb_column_family_metadata_t* cf_meta);
ROCKSDB_API char* rocksdb_column_family_metadata_get_name(
    rocksdb_column_family_metadata_t* cf_meta);
ROCKSDB_API size_t rocksdb_column_family_metadata_get_level_count(
    rocksdb_column_family_metadata_t* cf_meta);
ROCKSDB_API rocksdb_level_metadata_t* rocksdb_column_family_metadata_get_level_metadata(
    rocksdb_column_family_metadata_t* cf_meta, size_t i);
ROCKSDB_API int rocksdb_level_metadata_get_level(rocksdb_level_metadata_t* level_meta);
ROCKSDB_API uint64_t rocksdb_level_metadata_get_size(rocksdb_level_metadata_t* level_meta);
ROCKSDB_API size_t rocksdb_level_metadata_get_file_count(rocksdb_level_metadata_t* level_meta);
ROCKSDB_API rocksdb_sst_file_metadata_t* rocksdb_level_metadata_get_sst_file_metadata(
    rocksdb_level_metadata_t* level_meta, size_t i);
ROCKSDB_API char* rocksdb_sst_file_metadata_get_relative_filename(
    rocksdb_sst_file_metadata_t* file_meta);
ROCKSDB_API char* rocksdb_sst_file_metadata_get_directory(rocksdb_sst_file_metadata_t* file_meta);
ROCKSDB_API uint64_t rocksdb_sst_file_metadata_get_size(rocksdb_sst_file_metadata_t* file_meta);
ROCKSDB_API char* rocksdb_sst_file_metadata_get_smallestkey(
    rocksdb_sst_file_metadata_t* file_meta, size_t* len);
ROCKSDB_API char* rocksdb_sst_file_metadata_get_largestkey(
    rocksdb_sst_file_metadata_t* file_meta, size_t* len);
ROCKSDB_API rocksdb_column_family_metadata_options_t* rocksdb_column_family_metadata_options_create(
    void);
ROCKSDB_API void rocksdb_column_family_metadata_options_destroy(
    rocksdb_column_family_metadata_options_t* options);
ROCKSDB_API const char* rocksdb_column_family_metadata_options_get_end_key(
    const rocksdb_column_family_metadata_options_t* options, size_t* key_len);
ROCKSDB_API int rocksdb_column_family_metadata_options_get_level(
    rocksdb_column_family_metadata_options_t* options);
ROCKSDB_API const char* rocksdb_column_family_metadata_options_get_start_key(
    const rocksdb_column_family_metadata_options_t* options, size_t* key_len);
ROCKSDB_API void rocksdb_column_family_metadata_options_set_end_key(
    rocksdb_column_family_metadata_options_t* options, const char* key, size_t key_len);
ROCKSDB_API void rocksdb_column_family_metadata_options_set_level(
    rocksdb_column_family_metadata_options_t* options, int v);
ROCKSDB_API void rocksdb_column_family_metadata_options_set_start_key(
    rocksdb_column_family_metadata_options_t* options, const char* key, size_t key_len);
ROCKSDB_API rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_cf_with_options(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const
    rocksdb_column_family_metadata_options_t* options);
ROCKSDB_API rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_with_options(
    rocksdb_t* db, const rocksdb_column_family_metadata_options_t* options);
ROCKSDB_API double rocksdb_size_approximation_options_get_files_size_error_margin(
    rocksdb_size_approximation_options_t* options);
ROCKSDB_API unsigned char rocksdb_size_approximation_options_get_include_blob_files(
    rocksdb_size_approximation_options_t* options);
ROCKSDB_API void rocksdb_size_approximation_options_set_files_size_error_margin(
    rocksdb_size_approximation_options_t* options, double v);
ROCKSDB_API void rocksdb_size_approximation_options_set_include_blob_files(
    rocksdb_size_approximation_options_t* options, unsigned char v);

/* Options of a database and of a column family: numbers and truth values. `components.rs` sets
   what is made of callbacks, `options_groups.rs` several at once. */

ROCKSDB_API rocksdb_options_t* rocksdb_options_create(void);
ROCKSDB_API void rocksdb_options_destroy(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_create_if_missing(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_create_if_missing(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_create_missing_column_families(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_create_missing_column_families(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_error_if_exists(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_error_if_exists(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_paranoid_checks(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_paranoid_checks(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_open_files(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_open_files(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_background_jobs(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_background_jobs(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_background_compactions(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_background_compactions(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_background_flushes(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_background_flushes(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_subcompactions(rocksdb_options_t*, uint32_t);
ROCKSDB_API uint32_t rocksdb_options_get_max_subcompactions(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_bytes_per_sync(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_bytes_per_sync(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_wal_bytes_per_sync(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_strict_bytes_per_sync(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_strict_bytes_per_sync(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_writable_file_max_buffer_size(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_writable_file_max_buffer_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_log_readahead_size(rocksdb_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_options_get_log_readahead_size(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_wal_recovery_mode(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_wal_recovery_mode(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_recycle_log_file_num(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_recycle_log_file_num(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_wal_compression(rocksdb_options_t* opt, int);
ROCKSDB_API int rocksdb_options_get_wal_compression(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_max_total_wal_size(rocksdb_options_t* opt, uint64_t n);
ROCKSDB_API uint64_t rocksdb_options_get_max_total_wal_size(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_WAL_ttl_seconds(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_WAL_ttl_seconds(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_WAL_size_limit_MB(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_WAL_size_limit_MB(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_max_manifest_file_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_manifest_preallocation_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_manifest_preallocation_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_allow_2pc(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_allow_2pc(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_allow_ingest_behind(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_allow_ingest_behind(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_avoid_flush_during_recovery(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_avoid_flush_during_recovery(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_avoid_flush_during_shutdown(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_avoid_flush_during_shutdown(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_atomic_flush(rocksdb_options_t* opt, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_atomic_flush(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_manual_wal_flush(rocksdb_options_t* opt, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_manual_wal_flush(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_use_direct_reads(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_use_direct_reads(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_use_direct_io_for_flush_and_compaction(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_use_direct_io_for_flush_and_compaction(
    rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_delayed_write_rate(rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_delayed_write_rate(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_db_write_buffer_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_db_write_buffer_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_verify_sst_unique_id_in_manifest(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_verify_sst_unique_id_in_manifest(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_allow_fallocate(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_allow_fallocate(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_advise_random_on_open(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_advise_random_on_open(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_allow_concurrent_memtable_write(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_allow_concurrent_memtable_write(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_allow_data_in_errors(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_allow_data_in_errors(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_allow_mmap_reads(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_allow_mmap_reads(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_allow_mmap_writes(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_allow_mmap_writes(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_async_wal_precreate(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_async_wal_precreate(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_avoid_unnecessary_blocking_io(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_avoid_unnecessary_blocking_io(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_background_close_inactive_wals(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_background_close_inactive_wals(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_best_efforts_recovery(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_best_efforts_recovery(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_bgerror_resume_retry_interval(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_bgerror_resume_retry_interval(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_compaction_verify_record_count(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_compaction_verify_record_count(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_delete_obsolete_files_period_micros(
    rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_delete_obsolete_files_period_micros(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_dump_malloc_stats(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_dump_malloc_stats(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_enable_pipelined_write(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_enable_pipelined_write(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_enable_thread_tracking(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_enable_thread_tracking(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_enable_write_thread_adaptive_yield(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_enable_write_thread_adaptive_yield(
    rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_enforce_single_del_contracts(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_enforce_single_del_contracts(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_enforce_write_buffer_manager_during_recovery(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_enforce_write_buffer_manager_during_recovery(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_fast_sst_open(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_fast_sst_open(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_flush_verify_memtable_count(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_flush_verify_memtable_count(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_follower_catchup_retry_count(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_follower_catchup_retry_count(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_follower_catchup_retry_wait_ms(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_follower_catchup_retry_wait_ms(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_follower_refresh_catchup_period_ms(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_follower_refresh_catchup_period_ms(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_is_fd_close_on_exec(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_is_fd_close_on_exec(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_bgerror_resume_count(rocksdb_options_t* opt, int v);
ROCKSDB_API int rocksdb_options_get_max_bgerror_resume_count(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_max_compaction_trigger_wakeup_seconds(
    rocksdb_options_t* opt, uint64_t val);
ROCKSDB_API uint64_t rocksdb_options_get_max_compaction_trigger_wakeup_seconds(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_max_file_opening_threads(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_file_opening_threads(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_manifest_space_amp_pct(rocksdb_options_t* opt, int v);
ROCKSDB_API int rocksdb_options_get_max_manifest_space_amp_pct(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_max_write_batch_group_size_bytes(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_max_write_batch_group_size_bytes(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_open_files_async(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_open_files_async(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_optimize_manifest_for_recovery(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_optimize_manifest_for_recovery(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_persist_stats_to_disk(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_persist_stats_to_disk(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_prefix_seek_opt_in_only(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_prefix_seek_opt_in_only(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_read_io_executor_threads(rocksdb_options_t* opt, int v);
ROCKSDB_API int rocksdb_options_get_read_io_executor_threads(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_reuse_manifest_on_open(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_reuse_manifest_on_open(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open(
    rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_skip_stats_update_on_db_open(
    rocksdb_options_t* opt, unsigned char val);
ROCKSDB_API unsigned char rocksdb_options_get_skip_stats_update_on_db_open(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_stats_dump_period_sec(rocksdb_options_t*, unsigned int);
ROCKSDB_API unsigned int rocksdb_options_get_stats_dump_period_sec(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_stats_history_buffer_size(rocksdb_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_options_get_stats_history_buffer_size(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_stats_persist_period_sec(rocksdb_options_t*, unsigned int);
ROCKSDB_API unsigned int rocksdb_options_get_stats_persist_period_sec(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_table_cache_numshardbits(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_table_cache_numshardbits(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_track_and_verify_wals(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_track_and_verify_wals(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_track_and_verify_wals_in_manifest(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_track_and_verify_wals_in_manifest(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_two_write_queues(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_two_write_queues(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_unordered_write(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_unordered_write(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_use_adaptive_mutex(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_use_adaptive_mutex(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_use_direct_io_for_compaction_reads(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_use_direct_io_for_compaction_reads(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_use_fsync(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_use_fsync(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_verify_manifest_content_on_close(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_verify_manifest_content_on_close(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_write_dbid_to_manifest(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_write_dbid_to_manifest(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_write_identity_file(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_write_identity_file(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_write_thread_max_yield_usec(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_write_thread_max_yield_usec(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_write_thread_slow_yield_usec(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_write_thread_slow_yield_usec(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_write_buffer_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_write_buffer_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_write_buffer_number(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_min_write_buffer_number_to_merge(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_min_write_buffer_number_to_merge(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_arena_block_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_arena_block_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_level0_file_num_compaction_trigger(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_level0_file_num_compaction_trigger(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_level0_slowdown_writes_trigger(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_level0_slowdown_writes_trigger(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_level0_stop_writes_trigger(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_soft_pending_compaction_bytes_limit(
    rocksdb_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_options_get_soft_pending_compaction_bytes_limit(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_hard_pending_compaction_bytes_limit(
    rocksdb_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_options_get_hard_pending_compaction_bytes_limit(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t*, int);
ROCKSDB_API unsigned char rocksdb_options_get_disable_auto_compactions(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_num_levels(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_num_levels(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_cf_allow_ingest_behind(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_cf_allow_ingest_behind(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_compaction_style(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_compaction_style(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_compaction_pri(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_compaction_pri(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_max_bytes_for_level_base(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_bytes_for_level_multiplier(rocksdb_options_t*, double);
ROCKSDB_API double rocksdb_options_get_max_bytes_for_level_multiplier(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_level_compaction_dynamic_level_bytes(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_level_compaction_dynamic_level_bytes(
    rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_target_file_size_base(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_target_file_size_base(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_target_file_size_multiplier(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_target_file_size_multiplier(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_max_compaction_bytes(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_ttl(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_ttl(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_periodic_compaction_seconds(rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_periodic_compaction_seconds(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_paranoid_file_checks(rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_paranoid_file_checks(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_compression(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_compression(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_bottommost_compression(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_bottommost_compression(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_compression_options_zstd_max_train_bytes(
    rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_compression_options_zstd_max_train_bytes(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_compression_options_max_dict_buffer_bytes(
    rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_compression_options_max_dict_buffer_bytes(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_compression_options_parallel_threads(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_compression_options_parallel_threads(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_enable_blob_files(rocksdb_options_t* opt, unsigned char val);
ROCKSDB_API unsigned char rocksdb_options_get_enable_blob_files(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_min_blob_size(rocksdb_options_t* opt, uint64_t val);
ROCKSDB_API uint64_t rocksdb_options_get_min_blob_size(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_blob_file_size(rocksdb_options_t* opt, uint64_t val);
ROCKSDB_API uint64_t rocksdb_options_get_blob_file_size(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_blob_compression_type(rocksdb_options_t* opt, int val);
ROCKSDB_API int rocksdb_options_get_blob_compression_type(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_enable_blob_gc(rocksdb_options_t* opt, unsigned char val);
ROCKSDB_API unsigned char rocksdb_options_get_enable_blob_gc(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_blob_gc_age_cutoff(rocksdb_options_t* opt, double val);
ROCKSDB_API double rocksdb_options_get_blob_gc_age_cutoff(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_blob_gc_force_threshold(rocksdb_options_t* opt, double val);
ROCKSDB_API double rocksdb_options_get_blob_gc_force_threshold(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_blob_compaction_readahead_size(
    rocksdb_options_t* opt, uint64_t val);
ROCKSDB_API uint64_t rocksdb_options_get_blob_compaction_readahead_size(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_blob_file_starting_level(rocksdb_options_t* opt, int val);
ROCKSDB_API int rocksdb_options_get_blob_file_starting_level(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_prepopulate_blob_cache(rocksdb_options_t* opt, int val);
ROCKSDB_API int rocksdb_options_get_prepopulate_blob_cache(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_max_sequential_skip_in_iterations(
    rocksdb_options_t*, uint64_t);
ROCKSDB_API uint64_t rocksdb_options_get_max_sequential_skip_in_iterations(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_successive_merges(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_max_successive_merges(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_memtable_prefix_bloom_size_ratio(rocksdb_options_t*, double);
ROCKSDB_API double rocksdb_options_get_memtable_prefix_bloom_size_ratio(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_memtable_whole_key_filtering(
    rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_memtable_whole_key_filtering(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_optimize_filters_for_hits(rocksdb_options_t*, int);
ROCKSDB_API unsigned char rocksdb_options_get_optimize_filters_for_hits(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_blob_direct_write_partitions(
    rocksdb_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_options_get_blob_direct_write_partitions(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_bloom_locality(rocksdb_options_t*, uint32_t);
ROCKSDB_API uint32_t rocksdb_options_get_bloom_locality(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_bottommost_file_compaction_delay(
    rocksdb_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_options_get_bottommost_file_compaction_delay(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_disallow_memtable_writes(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_disallow_memtable_writes(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_enable_blob_direct_write(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_enable_blob_direct_write(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_experimental_mempurge_threshold(rocksdb_options_t*, double);
ROCKSDB_API double rocksdb_options_get_experimental_mempurge_threshold(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_force_consistency_checks(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_force_consistency_checks(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_inplace_update_num_locks(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_inplace_update_num_locks(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_inplace_update_support(rocksdb_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_inplace_update_support(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_write_buffer_number_to_maintain(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_max_write_buffer_number_to_maintain(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_write_buffer_size_to_maintain(rocksdb_options_t*, int64_t);
ROCKSDB_API int64_t rocksdb_options_get_max_write_buffer_size_to_maintain(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_memtable_avg_op_scan_flush_trigger(
    rocksdb_options_t*, uint32_t);
ROCKSDB_API uint32_t rocksdb_options_get_memtable_avg_op_scan_flush_trigger(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_memtable_batch_lookup_optimization(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_memtable_batch_lookup_optimization(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_memtable_huge_page_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_memtable_huge_page_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_memtable_max_range_deletions(
    rocksdb_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_options_get_memtable_max_range_deletions(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_memtable_op_scan_flush_trigger(rocksdb_options_t*, uint32_t);
ROCKSDB_API uint32_t rocksdb_options_get_memtable_op_scan_flush_trigger(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_block_protection_bytes_per_key(
    rocksdb_options_t* opt, uint8_t v);
ROCKSDB_API uint8_t rocksdb_options_get_block_protection_bytes_per_key(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_checksum_handoff_file_types_clear(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_checksum_handoff_file_types_add(
    rocksdb_options_t* opt, int file_type);
ROCKSDB_API void rocksdb_options_checksum_handoff_file_types_remove(
    rocksdb_options_t* opt, int file_type);
ROCKSDB_API unsigned char rocksdb_options_checksum_handoff_file_types_contains(
    rocksdb_options_t* opt, int file_type);
ROCKSDB_API size_t rocksdb_options_checksum_handoff_file_types_count(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_memtable_protection_bytes_per_key(
    rocksdb_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_options_get_memtable_protection_bytes_per_key(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_memtable_verify_per_key_checksum_on_seek(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_memtable_verify_per_key_checksum_on_seek(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_min_tombstones_for_range_conversion(
    rocksdb_options_t*, uint32_t);
ROCKSDB_API uint32_t rocksdb_options_get_min_tombstones_for_range_conversion(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_paranoid_memory_checks(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_paranoid_memory_checks(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_persist_user_defined_timestamps(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_persist_user_defined_timestamps(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_preclude_last_level_data_seconds(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_preclude_last_level_data_seconds(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_preserve_internal_time_seconds(
    rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_preserve_internal_time_seconds(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_read_triggered_compaction_threshold(
    rocksdb_options_t* opt, double val);
ROCKSDB_API double rocksdb_options_get_read_triggered_compaction_threshold(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_report_bg_io_stats(rocksdb_options_t*, int);
ROCKSDB_API unsigned char rocksdb_options_get_report_bg_io_stats(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_sample_for_compression(rocksdb_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_options_get_sample_for_compression(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_strict_max_successive_merges(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_strict_max_successive_merges(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_target_file_size_is_upper_bound(
    rocksdb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_options_get_target_file_size_is_upper_bound(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_uncache_aggressiveness(rocksdb_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_options_get_uncache_aggressiveness(rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_info_log_level(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_info_log_level(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_max_log_file_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_max_log_file_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_log_file_time_to_roll(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_log_file_time_to_roll(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_keep_log_file_num(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_keep_log_file_num(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_statistics_level(rocksdb_options_t*, int level);
ROCKSDB_API int rocksdb_options_get_statistics_level(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_wal_dir(rocksdb_options_t*, const char*);
ROCKSDB_API void rocksdb_options_set_db_log_dir(rocksdb_options_t*, const char*);
ROCKSDB_API const char* rocksdb_options_get_wal_dir(rocksdb_options_t* opt, size_t* size);
ROCKSDB_API const char* rocksdb_options_get_db_log_dir(rocksdb_options_t* opt, size_t* size);
ROCKSDB_API void rocksdb_options_compaction_readahead_size(rocksdb_options_t*, size_t);
ROCKSDB_API size_t rocksdb_options_get_compaction_readahead_size(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_access_hint_on_compaction_start(rocksdb_options_t*, int);
ROCKSDB_API int rocksdb_options_get_access_hint_on_compaction_start(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_calculate_sst_write_lifetime_hint_set_add(
    rocksdb_options_t* options, int compaction_style);
ROCKSDB_API void rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(
    rocksdb_options_t* options);
ROCKSDB_API unsigned char rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(
    rocksdb_options_t* options, int compaction_style);
ROCKSDB_API size_t rocksdb_options_calculate_sst_write_lifetime_hint_set_count(
    rocksdb_options_t* options);
ROCKSDB_API void rocksdb_options_calculate_sst_write_lifetime_hint_set_remove(
    rocksdb_options_t* options, int compaction_style);
ROCKSDB_API const char* rocksdb_options_get_daily_offpeak_time_utc(
    rocksdb_options_t* options, size_t* size);
ROCKSDB_API const char* rocksdb_options_get_db_host_id(rocksdb_options_t* options, size_t* size);
ROCKSDB_API int rocksdb_options_get_default_temperature(rocksdb_options_t* options);
ROCKSDB_API int rocksdb_options_get_default_write_temperature(rocksdb_options_t* options);
ROCKSDB_API int rocksdb_options_get_last_level_temperature(rocksdb_options_t* options);
ROCKSDB_API int rocksdb_options_get_lowest_used_cache_tier(rocksdb_options_t* options);
ROCKSDB_API int rocksdb_options_get_metadata_write_temperature(rocksdb_options_t* options);
ROCKSDB_API int rocksdb_options_get_verify_output_flags(rocksdb_options_t* options);
ROCKSDB_API int rocksdb_options_get_wal_write_temperature(rocksdb_options_t* options);
ROCKSDB_API void rocksdb_options_set_daily_offpeak_time_utc(
    rocksdb_options_t* options, const char* v);
ROCKSDB_API void rocksdb_options_set_db_host_id(rocksdb_options_t* options, const char* v);
ROCKSDB_API void rocksdb_options_set_default_temperature(rocksdb_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_default_write_temperature(rocksdb_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_last_level_temperature(rocksdb_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_lowest_used_cache_tier(rocksdb_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_metadata_write_temperature(rocksdb_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_verify_output_flags(rocksdb_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_wal_write_temperature(rocksdb_options_t* options, int v);

/* Options that are several numbers, or objects, or set others. */

ROCKSDB_API rocksdb_universal_compaction_options_t* rocksdb_universal_compaction_options_create(
    void);
ROCKSDB_API rocksdb_fifo_compaction_options_t* rocksdb_fifo_compaction_options_create(void);
ROCKSDB_API void rocksdb_dbpath_destroy(rocksdb_dbpath_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_destroy(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_fifo_compaction_options_destroy(
    rocksdb_fifo_compaction_options_t* fifo_opts);
ROCKSDB_API void rocksdb_ratelimiter_destroy(rocksdb_ratelimiter_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_size_ratio(
    rocksdb_universal_compaction_options_t*, int);
ROCKSDB_API int rocksdb_universal_compaction_options_get_size_ratio(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_min_merge_width(
    rocksdb_universal_compaction_options_t*, int);
ROCKSDB_API int rocksdb_universal_compaction_options_get_min_merge_width(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_max_merge_width(
    rocksdb_universal_compaction_options_t*, int);
ROCKSDB_API int rocksdb_universal_compaction_options_get_max_merge_width(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t*, int);
ROCKSDB_API int rocksdb_universal_compaction_options_get_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_compression_size_percent(
    rocksdb_universal_compaction_options_t*, int);
ROCKSDB_API int rocksdb_universal_compaction_options_get_compression_size_percent(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_stop_style(
    rocksdb_universal_compaction_options_t*, int);
ROCKSDB_API int rocksdb_universal_compaction_options_get_stop_style(
    rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_universal_compaction_options_set_max_read_amp(
    rocksdb_universal_compaction_options_t* opt, int v);
ROCKSDB_API int rocksdb_universal_compaction_options_get_max_read_amp(
    rocksdb_universal_compaction_options_t* opt);
ROCKSDB_API void rocksdb_universal_compaction_options_set_allow_trivial_move(
    rocksdb_universal_compaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_universal_compaction_options_get_allow_trivial_move(
    rocksdb_universal_compaction_options_t* opt);
ROCKSDB_API void rocksdb_universal_compaction_options_set_incremental(
    rocksdb_universal_compaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_universal_compaction_options_get_incremental(
    rocksdb_universal_compaction_options_t* opt);
ROCKSDB_API void rocksdb_universal_compaction_options_set_reduce_file_locking(
    rocksdb_universal_compaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_universal_compaction_options_get_reduce_file_locking(
    rocksdb_universal_compaction_options_t* opt);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_allow_compaction(
    rocksdb_fifo_compaction_options_t* fifo_opts, unsigned char allow_compaction);
ROCKSDB_API unsigned char rocksdb_fifo_compaction_options_get_allow_compaction(
    rocksdb_fifo_compaction_options_t* fifo_opts);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_max_table_files_size(
    rocksdb_fifo_compaction_options_t* fifo_opts, uint64_t size);
ROCKSDB_API uint64_t rocksdb_fifo_compaction_options_get_max_table_files_size(
    rocksdb_fifo_compaction_options_t* fifo_opts);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_max_data_files_size(
    rocksdb_fifo_compaction_options_t* fifo_opts, uint64_t size);
ROCKSDB_API uint64_t rocksdb_fifo_compaction_options_get_max_data_files_size(
    rocksdb_fifo_compaction_options_t* fifo_opts);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_use_kv_ratio_compaction(
    rocksdb_fifo_compaction_options_t* fifo_opts, unsigned char use_kv_ratio_compaction);
ROCKSDB_API unsigned char rocksdb_fifo_compaction_options_get_use_kv_ratio_compaction(
    rocksdb_fifo_compaction_options_t* fifo_opts);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_age_for_warm(
    rocksdb_fifo_compaction_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_fifo_compaction_options_get_age_for_warm(
    rocksdb_fifo_compaction_options_t* opt);
ROCKSDB_API rocksdb_options_t* rocksdb_options_create_copy(rocksdb_options_t*);
ROCKSDB_API void rocksdb_get_options_from_string(
    const rocksdb_options_t* base_options, const char* opts_str, rocksdb_options_t* new_options,
    char** errptr);
ROCKSDB_API void rocksdb_options_increase_parallelism(rocksdb_options_t* opt, int total_threads);
ROCKSDB_API void rocksdb_options_optimize_for_point_lookup(
    rocksdb_options_t* opt, uint64_t block_cache_size_mb);
ROCKSDB_API void rocksdb_options_optimize_level_style_compaction(
    rocksdb_options_t* opt, uint64_t memtable_memory_budget);
ROCKSDB_API void rocksdb_options_optimize_universal_style_compaction(
    rocksdb_options_t* opt, uint64_t memtable_memory_budget);
ROCKSDB_API void rocksdb_options_prepare_for_bulk_load(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_compression_options(rocksdb_options_t*, int, int, int, int);
ROCKSDB_API void rocksdb_options_set_bottommost_compression_options(
    rocksdb_options_t*, int, int, int, int, unsigned char);
ROCKSDB_API void rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
    rocksdb_options_t*, int, unsigned char);
ROCKSDB_API void rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t*, unsigned char, unsigned char);
ROCKSDB_API unsigned char rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t* opt);
ROCKSDB_API void rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
    rocksdb_options_t*, uint64_t, unsigned char);
ROCKSDB_API void rocksdb_options_set_compression_per_level(
    rocksdb_options_t* opt, const int* level_values, size_t num_levels);
ROCKSDB_API void rocksdb_options_set_min_level_to_compress(rocksdb_options_t* opt, int level);
ROCKSDB_API void rocksdb_options_set_max_bytes_for_level_multiplier_additional(
    rocksdb_options_t*, int* level_values, size_t num_levels);
ROCKSDB_API void rocksdb_options_set_universal_compaction_options(
    rocksdb_options_t*, rocksdb_universal_compaction_options_t*);
ROCKSDB_API void rocksdb_options_set_fifo_compaction_options(
    rocksdb_options_t* opt, rocksdb_fifo_compaction_options_t* fifo);
ROCKSDB_API void rocksdb_options_set_memtable_vector_rep(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_hash_skip_list_rep(
    rocksdb_options_t*, size_t, int32_t, int32_t);
ROCKSDB_API void rocksdb_options_set_hash_link_list_rep(rocksdb_options_t*, size_t);
ROCKSDB_API void rocksdb_options_add_compact_on_deletion_collector_factory(
    rocksdb_options_t*, size_t window_size, size_t num_dels_trigger);
ROCKSDB_API void rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    rocksdb_options_t*, size_t window_size, size_t num_dels_trigger, double deletion_ratio);
ROCKSDB_API void rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    rocksdb_options_t*, size_t window_size, size_t num_dels_trigger, double deletion_ratio,
    uint64_t min_file_size);
ROCKSDB_API rocksdb_dbpath_t* rocksdb_dbpath_create(const char* path, uint64_t target_size);
ROCKSDB_API void rocksdb_options_set_db_paths(
    rocksdb_options_t*, const rocksdb_dbpath_t** path_values, size_t num_paths);
ROCKSDB_API void rocksdb_options_set_cf_paths(
    rocksdb_options_t*, const rocksdb_dbpath_t** path_values, size_t num_paths);
ROCKSDB_API rocksdb_ratelimiter_t* rocksdb_ratelimiter_create(
    int64_t rate_bytes_per_sec, int64_t refill_period_us, int32_t fairness);
ROCKSDB_API rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_auto_tuned(
    int64_t rate_bytes_per_sec, int64_t refill_period_us, int32_t fairness);
ROCKSDB_API rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_with_mode(
    int64_t rate_bytes_per_sec, int64_t refill_period_us, int32_t fairness, int mode, bool
    auto_tuned);
ROCKSDB_API void rocksdb_options_set_ratelimiter(
    rocksdb_options_t* opt, rocksdb_ratelimiter_t* limiter);
ROCKSDB_API void rocksdb_options_set_row_cache(rocksdb_options_t* opt, rocksdb_cache_t* cache);
ROCKSDB_API void rocksdb_options_set_blob_cache(
    rocksdb_options_t* opt, rocksdb_cache_t* blob_cache);
ROCKSDB_API void rocksdb_options_enable_statistics(rocksdb_options_t*);
ROCKSDB_API char* rocksdb_options_statistics_get_string(rocksdb_options_t* opt);
ROCKSDB_API unsigned char rocksdb_fifo_compaction_options_get_allow_trivial_copy_when_change_temperature(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_API uint64_t rocksdb_fifo_compaction_options_get_trivial_copy_buffer_size(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_allow_trivial_copy_when_change_temperature(
    rocksdb_fifo_compaction_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_fifo_compaction_options_set_trivial_copy_buffer_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t v);

/* Options of block-based tables; other kinds of tables are refused when a database is opened. */

ROCKSDB_API rocksdb_block_based_table_options_t* rocksdb_block_based_options_create(void);
ROCKSDB_API rocksdb_cuckoo_table_options_t* rocksdb_cuckoo_options_create(void);
ROCKSDB_API void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options);
ROCKSDB_API void rocksdb_cuckoo_options_destroy(rocksdb_cuckoo_table_options_t* options);
ROCKSDB_API void rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_t*);
ROCKSDB_API void rocksdb_block_based_options_set_block_size(
    rocksdb_block_based_table_options_t* opt, size_t v);
ROCKSDB_API uint64_t rocksdb_block_based_options_get_block_size(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_block_size_deviation(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_block_size_deviation(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_block_restart_interval(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_block_restart_interval(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_index_block_restart_interval(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_index_block_restart_interval(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_metadata_block_size(
    rocksdb_block_based_table_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_block_based_options_get_metadata_block_size(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_format_version(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API uint32_t rocksdb_block_based_options_get_format_version(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_index_type(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_index_type(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_index_shortening(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_index_shortening(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_enable_index_compression(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_enable_index_compression(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_data_block_index_type(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_data_block_index_type(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_data_block_hash_table_util_ratio(
    rocksdb_block_based_table_options_t* opt, double v);
ROCKSDB_API double rocksdb_block_based_options_get_data_block_hash_table_util_ratio(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_whole_key_filtering(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_whole_key_filtering(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_partition_filters(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_partition_filters(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_no_block_cache(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_no_block_cache(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_prepopulate_block_cache(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_prepopulate_block_cache(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_cache_index_and_filter_blocks_with_high_priority(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_verify_compression(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_verify_compression(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_block_align(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_block_align(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_super_block_alignment_size(
    rocksdb_block_based_table_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_block_based_options_get_super_block_alignment_size(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_super_block_alignment_space_overhead_ratio(
    rocksdb_block_based_table_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_block_based_options_get_super_block_alignment_space_overhead_ratio(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_initial_auto_readahead_size(
    rocksdb_block_based_table_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_block_based_options_get_initial_auto_readahead_size(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_max_auto_readahead_size(
    rocksdb_block_based_table_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_block_based_options_get_max_auto_readahead_size(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_num_file_reads_for_auto_readahead(
    rocksdb_block_based_table_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_block_based_options_get_num_file_reads_for_auto_readahead(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_pin_top_level_index_and_filter(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_pin_top_level_index_and_filter(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_decouple_partitioned_filters(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_decouple_partitioned_filters(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_optimize_filters_for_memory(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_optimize_filters_for_memory(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_use_delta_encoding(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_use_delta_encoding(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_use_udi_as_primary_index(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_use_udi_as_primary_index(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_fail_if_no_udi_on_open(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_fail_if_no_udi_on_open(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_detect_filter_construct_corruption(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_detect_filter_construct_corruption(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_block_based_options_get_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_uniform_cv_threshold(
    rocksdb_block_based_table_options_t* opt, double v);
ROCKSDB_API double rocksdb_block_based_options_get_uniform_cv_threshold(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_cuckoo_options_set_hash_table_ratio(
    rocksdb_cuckoo_table_options_t* opt, double v);
ROCKSDB_API double rocksdb_cuckoo_options_get_hash_table_ratio(rocksdb_cuckoo_table_options_t* opt);
ROCKSDB_API void rocksdb_cuckoo_options_set_max_search_depth(
    rocksdb_cuckoo_table_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_cuckoo_options_get_max_search_depth(
    rocksdb_cuckoo_table_options_t* opt);
ROCKSDB_API void rocksdb_cuckoo_options_set_cuckoo_block_size(
    rocksdb_cuckoo_table_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_cuckoo_options_get_cuckoo_block_size(
    rocksdb_cuckoo_table_options_t* opt);
ROCKSDB_API void rocksdb_cuckoo_options_set_identity_as_first_hash(
    rocksdb_cuckoo_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_cuckoo_options_get_identity_as_first_hash(
    rocksdb_cuckoo_table_options_t* opt);
ROCKSDB_API void rocksdb_cuckoo_options_set_use_module_hash(
    rocksdb_cuckoo_table_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_cuckoo_options_get_use_module_hash(
    rocksdb_cuckoo_table_options_t* opt);
ROCKSDB_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom(double bits_per_key);
ROCKSDB_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
ROCKSDB_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon(
    double bloom_equivalent_bits_per_key);
ROCKSDB_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon_hybrid(
    double bloom_equivalent_bits_per_key, int bloom_before_level);
ROCKSDB_API void rocksdb_block_based_options_set_filter_policy(
    rocksdb_block_based_table_options_t* options, rocksdb_filterpolicy_t* filter_policy);
ROCKSDB_API void rocksdb_block_based_options_set_block_cache(
    rocksdb_block_based_table_options_t* options, rocksdb_cache_t* block_cache);
ROCKSDB_API void rocksdb_block_based_options_set_data_block_hash_ratio(
    rocksdb_block_based_table_options_t* options, double v);
ROCKSDB_API void rocksdb_block_based_options_set_checksum(
    rocksdb_block_based_table_options_t* opt, char v);
ROCKSDB_API int rocksdb_block_based_options_get_checksum(rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_index_block_search_type(
    rocksdb_block_based_table_options_t* opt, int v);
ROCKSDB_API int rocksdb_block_based_options_get_index_block_search_type(
    rocksdb_block_based_table_options_t* opt);
ROCKSDB_API void rocksdb_block_based_options_set_top_level_index_pinning_tier(
    rocksdb_block_based_table_options_t* options, int v);
ROCKSDB_API void rocksdb_block_based_options_set_partition_pinning_tier(
    rocksdb_block_based_table_options_t* options, int v);
ROCKSDB_API void rocksdb_block_based_options_set_unpartitioned_pinning_tier(
    rocksdb_block_based_table_options_t* options, int v);
ROCKSDB_API void rocksdb_options_set_block_based_table_factory(
    rocksdb_options_t* opt, rocksdb_block_based_table_options_t* table_options);
ROCKSDB_API void rocksdb_cuckoo_options_set_hash_ratio(
    rocksdb_cuckoo_table_options_t* options, double v);
ROCKSDB_API void rocksdb_options_set_cuckoo_table_factory(
    rocksdb_options_t* opt, rocksdb_cuckoo_table_options_t* table_options);
ROCKSDB_API void rocksdb_options_set_plain_table_factory(
    rocksdb_options_t*, uint32_t, int, double, size_t, size_t, char, unsigned char, unsigned char);
ROCKSDB_API void rocksdb_block_based_options_clear_user_defined_index_factory(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_API uint32_t rocksdb_block_based_options_get_read_amp_bytes_per_bit(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_API const char* rocksdb_block_based_options_get_user_defined_index_factory_name(
    const rocksdb_block_based_table_options_t* options, size_t* name_len);
ROCKSDB_API void rocksdb_block_based_options_set_hash_index_allow_collision(
    rocksdb_block_based_table_options_t* options, unsigned char allow);
ROCKSDB_API void rocksdb_block_based_options_set_read_amp_bytes_per_bit(
    rocksdb_block_based_table_options_t* options, uint32_t v);
ROCKSDB_API void rocksdb_block_based_options_set_user_defined_index_factory_from_string(
    rocksdb_block_based_table_options_t* options, const char* value, size_t value_len, char**
    errptr);

/* What is made of a program's callbacks: comparators, merge operators, compaction filters and
   their factories, prefix extractors. */

ROCKSDB_API rocksdb_comparator_t* rocksdb_comparator_create(
    void* state, void (*destructor)(void*), int (*compare)(void*, const char* a, size_t alen,
    const char* b, size_t blen), const char* (*name)(void*));
ROCKSDB_API rocksdb_comparator_t* rocksdb_comparator_with_ts_create(
    void* state, void (*destructor)(void*), int (*compare)(void*, const char* a, size_t alen,
    const char* b, size_t blen), int (*compare_ts)(void*, const char* a_ts, size_t a_tslen, const
    char* b_ts, size_t b_tslen), int (*compare_without_ts)(void*, const char* a, size_t alen,
    unsigned char a_has_ts, const char* b, size_t blen, unsigned char b_has_ts), const char*
    (*name)(void*), size_t timestamp_size);
ROCKSDB_API void rocksdb_options_set_comparator(rocksdb_options_t*, rocksdb_comparator_t*);
ROCKSDB_API rocksdb_mergeoperator_t* rocksdb_mergeoperator_create(
    void* state, void (*destructor)(void*), char* (*full_merge)(void*, const char* key, size_t
    key_length, const char* existing_value, size_t existing_value_length, const char* const*
    operands_list, const size_t* operands_list_length, int num_operands, unsigned char* success,
    size_t* new_value_length), char* (*partial_merge)(void*, const char* key, size_t key_length,
    const char* const* operands_list, const size_t* operands_list_length, int num_operands,
    unsigned char* success, size_t* new_value_length), void (*delete_value)(void*, const char*
    value, size_t value_length), const char* (*name)(void*));
ROCKSDB_API void rocksdb_options_set_merge_operator(rocksdb_options_t*, rocksdb_mergeoperator_t*);
ROCKSDB_API void rocksdb_options_set_uint64add_merge_operator(rocksdb_options_t*);
ROCKSDB_API rocksdb_compactionfilter_t* rocksdb_compactionfilter_create(
    void* state, void (*destructor)(void*), unsigned char (*filter)(void*, int level, const char*
    key, size_t key_length, const char* existing_value, size_t value_length, char** new_value,
    size_t* new_value_length, unsigned char* value_changed), const char* (*name)(void*));
ROCKSDB_API void rocksdb_compactionfilter_set_ignore_snapshots(
    rocksdb_compactionfilter_t*, unsigned char);
ROCKSDB_API void rocksdb_options_set_compaction_filter(
    rocksdb_options_t*, rocksdb_compactionfilter_t*);
ROCKSDB_API rocksdb_compactionfilterfactory_t* rocksdb_compactionfilterfactory_create(
    void* state, void (*destructor)(void*), rocksdb_compactionfilter_t*
    (*create_compaction_filter)(void*, rocksdb_compactionfiltercontext_t* context), const char*
    (*name)(void*));
ROCKSDB_API void rocksdb_options_set_compaction_filter_factory(
    rocksdb_options_t*, rocksdb_compactionfilterfactory_t*);
ROCKSDB_API unsigned char rocksdb_compactionfiltercontext_is_full_compaction(
    rocksdb_compactionfiltercontext_t* context);
ROCKSDB_API unsigned char rocksdb_compactionfiltercontext_is_manual_compaction(
    rocksdb_compactionfiltercontext_t* context);
ROCKSDB_API rocksdb_slicetransform_t* rocksdb_slicetransform_create(
    void* state, void (*destructor)(void*), char* (*transform)(void*, const char* key, size_t
    length, size_t* dst_length), unsigned char (*in_domain)(void*, const char* key, size_t
    length), const char* (*name)(void*));
ROCKSDB_API rocksdb_slicetransform_t* rocksdb_slicetransform_create_fixed_prefix(size_t);
ROCKSDB_API rocksdb_slicetransform_t* rocksdb_slicetransform_create_noop(void);
ROCKSDB_API void rocksdb_options_set_prefix_extractor(
    rocksdb_options_t*, rocksdb_slicetransform_t*);
ROCKSDB_API void rocksdb_comparator_destroy(rocksdb_comparator_t*);
ROCKSDB_API void rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_t*);
ROCKSDB_API void rocksdb_compactionfilter_destroy(rocksdb_compactionfilter_t*);
ROCKSDB_API void rocksdb_compactionfilterfactory_destroy(rocksdb_compactionfilterfactory_t*);
ROCKSDB_API void rocksdb_slicetransform_destroy(rocksdb_slicetransform_t*);

/* Caches, and one limit for the memtables of several databases. */

ROCKSDB_API rocksdb_lru_cache_options_t* rocksdb_lru_cache_options_create(void);
ROCKSDB_API void rocksdb_cache_destroy(rocksdb_cache_t* cache);
ROCKSDB_API void rocksdb_lru_cache_options_destroy(rocksdb_lru_cache_options_t*);
ROCKSDB_API void rocksdb_hyper_clock_cache_options_destroy(rocksdb_hyper_clock_cache_options_t*);
ROCKSDB_API void rocksdb_write_buffer_manager_destroy(rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API rocksdb_cache_t* rocksdb_cache_create_lru(size_t capacity);
ROCKSDB_API rocksdb_cache_t* rocksdb_cache_create_lru_opts(const rocksdb_lru_cache_options_t*);
ROCKSDB_API void rocksdb_lru_cache_options_set_capacity(rocksdb_lru_cache_options_t*, size_t);
ROCKSDB_API void rocksdb_lru_cache_options_set_num_shard_bits(rocksdb_lru_cache_options_t*, int);
ROCKSDB_API rocksdb_cache_t* rocksdb_cache_create_hyper_clock(
    size_t capacity, size_t estimated_entry_charge);
ROCKSDB_API rocksdb_cache_t* rocksdb_cache_create_hyper_clock_opts(
    const rocksdb_hyper_clock_cache_options_t*);
ROCKSDB_API rocksdb_hyper_clock_cache_options_t* rocksdb_hyper_clock_cache_options_create(
    size_t capacity, size_t estimated_entry_charge);
ROCKSDB_API void rocksdb_hyper_clock_cache_options_set_capacity(
    rocksdb_hyper_clock_cache_options_t*, size_t);
ROCKSDB_API void rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(
    rocksdb_hyper_clock_cache_options_t*, size_t);
ROCKSDB_API void rocksdb_hyper_clock_cache_options_set_num_shard_bits(
    rocksdb_hyper_clock_cache_options_t*, int);
ROCKSDB_API void rocksdb_cache_set_capacity(rocksdb_cache_t* cache, size_t capacity);
ROCKSDB_API size_t rocksdb_cache_get_capacity(const rocksdb_cache_t* cache);
ROCKSDB_API size_t rocksdb_cache_get_usage(const rocksdb_cache_t* cache);
ROCKSDB_API size_t rocksdb_cache_get_pinned_usage(const rocksdb_cache_t* cache);
ROCKSDB_API void rocksdb_cache_disown_data(rocksdb_cache_t* cache);
ROCKSDB_API rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create(
    size_t buffer_size, bool allow_stall);
ROCKSDB_API rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create_with_cache(
    size_t buffer_size, const rocksdb_cache_t* cache, bool allow_stall);
ROCKSDB_API bool rocksdb_write_buffer_manager_enabled(rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API bool rocksdb_write_buffer_manager_cost_to_cache(rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API size_t rocksdb_write_buffer_manager_memory_usage(rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API size_t rocksdb_write_buffer_manager_mutable_memtable_memory_usage(
    rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API size_t rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(
    rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API size_t rocksdb_write_buffer_manager_buffer_size(rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API void rocksdb_write_buffer_manager_set_buffer_size(
    rocksdb_write_buffer_manager_t* wbm, size_t new_size);
ROCKSDB_API void rocksdb_write_buffer_manager_set_allow_stall(
    rocksdb_write_buffer_manager_t* wbm, bool new_allow_stall);
ROCKSDB_API void rocksdb_options_set_write_buffer_manager(
    rocksdb_options_t* opt, rocksdb_write_buffer_manager_t* wbm);
ROCKSDB_API rocksdb_cache_t* rocksdb_cache_create_lru_with_strict_capacity_limit(size_t capacity);
ROCKSDB_API size_t rocksdb_cache_get_occupancy_count(const rocksdb_cache_t* cache);
ROCKSDB_API size_t rocksdb_cache_get_table_address_count(const rocksdb_cache_t* cache);

/* Environments: the operating system's, and files in memory. */

ROCKSDB_API rocksdb_envoptions_t* rocksdb_envoptions_create(void);
ROCKSDB_API void rocksdb_env_destroy(rocksdb_env_t*);
ROCKSDB_API void rocksdb_envoptions_destroy(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_use_mmap_reads(rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_use_mmap_reads(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_use_mmap_writes(rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_use_mmap_writes(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_use_direct_reads(
    rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_use_direct_reads(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_use_direct_writes(
    rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_use_direct_writes(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_allow_fallocate(rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_allow_fallocate(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_fd_cloexec(rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_fd_cloexec(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_strict_bytes_per_sync(
    rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_strict_bytes_per_sync(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_fallocate_with_keep_size(
    rocksdb_envoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_envoptions_get_fallocate_with_keep_size(
    rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_bytes_per_sync(rocksdb_envoptions_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_envoptions_get_bytes_per_sync(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_compaction_readahead_size(
    rocksdb_envoptions_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_envoptions_get_compaction_readahead_size(rocksdb_envoptions_t* opt);
ROCKSDB_API void rocksdb_envoptions_set_writable_file_max_buffer_size(
    rocksdb_envoptions_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_envoptions_get_writable_file_max_buffer_size(rocksdb_envoptions_t* opt);
ROCKSDB_API rocksdb_env_t* rocksdb_create_default_env(void);
ROCKSDB_API rocksdb_env_t* rocksdb_create_mem_env(void);
ROCKSDB_API void rocksdb_options_set_env(rocksdb_options_t*, rocksdb_env_t*);
ROCKSDB_API void rocksdb_env_set_background_threads(rocksdb_env_t* env, int n);
ROCKSDB_API int rocksdb_env_get_background_threads(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_set_low_priority_background_threads(rocksdb_env_t* env, int n);
ROCKSDB_API int rocksdb_env_get_low_priority_background_threads(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_set_high_priority_background_threads(rocksdb_env_t* env, int n);
ROCKSDB_API int rocksdb_env_get_high_priority_background_threads(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_set_bottom_priority_background_threads(rocksdb_env_t* env, int n);
ROCKSDB_API int rocksdb_env_get_bottom_priority_background_threads(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_join_all_threads(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_lower_thread_pool_io_priority(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_lower_high_priority_thread_pool_io_priority(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_lower_thread_pool_cpu_priority(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_env_lower_high_priority_thread_pool_cpu_priority(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_create_dir_if_missing(rocksdb_env_t* env, const char* path, char** errptr);
ROCKSDB_API void rocksdb_envoptions_set_rate_limiter(
    rocksdb_envoptions_t* options, rocksdb_ratelimiter_t* rate_limiter);

/* Where the messages of a database go. */

ROCKSDB_API void rocksdb_logger_destroy(rocksdb_logger_t* logger);
ROCKSDB_API rocksdb_logger_t* rocksdb_logger_create_stderr_logger(
    int log_level, const char* prefix);
ROCKSDB_API rocksdb_logger_t* rocksdb_logger_create_callback_logger(
    int log_level, void (*)(void* priv, unsigned lev, char* msg, size_t len), void* priv);
ROCKSDB_API void rocksdb_options_set_info_log(rocksdb_options_t*, rocksdb_logger_t*);
ROCKSDB_API rocksdb_logger_t* rocksdb_options_get_info_log(rocksdb_options_t* opt);

/* Options of single calls. */

ROCKSDB_API rocksdb_readoptions_t* rocksdb_readoptions_create(void);
ROCKSDB_API rocksdb_writeoptions_t* rocksdb_writeoptions_create(void);
ROCKSDB_API rocksdb_flushoptions_t* rocksdb_flushoptions_create(void);
ROCKSDB_API rocksdb_compactoptions_t* rocksdb_compactoptions_create(void);
ROCKSDB_API rocksdb_wait_for_compact_options_t* rocksdb_wait_for_compact_options_create(void);
ROCKSDB_API rocksdb_ingestexternalfileoptions_t* rocksdb_ingestexternalfileoptions_create(void);
ROCKSDB_API rocksdb_flushwaloptions_t* rocksdb_flushwaloptions_create(void);
ROCKSDB_API void rocksdb_readoptions_destroy(rocksdb_readoptions_t*);
ROCKSDB_API void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t*);
ROCKSDB_API void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_wait_for_compact_options_destroy(rocksdb_wait_for_compact_options_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_destroy(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_flushwaloptions_destroy(rocksdb_flushwaloptions_t* options);
ROCKSDB_API void rocksdb_readoptions_set_verify_checksums(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_verify_checksums(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_fill_cache(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_readoptions_get_readahead_size(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_max_skippable_internal_keys(
    rocksdb_readoptions_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_readoptions_get_max_skippable_internal_keys(
    rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_total_order_seek(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_total_order_seek(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_prefix_same_as_start(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_prefix_same_as_start(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_ignore_range_deletions(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_ignore_range_deletions(
    rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_auto_refresh_iterator_with_snapshot(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_auto_refresh_iterator_with_snapshot(
    rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_tailing(rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_tailing(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_deadline(
    rocksdb_readoptions_t* opt, uint64_t microseconds);
ROCKSDB_API uint64_t rocksdb_readoptions_get_deadline(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_io_timeout(
    rocksdb_readoptions_t* opt, uint64_t microseconds);
ROCKSDB_API uint64_t rocksdb_readoptions_get_io_timeout(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_auto_prefix_mode(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_auto_prefix_mode(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_rate_limiter_priority(rocksdb_readoptions_t* opt, int v);
ROCKSDB_API int rocksdb_readoptions_get_rate_limiter_priority(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_pin_data(rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_pin_data(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_async_io(rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_async_io(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_auto_readahead_size(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_auto_readahead_size(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_background_purge_on_iterator_cleanup(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_background_purge_on_iterator_cleanup(
    rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_adaptive_readahead(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_adaptive_readahead(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_optimize_multiget_for_io(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_optimize_multiget_for_io(
    rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_allow_unprepared_value(
    rocksdb_readoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_readoptions_get_allow_unprepared_value(
    rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_writeoptions_get_sync(rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_ignore_missing_column_families(
    rocksdb_writeoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_writeoptions_get_ignore_missing_column_families(
    rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_writeoptions_get_no_slowdown(rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_protection_bytes_per_key(
    rocksdb_writeoptions_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_writeoptions_get_protection_bytes_per_key(rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_low_pri(rocksdb_writeoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_writeoptions_get_low_pri(rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_memtable_insert_hint_per_batch(
    rocksdb_writeoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_writeoptions_get_memtable_insert_hint_per_batch(
    rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_writeoptions_set_rate_limiter_priority(rocksdb_writeoptions_t* opt, int v);
ROCKSDB_API int rocksdb_writeoptions_get_rate_limiter_priority(rocksdb_writeoptions_t* opt);
ROCKSDB_API void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_flushoptions_get_wait(rocksdb_flushoptions_t* opt);
ROCKSDB_API void rocksdb_flushoptions_set_allow_write_stall(
    rocksdb_flushoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_flushoptions_get_allow_write_stall(rocksdb_flushoptions_t* opt);
ROCKSDB_API void rocksdb_flushwaloptions_set_sync(rocksdb_flushwaloptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_flushwaloptions_get_sync(rocksdb_flushwaloptions_t* opt);
ROCKSDB_API void rocksdb_flushwaloptions_set_rate_limiter_priority(
    rocksdb_flushwaloptions_t* opt, int v);
ROCKSDB_API int rocksdb_flushwaloptions_get_rate_limiter_priority(rocksdb_flushwaloptions_t* opt);
ROCKSDB_API void rocksdb_compactoptions_set_exclusive_manual_compaction(
    rocksdb_compactoptions_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_compactoptions_get_exclusive_manual_compaction(
    rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_bottommost_level_compaction(
    rocksdb_compactoptions_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_compactoptions_get_bottommost_level_compaction(
    rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_change_level(rocksdb_compactoptions_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_compactoptions_get_change_level(rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_target_level(rocksdb_compactoptions_t*, int);
ROCKSDB_API int rocksdb_compactoptions_get_target_level(rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_target_path_id(rocksdb_compactoptions_t*, int);
ROCKSDB_API int rocksdb_compactoptions_get_target_path_id(rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_allow_write_stall(
    rocksdb_compactoptions_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_compactoptions_get_allow_write_stall(rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_max_subcompactions(rocksdb_compactoptions_t*, int);
ROCKSDB_API int rocksdb_compactoptions_get_max_subcompactions(rocksdb_compactoptions_t*);
ROCKSDB_API void rocksdb_compactoptions_set_blob_garbage_collection_policy(
    rocksdb_compactoptions_t* opt, int v);
ROCKSDB_API int rocksdb_compactoptions_get_blob_garbage_collection_policy(
    rocksdb_compactoptions_t* opt);
ROCKSDB_API void rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff(
    rocksdb_compactoptions_t* opt, double v);
ROCKSDB_API double rocksdb_compactoptions_get_blob_garbage_collection_age_cutoff(
    rocksdb_compactoptions_t* opt);
ROCKSDB_API void rocksdb_wait_for_compact_options_set_abort_on_pause(
    rocksdb_wait_for_compact_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_wait_for_compact_options_get_abort_on_pause(
    rocksdb_wait_for_compact_options_t* opt);
ROCKSDB_API void rocksdb_wait_for_compact_options_set_flush(
    rocksdb_wait_for_compact_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_wait_for_compact_options_get_flush(
    rocksdb_wait_for_compact_options_t* opt);
ROCKSDB_API void rocksdb_wait_for_compact_options_set_close_db(
    rocksdb_wait_for_compact_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_wait_for_compact_options_get_close_db(
    rocksdb_wait_for_compact_options_t* opt);
ROCKSDB_API void rocksdb_wait_for_compact_options_set_timeout(
    rocksdb_wait_for_compact_options_t* opt, uint64_t microseconds);
ROCKSDB_API uint64_t rocksdb_wait_for_compact_options_get_timeout(
    rocksdb_wait_for_compact_options_t* opt);
ROCKSDB_API void rocksdb_wait_for_compact_options_set_wait_for_purge(
    rocksdb_wait_for_compact_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_wait_for_compact_options_get_wait_for_purge(
    rocksdb_wait_for_compact_options_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_move_files(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char move_files);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_move_files(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_link_files(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_link_files(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_failed_move_fall_back_to_copy(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char snapshot_consistency);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char allow_global_seqno);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char allow_blocking_flush);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char ingest_behind);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_verify_checksums_before_ingest(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_verify_file_checksum(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_verify_file_checksum(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char fail_if_not_bottommost_level);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_allow_db_generated_files(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_allow_db_generated_files(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_fill_cache(
    rocksdb_ingestexternalfileoptions_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_fill_cache(
    rocksdb_ingestexternalfileoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_snapshot(
    rocksdb_readoptions_t*, const rocksdb_snapshot_t*);
ROCKSDB_API void rocksdb_readoptions_set_iterate_lower_bound(
    rocksdb_readoptions_t*, const char* key, size_t keylen);
ROCKSDB_API void rocksdb_readoptions_set_iterate_upper_bound(
    rocksdb_readoptions_t*, const char* key, size_t keylen);
ROCKSDB_API void rocksdb_readoptions_set_read_tier(rocksdb_readoptions_t* opt, int v);
ROCKSDB_API int rocksdb_readoptions_get_read_tier(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_value_size_soft_limit(
    rocksdb_readoptions_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_readoptions_get_value_size_soft_limit(rocksdb_readoptions_t* opt);
ROCKSDB_API void rocksdb_readoptions_set_timestamp(
    rocksdb_readoptions_t*, const char* ts, size_t tslen);
ROCKSDB_API void rocksdb_readoptions_set_iter_start_ts(
    rocksdb_readoptions_t*, const char* ts, size_t tslen);
ROCKSDB_API void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t* opt, int v);
ROCKSDB_API unsigned char rocksdb_writeoptions_get_disable_WAL(rocksdb_writeoptions_t* opt);
typedef unsigned char (*rocksdb_readoptions_table_filter_cb)(
    void* state, const rocksdb_table_properties_t* table_properties);
ROCKSDB_API unsigned char rocksdb_flushoptions_get_force_atomic_flush(
    rocksdb_flushoptions_t* options);
ROCKSDB_API unsigned char rocksdb_flushoptions_get_listener_wait(rocksdb_flushoptions_t* options);
ROCKSDB_API void rocksdb_flushoptions_set_force_atomic_flush(
    rocksdb_flushoptions_t* options, unsigned char v);
ROCKSDB_API void rocksdb_flushoptions_set_listener_wait(
    rocksdb_flushoptions_t* options, unsigned char v);
ROCKSDB_API int rocksdb_ingestexternalfileoptions_get_file_opening_threads(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_API unsigned char rocksdb_ingestexternalfileoptions_get_prefetch_lmax_index_and_filter_blocks(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_API size_t rocksdb_ingestexternalfileoptions_get_verify_checksums_readahead_size(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_file_opening_threads(
    rocksdb_ingestexternalfileoptions_t* options, int v);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_prefetch_lmax_index_and_filter_blocks(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char v);
ROCKSDB_API void rocksdb_ingestexternalfileoptions_set_verify_checksums_readahead_size(
    rocksdb_ingestexternalfileoptions_t* options, size_t v);
ROCKSDB_API void rocksdb_readoptions_clear_merge_operand_count_threshold(rocksdb_readoptions_t*);
ROCKSDB_API void rocksdb_readoptions_clear_request_id(rocksdb_readoptions_t*);
ROCKSDB_API void rocksdb_readoptions_clear_table_filter(rocksdb_readoptions_t*);
ROCKSDB_API void rocksdb_readoptions_clear_table_index_factory(rocksdb_readoptions_t*);
ROCKSDB_API int rocksdb_readoptions_get_io_activity(rocksdb_readoptions_t* options);
ROCKSDB_API size_t rocksdb_readoptions_get_merge_operand_count_threshold(rocksdb_readoptions_t*);
ROCKSDB_API const char* rocksdb_readoptions_get_request_id(
    rocksdb_readoptions_t*, size_t* request_id_len);
ROCKSDB_API const char* rocksdb_readoptions_get_table_index_factory_name(
    const rocksdb_readoptions_t*, size_t* name_len);
ROCKSDB_API unsigned char rocksdb_readoptions_has_merge_operand_count_threshold(
    rocksdb_readoptions_t*);
ROCKSDB_API unsigned char rocksdb_readoptions_has_table_filter(const rocksdb_readoptions_t*);
ROCKSDB_API void rocksdb_readoptions_set_io_activity(rocksdb_readoptions_t* options, int v);
ROCKSDB_API void rocksdb_readoptions_set_merge_operand_count_threshold(
    rocksdb_readoptions_t*, size_t threshold);
ROCKSDB_API void rocksdb_readoptions_set_request_id(
    rocksdb_readoptions_t*, const char* request_id, size_t request_id_len);
ROCKSDB_API void rocksdb_readoptions_set_table_filter(
    rocksdb_readoptions_t*, void* state, void (*destructor)(void*),
    rocksdb_readoptions_table_filter_cb table_filter);
ROCKSDB_API void rocksdb_readoptions_set_table_index_factory_from_string(
    rocksdb_readoptions_t*, const char* value, size_t value_len, char** errptr);
ROCKSDB_API int rocksdb_writeoptions_get_io_activity(rocksdb_writeoptions_t* options);
ROCKSDB_API void rocksdb_writeoptions_set_io_activity(rocksdb_writeoptions_t* options, int v);

/* Traces of operations and of the block cache, and replays. */

ROCKSDB_API rocksdb_trace_options_t* rocksdb_trace_options_create(void);
ROCKSDB_API rocksdb_block_cache_trace_options_t* rocksdb_block_cache_trace_options_create(void);
ROCKSDB_API rocksdb_block_cache_trace_writer_options_t*
rocksdb_block_cache_trace_writer_options_create(void);
ROCKSDB_API rocksdb_replay_options_t* rocksdb_replay_options_create(void);
ROCKSDB_API void rocksdb_trace_options_destroy(rocksdb_trace_options_t* options);
ROCKSDB_API void rocksdb_block_cache_trace_options_destroy(
    rocksdb_block_cache_trace_options_t* options);
ROCKSDB_API void rocksdb_block_cache_trace_writer_options_destroy(
    rocksdb_block_cache_trace_writer_options_t* options);
ROCKSDB_API void rocksdb_replay_options_destroy(rocksdb_replay_options_t* options);
ROCKSDB_API void rocksdb_trace_reader_destroy(rocksdb_trace_reader_t* reader);
ROCKSDB_API void rocksdb_replayer_destroy(rocksdb_replayer_t* replayer);
ROCKSDB_API void rocksdb_trace_options_set_max_trace_file_size(
    rocksdb_trace_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_trace_options_get_max_trace_file_size(
    rocksdb_trace_options_t* opt);
ROCKSDB_API void rocksdb_trace_options_set_sampling_frequency(
    rocksdb_trace_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_trace_options_get_sampling_frequency(
    rocksdb_trace_options_t* opt);
ROCKSDB_API void rocksdb_trace_options_set_filter(
    rocksdb_trace_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_trace_options_get_filter(
    rocksdb_trace_options_t* opt);
ROCKSDB_API void rocksdb_trace_options_set_preserve_write_order(
    rocksdb_trace_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_trace_options_get_preserve_write_order(
    rocksdb_trace_options_t* opt);
ROCKSDB_API void rocksdb_block_cache_trace_options_set_sampling_frequency(
    rocksdb_block_cache_trace_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_block_cache_trace_options_get_sampling_frequency(
    rocksdb_block_cache_trace_options_t* opt);
ROCKSDB_API void rocksdb_block_cache_trace_writer_options_set_max_trace_file_size(
    rocksdb_block_cache_trace_writer_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_block_cache_trace_writer_options_get_max_trace_file_size(
    rocksdb_block_cache_trace_writer_options_t* opt);
ROCKSDB_API void rocksdb_replay_options_set_num_threads(
    rocksdb_replay_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_replay_options_get_num_threads(
    rocksdb_replay_options_t* opt);
ROCKSDB_API void rocksdb_replay_options_set_fast_forward(
    rocksdb_replay_options_t* opt, double v);
ROCKSDB_API double rocksdb_replay_options_get_fast_forward(
    rocksdb_replay_options_t* opt);
ROCKSDB_API rocksdb_trace_reader_t* rocksdb_trace_reader_create(
    rocksdb_env_t* env, const rocksdb_envoptions_t* env_options, const char* trace_path,
    char** errptr);
ROCKSDB_API char* rocksdb_trace_reader_read(
    rocksdb_trace_reader_t* reader, size_t* size, char** errptr);
ROCKSDB_API void rocksdb_trace_reader_reset(rocksdb_trace_reader_t* reader, char** errptr);
ROCKSDB_API void rocksdb_trace_reader_close(rocksdb_trace_reader_t* reader, char** errptr);
ROCKSDB_API rocksdb_replayer_t* rocksdb_new_default_replayer(
    rocksdb_t* db, rocksdb_column_family_handle_t** column_families, size_t num_column_families,
    rocksdb_env_t* env, const rocksdb_envoptions_t* env_options, const char* trace_path,
    char** errptr);
ROCKSDB_API void rocksdb_replayer_prepare(rocksdb_replayer_t* replayer, char** errptr);
ROCKSDB_API uint64_t rocksdb_replayer_get_header_timestamp(const rocksdb_replayer_t* replayer);
ROCKSDB_API void rocksdb_replayer_replay(
    rocksdb_replayer_t* replayer, const rocksdb_replay_options_t* options, char** errptr);
ROCKSDB_API void rocksdb_start_trace(
    rocksdb_t* db, rocksdb_env_t* env, const rocksdb_envoptions_t* env_options,
    const rocksdb_trace_options_t* options, const char* trace_path, char** errptr);
ROCKSDB_API void rocksdb_end_trace(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_start_io_trace(
    rocksdb_t* db, rocksdb_env_t* env, const rocksdb_envoptions_t* env_options,
    const rocksdb_trace_options_t* options, const char* trace_path, char** errptr);
ROCKSDB_API void rocksdb_end_io_trace(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_start_block_cache_trace(
    rocksdb_t* db, rocksdb_env_t* env, const rocksdb_envoptions_t* env_options,
    const rocksdb_trace_options_t* options, const char* trace_path, char** errptr);
ROCKSDB_API void rocksdb_start_block_cache_trace_with_options(
    rocksdb_t* db, rocksdb_env_t* env, const rocksdb_envoptions_t* env_options,
    const rocksdb_block_cache_trace_options_t* options,
    const rocksdb_block_cache_trace_writer_options_t* writer_options, const char* trace_path,
    char** errptr);
ROCKSDB_API void rocksdb_end_block_cache_trace(rocksdb_t* db, char** errptr);

/* Counters and distributions, and what databases and caches hold in memory. */

ROCKSDB_API rocksdb_statistics_histogram_data_t* rocksdb_statistics_histogram_data_create(void);
ROCKSDB_API rocksdb_memory_consumers_t* rocksdb_memory_consumers_create(void);
ROCKSDB_API rocksdb_perfcontext_t* rocksdb_perfcontext_create(void);
ROCKSDB_API void rocksdb_statistics_histogram_data_destroy(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API void rocksdb_memory_consumers_destroy(rocksdb_memory_consumers_t* consumers);
ROCKSDB_API void rocksdb_approximate_memory_usage_destroy(rocksdb_memory_usage_t* usage);
ROCKSDB_API void rocksdb_perfcontext_destroy(rocksdb_perfcontext_t* context);
ROCKSDB_API uint64_t rocksdb_options_statistics_get_ticker_count(
    rocksdb_options_t* opt, uint32_t ticker_type);
ROCKSDB_API void rocksdb_options_statistics_get_histogram_data(
    rocksdb_options_t* opt, uint32_t histogram_type, rocksdb_statistics_histogram_data_t* const
    data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_median(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_p95(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_p99(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_average(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_std_dev(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_max(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API double rocksdb_statistics_histogram_data_get_min(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API uint64_t rocksdb_statistics_histogram_data_get_count(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API uint64_t rocksdb_statistics_histogram_data_get_sum(
    rocksdb_statistics_histogram_data_t* data);
ROCKSDB_API void rocksdb_memory_consumers_add_db(
    rocksdb_memory_consumers_t* consumers, rocksdb_t* db);
ROCKSDB_API void rocksdb_memory_consumers_add_cache(
    rocksdb_memory_consumers_t* consumers, rocksdb_cache_t* cache);
ROCKSDB_API rocksdb_memory_usage_t* rocksdb_approximate_memory_usage_create(
    rocksdb_memory_consumers_t* consumers, char** errptr);
ROCKSDB_API uint64_t rocksdb_approximate_memory_usage_get_mem_table_total(
    rocksdb_memory_usage_t* memory_usage);
ROCKSDB_API uint64_t rocksdb_approximate_memory_usage_get_mem_table_unflushed(
    rocksdb_memory_usage_t* memory_usage);
ROCKSDB_API uint64_t rocksdb_approximate_memory_usage_get_mem_table_readers_total(
    rocksdb_memory_usage_t* memory_usage);
ROCKSDB_API uint64_t rocksdb_approximate_memory_usage_get_cache_total(
    rocksdb_memory_usage_t* memory_usage);
ROCKSDB_API void rocksdb_set_perf_level(int);
ROCKSDB_API void rocksdb_perfcontext_reset(rocksdb_perfcontext_t* context);
ROCKSDB_API char* rocksdb_perfcontext_report(
    rocksdb_perfcontext_t* context, unsigned char exclude_zero_counters);
ROCKSDB_API uint64_t rocksdb_perfcontext_metric(rocksdb_perfcontext_t* context, int metric);

/* Checkpoints, and tables that are written outside of a database. */

ROCKSDB_API void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t* checkpoint);
ROCKSDB_API void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t* writer);
ROCKSDB_API rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_checkpoint_create(
    rocksdb_checkpoint_t* checkpoint, const char* checkpoint_dir, uint64_t log_size_for_flush,
    char** errptr);
ROCKSDB_API void rocksdb_ingest_external_file(
    rocksdb_t* db, const char* const* file_list, const size_t list_len, const
    rocksdb_ingestexternalfileoptions_t* opt, char** errptr);
ROCKSDB_API void rocksdb_ingest_external_file_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* handle, const char* const* file_list, const
    size_t list_len, const rocksdb_ingestexternalfileoptions_t* opt, char** errptr);
ROCKSDB_API rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(
    const rocksdb_envoptions_t* env, const rocksdb_options_t* io_options);
ROCKSDB_API rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create_with_comparator(
    const rocksdb_envoptions_t* env, const rocksdb_options_t* io_options, const
    rocksdb_comparator_t* comparator);
ROCKSDB_API void rocksdb_sstfilewriter_open(
    rocksdb_sstfilewriter_t* writer, const char* name, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_add(
    rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, const char* val, size_t
    vallen, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_put(
    rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, const char* val, size_t
    vallen, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_merge(
    rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, const char* val, size_t
    vallen, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_delete(
    rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_delete_range(
    rocksdb_sstfilewriter_t* writer, const char* begin_key, size_t begin_keylen, const char*
    end_key, size_t end_keylen, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t* writer, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_file_size(
    rocksdb_sstfilewriter_t* writer, uint64_t* file_size);

/* Backups in RocksDB's layout. */

ROCKSDB_API rocksdb_restore_options_t* rocksdb_restore_options_create(void);
ROCKSDB_API rocksdb_create_backup_options_t* rocksdb_create_backup_options_create(void);
ROCKSDB_API void rocksdb_backup_engine_close(rocksdb_backup_engine_t* be);
ROCKSDB_API void rocksdb_backup_engine_options_destroy(rocksdb_backup_engine_options_t*);
ROCKSDB_API void rocksdb_restore_options_destroy(rocksdb_restore_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_info_destroy(const rocksdb_backup_engine_info_t* info);
ROCKSDB_API void rocksdb_create_backup_options_destroy(rocksdb_create_backup_options_t* options);
ROCKSDB_API void rocksdb_backup_engine_options_set_share_table_files(
    rocksdb_backup_engine_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_backup_engine_options_get_share_table_files(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_sync(
    rocksdb_backup_engine_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_backup_engine_options_get_sync(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_destroy_old_data(
    rocksdb_backup_engine_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_backup_engine_options_get_destroy_old_data(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_backup_log_files(
    rocksdb_backup_engine_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_backup_engine_options_get_backup_log_files(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_io_buffer_size(
    rocksdb_backup_engine_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_backup_engine_options_get_io_buffer_size(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_backup_rate_limit(
    rocksdb_backup_engine_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_backup_engine_options_get_backup_rate_limit(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_restore_rate_limit(
    rocksdb_backup_engine_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_backup_engine_options_get_restore_rate_limit(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_max_background_operations(
    rocksdb_backup_engine_options_t* opt, int v);
ROCKSDB_API int rocksdb_backup_engine_options_get_max_background_operations(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_callback_trigger_interval_size(
    rocksdb_backup_engine_options_t* opt, uint64_t v);
ROCKSDB_API uint64_t rocksdb_backup_engine_options_get_callback_trigger_interval_size(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_max_valid_backups_to_open(
    rocksdb_backup_engine_options_t* opt, int v);
ROCKSDB_API int rocksdb_backup_engine_options_get_max_valid_backups_to_open(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_share_files_with_checksum_naming(
    rocksdb_backup_engine_options_t* opt, int v);
ROCKSDB_API int rocksdb_backup_engine_options_get_share_files_with_checksum_naming(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_share_files_with_checksum(
    rocksdb_backup_engine_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_backup_engine_options_get_share_files_with_checksum(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_schema_version(
    rocksdb_backup_engine_options_t* opt, int v);
ROCKSDB_API int rocksdb_backup_engine_options_get_schema_version(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_backup_engine_options_set_current_temperatures_override_manifest(
    rocksdb_backup_engine_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_backup_engine_options_get_current_temperatures_override_manifest(
    rocksdb_backup_engine_options_t* opt);
ROCKSDB_API void rocksdb_create_backup_options_set_flush_before_backup(
    rocksdb_create_backup_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_create_backup_options_get_flush_before_backup(
    rocksdb_create_backup_options_t* opt);
ROCKSDB_API void rocksdb_create_backup_options_set_decrease_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_create_backup_options_get_decrease_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* opt);
ROCKSDB_API void rocksdb_create_backup_options_set_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* opt, int v);
ROCKSDB_API int rocksdb_create_backup_options_get_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* opt);
ROCKSDB_API void rocksdb_create_backup_options_set_atomic_flush(
    rocksdb_create_backup_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_create_backup_options_get_atomic_flush(
    rocksdb_create_backup_options_t* opt);
ROCKSDB_API rocksdb_backup_engine_options_t* rocksdb_backup_engine_options_create(
    const char* backup_dir);
ROCKSDB_API void rocksdb_backup_engine_options_set_backup_dir(
    rocksdb_backup_engine_options_t* opt, const char* v);
ROCKSDB_API const char* rocksdb_backup_engine_options_get_backup_dir(
    rocksdb_backup_engine_options_t* opt, size_t* size);
ROCKSDB_API void rocksdb_backup_engine_options_set_env(
    rocksdb_backup_engine_options_t* options, rocksdb_env_t* env);
ROCKSDB_API void rocksdb_backup_engine_options_set_backup_rate_limiter(
    rocksdb_backup_engine_options_t* options, rocksdb_ratelimiter_t* limiter);
ROCKSDB_API void rocksdb_backup_engine_options_set_restore_rate_limiter(
    rocksdb_backup_engine_options_t* options, rocksdb_ratelimiter_t* limiter);
ROCKSDB_API rocksdb_backup_engine_t* rocksdb_backup_engine_open(
    const rocksdb_options_t* options, const char* path, char** errptr);
ROCKSDB_API rocksdb_backup_engine_t* rocksdb_backup_engine_open_opts(
    const rocksdb_backup_engine_options_t* options, rocksdb_env_t* env, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_create_new_backup(
    rocksdb_backup_engine_t* be, rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_create_new_backup_flush(
    rocksdb_backup_engine_t* be, rocksdb_t* db, unsigned char flush_before_backup, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_create_new_backup_with_options(
    rocksdb_backup_engine_t* be, rocksdb_t* db, const rocksdb_create_backup_options_t* options,
    uint32_t* backup_id, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_create_new_backup_with_metadata(
    rocksdb_backup_engine_t* be, rocksdb_t* db, const rocksdb_create_backup_options_t* options,
    const char* app_metadata, size_t app_metadata_len, uint32_t* backup_id, char** errptr);
ROCKSDB_API const char* rocksdb_backup_engine_info_app_metadata(
    const rocksdb_backup_engine_info_t* info, int index, size_t* len);
ROCKSDB_API void rocksdb_backup_engine_purge_old_backups(
    rocksdb_backup_engine_t* be, uint32_t num_backups_to_keep, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_verify_backup(
    rocksdb_backup_engine_t* be, uint32_t backup_id, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_stop_backup(rocksdb_backup_engine_t* be);
ROCKSDB_API void rocksdb_backup_engine_restore_db_from_latest_backup(
    rocksdb_backup_engine_t* be, const char* db_dir, const char* wal_dir, const
    rocksdb_restore_options_t* restore_options, char** errptr);
ROCKSDB_API void rocksdb_backup_engine_restore_db_from_backup(
    rocksdb_backup_engine_t* be, const char* db_dir, const char* wal_dir, const
    rocksdb_restore_options_t* restore_options, const uint32_t backup_id, char** errptr);
ROCKSDB_API void rocksdb_restore_options_set_keep_log_files(rocksdb_restore_options_t* opt, int v);
ROCKSDB_API unsigned char rocksdb_restore_options_get_keep_log_files(
    rocksdb_restore_options_t* opt);
ROCKSDB_API const rocksdb_backup_engine_info_t* rocksdb_backup_engine_get_backup_info(
    rocksdb_backup_engine_t* be);
ROCKSDB_API int rocksdb_backup_engine_info_count(const rocksdb_backup_engine_info_t* info);
ROCKSDB_API int64_t rocksdb_backup_engine_info_timestamp(
    const rocksdb_backup_engine_info_t* info, int index);
ROCKSDB_API uint32_t rocksdb_backup_engine_info_backup_id(
    const rocksdb_backup_engine_info_t* info, int index);
ROCKSDB_API uint64_t rocksdb_backup_engine_info_size(
    const rocksdb_backup_engine_info_t* info, int index);
ROCKSDB_API uint32_t rocksdb_backup_engine_info_number_files(
    const rocksdb_backup_engine_info_t* info, int index);
typedef void (*rocksdb_create_backup_options_progress_cb)(void* state);
typedef unsigned char (*rocksdb_create_backup_options_exclude_files_cb)(
    void* state, const char* relative_file, size_t relative_file_len);
ROCKSDB_API void rocksdb_create_backup_options_set_exclude_files_callback(
    rocksdb_create_backup_options_t* options, void* state,
    rocksdb_create_backup_options_exclude_files_cb callback);
ROCKSDB_API void rocksdb_create_backup_options_set_progress_callback(
    rocksdb_create_backup_options_t* options, void* state,
    rocksdb_create_backup_options_progress_cb callback);
ROCKSDB_API int rocksdb_restore_options_get_mode(rocksdb_restore_options_t* options);
ROCKSDB_API void rocksdb_restore_options_set_mode(rocksdb_restore_options_t* options, int v);

/* Databases with transactions: opening them, and their reads and writes outside of transactions. */

ROCKSDB_API rocksdb_transactiondb_options_t* rocksdb_transactiondb_options_create(void);
ROCKSDB_API void rocksdb_transactiondb_options_destroy(rocksdb_transactiondb_options_t* opt);
ROCKSDB_API void rocksdb_transactiondb_close_base_db(rocksdb_t* base_db);
ROCKSDB_API void rocksdb_optimistictransactiondb_close_base_db(rocksdb_t* base_db);
ROCKSDB_API void rocksdb_transactiondb_options_set_max_num_locks(
    rocksdb_transactiondb_options_t* opt, int64_t v);
ROCKSDB_API int64_t rocksdb_transactiondb_options_get_max_num_locks(
    rocksdb_transactiondb_options_t* opt);
ROCKSDB_API void rocksdb_transactiondb_options_set_max_num_deadlocks(
    rocksdb_transactiondb_options_t* opt, uint32_t v);
ROCKSDB_API uint32_t rocksdb_transactiondb_options_get_max_num_deadlocks(
    rocksdb_transactiondb_options_t* opt);
ROCKSDB_API void rocksdb_transactiondb_options_set_num_stripes(
    rocksdb_transactiondb_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_transactiondb_options_get_num_stripes(
    rocksdb_transactiondb_options_t* opt);
ROCKSDB_API void rocksdb_transactiondb_options_set_transaction_lock_timeout(
    rocksdb_transactiondb_options_t* opt, int64_t v);
ROCKSDB_API int64_t rocksdb_transactiondb_options_get_transaction_lock_timeout(
    rocksdb_transactiondb_options_t* opt);
ROCKSDB_API void rocksdb_transactiondb_options_set_default_lock_timeout(
    rocksdb_transactiondb_options_t* opt, int64_t v);
ROCKSDB_API int64_t rocksdb_transactiondb_options_get_default_lock_timeout(
    rocksdb_transactiondb_options_t* opt);
ROCKSDB_API void rocksdb_transactiondb_options_set_skip_concurrency_control(
    rocksdb_transactiondb_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_transactiondb_options_get_skip_concurrency_control(
    rocksdb_transactiondb_options_t* opt);
ROCKSDB_API rocksdb_transactiondb_t* rocksdb_transactiondb_open(
    const rocksdb_options_t* options, const rocksdb_transactiondb_options_t* txn_db_options, const
    char* name, char** errptr);
ROCKSDB_API rocksdb_transactiondb_t* rocksdb_transactiondb_open_column_families(
    const rocksdb_options_t* options, const rocksdb_transactiondb_options_t* txn_db_options, const
    char* name, int num_column_families, const char* const* column_family_names, const
    rocksdb_options_t* const* column_family_options, rocksdb_column_family_handle_t**
    column_family_handles, char** errptr);
ROCKSDB_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open(
    const rocksdb_options_t* options, const char* name, char** errptr);
ROCKSDB_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_column_families(
    const rocksdb_options_t* options, const char* name, int num_column_families, const char*
    const* column_family_names, const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_close(rocksdb_transactiondb_t* txn_db);
ROCKSDB_API void rocksdb_optimistictransactiondb_close(rocksdb_optimistictransactiondb_t* otxn_db);
ROCKSDB_API rocksdb_t* rocksdb_transactiondb_get_base_db(rocksdb_transactiondb_t* txn_db);
ROCKSDB_API rocksdb_t* rocksdb_optimistictransactiondb_get_base_db(
    rocksdb_optimistictransactiondb_t* otxn_db);
ROCKSDB_API rocksdb_column_family_handle_t* rocksdb_transactiondb_create_column_family(
    rocksdb_transactiondb_t* txn_db, const rocksdb_options_t* column_family_options, const char*
    column_family_name, char** errptr);
ROCKSDB_API rocksdb_checkpoint_t* rocksdb_transactiondb_checkpoint_object_create(
    rocksdb_transactiondb_t* txn_db, char** errptr);
ROCKSDB_API rocksdb_checkpoint_t* rocksdb_optimistictransactiondb_checkpoint_object_create(
    rocksdb_optimistictransactiondb_t* otxn_db, char** errptr);
ROCKSDB_API const rocksdb_snapshot_t* rocksdb_transactiondb_create_snapshot(
    rocksdb_transactiondb_t* txn_db);
ROCKSDB_API void rocksdb_transactiondb_release_snapshot(
    rocksdb_transactiondb_t* txn_db, const rocksdb_snapshot_t* snapshot);
ROCKSDB_API char* rocksdb_transactiondb_property_value(
    rocksdb_transactiondb_t* db, const char* propname);
ROCKSDB_API int rocksdb_transactiondb_property_int(
    rocksdb_transactiondb_t* db, const char* propname, uint64_t* out_val);
ROCKSDB_API void rocksdb_transactiondb_flush(
    rocksdb_transactiondb_t* txn_db, const rocksdb_flushoptions_t* options, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_flush_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t* column_family, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_flush_cfs(
    rocksdb_transactiondb_t* txn_db, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t** column_families, int num_column_families, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_flush_wal_with_options(
    rocksdb_transactiondb_t* txn_db, const rocksdb_flushwaloptions_t* options, char** errptr);
ROCKSDB_API char* rocksdb_optimistictransactiondb_property_value(
    rocksdb_optimistictransactiondb_t* db, const char* propname);
ROCKSDB_API int rocksdb_optimistictransactiondb_property_int(
    rocksdb_optimistictransactiondb_t* db, const char* propname, uint64_t* out_val);
ROCKSDB_API void rocksdb_transactiondb_flush_wal(
    rocksdb_transactiondb_t* txn_db, unsigned char sync, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_write(
    rocksdb_transactiondb_t* db, const rocksdb_writeoptions_t* options, rocksdb_writebatch_t*
    batch, char** errptr);
ROCKSDB_API void rocksdb_optimistictransactiondb_write(
    rocksdb_optimistictransactiondb_t* otxn_db, const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_t* batch, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_put(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* options, const char* key,
    size_t klen, const char* val, size_t vlen, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_put_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, const char*
    val, size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_merge(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* options, const char* key,
    size_t klen, const char* val, size_t vlen, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_merge_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t klen, const char* val,
    size_t vlen, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_delete(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* options, const char* key,
    size_t klen, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_delete_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API char* rocksdb_transactiondb_get(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options, const char* key, size_t
    klen, size_t* vlen, char** errptr);
ROCKSDB_API char* rocksdb_transactiondb_get_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, size_t* vallen,
    char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options, const char* key, size_t
    klen, char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, char** errptr);
ROCKSDB_API void rocksdb_transactiondb_multi_get(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options, size_t num_keys, const
    char* const* keys_list, const size_t* keys_list_sizes, char** values_list, size_t*
    values_list_sizes, char** errs);
ROCKSDB_API void rocksdb_transactiondb_multi_get_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options, const
    rocksdb_column_family_handle_t* const* column_families, size_t num_keys, const char* const*
    keys_list, const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes,
    char** errs);
ROCKSDB_API rocksdb_iterator_t* rocksdb_transactiondb_create_iterator(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options);
ROCKSDB_API rocksdb_iterator_t* rocksdb_transactiondb_create_iterator_cf(
    rocksdb_transactiondb_t* txn_db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family);
ROCKSDB_API size_t rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
ROCKSDB_API rocksdb_optimistictransactiondb_lock_buckets_t* rocksdb_optimistictransactiondb_lock_buckets_create(
    size_t bucket_count, unsigned char cache_aligned);
ROCKSDB_API void rocksdb_optimistictransactiondb_lock_buckets_destroy(
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
ROCKSDB_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
    const rocksdb_options_t* options, const rocksdb_optimistictransactiondb_options_t*
    otxn_db_options, const char* name, int num_column_families, const char* const*
    column_family_names, const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles, char** errptr);
ROCKSDB_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_with_otxn_db_options(
    const rocksdb_options_t* options, const rocksdb_optimistictransactiondb_options_t*
    otxn_db_options, const char* name, char** errptr);
ROCKSDB_API rocksdb_optimistictransactiondb_options_t* rocksdb_optimistictransactiondb_options_create(
    void);
ROCKSDB_API void rocksdb_optimistictransactiondb_options_destroy(
    rocksdb_optimistictransactiondb_options_t* options);
ROCKSDB_API uint32_t rocksdb_optimistictransactiondb_options_get_occ_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options);
ROCKSDB_API int rocksdb_optimistictransactiondb_options_get_validate_policy(
    rocksdb_optimistictransactiondb_options_t* options);
ROCKSDB_API void rocksdb_optimistictransactiondb_options_set_occ_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options, uint32_t v);
ROCKSDB_API void rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options,
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
ROCKSDB_API void rocksdb_optimistictransactiondb_options_set_validate_policy(
    rocksdb_optimistictransactiondb_options_t* options, int v);
ROCKSDB_API int64_t rocksdb_transactiondb_options_get_default_write_batch_flush_threshold(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_API unsigned char rocksdb_transactiondb_options_get_enable_udt_validation(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_API unsigned char rocksdb_transactiondb_options_get_rollback_merge_operands(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_API uint32_t rocksdb_transactiondb_options_get_txn_commit_bypass_memtable_threshold(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_API unsigned char rocksdb_transactiondb_options_get_use_per_key_point_lock_mgr(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_API int rocksdb_transactiondb_options_get_write_policy(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_API void rocksdb_transactiondb_options_set_default_write_batch_flush_threshold(
    rocksdb_transactiondb_options_t* options, int64_t v);
ROCKSDB_API void rocksdb_transactiondb_options_set_enable_udt_validation(
    rocksdb_transactiondb_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_transactiondb_options_set_rollback_merge_operands(
    rocksdb_transactiondb_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_transactiondb_options_set_txn_commit_bypass_memtable_threshold(
    rocksdb_transactiondb_options_t* options, uint32_t v);
ROCKSDB_API void rocksdb_transactiondb_options_set_use_per_key_point_lock_mgr(
    rocksdb_transactiondb_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_transactiondb_options_set_write_policy(
    rocksdb_transactiondb_options_t* options, int v);

/* Transactions. */

ROCKSDB_API rocksdb_transaction_options_t* rocksdb_transaction_options_create(void);
ROCKSDB_API rocksdb_optimistictransaction_options_t* rocksdb_optimistictransaction_options_create(
    void);
ROCKSDB_API void rocksdb_transaction_options_destroy(rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_optimistictransaction_options_destroy(
    rocksdb_optimistictransaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_destroy(rocksdb_transaction_t* txn);
ROCKSDB_API void rocksdb_transaction_options_set_set_snapshot(
    rocksdb_transaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_set_snapshot(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_deadlock_detect(
    rocksdb_transaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_deadlock_detect(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_lock_timeout(
    rocksdb_transaction_options_t* opt, int64_t v);
ROCKSDB_API int64_t rocksdb_transaction_options_get_lock_timeout(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_expiration(
    rocksdb_transaction_options_t* opt, int64_t v);
ROCKSDB_API int64_t rocksdb_transaction_options_get_expiration(rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_deadlock_detect_depth(
    rocksdb_transaction_options_t* opt, int64_t v);
ROCKSDB_API int64_t rocksdb_transaction_options_get_deadlock_detect_depth(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_max_write_batch_size(
    rocksdb_transaction_options_t* opt, size_t v);
ROCKSDB_API size_t rocksdb_transaction_options_get_max_write_batch_size(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_skip_concurrency_control(
    rocksdb_transaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_skip_concurrency_control(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_transaction_options_set_skip_prepare(
    rocksdb_transaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_skip_prepare(
    rocksdb_transaction_options_t* opt);
ROCKSDB_API void rocksdb_optimistictransaction_options_set_set_snapshot(
    rocksdb_optimistictransaction_options_t* opt, unsigned char v);
ROCKSDB_API unsigned char rocksdb_optimistictransaction_options_get_set_snapshot(
    rocksdb_optimistictransaction_options_t* opt);
ROCKSDB_API rocksdb_transaction_t* rocksdb_transaction_begin(
    rocksdb_transactiondb_t* txn_db, const rocksdb_writeoptions_t* write_options, const
    rocksdb_transaction_options_t* txn_options, rocksdb_transaction_t* old_txn);
ROCKSDB_API rocksdb_transaction_t* rocksdb_optimistictransaction_begin(
    rocksdb_optimistictransactiondb_t* otxn_db, const rocksdb_writeoptions_t* write_options, const
    rocksdb_optimistictransaction_options_t* otxn_options, rocksdb_transaction_t* old_txn);
ROCKSDB_API rocksdb_transaction_t** rocksdb_transactiondb_get_prepared_transactions(
    rocksdb_transactiondb_t* txn_db, size_t* cnt);
ROCKSDB_API void rocksdb_transaction_set_name(
    rocksdb_transaction_t* txn, const char* name, size_t name_len, char** errptr);
ROCKSDB_API char* rocksdb_transaction_get_name(rocksdb_transaction_t* txn, size_t* name_len);
ROCKSDB_API void rocksdb_transaction_prepare(rocksdb_transaction_t* txn, char** errptr);
ROCKSDB_API void rocksdb_transaction_commit(rocksdb_transaction_t* txn, char** errptr);
ROCKSDB_API void rocksdb_transaction_rollback(rocksdb_transaction_t* txn, char** errptr);
ROCKSDB_API void rocksdb_transaction_set_savepoint(rocksdb_transaction_t* txn);
ROCKSDB_API void rocksdb_transaction_rollback_to_savepoint(
    rocksdb_transaction_t* txn, char** errptr);
ROCKSDB_API const rocksdb_snapshot_t* rocksdb_transaction_get_snapshot(rocksdb_transaction_t* txn);
ROCKSDB_API rocksdb_writebatch_wi_t* rocksdb_transaction_get_writebatch_wi(
    rocksdb_transaction_t* txn);
ROCKSDB_API void rocksdb_transaction_rebuild_from_writebatch(
    rocksdb_transaction_t* txn, rocksdb_writebatch_t* writebatch, char** errptr);
ROCKSDB_API void rocksdb_transaction_rebuild_from_writebatch_wi(
    rocksdb_transaction_t* txn, rocksdb_writebatch_wi_t* wi, char** errptr);
ROCKSDB_API void rocksdb_transaction_set_commit_timestamp(
    rocksdb_transaction_t* txn, uint64_t commit_timestamp);
ROCKSDB_API void rocksdb_transaction_set_read_timestamp_for_validation(
    rocksdb_transaction_t* txn, uint64_t read_timestamp);
ROCKSDB_API void rocksdb_transaction_put(
    rocksdb_transaction_t* txn, const char* key, size_t klen, const char* val, size_t vlen, char**
    errptr);
ROCKSDB_API void rocksdb_transaction_put_cf(
    rocksdb_transaction_t* txn, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, const char* val, size_t vlen, char** errptr);
ROCKSDB_API void rocksdb_transaction_merge(
    rocksdb_transaction_t* txn, const char* key, size_t klen, const char* val, size_t vlen, char**
    errptr);
ROCKSDB_API void rocksdb_transaction_merge_cf(
    rocksdb_transaction_t* txn, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, const char* val, size_t vlen, char** errptr);
ROCKSDB_API void rocksdb_transaction_delete(
    rocksdb_transaction_t* txn, const char* key, size_t klen, char** errptr);
ROCKSDB_API void rocksdb_transaction_delete_cf(
    rocksdb_transaction_t* txn, rocksdb_column_family_handle_t* column_family, const char* key,
    size_t klen, char** errptr);
ROCKSDB_API char* rocksdb_transaction_get(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, const char* key, size_t
    klen, size_t* vlen, char** errptr);
ROCKSDB_API char* rocksdb_transaction_get_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t klen, size_t* vlen,
    char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, const char* key, size_t
    klen, char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t klen, char** errptr);
ROCKSDB_API char* rocksdb_transaction_get_for_update(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, const char* key, size_t
    klen, size_t* vlen, unsigned char exclusive, char** errptr);
ROCKSDB_API char* rocksdb_transaction_get_for_update_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t klen, size_t* vlen,
    unsigned char exclusive, char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, const char* key, size_t
    klen, unsigned char exclusive, char** errptr);
ROCKSDB_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family, const char* key, size_t klen, unsigned char
    exclusive, char** errptr);
ROCKSDB_API void rocksdb_transaction_multi_get(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, size_t num_keys, const char*
    const* keys_list, const size_t* keys_list_sizes, char** values_list, size_t*
    values_list_sizes, char** errs);
ROCKSDB_API void rocksdb_transaction_multi_get_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, const
    rocksdb_column_family_handle_t* const* column_families, size_t num_keys, const char* const*
    keys_list, const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes,
    char** errs);
ROCKSDB_API void rocksdb_transaction_multi_get_for_update(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, size_t num_keys, const char*
    const* keys_list, const size_t* keys_list_sizes, char** values_list, size_t*
    values_list_sizes, char** errs);
ROCKSDB_API void rocksdb_transaction_multi_get_for_update_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options, const
    rocksdb_column_family_handle_t* const* column_families, size_t num_keys, const char* const*
    keys_list, const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes,
    char** errs);
ROCKSDB_API rocksdb_iterator_t* rocksdb_transaction_create_iterator(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options);
ROCKSDB_API rocksdb_iterator_t* rocksdb_transaction_create_iterator_cf(
    rocksdb_transaction_t* txn, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* column_family);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_commit_bypass_memtable(
    rocksdb_transaction_options_t* options);
ROCKSDB_API int64_t rocksdb_transaction_options_get_deadlock_timeout_us(
    rocksdb_transaction_options_t* options);
ROCKSDB_API uint64_t rocksdb_transaction_options_get_large_txn_commit_optimize_byte_threshold(
    rocksdb_transaction_options_t* options);
ROCKSDB_API uint32_t rocksdb_transaction_options_get_large_txn_commit_optimize_threshold(
    rocksdb_transaction_options_t* options);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_use_only_the_last_commit_time_batch_for_recovery(
    rocksdb_transaction_options_t* options);
ROCKSDB_API int64_t rocksdb_transaction_options_get_write_batch_flush_threshold(
    rocksdb_transaction_options_t* options);
ROCKSDB_API unsigned char rocksdb_transaction_options_get_write_batch_track_timestamp_size(
    rocksdb_transaction_options_t* options);
ROCKSDB_API void rocksdb_transaction_options_set_commit_bypass_memtable(
    rocksdb_transaction_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_transaction_options_set_deadlock_timeout_us(
    rocksdb_transaction_options_t* options, int64_t v);
ROCKSDB_API void rocksdb_transaction_options_set_large_txn_commit_optimize_byte_threshold(
    rocksdb_transaction_options_t* options, uint64_t v);
ROCKSDB_API void rocksdb_transaction_options_set_large_txn_commit_optimize_threshold(
    rocksdb_transaction_options_t* options, uint32_t v);
ROCKSDB_API void rocksdb_transaction_options_set_use_only_the_last_commit_time_batch_for_recovery(
    rocksdb_transaction_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_transaction_options_set_write_batch_flush_threshold(
    rocksdb_transaction_options_t* options, int64_t v);
ROCKSDB_API void rocksdb_transaction_options_set_write_batch_track_timestamp_size(
    rocksdb_transaction_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_transaction_put_log_data(
    rocksdb_transaction_t* txn, const char* blob, size_t len);

/* A column family that moves from one database to another. */

ROCKSDB_API rocksdb_export_import_files_metadata_t* rocksdb_export_import_files_metadata_create(
    void);
ROCKSDB_API rocksdb_import_column_family_options_t* rocksdb_import_column_family_options_create(
    void);
ROCKSDB_API void rocksdb_export_import_files_metadata_destroy(
    rocksdb_export_import_files_metadata_t*);
ROCKSDB_API void rocksdb_import_column_family_options_destroy(
    rocksdb_import_column_family_options_t*);
ROCKSDB_API void rocksdb_import_column_family_options_set_move_files(
    rocksdb_import_column_family_options_t*, unsigned char);
ROCKSDB_API unsigned char rocksdb_import_column_family_options_get_move_files(
    rocksdb_import_column_family_options_t* opt);
ROCKSDB_API rocksdb_export_import_files_metadata_t* rocksdb_checkpoint_export_column_family(
    rocksdb_checkpoint_t* checkpoint, rocksdb_column_family_handle_t* column_family, const char*
    export_dir, char** errptr);
ROCKSDB_API char* rocksdb_export_import_files_metadata_get_db_comparator_name(
    rocksdb_export_import_files_metadata_t*);
ROCKSDB_API void rocksdb_export_import_files_metadata_set_db_comparator_name(
    rocksdb_export_import_files_metadata_t*, const char*);
ROCKSDB_API rocksdb_livefiles_t* rocksdb_export_import_files_metadata_get_files(
    rocksdb_export_import_files_metadata_t*);
ROCKSDB_API void rocksdb_export_import_files_metadata_set_files(
    rocksdb_export_import_files_metadata_t*, rocksdb_livefiles_t*);
ROCKSDB_API rocksdb_column_family_handle_t* rocksdb_create_column_family_with_import(
    rocksdb_t* db, rocksdb_options_t* column_family_options, const char* column_family_name,
    rocksdb_import_column_family_options_t* import_options,
    rocksdb_export_import_files_metadata_t* metadata, char** errptr);

/* Timestamps in keys, which there are not: each call says so. */

ROCKSDB_API void rocksdb_put_with_ts(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, const
    char* ts, size_t tslen, const char* val, size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_put_cf_with_ts(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, const char* ts, size_t tslen, const char* val,
    size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_delete_with_ts(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, const
    char* ts, size_t tslen, char** errptr);
ROCKSDB_API void rocksdb_delete_cf_with_ts(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, const char* ts, size_t tslen, char** errptr);
ROCKSDB_API void rocksdb_singledelete_with_ts(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t keylen, const
    char* ts, size_t tslen, char** errptr);
ROCKSDB_API void rocksdb_singledelete_cf_with_ts(
    rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, const char* ts, size_t tslen, char** errptr);
ROCKSDB_API char* rocksdb_get_with_ts(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t keylen, size_t*
    vallen, char** ts, size_t* tslen, char** errptr);
ROCKSDB_API char* rocksdb_get_cf_with_ts(
    rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t*
    column_family, const char* key, size_t keylen, size_t* vallen, char** ts, size_t* tslen,
    char** errptr);
ROCKSDB_API void rocksdb_multi_get_with_ts(
    rocksdb_t* db, const rocksdb_readoptions_t* options, size_t num_keys, const char* const*
    keys_list, const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes,
    char** timestamp_list, size_t* timestamp_list_sizes, char** errs);
ROCKSDB_API void rocksdb_multi_get_cf_with_ts(
    rocksdb_t* db, const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t*
    const* column_families, size_t num_keys, const char* const* keys_list, const size_t*
    keys_list_sizes, char** values_list, size_t* values_list_sizes, char** timestamps_list,
    size_t* timestamps_list_sizes, char** errs);
ROCKSDB_API void rocksdb_increase_full_history_ts_low(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* ts_low, size_t
    ts_lowlen, char** errptr);
ROCKSDB_API char* rocksdb_get_full_history_ts_low(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, size_t* ts_lowlen, char** errptr);
ROCKSDB_API void rocksdb_compactoptions_set_full_history_ts_low(
    rocksdb_compactoptions_t*, char* ts, size_t tslen);
ROCKSDB_API void rocksdb_sstfilewriter_put_with_ts(
    rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, const char* ts, size_t tslen,
    const char* val, size_t vallen, char** errptr);
ROCKSDB_API void rocksdb_sstfilewriter_delete_with_ts(
    rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, const char* ts, size_t tslen,
    char** errptr);

/* Listeners. Calls come one at a time, in order. A listener does not learn which database calls
   it: `rocksdb_t*` is NULL. Options take a listener that is added to them: it is destroyed with the last
   of these options and their databases, not by the program. What it is told of lives during the call. */

typedef void (*on_flush_begin_cb)(void*, rocksdb_t*, const rocksdb_flushjobinfo_t*);
typedef void (*on_flush_completed_cb)(void*, rocksdb_t*, const rocksdb_flushjobinfo_t*);
typedef void (*on_compaction_begin_cb)(void*, rocksdb_t*, const rocksdb_compactionjobinfo_t*);
typedef void (*on_compaction_completed_cb)(void*, rocksdb_t*, const rocksdb_compactionjobinfo_t*);
typedef void (*on_subcompaction_begin_cb)(void*, const rocksdb_subcompactionjobinfo_t*);
typedef void (*on_subcompaction_completed_cb)(void*, const rocksdb_subcompactionjobinfo_t*);
typedef void (*on_external_file_ingested_cb)(
    void*, rocksdb_t*, const rocksdb_externalfileingestioninfo_t*);
typedef void (*on_background_error_cb)(void*, uint32_t, rocksdb_status_ptr_t*);
typedef void (*on_stall_conditions_changed_cb)(void*, const rocksdb_writestallinfo_t*);
typedef void (*on_memtable_sealed_cb)(void*, const rocksdb_memtableinfo_t*);

ROCKSDB_API uint32_t rocksdb_flushjobinfo_cf_id(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API const char* rocksdb_flushjobinfo_cf_name(
    const rocksdb_flushjobinfo_t* info, size_t* size);
ROCKSDB_API const char* rocksdb_flushjobinfo_file_path(
    const rocksdb_flushjobinfo_t* info, size_t* size);
ROCKSDB_API uint64_t rocksdb_flushjobinfo_file_number(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_flushjobinfo_oldest_blob_file_number(
    const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_flushjobinfo_thread_id(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API int rocksdb_flushjobinfo_job_id(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API unsigned char rocksdb_flushjobinfo_triggered_writes_slowdown(
    const rocksdb_flushjobinfo_t* info);
ROCKSDB_API unsigned char rocksdb_flushjobinfo_triggered_writes_stop(
    const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_flushjobinfo_smallest_seqno(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_flushjobinfo_largest_seqno(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_flushjobinfo_flush_reason(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_flushjobinfo_blob_compression_type(const rocksdb_flushjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_compactionjobinfo_cf_id(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const char* rocksdb_compactionjobinfo_cf_name(
    const rocksdb_compactionjobinfo_t* info, size_t* size);
ROCKSDB_API void rocksdb_compactionjobinfo_status(
    const rocksdb_compactionjobinfo_t* info, char** errptr);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_thread_id(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API int rocksdb_compactionjobinfo_job_id(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API int rocksdb_compactionjobinfo_num_l0_files(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API int rocksdb_compactionjobinfo_base_input_level(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API int rocksdb_compactionjobinfo_output_level(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_compactionjobinfo_compaction_reason(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_compactionjobinfo_compression(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_compactionjobinfo_blob_compression_type(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API unsigned char rocksdb_compactionjobinfo_aborted(const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_subcompactionjobinfo_cf_id(const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API const char* rocksdb_subcompactionjobinfo_cf_name(
    const rocksdb_subcompactionjobinfo_t* info, size_t* size);
ROCKSDB_API void rocksdb_subcompactionjobinfo_status(
    const rocksdb_subcompactionjobinfo_t* info, char** errptr);
ROCKSDB_API uint64_t rocksdb_subcompactionjobinfo_thread_id(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API int rocksdb_subcompactionjobinfo_job_id(const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API int rocksdb_subcompactionjobinfo_subcompaction_job_id(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API int rocksdb_subcompactionjobinfo_base_input_level(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API int rocksdb_subcompactionjobinfo_output_level(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_subcompactionjobinfo_compaction_reason(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_subcompactionjobinfo_compression(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API uint32_t rocksdb_subcompactionjobinfo_blob_compression_type(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API const char* rocksdb_externalfileingestioninfo_cf_name(
    const rocksdb_externalfileingestioninfo_t* info, size_t* size);
ROCKSDB_API const char* rocksdb_externalfileingestioninfo_external_file_path(
    const rocksdb_externalfileingestioninfo_t* info, size_t* size);
ROCKSDB_API const char* rocksdb_externalfileingestioninfo_internal_file_path(
    const rocksdb_externalfileingestioninfo_t* info, size_t* size);
ROCKSDB_API uint64_t rocksdb_externalfileingestioninfo_global_seqno(
    const rocksdb_externalfileingestioninfo_t* info);
ROCKSDB_API const char* rocksdb_memtableinfo_cf_name(
    const rocksdb_memtableinfo_t* info, size_t* size);
ROCKSDB_API uint64_t rocksdb_memtableinfo_first_seqno(const rocksdb_memtableinfo_t* info);
ROCKSDB_API uint64_t rocksdb_memtableinfo_earliest_seqno(const rocksdb_memtableinfo_t* info);
ROCKSDB_API uint64_t rocksdb_memtableinfo_num_entries(const rocksdb_memtableinfo_t* info);
ROCKSDB_API uint64_t rocksdb_memtableinfo_num_deletes(const rocksdb_memtableinfo_t* info);
ROCKSDB_API const char* rocksdb_memtableinfo_newest_udt(
    const rocksdb_memtableinfo_t* info, size_t* size);
ROCKSDB_API size_t rocksdb_compactionjobinfo_input_files_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API size_t rocksdb_compactionjobinfo_output_files_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_elapsed_micros(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_num_corrupt_keys(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_input_records(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_output_records(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_total_input_bytes(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionjobinfo_total_output_bytes(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API size_t rocksdb_compactionjobinfo_num_input_files(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API size_t rocksdb_compactionjobinfo_num_input_files_at_output_level(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const char* rocksdb_writestallinfo_cf_name(
    const rocksdb_writestallinfo_t* info, size_t* size);
ROCKSDB_API const rocksdb_writestallcondition_t* rocksdb_writestallinfo_cur(
    const rocksdb_writestallinfo_t* info);
ROCKSDB_API const rocksdb_writestallcondition_t* rocksdb_writestallinfo_prev(
    const rocksdb_writestallinfo_t* info);
ROCKSDB_API uint64_t rocksdb_table_properties_orig_file_number(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_data_size(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_index_size(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_index_partitions(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_top_level_index_size(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_index_key_is_user_key(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_index_value_is_delta_encoded(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_filter_size(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_raw_key_size(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_raw_value_size(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_data_blocks(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_entries(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_filter_entries(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_deletions(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_merge_operands(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_range_deletions(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_format_version(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_fixed_key_len(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_column_family_id(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_creation_time(const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_oldest_key_time(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_newest_key_time(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_file_creation_time(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_tail_start_offset(
    const rocksdb_table_properties_t* props);
ROCKSDB_API const char* rocksdb_table_properties_db_id(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_db_session_id(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_db_host_id(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_column_family_name(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_filter_policy_name(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_comparator_name(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_merge_operator_name(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_prefix_extractor_name(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_property_collectors_names(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_compression_name(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API const char* rocksdb_table_properties_compression_options(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_elapsed_micros(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API unsigned char rocksdb_compaction_job_stats_has_accurate_num_input_records(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_input_records(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_input_files(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_input_files_trivially_moved(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_input_files_at_output_level(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_output_records(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_output_files(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_output_files_blob(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API unsigned char rocksdb_compaction_job_stats_is_full_compaction(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API unsigned char rocksdb_compaction_job_stats_is_manual_compaction(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API unsigned char rocksdb_compaction_job_stats_is_remote_compaction(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_input_bytes(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_output_bytes(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_output_bytes_blob(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_input_raw_key_bytes(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_input_raw_value_bytes(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_input_deletion_records(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_corrupt_keys(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API int rocksdb_compaction_file_info_level(const rocksdb_compaction_file_info_t* info);
ROCKSDB_API uint64_t rocksdb_compaction_file_info_file_number(
    const rocksdb_compaction_file_info_t* info);
ROCKSDB_API uint64_t rocksdb_compaction_file_info_oldest_blob_file_number(
    const rocksdb_compaction_file_info_t* info);
ROCKSDB_API const char* rocksdb_blob_file_addition_info_blob_file_path(
    const rocksdb_blob_file_addition_info_t* info, size_t* size);
ROCKSDB_API uint64_t rocksdb_blob_file_addition_info_blob_file_number(
    const rocksdb_blob_file_addition_info_t* info);
ROCKSDB_API uint64_t rocksdb_blob_file_addition_info_total_blob_count(
    const rocksdb_blob_file_addition_info_t* info);
ROCKSDB_API uint64_t rocksdb_blob_file_addition_info_total_blob_bytes(
    const rocksdb_blob_file_addition_info_t* info);
ROCKSDB_API const char* rocksdb_blob_file_garbage_info_blob_file_path(
    const rocksdb_blob_file_garbage_info_t* info, size_t* size);
ROCKSDB_API uint64_t rocksdb_blob_file_garbage_info_blob_file_number(
    const rocksdb_blob_file_garbage_info_t* info);
ROCKSDB_API uint64_t rocksdb_blob_file_garbage_info_garbage_blob_count(
    const rocksdb_blob_file_garbage_info_t* info);
ROCKSDB_API uint64_t rocksdb_blob_file_garbage_info_garbage_blob_bytes(
    const rocksdb_blob_file_garbage_info_t* info);
ROCKSDB_API void rocksdb_status_ptr_get_error(rocksdb_status_ptr_t* status, char** errptr);
ROCKSDB_API size_t rocksdb_table_properties_user_collected_properties_count(
    const rocksdb_table_properties_t* props);
ROCKSDB_API const char* rocksdb_table_properties_user_collected_properties_key_at(
    const rocksdb_table_properties_t* props, size_t pos, size_t* key_len);
ROCKSDB_API const char* rocksdb_table_properties_user_collected_properties_value_at(
    const rocksdb_table_properties_t* props, size_t pos, size_t* value_len);
ROCKSDB_API const rocksdb_table_properties_t* rocksdb_flushjobinfo_table_properties(
    const rocksdb_flushjobinfo_t* info);
ROCKSDB_API size_t rocksdb_flushjobinfo_blob_file_addition_infos_count(
    const rocksdb_flushjobinfo_t* info);
ROCKSDB_API const rocksdb_blob_file_addition_info_t* rocksdb_flushjobinfo_blob_file_addition_info_at(
    const rocksdb_flushjobinfo_t* info, size_t pos);
ROCKSDB_API const char* rocksdb_compactionjobinfo_input_file_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos, size_t* size);
ROCKSDB_API const char* rocksdb_compactionjobinfo_output_file_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos, size_t* size);
ROCKSDB_API const rocksdb_compaction_job_stats_t* rocksdb_compactionjobinfo_stats(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API size_t rocksdb_compactionjobinfo_input_file_infos_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const rocksdb_compaction_file_info_t* rocksdb_compactionjobinfo_input_file_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos);
ROCKSDB_API size_t rocksdb_compactionjobinfo_output_file_infos_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const rocksdb_compaction_file_info_t* rocksdb_compactionjobinfo_output_file_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos);
ROCKSDB_API size_t rocksdb_compactionjobinfo_table_properties_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const char* rocksdb_compactionjobinfo_table_properties_key_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos, size_t* key_len);
ROCKSDB_API const rocksdb_table_properties_t* rocksdb_compactionjobinfo_table_properties_value_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos);
ROCKSDB_API const rocksdb_table_properties_t* rocksdb_compactionjobinfo_table_properties_for_file(
    const rocksdb_compactionjobinfo_t* info, const char* file_name, size_t file_name_len);
ROCKSDB_API size_t rocksdb_compactionjobinfo_blob_file_addition_infos_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const rocksdb_blob_file_addition_info_t* rocksdb_compactionjobinfo_blob_file_addition_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos);
ROCKSDB_API size_t rocksdb_compactionjobinfo_blob_file_garbage_infos_count(
    const rocksdb_compactionjobinfo_t* info);
ROCKSDB_API const rocksdb_blob_file_garbage_info_t* rocksdb_compactionjobinfo_blob_file_garbage_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t pos);
ROCKSDB_API const rocksdb_table_properties_t* rocksdb_externalfileingestioninfo_table_properties(
    const rocksdb_externalfileingestioninfo_t* info);
ROCKSDB_API rocksdb_eventlistener_t* rocksdb_eventlistener_create(
    void* state_, void (*destructor_)(void*), on_flush_begin_cb on_flush_begin,
    on_flush_completed_cb on_flush_completed, on_compaction_begin_cb on_compaction_begin,
    on_compaction_completed_cb on_compaction_completed, on_subcompaction_begin_cb
    on_subcompaction_begin, on_subcompaction_completed_cb on_subcompaction_completed,
    on_external_file_ingested_cb on_external_file_ingested, on_background_error_cb
    on_background_error, on_stall_conditions_changed_cb on_stall_conditions_changed,
    on_memtable_sealed_cb on_memtable_sealed);
ROCKSDB_API void rocksdb_eventlistener_destroy(rocksdb_eventlistener_t*);
ROCKSDB_API void rocksdb_options_add_eventlistener(rocksdb_options_t*, rocksdb_eventlistener_t*);
ROCKSDB_API rocksdb_sst_partitioner_factory_t* rocksdb_sst_partitioner_fixed_prefix_factory_create(
    size_t prefix_len);
ROCKSDB_API void rocksdb_sst_partitioner_factory_destroy(rocksdb_sst_partitioner_factory_t* factory);
ROCKSDB_API void rocksdb_options_set_sst_partitioner_factory(
    rocksdb_options_t*, rocksdb_sst_partitioner_factory_t*);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_cpu_micros(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_file_fsync_nanos(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_file_prepare_write_nanos(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_file_range_sync_nanos(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_file_write_nanos(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API const char* rocksdb_compaction_job_stats_largest_output_key_prefix(
    const rocksdb_compaction_job_stats_t* stats, size_t* size);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_blobs_read(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_expired_deletion_records(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_filtered_input_files(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API size_t rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_records_replaced(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_single_del_fallthru(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_num_single_del_mismatch(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API const char* rocksdb_compaction_job_stats_smallest_output_key_prefix(
    const rocksdb_compaction_job_stats_t* stats, size_t* size);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_blob_bytes_read(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API uint64_t rocksdb_compaction_job_stats_total_skipped_input_bytes(
    const rocksdb_compaction_job_stats_t* stats);
ROCKSDB_API rocksdb_compactionjobinfo_t* rocksdb_compactionjobinfo_create(void);
ROCKSDB_API void rocksdb_compactionjobinfo_destroy(rocksdb_compactionjobinfo_t* info);
ROCKSDB_API void rocksdb_reset_status(rocksdb_status_ptr_t* status_ptr);
ROCKSDB_API const rocksdb_compaction_job_stats_t* rocksdb_subcompactionjobinfo_stats(
    const rocksdb_subcompactionjobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_table_properties_data_block_restart_interval(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_external_sst_file_global_seqno_offset(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_fast_compression_estimated_data_size(
    const rocksdb_table_properties_t* props);
ROCKSDB_API unsigned char rocksdb_table_properties_has_key_largest_seqno(
    const rocksdb_table_properties_t* props);
ROCKSDB_API unsigned char rocksdb_table_properties_has_key_smallest_seqno(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_index_block_restart_interval(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_key_largest_seqno(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_key_smallest_seqno(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_data_blocks_compression_bypassed(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_data_blocks_compression_rejected(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_num_uniform_blocks(
    const rocksdb_table_properties_t* props);
ROCKSDB_API size_t rocksdb_table_properties_readable_properties_count(
    const rocksdb_table_properties_t* props);
ROCKSDB_API const char* rocksdb_table_properties_readable_properties_key_at(
    const rocksdb_table_properties_t* props, size_t pos, size_t* key_len);
ROCKSDB_API const char* rocksdb_table_properties_readable_properties_value_at(
    const rocksdb_table_properties_t* props, size_t pos, size_t* value_len);
ROCKSDB_API uint64_t rocksdb_table_properties_separate_key_value_in_data_block(
    const rocksdb_table_properties_t* props);
ROCKSDB_API const char* rocksdb_table_properties_seqno_to_time_mapping(
    const rocksdb_table_properties_t* props, size_t* size);
ROCKSDB_API uint64_t rocksdb_table_properties_slow_compression_estimated_data_size(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_udi_is_primary_index(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_uncompressed_data_size(
    const rocksdb_table_properties_t* props);
ROCKSDB_API uint64_t rocksdb_table_properties_user_defined_timestamps_persisted(
    const rocksdb_table_properties_t* props);

/* Compactions that other processes do: the service of a database, and what a worker calls. */

typedef rocksdb_compactionservice_scheduleresponse_t* (*rocksdb_compaction_service_schedule_cb)(
    void* state, const rocksdb_compactionservice_jobinfo_t* info,
    const char* compaction_service_input, size_t input_len);
typedef int (*rocksdb_compaction_service_wait_cb)(
    void* state, const char* scheduled_job_id, char** result, size_t* result_len);
typedef void (*rocksdb_compaction_service_cancel_awaiting_jobs_cb)(void* state);
typedef void (*rocksdb_compaction_service_on_installation_cb)(
    void* state, const char* scheduled_job_id, int status);

ROCKSDB_API rocksdb_compactionservice_scheduleresponse_t*
rocksdb_compactionservice_scheduleresponse_create(
    const char* scheduled_job_id, int status, char** errptr);
ROCKSDB_API rocksdb_compactionservice_scheduleresponse_t*
rocksdb_compactionservice_scheduleresponse_create_with_status(int status, char** errptr);
ROCKSDB_API int rocksdb_compactionservice_scheduleresponse_getstatus(
    const rocksdb_compactionservice_scheduleresponse_t* response);
ROCKSDB_API const char* rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(
    const rocksdb_compactionservice_scheduleresponse_t* response, size_t* len);
ROCKSDB_API void rocksdb_compactionservice_scheduleresponse_t_destroy(
    rocksdb_compactionservice_scheduleresponse_t* response);
ROCKSDB_API const char* rocksdb_compactionservice_jobinfo_t_get_db_name(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* len);
ROCKSDB_API const char* rocksdb_compactionservice_jobinfo_t_get_db_id(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* len);
ROCKSDB_API const char* rocksdb_compactionservice_jobinfo_t_get_db_session_id(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* len);
ROCKSDB_API const char* rocksdb_compactionservice_jobinfo_t_get_cf_name(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* len);
ROCKSDB_API uint32_t rocksdb_compactionservice_jobinfo_t_get_cf_id(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API uint64_t rocksdb_compactionservice_jobinfo_t_get_job_id(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API int rocksdb_compactionservice_jobinfo_t_get_priority(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API int rocksdb_compactionservice_jobinfo_t_get_compaction_reason(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API int rocksdb_compactionservice_jobinfo_t_get_base_input_level(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API int rocksdb_compactionservice_jobinfo_t_get_output_level(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API unsigned char rocksdb_compactionservice_jobinfo_t_is_full_compaction(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API unsigned char rocksdb_compactionservice_jobinfo_t_is_manual_compaction(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API unsigned char rocksdb_compactionservice_jobinfo_t_is_bottommost_level(
    const rocksdb_compactionservice_jobinfo_t* info);
ROCKSDB_API rocksdb_compactionservice_t* rocksdb_compactionservice_create(
    void* state, void (*destructor)(void*), rocksdb_compaction_service_schedule_cb schedule,
    const char* name, rocksdb_compaction_service_wait_cb wait,
    rocksdb_compaction_service_cancel_awaiting_jobs_cb cancel_awaiting_jobs,
    rocksdb_compaction_service_on_installation_cb on_installation);
ROCKSDB_API void rocksdb_options_set_compaction_service(
    rocksdb_options_t* options, rocksdb_compactionservice_t* service);
ROCKSDB_API rocksdb_compaction_service_options_override_t*
rocksdb_compaction_service_options_override_create(void);
ROCKSDB_API rocksdb_compaction_service_options_override_t*
rocksdb_compaction_service_options_override_create_from_options(rocksdb_options_t* option);
ROCKSDB_API void rocksdb_compaction_service_options_override_destroy(
    rocksdb_compaction_service_options_override_t* override_options);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_env(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_env_t* env);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_comparator(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_comparator_t* comparator);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_merge_operator(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_mergeoperator_t* merge_operator);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_compaction_filter(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_compactionfilter_t* compaction_filter);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_compaction_filter_factory(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_compactionfilterfactory_t* compaction_filter_factory);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_prefix_extractor(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_slicetransform_t* prefix_extractor);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_block_based_table_factory(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_block_based_table_options_t* table_options);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_cuckoo_table_factory(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_cuckoo_table_options_t* table_options);
ROCKSDB_API void rocksdb_compaction_service_options_override_add_event_listener(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_eventlistener_t* event_listener);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_statistics(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_options_t* options);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_info_log(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_logger_t* logger);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_option(
    rocksdb_compaction_service_options_override_t* override_options,
    const char* key, const char* value);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_file_checksum_gen_factory_t* factory);
ROCKSDB_API void rocksdb_compaction_service_options_override_set_sst_partitioner_factory(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_sst_partitioner_factory_t* factory);
ROCKSDB_API unsigned char* rocksdb_open_and_compact_canceled_create(void);
ROCKSDB_API void rocksdb_open_and_compact_canceled_destroy(unsigned char* canceled);
ROCKSDB_API void rocksdb_open_and_compact_canceled_set(
    unsigned char* canceled, unsigned char value);
ROCKSDB_API rocksdb_open_and_compact_options_t* rocksdb_open_and_compact_options_create(void);
ROCKSDB_API void rocksdb_open_and_compact_options_destroy(
    rocksdb_open_and_compact_options_t* options);
ROCKSDB_API void rocksdb_open_and_compact_options_set_canceled(
    rocksdb_open_and_compact_options_t* options, unsigned char* canceled);
ROCKSDB_API void rocksdb_open_and_compact_options_set_allow_resumption(
    rocksdb_open_and_compact_options_t* options, unsigned char allow_resumption);
ROCKSDB_API unsigned char rocksdb_open_and_compact_options_get_allow_resumption(
    rocksdb_open_and_compact_options_t* options);
ROCKSDB_API char* rocksdb_open_and_compact(
    const char* db_path, const char* output_directory, const char* input, size_t input_len,
    size_t* output_len, const rocksdb_compaction_service_options_override_t* override_options,
    char** errptr);
ROCKSDB_API char* rocksdb_open_and_compact_with_options(
    const rocksdb_open_and_compact_options_t* options, const char* db_path,
    const char* output_directory, const char* input, size_t input_len, size_t* output_len,
    const rocksdb_compaction_service_options_override_t* override_options, char** errptr);

/* What files take, how fast they are removed, and their checksums. */

ROCKSDB_API void rocksdb_sst_file_manager_destroy(rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API void rocksdb_file_checksum_gen_factory_destroy(
    rocksdb_file_checksum_gen_factory_t* factory);
ROCKSDB_API void rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(
    rocksdb_sst_file_manager_t* sfm, int64_t delete_rate);
ROCKSDB_API int64_t rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(
    rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API void rocksdb_sst_file_manager_set_max_trash_db_ratio(
    rocksdb_sst_file_manager_t* sfm, double ratio);
ROCKSDB_API double rocksdb_sst_file_manager_get_max_trash_db_ratio(rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API rocksdb_sst_file_manager_t* rocksdb_sst_file_manager_create(rocksdb_env_t* env);
ROCKSDB_API void rocksdb_options_set_sst_file_manager(
    rocksdb_options_t* opt, rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API void rocksdb_sst_file_manager_set_max_allowed_space_usage(
    rocksdb_sst_file_manager_t* sfm, uint64_t max_allowed_space);
ROCKSDB_API void rocksdb_sst_file_manager_set_compaction_buffer_size(
    rocksdb_sst_file_manager_t* sfm, uint64_t compaction_buffer_size);
ROCKSDB_API bool rocksdb_sst_file_manager_is_max_allowed_space_reached(
    rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API bool rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(
    rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API uint64_t rocksdb_sst_file_manager_get_total_size(rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API uint64_t rocksdb_sst_file_manager_get_total_trash_size(rocksdb_sst_file_manager_t* sfm);
ROCKSDB_API rocksdb_file_checksum_gen_factory_t* rocksdb_file_checksum_gen_crc32c_factory_create(
    void);
ROCKSDB_API void rocksdb_options_set_file_checksum_gen_factory(
    rocksdb_options_t* opt, rocksdb_file_checksum_gen_factory_t* factory);
ROCKSDB_API void rocksdb_verify_file_checksums(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_verify_file_checksums_with_options(
    rocksdb_t* db, const rocksdb_readoptions_t* options, char** errptr);

/* Compactions of chosen tables. */

ROCKSDB_API void rocksdb_compact_files(
    rocksdb_t* db, const rocksdb_compaction_options_t* options, const char* const*
    input_file_names, size_t num_input_file_names, int output_level, int output_path_id, char***
    output_file_names, size_t* num_output_file_names, rocksdb_compactionjobinfo_t*
    compaction_job_info, char** errptr);
ROCKSDB_API void rocksdb_compact_files_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const
    rocksdb_compaction_options_t* options, const char* const* input_file_names, size_t
    num_input_file_names, int output_level, int output_path_id, char*** output_file_names, size_t*
    num_output_file_names, rocksdb_compactionjobinfo_t* compaction_job_info, char** errptr);
ROCKSDB_API void rocksdb_compact_files_output_file_names_destroy(
    char** output_file_names, size_t num_output_file_names);
ROCKSDB_API unsigned char* rocksdb_compaction_options_canceled_create(void);
ROCKSDB_API void rocksdb_compaction_options_canceled_destroy(unsigned char* canceled);
ROCKSDB_API void rocksdb_compaction_options_canceled_set(
    unsigned char* canceled, unsigned char value);
ROCKSDB_API rocksdb_compaction_options_t* rocksdb_compaction_options_create(void);
ROCKSDB_API void rocksdb_compaction_options_destroy(rocksdb_compaction_options_t*);
ROCKSDB_API unsigned char rocksdb_compaction_options_get_allow_trivial_move(
    rocksdb_compaction_options_t* options);
ROCKSDB_API int rocksdb_compaction_options_get_compression(rocksdb_compaction_options_t* options);
ROCKSDB_API uint32_t rocksdb_compaction_options_get_max_subcompactions(
    rocksdb_compaction_options_t* options);
ROCKSDB_API uint64_t rocksdb_compaction_options_get_output_file_size_limit(
    rocksdb_compaction_options_t* options);
ROCKSDB_API int rocksdb_compaction_options_get_output_temperature_override(
    rocksdb_compaction_options_t* options);
ROCKSDB_API void rocksdb_compaction_options_set_allow_trivial_move(
    rocksdb_compaction_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_compaction_options_set_canceled(
    rocksdb_compaction_options_t* options, unsigned char* canceled);
ROCKSDB_API void rocksdb_compaction_options_set_compression(
    rocksdb_compaction_options_t* options, int v);
ROCKSDB_API void rocksdb_compaction_options_set_max_subcompactions(
    rocksdb_compaction_options_t* options, uint32_t v);
ROCKSDB_API void rocksdb_compaction_options_set_output_file_size_limit(
    rocksdb_compaction_options_t* options, uint64_t v);
ROCKSDB_API void rocksdb_compaction_options_set_output_temperature_override(
    rocksdb_compaction_options_t* options, int v);

/* The files that a copy of a database needs. */

ROCKSDB_API rocksdb_livefiles_storage_info_t* rocksdb_get_livefiles_storage_info(
    rocksdb_t* db, const rocksdb_livefiles_storage_info_options_t* options, char** errptr);
ROCKSDB_API size_t rocksdb_livefiles_storage_info_count(
    const rocksdb_livefiles_storage_info_t* info);
ROCKSDB_API void rocksdb_livefiles_storage_info_destroy(rocksdb_livefiles_storage_info_t* info);
ROCKSDB_API const char* rocksdb_livefiles_storage_info_directory(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API const char* rocksdb_livefiles_storage_info_file_checksum(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API const char* rocksdb_livefiles_storage_info_file_checksum_func_name(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API uint64_t rocksdb_livefiles_storage_info_file_number(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API int rocksdb_livefiles_storage_info_file_type(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API rocksdb_livefiles_storage_info_options_t* rocksdb_livefiles_storage_info_options_create(
    void);
ROCKSDB_API void rocksdb_livefiles_storage_info_options_destroy(
    rocksdb_livefiles_storage_info_options_t* options);
ROCKSDB_API unsigned char rocksdb_livefiles_storage_info_options_get_atomic_flush(
    rocksdb_livefiles_storage_info_options_t* options);
ROCKSDB_API unsigned char rocksdb_livefiles_storage_info_options_get_include_checksum_info(
    rocksdb_livefiles_storage_info_options_t* options);
ROCKSDB_API uint64_t rocksdb_livefiles_storage_info_options_get_wal_size_for_flush(
    rocksdb_livefiles_storage_info_options_t* options);
ROCKSDB_API void rocksdb_livefiles_storage_info_options_set_atomic_flush(
    rocksdb_livefiles_storage_info_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_livefiles_storage_info_options_set_include_checksum_info(
    rocksdb_livefiles_storage_info_options_t* options, unsigned char v);
ROCKSDB_API void rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(
    rocksdb_livefiles_storage_info_options_t* options, uint64_t v);
ROCKSDB_API const char* rocksdb_livefiles_storage_info_relative_filename(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API const char* rocksdb_livefiles_storage_info_replacement_contents(
    const rocksdb_livefiles_storage_info_t* info, size_t index, size_t* size);
ROCKSDB_API uint64_t rocksdb_livefiles_storage_info_size(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API int rocksdb_livefiles_storage_info_temperature(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
ROCKSDB_API unsigned char rocksdb_livefiles_storage_info_trim_to_size(
    const rocksdb_livefiles_storage_info_t* info, size_t index);

/* The WALs of a database. */

ROCKSDB_API rocksdb_wal_file_t* rocksdb_get_current_wal_file(rocksdb_t* db, char** errptr);
ROCKSDB_API rocksdb_wal_files_t* rocksdb_get_sorted_wal_files(rocksdb_t* db, char** errptr);
ROCKSDB_API void rocksdb_wal_file_destroy(rocksdb_wal_file_t* file);
ROCKSDB_API uint64_t rocksdb_wal_file_log_number(const rocksdb_wal_file_t* file);
ROCKSDB_API const char* rocksdb_wal_file_path_name(const rocksdb_wal_file_t* file);
ROCKSDB_API uint64_t rocksdb_wal_file_size_file_bytes(const rocksdb_wal_file_t* file);
ROCKSDB_API uint64_t rocksdb_wal_file_start_sequence(const rocksdb_wal_file_t* file);
ROCKSDB_API int rocksdb_wal_file_type(const rocksdb_wal_file_t* file);
ROCKSDB_API size_t rocksdb_wal_files_count(const rocksdb_wal_files_t* files);
ROCKSDB_API void rocksdb_wal_files_destroy(rocksdb_wal_files_t* files);
ROCKSDB_API const rocksdb_wal_file_t* rocksdb_wal_files_get_wal_file(
    const rocksdb_wal_files_t* files, size_t index);

/* Filters that decide which records of WALs an opening replays. Databases and options share them. */

typedef void (*rocksdb_walfilter_column_family_log_number_map_cb)(
    void* state, const uint32_t* column_family_ids, const uint64_t* log_numbers,
    size_t column_family_log_number_count, const char* const* column_family_names,
    const size_t* column_family_name_lengths, const uint32_t* column_family_name_ids,
    size_t column_family_name_count);
typedef int (*rocksdb_walfilter_log_record_found_cb)(
    void* state, unsigned long long log_number, const char* log_file_name,
    size_t log_file_name_len, const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* new_batch,
    unsigned char* batch_changed);

ROCKSDB_API void rocksdb_options_clear_wal_filter(rocksdb_options_t*);
ROCKSDB_API void rocksdb_options_set_wal_filter(rocksdb_options_t*, rocksdb_walfilter_t*);
ROCKSDB_API rocksdb_walfilter_t* rocksdb_walfilter_create(
    void* state, void (*destructor)(void*), rocksdb_walfilter_column_family_log_number_map_cb
    column_family_log_number_map, rocksdb_walfilter_log_record_found_cb log_record_found, const
    char* (*name)(void*));
ROCKSDB_API void rocksdb_walfilter_destroy(rocksdb_walfilter_t*);

/* Calls of the header for what there is not, where a binding needs the symbol. Where a call has a
   place for an error, it says so; otherwise the opening of a database does, or nothing has an
   effect. */

ROCKSDB_API void rocksdb_memory_allocator_destroy(rocksdb_memory_allocator_t*);
ROCKSDB_API rocksdb_memory_allocator_t* rocksdb_jemalloc_nodump_allocator_create(char** errptr);
ROCKSDB_API void rocksdb_lru_cache_options_set_memory_allocator(
    rocksdb_lru_cache_options_t*, rocksdb_memory_allocator_t*);
ROCKSDB_API void rocksdb_hyper_clock_cache_options_set_memory_allocator(
    rocksdb_hyper_clock_cache_options_t*, rocksdb_memory_allocator_t*);
ROCKSDB_API rocksdb_t* rocksdb_open_and_trim_history(
    const rocksdb_options_t* options, const char* name, int num_column_families, const char*
    const* column_family_names, const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles, char* trim_ts, size_t trim_tslen,
    char** errptr);
ROCKSDB_API void
rocksdb_compaction_service_options_override_add_table_properties_collector_factory(
    rocksdb_compaction_service_options_override_t* override_options,
    rocksdb_table_properties_collector_factory_t* factory);
ROCKSDB_API void rocksdb_delete_file(rocksdb_t* db, const char* name);
ROCKSDB_API void rocksdb_options_add_table_properties_collector_factory(
    rocksdb_options_t*, rocksdb_table_properties_collector_factory_t*);
ROCKSDB_API void rocksdb_table_properties_collector_factory_destroy(
    rocksdb_table_properties_collector_factory_t* factory);

/* What RocksDB has in C++ alone. */

/* `DB::Resume`: accepts writes again, if the disk that was full has room. */
ROCKSDB_API void rocksdb_resume(rocksdb_t* db, char** errptr);
/* `Status::severity`: 0 after `rocksdb_reset_status`, 2 if writes may be accepted again, 3 if only
   reopening helps. */
ROCKSDB_API unsigned char rocksdb_status_ptr_get_severity(rocksdb_status_ptr_t* status);
/* `EventListener::OnErrorRecoveryBegin`, with the reason, and `OnErrorRecoveryEnd`, with the
   earlier error, and the one that stays, or NULL. To be set before the listener is given away. */
typedef void (*on_error_recovery_begin_cb)(void*, uint32_t, rocksdb_status_ptr_t*);
typedef void (*on_error_recovery_end_cb)(void*, rocksdb_status_ptr_t*, rocksdb_status_ptr_t*);
ROCKSDB_API void rocksdb_eventlistener_set_error_recovery(
    rocksdb_eventlistener_t*, on_error_recovery_begin_cb begin, on_error_recovery_end_cb end);

#ifdef __cplusplus
} /* extern "C" */
#endif
