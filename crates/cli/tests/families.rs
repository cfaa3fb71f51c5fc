//! Column families on the command line: made, dropped, and named as a line can bear it.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::path::Path;

use common::{failed, printed, run};
use flagstone::env::Env;
use flagstone::options::load_latest;

/// There was no way but a program, or a dump written by hand.
#[test]
fn families_are_made_and_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} key value"));
    printed(&format!(
        "create-family --db {db} cats --set comparator=rocksdb.ReverseBytewiseComparator"
    ));
    printed(&format!("put --db {db} --cf cats kit 1"));
    printed(&format!("put --db {db} --cf cats tom 2"));
    assert_eq!(
        printed(&format!("scan --db {db} --cf cats")),
        "tom\t2\nkit\t1\n",
        "its order is its own"
    );
    assert_eq!(printed(&format!("scan --db {db}")), "key\tvalue\n");
    for (line, code, says) in [
        ("create-family cats", 2, "'cats' already exists"),
        ("create-family default", 2, "'default' already exists"),
        ("get --cf dogs key", 2, "no column family 'dogs'"),
        ("get kez", 1, "key 'kez' is not in column family 'default'"),
        ("create-family dogs --set blok_size=1", 2, "did you mean 'block_size'?"),
        ("create-family dogs --set num_levels=0", 2, "num_levels"),
        ("drop-family dogs", 2, "no column family 'dogs'"),
        ("drop-family default", 2, "'default' cannot be dropped"),
        ("stats --property rocksdb.nonsense", 2, "there is no property 'rocksdb.nonsense'"),
    ] {
        let (found, message) = failed(&format!("{line} --db {db}"));
        assert!(found == code && message.contains(says), "{line}: {found} {message}");
    }
    let property = "--property rocksdb.estimate-num-keys";
    assert_eq!(printed(&format!("stats --db {db} {property} --cf cats")), "2\n");
    let json: serde_json::Value =
        serde_json::from_str(&printed(&format!("stats --db {db} {property} --json"))).unwrap();
    assert_eq!(json["value"], "1");
    printed(&format!("drop-family --db {db} cats"));
    assert_eq!(printed(&format!("list-families --db {db}")), "default\n");
}

/// The new family's part of a struct with a block cache, which is the database's, went to all
/// families that were there, and not to the new one if it stood behind.
#[test]
fn what_is_set_of_a_new_family_changes_no_other() {
    for factory in [
        "block_based_table_factory={block_size=8k;block_cache=64M}",
        "table_factory={block_cache=64M;id=BlockBasedTable;block_size=8k}",
        "table_factory={block_size=8k} --set max_background_jobs=3",
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("db");
        let db = path.display();
        printed(&format!("put --db {db} key value"));
        printed(&format!("create-family --db {db} cats --set {factory}"));
        let loaded = load_latest(&Env::os(), &path).unwrap().unwrap();
        let sizes: Vec<_> = loaded
            .families
            .iter()
            .map(|(name, family)| (name.as_str(), family.table.block_size))
            .collect();
        assert_eq!(sizes, [("default", 4096), ("cats", 8192)], "{factory}");
        let (code, said) = failed(&format!(
            "create-family --db {db} dogs --set table_factory={{block_size=8k;blok=1}}"
        ));
        assert!(code == 2 && said.contains("blok"), "{said}");
        assert_eq!(printed(&format!("list-families --db {db}")), "default\ncats\n");
    }
}

/// It was refused unless a property was asked for.
#[test]
fn the_figures_of_one_family_are_printed_alone() {
    let db = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8/cfs");
    let line = format!("stats --db {} --cf users", db.display());
    let shown = printed(&line);
    assert!(
        shown.starts_with("column family 'users'") && shown.matches("column family").count() == 1,
        "{shown}"
    );
    assert!(shown.contains("memory of this process"), "{shown}");
    let facts: serde_json::Value =
        serde_json::from_str(&printed(&format!("{line} --json"))).unwrap();
    let families: Vec<_> = facts["column_families"].as_object().unwrap().keys().collect();
    assert_eq!(families, ["users"]);
    let (code, said) = failed(&format!("stats --db {} --cf nobody", db.display()));
    assert!(code == 2 && said.contains("the database has default, users"), "{said}");
}

/// Who asked for a property that exists was told that it does not.
#[test]
fn a_property_that_a_table_does_not_tell_is_no_wrong_usage() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = path.display();
    printed(&format!("put --db {db} key value"));
    printed(&format!("flush --db {db}"));
    let fs = Env::os().fs;
    let table = fs.list(&path).unwrap().into_iter().find(|name| name.ends_with(".sst")).unwrap();
    let mut bytes = std::fs::read(path.join(&table)).unwrap();
    let footer = bytes.len() - 53;
    bytes[footer..].fill(0);
    std::fs::write(path.join(&table), bytes).unwrap();
    let (code, said) =
        failed(&format!("stats --db {db} --property rocksdb.aggregated-table-properties"));
    let is_told = said.contains("cannot be read") && said.contains("flagstone verify");
    assert!(code == 1 && is_told, "{code} {said}");
    let (code, said) = failed(&format!("stats --db {db} --property rocksdb.nonsense"));
    assert!(code == 2 && said.contains("there is no property"), "{said}");
    // Those of levels were said not to be there.
    for (property, code, says) in [
        (
            "rocksdb.aggregated-table-properties-at-level0",
            1,
            "cannot be read; see flagstone verify",
        ),
        ("rocksdb.compression-ratio-at-level0", 1, "cannot be read; see flagstone verify"),
        ("rocksdb.aggregated-table-properties-at-level7", 2, "column family 'default' has 0 to 6"),
        ("rocksdb.num-files-at-level", 2, "ends in a level"),
        ("rocksdb.live-sst-files-size-at-temperature300", 2, "ends in a temperature"),
        ("rocksdb.estimate-oldest-key-time", 1, "kCompactionStyleFIFO"),
        ("rocksdb.blob-cache-usage", 1, "cache_blobs"),
        ("rocksdb.cf-file-histogram", 1, "rocksdb.cfstats-no-file-histogram"),
        ("rocksdb.block-cache-entry-stats", 1, "stats without --property"),
        ("rocksdb.min-obsolete-sst-number-to-keep", 1, "individually"),
    ] {
        let (found, said) = failed(&format!("stats --db {db} --property {property}"));
        assert!(found == code && said.contains(says), "{property}: {found} {said}");
    }
    let told = printed(&format!(
        "stats --db {db} --property rocksdb.aggregated-table-properties-at-level6"
    ));
    assert!(told.contains("# entries=0; "), "{told}");
}

