//! Transactions that one engine prepares and the other decides: random lives of one database that
//! Flagstone and RocksDB lead by turns, most of which end with a kill.
//!
//! - [`life`]: what is done in each turn, and what must be there by then
//! - [`flagstone`], [`rocksdb`]: the two engines
//! - [`command`]: all turns, each in a process of its own
//!
//! RocksDB prepares under each of its policies (write-committed, write-prepared, write-unprepared).
//! It changes its policy only where its WALs are empty; what Flagstone prepares is write-committed.

pub mod command;
mod flagstone;
mod life;
mod rocksdb;

use std::path::Path;

use self::life::{Edits, Policy, Step};
use crate::engine::Result;

/// An engine that has the database open.
trait Decider {
    /// All that is committed.
    fn contents(&self) -> Result<Edits>;
    /// The names of what is prepared.
    fn prepared(&mut self) -> Result<Vec<Vec<u8>>>;
    fn act(&mut self, step: &Step) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}

fn open(directory: &Path, policy: Option<Policy>) -> Result<Box<dyn Decider>> {
    match policy {
        None => Ok(Box::new(flagstone::Database::open(directory)?)),
        Some(policy) => Ok(Box::new(rocksdb::Database::open(directory, policy)?)),
    }
}
