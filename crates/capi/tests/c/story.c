/* One program through the C API, as its users write it. Its only argument is an empty directory.
   Each check ends the program with the line that failed. */

#include "check.h"

#define OK() CHECK(error == NULL)

static char directory[4096];

static const char* in(const char* name) {
  static char paths[8][8192];
  static int next = 0;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
  return path;
}

/* An error that begins with a kind; it is forgotten afterwards. */
static int failed_with(const char* kind) {
  int is = error != NULL && strncmp(error, kind, strlen(kind)) == 0;
  if (is) {
    rocksdb_free(error);
    error = NULL;
  }
  return is;
}

/* The length is read after the value was made, in whatever order C evaluates arguments. */
static int is_value(char* value, const size_t* len, const char* wanted) {
  int is = wanted == NULL ? value == NULL
                          : value != NULL && *len == strlen(wanted) &&
                                memcmp(value, wanted, *len) == 0;
  free(value);
  return is;
}

/* Callbacks: their states count what happens to them. */
static int destroyed = 0;

static void destroy(void* state) {
  (void)state;
  __sync_fetch_and_add(&destroyed, 1);
}

static const char* reversed_name(void* state) {
  (void)state;
  return "story.reversed";
}

static int reversed(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  (void)state;
  size_t common = a_len < b_len ? a_len : b_len;
  int order = memcmp(b, a, common);
  return order != 0 ? order : (int)b_len - (int)a_len;
}

static const char* joining_name(void* state) {
  (void)state;
  return "story.joining";
}

static char* join(const char* first, size_t first_len, const char* const* operands,
                  const size_t* lengths, int count, unsigned char* success, size_t* len) {
  size_t size = first_len;
  for (int i = 0; i < count; i++) size += lengths[i];
  char* joined = malloc(size + 1);
  memcpy(joined, first == NULL ? "" : first, first_len);
  *len = first_len;
  for (int i = 0; i < count; i++) {
    memcpy(joined + *len, operands[i], lengths[i]);
    *len += lengths[i];
  }
  *success = 1;
  return joined;
}

static char* join_all(void* state, const char* key, size_t key_len, const char* value,
                      size_t value_len, const char* const* operands, const size_t* lengths,
                      int count, unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_len;
  return join(value, value_len, operands, lengths, count, success, len);
}

static char* join_some(void* state, const char* key, size_t key_len, const char* const* operands,
                       const size_t* lengths, int count, unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_len;
  return join(NULL, 0, operands, lengths, count, success, len);
}

static const char* filter_name(void* state) {
  (void)state;
  return "story.filter";
}

static unsigned char filter(void* state, int level, const char* key, size_t key_len,
                            const char* value, size_t value_len, char** new_value,
                            size_t* new_len, unsigned char* is_changed) {
  (void)state, (void)level, (void)key, (void)key_len, (void)value_len;
  if (value[0] == '-') return 1;
  if (value[0] == '?') {
    *new_value = (char*)"answer";
    *new_len = 6;
    *is_changed = 1;
  }
  return 0;
}

static void logged(void* state, unsigned level, char* message, size_t len) {
  (void)level, (void)message;
  if (len > 0) __sync_fetch_and_add((int*)state, 1);
}

static void told_put(void* state, const char* key, size_t key_len, const char* value,
                     size_t value_len) {
  (void)key, (void)value;
  *(size_t*)state += key_len + value_len;
}

static void told_delete(void* state, const char* key, size_t key_len) {
  (void)key;
  *(size_t*)state += 100 * key_len;
}

static rocksdb_options_t* creating(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  return options;
}

static void put(rocksdb_t* db, const char* key, const char* value) {
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_put(db, write, key, strlen(key), value, strlen(value), &error);
  OK();
  rocksdb_writeoptions_destroy(write);
}

