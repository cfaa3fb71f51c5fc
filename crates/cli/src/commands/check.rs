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

/// Compare what the MANIFEST names with what the directory holds.
///
/// A file that is missing or has another size gives exit code 1; files that nothing names are
/// listed only. No contents are read. Beside a process that writes to the database, one state of it
/// is seen. If that seems to lack files and the database has changed, a second look is taken; if
/// both hold again, the exit code is 3.
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
