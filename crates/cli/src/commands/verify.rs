//! `flagstone verify`

use clap::Args;
use flagstone::db::{Fault, VerifyReport};
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::beside_writer::{self, DOUBTFUL, Seen};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::output::Output;
use crate::progress::Progress;
use crate::text;

/// Read every block of every table and every value in blob files, and check their checksums.
///
/// Each fault is named with its file, offset and the keys that it may affect; any gives exit code 1. The directory
/// is not changed. If another process writes to the database, it may look damaged: then it is looked at again, and after several
/// attempts the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone verify --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let path = &arguments.database.db;
    let seen = beside_writer::look(
        path,
        |report: &VerifyReport| !report.faults.is_empty(),
        || {
            let db = database::open(common, path, Access::Inspect)?;
            let progress = Progress::bytes(db.live_files().iter().map(|file| file.size).sum());
            Ok(db.verify(|report| progress.set(report.bytes)))
        },
    )?;
    reported(verdict(&seen.found.faults, seen.is_doubtful), print(&seen, common))
}

/// What faults amount to.
pub fn verdict(faults: &[Fault], is_doubtful: bool) -> Verdict {
    match faults.is_empty() {
        true => Verdict::Sound,
        false if is_doubtful => Verdict::Incomplete,
        false => Verdict::Faulty,
    }
}

fn print(seen: &Seen<VerifyReport>, common: &Common) -> Result<(), Failure> {
    let report = &seen.found;
    let mut output = Output::new();
    if common.json {
        let faults: Vec<Value> = report.faults.iter().map(fault_json).collect();
        let facts = json!({
            "tables": report.tables,
            "blob_files": report.blob_files,
            "bytes": report.bytes,
            "faults": faults,
            "doubtful": seen.is_doubtful,
        });
        output.line(facts.to_string())?;
        return output.finish();
    }
    for fault in &report.faults {
        output.line(format!("FAULT {}", describe(fault)))?;
    }
    output.line(format!(
        "{} tables and {} blob files read, {}: {}",
        report.tables,
        report.blob_files,
        text::bytes(report.bytes),
        if report.faults.is_empty() {
            "sound".to_string()
        } else {
            format!("{} faults", report.faults.len())
        }
    ))?;
    if seen.is_doubtful {
        output.line(DOUBTFUL)?;
    }
    output.finish()
}

/// A fault on one line.
pub fn describe(fault: &Fault) -> String {
    match &fault.key_range {
        Some((from, to)) => format!(
            "{}; keys from '{}' to '{}' may be affected",
            fault.error,
            from.escape_ascii(),
            to.escape_ascii()
        ),
        None => fault.error.to_string(),
    }
}

/// A fault as JSON.
pub fn fault_json(fault: &Fault) -> Value {
    json!({
        "message": fault.error.message(),
        "file": fault.error.path().map(|path| path.display().to_string()),
        "offset": fault.error.offset(),
        "from_key_hex": fault.key_range.as_ref().map(|(from, _)| text::hex(from)),
        "to_key_hex": fault.key_range.as_ref().map(|(_, to)| text::hex(to)),
    })
}
