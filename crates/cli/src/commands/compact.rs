//! `flagstone compact`

use std::collections::BTreeSet;

use clap::Args;
use flagstone::base::{FileNumber, counted, timestamp};
use flagstone::db::{ColumnFamily, Db, LiveFile};
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions};
use serde_json::json;

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::progress::following;
use crate::stamped::Ttl;
use crate::text;

/// Compact a range of keys, or all of them, down to the last level.
///
/// Without a range the command also collects garbage in blob files until they meet
/// max_space_amplification. A table that needs no rewriting is moved or left in place without being
/// read, so damage in it goes unnoticed; flagstone verify reads it. The command prints how
/// many tables it did not read; --force-bottommost rewrites those, too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone compact --db /data/photos --prefix cats/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    /// Rewrite the last level as well
    #[arg(long)]
    force_bottommost: bool,
    /// Subcompactions to run in parallel; 0 for the database's max_subcompactions
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    max_subcompactions: u32,
    /// Index in db_paths (or cf_paths) of the directory to write to, counted from 0
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    target_path: u32,
    /// Afterwards move the level that holds the result to the first level whose target size fits
    /// it, if the levels between are empty
    #[arg(long)]
    change_level: bool,
    /// Level for --change-level
    #[arg(long, value_name = "NUMBER", requires = "change_level")]
    target_level: Option<u8>,
    /// Only print how many bytes of tables would be read
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    ttl: Ttl,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let bounds = arguments.range.bounds(place.notation())?;
    let opened = arguments.ttl.open(
        common,
        &place.db,
        if arguments.dry_run { Access::Inspect } else { Access::Write },
    )?;
    let db = opened.db();
    let family = database::family(db, &place.cf)?;
    arguments.range.check_order(&family, &bounds)?;
    let max_subcompactions = arguments.max_subcompactions;
    let mut options = CompactRangeOptions {
        max_subcompactions,
        change_level: arguments.change_level,
        target_level: arguments.target_level.map_or(-1, i32::from),
        target_path_id: arguments.target_path,
        ..CompactRangeOptions::default()
    };
    if arguments.force_bottommost {
        options.bottommost_level_compaction = BottommostLevelCompaction::Force;
    }
    let range = (bounds.0.as_deref(), bounds.1.as_deref());
    if arguments.dry_run {
        let bytes = db.estimate_compact_range(&family, range.0, range.1, &options)?;
        let mut output = Output::new();
        output.line(if common.json {
            json!({ "bytes": bytes }).to_string()
        } else {
            format!("about {} of tables would be read", text::bytes(bytes))
        })?;
        output.finish()?;
        return Ok(Verdict::Sound);
    }
    let before = tables(db, &family, range);
    // They take down again what has been moved up, where levels grow from the last.
    let held =
        arguments.change_level.then(|| db.hold_automatic_compactions(&family)).transpose()?;
    following(|control| {
        let options = CompactRangeOptions { control: Some(control.clone()), ..options };
        db.compact_range(&family, range.0, range.1, &options)
    })?;
    if held.is_none() && (range.0, range.1) == (None, None) {
        following(|control| db.collect_blob_garbage(&family, Some(control.clone())))?;
    }
    let after = tables(db, &family, range);
    db.close()?;
    drop(held);
    let mut output = Output::new();
    tell_unread(before.intersection(&after).count() as u64, common, &mut output)?;
    output.finish()?;
    Ok(Verdict::Sound)
}

/// The tables of the family that may hold keys of the range.
fn tables(
    db: &Db,
    family: &ColumnFamily,
    range: (Option<&[u8]>, Option<&[u8]>),
) -> BTreeSet<FileNumber> {
    let (order, size) =
        (family.comparator().without_timestamps(), family.comparator().timestamp_size());
    let compare = |bound: &[u8], key: &[u8]| order.compare(timestamp::strip(bound, size), key);
    let is_in_range = |file: &LiveFile| {
        range.0.is_none_or(|from| compare(&file.largest, from).is_ge())
            && range.1.is_none_or(|to| compare(&file.smallest, to).is_lt())
    };
    let files = db.live_files().into_iter();
    let files = files.filter(|file| file.column_family == family.name() && file.level.is_some());
    files.filter(is_in_range).map(|file| file.number).collect()
}

/// Says how many tables were not read: whether these are sound is not known.
fn tell_unread(count: u64, common: &Common, output: &mut Output) -> Result<(), Failure> {
    if common.json {
        return output.line(json!({ "unread_tables": count }).to_string());
    }
    match count {
        0 => Ok(()),
        1 => output.line("1 table needed no rewriting and was not read; flagstone verify reads it"),
        _ => output.line(format!(
            "{} needed no rewriting and were not read; flagstone verify reads them",
            counted(count, "table")
        )),
    }
}
