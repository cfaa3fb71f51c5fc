//! `flagstone list-files`

use std::collections::HashMap;

use clap::Args;
use flagstone::db::{Db, LiveFile};
use serde_json::{Value, json};

use crate::arguments::{CF_ALIASES, Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::json;
use crate::output::Output;
use crate::text::{self, Notation};

/// List the tables and blob files of a database, by column family and level.
///
/// Prints for a table its size, entries and deletions (if the MANIFEST records them), smallest and
/// largest key, and sequence numbers; for a blob file its garbage. Only the OPTIONS file, the
/// MANIFEST and the WALs are read. Data that is only in WALs is in none of the listed files. --all
/// lists what a copy needs, WALs included, with the number of bytes of each that count.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone list-files --db /data/photos --json")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,

    /// Only this column family
    #[arg(long, value_name = "NAME", aliases = CF_ALIASES)]
    cf: Option<String>,

    /// List all files that a copy of the database needs
    #[arg(long, conflicts_with_all = ["cf", "hex", "checksums"])]
    all: bool,

    /// Show of each file only the checksum that the MANIFEST has of it
    #[arg(long, conflicts_with = "hex")]
    checksums: bool,

    /// Show keys in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Inspect)?;
    if arguments.all {
        return list_all(&db, common);
    }
    let families = match &arguments.cf {
        Some(name) => vec![database::family(&db, name)?],
        None => db.column_families(),
    };
    let notation = Notation::new(arguments.hex);
    let files = db.live_files();
    let mut by_family: HashMap<&str, Vec<&LiveFile>> = HashMap::new();
    for file in &files {
        by_family.entry(&file.column_family).or_default().push(file);
    }
    let mut output = Output::new();
    for family in &families {
        if !common.json {
            output.line(format!("column family '{}'", text::name(family.name())))?;
        }
        for file in by_family.remove(family.name()).unwrap_or_default() {
            output.line(if common.json {
                as_json(file, notation).to_string()
            } else {
                in_words(file, notation, arguments.checksums)
            })?;
        }
    }
    output.finish()?;
    Ok(Verdict::Sound)
}

fn list_all(db: &Db, common: &Common) -> Outcome {
    let mut output = Output::new();
    for file in db.live_files_storage(u64::MAX)? {
        let path = file.directory.join(&file.name);
        if common.json {
            let mut facts = json!({"bytes": file.size});
            json::tell_path(&mut facts, "path", Some(&path));
            facts["may_grow"] = json!(file.trim_to_size);
            facts["contents_from_file"] = json!(file.replacement_contents.is_none());
            output.line(facts.to_string())?;
            continue;
        }
        let note = match (&file.replacement_contents, file.trim_to_size) {
            (Some(_), _) => ", to be written anew",
            (None, true) => ", may grow",
            (None, false) => "",
        };
        output.line(format!("{}: {}{note}", text::path(&path), text::bytes(file.size)))?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}

fn in_words(file: &LiveFile, notation: Notation, only_checksums: bool) -> String {
    let path = text::path(&file.path);
    if only_checksums {
        let checksum = file.checksum.as_ref().map(|known| (text::name(&known.function), known));
        return match checksum {
            Some((function, known)) => format!("  {path}: {function} {}", hex(&known.value)),
            None => format!("  {path}: no checksum"),
        };
    }
    let size = text::bytes(file.size);
    let Some(level) = file.level else {
        return format!("  blob file {path}: {size}, garbage {}", text::bytes(file.garbage_bytes));
    };
    let mut words = format!("  level {level} {path}: {size}");
    if let Some((entries, deletions)) = file.entries {
        words.push_str(&format!(", entries {entries}, deletions {deletions}"));
    }
    let (smallest, largest) = (notation.show(&file.smallest), notation.show(&file.largest));
    words.push_str(&format!(", keys '{smallest}' to '{largest}'"));
    words.push_str(&format!(", sequence numbers {} to {}", file.sequences.0, file.sequences.1));
    if file.temperature.is_known() {
        words.push_str(&format!(", {}", file.temperature));
    }
    words
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn as_json(file: &LiveFile, notation: Notation) -> Value {
    let mut facts = json!({});
    json::tell_path(&mut facts, "path", Some(&file.path));
    let mut tell = |name: &str, value: Value| facts[name] = value;
    tell("column_family", json!(file.column_family));
    tell("number", json!(file.number.0));
    tell("bytes", json!(file.size));
    let checksum = file.checksum.as_ref();
    tell("checksum_function", json!(checksum.map(|known| &known.function)));
    tell("checksum", json!(checksum.map(|known| hex(&known.value))));
    let Some(level) = file.level else {
        tell("kind", json!("blob"));
        tell("garbage_bytes", json!(file.garbage_bytes));
        return facts;
    };
    tell("kind", json!("table"));
    tell("level", json!(level));
    tell("entries", json!(file.entries.map(|(entries, _)| entries)));
    tell("deletions", json!(file.entries.map(|(_, deletions)| deletions)));
    tell("smallest_sequence", json!(file.sequences.0));
    tell("largest_sequence", json!(file.sequences.1));
    tell("created_seconds", json!(file.created));
    tell("temperature", json!(file.temperature.to_string()));
    json::tell(&mut facts, "smallest_key", &file.smallest, notation);
    json::tell(&mut facts, "largest_key", &file.largest, notation);
    facts
}
