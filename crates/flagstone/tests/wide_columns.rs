//! Entities: keys with several named columns.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[path = "common/columns.rs"]
mod columns;
mod common;

use std::sync::Arc;

use columns::{contents, text};
use common::{referee, temporary};
use flagstone::base::merge::StringAppendOperator;
use flagstone::{Code, Db, Family, MergeBase, MergeOperator, Merged, Options, WriteBatch};

fn open_with(path: &std::path::Path, operator: impl MergeOperator) -> Db {
    let set = |options: &mut Options| options.cf.merge_operator = Some(Arc::new(operator));
    Db::builder(path).options(set).open().expect("a database")
}

fn open(path: &std::path::Path) -> Db {
    open_with(path, StringAppendOperator::new(","))
}

/// The same contents from memory, from a table, from a compacted one and from another process's
/// files.
fn everywhere(db: Db, path: &std::path::Path, expected: &str) -> Db {
    assert_eq!(contents(&db), expected, "in memory");
    db.close().unwrap();
    drop(db);
    let db = open(path);
    assert_eq!(contents(&db), expected, "replayed");
    db.flush().unwrap();
    assert_eq!(contents(&db), expected, "flushed");
    db.compact_range::<&[u8]>(.., &Default::default()).unwrap();
    assert_eq!(contents(&db), expected, "compacted");
    db.close().unwrap();
    drop(db);
    let db = open(path);
    assert_eq!(contents(&db), expected, "opened again");
    assert!(db.verify(|_| {}).faults.is_empty());
    db
}

#[test]
fn columns_are_read_in_every_way() {
    let directory = temporary();
    let db = open(directory.path());
    db.put_entity("ada", [("name", "Ada"), ("born", "1815"), ("", "countess")]).unwrap();
    db.put("blob", [b'b'; 5000]).unwrap();
    db.put_entity("empty", std::iter::empty::<(&str, &str)>()).unwrap();
    db.put_entity("large", [("film", vec![7; 100_000]), ("name", b"x".to_vec())]).unwrap();
    db.put_entity("nameless", [("", "v")]).unwrap();
    db.put("plain", "value").unwrap();
    let expected = "ada: =countess born=1815 name=Ada\n\
                    blob: =5000 bytes\n\
                    empty: \n\
                    large: film=100000 bytes name=x\n\
                    nameless: =v\n\
                    plain: =value";
    let db = everywhere(db, directory.path(), expected);
    assert_eq!(db.get_entity("nobody").unwrap(), None);
    assert_eq!(db.get_entity("ada").unwrap().unwrap().get("name"), Some(&b"Ada"[..]));

    let before = db.snapshot();
    db.delete("ada").unwrap();
    db.put_entity("plain", [("now", "an entity")]).unwrap();
    assert_eq!(contents(&before), expected);
    assert_eq!(db.get_entity("ada").unwrap(), None);
    assert_eq!(text(&db.get_entity("plain").unwrap().unwrap()), "now=an entity");
}

#[test]
fn merges_change_the_default_column_and_keep_the_others() {
    let directory = temporary();
    let db = open(directory.path());
    db.put_entity("a", [("", "1"), ("c", "kept")]).unwrap();
    db.put_entity("b", [("c", "kept")]).unwrap();
    db.put_entity("deep", [("", "1"), ("c", "kept")]).unwrap();
    db.flush().unwrap();
    db.merge("deep", "2").unwrap();
    db.merge("deep", "3").unwrap();
    db.merge("a", "2").unwrap();
    db.merge("b", "2").unwrap();
    db.merge("fresh", "1").unwrap();
    let expected = "a: =1,2 c=kept\n\
                    b: =,2 c=kept\n\
                    deep: =1,2,3 c=kept\n\
                    fresh: =1";
    everywhere(db, directory.path(), expected);
}

/// Counts in every operand's own column: `name+1`.
struct CountColumns;

impl MergeOperator for CountColumns {
    fn name(&self) -> &str {
        "CountColumns"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
        unreachable!("it merges columns")
    }

    fn merges_columns(&self) -> bool {
        true
    }

