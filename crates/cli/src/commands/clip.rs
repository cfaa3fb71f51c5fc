//! `flagstone clip`

use clap::Args;
use std::ffi::OsString;

use crate::arguments::{Common, Place, not_ascending};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;

/// Remove all keys before FROM, and from TO on, from a column family and from the disk.
///
/// They are deleted by one durable write; then the tables that have some of them are compacted.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone clip --db /data/photos cats/ dogs/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// First key to keep
    from: OsString,
    /// First key behind those to keep
    to: OsString,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let from = place.notation().read("FROM", &arguments.from)?;
    let to = place.notation().read("TO", &arguments.to)?;
    let db = database::open(common, &place.db, Access::Write)?;
    let family = database::family(&db, &place.cf)?;
    if family.comparator().without_timestamps().compare(&from, &to).is_ge() {
        return Err(not_ascending(&family, "FROM", "TO"));
    }
    let progress = Progress::of_work("clipping");
    db.clip_column_family(&family, &from, &to)?;
    db.close()?;
    drop(progress);
    Ok(Verdict::Sound)
}
