//! `flagstone delete`

use clap::Args;
use std::ffi::OsString;

use crate::arguments::{Common, Place};
use crate::commands::write::write_synced;
use crate::database::{self, Access};
use crate::failure::Outcome;

/// Delete a key, whether or not it exists.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone delete --db /data/photos cats/tom.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: OsString,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let key = place.notation().read("the key", &arguments.key)?;
    let db = database::open(common, &place.db, Access::Write)?;
    let family = database::family(&db, &place.cf)?;
    write_synced(&db, |batch| batch.delete_cf(&family, &key))
}
