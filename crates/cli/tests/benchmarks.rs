//! `flagstone bench` as a user runs it.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{contents, failed, printed, run};
use flagstone::env::{Env, IoMode};

/// From live traffic to what another cache would have done with it: one that holds everything
/// misses each block once.
#[test]
fn a_benchmark_s_block_requests_are_recorded_and_replayed() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    for name in ["blocks.csv", "blocks.oracleGeneral", "blocks.rocksdb"] {
        let trace = scratch.path().join(name);
        let said = printed(&format!(
            "bench --benchmarks=fillseq,flush,readrandom --db={} --num=5000 --reads=2000 --compression_type=none \
             --cache_size=64K --block_cache_trace_file={}",
            db.display(),
            trace.display()
        ));
        let requests: u64 = said
            .split_once("block cache trace: ")
            .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no summary: {said}"));
        assert!(requests >= 2000, "{said}");
        let replayed = printed(&format!(
            "cache-sim {} --policies lru --sizes 64K,100% --json",
            trace.display()
        ));
        let told: serde_json::Value = serde_json::from_str(&replayed).unwrap();
        assert_eq!(told["requests"], requests);
        let hits = |at: usize| told["policies"][0]["points"][at]["hits"].as_u64().unwrap();
        assert_eq!(hits(1), requests - told["objects"].as_u64().unwrap());
        assert!(hits(0) < hits(1) && told["footprint"].as_u64().unwrap() > 64 << 10, "{replayed}");
    }
    // Known by its first bytes, also compressed; and refused where it is cut off.
    let trace = std::fs::read(scratch.path().join("blocks.rocksdb")).unwrap();
    let renamed = scratch.path().join("renamed.zst");
    std::fs::write(&renamed, zstd::encode_all(&trace[..], 1).unwrap()).unwrap();
    printed(&format!("cache-sim {} --policies lru --sizes 64K", renamed.display()));
    std::fs::write(&renamed, &trace[..trace.len() - 1]).unwrap();
    let (code, said) = failed(&format!("cache-sim {}", renamed.display()));
    assert!(code == 1 && said.contains("the trace ends within a record"), "{said}");
    let trace = scratch.path().join("never");
    let line = format!(
        "bench --benchmarks=readrandom,fillseq --block_cache_trace_file={}",
        trace.display()
    );
    let (code, said) = failed(&line);
    assert!(code == 2 && said.contains("come before"), "{said}");
}

