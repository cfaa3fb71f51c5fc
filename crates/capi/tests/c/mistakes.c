/* Mistakes that programs make, and the texts of the errors. Its only argument is an empty directory.
   It is compiled once and run with RocksDB's library and with ours: tests/mistakes.txt has both. */

#include <dirent.h>

#include "mistakes.h"
#include "mistakes_in_copies.h"
#include "mistakes_in_transactions.h"

const char* file_in(const char* path, const char* end) {
  static char found[8192];
  DIR* entries = opendir(path);
  CHECK(entries != NULL);
  found[0] = 0;
  for (struct dirent* entry; (entry = readdir(entries)) != NULL;) {
    size_t len = strlen(entry->d_name);
    if (len < strlen(end) || strcmp(entry->d_name + len - strlen(end), end) != 0) continue;
    snprintf(found, sizeof found, "%s/%s", path, entry->d_name);
  }
  closedir(entries);
  CHECK(found[0] != 0);
  return found;
}

static int backwards(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  (void)state;
  int order = memcmp(b, a, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (int)b_len - (int)a_len;
}

static const char* name_backwards(void* state) {
  (void)state;
  return "backwards";
}

static void in_openings(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  TRY_MAKE(rocksdb_open, rocksdb_close, "no database", options, in("none"));
  TRY_MAKE(rocksdb_open, rocksdb_close, "no directory above", options, in("none/below"));
  TRY_MAKE(rocksdb_open_for_read_only, rocksdb_close, "no database", options, in("none"), 0);
  TRY_MAKE(rocksdb_open_as_secondary, rocksdb_close, "no database", options, in("none"), in("secondary"));
  TRY_MAKE(rocksdb_open_with_ttl, rocksdb_close, "no database", options, in("none"), 60);
  size_t count;
  TRY(rocksdb_list_column_families, "no database", options, in("none"), &count);
  TRY(rocksdb_destroy_db, "no database", options, in("none"));
  TRY(rocksdb_repair_db, "no database", options, in("nothing"));
  write_file(in("file"), "text");
  TRY_MAKE(rocksdb_open, rocksdb_close, "a file in place of the directory", options, in("file"));
  rocksdb_options_set_create_if_missing(options, 1);
  TRY_MAKE(rocksdb_open, rocksdb_close, "a file in place of the directory, to be created", options, in("file"));
  TRY_MAKE(rocksdb_open, rocksdb_close, "no directory above, to be created", options, in("file/below"));

  rocksdb_t* db = opened("db");
  put(db, "key", "value");
  TRY_MAKE(rocksdb_open, rocksdb_close, "open in this process", options, in("db"));
  TRY(rocksdb_destroy_db, "open in this process", options, in("db"));
  TRY(rocksdb_repair_db, "open in this process", options, in("db"));
  rocksdb_close(db);
  rocksdb_options_set_error_if_exists(options, 1);
  TRY_MAKE(rocksdb_open, rocksdb_close, "error_if_exists", options, in("db"));
  rocksdb_options_set_error_if_exists(options, 0);

  rocksdb_comparator_t* order =
      rocksdb_comparator_create(NULL, destroy, backwards, name_backwards);
  rocksdb_options_set_comparator(options, order);
  TRY_MAKE(rocksdb_open, rocksdb_close, "another comparator", options, in("db"));
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(order);

  options = creating();
  rocksdb_options_set_max_write_buffer_number(options, 2);
  rocksdb_options_set_db_write_buffer_size(options, 1 << 20);
  rocksdb_options_set_allow_concurrent_memtable_write(options, 1);
  rocksdb_options_set_inplace_update_support(options, 1);
  TRY_MAKE(rocksdb_open, rocksdb_close, "concurrent inserts and updates in place", options, in("db"));
  rocksdb_options_set_inplace_update_support(options, 0);
  rocksdb_options_set_allow_mmap_reads(options, 1);
  rocksdb_options_set_use_direct_reads(options, 1);
  TRY_MAKE(rocksdb_open, rocksdb_close, "mapped and direct reads", options, in("db"));
  rocksdb_options_set_allow_mmap_reads(options, 0);
  rocksdb_options_set_use_direct_reads(options, 0);
  rocksdb_options_set_unordered_write(options, 1);
  rocksdb_options_set_enable_pipelined_write(options, 1);
  TRY_MAKE(rocksdb_open, rocksdb_close, "unordered and pipelined writes", options, in("db"));
  rocksdb_options_destroy(options);
}

static void in_damaged(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = opened("damaged");
  for (int i = 0; i < 100; i++) {
    char key[16];
    snprintf(key, sizeof key, "key%04d", i);
    put(db, key, "value value value value value value value");
  }
  flush(db);
  rocksdb_close(db);
  damage(file_in(in("damaged"), ".sst"));
  db = opened("damaged");
  size_t len;
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iterator);
  while (rocksdb_iter_valid(iterator)) rocksdb_iter_next(iterator);
  TRY(rocksdb_iter_get_error, "a damaged table", iterator);
  rocksdb_iter_destroy(iterator);
  TRY_MAKE(rocksdb_get, free, "a damaged table", db, reading, "key0050", 7, &len);
  TRY_MAKE(rocksdb_get_pinned, rocksdb_pinnableslice_destroy, "a damaged table", db, reading, "key0050", 7);
  rocksdb_close(db);

  char current[8192];
  snprintf(current, sizeof current, "%s", in("damaged/CURRENT"));
  write_file(current, "MANIFEST-999999");
  TRY_MAKE(rocksdb_open, rocksdb_close, "CURRENT without a newline", options, in("damaged"));
  write_file(current, "MANIFEST-999999\n");
  TRY_MAKE(rocksdb_open, rocksdb_close, "CURRENT names no file", options, in("damaged"));
  size_t count;
  TRY(rocksdb_list_column_families, "CURRENT names no file", options, in("damaged"), &count);
  write_file(current, "");
  TRY_MAKE(rocksdb_open, rocksdb_close, "CURRENT is empty", options, in("damaged"));
  TRY(rocksdb_list_column_families, "CURRENT is empty", options, in("damaged"), &count);

  rocksdb_close(opened("manifest"));
  const char* manifest = in("manifest/MANIFEST-000001");
  if (access(manifest, F_OK) != 0) manifest = in("manifest/MANIFEST-000005");
  if (access(manifest, F_OK) == 0) {
    damage(manifest);
    TRY_MAKE(rocksdb_open, rocksdb_close, "a damaged MANIFEST", options, in("manifest"));
  } else {
    say("a damaged MANIFEST", "not found");
  }

  db = opened("lost");
  put(db, "key", "value");
  flush(db);
  rocksdb_close(db);
  CHECK(unlink(file_in(in("lost"), ".sst")) == 0);
  TRY_MAKE(rocksdb_open, rocksdb_close, "a table is gone", options, in("lost"));
  rocksdb_options_destroy(options);
}

