//! `flagstone check`

use clap::Args;
use flagstone::base::counted;
use flagstone::db::CheckReport;
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::beside_writer::{self, DOUBTFUL, Seen};
use crate::commands::verify::{describe, fault_json, verdict};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, reported};
use crate::output::Output;
use crate::text;

/// Compare the files that the MANIFEST lists with the files in the directory.
///
/// A missing file, or one of the wrong size, gives exit code 1. Files that the MANIFEST does not
/// list are only reported. File contents are not read. If another process is writing to the
/// database, the command looks at one state of it. If that state lacks files and the database has
/// changed meanwhile, the command looks again; if the same happens again, the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone check --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let path = &arguments.database.db;
    let seen = beside_writer::look(
        path,
        |report: &CheckReport| !report.faults.is_empty(),
        || Ok(database::open(common, path, Access::Inspect)?.check()?),
    )?;
    reported(verdict(&seen.found.faults, seen.is_doubtful), print(&seen, common))
}

fn print(seen: &Seen<CheckReport>, common: &Common) -> Result<(), Failure> {
    let report = &seen.found;
    let strays: Vec<_> = report.strays.iter().map(|path| text::path(path)).collect();
    let mut output = Output::new();
    if common.json {
        let faults: Vec<Value> = report.faults.iter().map(fault_json).collect();
        let facts = json!({
            "live_files": report.live_files,
            "faults": faults,
            "doubtful": seen.is_doubtful,
            "strays": strays,
        });
        output.line(facts.to_string())?;
        return output.finish();
    }
    for fault in &report.faults {
        output.line(format!("FAULT {}", describe(fault)))?;
    }
    for stray in &strays {
        output.line(format!("stray {stray}"))?;
    }
    let verdict = match report.faults.len() {
        0 => "all there".to_string(),
        faults => counted(faults as u64, "fault"),
    };
    let (live, strays) =
        (counted(report.live_files, "live file"), counted(strays.len() as u64, "stray"));
    output.line(format!("{live}, {strays}: {verdict}"))?;
    if seen.is_doubtful {
        output.line(DOUBTFUL.to_string())?;
    }
    output.finish()
}
