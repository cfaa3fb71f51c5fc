//! What is shown: rates of two samples, as lines and as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use flagstone::base::counted;
use flagstone::figures::Figures;
use serde_json::{Value, json};

use super::sample::{Sample, Source};
use crate::text;

/// A view of a database.
pub struct Report<'a> {
    path: &'a Path,
    now: &'a Sample,
    rates: Option<Rates<'a>>,
}

/// What counters have grown by.
struct Rates<'a> {
    earlier: Option<&'a Figures>,
    now: &'a Figures,
    seconds: f64,
}

impl Rates<'_> {
    fn growth(&self, name: &str) -> u64 {
        let before = self.earlier.map_or(0, |earlier| earlier.counter(name));
        self.now.counter(name).saturating_sub(before)
    }

    fn figure_growth(&self, name: &str) -> u64 {
        let before = self.earlier.map_or(0, |earlier| earlier.figure(name));
        self.now.figure(name).saturating_sub(before)
    }

    /// A second.
    fn rate(&self, name: &str) -> f64 {
        self.growth(name) as f64 / self.seconds
    }

    /// The share of lookups that the block cache answered, in percent.
    fn hit_percent(&self) -> Option<f64> {
        let hits = self.figure_growth("block_cache_hits");
        percent(hits, self.figure_growth("block_cache_misses"))
    }
}

fn percent(hits: u64, misses: u64) -> Option<f64> {
    let all = hits.saturating_add(misses);
    (all > 0).then(|| hits as f64 * 100.0 / all as f64)
}

/// A level of the tree, of all families together.
#[derive(Default)]
struct Level {
    tables: u64,
    bytes: u64,
}

const MICROS: f64 = 1e6;

impl<'a> Report<'a> {
    /// A view of a sample; rates are since the `earlier` one, or since the opening.
    pub fn new(path: &'a Path, earlier: Option<&'a Sample>, now: &'a Sample) -> Self {
        let earlier = earlier.filter(|earlier| earlier.is_older_than(now)).and_then(Sample::live);
        let rates = now.live().map(|figures| {
            let since = earlier.map_or(figures.opened_at_us, |earlier| earlier.updated_at_us);
            let micros = figures.updated_at_us.saturating_sub(since).max(1);
            Rates { earlier, now: figures, seconds: micros as f64 / MICROS }
        });
        Self { path, now, rates }
    }

    /// As lines for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.head()];
        if let Some(rates) = &self.rates {
            lines.extend(live_lines(rates));
        } else if let Some(told) = &self.now.told {
            let told = &told.database;
            lines.push(format!(
                "LOG      open {}, {} written, writers stalled {}",
                duration(told.open_seconds * 1_000_000),
                counted(told.keys_written, "key"),
                duration(told.stall_us),
            ));
            if let Some(hits) = percent(told.cache_hits, told.cache_misses) {
                lines.push(format!("cache    {hits:.1}% hits"));
            }
        }
        let files = self.now.files.iter();
        let files = files
            .map(|(kind, files)| format!("{} {kind} ({})", files.count, text::bytes(files.bytes)));
        lines.push(format!("files    {}", files.collect::<Vec<_>>().join(", ")));
        lines
    }

    fn head(&self) -> String {
        let path = text::path(self.path);
        let age =
            |figures: &Figures| duration(self.now.now_us.saturating_sub(figures.updated_at_us));
        match &self.now.source {
            Source::Live(figures) => format!(
                "{path}: process {}, open {}, updated {} ago",
                figures.pid,
                duration(figures.updated_at_us.saturating_sub(figures.opened_at_us)),
                age(figures),
            ),
            Source::Stale(figures) => format!(
                "{path}: process {} has ended without closing it; its last figures are {} old",
                figures.pid,
                age(figures),
            ),
            Source::None(None) => {
                format!("{path}: no process says what it does (no FIGURES; none if encrypted)")
            }
            Source::None(Some(why)) => format!("{path}: the file FIGURES cannot be read: {why}"),
        }
    }

    /// As an object for programs.
    pub fn json(&self) -> Value {
        let files = self.now.files.iter();
        let files = files
            .map(|(kind, files)| {
                ((*kind).to_string(), json!({ "count": files.count, "bytes": files.bytes }))
            })
            .collect::<serde_json::Map<_, _>>();
        let (state, figures) = match &self.now.source {
            Source::Live(figures) => ("live", Some(figures)),
            Source::Stale(figures) => ("stale", Some(figures)),
            Source::None(_) => ("none", None),
        };
        let mut report = json!({ "state": state, "files": files });
        if let Some(figures) = figures {
            let pairs = |values: &[(String, u64)]| -> serde_json::Map<String, Value> {
                values.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
            };
            report["pid"] = json!(figures.pid);
            report["opened_at_us"] = json!(figures.opened_at_us);
            report["updated_at_us"] = json!(figures.updated_at_us);
            report["counters"] = Value::Object(pairs(&figures.counters));
            report["figures"] = Value::Object(pairs(&figures.figures));
            report["levels"] = figures
                .levels
                .iter()
                .map(|level| {
                    json!({
                        "family": level.family,
                        "level": level.level,
                        "tables": level.tables,
                        "bytes": level.bytes,
                    })
                })
                .collect();
        }
        if let Some(rates) = &self.rates {
            let rate = |(name, _): &(String, u64)| (name.clone(), json!(rates.rate(name)));
            report["seconds"] = json!(rates.seconds);
            report["per_second"] = Value::Object(rates.now.counters.iter().map(rate).collect());
        }
        if let Some(told) = &self.now.told {
            report["log"] = json!({
                "open_seconds": told.database.open_seconds,
                "keys_written": told.database.keys_written,
                "stall_us": told.database.stall_us,
                "block_cache_hits": told.database.cache_hits,
                "block_cache_misses": told.database.cache_misses,
            });
        }
        report
    }
}

