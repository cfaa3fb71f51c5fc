//! `flagstone single-delete`

use clap::Args;
use std::ffi::OsString;

use crate::arguments::{Common, Place};
use crate::commands::write::write_synced;
use crate::database::{self, Access};
use crate::failure::Outcome;
use crate::marks::WriteAsOf;

/// Delete a key that was set at most once since it was last deleted.
///
/// The deletion goes together with the value that it deletes, so it takes no space afterwards. If
/// the key was set several times, older values may be seen again: use delete then.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone single-delete --db /data/photos hello")]
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
    write_synced(&db, |batch| match stamp {
        Some(stamp) => batch.single_delete_with_timestamp(&family, &key, stamp),
        None => batch.single_delete_cf(&family, &key),
    })
}
