//! Commands that do what commands and flags of RocksDB's `ldb` and modes of its `sst_dump` do, held
//! against these where they show the same.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod common;
mod keys;
mod manifests;
mod queries;
mod shapes;
mod tables;
mod timestamps;

use std::path::{Path, PathBuf};
use std::process::Output;

use common::run;
use testkit::referee::Referee;

/// The tools, which must be there where tests say so.
fn referee() -> Option<Referee> {
    let found = Referee::find();
    let is_required = std::env::var_os("FLAGSTONE_REQUIRE_REFEREE").is_some();
    assert!(found.is_some() || !is_required, "ldb and sst_dump are not installed");
    found
}

/// The exit code, and what was printed.
fn said(line: &str) -> (i32, String) {
    told(&run(line))
}

fn told(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// The tables of a database, the oldest first.
fn tables_in(db: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == "sst")).collect();
    tables.sort();
    tables
}
