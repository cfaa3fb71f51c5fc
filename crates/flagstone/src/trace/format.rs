//! The bytes of a trace, as RocksDB's `trace_replay` has them. Numbers are little-endian.
//!
//! ```text
//! trace    = header record, record*, [ end record ]
//! record   = fixed64 microseconds since 1970, u8 type, fixed32 payload length, payload
//! header   = "feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 11.9\tFormat: ...\n"
//! payload  = fixed64 map of fields (from version 0.2 on), fields
//! write    = 1: lps batch
//! get      = 2: fixed32 family, 3: lps key
//! seek     = 4: fixed32 family, 5: lps key, [ 6: lps lower bound ], [ 7: lps upper bound ]
//! multiget = 8: fixed32 number of keys, 9: lps families (fixed32 each), 10: lps keys (lps each)
//! ```
//!
//! A field's number is its bit in the map, and fields stand in the order of their numbers. Before
//! version 0.2 there is no map: a write is a batch, gets and seeks are a fixed32 family and an lps
//! key, and lookups of several keys are not recorded. `lps` is a varint32 length and as many bytes.
//! A trace whose process ended early has no end record, and its last record may be cut off.

use crate::base::coding::{put_fixed32, put_fixed64};
use crate::base::{Error, Result};

/// Bytes before a payload: time, type and length.
pub const RECORD_HEADER_SIZE: usize = 8 + 1 + 4;

pub(super) const MAGIC: &str = "feedcafedeadbeef";
const TRACE_VERSION: &str = "Trace Version: ";
const ROCKSDB_VERSION: &str = "RocksDB Version: ";
/// The version of RocksDB whose format is written.
const WRITTEN_AS: &str = "11.9";
const FORMAT: &str = "Format: Timestamp OpType Payload\n";

/// The bits of fields in a payload's map.
pub(super) mod field {
    pub const WRITE_BATCH: u64 = 1 << 1;
    pub const GET_FAMILY: u64 = 1 << 2;
    pub const GET_KEY: u64 = 1 << 3;
    pub const SEEK_FAMILY: u64 = 1 << 4;
    pub const SEEK_KEY: u64 = 1 << 5;
    pub const SEEK_LOWER: u64 = 1 << 6;
    pub const SEEK_UPPER: u64 = 1 << 7;
    pub const MULTI_SIZE: u64 = 1 << 8;
    pub const MULTI_FAMILIES: u64 = 1 << 9;
    pub const MULTI_KEYS: u64 = 1 << 10;
}

/// What a record is about (RocksDB's `TraceType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TraceType {
    /// The header of a trace.
    Begin = 1,
    /// The end of a trace.
    End = 2,
    /// A batch was written.
    Write = 3,
    /// A key was looked up.
    Get = 4,
    /// An iterator sought a key or the next one.
    Seek = 5,
    /// An iterator sought a key or the one before.
    SeekForPrev = 6,
    /// An access of an index block, in a trace of the block cache.
    IndexBlock = 7,
    /// An access of a filter block, in a trace of the block cache.
    FilterBlock = 8,
    /// An access of a data block, in a trace of the block cache.
    DataBlock = 9,
    /// An access of a compression dictionary, in a trace of the block cache.
    DictionaryBlock = 10,
    /// An access of a block of range deletions, in a trace of the block cache.
    RangeDeletionBlock = 11,
    /// A call of a file system, in a trace of I/O.
    Io = 12,
    /// Several keys were looked up.
    MultiGet = 13,
}

impl TraceType {
    /// The type of that number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Begin,
            2 => Self::End,
            3 => Self::Write,
            4 => Self::Get,
            5 => Self::Seek,
            6 => Self::SeekForPrev,
            7 => Self::IndexBlock,
            8 => Self::FilterBlock,
            9 => Self::DataBlock,
            10 => Self::DictionaryBlock,
            11 => Self::RangeDeletionBlock,
            12 => Self::Io,
            13 => Self::MultiGet,
            _ => return None,
        })
    }
}

/// The version of a trace's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceVersion(u32);

impl TraceVersion {
    /// The one that is written: 0.2.
    pub const WRITTEN: Self = Self(2);

    /// Whether payloads begin with a map of their fields.
    pub(super) fn has_map(self) -> bool {
        self >= Self(2)
    }

    /// RocksDB puts the digits around the point together.
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let digits = format!("{major}{minor}");
        (is_number(&digits)).then(|| digits.parse().ok().map(Self)).flatten()
    }
}

/// What the first record of a trace says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHeader {
    /// When the trace began, in microseconds since 1970.
    pub time_us: u64,
    /// By which format its records are written.
    pub version: TraceVersion,
}

impl TraceHeader {
    /// The payload of a header.
    pub(super) fn payload() -> String {
        format!("{MAGIC}\t{TRACE_VERSION}0.2\t{ROCKSDB_VERSION}{WRITTEN_AS}\t{FORMAT}")
    }

    /// Reads the first record of a trace.
    ///
    /// # Errors
    /// `Corruption` if it is none; `NotSupported` for a version above 0.2.
    pub(super) fn parse(time_us: u64, kind: u8, payload: &[u8]) -> Result<Self> {
        if kind != TraceType::Begin as u8 {
            return Err(Error::corruption(format!(
                "the first record of a trace has type {kind}, not {}",
                TraceType::Begin as u8
            )));
        }
        let not = |what: &str| Error::corruption(format!("the header of a trace has no {what}"));
        let text = std::str::from_utf8(payload).map_err(|_| not("text"))?;
        let mut parts = text.split('\t');
        if parts.next() != Some(MAGIC) {
            return Err(not("magic"));
        }
        let version = parts.next().and_then(|part| part.strip_prefix(TRACE_VERSION));
        let version = version.and_then(TraceVersion::parse).ok_or_else(|| not("trace version"))?;
        let database = parts.next().and_then(|part| part.strip_prefix(ROCKSDB_VERSION));
        database.and_then(TraceVersion::parse).ok_or_else(|| not("RocksDB version"))?;
        if version > TraceVersion::WRITTEN {
            let message = format!("a trace of version {}.{}", version.0 / 10, version.0 % 10);
            return Err(Error::not_supported(message));
        }
        Ok(Self { time_us, version })
    }
}

/// Begins a record whose payload follows; [`end_record`] completes it.
pub(super) fn begin_record(record: &mut Vec<u8>, time_us: u64, kind: TraceType) {
    record.clear();
    put_fixed64(record, time_us);
    record.push(kind as u8);
    put_fixed32(record, 0);
}

/// Puts the payload's length where it belongs.
///
/// # Errors
/// `InvalidArgument` for a payload of 4 GiB or more.
pub(super) fn end_record(record: &mut [u8]) -> Result<()> {
    let length = u32::try_from(record.len() - RECORD_HEADER_SIZE)
        .map_err(|_| Error::invalid_argument("an operation of 4 GiB or more cannot be traced"))?;
    record[RECORD_HEADER_SIZE - 4..RECORD_HEADER_SIZE].copy_from_slice(&length.to_le_bytes());
    Ok(())
}
