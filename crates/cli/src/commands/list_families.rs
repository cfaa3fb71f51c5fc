//! `flagstone list-families`

use clap::Args;
use flagstone::db::Db;
use flagstone::options::Options;
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::database;
use crate::failure::{Outcome, Verdict};
use crate::output::Output;
use crate::text;
use crate::world;

/// List the column families in the order of their creation.
///
/// Backslashes and unprintable characters in names are escaped; JSON has the names unchanged.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone list-families --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    database::check_exists(&arguments.database.db)?;
    let names = Db::list_column_families(
        &arguments.database.db,
        &Options { env: world::env(), ..Options::default() },
    )?;
    let mut output = Output::new();
    if common.json {
        output.line(json!({ "column_families": names }).to_string())?;
    } else {
        names.iter().try_for_each(|name| output.line(text::name(name)))?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
