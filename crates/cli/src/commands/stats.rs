//! `flagstone stats`

use std::collections::HashMap;

use clap::Args;
use flagstone::base::counted;
use flagstone::db::{ColumnFamily, Db, PROPERTY_NAMES};
use flagstone::options::names;
use serde_json::{Map, Value, json};

use crate::arguments::{CF_ALIASES, Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::text;

/// Print the size and shape of each column family and the use of memory; or one property, as
/// RocksDB's GetProperty does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flagstone stats --db /data/photos --json\n  \
                  flagstone stats --db /data/photos --property rocksdb.levelstats")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,

    /// Print only this property
    #[arg(long, value_name = "NAME")]
    property: Option<String>,

    /// Only this column family. Without it, all families; for a property, the default family
    #[arg(long, value_name = "FAMILY", aliases = CF_ALIASES)]
    cf: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Read)?;
    let asked = arguments.cf.as_ref().map(|name| database::family(&db, name)).transpose()?;
    let mut output = Output::new();
    if let Some(name) = &arguments.property {
        let family = asked.unwrap_or_else(|| db.default_column_family().clone());
        let value = db.property(&family, name).ok_or_else(|| no_property(&family, name))?;
        output.line(if common.json {
            json!({ "property": name, "value": value }).to_string()
        } else {
            text::lines(&value)
        })?;
        output.finish()?;
        return Ok(Verdict::Sound);
    }
    let levels = Levels::of(&db);
    let families = asked.map_or_else(|| db.column_families(), |family| vec![family]);
    if common.json {
        let families: Map<String, Value> = families
            .iter()
            .map(|family| (family.name().to_string(), facts(&db, family, &levels)))
            .collect();
        let sequence = db.latest_sequence_number();
        let memory: Map<String, Value> = figures(&db)
            .into_iter()
            .map(|(name, figure)| (name.to_string(), json!(figure)))
            .collect();
        let facts = json!({
            "latest_sequence_number": sequence,
            "column_families": families,
            "memory": memory,
            "auto_cache": db.memory_usage().auto_cache.map(|auto| auto.why),
        });
        output.line(facts.to_string())?;
    } else {
        for family in &families {
            print(&db, family, &levels, &mut output)?;
        }
        output.line("memory of this process")?;
        for (name, figure) in figures(&db).into_iter().filter(|(_, figure)| *figure > 0) {
            output.line(shown(name, figure))?;
        }
        if let Some(auto) = db.memory_usage().auto_cache {
            output.line(format!("  cache capacity is auto: {}", auto.why))?;
        }
    }
    output.finish()?;
    Ok(Verdict::Sound)
}

/// Properties that end in a level.
const OF_LEVELS: [&str; 3] = [
    "rocksdb.num-files-at-level",
    "rocksdb.compression-ratio-at-level",
    "rocksdb.aggregated-table-properties-at-level",
];

/// The one that ends in a temperature.
const OF_TEMPERATURES: &str = "rocksdb.live-sst-files-size-at-temperature";

/// Of RocksDB's properties those that are told only with some options, and those that are not here;
/// why.
const NOT_TOLD: [(&str, &str); 8] = [
    (
        "rocksdb.estimate-oldest-key-time",
        "only known with compaction_style=kCompactionStyleFIFO, as long as no tables are merged",
    ),
    ("rocksdb.blob-cache-capacity", NO_BLOB_CACHE),
    ("rocksdb.blob-cache-usage", NO_BLOB_CACHE),
    ("rocksdb.blob-cache-pinned-usage", NO_BLOB_CACHE),
    (
        "rocksdb.cf-file-histogram",
        "the times of file reads are not measured; rocksdb.cfstats-no-file-histogram has the rest",
    ),
    ("rocksdb.block-cache-entry-stats", CACHE_BY_KIND),
    ("rocksdb.fast-block-cache-entry-stats", CACHE_BY_KIND),
    (
        "rocksdb.min-obsolete-sst-number-to-keep",
        "obsolete tables are tracked individually, not by number",
    ),
];
const NO_BLOB_CACHE: &str =
    "values in blob files are not cached; set blob_cache=SIZE or cache_blobs=true to cache them";
const CACHE_BY_KIND: &str = "stats without --property prints what the cache holds, by kind";

