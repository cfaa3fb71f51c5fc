//! The front door: what a program sees of a database.
//!
//! - `database`: [`Db`], the database as a whole; `builder`: how it is opened
//! - `family`: [`Family`], reads and writes of one column family
//! - `snapshot`: [`Snapshot`], reads of all families as of one moment
//! - `view`: what families and snapshots have in common; `range`: [`Range`], keys in order
//! - `closures`: merge operators and compaction filters that are closures
//!
//! All of it stands on the engine's own handles ([`crate::db`]), which [`Db::engine`] gives to who
//! needs more.

mod builder;
mod closures;
mod database;
mod family;
mod range;
mod snapshot;
mod view;

pub use builder::Builder;
pub use database::Db;
pub use family::Family;
pub use range::{Entry, Keys, Range};
pub use snapshot::{Snapshot, SnapshotFamily};