/// The curves took the place of the trace; where they could not be written, that was found out when
/// all was replayed, and nothing told of what had come of it.
#[test]
fn curves_are_drawn_into_a_file_of_their_own() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("trace.csv");
    let lines = b"time,key,size\n1,a,10\n2,b,10\n3,a,10\n";
    Env::os().fs.create_writable(&trace, IoMode::Buffered).unwrap().write_at(0, lines).unwrap();
    let trace = trace.display();
    let (code, said) =
        failed(&format!("cache-sim {trace} --plot {}/./trace.csv", scratch.path().display()));
    assert!(code == 2 && said.contains("would replace the trace"), "{code} {said}");
    assert_eq!(contents(scratch.path())["trace.csv"], lines);
    let output =
        run(&format!("cache-sim {trace} --plot {}/none/curves.svg", scratch.path().display()));
    assert!(output.status.code() == Some(1) && output.stdout.is_empty());
    printed(&format!("cache-sim {trace} --plot {}/curves.svg", scratch.path().display()));
    assert!(contents(scratch.path())["curves.svg"].starts_with(b"<svg"));
    // Nobody read what was printed before, and the file was left empty.
    let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(["cache-sim", &trace.to_string(), "--plot"])
        .arg(scratch.path().join("curves.svg"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(contents(scratch.path())["curves.svg"].starts_with(b"<svg"));
    if cfg!(target_os = "linux") {
        // The disk was full by the time they were written.
        let output = run(&format!("cache-sim {trace} --plot /dev/full"));
        assert!(output.status.code() == Some(1) && !output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn benchmarks_print_db_bench_s_lines() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    let said = printed(&format!(
        "bench --benchmarks=fillseq,readrandom,readseq,readreverse,multireadrandom,seekrandom,overwrite,\
         readwhilewriting,deleterandom,queue,flush,compact,waitforcompaction,stats \
         --db={} --num=500 --threads=2 --histogram --batch_size=4 --seek_nexts=3 --compression_type=lz4",
        db.display()
    ));
    assert!(said.contains("fillseq      : "), "{said}");
    assert!(said.contains("readrandom   : ") && said.contains("(500 of 500 found)"), "{said}");
    assert!(
        said.contains(" micros/op ")
            && said.contains(" ops/sec ")
            && said.contains("Percentiles: P50"),
        "{said}"
    );
    assert!(said.contains("(seek us from beginning to end: p50 "), "{said}");
    let json = printed(&format!(
        "bench --json --use_existing_db=1 --benchmarks=readseq --db={} --num=5",
        db.display()
    ));
    let fact: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(fact["benchmark"], "readseq");
    assert!(fact["operations"].as_u64().unwrap() <= 5);
}

/// Only the writer of readwhilewriting kept to the limit, where db_bench has all that fill a
/// database keep to it; then only these did.
#[test]
fn writers_keep_to_a_rate_together() {
    let scratch = tempfile::tempdir().unwrap();
    let bench = format!("bench --json --db={} --threads=2", scratch.path().join("db").display());
    let json = printed(&format!(
        "{bench} --num=1000 --benchmarks=fillseq --benchmark_write_rate_limit=1000000"
    ));
    let fact: serde_json::Value = serde_json::from_str(&json).unwrap();
    // The last write of each begins when those before it are paid for.
    let bytes = 999 * 2 * 116;
    assert!(fact["seconds"].as_f64().unwrap() >= f64::from(bytes) / 1e6, "{json}");
    let few = "--num=100 --max_num_range_tombstones=100 --benchmark_write_rate_limit=100000";
    for (benchmark, bytes) in [
        ("deleterandom", 99 * 2 * 16),
        ("deleterange", 99 * 32),
        ("updaterandom", 99 * 2 * 116),
        // One thread appends. What it takes from the other end is deleted: all but the first ten,
        // and the last.
        ("queue", 99 * 116 + 89 * 16),
    ] {
        let json = printed(&format!("{bench} {few} --benchmarks={benchmark}"));
        let fact: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(fact["seconds"].as_f64().unwrap() >= f64::from(bytes) / 1e5, "{json}");
    }
}

/// Its files were removed, LOCK among them, and a second database made beside the writer of the
/// first.
#[test]
fn a_benchmark_removes_no_database_that_is_open() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let mut options = flagstone::options::Options::default();
    options.create_if_missing = true;
    let db = flagstone::db::Db::open(&path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    let names =
        || Env::os().fs.list(&path).unwrap().into_iter().collect::<std::collections::BTreeSet<_>>();
    let before = names();
    let (code, message) =
        failed(&format!("bench --benchmarks=readrandom --num=10 --db={}", path.display()));
    assert!(code == 1 && message.contains("in use"), "{code} {message}");
    assert_eq!(names(), before);
    db.close().unwrap();
    drop(db);
    assert_eq!(printed(&format!("get --db {} key", path.display())), "value");
}

/// It began with the removal of whatever database was there, even where it was only to read.
#[test]
fn a_benchmark_removes_no_database_that_is_not_one_s() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} key value"));
    for benchmark in ["readrandom", "fillseq"] {
        let (code, message) = failed(&format!("bench --benchmarks={benchmark} --num=10 --db={db}"));
        assert!(code == 1 && message.contains("no benchmark's"), "{code} {message}");
        assert_eq!(printed(&format!("get --db {db} key")), "value");
    }
    printed(&format!("bench --benchmarks=readrandom --num=10 --use_existing_db --db={db}"));
    assert_eq!(printed(&format!("get --db {db} key")), "value");
    Env::os().fs.remove(&scratch.path().join("db/CURRENT")).unwrap();
    let (code, message) = failed(&format!("bench --benchmarks=fillseq --num=10 --db={db}"));
    assert!(code == 1 && message.contains("no benchmark's"), "{code} {message}");
}

#[test]
fn a_benchmark_removes_tables_in_other_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let line = format!(
        "bench --benchmarks=fillseq,flush --num=100 --db={} --db_paths={{path={};target_size=1g}}:{}",
        at("db"),
        at("fast"),
        at("slow")
    );
    let tables = || {
        contents(Path::new(&at("fast"))).into_keys().filter(|file| file.ends_with(".sst")).count()
    };
    for _ in 0..2 {
        printed(&line);
        assert_eq!(tables(), 1);
    }
}

