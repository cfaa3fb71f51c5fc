//! `flagstone dump` and `flagstone load`: what comes out goes in again, with its order.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use common::{contents, failed, printed, run, run_with_input};
use flagstone::base::Comparator;
use flagstone::db::Db;
use flagstone::options::Options;

/// Loads a dump, and what the program says of it besides that it made a database.
fn load(db: &str, dump: &str) -> String {
    let output = run_with_input(&format!("load --db {db}"), dump.as_bytes());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let remarks = said.lines().filter(|line| !line.contains("note: created a new database"));
    remarks.map(|line| format!("{line}\n")).collect()
}

fn reversed() -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.cf.comparator = Comparator::ReverseBytewise;
    options
}

/// They came out of it in the order of bytes, and an application that asks for its own comparator
/// could not open them.
#[test]
fn families_are_loaded_with_the_order_that_they_had() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let db = Db::open(at("source"), &reversed()).unwrap();
    let plain = db.create_column_family("two words", &Options::default().cf).unwrap();
    let empty = db.create_column_family("empty", &reversed().cf).unwrap();
    for key in ["a", "b"] {
        db.put(key, "1").unwrap();
        db.put_cf(&plain, key, "2").unwrap();
    }
    drop((plain, empty));
    db.close().unwrap();
    drop(db);

    let dump = printed(&format!("dump --db {}", at("source")));
    let order = "comparator=rocksdb.ReverseBytewiseComparator";
    let expected = format!(
        "default {order}\ndefault 62 31\ndefault 61 31\ntwo words 61 32\ntwo words 62 32\nempty {order}\n"
    );
    assert_eq!(dump, expected);
    assert_eq!(load(&at("target"), &dump), "");
    assert_eq!(printed(&format!("dump --db {}", at("target"))), dump);
    let stats = printed(&format!("stats --db {}", at("target")));
    assert_eq!(stats.matches("(rocksdb.ReverseBytewiseComparator)").count(), 2, "{stats}");
}

/// A family that is there keeps its order, which is said.
#[test]
fn what_is_loaded_into_another_order_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} c 3"));
    let said = load(
        &db,
        "default comparator=rocksdb.ReverseBytewiseComparator\ndefault 62 31\ndefault 61 31\n",
    );
    assert!(said.contains("'default' exists with comparator leveldb.BytewiseComparator"), "{said}");
    assert_eq!(printed(&format!("scan --db {db} --keys-only")), "a\nb\nc\n");
}

/// It was passed over in silence, and the families had the dump's order.
#[test]
fn an_order_that_is_set_goes_before_that_of_the_dump() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let order = "comparator=rocksdb.ReverseBytewiseComparator";
    let dump = format!(
        "default {order}\ndefault 62 31\ndefault 61 31\nother comparator=my.Order\nother 61 31\n"
    );
    let said = load(&format!("{db} --set comparator=leveldb.BytewiseComparator"), &dump);
    assert_eq!(said.matches("with comparator leveldb.BytewiseComparator").count(), 2, "{said}");
    assert_eq!(printed(&format!("dump --db {db}")), "default 61 31\ndefault 62 31\nother 61 31\n");
}

/// Of an order that only an application knows no database is left behind.
#[test]
fn an_order_that_is_not_built_in_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    let output =
        run_with_input(&format!("load --db {}", db.display()), b"default comparator=my.Order\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && said.contains("line 1") && said.contains("my.Order"),
        "{said}"
    );
    assert!(!db.exists());
}

/// Nothing told that lines before the one that ended the load may not be stored.
#[test]
fn a_load_that_ends_early_says_that_only_a_part_is_there() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let output = run_with_input(
        &format!("load --db {db}"),
        b"default 61 31\nother comparator=my.Order\nother 61 31\n",
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1)
            && said.contains("line 2")
            && said.contains("db has only part of the dump"),
        "{said}"
    );
}

