//! Records what a cache is asked for.
//!
//! 1. A request is a hit, or the insertion that follows a miss: only then is the size known. So a
//!    lookup that finds nothing and has nothing put in (`fill_cache` off, `cache_only`) is no
//!    request; no cache of any size would have kept its block.
//! 2. Keys are sampled by a hash of their own: a key's requests are recorded all or not at all. One
//!    key in n, replayed on a cache of an n-th of the size, then has about the hit ratio of all
//!    keys on the whole (SHARDS, FAST '15).
//! 3. Requests are gathered and written a buffer at a time, in the order in which they came to the
//!    lock.
//!
//! ```text
//! oracleGeneral  24 bytes, little-endian: u32 seconds, u64 key, u32 size, i64 next use
//! RocksDb        `trace::block` has its grammar
//! CSV            time,key,size: seconds with microseconds, two decimal numbers; the first line has the names
//! ```
//!
//! Times count from the start. A key is the hash of the file and the place in it. A size is the
//! charge, in bytes; in the first form, one of 4 GiB or more is written as the largest number. The
//! next use lies in the future, and is written as -1.

use std::path::Path;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Code, Error, Result};
use crate::cache::CacheKey;
use crate::env::{Clock, Env, IoMode, WritableFile};
use crate::trace::{TraceType, put_access, put_header};

const RECORD_SIZE: usize = 24;
/// The longest record: a line of three numbers of 20 digits has 72 bytes with its separators, and
/// an access in RocksDB's form some 90.
const LINE_SIZE_MAX: usize = 128;
const BUFFER_SIZE: usize = 64 << 10;
const HEAD: &str = "time,key,size\n";
const UNKNOWN_NEXT_USE: i64 = -1;

/// How a trace is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TraceFormat {
    /// 24 bytes a request: u32 seconds, u64 key, u32 size, i64 next use (unknown: -1),
    /// little-endian.
    #[default]
    OracleGeneral,
    /// `time,key,size`, a line a request, under a line of names.
    Csv,
    /// RocksDB's, for its `block_cache_trace_analyzer`. The cache does not know for which family,
    /// level and caller it is asked: records say so. A table has the number by which the cache
    /// knows it, another with each opening.
    RocksDb,
}

/// What is recorded (RocksDB's `TraceOptions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOptions {
    /// One key in so many is recorded, with all its requests; 1 for all keys.
    pub sampling_frequency: u64,
    /// The most bytes that the file may have; recording ends before it would have more.
    pub max_trace_file_size: u64,
    /// How requests are written down.
    pub format: TraceFormat,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            sampling_frequency: 1,
            max_trace_file_size: 64 << 30,
            format: TraceFormat::default(),
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSummary {
    /// Requests in the file.
    pub requests: u64,
    /// The file's size in bytes.
    pub bytes: u64,
    /// Whether the file had no room for requests that came later.
    pub is_full: bool,
}

/// A recording, or none. Small, so that what each lookup reads of it lies with the cache's other
/// fields.
#[derive(Default)]
pub(super) struct Tracer {
    /// Changed under the lock only.
    is_on: AtomicBool,
    recording: Mutex<Option<Box<Recording>>>,
}