    fn full_merge_columns(
        &self,
        _key: &[u8],
        existing: MergeBase<'_>,
        operands: &[&[u8]],
    ) -> Option<Merged> {
        let mut columns = match existing {
            MergeBase::Nothing => Vec::new(),
            MergeBase::Value(value) => vec![(b"was".to_vec(), value.to_vec())],
            MergeBase::Columns(columns) => columns.to_vec(),
        };
        for operand in operands {
            if **operand == *b"value" {
                return Some(Merged::Value(b"plain".to_vec()));
            }
            if operand.is_empty() {
                return None;
            }
            match columns.iter_mut().find(|(name, _)| name == operand) {
                Some((_, count)) => count.push(b'+'),
                None => columns.insert(0, (operand.to_vec(), b"+".to_vec())),
            }
        }
        Some(Merged::Columns(columns))
    }
}

#[test]
fn an_operator_may_merge_all_columns() {
    let directory = temporary();
    let db = open_with(directory.path(), CountColumns);
    db.put_entity("entity", [("x", "+"), ("z", "z")]).unwrap();
    db.put("value", "v").unwrap();
    db.put_entity("was", [("x", "+")]).unwrap();
    db.flush().unwrap();
    for operand in ["x", "a", "x"] {
        ["entity", "nothing", "value"].iter().for_each(|key| db.merge(key, operand).unwrap());
    }
    db.merge("was", "value").unwrap();
    let expected = "entity: a=+ x=+++ z=z\nnothing: a=+ x=++\nvalue: a=+ was=v x=++\nwas: =plain";
    assert_eq!(contents(&db), expected);
    db.flush().unwrap();
    assert_eq!(contents(&db), expected);
    db.compact_range::<&[u8]>(.., &Default::default()).unwrap();
    assert_eq!(contents(&db), expected);
    assert_eq!(db.get("was").unwrap().unwrap(), "plain");

    let mut transaction = db.begin();
    transaction.merge(&db, "entity", "x").unwrap();
    transaction.merge(&db, "value", "was").unwrap();
    let view = transaction.family(&db).unwrap();
    let changed = expected.replace("x=+++ z", "x=++++ z").replace("was=v x", "was=v+ x");
    assert_eq!(contents(&view), changed);
    transaction.commit().unwrap();
    assert_eq!(contents(&db), changed);

    db.merge("was", "").unwrap();
    assert_eq!(db.get_entity("was").unwrap_err().code(), Code::Corruption);
}

#[test]
fn a_transaction_sees_its_entities() {
    let directory = temporary();
    let db = open(directory.path());
    db.put_entity("below", [("", "1"), ("c", "below")]).unwrap();
    db.put_entity("deleted", [("c", "below")]).unwrap();
    db.put("value", "1").unwrap();
    let mut transaction = db.begin();
    transaction.put_entity(&db, "own", [("", "1"), ("c", "own")]).unwrap();
    transaction.merge(&db, "own", "2").unwrap();
    transaction.merge(&db, "below", "2").unwrap();
    transaction.put_entity_untracked(&db, "value", [("now", "an entity")]).unwrap();
    transaction.delete(&db, "deleted").unwrap();
    let expected = "below: =1,2 c=below\nown: =1,2 c=own\nvalue: now=an entity";
    assert_eq!(contents(&transaction.family(&db).unwrap()), expected);
    let own = transaction.get_entity(&db, "own").unwrap().unwrap();
    assert_eq!(text(&own), "=1,2 c=own");
    let below = transaction.get_entity_for_update(&db, "below").unwrap().unwrap();
    assert_eq!(text(&below), "=1,2 c=below");
    assert_eq!(contents(&db), "below: =1 c=below\ndeleted: c=below\nvalue: =1");
    transaction.commit().unwrap();
    everywhere(db, directory.path(), expected);
}

#[test]
fn what_cannot_be_an_entity_is_refused() {
    let directory = temporary();
    let hour = std::time::Duration::from_secs(3600);
    let db = Db::builder(directory.path()).expiring_family("late", hour, |_| {}).open().unwrap();
    let late = db.column_family("late").unwrap();
    let twice = [("a", "1"), ("a", "2")];
    let refusals = [
        (db.put_entity("key", twice), Code::InvalidArgument),
        (WriteBatch::new().put_entity("key", twice), Code::InvalidArgument),
        (late.put_entity("key", [("a", "1")]), Code::NotSupported),
        (late.get_entity("key").map(drop), Code::NotSupported),
        (late.get_many_entities(&["key"]).map(drop), Code::NotSupported),
    ];
    for (refused, code) in refusals {
        assert_eq!(refused.unwrap_err().code(), code);
    }
    assert_eq!(db.get_entity("key").unwrap(), None);
}

