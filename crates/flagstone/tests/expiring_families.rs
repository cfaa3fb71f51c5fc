//! Families whose values expire, as a program uses them, with a clock in hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use flagstone::{Code, Db, ReadOptions, Result, WriteBatch, WriteOptions};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.expect_err("a refusal").code()
}

/// The entries that an iteration returns until it ends, each as text.
fn texts(entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>) -> Vec<String> {
    entries
        .map(|entry| {
            let (key, value) = entry.expect("an entry");
            format!("{}={}", key.escape_ascii(), value.escape_ascii())
        })
        .collect()
}

/// A clock that a test sets. Threads sleep by that of the system.
#[derive(Debug, Default)]
struct Clock(AtomicU64);

impl flagstone::env::Clock for Clock {
    fn now_us(&self) -> u64 {
        self.unix_seconds() * 1_000_000
    }

    fn unix_seconds(&self) -> u64 {
        1_700_000_000 + self.0.load(Ordering::Relaxed)
    }

    fn sleep(&self, duration: Duration) {
        flagstone::Env::os().clock.sleep(duration);
    }
}

fn moment(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

/// Less than a second was for ever where it was a family's, and at once where it was a value's.
#[test]
fn a_time_to_live_is_rounded_up_to_whole_seconds() {
    let directory = temporary();
    let clock = Arc::new(Clock::default());
    let at = |seconds| clock.0.store(seconds, Ordering::Relaxed);
    let env = flagstone::Env { clock: clock.clone(), ..flagstone::Env::os() };
    let builder = || Db::builder(directory.path()).options(|options| options.env = env.clone());
    let short = Duration::from_millis(1);
    let db = builder().expiring_family("short", short, |_| {}).open().unwrap();
    let family = db.column_family("short").unwrap();
    assert_eq!(family.ttl(), Some(Duration::from_secs(1)));
    family.put("one", "second").unwrap();
    family.put_for("half", "a second", Duration::from_millis(500)).unwrap();
    family.put_for("more", "than two", Duration::from_millis(2001)).unwrap();
    let expiry = |key| family.get_with_expiry(key).unwrap().unwrap().expiry;
    assert_eq!(expiry("one"), Some(moment(2)));
    assert_eq!(expiry("half"), Some(moment(2)));
    assert_eq!(expiry("more"), Some(moment(4)));
    assert_eq!(code(family.put_for("none", "at all", Duration::ZERO)), Code::InvalidArgument);
    at(1);
    assert_eq!(texts(family.iter()), ["half=a second", "more=than two", "one=second"]);
    at(2);
    assert_eq!(texts(family.iter()), ["more=than two"]);

    let zero = db.create_expiring_family("zero", Duration::ZERO, |_| {});
    assert_eq!(code(zero), Code::InvalidArgument);
    let ever = db.create_expiring_family("ever", Duration::MAX, |_| {}).unwrap();
    ever.put("always", "here").unwrap();
    assert_eq!(ever.ttl(), None);
    assert_eq!(ever.get_with_expiry("always").unwrap().unwrap().expiry, None);
    drop((family, ever));
    db.close().unwrap();
    let builder = Db::builder(directory.path()).stored_options().unwrap();
    let db = builder.options(|options| options.env = env.clone()).open().unwrap();
    assert_eq!(texts(db.column_family("ever").unwrap().iter()), ["always=here"]);
}

/// Every kind of read takes the stamps off, and what has no place for one is refused.
fn check_single_reads(db: &Db, sessions: &flagstone::Family) {
    let found = sessions.get_with_expiry("ada").expect("a value").expect("a value");
    assert_eq!((&*found.value, found.expiry), (&b"1815"[..], Some(moment(3601))));
    assert_eq!(&*sessions.get_part("ada", 1..9).expect("a value").expect("a value").bytes, b"815");
    assert_eq!(texts(db.iter()), ["plain=always"]);
    let before = db.snapshot().family(sessions).expect("a value");
    assert_eq!(before.get("ada").expect("a value").expect("a value"), "1815");
    testkit::history::block_on(async {
        assert_eq!(sessions.get_async("ada").await.expect("a value").expect("a value"), "1815");
        let many = sessions.get_many_async(&["ada", "none"]).await.expect("a value");
        assert!(many[0].as_deref() == Some(b"1815") && many[1].is_none());
    });
    assert_eq!(code(sessions.put_in_pieces("film", &WriteOptions::new())), Code::NotSupported);
    assert_eq!(code(db.put_for("key", "value", Duration::from_secs(1))), Code::InvalidArgument);
}

#[test]
fn values_of_an_expiring_family_are_gone_in_time() {
    let directory = temporary();
    let clock = Arc::new(Clock::default());
    let at = |seconds| clock.0.store(seconds, Ordering::Relaxed);
    let env = flagstone::Env { clock: clock.clone(), ..flagstone::Env::os() };
    let builder = || Db::builder(directory.path()).options(|options| options.env = env.clone());
    let hour = Duration::from_secs(3600);
    let last = |family: &mut flagstone::ColumnFamilyOptions| {
        family.merge_with("last", |_, _, operands| Some(operands.last()?.to_vec()));
    };
    let db = builder().expiring_family("sessions", hour, last).open().unwrap();
    let sessions = db.column_family("sessions").unwrap();
    assert_eq!((sessions.ttl(), db.ttl()), (Some(hour), None));
    sessions.put("ada", "1815").unwrap();
    sessions.put_with("alan", "1912", &WriteOptions::synced()).unwrap();
    let synced = WriteOptions::synced();
    sessions.put_for_with("day", "24 hours", 24 * hour, &synced).unwrap();
    sessions.put_for("ever", "always", Duration::MAX).unwrap();
    sessions.merge("merged", "operand").unwrap();
    let mut batch = WriteBatch::new();
    batch.put_cf(&sessions, "batch", "hour").unwrap();
    batch.put("plain", "always").unwrap();
    let keys = [(&sessions, "batch")];
    db.write_if_unchanged(batch, &db.snapshot(), &keys).unwrap();

    let all = ["ada=1815", "alan=1912", "batch=hour", "day=24 hours", "ever=always"];
    let all: Vec<_> = all.into_iter().chain(["merged=operand"]).collect();
    assert_eq!(texts(sessions.iter()), all);
    assert_eq!(texts(sessions.range("b".."d").rev()), ["batch=hour"]);
    check_single_reads(&db, &sessions);
    db.close().unwrap();

    // Where it is not named, it expires all the same.
    at(3601);
    let db = Db::open_with_stored_options(directory.path());
    assert_eq!(code(db), Code::InvalidArgument, "the closure is not stored");
    let db = builder().options(|options| last(&mut options.cf)).open().unwrap();
    let sessions = db.column_family("sessions").unwrap();
    assert_eq!(texts(sessions.iter()), ["day=24 hours", "ever=always"]);
    assert!(!sessions.contains_key("merged").unwrap());
    let mut cursor = sessions.cursor(&ReadOptions::default()).unwrap();
    cursor.seek_to_first();
    assert_eq!(cursor.key(), b"day");
    assert_eq!(texts(db.iter()), ["plain=always"]);
    db.close().unwrap();

    let wrong = builder().column_family("sessions", last).open();
    assert_eq!(code(wrong), Code::InvalidArgument);
    let wrong = builder().expiring_family("default", hour, |_| {}).open();
    assert_eq!(code(wrong), Code::InvalidArgument);
    at(24 * 3600 + 1);
    let db = builder().expiring_family("sessions", hour, last).open().unwrap();
    let sessions = db.column_family("sessions").unwrap();
    assert_eq!(texts(sessions.iter()), ["ever=always"]);
    sessions.compact().unwrap();
    // One that lives for ever, and the operand, which becomes a value first.
    assert_eq!(sessions.int_property("rocksdb.estimate-num-keys"), Some(2));
    let other = db.create_expiring_family("other", hour, |_| {}).unwrap();
    other.put("key", "value").unwrap();
    assert_eq!(texts(other.iter()), ["key=value"]);
}

#[test]
fn where_values_expire_a_new_one_begins_when_the_old_one_is_gone() {
    let directory = temporary();
    let clock = Arc::new(Clock::default());
    let env = flagstone::Env { clock: clock.clone(), ..flagstone::Env::os() };
    let db = Db::builder(directory.path())
        .options(|options| options.env = env)
        .expiring_family("visits", Duration::from_secs(60), |_| {})
        .open()
        .unwrap();
    let visits = db.column_family("visits").unwrap();
    let add_one = |before: Option<&[u8]>| Some(vec![before.map_or(0, |visits| visits[0]) + 1]);
    let visit = || visits.update("ada", add_one).unwrap().unwrap()[0];
    assert_eq!((visit(), visit()), (1, 2));
    clock.0.store(60, Ordering::Relaxed);
    assert_eq!(visit(), 3);
    clock.0.store(120, Ordering::Relaxed);
    assert_eq!(visit(), 4, "its time began with the last visit");
    clock.0.store(181, Ordering::Relaxed);
    assert_eq!(visit(), 1);
}
