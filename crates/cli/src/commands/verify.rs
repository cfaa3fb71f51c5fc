//! `flagstone verify`

use std::path::Path;

use clap::Args;
use flagstone::base::{Error, Remedy, SubCode, counted};
use flagstone::db::{Db, Fault, VerifyReport};
use flagstone::env::Env;
use flagstone::manifest::read_current;
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::beside_writer::{self, DOUBTFUL, Seen};
use crate::database::{self, Access, OpenOptions};
use crate::failure::{
    Failure, Outcome, Verdict, is_of_unreadable_wal, reported, what_the_system_wants,
};
use crate::json;
use crate::output::Output;
use crate::progress::Progress;
use crate::text;

/// Read all tables, values in blob files, and records of WALs and the MANIFEST, and verify their
/// checksums.
///
/// Each fault is reported with its file, offset and the keys that it may affect. Any fault gives
/// exit code 1, including one that keeps the database from opening. If the newest OPTIONS file is
/// faulty, files are read by their own properties and an older OPTIONS file. If a WAL cannot be
/// read, no other file is. A torn last record in a WAL or the MANIFEST, as a crash leaves it, is
/// only a note. The directory is not changed. A file that this user may not read is reported as
/// UNREAD: it is not a fault, but also gives exit code 1.
///
/// If another process is writing to the database, the command looks at one state of it. If that
/// state looks damaged and the database has changed meanwhile, the command looks again; if the same
/// happens again, the exit code is 3.
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
        |report: &VerifyReport| report.faults.iter().any(|fault| !fault.error.is_refused()),
        || examine(common, path),
    )?;
    reported(verdict(&seen.found.faults, seen.is_doubtful), print(&seen, common))
}

/// What is wrong, and that the database does not open for what is wrong with it.
fn examine(common: &Common, path: &Path) -> Result<VerifyReport, Failure> {
    let failure = match database::options(common, path, Access::Inspect) {
        Ok(options) => return examine_by(options, common, path),
        Err(failure) => failure,
    };
    // Tables, blob files and logs tell of themselves what it takes to read them.
    if let Ok(Some((error, options))) = database::options_despite_file(common, path) {
        let mut report = examine_by(options, common, path)?;
        report.faults.insert(0, Fault { error, key_range: None });
        return Ok(report);
    }
    refused(failure, None)
}

fn examine_by(options: OpenOptions, common: &Common, path: &Path) -> Result<VerifyReport, Failure> {
    let (mut options, families) = options;
    let env = options.env.clone();
    match database::open_with((options.clone(), families.clone()), path, Access::Inspect) {
        Ok(db) => Ok(read(&db, &env)),
        Err(failure) => {
            // Where WALs are the reason, the rest can be read all the same.
            options.set_for_one_opening("wal_recovery_mode", "kSkipAnyCorruptedRecords")?;
            let opened = database::open_with((options, families), path, Access::Inspect);
            let failure = database::of_setting(common, failure);
            refused(failure, opened.ok().map(|db| read(&db, &env)))
        }
    }
}

fn read(db: &Db, env: &Env) -> VerifyReport {
    let progress = Progress::bytes(bytes_to_read(db, env));
    db.verify(|report| progress.set(report.bytes))
}

/// How far the progress goes. A MANIFEST that is not found counts for nothing here: the
/// verification says so.
fn bytes_to_read(db: &Db, env: &Env) -> u64 {
    let manifest = read_current(&*env.fs, db.path()).and_then(|path| env.fs.metadata(&path));
    let files = db.live_files().into_iter().map(|file| file.size);
    let wals = db.wal_files().into_iter().filter(|wal| !wal.archived).map(|wal| wal.size);
    // A damaged MANIFEST may say anything.
    files.chain(wals).chain(manifest.map(|found| found.size)).fold(0, u64::saturating_add)
}