static int holds(rocksdb_t* db, const char* key, const char* wanted) {
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  size_t len = 99;
  char* value = rocksdb_get(db, read, key, strlen(key), &len, &error);
  OK();
  rocksdb_readoptions_destroy(read);
  return is_value(value, &len, wanted);
}

static void keys_and_values(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("plain"), &error);
  OK();
  rocksdb_t* second = rocksdb_open(options, in("plain"), &error);
  CHECK(second == NULL && failed_with("IO error: "));
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();

  put(db, "ada", "1815");
  put(db, "", "empty key");
  put(db, "empty", "");
  CHECK(holds(db, "ada", "1815") && holds(db, "", "empty key") && holds(db, "empty", ""));
  CHECK(holds(db, "alan", NULL));
  rocksdb_put(db, write, NULL, 0, NULL, 0, &error);
  OK();
  CHECK(holds(db, "", ""));
  rocksdb_delete(db, write, "", 0, &error);
  OK();

  size_t len = 99;
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, read, "ada", 3, &error);
  OK();
  CHECK(memcmp(rocksdb_pinnableslice_value(pinned, &len), "1815", 4) == 0 && len == 4);
  rocksdb_pinnableslice_destroy(pinned);
  CHECK(rocksdb_get_pinned(db, read, "alan", 4, &error) == NULL);
  CHECK(rocksdb_pinnableslice_value(NULL, &len) == NULL && len == 0);

  const char* keys[3] = {"ada", "alan", "empty"};
  size_t key_lens[3] = {3, 4, 5}, value_lens[3];
  char *values[3], *errors[3];
  rocksdb_multi_get(db, read, 3, keys, key_lens, values, value_lens, errors);
  CHECK(errors[0] == NULL && errors[1] == NULL && errors[2] == NULL);
  CHECK(is_value(values[0], &value_lens[0], "1815") && is_value(values[1], &value_lens[1], NULL));
  CHECK(is_value(values[2], &value_lens[2], ""));

  /* A batch is written whole, and stays with its owner. */
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "alan", 4, "1912", 4);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_delete(batch, "ada", 3);
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  OK();
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK(failed_with("NotFound: "));
  rocksdb_writebatch_delete(batch, "empty", 5);
  CHECK(rocksdb_writebatch_count(batch) == 2);
  size_t told = 0;
  rocksdb_writebatch_iterate(batch, &told, told_put, told_delete);
  CHECK(told == 8 + 500);
  const char* data = rocksdb_writebatch_data(batch, &len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  rocksdb_write(db, write, batch, &error);
  rocksdb_write(db, write, copy, &error);
  OK();
  rocksdb_writebatch_clear(batch);
  CHECK(rocksdb_writebatch_count(batch) == 0);
  rocksdb_writebatch_destroy(batch);
  rocksdb_writebatch_destroy(copy);
  CHECK(holds(db, "alan", "1912") && holds(db, "ada", "1815") && holds(db, "empty", NULL));

  /* A snapshot and iterators. */
  const rocksdb_snapshot_t* before = rocksdb_create_snapshot(db);
  put(db, "grace", "1906");
  rocksdb_readoptions_set_snapshot(read, before);
  size_t none;
  CHECK(is_value(rocksdb_get(db, read, "grace", 5, &none, &error), &none, NULL));
  rocksdb_readoptions_set_snapshot(read, NULL);
  rocksdb_release_snapshot(db, before);
  rocksdb_readoptions_set_iterate_lower_bound(read, "al", 2);
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
  rocksdb_readoptions_destroy(read);
  rocksdb_iter_seek_to_first(iterator);
  CHECK(rocksdb_iter_valid(iterator));
  CHECK(memcmp(rocksdb_iter_key(iterator, &len), "alan", 4) == 0 && len == 4);
  CHECK(memcmp(rocksdb_iter_value(iterator, &len), "1912", 4) == 0 && len == 4);
  rocksdb_iter_next(iterator);
  rocksdb_slice_t key = rocksdb_iter_key_slice(iterator);
  CHECK(key.size == 5 && memcmp(key.data, "grace", 5) == 0);
  rocksdb_iter_next(iterator);
  CHECK(!rocksdb_iter_valid(iterator));
  rocksdb_iter_get_error(iterator, &error);
  OK();
  rocksdb_iter_seek_to_last(iterator);
  rocksdb_iter_prev(iterator);
  rocksdb_iter_prev(iterator);
  CHECK(!rocksdb_iter_valid(iterator));
  rocksdb_iter_seek_for_prev(iterator, "b", 1);
  CHECK(memcmp(rocksdb_iter_key(iterator, &len), "alan", 4) == 0);

  char* count = rocksdb_property_value(db, "rocksdb.estimate-num-keys");
  CHECK(count != NULL);
  rocksdb_free(count);
  uint64_t number;
  CHECK(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0);
  CHECK(rocksdb_property_value(db, "rocksdb.none") == NULL);
  CHECK(rocksdb_property_int(db, "rocksdb.none", &number) == -1);

  /* The database is closed before what came of it, and opened again meanwhile. */
  rocksdb_close(db);
  CHECK(memcmp(rocksdb_iter_key(iterator, &len), "alan", 4) == 0);
  db = rocksdb_open(options, in("plain"), &error);
  OK();
  rocksdb_iter_destroy(iterator);
  CHECK(holds(db, "alan", "1912"));
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(options);
}