/// RocksDB 7.8 shows an entity's default column in a scan, and the type in its dumps.
#[test]
fn rocksdb_reads_entities() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path();
    let db = open(path);
    let people = db.create_column_family("people", |_| {}).unwrap();
    let fill = |family: &Family, from: &str| {
        family.put_entity("ada", [("", "countess"), ("born", "1815")]).unwrap();
        family.put_entity("alan", [("born", "1912")]).unwrap();
        family.put("plain", from).unwrap();
    };
    fill(&db, "default");
    fill(&people, "people");
    people.flush().unwrap();
    db.close().unwrap();
    drop(db);
    // Keys and default columns, in hexadecimal.
    for (family, plain) in [("default", "64656661756c74"), ("people", "70656f706c65")] {
        let [ada, alan] = ["616461 636f756e74657373", "616c616e "];
        let expected = format!("{family} {ada}\n{family} {alan}\n{family} 706c61696e {plain}\n");
        assert_eq!(referee.scan(path, family), expected);
    }
    referee.ldb(path, &["compact", "--try_load_options", "--column_family=people"]);
    referee.verify_tables(path);
    let db = open(path);
    let people = db.column_family("people").unwrap();
    let expected = "ada: =countess born=1815\nalan: born=1912\nplain: =people";
    assert_eq!(contents(&people), expected);
}

#[test]
fn the_columns_of_a_key_may_lie_in_several_families() {
    let directory = temporary();
    let db = open(directory.path());
    let [life, work] = ["life", "work"].map(|name| db.create_column_family(name, |_| {}).unwrap());
    let reversed = db
        .create_column_family("reversed", |family| {
            family.comparator = flagstone::Comparator::ReverseBytewise;
        })
        .unwrap();
    db.put_attribute_groups("ada", [(&life, [("born", "1815")]), (&work, [("field", "maths")])])
        .unwrap();
    db.put_attribute_groups("both", [(&life, [("same", "life")]), (&work, [("same", "work")])])
        .unwrap();
    life.put("plain", "value").unwrap();
    work.put_entity("turing", [("field", "logic")]).unwrap();
    let found = db.get_attribute_groups("turing", &[&life, &work]).unwrap();
    assert_eq!((found[0].as_ref(), text(found[1].as_ref().unwrap())), (None, "field=logic".into()));

    let families = [&life, &work];
    let mut cursor = db.cursor_of_families(&families, &Default::default()).unwrap();
    work.put("later", "unseen").unwrap();
    let expected = ["ada: born=1815 field=maths", "both: same=work", "plain: =value"];
    let expected: Vec<_> = expected.into_iter().chain(["turing: field=logic"]).collect();
    let line = |cursor: &mut flagstone::FamiliesCursor| {
        let columns = cursor.columns().unwrap();
        format!("{}: {}", cursor.key().escape_ascii(), text(&columns))
    };
    cursor.seek_to_first();
    for forth in &expected {
        assert_eq!(line(&mut cursor), *forth);
        cursor.next();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last();
    for back in expected.iter().rev() {
        assert_eq!(line(&mut cursor), *back);
        cursor.prev();
    }
    cursor.status().unwrap();
    cursor.seek("b");
    assert_eq!(line(&mut cursor), expected[1]);
    cursor.prev();
    assert_eq!(line(&mut cursor), expected[0]);
    cursor.next();
    assert_eq!(line(&mut cursor), expected[1]);
    let groups = cursor.attribute_groups().unwrap();
    let groups: Vec<_> =
        groups.iter().map(|(family, columns)| (family.name(), text(columns))).collect();
    assert_eq!(groups, [("life", "same=life".to_string()), ("work", "same=work".to_string())]);

    let mut transaction = db.begin();
    transaction.put_entity(&life, "turing", [("born", "1912")]).unwrap();
    let mut cursor = transaction.cursor_of_families(&families, &Default::default()).unwrap();
    cursor.seek_for_prev("z");
    assert_eq!(line(&mut cursor), "turing: born=1912 field=logic");

    let none = db.cursor_of_families(&[], &Default::default()).map(drop).unwrap_err();
    let other = db.cursor_of_families(&[&life, &reversed], &Default::default());
    let nothing = std::iter::empty::<(&Family, [(&str, &str); 1])>();
    for refused in
        [none, other.map(drop).unwrap_err(), db.put_attribute_groups("k", nothing).unwrap_err()]
    {
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
}