/// That the database does not open, with what else was found, if it is damage for which it does
/// not.
fn refused(failure: Failure, found: Option<VerifyReport>) -> Result<VerifyReport, Failure> {
    match failure {
        Failure::Engine(error)
            if error.is_corruption()
                || error.subcode() == SubCode::PathNotFound
                || is_of_unreadable_wal(&error) =>
        {
            let mut report = found.unwrap_or_default();
            let error = error.context("the database does not open");
            report.faults.insert(0, Fault { error, key_range: None });
            Ok(report)
        }
        failure => Err(failure),
    }
}

/// What faults amount to.
pub fn verdict(faults: &[Fault], is_doubtful: bool) -> Verdict {
    if faults.is_empty() {
        Verdict::Sound
    } else if is_doubtful {
        Verdict::Incomplete
    } else {
        Verdict::Faulty
    }
}

fn print(seen: &Seen<VerifyReport>, common: &Common) -> Result<(), Failure> {
    let report = &seen.found;
    let mut output = Output::new();
    if common.json {
        let (unread, faults): (Vec<_>, Vec<_>) =
            report.faults.iter().partition(|fault| fault.error.is_refused());
        let facts = json!({
            "tables": report.tables,
            "blob_files": report.blob_files,
            "wals": report.wals,
            "bytes": report.bytes,
            "faults": faults.into_iter().map(fault_json).collect::<Vec<_>>(),
            "unread": unread.into_iter().map(fault_json).collect::<Vec<_>>(),
            "notes": report.notes.iter().map(error_json).collect::<Vec<_>>(),
            "doubtful": seen.is_doubtful,
        });
        output.line(facts.to_string())?;
        return output.finish();
    }
    for fault in &report.faults {
        let word = if fault.error.is_refused() { "UNREAD" } else { "FAULT" };
        output.line(format!("{word} {}", describe(fault)))?;
    }
    for note in &report.notes {
        output.line(format!("note: {note}"))?;
    }
    output.line(format!(
        "{}, {} and {} read, {}: {}",
        counted(report.tables, "table"),
        counted(report.blob_files, "blob file"),
        counted(report.wals, "WAL"),
        text::bytes(report.bytes),
        summary(&report.faults)
    ))?;
    if seen.is_doubtful {
        output.line(DOUBTFUL.to_string())?;
    }
    output.finish()
}

/// All that was found, in a few words.
fn summary(faults: &[Fault]) -> String {
    let unread = faults.iter().filter(|fault| fault.error.is_refused()).count();
    let told = faults.len() - unread;
    let faults = counted(told as u64, "fault");
    match (told, unread) {
        (0, 0) => "sound".to_string(),
        (0, unread) => format!("no fault, but {unread} not read"),
        (_, 0) => faults,
        (_, unread) => format!("{faults}, and {unread} not read"),
    }
}

/// A fault on one line.
pub fn describe(fault: &Fault) -> String {
    let what = match &fault.key_range {
        Some((from, to)) => format!(
            "{}; keys from '{}' to '{}' {}",
            fault.error,
            from.escape_ascii(),
            to.escape_ascii(),
            if fault.error.is_refused() { "are not checked" } else { "may be affected" }
        ),
        None => fault.error.to_string(),
    };
    match advice(fault) {
        Some(advice) => format!("{what}. {advice}"),
        None => what,
    }
}

/// What helps where the system refused: a file that this user may not read is no damaged one.
/// Nobody named one that is missing.
fn advice(fault: &Fault) -> Option<Remedy> {
    if fault.error.is_not_found() { None } else { what_the_system_wants(&fault.error) }
}

fn error_json(error: &Error) -> Value {
    let mut facts = json!({ "message": error.message(), "offset": error.offset() });
    json::tell_path(&mut facts, "file", error.path());
    facts
}

/// A fault as JSON.
pub fn fault_json(fault: &Fault) -> Value {
    let mut facts = error_json(&fault.error);
    for (name, key) in [("from_key_hex", 0), ("to_key_hex", 1)] {
        let range = fault.key_range.as_ref().map(|(from, to)| [from, to][key]);
        facts[name] = json!(range.map(|key| text::hex(key)));
    }
    facts["advice"] = json!(advice(fault).map(|remedy| remedy.to_string()));
    facts
}

#[cfg(test)]
mod tests;
