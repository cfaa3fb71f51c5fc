//! What a database that is traced writes down.
//!
//! 1. An operation first looks which kinds are recorded: none while there is no trace, nor once it
//!    is full or has failed.
//! 2. If its own is, it takes a lock that all threads share, is filtered and then sampled as in
//!    RocksDB, and becomes a record.
//! 3. Writes are recorded under the commit lock, as they are logged: their order is that of the
//!    WAL.

use std::sync::Arc;

use crate::base::sync::{AtomicU8, Mutex, Ordering};
use crate::base::{Code, ColumnFamilyId, Error, Result};
use crate::env::Clock;

use super::file::TraceWriter;
use super::format::TraceType;
use super::record::Encoder;

/// What is recorded (RocksDB's `TraceOptions`; the order of writes is always preserved).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationTraceOptions {
    /// Recording ends when the trace has more bytes than this.
    pub max_trace_file_size: u64,
    /// One operation in so many is recorded; 1 for all.
    pub sampling_frequency: u64,
    /// What is left out, before operations are sampled.
    pub filter: TraceFilter,
}

impl Default for OperationTraceOptions {
    fn default() -> Self {
        Self {
            max_trace_file_size: 64 << 30,
            sampling_frequency: 1,
            filter: TraceFilter::default(),
        }
    }
}

/// The operations that a trace leaves out (RocksDB's `TraceFilterType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceFilter {
    /// Lookups of single keys.
    pub gets: bool,
    /// Writes.
    pub writes: bool,
    /// Seeks of iterators to a key or the next.
    pub seeks: bool,
    /// Seeks of iterators to a key or the one before.
    pub seeks_for_prev: bool,
    /// Lookups of several keys.
    pub multi_gets: bool,
}

impl TraceFilter {
    const GETS: u64 = 1;
    const WRITES: u64 = 1 << 1;
    const SEEKS: u64 = 1 << 2;
    const SEEKS_FOR_PREV: u64 = 1 << 3;
    const MULTI_GETS: u64 = 1 << 4;

    /// The filter of RocksDB's bits.
    pub fn from_bits(bits: u64) -> Self {
        Self {
            gets: bits & Self::GETS != 0,
            writes: bits & Self::WRITES != 0,
            seeks: bits & Self::SEEKS != 0,
            seeks_for_prev: bits & Self::SEEKS_FOR_PREV != 0,
            multi_gets: bits & Self::MULTI_GETS != 0,
        }
    }

    fn leaves_out(self, kind: TraceType) -> bool {
        match kind {
            TraceType::Get => self.gets,
            TraceType::Write => self.writes,
            TraceType::Seek => self.seeks,
            TraceType::SeekForPrev => self.seeks_for_prev,
            TraceType::MultiGet => self.multi_gets,
            _ => false,
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationTraceSummary {
    /// Operations in the trace.
    pub operations: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Whether operations that came later found no room.
    pub is_full: bool,
}

/// A recording, or none.
#[derive(Default)]
pub(crate) struct OperationTrace {
    /// The kinds that are recorded, as bits. Changed under the lock only.
    kinds: AtomicU8,
    recording: Mutex<Option<Box<Recording>>>,
}

impl std::fmt::Debug for OperationTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationTrace").field("is_on", &self.is_on()).finish()
    }
}

impl OperationTrace {
    /// Whether operations are recorded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.kinds.load(Ordering::Relaxed) != 0
    }

    /// Begins a trace.
    ///
    /// # Errors
    /// `Busy` if one is being recorded; `InvalidArgument` for a sampling frequency of 0; those of
    /// the writer.
    pub(crate) fn start(
        &self,
        clock: &Arc<dyn Clock>,
        options: &OperationTraceOptions,
        writer: Box<dyn TraceWriter>,
    ) -> Result<()> {
        if options.sampling_frequency == 0 {
            return Err(Error::invalid_argument("sampling_frequency must be at least 1"));
        }
        let mut recording = self.recording.lock();
        if recording.is_some() {
            return Err(Error::new(Code::Busy, "a trace of operations is already being recorded"));
        }
        let mut begun = Recording {
            options: *options,
            clock: clock.clone(),
            writer,
            encoder: Encoder::default(),
            passed: 0,
            operations: 0,
            is_full: false,
            failure: None,
        };
        begun.frame(TraceType::Begin)?;
        *recording = Some(Box::new(begun));
        let kinds = RECORDED.into_iter().filter(|kind| !options.filter.leaves_out(*kind));
        self.kinds.store(kinds.map(bit).fold(0, |all, bit| all | bit), Ordering::Relaxed);
        Ok(())
    }

