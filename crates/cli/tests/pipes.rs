//! Values, statistics and traces from a pipe that is named like a file, as `<(command)` of a shell
//! is.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{printed, run_with_input};

/// What a command prints whose file is a pipe.
fn fed(line: &str, input: &[u8]) -> String {
    let output = run_with_input(line, input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{line}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// "Illegal seek (os error 29)" was all that came of it.
#[test]
fn a_value_comes_from_a_pipe() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    // More than is read at once.
    let value = vec![b'v'; 3 << 20];
    for (key, ttl) in [("plain", ""), ("stamped", "--ttl")] {
        fed(&format!("put --db {db}-{key} {ttl} {key} --file /dev/stdin"), &value);
        let found = fed(&format!("get --db {db}-{key} {ttl} {key}"), b"");
        assert!(found.as_bytes() == value, "{} bytes", found.len());
    }
}

/// They were taken for empty.
#[test]
fn statistics_come_from_a_pipe() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} key value"));
    let report = "** DB Stats **\nUptime(secs): 100.0 total, 100.0 interval\n\
                  Cumulative stall: 00:00:30.000 H:M:S, 30.0 percent\n";
    let said = fed(&format!("doctor --db {db} --statistics /dev/stdin"), report.as_bytes());
    assert!(said.contains("30 of the 100 s"), "{said}");
}

/// Of one that was compressed as well.
#[test]
fn a_trace_comes_from_a_pipe() {
    let trace = b"time,key,size\n1,a,10\n2,b,10\n3,a,10\n";
    let compressed = zstd::encode_all(&trace[..], 1).unwrap();
    for trace in [&trace[..], &compressed] {
        let said =
            fed("cache-sim /dev/stdin --format csv --policies lru --sizes 100% --json", trace);
        let told: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&told["requests"], &told["objects"]), (&3.into(), &2.into()), "{said}");
    }
    let said = run_with_input("cache-sim /dev/stdin --format csv", b"1,a");
    assert_eq!(said.status.code(), Some(1));
}