static void families(void) {
  rocksdb_options_t* options = creating();
  rocksdb_options_set_create_missing_column_families(options, 1);
  const char* names[2] = {"default", "users"};
  const rocksdb_options_t* each[2] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  rocksdb_t* db =
      rocksdb_open_column_families(options, in("families"), 1, names + 1, each, handles, &error);
  CHECK(db == NULL && failed_with("Invalid argument: "));
  db = rocksdb_open_column_families(options, in("families"), 2, names, each, handles, &error);
  OK();
  rocksdb_column_family_handle_t* pets =
      rocksdb_create_column_family(db, options, "pets", &error);
  OK();
  CHECK(rocksdb_create_column_family(db, options, "pets", &error) == NULL);
  CHECK(failed_with("Invalid argument: "));
  CHECK(rocksdb_column_family_handle_get_id(pets) == 2);
  size_t len;
  CHECK(is_value(rocksdb_column_family_handle_get_name(pets, &len), &len, "pets"));
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_put_cf(db, write, pets, "tom", 3, "cat", 3, &error);
  OK();
  CHECK(is_value(rocksdb_get_cf(db, read, pets, "tom", 3, &len, &error), &len, "cat"));
  CHECK(is_value(rocksdb_get_cf(db, read, handles[1], "tom", 3, &len, &error), &len, NULL));
  rocksdb_drop_column_family(db, handles[1], &error);
  OK();
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
  rocksdb_column_family_handle_destroy(pets);

  char** listed = rocksdb_list_column_families(options, in("families"), &len, &error);
  OK();
  CHECK(len == 2 && strcmp(listed[0], "default") == 0 && strcmp(listed[1], "pets") == 0);
  rocksdb_list_column_families_destroy(listed, len);
  CHECK(rocksdb_list_column_families(options, in("nothing"), &len, &error) == NULL && len == 0);
  CHECK(error != NULL);
  rocksdb_free(error);
  error = NULL;
  db = rocksdb_open(options, in("families"), &error);
  CHECK(db == NULL && failed_with("Invalid argument: "));
  rocksdb_destroy_db(options, in("families"), &error);
  OK();
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(options);
}

