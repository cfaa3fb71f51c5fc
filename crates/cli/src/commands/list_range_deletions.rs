//! `flagstone list-range-deletions`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::RangeTombstone;
use serde_json::json;

use crate::arguments::{Common, Place};
use crate::beside_writer;
use crate::commands::sst::open_table;
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::json;
use crate::output::Output;
use crate::text;
use crate::world;

/// List the range deletions in the tables of a column family.
///
/// One line each: the table's file, the first key that is deleted, the first that is not, and the
/// sequence number. They are listed as stored: what they delete may be gone. Those that are still
/// in a WAL are not listed; wal --operations shows them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone list-range-deletions --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Stop after N range deletions
    #[arg(long, value_name = "N", alias = "max_keys")]
    limit: Option<usize>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let limit = arguments.limit.unwrap_or(usize::MAX);
    // A writer may take a table away before it is opened.
    let listed = beside_writer::open(&place.db, || list(place, common, limit))?;
    let notation = place.notation();
    let mut output = Output::new();
    for (path, range) in &listed {
        output.line(if common.json {
            let mut facts = json!({ "sequence": range.sequence });
            json::tell_path(&mut facts, "file", Some(path));
            json::tell(&mut facts, "key", &range.start, notation);
            json::tell(&mut facts, "end_key", &range.end, notation);
            facts.to_string()
        } else {
            let (start, end) = (notation.show(&range.start), notation.show(&range.end));
            format!("{}\t{start}\t{end}\t{}", text::path(path), range.sequence)
        })?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}

/// The first of them, in the order of levels and files.
fn list(
    place: &Place,
    common: &Common,
    limit: usize,
) -> Result<Vec<(PathBuf, RangeTombstone)>, Failure> {
    let db = database::open(common, &place.db, Access::Read)?;
    let family = database::family(&db, &place.cf)?;
    let env = world::env();
    let files = db.live_files().into_iter();
    let mut listed = Vec::new();
    for file in files.filter(|file| file.column_family == family.name() && file.level.is_some()) {
        let ranges = open_table(&env, &file.path)?.stored_range_deletions()?;
        let left = limit - listed.len();
        listed.extend(ranges.into_iter().take(left).map(|range| (file.path.clone(), range)));
    }
    Ok(listed)
}
