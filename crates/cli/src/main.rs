//! The `flagstone` command: one file a command under `commands`, `bench` for `db_bench`'s workloads,
//! `cache_sim` for replays of cache traces, `stress` for the search for faults.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where a log is full or nobody reads: failure::say and output::Output do not"
)]

mod arguments;
mod bench;
mod beside_writer;
mod cache_sim;
mod command_line;
mod commands;
mod database;
mod failure;
mod input;
mod opening;
mod output;
mod progress;
mod signals;
mod stamped;
mod stress;
mod text;
mod unreserved;

use std::process::ExitCode;

use clap::Parser;

use command_line::CommandLine;

fn main() -> ExitCode {
    signals::outlive_limits();
    let line = CommandLine::parse_from(bench::translate(std::env::args_os()));
    failure::exit_code(&line.run())
}
