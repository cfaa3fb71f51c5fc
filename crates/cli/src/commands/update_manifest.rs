//! `flagstone update-manifest`

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use flagstone::base::{FileNumber, Temperature, counted};
use flagstone::db::{OfflineManifest, TableFacts};
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::commands::offline;
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::progress::Progress;

/// Change what the MANIFEST of a closed database says of its tables.
///
/// The files are not changed. All changes take place, or none. A checksum that is added is that of
/// the file as it is now: run flagstone verify before.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone update-manifest --db /data/photos --update-checksums \
                  --set file_checksum_gen_factory=FileChecksumGenCrc32cFactory"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Set the temperature of the table with that number, such as 12=kWarm; repeatable. It is what
    /// the file system is told when a table is written
    #[arg(long, value_name = "NUMBER=TEMPERATURE", value_parser = number_and_temperature)]
    temperature: Vec<(u64, Temperature)>,
    /// Read each table that has no checksum of the whole file, and add one
    /// (file_checksum_gen_factory says which)
    #[arg(long)]
    update_checksums: bool,
    /// Not possible: ldb asks the file system for temperatures, which none tells here
    #[arg(long, alias = "update_temperatures", hide = true)]
    update_temperatures: bool,
}

fn number_and_temperature(text: &str) -> Result<(u64, Temperature), String> {
    let names = || Temperature::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (number, name) = text.split_once('=').ok_or("expected NUMBER=TEMPERATURE, as 12=kWarm")?;
    let number =
        number.parse().map_err(|_| format!("expected a table's number, found '{number}'"))?;
    let is_it = |known: &&(&str, Temperature)| {
        known.0.eq_ignore_ascii_case(name) || known.0[1..].eq_ignore_ascii_case(name)
    };
    match Temperature::NAMES.iter().find(is_it) {
        Some((_, temperature)) => Ok((number, *temperature)),
        None => Err(format!("there is no temperature '{name}'; there are {}", names())),
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    if arguments.update_temperatures {
        return Err(Failure::Usage(
            "the file system does not say how hot a file is: name each table's temperature with --temperature NUMBER=TEMPERATURE"
                .to_string(),
        ));
    }
    if arguments.temperature.is_empty() && !arguments.update_checksums {
        return Err(Failure::Usage(
            "nothing to change: give --temperature or --update-checksums".to_string(),
        ));
    }
    let mut manifest = offline::open(common, &arguments.database.db)?;
    let mut changes: BTreeMap<FileNumber, TableFacts> = BTreeMap::new();
    let mut named = BTreeSet::new();
    for (number, temperature) in &arguments.temperature {
        if !named.insert(*number) {
            return Err(Failure::Usage(format!("--temperature names table {number} twice")));
        }
        let table = manifest.table(FileNumber(*number))?;
        if table.meta.temperature != *temperature {
            changes.entry(FileNumber(*number)).or_default().temperature = Some(*temperature);
        }
    }
    let temperatures = changes.len() as u64;
    let checksums =
        if arguments.update_checksums { add_checksums(&manifest, &mut changes)? } else { 0 };
    manifest.update_tables(&changes)?;
    let mut output = Output::new();
    output.line(if common.json {
        json!({ "temperatures": temperatures, "checksums": checksums }).to_string()
    } else {
        format!(
            "{} changed, {} added",
            counted(temperatures, "temperature"),
            counted(checksums, "checksum")
        )
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}

/// The checksums of tables that have none; how many there are.
fn add_checksums(
    manifest: &OfflineManifest,
    changes: &mut BTreeMap<FileNumber, TableFacts>,
) -> Result<u64, Failure> {
    let tables = manifest.tables();
    let progress = Progress::things(tables.len() as u64, "tables");
    let mut added = 0;
    for (at, table) in tables.iter().enumerate() {
        progress.set(at as u64);
        if table.meta.checksum().is_some() {
            continue;
        }
        let Some(checksum) = manifest.checksum_of(table)? else {
            return Err(Failure::Usage(
                "files get no checksums here: add --set file_checksum_gen_factory=FileChecksumGenCrc32cFactory"
                    .to_string(),
            ));
        };
        added += 1;
        changes.entry(table.meta.number).or_default().checksum = Some(checksum);
    }
    Ok(added)
}