/// It passed for two families in a list, and for lines that are none in a dump.
#[test]
fn a_family_whose_name_has_two_lines_stands_on_one_or_nowhere() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), &reversed()).unwrap();
    drop(db.create_column_family("two\nlines", &Options::default().cf).unwrap());
    db.close().unwrap();
    drop(db);
    let at = scratch.path().display();
    assert_eq!(printed(&format!("list-families --db {at}")), "default\ntwo\\nlines\n");
    let (code, message) = failed(&format!("dump --db {at}"));
    assert!(code == 1 && message.contains(r"'two\nlines' cannot be dumped"), "{message}");
}

/// `flagstone dump --db misspelt | flagstone load --db copy` made an empty database, and called
/// that done.
#[test]
fn nothing_is_no_dump() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    for input in ["", "\n\n"] {
        let output = run_with_input(&format!("load --db {}", db.display()), input.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1) && said.contains("standard input is empty"),
            "{said}"
        );
        assert!(!db.exists());
    }
}

/// That another form was expected was all that was said to who comes from RocksDB.
#[test]
fn a_dump_of_ldb_s_is_known() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let refused = |dump: &str| {
        let output = run_with_input(&format!("load --db {db}"), dump.as_bytes());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused("0x6B ==> 0x76\n").contains("a dump made by ldb, which only ldb loads"));
    let said = refused("default 6b 7\n");
    assert!(
        said.contains("expected COLUMN_FAMILY HEXKEY HEXVALUE\n") && !said.contains("ldb"),
        "{said}"
    );
    assert!(!scratch.path().join("db").exists());
}

/// Families without keys were not in a dump, and of an empty database nothing was.
#[test]
fn an_empty_database_is_loaded_as_it_was() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(at("source"), &options).unwrap();
    drop(db.create_column_family("photos", &Options::default().cf).unwrap());
    db.close().unwrap();
    drop(db);
    let dump = printed(&format!("dump --db {}", at("source")));
    let order = "comparator=leveldb.BytewiseComparator";
    assert_eq!(dump, format!("default {order}\nphotos {order}\n"));
    assert_eq!(load(&at("target"), &dump), "");
    assert_eq!(printed(&format!("list-families --db {}", at("target"))), "default\nphotos\n");
    assert_eq!(printed(&format!("dump --db {}", at("target"))), dump);
}

/// The beginning of a value was loaded for all of it, and nobody was told.
#[test]
fn a_dump_that_was_cut_off_within_a_line_is_not_loaded_to_its_end() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let output = run_with_input(&format!("load --db {db}"), b"default 61 31\ndefault 62 3132");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1)
            && said.contains("line 2 of standard input: the line does not end"),
        "{said}"
    );
    assert_eq!(failed(&format!("get --db {db} b")).0, 1);
    // Of the first line no database is made.
    let output = run_with_input(&format!("load --db {db}-other"), b"default 61 31");
    assert_eq!(output.status.code(), Some(1));
    assert!(!scratch.path().join("db-other").exists());
}

/// What was imported, or loaded from a dump without stamps, could not be read as a TTL database.
#[test]
fn a_ttl_database_is_imported_to_and_loaded() {
    const PIECES: usize = 33 << 20;
    let scratch = tempfile::tempdir().unwrap();
    let files = scratch.path().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("small"), "one").unwrap();
    // It is written piece by piece.
    std::fs::write(files.join("large"), vec![b'x'; PIECES]).unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("import {db} --ttl {}", files.display()));
    assert_eq!(printed(&format!("get {db} --ttl small")), "one");
    assert_eq!(run(&format!("get {db} --ttl large")).stdout.len(), PIECES);
    assert_eq!(printed(&format!("count {db} --ttl=3600")), "2\n");
    let loaded = format!("--db {}", scratch.path().join("loaded").display());
    let output = run_with_input(
        &format!("load {loaded} --ttl=7200"),
        b"default 61 31\nvisits 62 32\nvisits 63 33\n",
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(printed(&format!("scan {loaded} --ttl")), "a\t1\n");
    assert_eq!(printed(&format!("scan {loaded} --ttl=3600 --cf visits")), "b\t2\nc\t3\n");
    let (_, loaded_options) = contents(&scratch.path().join("loaded"))
        .into_iter()
        .rfind(|(name, _)| name.starts_with("OPTIONS"))
        .unwrap();
    let lives = String::from_utf8(loaded_options).unwrap().matches("7200").count();
    assert!(lives >= 2, "both families have it");
}

