/* The little of RocksDB's C++ that the crate `rust-rocksdb` compiles code of its own against, over
   the C API. `scripts/install-capi` offers it under the names of RocksDB's headers, in a directory
   apart.

   That code takes objects of the C API for what RocksDB makes them of: a database and a snapshot
   begin with a pointer to the C++ object, and options are one. In this library an object begins
   with a pointer to itself, or with NULL for a snapshot that is none. So the classes below have no
   fields, and `this` is the object of the C API. */

#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/c.h"

#define ROCKSDB_NAMESPACE rocksdb
#define ROCKSDB_MAJOR 11
#define ROCKSDB_MINOR 9
#define ROCKSDB_PATCH 0

namespace rocksdb {

/* The outcome of a call, as a text that begins with its kind. */
class Status {
 public:
  enum Severity : unsigned char {
    kNoError = 0,
    kSoftError = 1,
    kHardError = 2,
    kFatalError = 3,
    kUnrecoverableError = 4,
    kMaxSeverity
  };

  Status() = default;
  static Status OK() { return Status(); }

  /* Takes over a text of the C API; NULL is success. */
  static Status Of(char* text, unsigned char severity) {
    Status status;
    if (text != nullptr) {
      status.text_ = text;
      status.is_ok_ = false;
      status.severity_ = static_cast<Severity>(severity);
      rocksdb_free(text);
    }
    return status;
  }

  /* What a listener is told; NULL is success. */
  static Status Of(rocksdb_status_ptr_t* told) {
    if (told == nullptr) return Status();
    char* text = nullptr;
    rocksdb_status_ptr_get_error(told, &text);
    return Of(text, rocksdb_status_ptr_get_severity(told));
  }

  bool ok() const { return is_ok_; }
  Severity severity() const { return severity_; }
  std::string ToString() const { return is_ok_ ? "OK" : text_; }
  void PermitUncheckedError() const {}

 private:
  std::string text_;
  bool is_ok_ = true;
  Severity severity_ = kNoError;
};

enum class BackgroundErrorReason {
  kFlush = 0,
  kCompaction = 1,
  kWriteCallback = 2,
  kMemTable = 3,
  kManifestWrite = 4
};

struct BackgroundErrorRecoveryInfo {
  Status old_bg_error;
  Status new_bg_error;
};

/* Objects of the C API under their names in C++. */
class FlushJobInfo;
class CompactionJobInfo;
class SubcompactionJobInfo;
class ExternalFileIngestionInfo;
class WriteStallInfo;
class MemTableInfo;
class ColumnFamilyHandle;
class ReadOptions;
class WriteBatch;

class Slice {
 public:
  const char* data_ = "";
  size_t size_ = 0;
};

class SliceParts;

class DB {
 public:
  Status Resume() {
    char* error = nullptr;
    rocksdb_resume(reinterpret_cast<rocksdb_t*>(this), &error);
    return Status::Of(error, Status::kFatalError);
  }
};

class Snapshot {
 public:
  uint64_t GetSequenceNumber() const {
    return rocksdb_snapshot_get_sequence_number(reinterpret_cast<const rocksdb_snapshot_t*>(this));
  }
};

/* Never used where the library is not built with the crate; it need only be complete. */
class PinnableSlice : public Slice {};

class EventListener {
 public:
  virtual void OnFlushBegin(DB*, const FlushJobInfo&) {}
  virtual void OnFlushCompleted(DB*, const FlushJobInfo&) {}
  virtual void OnCompactionBegin(DB*, const CompactionJobInfo&) {}
  virtual void OnCompactionCompleted(DB*, const CompactionJobInfo&) {}
  virtual void OnSubcompactionBegin(const SubcompactionJobInfo&) {}
  virtual void OnSubcompactionCompleted(const SubcompactionJobInfo&) {}
  virtual void OnExternalFileIngested(DB*, const ExternalFileIngestionInfo&) {}
  virtual void OnBackgroundError(BackgroundErrorReason, Status*) {}
  virtual void OnErrorRecoveryBegin(BackgroundErrorReason, Status, bool*) {}
  virtual void OnErrorRecoveryEnd(const BackgroundErrorRecoveryInfo&) {}
  virtual void OnStallConditionsChanged(const WriteStallInfo&) {}
  virtual void OnMemTableSealed(const MemTableInfo&) {}
  virtual ~EventListener() = default;
};

/* A listener in C++ behind callbacks in C. */
class Listening {
 public:
  static void Add(rocksdb_options_t* options, std::shared_ptr<EventListener> listener) {
    rocksdb_eventlistener_t* added = rocksdb_eventlistener_create(
        new std::shared_ptr<EventListener>(std::move(listener)), Destroy,
        OfDb<FlushJobInfo, rocksdb_flushjobinfo_t, &EventListener::OnFlushBegin>,
        OfDb<FlushJobInfo, rocksdb_flushjobinfo_t, &EventListener::OnFlushCompleted>,
        OfDb<CompactionJobInfo, rocksdb_compactionjobinfo_t, &EventListener::OnCompactionBegin>,
        OfDb<CompactionJobInfo, rocksdb_compactionjobinfo_t, &EventListener::OnCompactionCompleted>,
        Of<SubcompactionJobInfo, rocksdb_subcompactionjobinfo_t,
           &EventListener::OnSubcompactionBegin>,
        Of<SubcompactionJobInfo, rocksdb_subcompactionjobinfo_t,
           &EventListener::OnSubcompactionCompleted>,
        OfDb<ExternalFileIngestionInfo, rocksdb_externalfileingestioninfo_t,
             &EventListener::OnExternalFileIngested>,
        Failed,
        Of<WriteStallInfo, rocksdb_writestallinfo_t, &EventListener::OnStallConditionsChanged>,
        Of<MemTableInfo, rocksdb_memtableinfo_t, &EventListener::OnMemTableSealed>);
    rocksdb_eventlistener_set_error_recovery(added, RecoveryBegun, RecoveryEnded);
    rocksdb_options_add_eventlistener(options, added);
  }

