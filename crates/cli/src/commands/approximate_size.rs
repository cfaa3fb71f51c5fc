//! `flagstone approximate-size`

use clap::Args;
use flagstone::base::counted;
use flagstone::options::SizeApproximationOptions;
use serde_json::json;

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;

/// Estimate how many bytes the keys of a range take, in tables, blob files and memory.
///
/// It looks at the indexes of the tables at the ends of the range, and reads no entries: it takes
/// as long for a large range as for a small one. Deleted and overwritten entries that are still
/// there count.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone approximate-size --db /data/photos --prefix cats/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let bounds = arguments.range.bounds(place.notation())?;
    let (from, Some(to)) = (bounds.0.as_deref().unwrap_or_default(), bounds.1.as_deref()) else {
        let message = "a range needs an end: give --to KEY, or a --prefix that is not all 0xff; \
                       space --db DB tells the size of the whole database";
        return Err(Failure::Usage(message.to_string()));
    };
    let db = database::open(common, &place.db, Access::Read)?;
    let family = database::family(&db, &place.cf)?;
    arguments.range.check_order(&family, &bounds)?;
    let options = SizeApproximationOptions {
        include_memtables: true,
        include_files: true,
        include_blob_files: true,
        ..SizeApproximationOptions::default()
    };
    let bytes: u64 = db.approximate_sizes(&family, &[(from, to)], &options)?.iter().sum();
    let mut output = Output::new();
    output.line(if common.json {
        json!({ "bytes": bytes }).to_string()
    } else {
        counted(bytes, "byte")
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