fn live_lines(rates: &Rates<'_>) -> Vec<String> {
    let now = rates.now;
    let per_second = |name: &str| number(rates.rate(name));
    let bytes_per_second = |name: &str| text::bytes(rates.rate(name) as u64);
    let held_up = rates.growth("rocksdb.stall.micros") as f64 / MICROS / rates.seconds;
    let pace = match (now.figure("is_write_stopped"), now.figure("delayed_write_rate")) {
        (1.., _) => "stopped".to_string(),
        (0, 0) => "not delayed".to_string(),
        (0, rate) => format!("delayed to {}/s", text::bytes(rate)),
    };
    let mut lines = vec![
        format!(
            "write    {} keys/s in {} batches/s, {}/s; WAL {}/s, {} syncs/s",
            per_second("rocksdb.number.keys.written"),
            per_second("rocksdb.write.self"),
            bytes_per_second("rocksdb.bytes.written"),
            bytes_per_second("rocksdb.wal.bytes"),
            per_second("rocksdb.wal.synced"),
        ),
        format!(
            "read     {} keys/s, {}/s; {} seeks/s",
            per_second("rocksdb.number.keys.read"),
            bytes_per_second("rocksdb.bytes.read"),
            per_second("rocksdb.number.db.seek"),
        ),
        format!("writers  {pace}; {held_up:.2} held up on average"),
        format!(
            "memory   memtables {}, {} immutable; WALs {}",
            text::bytes(now.figure("memtable_bytes")),
            now.figure("immutable_memtables"),
            text::bytes(now.figure("wal_bytes")),
        ),
        format!(
            "jobs     {} flushing, {} compacting; flushed {}/s, compacted {}/s in, {}/s out",
            now.figure("running_flushes"),
            now.figure("running_compactions"),
            bytes_per_second("rocksdb.flush.write.bytes"),
            bytes_per_second("rocksdb.compact.read.bytes"),
            bytes_per_second("rocksdb.compact.write.bytes"),
        ),
        format!(
            "cache    {} of {}, {}",
            text::bytes(now.figure("block_cache_usage")),
            text::bytes(now.figure("block_cache_capacity")),
            rates.hit_percent().map_or("not asked".to_string(), |hits| format!("{hits:.1}% hits")),
        ),
        format!(
            "state    {}, {}, {}",
            counted(now.figure("families"), "column family"),
            counted(now.figure("snapshots"), "snapshot"),
            counted(now.figure("background_errors"), "background error"),
        ),
    ];
    lines.extend(tree_lines(now));
    lines
}

/// The levels, of all families together, and the blob files.
fn tree_lines(now: &Figures) -> Vec<String> {
    let mut lines = Vec::new();
    let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
    for level in &now.levels {
        let sum = levels.entry(level.level).or_default();
        sum.tables += level.tables;
        sum.bytes = sum.bytes.saturating_add(level.bytes);
    }
    for (level, Level { tables, bytes }) in levels {
        lines.push(format!("level {level}  {}, {}", counted(tables, "table"), text::bytes(bytes)));
    }
    if now.figure("blob_files") > 0 {
        lines.push(format!(
            "blobs    {}, {}",
            counted(now.figure("blob_files"), "file"),
            text::bytes(now.figure("blob_bytes")),
        ));
    }
    lines
}

/// A number of things a second.
fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A time of microseconds as hours, minutes and seconds.
fn duration(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes}:{:02} min", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02} h", seconds % 60),
    }
}
