//! Repeats the operations of a trace (RocksDB's `NewDefaultReplayer`).
//!
//! 1. [`Replayer::prepare`] reads the trace's header.
//! 2. [`Replayer::replay`] reads one record after the other, waits until it is as long after the
//!    first call as it was after the header, divided by `fast_forward`, and executes it.
//! 3. Each thread does so for a record of its own. Records begin in the order of the trace; with
//!    several threads they may end in another.
//!
//! Records of operations that are not known are counted and passed.
//!
//! ```
//! use flagstone::replay::{ReplayOptions, Replayer};
//! use flagstone::trace::{FileTraceReader, FileTraceWriter, OperationTraceOptions};
//! use flagstone::{Db, Env};
//!
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = |name| directory.path().join(name);
//! let db = Db::open(path("first"))?;
//! let writer = FileTraceWriter::create(&Env::os(), path("trace"))?;
//! db.engine().start_trace(&OperationTraceOptions::default(), Box::new(writer))?;
//! db.put("stone", "flag")?;
//! db.engine().end_trace()?;
//!
//! let second = Db::open(path("second"))?;
//! let reader = FileTraceReader::open(&Env::os(), path("trace"))?;
//! let mut replayer = Replayer::new(&second, Box::new(reader));
//! replayer.prepare()?;
//! let summary = replayer.replay(&ReplayOptions::default(), |_, _| {})?;
//! assert_eq!(summary.executed, 1);
//! assert_eq!(second.get("stone")?.unwrap(), "flag");
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::base::{Code, ColumnFamilyId, Error, Result};
use crate::batch::{BatchView, WriteBatch};
use crate::db::{ColumnFamily, Db};
use crate::env::{Clock, Env, Task};
use crate::options::{ReadOptions, WriteOptions};
use crate::trace::{RawRecord, TraceHeader, TraceReader, TraceRecord};

/// More threads than this are not started.
const THREADS_MAX: u32 = 1024;

/// How a trace is repeated (RocksDB's `ReplayOptions`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayOptions {
    /// How many threads execute operations; 0 is taken for 1, and there are up to 1,024.
    pub num_threads: u32,
    /// How many times as fast as they were recorded operations begin: above 0;
    /// [`f64::INFINITY`] for no pauses.
    pub fast_forward: f64,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { num_threads: 1, fast_forward: 1.0 }
    }
}

/// What an operation returned when it was repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// A batch was written.
    Written,
    /// What a lookup of a key found.
    Value(Option<Vec<u8>>),
    /// What a lookup of several keys found, in their order.
    Values(Vec<Option<Vec<u8>>>),
    /// The key and value on which an iterator stopped.
    Entry(Option<(Vec<u8>, Vec<u8>)>),
}

/// What a replay did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplaySummary {
    /// Operations that were repeated.
    pub executed: u64,
    /// Records that are about something else, of a kind that is not known, or steps of two-phase
    /// transactions.
    pub unsupported: u64,
}

/// Repeats the operations of a trace. All methods but [`Replayer::replay`] are for one thread.
pub struct Replayer {
    target: Target,
    source: Mutex<Source>,
}

/// What operations are repeated on.
struct Target {
    db: Db,
    env: Env,
    families: HashMap<ColumnFamilyId, ColumnFamily>,
}

/// Where records come from.
struct Source {
    reader: Box<dyn TraceReader>,
    header: Option<TraceHeader>,
    has_ended: bool,
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayer").field("families", &self.target.families.len()).finish()
    }
}

impl Replayer {
    /// Repeats on this database what the reader reads. Families are known by their numbers, those
    /// that the database has now.
    pub fn new(db: &impl AsRef<Db>, reader: Box<dyn TraceReader>) -> Self {
        let families = db.as_ref().column_families();
        Self::of_families(db, &families, reader)
    }

    /// As [`Replayer::new`], for these families: an operation on any other is an error.
    pub fn of_families(
        db: &impl AsRef<Db>,
        families: &[ColumnFamily],
        reader: Box<dyn TraceReader>,
    ) -> Self {
        let db = db.as_ref().clone();
        let env = db.options().env.clone();
        let families = families.iter().map(|family| (family.id(), family.clone())).collect();
        let source = Source { reader, header: None, has_ended: false };
        Self { target: Target { db, env, families }, source: Mutex::new(source) }
    }