static void in_families(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = opened("families");
  rocksdb_column_family_handle_t* one =
      rocksdb_create_column_family(db, options, "one", &error);
  OK();
  TRY_MAKE(rocksdb_create_column_family, rocksdb_column_family_handle_destroy, "a name that is taken", db, options, "one");
  TRY_MAKE(rocksdb_create_column_family, rocksdb_column_family_handle_destroy, "default", db, options, "default");
  const char* several[] = {"two", "one"};
  size_t made;
  TRY(rocksdb_create_column_families, "a name that is taken", db, options, 2, several, &made);
  rocksdb_column_family_handle_t* main_family = rocksdb_get_default_column_family_handle(db);
  TRY(rocksdb_drop_column_family, "default", db, main_family);
  rocksdb_drop_column_family(db, one, &error);
  OK();
  TRY(rocksdb_drop_column_family, "dropped before", db, one);
  TRY(rocksdb_put_cf, "dropped before", db, writing, one, "key", 3, "value", 5);
  TRY(rocksdb_flush_cf, "dropped before", db, flushing, one);
  size_t len;
  TRY_MAKE(rocksdb_get_cf, free, "dropped before", db, reading, one, "key", 3, &len);
  rocksdb_column_family_handle_destroy(one);
  rocksdb_close(db);

  rocksdb_column_family_handle_t* handles[3];
  const rocksdb_options_t* of[] = {options, options, options};
  const char* names[] = {"default", "two", "three"};
  TRY_MAKE(rocksdb_open, rocksdb_close, "families are not opened", options, in("families"));
  TRY_MAKE(rocksdb_open_column_families, rocksdb_close, "a family that there is not", options, in("families"), 3, names, of,
      handles);
  const char* others[] = {"two"};
  TRY_MAKE(rocksdb_open_column_families, rocksdb_close, "default is not opened", options, in("families"), 1, others, of,
      handles);
  const char* twice[] = {"default", "two", "two"};
  TRY_MAKE(rocksdb_open_column_families, rocksdb_close, "a family twice", options, in("families"), 3, twice, of, handles);
  TRY_MAKE(rocksdb_open_for_read_only_column_families, rocksdb_close, "a family that there is not", options, in("families"), 3,
      names, of, handles, 0);
  rocksdb_options_destroy(options);
}

