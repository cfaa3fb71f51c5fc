//! Properties: what dashboards and tools that know RocksDB ask for, by its names and in its shape.

use std::collections::BTreeMap;
use std::sync::Arc;

use flagstone::batch::WriteBatch;
use flagstone::db::{Db, PROPERTY_NAMES, StatsSnapshot, Ticker};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{CompactRangeOptions, Options, ReadOptions, WriteOptions};
use testkit::{HandClock, steps};

/// All properties of RocksDB 11.8 (`InternalStats::ppt_name_to_info`), those that take a number
/// with one.
const OF_ROCKSDB: &[&str] = &[
    "rocksdb.num-files-at-level0",
    "rocksdb.compression-ratio-at-level0",
    "rocksdb.stats",
    "rocksdb.sstables",
    "rocksdb.cfstats",
    "rocksdb.cfstats-no-file-histogram",
    "rocksdb.cf-file-histogram",
    "rocksdb.cf-write-stall-stats",
    "rocksdb.dbstats",
    "rocksdb.db-write-stall-stats",
    "rocksdb.levelstats",
    "rocksdb.block-cache-entry-stats",
    "rocksdb.fast-block-cache-entry-stats",
    "rocksdb.num-immutable-mem-table",
    "rocksdb.num-immutable-mem-table-flushed",
    "rocksdb.mem-table-flush-pending",
    "rocksdb.compaction-pending",
    "rocksdb.background-errors",
    "rocksdb.cur-size-active-mem-table",
    "rocksdb.cur-size-all-mem-tables",
    "rocksdb.size-all-mem-tables",
    "rocksdb.num-entries-active-mem-table",
    "rocksdb.num-entries-imm-mem-tables",
    "rocksdb.num-deletes-active-mem-table",
    "rocksdb.num-deletes-imm-mem-tables",
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-table-readers-mem",
    "rocksdb.is-file-deletions-enabled",
    "rocksdb.num-snapshots",
    "rocksdb.oldest-snapshot-time",
    "rocksdb.oldest-snapshot-sequence",
    "rocksdb.num-live-versions",
    "rocksdb.current-super-version-number",
    "rocksdb.estimate-live-data-size",
    "rocksdb.min-log-number-to-keep",
    "rocksdb.min-obsolete-sst-number-to-keep",
    "rocksdb.base-level",
    "rocksdb.total-sst-files-size",
    "rocksdb.live-sst-files-size",
    "rocksdb.obsolete-sst-files-size",
    "rocksdb.live-sst-files-size-at-temperature0",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.aggregated-table-properties",
    "rocksdb.aggregated-table-properties-at-level0",
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-compaction-sorted-runs",
    "rocksdb.compaction-abort-count",
    "rocksdb.num-running-flushes",
    "rocksdb.actual-delayed-write-rate",
    "rocksdb.is-write-stopped",
    "rocksdb.estimate-oldest-key-time",
    "rocksdb.block-cache-capacity",
    "rocksdb.block-cache-usage",
    "rocksdb.block-cache-pinned-usage",
    "rocksdb.options-statistics",
    "rocksdb.num-blob-files",
    "rocksdb.blob-stats",
    "rocksdb.total-blob-file-size",
    "rocksdb.live-blob-file-size",
    "rocksdb.live-blob-file-garbage-size",
    "rocksdb.blob-cache-capacity",
    "rocksdb.blob-cache-usage",
    "rocksdb.blob-cache-pinned-usage",
];

/// What is not answered, as docs/rocksdb-differences.md says.
const UNANSWERED: &[&str] = &[
    "rocksdb.cf-file-histogram",
    "rocksdb.block-cache-entry-stats",
    "rocksdb.fast-block-cache-entry-stats",
    "rocksdb.min-obsolete-sst-number-to-keep",
];

fn in_memory(settings: &[(&str, &str)]) -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    settings.iter().for_each(|(name, value)| options.set(name, value).expect("an option"));
    options
}

fn open(settings: &[(&str, &str)]) -> Db {
    Db::open("/db", &in_memory(settings)).expect("a database")
}

fn property(db: &Db, name: &str) -> String {
    db.property(db.default_column_family(), name)
        .unwrap_or_else(|| panic!("{name} is not answered"))
}

fn number(db: &Db, name: &str) -> u64 {
    db.int_property(db.default_column_family(), name)
        .unwrap_or_else(|| panic!("{name} is no number"))
}

