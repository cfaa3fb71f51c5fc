//! `flagstone drop-family`

use clap::Args;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};

/// Drop a column family, with all that is in it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone drop-family --db /data/photos thumbnails")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Its name
    name: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let family = database::family(&db, &arguments.name)?;
    db.drop_column_family(&family).map_err(database::refused_name)?;
    db.close()?;
    Ok(Verdict::Sound)
}
