//! `laboratory space`: how much room blob files take under a load, and how much is written to keep
//! it small.
//!
//! A database of `--live` bytes is filled in random order, then changed `--times` over. Meanwhile
//! another thread adds up the blocks on the disk of the tables and blob files in the directory,
//! those of memtables, those that are being written and what is reserved for them included, and
//! compares them with the keys and values that are live. Beside what was moved stands what had to
//! be moved at least for so little space on average, if any key is as likely to be overwritten as
//! any other.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures a database from outside, by the clock and the directory"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use flagstone::compaction::pick::moved_per_byte;
use flagstone::db::{Db, Ticker};
use flagstone::options::Options;
use testkit::disk::blocks_of_data;

/// Measure the space of blob files over that of their live values, and write amplification.
#[derive(Args)]
pub struct Arguments {
    /// What is done after the database was filled
    #[arg(long, value_enum)]
    load: Load,
    /// Bytes of a value
    #[arg(long, default_value_t = 4096)]
    value: usize,
    /// Bytes of all values
    #[arg(long, default_value_t = 1 << 30)]
    live: u64,
    /// How many times that is written
    #[arg(long, default_value_t = 4)]
    times: u64,
    /// Options of the database and its family, as NAME=VALUE
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// An empty directory
    #[arg(long)]
    directory: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Load {
    /// New keys alone
    Insert,
    /// Overwrites of any key
    Uniform,
    /// Overwrites by Zipf's law (0.99)
    Skewed,
    /// As many deletions as insertions, of any key
    Delete,
    /// Half of the keys are deleted; then nothing is done
    Halve,
}

/// What is known of the load while it runs.
#[derive(Default)]
struct Meter {
    live_keys: AtomicU64,
    /// Greatest ratios of space to live data, in thousandths: at any time, and since something was
    /// collected first.
    peak: AtomicU64,
    settled_peak: AtomicU64,
    /// The sum of these ratios since then, and how many there were.
    settled_sum: AtomicU64,
    samples: AtomicU64,
    ended: AtomicBool,
}

/// Bytes of a key: a number in 16 digits.
const KEY: usize = 16;

/// Runs it; it finds no faults.
pub fn run(arguments: &Arguments) -> usize {
    let mut options = Options::default();
    let settings =
        arguments.settings.iter().map(|setting| setting.split_once('=').expect("NAME=VALUE"));
    let of_ours = [("create_if_missing", "true"), ("enable_blob_files", "true")];
    for (name, value) in of_ours.into_iter().chain(settings) {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    let db = Db::open(&arguments.directory, &options).expect("an empty directory");
    let keys = arguments.live / arguments.value as u64;
    let mut random = fastrand::Rng::with_seed(1);
    let mut order: Vec<u64> = (0..keys).collect();
    random.shuffle(&mut order);
    let meter = Meter::default();
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&db, &arguments.directory, &meter, (arguments.value + KEY) as u64));
        let written = Written::of(&db);
        let start = Instant::now();
        for key in &order {
            put(&db, *key, arguments.value, &mut random);
            meter.live_keys.fetch_add(1, Ordering::Relaxed);
        }
        settle(&db);
        report("filled", &written, &db, start, &meter);
        let (written, start) = (Written::of(&db), Instant::now());
        let counts = [&meter.peak, &meter.settled_peak, &meter.settled_sum, &meter.samples];
        counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        change(&db, arguments, &order, &meter, &mut random);
        report("changed", &written, &db, start, &meter);
        settle(&db);
        report("idle", &written, &db, start, &meter);
        meter.ended.store(true, Ordering::Relaxed);
    });
    db.close().expect("a database that closes");
    0
}

fn change(
    db: &Db,
    arguments: &Arguments,
    order: &[u64],
    meter: &Meter,
    random: &mut fastrand::Rng,
) {
    let keys = order.len();
    let mut is_live = vec![true; keys];
    let weights = zipf(keys);
    for step in 0..arguments.times * keys as u64 {
        let any = match arguments.load {
            Load::Skewed => {
                let drawn = random.f64() * weights[keys - 1];
                order[weights.partition_point(|sum| *sum < drawn).min(keys - 1)]
            }
            Load::Insert => {
                put(db, keys as u64 + step, arguments.value, random);
                meter.live_keys.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            _ => random.u64(..keys as u64),
        };
        let was_live = is_live[any as usize];
        if matches!(arguments.load, Load::Delete | Load::Halve) && was_live {
            if arguments.load == Load::Halve
                && meter.live_keys.load(Ordering::Relaxed) <= keys as u64 / 2
            {
                break;
            }
            db.delete(key(any)).expect("a deletion");
            is_live[any as usize] = false;
            meter.live_keys.fetch_sub(1, Ordering::Relaxed);
        } else if arguments.load != Load::Halve {
            put(db, any, arguments.value, random);
            is_live[any as usize] = true;
            meter.live_keys.fetch_add(u64::from(!was_live), Ordering::Relaxed);
        }
    }
}

/// The sums of the weights of so many ranks.
fn zipf(ranks: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=ranks).map(|rank| {
        sum += 1.0 / (rank as f64).powf(0.99);
        sum
    });
    weights.collect()
}

