//! The `flagstone` command: one file a command under `commands`, `bench` for `db_bench`'s
//! workloads, `cache_sim` for replays of cache traces.

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
mod dump_lines;
mod entities;
mod failure;
mod input;
mod json;
mod ldb;
mod left_out;
mod marks;
mod opening;
mod output;
mod pieces;
mod progress;
mod signals;
mod stamped;
mod text;
mod top;
mod unreserved;
mod world;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};

use command_line::CommandLine;
use failure::Failure;

fn main() -> ExitCode {
    signals::outlive_limits();
    match CommandLine::read(bench::translate(std::env::args_os())) {
        Ok(line) => failure::exit_code(&line.run()),
        Err(told) => answered(&told),
    }
}

/// Prints help, or what is wrong with the command line. Help that finds no room on a disk is none.
fn answered(told: &clap::Error) -> ExitCode {
    if let Some(ContextValue::String(command)) = told.get(ContextKind::InvalidSubcommand)
        && let Some(ours) = ldb::elsewhere(command)
    {
        let message = format!("{command} is an ldb command; use instead: {ours}");
        return failure::exit_code(&Err(Failure::Usage(message)));
    }
    if told.get(ContextKind::InvalidSubcommand) == Some(&ContextValue::String("stress".into())) {
        let message = "stress is a program of its own, in Flagstone's sources: \
                       cargo run --release -p testkit --bin stress";
        return failure::exit_code(&Err(Failure::Usage(message.to_string())));
    }
    let printed = told.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(error) if !told.use_stderr() => {
            failure::exit_code(&Err(Failure::Stream("write to standard output", error)))
        }
        _ => ExitCode::from(if told.use_stderr() { 2 } else { 0 }),
    }
}
