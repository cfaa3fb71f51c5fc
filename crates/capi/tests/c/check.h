/* What the programs check with: a check that fails ends the program and says which it was. */

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: %s (error: %s)\n", __FILE__, __LINE__, #condition, \
              error == NULL ? "none" : error);                                  \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static char* error = NULL;
