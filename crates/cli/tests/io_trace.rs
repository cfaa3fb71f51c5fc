//! `flagstone io-trace` and the traces that `flagstone bench` records.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{failed, printed, run};

#[test]
fn the_files_of_a_benchmark_are_traced_and_printed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let said = printed(&format!(
        "bench --benchmarks=fillseq,overwrite,flush,readrandom --db={} --num=500 --reads=50 --sync=1 \
         --io_trace_file={}",
        path("db"),
        path("trace")
    ));
    let count = said.split_once("\nI/O trace: ").unwrap().1.split(' ').next().unwrap();
    let lines = printed(&format!("io-trace {}", path("trace")));
    assert!(lines.starts_with("Start Time: ") && lines.contains("\nRocksDB Minor Version: "));
    let calls: Vec<&str> =
        lines.lines().filter(|line| line.starts_with("Access Time : ")).collect();
    assert_eq!(calls.len().to_string(), count);
    let has = |file: &str, operation: &str, end: &str| {
        let words = [file, &format!("File Operation: {operation} "), "IO Status: OK", end];
        calls.iter().any(|call| words.iter().all(|word| call.contains(word)))
    };
    assert!(has(".log", "Sync", "OK"), "{lines}");
    assert!(has(".sst", "NewWritableFile", "OK"), "{lines}");
    assert!(has(".sst", "PositionedAppend", ", Offset: 0"), "{lines}");
    assert!(has("MANIFEST-", "PositionedAppend", ", Length: "), "{lines}");
    assert!(has(".sst", "Read", ", Offset: "), "{lines}");
    let first: serde_json::Value = {
        let lines = printed(&format!("io-trace {} --json", path("trace")));
        serde_json::from_str(lines.lines().next().unwrap()).unwrap()
    };
    assert!(first["time_nanos"].as_u64().unwrap() > 1_000_000_000_000_000_000, "{first}");
    let none = printed(&format!("io-trace {} --failed", path("trace")));
    assert_eq!(none.lines().filter(|line| line.contains("IO Status: OK")).count(), 0);
}

/// What was recorded before a process ended early is printed.
#[test]
fn a_trace_that_is_cut_off_is_printed_up_to_there() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    printed(&format!(
        "bench --benchmarks=fillseq,overwrite --db={} --num=100 --io_trace_file={}",
        path("db").display(),
        path("trace").display()
    ));
    let whole = std::fs::read(path("trace")).unwrap();
    std::fs::write(path("cut"), &whole[..whole.len() - 1]).unwrap();
    let output = run(&format!("io-trace {}", path("cut").display()));
    assert_eq!(output.status.code(), Some(1));
    let lines = printed(&format!("io-trace {}", path("trace").display()));
    let printed_lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed_lines.lines().count() + 1, lines.lines().count());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the trace ends within a record"), "{said}");
}

#[test]
fn what_is_no_trace_of_io_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    printed(&format!(
        "bench --benchmarks=fillseq,overwrite --db={} --num=10 --trace_file={}",
        path("db").display(),
        path("operations").display()
    ));
    std::fs::write(path("empty"), "").unwrap();
    for (name, expected) in [
        ("operations", "the trace does not begin as one of I/O"),
        ("empty", "the trace is empty"),
        ("none", "none"),
    ] {
        let (code, said) = failed(&format!("io-trace {}", path(name).display()));
        assert!(code == 1 && said.contains(expected) && said.contains(name), "{said}");
    }
}
