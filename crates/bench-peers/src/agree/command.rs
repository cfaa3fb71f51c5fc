//! `peers agree`: plays lives, one process for each turn, so that a process can be killed and an
//! engine may crash.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::OFlags;

use super::choices::DIRECT;
use super::life::{Ending, Life};
use super::play::Stage;
use crate::engine::Result;

/// What is said when all is done but the ending.
const READY: &str = "ready";

/// The longest that a turn may take, in moments of a second that its process lives through.
const MOMENTS_MAX: u32 = 60;

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
    /// Keeps the database of a life that fails, and as it was before the turn in which it did.
    #[arg(long)]
    keep: bool,
    /// Goes on with the next seed after one that fails.
    #[arg(long)]
    go_on: bool,
    /// Options that are left out where they are drawn, separated by commas: which one is it?
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Shows what each life consists of.
    #[arg(long)]
    show: bool,
}

/// One process's part.
#[derive(clap::Args)]
pub struct TurnArguments {
    #[arg(long)]
    directory: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    turn: usize,
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Opens the database for reading by both engines, instead of playing.
    #[arg(long)]
    look: bool,
}

/// Plays one turn, or looks at what it has left.
pub fn turn(arguments: &TurnArguments) -> Result<()> {
    std::thread::spawn(|| {
        (0..MOMENTS_MAX).for_each(|_| std::thread::sleep(Duration::from_secs(1)));
        eprintln!("it takes more than {MOMENTS_MAX} seconds");
        std::process::abort();
    });
    let stage = Stage::new(arguments.seed, &arguments.without, &arguments.directory);
    if arguments.look {
        return stage.look(arguments.turn);
    }
    let party = stage.act(arguments.turn)?;
    if stage.life.turns[arguments.turn].ending == Ending::Close {
        return party.close().map_err(|error| format!("closing: {error}").into());
    }
    println!("{READY}");
    // Until the end.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Err("it should have been killed".into())
}

/// Plays lives.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (mut failed, mut turns) = (Vec::new(), 0);
    let seeds = arguments.first..arguments.first + arguments.count;
    let without = left_out(arguments)?;
    for seed in seeds.clone() {
        let directory = arguments.directory.join(format!("agree-{seed}"));
        let life = Life::draw(seed, &without);
        turns += life.turns.len();
        if arguments.show {
            println!("{life:#?}");
        }
        let outcome = live(seed, &life, &directory, &without, arguments.keep);
        if let Err(error) = &outcome {
            println!("seed {seed}: {error}");
            println!("again: {}\n", again(arguments, seed));
            failed.push(seed);
        }
        if (outcome.is_ok() || !arguments.keep) && directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        if outcome.is_err() && !arguments.go_on {
            break;
        }
    }
    if failed.is_empty() {
        println!("{} lives of {turns} turns, seeds {seeds:?}: they agree", arguments.count);
        return Ok(());
    }
    Err(format!("lives failed: {failed:?}").into())
}

fn again(arguments: &Arguments, seed: u64) -> String {
    let directory = arguments.directory.display();
    let without = if arguments.without.is_empty() {
        String::new()
    } else {
        format!(" --without {}", arguments.without.join(","))
    };
    format!("peers agree --directory {directory} --first {seed} --count 1 --keep{without}")
}

/// With what the file system does not permit.
fn left_out(arguments: &Arguments) -> Result<Vec<String>> {
    std::fs::create_dir_all(&arguments.directory)?;
    let probe = arguments.directory.join("direct");
    let flags = i32::try_from(OFlags::DIRECT.bits())?;
    let is_permitted =
        OpenOptions::new().create(true).write(true).custom_flags(flags).open(&probe).is_ok();
    std::fs::remove_file(probe)?;
    let direct = DIRECT.iter().filter(|_| !is_permitted).map(|name| name.to_string());
    Ok(arguments.without.iter().cloned().chain(direct).collect())
}

fn live(seed: u64, life: &Life, directory: &Path, without: &[String], keep: bool) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    std::fs::create_dir_all(directory)?;
    for (number, turn) in life.turns.iter().enumerate() {
        if keep {
            let before = directory.with_extension("before");
            copy_anew(directory, &before)?;
        }
        let told = |error| format!("turn {number}, of {:?}, {:?}: {error}", turn.who, turn.ending);
        let process = |look| start(seed, number, directory, without, look);
        play(process(false)?, turn.ending).map_err(told)?;
        finish(process(true)?)
            .map_err(|error| told(format!("what it has left: {error}").into()))?;
    }
    if keep {
        std::fs::remove_dir_all(directory.with_extension("before"))?;
    }
    Ok(())
}

fn start(
    seed: u64,
    turn: usize,
    directory: &Path,
    without: &[String],
    look: bool,
) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("turn").arg("--directory").arg(directory);
    command.args(["--seed", &seed.to_string(), "--turn", &turn.to_string()]);
    if !without.is_empty() {
        command.args(["--without", &without.join(",")]);
    }
    if look {
        command.arg("--look");
    }
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

fn finish(child: Child) -> Result<()> {
    let output = child.wait_with_output()?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("{} ({})", said.trim_start_matches("peers: ").trim_end(), output.status).into())
    }
}

fn play(mut child: Child, ending: Ending) -> Result<()> {
    if ending == Ending::Kill
        && let Some(output) = child.stdout.take()
    {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.trim_end() == READY {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
    }
    finish(child)
}

pub fn copy_anew(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_anew(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