/// The first line that could not be read ended the load: nothing behind it was stored.
#[test]
fn lines_that_cannot_be_read_are_named_and_the_rest_is_loaded() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let dump = b"no dump\ndefault 61 31\ndefault 62 3\n\xff\xfe\n\ndefault 63 33\r\nother 64 34\ndefault 65 3x\ndefault 66 36";
    let output = run_with_input(&format!("load --db {db} --json"), dump);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"keys\":3,\"left_out\":5}\n");
    for line in [1, 3, 4, 8, 9] {
        assert!(said.contains(&format!("line {line} of standard input: ")), "{line}: {said}");
    }
    assert_eq!(printed(&format!("dump --db {db}")), "default 61 31\ndefault 63 33\nother 64 34\n");
    let output = run_with_input(&format!("load --db {db}"), b"default 67 37\nx\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1 key loaded, 1 line left out\n");
}

/// Long lines are read piece by piece: one that is no line of a dump, or ends too early, stores
/// nothing, and what follows it is loaded.
#[test]
fn long_lines_are_loaded_whole_or_not_at_all() {
    const LONG: usize = 17 << 20;
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let digits = "6a".repeat(LONG / 2);
    let mut dump =
        format!("two words 61 {digits}\r\ndefault 62 {digits}f\ndefault 63 {digits} 64\n");
    dump += &format!("default {digits} 6b\n{digits}{digits}\n{}\n", "#".repeat(LONG));
    dump += &format!("default 65 0x{digits}\ndefault 66 36\ndefault 67 {digits}");
    let output = run_with_input(&format!("load --db {db}"), dump.as_bytes());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for line in [2, 3, 5, 6, 9] {
        assert!(said.contains(&format!("line {line} of standard input: ")), "{line}: {said}");
    }
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "4 keys loaded, 5 lines left out\n");
    let value = "j".repeat(LONG / 2);
    // Its name has a blank, which the helper parts words at: it is the only key of its family.
    let dumped = printed(&format!("dump --db {db}"));
    assert!(dumped.contains(&format!("\ntwo words 61 {digits}\n")));
    assert!(printed(&format!("get --db {db} e")) == value);
    assert_eq!(printed(&format!("get --db {db} {}", "f")), "6");
    assert_eq!(printed(&format!("count --db {db}")), "3\n");
}

/// A blank before a line ended the load, and left an empty database behind; a thousand lines of
/// another file were all named.
#[test]
fn a_line_without_a_family_is_left_out_and_ten_of_many_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let output = run_with_input(&format!("load --db {db}"), b" 61 31\n comparator=c\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(!scratch.path().join("db").exists(), "{output:?}");
    let dump = " 61 31\n".repeat(12) + "default 62 32\n";
    for (flags, named, told) in [
        ("", 10, "1 key loaded, 12 lines left out\n"),
        (" --json", 12, "{\"keys\":1,\"left_out\":12}\n"),
    ] {
        let output = run_with_input(&format!("load --db {db}{flags}"), dump.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.matches("of standard input: ").count()),
            (Some(1), named),
            "{said}"
        );
        assert_eq!(
            said.contains("and 2 more lines are left out; --json names each"),
            named == 10,
            "{said}"
        );
        assert_eq!(String::from_utf8(output.stdout).unwrap(), told);
    }
}
