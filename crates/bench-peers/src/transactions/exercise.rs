//! What a part does, and the figures that it gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Database, Engine, Key, Kind, VALUE_BYTES, key, open};
use crate::engine::Result;

/// Rows that all threads use where contention is high.
const HOT_ROWS: u64 = 100;
/// Entries of a batch that are built, read and iterated over at least, in as many batches as that
/// takes.
const ENTRIES_MIN: u64 = 400_000;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exercise {
    /// Makes the rows.
    Fill { is_optimistic: bool, rows: u64 },
    /// Runs transactions that read two rows for update and write them, for `millis` milliseconds.
    Small { is_optimistic: bool, is_contended: bool, threads: u64, rows: u64, millis: u64 },
    /// A batch with an index, over an empty database.
    Batch { entries: u64 },
    /// Locks that one transaction holds.
    Locks { count: u64 },
}

/// Figures by name.
pub type Figures = BTreeMap<String, f64>;

impl Exercise {
    fn kind(&self) -> Kind {
        match self {
            Self::Fill { is_optimistic: true, .. } | Self::Small { is_optimistic: true, .. } => {
                Kind::Optimistic
            }
            _ => Kind::Pessimistic,
        }
    }

    /// Does it in a process of its own.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn run(&self, engine: Engine, directory: &Path) -> Result<Figures> {
        let database = open(engine, self.kind(), directory)?;
        let figures = match *self {
            Self::Fill { rows, .. } => {
                database.fill(&mut (0..rows).map(key), &[b'v'; VALUE_BYTES])?;
                Figures::new()
            }
            Self::Small { is_contended, threads, rows, millis, .. } => {
                let rows = if is_contended { HOT_ROWS } else { rows };
                small(&*database, threads, rows, Duration::from_millis(millis))?
            }
            Self::Batch { entries } => batch(&*database, entries)?,
            Self::Locks { count } => locks(&*database, count)?,
        };
        database.close()?;
        Ok(figures)
    }
}

fn small(database: &dyn Database, threads: u64, rows: u64, time: Duration) -> Result<Figures> {
    let (is_over, done, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let work = |number: u64| -> std::result::Result<(), String> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        let mut worker = database.worker().map_err(|error| error.to_string())?;
        let value = [b'w'; VALUE_BYTES];
        let (mut committed, mut conflicts) = (0, 0);
        while !is_over.load(Ordering::Relaxed) {
            // In the order of the keys, so that there is no deadlock.
            let first = random.random_range(0..rows - 1);
            let second = random.random_range(first + 1..rows);
            let keys = [key(first), key(second)];
            if worker.update(&keys, &value).map_err(|error| error.to_string())? {
                committed += 1;
            } else {
                conflicts += 1;
            }
        }
        done.fetch_add(committed, Ordering::Relaxed);
        refused.fetch_add(conflicts, Ordering::Relaxed);
        Ok(())
    };
    let begun = Instant::now();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        std::thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        running.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    outcomes.into_iter().collect::<std::result::Result<Vec<()>, String>>()?;
    let (done, refused) = (done.into_inner() as f64, refused.into_inner() as f64);
    Ok(Figures::from([
        ("per second".to_string(), done / seconds),
        ("conflicts of a thousand".to_string(), 1000.0 * refused / (done + refused).max(1.0)),
    ]))
}

fn batch(database: &dyn Database, entries: u64) -> Result<Figures> {
    let mut keys: Vec<Key> = (0..entries).map(key).collect();
    keys.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(entries));
    let rounds = ENTRIES_MIN.div_ceil(entries);
    let mut times = [Duration::ZERO; 3];
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut batch = database.batch()?;
        for key in &keys {
            batch.put(key, &[b'v'; VALUE_BYTES])?;
        }
        times[0] += begun.elapsed();
        let begun = Instant::now();
        let mut found = 0;
        for key in keys.iter().rev() {
            found += u64::from(batch.reads(key)?);
        }
        times[1] += begun.elapsed();
        let begun = Instant::now();
        let counted = batch.iterate()?;
        times[2] += begun.elapsed();
        if (found, counted) != (entries, entries) {
            return Err(format!("{found} read and {counted} iterated over of {entries}").into());
        }
    }
    let names = ["build ns", "read ns", "iterate ns"];
    let of_each = |time: Duration| time.as_nanos() as f64 / (rounds * entries) as f64;
    Ok(names.into_iter().map(str::to_string).zip(times.map(of_each)).collect())
}

/// Bytes of memory that the process has of its own.
fn resident() -> Result<f64> {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(kib.ok_or("the kernel does not tell")? * 1024.0)
}

fn locks(database: &dyn Database, count: u64) -> Result<Figures> {
    // Whatever the first lock needs.
    database.hold(&mut (0..100).map(key), &mut || {})?;
    let before = resident()?;
    let mut after = Ok(before);
    database.hold(&mut (0..count).map(key), &mut || after = resident())?;
    Ok(Figures::from([("bytes a lock".to_string(), (after? - before) / count as f64)]))
}
