//! Opening a database, recovery, and closing it.

pub(in crate::db) mod blob_checks;
mod filtered;
pub(in crate::db) mod following;
mod moving;
mod observed;
pub(super) mod open;
mod prepared;
pub(super) mod recovery;
pub(super) mod replay_inserts;
pub(super) mod replayed;
mod settled;
mod wal_directory;
pub(super) mod worker;
