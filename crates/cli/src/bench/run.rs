//! Runs the benchmarks one after the other.

use flagstone::base::counted;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{PoisonError, RwLock, mpsc};

use flagstone::base::file_name::{self, FileKind};
use flagstone::db::{Db, another_owner};
use flagstone::env::{Env, IoMode};
use flagstone::options::{CompactRangeOptions, Options};
use flagstone::trace::{FileTraceWriter, IoTraceOptions, OperationTraceOptions};
use serde_json::{Map, Value, json};

use super::data::KeyOrder;
use super::flags::Flags;
use super::plan::{NAMES, Plan, Work};
use super::random::MersenneTwister;
use super::report::{self, Report};
use super::reporter::Reporter;
use super::stopwatch::Stopwatch;
use super::workloads::{Shared, Thread};
use crate::arguments::Common;
use crate::database;
use crate::failure::{Failure, Outcome, Verdict, say};
use crate::opening;
use crate::output::Output;
use crate::progress::{Progress, following};

/// Runs the command.
pub fn run(flags: &Flags, common: &Common) -> Outcome {
    if let Some(flag) = flags.absent.first() {
        return Err(Failure::Usage(format!(
            "--{flag}: of what db_bench does with this flag only the default is here"
        )));
    }
    if !flags.inert.is_empty() {
        let flags: BTreeSet<String> = flags.inert.iter().map(|name| format!("--{name}")).collect();
        let flags: Vec<_> = flags.into_iter().collect();
        say(format_args!("note: without effect here: {}", flags.join(", ")));
    }
    let plans = plans(flags)?;
    let used = plans.iter().position(|plan| !plan.fresh).unwrap_or(plans.len());
    let traces = [&flags.block_cache_trace_file, &flags.trace_file, &flags.io_trace_file];
    let is_traced = traces.iter().any(|file| file.is_some());
    if is_traced && plans[used..].iter().any(|plan| plan.fresh) {
        let message =
            "with a file for a trace, benchmarks that make a new database come before the others";
        return Err(Failure::Usage(message.to_string()));
    }
    database::check_no_file(&Env::os(), &flags.db)?;
    let mut bench = Bench::new(flags, common)?;
    bench.print(&report::header(flags))?;
    if !flags.use_existing_db {
        remove_database(&bench.options, &flags.db)?;
    }
    for plan in &plans {
        bench.run(plan)?;
    }
    bench.finish()
}

/// All benchmarks, so that a misspelt one stops the run before hours have gone by.
fn plans(flags: &Flags) -> Result<Vec<Plan>, Failure> {
    let named = flags.benchmarks.iter().filter(|name| !name.is_empty());
    let plan = |name: &String| {
        let plan = Plan::new(name, flags);
        let plan = plan.ok_or_else(|| {
            let meant = database::meant(name, NAMES.into_iter());
            Failure::Usage(format!("there is no benchmark '{name}'{meant}"))
        })?;
        match plan.work {
            Work::Queue if !has_a_key_for_each(flags) => Err(Failure::Usage(format!(
                "queue: with --key_size={} the keys of --num={} messages repeat",
                flags.key_size, flags.num
            ))),
            Work::Write(KeyOrder::UniqueRandom) => listed("num", plan.num).map(|()| plan),
            Work::DeleteRange => {
                listed("max_num_range_tombstones", flags.max_num_range_tombstones).map(|()| plan)
            }
            _ => Ok(plan),
        }
    };
    named.map(plan).collect()
}

/// So many numbers take 32 GiB as a list.
const LISTED_MAX: u64 = 1 << 32;

/// Refuses a number of which all below could not be listed and shuffled in memory.
fn listed(flag: &str, number: u64) -> Result<(), Failure> {
    if number <= LISTED_MAX {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "--{flag}={number}: {LISTED_MAX} at most where each comes once"
        )))
    }
}

/// Whether keys are long enough to tell `--num` of them apart.
fn has_a_key_for_each(flags: &Flags) -> bool {
    let bits = 8 * flags.key_size.min(8) as u32;
    flags.num.saturating_sub(1).checked_shr(bits).is_none_or(|rest| rest == 0)
}

/// The file beside a database by which a benchmark knows that it may remove it.
const MARK: &str = "BENCHMARK";
const MARK_TEXT: &[u8] =
    b"flagstone bench has made the database in this directory, and removes it when it runs again.\n";

