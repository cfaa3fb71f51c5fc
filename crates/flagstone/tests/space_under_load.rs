//! What files take while values are overwritten at full speed, and what of that readers keep.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{create, temporary};
use flagstone::db::{Db, SpaceUsage, Ticker};
use flagstone::options::{Options, ReadOptions};
use testkit::disk::blocks_of_data;

const MIB: u64 = 1 << 20;

fn options(settings: &[(&str, &str)]) -> Options {
    let mut options = create();
    // The load is to be as hard as the machine can make it: nobody gives way.
    let of_all = [
        ("enable_blob_files", "true"),
        ("burst_space_amplification", "0"),
        ("background_niceness", "0"),
    ];
    of_all.iter().chain(settings).for_each(|(name, value)| options.set(name, value).unwrap());
    options
}

/// A database that is overwritten at full speed.
struct Load {
    db: Db,
    live: u64,
    value: usize,
    /// The most that the files took since something was collected.
    peak: AtomicU64,
    has_ended: AtomicBool,
}

impl Load {
    fn keys(&self) -> u64 {
        self.live / self.value as u64
    }

    fn put(&self, key: u64, random: &mut fastrand::Rng) {
        let mut value = vec![random.u8(..); self.value];
        value[..8].copy_from_slice(&random.u64(..).to_le_bytes());
        self.db.put(key.to_be_bytes(), value).unwrap();
    }

    fn fill(&self) {
        let mut random = fastrand::Rng::with_seed(0);
        (0..self.keys()).for_each(|key| self.put(key, &mut random));
        self.db.flush_all().unwrap();
        self.db.wait_for_compactions().unwrap();
    }

    /// Writes as much as is live so many times, in `threads` threads.
    fn overwrite(&self, threads: u64, times: u64) {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread + 1);
                    (0..times * self.keys() / threads).for_each(|_| {
                        let key = random.u64(..self.keys());
                        self.put(key, &mut random);
                    });
                });
            }
        });
    }

    fn has_collected(&self) -> bool {
        let count = |ticker| self.db.statistics().get(ticker);
        count(Ticker::BlobGcRelocatedBytes) + count(Ticker::BlobPunchedBytes) > 0
    }

    /// Adds up the blocks on the disk as fast as that can be done.
    fn watch(&self, directory: &Path) {
        while !self.has_ended.load(Ordering::Acquire) {
            if self.has_collected() {
                self.peak.fetch_max(blocks_of_data(directory), Ordering::Relaxed);
            }
            std::thread::yield_now();
        }
    }
}

/// Ends the watch, also where what is watched fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A file of a memtable that is being filled, and one that is flushed meanwhile.
const ALLOWANCE: u64 = 32 * MIB;

/// Where a machine is busy nothing but the slowest of rates, a tenth of this, keeps writers from
/// going on: it is to be slower than any machine collects.
const SLOWEST: (&str, &str) = ("delayed_write_rate", "1m");

#[test]
fn under_load_files_take_no_more_than_the_limit() {
    for (value, threads) in [(5_000, 1), (20_000, 4)] {
        let directory = temporary();
        let options = options(&[("max_space_amplification", "3"), SLOWEST]);
        let db = Db::open(directory.path(), &options).unwrap();
        let (peak, has_ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let load = Load { db, live: 32 * MIB, value, peak, has_ended };
        load.fill();
        std::thread::scope(|scope| {
            scope.spawn(|| load.watch(directory.path()));
            let _ends = Ends(&load.has_ended);
            load.overwrite(threads, 4);
        });
        assert!(load.has_collected());
        let peak = load.peak.load(Ordering::Relaxed);
        assert!(
            peak <= 3 * load.live + ALLOWANCE,
            "{} MiB with values of {value} bytes",
            peak / MIB
        );
    }
}

/// Nobody can collect what others read: writers go on, and whose it is can be asked.
#[test]
fn writers_do_not_wait_for_what_readers_keep() {
    let space = |load: &Load| -> SpaceUsage {
        load.db.flush_all().unwrap();
        load.db.wait_for_compactions().unwrap();
        load.db.space(load.db.default_column_family()).unwrap()
    };
    let directory = temporary();
    let db = Db::open(directory.path(), &options(&[])).unwrap();
    let load = Load {
        db,
        live: 16 * MIB,
        value: 16_384,
        peak: AtomicU64::new(0),
        has_ended: false.into(),
    };
    load.fill();
    let reading = load.db.iter(&ReadOptions::default()).unwrap();
    load.overwrite(2, 4);
    let usage = space(&load);
    assert!(
        usage.reader_bytes + usage.garbage_bytes >= load.live,
        "what the iterator began with: {usage:?}"
    );
    drop(reading);
    let snapshot = load.db.snapshot();
    load.overwrite(2, 4);
    let usage = space(&load);
    assert!(usage.snapshot_bytes >= load.live * 9 / 10, "{usage:?}");
    assert_eq!(
        load.db.int_property(load.db.default_column_family(), "rocksdb.num-snapshots"),
        Some(1)
    );
    drop(snapshot);
    load.overwrite(1, 1);
    let usage = space(&load);
    assert_eq!((usage.snapshot_bytes, usage.reader_bytes), (0, 0), "{usage:?}");
}
