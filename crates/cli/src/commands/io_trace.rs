//! `flagstone io-trace`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::Result;
use flagstone::env::Env;
use flagstone::trace::{FileTraceReader, IoCall, IoTraceHeader, RawRecord, TraceReader};
use serde_json::json;

use crate::arguments::Common;
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::text::Notation;

/// Print a trace of I/O: the calls that a database made of its files.
///
/// TRACE is in RocksDB's format. `flagstone bench --io_trace_file` and `Db::start_io_trace` record
/// such traces. Lines are those of RocksDB's io_tracer_parser: the time at which the call ended, in
/// nanoseconds; the file, without its directory; RocksDB's name of the call; the nanoseconds that
/// it took; its status; and the file's size, the bytes and their offset, where the call has them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone io-trace io.trace --failed")]
pub struct Arguments {
    /// Trace file
    trace: PathBuf,
    /// Print only calls that failed
    #[arg(long)]
    failed: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    // What helps a damaged database is no help for a trace.
    let of_trace = |error: flagstone::Error| {
        let error = error.at(&arguments.trace);
        if error.is_corruption() { Failure::Other(error.to_string()) } else { error.into() }
    };
    let mut reader = FileTraceReader::open(&Env::os(), &arguments.trace)?;
    let header = header(&mut reader).map_err(of_trace)?;
    let mut output = Output::new();
    if !common.json {
        let (major, minor) = header.rocksdb_version;
        output.line(format!("Start Time: {}", header.time_us))?;
        output.line(format!("RocksDB Major Version: {major}"))?;
        output.line(format!("RocksDB Minor Version: {minor}"))?;
    }
    // What comes before damage is printed.
    let outcome = loop {
        match reader.read().and_then(|record| record.map(decode).transpose()) {
            Ok(Some(call)) if arguments.failed && call.is_ok() => {}
            Ok(Some(call)) => {
                output.line(if common.json { as_json(&call) } else { line(&call) })?
            }
            Ok(None) => break Ok(Verdict::Sound),
            Err(error) => break Err(of_trace(error)),
        }
    };
    output.finish()?;
    outcome
}

fn header(reader: &mut FileTraceReader) -> Result<IoTraceHeader> {
    let first = reader.read()?;
    let first = first.ok_or_else(|| flagstone::Error::corruption("the trace is empty"))?;
    IoTraceHeader::decode(&RawRecord::parse(&first)?)
}

fn decode(record: Vec<u8>) -> Result<IoCall> {
    IoCall::decode(&RawRecord::parse(&record)?)
}

fn shown(text: &str) -> String {
    Notation::new(false).show(text.as_bytes())
}

fn line(call: &IoCall) -> String {
    let mut line = format!(
        "Access Time : {:<20}, File Name: {:<20}, File Operation: {:<18}, Latency: {:<10}, IO Status: {}",
        call.time_nanos,
        shown(&call.file_name),
        shown(&call.operation),
        call.latency_nanos,
        shown(&call.status),
    );
    let numbers = [("File Size", call.file_size), ("Length", call.length), ("Offset", call.offset)];
    for (name, number) in numbers {
        if let Some(number) = number {
            line.push_str(&format!(", {name}: {number}"));
        }
    }
    if let Some(request) = &call.request_id {
        line.push_str(&format!(", Request Id: {}", shown(request)));
    }
    line
}

fn as_json(call: &IoCall) -> String {
    json!({
        "time_nanos": call.time_nanos,
        "file_name": call.file_name,
        "operation": call.operation,
        "latency_nanos": call.latency_nanos,
        "status": call.status,
        "file_size": call.file_size,
        "length": call.length,
        "offset": call.offset,
        "request_id": call.request_id,
    })
    .to_string()
}
