//! `flagstone checkpoint`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::{Code, Remedy};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::progress::Progress;

/// Make a copy of the database that shares its files by hard links.
///
/// DIR must not exist. On another file system, where links are not possible, the files are copied.
/// The command takes the database's lock: while another process has it open for writing, that
/// process makes checkpoints (Db::checkpoint), and flagstone dump and flagstone load make a copy
/// beside it.
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
