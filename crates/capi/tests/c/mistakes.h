/* What the programs that make mistakes share. Each mistake is a line: the call, what is wrong, and
   the text of the error. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"

/* How long a number or an identity at the start of the text is, which differ from run to run. */
static inline size_t passing(const char* text) {
  size_t len = strspn(text, "0123456789");
  if (len >= 6 || (len > 0 && strncmp(text + len, ".sst", 4) == 0)) return len;
  if (strncmp(text, "0x", 2) == 0) return 2 + strspn(text + 2, "0123456789abcdef");
  len = strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return len >= 8 && strcspn(text, "0123456789") < len ? len : 0;
}

/* The text without what differs from run to run; the directory is DIR, and numbers are N. */
static inline void tell(const char* text) {
  size_t len = strlen(directory), word;
  while (*text != 0) {
    if (strncmp(text, directory, len) == 0) {
      fputs("DIR", stdout);
      text += len;
    } else if ((word = passing(text)) > 0) {
      putchar('N');
      text += word;
    } else {
      word = strspn(text, "0123456789");
      if (*text == '\n') fputs("\\n", stdout);
      else printf("%.*s", word > 0 ? (int)word : 1, text);
      text += word > 0 ? word : 1;
    }
  }
  putchar('\n');
}

static inline void report(const char* call, const char* mistake) {
  printf("%s, %s: ", call, mistake);
  tell(error == NULL ? "no error" : error);
  fflush(stdout);
  rocksdb_free(error);
  error = NULL;
}

/* Makes a call that ends with `&error`. */
#define TRY(call, mistake, ...)                                                        \
  do {                                                                                 \
    call(__VA_ARGS__, &error);                                                         \
    report(#call, mistake);                                                            \
  } while (0)

/* The same with a call that returns an object, which is destroyed. */
#define TRY_MAKE(call, destroy_it, mistake, ...)                                       \
  do {                                                                                 \
    void* made = (void*)call(__VA_ARGS__, &error);                                     \
    report(#call, mistake);                                                            \
    if (made != NULL) destroy_it(made);                                                \
  } while (0)

static inline void say(const char* what, const char* text) {
  printf("%s: ", what);
  tell(text == NULL ? "NULL" : text);
}

static inline void write_file(const char* path, const char* text) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
  close(file);
}

/* Changes 8 bytes of the first block of a table, or of the first record of a log. */
static inline void damage(const char* path) {
  int file = open(path, O_WRONLY);
  CHECK(file >= 0 && pwrite(file, "\xff\x01\xfe\x02\xfd\x03\xfc\x04", 8, 16) == 8);
  close(file);
}

/* The path of the only file of a directory whose name ends with `end`. */
const char* file_in(const char* path, const char* end);

static rocksdb_writeoptions_t* writing;
static rocksdb_readoptions_t* reading;
static rocksdb_flushoptions_t* flushing;

static inline rocksdb_t* opened(const char* name) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, in(name), &error);
  OK();
  rocksdb_options_destroy(options);
  return db;
}

