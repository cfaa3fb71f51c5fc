/* Files, reads and batches, each as a program uses the rarer calls. Its only argument is an empty
   directory. Each check ends the program with the line that failed. */

#include "helpers.h"

static void files(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("files"), &error);
  OK();
  put(db, "a", "1");
  put(db, "m", "1");
  flush(db);
  put(db, "a", "2");
  put(db, "b", "2");
  flush(db);
  put(db, "z", "only in the WAL");

  rocksdb_wal_files_t* wals = rocksdb_get_sorted_wal_files(db, &error);
  OK();
  size_t count = rocksdb_wal_files_count(wals);
  CHECK(count >= 1 && rocksdb_wal_files_get_wal_file(wals, count) == NULL);
  const rocksdb_wal_file_t* last = rocksdb_wal_files_get_wal_file(wals, count - 1);
  rocksdb_wal_file_t* current = rocksdb_get_current_wal_file(db, &error);
  OK();
  CHECK(rocksdb_wal_file_log_number(last) == rocksdb_wal_file_log_number(current));
  CHECK(rocksdb_wal_file_type(current) == rocksdb_wal_file_type_alive_log);
  CHECK(rocksdb_wal_file_path_name(current)[0] == '/');
  CHECK(strstr(rocksdb_wal_file_path_name(current), ".log") != NULL);
  CHECK(rocksdb_wal_file_start_sequence(current) == 5);
  CHECK(rocksdb_wal_file_size_file_bytes(current) > 0);
  rocksdb_wal_file_destroy(current);
  rocksdb_wal_files_destroy(wals);

  rocksdb_livefiles_storage_info_options_t* how = rocksdb_livefiles_storage_info_options_create();
  rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(how, UINT64_MAX);
  rocksdb_livefiles_storage_info_options_set_include_checksum_info(how, 1);
  rocksdb_livefiles_storage_info_t* stored = rocksdb_get_livefiles_storage_info(db, how, &error);
  OK();
  int tables = 0, logs = 0, pointers = 0;
  size_t len;
  count = rocksdb_livefiles_storage_info_count(stored);
  for (size_t at = 0; at < count; at++) {
    int type = rocksdb_livefiles_storage_info_file_type(stored, at);
    const char* name = rocksdb_livefiles_storage_info_relative_filename(stored, at);
    CHECK(strstr(rocksdb_livefiles_storage_info_directory(stored, at), "files") != NULL);
    if (type == 2) {
      tables++;
      CHECK(strstr(name, ".sst") != NULL && rocksdb_livefiles_storage_info_size(stored, at) > 0);
      CHECK(rocksdb_livefiles_storage_info_file_number(stored, at) > 0);
      CHECK(rocksdb_livefiles_storage_info_temperature(stored, at) == 0);
      CHECK(strcmp(rocksdb_livefiles_storage_info_file_checksum_func_name(stored, at),
                   "Unknown") == 0);
      CHECK(rocksdb_livefiles_storage_info_file_checksum(stored, at)[0] == 0);
    }
    logs += type == 0;
    if (type == 9) {
      CHECK(strstr(name, "OPTIONS-") != NULL && rocksdb_livefiles_storage_info_file_number(stored, at) > 0);
      rocksdb_livefiles_storage_info_replacement_contents(stored, at, &len);
      CHECK(len == 0 && rocksdb_livefiles_storage_info_size(stored, at) > 0);
    }
    if (type == 4) {
      const char* made = rocksdb_livefiles_storage_info_replacement_contents(stored, at, &len);
      pointers += strcmp(name, "CURRENT") == 0 && len > 8 && memcmp(made, "MANIFEST", 8) == 0;
      CHECK(rocksdb_livefiles_storage_info_trim_to_size(stored, at) == 0);
    }
  }
  CHECK(tables == 2 && logs >= 1 && pointers == 1);
  CHECK(rocksdb_livefiles_storage_info_relative_filename(stored, count) == NULL);
  rocksdb_livefiles_storage_info_destroy(stored);
  rocksdb_livefiles_storage_info_options_destroy(how);

  rocksdb_column_family_metadata_options_t* wanted =
      rocksdb_column_family_metadata_options_create();
  rocksdb_column_family_metadata_options_set_start_key(wanted, "c", 1);
  CHECK(rocksdb_column_family_metadata_options_get_start_key(wanted, &len)[0] == 'c' && len == 1);
  CHECK(rocksdb_column_family_metadata_options_get_end_key(wanted, &len) == NULL && len == 0);
  rocksdb_column_family_metadata_t* metadata =
      rocksdb_get_column_family_metadata_with_options(db, wanted);
  /* The newer one lies before the range, but overlaps the older one, as it is in level 0. */
  CHECK(rocksdb_column_family_metadata_get_file_count(metadata) == 2);
  rocksdb_column_family_metadata_destroy(metadata);
  rocksdb_column_family_metadata_options_set_start_key(wanted, "n", 1);
  metadata = rocksdb_get_column_family_metadata_with_options(db, wanted);
  CHECK(rocksdb_column_family_metadata_get_file_count(metadata) == 0);
  CHECK(rocksdb_column_family_metadata_get_level_count(metadata) == 0);
  rocksdb_column_family_metadata_destroy(metadata);
  rocksdb_column_family_metadata_options_destroy(wanted);

  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  const char* names[2] = {rocksdb_livefiles_name(live, 0), rocksdb_livefiles_name(live, 1)};
  rocksdb_compaction_options_t* compacting = rocksdb_compaction_options_create();
  CHECK(rocksdb_compaction_options_get_compression(compacting) == 0xff);
  CHECK(rocksdb_compaction_options_get_output_file_size_limit(compacting) == UINT64_MAX);
  unsigned char* canceled = rocksdb_compaction_options_canceled_create();
  rocksdb_compaction_options_set_canceled(compacting, canceled);
  rocksdb_compaction_options_canceled_set(canceled, 1);
  char** written = NULL;
  size_t written_len = 9;
  rocksdb_compact_files(db, compacting, names, 2, 1, -1, &written, &written_len, NULL, &error);
  CHECK(failed_with("Result incomplete: ") && written == NULL);
  rocksdb_compaction_options_canceled_set(canceled, 0);
  rocksdb_compaction_options_set_output_temperature_override(compacting, 5);
  rocksdb_compact_files(db, compacting, names, 2, 1, -1, &written, &written_len, NULL, &error);
  CHECK(failed_with("Not implemented: "));
  rocksdb_compaction_options_set_output_temperature_override(compacting, 4);
  const char* wrong[1] = {"no table"};
  rocksdb_compact_files(db, compacting, wrong, 1, 1, -1, &written, &written_len, NULL, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_compactionjobinfo_t* info = rocksdb_compactionjobinfo_create();
  CHECK(rocksdb_compactionjobinfo_input_files_count(info) == 0);
  rocksdb_compact_files(db, compacting, names, 2, 1, 0, &written, &written_len, info, &error);
  OK();
  CHECK(written_len == 1 && strstr(written[0], ".sst") != NULL);
  char* hot = rocksdb_property_value(db, "rocksdb.live-sst-files-size-at-temperature4");
  CHECK(hot != NULL && strcmp(hot, "0") != 0);
  rocksdb_free(hot);
  CHECK(rocksdb_compactionjobinfo_input_files_count(info) == 2);
  CHECK(rocksdb_compactionjobinfo_output_level(info) == 1);
  CHECK(rocksdb_compactionjobinfo_output_records(info) == 3);
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  CHECK(rocksdb_compaction_job_stats_smallest_output_key_prefix(stats, &len)[0] == 'a' && len == 1);
  CHECK(rocksdb_compaction_job_stats_largest_output_key_prefix(stats, &len)[0] == 'm');
  const rocksdb_table_properties_t* table =
      rocksdb_compactionjobinfo_table_properties_for_file(info, written[0], strlen(written[0]));
  CHECK(table != NULL && rocksdb_table_properties_num_entries(table) == 3);
  CHECK(rocksdb_table_properties_user_defined_timestamps_persisted(table) == 1);
  CHECK(rocksdb_table_properties_readable_properties_count(table) == 0);
  CHECK(rocksdb_table_properties_readable_properties_key_at(table, 0, &len) == NULL);
  rocksdb_compact_files_output_file_names_destroy(written, written_len);
  rocksdb_compactionjobinfo_destroy(info);
  rocksdb_compaction_options_destroy(compacting);
  rocksdb_compaction_options_canceled_destroy(canceled);
  rocksdb_livefiles_destroy(live);
  CHECK(holds(db, "a", "2") && holds(db, "m", "1") && holds(db, "z", "only in the WAL"));

  rocksdb_size_approximation_options_t* sizes = rocksdb_size_approximation_options_create();
  CHECK(rocksdb_size_approximation_options_get_files_size_error_margin(sizes) == -1.0);
  rocksdb_size_approximation_options_set_files_size_error_margin(sizes, 0.5);
  rocksdb_size_approximation_options_set_include_blob_files(sizes, 1);
  const char *begins[1] = {""}, *ends[1] = {"zz"};
  size_t begin_lens[1] = {0}, end_lens[1] = {2};
  uint64_t size = 0;
  rocksdb_approximate_sizes_with_options(db, sizes, 1, begins, begin_lens, ends, end_lens, &size,
                                         &error);
  OK();
  CHECK(size > 0);
  rocksdb_size_approximation_options_set_include_files(sizes, 0);
  rocksdb_size_approximation_options_set_include_blob_files(sizes, 0);
  rocksdb_approximate_sizes_with_options(db, sizes, 1, begins, begin_lens, ends, end_lens, &size,
                                         &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_size_approximation_options_destroy(sizes);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Shows tables of more than one entry. */
static unsigned char shows(void* state, const rocksdb_table_properties_t* table) {
  (*(int*)state)++;
  return rocksdb_table_properties_num_entries(table) > 1;
}

static void reading(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("reading"), &error);
  OK();
  put(db, "a", "1");
  flush(db);
  put(db, "b", "1");
  put(db, "c", "");
  flush(db);
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_slice_t keys[3] = {{"a", 1}, {"c", 1}, {"x", 1}};
  rocksdb_pinnable_multi_get_t* found =
      rocksdb_batched_multi_get_pinned_cf(db, read, family, 3, keys, 1);
  const char *value, *text;
  size_t value_len, text_len;
  CHECK(rocksdb_pinnable_multi_get_count(found) == 3);
  CHECK(rocksdb_pinnable_multi_get_result(found, 0, &value, &value_len, &text, &text_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value_len == 1 && value[0] == '1' && text == NULL);
  CHECK(rocksdb_pinnable_multi_get_result(found, 1, &value, &value_len, &text, &text_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value != NULL && value_len == 0);
  CHECK(rocksdb_pinnable_multi_get_result(found, 2, &value, &value_len, &text, &text_len) ==
        rocksdb_pinnable_multi_get_not_found);
  CHECK(rocksdb_pinnable_multi_get_result(found, 3, &value, &value_len, &text, &text_len) ==
        rocksdb_pinnable_multi_get_out_of_bounds);
  rocksdb_pinnable_multi_get_destroy(found);
  rocksdb_readoptions_set_read_tier(read, 3);
  found = rocksdb_batched_multi_get_pinned_cf(db, read, family, 1, keys, 0);
  CHECK(rocksdb_pinnable_multi_get_result(found, 0, &value, &value_len, &text, &text_len) ==
        rocksdb_pinnable_multi_get_error);
  CHECK(strncmp(text, "Not implemented: ", 17) == 0 && text_len > 17);
  rocksdb_pinnable_multi_get_destroy(found);
  rocksdb_readoptions_set_read_tier(read, 0);

  int asked = 0, before = destroyed;
  rocksdb_readoptions_set_table_filter(read, &asked, destroy, shows);
  CHECK(rocksdb_readoptions_has_table_filter(read) == 1);
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
  int steps = 0;
  for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator))
    steps++;
  rocksdb_iter_destroy(iterator);
  CHECK(steps == 2 && asked == 2);
  rocksdb_readoptions_clear_table_filter(read);
  CHECK(rocksdb_readoptions_has_table_filter(read) == 0 && destroyed == before + 1);

  size_t len;
  CHECK(rocksdb_readoptions_get_io_activity(read) == 0xff);
  CHECK(rocksdb_readoptions_get_request_id(read, &len) == NULL && len == 0);
  rocksdb_readoptions_set_request_id(read, "id", 2);
  CHECK(memcmp(rocksdb_readoptions_get_request_id(read, &len), "id", 2) == 0 && len == 2);
  rocksdb_readoptions_set_merge_operand_count_threshold(read, 3);
  CHECK(rocksdb_readoptions_has_merge_operand_count_threshold(read) == 1);
  CHECK(rocksdb_readoptions_get_merge_operand_count_threshold(read) == 3);
  rocksdb_readoptions_clear_merge_operand_count_threshold(read);
  CHECK(rocksdb_readoptions_has_merge_operand_count_threshold(read) == 0);
  rocksdb_readoptions_set_table_index_factory_from_string(read, "trie", 4, &error);
  CHECK(failed_with("Not implemented: "));
  rocksdb_readoptions_set_table_index_factory_from_string(read, NULL, 0, &error);
  OK();
  CHECK(rocksdb_readoptions_get_table_index_factory_name(read, &len) == NULL);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_readoptions_destroy(read);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* What the operations of a batch come to: puts 1, deletes 10, merges 100, data 1000. */
static void told_put(void* state, const char* key, size_t len, const char* value, size_t of_value) {
  (void)key, (void)len, (void)value, (void)of_value;
  *(int*)state += 1;
}

static void told_delete(void* state, const char* key, size_t len) {
  (void)key, (void)len;
  *(int*)state += 10;
}

static void told_data(void* state, const char* data, size_t len) {
  if (len == 4 && memcmp(data, "data", 4) == 0) *(int*)state += 1000;
}

static void told_put_cf(void* state, uint32_t family, const char* key, size_t len,
                        const char* value, size_t of_value) {
  if (family == 0) told_put(state, key, len, value, of_value);
}

static void told_delete_cf(void* state, uint32_t family, const char* key, size_t len) {
  if (family == 0) told_delete(state, key, len);
}

static void told_merge_cf(void* state, uint32_t family, const char* key, size_t len,
                          const char* value, size_t of_value) {
  (void)key, (void)len, (void)value, (void)of_value;
  if (family == 0) *(int*)state += 100;
}

static size_t eight(void* state, uint32_t family) {
  (void)state;
  return family == 0 ? 8 : 0;
}

static int compare_bytes(const char* a, size_t a_len, const char* b, size_t b_len) {
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (int)a_len - (int)b_len;
}

static int compare_stamps(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  (void)state;
  return compare_bytes(a, a_len, b, b_len);
}

static int compare_bare(void* state, const char* a, size_t a_len, unsigned char a_has,
                        const char* b, size_t b_len, unsigned char b_has) {
  (void)state;
  return compare_bytes(a, a_len - (a_has ? 8 : 0), b, b_len - (b_has ? 8 : 0));
}

static int compare_stamped(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  int order = compare_bare(state, a, a_len, 1, b, b_len, 1);
  return order != 0 ? order : compare_bytes(b + b_len - 8, 8, a + a_len - 8, 8);
}

static const char* stamped_name(void* state) {
  (void)state;
  return "groups.stamped";
}

static void batches(void) {
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_put_log_data(batch, "data", 4);
  rocksdb_writebatch_delete(batch, "b", 1);
  rocksdb_writebatch_merge(batch, "c", 1, "2", 1);
  int sum = 0;
  rocksdb_writebatch_iterate_ld(batch, &sum, told_put, told_delete, told_data);
  CHECK(sum == 1011);
  sum = 0;
  rocksdb_writebatch_iterate_cf_ld(batch, &sum, told_put_cf, told_delete_cf, told_merge_cf,
                                   told_data);
  CHECK(sum == 1111);
  rocksdb_writebatch_iterate_cf_ld(batch, &sum, told_put_cf, told_delete_cf, told_merge_cf, NULL);
  CHECK(sum == 1222);
  rocksdb_writebatch_destroy(batch);

  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("batches"), &error);
  OK();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
  const char *key[2] = {"ke", "y"}, *value[1] = {"value"};
  size_t key_lens[2] = {2, 1}, value_lens[1] = {5};
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_writebatch_wi_putv(indexed, 2, key, key_lens, 1, value, value_lens);
  rocksdb_writebatch_wi_putv_cf(indexed, family, 1, key, key_lens, 1, value, value_lens);
  rocksdb_writebatch_wi_deletev(indexed, 1, key, key_lens);
  rocksdb_writebatch_wi_deletev_cf(indexed, family, 1, key, key_lens);
  sum = 0;
  rocksdb_writebatch_wi_iterate(indexed, &sum, told_put, told_delete);
  CHECK(sum == 22);
  rocksdb_write_writebatch_wi(db, write, indexed, &error);
  OK();
  CHECK(holds(db, "key", "value") && holds(db, "ke", NULL));
  rocksdb_writebatch_wi_delete_rangev(indexed, 1, key, key_lens, value, value_lens);
  rocksdb_write_writebatch_wi(db, write, indexed, &error);
  CHECK(failed_with("Not implemented: "));
  rocksdb_writebatch_wi_destroy(indexed);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);

  int before = destroyed;
  rocksdb_comparator_t* order = rocksdb_comparator_with_ts_create(
      NULL, destroy, compare_stamped, compare_stamps, compare_bare, stamped_name, 8);
  rocksdb_options_set_comparator(options, order);
  db = rocksdb_open(options, in("stamped"), &error);
  OK();
  batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "k", 1, "plain", 5);
  rocksdb_writebatch_update_timestamps(batch, "0000", 4, NULL, eight, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_writebatch_update_timestamps(batch, "00000001", 8, NULL, eight, &error);
  OK();
  rocksdb_write(db, write, batch, &error);
  OK();
  rocksdb_writebatch_destroy(batch);
  indexed = rocksdb_writebatch_wi_create_with_params(order, 0, 1, 0, 0);
  rocksdb_writebatch_wi_put(indexed, "k", 1, "indexed", 7);
  rocksdb_writebatch_wi_update_timestamps(indexed, "00000002", 8, NULL, eight, &error);
  OK();
  rocksdb_write_writebatch_wi(db, write, indexed, &error);
  OK();
  rocksdb_writebatch_wi_destroy(indexed);

  /* A key in parts has no room for a timestamp: it is not added, and fails the write. */
  batch = rocksdb_writebatch_create();
  family = rocksdb_get_default_column_family_handle(db);
  rocksdb_writebatch_putv_cf(batch, family, 2, key, key_lens, 1, value, value_lens);
  rocksdb_writebatch_mergev_cf(batch, family, 2, key, key_lens, 1, value, value_lens);
  rocksdb_writebatch_deletev_cf(batch, family, 2, key, key_lens);
  rocksdb_writebatch_delete_rangev_cf(batch, family, 1, key, key_lens, value, value_lens);
  CHECK(rocksdb_writebatch_count(batch) == 0);
  rocksdb_write(db, write, batch, &error);
  CHECK(failed_with("Invalid argument: column family 'default' needs a timestamp of 8 bytes"));
  rocksdb_writebatch_destroy(batch);
  rocksdb_column_family_handle_destroy(family);

  /* What a batch has no room for fails its write. */
  batch = rocksdb_writebatch_create_with_params(0, 40, 0, 8);
  rocksdb_writebatch_put(batch, "k", 1, "as long as the batch may be, and longer", 39);
  rocksdb_write(db, write, batch, &error);
  CHECK(failed_with("Operation aborted: "));
  rocksdb_writebatch_destroy(batch);
  indexed = rocksdb_writebatch_wi_create_with_params(order, 0, 1, 40, 0);
  rocksdb_writebatch_wi_put(indexed, "k", 1, "as long as the batch may be, and longer", 39);
  rocksdb_write_writebatch_wi(db, write, indexed, &error);
  CHECK(failed_with("Operation aborted: "));
  rocksdb_writebatch_wi_destroy(indexed);

  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  size_t len;
  rocksdb_readoptions_set_timestamp(read, "00000001", 8);
  char* found = rocksdb_get(db, read, "k", 1, &len, &error);
  OK();
  CHECK(found != NULL && len == 5 && memcmp(found, "plain", 5) == 0);
  free(found);
  rocksdb_readoptions_set_timestamp(read, "00000009", 8);
  found = rocksdb_get(db, read, "k", 1, &len, &error);
  OK();
  CHECK(found != NULL && len == 7 && memcmp(found, "indexed", 7) == 0);
  free(found);
  rocksdb_readoptions_destroy(read);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(order);
  CHECK(destroyed == before + 1);
  rocksdb_writeoptions_destroy(write);
}

