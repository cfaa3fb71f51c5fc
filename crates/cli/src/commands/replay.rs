//! `flagstone replay`

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use flagstone::base::{Result, counted};
use flagstone::env::Env;
use flagstone::replay::{ReplayOptions, ReplayOutcome, Replayer};
use flagstone::trace::{FileTraceReader, RawRecord, TraceReader};
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::progress::Progress;

/// Repeat the operations of a trace on a database.
///
/// TRACE is in RocksDB's format, version 0.1 or 0.2: writes, lookups of one or several keys, and
/// seeks of iterators. `flagstone bench --trace_file` and `Db::start_trace` record such traces.
/// Column families are known by their numbers. The database is made if there is none. Operations
/// begin as far apart as they were recorded, divided by --fast-forward. The command ends at the
/// first error; records of other kinds are counted and passed.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone replay --db /data/replayed --fast-forward inf operations.trace"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Trace file
    trace: PathBuf,
    /// Threads that execute operations
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// How many times as fast as recorded; inf for no pauses
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    fast_forward: f64,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed > 0.0 => Ok(speed),
        _ => Err("expected a number above 0, or inf".to_string()),
    }
}

/// What came of operations, by kind.
#[derive(Default)]
struct Counts {
    writes: AtomicU64,
    lookups: AtomicU64,
    found: AtomicU64,
    seeks: AtomicU64,
}

impl Counts {
    fn note(&self, outcome: &Result<ReplayOutcome>) {
        let add = |counter: &AtomicU64, count: usize| {
            counter.fetch_add(count as u64, Ordering::Relaxed);
        };
        match outcome {
            Ok(ReplayOutcome::Written) => add(&self.writes, 1),
            Ok(ReplayOutcome::Value(value)) => {
                add(&self.lookups, 1);
                add(&self.found, usize::from(value.is_some()));
            }
            Ok(ReplayOutcome::Values(values)) => {
                add(&self.lookups, values.len());
                add(&self.found, values.iter().flatten().count());
            }
            Ok(ReplayOutcome::Entry(_)) => add(&self.seeks, 1),
            Err(_) => {}
        }
    }
}

/// Refuses what is no trace.
fn check_header(reader: &mut FileTraceReader) -> Result<()> {
    let first = reader.read()?;
    let first = first.ok_or_else(|| flagstone::Error::corruption("the trace is empty"))?;
    RawRecord::parse(&first)?.header().map(drop)
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    // What helps a damaged database is no help for a trace.
    let of_trace = |error: flagstone::Error| {
        if error.is_corruption() { Failure::Other(error.to_string()) } else { error.into() }
    };
    let open = || FileTraceReader::open(&Env::os(), &arguments.trace);
    if !database::is_there(&arguments.database.db)? {
        // What is no trace leaves no database behind.
        check_header(&mut open().map_err(of_trace)?).map_err(of_trace)?;
    }
    let db = database::open(common, &arguments.database.db, Access::Create)?;
    let reader = open().map_err(of_trace)?;
    let mut replayer = Replayer::new(&db, Box::new(reader));
    replayer.prepare().map_err(of_trace)?;
    let options =
        ReplayOptions { num_threads: arguments.threads, fast_forward: arguments.fast_forward };
    let progress = Progress::of_work("repeating operations");
    let counts = Counts::default();
    let replayed = replayer.replay(&options, |_, outcome| counts.note(outcome));
    drop((replayer, progress));
    let summary = replayed.map_err(of_trace)?;
    db.close()?;
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (writes, lookups, seeks) = (of(&counts.writes), of(&counts.lookups), of(&counts.seeks));
    let found = of(&counts.found);
    let mut output = Output::new();
    output.line(if common.json {
        json!({
            "operations": summary.executed,
            "writes": writes,
            "lookups": lookups,
            "found": found,
            "seeks": seeks,
            "unsupported": summary.unsupported,
        })
        .to_string()
    } else {
        format!(
            "{}: {} written, {} looked up ({found} found), {}; {} of other kinds",
            counted(summary.executed, "operation"),
            counted(writes, "batch").replace("batchs", "batches"),
            counted(lookups, "key"),
            counted(seeks, "seek"),
            counted(summary.unsupported, "record"),
        )
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