    /// Reads the header, from the beginning of the trace; also to repeat it once more.
    ///
    /// # Errors
    /// `Corruption` if the trace has none; `NotSupported` for a later version of the format; those
    /// of the reader.
    pub fn prepare(&mut self) -> Result<TraceHeader> {
        let mut source = self.source.lock();
        source.header = None;
        source.reader.reset()?;
        let first = source.reader.read()?;
        let first = first.ok_or_else(|| Error::corruption("the trace is empty"))?;
        let header = RawRecord::parse(&first)?.header()?;
        source.header = Some(header);
        source.has_ended = false;
        Ok(header)
    }

    /// When the trace began, in microseconds since 1970; 0 before [`Replayer::prepare`].
    pub fn header_timestamp(&self) -> u64 {
        self.source.lock().header.map_or(0, |header| header.time_us)
    }

    /// The next operation and when it began, in microseconds since 1970; `None` at the end.
    ///
    /// # Errors
    /// `Incomplete` before [`Replayer::prepare`]; `NotSupported` for a record that is about
    /// something else, behind which the next call goes on; `Corruption`; those of the reader.
    #[expect(clippy::should_implement_trait, reason = "it fails, and RocksDB calls it so")]
    pub fn next(&mut self) -> Result<Option<(u64, TraceRecord)>> {
        let mut source = self.source.lock();
        let header = source.prepared()?;
        match source.next()? {
            None => Ok(None),
            Some(raw) => Ok(Some((raw.time_us, raw.operation(header.version)?))),
        }
    }

    /// Repeats one operation.
    ///
    /// # Errors
    /// `Corruption` for a family that is not known, or a batch that is none; those of the
    /// operation.
    pub fn execute(&self, record: TraceRecord) -> Result<ReplayOutcome> {
        self.target.execute(record)
    }

    /// Repeats all operations from the present one on, up to the end of the trace, or of the file
    /// where that is cut off behind a record. `report` is told of each: when it began, in
    /// microseconds since 1970, and what came of it. With several threads it is called by all of
    /// them. Ends at the first error, but for `NotSupported` of a record that is not known.
    ///
    /// # Errors
    /// `InvalidArgument` for a `fast_forward` that is not above 0; `Incomplete` before
    /// [`Replayer::prepare`], or behind the end of the trace; `Corruption`; those of operations: of
    /// several, that of the operation that began first in the trace.
    pub fn replay(
        &mut self,
        options: &ReplayOptions,
        report: impl Fn(u64, &Result<ReplayOutcome>) + Sync,
    ) -> Result<ReplaySummary> {
        if options.fast_forward.is_nan() || options.fast_forward <= 0.0 {
            return Err(Error::invalid_argument("fast_forward must be above 0"));
        }
        let header = {
            let source = self.source.lock();
            if source.has_ended {
                return Err(Error::new(Code::Incomplete, "the trace has ended"));
            }
            source.prepared()?
        };
        let clock = &self.target.env.clock;
        let pace = Pace { clock, begun_us: clock.now_us(), header, speed: options.fast_forward };
        let replay = Replay {
            target: &self.target,
            source: &self.source,
            pace,
            report: &report,
            executed: AtomicU64::new(0),
            unsupported: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        let threads = options.num_threads.clamp(1, THREADS_MAX);
        let work = || Box::new(|| replay.run()) as Task<'_>;
        self.target.env.spawner.run_all("replay", (0..threads).map(|_| work()).collect());
        match replay.failure.lock().take() {
            Some((_, error)) => Err(error),
            None => Ok(ReplaySummary {
                executed: replay.executed.load(Ordering::Relaxed),
                unsupported: replay.unsupported.load(Ordering::Relaxed),
            }),
        }
    }
}

impl Source {
    fn prepared(&self) -> Result<TraceHeader> {
        self.header.ok_or_else(|| Error::new(Code::Incomplete, "the replay is not prepared"))
    }

    fn next(&mut self) -> Result<Option<RawRecord>> {
        if self.has_ended {
            return Ok(None);
        }
        let record = self.reader.read()?.map(|record| RawRecord::parse(&record)).transpose()?;
        let record = record.filter(|record| !record.is_end());
        self.has_ended = record.is_none();
        Ok(record)
    }
}

impl Target {
    fn family(&self, id: ColumnFamilyId) -> Result<&ColumnFamily> {
        self.families.get(&id).ok_or_else(|| {
            Error::corruption(format!("the trace names column family {id}, which is not replayed"))
        })
    }

