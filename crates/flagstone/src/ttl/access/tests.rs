use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::base::merge::StringAppendOperator;
use crate::base::sync::Mutex;
use crate::batch::WriteBatch;
use crate::env::{Clock, Env};
use crate::options::{CompactFilesOptions, Options, ReadOptions, WriteOptions};
use crate::ttl::{TtlDb, TtlOptions};

/// Stands until it is turned; tells when somebody has looked at it.
struct Hands {
    seconds: AtomicU64,
    watcher: Mutex<Option<Sender<()>>>,
}

impl Clock for Hands {
    fn now_us(&self) -> u64 {
        self.seconds.load(Ordering::Relaxed) * 1_000_000
    }

    fn unix_seconds(&self) -> u64 {
        let now = self.seconds.load(Ordering::Relaxed);
        if std::thread::current().name() == Some("merging")
            && let Some(watcher) = self.watcher.lock().take()
        {
            watcher.send(()).unwrap();
        }
        now
    }

    fn sleep(&self, duration: Duration) {
        self.seconds.fetch_add(duration.as_secs(), Ordering::Relaxed);
    }
}

/// Went wrong: an operand that was given its time while the value lived, and then had to wait, came
/// too late: a compaction that began meanwhile dropped the value for its age. Readers saw them
/// together until that compaction was over.
#[test]
fn an_operand_finds_what_lived_when_it_was_stamped_however_long_its_write_waits() {
    let hands =
        Arc::new(Hands { seconds: AtomicU64::new(1_700_000_000), watcher: Mutex::default() });
    let mut options =
        Options { env: Env { clock: hands.clone(), ..Env::memory() }, ..Options::default() };
    options.create_if_missing = true;
    options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family();
    db.put("key", "base").unwrap();
    db.put("other", "base").unwrap();
    db.base().flush_all().unwrap();
    let tables: Vec<_> = db.base().live_files().iter().map(|file| file.number).collect();
    hands.sleep(Duration::from_secs(60));
    let (watcher, looked) = channel();
    *hands.watcher.lock() = Some(watcher);
    std::thread::scope(|scope| {
        let held = db.base().hold_writes();
        let merging = std::thread::Builder::new().name("merging".to_string());
        merging.spawn_scoped(scope, || db.merge_cf(family, "key", "more").unwrap()).unwrap();
        looked.recv().unwrap();
        hands.sleep(Duration::from_secs(1));
        let compact = || {
            db.base().compact_files(family, &tables, 6, &CompactFilesOptions::default()).unwrap()
        };
        // In a thread of its own: this one holds the writers up.
        scope.spawn(compact).join().unwrap();
        drop(held);
    });
    assert_eq!(db.get("key").unwrap().unwrap(), "base,more");
    let tables: Vec<_> = db.base().live_files().iter().map(|file| file.number).collect();
    db.base().compact_files(family, &tables, 6, &CompactFilesOptions::default()).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "base,more");
    assert!(db.base().get("other").unwrap().is_none(), "nothing is under way any longer");
}

/// Each value was stamped, and judged, by the clock when its turn came: of those of one batch some
/// had expired and some had not.
#[test]
fn values_that_are_read_together_expire_together() {
    let hurrying = Arc::new(Hurrying(AtomicU64::new(1_700_000_000_000)));
    let env = Env { clock: hurrying.clone(), ..Env::memory() };
    let mut options = Options { env, ..Options::default() };
    options.create_if_missing = true;
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family();
    let mut batch = WriteBatch::new();
    let keys: Vec<String> = (0..10).map(|key| format!("key{key}")).collect();
    keys.iter().for_each(|key| batch.put(key.as_bytes(), b"value").unwrap());
    db.write_with(&WriteOptions::default(), &batch).unwrap();
    let (mut lived, mut expired) = (0, 0);
    while expired < 3 {
        let values = db.multi_get_with(&ReadOptions::default(), family, &keys);
        let found = values.into_iter().filter(|value| value.as_ref().unwrap().is_some()).count();
        match found {
            10 => lived += 1,
            0 => expired += 1,
            some => panic!("{some} of them"),
        }
    }
    assert!(lived > 0);
}

/// A clock by which a tenth of a second passes whenever somebody looks at it.
struct Hurrying(AtomicU64);

impl Clock for Hurrying {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed) * 1000
    }

    fn unix_seconds(&self) -> u64 {
        self.0.fetch_add(100, Ordering::Relaxed) / 1000
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_millis() as u64, Ordering::Relaxed);
    }
}

#[test]
fn a_value_that_was_found_is_shown_until_the_cursor_moves() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = TtlDb::open("/db", &options, TtlOptions::default()).unwrap();
    db.put("a", "1").unwrap();
    let mut cursor = db.iter(&ReadOptions::default()).unwrap();
    assert_eq!(cursor.found_value(), None);
    cursor.seek("a");
    assert_eq!(cursor.value().unwrap(), b"1");
    assert_eq!(cursor.found_value(), Some(&b"1"[..]));
    cursor.next();
    assert_eq!(cursor.found_value(), None);
    db.put("b", "2").unwrap();
    cursor.refresh().unwrap();
    cursor.seek("b");
    assert_eq!(cursor.value().unwrap(), b"2");
    assert_eq!(cursor.found_value(), Some(&b"2"[..]));
}
