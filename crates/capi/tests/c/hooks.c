/* Listeners and partitioners, as a program uses them. Its only argument is an empty directory. Each
   check ends the program with the line that failed. */

#include "check.h"

/* Calls come one at a time. */
struct counts {
  int sealed, flushes_begun, flushes, compactions_begun, compactions, parts_begun, parts, ingested;
  uint64_t flushed_entries;
};

static struct counts counts;
static int destroyed = 0;

static void destroy(void* state) {
  CHECK(state == &counts);
  destroyed++;
}

static int is(const char* text, size_t len, const char* wanted) {
  return len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

static int ends_with(const char* text, size_t len, const char* end) {
  return len >= strlen(end) && memcmp(text + len - strlen(end), end, strlen(end)) == 0;
}

static void on_flush_begin(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  size_t len;
  CHECK(state == &counts && db == NULL);
  const char* name = rocksdb_flushjobinfo_cf_name(info, &len);
  CHECK(is(name, len, "default") && rocksdb_flushjobinfo_job_id(info) > 0);
  CHECK(rocksdb_flushjobinfo_file_number(info) == 0);
  CHECK(rocksdb_flushjobinfo_smallest_seqno(info) == (UINT64_C(1) << 56) - 1);
  counts.flushes_begun++;
}

static void on_flush(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  size_t len;
  CHECK(state == &counts && db == NULL && rocksdb_flushjobinfo_cf_id(info) == 0);
  const char* path = rocksdb_flushjobinfo_file_path(info, &len);
  CHECK(ends_with(path, len, ".sst") && rocksdb_flushjobinfo_file_number(info) > 0);
  CHECK(rocksdb_flushjobinfo_flush_reason(info) == 10);
  CHECK(rocksdb_flushjobinfo_largest_seqno(info) >= rocksdb_flushjobinfo_smallest_seqno(info));
  CHECK(rocksdb_flushjobinfo_triggered_writes_stop(info) == 0);
  CHECK(rocksdb_flushjobinfo_blob_file_addition_infos_count(info) == 0);
  CHECK(rocksdb_flushjobinfo_blob_file_addition_info_at(info, 0) == NULL);
  const rocksdb_table_properties_t* table = rocksdb_flushjobinfo_table_properties(info);
  counts.flushed_entries += rocksdb_table_properties_num_entries(table);
  CHECK(rocksdb_table_properties_column_family_id(table) == 0);
  CHECK(rocksdb_table_properties_has_key_largest_seqno(table) == 1);
  CHECK(rocksdb_table_properties_key_largest_seqno(table) == rocksdb_flushjobinfo_largest_seqno(info));
  const char* comparator = rocksdb_table_properties_comparator_name(table, &len);
  CHECK(is(comparator, len, "leveldb.BytewiseComparator"));
  CHECK(rocksdb_table_properties_user_collected_properties_count(table) == 4);
  const char* collected = rocksdb_table_properties_user_collected_properties_key_at(table, 1, &len);
  CHECK(is(collected, len, "rocksdb.block.based.table.index.type"));
  collected = rocksdb_table_properties_user_collected_properties_value_at(table, 1, &len);
  CHECK(len == 4 && memcmp(collected, "\0\0\0\0", 4) == 0);
  CHECK(rocksdb_table_properties_data_block_restart_interval(table) == 16);
  CHECK(rocksdb_table_properties_index_block_restart_interval(table) == 1);
  CHECK(rocksdb_table_properties_uncompressed_data_size(table) >
        rocksdb_table_properties_raw_value_size(table));
  const char* compression = rocksdb_table_properties_compression_options(table, &len);
  CHECK(ends_with(compression, len, "; _type=4; "));
  counts.flushes++;
}

static void on_compaction_begin(void* state, rocksdb_t* db,
                                const rocksdb_compactionjobinfo_t* info) {
  CHECK(state == &counts && db == NULL);
  CHECK(rocksdb_compactionjobinfo_input_files_count(info) == 2);
  CHECK(rocksdb_compactionjobinfo_output_files_count(info) == 0);
  counts.compactions_begun++;
}

static void on_compaction(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  size_t len;
  CHECK(state == &counts && db == NULL);
  rocksdb_compactionjobinfo_status(info, &error);
  CHECK(error == NULL && rocksdb_compactionjobinfo_aborted(info) == 0);
  CHECK(rocksdb_compactionjobinfo_compaction_reason(info) == 9);
  CHECK(rocksdb_compactionjobinfo_base_input_level(info) == 0);
  CHECK(rocksdb_compactionjobinfo_output_level(info) > 0);
  CHECK(rocksdb_compactionjobinfo_input_records(info) == 4);
  CHECK(rocksdb_compactionjobinfo_output_records(info) == 2);
  /* One table for each prefix. */
  CHECK(rocksdb_compactionjobinfo_output_files_count(info) == 2);
  const rocksdb_compaction_file_info_t* input = rocksdb_compactionjobinfo_input_file_info_at(info, 0);
  CHECK(rocksdb_compaction_file_info_level(input) == 0);
  const char* path = rocksdb_compactionjobinfo_output_file_at(info, 1, &len);
  CHECK(ends_with(path, len, ".sst"));
  const rocksdb_table_properties_t* table =
      rocksdb_compactionjobinfo_table_properties_for_file(info, path, len);
  CHECK(table != NULL && rocksdb_table_properties_num_entries(table) == 1);
  CHECK(rocksdb_compactionjobinfo_output_file_at(info, 2, &len) == NULL && len == 0);
  CHECK(rocksdb_compactionjobinfo_table_properties_count(info) == 4);
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  CHECK(rocksdb_compaction_job_stats_is_manual_compaction(stats) == 1);
  CHECK(rocksdb_compaction_job_stats_num_output_files(stats) == 2);
  counts.compactions++;
}

static void on_part_begin(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  CHECK(state == &counts && rocksdb_subcompactionjobinfo_subcompaction_job_id(info) == -1);
  counts.parts_begun++;
}

static void on_part(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  CHECK(state == &counts);
  rocksdb_subcompactionjobinfo_status(info, &error);
  CHECK(error == NULL);
  counts.parts++;
}

static void on_ingested(void* state, rocksdb_t* db,
                        const rocksdb_externalfileingestioninfo_t* info) {
  size_t len;
  CHECK(state == &counts && db == NULL);
  const char* path = rocksdb_externalfileingestioninfo_external_file_path(info, &len);
  CHECK(ends_with(path, len, "external.sst"));
  const rocksdb_table_properties_t* table =
      rocksdb_externalfileingestioninfo_table_properties(info);
  CHECK(rocksdb_table_properties_num_entries(table) == 1);
  counts.ingested++;
}

static void on_sealed(void* state, const rocksdb_memtableinfo_t* info) {
  size_t len;
  CHECK(state == &counts && rocksdb_memtableinfo_num_entries(info) == 2);
  CHECK(rocksdb_memtableinfo_earliest_seqno(info) <= rocksdb_memtableinfo_first_seqno(info));
  rocksdb_memtableinfo_newest_udt(info, &len);
  CHECK(len == 0);
  counts.sealed++;
}

static void put(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key) {
  rocksdb_put(db, options, key, strlen(key), "value", 5, &error);
  CHECK(error == NULL);
}

enum { DELAYED, STOPPED, NORMAL };

static int condition = NORMAL, stops = 0;

/* Bindings read the `int` that a condition is. */
static void on_stall(void* state, const rocksdb_writestallinfo_t* info) {
  size_t len;
  CHECK(state == &counts);
  const char* name = rocksdb_writestallinfo_cf_name(info, &len);
  CHECK(is(name, len, "default"));
  int now = *(const int*)rocksdb_writestallinfo_cur(info);
  int before = *(const int*)rocksdb_writestallinfo_prev(info);
  CHECK(before == condition && now != before && now >= DELAYED && now <= NORMAL);
  condition = now;
  stops += now == STOPPED;
}

static int stopping_flushes = 0;

/* The second flush brings level 0 to both triggers. */
static void on_filling_flush(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  CHECK(state == &counts && db == NULL);
  int stops_writers = rocksdb_flushjobinfo_triggered_writes_stop(info);
  CHECK(rocksdb_flushjobinfo_triggered_writes_slowdown(info) == stops_writers);
  stopping_flushes += stops_writers;
}

/* Writers have to stop at two tables in level 0, which a compaction takes away. */
static void stop_writers(const char* path) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 2);
  rocksdb_options_set_level0_slowdown_writes_trigger(options, 2);
  rocksdb_options_set_level0_stop_writes_trigger(options, 2);
  rocksdb_eventlistener_t* listener =
      rocksdb_eventlistener_create(&counts, destroy, NULL, on_filling_flush, NULL, NULL, NULL, NULL,
                                   NULL, NULL, on_stall, NULL);
  rocksdb_options_add_eventlistener(options, listener);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK(error == NULL);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  for (int round = 0; round < 2; round++) {
    put(db, writing, "a");
    rocksdb_flush(db, flushing, &error);
    CHECK(error == NULL);
  }
  /* It waits for the compaction. */
  put(db, writing, "a");
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  CHECK(stops == 1 && stopping_flushes == 1 && condition == NORMAL && destroyed == 1);
  destroyed = 0;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  char path[8192], external[8192];
  snprintf(path, sizeof(path), "%s/db", arguments[1]);
  snprintf(external, sizeof(external), "%s/external.sst", arguments[1]);
  stop_writers(path);
  snprintf(path, sizeof(path), "%s/listened", arguments[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_sst_partitioner_factory_t* factory =
      rocksdb_sst_partitioner_fixed_prefix_factory_create(1);
  rocksdb_options_set_sst_partitioner_factory(options, factory);
  rocksdb_sst_partitioner_factory_destroy(factory);
  rocksdb_eventlistener_t* listener = rocksdb_eventlistener_create(
      &counts, destroy, on_flush_begin, on_flush, on_compaction_begin, on_compaction, on_part_begin,
      on_part, on_ingested, NULL, NULL, on_sealed);
  rocksdb_options_add_eventlistener(options, listener);
  CHECK(destroyed == 0);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK(error == NULL);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  for (int round = 0; round < 2; round++) {
    put(db, writing, "a");
    put(db, writing, "b");
    rocksdb_flush(db, flushing, &error);
    CHECK(error == NULL);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_envoptions_t* environment = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(environment, options);
  rocksdb_sstfilewriter_open(writer, external, &error);
  rocksdb_sstfilewriter_put(writer, "z", 1, "value", 5, &error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK(error == NULL);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(environment);
  rocksdb_ingestexternalfileoptions_t* ingesting = rocksdb_ingestexternalfileoptions_create();
  const char* files[] = {external};
  rocksdb_ingest_external_file(db, files, 1, ingesting, &error);
  CHECK(error == NULL);
  rocksdb_ingestexternalfileoptions_destroy(ingesting);
  rocksdb_close(db);
  CHECK(counts.sealed == 2 && counts.flushes_begun == 2 && counts.flushes == 2);
  CHECK(counts.flushed_entries == 4);
  CHECK(counts.compactions_begun == 1 && counts.compactions == 1);
  CHECK(counts.parts_begun == 1 && counts.parts == 1 && counts.ingested == 1);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_options_destroy(options);
  CHECK(destroyed == 1);
  puts("done");
  return 0;
}