static void callbacks(void) {
  int messages = 0;
  rocksdb_options_t* options = creating();
  rocksdb_comparator_t* comparator = rocksdb_comparator_create(NULL, destroy, reversed, reversed_name);
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_options_set_merge_operator(
      options,
      rocksdb_mergeoperator_create(NULL, destroy, join_all, join_some, NULL, joining_name));
  rocksdb_compactionfilter_t* drops =
      rocksdb_compactionfilter_create(NULL, destroy, filter, filter_name);
  rocksdb_options_set_compaction_filter(options, drops);
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(0, logged, &messages);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_t* db = rocksdb_open(options, in("callbacks"), &error);
  OK();
  /* The database goes on with callbacks whose handles are gone. */
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(comparator);
  rocksdb_compactionfilter_destroy(drops);
  CHECK(destroyed == 0);

  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  put(db, "a", "first");
  put(db, "b", "-");
  put(db, "c", "?");
  rocksdb_merge(db, write, "a", 1, ", second", 8, &error);
  rocksdb_merge(db, write, "z", 1, "alone", 5, &error);
  OK();
  CHECK(holds(db, "a", "first, second") && holds(db, "z", "alone"));
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
  rocksdb_iter_seek_to_first(iterator);
  size_t len;
  CHECK(rocksdb_iter_key(iterator, &len)[0] == 'z');
  rocksdb_iter_destroy(iterator);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(holds(db, "b", NULL) && holds(db, "c", "answer") && holds(db, "a", "first, second"));
  CHECK(messages > 0);
  rocksdb_close(db);
  CHECK(destroyed == 3);

  options = creating();
  db = rocksdb_open(options, in("callbacks"), &error);
  CHECK(db == NULL && failed_with("Invalid argument: "));
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
}

