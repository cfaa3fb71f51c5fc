//! `peers transactions`: measures parts in turns, and shows medians and their ratios.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use super::Engine;
use super::exercise::{Exercise, Figures};
use crate::engine::Result;
use crate::statistics::{estimate, median};

const ENGINES: [Engine; 2] = [Engine::Flagstone, Engine::Rocksdb];

#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed again).
    #[arg(long)]
    directory: PathBuf,
    /// Rows of the database.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How long transactions run in each part, in milliseconds.
    #[arg(long, default_value_t = 3000)]
    millis: u64,
    /// Threads that run transactions.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    threads: Vec<u64>,
    /// Entries of batches with an index.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1000, 100_000])]
    entries: Vec<u64>,
    /// Locks that are held at once.
    #[arg(long, default_value_t = 1_000_000)]
    locks: u64,
    /// How often each part is measured with each engine.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

/// One part.
#[derive(clap::Args)]
pub struct PartArguments {
    #[arg(long, value_enum)]
    engine: Engine,
    #[arg(long)]
    directory: PathBuf,
    /// What is measured, as JSON.
    #[arg(long)]
    exercise: String,
}

/// Measures one part, and prints its figures as JSON.
pub fn part(arguments: &PartArguments) -> Result<()> {
    let exercise: Exercise = serde_json::from_str(&arguments.exercise)?;
    let figures = exercise.run(arguments.engine, &arguments.directory)?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

/// Has a process of its own measure a part.
fn measure(engine: Engine, exercise: &Exercise, directory: &Path) -> Result<Figures> {
    let name = engine.to_possible_value().expect("it has a name");
    let said = Command::new(std::env::current_exe()?)
        .args(["transactions-part", "--engine", name.get_name()])
        .args(["--exercise", &serde_json::to_string(exercise)?])
        .arg("--directory")
        .arg(directory)
        .output()?;
    if !said.status.success() {
        let words = String::from_utf8_lossy(&said.stderr);
        return Err(format!("{engine:?}, {exercise:?}, {}: {words}", said.status).into());
    }
    Ok(serde_json::from_slice(&said.stdout)?)
}

/// The figures of each engine, by name.
type Measured = BTreeMap<String, [Vec<f64>; 2]>;

/// Measures with both engines in turns; which is first changes from round to round.
fn in_turns(
    exercise: &Exercise,
    rounds: usize,
    directory: impl Fn(Engine) -> PathBuf,
) -> Result<Measured> {
    let mut measured = Measured::new();
    for round in 0..rounds {
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let figures = measure(ENGINES[at], exercise, &directory(ENGINES[at]))?;
            for (name, figure) in figures {
                measured.entry(name).or_default()[at].push(figure);
            }
        }
    }
    Ok(measured)
}

fn show(what: &str, measured: &Measured) {
    for (name, [flagstone, rocksdb]) in measured {
        if name.starts_with("conflicts") {
            let (ours, theirs) = (median(flagstone), median(rocksdb));
            println!("{what:<42} {name:<24} {ours:>12.1} {theirs:>12.1}");
            continue;
        }
        // What is counted by the second is better if it is more, all else if it is less.
        let is_rate = name == "per second";
        let pairs = flagstone.iter().zip(rocksdb);
        let ratios: Vec<_> = pairs
            .map(|(ours, theirs)| if is_rate { ours / theirs } else { theirs / ours })
            .collect();
        let ratio = estimate(&ratios);
        println!(
            "{what:<42} {name:<24} {:>12.1} {:>12.1} {:>6.2} ({:.2} to {:.2})",
            median(flagstone),
            median(rocksdb),
            ratio.median,
            ratio.low,
            ratio.high
        );
    }
}

/// Measures all parts.
pub fn run(arguments: &Arguments) -> Result<()> {
    println!(
        "{:<42} {:<24} {:>12} {:>12} {:>6}",
        "part", "figure", "Flagstone", "RocksDB", "times as good (interval)"
    );
    for is_optimistic in [false, true] {
        let kind = if is_optimistic { "optimistic" } else { "pessimistic" };
        let place = |engine: Engine| arguments.directory.join(format!("{kind}-{engine:?}"));
        for engine in ENGINES {
            make_anew(&place(engine))?;
            let fill = Exercise::Fill { is_optimistic, rows: arguments.rows };
            measure(engine, &fill, &place(engine))?;
        }
        for is_contended in [false, true] {
            for &threads in &arguments.threads {
                let Arguments { rows, millis, rounds, .. } = *arguments;
                let exercise =
                    Exercise::Small { is_optimistic, is_contended, threads, rows, millis };
                let contention = if is_contended { "high" } else { "low" };
                let what = format!("{kind}, {contention} contention, {threads} threads");
                show(&what, &in_turns(&exercise, rounds, place)?);
            }
        }
        ENGINES.into_iter().try_for_each(|engine| std::fs::remove_dir_all(place(engine)))?;
    }
    let place = |engine: Engine| arguments.directory.join(format!("empty-{engine:?}"));
    ENGINES.into_iter().try_for_each(|engine| make_anew(&place(engine)))?;
    for &entries in &arguments.entries {
        let measured = in_turns(&Exercise::Batch { entries }, arguments.rounds, place)?;
        show(&format!("batch with an index, {entries} entries"), &measured);
    }
    let measured =
        in_turns(&Exercise::Locks { count: arguments.locks }, arguments.rounds.min(3), place)?;
    show(&format!("{} locks held", arguments.locks), &measured);
    ENGINES.into_iter().try_for_each(|engine| std::fs::remove_dir_all(place(engine)))?;
    Ok(())
}

fn make_anew(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(std::fs::create_dir_all(directory)?)
}