/// Why there is no such property, or no value of it.
fn no_property(family: &ColumnFamily, name: &str) -> Failure {
    let property = name.trim_end_matches(|char: char| char.is_ascii_digit());
    let level: Option<i32> = name[property.len()..].parse().ok();
    let levels = family.options().num_levels.max(1);
    if let Some((_, why)) = NOT_TOLD.iter().find(|(known, _)| *known == name) {
        return Failure::Other(format!("{name} is unknown: {why}"));
    }
    if OF_LEVELS.contains(&property) && level.is_none_or(|level| level >= levels) {
        let family = text::name(family.name());
        return Failure::Usage(format!(
            "{property} ends in a level: column family '{family}' has 0 to {}",
            levels - 1
        ));
    }
    if property == OF_TEMPERATURES {
        return Failure::Usage(format!(
            "{property} ends in a temperature from 0 to 255; 0 is for files without one"
        ));
    }
    if PROPERTY_NAMES.contains(&name) || OF_LEVELS.contains(&property) {
        return Failure::Other(format!(
            "{name} is unknown because a table cannot be read; see flagstone verify"
        ));
    }
    // Its namespace is left out by habit, and would count as nine wrong letters.
    let known = PROPERTY_NAMES.iter().copied().chain(OF_LEVELS).chain([OF_TEMPERATURES]);
    let with_namespace = format!("rocksdb.{name}");
    let name = text::name(name);
    let near =
        names::nearest(&name, known.clone()).or_else(|| names::nearest(&with_namespace, known));
    if let Some(near) = near {
        return Failure::Usage(format!("there is no property '{name}'; did you mean '{near}'?"));
    }
    Failure::Usage(format!(
        "there is no property '{name}'; there are {}; followed by a level {}; followed by a temperature {OF_TEMPERATURES}",
        PROPERTY_NAMES.join(", "),
        OF_LEVELS.join(", "),
    ))
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

/// Who holds memory, once tables are open: what they keep is to be expected of whoever uses the
/// database.
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

/// Tables and their bytes by family and level. There may be thousands of families: all are gone
/// through once.
struct Levels(HashMap<String, Vec<(u64, u64)>>);

impl Levels {
    fn of(db: &Db) -> Self {
        let mut levels: HashMap<String, Vec<(u64, u64)>> = HashMap::new();
        for family in db.column_families() {
            let count = family.options().num_levels.max(1) as usize;
            levels.insert(family.name().to_string(), vec![(0, 0); count]);
        }
        for file in db.live_files() {
            let of_family = levels.get_mut(&file.column_family);
            if let Some(slot) = of_family.and_then(|levels| levels.get_mut(file.level?)) {
                *slot = (slot.0 + 1, slot.1.saturating_add(file.size));
            }
        }
        Self(levels)
    }

    fn of_family(&self, family: &ColumnFamily) -> &[(u64, u64)] {
        self.0.get(family.name()).map_or(&[], Vec::as_slice)
    }
}

fn facts(db: &Db, family: &ColumnFamily, levels: &Levels) -> Value {
    let mut facts = Map::new();
    for (property, name) in FIGURES {
        facts.insert(name.to_string(), json!(db.int_property(family, property)));
    }
    let levels = levels.of_family(family).iter();
    let levels: Vec<_> =
        levels.map(|(files, bytes)| json!({ "files": files, "bytes": bytes })).collect();
    facts.insert("levels".to_string(), Value::Array(levels));
    facts.insert("comparator".to_string(), json!(family.comparator().name()));
    Value::Object(facts)
}

fn print(
    db: &Db,
    family: &ColumnFamily,
    levels: &Levels,
    output: &mut Output,
) -> Result<(), Failure> {
    let (name, comparator) = (text::name(family.name()), text::name(family.comparator().name()));
    output.line(format!("column family '{name}' ({comparator})"))?;
    for (level, (files, bytes)) in
        levels.of_family(family).iter().enumerate().filter(|(_, (files, _))| *files > 0)
    {
        output.line(format!(
            "  level {level}: {}, {}",
            counted(*files, "table"),
            text::bytes(*bytes)
        ))?;
    }
    for (property, name) in FIGURES {
        if let Some(figure) = db.int_property(family, property) {
            output.line(shown(name, figure))?;
        }
    }
    Ok(())
}
