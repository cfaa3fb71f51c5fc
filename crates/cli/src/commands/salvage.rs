//! `flagstone salvage`

use std::path::{self, Path, PathBuf};

use clap::Args;
use flagstone::base::{Error, counted};
use flagstone::db::{
    Fault, LostValue, SalvageReport, SalvagedFile, SalvagedKind, salvage,
    salvage_with_older_options,
};
use flagstone::options::{ColumnFamilyOptions, Options, load_readable};
use serde_json::{Value, json};

use crate::arguments::{Common, Database};
use crate::commands::verify::{describe, fault_json};
use crate::database;
use crate::failure::{Failure, Outcome, Verdict, reported, say};
use crate::json;
use crate::output::Output;
use crate::progress::Progress;
use crate::text;
use crate::world;

/// Lost values that are listed in words; JSON has all of the report.
const LISTED_MAX: usize = 50;
/// The same of places with damage; what concerns whole files and families is always told.
const PLACES_LISTED_MAX: usize = 1000;

/// Rebuild a damaged database, in a new directory, from the files that are left.
///
/// Recovers every intact record: from intact blocks of damaged tables, from WALs even after damage,
/// and large values from blob files. MANIFEST, CURRENT, OPTIONS and IDENTITY may be damaged or
/// missing. As far as they are intact, newer writes hide older ones, and deletions hide what they
/// deleted. The database in --db is only read, and must not be open. The report lists what was
/// lost: file, offset, and keys if known. A healthy database comes out with the same contents.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone salvage --db /data/photos --to /data/photos-rescued\n\n\
        Files in other directories, if the OPTIONS file is lost: --set wal_dir=DIR, --set db_paths=DIR:DIR"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Directory for the new database; missing or empty
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let source = &arguments.database.db;
    check_places(source, &arguments.to)?;
    let known = options(common, source)?;
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        known.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let mut shown = None;
    let rebuild = if known.are_newest { salvage } else { salvage_with_older_options };
    let report = rebuild(source, &arguments.to, &known.options, &listed, &mut |at| {
        let bar = shown.get_or_insert_with(|| Progress::bytes(at.bytes_total));
        bar.set(at.bytes_read);
        bar.say(counted(at.records, "record"));
    })
    .map_err(|error| database::of_setting(common, error.into()))?;
    drop(shown);
    let verdict = if report.is_complete() { Verdict::Sound } else { Verdict::Incomplete };
    reported(verdict, print(&report, common))
}

/// Checks that there is something to read, and that nothing is written to it.
fn check_places(source: &Path, target: &Path) -> Result<(), Failure> {
    let env = world::env();
    database::check_no_file(&env, source)?;
    env.fs.list(source).map_err(|error| {
        if error.is_not_found() {
            database::none_here(database::NO_DIRECTORY).at(source)
        } else {
            error
        }
    })?;
    // The target need not exist: where it will be, its nearest ancestor that does tells.
    let absolute = path::absolute(target).unwrap_or_else(|_| target.to_path_buf());
    let above = absolute.ancestors().find_map(|above| above.canonicalize().ok());
    let is_within = source
        .canonicalize()
        .is_ok_and(|source| above.is_some_and(|above| above.starts_with(source)));
    if is_within {
        return Err(Failure::Usage(format!(
            "--to {} is inside the damaged database, which must not be written to; name a directory elsewhere",
            target.display()
        )));
    }
    if env.fs.metadata(target).is_ok_and(|found| !found.is_directory) {
        return Err(Failure::Other(format!(
            "{} is a file; name a new directory",
            target.display()
        )));
    }
    Ok(())
}

fn print(report: &SalvageReport, common: &Common) -> Result<(), Failure> {
    let mut output = Output::new();
    if common.json {
        output.line(report_json(report).to_string())?;
    } else {
        for line in words(report) {
            output.line(text::lines(&line))?;
        }
    }
    output.finish()
}

/// What is known of the source's options.
struct Known {
    options: Options,
    families: Vec<(String, ColumnFamilyOptions)>,
    /// Whether no newer ones are lost.
    are_newest: bool,
}

/// Those of the newest OPTIONS file that can be read, changed by `--set`.
fn options(common: &Common, source: &Path) -> Result<Known, Failure> {
    let env = world::env();
    let (loaded, mut errors) = load_readable(&env, source)?;
    // A file that this user may not read is not damaged.
    if let Some(refused) = errors.iter().position(Error::is_refused) {
        return Err(errors.swap_remove(refused).into());
    }
    let are_newest = errors.is_empty();
    for error in errors {
        let instead = match &loaded {
            Some(older) => format!(", but an older one, {}", older.path.display()),
            None => String::new(),
        };
        say(format_args!("warning: the OPTIONS file is not used{instead}: {error}"));
    }
    let mut families = loaded.as_ref().map(|loaded| loaded.families.clone()).unwrap_or_default();
    let mut options = loaded.map(|loaded| loaded.options).unwrap_or_default();
    options.env = env;
    for (name, value) in &common.settings {
        let set = options.set_everywhere(&mut families, name, value);
        set.map_err(|error| Failure::Usage(format!("--set {name}={value}: {error}")))?;
    }
    Ok(Known { options, families, are_newest })
}

