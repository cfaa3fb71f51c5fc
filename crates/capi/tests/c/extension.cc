// What the crate rust-rocksdb adds to the C API in C++, as it does so: it takes objects of the C API
// for what RocksDB makes them of. Its only argument is an empty directory.

#include <cstdio>
#include <cstring>

#include "rocksdb/rust_rocksdb.h"

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

static int flushes = 0, alive = 0;

struct Listener : rocksdb::EventListener {
  Listener() { alive++; }
  ~Listener() override { alive--; }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& info) override {
    size_t len;
    auto* told = reinterpret_cast<const rocksdb_flushjobinfo_t*>(&info);
    CHECK(std::strncmp(rocksdb_flushjobinfo_cf_name(told, &len), "default", 7) == 0);
    flushes++;
  }
};

template <class T, class Of>
static T* rep(Of* object) {
  return *reinterpret_cast<T* const*>(object);
}

int main(int, char** arguments) {
  char* error = nullptr;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  reinterpret_cast<rocksdb::Options*>(options)->listeners.emplace_back(std::make_shared<Listener>());
  rocksdb_transactiondb_options_t* locking = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, locking, arguments[1], &error);
  CHECK(error == nullptr);
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_transactiondb_put(db, write, "key", 3, "value", 5, &error);
  CHECK(error == nullptr);

  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  CHECK(rep<rocksdb::DB>(base)->Resume().ok());
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  rocksdb_flush(base, flushing, &error);
  CHECK(error == nullptr && flushes == 1);

  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(base);
  CHECK(rep<const rocksdb::Snapshot>(snapshot)->GetSequenceNumber() ==
        rocksdb_get_latest_sequence_number(base));
  rocksdb_release_snapshot(base, snapshot);
  rocksdb_transaction_options_t* beginning = rocksdb_transaction_options_create();
  for (unsigned char has_snapshot = 0; has_snapshot < 2; has_snapshot++) {
    rocksdb_transaction_options_set_set_snapshot(beginning, has_snapshot);
    rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, write, beginning, nullptr);
    const rocksdb_snapshot_t* of = rocksdb_transaction_get_snapshot(transaction);
    CHECK((rep<const rocksdb::Snapshot>(of) != nullptr) == (has_snapshot == 1));
    rocksdb_free(const_cast<rocksdb_snapshot_t*>(of));
    rocksdb_transaction_destroy(transaction);
  }

  rocksdb_transaction_options_destroy(beginning);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(write);
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_transactiondb_close(db);
  rocksdb_transactiondb_options_destroy(locking);
  rocksdb_options_destroy(options);
  CHECK(alive == 0);
  std::puts("done");
}
