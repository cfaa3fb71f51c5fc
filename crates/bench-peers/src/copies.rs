//! `peers copies`: what copies of a database cost the one who writes to it, and how far a reader in
//! another place is behind.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::db::{Db, Secondary, Ticker};
use flagstone::options::Options;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::engine::Result;
use crate::statistics::median;

/// The key whose value says when it was written.
const CLOCK: &[u8] = b"clock";
/// Writes between two looks at whether to stop.
const BATCH: u64 = 1000;

#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed again).
    #[arg(long)]
    directory: PathBuf,
    /// Bytes of the database.
    #[arg(long, default_value_t = 10_000_000_000)]
    bytes: u64,
    /// Bytes of a value, half of which compress.
    #[arg(long, default_value_t = 1000)]
    value_size: usize,
    /// How many backups are made of each kind while a writer goes on.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds that the writer has to itself before each backup, and that a secondary follows.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Bytes per second that the limited backups copy.
    #[arg(long, default_value_t = 50_000_000)]
    limit: u64,
    /// An option of the database, as NAME=VALUE. Can be given more than once.
    #[arg(long = "set")]
    settings: Vec<String>,
}

/// Keys and values of one database.
#[derive(Clone, Copy)]
struct Data {
    keys: u64,
    value_size: usize,
}

impl Data {
    fn put(self, db: &Db, key: u64, random: &mut SmallRng) -> Result<()> {
        let mut value = vec![b'v'; self.value_size];
        random.fill_bytes(&mut value[..self.value_size / 2]);
        Ok(db.put(format!("{key:016}"), value)?)
    }
}

/// A thread that overwrites at full speed until it is told to stop.
struct Writer {
    written: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<std::result::Result<(), String>>,
}

impl Writer {
    fn start(db: Db, data: Data, start: Instant) -> Self {
        let written = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (count, is_over) = (written.clone(), stop.clone());
        let write = move || -> Result<()> {
            let mut random = SmallRng::seed_from_u64(1);
            while !is_over.load(Relaxed) {
                for _ in 0..BATCH {
                    data.put(&db, random.random_range(0..data.keys), &mut random)?;
                    count.fetch_add(1, Relaxed);
                    if count.load(Relaxed).is_multiple_of(100) {
                        let now = start.elapsed().as_micros() as u64;
                        db.put(CLOCK, now.to_le_bytes())?;
                    }
                }
            }
            Ok(())
        };
        let thread = thread::spawn(move || write().map_err(|error| error.to_string()));
        Self { written, stop, thread }
    }

    /// Writes per second while `work` is done.
    fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
        let (begin, before) = (Instant::now(), self.written.load(Relaxed));
        let outcome = work()?;
        let written = self.written.load(Relaxed) - before;
        Ok((written as f64 / begin.elapsed().as_secs_f64(), outcome))
    }

    fn end(self) -> Result<()> {
        self.stop.store(true, Relaxed);
        Ok(self.thread.join().expect("the writer does not panic")?)
    }
}

/// Makes a full backup, and removes it again.
fn back_up(db: &Db, directory: &Path, limit: u64) -> Result<()> {
    let mut options = BackupEngineOptions::new(directory);
    options.backup_rate_limit = limit;
    BackupEngine::open(options)?.create_new_backup(db, &CreateBackupOptions::default())?;
    Ok(std::fs::remove_dir_all(directory)?)
}

fn show_loads(db: &Db, data: Data, arguments: &Arguments) -> Result<()> {
    let place = arguments.directory.join("backups");
    let writer = Writer::start(db.clone(), data, Instant::now());
    let alone = Duration::from_secs(arguments.seconds);
    for (name, limit) in [("limited", arguments.limit), ("unlimited", 0)] {
        let mut ratios = Vec::new();
        for _ in 0..arguments.rounds {
            let (before, ()) = writer.during(|| Ok(thread::sleep(alone)))?;
            let begin = Instant::now();
            let (beside, ()) = writer.during(|| back_up(db, &place, limit))?;
            let seconds = begin.elapsed().as_secs_f64();
            let (after, ()) = writer.during(|| Ok(thread::sleep(alone)))?;
            let ratio = beside / ((before + after) / 2.0);
            println!(
                "backup, {name}: {before:.0} writes/s before, {beside:.0} beside ({seconds:.0} s), \
                 {after:.0} after: {ratio:.2}"
            );
            ratios.push(ratio);
        }
        println!("backup, {name}: the writer is at {:.2} (median)", median(&ratios));
    }
    writer.end()
}

