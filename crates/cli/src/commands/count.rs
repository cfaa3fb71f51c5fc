//! `flagstone count`

use clap::Args;
use serde_json::json;

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::marks::{Period, ReadAsOf};
use crate::output::Output;
use crate::progress::Progress;
use crate::stamped::Ttl;

/// Count keys.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone count --db /data/photos --prefix cats/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    as_of: ReadAsOf,
    #[command(flatten)]
    ttl: Ttl,
    #[command(flatten)]
    period: Period,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let bounds = arguments.range.bounds(place.notation())?;
    arguments.period.check()?;
    let db = arguments.ttl.open(common, &place.db, Access::Read)?;
    let family = database::family(db.db(), &place.cf)?;
    arguments.range.check_order(&family, &bounds)?;
    let is_bounded = bounds.0.is_some() || bounds.1.is_some();
    let progress = Progress::keys(db.db(), std::slice::from_ref(&family), is_bounded);
    let options = arguments.as_of.options(&family)?;
    let mut iter = db.cursor(options, &family, bounds, false)?;
    let (mut count, mut seen) = (0u64, 0u64);
    while iter.valid() {
        count += u64::from(arguments.period.admits(&mut iter)?);
        seen += 1;
        if seen.is_multiple_of(4096) {
            progress.set(seen);
        }
        iter.step(false);
    }
    iter.status()?;
    drop(progress);
    let mut output = Output::new();
    output.line(if common.json {
        json!({ "keys": count }).to_string()
    } else {
        count.to_string()
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