fn batch_of(key: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, "value").expect("a small batch");
    batch
}

/// The line of a report that begins so.
fn line<'a>(report: &'a str, begin: &str) -> &'a str {
    let found = report.lines().find(|line| line.trim_start().starts_with(begin));
    found.unwrap_or_else(|| panic!("no line '{begin}' in\n{report}"))
}

#[test]
fn whatever_rocksdb_answers_is_answered() {
    let fifo = [("compaction_style", "kCompactionStyleFIFO"), ("cache_blobs", "true")];
    let db = open(&fifo);
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    for name in OF_ROCKSDB {
        let is_answered = db.property(db.default_column_family(), name).is_some();
        assert_eq!(is_answered, !UNANSWERED.contains(name), "{name}");
    }
    for name in PROPERTY_NAMES {
        assert!(db.property(db.default_column_family(), name).is_some(), "{name}");
    }
}

#[test]
fn names_with_nonsense_behind_them_are_unknown() {
    let db = open(&[("num_levels", "3")]);
    for name in [
        "rocksdb.num-files-at-level3",
        "rocksdb.num-files-at-level",
        "rocksdb.num-files-at-level-1",
        "rocksdb.num-files-at-level+1",
        "rocksdb.aggregated-table-properties-at-level3",
        "rocksdb.compression-ratio-at-level99999999999999999999999",
        "rocksdb.live-sst-files-size-at-temperature256",
        "rocksdb.live-sst-files-size-at-temperature",
        "rocksdb.stats0",
        "12",
        "",
    ] {
        assert_eq!(db.property(db.default_column_family(), name), None, "{name}");
    }
}

#[test]
fn the_report_of_a_family_tells_what_was_done_at_each_level() {
    let db = open(&[
        ("disable_auto_compactions", "true"),
        ("level_compaction_dynamic_level_bytes", "false"),
    ]);
    for value in ["one", "two"] {
        (0..100).for_each(|key| db.put(format!("key{key}"), value).unwrap());
        db.flush_all().unwrap();
    }
    let flushed = property(&db, "rocksdb.cfstats");
    let fields = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let head = "Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) Moved(GB) W-Amp \
                Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)";
    assert!(
        flushed.starts_with(&format!("\n** Compaction Stats [default] **\n{head}\n---")),
        "{flushed}"
    );
    let level0 = fields(line(&flushed, "L0"));
    assert_eq!(level0.len(), 23, "size and unit are two: {level0:?}");
    assert_eq!(
        (&*level0[1], &*level0[4], &*level0[12]),
        ("2/0", "0.5", "1.0"),
        "files, score, amplification"
    );
    assert_eq!((&*level0[17], &*level0[19]), ("2", "0"), "flushes, entries read");

    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let compacted = property(&db, "rocksdb.cfstats");
    let level1 = fields(line(&compacted, "L1"));
    assert_eq!((&*level1[1], &*level1[17]), ("1/0", "1"), "files and compactions");
    assert_eq!((&*level1[19], &*level1[20]), ("200", "100"), "entries read and dropped");
    assert_eq!(fields(line(&compacted, "Sum"))[17], "3");
    assert_eq!(fields(line(&compacted, "Low"))[17], "1");
    assert_eq!(fields(line(&compacted, "High"))[17], "2");
    assert_eq!(
        line(&compacted, "Write Stall"),
        line(&property(&db, "rocksdb.cf-write-stall-stats"), "Write")
    );
    assert!(
        line(&compacted, "Write Stall").ends_with("total-delays: 0, total-stops: 0"),
        "{compacted}"
    );
}

