/* Ends the process by a use that a debug build finds: its argument says which. */

#include <rocksdb/c.h>
#include <string.h>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  rocksdb_options_t* options = rocksdb_options_create();
  if (strcmp(arguments[1], "destroyed") == 0) {
    rocksdb_options_destroy(options);
    rocksdb_options_set_create_if_missing(options, 1);
  } else if (strcmp(arguments[1], "twice") == 0) {
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(options);
  } else if (strcmp(arguments[1], "other") == 0) {
    rocksdb_readoptions_destroy((rocksdb_readoptions_t*)options);
  } else if (strcmp(arguments[1], "null") == 0) {
    rocksdb_options_set_create_if_missing(NULL, 1);
  }
  return 0;
}
