//! `flagstone export-family`

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{CF_ALIASES, Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;

/// Copy one column family to a directory of its own, mostly by hard links.
///
/// DIR must not exist. It becomes a database with this family and an empty 'default'.
/// `import-family` makes a family of it in another database.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone export-family --db /data/photos --cf old-thumbnails /data/old-thumbnails"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// The column family
    #[arg(long, value_name = "NAME", default_value = "default", aliases = CF_ALIASES)]
    cf: String,
    /// The new directory
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let family = database::family(&db, &arguments.cf)?;
    let progress = Progress::of_work("exporting");
    db.export_column_family(&family, &arguments.dir)?;
    db.close()?;
    drop(progress);
    Ok(Verdict::Sound)
}