    fn execute(&self, record: TraceRecord) -> Result<ReplayOutcome> {
        let read = ReadOptions::default();
        Ok(match record {
            TraceRecord::Write { batch } => {
                let batch = WriteBatch::from_bytes(batch)?;
                self.db.write_with(&WriteOptions::default(), batch)?;
                ReplayOutcome::Written
            }
            TraceRecord::Get { family, key } => {
                let value = self.db.get_with(&read, self.family(family)?, key)?;
                ReplayOutcome::Value(value.map(|value| value.to_vec()))
            }
            TraceRecord::MultiGet { keys } => ReplayOutcome::Values(self.look_up(&read, &keys)?),
            TraceRecord::Seek { family, key, for_prev, lower, upper } => {
                let bound = |key: Vec<u8>| Some(key).filter(|key| !key.is_empty());
                let options = ReadOptions {
                    iterate_lower_bound: bound(lower),
                    iterate_upper_bound: bound(upper),
                    ..read
                };
                let mut iter = self.db.iter_cf(self.family(family)?, &options)?;
                if for_prev {
                    iter.seek_for_prev(key)
                } else {
                    iter.seek(key)
                }
                if !iter.valid() {
                    iter.status()?;
                    return Ok(ReplayOutcome::Entry(None));
                }
                let key = iter.key().to_vec();
                ReplayOutcome::Entry(Some((key, iter.value()?.to_vec())))
            }
        })
    }

    /// Keys of one family next to each other are looked up together.
    fn look_up(
        &self,
        read: &ReadOptions,
        keys: &[(ColumnFamilyId, Vec<u8>)],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Vec::new();
        for group in keys.chunk_by(|a, b| a.0 == b.0) {
            let family = self.family(group[0].0)?;
            let keys: Vec<&[u8]> = group.iter().map(|(_, key)| key.as_slice()).collect();
            for value in self.db.multi_get_with(read, family, &keys) {
                values.push(value?.map(|value| value.to_vec()));
            }
        }
        Ok(values)
    }
}

/// When operations begin.
struct Pace<'a> {
    clock: &'a Arc<dyn Clock>,
    begun_us: u64,
    header: TraceHeader,
    speed: f64,
}

impl Pace<'_> {
    fn wait_for(&self, time_us: u64) {
        let after = time_us.saturating_sub(self.header.time_us) as f64 / self.speed;
        // Saturates.
        let due_us = self.begun_us.saturating_add(after as u64);
        let left = due_us.saturating_sub(self.clock.now_us());
        if left > 0 {
            self.clock.sleep(Duration::from_micros(left));
        }
    }
}

/// A replay that goes on.
struct Replay<'a, F> {
    target: &'a Target,
    source: &'a Mutex<Source>,
    pace: Pace<'a>,
    report: &'a F,
    executed: AtomicU64,
    unsupported: AtomicU64,
    has_failed: AtomicBool,
    /// The first error in the order of the trace, and when its operation began.
    failure: Mutex<Option<(u64, Error)>>,
}

impl<F: Fn(u64, &Result<ReplayOutcome>) + Sync> Replay<'_, F> {
    /// One thread's part.
    fn run(&self) {
        while !self.has_failed.load(Ordering::Acquire) {
            let raw = {
                // Others wait here for their turn: operations begin in the order of the trace.
                let mut source = self.source.lock();
                match source.next() {
                    Ok(None) => return,
                    Err(error) => return self.fail(u64::MAX, error),
                    Ok(Some(raw)) => {
                        self.pace.wait_for(raw.time_us);
                        raw
                    }
                }
            };
            let operation = raw.operation(self.pace.header.version).and_then(without_markers);
            let outcome = match operation {
                Err(error) if error.code() == Code::NotSupported => {
                    self.unsupported.fetch_add(1, Ordering::Relaxed);
                    (self.report)(raw.time_us, &Err(error));
                    continue;
                }
                operation => operation.and_then(|operation| self.target.execute(operation)),
            };
            (self.report)(raw.time_us, &outcome);
            match outcome {
                Ok(_) => drop(self.executed.fetch_add(1, Ordering::Relaxed)),
                Err(error) => self.fail(raw.time_us, error),
            }
        }
    }

    fn fail(&self, time_us: u64, error: Error) {
        self.has_failed.store(true, Ordering::Release);
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|(earlier, _)| time_us < *earlier) {
            *failure = Some((time_us, error));
        }
    }
}

/// Refuses the steps of two-phase transactions, which are no writes of their own.
fn without_markers(operation: TraceRecord) -> Result<TraceRecord> {
    if let TraceRecord::Write { batch } = &operation
        && BatchView::parse(batch)?.validate()?.has_transaction_markers
    {
        let message = "a step of a two-phase transaction is not repeated";
        return Err(Error::not_supported(message));
    }
    Ok(operation)
}
