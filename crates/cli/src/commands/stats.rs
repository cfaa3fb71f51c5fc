//! `flagstone stats`

use clap::Args;
use flagstone::db::{ColumnFamily, Db};
use serde_json::{Map, Value, json};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::output::Output;
use crate::text;

/// Print the size and shape of each column family, and who holds memory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone stats --db /data/photos --json")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Read)?;
    let mut output = Output::new();
    if common.json {
        let families: Map<String, Value> = db
            .column_families()
            .iter()
            .map(|family| (family.name().to_string(), facts(&db, family)))
            .collect();
        let sequence = db.latest_sequence_number();
        let memory: Map<String, Value> =
            figures(&db).into_iter().map(|(name, figure)| (name.to_string(), json!(figure))).collect();
        let facts = json!({
            "latest_sequence_number": sequence,
            "column_families": families,
            "memory": memory,
        });
        output.line(facts.to_string())?;
    } else {
        for family in db.column_families() {
            print(&db, &family, &mut output)?;
        }
        output.line("memory of this process")?;
        for (name, figure) in figures(&db).into_iter().filter(|(_, figure)| *figure > 0) {
            output.line(shown(name, figure))?;
        }
    }
    output.finish()?;
    Ok(Verdict::Sound)
}

/// The figures shown, by property and by the name that they are shown under.
const FIGURES: [(&str, &str); 7] = [
    ("rocksdb.estimate-num-keys", "keys_estimated"),
    ("rocksdb.total-sst-files-size", "table_bytes"),
    ("rocksdb.num-blob-files", "blob_files"),
    ("rocksdb.total-blob-file-size", "blob_bytes"),
    ("rocksdb.live-blob-file-garbage-size", "blob_garbage_bytes"),
    ("rocksdb.cur-size-all-mem-tables", "memtable_bytes"),
    ("rocksdb.num-entries-active-mem-table", "memtable_entries"),
];

/// Who holds memory, once tables are open: what they keep is to be expected of whoever uses the database.
fn figures(db: &Db) -> Vec<(&'static str, u64)> {
    for family in db.column_families() {
        db.int_property(&family, "rocksdb.estimate-num-keys");
    }
    db.memory_usage().figures()
}

fn shown(name: &str, figure: u64) -> String {
    let shown = if name.ends_with("_bytes") { text::bytes(figure) } else { figure.to_string() };
    format!("  {}: {shown}", name.trim_end_matches("_bytes").replace('_', " "))
}

fn levels(db: &Db, family: &ColumnFamily) -> Vec<(u64, u64)> {
    let mut levels = vec![(0, 0u64); family.options().num_levels.max(1) as usize];
    for file in db.live_files().iter().filter(|file| file.column_family == family.name()) {
        if let Some(slot) = file.level.and_then(|level| levels.get_mut(level)) {
            *slot = (slot.0 + 1, slot.1.saturating_add(file.size));
        }
    }
    levels
}

fn facts(db: &Db, family: &ColumnFamily) -> Value {
    let mut facts = Map::new();
    for (property, name) in FIGURES {
        facts.insert(name.to_string(), json!(db.int_property(family, property)));
    }
    let levels: Vec<_> =
        levels(db, family).iter().map(|(files, bytes)| json!({ "files": files, "bytes": bytes })).collect();
    facts.insert("levels".to_string(), Value::Array(levels));
    facts.insert("comparator".to_string(), json!(family.comparator().name()));
    Value::Object(facts)
}

fn print(db: &Db, family: &ColumnFamily, output: &mut Output) -> Result<(), crate::failure::Failure> {
    output.line(format!("column family '{}' ({})", family.name(), family.comparator().name()))?;
    for (level, (files, bytes)) in
        levels(db, family).into_iter().enumerate().filter(|(_, (files, _))| *files > 0)
    {
        output.line(format!("  level {level}: {files} tables, {}", text::bytes(bytes)))?;
    }
    for (property, name) in FIGURES {
        if let Some(figure) = db.int_property(family, property) {
            output.line(shown(name, figure))?;
        }
    }
    Ok(())
}