static void copies(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("source"), &error);
  OK();
  put(db, "ada", "1815");

  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  rocksdb_checkpoint_create(checkpoint, in("checkpoint"), 0, &error);
  OK();
  rocksdb_checkpoint_create(checkpoint, in("checkpoint"), 0, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_t* copy = rocksdb_open(options, in("checkpoint"), &error);
  OK();
  CHECK(holds(copy, "ada", "1815"));
  rocksdb_close(copy);

  rocksdb_backup_engine_t* backups = rocksdb_backup_engine_open(options, in("backups"), &error);
  OK();
  rocksdb_backup_engine_create_new_backup_flush(backups, db, 1, &error);
  put(db, "alan", "1912");
  rocksdb_backup_engine_create_new_backup_flush(backups, db, 1, &error);
  OK();
  const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(backups);
  CHECK(rocksdb_backup_engine_info_count(info) == 2);
  CHECK(rocksdb_backup_engine_info_backup_id(info, 1) == 2);
  CHECK(rocksdb_backup_engine_info_size(info, 1) > 0);
  rocksdb_backup_engine_info_destroy(info);
  rocksdb_backup_engine_verify_backup(backups, 1, &error);
  OK();
  rocksdb_backup_engine_verify_backup(backups, 9, &error);
  CHECK(failed_with("NotFound: "));
  rocksdb_restore_options_t* restoring = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_backup(backups, in("restored"), in("restored"), restoring,
                                               1, &error);
  OK();
  copy = rocksdb_open(options, in("restored"), &error);
  OK();
  CHECK(holds(copy, "ada", "1815") && holds(copy, "alan", NULL));
  rocksdb_close(copy);
  rocksdb_restore_options_destroy(restoring);
  rocksdb_backup_engine_close(backups);

  rocksdb_envoptions_t* files = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(files, options);
  rocksdb_sstfilewriter_put(writer, "a", 1, "1", 1, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_sstfilewriter_open(writer, in("table.sst"), &error);
  rocksdb_sstfilewriter_put(writer, "grace", 5, "1906", 4, &error);
  rocksdb_sstfilewriter_finish(writer, &error);
  OK();
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(files);
  const char* tables[1] = {in("table.sst")};
  rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file(db, tables, 1, ingest, &error);
  OK();
  rocksdb_ingestexternalfileoptions_destroy(ingest);
  CHECK(holds(db, "grace", "1906"));
  const rocksdb_livefiles_t* files_of = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files_of) >= 1);
  CHECK(strcmp(rocksdb_livefiles_column_family_name(files_of, 0), "default") == 0);
  rocksdb_livefiles_destroy(files_of);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void transactions(void) {
  rocksdb_options_t* options = creating();
  rocksdb_transactiondb_options_t* locks = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_transaction_lock_timeout(locks, 10);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, locks, in("locking"), &error);
  OK();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
  rocksdb_transaction_t* one = rocksdb_transaction_begin(db, write, how, NULL);
  rocksdb_transaction_t* two = rocksdb_transaction_begin(db, write, how, NULL);
  rocksdb_transaction_put(one, "ada", 3, "1815", 4, &error);
  OK();
  rocksdb_transaction_put(two, "ada", 3, "1816", 4, &error);
  CHECK(failed_with("Operation timed out: "));
  size_t len;
  CHECK(is_value(rocksdb_transaction_get(one, read, "ada", 3, &len, &error), &len, "1815"));
  CHECK(is_value(rocksdb_transactiondb_get(db, read, "ada", 3, &len, &error), &len, NULL));
  rocksdb_transaction_commit(one, &error);
  OK();
  CHECK(is_value(rocksdb_transactiondb_get(db, read, "ada", 3, &len, &error), &len, "1815"));
  CHECK(rocksdb_transaction_begin(db, write, how, one) == one);
  rocksdb_transaction_set_name(one, "first", 5, &error);
  rocksdb_transaction_put(one, "alan", 4, "1912", 4, &error);
  rocksdb_transaction_prepare(one, &error);
  OK();
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_t** prepared = rocksdb_transactiondb_get_prepared_transactions(db, &len);
  CHECK(len == 1);
  CHECK(is_value(rocksdb_transaction_get_name(prepared[0], &len), &len, "first"));
  rocksdb_transaction_commit(prepared[0], &error);
  OK();
  rocksdb_transaction_destroy(prepared[0]);
  rocksdb_free(prepared);
  CHECK(is_value(rocksdb_transactiondb_get(db, read, "alan", 4, &len, &error), &len, "1912"));
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_destroy(two);
  rocksdb_transactiondb_options_destroy(locks);
  rocksdb_transaction_options_destroy(how);

  rocksdb_optimistictransactiondb_t* optimistic =
      rocksdb_optimistictransactiondb_open(options, in("optimistic"), &error);
  OK();
  rocksdb_t* base = rocksdb_optimistictransactiondb_get_base_db(optimistic);
  rocksdb_optimistictransaction_options_t* free_of =
      rocksdb_optimistictransaction_options_create();
  one = rocksdb_optimistictransaction_begin(optimistic, write, free_of, NULL);
  rocksdb_transaction_put(one, "ada", 3, "1815", 4, &error);
  put(base, "ada", "1816");
  rocksdb_transaction_commit(one, &error);
  CHECK(failed_with("Resource busy: "));
  rocksdb_transaction_destroy(one);
  rocksdb_optimistictransaction_options_destroy(free_of);
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_optimistictransactiondb_close(optimistic);

  /* A batch that is read before it is written. */
  rocksdb_t* plain = rocksdb_open(options, in("indexed"), &error);
  OK();
  put(plain, "b", "below");
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_put(batch, "a", 1, "above", 5);
  CHECK(is_value(rocksdb_writebatch_wi_get_from_batch(batch, options, "a", 1, &len, &error), &len,
                 "above"));
  CHECK(is_value(
      rocksdb_writebatch_wi_get_from_batch_and_db(batch, plain, read, "b", 1, &len, &error), &len,
      "below"));
  rocksdb_iterator_t* both = rocksdb_writebatch_wi_create_iterator_with_base(
      batch, rocksdb_create_iterator(plain, read));
  int steps = 0;
  for (rocksdb_iter_seek_to_first(both); rocksdb_iter_valid(both); rocksdb_iter_next(both)) steps++;
  CHECK(steps == 2);
  rocksdb_iter_destroy(both);
  rocksdb_write_writebatch_wi(plain, write, batch, &error);
  OK();
  rocksdb_writebatch_wi_destroy(batch);
  CHECK(holds(plain, "a", "above"));
  rocksdb_close(plain);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(options);
}

