//! The command line: tasks that are not in the file of results yet, each in a process of its own,
//! then the table.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::contender::Contender;
use super::play::play;
use super::tables::Found;
use super::task::{Exercise, Outcome, Task};
use crate::campaign::{Workshop, output_of};
use crate::engine::Result;
use crate::environment::Environment;
use crate::measure;
use crate::store::{self, Line, Store};

/// What both commands take.
#[derive(Args)]
pub struct Arguments {
    /// The file of results; what it has is not measured again.
    results: PathBuf,
    /// Where databases are made (and removed again).
    #[arg(long)]
    directory: PathBuf,
    /// Bytes of a value, separated by commas [default: 1 KiB to 1 MiB for space, 100 and 800 for
    /// steady].
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<u32>,
    /// Who takes part; all that the table compares if none.
    #[arg(long, value_delimiter = ',')]
    contenders: Vec<Contender>,
    /// Bytes of live data [default: 512 MiB for space, 256 MiB for steady].
    #[arg(long)]
    live: Option<u64>,
    /// How many times as much is overwritten [default: 2 for space, 5 for steady, of which the
    /// first is not counted].
    #[arg(long)]
    times: Option<u64>,
    /// Rounds; every second one goes backwards [default: 1 for space, 2 for steady].
    #[arg(long)]
    rounds: Option<u32>,
    /// An option beyond the usual ones, as CONTENDER:NAME=VALUE. Can be given more than once.
    #[arg(long = "set", value_parser = parse_setting)]
    settings: Vec<(Contender, String, String)>,
    /// The longest that one process may take, in seconds.
    #[arg(long, default_value_t = 600)]
    limit: u64,
}

/// What one process is told.
#[derive(Args)]
pub struct PlayArguments {
    /// What to do, as JSON.
    task: String,
    /// The database's directory.
    #[arg(long)]
    directory: PathBuf,
}

fn parse_setting(text: &str) -> std::result::Result<(Contender, String, String), String> {
    let form = || "expected CONTENDER:NAME=VALUE".to_string();
    let (contender, rest) = text.split_once(':').ok_or_else(form)?;
    let (name, value) = rest.split_once('=').ok_or_else(form)?;
    Ok((<Contender as ValueEnum>::from_str(contender, false)?, name.to_string(), value.to_string()))
}

/// Does one task, in this process.
pub fn play_one(arguments: &PlayArguments) -> Result<Outcome> {
    play(&serde_json::from_str(&arguments.task)?, &arguments.directory)
}

/// Does the tasks of an exercise that are not done yet, and gives the table.
pub fn run(exercise: Exercise, arguments: &Arguments) -> Result<String> {
    let known = store::read(&arguments.results)?;
    let is_known = |task: &Task| {
        known
            .iter()
            .any(|line| matches!(line, Line::Amplification(outcome) if outcome.task == *task))
    };
    let tasks: Vec<Task> =
        tasks(exercise, arguments).into_iter().filter(|task| !is_known(task)).collect();
    let mut failed = 0;
    if !tasks.is_empty() {
        let workshop = Workshop::open(&arguments.directory)?;
        let mut store = Store::open(&arguments.results)?;
        store.append(&Line::Environment(Environment::look(&arguments.directory)?))?;
        for task in &tasks {
            match measured(task, &workshop, Duration::from_secs(arguments.limit)) {
                Ok(outcome) => store.append(&Line::Amplification(Box::new(outcome)))?,
                Err(error) => {
                    failed += 1;
                    eprintln!("{}: {error}", task.name());
                }
            }
        }
    }
    if failed > 0 {
        return Err(format!("{failed} of {} tasks failed", tasks.len()).into());
    }
    Ok(Found::new(&store::read(&arguments.results)?, exercise).text(exercise))
}

/// All tasks in their order: sizes, within them rounds, within these contenders.
fn tasks(exercise: Exercise, arguments: &Arguments) -> Vec<Task> {
    use Contender as C;
    let (sizes, contenders, live, times, rounds) = match exercise {
        Exercise::Space => {
            let sizes: Vec<u32> = (0..6).map(|step| 1024 << (2 * step)).collect();
            (
                sizes,
                vec![C::Flagstone, C::RocksdbLeveled, C::RocksdbUniversal, C::RocksdbBlob],
                512 << 20,
                2,
                1,
            )
        }
        Exercise::Steady => {
            let pairs =
                [C::Flagstone, C::RocksdbLeveled, C::FlagstoneUniversal, C::RocksdbUniversal];
            (vec![100, 800], pairs.to_vec(), 256 << 20, 5, 2)
        }
    };
    let given =
        |list: &[Contender]| if list.is_empty() { contenders.clone() } else { list.to_vec() };
    let contenders = given(&arguments.contenders);
    let sizes = if arguments.sizes.is_empty() { sizes } else { arguments.sizes.clone() };
    let mut tasks = Vec::new();
    for value_size in sizes {
        for round in 0..arguments.rounds.unwrap_or(rounds) {
            let mut order = contenders.clone();
            if round % 2 == 1 {
                order.reverse();
            }
            tasks.extend(order.into_iter().filter(|contender| contender.engine().is_built()).map(
                |contender| {
                    let own = arguments.settings.iter().filter(|(of, ..)| *of == contender);
                    Task {
                        contender,
                        exercise,
                        value_size,
                        live_bytes: arguments.live.unwrap_or(live),
                        times: arguments.times.unwrap_or(times),
                        round,
                        options: own
                            .map(|(_, name, value)| (name.clone(), value.clone()))
                            .collect(),
                    }
                },
            ));
        }
    }
    tasks
}

fn measured(task: &Task, workshop: &Workshop, limit: Duration) -> Result<Outcome> {
    let directory = workshop.directory_for(task.contender.engine(), false)?;
    rustix::fs::sync();
    // Memory that a virtual machine's host has to find first is nobody's fault.
    measure::touch_memory(task.live_bytes * 2);
    let mut command = Command::new(workshop.program());
    command.arg("play").arg(serde_json::to_string(task)?).arg("--directory").arg(&directory);
    let output = output_of(&mut command, limit);
    fs::remove_dir_all(&directory)?;
    Ok(serde_json::from_str(&output?)?)
}
