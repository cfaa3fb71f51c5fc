//! `flagstone cache-sim`: what policies and sizes of a cache would have done with a trace.
//!
//! 1. The trace is read (`read.rs`) or made up (`synthetic.rs`) once. Its keys become dense numbers
//!    (`trace.rs`), so that a replay needs no hash table: `places.rs` has the slot of each object
//!    in the engine's own policies.
//! 2. Every policy and size is replayed on its own (`replay.rs`), as many at a time as there are
//!    threads; the clairvoyant bound, which needs the future, in `clairvoyant.rs`.
//! 3. `report.rs` prints a table or JSON, `plot.rs` draws the curves.

mod clairvoyant;
mod places;
mod plot;
mod read;
mod replay;
mod report;
mod synthetic;
mod trace;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::Args;
use flagstone::cache::PolicyKind;
use flagstone::env::{Env, IoMode};
use flagstone::options::value::SettingValue;

use crate::arguments::Common;
use crate::failure::{Failure, Outcome, Verdict};
use crate::progress::Progress;
use replay::{Counts, Player};
use synthetic::Synthetic;
use trace::Trace;

/// Replay a trace over cache policies and sizes, and compare their hit ratios.
///
/// A trace is CSV, oracleGeneral, or one of RocksDB's block cache, each also compressed with
/// Zstandard. CSV has
/// time,key,size[,op]; an op that begins with "del" removes the key, any other op is an access.
/// oracleGeneral has 24 bytes a request: u32 time, u64 key, u32 size, and i64 next access, which is
/// ignored. An object keeps the size of its first request. There is no warm-up: first requests
/// count as misses. `flagstone bench --block_cache_trace_file` and `Db::start_block_cache_trace`
/// record such traces.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    flagstone cache-sim blocks.oracleGeneral.zst --policies lru,s3_fifo,sieve --sizes 1%,10%,1G --plot curves.svg\n  \
    flagstone cache-sim --synthetic photo")]
pub struct Arguments {
    /// Trace file
    #[arg(required_unless_present = "synthetic", conflicts_with = "synthetic")]
    trace: Option<PathBuf>,
    /// csv, oracle or rocksdb. By default a name that ends in .csv (before .zst) means CSV, and the
    /// first bytes tell a trace of RocksDB
    #[arg(long, value_enum)]
    format: Option<read::Format>,
    /// Generate a trace: photo (groups of 1K, 9K, 90K and 2.5M objects with a quarter of the
    /// requests each) or zipf:EXPONENT (1M objects)
    #[arg(long, value_name = "KIND")]
    synthetic: Option<Synthetic>,
    /// Number of requests to generate
    #[arg(
        long,
        default_value_t = 20_000_000,
        value_parser = clap::value_parser!(u64).range(1..=1 << 31)
    )]
    requests: u64,
    /// Seed of the generated trace
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Policies: lru, fifo, lfu, slru, s4lru, s3_fifo, sieve, w_tiny_lfu, and clairvoyant (evicts
    /// the object used furthest in the future)
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "fifo,lru,lfu,slru,s4lru,s3_fifo,sieve,w_tiny_lfu,clairvoyant"
    )]
    policies: Vec<Player>,
    /// Cache sizes: bytes (16M), or percent of the total size of all objects
    #[arg(long, value_delimiter = ',', default_value = "0.1%,0.3%,1%,3%,10%,30%")]
    sizes: Vec<Size>,
    /// Draw hit ratios over sizes into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Replays at the same time; by default one per core
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

/// A size of the cache.
#[derive(Debug, Clone, PartialEq)]
enum Size {
    Bytes(u64),
    Percent(f64),
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(percent) = text.strip_suffix('%') {
            return match percent.parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self::Percent(percent)),
                _ => Err("expected more than 0% and at most 100%".to_string()),
            };
        }
        let mut bytes = 0u64;
        bytes.assign(text).map_err(|error| error.to_string())?;
        Ok(Self::Bytes(bytes))
    }
}

impl Size {
    fn of(&self, trace: &Trace) -> u64 {
        match self {
            Self::Bytes(bytes) => *bytes,
            Self::Percent(percent) => (trace.footprint() as f64 * percent / 100.0) as u64,
        }
    }
}

