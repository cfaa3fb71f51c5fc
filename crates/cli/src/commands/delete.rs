//! `flagstone delete`

use clap::Args;
use std::ffi::OsString;

use crate::arguments::{Common, Place};
use crate::commands::write::{delete_into, write_synced};
use crate::database::{self, Access};
use crate::failure::Outcome;
use crate::marks::WriteAsOf;

/// Delete a key, whether or not it exists.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone delete --db /data/photos cats/tom.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: OsString,
    #[command(flatten)]
    as_of: WriteAsOf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let key = place.notation().read("the key", &arguments.key)?;
    let db = database::open(common, &place.db, Access::Write)?;
    let family = database::family(&db, &place.cf)?;
    let stamp = arguments.as_of.stamp(&family)?;
    write_synced(&db, |batch| delete_into(batch, &family, stamp, &key))
}
