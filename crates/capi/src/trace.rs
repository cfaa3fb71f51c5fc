//! Traces of operations, of the block cache and of I/O, and replays.

use std::cell::RefCell;
use std::ffi::c_char;
use std::path::Path;

use flagstone::cache::{TraceFormat, TraceOptions as CacheTraceOptions};
use flagstone::replay::{ReplayOptions, Replayer as EngineReplayer};
use flagstone::trace::{
    FileTraceReader, FileTraceWriter, IoTraceFilter, IoTraceOptions, OperationTraceOptions,
    TraceFilter, TraceReader as _,
};
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::engine_env;

use crate::abi::{Array, Out, Ref, Result, Tagged, copied, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::{Db, Family};
use crate::env::{Env, EnvOptions};
use crate::reading::families;

/// What is recorded of operations.
pub struct TraceOptions {
    max_trace_file_size: u64,
    sampling_frequency: u64,
    filter: u64,
    /// It always is.
    preserve_write_order: bool,
}

impl Default for TraceOptions {
    fn default() -> Self {
        let OperationTraceOptions { max_trace_file_size, sampling_frequency, .. } =
            OperationTraceOptions::default();
        Self { max_trace_file_size, sampling_frequency, filter: 0, preserve_write_order: false }
    }
}

/// How often accesses of the block cache are recorded.
pub struct CacheTrace {
    sampling_frequency: u64,
}

impl Default for CacheTrace {
    fn default() -> Self {
        Self { sampling_frequency: 1 }
    }
}

/// How much is recorded of them.
pub struct CacheTraceWriter {
    max_trace_file_size: u64,
}

impl Default for CacheTraceWriter {
    fn default() -> Self {
        Self { max_trace_file_size: CacheTraceOptions::default().max_trace_file_size }
    }
}

/// Hands out records; `None` once it is closed.
pub struct TraceReader(RefCell<Option<FileTraceReader>>);

/// How a trace is repeated.
#[derive(Default)]
pub struct Replay(ReplayOptions);

/// Repeats a trace.
pub struct Replayer(EngineReplayer);

handles! {
    TraceOptions = "trace_options",
    CacheTrace = "block_cache_trace_options",
    CacheTraceWriter = "block_cache_trace_writer_options",
    TraceReader = "trace_reader",
    Replay = "replay_options",
    Replayer = "replayer",
}

creates! {
    rocksdb_trace_options_create: TraceOptions,
    rocksdb_block_cache_trace_options_create: CacheTrace,
    rocksdb_block_cache_trace_writer_options_create: CacheTraceWriter,
    rocksdb_replay_options_create: Replay,
}

destroys! {
    rocksdb_trace_options_destroy: TraceOptions,
    rocksdb_block_cache_trace_options_destroy: CacheTrace,
    rocksdb_block_cache_trace_writer_options_destroy: CacheTraceWriter,
    rocksdb_replay_options_destroy: Replay,
    rocksdb_trace_reader_destroy: TraceReader,
    rocksdb_replayer_destroy: Replayer,
}

c_settings! { "rocksdb_trace_options", TraceOptions, |o| {
    value u64, max_trace_file_size: o.max_trace_file_size;
    value u64, sampling_frequency: o.sampling_frequency;
    value u64, filter: o.filter;
    value u8, preserve_write_order: o.preserve_write_order;
} }

c_settings! { "rocksdb_block_cache_trace_options", CacheTrace, |o| {
    value u64, sampling_frequency: o.sampling_frequency;
} }

c_settings! { "rocksdb_block_cache_trace_writer_options", CacheTraceWriter, |o| {
    value u64, max_trace_file_size: o.max_trace_file_size;
} }

c_settings! { "rocksdb_replay_options", Replay, |o| {
    value u32, num_threads: o.0.num_threads;
    value f64, fast_forward: o.0.fast_forward;
} }

/// The environment that is given, or that of the database.
fn env_of(db: &Db, env: Option<&Env>) -> flagstone::Env {
    env.map_or_else(|| db.engine().options().env.clone(), |env| engine_env(&env.rdb).clone())
}

fn start_cache_trace(
    db: &Db,
    path: &Path,
    sampling_frequency: u64,
    max_trace_file_size: u64,
) -> Result<()> {
    let options = CacheTraceOptions {
        // RocksDB takes 0 for all.
        sampling_frequency: sampling_frequency.max(1),
        max_trace_file_size,
        format: TraceFormat::RocksDb,
    };
    Ok(db.engine().start_block_cache_trace(path, &options)?)
}

/// What RocksDB says where there is nothing to end.
fn none() -> rdb::Error {
    flagstone::Error::new(flagstone::Code::IoError, "No trace file to close").into()
}

c_api! {
    fn rocksdb_trace_reader_create(
        env: &Env, _files: ?EnvOptions, path: path, error
    ) -> *mut Tagged<TraceReader> {
        let reader = FileTraceReader::open(engine_env(&env.rdb), path)?;
        make(TraceReader(RefCell::new(Some(reader))))
    }

    fn rocksdb_trace_reader_read(
        reader: &TraceReader, size: Out<usize>, error
    ) -> *mut c_char {
        size.set(0);
        let mut reader = reader.0.borrow_mut();
        let reader = reader.as_mut().ok_or_else(closed)?;
        match reader.read()? {
            None => std::ptr::null_mut(),
            Some(record) => {
                size.set(record.len());
                copied(&record)
            }
        }
    }

    fn rocksdb_trace_reader_reset(reader: &TraceReader, error) {
        reader.0.borrow_mut().as_mut().ok_or_else(closed)?.reset()?;
    }

    fn rocksdb_trace_reader_close(reader: &TraceReader, error) {
        reader.0.borrow_mut().take();
    }

    fn rocksdb_new_default_replayer(
        db: &Db, list: Array<Ref<Family>>, len: usize, env: ?Env, _files: ?EnvOptions, path: path,
        error
    ) -> *mut Tagged<Replayer> {
        let reader = Box::new(FileTraceReader::open(&env_of(db, env), path)?);
        let named: Vec<_> = families(list, len)?.into_iter().cloned().collect();
        let default = vec![db.engine().default_column_family().clone()];
        let named = if named.is_empty() { default } else { named };
        make(Replayer(EngineReplayer::of_families(db.engine(), &named, reader)))
    }

    fn rocksdb_replayer_prepare(replayer: &mut Replayer, error) {
        replayer.0.prepare()?;
    }

    fn rocksdb_replayer_get_header_timestamp(replayer: &Replayer) -> u64 {
        replayer.0.header_timestamp()
    }

    fn rocksdb_replayer_replay(replayer: &mut Replayer, options: ?Replay, error) {
        let options = options.map_or_else(ReplayOptions::default, |options| options.0);
        replayer.0.replay(&options, |_, _| {})?;
    }

    fn rocksdb_start_trace(
        db: &Db, env: ?Env, _files: ?EnvOptions, options: ?TraceOptions, path: path, error
    ) {
        let defaults = TraceOptions::default();
        let options = options.unwrap_or(&defaults);
        let options = OperationTraceOptions {
            max_trace_file_size: options.max_trace_file_size,
            // RocksDB takes 0 for all.
            sampling_frequency: options.sampling_frequency.max(1),
            filter: TraceFilter::from_bits(options.filter),
        };
        let writer = FileTraceWriter::replace(&env_of(db, env), path);
        db.engine().start_trace(&options, Box::new(writer))?;
    }

    fn rocksdb_end_trace(db: &Db, error) {
        db.engine().end_trace()?.ok_or_else(none)?;
    }

    fn rocksdb_start_io_trace(
        db: &Db, env: ?Env, _files: ?EnvOptions, options: ?TraceOptions, path: path, error
    ) {
        let defaults = TraceOptions::default();
        let options = options.unwrap_or(&defaults);
        let options = IoTraceOptions {
            max_trace_file_size: options.max_trace_file_size,
            // RocksDB takes 0 for all, and its filter knows no calls of files.
            sampling_frequency: options.sampling_frequency.max(1),
            filter: IoTraceFilter::default(),
        };
        let writer = FileTraceWriter::replace(&env_of(db, env), path);
        db.engine().start_io_trace(&options, Box::new(writer))?;
    }

    fn rocksdb_end_io_trace(db: &Db, error) {
        // As in RocksDB, it is no error if there is none.
        db.engine().end_io_trace()?;
    }

    fn rocksdb_start_block_cache_trace(
        db: &Db, _env: ?Env, _files: ?EnvOptions, options: ?TraceOptions, path: path, error
    ) {
        let defaults = TraceOptions::default();
        let options = options.unwrap_or(&defaults);
        start_cache_trace(db, path, options.sampling_frequency, options.max_trace_file_size)?;
    }

    fn rocksdb_start_block_cache_trace_with_options(
        db: &Db, _env: ?Env, _files: ?EnvOptions, options: ?CacheTrace,
        writer_options: ?CacheTraceWriter, path: path, error
    ) {
        let (options, writer) = (
            options.map_or(1, |options| options.sampling_frequency),
            writer_options.map_or_else(CacheTraceWriter::default, |options| CacheTraceWriter {
                max_trace_file_size: options.max_trace_file_size,
            }),
        );
        start_cache_trace(db, path, options, writer.max_trace_file_size)?;
    }

    fn rocksdb_end_block_cache_trace(db: &Db, error) {
        // As in RocksDB, it is no error if there is none.
        db.engine().end_block_cache_trace()?;
    }
}

/// What RocksDB says of a reader that was closed.
fn closed() -> rdb::Error {
    flagstone::Error::new(flagstone::Code::IoError, "TraceReader is closed.").into()
}