static void in_writes(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = opened("written");
  put(db, "key", "value");
  TRY(rocksdb_merge, "no merge operator", db, writing, "key", 3, "value", 5);
  size_t len;
  TRY_MAKE(rocksdb_get, free, "no merge operator", db, reading, "key", 3, &len);
  TRY(rocksdb_put_with_ts, "a comparator without timestamps", db, writing, "key", 3, "12345678", 8, "value",
      5);
  TRY(rocksdb_delete_with_ts, "a comparator without timestamps", db, writing, "key", 3, "12345678", 8);
  TRY(rocksdb_singledelete_with_ts, "a comparator without timestamps", db, writing, "key", 3, "12345678", 8);
  char* ts;
  size_t ts_len;
  rocksdb_readoptions_t* as_of = rocksdb_readoptions_create();
  rocksdb_readoptions_set_timestamp(as_of, "12345678", 8);
  TRY_MAKE(rocksdb_get_with_ts, free, "a comparator without timestamps", db, as_of, "key", 3, &len, &ts, &ts_len);
  TRY(rocksdb_increase_full_history_ts_low, "a comparator without timestamps", db,
      rocksdb_get_default_column_family_handle(db), "12345678", 8);
  TRY_MAKE(rocksdb_get_full_history_ts_low, free, "a comparator without timestamps", db,
      rocksdb_get_default_column_family_handle(db), &ts_len);
  rocksdb_readoptions_destroy(as_of);
  rocksdb_writeoptions_t* both = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(both, 1);
  rocksdb_writeoptions_disable_WAL(both, 1);
  TRY(rocksdb_put, "sync without the WAL", db, both, "key", 3, "value", 5);
  rocksdb_writeoptions_destroy(both);
  rocksdb_writebatch_t* damaged = rocksdb_writebatch_create_from("01234567\1\0\0\0\x70other", 18);
  /* RocksDB refuses all writes afterwards, also after the next. */
  rocksdb_t* other = opened("other");
  TRY(rocksdb_write, "a batch of other bytes", other, writing, damaged);
  rocksdb_close(other);
  rocksdb_writebatch_destroy(damaged);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  TRY(rocksdb_writebatch_rollback_to_save_point, "no save point", batch);
  TRY(rocksdb_writebatch_pop_save_point, "no save point", batch);
  rocksdb_writebatch_destroy(batch);
  rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
  TRY(rocksdb_writebatch_wi_rollback_to_save_point, "no save point", indexed);
  rocksdb_writebatch_wi_merge(indexed, "key", 3, "value", 5);
  TRY_MAKE(rocksdb_writebatch_wi_get_from_batch, free, "no merge operator", indexed, options, "key", 3, &len);
  TRY_MAKE(rocksdb_writebatch_wi_get_from_batch_and_db, free, "no merge operator", indexed, db, reading, "key", 3, &len);
  rocksdb_writebatch_wi_destroy(indexed);
  TRY_MAKE(rocksdb_get_updates_since, rocksdb_wal_iter_destroy, "a number that is not written yet", db, 1000, NULL);
  TRY(rocksdb_try_catch_up_with_primary, "not a secondary", db);
  TRY(rocksdb_disable_file_deletions, "in order", db);
  TRY(rocksdb_enable_file_deletions, "in order", db);
  TRY(rocksdb_enable_file_deletions, "not disabled", db);
  TRY(rocksdb_delete_range_cf, "the end before the begin", db, writing,
      rocksdb_get_default_column_family_handle(db), "b", 1, "a", 1);
  rocksdb_close(db);

  db = rocksdb_open_for_read_only(options, in("written"), 0, &error);
  OK();
  TRY(rocksdb_put, "read-only", db, writing, "key", 3, "value", 5);
  TRY(rocksdb_flush, "read-only", db, flushing);
  TRY_MAKE(rocksdb_create_column_family, rocksdb_column_family_handle_destroy, "read-only", db, options, "one");
  TRY(rocksdb_flush_wal, "read-only", db, 1);
  TRY(rocksdb_disable_file_deletions, "read-only", db);
  TRY(rocksdb_suggest_compact_range, "read-only", db, "a", 1, "b", 1);
  const char* keys[] = {"write_buffer_size"};
  const char* values[] = {"1048576"};
  TRY(rocksdb_set_options, "read-only", db, 1, keys, values);
  rocksdb_close(db);
  TRY_MAKE(rocksdb_open_for_read_only, rocksdb_close, "a WAL exists", options, in("written"), 1);

  db = rocksdb_open_as_secondary(options, in("written"), in("secondary"), &error);
  OK();
  TRY(rocksdb_put, "secondary", db, writing, "key", 3, "value", 5);
  TRY(rocksdb_flush, "secondary", db, flushing);
  TRY_MAKE(rocksdb_create_column_family, rocksdb_column_family_handle_destroy, "secondary", db, options, "one");
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Of a comparator whose keys end with timestamps of 8 bytes. */
static int compare(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  return backwards(state, b, b_len, a, a_len);
}

static int compare_timestamps(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  return compare(state, a, a_len, b, b_len);
}

static int compare_without(void* state, const char* a, size_t a_len, unsigned char a_has, const char* b,
                           size_t b_len, unsigned char b_has) {
  return compare(state, a, a_has ? a_len - 8 : a_len, b, b_has ? b_len - 8 : b_len);
}

static const char* name_stamped(void* state) {
  (void)state;
  return "stamped";
}

static void in_timestamps(void) {
  rocksdb_options_t* options = creating();
  rocksdb_comparator_t* order = rocksdb_comparator_with_ts_create(
      NULL, destroy, compare, compare_timestamps, compare_without, name_stamped, 8);
  rocksdb_options_set_comparator(options, order);
  rocksdb_t* db = rocksdb_open(options, in("stamped"), &error);
  OK();
  TRY(rocksdb_put, "no timestamp", db, writing, "key", 3, "value", 5);
  TRY(rocksdb_delete, "no timestamp", db, writing, "key", 3);
  TRY(rocksdb_put_with_ts, "a timestamp of 3 bytes", db, writing, "key", 3, "123", 3, "value", 5);
  TRY(rocksdb_put_with_ts, "in order", db, writing, "key", 3, "12345678", 8, "value", 5);
  size_t len, ts_len;
  char* ts = NULL;
  TRY_MAKE(rocksdb_get, free, "no timestamp", db, reading, "key", 3, &len);
  TRY_MAKE(rocksdb_get_with_ts, free, "no timestamp to read as of", db, reading, "key", 3, &len, &ts, &ts_len);
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  TRY(rocksdb_increase_full_history_ts_low, "a timestamp of 3 bytes", db, family, "123", 3);
  TRY(rocksdb_increase_full_history_ts_low, "in order", db, family, "50000000", 8);
  TRY(rocksdb_increase_full_history_ts_low, "earlier than before", db, family, "40000000", 8);
  rocksdb_readoptions_t* as_of = rocksdb_readoptions_create();
  rocksdb_readoptions_set_timestamp(as_of, "40000000", 8);
  TRY_MAKE(rocksdb_get_with_ts, free, "a moment that is collapsed", db, as_of, "key", 3, &len, &ts, &ts_len);
  rocksdb_readoptions_destroy(as_of);
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, reading);
  TRY(rocksdb_iter_get_error, "no timestamp", iterator);
  rocksdb_iter_destroy(iterator);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  options = rocksdb_options_create();
  TRY_MAKE(rocksdb_open, rocksdb_close, "a comparator without timestamps", options, in("stamped"));
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(order);
}

