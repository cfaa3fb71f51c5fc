//! `flagstone doctor`

use clap::Args;
use flagstone::base::SubCode;
use flagstone::db::{Finding, Severity};
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;

/// Say in words what is wrong with a database, why its writes are slow, and what to change.
///
/// Looks at MANIFEST, OPTIONS, the directory, WALs, and the properties of tables; verify reads contents, too. Nothing is
/// changed. Exit code 0 if all is well, 1 if something is broken, 3 if something is slow only. A program asks its running
/// database by Db::doctor, which also knows of stalls, syncs, and damage that was met.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone doctor --db /data/photos --json")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let path = &arguments.database.db;
    let findings = match database::open(common, path, Access::Inspect) {
        Ok(db) => db.doctor()?,
        Err(Failure::Engine(error)) if error.is_corruption() || error.subcode() == SubCode::PathNotFound => {
            vec![Finding {
                severity: Severity::Broken,
                what: format!("the database does not open: {error}"),
                advice: "restore it from a copy, or save what is left: flagstone salvage".to_string(),
            }]
        }
        Err(failure) => return Err(failure),
    };
    let mut output = Output::new();
    if common.json {
        let findings: Vec<Value> = findings.iter().map(finding_json).collect();
        output.line(json!({ "findings": findings }).to_string())?;
    } else {
        for finding in &findings {
            output.line(finding.to_string())?;
        }
        let (broken, slow) = (count(&findings, Severity::Broken), count(&findings, Severity::Slow));
        output.line(match (broken, slow) {
            (0, 0) => "healthy".to_string(),
            _ => format!("{broken} broken, {slow} slow"),
        })?;
    }
    output.finish()?;
    Ok(match findings.first().map(|worst| worst.severity) {
        Some(Severity::Broken) => Verdict::Faulty,
        Some(Severity::Slow) => Verdict::Incomplete,
        Some(Severity::Note) | None => Verdict::Sound,
    })
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}

fn finding_json(finding: &Finding) -> Value {
    let severity = match finding.severity {
        Severity::Broken => "broken",
        Severity::Slow => "slow",
        Severity::Note => "note",
    };
    json!({ "severity": severity, "what": finding.what, "advice": finding.advice })
}
