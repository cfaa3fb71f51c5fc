//! What commands say of garbage.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[expect(dead_code, reason = "each binary of tests uses some of it")]
mod common;

use std::path::Path;

use common::printed;
use flagstone::db::Db;
use flagstone::options::Options;

/// Writes 20 values of 100,000 bytes, and flushes them if told so.
fn write(path: &Path, settings: &str, flushes: bool) {
    let mut options = Options::default();
    options
        .set_all(&format!("create_if_missing=true;compression=kNoCompression;{settings}"))
        .unwrap();
    let db = Db::open(path, &options).unwrap();
    (10..30).for_each(|key| db.put(format!("key{key}"), [b'v'; 100_000]).unwrap());
    if flushes {
        db.flush_all().unwrap();
    }
    db.close().unwrap();
}

/// The overwritten values counted as live, and nothing said that the newer ones lie in a WAL.
#[test]
fn what_waits_in_a_wal_is_told_beside_garbage() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let settings =
        "avoid_flush_during_shutdown=true;blob_write_mode=flush;disable_auto_compactions=true";
    write(&path, settings, true);
    write(&path, settings, false);
    let db = path.display();
    let said = printed(&format!("space --db {db}"));
    assert!(said.contains("not yet flushed: 1.9 MiB"), "{said}");
    assert!(said.contains("not counted: garbage caused by 20 entries still in WALs"), "{said}");
    let said = printed(&format!("space --db {db} --json"));
    assert!(said.contains("\"unflushed_entries\":20"), "{said}");
    let said = printed(&format!("doctor --db {db}"));
    assert!(said.contains("are not flushed: values that they overwrite"), "{said}");
    printed(&format!("flush --db {db}"));
    for command in ["space", "doctor"] {
        let said = printed(&format!("{command} --db {db}"));
        assert!(!said.contains("not counted"), "{said}");
    }
    assert!(printed(&format!("space --db {db}")).contains("that tables still refer to: 1.9 MiB"));
}

/// Only a setting was advised, and not what collects the garbage that is there.
#[test]
fn what_collects_garbage_is_named_where_compactions_run_only_on_request() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let settings = "disable_auto_compactions=true";
    write(&path, settings, true);
    write(&path, settings, true);
    let said = printed(&format!("doctor --db {}", path.display()));
    assert!(said.contains("flagstone compact collects it"), "{said}");
    printed(&format!("compact --db {}", path.display()));
    let said = printed(&format!("space --db {}", path.display()));
    assert!(said.contains("reclaimable now: 0 B"), "{said}");
}
