//! Opening a database, recovery, and closing it.

pub(super) mod data_directories;
pub(super) mod directory_owner;
pub(super) mod due_options;
pub(super) mod lifecycle;
mod moving;
pub(super) mod open;
mod prepared;
pub(super) mod recovery;
pub(super) mod replay_inserts;
pub(super) mod replayed;
mod wal_directory;