 private:
  static EventListener* Get(void* state) {
    return static_cast<std::shared_ptr<EventListener>*>(state)->get();
  }

  static void Destroy(void* state) { delete static_cast<std::shared_ptr<EventListener>*>(state); }

  template <class Info, class Told, void (EventListener::*tell)(DB*, const Info&)>
  static void OfDb(void* state, rocksdb_t*, const Told* told) {
    (Get(state)->*tell)(nullptr, *reinterpret_cast<const Info*>(told));
  }

  template <class Info, class Told, void (EventListener::*tell)(const Info&)>
  static void Of(void* state, const Told* told) {
    (Get(state)->*tell)(*reinterpret_cast<const Info*>(told));
  }

  static void Failed(void* state, uint32_t reason, rocksdb_status_ptr_t* told) {
    Status status = Status::Of(told);
    Get(state)->OnBackgroundError(static_cast<BackgroundErrorReason>(reason), &status);
    if (status.ok()) rocksdb_reset_status(told);
  }

  static void RecoveryBegun(void* state, uint32_t reason, rocksdb_status_ptr_t* told) {
    /* What the listener decides has no effect: there is always an attempt. */
    bool attempts = true;
    Get(state)->OnErrorRecoveryBegin(
        static_cast<BackgroundErrorReason>(reason), Status::Of(told), &attempts);
  }

  static void RecoveryEnded(
      void* state, rocksdb_status_ptr_t* earlier, rocksdb_status_ptr_t* now) {
    Get(state)->OnErrorRecoveryEnd({Status::Of(earlier), Status::Of(now)});
  }
};

class Options {
 public:
  /* At the address of the options. */
  struct Listeners {
    void emplace_back(std::shared_ptr<EventListener> listener) {
      Listening::Add(reinterpret_cast<rocksdb_options_t*>(this), std::move(listener));
    }
  };
  Listeners listeners;
};

} /* namespace rocksdb */
