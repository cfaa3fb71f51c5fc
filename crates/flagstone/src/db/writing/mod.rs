//! The way of a write: large values to blob files, the commit, the WAL and its syncs, memtables
//! that take over, and what holds writers up.

pub(super) mod direct_blob;
mod memtable_limit;
pub(super) mod operations;
pub(super) mod pipeline;
pub(super) mod stall;
pub(super) mod successive_merges;
pub(super) mod switch;
mod wal_reserve;
pub(super) mod wal_sync;
pub(super) mod write;
