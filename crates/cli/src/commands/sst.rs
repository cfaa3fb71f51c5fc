//! `flagstone sst`

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use flagstone::base::{Comparator, InternalIterator, PrefixExtractor};
use flagstone::env::{Env, OpenMode};
use flagstone::sst::{IterSettings, Table, TableReadSettings, read_table_properties};
use serde_json::{Map, Value, json};

use crate::arguments::Common;
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::output::Output;
use crate::text::Notation;

/// Print the properties of a table file; with --entries or --verify, look inside.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone sst /data/photos/000012.sst --entries --hex")]
pub struct Arguments {
    /// The file
    file: PathBuf,
    /// List each entry: key, sequence number, type, value
    #[arg(long)]
    entries: bool,
    /// Read every block and check it; a fault gives exit code 1
    #[arg(long)]
    verify: bool,
    /// Keys and values are shown in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let file = Env::os().fs.open(&arguments.file, OpenMode::Read)?;
    let size = file.size()?;
    let properties = read_table_properties(file.clone(), size)?;
    let settings = TableReadSettings {
        comparator: Comparator::from_name(&properties.comparator)
            .map_err(|error| error.at(&arguments.file))?,
        // A rule that is not built in only means that prefix filters stay unused.
        prefix_extractor: PrefixExtractor::from_option_text(&properties.prefix_extractor).unwrap_or(None),
        ..TableReadSettings::default()
    };
    let table = Table::open(file, size, settings)?;
    let mut faults = Vec::new();
    if arguments.verify {
        table.verify(&mut |fault| faults.push(fault.error.to_string()));
    }
    let verdict = if faults.is_empty() { Verdict::Sound } else { Verdict::Faulty };
    reported(verdict, print(arguments, &table, size, &faults, common))
}

fn print(
    arguments: &Arguments,
    table: &Arc<Table>,
    size: u64,
    faults: &[String],
    common: &Common,
) -> Result<(), Failure> {
    let mut output = Output::new();
    if arguments.entries {
        print_entries(table, Notation::new(arguments.hex), common, &mut output)?;
    }
    faults.iter().try_for_each(|fault| output.finding(common.json, "FAULT", fault))?;
    if !arguments.entries {
        print_properties(table, size, common, &mut output)?;
    }
    output.finish()
}

fn print_entries(
    table: &Arc<Table>,
    notation: Notation,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    while iter.valid() {
        let key = iter.key();
        let (sequence, kind) =
            (key.sequence(), key.value_type().map_or_else(|| "?".to_string(), |k| format!("{k:?}")));
        let (key, value) = (notation.show(key.user_key()), notation.show(iter.value()));
        output.line(match common.json {
            true => json!({ "key": key, "sequence": sequence, "type": kind, "value": value }).to_string(),
            false => format!("{key}\t{sequence}\t{kind}\t{value}"),
        })?;
        iter.next();
    }
    Ok(iter.status()?)
}

/// The value of a property: numbers are stored as varints, names as they are, and three in forms of their own.
fn property_value(name: &str, value: &[u8]) -> Value {
    if name.ends_with(".filtering") {
        return json!(value == b"1");
    }
    if name.ends_with("table.index.type") {
        return json!(flagstone::base::coding::fixed32_at(value, 0));
    }
    let mut decoder = flagstone::base::coding::Decoder::new(value);
    let printable = value.len() > 1 && value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    match decoder.varint64() {
        Some(number) if decoder.is_empty() && !printable => json!(number),
        _ => json!(value.escape_ascii().to_string()),
    }
}

fn print_properties(table: &Table, size: u64, common: &Common, output: &mut Output) -> Result<(), Failure> {
    let properties: Map<String, Value> = table
        .properties()
        .raw
        .iter()
        .map(|(name, value)| (name.escape_ascii().to_string(), value))
        .map(|(name, value)| (name.clone(), property_value(&name, value)))
        .collect();
    let meta_blocks: Vec<_> = table
        .meta_blocks()
        .iter()
        .map(|(name, handle)| json!({ "name": name, "offset": handle.offset, "bytes": handle.size }))
        .collect();
    if common.json {
        let facts = json!({ "bytes": size, "properties": properties, "meta_blocks": meta_blocks });
        return output.line(facts.to_string());
    }
    output.line(format!("{size} bytes, format_version {}", table.footer().format_version))?;
    for (name, value) in &properties {
        output.line(format!("  {name}: {value}"))?;
    }
    for (name, handle) in table.meta_blocks() {
        output.line(format!("  meta block {name}: {} bytes at {}", handle.size, handle.offset))?;
    }
    Ok(())
}
