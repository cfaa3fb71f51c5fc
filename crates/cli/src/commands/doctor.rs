//! `flagstone doctor`

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use flagstone::base::{Remedy, SubCode};
use flagstone::db::{Facts, Finding, LogFate, Severity, diagnose};
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::beside_writer::{self, DOUBTFUL};
use crate::database::{self, Access};
use crate::failure::{
    Failure, Outcome, Verdict, is_of_unreadable_wal, reported, tell_if_typed, what_the_system_wants,
};
use crate::input::Input;
use crate::output::Output;
use crate::text;

/// Explain what is wrong with a database, why its writes are slow, and what to change.
///
/// Reads the MANIFEST, the OPTIONS file, the directory, the properties of tables, and the WALs that
/// an opening would replay. For a damaged WAL it reports the damage, what follows it, and what the
/// next opening would do under wal_recovery_mode. In tables it reads only footer, index and
/// properties, and of blob files only the size; flagstone verify finds other damage. Nothing is
/// changed.
///
/// If another process changes the database during two looks in a row, findings of damage are
/// uncertain and the exit code is 3.
///
/// The files do not show why writers of a running database wait. For that, call Db::doctor in its
/// program, or log the property rocksdb.stats and pass the log as --statistics.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flagstone doctor --db /data/photos --json\n  \
                  flagstone doctor --db /data/photos --statistics server.log")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,

    /// File with a report of the running database: a log that contains its property rocksdb.stats,
    /// or RocksDB's LOG. Other lines are ignored, and the last report counts; - is standard input
    #[arg(long, value_name = "FILE")]
    statistics: Option<PathBuf>,
}

/// What a verdict says nothing of.
const NOT_READ: [&str; 2] = ["data blocks of tables", "values in blob files"];

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let path = &arguments.database.db;
    let told = arguments.statistics.as_deref().map(Told::read).transpose()?;
    let is_broken = |findings: &Vec<Finding>| count(findings, Severity::Broken) > 0;
    let seen = beside_writer::look(path, is_broken, || examine(common, path, told.as_ref()))?;
    let mut findings = seen.found;
    if seen.is_doubtful {
        findings.iter_mut().filter(|finding| finding.severity == Severity::Broken).for_each(doubt);
        findings.sort_by_key(|finding| finding.severity);
    }
    let verdict = match findings.first().map(|worst| worst.severity) {
        Some(Severity::Broken) => Verdict::Faulty,
        Some(Severity::Slow) => Verdict::Incomplete,
        _ if seen.is_doubtful => Verdict::Incomplete,
        Some(Severity::Note) | None => Verdict::Sound,
    };
    reported(verdict, print(&findings, seen.is_doubtful, common))
}

/// What is wrong, and that the database does not open for what is wrong with it.
fn examine(common: &Common, path: &Path, told: Option<&Told>) -> Result<Vec<Finding>, Failure> {
    let mut wal_directory = String::new();
    let refused = match database::options(common, path, Access::Inspect) {
        Ok((mut options, families)) => {
            wal_directory.clone_from(&options.wal_dir);
            match database::open_with((options.clone(), families.clone()), path, Access::Inspect) {
                Ok(db) => return found(db.facts()?, told),
                Err(refused) => {
                    let mode = options.wal_recovery_mode;
                    options.set_for_one_opening("wal_recovery_mode", "kSkipAnyCorruptedRecords")?;
                    // Where WALs are the reason, they say more than the opening could.
                    if let Ok(db) = database::open_with((options, families), path, Access::Inspect)
                    {
                        let facts = db.facts_under(mode)?;
                        if facts.logs.iter().any(|log| log.fate == LogFate::Refused) {
                            return found(facts, told);
                        }
                    }
                    refused
                }
            }
        }
        Err(refused) => refused,
    };
    match refused {
        Failure::Engine(error)
            if error.subcode() == SubCode::PathNotFound
                && error.path().is_some_and(|missing| missing == Path::new(&wal_directory)) =>
        {
            let what = "its WALs are in wal_dir, which does not exist: ";
            Ok(closed(format!("{what}{}", error.without_remedy()), Remedy::MountWalDirectory))
        }
        Failure::Engine(error)
            if error.is_corruption() || error.subcode() == SubCode::PathNotFound =>
        {
            let remedies = match error.remedies() {
                [] => vec![Remedy::RestoreOrSalvage],
                remedies => remedies.to_vec(),
            };
            Ok(closed(error.without_remedy().to_string(), remedies))
        }
        Failure::Engine(error) if is_of_unreadable_wal(&error) => {
            let remedy = what_the_system_wants(&error).unwrap_or(Remedy::RestoreWal);
            Ok(closed(error.without_remedy().to_string(), remedy))
        }
        // What it says of the OPTIONS file, and what to do.
        Failure::Advised(what, remedy) => {
            let mut findings = closed(what, *remedy);
            findings.extend(despite_options_file(common, path, told)?);
            Ok(findings)
        }
        failure => Err(database::of_setting(common, failure)),
    }
}

