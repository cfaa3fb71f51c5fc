/* WAL filters, transactions, backups and options, each as a program uses the rarer calls. Its only
   argument is an empty directory. Each check ends the program with the line that failed. */

#include "helpers.h"

/* A filter that leaves out the key b, and gives c another value. */
struct filtering {
  int families, records;
};

static void told_families(void* state, const uint32_t* ids, const uint64_t* wals, size_t count,
                          const char* const* names, const size_t* lengths, const uint32_t* name_ids,
                          size_t name_count) {
  struct filtering* filtering = state;
  (void)wals;
  CHECK(count == 1 && name_count == 1 && ids[0] == 0 && name_ids[0] == 0);
  CHECK(lengths[0] == 7 && memcmp(names[0], "default", 7) == 0);
  filtering->families++;
}

static int told_record(void* state, unsigned long long wal, const char* name, size_t len,
                       const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* changed,
                       unsigned char* is_changed) {
  struct filtering* filtering = state;
  filtering->records++;
  CHECK(wal > 0 && len > 4 && memcmp(name + len - 4, ".log", 4) == 0);
  size_t data_len;
  const char* data = rocksdb_writebatch_data((rocksdb_writebatch_t*)batch, &data_len);
  char key = data[12 + 2];
  if (key == 'b') return rocksdb_wal_filter_ignore_current_record;
  if (key == 'c') {
    rocksdb_writebatch_put(changed, "c", 1, "changed", 7);
    *is_changed = 1;
  }
  return rocksdb_wal_filter_continue_processing;
}

static const char* filter_name(void* state) {
  (void)state;
  return "groups.filter";
}

static void wal_filter(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("filtered"), &error);
  OK();
  put(db, "a", "1");
  put(db, "b", "2");
  put(db, "c", "3");
  rocksdb_close(db);
  struct filtering filtering = {0, 0};
  int before = destroyed;
  rocksdb_walfilter_t* filter =
      rocksdb_walfilter_create(&filtering, destroy, told_families, told_record, filter_name);
  rocksdb_options_set_wal_filter(options, filter);
  db = rocksdb_open(options, in("filtered"), &error);
  OK();
  CHECK(filtering.families == 1 && filtering.records == 3);
  CHECK(holds(db, "a", "1") && holds(db, "b", NULL) && holds(db, "c", "changed"));
  rocksdb_close(db);
  rocksdb_options_clear_wal_filter(options);
  rocksdb_walfilter_destroy(filter);
  CHECK(destroyed == before + 1);
  db = rocksdb_open(options, in("filtered"), &error);
  OK();
  CHECK(holds(db, "a", "1") && holds(db, "b", NULL) && holds(db, "c", "changed"));
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Counts the operations of a batch. */
static void told_put(void* state, const char* key, size_t len, const char* value, size_t of_value) {
  (void)key, (void)len, (void)value, (void)of_value;
  *(int*)state += 1;
}

static void told_delete(void* state, const char* key, size_t len) {
  (void)key, (void)len;
  *(int*)state += 10;
}

