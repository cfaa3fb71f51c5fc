/* What the programs that go through groups of the API share. */

#include "check.h"

#define OK() CHECK(error == NULL)

static char directory[4096];
static int destroyed = 0;

static inline const char* in(const char* name) {
  static char paths[8][8192];
  static int next = 0;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
  return path;
}

/* An error that begins with a kind; it is forgotten afterwards. */
static inline int failed_with(const char* kind) {
  int is = error != NULL && strncmp(error, kind, strlen(kind)) == 0;
  if (is) {
    rocksdb_free(error);
    error = NULL;
  }
  return is;
}

static inline void destroy(void* state) {
  (void)state;
  destroyed++;
}

static inline rocksdb_options_t* creating(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  return options;
}

static inline void put(rocksdb_t* db, const char* key, const char* value) {
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_put(db, write, key, strlen(key), value, strlen(value), &error);
  OK();
  rocksdb_writeoptions_destroy(write);
}

static inline int holds(rocksdb_t* db, const char* key, const char* wanted) {
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  size_t len = 0;
  char* value = rocksdb_get(db, read, key, strlen(key), &len, &error);
  OK();
  int is = wanted == NULL ? value == NULL
                          : value != NULL && len == strlen(wanted) && memcmp(value, wanted, len) == 0;
  rocksdb_readoptions_destroy(read);
  free(value);
  return is;
}

static inline void flush(rocksdb_t* db) {
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  rocksdb_flush(db, flushing, &error);
  OK();
  rocksdb_flushoptions_destroy(flushing);
}