/// Findings in the rest of a database whose newest OPTIONS file is faulty. Where the rest cannot be
/// looked at either, that is a finding, too.
fn despite_options_file(
    common: &Common,
    path: &Path,
    told: Option<&Told>,
) -> Result<Vec<Finding>, Failure> {
    let Some((_, options)) = database::options_despite_file(common, path)? else {
        return Ok(Vec::new());
    };
    let opened = database::open_with(options, path, Access::Inspect);
    match opened.and_then(|db| Ok(db.facts()?)) {
        Ok(facts) => found(facts, told),
        Err(Failure::Engine(error)) => {
            let remedies = error.remedies().to_vec();
            let what = format!("nor does it open without that file: {}", error.without_remedy());
            Ok(vec![Finding { severity: Severity::Broken, what, remedies }])
        }
        Err(failure) => Err(failure),
    }
}

/// That a database does not open, and why.
fn closed(why: String, remedies: impl Into<Vec<Remedy>>) -> Vec<Finding> {
    let what = format!("the database does not open: {why}");
    vec![Finding { severity: Severity::Broken, what, remedies: remedies.into() }]
}

/// What a running database has told of itself.
struct Told {
    path: PathBuf,
    text: String,
}

impl Told {
    fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = if path.as_os_str() == "-" {
            tell_if_typed("the statistics");
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| {
                Failure::Stream("read the statistics from standard input", error)
            })?;
            bytes
        } else {
            Input::open(path)?.rest()?
        };
        // A log may hold anything besides.
        Ok(Self { path: path.to_path_buf(), text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// What the files and the running database say together.
fn found(mut facts: Facts, told: Option<&Told>) -> Result<Vec<Finding>, Failure> {
    if let Some(Told { path, text }) = told {
        let understood = facts.add_statistics(text);
        understood
            .map_err(|error| Failure::Usage(format!("--statistics {}: {error}", path.display())))?;
    }
    Ok(diagnose(&facts))
}

/// Says less of a finding that the writer of the database may have caused.
fn doubt(finding: &mut Finding) {
    finding.severity = Severity::Note;
    finding.remedies = DOUBTFUL.into();
}

fn print(findings: &[Finding], is_doubtful: bool, common: &Common) -> Result<(), Failure> {
    let mut output = Output::new();
    if common.json {
        let findings: Vec<Value> = findings.iter().map(finding_json).collect();
        let facts = json!({ "findings": findings, "doubtful": is_doubtful, "not_read": NOT_READ });
        output.line(facts.to_string())?;
        return output.finish();
    }
    for finding in findings {
        output.line(text::lines(&finding.to_string()))?;
    }
    let (broken, slow) = (count(findings, Severity::Broken), count(findings, Severity::Slow));
    let verdict = match (broken, slow) {
        (0, 0) if is_doubtful => "doubtful".to_string(),
        (0, 0) => "healthy".to_string(),
        _ => format!("{broken} broken, {slow} slow"),
    };
    // A reader would otherwise take it for all of the database.
    output.line(format!(
        "{verdict}; not read: {}; flagstone verify reads them",
        NOT_READ.join(", ")
    ))?;
    output.finish()
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
    let remedies: Vec<_> =
        finding.remedies.iter().map(|remedy| format!("{:?}", remedy.kind())).collect();
    json!({ "severity": severity, "what": finding.what, "advice": finding.advice(), "remedies": remedies })
}