static void errors(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = rocksdb_open(options, in("missing"), &error);
  CHECK(db == NULL);
  /* The text before is freed and replaced. */
  db = rocksdb_open(options, in("missing"), &error);
  CHECK(db == NULL && failed_with("Invalid argument: "));
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_plain_table_factory(options, 0, 10, 0.75, 16, 0, 0, 0, 0);
  db = rocksdb_open(options, in("missing"), &error);
  CHECK(db == NULL && failed_with("Not implemented: "));
  rocksdb_options_destroy(options);
  options = creating();
  db = rocksdb_open(NULL, in("missing"), &error);
  CHECK(db == NULL && failed_with("Invalid argument: "));
  db = rocksdb_open(options, NULL, &error);
  CHECK(db == NULL && failed_with("Invalid argument: "));
  db = rocksdb_open(options, in("errors"), &error);
  OK();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_merge(db, write, "a", 1, "b", 1, &error);
  CHECK(error != NULL);
  rocksdb_put(db, write, NULL, 3, "b", 1, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_put_with_ts(db, write, "a", 1, "t", 1, "b", 1, &error);
  CHECK(failed_with("Invalid argument: "));
  const char* names[1] = {"no_such_option"};
  const char* values[1] = {"1"};
  rocksdb_set_options(db, 1, names, values, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, 1000, NULL, &error);
  CHECK(updates == NULL && failed_with("NotFound: "));
  rocksdb_writeoptions_destroy(write);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Background work that waits for the program, and a program that waits for it. */
static void background_work(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("background"), &error);
  OK();
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_flush(wait, 1);
  rocksdb_wait_for_compact_options_set_timeout(wait, 60 * 1000000);
  CHECK(rocksdb_wait_for_compact_options_get_timeout(wait) == 60 * 1000000);
  put(db, "a", "1");
  rocksdb_wait_for_compact(db, wait, &error);
  OK();
  char* tables = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  CHECK(tables != NULL && strcmp(tables, "1") == 0);
  rocksdb_free(tables);

  rocksdb_pause_background_work(db, &error);
  OK();
  rocksdb_wait_for_compact_options_set_flush(wait, 0);
  rocksdb_wait_for_compact_options_set_abort_on_pause(wait, 1);
  rocksdb_wait_for_compact(db, wait, &error);
  CHECK(failed_with("Operation aborted: "));
  rocksdb_continue_background_work(db, &error);
  OK();
  rocksdb_continue_background_work(db, &error);
  CHECK(failed_with("Invalid argument: "));
  rocksdb_wait_for_compact(db, wait, &error);
  OK();

  rocksdb_disable_manual_compaction(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  tables = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  CHECK(tables != NULL && strcmp(tables, "1") == 0);
  rocksdb_free(tables);
  rocksdb_enable_manual_compaction(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  tables = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  CHECK(tables != NULL && strcmp(tables, "0") == 0);
  rocksdb_free(tables);
  rocksdb_cancel_all_background_work(db, 0);
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void counters_of_single_calls(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("counted"), &error);
  OK();
  put(db, "ada", "1815");
  rocksdb_perfcontext_t* context = rocksdb_perfcontext_create();
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_read_bytes) == 0);
  rocksdb_set_perf_level(rocksdb_enable_time_except_for_mutex);
  CHECK(holds(db, "ada", "1815"));
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_read_bytes) == 4);
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_memtable_count) == 1);
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_from_memtable_time) > 0);
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_total_metric_count) == 0);
  CHECK(rocksdb_perfcontext_metric(context, -1) == 0);
  char* report = rocksdb_perfcontext_report(context, 1);
  CHECK(strstr(report, "get_read_bytes = 4") != NULL);
  rocksdb_free(report);
  rocksdb_set_perf_level(rocksdb_disable);
  rocksdb_perfcontext_reset(context);
  CHECK(holds(db, "ada", "1815"));
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_get_read_bytes) == 0);
  rocksdb_perfcontext_destroy(context);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void traces(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in("traced"), &error);
  OK();
  char trace[1024];
  snprintf(trace, sizeof(trace), "%s", in("operations.trace"));
  rocksdb_trace_options_t* traced = rocksdb_trace_options_create();
  CHECK(rocksdb_trace_options_get_sampling_frequency(traced) == 1);
  rocksdb_trace_options_set_filter(traced, rocksdb_trace_filter_get);
  CHECK(rocksdb_trace_options_get_filter(traced) == 1);
  rocksdb_trace_options_set_preserve_write_order(traced, 1);
  rocksdb_start_trace(db, NULL, NULL, traced, trace, &error);
  OK();
  put(db, "ada", "1815");
  CHECK(holds(db, "ada", "1815"));
  rocksdb_start_trace(db, NULL, NULL, traced, trace, &error);
  CHECK(strstr(error, "already being recorded") != NULL);
  rocksdb_free(error), error = NULL;
  rocksdb_end_trace(db, &error);
  OK();
  rocksdb_end_trace(db, &error);
  CHECK(strcmp(error, "IO error: No trace file to close") == 0);
  rocksdb_free(error), error = NULL;
  rocksdb_trace_options_destroy(traced);

  /* Header, write, end. */
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_trace_reader_t* reader = rocksdb_trace_reader_create(env, NULL, trace, &error);
  OK();
  size_t len, records = 0;
  for (int round = 0; round < 2; round++) {
    for (char* record; (record = rocksdb_trace_reader_read(reader, &len, &error)); records++) {
      CHECK(len >= 13);
      rocksdb_free(record);
    }
    OK();
    CHECK(len == 0);
    rocksdb_trace_reader_reset(reader, &error);
    OK();
  }
  CHECK(records == 6);
  rocksdb_trace_reader_close(reader, &error);
  OK();
  CHECK(rocksdb_trace_reader_read(reader, &len, &error) == NULL);
  CHECK(strcmp(error, "IO error: TraceReader is closed.") == 0);
  rocksdb_free(error), error = NULL;
  rocksdb_trace_reader_destroy(reader);
  rocksdb_env_destroy(env);

  rocksdb_t* second = rocksdb_open(options, in("replayed"), &error);
  OK();
  rocksdb_replayer_t* replayer =
      rocksdb_new_default_replayer(second, NULL, 0, NULL, NULL, trace, &error);
  OK();
  rocksdb_replayer_prepare(replayer, &error);
  OK();
  CHECK(rocksdb_replayer_get_header_timestamp(replayer) > 0);
  rocksdb_replay_options_t* replay = rocksdb_replay_options_create();
  rocksdb_replay_options_set_num_threads(replay, 2);
  rocksdb_replay_options_set_fast_forward(replay, 100);
  CHECK(rocksdb_replay_options_get_fast_forward(replay) == 100);
  rocksdb_replayer_replay(replayer, replay, &error);
  OK();
  CHECK(holds(second, "ada", "1815"));
  rocksdb_replay_options_destroy(replay);
  rocksdb_replayer_destroy(replayer);
  rocksdb_close(second);

  rocksdb_start_block_cache_trace_with_options(db, NULL, NULL, NULL, NULL, in("blocks"), &error);
  OK();
  rocksdb_end_block_cache_trace(db, &error);
  OK();
  rocksdb_end_io_trace(db, &error);
  OK();
  snprintf(trace, sizeof(trace), "%s", in("io.trace"));
  rocksdb_start_io_trace(db, NULL, NULL, NULL, trace, &error);
  OK();
  rocksdb_start_io_trace(db, NULL, NULL, NULL, trace, &error);
  CHECK(strstr(error, "already being recorded") != NULL);
  rocksdb_free(error), error = NULL;
  put(db, "grace", "1906");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  OK();
  rocksdb_flushoptions_destroy(flush);
  rocksdb_end_io_trace(db, &error);
  OK();
  env = rocksdb_create_default_env();
  reader = rocksdb_trace_reader_create(env, NULL, trace, &error);
  OK();
  size_t calls = 0;
  for (char* record; (record = rocksdb_trace_reader_read(reader, &len, &error)); calls++) {
    CHECK(record[8] == (calls == 0 ? 1 : 12));
    rocksdb_free(record);
  }
  OK();
  CHECK(calls > 5);
  rocksdb_trace_reader_destroy(reader);
  rocksdb_env_destroy(env);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Reads that end in time, rows in a cache, blocks and writes with checksums. */
