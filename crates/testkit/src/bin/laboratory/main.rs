//! The `laboratory` command: long campaigns for faults, one file a subcommand.
//!
//! A subcommand is a variant of [`Command`], an arm in [`Command::run`], and a file that describes
//! its arguments and runs [`campaign::for_each_seed`]; what every campaign has in common (threads,
//! progress, findings, the report) is there.

mod campaign;
mod crashes;
mod experiments;
mod expiring;
mod faults;
mod full_disk;
mod histories;
mod mutants;
mod space;
mod transactions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Looks for faults in the engine, by seeds that repeat what they find.
#[derive(Parser)]
#[command(name = "laboratory")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Crashes(crashes::Arguments),
    Experiments(experiments::Arguments),
    Expiring(expiring::Arguments),
    Faults(faults::Arguments),
    FullDisk(full_disk::Arguments),
    Histories(histories::Arguments),
    Mutants(mutants::Arguments),
    Space(space::Arguments),
    Transactions(transactions::Arguments),
}

impl Command {
    /// How many faults were found.
    fn run(&self) -> usize {
        match self {
            Self::Crashes(arguments) => crashes::run(arguments),
            Self::Experiments(arguments) => experiments::run(arguments),
            Self::Expiring(arguments) => expiring::run(arguments),
            Self::Faults(arguments) => faults::run(arguments),
            Self::FullDisk(arguments) => full_disk::run(arguments),
            Self::Histories(arguments) => histories::run(arguments),
            Self::Mutants(arguments) => mutants::run(arguments),
            Self::Space(arguments) => space::run(arguments),
            Self::Transactions(arguments) => transactions::run(arguments),
        }
    }
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    testkit::laboratory::begin();
    let found = line.command.run();
    campaign::report_markers();
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