struct Bench<'a> {
    flags: &'a Flags,
    json: bool,
    options: Options,
    env: Env,
    seed: u64,
    threads_started: u64,
    db: Option<Db>,
    /// A recording of the block cache's requests was begun.
    is_traced: bool,
}

impl<'a> Bench<'a> {
    fn new(flags: &'a Flags, common: &Common) -> Result<Self, Failure> {
        let mut options = Options::default();
        flags.apply(&mut options).map_err(|error| Failure::Usage(error.to_string()))?;
        for (name, value) in &common.settings {
            let set = options.set(name, value);
            set.map_err(|error| Failure::Usage(format!("{name}={value}: {error}")))?;
        }
        let env = options.env.clone();
        let seed = if flags.seed == 0 { env.random.next_u64() >> 1 } else { flags.seed };
        Ok(Self {
            flags,
            json: common.json,
            options,
            env,
            seed,
            threads_started: 0,
            db: None,
            is_traced: false,
        })
    }

    /// Prints text for people; nothing of it with `--json`.
    fn print(&self, text: &str) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let mut output = Output::new();
        output.bytes(text.as_bytes())?;
        output.finish()
    }

    /// Prints facts with `--json`, text without.
    fn tell(&self, facts: &Value, text: &str) -> Result<(), Failure> {
        if !self.json {
            return self.print(text);
        }
        let mut output = Output::new();
        output.line(facts.to_string())?;
        output.finish()
    }

    fn run(&mut self, plan: &Plan) -> Result<(), Failure> {
        if plan.fresh && self.flags.use_existing_db {
            let text = format!("{:<12} : skipped (--use_existing_db is true)\n", plan.name);
            return self.tell(&json!({ "benchmark": plan.name, "skipped": true }), &text);
        }
        if plan.fresh {
            self.close()?;
            remove_database(&self.options, &self.flags.db)?;
        }
        if self.db.is_none() {
            let open_progress = Some(opening::shown(&self.options.env));
            let options = Options { open_progress, ..self.options.clone() };
            self.db = Some(Db::open(&self.flags.db, &options)?);
        }
        if !plan.fresh && !std::mem::replace(&mut self.is_traced, true) {
            self.start_traces()?;
        }
        let path = self.flags.db.display();
        match plan.work {
            Work::WaitForCompaction => {
                self.print(&format!("waitforcompaction({path}): started\n"))?;
                let progress = Progress::of_work("waiting for compactions");
                self.open_db()?.wait_for_compactions()?;
                drop(progress);
                self.print(&format!("waitforcompaction({path}): finished\n"))
            }
            Work::Properties(names) => {
                let db = self.open_db()?;
                let text = |name| {
                    let text = db.property(db.default_column_family(), name);
                    text.unwrap_or_else(|| "(failed)".to_string())
                };
                if self.json {
                    let mut output = Output::new();
                    for name in names {
                        output
                            .line(json!({ "property": name, "value": text(name) }).to_string())?;
                    }
                    return output.finish();
                }
                self.print(&match names {
                    [name] => format!("\n{}\n", text(name)),
                    names => names.iter().map(|name| format!("{name}: {}\n", text(name))).collect(),
                })
            }
            _ => self.measure(plan),
        }
    }

    fn open_db(&self) -> Result<&Db, Failure> {
        self.db.as_ref().ok_or_else(|| Failure::Other("the database is not open".to_string()))
    }

    fn measure(&mut self, plan: &Plan) -> Result<(), Failure> {
        let report = match plan.work {
            Work::Compact | Work::Flush => self.maintain(plan)?,
            _ => self.run_threads(plan)?,
        };
        let path = self.flags.db.display();
        let text = format!("DB path: [{path}]\n{}", report.text(&plan.name, plan.operation()));
        self.tell(&report.json(&plan.name), &text)
    }

    fn maintain(&self, plan: &Plan) -> Result<Report, Failure> {
        let db = self.open_db()?;
        let mut report = Report::start(self.env.clock.now_us(), None);
        if plan.work == Work::Compact {
            following(|control| {
                let options = CompactRangeOptions {
                    control: Some(control.clone()),
                    ..CompactRangeOptions::default()
                };
                db.compact_range(db.default_column_family(), None, None, &options)
            })?;
        } else {
            db.flush_all()?;
        }
        report.finished(1, || 0);
        report.stop(self.env.clock.now_us());
        Ok(report)
    }

    fn run_threads(&mut self, plan: &Plan) -> Result<Report, Failure> {
        let first_seed = self.seed.wrapping_add(self.threads_started + 1);
        self.threads_started += plan.threads as u64;
        let reporter = Reporter::begin(self.flags, &self.env)?;
        let done = AtomicU64::new(0);
        // At a terminal somebody wonders; no script's measurement is disturbed.
        let progress = io::stderr().is_terminal().then(|| Progress::count("operations"));
        let shared = Shared {
            db: self.open_db()?,
            flags: self.flags,
            plan,
            env: &self.env,
            stopwatch: Stopwatch::begin(),
            readers: AtomicUsize::new(plan.threads - 1),
            seed: self.seed,
            done: reporter.is_some().then_some(&done),
            progress: progress.as_ref(),
        };
        let done = &done;
        // Closed until all threads are there, and false if one could not be had.
        let (shared, gate) = (&shared, &RwLock::new(false));
        std::thread::scope(|scope| {
            // Gone when the threads have ended, or one has failed.
            let (running, ended) = mpsc::channel();
            let reporter = reporter.map(|reporter| scope.spawn(move || reporter.run(done, &ended)));
            let start = |index: usize| {
                move || {
                    let random = MersenneTwister::new(first_seed.wrapping_add(index as u64));
                    if !gate.read().is_ok_and(|opens| *opens) {
                        return Ok(Report::default());
                    }
                    let from_ns = shared.flags.histogram.then(|| shared.stopwatch.now_ns());
                    let report = Report::start(shared.env.clock.now_us(), from_ns);
                    let mut thread = Thread { shared, index, random, report, unshown: 0 };
                    let result = thread.work();
                    thread.report.stop(shared.env.clock.now_us());
                    result.map(|()| thread.report)
                }
            };
            let threads = {
                let mut opens = gate.write().unwrap_or_else(PoisonError::into_inner);
                let spawn = |index| std::thread::Builder::new().spawn_scoped(scope, start(index));
                let threads: io::Result<Vec<_>> = (0..plan.threads).map(spawn).collect();
                *opens = threads.is_ok();
                threads.map_err(|error| {
                    Failure::Other(format!(
                        "cannot start {}: {error}; have fewer --threads",
                        counted(plan.threads, "thread")
                    ))
                })?
            };
            let mut merged = Report::default();
            for (index, thread) in threads.into_iter().enumerate() {
                let panicked =
                    || Failure::Other(format!("thread {index} of {} panicked", plan.name));
                let report = thread.join().map_err(|_| panicked())??;
                // The writer of readwhilewriting only disturbs; it is not measured.
                if !plan.work.has_writer_beside() || index > 0 {
                    merged.merge(report);
                }
            }
            drop(running);
            if let Some(reporter) = reporter {
                let panicked =
                    || Failure::Other("the writer of --report_file panicked".to_string());
                reporter.join().map_err(|_| panicked())??;
            }
            Ok(merged)
        })
    }

    fn close(&mut self) -> Result<(), Failure> {
        match self.db.take() {
            Some(db) => Ok(db.close()?),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Outcome {
        // Where all benchmarks were skipped, there is no database.
        if self.flags.statistics
            && let Some(db) = &self.db
        {
            // With what the block cache was asked for, which tells how many reads of files lookups
            // took.
            let lines = db
                .property(db.default_column_family(), "rocksdb.options-statistics")
                .unwrap_or_default();
            let counts = lines.lines().filter_map(|line| line.split_once(" COUNT : "));
            let facts: Map<_, _> = counts
                .map(|(name, count)| (name.to_string(), count.parse::<u64>().ok().into()))
                .collect();
            self.tell(&json!({ "statistics": facts }), &format!("STATISTICS:\n{lines}"))?;
        }
        if let Some(db) = &self.db
            && let Some(trace) = db.end_block_cache_trace()?
        {
            let cut = if trace.is_full { ", cut off at its largest size" } else { "" };
            let (requests, bytes) = (trace.requests, trace.bytes);
            let facts = json!({ "requests": requests, "bytes": bytes, "is_full": trace.is_full });
            let text = format!("block cache trace: {requests} requests, {bytes} bytes{cut}\n");
            self.tell(&json!({ "block_cache_trace": facts }), &text)?;
        }
        if let Some(db) = &self.db
            && let Some(trace) = db.end_trace()?
        {
            let (operations, bytes) = (trace.operations, trace.bytes);
            let text = format!("trace: {operations} operations, {bytes} bytes\n");
            let facts = json!({ "operations": operations, "bytes": bytes });
            self.tell(&json!({ "trace": facts }), &text)?;
        }
        if let Some(db) = &self.db
            && let Some(trace) = db.end_io_trace()?
        {
            let (calls, bytes) = (trace.calls, trace.bytes);
            let text = format!("I/O trace: {calls} calls, {bytes} bytes\n");
            self.tell(&json!({ "io_trace": { "calls": calls, "bytes": bytes } }), &text)?;
        }
        self.close()?;
        Ok(Verdict::Sound)
    }

    /// Begins the traces that are asked for.
    fn start_traces(&mut self) -> Result<(), Failure> {
        if let Some((path, options)) = self.flags.block_cache_trace() {
            self.open_db()?.start_block_cache_trace(path, &options)?;
        }
        if let Some(path) = &self.flags.trace_file {
            let writer = Box::new(FileTraceWriter::create(&Env::os(), path)?);
            self.open_db()?.start_trace(&OperationTraceOptions::default(), writer)?;
        }
        if let Some(path) = &self.flags.io_trace_file {
            let writer = Box::new(FileTraceWriter::create(&Env::os(), path)?);
            self.open_db()?.start_io_trace(&IoTraceOptions::default(), writer)?;
        }
        Ok(())
    }
}

/// The directories for tables and blob files, and that for WALs.
fn directories<'a>(options: &'a Options, directory: &'a Path) -> (Vec<&'a Path>, &'a Path) {
    let elsewhere = options.db_paths.0.iter().chain(&options.cf.cf_paths.0);
    let tables = elsewhere.map(|path| Path::new(&path.path.0)).collect();
    let wals = match options.wal_dir.as_str() {
        "" => directory,
        elsewhere => Path::new(elsewhere),
    };
    (tables, wals)
}

