//! What is a conflict: a key that was written after a transaction tracked it, wherever the write
//! has got to when the transaction commits.

use flagstone::env::Env;
use flagstone::{Code, Db, FlushOptions, Result, Transaction};

use crate::steps;

type Change = fn(&Db, &str) -> Result<()>;
type Track = fn(&Db, &mut Transaction, &str) -> Result<()>;
type Move = fn(&Db);
type Way = (&'static str, Track, bool);
type Place = (&'static str, Move);

/// How another writes a key.
const CHANGES: [(&str, Change); 5] = [
    ("put", |db, key| db.put(key, "2")),
    ("merge", |db, key| db.merge(key, "2")),
    ("delete", |db, key| db.delete(key)),
    ("single delete", |db, key| db.single_delete(key)),
    ("range deletion", |db, key| db.delete_range(key.to_string()..format!("{key}+"))),
];

/// How a transaction comes to track a key; where the last word is `false`, it does not.
const WAYS: [Way; 8] = [
    ("read for update", |db, it, key| it.get_for_update(db, key).map(drop), true),
    ("put", |db, it, key| it.put(db, key, "3"), true),
    ("merge", |db, it, key| it.merge(db, key, "3"), true),
    ("delete", |db, it, key| it.delete(db, key), true),
    (
        "read in a snapshot",
        |db, it, key| {
            it.set_snapshot();
            it.get_for_update(db, key).map(drop)
        },
        true,
    ),
    (
        "read, and changed behind a save point that is taken back",
        |db, it, key| {
            it.get_for_update(db, key)?;
            it.set_save_point();
            it.put(db, key, "3")?;
            it.rollback_to_save_point()
        },
        true,
    ),
    (
        "read behind a save point that is taken back",
        |db, it, key| {
            it.set_save_point();
            it.get_for_update(db, key)?;
            it.rollback_to_save_point()
        },
        false,
    ),
    ("plain read", |db, it, key| it.get(db, key).map(drop), false),
];

/// Where the writes are when the transactions commit.
const PLACES: [Place; 4] = [
    ("the memtable", |_| {}),
    ("an immutable memtable", |db| {
        let options = FlushOptions { wait: false, ..FlushOptions::default() };
        db.flush_with(&options).expect("a memtable is sealed");
    }),
    ("level 0", |db| db.flush().expect("a flush")),
    ("the bottom", |db| {
        db.flush().expect("a flush");
        db.compact().expect("a compaction");
    }),
];

/// Each write is met by transactions that track its key in each way and commit when it is in each
/// place; others stand beside it, and commit.
///
/// # Panics
/// If a conflict is missed, or seen where there is none.
pub fn conflicts() {
    let lives = PLACES.iter().flat_map(|place| WAYS.iter().map(move |way| (place, way)));
    // Transactions that track keys in another way may keep what these must keep themselves.
    for (number, (place, way)) in (0..).zip(lives) {
        live(number, place, way);
    }
}

fn live(number: u64, (place, move_there): &Place, (way, track, is_tracked): &Way) {
    let env = steps::world(Env::memory().fs, number);
    let opened = Db::builder("/db").options(|options| {
        options.env = env;
        options.cf.merge_with("last", |_, _, operands| operands.last().map(|it| it.to_vec()));
    });
    let db = opened.open().expect("a new database");
    let when = ["before", "meanwhile", "never"];
    for (change, _) in CHANGES {
        for when in when {
            db.put(format!("{change} {when}"), "1").expect("a write");
        }
    }
    db.flush().expect("a flush");
    db.compact().expect("a compaction");
    let begin = |key: &str| {
        let mut transaction = db.begin();
        track(&db, &mut transaction, key).expect("a step of a transaction");
        transaction.put(&db, format!("{key}, written"), "3").expect("a change");
        transaction
    };
    let mut begun = Vec::new();
    for (change, write) in CHANGES {
        let [before, meanwhile, never] = when.map(|when| format!("{change} {when}"));
        // The last write before a transaction is none of its conflicts, and the first one after it
        // is one.
        write(&db, &before).expect("a write");
        let (earlier, changed, unchanged) = (begin(&before), begin(&meanwhile), begin(&never));
        write(&db, &meanwhile).expect("a write");
        begun.push((meanwhile, changed, *is_tracked));
        begun.push((before, earlier, false));
        begun.push((never, unchanged, false));
    }
    move_there(&db);
    for (key, transaction, is_conflict) in begun {
        check(&db, &format!("{way}, {key}, in {place}"), &key, transaction, is_conflict);
    }
    db.close().expect("a clean close");
}

fn check(db: &Db, what: &str, key: &str, mut transaction: Transaction, is_conflict: bool) {
    let written = || db.get(format!("{key}, written")).expect("a read").is_some();
    match transaction.commit() {
        Ok(()) => {
            assert!(!is_conflict, "a conflict is missed: {what}");
            assert!(written(), "a commit writes: {what}");
        }
        Err(error) => {
            assert_eq!(error.code(), Code::Busy, "{what}: {error}");
            assert!(is_conflict, "a conflict is seen where there is none: {what}: {error}");
            assert!(!written(), "nothing is written after a conflict: {what}");
        }
    }
}
