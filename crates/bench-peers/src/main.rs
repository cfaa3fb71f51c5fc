//! `peers`: Flagstone beside other engines, measured alike. See `docs/benchmarks.md`.
//!
//! - [`workload`], [`cell`], [`plan`]: what is measured; [`tuning`]: how engines are set up;
//!   [`engine`]: the engines
//! - [`campaign`]: runs in turns, each a process; [`run`]: one of them; [`work`]: the loops;
//!   [`data`]: keys and values
//! - [`program`]: builds of this program that make an engine's runs
//! - [`agree`]: no figures: lives that Flagstone and RocksDB lead by turns
//! - [`transactions`]: transactions, batches with an index, and locks
//! - [`copies`]: backups and secondaries of a database that is written to
//! - [`amplification`]: bytes written and bytes on the disk beside bytes that live
//! - [`measure`], [`statistics`], [`environment`]: figures; [`store`]: the file of results;
//!   [`report`]: tables

#[cfg(feature = "rocksdb")]
mod agree;
mod amplification;
mod campaign;
mod cell;
mod commands;
mod copies;
mod data;
#[cfg(feature = "rocksdb")]
mod decide;
mod engine;
mod environment;
mod measure;
mod plan;
mod program;
mod report;
mod run;
mod statistics;
mod store;
#[cfg(test)]
mod testing;
#[cfg(feature = "rocksdb")]
mod transactions;
mod tuning;
mod work;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}
