//! The command that lists prepared transactions and decides on them.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::path::Path;

use common::{failed, printed};
use flagstone::base::timestamp::from_u64;
use flagstone::{Comparator, Db, TransactionDb, TransactionDbOptions};

/// Has transactions `one` in families `default` and `dropped`, and `sum`, which merges.
fn prepare(path: &Path) {
    let db = Db::builder(path)
        .column_family("dropped", |_| {})
        .column_family("sums", |family| {
            family.merge_with("concat", |_key, _value, operands| Some(operands.concat()));
        })
        .open_transaction_db(&TransactionDbOptions::default())
        .unwrap();
    let (dropped, sums) = (db.column_family("dropped").unwrap(), db.column_family("sums").unwrap());
    let mut one = db.begin();
    one.set_name("one").unwrap();
    one.put(&db, "key", "value").unwrap();
    one.put(&dropped, "key", "value").unwrap();
    one.prepare().unwrap();
    let mut sum = db.begin();
    sum.set_name("sum").unwrap();
    sum.merge(&sums, "key", "value").unwrap();
    sum.prepare().unwrap();
    db.drop_column_family(&dropped).unwrap();
    drop((one, sum, dropped, sums, db));
    // Now the OPTIONS file no longer names the merge operator.
    drop(TransactionDb::open(path).unwrap());
}

#[test]
fn what_is_prepared_is_listed_with_its_families_and_decided() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    prepare(&path);
    let command = format!("transactions --db {}", path.display());
    let listed = printed(&command);
    assert!(listed.contains("one  2 operations in default, 1 (dropped), "), "{listed}");
    assert!(listed.contains("sum  1 operation in sums, "), "{listed}");
    assert!(printed(&format!("--json {command}")).contains(r#""families":["sums"]"#));

    let (_, said) = failed(&format!("{command} commit sum"));
    assert!(said.contains("only the program with its merge operator can commit it"), "{said}");
    let (_, said) = failed(&format!("{command} commit one"));
    assert!(said.contains("'one'") && said.contains("--ignore-missing-families"), "{said}");
    printed(&format!("{command} commit one --ignore-missing-families"));
    printed(&format!("{command} rollback sum"));
    assert_eq!(printed(&command), "");
    let db = TransactionDb::open(&path).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

#[test]
fn what_was_prepared_for_keys_with_timestamps_is_committed_as_of_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let open = || {
        let builder = Db::builder(&path)
            .column_family("stamped", |family| family.comparator = Comparator::BytewiseU64Ts);
        builder.open_transaction_db(&TransactionDbOptions::default()).unwrap()
    };
    let db = open();
    let stamped = db.column_family("stamped").unwrap();
    for name in ["one", "two"] {
        let mut transaction = db.begin();
        transaction.set_name(name).unwrap();
        if name == "one" {
            transaction.put(&stamped, "key", "value").unwrap();
        }
        transaction.put(&db, name, "value").unwrap();
        transaction.prepare().unwrap();
    }
    drop((stamped, db));
    let command = format!("transactions --db {}", path.display());
    let (_, said) = failed(&format!("{command} commit one"));
    assert!(said.contains("give --write-timestamp NUMBER"), "{said}");
    printed(&format!("{command} commit one --write-timestamp 30"));
    let (_, said) = failed(&format!("{command} commit two --write-timestamp 30"));
    assert!(said.contains("leave out --write-timestamp"), "{said}");
    printed(&format!("{command} commit two"));
    let db = open();
    let stamped = db.column_family("stamped").unwrap();
    assert_eq!(stamped.as_of(from_u64(29)).get("key").unwrap(), None);
    assert_eq!(stamped.as_of(from_u64(30)).get("key").unwrap().unwrap(), "value");
    assert_eq!(db.get("two").unwrap().unwrap(), "value");
}
