//! Do Flagstone and RocksDB agree? Random lives of one database that both lead by turns, each life
//! from a seed.
//!
//! - [`life`]: what is done, by whom and with which options; [`choices`]: the options;
//!   [`material`]: keys and values
//! - [`model`]: what the database must hold; [`judge`]: comparing with it
//! - [`party`]: what an engine is asked for; [`flagstone`], [`rocksdb`]: the two
//! - [`play`]: one turn; [`command`]: all turns, each in a process of its own

mod choices;
pub mod command;
mod flagstone;
mod judge;
mod life;
mod material;
mod model;
mod party;
mod play;
mod rocksdb;

/// The family that is always there.
const DEFAULT: &str = "default";
