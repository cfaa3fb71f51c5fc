//! `laboratory transactions`: threads run transactions, processes are killed, and the histories are
//! judged.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flagstone::env::Env;
use testkit::caught::catch;
use testkit::transactions::{ENOUGH, Ending, Figures, Kind, Life, NOTED, judge_round, look, play};

/// Lets threads run random transactions on a real database whose process is killed (SIGKILL) or
/// closed after each round, and judges what they saw: locked reads must be strictly serializable,
/// reads in a snapshot isolated. After a fault the files stay.
#[derive(clap::Args)]
#[command(after_help = "Example: laboratory transactions --kind optimistic --seconds 600")]
pub struct Arguments {
    /// How databases keep transactions apart; by default each kind has its time.
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// How long each kind goes on.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Lives so many lives of each kind instead.
    #[arg(long, conflicts_with = "seconds")]
    count: Option<u64>,
    /// The seed of the first life.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Only the life of this seed.
    #[arg(long, conflicts_with_all = ["first", "count", "seconds"])]
    seed: Option<u64>,
    /// Rounds of a life, on one directory.
    #[arg(long, default_value_t = 6)]
    rounds: u64,
    /// Threads of a life.
    #[arg(long, default_value_t = 4)]
    threads: usize,
    /// Transactions of the longest rounds; most have fewer.
    #[arg(long, default_value_t = 10_000)]
    transactions: u64,
    /// Where the directories of lives are made; by default in memory, if possible.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Is the process of this round.
    #[arg(long, hide = true, requires = "seed")]
    round: Option<u64>,
}

fn kind(name: &str) -> Result<Kind, String> {
    let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let names = Kind::ALL.map(Kind::name).join(", ");
    known.ok_or_else(|| format!("there is no kind {name}; there are: {names}"))
}

/// How many lives showed a fault.
pub fn run(arguments: &Arguments) -> usize {
    if let Some(round) = arguments.round {
        return be_round(arguments, round);
    }
    let kinds =
        Kind::ALL.into_iter().filter(|kind| arguments.kind.is_none_or(|only| only == *kind));
    kinds.map(|kind| usize::from(!campaign(arguments, kind))).sum()
}

/// Lives life after life; whether none showed a fault.
fn campaign(arguments: &Arguments, kind: Kind) -> bool {
    let clock = Env::os().clock;
    let begun = clock.now_us();
    let seconds = || (clock.now_us() - begun) as f64 / 1e6;
    let (first, count) = match arguments.seed {
        Some(seed) => (seed, Some(1)),
        None => (arguments.first, arguments.count),
    };
    let mut figures = Figures::default();
    let (mut lives, mut kills, mut is_sound) = (0, 0, true);
    let is_over = |lives: u64| match count {
        Some(count) => lives >= count,
        None => lives > 0 && seconds() >= arguments.seconds as f64,
    };
    while is_sound && !is_over(lives) {
        let seed = first + lives;
        if let Err(said) = live(arguments, kind, seed, &mut figures, &mut kills) {
            println!("transactions: FAULT with --kind {} --seed {seed}\n{said}\n", kind.name());
            is_sound = false;
        }
        lives += 1;
    }
    println!(
        "transactions, {}: {lives} lives from {first} on, {} rounds, {kills} killed, {} transactions \
         committed, {} failed, {} killed at commit, {} reads; {:.1} s",
        kind.name(),
        figures.rounds,
        figures.committed,
        figures.failed,
        figures.unknown,
        figures.reads,
        seconds()
    );
    is_sound
}

/// Lives one life. Each round is judged while the next one runs.
fn live(
    arguments: &Arguments,
    kind: Kind,
    seed: u64,
    figures: &mut Figures,
    kills: &mut u64,
) -> Result<(), String> {
    let memory = Path::new("/dev/shm");
    let parent = arguments.directory.clone().unwrap_or_else(|| {
        if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() }
    });
    let directory = tempfile::tempdir_in(&parent).map_err(|error| error.to_string())?;
    let life = Life {
        kind,
        seed,
        directory: directory.path().to_path_buf(),
        threads: arguments.threads,
        transactions_max: arguments.transactions,
    };
    let lived = (0..arguments.rounds)
        .try_for_each(|round| {
            let mut child = Running::start(&life, round)?;
            child.hear(NOTED)?;
            if round > 0 {
                judged(&life, round - 1, figures)?;
            }
            *kills += u64::from(life.ending(round) == Ending::Killed);
            child.end(life.ending(round))
        })
        .and_then(|()| {
            let looked = catch(|| look(&life, arguments.rounds));
            looked?.map_err(|error| format!("after the last round: {error}"))?;
            judged(&life, arguments.rounds - 1, figures)
        });
    lived.map_err(|said| format!("{said}\nfiles: {}", directory.keep().display()))
}

fn judged(life: &Life, round: u64, figures: &mut Figures) -> Result<(), String> {
    judge_round(life, round, figures).map_err(|said| format!("round {round}: {said}"))
}

/// The process of a round.
struct Running {
    round: u64,
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(life: &Life, round: u64) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["transactions", "--kind", life.kind.name()]);
        for (name, value) in [
            ("seed", life.seed),
            ("round", round),
            ("threads", life.threads as u64),
            ("transactions", life.transactions_max),
        ] {
            command.arg(format!("--{name}")).arg(value.to_string());
        }
        command.arg("--directory").arg(&life.directory).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Self { round, child, said })
    }

    /// Waits until the process says this.
    fn hear(&mut self, expected: &str) -> Result<(), String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| error.to_string())?;
        if line.trim_end() == expected {
            return Ok(());
        }
        self.said.read_to_string(&mut line).map_err(|error| error.to_string())?;
        Err(format!("round {}: the process said instead of '{expected}': {line}", self.round))
    }

    /// Kills the process when it has done enough, or waits until it has closed the database.
    fn end(mut self, ending: Ending) -> Result<(), String> {
        self.hear(ENOUGH)?;
        if ending == Ending::Killed {
            self.child.kill().map_err(|error| error.to_string())?;
        }
        let mut said = String::new();
        self.said.read_to_string(&mut said).map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let is_as_meant = match ending {
            Ending::Killed => said.is_empty(),
            Ending::Closed => status.success(),
        };
        if is_as_meant {
            Ok(())
        } else {
            Err(format!("round {}: the process ended with {status}: {said}", self.round))
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, or something is wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays a round in this process.
fn be_round(arguments: &Arguments, round: u64) -> usize {
    let life = Life {
        kind: arguments.kind.expect("the process that started this one says so"),
        seed: arguments.seed.expect("the process that started this one says so"),
        directory: arguments.directory.clone().expect("the process that started this one says so"),
        threads: arguments.threads,
        transactions_max: arguments.transactions,
    };
    match catch(|| play(&life, round, life.ending(round), &|line| println!("{line}"))) {
        Ok(Ok(())) => std::process::exit(0),
        Ok(Err(said)) | Err(said) => println!("{said}"),
    }
    std::process::exit(1)
}