#[test]
fn the_report_of_the_database_tells_what_was_written_and_what_since_the_last() {
    let db = open(&[]);
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.put("b", "2").unwrap();
    db.write(batch).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.write_with(&unlogged, batch_of("c")).unwrap();
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    db.write_with(&synced, batch_of("d")).unwrap();
    let first = property(&db, "rocksdb.dbstats");
    assert!(first.starts_with("\n** DB Stats **\nUptime(secs): "), "{first}");
    for period in ["Cumulative", "Interval"] {
        let writes = line(&first, &format!("{period} writes"));
        let begin =
            "writes: 3 writes, 4 keys, 3 commit groups, 1.0 writes per commit group, ingest: 0.00";
        assert!(writes.contains(begin), "{writes}");
        let wal = line(&first, &format!("{period} WAL"));
        assert!(
            wal.contains("WAL: 2 writes, 1 syncs, 2.00 writes per sync, written: 0.00 GB"),
            "{wal}"
        );
        let stall = line(&first, &format!("{period} stall"));
        assert!(stall.ends_with("stall: 00:00:0.000 H:M:S, 0.0 percent"), "{stall}");
    }
    assert!(
        first.ends_with("Write Stall (count): write-buffer-manager-limit-stops: 0\n"),
        "{first}"
    );
    let second = property(&db, "rocksdb.dbstats");
    assert!(line(&second, "Cumulative writes").contains(" 3 writes, 4 keys"), "{second}");
    assert!(line(&second, "Interval writes").contains(" 0 writes, 0 keys"), "{second}");
    let all = property(&db, "rocksdb.stats");
    let parts =
        ["** Compaction Stats [default] **", "** DB Stats **", "rocksdb.write.wal COUNT : 2"];
    parts.iter().for_each(|part| assert!(all.contains(part), "{part} in {all}"));
}

#[test]
fn versions_are_counted_that_readers_keep() {
    let db = open(&[]);
    assert_eq!(number(&db, "rocksdb.num-live-versions"), 1);
    let before = number(&db, "rocksdb.current-super-version-number");
    db.put("key", "value").unwrap();
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    db.flush_all().unwrap();
    assert_eq!(
        number(&db, "rocksdb.num-live-versions"),
        2,
        "the iterator has the one before the flush"
    );
    assert!(number(&db, "rocksdb.current-super-version-number") > before);
    drop(iter);
    assert_eq!(number(&db, "rocksdb.num-live-versions"), 1);
}

#[test]
fn tables_are_summed_up() {
    let db = open(&[("disable_auto_compactions", "true"), ("compression", "kNoCompression")]);
    for begin in [0, 100] {
        (begin..begin + 100).for_each(|key| db.put(format!("{key:04}"), "value").unwrap());
        db.delete("0000").unwrap();
        db.flush_all().unwrap();
    }
    let sums = property(&db, "rocksdb.aggregated-table-properties");
    assert!(sums.starts_with("# data blocks=2; # entries=201; # deletions=2; "), "{sums}");
    assert!(
        sums.contains("; raw key size=2412; raw average key size=12.000000; raw value size=995; "),
        "{sums}"
    );
    assert_eq!(property(&db, "rocksdb.aggregated-table-properties-at-level0"), sums);
    let none = property(&db, "rocksdb.aggregated-table-properties-at-level1");
    assert!(none.starts_with("# data blocks=0; # entries=0; "), "{none}");
    assert_eq!(property(&db, "rocksdb.compression-ratio-at-level1"), "-1.000000");
    let ratio: f64 = property(&db, "rocksdb.compression-ratio-at-level0").parse().unwrap();
    assert!((0.2..1.5).contains(&ratio), "{ratio}");
    let live = number(&db, "rocksdb.live-sst-files-size");
    assert_eq!(property(&db, "rocksdb.live-sst-files-size-at-temperature0"), live.to_string());
    assert_eq!(property(&db, "rocksdb.live-sst-files-size-at-temperature12"), "0");
    assert_eq!(number(&db, "rocksdb.base-level"), 6, "that is where level 0 goes in an empty tree");
}

#[test]
fn the_numbers_of_all_families_are_added_up() {
    let options = in_memory(&[]);
    let db = Db::open("/db", &options).unwrap();
    let other = db.create_column_family("other", &options.cf).unwrap();
    db.put("key", "value").unwrap();
    db.put_cf(&other, "key", "value").unwrap();
    db.put_cf(&other, "another", "value").unwrap();
    assert_eq!(db.aggregated_int_property("rocksdb.num-entries-active-mem-table"), Some(3));
    let capacity = number(&db, "rocksdb.block-cache-capacity");
    assert_eq!(
        db.aggregated_int_property("rocksdb.block-cache-capacity"),
        Some(capacity),
        "they share it"
    );
    assert_eq!(db.aggregated_int_property("rocksdb.stats"), None, "it is no number");
}

fn map(db: &Db, name: &str) -> BTreeMap<String, String> {
    db.map_property(db.default_column_family(), name).unwrap_or_else(|| panic!("{name} is no map"))
}

