use std::collections::BTreeMap;
use std::path::Path;

use super::options_file;
use crate::options::Options;

/// Options that the fixture's program set, or that RocksDB writes as it has worked them out.
const SET_OR_WORKED_OUT: [&str; 4] = [
    "create_if_missing",
    "arena_block_size",
    "max_compaction_bytes",
    "periodic_compaction_seconds",
];

/// The options of a file's first family and of the database, comments aside.
fn settings(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut families = 0;
    for line in text.lines().map(str::trim) {
        families += usize::from(line.starts_with("[CFOptions"));
        if families > 1 || line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = line.split_once('=') {
            found.insert(name.to_string(), value.to_string());
        }
    }
    found
}

/// Whether two texts say the same, where `theirs` may have more fields in braces.
fn agree(ours: &str, theirs: &str) -> bool {
    let fields = |text: &str| -> Option<Vec<String>> {
        let inner = text.strip_prefix('{')?.strip_suffix('}')?;
        Some(inner.split(';').map(str::to_string).collect())
    };
    match (fields(ours), fields(theirs)) {
        (Some(ours), Some(theirs)) => ours.iter().all(|field| theirs.contains(field)),
        _ => ours == theirs,
    }
}

#[test]
fn defaults_are_those_that_rocksdb_writes() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/options/OPTIONS-11.8.1");
    let theirs = settings(&std::fs::read_to_string(fixture).unwrap());
    let ours = settings(&options_file(&Options::default()));
    let mut compared = 0;
    for (name, value) in ours.iter().filter(|(name, _)| !name.ends_with("_version")) {
        let Some(wanted) = theirs.get(name) else { continue };
        if !SET_OR_WORKED_OUT.contains(&name.as_str()) {
            assert!(agree(value, wanted), "{name}: {value}, in RocksDB {wanted}");
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} options were compared");
    assert_eq!(ours["format_version"], theirs["format_version"]);
}