static void transactions(void) {
  rocksdb_options_t* options = creating();
  rocksdb_transactiondb_options_t* locks = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_write_policy(locks, rocksdb_txndb_write_policy_write_prepared);
  CHECK(rocksdb_transactiondb_open(options, locks, in("locking"), &error) == NULL);
  CHECK(failed_with("Not implemented: "));
  rocksdb_transactiondb_options_set_write_policy(locks, rocksdb_txndb_write_policy_write_committed);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, locks, in("locking"), &error);
  OK();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
  CHECK(rocksdb_transaction_options_get_skip_prepare(how) == 1);
  rocksdb_transaction_options_set_skip_prepare(how, 0);
  rocksdb_transaction_t* one = rocksdb_transaction_begin(db, write, how, NULL);
  rocksdb_transaction_put_log_data(one, "noted", 5);
  rocksdb_transaction_put(one, "a", 1, "1", 1, &error);
  rocksdb_transaction_commit(one, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_transaction_set_name(one, "one", 3, &error);
  rocksdb_transaction_prepare(one, &error);
  rocksdb_transaction_commit(one, &error);
  OK();
  rocksdb_transaction_destroy(one);
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  CHECK(holds(base, "a", "1"));
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(base, 0, NULL, &error);
  OK();
  int sum = 0;
  for (; rocksdb_wal_iter_valid(updates); rocksdb_wal_iter_next(updates)) {
    uint64_t sequence;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(updates, &sequence);
    rocksdb_writebatch_iterate_ld(batch, &sum, told_put, told_delete, NULL);
    rocksdb_writebatch_destroy(batch);
  }
  CHECK(sum >= 1);
  rocksdb_wal_iter_destroy(updates);
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_options_destroy(how);
  rocksdb_transactiondb_options_destroy(locks);

  rocksdb_optimistictransactiondb_options_t* free_of =
      rocksdb_optimistictransactiondb_options_create();
  CHECK(rocksdb_optimistictransactiondb_options_get_validate_policy(free_of) == 1);
  CHECK(rocksdb_optimistictransactiondb_options_get_occ_lock_buckets(free_of) == 1 << 20);
  rocksdb_optimistictransactiondb_lock_buckets_t* buckets =
      rocksdb_optimistictransactiondb_lock_buckets_create(16, 1);
  rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(free_of, buckets);
  CHECK(rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(buckets) == 0);
  rocksdb_optimistictransactiondb_lock_buckets_destroy(buckets);
  rocksdb_optimistictransactiondb_options_set_validate_policy(free_of, 7);
  CHECK(rocksdb_optimistictransactiondb_open_with_otxn_db_options(
            options, free_of, in("optimistic"), &error) == NULL);
  CHECK(failed_with("Not implemented: "));
  rocksdb_optimistictransactiondb_options_set_validate_policy(free_of, 0);
  const char* names[1] = {"default"};
  const rocksdb_options_t* of_families[1] = {options};
  rocksdb_column_family_handle_t* families[1];
  rocksdb_optimistictransactiondb_t* optimistic =
      rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
          options, free_of, in("optimistic"), 1, names, of_families, families, &error);
  OK();
  rocksdb_column_family_handle_destroy(families[0]);
  rocksdb_optimistictransactiondb_close(optimistic);
  rocksdb_optimistictransactiondb_options_destroy(free_of);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(options);
}

static void progressed(void* state) { (*(int*)state)++; }

/* Leaves out no file, but wants to know of them. */
static unsigned char excluded(void* state, const char* name, size_t len) {
  if (len > 0 && strstr(name, "shared") != NULL) (*(int*)state)++;
  return 0;
}

static void backups(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("source"), &error);
  OK();
  put(db, "a", "1");
  rocksdb_backup_engine_options_t* how = rocksdb_backup_engine_options_create(in("backups"));
  rocksdb_backup_engine_options_set_callback_trigger_interval_size(how, 1);
  rocksdb_backup_engine_options_set_schema_version(how, 2);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(how, env, &error);
  OK();
  rocksdb_create_backup_options_t* creating_one = rocksdb_create_backup_options_create();
  rocksdb_create_backup_options_set_flush_before_backup(creating_one, 1);
  int progress = 0, files = 0;
  uint32_t id = 0;
  rocksdb_create_backup_options_set_progress_callback(creating_one, &progress, progressed);
  rocksdb_create_backup_options_set_exclude_files_callback(creating_one, &files, excluded);
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, creating_one, &id, &error);
  OK();
  CHECK(id == 1 && progress > 0 && files > 0);
  rocksdb_create_backup_options_destroy(creating_one);
  rocksdb_restore_options_t* restoring = rocksdb_restore_options_create();
  CHECK(rocksdb_restore_options_get_mode(restoring) == 0xffff);
  rocksdb_restore_options_set_mode(restoring, 7);
  const char* restored = in("restored");
  rocksdb_backup_engine_restore_db_from_backup(engine, restored, restored, restoring, 1, &error);
  CHECK(failed_with("Not implemented: "));
  rocksdb_restore_options_set_mode(restoring, 2);
  rocksdb_backup_engine_restore_db_from_backup(engine, restored, restored, restoring, 1, &error);
  OK();
  rocksdb_restore_options_destroy(restoring);
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_destroy(how);
  rocksdb_close(db);
  db = rocksdb_open(options, restored, &error);
  OK();
  CHECK(holds(db, "a", "1"));
  rocksdb_close(db);
  rocksdb_create_dir_if_missing(env, in("made"), &error);
  rocksdb_create_dir_if_missing(env, in("made"), &error);
  OK();
  rocksdb_env_destroy(env);
  rocksdb_options_destroy(options);
}

