//! Keys that are changed to what follows from their values, while others write them, too.

use std::thread;
use std::time::Duration;

use flagstone::{Code, Db, Family, TransactionDb, TransactionDbOptions, WriteBatch, WriteOptions};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| value.try_into().map(u64::from_le_bytes).expect("a number"))
}

fn add_one(before: Option<&[u8]>) -> Option<Vec<u8>> {
    Some((number(before) + 1).to_le_bytes().to_vec())
}

/// Threads that each add one to the same key so many times.
fn count_together(families: &[&Family], times: u64) {
    thread::scope(|scope| {
        for family in families {
            scope.spawn(move || {
                for _ in 0..times {
                    family.update("count", add_one).expect("an update");
                }
            });
        }
    });
    assert_eq!(
        number(families[0].get("count").expect("a read").as_deref()),
        times * families.len() as u64
    );
}

#[test]
fn a_key_becomes_what_is_made_of_its_value() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    let film = vec![7; 100_000];
    assert_eq!(db.update("film", |before| before.map(<[u8]>::to_vec)).unwrap(), None);
    assert!(db.get("film").unwrap().is_none(), "there is nothing to delete, and nothing to put");
    db.update_with("film", &WriteOptions::synced(), |_| Some(film.clone())).unwrap();
    db.flush().unwrap();
    let longer = db.update("film", |before| Some([before.unwrap(), b"8"].concat())).unwrap();
    assert_eq!(longer.as_deref(), Some(&[&film[..], b"8"].concat()[..]));
    assert_eq!(db.get("film").unwrap().unwrap(), longer.unwrap());
    assert_eq!(db.update("film", |before| before.and(None)).unwrap(), None);
    assert!(db.get("film").unwrap().is_none());
}

#[test]
fn no_update_is_lost_with_or_without_locks() {
    let directory = temporary();
    let db = Db::open(directory.path().join("free")).unwrap();
    count_together(&[&*db; 4], 250);
    let db = TransactionDb::open(directory.path().join("locking")).unwrap();
    count_together(&[&**db; 4], 250);
    assert_eq!(db.locked_count(), 0);
}

#[test]
fn whoever_writes_the_key_meanwhile_is_seen() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .column_family("texts", |family| {
            family.set("merge_operator", "stringappend").expect("a merge operator");
        })
        .open()
        .unwrap();
    let texts = db.column_family("texts").unwrap();
    texts.put("poem", "a").unwrap();
    let mut seen = Vec::new();
    let poem = texts.update("poem", |before| {
        seen.push(before.map(|before| String::from_utf8_lossy(before).to_string()));
        match seen.len() {
            1 => texts.merge("poem", "b").expect("a merge"),
            2 => texts.delete_range("p".."q").expect("a deletion"),
            3 => {
                let mut batch = WriteBatch::new();
                batch.put_cf(&texts, "poem", "c").expect("a short key");
                db.write(batch).expect("a write");
            }
            4 => texts.put("another", "poem").expect("a put"),
            _ => panic!("nobody wrote it"),
        }
        Some([before.unwrap_or_default(), b"!"].concat())
    });
    assert_eq!(poem.unwrap().as_deref(), Some(&b"c!"[..]));
    assert_eq!(texts.get("poem").unwrap().unwrap(), "c!");
    let seen: Vec<_> = seen.iter().map(|text| text.as_deref()).collect();
    assert_eq!(seen, [Some("a"), Some("a,b"), None, Some("c")]);
}

#[test]
fn an_entity_is_not_replaced_by_a_value() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put_entity("ada", [("", "Ada"), ("born", "1815")]).unwrap();
    let error = db.update("ada", |_| panic!("it is not asked")).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    assert!(error.to_string().contains("'ada'"), "{error}");
    db.put_entity("ada", [("", "Ada")]).unwrap();
    db.update("ada", |before| Some(before.unwrap().to_ascii_uppercase())).unwrap();
    assert_eq!(db.get("ada").unwrap().unwrap(), "ADA");
}

#[test]
fn a_key_that_a_transaction_has_locked_is_waited_for() {
    let directory = temporary();
    let options = TransactionDbOptions {
        default_lock_timeout: Duration::ZERO,
        ..TransactionDbOptions::default()
    };
    let db = Db::builder(directory.path()).open_transaction_db(&options).unwrap();
    let mut transaction = db.begin();
    transaction.put(&db, "count", 7_u64.to_le_bytes()).unwrap();
    assert_eq!(db.update("count", add_one).unwrap_err().code(), Code::TimedOut);
    transaction.commit().unwrap();
    assert_eq!(db.update("count", add_one).unwrap(), Some(8_u64.to_le_bytes().to_vec()));
}
