//! `flagstone reduce-levels`

use clap::Args;
use flagstone::base::counted;
use flagstone::options::CompactionStyle;
use serde_json::json;

use crate::arguments::{Common, Place};
use crate::commands::shape::{self, Shape};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::text;

/// Reduce the number of levels of a column family (num_levels).
///
/// If tables lie in levels that go away, the family is compacted first, into the new last level.
/// Then num_levels is set in the OPTIONS file. If the command ends early, the database is in order
/// with its old number of levels. To raise the number, use compact --set num_levels=NUMBER.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone reduce-levels --db /data/photos --new-levels 4")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The number of levels from now on
    #[arg(long, value_name = "NUMBER", alias = "new_levels")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    new_levels: u8,
    /// Print how many levels were in use, from the first to the last that holds tables
    #[arg(long, alias = "print_old_levels")]
    print_old_levels: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let (place, new) = (&arguments.place, arguments.new_levels);
    let shape = Shape::of(common, place)?;
    let in_use = shape.levels_in_use;
    if i32::from(new) > shape.num_levels {
        return Err(Failure::Usage(format!(
            "column family '{}' has {}, fewer than --new-levels {new}; compact --set num_levels={new} raises the number",
            text::name(&place.cf),
            counted(shape.num_levels.unsigned_abs(), "level"),
        )));
    }
    if shape.style == CompactionStyle::Level && new < 2 {
        return Err(Failure::Usage(
            "leveled compaction needs at least 2 levels; for one, change the compaction style to universal before"
                .to_string(),
        ));
    }
    // What the engine would refuse is refused before anything is compacted.
    shape::check(common, place, &[("num_levels", &new.to_string())])?;
    let moves = in_use > usize::from(new);
    if moves {
        shape::check_gathers(common, place)?;
        shape::gather(common, place, new - 1)?;
    }
    shape::set(common, place, &[("num_levels", &new.to_string())])?;
    let mut output = Output::new();
    if common.json {
        let facts = json!({ "old_levels_in_use": in_use, "new_levels": new, "compacted": moves });
        output.line(facts.to_string())?;
    } else if arguments.print_old_levels {
        output.line(format!("{} in use before", counted(in_use as u64, "level")))?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