static void flushed(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)db, (void)info;
  (*(int*)state)++;
}

static void choices(void) {
  int flushes = 0, before = destroyed;
  rocksdb_options_t* options = creating();
  rocksdb_options_add_eventlistener(
      options, rocksdb_eventlistener_create(&flushes, destroy, NULL, flushed, NULL, NULL, NULL,
                                            NULL, NULL, NULL, NULL, NULL));
  rocksdb_t* db = rocksdb_open(options, in("choices"), &error);
  OK();
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  rocksdb_flushoptions_set_listener_wait(flushing, 1);
  for (int round = 1; round <= 20; round++) {
    put(db, "a", "1");
    rocksdb_flush(db, flushing, &error);
    OK();
    CHECK(flushes == round);
  }
  /* A flush of the only family is atomic. */
  rocksdb_flushoptions_set_force_atomic_flush(flushing, 1);
  rocksdb_flush(db, flushing, &error);
  OK();
  rocksdb_livefiles_storage_info_options_t* listing =
      rocksdb_livefiles_storage_info_options_create();
  rocksdb_livefiles_storage_info_options_set_atomic_flush(listing, 1);
  rocksdb_livefiles_storage_info_destroy(rocksdb_get_livefiles_storage_info(db, listing, &error));
  OK();
  rocksdb_column_family_handle_t* other = rocksdb_create_column_family(db, options, "other", &error);
  OK();
  rocksdb_flush(db, flushing, &error);
  CHECK(failed_with("Not implemented: "));
  CHECK(rocksdb_get_livefiles_storage_info(db, listing, &error) == NULL);
  CHECK(failed_with("Not implemented: "));
  rocksdb_livefiles_storage_info_options_destroy(listing);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_drop_column_family(db, other, &error);
  OK();
  rocksdb_column_family_handle_destroy(other);
  rocksdb_close(db);

  CHECK(rocksdb_options_get_lowest_used_cache_tier(options) == 2);
  CHECK(rocksdb_options_get_wal_write_temperature(options) == 0);
  rocksdb_options_set_wal_write_temperature(options, 0x0c);
  CHECK(rocksdb_options_get_wal_write_temperature(options) == 0x0c);
  rocksdb_options_set_metadata_write_temperature(options, 0x10);
  CHECK(rocksdb_options_get_metadata_write_temperature(options) == 0x10);
  rocksdb_options_set_wal_write_temperature(options, 0);
  rocksdb_options_set_metadata_write_temperature(options, 0);
  size_t len;
  const char* host = rocksdb_options_get_db_host_id(options, &len);
  CHECK(len == strlen("__hostname__") && memcmp(host, "__hostname__", len) == 0);
  rocksdb_options_set_daily_offpeak_time_utc(options, "");
  rocksdb_options_get_daily_offpeak_time_utc(options, &len);
  CHECK(len == 0);
  CHECK(rocksdb_options_calculate_sst_write_lifetime_hint_set_count(options) == 1);
  CHECK(rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(options, 0) == 1);
  rocksdb_options_calculate_sst_write_lifetime_hint_set_add(options, 1);
  rocksdb_options_calculate_sst_write_lifetime_hint_set_remove(options, 0);
  CHECK(rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(options, 0) == 0);
  rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(options);
  CHECK(rocksdb_options_calculate_sst_write_lifetime_hint_set_count(options) == 0);
  rocksdb_options_add_table_properties_collector_factory(options, NULL);
  rocksdb_block_based_table_options_t* tables = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_user_defined_index_factory_from_string(tables, "trie", 4, &error);
  CHECK(failed_with("Not implemented: "));
  CHECK(rocksdb_block_based_options_get_user_defined_index_factory_name(tables, &len) == NULL);
  rocksdb_block_based_options_set_read_amp_bytes_per_bit(tables, 8);
  rocksdb_options_set_block_based_table_factory(options, tables);
  CHECK(rocksdb_open(options, in("choices"), &error) == NULL);
  CHECK(failed_with("Not implemented: "));
  rocksdb_block_based_options_set_read_amp_bytes_per_bit(tables, 0);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru_with_strict_capacity_limit(1 << 20);
  rocksdb_block_based_options_set_block_cache(tables, cache);
  rocksdb_options_set_block_based_table_factory(options, tables);
  db = rocksdb_open(options, in("choices"), &error);
  OK();
  CHECK(holds(db, "a", "1") && rocksdb_cache_get_occupancy_count(cache) > 0);
  rocksdb_close(db);
  rocksdb_cache_destroy(cache);
  rocksdb_block_based_options_destroy(tables);
  rocksdb_options_destroy(options);
  CHECK(destroyed == before + 1);
}

