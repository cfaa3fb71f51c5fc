//! Counters and properties in the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use crate::db::DbInner;
use crate::db::family::ColumnFamily;
use crate::db::properties::numbers::int_property;
use crate::db::statistics::Ticker;

/// Properties of the whole database.
const OF_DATABASE: &[(&str, &str)] = &[
    ("rocksdb.background-errors", "Flushes and compactions that failed."),
    ("rocksdb.num-snapshots", "Snapshots that are held."),
    ("rocksdb.oldest-snapshot-time", "When the oldest snapshot was taken, in seconds since 1970."),
    ("rocksdb.num-running-flushes", "Flushes that run."),
    ("rocksdb.num-running-compactions", "Compactions that run."),
    (
        "rocksdb.actual-delayed-write-rate",
        "Bytes a second that writers are limited to; 0 for no limit.",
    ),
    ("rocksdb.is-write-stopped", "Whether writers are stopped."),
    ("rocksdb.block-cache-capacity", "Capacity of the block cache in bytes."),
    ("rocksdb.block-cache-usage", "Bytes in the block cache."),
    ("rocksdb.block-cache-pinned-usage", "Bytes in the block cache that are in use."),
];

/// Properties of a family.
const OF_FAMILY: &[(&str, &str)] = &[
    ("rocksdb.num-immutable-mem-table", "Memtables that wait for a flush."),
    ("rocksdb.cur-size-all-mem-tables", "Bytes of memtables that are not flushed."),
    ("rocksdb.size-all-mem-tables", "Bytes of memtables, those kept for readers included."),
    ("rocksdb.estimate-num-keys", "Estimated number of keys."),
    (
        "rocksdb.estimate-table-readers-mem",
        "Bytes of indexes and filters outside of the block cache.",
    ),
    ("rocksdb.num-live-versions", "Versions that are in use."),
    ("rocksdb.live-sst-files-size", "Bytes of the tables of the newest version."),
    ("rocksdb.total-sst-files-size", "Bytes of the tables of all versions."),
    ("rocksdb.estimate-live-data-size", "Estimated bytes of live data."),
    (
        "rocksdb.estimate-pending-compaction-bytes",
        "Estimated bytes that compactions have to rewrite.",
    ),
    ("rocksdb.num-blob-files", "Blob files of the newest version."),
    ("rocksdb.live-blob-file-size", "Bytes of the blob files of the newest version."),
    ("rocksdb.live-blob-file-garbage-size", "Bytes of garbage in these blob files."),
];

pub(super) fn text(db: &DbInner, families: &[ColumnFamily]) -> String {
    let mut text = String::new();
    for ticker in Ticker::ALL {
        let name = format!("{}_total", metric(ticker.name()));
        head(&mut text, &name, "counter", ticker.help());
        let _ = writeln!(text, "{name} {}", db.context.statistics.get(*ticker));
    }
    let Some(first) = families.first() else { return text };
    for (property, help) in OF_DATABASE {
        if let Some(value) = int_property(db, &first.0, property) {
            let name = metric(property);
            head(&mut text, &name, "gauge", help);
            let _ = writeln!(text, "{name} {value}");
        }
    }
    for (property, help) in OF_FAMILY {
        let name = metric(property);
        head(&mut text, &name, "gauge", help);
        for family in families {
            if let Some(value) = int_property(db, &family.0, property) {
                let _ = writeln!(text, "{name}{{cf=\"{}\"}} {value}", escaped(family.name()));
            }
        }
    }
    levels(&mut text, families);
    text
}

fn levels(text: &mut String, families: &[ColumnFamily]) {
    let name = "rocksdb_num_files_at_level";
    head(text, name, "gauge", "Tables in a level.");
    for family in families {
        let version = family.0.current.load().version.clone();
        for (level, files) in version.levels.iter().enumerate() {
            let (family, count) = (escaped(family.name()), files.len());
            let _ = writeln!(text, "{name}{{cf=\"{family}\",level=\"{level}\"}} {count}");
        }
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', " ");
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// RocksDB's name as a metric's.
fn metric(name: &str) -> String {
    name.replace(['.', '-'], "_")
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
