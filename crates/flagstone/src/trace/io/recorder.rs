//! What a database whose I/O is traced writes down.
//!
//! 1. A call of a file first looks whether calls are recorded: not while there is no trace, nor
//!    once it is full or has failed.
//! 2. If they are, it is timed. Then it takes a lock that all threads share, is filtered and
//!    sampled, and becomes a record.
//! 3. A call that is made while a record is written is no record: the trace may lie in the file
//!    system that it is about.

use std::cell::Cell;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Code, Error, Result};
use crate::env::{CallRecorder, Clock, FileCall, FileCallClass};
use crate::trace::{TraceWriter, put_header};

use super::put_call;

/// What is recorded (RocksDB's `TraceOptions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoTraceOptions {
    /// Recording ends when the trace has more bytes than this.
    pub max_trace_file_size: u64,
    /// One call in so many is recorded; 1 for all.
    pub sampling_frequency: u64,
    /// What is left out, before calls are sampled.
    pub filter: IoTraceFilter,
}

impl Default for IoTraceOptions {
    fn default() -> Self {
        Self {
            max_trace_file_size: 64 << 30,
            sampling_frequency: 1,
            filter: IoTraceFilter::default(),
        }
    }
}

/// The calls that a trace leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoTraceFilter {
    /// Reads, and advice that they are coming.
    pub reads: bool,
    /// Writes, and changes of a file's size and space.
    pub writes: bool,
    /// Syncs of files and directories.
    pub syncs: bool,
    /// All else: opening, closing, sizes, locks, and changes of names and directories.
    pub others: bool,
}

impl IoTraceFilter {
    fn leaves_out(self, class: FileCallClass) -> bool {
        match class {
            FileCallClass::Read => self.reads,
            FileCallClass::Write => self.writes,
            FileCallClass::Sync => self.syncs,
            FileCallClass::Other => self.others,
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoTraceSummary {
    /// Calls in the trace.
    pub calls: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Whether calls that came later found no room.
    pub is_full: bool,
}

/// A recording, or none.
#[derive(Default)]
pub(crate) struct IoTrace {
    /// Changed under the lock only.
    is_on: AtomicBool,
    recording: Mutex<Option<Box<Recording>>>,
}

impl std::fmt::Debug for IoTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IoTrace").field("is_on", &self.is_on()).finish()
    }
}

impl IoTrace {
    /// Begins a trace.
    ///
    /// # Errors
    /// `Busy` if one is being recorded; `InvalidArgument` for a sampling frequency of 0; those of
    /// the writer.
    pub(crate) fn start(
        &self,
        clock: &Arc<dyn Clock>,
        options: &IoTraceOptions,
        writer: Box<dyn TraceWriter>,
    ) -> Result<()> {
        if options.sampling_frequency == 0 {
            return Err(Error::invalid_argument("sampling_frequency must be at least 1"));
        }
        let mut recording = self.recording.lock();
        if recording.is_some() {
            return Err(Error::new(Code::Busy, "a trace of I/O is already being recorded"));
        }
        let mut begun = Recording {
            options: *options,
            clock: clock.clone(),
            writer,
            record: Vec::new(),
            passed: 0,
            calls: 0,
            is_full: false,
            failure: None,
        };
        put_header(&mut begun.record, clock.unix_micros());
        begun.writer.write(&begun.record)?;
        *recording = Some(Box::new(begun));
        self.is_on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the trace; `None` if there is none.
    ///
    /// # Errors
    /// The first that its writer met; what came after is not in the trace.
    pub(crate) fn end(&self) -> Result<Option<IoTraceSummary>> {
        let ended = {
            let mut recording = self.recording.lock();
            self.is_on.store(false, Ordering::Relaxed);
            recording.take()
        };
        ended.map(|recording| recording.finish()).transpose()
    }
}

thread_local! {
    /// The thread writes a record.
    static RECORDS: Cell<bool> = const { Cell::new(false) };
}

impl CallRecorder for IoTrace {
    #[inline]
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    #[cold]
    fn record(&self, call: &FileCall<'_>) {
        if RECORDS.replace(true) {
            return;
        }
        if let Some(recording) = &mut *self.recording.lock() {
            recording.add(call);
            if recording.is_full || recording.failure.is_some() {
                self.is_on.store(false, Ordering::Relaxed);
            }
        }
        RECORDS.set(false);
    }
}

struct Recording {
    options: IoTraceOptions,
    clock: Arc<dyn Clock>,
    writer: Box<dyn TraceWriter>,
    /// Room for a record.
    record: Vec<u8>,
    /// Calls since the last one that was recorded.
    passed: u64,
    calls: u64,
    is_full: bool,
    failure: Option<Error>,
}

impl Recording {
    fn add(&mut self, call: &FileCall<'_>) {
        if self.failure.is_some() || self.options.filter.leaves_out(call.kind.class()) {
            return;
        }
        if self.writer.size() > self.options.max_trace_file_size {
            self.is_full = true;
            return;
        }
        self.passed += 1;
        if self.passed < self.options.sampling_frequency {
            return;
        }
        self.passed = 0;
        let now = self.clock.unix_micros().saturating_mul(1000);
        let written = put_call(&mut self.record, now, call);
        match written.and_then(|()| self.writer.write(&self.record)) {
            Ok(()) => self.calls += 1,
            Err(error) => self.failure = Some(error),
        }
    }

    fn finish(mut self) -> Result<IoTraceSummary> {
        let closed = self.writer.close();
        // The first failure explains the others.
        self.failure.take().map_or(closed, Err)?;
        Ok(IoTraceSummary { calls: self.calls, bytes: self.writer.size(), is_full: self.is_full })
    }
}
