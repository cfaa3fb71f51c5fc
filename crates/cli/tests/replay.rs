//! `flagstone replay` and the traces that `flagstone bench` records.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{failed, printed};

#[test]
fn a_recorded_benchmark_is_repeated() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let said = printed(&format!(
        "bench --benchmarks=fillseq,overwrite,readrandom,multireadrandom,seekrandom --db={} --num=500 --reads=200 \
         --batch_size=1 --trace_file={}",
        path("db"),
        path("trace")
    ));
    assert!(said.contains("\ntrace: "), "{said}");
    for (flags, name) in [("", "once"), ("--threads 3", "threads")] {
        let line =
            format!("replay --db {} --fast-forward inf {flags} {}", path(name), path("trace"));
        let told: serde_json::Value =
            serde_json::from_str(&printed(&format!("{line} --json"))).unwrap();
        assert_eq!((&told["writes"], &told["unsupported"]), (&500.into(), &0.into()), "{told}");
        assert!(told["lookups"].as_u64().unwrap() > 200 && told["seeks"] == 200, "{told}");
        assert!(told["operations"].as_u64().unwrap() > 900, "{told}");
    }
    let again =
        printed(&format!("replay --db {} --fast-forward inf {}", path("once"), path("trace")));
    assert!(again.contains(" operations: 500 batches written, "), "{again}");
}

#[test]
fn what_is_no_trace_makes_no_database() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    for (contents, expected) in [
        (&b""[..], "the trace is empty"),
        (b"short", "the trace ends within a record"),
        (&[0; 13], "the first record of a trace has type 0, not 1"),
    ] {
        std::fs::write(path("trace"), contents).unwrap();
        let line = format!("replay --db {} {}", path("db").display(), path("trace").display());
        let (code, said) = failed(&line);
        assert!(code == 1 && said.contains(expected), "{said}");
        assert!(!path("db").exists());
    }
    let (code, said) = failed(&format!("replay --db {} none", path("db").display()));
    assert!(code == 1 && said.contains("none"), "{said}");
    for speed in ["0", "-1", "NaN", "fast"] {
        let (code, said) = failed(&format!("replay --db db --fast-forward={speed} trace"));
        assert!(code == 2 && said.contains("a number above 0"), "{said}");
    }
}
