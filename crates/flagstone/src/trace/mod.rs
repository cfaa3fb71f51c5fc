//! Traces in RocksDB's formats: what a program asked a database for, and what that asked its block
//! cache and its files for.
//!
//! - `format`: the grammar of the bytes
//! - `record`: operations as records, encoded and decoded
//! - `block`: accesses of the block cache as records
//! - `io`: calls of a file system as records, and what a database whose I/O is traced writes down
//! - `file`: [`FileTraceWriter`] and [`FileTraceReader`], and the traits behind which a trace can
//!   go elsewhere
//! - `recorder`: what a database that is traced writes down
//!
//! `Db::start_trace` records, and [`Replayer`](crate::replay::Replayer) repeats.

mod block;
mod file;
mod format;
mod io;
mod record;
mod recorder;
#[cfg(test)]
mod tests;

pub use block::BlockAccess;
pub(crate) use block::{put_access, put_header};
pub use file::{FileTraceReader, FileTraceWriter, TraceReader, TraceWriter};
pub use format::{RECORD_HEADER_SIZE, TraceHeader, TraceType, TraceVersion};
pub(crate) use io::IoTrace;
pub use io::{IoCall, IoTraceFilter, IoTraceHeader, IoTraceOptions, IoTraceSummary};
pub use record::{RawRecord, TraceRecord};
pub(crate) use recorder::OperationTrace;
pub use recorder::{OperationTraceOptions, OperationTraceSummary, TraceFilter};
