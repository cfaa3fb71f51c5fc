//! Modes of `flagstone sst`.

use std::path::{Path, PathBuf};
use std::process::Command;

use flagstone::db::Db;
use flagstone::options::Options;

use crate::common::printed;
use crate::{referee, said, tables_in};

/// A database with a table of several data blocks and a range deletion, and that table.
fn made(path: &Path, settings: &str) -> PathBuf {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set_all(settings).unwrap();
    let db = Db::open(path, &options).unwrap();
    for key in 0..300 {
        db.put(format!("key{key:04}"), format!("value-{key}-{}", "v".repeat(20))).unwrap();
    }
    db.delete_range("x", "y").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    tables_in(path).pop().unwrap()
}

/// Runs `sst_dump` on a copy, since it writes beside the file; what it printed and wrote.
fn sst_dump(table: &Path, arguments: &[&str]) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().join("000009.sst");
    std::fs::copy(table, &copy).unwrap();
    let output = Command::new("sst_dump")
        .arg(format!("--file={}", copy.display()))
        .args(arguments)
        .output()
        .unwrap();
    let written = std::fs::read_to_string(scratch.path().join("000009_dump.txt"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed + &written.unwrap_or_default()
}

/// A number as sst_dump prints those of a handle: a varint in hexadecimal.
fn varint(mut number: u64) -> String {
    let mut digits = String::new();
    while number >= 0x80 {
        digits.push_str(&format!("{:02X}", number & 0x7f | 0x80));
        number >>= 7;
    }
    digits + &format!("{number:02X}")
}

fn handle(part: &serde_json::Value) -> String {
    varint(part["offset"].as_u64().unwrap()) + &varint(part["bytes"].as_u64().unwrap())
}

#[test]
fn all_of_a_table_is_shown_as_sst_dump_shows_it() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let table = made(&path, "block_size=1024;compression=kNoCompression");
    let shown = printed(&format!("sst {} --raw", table.display()));
    for part in [
        "footer\n",
        "meta blocks\n",
        "properties\n",
        "filter\n",
        "index, ",
        "range deletions\n  x\t",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        shown.contains("data block 1: ") && shown.contains("summary of the data blocks"),
        "{shown}"
    );
    let entry = "  key0000\t1\tValue\tvalue-0-vvvvvvvvvvvvvvvvvvvv\n";
    assert!(shown.contains(entry), "{shown}");
    let json = printed(&format!("sst {} --raw --json --hex", table.display()));
    let facts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let parts = |name: &str| -> Vec<serde_json::Value> {
        facts.iter().map(|fact| fact[name].clone()).filter(|part| !part.is_null()).collect()
    };
    let blocks = parts("data_block");
    assert!(blocks.len() > 5, "{}", blocks.len());
    assert_eq!(facts.iter().filter(|fact| fact["type"] == "Value").count(), 300);
    assert_eq!(parts("summary")[0]["data_blocks"], blocks.len());
    assert_eq!(parts("range_deletion")[0]["end_key"], "79");
    if referee().is_none() {
        return;
    }
    let theirs = sst_dump(&table, &["--command=raw", "--output_hex"]);
    let footer = &parts("footer")[0];
    assert!(
        theirs.contains(&format!("metaindex handle: {}", handle(&footer["metaindex"]))),
        "{theirs}"
    );
    assert!(theirs.contains(&format!("index handle: {}", handle(&footer["index"]))), "{theirs}");
    for (number, block) in (1..).zip(&blocks) {
        let line = format!("Data Block # {number} @ {}\n", handle(block));
        assert!(theirs.contains(&line), "{line}");
    }
    for entry in parts("index_entry") {
        let key = entry["key"].as_str().unwrap().to_uppercase();
        assert!(theirs.contains(&format!("HEX    {key}: {}\n", handle(&entry))), "{entry}");
    }
    for entry in facts.iter().filter(|fact| fact["type"] == "Value") {
        let upper = |name: &str| entry[name].as_str().unwrap().to_uppercase();
        let line = format!("HEX    {}: {}\n", upper("key"), upper("value"));
        assert!(theirs.contains(&line), "{line}");
    }
    let summary = &parts("summary")[0];
    for (name, ours) in [("min", "smallest_bytes"), ("max", "largest_bytes")] {
        assert!(
            theirs.contains(&format!("{name} data block size: {}\n", summary[ours])),
            "{theirs}"
        );
    }
}