/* Numbers that are no choice come back, and fail what uses them until another is set. */
static void refused(void) {
  rocksdb_options_t* options = creating();
  rocksdb_options_set_compaction_pri(options, 77);
  CHECK(rocksdb_options_get_compaction_pri(options) == 77);
  rocksdb_options_set_wal_write_temperature(options, 7);
  CHECK(rocksdb_options_get_wal_write_temperature(options) == 7);
  rocksdb_options_set_lowest_used_cache_tier(options, 7);
  CHECK(rocksdb_options_get_lowest_used_cache_tier(options) == 7);
  rocksdb_options_set_block_protection_bytes_per_key(options, 3);
  CHECK(rocksdb_options_get_block_protection_bytes_per_key(options) == 3);
  rocksdb_options_set_memtable_protection_bytes_per_key(options, 7);
  CHECK(rocksdb_options_get_memtable_protection_bytes_per_key(options) == 7);
  CHECK(rocksdb_open(options, in("refused"), &error) == NULL);
  CHECK(failed_with("Not implemented: option 'compaction_pri' with the value 77"));
  rocksdb_options_set_compaction_pri(options, 3);
  rocksdb_options_set_wal_write_temperature(options, 0);
  rocksdb_options_set_lowest_used_cache_tier(options, 2);
  rocksdb_options_set_block_protection_bytes_per_key(options, 0);
  rocksdb_options_set_memtable_protection_bytes_per_key(options, 0);
  CHECK(rocksdb_options_get_compaction_pri(options) == 3);
  CHECK(rocksdb_options_get_lowest_used_cache_tier(options) == 2);

  rocksdb_block_based_table_options_t* tables = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_index_shortening(tables, 7);
  CHECK(rocksdb_block_based_options_get_index_shortening(tables) == 7);
  rocksdb_block_based_options_set_checksum(tables, 77);
  CHECK(rocksdb_block_based_options_get_checksum(tables) == 77);
  rocksdb_options_set_block_based_table_factory(options, tables);
  CHECK(rocksdb_open(options, in("refused"), &error) == NULL);
  CHECK(failed_with("Not implemented: option 'index_shortening' with '7'"));
  rocksdb_block_based_options_set_index_shortening(tables, 1);
  rocksdb_block_based_options_set_checksum(tables, 1);
  rocksdb_options_set_block_based_table_factory(options, tables);
  rocksdb_t* db = rocksdb_open(options, in("refused"), &error);
  OK();

  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_rate_limiter_priority(write, 7);
  CHECK(rocksdb_writeoptions_get_rate_limiter_priority(write) == 7);
  rocksdb_put(db, write, "a", 1, "1", 1, &error);
  CHECK(failed_with("Invalid argument: rate_limiter_priority 7"));
  rocksdb_writeoptions_destroy(write);
  write = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_protection_bytes_per_key(write, 4096);
  CHECK(rocksdb_writeoptions_get_protection_bytes_per_key(write) == 4096);
  rocksdb_put(db, write, "a", 1, "1", 1, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_writeoptions_destroy(write);
  rocksdb_compactoptions_t* compacting = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_blob_garbage_collection_policy(compacting, 7);
  CHECK(rocksdb_compactoptions_get_blob_garbage_collection_policy(compacting) == 7);
  rocksdb_compactoptions_destroy(compacting);
  rocksdb_close(db);
  rocksdb_block_based_options_destroy(tables);
  rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(directory, sizeof(directory), "%s", arguments[1]);
  wal_filter();
  transactions();
  backups();
  choices();
  refused();
  puts("done");
  return 0;
}
