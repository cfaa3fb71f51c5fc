//! `flagstone checkpoint`

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;

/// Make a copy of the database that shares its files by hard links.
///
/// DIR must not exist. On another file system, where links are not possible, the files are copied.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone checkpoint --db /data/photos /data/photos-monday")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// The new directory
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let progress = Progress::of_work("making the copy");
    db.checkpoint(&arguments.dir)?;
    db.close()?;
    drop(progress);
    Ok(Verdict::Sound)
}