#[test]
fn a_table_is_tried_with_other_compressions() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let table = made(&path, "");
    let table = table.display();
    let tried = |arguments: &str| -> Vec<serde_json::Value> {
        let json = printed(&format!("sst {table} --recompress {arguments} --json"));
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = tried("");
    let names: Vec<_> = all.iter().map(|one| one["compression"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "snappy", "zlib", "bzip2", "lz4", "lz4hc", "zstd"]);
    let bytes = |one: &serde_json::Value| one["bytes"].as_u64().unwrap();
    assert!(bytes(&all[6]) < bytes(&all[0]), "{all:?}");
    let levels =
        tried("--compression_types=kZSTD --compression_level_from=1 --compression_level_to=3");
    let found: Vec<_> = levels.iter().map(|one| one["level"].as_i64().unwrap()).collect();
    assert_eq!(found, [1, 2, 3]);
    let sizes = tried("--compression-types none --block-size 1024,4096");
    let counts: Vec<_> = sizes.iter().map(|one| one["data_blocks"].as_u64().unwrap()).collect();
    assert!(counts[0] > counts[1] && counts[1] > 1, "{counts:?}");
    let shown = printed(&format!("sst {table} --recompress --compression-types lz4"));
    assert!(shown.starts_with("block size 16384, compression lz4, level default: "), "{shown}");
    if referee().is_some() {
        let arguments =
            ["--command=recompress", "--compression_types=kNoCompression", "--set_block_size=1024"];
        let theirs = sst_dump(Path::new(&table.to_string()), &arguments);
        let squeezed: Vec<_> = theirs.split_whitespace().collect();
        let at = squeezed.iter().position(|word| *word == "Blocks:").unwrap();
        assert_eq!(squeezed[at + 1], counts[0].to_string(), "{theirs}");
    }
    for (arguments, expected) in [
        ("--recompress --compression-types zzz", "there is no compression 'zzz'"),
        ("--recompress --compression-types zst", "did you mean 'zstd'?"),
        ("--recompress --compression-level-from 1", "--compression-level-to"),
        ("--recompress --compression-level-from 1 --compression-level-to 2", "name it with"),
        (
            "--recompress --compression-types zstd --compression-level-from 3 --compression-level-to 2",
            "exchange them",
        ),
        ("--recompress --block-size 0", "invalid value"),
        ("--block-size 4096", "--recompress"),
        ("--recompress --raw", "cannot be used with"),
    ] {
        let (code, text) = said(&format!("sst {table} {arguments}"));
        assert!(code == 2 && text.contains(expected), "{arguments}: {text}");
    }
}

/// A file of some bytes that ends in this number.
fn ending_in(path: &Path, magic: u64) {
    std::fs::write(path, [&[0; 100][..], &magic.to_le_bytes()].concat()).unwrap();
}

#[test]
fn a_file_is_identified() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let table = made(&path, "");
    let shown = printed(&format!("sst {} --identify", table.display()));
    assert_eq!(shown, format!("{}: block-based table, format_version 5\n", table.display()));
    let all = printed(&format!("sst {} --identify --json", path.display()));
    let facts: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!((&facts["kind"], &facts["sound"]), (&"block-based".into(), &true.into()));
    for (magic, kind) in [
        (0x8242_2296_63bf_9564, "plain"),
        (0x4f34_18eb_7a8f_13b8, "plain"),
        (0x9267_89d0_c5f1_7873, "cuckoo"),
    ] {
        let other = scratch.path().join("other.sst");
        ending_in(&other, magic);
        let shown = printed(&format!("sst {} --identify", other.display()));
        assert_eq!(shown, format!("{}: {kind} table: only RocksDB reads it\n", other.display()));
    }
    let current = path.join("CURRENT");
    let (code, text) = said(&format!("sst {} {} --identify", current.display(), table.display()));
    assert!(code == 1 && text.contains("CURRENT: not a table\n"), "{text}");
    assert!(text.contains("block-based table"), "the others are told, too: {text}");
    // It claims to be one.
    let claims = scratch.path().join("claims.sst");
    ending_in(&claims, 0x88e2_41b7_85f4_cff7);
    let (code, text) = said(&format!("sst {} --identify", claims.display()));
    assert!(code == 1 && text.contains("block-based table: corruption"), "{text}");
    let none = scratch.path().join("none");
    let (code, text) = said(&format!("sst {} --identify", none.display()));
    assert!(code == 1 && text.contains("none"), "{text}");
    let (code, text) = said(&format!("sst {} {} --identify", none.display(), table.display()));
    assert!(code == 1 && text.contains("FAULT ") && text.contains("block-based"), "{text}");
    if referee().is_some() {
        assert!(sst_dump(&table, &["--command=identify"]).contains("is a valid SST file"));
        assert!(!sst_dump(&current, &["--command=identify"]).contains("is a valid SST file"));
    }
}

