//! One run: a process of its own with a directory of its own, so that memory, CPU and I/O are the
//! engine's alone.
//!
//! 1. Open the database; load it if the workload needs data, compact it and close it again.
//! 2. Warm up, if the workload reads and is not about cold caches.
//! 3. Read the counters, do the workload, read the counters again.
//! 4. Wait until the background is done: what was put off is counted as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Durability, Effort, EngineName, Look, Memory};
use crate::data::{Permutation, Values};
use crate::engine::{self, Direction, Engine, Entry, Result};
use crate::measure::{self, Counters, Part};
use crate::program;
use crate::tuning::Tuning;
use crate::work;

/// What a run is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Who is measured.
    pub engine: EngineName,
    /// What is measured.
    pub cell: Cell,
    /// How much of it.
    pub effort: Effort,
    /// Which keys and values; all engines of a round have the same.
    pub seed: u64,
    /// The round, from 0.
    pub round: u32,
    /// Options beyond the track's.
    pub options: Vec<(String, String)>,
    /// What readers look at.
    #[serde(default)]
    pub look: Look,
    /// Whose database is read, opened for reading only; the engine's own if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_of: Option<EngineName>,
    /// Options beyond the track's of who makes the database, if that is another engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maker_options: Vec<(String, String)>,
    /// The engines that the program has which makes the run: their code and what it does at the
    /// start are part of it.
    #[serde(default = "all_engines")]
    pub program: String,
}

fn all_engines() -> String {
    program::ALL_ENGINES.to_string()
}

impl Assignment {
    /// The options beyond the track's with which this engine opens the database.
    pub fn options_of(&self, engine: EngineName) -> &[(String, String)] {
        match engine {
            own if own == self.engine => &self.options,
            maker if maker == self.maker() => &self.maker_options,
            _ => &[],
        }
    }

    /// Who makes the database.
    pub fn maker(&self) -> EngineName {
        self.database_of.unwrap_or(self.engine)
    }
}

/// What a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What it was told.
    #[serde(flatten)]
    pub assignment: Assignment,
    /// Its phases; the first gives the run's figure.
    pub parts: Vec<Part>,
    /// Operations of all phases, none counted twice.
    pub operations: u64,
    /// Counted during the phases.
    pub working: Counters,
    /// Counted until the background was done too.
    pub settled: Counters,
    /// Time from the phases' end until the background was done.
    pub settle_seconds: f64,
    /// The peak of resident memory.
    pub peak_memory_bytes: u64,
    /// Bytes of keys and values that were written.
    pub user_write_bytes: u64,
    /// Bytes of keys and values that the database holds.
    pub live_bytes: u64,
    /// Bytes that its files take.
    pub disk_bytes: u64,
    /// Seconds of CPU that others spent meanwhile: over a few percent of the time, the machine was
    /// not quiet.
    pub foreign_cpu_seconds: f64,
    /// When it began, in seconds since 1970.
    pub unix_time: u64,
}

/// Where a run works.
#[derive(Debug, Clone)]
pub struct Place {
    /// The database's directory.
    pub directory: PathBuf,
    /// Keeps the loaded database for the next run, or takes it from the one before.
    pub keep: bool,
    /// A memory cgroup for this process to enter.
    pub memory_group: Option<PathBuf>,
}

/// Stands in a directory whose database is loaded.
const LOADED: &str = "loaded";

