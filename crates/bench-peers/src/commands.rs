//! The command line.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::amplification::{Exercise, command};
use crate::campaign::Campaign;
use crate::cell::{Compression, Durability, Effort, EngineName, Look, Memory, Track};
use crate::engine::Result;
use crate::plan::{Selection, plan};
use crate::program;
use crate::run::{self, Assignment, Place};
use crate::workload::Workload;
#[cfg(feature = "rocksdb")]
use crate::{agree, decide, transactions};
use crate::{copies, report, store};

const EXAMPLES: &str = "Examples:
  All of it, then the tables (hours; on a machine with nothing else to do):
    peers run results.jsonl --directory /path/on/the/device
    peers report results.jsonl
  The tables into docs/benchmarks/*.csv, where the run is called RUN:
    peers report results.jsonl | scripts/benchmarks-page --import RUN
  Some minutes, to see where one stands:
    peers run quick.jsonl --directory /tmp/peers --quick --workloads fillrandom,readrandom --engines flagstone,rocksdb
    peers report quick.jsonl
  An option tried out:
    peers run try.jsonl --directory /tmp/peers --quick --set flagstone:write_buffer_size=134217728
  Reads from the device, in both ways:
    peers run cold.jsonl --directory /path/on/the/device --memories cold,direct --sizes 100
  Flagstone in a program that has no other engine, for its memory (the first builds it):
    cargo build --release --no-default-features --target-dir target/alone
    peers run alone.jsonl --directory /tmp/peers --workloads largeload --program flagstone=target/alone/release/peers
  Both engines on the same files, which RocksDB has made:
    peers run same.jsonl --directory /tmp/peers --workloads readrandom --tracks tuned --database-of rocksdb
  Bytes written and bytes on the disk beside live ones, for values of 1 KiB to 1 MiB (a quarter of an hour):
    peers space amplification.jsonl --directory /path/on/the/device
  The same for another bound, beside what was measured before:
    peers space amplification.jsonl --directory /tmp/peers --contenders flagstone --set flagstone:max_space_amplification=2
  Lives of databases that Flagstone and RocksDB lead by turns, compared with a model:
    peers agree --directory /dev/shm --first 1000 --count 500
  An interrupted campaign goes on when the same command is given again.";

/// Measures Flagstone beside RocksDB, LevelDB, fjall, redb and LMDB.
#[derive(Parser)]
#[command(name = "peers", version = env!("PEERS_COMMIT"), long_version = program::VERSION, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures, and appends to a file of results what is not in it yet.
    Run(Box<RunArguments>),
    /// Shows what files of results say.
    Report(ReportArguments),
    /// Lists the cells that a run would measure, and how long that takes.
    List(SelectionArguments),
    /// Measures write amplification and space of large values, and shows them in one table.
    Space(command::Arguments),
    /// Measures throughput beside write amplification of small values that are overwritten again
    /// and again.
    Steady(command::Arguments),
    /// Plays lives of databases that Flagstone and RocksDB lead by turns, and compares all that
    /// they read.
    #[cfg(feature = "rocksdb")]
    Agree(agree::command::Arguments),
    /// One turn of such a life; `peers agree` starts these.
    #[cfg(feature = "rocksdb")]
    #[command(hide = true)]
    Turn(agree::command::TurnArguments),
    /// Plays lives of databases in which one engine prepares transactions and the other decides
    /// them.
    #[cfg(feature = "rocksdb")]
    Decide(decide::command::Arguments),
    /// One turn of such a life; `peers decide` starts these.
    #[cfg(feature = "rocksdb")]
    #[command(hide = true)]
    DecideTurn(decide::command::TurnArguments),
    /// Measures small transactions, batches with an index and locks that are held, beside RocksDB
    /// (a quarter of an hour).
    #[cfg(feature = "rocksdb")]
    Transactions(transactions::command::Arguments),
    /// One part; `peers transactions` starts these.
    #[cfg(feature = "rocksdb")]
    #[command(hide = true)]
    TransactionsPart(transactions::command::PartArguments),
    /// Measures what backups cost a writer, how much an increment copies, and how far a secondary
    /// is behind (half an hour, and three times the database's bytes on the device).
    Copies(copies::Arguments),
    /// One task; `peers space` and `peers steady` start these.
    #[command(hide = true)]
    Play(command::PlayArguments),
    /// One run; `peers run` starts these.
    #[command(hide = true)]
    Cell(CellArguments),
}

#[derive(Args)]
struct RunArguments {
    /// The file of results.
    results: PathBuf,
    /// Where databases are made (and removed again): a directory on the device that matters.
    #[arg(long)]
    directory: PathBuf,
    #[command(flatten)]
    selection: SelectionArguments,
    /// The longest that one run may take, in seconds.
    #[arg(long, default_value_t = 1800)]
    limit: u64,
    /// A memory cgroup (version 1 or 2) in which groups may be made; with it, cells with a quarter
    /// of the memory that the data takes are measured too.
    #[arg(long)]
    memory_group: Option<PathBuf>,
    /// An option beyond the track's, as ENGINE:NAME=VALUE. Can be given more than once.
    #[arg(long = "set", value_parser = parse_setting)]
    settings: Vec<(EngineName, String, String)>,
    /// What readers look at of what they read.
    #[arg(long, value_enum, default_value_t)]
    look: Look,
    /// Has both engines read the same database, made by this one of the two and opened for reading
    /// only: identical bytes.
    #[arg(long, value_parser = parse_maker)]
    database_of: Option<EngineName>,
    /// A build of this program that makes an engine's runs, as ENGINE=PATH: one that has no other
    /// engine, so that memory is that of a program which uses this one. RocksDB initialises itself
    /// in every process that has it, and so brings its code into memory. Both are of the same
    /// commit, without local changes; results say which engines it has. Can be given once for each
    /// engine.
    #[arg(long = "program", value_parser = parse_program)]
    programs: Vec<(EngineName, PathBuf)>,
    /// Shows no progress.
    #[arg(long)]
    quiet: bool,
    /// Prints the outcome as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct SelectionArguments {
    /// Workloads, separated by commas; all if none.
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Engines.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Bytes of a value.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<u32>,
    /// Threads.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<u32>,
    /// Tracks.
    #[arg(long, value_delimiter = ',')]
    tracks: Vec<Track>,
    /// Classes of durability: d0 no log, d1 survives a kill, d2 synced.
    #[arg(long, value_delimiter = ',')]
    durabilities: Vec<Durability>,
    /// Memory for the data: ample, quarter (needs --memory-group), cold (emptied caches), direct
    /// (around the page cache).
    #[arg(long, value_delimiter = ',')]
    memories: Vec<Memory>,
    /// Compressions of the tuned track; if none, lz4 for small values and none for large ones.
    #[arg(long, value_delimiter = ',')]
    compressions: Vec<Compression>,
    /// Factor to the amount of data, 2 GiB or 10,000,000 keys.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Seconds of a phase that is measured by time.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Rounds, each with a run of every engine.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Rounds in which LevelDB, fjall, redb and LMDB take part.
    #[arg(long, default_value_t = 3)]
    peer_rounds: u32,
    /// A twentieth of the data, two seconds, three rounds.
    #[arg(long, conflicts_with_all = ["scale", "seconds", "rounds", "peer_rounds"])]
    quick: bool,
}

#[derive(Args)]
struct ReportArguments {
    /// Files of results.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Prints the comparisons as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CellArguments {
    /// What to do, as JSON.
    assignment: String,
    /// The database's directory.
    #[arg(long)]
    directory: PathBuf,
    /// Keeps the loaded database for the next run.
    #[arg(long)]
    keep: bool,
    /// A memory cgroup to enter.
    #[arg(long)]
    memory_group: Option<PathBuf>,
    /// Prints the engine's own statistics to the error output.
    #[arg(long)]
    statistics: bool,
}

/// Those whose files both read.
fn parse_maker(text: &str) -> std::result::Result<EngineName, String> {
    match <EngineName as clap::ValueEnum>::from_str(text, false)? {
        engine @ (EngineName::Flagstone | EngineName::Rocksdb) => Ok(engine),
        _ => Err("expected flagstone or rocksdb, which read each other's files".to_string()),
    }
}

fn parse_setting(text: &str) -> std::result::Result<(EngineName, String, String), String> {
    let form = || "expected ENGINE:NAME=VALUE".to_string();
    let (engine, rest) = text.split_once(':').ok_or_else(form)?;
    let (name, value) = rest.split_once('=').ok_or_else(form)?;
    let engine = <EngineName as clap::ValueEnum>::from_str(engine, false)?;
    Ok((engine, name.to_string(), value.to_string()))
}

fn parse_program(text: &str) -> std::result::Result<(EngineName, PathBuf), String> {
    let (engine, path) = text.split_once('=').ok_or("expected ENGINE=PATH")?;
    Ok((<EngineName as clap::ValueEnum>::from_str(engine, false)?, path.into()))
}

/// Does what the command line says.
pub fn run() -> Result<()> {
    match Arguments::parse().command {
        Command::Run(arguments) => run_campaign(*arguments),
        Command::Report(arguments) => show_report(&arguments),
        Command::List(arguments) => list(&arguments),
        Command::Space(arguments) => amplification(Exercise::Space, &arguments),
        Command::Steady(arguments) => amplification(Exercise::Steady, &arguments),
        #[cfg(feature = "rocksdb")]
        Command::Agree(arguments) => agree::command::run(&arguments),
        #[cfg(feature = "rocksdb")]
        Command::Turn(arguments) => agree::command::turn(&arguments),
        #[cfg(feature = "rocksdb")]
        Command::Decide(arguments) => decide::command::run(&arguments),
        #[cfg(feature = "rocksdb")]
        Command::DecideTurn(arguments) => decide::command::turn(&arguments),
        #[cfg(feature = "rocksdb")]
        Command::Transactions(arguments) => transactions::command::run(&arguments),
        #[cfg(feature = "rocksdb")]
        Command::TransactionsPart(arguments) => transactions::command::part(&arguments),
        Command::Copies(arguments) => copies::run(&arguments),
        Command::Play(arguments) => {
            print(&format!("{}\n", serde_json::to_string(&command::play_one(&arguments)?)?))
        }
        Command::Cell(arguments) => run_cell(arguments),
    }
}

/// Prints to the output; a closed pipe is not an error.
fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

impl SelectionArguments {
    fn selection(&self, quarter: bool) -> Selection {
        Selection {
            workloads: self.workloads.clone(),
            engines: self.engines.clone(),
            sizes: self.sizes.clone(),
            threads: self.threads.clone(),
            tracks: self.tracks.clone(),
            durabilities: self.durabilities.clone(),
            memories: self.memories.clone(),
            compressions: self.compressions.clone(),
            quarter,
        }
    }

    fn campaign(&self, quarter: bool) -> Result<Campaign> {
        let effort = if self.quick {
            Effort { scale: 0.05, seconds: 2.0 }
        } else {
            Effort { scale: self.scale, seconds: self.seconds }
        };
        let (rounds, peer_rounds) =
            if self.quick { (3, 1) } else { (self.rounds, self.peer_rounds) };
        if !(effort.scale > 0.0 && effort.seconds > 0.0) || rounds == 0 {
            return Err("--scale, --seconds and --rounds must be above zero".into());
        }
        let duels = plan(&self.selection(quarter));
        if duels.is_empty() {
            return Err("no cell fits all of what was asked for; see `peers list`".into());
        }
        Ok(Campaign {
            duels,
            effort,
            rounds,
            peer_rounds,
            directory: PathBuf::new(),
            results: PathBuf::new(),
            limit: Duration::MAX,
            memory_group: None,
            options: Vec::new(),
            look: Look::Pages,
            database_of: None,
            programs: Vec::new(),
            is_quiet: true,
        })
    }
}

fn run_campaign(arguments: RunArguments) -> Result<()> {
    let campaign = Campaign {
        directory: arguments.directory,
        results: arguments.results,
        limit: Duration::from_secs(arguments.limit),
        options: arguments.settings,
        look: arguments.look,
        database_of: arguments.database_of,
        programs: program::ask(&arguments.programs, Duration::from_secs(arguments.limit))?,
        is_quiet: arguments.quiet || !std::io::stderr().is_terminal(),
        ..arguments.selection.campaign(arguments.memory_group.is_some())?
    };
    let mut campaign = Campaign { memory_group: arguments.memory_group, ..campaign };
    if campaign.database_of.is_some() {
        campaign.share_a_database()?;
    }
    let outcome = campaign.run()?;
    let (made, failed, known) = (outcome.made, outcome.failed, outcome.known);
    if arguments.json {
        print(&format!(
            "{}\n",
            serde_json::json!({ "made": made, "failed": failed, "known": known })
        ))?;
    } else {
        print(&format!("{made} runs made ({failed} failed), {known} were there already\n"))?;
    }
    if failed > 0 { Err(format!("{failed} runs failed").into()) } else { Ok(()) }
}

fn list(arguments: &SelectionArguments) -> Result<()> {
    let campaign = arguments.campaign(true)?;
    let mut text = String::new();
    for duel in &campaign.duels {
        let engines: Vec<_> = duel.engines.iter().map(|engine| engine.title()).collect();
        text.push_str(&format!("{}: {}\n", duel.cell, engines.join(", ")));
    }
    let runs: usize = campaign.assignments().iter().map(Vec::len).sum();
    let hours = campaign.expected_seconds() / 3600.0;
    text.push_str(&format!(
        "{} cells, {runs} runs, about {hours:.1} hours\n",
        campaign.duels.len()
    ));
    print(&text)
}

fn run_cell(arguments: CellArguments) -> Result<()> {
    let assignment: Assignment = serde_json::from_str(&arguments.assignment)?;
    let place = Place {
        directory: arguments.directory,
        keep: arguments.keep,
        memory_group: arguments.memory_group,
    };
    let run = run::run(&assignment, &place, arguments.statistics)?;
    print(&format!("{}\n", serde_json::to_string(&run)?))
}

fn amplification(exercise: Exercise, arguments: &command::Arguments) -> Result<()> {
    print(&command::run(exercise, arguments)?)
}

fn show_report(arguments: &ReportArguments) -> Result<()> {
    let mut lines = Vec::new();
    for file in &arguments.results {
        let found = store::read(file)?;
        if found.is_empty() {
            return Err(format!("{}: no results", file.display()).into());
        }
        lines.extend(found);
    }
    let report = report::Report::new(&lines)?;
    if arguments.json {
        print(&format!("{}\n", report.json()))
    } else {
        print(&report::tables::all(&report))
    }
}

#[cfg(test)]
mod tests;