#[test]
fn smaller_flags_of_sst_dump_are_understood() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let settings = "enable_blob_files=true;min_blob_size=1";
    let table = made(&path, settings);
    let table = table.display();
    let blocks = printed(&format!("sst {table} --list_meta_blocks"));
    assert!(blocks.contains("meta block rocksdb.properties: "), "{blocks}");
    assert!(!blocks.contains("rocksdb.num.entries"), "{blocks}");
    let both = printed(&format!("sst {table} --entries --read_num=1 --show_properties"));
    assert!(
        both.contains("key0000\t1\tBlobIndex\t") && both.contains("rocksdb.num.entries"),
        "{both}"
    );
    let decoded = printed(&format!("sst {table} --entries --limit 1 --decode_blob_index"));
    assert!(decoded.contains("\tblob file 0000") && decoded.contains(", offset "), "{decoded}");
    let json = printed(&format!("sst {table} --entries --limit 1 --decode-blob-index --json"));
    assert!(json.contains("\"blob_index\":{"), "{json}");
    printed(&format!("sst {table} --verify_checksum"));
    // The sequence number 1 and the type of a value, as the index of a table may have it.
    let parsed = printed("sst --parse_internal_key 0x6b0101000000000000");
    assert_eq!(parsed, "k\t1\tValue\n");
    let (code, text) = said("sst --parse-internal-key 0x6b01");
    assert!(code == 2 && text.contains("hexadecimal digits of a key, and of 8 bytes"), "{text}");
    let (code, text) = said("sst");
    assert!(code == 2 && text.contains("<FILE>"), "{text}");
    if referee().is_some() {
        let output = Command::new("sst_dump")
            .args(["--parse_internal_key=0x6b0101000000000000", "--file=none"])
            .output()
            .unwrap();
        let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(theirs.contains("'6B' seq:1, type:1"), "{theirs}");
    }
}

/// What was read before the damage is shown; none of it is taken for all there is.
#[test]
fn a_damaged_table_is_no_success() {
    let scratch = tempfile::tempdir().unwrap();
    let table = made(&scratch.path().join("db"), "block_size=1024;compression=kNoCompression");
    let mut bytes = std::fs::read(&table).unwrap();
    let at = bytes.windows(9).position(|window| window == b"value-150").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    for mode in ["--raw", "--recompress", "--raw --json"] {
        let (code, text) = said(&format!("sst {} {mode}", table.display()));
        assert!(code == 1 && text.contains("checksum mismatch"), "{mode}: {text}");
        assert!(!text.contains("summary") && !text.contains("block size"), "{mode}: {text}");
    }
    let shown = said(&format!("sst {} --raw", table.display())).1;
    assert!(shown.contains("data block 1: ") && shown.contains("value-100-"), "{shown}");
    let (code, text) = said(&format!("sst {} --raw --verify", table.display()));
    assert!(code == 1 && text.contains("FAULT"), "{text}");
    std::fs::write(&table, b"short").unwrap();
    for mode in ["--raw", "--recompress", "--list-meta-blocks"] {
        let (code, text) = said(&format!("sst {} {mode}", table.display()));
        assert!(code == 1 && text.contains("corruption"), "{mode}: {text}");
    }
}
