//! `flagstone stats`

use clap::Args;
use flagstone::db::{ColumnFamily, Db};
use serde_json::{Map, Value, json};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::output::Output;
use crate::text;

/// Print the size and shape of each column family.
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
        output
            .line(json!({ "latest_sequence_number": sequence, "column_families": families }).to_string())?;
    } else {
        for family in db.column_families() {
            print(&db, &family, &mut output)?;
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

fn levels(db: &Db, family: &ColumnFamily) -> Vec<(u64, u64)> {
    let mut levels = vec![(0, 0); family.options().num_levels.max(1) as usize];
    for file in db.live_files().iter().filter(|file| file.column_family == family.name()) {
        if let Some(slot) = file.level.and_then(|level| levels.get_mut(level)) {
            *slot = (slot.0 + 1, slot.1 + file.size);
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
            let shown = if name.ends_with("_bytes") { text::bytes(figure) } else { figure.to_string() };
            output.line(format!("  {}: {shown}", name.trim_end_matches("_bytes").replace('_', " ")))?;
        }
    }
    Ok(())
}
