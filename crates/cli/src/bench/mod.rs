//! `flagstone bench`: the workloads of RocksDB's `db_bench`, with its names, flags and output
//! lines.

mod data;
mod db_bench;
mod flags;
mod histogram;
mod plan;
mod queue;
mod random;
mod report;
mod reporter;
mod run;
mod stopwatch;
mod translate;
mod workloads;

pub use flags::Flags;
pub use run::run;
pub use translate::translate;
