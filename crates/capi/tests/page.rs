//! The table of docs/c-api.md: what differs from RocksDB, by the functions of the header.
//!
//! `tests/differences.txt` says what differs. `FLAGSTONE_BLESS=1` writes the page; otherwise a page
//! that differs fails.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the page is a file of the source tree")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Functions of RocksDB 11.9's header.
const OF_ROCKSDB: usize = 1_749;

/// Those of this header that RocksDB has removed.
const REMOVED: &[&str] = &[
    "rocksdb_block_based_options_set_hash_index_allow_collision",
    "rocksdb_delete_file",
    "rocksdb_options_get_access_hint_on_compaction_start",
    "rocksdb_options_get_max_write_buffer_number_to_maintain",
    "rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open",
    "rocksdb_options_set_access_hint_on_compaction_start",
    "rocksdb_options_set_max_write_buffer_number_to_maintain",
    "rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open",
];

/// Those that RocksDB has in C++ alone.
const OWN: &[&str] = &[
    "rocksdb_eventlistener_set_error_recovery",
    "rocksdb_resume",
    "rocksdb_status_ptr_get_severity",
];

const PAGE: &str = "../../docs/c-api.md";
const BEGIN: &str =
    "<!-- `FLAGSTONE_BLESS=1 cargo test -p flagstone-capi --test page` writes this part. -->\n";
const END: &str = "<!-- End of that part. -->\n";

/// A row of the table.
struct Difference {
    patterns: Vec<String>,
    text: String,
}

fn differences() -> Vec<Difference> {
    let text = common::read("tests/differences.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let row = |pair: &[&str]| {
        assert!(!pair[0].starts_with(' ') && pair[1].starts_with("    "), "{pair:?}");
        Difference {
            patterns: pair[0].split_whitespace().map(str::to_string).collect(),
            text: pair[1].trim().to_string(),
        }
    };
    lines.chunks_exact(2).map(row).collect()
}

/// Whether a name is as a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name
            .strip_prefix(head)
            .is_some_and(|name| (0..=name.len()).any(|at| matches(rest, &name[at..]))),
    }
}

/// The patterns of a row. One that begins as the last that is written in full is cut short.
fn shown(patterns: &[String]) -> String {
    let mut full = "";
    let mut texts = Vec::new();
    for pattern in patterns {
        let common = full.bytes().zip(pattern.bytes()).take_while(|(a, b)| a == b).count();
        let cut = pattern[..common].rfind('_').unwrap_or(0);
        let text = if cut > "rocksdb".len() {
            format!("...{}", &pattern[cut..])
        } else {
            full = pattern;
            pattern.clone()
        };
        texts.push(format!("`{}`", text.replace('*', "...")));
    }
    texts.join(", ")
}

fn with_comma(number: usize) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}

fn generated(declared: usize) -> String {
    assert_eq!(declared - REMOVED.len() - OWN.len(), OF_ROCKSDB);
    let own: Vec<String> = OWN.iter().map(|name| format!("`{name}`")).collect();
    let mut text = format!(
        "The header declares the {} functions of RocksDB 11.9, {} that it has removed, and for \
         what it has in C++ alone {}.\n\n| Functions | Here |\n|---|---|\n",
        with_comma(OF_ROCKSDB),
        REMOVED.len(),
        own.join(", ")
    );
    for Difference { patterns, text: here } in differences() {
        let _ = writeln!(text, "| {} | {here} |", shown(&patterns));
    }
    text
}

#[test]
fn the_page_lists_what_differs() {
    let declared = common::declared();
    assert!(REMOVED.iter().chain(OWN).all(|name| declared.contains_key(*name)));
    let page = common::read(PAGE);
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", generated(declared.len()));
    if std::env::var_os("FLAGSTONE_BLESS").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert!(page == wanted, "docs/c-api.md is not as the header says: set FLAGSTONE_BLESS=1");
    }
}

#[test]
fn each_name_is_in_the_header() {
    let declared = common::declared();
    for pattern in differences().into_iter().flat_map(|row| row.patterns) {
        let found = declared.keys().any(|name| matches(&pattern, name));
        assert!(found, "no function is called {pattern}");
    }
}

/// Setters that nothing reads: of a field that only its row names, or without a body.
fn without_effect(sources: &BTreeMap<String, String>) -> Vec<String> {
    let all: String = sources.values().map(String::as_str).collect();
    let is_read_once = |field: &str| {
        let use_of = format!(".{field}");
        let uses = all.match_indices(use_of.as_str());
        let ends = |at: usize| {
            let next = all[at + field.len() + 1..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        };
        uses.filter(|(at, _)| ends(*at)).count() == 1
    };
    let mut found = Vec::new();
    for source in sources.values() {
        for block in source.split("c_settings! { \"").skip(1) {
            let (prefix, rows) = block.split_once('"').unwrap();
            let rows = rows.split_once("|o| {").unwrap().1.split("\n} }").next().unwrap();
            for row in rows.split(';').map(str::trim).filter(|row| row.contains(": o.")) {
                let (head, place) = row.rsplit_once(": ").unwrap();
                let place = place.trim();
                let name = head.rsplit_once(", ").unwrap().1;
                let field = place.rsplit('.').next().unwrap();
                let is_engines =
                    ["o.engine", "o.rdb", "o.0"].iter().any(|of| place.starts_with(of));
                if !is_engines && is_read_once(field) {
                    found.push(format!("{prefix}_set_{name}"));
                }
            }
        }
        for function in source.split("\n    fn rocksdb_").skip(1) {
            let (head, rest) = function.split_once(" {").unwrap();
            let name = head.split('(').next().unwrap();
            if rest.starts_with('}') && name.contains("_set_") {
                found.push(format!("rocksdb_{name}"));
            }
        }
    }
    found
}

#[test]
fn no_setter_is_silently_without_effect() {
    let found = without_effect(&common::sources());
    assert!(found.len() > 20, "{found:?}");
    let rows = differences();
    let is_listed = |name: &String| {
        rows.iter().flat_map(|row| &row.patterns).any(|pattern| matches(pattern, name))
    };
    let missing: Vec<_> = found.iter().filter(|name| !is_listed(name)).collect();
    assert!(missing.is_empty(), "not in tests/differences.txt: {missing:?}");
}