static void limits(void) {
  rocksdb_options_t* options = creating();
  rocksdb_options_set_allow_mmap_reads(options, 1);
  rocksdb_options_set_block_protection_bytes_per_key(options, 4);
  CHECK(rocksdb_options_get_block_protection_bytes_per_key(options) == 4);
  rocksdb_options_checksum_handoff_file_types_add(options, 0);
  rocksdb_options_checksum_handoff_file_types_add(options, 2);
  rocksdb_options_checksum_handoff_file_types_add(options, 2);
  CHECK(rocksdb_options_checksum_handoff_file_types_count(options) == 2);
  rocksdb_options_checksum_handoff_file_types_remove(options, 0);
  CHECK(!rocksdb_options_checksum_handoff_file_types_contains(options, 0));
  CHECK(rocksdb_options_checksum_handoff_file_types_contains(options, 2));
  rocksdb_cache_t* rows = rocksdb_cache_create_lru(1 << 20);
  rocksdb_options_set_row_cache(options, rows);
  rocksdb_t* db = rocksdb_open(options, in("limits"), &error);
  OK();
  put(db, "key", "value");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  OK();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_readoptions_set_auto_prefix_mode(read, 1);
  rocksdb_readoptions_set_rate_limiter_priority(read, 2);
  CHECK(rocksdb_readoptions_get_auto_prefix_mode(read) == 1);
  CHECK(rocksdb_readoptions_get_rate_limiter_priority(read) == 2);
  rocksdb_readoptions_set_io_timeout(read, 1000000000);
  for (int round = 0; round < 2; round++) {
    size_t length = 0;
    char* value = rocksdb_get(db, read, "key", 3, &length, &error);
    CHECK(error == NULL && length == 5 && memcmp(value, "value", 5) == 0);
    rocksdb_free(value);
  }
  CHECK(rocksdb_cache_get_usage(rows) > 0);
  /* In 1970. */
  rocksdb_readoptions_set_deadline(read, 1);
  CHECK(rocksdb_readoptions_get_deadline(read) == 1);
  size_t length = 0;
  CHECK(rocksdb_get(db, read, "key", 3, &length, &error) == NULL);
  CHECK(failed_with("Operation timed out: "));
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
  rocksdb_iter_seek_to_first(iterator);
  CHECK(!rocksdb_iter_valid(iterator));
  rocksdb_iter_get_error(iterator, &error);
  CHECK(failed_with("Operation timed out: "));
  rocksdb_iter_destroy(iterator);
  rocksdb_readoptions_destroy(read);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_close(db);
  rocksdb_cache_destroy(rows);
  rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(directory, sizeof(directory), "%s", arguments[1]);
  keys_and_values();
  families();
  callbacks();
  copies();
  transactions();
  errors();
  background_work();
  counters_of_single_calls();
  traces();
  limits();
  puts("done");
  return 0;
}
