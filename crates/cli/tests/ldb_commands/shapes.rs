//! Fewer levels, another compaction style.

use std::path::Path;

use crate::common::printed;
use crate::{referee, said};

/// A database whose tables lie in several levels, the last among them, and what it holds.
fn made(path: &Path, settings: &str) -> String {
    let db = format!("--db {} {settings}", path.display());
    for (round, key) in [("1", "a"), ("2", "b"), ("3", "c")] {
        printed(&format!("batch-put {db} {key} {round} shared {round}"));
        printed(&format!("compact {db} --change-level --target-level {}", 7 - round.len()));
    }
    printed(&format!("put {db} d 4"));
    printed(&format!("scan --db {}", path.display()))
}

fn levels(path: &Path) -> Vec<u64> {
    let listed = printed(&format!("list-files --db {} --json", path.display()));
    let facts = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut levels: Vec<u64> = facts.filter_map(|file| file["level"].as_u64()).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

fn option(path: &Path, name: &str) -> String {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let newest = names
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-"))
        .max()
        .unwrap();
    let text = std::fs::read_to_string(newest).unwrap();
    let found = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}=")));
    found.unwrap().to_string()
}

#[test]
fn levels_are_reduced_and_both_engines_read_on() {
    for dynamic in ["true", "false"] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("db");
        let before = made(&path, &format!("--set level_compaction_dynamic_level_bytes={dynamic}"));
        assert!(levels(&path).contains(&6), "{:?}", levels(&path));
        let db = format!("--db {}", path.display());
        let shown = printed(&format!("reduce_levels {db} --new_levels=3 --print_old_levels"));
        assert_eq!(shown, "7 levels in use before\n");
        assert!(levels(&path).iter().all(|level| *level < 3), "{:?}", levels(&path));
        assert_eq!(option(&path, "num_levels"), "3");
        assert_eq!(printed(&format!("scan {db}")), before);
        // Once more there is nothing to compact.
        let json = printed(&format!("reduce-levels {db} --new-levels 3 --json"));
        assert!(json.contains("\"compacted\":false"), "{json}");
        if let Some(referee) = referee() {
            assert_eq!(referee.ldb(&path, &["get", "shared"]).unwrap(), "3\n");
            assert_eq!(referee.ldb(&path, &["checkconsistency"]).unwrap(), "OK\n");
        }
    }
}

#[test]
fn a_number_of_levels_that_cannot_be_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    made(&path, "");
    let db = format!("--db {}", path.display());
    for (line, expected) in [
        (format!("reduce-levels {db} --new-levels 8"), "compact --set num_levels=8 raises"),
        (format!("reduce-levels {db} --new-levels 0"), "invalid value"),
        (format!("reduce-levels {db} --new-levels 1"), "at least 2 levels"),
        (format!("reduce-levels {db}"), "--new-levels"),
        (format!("reduce-levels {db} --new-levels 3 --cf none"), "no column family 'none'"),
    ] {
        let (code, text) = said(&line);
        assert!(code == 2 && text.contains(expected), "{line}: {text}");
    }
    assert_eq!(option(&path, "num_levels"), "7");
}

/// Refused before anything is compacted.
#[test]
fn a_family_with_its_last_level_apart_is_not_gathered() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    made(&path, "");
    let db = format!("--db {}", path.display());
    printed(&format!("compact {db} --set preclude_last_level_data_seconds=1000"));
    let before = levels(&path);
    for line in [
        format!("reduce-levels {db} --new-levels 3"),
        format!("change-compaction-style {db} --new-compaction-style universal"),
    ] {
        let (code, text) = said(&line);
        assert!(code == 2 && text.contains("preclude_last_level_data_seconds"), "{line}: {text}");
    }
    assert_eq!(levels(&path), before);
}

#[test]
fn the_style_of_one_family_changes_and_back() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let before = made(&path, "");
    let db = format!("--db {}", path.display());
    printed(&format!("create-family {db} other"));
    let line = format!(
        "change_compaction_style {db} --old_compaction_style=0 --new_compaction_style=1 --json"
    );
    let facts: serde_json::Value = serde_json::from_str(&printed(&line)).unwrap();
    assert_eq!((&facts["new_style"], &facts["compacted"]), (&"universal".into(), &true.into()));
    assert_eq!(levels(&path), [6], "one sorted run");
    assert_eq!(option(&path, "compaction_style"), "kCompactionStyleUniversal");
    assert_eq!(printed(&format!("scan {db}")), before);
    if let Some(referee) = referee() {
        assert_eq!(referee.ldb(&path, &["get", "shared"]).unwrap(), "3\n");
    }
    printed(&format!("put {db} e 5"));
    printed(&format!("change-compaction-style {db} --new-compaction-style level"));
    assert_eq!(option(&path, "compaction_style"), "kCompactionStyleLevel");
    assert_eq!(
        printed(&format!("scan {db}")),
        format!("{before}e\t5\n").replace("shared\t3\ne\t5\n", "e\t5\nshared\t3\n")
    );
    for (line, expected) in [
        (format!("change-compaction-style {db} --new-compaction-style level"), "is level already"),
        (
            format!(
                "change-compaction-style {db} --old-compaction-style 1 --new-compaction-style 0"
            ),
            "is level, not that of --old-compaction-style",
        ),
        (format!("change-compaction-style {db} --new-compaction-style fifo"), "invalid value"),
    ] {
        let (code, text) = said(&line);
        assert!(code == 2 && text.contains(expected), "{line}: {text}");
    }
    let fifo = scratch.path().join("fifo");
    let fifo = format!("--db {}", fifo.display());
    printed(&format!("put {fifo} a 1 --set compaction_style=kCompactionStyleFIFO"));
    let (code, text) = said(&format!("change-compaction-style {fifo} --new-compaction-style 0"));
    assert!(code == 2 && text.contains("copy the data"), "{text}");
}
