/* Threads that share a database with callbacks: its only argument is an empty directory. Each check
   ends the program with the line that failed. */

#include <pthread.h>
#include <stdatomic.h>

#include "helpers.h"

enum { WRITERS = 3, READERS = 2, ROUNDS = 400, KEYS = 40 };

static rocksdb_t* db;
static rocksdb_column_family_handle_t* families[2];
static atomic_int compared, merged, filtered, transformed, logged_lines, writers_left;
/* Without a lock: calls of a listener come one at a time. */
static int flushed, compacted;

static int compare(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  atomic_fetch_add((atomic_int*)state, 1);
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (int)a_len - (int)b_len;
}

static const char* name(void* state) {
  (void)state;
  return "threads";
}

static char* sum(const char* first, size_t first_len, const char* const* operands,
                 const size_t* lengths, int count, unsigned char* success, size_t* len) {
  uint64_t total = 0, one;
  CHECK(first == NULL || first_len == sizeof one);
  if (first != NULL) memcpy(&total, first, sizeof one);
  for (int i = 0; i < count; i++) {
    CHECK(lengths[i] == sizeof one);
    memcpy(&one, operands[i], sizeof one);
    total += one;
  }
  atomic_fetch_add(&merged, 1);
  char* result = malloc(sizeof total);
  memcpy(result, &total, sizeof total);
  *success = 1;
  *len = sizeof total;
  return result;
}

static char* sum_all(void* state, const char* key, size_t key_len, const char* value,
                     size_t value_len, const char* const* operands, const size_t* lengths,
                     int count, unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_len;
  return sum(value, value_len, operands, lengths, count, success, len);
}

static char* sum_some(void* state, const char* key, size_t key_len, const char* const* operands,
                      const size_t* lengths, int count, unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_len;
  return sum(NULL, 0, operands, lengths, count, success, len);
}

static void free_sum(void* state, const char* value, size_t len) {
  (void)state, (void)len;
  free((void*)value);
}

static unsigned char keep(void* state, int level, const char* key, size_t key_len,
                          const char* value, size_t value_len, char** new_value, size_t* new_len,
                          unsigned char* is_changed) {
  (void)level, (void)key, (void)key_len, (void)value, (void)value_len;
  (void)new_value, (void)new_len, (void)is_changed;
  atomic_fetch_add((atomic_int*)state, 1);
  return 0;
}

static char* first_byte(void* state, const char* key, size_t key_len, size_t* len) {
  (void)key_len;
  atomic_fetch_add((atomic_int*)state, 1);
  *len = 1;
  return (char*)key;
}

static unsigned char has_byte(void* state, const char* key, size_t key_len) {
  (void)state, (void)key;
  return key_len > 0;
}

static void on_flush(void* state, rocksdb_t* of, const rocksdb_flushjobinfo_t* info) {
  (void)state, (void)of;
  CHECK(rocksdb_flushjobinfo_file_number(info) > 0);
  flushed++;
}

static void on_compaction(void* state, rocksdb_t* of, const rocksdb_compactionjobinfo_t* info) {
  (void)state, (void)of, (void)info;
  compacted++;
}

static void on_line(void* state, unsigned level, char* line, size_t len) {
  (void)level, (void)line, (void)len;
  atomic_fetch_add((atomic_int*)state, 1);
}

static void* write_sums(void* argument) {
  rocksdb_column_family_handle_t* family = families[*(int*)argument % 2];
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  char* failed = NULL;
  for (int round = 0; round < ROUNDS; round++) {
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    uint64_t one = 1;
    char key[16];
    int len = snprintf(key, sizeof key, "%c%02d", 'a' + round % 3, round % KEYS);
    rocksdb_writebatch_merge_cf(batch, family, key, len, (char*)&one, sizeof one);
    rocksdb_writebatch_merge_cf(batch, family, "total", 5, (char*)&one, sizeof one);
    rocksdb_write(db, write, batch, &failed);
    CHECK(failed == NULL);
    rocksdb_writebatch_destroy(batch);
    if (round % 100 == 99) rocksdb_flush_cf(db, flushing, family, &failed);
    CHECK(failed == NULL);
  }
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(write);
  atomic_fetch_sub(&writers_left, 1);
  return NULL;
}

