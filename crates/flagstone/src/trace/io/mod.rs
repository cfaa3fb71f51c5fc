//! Calls of a file system, in RocksDB's format. Numbers are little-endian.
//!
//! ```text
//! trace  = header record, record*
//! header = lps "feedcafedeadbeef", fixed32 major version, fixed32 minor version
//! call   = fixed64 map of numbers, lps name, fixed64 nanoseconds that it took, lps status,
//!          lps file's name without its directory,
//!          [ 0: fixed64 file size ], [ 1: fixed64 length ], [ 2: fixed64 offset ],
//!          fixed64 map of details, [ 0: lps number of the request ]
//! ```
//!
//! Records stand in the frame of all traces. The header's time is in microseconds since 1970. A
//! call's is that of its end, in nanoseconds: since 1970 here, from any start in RocksDB. Names are
//! those of RocksDB's calls; a few calls exist only here. `OK` is the status of a call that did not
//! fail. There is no record at the end.

mod recorder;
#[cfg(test)]
mod tests;

use crate::base::coding::{Decoder, put_fixed64, put_lps};
use crate::base::{Error, Result};
use crate::env::FileCall;

use super::block::BlockAccess;
use super::format::{TraceType, begin_record, end_record};
use super::record::RawRecord;

pub(crate) use recorder::IoTrace;
pub use recorder::{IoTraceFilter, IoTraceOptions, IoTraceSummary};

/// The bits of a call's numbers.
const FILE_SIZE: u64 = 1;
const LENGTH: u64 = 1 << 1;
const OFFSET: u64 = 1 << 2;

/// The bit of a call's details.
const REQUEST_ID: u64 = 1;

/// The status of a call that did not fail.
const OK: &str = "OK";

/// What the first record of a trace says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoTraceHeader {
    /// When the trace began, in microseconds since 1970.
    pub time_us: u64,
    /// The version of RocksDB that wrote it, or whose format it has.
    pub rocksdb_version: (u32, u32),
}

impl IoTraceHeader {
    /// Decodes the first record of a trace.
    ///
    /// # Errors
    /// `Corruption` if it is none.
    pub fn decode(record: &RawRecord) -> Result<Self> {
        BlockAccess::header(record)
            .map(|rocksdb_version| Self { time_us: record.time_us, rocksdb_version })
            .ok_or_else(|| Error::corruption("the trace does not begin as one of I/O"))
    }
}

/// A call of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoCall {
    /// When it ended, in nanoseconds.
    pub time_nanos: u64,
    /// RocksDB's name of the call.
    pub operation: String,
    /// Nanoseconds that it took.
    pub latency_nanos: u64,
    /// `OK`, or why it failed.
    pub status: String,
    /// The file's name without its directory.
    pub file_name: String,
    /// Bytes of the file.
    pub file_size: Option<u64>,
    /// Bytes read or written; for a truncation the new size.
    pub length: Option<u64>,
    /// Offset of the first byte.
    pub offset: Option<u64>,
    /// The request that it was made for, where a program of RocksDB says so.
    pub request_id: Option<String>,
}

impl IoCall {
    /// Whether the call did not fail.
    pub fn is_ok(&self) -> bool {
        self.status == OK
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// `Corruption` if it is none of a call; `NotSupported` if it has numbers or details that are
    /// not known.
    pub fn decode(record: &RawRecord) -> Result<Self> {
        if record.kind != TraceType::Io as u8 {
            let message = format!("a record of type {} is none of a call", record.kind);
            return Err(Error::corruption(message));
        }
        let cut_off = || Error::corruption("a record of a call is too short");
        let mut decoder = Decoder::new(&record.payload);
        let numbers = decoder.fixed64().ok_or_else(cut_off)?;
        check_known("numbers", numbers, FILE_SIZE | LENGTH | OFFSET)?;
        let text = |decoder: &mut Decoder<'_>| {
            decoder.lps().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let mut fields = || {
            let operation = text(&mut decoder)?;
            let latency_nanos = decoder.fixed64()?;
            let (status, file_name) = (text(&mut decoder)?, text(&mut decoder)?);
            let mut number = |bit| match numbers & bit {
                0 => Some(None),
                _ => decoder.fixed64().map(Some),
            };
            let (file_size, length, offset) =
                (number(FILE_SIZE)?, number(LENGTH)?, number(OFFSET)?);
            Some(Self {
                time_nanos: record.time_us,
                operation,
                latency_nanos,
                status,
                file_name,
                file_size,
                length,
                offset,
                request_id: None,
            })
        };
        let mut call = fields().ok_or_else(cut_off)?;
        let details = decoder.fixed64().ok_or_else(cut_off)?;
        check_known("details", details, REQUEST_ID)?;
        if details & REQUEST_ID != 0 {
            call.request_id = Some(text(&mut decoder).ok_or_else(cut_off)?);
        }
        if decoder.is_empty() {
            Ok(call)
        } else {
            Err(Error::corruption("a record of a call is too long"))
        }
    }
}

fn check_known(what: &str, map: u64, known: u64) -> Result<()> {
    if map & !known == 0 {
        return Ok(());
    }
    Err(Error::not_supported(format!("a record of a call has {what} of the map {map:#x}")))
}

/// Makes a record of a call that ended then.
fn put_call(record: &mut Vec<u8>, time_nanos: u64, call: &FileCall<'_>) -> Result<()> {
    let numbers =
        [(FILE_SIZE, call.extent.size), (LENGTH, call.extent.length), (OFFSET, call.extent.offset)];
    let map = numbers.iter().filter(|(_, number)| number.is_some()).map(|(bit, _)| bit).sum();
    begin_record(record, time_nanos, TraceType::Io);
    put_fixed64(record, map);
    put_lps(record, call.kind.name().as_bytes());
    put_fixed64(record, call.nanos);
    match call.error {
        None => put_lps(record, OK.as_bytes()),
        Some(error) => put_lps(record, error.to_string().as_bytes()),
    }
    put_lps(record, call.path.file_name().unwrap_or_default().as_encoded_bytes());
    numbers.iter().filter_map(|(_, number)| *number).for_each(|number| put_fixed64(record, number));
    put_fixed64(record, 0);
    end_record(record)
}
