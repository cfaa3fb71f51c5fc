//! `flagstone ingest`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::counted;
use flagstone::options::IngestExternalFileOptions;

use crate::arguments::{CF_ALIASES, Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::output::Output;
use crate::progress::Progress;

/// Make tables that were written outside of a database part of a column family, all or none.
///
/// Their entries are newer than all that is there; of several tables the later one wins. The tables
/// are those of `write-extern-sst`, of SstFileWriter, or of RocksDB.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone ingest --db /data/photos /tmp/photos.sst")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// The column family
    #[arg(long, value_name = "NAME", default_value = "default", aliases = CF_ALIASES)]
    cf: String,
    /// Move the files instead of copying them
    #[arg(long, alias = "move_files")]
    move_files: bool,
    /// Link the files instead of copying them; they must not be changed afterwards
    #[arg(long, alias = "link_files", conflicts_with = "move_files")]
    link_files: bool,
    /// Read every table first and check all checksums
    #[arg(long)]
    verify: bool,
    /// Also accept tables that a database wrote; they must not overlap keys of this one
    #[arg(long, alias = "allow_db_generated_files")]
    allow_db_generated_files: bool,
    /// Fail unless every table fits into the last level
    #[arg(long, alias = "fail_if_not_bottommost_level")]
    fail_if_not_bottommost_level: bool,
    /// The tables
    #[arg(required = true)]
    tables: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let family = database::family(&db, &arguments.cf)?;
    let progress = Progress::of_work("ingesting");
    let options = IngestExternalFileOptions {
        move_files: arguments.move_files,
        link_files: arguments.link_files,
        verify_checksums_before_ingest: arguments.verify,
        allow_db_generated_files: arguments.allow_db_generated_files,
        fail_if_not_bottommost_level: arguments.fail_if_not_bottommost_level,
        ..IngestExternalFileOptions::default()
    };
    db.ingest_external_files(&family, &arguments.tables, &options)?;
    db.close()?;
    drop(progress);
    let mut output = Output::new();
    output.line(if common.json {
        serde_json::json!({ "tables": arguments.tables.len() }).to_string()
    } else {
        format!("{} ingested", counted(arguments.tables.len(), "table"))
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
