//! Half of a database of real size is deleted, in real time: when the disk has its space again,
//! what a scan of the hole costs.
//!
//! ```text
//! cargo test --release -p flagstone --test deleted_space -- --ignored --nocapture
//! ```
//!
//! `FLAGSTONE_BYTES` says how much is written, 1 GiB by default, below `TMPDIR`. What happens is
//! told by `deletions.rs`, with a clock of its own; this is what a user of the default options
//! sees.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]
#![allow(clippy::disallowed_methods, reason = "the test measures, and asks the operating system")]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use flagstone::db::Db;
use flagstone::options::{CompactRangeOptions, ReadOptions};

/// What is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    /// Every second key, each by itself.
    Keys,
    /// Every second run of a hundred keys, each by one range deletion.
    Ranges,
    /// The first half, by one range deletion.
    OneRange,
}

impl Half {
    /// The key that a seek to this one finds when half of them are deleted.
    fn found(self, number: u64, keys: u64) -> u64 {
        match self {
            Self::Keys => number | 1,
            Self::Ranges if number % 200 < 100 => number / 200 * 200 + 100,
            Self::Ranges => number,
            Self::OneRange => number.max(keys / 2),
        }
    }
}

/// What space must have come back within, and scans be as fast as ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// For how long it is waited for to tell how long it takes.
const WAITED_FOR: Duration = Duration::from_secs(600);

/// What may be left of a hundred parts when half is deleted. Blob files are promised to take no
/// more than `max_space_amplification`, 1.3, of what lives: where the disk is slow with holes,
/// values are moved until then.
fn left_at_most(blobs: bool) -> u64 {
    if blobs { 65 } else { 60 }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Bytes that the files of the database take, without holes. The log keeps what it reserved, which
/// is no deleted data's.
fn on_disk(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let data = entries.filter(|entry| {
        entry.path().extension().is_some_and(|ending| ending == "sst" || ending == "blob")
    });
    // A file may go away meanwhile.
    data.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512)).sum()
}

/// Nanoseconds for a seek and ten steps, by the median, from places that are drawn below `keys`.
fn scan_ns(db: &Db, keys: u64, place: impl Fn(u64) -> u64) -> u128 {
    let mut random = fastrand::Rng::with_seed(1);
    let mut times: Vec<u128> = (0..20_000)
        .map(|_| {
            let from = key(place(random.u64(..keys)));
            let began = Instant::now();
            let mut iter = db.iter(&ReadOptions::default()).unwrap();
            iter.seek(from);
            for _ in 0..10 {
                if iter.valid() {
                    iter.next();
                }
            }
            iter.status().unwrap();
            began.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Writes keys, compacts them, deletes half and rests; says when half of the space was free, if
/// that took too long.
fn live(half: Half, value_size: usize, blobs: bool) -> Option<String> {
    let bytes: u64 =
        std::env::var("FLAGSTONE_BYTES").map_or(1 << 30, |bytes| bytes.parse().unwrap());
    let keys = bytes / (value_size as u64 + 16);
    let directory = common::temporary();
    let mut options = common::create();
    options.set_all("compression=kNoCompression;filter_policy=bloomfilter:10").unwrap();
    options.set("enable_blob_files", if blobs { "true" } else { "false" }).unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let mut value = vec![0; value_size];
    for number in 0..keys {
        random.fill(&mut value);
        db.put(key(number), &value).unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let before = on_disk(directory.path());
    let what =
        format!("{half:?} of {value_size} bytes{}", if blobs { " in blob files" } else { "" });
    println!("{what}: {} MiB before", before >> 20);

    let began = Instant::now();
    match half {
        Half::Keys => (0..keys).step_by(2).for_each(|number| db.delete(key(number)).unwrap()),
        Half::Ranges => (0..keys).step_by(200).for_each(|number| {
            db.delete_range(key(number), key((number + 100).min(keys))).unwrap()
        }),
        Half::OneRange => db.delete_range(key(0), key(keys / 2)).unwrap(),
    }
    println!("{what}: deleted in {:.1?}", began.elapsed());
    let began = Instant::now();
    let mut last = before;
    let enough = before * left_at_most(blobs) / 100;
    while began.elapsed() < WAITED_FOR && on_disk(directory.path()) > enough {
        std::thread::park_timeout(Duration::from_millis(100));
        let now = on_disk(directory.path());
        if now < last * 95 / 100 {
            println!("{what}: {} MiB after {:.1?}", now >> 20, began.elapsed());
            last = now;
        }
    }
    let took = began.elapsed();
    println!("{what}: {} MiB after {took:.1?} of rest", on_disk(directory.path()) >> 20);
    // Range deletions that have nothing left to delete may wait for a second delay.
    while began.elapsed() < PATIENCE {
        std::thread::park_timeout(PATIENCE.saturating_sub(began.elapsed()));
    }
    db.wait_for_compactions().unwrap();
    println!(
        "{what}: {} MiB at rest, after {:.1?}",
        on_disk(directory.path()) >> 20,
        began.elapsed()
    );
    // The first only fetches the blocks.
    scan_ns(&db, keys, |number| number);
    println!("{what}: a seek to any key and ten steps {} ns", scan_ns(&db, keys, |number| number));
    let found = scan_ns(&db, keys, |number| half.found(number, keys));
    println!("{what}: the same to the keys that were found, with no hole before them {found} ns");
    (took > PATIENCE).then(|| format!("{what}: {took:.1?}"))
}

#[test]
#[ignore = "some minutes; alone on its machine"]
fn the_space_of_half_the_keys_comes_back_within_a_minute() {
    let mut late = Vec::new();
    for half in [Half::Keys, Half::Ranges, Half::OneRange] {
        late.extend(live(half, 100, false));
        late.extend(live(half, 16 << 10, true));
    }
    assert!(late.is_empty(), "{late:?}");
}