static void in_options(void) {
  rocksdb_options_t *base = rocksdb_options_create(), *made = rocksdb_options_create();
  const char* texts[] = {
      "no_such_option=1",  "write_buffer_size",      "write_buffer_size=",
      "write_buffer_size=many", "write_buffer_size=-1", "compression=kNone",
      "create_if_missing=perhaps", "{", "block_based_table_factory={block_size=small}",
      "block_based_table_factory={no_such=1}", "comparator=none", "merge_operator=none",
      "compaction_style=kNone", "max_open_files=1x", "=5", "a=b=c",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    TRY(rocksdb_get_options_from_string, texts[i], base, texts[i], made);
  }
  rocksdb_t* db = opened("settings");
  const char* pairs[][2] = {
      {"no_such_option", "1"}, {"write_buffer_size", "many"}, {"num_levels", "3"},
      {"comparator", "none"}, {"disable_auto_compactions", "perhaps"}, {"max_open_files", "10"},
      {"ttl", "-1x"}, {"compression", "kNone"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char mistake[64];
    snprintf(mistake, sizeof mistake, "%s=%s", pairs[i][0], pairs[i][1]);
    TRY(rocksdb_set_options, mistake, db, 1, &pairs[i][0], &pairs[i][1]);
  }
  TRY(rocksdb_set_options, "nothing to set", db, 0, NULL, NULL);
  say("rocksdb_property_value, no such property", rocksdb_property_value(db, "rocksdb.no-such"));
  say("rocksdb_property_value, a family without files", rocksdb_property_value(db, "rocksdb.sstables"));
  say("rocksdb_property_value, a level", rocksdb_property_value(db, "rocksdb.num-files-at-level9"));
  uint64_t number = 7;
  say("rocksdb_property_int, no number",
      rocksdb_property_int(db, "rocksdb.stats", &number) == 0 ? "found" : "not found");
  rocksdb_close(db);
  size_t families;
  rocksdb_options_t *db_options = NULL, **of = NULL;
  char** names = NULL;
  TRY(rocksdb_load_latest_options, "no database", in("none"), rocksdb_create_default_env(), 0, NULL, &db_options,
      &families, &names, &of);
  rocksdb_options_destroy(base);
  rocksdb_options_destroy(made);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  snprintf(directory, sizeof directory, "%s", arguments[1]);
  writing = rocksdb_writeoptions_create();
  reading = rocksdb_readoptions_create();
  flushing = rocksdb_flushoptions_create();
  in_openings();
  in_damaged();
  in_families();
  in_writes();
  in_timestamps();
  in_options();
  in_tables();
  in_copies();
  in_locks();
  in_optimistic();
  return 0;
}