impl std::str::FromStr for Player {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == Self::Clairvoyant.name() {
            return Ok(Self::Clairvoyant);
        }
        let known = PolicyKind::NAMES.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, kind)| Self::Policy(*kind))
            .ok_or_else(|| "no policy has that name".to_string())
    }
}

impl Arguments {
    /// Checks that the curves are not drawn into the trace.
    fn check_plot(&self) -> Result<(), Failure> {
        let file = |path: &Option<PathBuf>| path.as_ref()?.canonicalize().ok();
        match file(&self.plot) {
            plot @ Some(_) if plot == file(&self.trace) => {
                Err(Failure::Usage("--plot would replace the trace".to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    arguments.check_plot()?;
    let clock = Env::os().clock;
    let started = clock.now_us();
    let trace = obtain(arguments)?;
    if trace.requests.is_empty() {
        return Err(Failure::Other("the trace has no requests".to_string()));
    }
    // Before the replays, which may take hours.
    let plot = match &arguments.plot {
        Some(path) => Some(Env::os().fs.create_writable(path, IoMode::Buffered)?),
        None => None,
    };
    let obtained = clock.now_us();
    let mut sizes: Vec<u64> = arguments.sizes.iter().map(|size| size.of(&trace)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let curves = replay_all(arguments, &trace, &sizes);
    let seconds = [obtained - started, clock.now_us() - obtained].map(|us| us as f64 / 1e6);
    let printed =
        report::Report { trace: &trace, sizes: &sizes, curves: &curves, seconds }.print(common);
    // Last, so that a full disk does not take the report of hours of replays with it; nor does a
    // reader who goes away take them.
    if let Some(file) = plot {
        file.write_at(0, plot::svg(&trace, &sizes, &curves).as_bytes())?;
    }
    printed.map(|()| Verdict::Sound)
}

fn obtain(arguments: &Arguments) -> Result<Trace, Failure> {
    match (&arguments.trace, &arguments.synthetic) {
        // What helps a damaged database is no help for a trace.
        (Some(path), _) => read::read(path, arguments.format).map_err(|error| {
            if error.is_corruption() { Failure::Other(error.to_string()) } else { error.into() }
        }),
        (None, Some(synthetic)) => {
            let progress = Progress::things(arguments.requests, "requests made up");
            Ok(synthetic.generate(arguments.requests, arguments.seed, &progress))
        }
        (None, None) => Err(Failure::Usage("give a trace, or --synthetic".to_string())),
    }
}

/// What came of one policy, size by size.
struct Curve {
    player: Player,
    points: Vec<Counts>,
}

fn replay_all(arguments: &Arguments, trace: &Trace, sizes: &[u64]) -> Vec<Curve> {
    let mut players: Vec<Player> = Vec::new();
    for player in &arguments.policies {
        if !players.contains(player) {
            players.push(*player);
        }
    }
    let future = if players.contains(&Player::Clairvoyant) {
        clairvoyant::next_uses(&trace.requests)
    } else {
        Vec::new()
    };
    // The slowest come first, so that no thread is left alone with one of them at the end.
    let mut waiting: Vec<(Player, usize)> =
        players.iter().flat_map(|player| (0..sizes.len()).map(|at| (*player, at))).collect();
    waiting.sort_by_key(|(player, _)| player.is_slow());
    let passes = waiting.len();
    let progress =
        Progress::things(passes as u64 * trace.requests.len() as u64, "requests replayed");
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = arguments.threads.map_or(cores, NonZeroUsize::get).min(passes);
    let (waiting, done) = (Mutex::new(waiting), Mutex::new(Vec::with_capacity(passes)));
    let lock = |error| -> ! { panic!("a replay panicked: {error}") };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(|error| lock(error.to_string())).pop();
                    let Some((player, at)) = next else { break };
                    let counts = player.play(trace, &future, sizes[at], &progress);
                    done.lock()
                        .unwrap_or_else(|error| lock(error.to_string()))
                        .push((player, at, counts));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|error| lock(error.to_string()));
    done.sort_by_key(|(_, at, _)| *at);
    let points =
        |player| done.iter().filter(|(of, ..)| *of == player).map(|(.., counts)| *counts).collect();
    players.into_iter().map(|player| Curve { player, points: points(player) }).collect()
}

#[cfg(test)]
mod tests;
