//! Merge operands, as they are stored.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::sync::Arc;

use common::create;
use flagstone::base::merge::StringAppendOperator;
use flagstone::base::{Code, Result, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{Options, ReadOptions};

fn open(settings: &str) -> Db {
    let mut options = Options { env: Env::memory(), ..create() };
    options.set_all(&format!("disable_auto_compactions=true;{settings}")).unwrap();
    options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    Db::open("/db", &options).unwrap()
}

fn operands_in(db: &Db, options: &ReadOptions, at_most: usize) -> Result<Vec<String>> {
    let found = db.get_merge_operands(options, db.default_column_family(), "key", at_most)?;
    Ok(found.iter().map(|operand| operand.escape_ascii().to_string()).collect())
}

fn operands(db: &Db) -> Vec<String> {
    operands_in(db, &ReadOptions::default(), 10).unwrap()
}

/// Each in a table of its own, but for the last.
fn merge(db: &Db, operands: &[&str]) {
    for operand in operands {
        db.flush_all().unwrap();
        db.merge("key", operand).unwrap();
    }
}

#[test]
fn operands_come_oldest_first_behind_a_value() {
    let db = open("enable_blob_files=false");
    assert!(operands(&db).is_empty(), "there is no such key");
    merge(&db, &["a", "b"]);
    assert_eq!(operands(&db), ["a", "b"]);
    db.put("key", "value").unwrap();
    assert_eq!(operands(&db), ["value"]);
    merge(&db, &["c"]);
    let before = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    merge(&db, &["d", "e"]);
    assert_eq!(operands(&db), ["value", "c", "d", "e"]);
    assert_eq!(operands_in(&db, &before, 10).unwrap(), ["value", "c"]);
    assert_eq!(db.get("key").unwrap().unwrap(), "value,c,d,e", "and are merged elsewhere");
    db.delete("key").unwrap();
    assert!(operands(&db).is_empty());
    merge(&db, &["f"]);
    assert_eq!(operands(&db), ["f"], "nothing below a deletion");
    db.delete_range("a", "z").unwrap();
    merge(&db, &["g"]);
    assert_eq!(operands(&db), ["g"]);
}

#[test]
fn too_many_operands_are_refused() {
    let db = open("enable_blob_files=false");
    db.put("key", "value").unwrap();
    merge(&db, &["a", "b"]);
    let options = ReadOptions::default();
    assert_eq!(operands_in(&db, &options, 3).unwrap().len(), 3, "the value counts");
    let error = operands_in(&db, &options, 2).unwrap_err();
    let expected = (Code::Incomplete, SubCode::MergeOperandsInsufficientCapacity);
    assert_eq!((error.code(), error.subcode()), expected);
    assert!(error.to_string().contains("has 3 merge operands, more than 2"), "{error}");
}

#[test]
fn values_of_blob_files_and_entities_come_as_values() {
    let db = open("enable_blob_files=true;min_blob_size=1");
    db.put("key", "in a blob file").unwrap();
    assert_eq!(operands(&db), ["in a blob file"]);
    merge(&db, &["a", "b"]);
    assert_eq!(operands(&db), ["in a blob file", "a", "b"]);

    let mut entity = WriteBatch::new();
    let columns = [("", "default"), ("other", "column")];
    entity.put_entity_cf(db.default_column_family(), "key", columns).unwrap();
    db.write(entity).unwrap();
    assert_eq!(operands(&db), ["default"]);
    merge(&db, &["c"]);
    db.flush_all().unwrap();
    assert_eq!(operands(&db), ["default", "c"]);
}

#[test]
fn no_operator_is_asked() {
    let db = open("");
    merge(&db, &["a", "b"]);
    db.flush_all().unwrap();
    let options = Options { env: db.options().env.clone(), ..Options::default() };
    db.close().unwrap();
    let db = Db::open_read_only("/db", &options).unwrap();
    assert_eq!(db.get("key").unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(operands(&db), ["a", "b"]);
}

#[test]
fn a_program_merges_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let db = flagstone::Db::builder(&path)
        .options(|options| {
            options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")))
        })
        .open()
        .unwrap();
    db.merge("key", "1").unwrap();
    let before = db.snapshot();
    db.merge("key", "2").unwrap();
    let sum = |found: Vec<flagstone::Value>| -> u32 {
        found.iter().map(|operand| u32::from(operand[0] - b'0')).sum()
    };
    assert_eq!(sum(db.get_merge_operands("key", 100).unwrap()), 3);
    assert_eq!(sum(before.get_merge_operands("key", 100).unwrap()), 1);
}
