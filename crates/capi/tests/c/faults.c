/* Mistakes that a sanitizer must report, so that its silence about other programs says something:
   faults DIRECTORY address|thread library|program. In `library` it is Rust code that does what the
   program's mistake leads to, in `program` a callback. */

#include <pthread.h>

#include "helpers.h"

static rocksdb_t* db;
static rocksdb_writebatch_t* batch;
static int merged;
/* Threads that run one after the other would be ordered by the database's own locks. */
static pthread_barrier_t both;

static const char* name(void* state) {
  (void)state;
  return "faults";
}

/* Counts without a lock: several threads read at a time. */
static char* count_all(void* state, const char* key, size_t key_len, const char* value,
                       size_t value_len, const char* const* operands, const size_t* lengths, int count,
                       unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_len, (void)value, (void)value_len, (void)lengths, (void)count;
  merged++;
  *success = 1;
  *len = 1;
  char* result = malloc(1);
  *result = operands[0][0];
  return result;
}

static char* count_some(void* state, const char* key, size_t key_len, const char* const* operands,
                        const size_t* lengths, int count, unsigned char* success, size_t* len) {
  return count_all(state, key, key_len, NULL, 0, operands, lengths, count, success, len);
}

/* Returns less than it says. */
static char* too_short(void* state, const char* key, size_t key_len, const char* value,
                       size_t value_len, const char* const* operands, const size_t* lengths, int count,
                       unsigned char* success, size_t* len) {
  char* result = count_all(state, key, key_len, value, value_len, operands, lengths, count, success, len);
  return result[*len = lengths[0] + 64] ? result : NULL;
}

static void* fill(void* argument) {
  (void)argument;
  pthread_barrier_wait(&both);
  for (int i = 0; i < 1000; i++) rocksdb_writebatch_put(batch, "key", 3, "value", 5);
  return NULL;
}

static void* merge(void* argument) {
  (void)argument;
  pthread_barrier_wait(&both);
  for (int i = 0; i < 20000; i++) CHECK(holds(db, "key", "v"));
  return NULL;
}

static void together(void* (*work)(void*)) {
  pthread_t threads[2];
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int count, char** arguments) {
  CHECK(count == 4);
  int races = strcmp(arguments[2], "thread") == 0, is_library = strcmp(arguments[3], "library") == 0;
  rocksdb_options_t* options = creating();
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, destroy, races ? count_all : too_short, count_some,
                                            NULL, name));
  db = rocksdb_open(options, arguments[1], &error);
  OK();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  if (is_library && races) {
    batch = rocksdb_writebatch_create();
    together(fill);
  } else if (is_library) {
    char* value = malloc(5);
    memset(value, 'v', 5);
    rocksdb_put(db, write, "key", 3, value, 6, &error);
  } else {
    rocksdb_merge(db, write, "key", 3, "v", 1, &error);
    OK();
    together(merge);
  }
  puts("nothing was found");
  return 0;
}
