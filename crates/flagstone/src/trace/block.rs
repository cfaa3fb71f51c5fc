//! Accesses of the block cache, in RocksDB's format. Numbers are little-endian.
//!
//! ```text
//! trace  = header record, record*
//! header = lps "feedcafedeadbeef", fixed32 major version, fixed32 minor version
//! access = lps block key, fixed64 block size, fixed64 family, lps family's name, fixed32 level,
//!          fixed64 table's number, u8 caller, u8 is a hit, u8 is not inserted,
//!          [ fixed64 number of the lookup, u8 has a snapshot, lps key ]    if callers look keys up
//!          [ fixed64 size of what it finds, fixed64 keys, u8 is there ]    and it is a data block
//! ```
//!
//! Records stand in the frame of all traces, with the kind of block as their type. Callers 1 and 2
//! look up one key and several.

use crate::base::coding::{Decoder, put_fixed32, put_fixed64, put_lps, put_varint64};
use crate::base::{Error, Result};

use super::format::{MAGIC, TraceType, begin_record, end_record};
use super::record::RawRecord;

/// The version of RocksDB whose format is written.
const WRITTEN_AS: (u32, u32) = (11, 9);

/// What stands for a family, a level and a caller that the cache does not know.
const UNKNOWN_FAMILY: &str = "UnknownColumnFamily";
const UNKNOWN_LEVEL: u32 = u32::MAX;
const UNCATEGORIZED: u8 = 14;

/// The callers that look keys up.
const LOOKUPS: [u8; 2] = [1, 2];

/// An access of the block cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockAccess {
    /// When it was, in microseconds since 1970.
    pub time_us: u64,
    /// What the block holds: the number of a [`TraceType`], from 7 to 11.
    pub kind: u8,
    /// What the cache knows the block by.
    pub block_key: Vec<u8>,
    /// Bytes of the block.
    pub size: u64,
    /// Whether the cache had it.
    pub is_hit: bool,
    /// Whether it was not to be inserted.
    pub is_not_inserted: bool,
}

impl BlockAccess {
    /// Whether a record begins a trace of the block cache, or one of I/O, which begins alike.
    pub fn begins_trace(record: &RawRecord) -> bool {
        record.kind == TraceType::Begin as u8
            && Decoder::new(&record.payload).lps() == Some(MAGIC.as_bytes())
    }

    /// Checks the header of a trace.
    ///
    /// # Errors
    /// `Corruption` if it is none.
    pub fn check_header(record: &RawRecord) -> Result<()> {
        Self::header(record)
            .map(drop)
            .ok_or_else(|| Error::corruption("the trace does not begin as one of the block cache"))
    }

    /// The version of RocksDB in the header of a trace, if it is one.
    pub(super) fn header(record: &RawRecord) -> Option<(u32, u32)> {
        let mut decoder = Decoder::new(&record.payload);
        decoder.lps().filter(|magic| *magic == MAGIC.as_bytes())?;
        let version = (decoder.fixed32()?, decoder.fixed32()?);
        (record.kind == TraceType::Begin as u8 && decoder.is_empty()).then_some(version)
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// `Corruption` if it is none of an access.
    pub fn decode(record: &RawRecord) -> Result<Self> {
        const FIRST: u8 = TraceType::IndexBlock as u8;
        const LAST: u8 = TraceType::RangeDeletionBlock as u8;
        if !(FIRST..=LAST).contains(&record.kind) {
            let message = format!("a record of type {} is none of a block", record.kind);
            return Err(Error::corruption(message));
        }
        let mut decoder = Decoder::new(&record.payload);
        let mut fields = || {
            let block_key = decoder.lps()?.to_vec();
            let size = decoder.fixed64()?;
            let _place =
                (decoder.fixed64()?, decoder.lps()?, decoder.fixed32()?, decoder.fixed64()?);
            let (caller, is_hit, is_not_inserted) = (decoder.u8()?, decoder.u8()?, decoder.u8()?);
            if LOOKUPS.contains(&caller) {
                let _lookup = (decoder.fixed64()?, decoder.u8()?, decoder.lps()?);
                if record.kind == TraceType::DataBlock as u8 {
                    let _found = (decoder.fixed64()?, decoder.fixed64()?, decoder.u8()?);
                }
            }
            Some(Self {
                time_us: record.time_us,
                kind: record.kind,
                block_key,
                size,
                is_hit: is_hit != 0,
                is_not_inserted: is_not_inserted != 0,
            })
        };
        let access = fields();
        access
            .filter(|_| decoder.is_empty())
            .ok_or_else(|| Error::corruption("a record of an access has the wrong length"))
    }
}

/// Appends the header of a trace.
pub(crate) fn put_header(buffer: &mut Vec<u8>, time_us: u64) {
    put_record(buffer, time_us, TraceType::Begin, |record| {
        put_lps(record, MAGIC.as_bytes());
        put_fixed32(record, WRITTEN_AS.0);
        put_fixed32(record, WRITTEN_AS.1);
    });
}

/// Appends an access of the block at this place in an open file, by the number of that file.
pub(crate) fn put_access(
    buffer: &mut Vec<u8>,
    (time_us, kind): (u64, TraceType),
    (file, offset): (u64, u64),
    size: u64,
    is_hit: bool,
) {
    let mut block_key = Vec::with_capacity(20);
    put_varint64(&mut block_key, file);
    put_varint64(&mut block_key, offset);
    put_record(buffer, time_us, kind, |record| {
        put_lps(record, &block_key);
        put_fixed64(record, size);
        put_fixed64(record, 0);
        put_lps(record, UNKNOWN_FAMILY.as_bytes());
        put_fixed32(record, UNKNOWN_LEVEL);
        put_fixed64(record, file);
        record.extend_from_slice(&[UNCATEGORIZED, u8::from(is_hit), 0]);
    });
}

fn put_record(
    buffer: &mut Vec<u8>,
    time_us: u64,
    kind: TraceType,
    payload: impl FnOnce(&mut Vec<u8>),
) {
    let mut record = Vec::with_capacity(128);
    begin_record(&mut record, time_us, kind);
    payload(&mut record);
    end_record(&mut record).expect("a record of an access is short");
    buffer.extend_from_slice(&record);
}
