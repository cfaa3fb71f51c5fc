//! `flagstone write-extern-sst`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::counted;
use flagstone::ingest::{SstFileWriter, SstFileWriterEmbeddedBlobOptions, SstFileWriterOptions};
use serde_json::json;

use crate::arguments::{CF_ALIASES, Common, Database};
use crate::database::{self, Access};
use crate::dump_lines::{Found, Lines};
use crate::failure::{Failure, Outcome, Verdict, tell_if_typed};
use crate::output::Output;
use crate::text::{self, DumpLine};

/// Write the output of `dump` from standard input into a table file, to be ingested.
///
/// The table is written as the column family's options say; the database is not opened, and may be
/// in use. Lines of other families are refused, as are keys that do not ascend in the family's
/// order. The file is complete when the command ends; after a failure there is none. Values stay in
/// the table whatever their size; each must fit into memory.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone write-extern-sst --db /data/photos /tmp/photos.sst < photos.dump"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// The column family that the table is for
    #[arg(long, value_name = "NAME", default_value = "default", aliases = CF_ALIASES)]
    cf: String,
    /// Store values of at least BYTES, or 2048, beside the blocks; needs format_version=7
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2048",
        alias = "embedded_blobs"
    )]
    embedded_blobs: Option<u64>,
    /// The new table; one that is there is replaced
    table: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    tell_if_typed("a dump");
    let path = &arguments.database.db;
    database::check_exists(path)?;
    let (options, families) = database::options(common, path, Access::Read)?;
    let named = families.iter().find(|(name, _)| *name == arguments.cf);
    let Some((_, family)) = named else {
        let name = text::name(&arguments.cf);
        return Err(Failure::Usage(format!("there is no column family '{name}'")));
    };
    let embedded = |min_blob_size| SstFileWriterEmbeddedBlobOptions { min_blob_size };
    let settings = SstFileWriterOptions {
        env: options.env.clone(),
        embedded_blobs: arguments.embedded_blobs.map(embedded),
        ..SstFileWriterOptions::new(family)
    };
    let mut lines = Lines::new(common);
    let mut writer = SstFileWriter::create(&arguments.table, &settings)?;
    loop {
        let found = lines.next()?;
        if found == Found::End {
            break;
        }
        add(&mut writer, &lines, found, arguments).map_err(|why| {
            Failure::Other(format!("line {} of standard input: {why}", lines.count))
        })?;
    }
    let info = writer.finish()?;
    let mut output = Output::new();
    output.line(if common.json {
        json!({ "keys": info.num_entries, "bytes": info.file_size }).to_string()
    } else {
        format!("{} written", counted(info.num_entries, "key"))
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}

/// Adds a line; or why it cannot be.
fn add(
    writer: &mut SstFileWriter,
    lines: &Lines,
    found: Found,
    arguments: &Arguments,
) -> Result<(), String> {
    let line = match found {
        Found::Bad(why) => return Err(why.to_string()),
        Found::Beginning => {
            return Err("the value is too large for a table; use flagstone load".to_string());
        }
        Found::Line | Found::End => lines.parse()?,
    };
    match line {
        // A dump names families that have no entries.
        DumpLine::Order(..) => Ok(()),
        DumpLine::Entry(name, key, value) if name == arguments.cf => {
            writer.put(key, value).map_err(|error| error.to_string())
        }
        DumpLine::Entity(name, key, entity) if name == arguments.cf => {
            writer.put_encoded_entity(key, entity).map_err(|error| error.to_string())
        }
        DumpLine::Entry(name, ..) | DumpLine::Entity(name, ..) => {
            let (found, wanted) = (text::name(name), text::name(&arguments.cf));
            Err(format!("it is of column family '{found}', and the table for '{wanted}'"))
        }
    }
}