/// The second found the WAL of the first, and called it data without a database.
#[test]
fn a_benchmark_removes_wals_in_another_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let line = format!(
        "bench --benchmarks=fillseq,flush,fillrandom --num=100 --db={} --wal_dir={} --WAL_ttl_seconds=1000",
        at("db"),
        at("wals")
    );
    for _ in 0..2 {
        printed(&line);
    }
    let wals = |name: &str| {
        contents(Path::new(&at(name))).into_keys().filter(|file| file.ends_with(".log")).count()
    };
    assert_eq!((wals("wals"), wals("wals/archive")), (1, 0));
    // Those of a database that lives there are not the benchmark's.
    printed(&format!("put --db {} key value", at("other")));
    let (code, message) = failed(&line.replace(&at("wals"), &at("other")));
    assert_eq!(code, 1, "{message}");
    assert_eq!(printed(&format!("get --db {} key", at("other"))), "value");
}

/// They were removed before the database was opened, which would have refused them.
#[test]
fn a_benchmark_removes_nothing_in_directories_of_another_database() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let mut options = flagstone::options::Options::default();
    options.create_if_missing = true;
    options.set_all(&format!("wal_dir={};db_paths={}", at("wals"), at("tables"))).unwrap();
    let db = flagstone::db::Db::open(at("other"), &options).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush_all().unwrap();
    db.put("logged", "2").unwrap();
    db.close().unwrap();
    drop(db);
    for argument in ["--wal_dir=wals", "--db_paths=tables", "--db=wals", "--db=tables"] {
        let (name, directory) = argument.split_once('=').unwrap();
        let line = format!(
            "bench --benchmarks=fillseq --num=10 --db={} {name}={}",
            at("db"),
            at(directory)
        );
        let line = line.replace(&format!("--db={} --db=", at("db")), "--db=");
        let (code, message) = failed(&line);
        assert!(code == 1 && message.contains(&at("other")), "{argument} {code} {message}");
    }
    let db = flagstone::db::Db::open(at("other"), &options).unwrap();
    assert_eq!(db.get("flushed").unwrap().unwrap(), "1");
    assert_eq!(db.get("logged").unwrap().unwrap(), "2");
}

/// The first wrote empty batches for ever, the second divided by zero.
#[test]
fn a_benchmark_of_nothing_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let bench = format!(
        "bench --db={} --num=0 --writes=1 --benchmarks",
        scratch.path().join("db").display()
    );
    let (code, message) = failed(&format!("{bench}=readseq --batch_size=0"));
    assert!(code == 2 && message.contains("batch_size"), "{code} {message}");
    printed(&format!("{bench}=filluniquerandom"));
}

