//! A campaign: runs of all cells in turns, each in a process of its own.
//!
//! The rounds of a cell go ABBA. Runs that a file of results already has are not made again.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::fs::{Advice, FlockOperation};

use crate::cell::{Effort, EngineName, Look, value_name};
use crate::engine::Result;
use crate::environment::Environment;
use crate::measure;
use crate::plan::{Duel, expected_seconds, load_key, round_order};
use crate::program::{self, Program};
use crate::run::{Assignment, Run};
use crate::store::{self, Line, Store};

/// How a campaign is run.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// What is measured.
    pub duels: Vec<Duel>,
    /// How much.
    pub effort: Effort,
    /// Rounds; each has one run of every engine.
    pub rounds: u32,
    /// Rounds in which engines other than Flagstone and RocksDB take part.
    pub peer_rounds: u32,
    /// Where databases are made. They are removed again.
    pub directory: PathBuf,
    /// Where results go.
    pub results: PathBuf,
    /// The longest that a run may take.
    pub limit: Duration,
    /// A memory cgroup in which groups may be made, for cells with little memory.
    pub memory_group: Option<PathBuf>,
    /// Options beyond the track's, by engine.
    pub options: Vec<(EngineName, String, String)>,
    /// What readers look at.
    pub look: Look,
    /// Whose database all read; each its own if nobody is named.
    pub database_of: Option<EngineName>,
    /// Builds of this program that make an engine's runs in its place.
    pub programs: Vec<Program>,
    /// Whether progress is shown.
    pub is_quiet: bool,
}

/// What came of a campaign.
#[derive(Debug, Default, Clone, Copy)]
pub struct Outcome {
    /// Runs made.
    pub made: u64,
    /// Of these, runs that came to nothing.
    pub failed: u64,
    /// Runs that were there already.
    pub known: u64,
}

impl Campaign {
    /// All runs in order, those of one cell together.
    pub fn assignments(&self) -> Vec<Vec<Assignment>> {
        let cells = self.duels.iter().map(|duel| {
            let rounds = (0..self.rounds).flat_map(|round| {
                let order = round_order(&duel.engines, round, self.peer_rounds);
                order.into_iter().map(move |engine| (round, engine))
            });
            rounds
                .map(|(round, engine)| Assignment {
                    engine,
                    cell: duel.cell,
                    effort: self.effort,
                    seed: u64::from(round) + 1,
                    round,
                    options: self.options_of(engine),
                    look: self.look,
                    database_of: self.database_of,
                    maker_options: match self.database_of {
                        Some(maker) if maker != engine => self.options_of(maker),
                        _ => Vec::new(),
                    },
                    program: self.program_of(engine),
                })
                .collect()
        });
        cells.collect()
    }

    fn options_of(&self, engine: EngineName) -> Vec<(String, String)> {
        let own = self.options.iter().filter(|(of, ..)| *of == engine);
        own.map(|(_, name, value)| (name.clone(), value.clone())).collect()
    }

    /// The engines of the program that makes an engine's runs.
    fn program_of(&self, engine: EngineName) -> String {
        let own = self.programs.iter().find(|program| program.engine == engine);
        own.map_or(program::ENGINES, |program| &program.engines).to_string()
    }

    /// Leaves what can be measured where engines read the same files: what only reads, by the two
    /// that read each other's.
    pub fn share_a_database(&mut self) -> Result<()> {
        self.duels.retain_mut(|duel| {
            let both = [EngineName::Flagstone, EngineName::Rocksdb];
            duel.engines.retain(|engine| both.contains(engine));
            duel.cell.workload.only_reads() && !duel.engines.is_empty()
        });
        if self.duels.is_empty() {
            Err("the same database is for workloads that only read, by Flagstone and RocksDB"
                .into())
        } else {
            Ok(())
        }
    }

    /// Roughly how long it takes, in seconds.
    pub fn expected_seconds(&self) -> f64 {
        let runs = self.assignments().into_iter().flatten();
        runs.map(|run| expected_seconds(&run.cell, self.effort, run.round)).sum()
    }

