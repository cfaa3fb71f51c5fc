//! What campaigns share: seeds spread over threads, progress, findings, and which rare branches
//! were reached.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use flagstone::base::sometimes;
use flagstone::env::Env;
use indicatif::{ProgressBar, ProgressStyle};
use testkit::caught::catch;

/// Which seeds a campaign visits, and with how many threads.
#[derive(Debug, Clone, clap::Args)]
pub struct Seeds {
    /// Only this one, as a finding names it.
    #[arg(long, conflicts_with_all = ["count", "first"])]
    pub seed: Option<u64>,
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    pub count: u64,
    /// The first one.
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// Threads that share them; by default one a core.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Ends the campaign after so many seeds have shown a fault.
    #[arg(long, default_value_t = 10)]
    pub faults_max: usize,
}

/// Calls `work` for every seed; what it returns as an error, or panics with, is a fault, which is
/// printed with the seed. Prints figures at the end; how many seeds showed a fault.
pub fn for_each_seed(
    name: &str,
    seeds: &Seeds,
    work: impl Fn(u64) -> Result<(), String> + Sync,
) -> usize {
    let threads =
        seeds.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let (first, count) = seeds.seed.map_or((seeds.first, seeds.count), |seed| (seed, 1));
    let clock = Env::os().clock;
    let begun = clock.now_us();
    let progress = ProgressBar::new(count).with_style(
        ProgressStyle::with_template(
            "{prefix} {wide_bar} {pos}/{len} seeds, {elapsed}, {eta} left {msg}",
        )
        .expect("a template without mistakes"),
    );
    progress.set_prefix(name.to_string());
    progress.enable_steady_tick(Duration::from_secs(1));
    let (next, done, faults) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
    let take_seeds = || {
        while faults.load(Ordering::Relaxed) < seeds.faults_max {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let seed = first + index;
            if let Err(said) = catch(|| work(seed)).and_then(|outcome| outcome) {
                faults.fetch_add(1, Ordering::Relaxed);
                progress.suspend(|| println!("{name}: FAULT with seed {seed}\n{said}\n"));
            }
            done.fetch_add(1, Ordering::Relaxed);
            progress.inc(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(take_seeds);
        }
    });
    progress.finish_and_clear();
    let (done, faults) = (done.into_inner(), faults.into_inner());
    let seconds = (clock.now_us() - begun) as f64 / 1e6;
    println!(
        "{name}: {done} seeds from {} on, {faults} with a fault, {seconds:.1} s, {threads} threads",
        first
    );
    faults
}

/// Prints which rare branches of the engine this process reached, and which never.
pub fn report_markers() {
    let (reached, never): (Vec<_>, Vec<_>) =
        sometimes::counts().into_iter().partition(|(.., count)| *count > 0);
    println!("rare branches reached: {}", reached.len());
    for (name, _, count) in reached {
        println!("  {name}: {count}");
    }
    println!("never reached: {}", never.len());
    for (name, meaning, _) in never {
        println!("  {name}: {meaning}");
    }
}