fn show_increment(db: &Db, data: Data, directory: &Path) -> Result<()> {
    let mut options = BackupEngineOptions::new(directory.join("increments"));
    options.callback_trigger_interval_size = 1;
    let backups = BackupEngine::open(options)?;
    let copy = || -> Result<(u64, u64)> {
        let last = Arc::new(Mutex::new((0, 0)));
        let seen = last.clone();
        let mut request = CreateBackupOptions::default();
        request.flush_before_backup = true;
        request.progress_callback = Some(Arc::new(move |progress| {
            let mut seen = seen.lock().expect("no panic");
            *seen = (progress.bytes_copied.max(seen.0), progress.bytes_total);
        }));
        backups.create_new_backup(db, &request)?;
        let last = *last.lock().expect("no panic");
        Ok(last)
    };
    let written = || db.statistics().get(Ticker::CompactWriteBytes);
    db.wait_for_compactions()?;
    copy()?;
    let before = written();
    let mut random = SmallRng::seed_from_u64(2);
    for _ in 0..data.keys / 100 {
        data.put(db, random.random_range(0..data.keys), &mut random)?;
    }
    let (copied, total) = copy()?;
    println!(
        "increment after 1% of the keys: {copied} of {total} bytes: {:.3}; compactions wrote {}",
        copied as f64 / total as f64,
        written() - before
    );
    Ok(())
}

fn show_lag(db: &Db, options: &Options, data: Data, arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let own = arguments.directory.join("secondary");
    let secondary = Secondary::open(arguments.directory.join("db"), own, options)?;
    let writer = Writer::start(db.clone(), data, start);
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut lags = Vec::new();
    let (rate, ()) = writer.during(|| {
        while Instant::now() < until {
            secondary.catch_up()?;
            let value = secondary.now().get(CLOCK)?;
            if let Some(value) = value {
                let written = u64::from_le_bytes(value.as_ref().try_into()?);
                lags.push(start.elapsed().as_micros() as u64 - written);
            }
        }
        Ok(())
    })?;
    writer.end()?;
    lags.sort_unstable();
    let at = |part: usize| lags[(lags.len() - 1) * part / 100] as f64 / 1000.0;
    println!(
        "secondary behind {rate:.0} writes/s: {} looks, median {:.1} ms, p99 {:.1} ms, \
         longest {:.1} ms",
        lags.len(),
        at(50),
        at(99),
        at(100)
    );
    Ok(())
}

/// Measures all parts.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut options = Options::default();
    options.create_if_missing = true;
    for setting in &arguments.settings {
        let (name, value) = setting.split_once('=').ok_or("--set expects NAME=VALUE")?;
        options.set(name, value)?;
    }
    let data = Data {
        keys: arguments.bytes / (arguments.value_size as u64 + 16),
        value_size: arguments.value_size,
    };
    let path = arguments.directory.join("db");
    if path.exists() {
        return Err(format!("{} is there already; remove it", path.display()).into());
    }
    let db = Db::open(&path, &options)?;
    let mut random = SmallRng::seed_from_u64(0);
    for key in 0..data.keys {
        data.put(&db, key, &mut random)?;
    }
    show_increment(&db, data, &arguments.directory)?;
    std::fs::remove_dir_all(arguments.directory.join("increments"))?;
    show_lag(&db, &options, data, arguments)?;
    show_loads(&db, data, arguments)?;
    drop(db);
    for made in ["db", "secondary"] {
        let _ = std::fs::remove_dir_all(arguments.directory.join(made));
    }
    Ok(())
}
