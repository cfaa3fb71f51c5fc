//! `flagstone check`

use clap::Args;
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::commands::verify::{describe, fault_json};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::output::Output;

/// Compare what the MANIFEST names with what the directory holds.
///
/// A file that is missing or has another size gives exit code 1; files that nothing names are listed only. No
/// contents are read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone check --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Inspect)?;
    let report = db.check()?;
    let strays: Vec<_> = report.strays.iter().map(|path| path.display().to_string()).collect();
    let mut output = Output::new();
    if common.json {
        let faults: Vec<Value> = report.faults.iter().map(fault_json).collect();
        let facts = json!({ "live_files": report.live_files, "faults": faults, "strays": strays });
        output.line(facts.to_string())?;
    } else {
        for fault in &report.faults {
            output.line(format!("FAULT {}", describe(fault)))?;
        }
        for stray in &strays {
            output.line(format!("stray {stray}"))?;
        }
        let verdict = match report.faults.len() {
            0 => "all there".to_string(),
            count => format!("{count} faults"),
        };
        output.line(format!("{} live files, {} strays: {verdict}", report.live_files, strays.len()))?;
    }
    output.finish()?;
    Ok(if report.faults.is_empty() { Verdict::Sound } else { Verdict::Faulty })
}
