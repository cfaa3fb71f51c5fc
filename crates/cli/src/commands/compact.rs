//! `flagstone compact`

use clap::Args;
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions};

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::stamped::Ttl;

/// Compact a range of keys, or all of them, down to the last level.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone compact --db /data/photos --prefix cats/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    /// Rewrite the last level, too
    #[arg(long)]
    force_bottommost: bool,
    /// Parts that run at the same time; 0 for the database's max_subcompactions
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    max_subcompactions: u32,
    /// Which directory of db_paths (or cf_paths) the result is written to, counted from 0
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    target_path: u32,
    /// Afterwards move the level that the result lies in to the first that should hold as much, if those between are empty
    #[arg(long)]
    change_level: bool,
    /// The level for --change-level
    #[arg(long, value_name = "NUMBER", requires = "change_level")]
    target_level: Option<u8>,
    #[command(flatten)]
    ttl: Ttl,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let (from, to) = arguments.range.bounds(place.notation())?;
    let opened = arguments.ttl.open(common, &place.db, Access::Write)?;
    let db = opened.db();
    let family = database::family(db, &place.cf)?;
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
    db.compact_range(&family, from.as_deref(), to.as_deref(), &options)?;
    db.close()?;
    Ok(Verdict::Sound)
}