    /// Ends the trace; `None` if there is none.
    ///
    /// # Errors
    /// The first that its writer met; what came after is not in the trace.
    pub(crate) fn end(&self) -> Result<Option<OperationTraceSummary>> {
        let mut recording = self.recording.lock();
        self.kinds.store(0, Ordering::Relaxed);
        recording.take().map(|recording| recording.finish()).transpose()
    }

    /// A batch was logged.
    #[cold]
    pub(crate) fn write(&self, batch: &[u8]) {
        self.add(TraceType::Write, |encoder, now| encoder.write(now, batch));
    }

    /// A key is looked up.
    #[cold]
    pub(crate) fn get(&self, family: ColumnFamilyId, key: &[u8]) {
        self.add(TraceType::Get, |encoder, now| encoder.get(now, family, key));
    }

    /// Several keys are looked up.
    #[cold]
    pub(crate) fn multi_get(&self, family: ColumnFamilyId, keys: &[&[u8]]) {
        if !keys.is_empty() {
            let keys: Vec<_> = keys.iter().map(|key| (family, *key)).collect();
            self.add(TraceType::MultiGet, |encoder, now| encoder.multi_get(now, &keys));
        }
    }

    /// An iterator seeks a key.
    #[cold]
    pub(crate) fn seek(
        &self,
        for_prev: bool,
        target: (ColumnFamilyId, &[u8]),
        bounds: (&[u8], &[u8]),
    ) {
        let kind = if for_prev { TraceType::SeekForPrev } else { TraceType::Seek };
        self.add(kind, |encoder, now| encoder.seek(now, kind, target, bounds));
    }

    fn add(
        &self,
        kind: TraceType,
        encode: impl for<'a> FnOnce(&'a mut Encoder, u64) -> Result<&'a [u8]>,
    ) {
        if self.kinds.load(Ordering::Relaxed) & bit(kind) == 0 {
            return;
        }
        if let Some(recording) = &mut *self.recording.lock() {
            recording.add(kind, encode);
            if recording.is_full || recording.failure.is_some() {
                self.kinds.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// The kinds of operations.
const RECORDED: [TraceType; 5] = [
    TraceType::Get,
    TraceType::Write,
    TraceType::Seek,
    TraceType::SeekForPrev,
    TraceType::MultiGet,
];

/// The bit of a kind; 0 for records that are no operations.
fn bit(kind: TraceType) -> u8 {
    match kind {
        TraceType::Get => 1,
        TraceType::Write => 1 << 1,
        TraceType::Seek => 1 << 2,
        TraceType::SeekForPrev => 1 << 3,
        TraceType::MultiGet => 1 << 4,
        _ => 0,
    }
}

struct Recording {
    options: OperationTraceOptions,
    clock: Arc<dyn Clock>,
    writer: Box<dyn TraceWriter>,
    encoder: Encoder,
    /// Operations since the last one that was recorded.
    passed: u64,
    operations: u64,
    is_full: bool,
    failure: Option<Error>,
}

impl Recording {
    fn frame(&mut self, kind: TraceType) -> Result<()> {
        let record = self.encoder.frame(self.clock.unix_micros(), kind)?;
        self.writer.write(record)
    }

    fn add(
        &mut self,
        kind: TraceType,
        encode: impl for<'a> FnOnce(&'a mut Encoder, u64) -> Result<&'a [u8]>,
    ) {
        if self.failure.is_some() || self.options.filter.leaves_out(kind) {
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
        let now = self.clock.unix_micros();
        match encode(&mut self.encoder, now).and_then(|record| self.writer.write(record)) {
            Ok(()) => self.operations += 1,
            Err(error) => self.failure = Some(error),
        }
    }

    fn finish(mut self) -> Result<OperationTraceSummary> {
        if let Some(error) = self.failure.take() {
            // What its buffer holds is lost all the same.
            let _ = self.writer.close();
            return Err(error);
        }
        self.frame(TraceType::End)?;
        self.writer.close()?;
        Ok(OperationTraceSummary {
            operations: self.operations,
            bytes: self.writer.size(),
            is_full: self.is_full,
        })
    }
}