impl Tracer {
    /// Whether requests are recorded.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Begins to record.
    ///
    /// # Errors
    /// `Busy` if that goes on already; `InvalidArgument` for no sampling frequency, or a file that
    /// exists; `IoError`.
    pub(super) fn start(&self, env: &Env, path: &Path, options: &TraceOptions) -> Result<()> {
        if options.sampling_frequency == 0 {
            return Err(Error::invalid_argument("sampling_frequency must be at least 1"));
        }
        let mut recording = self.recording.lock();
        if recording.is_some() {
            return Err(Error::new(Code::Busy, "a block cache trace is already being recorded"));
        }
        match env.fs.metadata(path) {
            Ok(_) => return Err(Error::invalid_argument("the trace file already exists").at(path)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let file = env.fs.create_writable(path, IoMode::Buffered)?;
        *recording = Some(Box::new(Recording::new(file, env.clock.clone(), *options)));
        self.is_on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the recording, if there is one.
    ///
    /// # Errors
    /// The first that writing the file met; what was recorded after it is not in the file.
    pub(super) fn end(&self) -> Result<Option<TraceSummary>> {
        let mut recording = self.recording.lock();
        self.is_on.store(false, Ordering::Relaxed);
        recording.take().map(|recording| recording.finish()).transpose()
    }

    /// A request for a key.
    #[cold]
    pub(super) fn record(&self, access: &Access) {
        if let Some(recording) = &mut *self.recording.lock() {
            recording.add(access);
        }
    }
}

/// A request.
pub(super) struct Access {
    pub(super) key: CacheKey,
    pub(super) kind: TraceType,
    pub(super) charge: usize,
    pub(super) is_hit: bool,
}

struct Recording {
    file: Arc<dyn WritableFile>,
    clock: Arc<dyn Clock>,
    options: TraceOptions,
    started_us: u64,
    buffer: Vec<u8>,
    /// Bytes of the file that are written.
    written: u64,
    requests: u64,
    is_full: bool,
    failure: Option<Error>,
}

impl Recording {
    fn new(file: Arc<dyn WritableFile>, clock: Arc<dyn Clock>, options: TraceOptions) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_SIZE + LINE_SIZE_MAX);
        match options.format {
            TraceFormat::OracleGeneral => {}
            TraceFormat::Csv => buffer.extend_from_slice(HEAD.as_bytes()),
            TraceFormat::RocksDb => put_header(&mut buffer, clock.unix_micros()),
        }
        let started_us = clock.now_us();
        Self {
            file,
            clock,
            options,
            started_us,
            buffer,
            written: 0,
            requests: 0,
            is_full: false,
            failure: None,
        }
    }

    fn add(&mut self, access: &Access) {
        let hash = access.key.hash();
        if self.is_full
            || self.failure.is_some()
            || !is_sampled(hash, self.options.sampling_frequency)
        {
            return;
        }
        let length = self.buffer.len();
        let elapsed_us = self.clock.now_us().saturating_sub(self.started_us);
        let charge = access.charge as u64;
        match self.options.format {
            TraceFormat::RocksDb => {
                let CacheKey { file, offset } = access.key;
                let now = self.clock.unix_micros();
                let (buffer, kind) = (&mut self.buffer, access.kind);
                put_access(buffer, (now, kind), (file, offset), charge, access.is_hit);
            }
            TraceFormat::OracleGeneral => append(&mut self.buffer, elapsed_us, hash, charge),
            TraceFormat::Csv => append_line(&mut self.buffer, elapsed_us, hash, charge),
        }
        if self.written + self.buffer.len() as u64 > self.options.max_trace_file_size {
            self.buffer.truncate(length);
            self.is_full = true;
            return;
        }
        self.requests += 1;
        if self.buffer.len() >= BUFFER_SIZE {
            self.write_buffer();
        }
    }

    fn write_buffer(&mut self) {
        match self.file.write_at(self.written, &self.buffer) {
            Ok(()) => self.written += self.buffer.len() as u64,
            Err(error) => self.failure = Some(error),
        }
        self.buffer.clear();
    }

    fn finish(mut self) -> Result<TraceSummary> {
        if self.failure.is_none() {
            self.write_buffer();
        }
        match self.failure {
            Some(error) => Err(error),
            None => Ok(TraceSummary {
                requests: self.requests,
                bytes: self.written,
                is_full: self.is_full,
            }),
        }
    }
}

/// Whether a key is one of those recorded. Mixed once more, since the hash's bits choose shards and
/// buckets, too.
fn is_sampled(hash: u64, frequency: u64) -> bool {
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ (mixed >> 32)).is_multiple_of(frequency)
}

fn append(buffer: &mut Vec<u8>, elapsed_us: u64, key: u64, size: u64) {
    let seconds = elapsed_us / 1_000_000;
    let mut record = [0; RECORD_SIZE];
    record[0..4].copy_from_slice(&u32::try_from(seconds).unwrap_or(u32::MAX).to_le_bytes());
    record[4..12].copy_from_slice(&key.to_le_bytes());
    record[12..16].copy_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
    record[16..24].copy_from_slice(&UNKNOWN_NEXT_USE.to_le_bytes());
    buffer.extend_from_slice(&record);
}

fn append_line(buffer: &mut Vec<u8>, elapsed_us: u64, key: u64, size: u64) {
    let (seconds, micros) = (elapsed_us / 1_000_000, elapsed_us % 1_000_000);
    buffer.extend_from_slice(format!("{seconds}.{micros:06},{key},{size}\n").as_bytes());
}

#[cfg(test)]
mod tests;