/// Sums and products overflowed, a batch grew until memory was used up, and a queue whose keys
/// repeat was said to be corrupt.
#[test]
fn numbers_that_make_no_sense_are_wrong_usage() {
    let scratch = tempfile::tempdir().unwrap();
    let bench = format!("bench --num=300 --db={}", scratch.path().join("db").display());
    for flag in ["duration", "threads", "key_size", "value_size", "batch_size"] {
        let (code, message) =
            failed(&format!("{bench} --benchmarks=fillseq --{flag}=18446744073709551615"));
        assert!(code == 2 && message.contains(flag), "{code} {message}");
    }
    // A list of all of them was made, of 128 EiB.
    for (name, flag) in [("filluniquerandom", "num"), ("deleterange", "max_num_range_tombstones")] {
        let (code, message) =
            failed(&format!("{bench} --benchmarks={name} --{flag}=18446744073709551615"));
        assert!(code == 2 && message.contains(flag), "{code} {message}");
    }
    let (code, message) = failed(&format!("{bench} --benchmarks=fillseq,queue --key_size=1"));
    assert!(code == 2 && message.contains("repeat"), "{code} {message}");
    printed(&format!("{bench} --benchmarks=queue --key_size=2 --seed=18446744073709551615"));
    let said = printed(&format!(
        "{bench} --benchmarks=stats --num=18446744073709551615 --compression_ratio=1e30"
    ));
    assert!(said.contains("RawSize"), "{said}");
}

/// A flag that db_bench takes was refused, whether it asks for anything or not.
#[test]
fn flags_that_change_nothing_are_named_and_others_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let (db, report) = (scratch.path().join("db"), scratch.path().join("report.csv"));
    let line = format!(
        "bench --benchmarks=fillseq,updaterandom,seekrandomwhilewriting,multireadrandom,memstats --db={} --num=100 \
         --batch_size=5 --multiread_stride=12 --undefok=new --new=1 --stats_interval_seconds=1 \
         --report_interval_seconds=1000 --report_file={}",
        db.display(),
        report.display()
    );
    let output = common::run(&line);
    let (said, warned) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{warned}");
    assert!(warned.ends_with("without effect here: --new, --stats_interval_seconds\n"), "{warned}");
    assert!(
        said.contains("updates:100 found:100") && said.contains("rocksdb.size-all-mem-tables: "),
        "{said}"
    );
    assert!(said.contains("(100 of 100 found)"), "{said}");
    let report = contents(scratch.path()).remove("report.csv").unwrap();
    assert_eq!(report, b"secs_elapsed,interval_qps\n");
    let (code, message) = failed(&format!("bench --db={} --use_tailing_iterator", db.display()));
    assert!(
        code == 2 && message.contains("--use_tailing_iterator: of what db_bench does"),
        "{message}"
    );
    // What was asked for was left out of JSON.
    let json = printed(&format!(
        "bench --json --use_existing_db=1 --benchmarks=levelstats,memstats --db={}",
        db.display()
    ));
    let facts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(facts.len() == 7 && facts[0]["property"] == "rocksdb.levelstats", "{json}");
}

/// Counters that were asked for, and how much of a trace there is, were left out of JSON; those of
/// the block cache were told nowhere, by which one sees how many reads of files a lookup takes.
#[test]
fn what_is_told_at_the_end_is_json_too() {
    let scratch = tempfile::tempdir().unwrap();
    let json = printed(&format!(
        "bench --json --statistics --db={0} --num=100 --benchmarks=fillseq,flush,readrandom --block_cache_trace_file={0}.csv",
        scratch.path().join("db").display()
    ));
    let facts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(facts.len(), 5, "{json}");
    let statistics = &facts[3]["statistics"];
    assert_eq!(statistics["rocksdb.number.keys.written"], 100, "{json}");
    let count = |name: &str| statistics[format!("rocksdb.block.cache.{name}")].as_u64().unwrap();
    assert_eq!((count("hit") + count("miss"), count("miss")), (100, count("add")), "{json}");
    assert!(facts[4]["block_cache_trace"]["requests"].is_u64(), "{json}");
}

/// "The database is not open", and exit code 1, although all was done that was to be done.
#[test]
fn statistics_of_benchmarks_that_were_skipped_are_none() {
    let scratch = tempfile::tempdir().unwrap();
    let line = format!(
        "--db={} --use_existing_db --statistics --benchmarks=fillseq",
        scratch.path().display()
    );
    assert!(printed(&format!("bench {line}")).contains("skipped"));
    let json: serde_json::Value =
        serde_json::from_str(&printed(&format!("bench --json {line}"))).unwrap();
    assert_eq!(json, serde_json::json!({ "benchmark": "fillseq", "skipped": true }));
}
