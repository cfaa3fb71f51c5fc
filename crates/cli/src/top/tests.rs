use std::collections::BTreeMap;
use std::path::Path;

use flagstone::db::Facts;
use flagstone::figures::{Figures, LevelFigures};

use super::report::Report;
use super::sample::{Files, Sample, Source};

fn figures(seconds: u64, writes: u64) -> Figures {
    let level = |family: &str, level, tables, bytes| LevelFigures {
        family: family.to_string(),
        level,
        tables,
        bytes,
    };
    let pair = |(name, value): (&str, u64)| (name.to_string(), value);
    Figures {
        pid: 4711,
        process_start: 1,
        opened_at_us: 1_000_000_000,
        updated_at_us: 1_000_000_000 + seconds * 1_000_000,
        counters: [
            ("rocksdb.number.keys.written", writes),
            ("rocksdb.bytes.written", writes * 1024),
            ("rocksdb.stall.micros", seconds * 500_000),
        ]
        .map(pair)
        .into(),
        figures: [
            ("families", 2),
            ("memtable_bytes", 3 << 20),
            ("block_cache_hits", writes * 3),
            ("block_cache_misses", writes),
            ("delayed_write_rate", 1 << 20),
        ]
        .map(pair)
        .into(),
        levels: vec![level("default", 0, 1, 1024), level("other", 0, 2, 1024)],
    }
}

fn sample(source: Source) -> Sample {
    let files = BTreeMap::from([("wal", Files { count: 1, bytes: 2048 })]);
    Sample { source, now_us: 1_000_000_000 + 61_000_000, files, told: None }
}

#[test]
fn rates_are_between_two_updates_or_since_the_opening() {
    let first = sample(Source::Live(figures(50, 1000)));
    let second = sample(Source::Live(figures(60, 3000)));
    assert!(first.is_older_than(&second) && !second.is_older_than(&first));
    let path = Path::new("/data/photos");
    let lines = Report::new(path, None, &second).lines();
    assert_eq!(lines[0], "/data/photos: process 4711, open 1:00 min, updated 1 s ago");
    assert_eq!(lines[1], "write    50 keys/s in 0.0 batches/s, 50.0 KiB/s; WAL 0 B/s, 0.0 syncs/s");
    let report = Report::new(path, Some(&first), &second);
    let lines = report.lines();
    assert!(lines[1].starts_with("write    200 keys/s"), "{}", lines[1]);
    assert_eq!(lines[3], "writers  delayed to 1.0 MiB/s; 0.50 held up on average");
    assert_eq!(lines[6], "cache    0 B of 0 B, 75.0% hits");
    assert_eq!(lines[7], "state    2 column families, 0 snapshots, 0 background errors");
    assert_eq!(lines[8], "level 0  3 tables, 2.0 KiB");
    assert_eq!(lines[9], "files    1 wal (2.0 KiB)");
    let json = report.json();
    assert_eq!(json["state"], "live");
    assert_eq!(json["per_second"]["rocksdb.number.keys.written"], 200.0);
    assert_eq!(json["levels"][1]["family"], "other");
    assert_eq!(json["files"]["wal"]["bytes"], 2048);
    // Figures of different openings are not subtracted from each other.
    let mut other = figures(50, 1000);
    other.opened_at_us += 1;
    let other = sample(Source::Live(other));
    assert!(!other.is_older_than(&second));
    let lines = Report::new(path, Some(&other), &second).lines();
    assert!(lines[1].starts_with("write    50 keys/s"), "{}", lines[1]);
}

#[test]
fn without_a_process_the_files_and_the_log_are_shown() {
    let stale = sample(Source::Stale(figures(60, 1000)));
    let path = Path::new("/data/photos");
    let report = Report::new(path, None, &stale);
    assert_eq!(
        report.lines()[0],
        "/data/photos: process 4711 has ended without closing it; its last figures are 1 s old"
    );
    assert_eq!(report.json()["state"], "stale");
    assert!(report.json().get("per_second").is_none());

    let mut none = sample(Source::None(None));
    let mut facts = Facts::default();
    let log = "Uptime(secs): 1200.1 total, 600.0 interval\n\
               Cumulative writes: 300K writes, 300K keys, 300 commit groups\n\
               Cumulative stall: 00:10:1.500 H:M:S, 50.1 percent\n \
               rocksdb.block.cache.miss COUNT : 100\n rocksdb.block.cache.hit COUNT : 300\n";
    facts.add_statistics(log).unwrap();
    none.told = Some(facts);
    let report = Report::new(path, None, &none);
    let lines = report.lines();
    assert_eq!(
        lines[0],
        "/data/photos: no process says what it does (no FIGURES; none if encrypted)"
    );
    assert_eq!(lines[1], "LOG      open 20:00 min, 300000 keys written, writers stalled 10:01 min");
    assert_eq!(lines[2], "cache    75.0% hits");
    assert_eq!(report.json()["log"]["keys_written"], 300_000);
    let bad = sample(Source::None(Some("it is damaged".to_string())));
    assert!(Report::new(path, None, &bad).lines()[0].ends_with("cannot be read: it is damaged"));
}
