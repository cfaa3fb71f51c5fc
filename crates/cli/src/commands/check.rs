//! `flagstone check`

use std::path::Path;

use clap::Args;
use flagstone::base::counted;
use flagstone::db::{CheckReport, Fault};
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::beside_writer::{self, DOUBTFUL, Seen};
use crate::commands::verify::{describe, fault_json, verdict};
use crate::database::{self, Access, OpenOptions};
use crate::failure::{Failure, Outcome, reported};
use crate::json;
use crate::output::Output;
use crate::text;

/// Compare the files that the MANIFEST lists with the files in the directory.
///
/// A missing file, one of the wrong size, or a faulty OPTIONS file gives exit code 1. Files that
/// the MANIFEST does not list are only reported. File contents are not read. If another process is
/// writing to the database, the command looks at one state of it. If that state lacks files and the
/// database has changed meanwhile, the command looks again; if the same happens again, the exit
/// code is 3.
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
        || examine(common, path),
    )?;
    reported(verdict(&seen.found.faults, seen.is_doubtful), print(&seen, common))
}

/// Compares. A faulty OPTIONS file is one of the faults: it says nothing of files.
fn examine(common: &Common, path: &Path) -> Result<CheckReport, Failure> {
    let failure = match database::options(common, path, Access::Inspect) {
        Ok(options) => return check(options, common, path),
        Err(failure) => failure,
    };
    let Some((error, options)) = database::options_despite_file(common, path)? else {
        return Err(failure);
    };
    let mut report = check(options, common, path)?;
    report.faults.insert(0, Fault { error, key_range: None });
    Ok(report)
}

fn check(options: OpenOptions, common: &Common, path: &Path) -> Result<CheckReport, Failure> {
    let opened = database::open_with(options, path, Access::Inspect);
    Ok(opened.map_err(|failure| database::of_setting(common, failure))?.check()?)
}

fn print(seen: &Seen<CheckReport>, common: &Common) -> Result<(), Failure> {
    let report = &seen.found;
    let mut output = Output::new();
    if common.json {
        let faults: Vec<Value> = report.faults.iter().map(fault_json).collect();
        let facts = json!({
            "live_files": report.live_files,
            "faults": faults,
            "doubtful": seen.is_doubtful,
            "strays": report.strays.iter().map(|path| json::path(path)).collect::<Vec<_>>(),
        });
        output.line(facts.to_string())?;
        return output.finish();
    }
    for fault in &report.faults {
        output.line(format!("FAULT {}", describe(fault)))?;
    }
    for stray in &report.strays {
        output.line(format!("stray {}", text::path(stray)))?;
    }
    let verdict = match report.faults.len() {
        0 => "all there".to_string(),
        faults => counted(faults as u64, "fault"),
    };
    let (live, strays) =
        (counted(report.live_files, "live file"), counted(report.strays.len() as u64, "stray"));
    output.line(format!("{live}, {strays}: {verdict}"))?;
    if seen.is_doubtful {
        output.line(DOUBTFUL.to_string())?;
    }
    output.finish()
}