/// A line for each of the first `max`, how many more there are, and of how many of these JSON
/// tells.
fn first_of<T>(
    all: &[T],
    max: usize,
    unlisted: u64,
    (one, which): (&str, &str),
    line: impl Fn(&T) -> String,
) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(max).map(line).collect();
    let listed = all.len() - lines.len();
    let more = listed as u64 + unlisted;
    let in_json = match (listed, unlisted) {
        (0, _) => String::new(),
        (_, 0) => "; --json has all of them".to_string(),
        (listed, _) => format!("; --json has {listed} of them"),
    };
    if more > 0 {
        lines.push(format!("... and {} {which}{in_json}", counted(more, &format!("more {one}"))));
    }
    lines
}

/// What was lost, and what is damaged beside that; what concerns whole files and families comes
/// first.
fn damage(report: &SalvageReport) -> Vec<String> {
    let (wholes, places) = report.losses.split_at(report.whole_losses);
    let lost = |loss: &Fault| format!("LOST {}", describe(loss));
    let mut lines: Vec<String> = wholes.iter().map(lost).collect();
    let what = ("place", "where something is lost");
    lines.extend(first_of(places, PLACES_LISTED_MAX, report.losses_unlisted, what, lost));
    let what = ("value", "lost");
    lines.extend(first_of(
        &report.lost_values,
        LISTED_MAX,
        report.lost_values_unlisted,
        what,
        |lost| {
            format!(
                "LOST the value of '{}' in family '{}'{}: {}",
                lost.key.escape_ascii(),
                text::name(&lost.family),
                if lost.has_other_version { " (an older version is there instead)" } else { "" },
                lost.error
            )
        },
    ));
    let what = ("place", "where nothing is lost");
    lines.extend(first_of(
        &report.harmless,
        PLACES_LISTED_MAX,
        report.harmless_unlisted,
        what,
        |error| format!("damaged, but nothing is lost: {error}"),
    ));
    lines
}

fn words(report: &SalvageReport) -> Vec<String> {
    let mut lines = damage(report);
    lines.extend(report.notes.iter().cloned());
    let left_out = report.files.iter().filter_map(|file| {
        let why = file.left_out.as_ref()?;
        Some(format!("{} gave nothing: {why}", file.path.display()))
    });
    lines.extend(left_out);
    let count = |kind, one| {
        counted(report.files.iter().filter(|file| file.kind == kind).count() as u64, one)
    };
    lines.push(format!(
        "{}, {} and {} read, {}",
        count(SalvagedKind::Table, "table"),
        count(SalvagedKind::Wal, "WAL"),
        count(SalvagedKind::Blob, "blob file"),
        text::bytes(report.files.iter().map(|file| file.bytes).sum())
    ));
    for family in &report.families {
        lines.push(format!(
            "family '{}': {}, {} of them with large values",
            text::name(&family.name),
            counted(family.keys, "key"),
            family.large_values
        ));
    }
    let recovered = counted(report.records(), "record") + " recovered";
    lines.push(match (report.places_lost(), report.values_lost()) {
        (0, 0) => recovered + "; nothing was lost",
        (places, values) => format!(
            "{recovered}; something was lost in {}, and {}",
            counted(places, "place"),
            counted(values, "large value")
        ),
    });
    lines
}

fn report_json(report: &SalvageReport) -> Value {
    let families: Vec<Value> = report
        .families
        .iter()
        .map(|family| {
            json!({
                "name": family.name,
                "keys": family.keys,
                "records": family.records,
                "large_values": family.large_values,
            })
        })
        .collect();
    json!({
        "complete": report.is_complete(),
        "records": report.records(),
        "families": families,
        "files": report.files.iter().map(file_json).collect::<Vec<_>>(),
        "losses": report.losses.iter().map(fault_json).collect::<Vec<_>>(),
        "losses_unlisted": report.losses_unlisted,
        "lost_values": report.lost_values.iter().map(lost_json).collect::<Vec<_>>(),
        "lost_values_unlisted": report.lost_values_unlisted,
        "harmless": report.harmless.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "harmless_unlisted": report.harmless_unlisted,
        "notes": report.notes,
    })
}

fn file_json(file: &SalvagedFile) -> Value {
    let kind = match file.kind {
        SalvagedKind::Table => "table",
        SalvagedKind::Wal => "wal",
        SalvagedKind::Blob => "blob",
    };
    let mut facts = json!({
        "kind": kind,
        "bytes": file.bytes,
        "records": file.records,
        "left_out": file.left_out,
    });
    json::tell_path(&mut facts, "path", Some(&file.path));
    facts
}

fn lost_json(lost: &LostValue) -> Value {
    let mut facts = json!({
        "family": lost.family,
        "key_hex": text::hex(&lost.key),
        "file_number": lost.file.0,
        "offset": lost.error.offset(),
        "message": lost.error.message(),
        "has_other_version": lost.has_other_version,
    });
    json::tell_path(&mut facts, "file", lost.error.path());
    facts
}

#[cfg(test)]
mod tests;