fn key(number: u64) -> [u8; KEY] {
    let mut key = [b'0'; KEY];
    key.iter_mut()
        .rev()
        .zip(number.to_string().bytes().rev())
        .for_each(|(place, digit)| *place = digit);
    key
}

fn put(db: &Db, number: u64, size: usize, random: &mut fastrand::Rng) {
    let mut value = vec![random.u8(..); size];
    value[..8].copy_from_slice(&random.u64(..).to_le_bytes());
    db.put(key(number), value).expect("a write");
}

/// Flushes, and waits until there is nothing left to compact.
fn settle(db: &Db) {
    db.flush_all().expect("a flush");
    db.wait_for_compactions().expect("compactions");
}

fn watch(db: &Db, directory: &Path, meter: &Meter, entry: u64) {
    while !meter.ended.load(Ordering::Relaxed) {
        let collected = Written::of(db);
        let has_collected = collected.relocated > 0 || collected.punched > 0;
        let live = meter.live_keys.load(Ordering::Relaxed) * entry;
        let ratio = blocks_of_data(directory) * 1000 / live.max(1);
        if live > 0 {
            meter.peak.fetch_max(ratio, Ordering::Relaxed);
            if has_collected {
                meter.settled_peak.fetch_max(ratio, Ordering::Relaxed);
                meter.settled_sum.fetch_add(ratio, Ordering::Relaxed);
                meter.samples.fetch_add(1, Ordering::Relaxed);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What was written so far.
struct Written {
    flushed: u64,
    compacted: u64,
    relocated: u64,
    punched: u64,
}

impl Written {
    fn of(db: &Db) -> Self {
        let count = |ticker| db.statistics().get(ticker);
        let relocated = count(Ticker::BlobGcRelocatedBytes);
        Self {
            flushed: count(Ticker::FlushWriteBytes) + count(Ticker::BlobWriteBytes) - relocated,
            compacted: count(Ticker::CompactWriteBytes),
            relocated,
            punched: count(Ticker::BlobPunchedBytes),
        }
    }
}

fn report(phase: &str, before: &Written, db: &Db, start: Instant, meter: &Meter) {
    let now = Written::of(db);
    let flushed = (now.flushed - before.flushed) as f64;
    let (compacted, relocated) =
        ((now.compacted - before.compacted) as f64, (now.relocated - before.relocated) as f64);
    let family = db.default_column_family();
    let figure = |name| db.int_property(family, name).expect("a property") >> 20;
    println!(
        "{phase}: {:.1} s, flushed {:.0} MB, write amplification {:.3} (tables {:.3}, values {:.3}); \
         space over live at most {:.3}, since something was collected {:.3}; punched {:.0} MB; blob files {} MB, garbage {} MB",
        start.elapsed().as_secs_f64(),
        flushed / 1e6,
        (flushed + compacted + relocated) / flushed.max(1.0),
        compacted / flushed.max(1.0),
        relocated / flushed.max(1.0),
        meter.peak.load(Ordering::Relaxed) as f64 / 1000.0,
        meter.settled_peak.load(Ordering::Relaxed) as f64 / 1000.0,
        (now.punched - before.punched) as f64 / 1e6,
        figure("rocksdb.total-blob-file-size"),
        figure("rocksdb.live-blob-file-garbage-size"),
    );
    let samples = meter.samples.load(Ordering::Relaxed);
    if samples > 0 {
        let mean = meter.settled_sum.load(Ordering::Relaxed) as f64 / (samples * 1000) as f64;
        println!(
            "  space {mean:.3} on average since; where any key is overwritten that costs at least {:.3} for values",
            moved_per_byte(mean)
        );
    }
}
