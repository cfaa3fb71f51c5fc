//! `laboratory crashes`: every directory that a power loss may leave, opened.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use flagstone::env::Env;
use indicatif::{ProgressBar, ProgressStyle};
use testkit::crash::{Effort, Explorer, SCENARIOS, Scenario, Trail};

/// Loses power at every moment of short lives of a database, in every way, and opens what is left.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ends the campaign after so many distinct states.
    #[arg(long, default_value_t = 1_000_000)]
    states: u64,
    /// The first seed; each scenario is lived once with each.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; by default one a core.
    #[arg(long)]
    threads: Option<usize>,
    /// Only this scenario.
    #[arg(long)]
    scenario: Option<String>,
    /// Opens only this one state of the scenario's life: as a finding names it.
    #[arg(long, requires = "scenario")]
    at: Option<Trail>,
    /// Ends the campaign after so many faults.
    #[arg(long, default_value_t = 10)]
    faults_max: usize,
}

/// How many faults were found.
pub fn run(arguments: &Arguments) -> usize {
    let asked =
        |scenario: &&Scenario| arguments.scenario.as_ref().is_none_or(|name| name == scenario.name);
    let scenarios: Vec<&'static Scenario> = SCENARIOS.iter().filter(asked).collect();
    if scenarios.is_empty() {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        eprintln!("no such scenario; there are {}", names.join(", "));
        return 1;
    }
    let explorer = Explorer::new(arguments.states);
    if let Some(trail) = &arguments.at {
        let outcome = explorer.repeat(scenarios[0], arguments.seed, trail);
        match &outcome {
            Ok(()) => println!("nothing found"),
            Err(finding) => println!("FAULT\n{finding}"),
        }
        return usize::from(outcome.is_err());
    }
    campaign(arguments, &scenarios, &explorer)
}

fn campaign(arguments: &Arguments, scenarios: &[&'static Scenario], explorer: &Explorer) -> usize {
    let threads = arguments
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let clock = Env::os().clock;
    let begun = clock.now_us();
    let progress = ProgressBar::new(arguments.states).with_style(
        ProgressStyle::with_template(
            "crashes {wide_bar} {pos}/{len} states, {per_sec}, {elapsed}, {eta} left",
        )
        .expect("a template without mistakes"),
    );
    progress.enable_steady_tick(Duration::from_secs(1));
    let (next, faults) = (AtomicU64::new(0), AtomicUsize::new(0));
    let explore = || {
        while faults.load(Ordering::Relaxed) < arguments.faults_max && !explorer.is_done() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let scenario = scenarios[index as usize % scenarios.len()];
            let seed = arguments.seed + index / scenarios.len() as u64;
            if let Err(finding) = explorer.explore(scenario, seed, &Effort::CAMPAIGN) {
                faults.fetch_add(1, Ordering::Relaxed);
                progress.suspend(|| println!("FAULT\n{finding}\n"));
            }
            progress.set_position(explorer.figures().distinct);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(explore);
        }
    });
    progress.finish_and_clear();
    let faults = faults.into_inner();
    let seconds = (clock.now_us() - begun) as f64 / 1e6;
    println!(
        "crashes: {} scenarios, seeds from {} on, {}; {faults} faults, {seconds:.1} s, {threads} threads",
        scenarios.len(),
        arguments.seed,
        explorer.figures()
    );
    faults
}
