use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::{Condvar, Mutex};

use super::*;
use crate::db::statistics::Ticker;
use crate::env::{Env, Join, Spawn};
use crate::options::Options;

/// Threads for all but the engine's readers: those begin when they are let.
struct HeldReaders {
    system: Arc<dyn Spawn>,
    held: Arc<(Mutex<bool>, Condvar)>,
}

impl Spawn for HeldReaders {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        if name != "flagstone-read" {
            return self.system.spawn(name, work);
        }
        let held = self.held.clone();
        let wait = move || {
            let mut is_held = held.0.lock();
            while *is_held {
                held.1.wait(&mut is_held);
            }
            drop(is_held);
            work();
        };
        self.system.spawn(name, Box::new(wait))
    }
}

/// A database with 2000 keys in tables, reopened so that nothing of them is in memory.
struct World {
    db: Db,
    held: Arc<(Mutex<bool>, Condvar)>,
}

const KEYS: usize = 2000;

fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

impl World {
    /// Whose readers do not begin yet.
    fn cold() -> Self {
        Self::cold_with(&[])
    }

    fn cold_with(settings: &[(&str, &str)]) -> Self {
        let held = Arc::new((Mutex::new(true), Condvar::new()));
        let memory = Env::memory();
        let spawner = Arc::new(HeldReaders { system: memory.spawner.clone(), held: held.clone() });
        let mut options = Options { env: Env { spawner, ..memory }, ..Options::default() };
        options.create_if_missing = true;
        // The tables of a compaction that ends in the middle of a test are not in memory.
        options.set("disable_auto_compactions", "true").unwrap();
        settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        let db = Db::open("/db", &options).unwrap();
        for number in 0..KEYS {
            db.put(key(number), [b'v'; 100]).unwrap();
            if number % 500 == 499 {
                db.flush_all().unwrap();
            }
        }
        db.close().unwrap();
        drop(db);
        Self { db: Db::open("/db", &options).unwrap(), held }
    }

    fn let_readers_begin(&self) {
        *self.held.0.lock() = false;
        self.held.1.notify_all();
    }

    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>>> + Send + use<> {
        self.db.get_async(&ReadOptions::default(), self.db.default_column_family(), key)
    }

    #[track_caller]
    fn iter(&self) -> AsyncIter {
        self.db.iter_async(self.db.default_column_family(), &ReadOptions::default())
    }
}

