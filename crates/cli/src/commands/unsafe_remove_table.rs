//! `flagstone unsafe-remove-table`

use clap::Args;
use flagstone::base::FileNumber;

use crate::arguments::{Common, Database};
use crate::commands::offline;
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::text::Notation;

/// Remove a table from the MANIFEST of a closed database: its entries are lost.
///
/// For a database that does not open because a table is missing or damaged, if what the table holds
/// can be spared; flagstone salvage keeps more. Older values of its keys, and keys that it deleted,
/// are seen again if deeper levels have them. Without --accept-loss nothing is changed, and the
/// table is only shown. The next command that writes to the database removes the table's file: copy
/// it first if you may want it back.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone unsafe-remove-table --db /data/photos 000012.sst --accept-loss"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// The table's number, which is its file's name
    #[arg(value_name = "NUMBER", value_parser = number_of)]
    number: u64,
    /// Remove it; what it holds is lost
    #[arg(long)]
    accept_loss: bool,
    /// Show keys in hexadecimal
    #[arg(long)]
    hex: bool,
}

fn number_of(text: &str) -> Result<u64, String> {
    let digits = text.strip_suffix(".sst").unwrap_or(text);
    digits.parse().map_err(|_| format!("expected a table's number, such as 12, found '{text}'"))
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let number = FileNumber(arguments.number);
    let notation = Notation::new(arguments.hex);
    let mut manifest = offline::open(common, &arguments.database.db)?;
    let table = manifest.table(number)?;
    if !arguments.accept_loss {
        return Err(Failure::Usage(format!(
            "what this table holds would be lost: {}\nNothing was changed; --accept-loss removes the table",
            offline::in_words(&table, notation)
        )));
    }
    manifest.remove_table(number)?;
    let mut output = Output::new();
    output.line(if common.json {
        serde_json::json!({ "removed": offline::as_json(&table, notation) }).to_string()
    } else {
        format!("removed {}", offline::in_words(&table, notation))
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
