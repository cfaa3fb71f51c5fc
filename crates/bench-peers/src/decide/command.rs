//! `peers decide`: plays lives, one process for each turn, so that a process can be killed.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::life::{Life, Model, Policy};
use super::open;
use crate::engine::Result;

/// The signal of a process that aborts.
const ABORTED: i32 = 6;

#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed again).
    #[arg(long)]
    directory: PathBuf,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Keeps the database of a life that fails.
    #[arg(long)]
    keep: bool,
}

/// One process's part.
#[derive(clap::Args)]
pub struct TurnArguments {
    #[arg(long)]
    directory: PathBuf,
    #[arg(long)]
    seed: u64,
    /// The number of the turn; that of no turn only looks.
    #[arg(long)]
    turn: usize,
}

/// Plays one turn.
pub fn turn(arguments: &TurnArguments) -> Result<()> {
    let life = Life::draw(arguments.seed);
    let turn = life.turns.get(arguments.turn);
    let last_led_by_flagstone = life.turns.last().is_some_and(|turn| turn.policy.is_none());
    let policy = match turn {
        Some(turn) => turn.policy,
        // RocksDB can always look at what Flagstone has left, and Flagstone at anything.
        None => last_led_by_flagstone.then_some(Policy::WriteCommitted),
    };
    let mut database = open(&arguments.directory, policy)?;
    let mut model = Model::before(&life, arguments.turn.min(life.turns.len()));
    check(&mut *database, &model, "at the start")?;
    let Some(turn) = turn else { return database.close() };
    for (number, step) in turn.steps.iter().enumerate() {
        database.act(step).map_err(|error| format!("step {number}, {step:?}: {error}"))?;
        model.apply(step);
    }
    check(&mut *database, &model, "at the end")?;
    if !turn.is_killed {
        return database.close();
    }
    // Nothing is closed, and no destructor runs.
    std::process::abort()
}

fn check(database: &mut dyn super::Decider, model: &Model, when: &str) -> Result<()> {
    let prepared: Vec<_> = model.prepared.keys().cloned().collect();
    let found = database.prepared()?;
    if found != prepared {
        return Err(format!("{when}: prepared is {found:?}, and should be {prepared:?}").into());
    }
    let contents = database.contents()?;
    if contents != model.committed {
        let wrong: Vec<_> = contents
            .keys()
            .chain(model.committed.keys())
            .filter(|key| contents.get(*key) != model.committed.get(*key))
            .map(|key| String::from_utf8_lossy(key))
            .collect();
        return Err(format!("{when}: other values than in the model for {wrong:?}").into());
    }
    Ok(())
}

/// Plays lives.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut turns = 0;
    let seeds = arguments.first..arguments.first + arguments.count;
    for seed in seeds.clone() {
        let directory = arguments.directory.join(format!("decide-{seed}"));
        let lived = live(seed, &directory);
        if lived.is_ok() || !arguments.keep {
            std::fs::remove_dir_all(&directory)?;
        }
        turns += lived.map_err(|error| {
            let place = arguments.directory.display();
            format!(
                "seed {seed}: {error}\nagain: peers decide --directory {place} --first {seed} --count 1 --keep"
            )
        })?;
    }
    println!("{} lives of {turns} turns, seeds {seeds:?}: they agree", arguments.count);
    Ok(())
}

fn live(seed: u64, directory: &Path) -> Result<usize> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    std::fs::create_dir_all(directory)?;
    let life = Life::draw(seed);
    for turn in 0..=life.turns.len() {
        let said = Command::new(std::env::current_exe()?)
            .args(["decide-turn", "--seed", &seed.to_string(), "--turn", &turn.to_string()])
            .arg("--directory")
            .arg(directory)
            .output()?;
        let is_killed = life.turns.get(turn).is_some_and(|turn| turn.is_killed);
        let is_well =
            if is_killed { said.status.signal() == Some(ABORTED) } else { said.status.success() };
        if !is_well {
            let policy = life.turns.get(turn).map(|turn| turn.policy);
            let words = String::from_utf8_lossy(&said.stderr);
            return Err(format!("turn {turn}, {policy:?}, {}: {words}", said.status).into());
        }
    }
    Ok(life.turns.len())
}