/// The smallest executor: a task that is woken unparks its thread.
struct Unpark(std::thread::Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let task = Arc::new(Unpark(std::thread::current(), AtomicUsize::new(0)));
    let (waker, mut future) = (Waker::from(task), pin!(future));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

#[test]
fn what_is_in_memory_is_answered_at_the_first_poll() {
    let world = World::cold();
    world.db.put("new", "in the memtable").unwrap();
    assert_eq!(poll_once(pin!(world.get(b"new"))).unwrap().unwrap().unwrap(), "in the memtable");
    // Somebody else reads a block: from then on it is in memory.
    assert!(poll_once(pin!(world.get(&key(700)))).is_none());
    world.db.get(key(700)).unwrap().unwrap();
    assert_eq!(poll_once(pin!(world.get(&key(700)))).unwrap().unwrap().unwrap(), [b'v'; 100]);
    let both = vec![b"new".to_vec(), key(700)];
    let read = ReadOptions::default();
    let values = world.db.multi_get_async(&read, world.db.default_column_family(), both);
    assert!(poll_once(pin!(values)).unwrap().into_iter().all(|value| value.unwrap().is_some()));
}

#[test]
fn what_is_on_the_disk_wakes_the_task() {
    let world = World::cold();
    let task = Arc::new(Unpark(std::thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(task.clone());
    let mut first = pin!(world.get(&key(3)));
    assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // The task of the last poll counts.
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(task.1.load(Ordering::SeqCst), 0);
    world.let_readers_begin();
    assert_eq!(block_on(first).unwrap().unwrap(), [b'v'; 100]);
    let numbers = (0..KEYS + 10).rev();
    let keys: Vec<Vec<u8>> = numbers.clone().map(key).collect();
    let values = block_on(world.db.multi_get_async(
        &ReadOptions::default(),
        world.db.default_column_family(),
        keys,
    ));
    for (number, value) in numbers.zip(values) {
        assert_eq!(value.unwrap().is_some(), number < KEYS, "{number}");
    }
    // Once each, although some were asked for twice.
    assert_eq!(world.db.statistics().get(Ticker::KeysRead), 1 + KEYS as u64 + 10);
}

#[test]
fn many_reads_are_under_way_at_a_time() {
    let world = World::cold();
    let mut reads: Vec<_> = (0..100).map(|number| Box::pin(world.get(&key(number * 20)))).collect();
    assert!(reads.iter_mut().all(|read| poll_once(read.as_mut()).is_none()));
    world.let_readers_begin();
    for read in reads.into_iter().rev() {
        assert!(block_on(read).unwrap().is_some());
    }
}

#[test]
fn a_dropped_future_leaves_nothing_behind() {
    let world = World::cold();
    let inner = Arc::downgrade(world.db.inner());
    let unpolled = world.get(&key(1));
    drop(unpolled);
    let mut polled = Box::pin(world.get(&key(1)));
    assert!(poll_once(polled.as_mut()).is_none());
    drop(polled);
    let mut batch = world.iter();
    let mut next = Box::pin(batch.next_batch(10));
    assert!(poll_once(next.as_mut()).is_none());
    drop(next);
    world.let_readers_begin();
    // The batch that was given up is not missing.
    assert_eq!(block_on(batch.next_batch(10)).unwrap()[0].0, key(0));
    drop(batch);
    // What was still queued when the owner let go is the last to hold the engine.
    let World { db, .. } = world;
    drop(db);
    while inner.strong_count() > 0 {
        std::hint::spin_loop();
    }
}

#[test]
fn an_iterator_shows_what_an_ordinary_one_does() {
    let world = World::cold();
    world.let_readers_begin();
    let mut entries = world.iter();
    // A snapshot: what comes later is not seen, and what goes is.
    world.db.put("key00000a", "later").unwrap();
    world.db.delete(key(1234)).unwrap();
    let mut seen = Vec::new();
    loop {
        let batch = block_on(entries.next_batch(77)).unwrap();
        assert!(batch.len() <= 77);
        if batch.is_empty() {
            break;
        }
        seen.extend(batch.into_iter().map(|(key, _)| key));
    }
    assert!(seen.into_iter().eq((0..KEYS).map(key)));
    assert!(block_on(entries.next_batch(1)).unwrap().is_empty());
    // Now it is all in memory.
    entries.seek(&key(1990));
    let rest = poll_once(pin!(entries.next_batch(100))).unwrap().unwrap();
    assert!(rest.into_iter().map(|(key, _)| key).eq((1990..KEYS).map(key)));
    let bounds = ReadOptions {
        iterate_lower_bound: Some(key(5)),
        iterate_upper_bound: Some(key(7)),
        ..ReadOptions::default()
    };
    let mut entries = world.db.iter_async(world.db.default_column_family(), &bounds);
    let within = block_on(entries.next_batch(100)).unwrap();
    assert_eq!(within.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), [key(5), key(6)]);
}

/// The cursor that went on stayed in the prefix of the last key, which the first had not done: the
/// rest was missing.
#[test]
fn a_scan_goes_on_as_it_began_when_its_cursor_is_given_up() {
    let world = World::cold_with(&[("prefix_extractor", "fixed:6")]);
    world.let_readers_begin();
    // Too short for a prefix: a scan that begins there goes through all keys, and so does one from
    // the first key then.
    world.db.put("k", "short").unwrap();
    let count = |read: &ReadOptions, target: Option<&[u8]>| {
        let mut entries = world.db.iter_async(world.db.default_column_family(), read);
        target.into_iter().for_each(|target| entries.seek(target));
        let sizes = std::iter::from_fn(|| {
            let batch = block_on(entries.next_batch(30)).unwrap();
            (entries.cached, entries.reading) = (None, None);
            (!batch.is_empty()).then_some(batch.len())
        });
        sizes.sum::<usize>()
    };
    let same = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let from = |key: &[u8]| ReadOptions { iterate_lower_bound: Some(key.to_vec()), ..same.clone() };
    for (read, target, expected) in [
        (&same, Some(b"key".as_slice()), KEYS),
        (&same, None, KEYS + 1),
        (&from(b"key"), None, KEYS),
        (&same, Some(b"key00010"), 90),
        (&from(b"key00010"), None, 90),
        (&ReadOptions::default(), Some(b"key00010"), KEYS - 10),
    ] {
        assert_eq!(count(read, target), expected, "{:?} {target:?}", read.iterate_lower_bound);
    }
}

/// The account of memory blames whoever asked for the iterator, not the engine.
#[test]
fn an_iterator_s_snapshot_is_its_owner_s() {
    let world = World::cold();
    let (_entries, line) = (world.iter(), line!());
    let oldest = world.db.memory_usage().oldest_snapshot.unwrap();
    assert_eq!((oldest.taken_at.file(), oldest.taken_at.line()), (file!(), line));
}

#[test]
fn a_batch_is_bounded_in_bytes_too() {
    let world = World::cold();
    (0..40)
        .for_each(|number| world.db.put(format!("large{number:02}"), vec![7; 100 << 10]).unwrap());
    let mut entries = world.iter();
    entries.seek(b"large");
    world.let_readers_begin();
    let sizes = std::iter::from_fn(|| {
        let batch = block_on(entries.next_batch(1000)).unwrap();
        (!batch.is_empty()).then_some(batch.len())
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [11, 11, 11, 7]);
}

#[test]
fn who_asks_for_memory_alone_gets_no_more() {
    let world = World::cold();
    let read = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let family = world.db.default_column_family();
    let refused = |error: Error| assert_eq!(error.code(), Code::Incomplete, "{error}");
    refused(poll_once(pin!(world.db.get_async(&read, family, &key(1)))).unwrap().unwrap_err());
    refused(world.db.get_with(&read, family, key(1)).unwrap_err());
    refused(world.db.iter_cf(family, &read).err().unwrap());
    let mut entries = world.db.iter_async(family, &read);
    refused(poll_once(pin!(entries.next_batch(5))).unwrap().unwrap_err());
    let values = world.db.multi_get_async(&read, family, vec![key(1), key(2)]);
    poll_once(pin!(values)).unwrap().into_iter().for_each(|value| refused(value.unwrap_err()));
}

#[test]
fn what_readers_return_can_go_to_other_threads() {
    fn is_sent<T: Send>(_: &T) {}
    let world = World::cold();
    let mut entries = world.iter();
    is_sent(&entries);
    is_sent(&entries.next_batch(1));
    is_sent(&world.get(b""));
}
