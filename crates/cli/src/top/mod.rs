//! `flagstone top`: what a database is doing that another process has open.
//!
//! 1. `sample.rs` reads what the process says in the file FIGURES, and looks at the directory and
//!    the LOG. It opens no database and takes no lock.
//! 2. `report.rs` makes rates of two samples, and lines or JSON of these. It does no I/O.
//! 3. `screen.rs` shows them on a terminal until q is pressed.

mod report;
mod sample;
mod screen;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::Args;

use crate::arguments::{Common, Database};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use report::Report;
use sample::Sample;
use screen::Screen;

/// Show what a database is doing that another process has open.
///
/// A process that has a database of Flagstone open for writing says so in the file FIGURES of its
/// directory, every two seconds, unless publish_figures=false or its files are encrypted. Beside
/// RocksDB, and where there is no such file, the directory's files and the last report in its LOG
/// are shown. Nothing is opened or locked. On a terminal the view is refreshed until q, Esc or
/// Ctrl-C; elsewhere a block of lines (with --json an object) is printed each time. Rates are those
/// between two updates; without an earlier one, since the opening.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flagstone top --db /data/photos --once\n  flagstone top --db /data/photos --once --json"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Print one view and end
    #[arg(long)]
    once: bool,
    /// Seconds between two views
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let env = crate::world::env();
    let interval = Duration::from_secs(arguments.interval);
    let path = &arguments.database.db;
    let mut screen = if arguments.once || common.json { None } else { Screen::begin()? };
    // What the report before was made of, with other figures than now.
    let mut earlier: Option<Sample> = None;
    let mut last: Option<Sample> = None;
    loop {
        let sample = Sample::take(&env, path)?;
        if last.as_ref().is_some_and(|last| last.is_older_than(&sample)) {
            earlier = last.take();
        }
        let report = Report::new(path, earlier.as_ref(), &sample);
        match &mut screen {
            Some(screen) => {
                screen.show(&report.lines())?;
                if screen.wait(&*env.clock, interval)? {
                    return Ok(Verdict::Sound);
                }
            }
            None => {
                print(&report, common.json, arguments.once)?;
                if arguments.once {
                    return Ok(Verdict::Sound);
                }
                env.clock.sleep(interval);
            }
        }
        last = Some(sample);
    }
}

fn print(report: &Report, json: bool, once: bool) -> Result<(), Failure> {
    let mut output = Output::new();
    if json {
        output.line(report.json().to_string())?;
    } else {
        for line in report.lines() {
            output.line(line)?;
        }
        if !once {
            output.line("")?;
        }
    }
    output.finish()
}
