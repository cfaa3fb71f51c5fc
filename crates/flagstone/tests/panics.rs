//! A comparator of the application that panics, at one call after the other of what a thread does:
//! nothing is left half done, and nobody waits for what will not come. Where a compaction that
//! somebody had asked for was to become part of the tree, its inputs stayed marked: the next one
//! waited for them for ever, and so did closing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, ThreadId};
use std::time::Duration;

use flagstone::base::{Comparator, UserComparator};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{CompactRangeOptions, Options, ReadOptions};
use parking_lot::Mutex;
use testkit::{compare, settings};

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

/// The order of bytes; comparisons are counted, and one of them panics.
#[derive(Default)]
struct Armed(Mutex<Option<Count>>);

/// Whose comparisons count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    OfCaller,
    OfWorkers,
}

struct Count {
    caller: ThreadId,
    whose: Whose,
    calls: usize,
    panics_at: usize,
}

impl Armed {
    /// Does some work, of which one comparison panics; how many there were.
    fn during(&self, whose: Whose, panics_at: usize, work: impl FnOnce()) -> usize {
        *self.0.lock() = Some(Count { caller: thread::current().id(), whose, calls: 0, panics_at });
        let _ = catch_unwind(AssertUnwindSafe(work));
        self.0.lock().take().unwrap().calls
    }
}

impl UserComparator for Armed {
    fn name(&self) -> &str {
        "Armed"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let mut count = self.0.lock();
        let counts = |count: &&mut Count| {
            (count.whose == Whose::OfCaller) == (count.caller == thread::current().id())
        };
        if let Some(count) = count.as_mut().filter(counts) {
            count.calls += 1;
            if count.calls == count.panics_at {
                resume_unwind(Box::new("a fault of the application's comparator"));
            }
        }
        drop(count);
        a.cmp(b)
    }
}

/// A database of some tables in two levels, and a memtable.
fn world(order: &Arc<Armed>) -> (Options, Db) {
    let mut options = settings::tiny(&Env::memory());
    settings::set(
        &mut options,
        &[("disable_auto_compactions", "true"), ("background_niceness", "0")],
    );
    options.cf.comparator = Comparator::Custom(order.clone());
    let db = Db::open("/db", &options).unwrap();
    for round in 0..3 {
        (0..9).for_each(|n| db.put(format!("key {n}"), format!("{round}")).unwrap());
        db.flush_all().unwrap();
        if round == 0 {
            db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
        }
    }
    (0..3).for_each(|n| db.put(format!("key {n}"), "last").unwrap());
    (options, db)
}

/// Does something in a thread that is to come to an end.
fn ends(what: &str, db: &Db, work: impl FnOnce(&Db) + Send + 'static) {
    let ((sender, done), db) = (channel(), db.clone());
    let work = move || {
        work(&db);
        let _ = sender.send(());
    };
    Env::os().spawner.spawn("ends", Box::new(work)).unwrap();
    done.recv_timeout(TOO_LONG).unwrap_or_else(|_| panic!("{what} has not ended in a minute"));
}

/// Has `act`, or what workers do for it, panic at each of the comparisons, one after the other; of
/// many, at the first and last, and some between.
fn panics_everywhere(whose: Whose, act: impl Fn(&Db)) {
    let order = Arc::<Armed>::default();
    let all = {
        let (_, db) = world(&order);
        order.during(whose, usize::MAX, || act(&db))
    };
    assert!(all >= 10, "{all} comparisons");
    let chosen = (1..=all).filter(|n| *n <= 30 || all - n < 60 || n.is_multiple_of(11));
    for panics_at in chosen {
        let (options, db) = world(&order);
        order.during(whose, panics_at, || act(&db));
        ends(&format!("work after comparison {panics_at} of {all}"), &db, |db| {
            // Both may be refused.
            let _ = db.compact_range(db.default_column_family(), None, None, &Default::default());
            let _ = db.wait_for_compactions();
        });
        ends(&format!("closing after comparison {panics_at} of {all}"), &db, |db| _ = db.close());
        drop(db);
        let db = Db::open("/db", &options).unwrap();
        let found =
            compare::scan(&db, db.default_column_family(), &ReadOptions::default()).unwrap();
        let written = db.get("a").unwrap().is_some();
        assert_eq!(
            found.len(),
            if written { 11 } else { 9 },
            "comparison {panics_at} of {all}: {found:?}"
        );
        let of_keys = found.iter().filter(|(key, _)| key.starts_with(b"key"));
        for (at, (key, value)) in of_keys.enumerate() {
            let expected: &[u8] = if at < 3 { b"last" } else { b"2" };
            assert!(value == expected, "comparison {panics_at} of {all}: {}", key.escape_ascii());
        }
    }
}

#[test]
fn in_a_write() {
    panics_everywhere(Whose::OfCaller, |db| {
        let mut batch = WriteBatch::new();
        batch.put(b"a", b"a").unwrap();
        batch.delete_range(b"b", b"c").unwrap();
        batch.put(b"z", b"z").unwrap();
        (0..9).for_each(|n| batch.delete(format!("none {n}")).unwrap());
        let _ = db.write(batch);
    });
}

#[test]
fn in_a_compaction() {
    panics_everywhere(Whose::OfCaller, |db| {
        let _ = db.compact_range(db.default_column_family(), None, None, &Default::default());
    });
}

#[test]
fn in_a_compaction_that_keeps_others_away_and_changes_the_level() {
    let options = CompactRangeOptions {
        exclusive_manual_compaction: true,
        change_level: true,
        target_level: 2,
        ..CompactRangeOptions::default()
    };
    panics_everywhere(Whose::OfCaller, |db| {
        let family = db.default_column_family();
        let _ = db.compact_range(family, Some(b"key 2"), Some(b"key 7"), &options);
    });
}

#[test]
fn in_a_compaction_of_chosen_tables() {
    panics_everywhere(Whose::OfCaller, |db| {
        let files = db.live_files();
        let deepest = files.iter().filter_map(|file| file.level).max().unwrap();
        let tables: Vec<_> = files.iter().map(|file| file.number).collect();
        let _ = db.compact_files(db.default_column_family(), &tables, deepest, &Default::default());
    });
}

#[test]
fn in_a_flush() {
    panics_everywhere(Whose::OfWorkers, |db| {
        db.delete_range("b", "c").unwrap();
        let _ = db.flush_all();
    });
}