/// Does a run.
pub fn run(assignment: &Assignment, place: &Place, statistics: bool) -> Result<Run> {
    let unix_time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let Assignment { engine, cell, effort, .. } = *assignment;
    if let Some(group) = &place.memory_group {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string())?;
    }
    let cores = std::thread::available_parallelism()?.get() as u64;
    let tuned = |name| Tuning::new(name, &cell, effort, cores, assignment.options_of(name));
    let database = place.directory.join("db");
    if cell.workload.needs_data() {
        load(assignment, place, &database, &tuned(assignment.maker()))?;
    }
    fs::create_dir_all(&database)?;
    let tuning = Tuning { is_read_only: assignment.database_of.is_some(), ..tuned(engine) };
    let mut engine = engine::open(engine, &database, &tuning, cell.durability)?;
    let stage = Stage { cell, effort, seed: assignment.seed, database, look: assignment.look };
    if stage.cell.workload.needs_data() {
        work::warm_up(engine.as_ref(), &stage)?;
    }
    measure::reset_peak_memory()?;
    let before = Counters::now(&place.directory)?;
    let started = Instant::now();
    let done = work::work(engine.as_mut(), &stage)?;
    let working = Counters::now(&place.directory)?.since(&before);
    let worked = started.elapsed();
    engine.settle()?;
    let settle_seconds = (started.elapsed() - worked).as_secs_f64();
    // What lies in the page cache comes to the device sooner or later.
    rustix::fs::sync();
    let settled = Counters::now(&place.directory)?.since(&before);
    let peak_memory_bytes = measure::peak_memory_bytes()?;
    let disk_bytes = measure::disk_bytes(&stage.database)?;
    if statistics {
        eprintln!("{}", engine.statistics());
    }
    engine.close()?;
    Ok(Run {
        assignment: assignment.clone(),
        parts: done.parts,
        operations: done.operations,
        working,
        settled,
        settle_seconds,
        peak_memory_bytes,
        user_write_bytes: done.written * cell.entry_bytes(),
        live_bytes: done.live * cell.entry_bytes(),
        disk_bytes,
        foreign_cpu_seconds: (working.machine_cpu_seconds - working.cpu_seconds).max(0.0),
        unix_time,
    })
}

/// What the workloads need to know.
pub struct Stage {
    /// The cell.
    pub cell: Cell,
    /// How much.
    pub effort: Effort,
    /// Which keys and values.
    pub seed: u64,
    /// The database's files.
    pub database: PathBuf,
    /// What readers look at.
    pub look: Look,
}

impl Stage {
    /// Keys of the database.
    pub fn keys(&self) -> u64 {
        self.cell.keys(self.effort)
    }

    /// Bytes of a value.
    pub fn value_size(&self) -> usize {
        self.cell.value_size as usize
    }

    /// A seed for one thread of one phase.
    pub fn seed_of(&self, phase: u64, thread: u32) -> u64 {
        self.seed.wrapping_mul(1_000_003) + phase * 1000 + u64::from(thread)
    }
}

/// Sees to it that the directory holds a loaded and compacted database, closed.
fn load(assignment: &Assignment, place: &Place, database: &Path, tuning: &Tuning) -> Result<()> {
    let marker = place.directory.join(LOADED);
    if !marker.exists() {
        fs::create_dir_all(database)?;
        let mut engine =
            engine::open(assignment.maker(), database, tuning, assignment.cell.durability)?;
        fill(engine.as_mut(), assignment)?;
        engine.close()?;
        fs::write(&marker, "")?;
    }
    if !place.keep {
        // The workload changes it.
        fs::remove_file(&marker)?;
    }
    rustix::fs::sync();
    if assignment.cell.memory == Memory::Quarter {
        let drop = fs::write("/proc/sys/vm/drop_caches", "3");
        drop.map_err(|error| {
            format!("the page cache could not be dropped (are you root?): {error}")
        })?;
    }
    Ok(())
}

/// Loads every key once in random order, in batches and in the engine's weakest class: this is not
/// measured.
fn fill(engine: &mut dyn Engine, assignment: &Assignment) -> Result<()> {
    const BATCH_BYTES: usize = 64 << 10;
    let cell = &assignment.cell;
    let classes = [Durability::None, Durability::Process, Durability::Synced];
    let durability = classes.into_iter().find(|class| assignment.maker().offers(*class));
    let durability = durability.ok_or("an engine without a class")?;
    let (keys, value_size) = (cell.keys(assignment.effort), cell.value_size as usize);
    let order = Permutation::new(keys, assignment.seed);
    let mut values = Values::new(value_size, assignment.seed);
    let batch = (BATCH_BYTES / value_size).clamp(1, 100) as u64;
    let mut key = Vec::new();
    for start in (0..keys).step_by(batch as usize) {
        let mut entries = Vec::new();
        for position in start..(start + batch).min(keys) {
            cell.workload.keys().write(order.at(position), &mut key);
            entries.push((key.clone(), values.next(value_size).to_vec()));
        }
        let entries: Vec<Entry<'_>> =
            entries.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
        engine.write(&entries, durability)?;
    }
    engine.flush()?;
    engine.settle()?;
    engine.compact()?;
    engine.settle()
}

/// Reads everything once, in order.
pub fn read_all(engine: &dyn Engine) -> Result<u64> {
    let mut touched = 0u64;
    let entries = engine
        .scan(&[], Direction::Forward, usize::MAX, &mut |bytes| touched += bytes.len() as u64)?;
    std::hint::black_box(touched);
    Ok(entries as u64)
}