/// Two tables in level 0, and their merger in the level below it.
fn compacted() -> Db {
    let db = open(&[("num_levels", "2"), ("disable_auto_compactions", "true")]);
    for value in ["one", "two"] {
        db.put("key", value).expect("a put");
        db.flush_all().expect("a flush");
    }
    let all = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &all).expect("a compaction");
    db.put("other", "value").expect("a put");
    db.flush_all().expect("a flush");
    db
}

#[test]
fn maps_have_the_keys_of_rocksdb() {
    let db = compacted();
    let family = map(&db, "rocksdb.cfstats");
    let figure = |level: &str, name: &str| {
        let key = format!("compaction.{level}.{name}");
        family[&key].parse::<f64>().unwrap_or_else(|_| panic!("{key} is no number"))
    };
    assert_eq!((figure("L0", "NumFiles"), figure("L1", "NumFiles")), (1.0, 1.0));
    assert_eq!(figure("Sum", "NumFiles"), 2.0);
    assert_eq!(figure("L0", "CompCount"), 3.0, "flushes");
    assert_eq!((figure("L1", "CompCount"), figure("L1", "KeyIn")), (1.0, 2.0));
    assert_eq!(figure("L1", "KeyDrop"), 1.0);
    assert!(figure("L1", "SizeBytes") > 0.0 && figure("L1", "WriteMBps") > 0.0);
    assert!(!family.contains_key("compaction.Int.NumFiles"), "only the text has that line");
    assert_eq!(family.keys().filter(|key| key.starts_with("compaction.L0.")).count(), 22);
    assert_eq!((&*family["total-stops"], &*family["memtable-limit-delays"]), ("0", "0"));
    assert_eq!(map(&db, "rocksdb.cf-write-stall-stats").len(), 11);

    let database = map(&db, "rocksdb.dbstats");
    assert_eq!(
        (&*database["db.user_keys_written"], &*database["db.user_writes_by_self"]),
        ("3", "3")
    );
    assert_eq!(database["db.user_writes_with_wal"], "3");
    assert!(database["db.uptime"].parse::<f64>().is_ok());
    assert_eq!(map(&db, "rocksdb.db-write-stall-stats")["write-buffer-manager-limit-stops"], "0");

    assert_eq!(map(&db, "rocksdb.aggregated-table-properties")["num_entries"], "2");
    assert_eq!(map(&db, "rocksdb.aggregated-table-properties-at-level1")["num_entries"], "1");
    for none in ["rocksdb.stats", "rocksdb.num-snapshots", "nonsense"] {
        assert!(db.map_property(db.default_column_family(), none).is_none(), "{none} is no map");
    }
    let too_deep = "rocksdb.aggregated-table-properties-at-level2";
    assert!(db.map_property(db.default_column_family(), too_deep).is_none());
}

#[test]
fn figures_are_counted_anew() {
    let db = compacted();
    let keys_written = db.statistics().get(Ticker::KeysWritten);
    db.reset_stats();
    let family = map(&db, "rocksdb.cfstats");
    assert_eq!(family["compaction.L0.CompCount"], "0.000000");
    assert_eq!(family["compaction.L0.NumFiles"], "1.000000", "what there is stays");
    assert!(line(&property(&db, "rocksdb.dbstats"), "Cumulative writes").contains(" 0 writes, "));
    db.put("key", "three").expect("a put");
    db.flush_all().expect("a flush");
    assert_eq!(map(&db, "rocksdb.dbstats")["db.user_keys_written"], "1");
    assert_eq!(map(&db, "rocksdb.cfstats")["compaction.L0.CompCount"], "1.000000");
    let report = property(&db, "rocksdb.dbstats");
    for period in ["Cumulative writes", "Interval writes"] {
        assert!(line(&report, period).contains(" 1 writes, 1 keys"), "{report}");
    }
    assert_eq!(db.statistics().get(Ticker::KeysWritten), keys_written + 1, "that counts on");
}