static uint64_t total_of(const rocksdb_readoptions_t* read, rocksdb_column_family_handle_t* family) {
  char* failed = NULL;
  size_t len;
  uint64_t total = 0;
  char* value = rocksdb_get_cf(db, read, family, "total", 5, &len, &failed);
  CHECK(failed == NULL);
  if (value != NULL) memcpy(&total, value, sizeof total);
  rocksdb_free(value);
  return total;
}

/* In each snapshot the keys sum up to the total. */
static void* read_sums(void* argument) {
  rocksdb_column_family_handle_t* family = families[*(int*)argument % 2];
  do {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_readoptions_set_snapshot(read, snapshot);
    rocksdb_readoptions_set_total_order_seek(read, 1);
    rocksdb_iterator_t* iterator = rocksdb_create_iterator_cf(db, read, family);
    uint64_t found = 0;
    for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator);
         rocksdb_iter_next(iterator)) {
      size_t key_len, len;
      uint64_t count;
      const char* key = rocksdb_iter_key(iterator, &key_len);
      const char* value = rocksdb_iter_value(iterator, &len);
      CHECK(len == sizeof count);
      memcpy(&count, value, sizeof count);
      if (key[0] != 't') found += count;
    }
    rocksdb_iter_destroy(iterator);
    CHECK(found == total_of(read, family));
    rocksdb_readoptions_destroy(read);
    rocksdb_release_snapshot(db, snapshot);
  } while (atomic_load(&writers_left) > 0);
  return NULL;
}

static void* compact(void* argument) {
  (void)argument;
  do {
    for (int i = 0; i < 2; i++) rocksdb_compact_range_cf(db, families[i], NULL, 0, NULL, 0);
    free(rocksdb_property_value(db, "rocksdb.stats"));
  } while (atomic_load(&writers_left) > 0);
  return NULL;
}

static rocksdb_options_t* with_callbacks(rocksdb_comparator_t* order, rocksdb_compactionfilter_t* drops) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_write_buffer_size(options, 64 << 10);
  rocksdb_options_set_max_background_jobs(options, 4);
  rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1);
  rocksdb_options_set_comparator(options, order);
  rocksdb_options_set_compaction_filter(options, drops);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, destroy, sum_all, sum_some, free_sum, name));
  rocksdb_options_set_prefix_extractor(
      options, rocksdb_slicetransform_create(&transformed, destroy, first_byte, has_byte, name));
  rocksdb_options_add_eventlistener(
      options, rocksdb_eventlistener_create(NULL, destroy, NULL, on_flush, NULL, on_compaction, NULL,
                                            NULL, NULL, NULL, NULL, NULL));
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(0, on_line, &logged_lines);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  return options;
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  rocksdb_comparator_t* order = rocksdb_comparator_create(&compared, destroy, compare, name);
  rocksdb_compactionfilter_t* drops =
      rocksdb_compactionfilter_create(&filtered, destroy, keep, name);
  rocksdb_options_t* options = with_callbacks(order, drops);
  const char* names[] = {"default", "other"};
  const rocksdb_options_t* of[] = {options, options};
  db = rocksdb_open_column_families(options, arguments[1], 2, names, of, families, &error);
  OK();

  int numbers[WRITERS + READERS];
  pthread_t threads[WRITERS + READERS + 1];
  atomic_store(&writers_left, WRITERS);
  for (int i = 0; i < WRITERS + READERS; i++) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, i < WRITERS ? write_sums : read_sums, &numbers[i]) == 0);
  }
  CHECK(pthread_create(&threads[WRITERS + READERS], NULL, compact, NULL) == 0);
  for (int i = 0; i <= WRITERS + READERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);

  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  CHECK(total_of(read, families[0]) == 2 * ROUNDS);
  CHECK(total_of(read, families[1]) == ROUNDS);
  rocksdb_readoptions_destroy(read);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(families[i]);
  rocksdb_close(db);
  CHECK(flushed > 0 && compacted > 0);
  CHECK(compared > 0 && merged > 0 && filtered > 0 && transformed > 0 && logged_lines > 0);
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(order);
  rocksdb_compactionfilter_destroy(drops);
  CHECK(destroyed == 5);
  puts("done");
  return 0;
}
