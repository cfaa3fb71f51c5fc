//! Settings that are refused, and settings that are accepted.

use super::*;

/// It was passed over in silence, however it was misspelt.
#[test]
fn a_setting_in_vain_is_refused() {
    let basic = fixtures().join("basic");
    let table = basic.join("000022.sst");
    for line in [
        format!("sst {}", table.display()),
        format!("manifest --db {}", basic.display()),
        format!("list-families --db {}", basic.display()),
        "cache-sim --synthetic photo".to_string(),
    ] {
        let (code, message) = failed(&format!("{line} --set write_buffer_size=1M"));
        assert!(code == 2 && message.contains("--set write_buffer_size"), "{line}: {message}");
    }
    let (code, message) = failed("bench --num=1 --compression_type=lz77");
    assert!(code == 2 && message.contains("lz77"), "{message}");
}

/// Of a value that is no number the exit code said that the usage was wrong, of one out of range
/// that a database had failed.
#[test]
fn a_setting_out_of_range_is_wrong_usage() {
    let scratch = tempfile::tempdir().unwrap();
    copy("wal-plain", scratch.path());
    let db = scratch.path().display();
    for (setting, part) in [
        ("max_open_files=-5", "must be in"),
        ("num_levels=0", "must be in"),
        (
            "wal_compression=kZlibCompression",
            "expected one of kNoCompression, kZSTD, found 'kZlibCompression'",
        ),
        ("wal_compression=kLZ4", "expected one of kNoCompression, kZSTD, found 'kLZ4'"),
    ] {
        let (code, said) = failed(&format!("stats --db {db} --set {setting}"));
        assert!(code == 2 && said.contains(part), "{setting}: {code}, {said}");
    }
    printed(&format!("stats --db {db} --set max_open_files=50"));
}

/// A setting that cannot be meant of this database passed for a failure, or for wrong usage without
/// the file that tells why.
#[test]
fn a_setting_that_does_not_go_with_the_database_is_wrong_usage() {
    let scratch = tempfile::tempdir().unwrap();
    let [db, other] = ["db", "other"].map(|name| scratch.path().join(name).display().to_string());
    for db in [&db, &other] {
        printed(&format!("put --db {db} a 1"));
        printed(&format!("compact --db {db}"));
    }
    let order = "comparator=rocksdb.ReverseBytewiseComparator";
    let manifest = format!("{db}/MANIFEST-");
    for (line, settings, says) in [
        ("scan", "num_levels=3", &manifest),
        ("scan --ttl", "num_levels=3", &manifest),
        ("verify", "num_levels=3", &manifest),
        ("doctor", "num_levels=3", &manifest),
        ("check", "num_levels=3", &manifest),
        ("list-files", order, &manifest),
        ("put b 2", &format!("wal_dir={other}"), &other),
        ("create-family cats", &format!("cf_paths={other}"), &other),
    ] {
        let (code, said) = failed(&format!("{line} --db {db} --set {settings}"));
        assert!(
            code == 2 && said.contains(&format!("--set {settings}: ")) && said.contains(says),
            "{code}: {said}"
        );
    }
    // What is no doing of the setting is none.
    let (code, said) = failed(&format!("scan --db {db}/none --set num_levels=3"));
    assert!(code == 1 && said.contains("no such directory"), "{said}");
}

/// Who wanted fewer levels was told to have as many as there were, and not how there come to be
/// fewer.
#[test]
fn a_database_comes_to_have_fewer_levels() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} a 1"));
    printed(&format!("compact {db}"));
    let (code, message) = failed(&format!("scan {db} --set num_levels=3"));
    assert!(code == 2 && message.contains("flagstone compact --change-level"), "{message}");
    printed(&format!("compact {db} --change-level"));
    assert_eq!(printed(&format!("scan {db} --set num_levels=3")), "a\t1\n");
}

/// Scripts that set such an option go on working, and their authors hear of it.
#[test]
fn an_option_that_is_gone_is_accepted_with_a_note() {
    let scratch = tempfile::tempdir().unwrap();
    let put =
        |set: &str| run(&format!("put --db {} key value --set {set}", scratch.path().display()));
    let told = put("seek_compaction_bytes=1");
    assert!(told.status.success(), "{}", text(&told));
    let note =
        "warning: --set seek_compaction_bytes=1: option 'seek_compaction_bytes' has no effect";
    assert!(text(&told).contains(note), "{}", text(&told));
    assert!(!text(&put("seek_compaction_bytes=0")).contains("warning"));
}
