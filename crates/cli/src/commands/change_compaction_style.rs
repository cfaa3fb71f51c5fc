//! `flagstone change-compaction-style`

use clap::Args;
use clap::ValueEnum;
use flagstone::options::CompactionStyle;
use serde_json::json;

use crate::arguments::{Common, Place};
use crate::commands::shape::{self, Shape};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::text;

/// Change the compaction style of a column family.
///
/// From leveled to universal, the family is first compacted into the last level: its tables are
/// then one sorted run. From universal to leveled nothing is compacted; automatic compactions do
/// that later. Then compaction_style is set in the OPTIONS file. If the command ends early, the
/// database is in order with its old style. FIFO is not offered: it would drop the oldest data.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone change-compaction-style --db /data/photos --new-compaction-style universal"
)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Only if this is the style now
    #[arg(long, value_name = "STYLE", alias = "old_compaction_style")]
    old_compaction_style: Option<Style>,
    /// The style from now on
    #[arg(long, value_name = "STYLE", alias = "new_compaction_style")]
    new_compaction_style: Style,
}

/// The styles that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Style {
    /// Leveled compaction.
    #[value(alias = "0", alias = "kCompactionStyleLevel")]
    Level,
    /// Universal compaction.
    #[value(alias = "1", alias = "kCompactionStyleUniversal")]
    Universal,
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Universal => "universal",
        }
    }

    fn of(style: CompactionStyle) -> Option<Self> {
        match style {
            CompactionStyle::Level => Some(Self::Level),
            CompactionStyle::Universal => Some(Self::Universal),
            _ => None,
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let (place, new) = (&arguments.place, arguments.new_compaction_style);
    let shape = Shape::of(common, place)?;
    let name = text::name(&place.cf);
    let Some(old) = Style::of(shape.style) else {
        return Err(Failure::Usage(format!(
            "column family '{name}' has {:?} compaction, and no other style can use its tables; copy the data (dump, load)",
            shape.style
        )));
    };
    if arguments.old_compaction_style.is_some_and(|given| given != old) {
        return Err(Failure::Usage(format!(
            "the compaction style of column family '{name}' is {}, not that of --old-compaction-style",
            old.name()
        )));
    }
    if old == new {
        return Err(Failure::Usage(format!(
            "the compaction style of column family '{name}' is {} already",
            old.name()
        )));
    }
    let setting = [("compaction_style", new.name())];
    shape::check(common, place, &setting)?;
    let compacts = new == Style::Universal && shape.levels_in_use > 0;
    if compacts {
        shape::check_gathers(common, place)?;
        shape::gather(common, place, shape.last_level())?;
    }
    shape::set(common, place, &setting)?;
    let mut output = Output::new();
    if common.json {
        let facts = json!({
            "old_style": old.name(), "new_style": new.name(), "compacted": compacts,
        });
        output.line(facts.to_string())?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