    /// Makes all runs that are not there yet.
    pub fn run(&self) -> Result<Outcome> {
        let known = known(&self.results)?;
        let mut outcome = Outcome::default();
        let mut workshop = Workshop::open(&self.directory)?;
        workshop.take_programs(&self.programs)?;
        let mut store = Store::open(&self.results)?;
        store.append(&Line::Environment(Environment::look(&self.directory)?))?;
        let progress = Progress::new(self.expected_seconds(), self.is_quiet);
        let mut loaded = None;
        for runs in self.assignments() {
            let key = runs.first().map(|run| load_key(&run.cell));
            if key != loaded {
                workshop.clear()?;
                loaded = key;
            }
            for assignment in runs {
                let expected = expected_seconds(&assignment.cell, self.effort, assignment.round);
                if known.contains(&identity(&assignment)) {
                    outcome.known += 1;
                    progress.skip(expected);
                    continue;
                }
                progress.begin(&assignment);
                let line = match self.make(&workshop, &assignment) {
                    Ok(run) => Line::Run(Box::new(run)),
                    Err(error) => {
                        outcome.failed += 1;
                        progress.say(&format!(
                            "{} on {}: {error}",
                            assignment.cell,
                            assignment.engine.title()
                        ));
                        Line::Failure { assignment, message: error.to_string() }
                    }
                };
                outcome.made += 1;
                store.append(&line)?;
                progress.end(expected);
            }
        }
        Ok(outcome)
    }

    fn make(&self, workshop: &Workshop, assignment: &Assignment) -> Result<Run> {
        let keep = assignment.cell.workload.only_reads();
        let directory = workshop.directory_for(assignment.maker(), keep)?;
        let group = match assignment.cell.memory_limit(self.effort) {
            None => None,
            Some(bytes) => Some(MemoryGroup::new(self.memory_group.as_deref(), bytes)?),
        };
        rustix::fs::sync();
        measure::touch_memory(memory_to_touch(assignment)?);
        let mut command = Command::new(workshop.program_of(assignment.engine));
        command
            .arg("cell")
            .arg(serde_json::to_string(assignment)?)
            .arg("--directory")
            .arg(&directory);
        if keep {
            command.arg("--keep");
        }
        if let Some(group) = &group {
            command.arg("--memory-group").arg(&group.path);
        }
        let result = output_of(&mut command, self.limit);
        if !keep || result.is_err() {
            fs::remove_dir_all(&directory)?;
        }
        Ok(serde_json::from_str(&result?)?)
    }
}

/// What tells runs apart in a file of results.
fn identity(assignment: &Assignment) -> String {
    let Assignment {
        engine,
        cell,
        effort,
        seed: _,
        round,
        options,
        look,
        database_of,
        maker_options,
        program,
    } = assignment;
    let engine = value_name(*engine);
    format!(
        "{cell} {engine} {effort:?} {round} {options:?} {look:?} {database_of:?} {maker_options:?} {program}"
    )
}

/// The runs that a file has. A failed run is tried again.
fn known(results: &Path) -> Result<HashSet<String>> {
    let lines = store::read(results)?;
    Ok(lines
        .iter()
        .filter(|line| matches!(line, Line::Run(_)))
        .filter_map(Line::assignment)
        .map(identity)
        .collect())
}

/// About what a run takes: the data once in memory and once in the page cache, and memtables; not
/// all that there is.
fn memory_to_touch(assignment: &Assignment) -> Result<u64> {
    const MEMTABLES: u64 = 512 << 20;
    let meminfo = fs::read_to_string("/proc/meminfo")?;
    let available = meminfo.lines().find(|line| line.starts_with("MemAvailable:"));
    let kibibytes: u64 = available
        .and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .ok_or("no MemAvailable")?;
    let data = assignment.cell.data_bytes(assignment.effort);
    Ok((data * 2 + MEMTABLES.min(data * 4)).min(kibibytes * 1024 / 2))
}

/// What a command prints, if it succeeds within the limit.
pub fn output_of(command: &mut Command, limit: Duration) -> Result<String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let drain = |from: Option<&mut dyn Read>| -> Result<String> {
            let mut text = String::new();
            if let Some(from) = from {
                from.read_to_string(&mut text)?;
            }
            Ok(text)
        };
        let output = scope.spawn(move || drain(stdout.as_mut().map(|pipe| pipe as &mut dyn Read)));
        let errors = scope.spawn(move || drain(stderr.as_mut().map(|pipe| pipe as &mut dyn Read)));
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if started.elapsed() > limit {
                child.kill()?;
                child.wait()?;
                return Err(format!("not done after {} s", limit.as_secs()).into());
            }
            // Rarely enough not to be noticed by what is measured.
            std::thread::sleep(Duration::from_millis(50));
        };
        let (output, errors) = (output.join(), errors.join());
        let errors = errors.map_err(|_| "reading the child's errors panicked")??;
        if !status.success() {
            let last = errors.lines().last().unwrap_or_default();
            return Err(format!("{status}: {last}").into());
        }
        output.map_err(|_| "reading the child's output panicked")?
    })
}

/// The directory in which databases come and go. One campaign has it at a time.
pub struct Workshop {
    root: PathBuf,
    program: PathBuf,
    /// Of engines that have one of their own.
    programs: Vec<(EngineName, PathBuf)>,
    _lock: File,
}