/* What bindings' own tests ask for: RocksDB's answers in corners. */
static void corners(void) {
  rocksdb_options_t* options = creating();
  rocksdb_options_enable_statistics(options);
  rocksdb_t* db = rocksdb_open(options, in("corners"), &error);
  OK();
  /* A WAL without a record is not listed. */
  rocksdb_wal_files_t* wals = rocksdb_get_sorted_wal_files(db, &error);
  OK();
  CHECK(rocksdb_wal_files_count(wals) == 0);
  rocksdb_wal_files_destroy(wals);

  /* Families before the one that fails are made. */
  const char* names[] = {"fresh", "default", "never"};
  size_t made = 9;
  rocksdb_column_family_handle_t** families =
      rocksdb_create_column_families(db, options, 3, names, &made, &error);
  CHECK(failed_with("Invalid argument: ") && made == 1);
  char* value = NULL;
  size_t len;
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_put_cf(db, write, families[0], "k", 1, "value", 5, &error);
  OK();

  /* Lookups of several keys are counted. */
  const char* key = "k";
  size_t key_len = 1;
  char* failed = NULL;
  const rocksdb_column_family_handle_t* in_family = families[0];
  rocksdb_multi_get_cf(db, read, &in_family, 1, &key, &key_len, &value, &len, &failed);
  CHECK(failed == NULL && len == 5);
  rocksdb_free(value);
  char* counters = rocksdb_options_statistics_get_string(options);
  CHECK(strstr(counters, "rocksdb.number.multiget.get COUNT : 1\n") != NULL);
  CHECK(strstr(counters, "rocksdb.number.multiget.bytes.read COUNT : 5\n") != NULL);
  rocksdb_free(counters);

  /* Nothing can be verified where no checksums are recorded. */
  rocksdb_verify_file_checksums(db, &error);
  CHECK(failed_with("Invalid argument: "));

  rocksdb_column_family_handle_destroy(families[0]);
  rocksdb_create_column_families_destroy(families);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(directory, sizeof(directory), "%s", arguments[1]);
  files();
  reading();
  batches();
  corners();
  puts("done");
  return 0;
}
