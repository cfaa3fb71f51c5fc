//! The way of a write: large values to blob files, the commit, the WAL and its syncs, memtables
//! that take over, and what holds writers up.

mod admission;
pub(super) mod commit;
pub(super) mod condition;
pub(super) mod direct_blob;
mod file_syncs;
mod memtable_limit;
pub(super) mod operations;
pub(super) mod pipeline;
mod successive_merges;
mod wal_files;