impl Workshop {
    /// Takes the directory, and empties it.
    pub fn open(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let lock = File::create(directory.join("peers.lock"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| format!("another campaign works in {}", directory.display()))?;
        let workshop = Self {
            root: directory.join("peers-work"),
            program: directory.join("peers-program"),
            programs: Vec::new(),
            _lock: lock,
        };
        workshop.clear()?;
        // What an interrupted campaign has left.
        for engine in EngineName::value_variants() {
            remove_program(&workshop.copy_for(*engine))?;
        }
        copy_program(&std::env::current_exe()?, &workshop.program)?;
        Ok(workshop)
    }

    /// What runs are made with: this program as it was when the directory was taken, read from the
    /// device.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Takes builds of this program that make the runs of some engines.
    pub fn take_programs(&mut self, programs: &[Program]) -> Result<()> {
        for Program { engine, path, .. } in programs {
            let copy = self.copy_for(*engine);
            self.programs.push((*engine, copy.clone()));
            copy_program(path, &copy)?;
        }
        Ok(())
    }

    fn copy_for(&self, engine: EngineName) -> PathBuf {
        self.program.with_extension(value_name(engine))
    }

    /// What an engine's runs are made with.
    pub fn program_of(&self, engine: EngineName) -> &Path {
        let own = self.programs.iter().find(|(of, _)| *of == engine);
        own.map_or(&self.program, |(_, program)| program)
    }

    fn clear(&self) -> Result<()> {
        if self.root.exists() {
            fs::remove_dir_all(&self.root)?;
        }
        Ok(fs::create_dir_all(&self.root)?)
    }

    /// A directory for a run: an empty one, or the one that an engine keeps.
    pub fn directory_for(&self, engine: EngineName, keep: bool) -> Result<PathBuf> {
        let name =
            if keep { format!("{}-loaded", value_name(engine)) } else { "fresh".to_string() };
        let directory = self.root.join(name);
        if !keep && directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next campaign here.
        let _ = fs::remove_dir_all(&self.root);
        let copies = self.programs.iter().map(|(_, program)| program);
        copies.chain([&self.program]).for_each(|program| drop(fs::remove_file(program)));
    }
}

/// Makes a copy of a program, and has the page cache forget it. Of what a linker has just written
/// there are pieces of up to 2 MiB in the page cache, and Linux 6.18 maps all of a piece when a
/// byte of it is looked at: megabytes of code would be resident that nobody runs.
fn copy_program(program: &Path, copy: &Path) -> Result<()> {
    // One that an interrupted campaign has left may be running still.
    remove_program(copy)?;
    fs::copy(program, copy)?;
    let copy = File::open(copy)?;
    copy.sync_all()?;
    Ok(rustix::fs::fadvise(&copy, 0, None, Advice::DontNeed)?)
}

fn remove_program(copy: &Path) -> Result<()> {
    match fs::remove_file(copy) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// A memory cgroup with a limit, gone when dropped.
struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    fn new(parent: Option<&Path>, bytes: u64) -> Result<Self> {
        let parent = parent.ok_or("cells with little memory need --memory-group")?;
        let group = Self { path: parent.join(format!("peers-{}", std::process::id())) };
        fs::create_dir_all(&group.path)?;
        // Of the second or the first version of cgroups.
        let second = group.path.join("memory.max");
        let limit = if second.exists() { second } else { group.path.join("memory.limit_in_bytes") };
        fs::write(&limit, bytes.to_string())
            .map_err(|error| format!("{}: {error}", limit.display()))?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // An empty group left behind harms nobody.
        let _ = fs::remove_dir(&self.path);
    }
}

/// A bar with the time that is left; nothing if nobody watches.
struct Progress(ProgressBar);

impl Progress {
    fn new(expected_seconds: f64, is_quiet: bool) -> Self {
        let target =
            if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some((expected_seconds * 1000.0) as u64), target);
        let style = ProgressStyle::with_template(
            "{elapsed_precise} [{bar:30}] {percent}% left {eta} {msg}",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_secs(1));
        Self(bar)
    }

    fn begin(&self, assignment: &Assignment) {
        let Assignment { cell, engine, round, .. } = assignment;
        self.0.set_message(format!("{cell} {} round {}", engine.title(), round + 1));
    }

    fn end(&self, expected_seconds: f64) {
        self.0.inc((expected_seconds * 1000.0) as u64);
    }

    fn skip(&self, expected_seconds: f64) {
        self.0.dec_length((expected_seconds * 1000.0) as u64);
    }

    /// Says something that stays.
    fn say(&self, text: &str) {
        self.0.suspend(|| eprintln!("{text}"));
    }
}

#[cfg(test)]
mod tests;
