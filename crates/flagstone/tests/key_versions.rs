//! All stored versions of keys.

#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

use flagstone::reports::{KeyVersion, ValueType};
use flagstone::{Code, Comparator, Db};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn told(versions: &[KeyVersion]) -> Vec<(String, u64, ValueType, String)> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let told = |one: &KeyVersion| (text(&one.key), one.sequence, one.kind, text(&one.value));
    versions.iter().map(told).collect()
}

fn expected(rows: &[(&str, u64, ValueType, &str)]) -> Vec<(String, u64, ValueType, String)> {
    let owned = |(key, sequence, kind, value): &(&str, u64, ValueType, &str)| {
        ((*key).to_string(), *sequence, *kind, (*value).to_string())
    };
    rows.iter().map(owned).collect()
}

#[test]
fn versions_of_tables_and_memtables_are_listed_the_newest_first() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .options(|options| options.cf.set("merge_operator", "stringappend").unwrap())
        .open()
        .unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "1").unwrap();
    let _kept = db.snapshot();
    db.delete("a").unwrap();
    db.flush().unwrap();
    db.merge("b", "2").unwrap();
    db.single_delete("c").unwrap();
    db.put("d", "1").unwrap();
    let all = [
        ("a", 3, ValueType::Deletion, ""),
        ("a", 1, ValueType::Value, "1"),
        ("b", 4, ValueType::Merge, "2"),
        ("b", 2, ValueType::Value, "1"),
        ("c", 5, ValueType::SingleDeletion, ""),
        ("d", 6, ValueType::Value, "1"),
    ];
    let every = db.key_versions::<&str>(.., 100).unwrap();
    assert_eq!(told(&every), expected(&all));
    assert_eq!(told(&db.key_versions("b".."d", 100).unwrap()), expected(&all[2..5]));
    assert_eq!(told(&db.key_versions("b"..="d", 100).unwrap()), expected(&all[2..]));
    assert_eq!(told(&db.key_versions("a".., 3).unwrap()), expected(&all[..3]));
    let behind = (std::ops::Bound::Excluded("a"), std::ops::Bound::Included("b"));
    assert_eq!(told(&db.key_versions::<&str>(behind, 100).unwrap()), expected(&all[2..4]));
    assert_eq!(db.key_versions("x".."y", 100).unwrap(), []);
    assert_eq!(db.key_versions("b".."a", 100).unwrap_err().code(), Code::InvalidArgument);
}

/// What a range deletion hides is still there.
#[test]
fn a_deleted_range_hides_no_version() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put("a", "1").unwrap();
    db.delete_range("a".."b").unwrap();
    assert!(db.get("a").unwrap().is_none());
    let versions = db.key_versions("a".."b", 100).unwrap();
    assert_eq!(told(&versions), expected(&[("a", 1, ValueType::Value, "1")]));
    db.compact().unwrap();
    assert_eq!(db.key_versions("a".."b", 100).unwrap(), []);
}

#[test]
fn keys_have_their_timestamps() {
    use flagstone::base::timestamp::from_u64;
    let directory = temporary();
    let db = Db::builder(directory.path())
        .column_family("prices", |family| family.comparator = Comparator::BytewiseU64Ts)
        .open()
        .unwrap();
    let prices = db.column_family("prices").unwrap();
    prices.put_with_timestamp("bread", from_u64(1), "3").unwrap();
    prices.put_with_timestamp("bread", from_u64(2), "4").unwrap();
    prices.put_with_timestamp("milk", from_u64(2), "1").unwrap();
    let versions = prices.key_versions("bread"..="bread", 100).unwrap();
    let values: Vec<_> = versions.iter().map(|one| one.value.as_slice()).collect();
    assert_eq!(values, [b"4", b"3"]);
    assert_eq!(versions[1].key, [&b"bread"[..], &from_u64(1)].concat());
}
