//! `flagstone delete-range`

use clap::Args;
use std::ffi::OsString;

use crate::arguments::{Common, Place, not_ascending};
use crate::commands::write::write_synced;
use crate::database::{self, Access};
use crate::failure::Outcome;
use crate::marks::WriteAsOf;

/// Delete all keys from FROM (inclusive) to TO (exclusive).
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone delete-range --db /data/photos cats/ cats0")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// First key to delete
    from: OsString,
    /// First key to keep
    to: OsString,
    #[command(flatten)]
    as_of: WriteAsOf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let from = place.notation().read("FROM", &arguments.from)?;
    let to = place.notation().read("TO", &arguments.to)?;
    let db = database::open(common, &place.db, Access::Write)?;
    let family = database::family(&db, &place.cf)?;
    if family.comparator().without_timestamps().compare(&from, &to).is_gt() {
        return Err(not_ascending(&family, "FROM", "TO"));
    }
    let stamp = arguments.as_of.stamp(&family)?;
    write_synced(&db, |batch| match stamp {
        Some(stamp) => batch.delete_range_with_timestamp(&family, &from, &to, stamp),
        None => batch.delete_range_cf(&family, &from, &to),
    })
}
