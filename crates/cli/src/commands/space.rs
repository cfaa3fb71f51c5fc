//! `flagstone space`

use clap::Args;
use flagstone::base::counted;
use flagstone::db::{ColumnFamily, SpaceUsage};
use serde_json::{Map, Value, json};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::progress::following;
use crate::text;

/// Show how the space of each column family is used: live values, garbage, data pinned by
/// snapshots, and what a compaction would free.
///
/// Reads all tables, but no values in blob files. Values that entries in WALs overwrite count as
/// live until a flush; the command prints the number of those entries. The database is opened
/// read-only, so snapshots and iterators of other processes are not seen.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone space --db /data/photos --json")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Read)?;
    let mut output = Output::new();
    let mut families = Map::new();
    for family in db.column_families() {
        let usage = following(|control| db.space_followed(&family, control))?;
        if common.json {
            families.insert(family.name().to_string(), Value::Object(facts(&family, &usage)));
        } else {
            print(&family, &usage, &mut output)?;
        }
    }
    let trash = db.trash_size()?;
    if common.json {
        let facts = json!({ "column_families": families, "trash_bytes": trash });
        output.line(facts.to_string())?;
    } else if trash > 0 {
        output.line(format!("obsolete files that wait to be removed: {}", text::bytes(trash)))?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}

/// The figures by name, and what they mean.
fn figures(usage: &SpaceUsage) -> [(&'static str, u64, &'static str); 11] {
    [
        ("table_bytes", usage.table_bytes, "tables"),
        ("blob_bytes", usage.blob_bytes, "blob files"),
        ("live_bytes", usage.live_bytes, "  live values"),
        ("garbage_bytes", usage.garbage_bytes, "  garbage that nothing refers to"),
        ("hidden_bytes", usage.hidden_bytes, "  garbage that tables still refer to"),
        ("snapshot_bytes", usage.snapshot_bytes, "  pinned by snapshots"),
        ("punched_bytes", usage.punched_bytes, "given back by holes in blob files"),
        ("reader_bytes", usage.reader_bytes, "old files pinned by iterators"),
        ("unflushed_bytes", usage.unflushed_bytes, "not yet flushed"),
        ("scratch_bytes", usage.scratch_bytes, "space that the largest compaction needs"),
        ("reclaimable_bytes", usage.reclaimable_bytes(), "reclaimable now"),
    ]
}

/// Blob files over live values; `None` if nothing is live.
fn amplification(usage: &SpaceUsage) -> Option<f64> {
    (usage.live_bytes > 0).then(|| usage.blob_bytes as f64 / usage.live_bytes as f64)
}

fn facts(family: &ColumnFamily, usage: &SpaceUsage) -> Map<String, Value> {
    let mut facts: Map<String, Value> = figures(usage)
        .into_iter()
        .map(|(name, figure, _)| (name.to_string(), json!(figure)))
        .collect();
    facts.insert("unflushed_entries".to_string(), json!(usage.unflushed_entries));
    facts.insert("space_amplification".to_string(), json!(amplification(usage)));
    let options = family.options();
    facts.insert("max_space_amplification".to_string(), json!(options.max_space_amplification));
    facts.insert("burst_space_amplification".to_string(), json!(options.space_in_bursts()));
    facts
}

fn print(family: &ColumnFamily, usage: &SpaceUsage, output: &mut Output) -> Result<(), Failure> {
    output.line(format!("column family '{}'", text::name(family.name())))?;
    for (_, figure, meaning) in figures(usage) {
        output.line(format!("  {meaning}: {}", text::bytes(figure)))?;
    }
    if usage.unflushed_entries > 0 {
        output.line(format!(
            "  not counted: garbage caused by {} still in WALs; it counts after flagstone flush",
            counted(usage.unflushed_entries, "entry")
        ))?;
    }
    if let Some(amplification) = amplification(usage) {
        let limit = match family.options().max_space_amplification {
            0.0 => "no limit".to_string(),
            limit => match family.options().space_in_bursts() {
                burst if burst > limit => format!("limit {limit}, in bursts {burst}"),
                _ => format!("limit {limit}"),
            },
        };
        output.line(format!("  blob files over live values: {amplification:.2} ({limit})"))?;
    }
    Ok(())
}
