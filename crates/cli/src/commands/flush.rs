//! `flagstone flush`

use clap::Args;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;

/// Flush all column families: write the contents of WALs to tables.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone flush --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let progress = Progress::of_work("flushing");
    db.flush_all()?;
    db.close()?;
    drop(progress);
    Ok(Verdict::Sound)
}
