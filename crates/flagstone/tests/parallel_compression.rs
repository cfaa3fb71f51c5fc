//! Flushes that writers wait for compress with a thread more, and others with as many as the
//! options ask for.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::{Env, Join, Spawn, Task};
use flagstone::options::{CompactRangeOptions, Options};

/// The system's threads; counts those that compress.
struct Counting {
    system: Arc<dyn Spawn>,
    compressing: AtomicUsize,
}

impl Spawn for Counting {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        if name == "flagstone-compress" {
            self.compressing.fetch_add(1, Ordering::Relaxed);
        }
        self.system.spawn(name, work)
    }

    fn run_all(&self, name: &str, tasks: Vec<Task<'_>>) {
        self.system.run_all(name, tasks);
    }
}

/// How many threads compress while so many MiB are flushed, and read back.
fn threads(mib: u64, settings: &str) -> usize {
    let counting =
        Arc::new(Counting { system: Env::os().spawner, compressing: AtomicUsize::new(0) });
    let mut options =
        Options { env: Env { spawner: counting.clone(), ..Env::memory() }, ..Options::default() };
    options
        .set_all("create_if_missing=true;write_buffer_size=64m;max_background_jobs=2;enable_blob_files=false")
        .unwrap();
    options.set_all(settings).unwrap();
    let db = Db::open("/db", &options).unwrap();
    let value = |number: u64| format!("{number} ").repeat(10_000);
    let numbers = || 0..mib * 30;
    for number in numbers() {
        db.put(format!("{number:06}"), value(number)).unwrap();
    }
    db.flush_all().unwrap();
    assert_eq!(db.live_files().len(), 1);
    for number in numbers() {
        let found = db.get(format!("{number:06}")).unwrap();
        assert!(found.as_deref() == Some(value(number).as_bytes()), "{number}");
    }
    counting.compressing.load(Ordering::Relaxed)
}

#[test]
fn a_large_flush_of_one_of_two_memtables_has_a_thread_more() {
    assert_eq!(threads(20, ""), 1);
    assert_eq!(threads(5, ""), 0, "it takes no time");
    assert_eq!(threads(20, "max_write_buffer_number=3"), 0, "writers have another one");
    assert_eq!(threads(20, "max_background_jobs=1"), 0, "there is one thread at a time");
    assert_eq!(threads(20, "compression=kNoCompression"), 0, "nothing is compressed");
}

/// The option was accepted at 1 only.
#[test]
fn the_options_say_how_many_threads_compress_a_table() {
    let of = |opts: &str| threads(5, &format!("{opts}={{parallel_threads=4;enabled=true}}"));
    assert_eq!(of("compression_opts"), 3, "beside the one that makes the table");
    assert_eq!(of("bottommost_compression_opts"), 0, "a flush does not write to the last level");
    let aligned = "compression_opts={parallel_threads=4};compression=kNoCompression";
    assert_eq!(threads(5, aligned), 0, "there is nothing to compress");
}

#[test]
fn a_compaction_has_as_many_threads_as_the_options_of_its_level_say() {
    let counting =
        Arc::new(Counting { system: Env::os().spawner, compressing: AtomicUsize::new(0) });
    let mut options =
        Options { env: Env { spawner: counting.clone(), ..Env::memory() }, ..Options::default() };
    options
        .set_all(
            "create_if_missing=true;enable_blob_files=false;disable_auto_compactions=true;\
             bottommost_compression_opts={parallel_threads=3;enabled=true};\
             bottommost_compression=kLZ4Compression",
        )
        .unwrap();
    let db = Db::open("/db", &options).unwrap();
    let value = |number: u64| format!("{number} ").repeat(1000);
    for number in (0..1000).chain(500..1500) {
        db.put(format!("{number:06}"), value(number)).unwrap();
        if number == 999 {
            db.flush_all().unwrap();
        }
    }
    db.flush_all().unwrap();
    assert_eq!(counting.compressing.load(Ordering::Relaxed), 0);
    let all = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &all).unwrap();
    assert_eq!(counting.compressing.load(Ordering::Relaxed), 2);
    for number in 0..1500 {
        let found = db.get(format!("{number:06}")).unwrap();
        assert!(found.as_deref() == Some(value(number).as_bytes()), "{number}");
    }
}
