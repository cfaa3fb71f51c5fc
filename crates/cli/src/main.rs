//! The `flagstone` command: one file a command under `commands`, `bench` for `db_bench`'s workloads.

mod arguments;
mod bench;
mod commands;
mod database;
mod failure;
mod output;
mod progress;
mod text;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Command, CommandLine, Common};
use failure::Outcome;

fn main() -> ExitCode {
    let line = CommandLine::parse_from(bench::translate(std::env::args_os()));
    failure::exit_code(&run(&line.command, &line.common))
}

fn run(command: &Command, common: &Common) -> Outcome {
    match command {
        Command::Get(arguments) => commands::get::run(arguments, common),
        Command::Put(arguments) => commands::put::run(arguments, common),
        Command::Delete(arguments) => commands::delete::run(arguments, common),
        Command::DeleteRange(arguments) => commands::delete_range::run(arguments, common),
        Command::Scan(arguments) => commands::scan::run(arguments, common),
        Command::Count(arguments) => commands::count::run(arguments, common),
        Command::Import(arguments) => commands::import::run(arguments, common),
        Command::Export(arguments) => commands::export::run(arguments, common),
        Command::Dump(arguments) => commands::dump::run(arguments, common),
        Command::Load(arguments) => commands::load::run(arguments, common),
        Command::Verify(arguments) => commands::verify::run(arguments, common),
        Command::Check(arguments) => commands::check::run(arguments, common),
        Command::Stats(arguments) => commands::stats::run(arguments, common),
        Command::Compact(arguments) => commands::compact::run(arguments, common),
        Command::Flush(arguments) => commands::flush::run(arguments, common),
        Command::Checkpoint(arguments) => commands::checkpoint::run(arguments, common),
        Command::ListFamilies(arguments) => commands::list_families::run(arguments, common),
        Command::Manifest(arguments) => commands::manifest::run(arguments, common),
        Command::Sst(arguments) => commands::sst::run(arguments, common),
        Command::Wal(arguments) => commands::wal::run(arguments, common),
        Command::Blob(arguments) => commands::blob::run(arguments, common),
        Command::Bench(flags) => bench::run(flags, common),
    }
}