/// It cleared the screen of whoever asked for figures, and broke lines apart.
#[test]
fn what_a_family_is_called_stays_on_its_line() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, rescued) = (scratch.path().join("db"), scratch.path().join("rescued"));
    let mut options = flagstone::options::Options::default();
    options.create_if_missing = true;
    let db = flagstone::db::Db::open(&path, &options).unwrap();
    let family = db.create_column_family("a\x1b[2J\nb", &options.cf).unwrap();
    db.put_cf(&family, "key", "value").unwrap();
    drop(family);
    db.close().unwrap();
    drop(db);
    let path = path.display();
    for line in [
        format!("stats --db {path}"),
        format!("space --db {path}"),
        format!("list-files --db {path}"),
        format!("manifest --db {path}"),
        format!("salvage --db {path} --to {}", rescued.display()),
    ] {
        let said = printed(&line);
        assert!(!said.contains('\x1b') && said.contains(r"[2J\nb"), "{line}: {said}");
    }
    for line in [
        format!("get --db {path} --cf nonsense key"),
        format!("stats --db {path} --cf a\x1b[2J --property rocksdb.stats"),
        format!("stats --db {path} --property rocksdb.stats"),
        format!("stats --db {path} --property rocksdb.cfstats"),
        format!("doctor --db {path}"),
        format!("verify --db {path}"),
    ] {
        let output = run(&line);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            !said.is_empty() && !said.contains(|char: char| char.is_control() && char != '\n'),
            "{line}: {said:?}"
        );
        if line.contains("nonsense") {
            assert!(said.contains(r"[2J\nb"), "{line}: {said:?}");
        }
    }
}

/// A program had to read sentences.
#[test]
fn the_edits_of_a_manifest_are_objects_in_json() {
    let cfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8/cfs");
    let said = printed(&format!("manifest --json --db {}", cfs.display()));
    let edits: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["edit"].clone())
        .collect();
    let added: Vec<_> =
        edits.iter().filter_map(|edit| edit["column_family_added"].as_str()).collect();
    assert_eq!(added, ["users", "reversed", "photos"]);
    let mut tables = edits.iter().filter_map(|edit| edit["new_files"].as_array()).flatten();
    let listed = printed(&format!("list-files --json --db {}", cfs.display()));
    let live: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let table = tables.rfind(|table| table["number"] == live["number"]).unwrap();
    for fact in
        ["level", "bytes", "smallest_key", "largest_key", "largest_sequence", "created_seconds"]
    {
        assert_eq!(table[fact], live[fact], "{fact}");
    }
    assert!(
        edits
            .iter()
            .all(|edit| edit["deleted_files"].as_array().is_none_or(|list| !list.is_empty()))
    );
    // The sequence numbers of bounds and cursors, identities and more were in the sentences only.
    let sentences = printed(&format!("manifest --db {}", cfs.display()));
    let numbers = |text: &str| -> Vec<String> {
        let runs = text.split(|char: char| !char.is_ascii_alphanumeric());
        let runs = runs.filter(|run| run.contains(|char: char| char.is_ascii_digit()));
        runs.map(|run| run.trim_start_matches('0').to_string()).collect()
    };
    let told = numbers(&said);
    let missing: Vec<_> =
        numbers(&sentences).into_iter().filter(|number| !told.contains(number)).collect();
    assert_eq!(missing, [""; 0]);
    assert!(
        table["smallest_key_type"].is_string() && table["largest_key_type"].is_string(),
        "{table}"
    );
}

/// Nothing was said: the settings of the others were taken for the default ones.
#[test]
fn families_that_the_options_file_does_not_name_are_told() {
    let scratch = tempfile::tempdir().unwrap();
    let cfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8/cfs");
    for entry in std::fs::read_dir(cfs).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
    }
    let warned = || {
        let output = run(&format!("scan --db {} --limit 1", scratch.path().display()));
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(!warned().contains("does not name"));
    let path = scratch.path().join("OPTIONS-000013");
    let whole = std::fs::read_to_string(&path).unwrap();
    for (end, says) in
        [("photos", "'photos', which is"), ("reversed", "'reversed' and 1 more, which is")]
    {
        // RocksDB ends behind a family as it ends the file.
        std::fs::write(&path, &whole[..whole.find(&format!("[CFOptions \"{end}\"]")).unwrap()])
            .unwrap();
        let said = warned();
        assert!(
            said.contains("OPTIONS-000013 does not name the column family") && said.contains(says),
            "{said}"
        );
    }
}
