//! `flagstone checkpoint`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::{Code, Remedy};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::progress::Progress;

/// Make a copy of the database that shares its files through hard links.
///
/// DIR must not exist. On another file system, which cannot share files, they are copied. The
/// command takes the database's lock. While another process has the database open for writing, use
/// Db::checkpoint in that process, or flagstone dump and flagstone load.
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
    let opened = database::open(common, &arguments.database.db, Access::Write);
    let db = opened.map_err(|failure| match failure {
        Failure::Engine(error) if error.code() == Code::Busy => {
            Failure::Advised(error.to_string(), Box::new(Remedy::CopyBesideWriter))
        }
        failure => failure,
    })?;
    let progress = Progress::of_work("making the copy");
    db.checkpoint(&arguments.dir)?;
    db.close()?;
    drop(progress);
    Ok(Verdict::Sound)
}