#[test]
fn tables_tell_their_properties() {
    let db = compacted();
    let family = db.default_column_family();
    let all = db.properties_of_all_tables(family).expect("properties");
    assert_eq!(all.len(), 2);
    for (path, properties) in &all {
        assert!(db.options().env.fs.metadata(path).is_ok(), "{}", path.display());
        assert_eq!(properties.num_entries, 1);
        assert_eq!(properties.session_identity, db.session_id());
        assert_eq!(properties.db_identity, db.identity());
    }
    let by_level = db.properties_of_tables_by_level(family).expect("properties");
    assert_eq!(by_level.iter().map(BTreeMap::len).collect::<Vec<_>>(), [1, 1]);
    let within = |begin: &str, end: &str| {
        let range = (begin.as_bytes(), end.as_bytes());
        let found = db.properties_of_tables_in_range(family, &[range, range]);
        found.expect("properties").into_keys().collect::<Vec<_>>()
    };
    assert_eq!(within("a", "z").len(), 2);
    assert_eq!(within("key", "key"), by_level[1].keys().cloned().collect::<Vec<_>>());
    assert_eq!(within("l", "other"), by_level[0].keys().cloned().collect::<Vec<_>>());
    assert!(within("l", "n").is_empty());

    let session = db.session_id().to_string();
    let options = Options { env: db.options().env.clone(), ..Options::default() };
    drop(db);
    let again = Db::open("/db", &options).expect("a database");
    assert_ne!(again.session_id(), session);
    let kept = again.properties_of_all_tables(again.default_column_family()).expect("properties");
    assert!(kept.values().all(|table| table.session_identity == session));
}

#[test]
fn the_history_tells_what_counters_have_grown_by() {
    let hands = Arc::new(HandClock::at(1_700_000_000));
    let world = steps::world(Arc::new(MemoryFileSystem::new()), 1);
    let mut options = in_memory(&[("stats_persist_period_sec", "60")]);
    options.env = Env { clock: hands.clone(), ..world };
    let db = Db::open("/db", &options).expect("a database");
    // So much of the work in the background that a period may end.
    let passes = |seconds| {
        hands.advance(seconds);
        while db.background_step().expect("a step") {}
    };
    let written = |from: u64, until: u64| -> Vec<(u64, u64)> {
        let entries = db.stats_history(1_700_000_000 + from..1_700_000_000 + until);
        let of = |entry: &StatsSnapshot| {
            (entry.unix_seconds - 1_700_000_000, entry.get(Ticker::KeysWritten))
        };
        entries.iter().map(of).collect()
    };
    let all = |db: &Db| db.stats_history(0..u64::MAX).len();
    db.put("one", "value").expect("a put");
    passes(59);
    assert_eq!(all(&db), 0, "the period is not over");
    passes(1);
    for key in ["two", "three"] {
        db.put(key, "value").expect("a put");
    }
    passes(70);
    passes(60);
    assert_eq!(written(0, 1000), [(60, 1), (130, 2), (190, 0)]);
    assert_eq!(written(60, 190), [(60, 1), (130, 2)], "the end is exclusive");
    assert!(written(131, 190).is_empty() && written(190, 60).is_empty());
    let last = db.stats_history(0..u64::MAX).pop().expect("an entry");
    assert!(last.iter().any(|(name, grown)| name == "rocksdb.number.keys.written" && grown == 0));

    // An entry takes some hundred bytes: of many only the latest stay.
    db.set_db_options(&[("stats_history_buffer_size", "1500")]).expect("options");
    passes(60);
    assert!((1..4).contains(&all(&db)), "{}", all(&db));
    assert_eq!(written(0, 1000).pop(), Some((250, 0)));
    db.set_db_options(&[("stats_persist_period_sec", "0")]).expect("options");
    let before = all(&db);
    passes(1000);
    assert_eq!(all(&db), before, "no more are made");
}

#[test]
fn a_monitoring_system_gets_counters_and_gauges() {
    let db = Db::open("/db", &in_memory(&[])).expect("a database");
    let odd = db.create_column_family("odd\"\\\n", &db.options().cf).expect("a family");
    db.put_cf(&odd, "key", "value").expect("a put");
    db.flush_all().expect("a flush");
    let text = db.prometheus_text();
    for line in [
        "# TYPE rocksdb_number_keys_written_total counter",
        "rocksdb_number_keys_written_total 1",
        "# HELP rocksdb_num_snapshots Snapshots that are held.",
        "rocksdb_num_snapshots 0",
        "rocksdb_estimate_num_keys{cf=\"default\"} 0",
        "rocksdb_estimate_num_keys{cf=\"odd\\\"\\\\\\n\"} 1",
        "rocksdb_num_files_at_level{cf=\"odd\\\"\\\\\\n\",level=\"0\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    // Each metric is declared once, and each sample follows its declaration.
    let mut declared = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(declared.insert(rest.split(' ').next().expect("a name")), "{line}");
        } else if !line.starts_with('#') {
            assert!(declared.contains(line.split(['{', ' ']).next().expect("a name")), "{line}");
        }
    }
}
