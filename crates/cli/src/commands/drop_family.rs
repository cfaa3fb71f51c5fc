//! `flagstone drop-family`

use clap::Args;
use flagstone::options::DEFAULT_COLUMN_FAMILY_NAME;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};

/// Drop a column family with all its data.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone drop-family --db /data/photos thumbnails")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Name of the family
    name: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    if arguments.name == DEFAULT_COLUMN_FAMILY_NAME {
        return Err(Failure::Usage(format!(
            "the column family '{DEFAULT_COLUMN_FAMILY_NAME}' cannot be dropped"
        )));
    }
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let family = database::family(&db, &arguments.name)?;
    db.drop_column_family(&family)?;
    db.close()?;
    Ok(Verdict::Sound)
}
