//! RocksDB's C API over Flagstone: the shared library `librocksdb.so` and the static
//! `librocksdb.a`, with the header `include/rocksdb/c.h`. Programs and language bindings change
//! engine by linking to them. docs/c-api.md says how, and what differs.
//!
//! - [`abi`]: where C's pointers become references; all unsafe code
//! - [`api`]: how a function is written; [`convert`]: settings as numbers
//! - the other modules: the functions, by what they are about
//!
//! Beneath is what `flagstone-rocksdb` is made of, so that defaults, options without effect,
//! statistics, logs and the texts of errors are the same.

#![expect(unsafe_code, reason = "functions that C calls by name; blocks stand in `abi` alone")]
#![allow(non_snake_case, reason = "C's names, some with capitals")]

mod abi;
mod absent;
mod api;
mod backup;
mod batch;
mod batch_told;
mod cache;
mod calls;
mod compact_files;
mod compaction_service;
mod components;
mod convert;
mod db;
mod env;
mod event_infos;
mod exports;
mod family_metadata;
mod file_manager;
mod indexed_batch;
mod ingest;
mod iterator;
mod job_infos;
mod job_stats;
mod listener;
mod logger;
mod older;
mod optimistic_options;
mod options;
mod options_groups;
mod options_texts;
mod perf;
mod pinned_multi_get;
mod read_options;
mod reading;
mod refused;
mod report;
mod snapshot;
mod statistics;
mod storage_info;
mod table_properties;
mod tables;
mod timestamps;
mod trace;
mod transaction_db;
mod transactions;
mod upkeep;
mod wal_files;
mod wal_filter;