/// Another database may have its files in the same directories.
fn check_owners(options: &Options, directory: &Path) -> Result<(), Failure> {
    let (tables, wals) = directories(options, directory);
    for place in tables.into_iter().chain([directory, wals]) {
        if let Some(owner) = another_owner(&*options.env.fs, directory, place)? {
            return Err(Failure::Other(format!(
                "{} belongs to the database in {}, and nothing there is removed: name another directory",
                place.display(),
                owner.display()
            )));
        }
    }
    Ok(())
}

/// Makes room for a new database: removes the files of one that a benchmark has made and nobody has
/// open, and nothing else that may lie in its directories.
fn remove_database(options: &Options, directory: &Path) -> Result<(), Failure> {
    let fs = &options.env.fs;
    fs.create_directory(directory)?;
    // LOCK stays: who has locked a file that is not there any more keeps nobody out.
    let _held = fs.lock(&file_name::lock(directory))?;
    check_owners(options, directory)?;
    let mark = directory.join(MARK);
    if fs.metadata(&mark).is_err() {
        let is_data = |name: &String| {
            use FileKind::{Blob, Current, Table, Wal};
            matches!(FileKind::parse(name), Some(Blob(_) | Current | Table(_) | Wal(_)))
        };
        if fs.list(directory)?.iter().any(is_data) {
            return Err(Failure::Other(format!(
                "the database in {} is no benchmark's, and is not removed: give another --db, or --use_existing_db",
                directory.display()
            )));
        }
        fs.create_writable(&mark, IoMode::Buffered)?.write_at(0, MARK_TEXT)?;
    }
    let (tables, wals) = directories(options, directory);
    let remove = |directory: &Path, is_its: fn(FileKind) -> bool| -> Result<(), Failure> {
        for name in fs.list(directory)? {
            if FileKind::parse(&name).is_some_and(is_its) {
                fs.remove(&directory.join(name))?;
            }
        }
        Ok(())
    };
    for other in tables {
        // What is a database itself keeps its files.
        if fs.metadata(other).is_ok() && fs.metadata(&file_name::current(other)).is_err() {
            remove(other, |kind| matches!(kind, FileKind::Table(_) | FileKind::Blob(_)))?;
        }
    }
    let is_database = fs.metadata(&file_name::current(wals)).is_ok();
    if wals == directory || !is_database {
        for place in [wals.join("archive"), wals.to_path_buf()] {
            if fs.metadata(&place).is_ok() {
                remove(&place, |kind| matches!(kind, FileKind::Wal(_)))?;
            }
        }
    }
    remove(directory, |kind| kind != FileKind::Lock)
}
