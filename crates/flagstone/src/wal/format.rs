//! The bytes of a log file, shared by its writer and its reader.
//!
//! ```text
//! file             = block*                            each of 32768 bytes, the last may be shorter
//! block            = physical record*, [zeros]         no record crosses a block's end
//! physical record  = masked crc32c, fixed16 payload length, type byte, payload                     (7-byte header)
//!                  | masked crc32c, fixed16 payload length, type byte, fixed32 WAL number, payload      (11 bytes)
//! logical record   = Full | First, Middle*, Last       one write batch, or one version edit in a MANIFEST
//! ```
//!
//! The CRC covers everything from the type byte on. The WAL number in the longer, *recyclable*
//! header tells what was written to this file from what is left of its previous life under another
//! number. Special records (compression, timestamp sizes, predecessor) are never fragmented. An
//! unknown type is skipped if it has bit 7, and else an error.

use std::collections::HashMap;

use crate::base::ColumnFamilyId;
use crate::base::checksum::{self, Suffix};
use crate::base::coding::{Decoder, fixed32_at};

/// Physical records do not cross multiples of this.
pub const BLOCK_SIZE: usize = 32 * 1024;

pub(super) const CRC_SIZE: usize = 4;
const LENGTH_SIZE: usize = 2;
const NUMBER_SIZE: usize = 4;
/// Where the bytes of a batch begin that do not depend on its place among others: behind its
/// sequence number.
const TAIL_OFFSET: usize = 8;
pub(super) const TYPE_OFFSET: usize = CRC_SIZE + LENGTH_SIZE;
/// Bytes of a header that does not carry the file's number.
pub const LEGACY_HEADER_SIZE: usize = TYPE_OFFSET + 1;
pub(super) const RECYCLABLE_HEADER_SIZE: usize = LEGACY_HEADER_SIZE + NUMBER_SIZE;

const _: () = {
    assert!(LEGACY_HEADER_SIZE == 7 && RECYCLABLE_HEADER_SIZE == 11);
    // A fragment's length must fit its fixed16.
    assert!(BLOCK_SIZE - LEGACY_HEADER_SIZE <= u16::MAX as usize);
};

/// Preallocated space, when the length is zero too.
pub(super) const ZERO: u8 = 0;
pub(super) const FULL: u8 = 1;
pub(super) const FIRST: u8 = 2;
pub(super) const MIDDLE: u8 = 3;
pub(super) const LAST: u8 = 4;
/// What the recyclable forms of Full, First, Middle and Last add to their type.
pub(super) const RECYCLABLE: u8 = 4;
const RECYCLABLE_FULL: u8 = FULL + RECYCLABLE;
const RECYCLABLE_LAST: u8 = LAST + RECYCLABLE;
pub(super) const SET_COMPRESSION_TYPE: u8 = 9;
pub(super) const TIMESTAMP_SIZES: u8 = 10;
pub(super) const RECYCLABLE_TIMESTAMP_SIZES: u8 = 11;
pub(super) const PREDECESSOR: u8 = 130;
pub(super) const RECYCLABLE_PREDECESSOR: u8 = 131;
/// A reader skips unknown types that have this bit.
pub(super) const IGNORABLE: u8 = 0x80;

/// The compression's number in a SetCompressionType record; the only one that WALs know.
pub(super) const ZSTD: u32 = 7;

pub(super) fn is_recyclable(record_type: u8) -> bool {
    matches!(
        record_type,
        RECYCLABLE_FULL..=RECYCLABLE_LAST | RECYCLABLE_TIMESTAMP_SIZES | RECYCLABLE_PREDECESSOR
    )
}

pub(super) fn is_legacy_data(record_type: u8) -> bool {
    matches!(record_type, FULL..=LAST)
}

/// Whether this version understands `record_type`, which is one without header distinction.
pub(super) fn is_known(record_type: u8) -> bool {
    matches!(
        record_type,
        FULL..=LAST
            | SET_COMPRESSION_TYPE
            | TIMESTAMP_SIZES
            | RECYCLABLE_TIMESTAMP_SIZES
            | PREDECESSOR
            | RECYCLABLE_PREDECESSOR
    )
}

/// Full, First, Middle or Last, whichever header `record_type` has; other types as they are.
pub(super) fn without_recyclable(record_type: u8) -> u8 {
    match record_type {
        RECYCLABLE_FULL..=RECYCLABLE_LAST => record_type - RECYCLABLE,
        _ => record_type,
    }
}

/// The short header's fields; `None` if fewer bytes are there.
pub(super) struct Header {
    pub masked_crc: u32,
    pub length: usize,
    pub record_type: u8,
}

impl Header {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(bytes);
        Some(Self {
            masked_crc: decoder.fixed32()?,
            length: usize::from(decoder.fixed16()?),
            record_type: decoder.u8()?,
        })
    }

    pub fn size(&self) -> usize {
        if is_recyclable(self.record_type) { RECYCLABLE_HEADER_SIZE } else { LEGACY_HEADER_SIZE }
    }
}

/// The low half of the WAL's number in a recyclable header.
pub(super) fn number_in_header(bytes: &[u8]) -> Option<u32> {
    fixed32_at(bytes, LEGACY_HEADER_SIZE)
}

/// Appends a header whose CRC and length [`finish_record`] fills in.
#[inline]
pub(super) fn put_header(out: &mut Vec<u8>, record_type: u8, recycled_as: Option<u32>) {
    put_header_of(out, record_type, record_type + RECYCLABLE, recycled_as);
}

/// The same of a record that has these types, by itself and in a log whose headers have its number.
#[inline]
pub(super) fn put_header_of(
    out: &mut Vec<u8>,
    record_type: u8,
    recyclable_type: u8,
    recycled_as: Option<u32>,
) {
    out.extend_from_slice(&[0; TYPE_OFFSET]);
    match recycled_as {
        None => out.push(record_type),
        Some(number) => {
            out.push(recyclable_type);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Completes the physical record that starts at `start` and ends where `out` ends.
#[inline]
pub(super) fn finish_record(out: &mut [u8], start: usize, header_size: usize) {
    let record = &mut out[start..];
    let length =
        u16::try_from(record.len() - header_size).expect("a fragment is shorter than a block");
    let crc = checksum::mask(checksum::crc32c(&record[TYPE_OFFSET..]));
    record[..CRC_SIZE].copy_from_slice(&crc.to_le_bytes());
    record[CRC_SIZE..TYPE_OFFSET].copy_from_slice(&length.to_le_bytes());
}

/// Fills the header of the physical record that has this payload. `tail` is the checksum of the
/// payload's end ([`tail_of`]), if that is known.
#[inline]
pub(super) fn fill_header(
    header: &mut [u8],
    record_type: u8,
    recycled_as: Option<u32>,
    payload: &[u8],
    tail: Option<Suffix>,
) {
    header[TYPE_OFFSET] = record_type;
    if let Some(number) = recycled_as {
        header[TYPE_OFFSET] += RECYCLABLE;
        header[TYPE_OFFSET + 1..].copy_from_slice(&number.to_le_bytes());
    }
    let beginning = checksum::crc32c(&header[TYPE_OFFSET..]);
    let crc = match tail {
        Some(tail) => tail.behind(checksum::crc32c_append(beginning, &payload[..TAIL_OFFSET])),
        None => checksum::crc32c_append(beginning, payload),
    };
    debug_assert_eq!(
        crc,
        checksum::crc32c_append(beginning, payload),
        "the tail is of the payload"
    );
    let length = u16::try_from(payload.len()).expect("a fragment is shorter than a block");
    header[..CRC_SIZE].copy_from_slice(&checksum::mask(crc).to_le_bytes());
    header[CRC_SIZE..TYPE_OFFSET].copy_from_slice(&length.to_le_bytes());
}

/// The checksum of a payload's bytes behind its sequence number; `None` if it is too long for one
/// physical record. For [`Writer::add_summed_record`](super::Writer::add_summed_record).
pub fn tail_of(payload: &[u8]) -> Option<Suffix> {
    let tail = payload.get(TAIL_OFFSET..)?;
    (payload.len() < BLOCK_SIZE).then(|| Suffix::of(tail))
}

/// What a WAL says of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredecessorWal {
    /// Its number.
    pub number: u64,
    /// Its size in bytes.
    pub size: u64,
    /// In RocksDB's record the sequence number in the header of its last batch; 0 if it has none.
    /// In the engine's own note the last one that was given out when it ended, to an operation of
    /// that batch or to a write without a WAL: `size` says there how far it goes.
    pub last_sequence: u64,
}

/// What begins a note of the WAL before, as the log data of an empty batch: the form that every
/// version of RocksDB reads past. Its own record type for this is unknown before 9.11, and an error
/// there.
const NOTE: &[u8] = b"flagstone: the WAL before this one: ";

impl PredecessorWal {
    /// The log data of an empty batch at the beginning of a WAL that says this of the one before.
    pub fn to_note(self) -> Vec<u8> {
        let mut note = NOTE.to_vec();
        for field in [self.number, self.size, self.last_sequence] {
            note.extend_from_slice(&field.to_le_bytes());
        }
        note
    }

    /// Reads such log data; `None` if it is something else.
    pub fn from_note(log_data: &[u8]) -> Option<Self> {
        Self::parse(log_data.strip_prefix(NOTE)?)
    }

    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(payload);
        let parsed = Self {
            number: decoder.fixed64()?,
            size: decoder.fixed64()?,
            last_sequence: decoder.fixed64()?,
        };
        decoder.is_empty().then_some(parsed)
    }
}

/// The families whose keys end in user timestamps, and their sizes in bytes, in the order in which
/// a log tells of them.
#[derive(Debug, Default)]
pub struct TimestampSizes {
    all: Vec<(ColumnFamilyId, u16)>,
    known: HashMap<ColumnFamilyId, u16>,
}

impl TimestampSizes {
    /// Adds those of `payload`; `false` if it is malformed or repeats a family.
    pub(super) fn add(&mut self, payload: &[u8]) -> bool {
        let mut decoder = Decoder::new(payload);
        while !decoder.is_empty() {
            let (Some(cf), Some(size)) = (decoder.fixed32().map(ColumnFamilyId), decoder.fixed16())
            else {
                return false;
            };
            if self.known.contains_key(&cf) {
                return false;
            }
            self.known.insert(cf, size);
            self.all.push((cf, size));
        }
        true
    }

    /// The size of a family's timestamps; 0 if its keys have none.
    pub(super) fn of(&self, family: ColumnFamilyId) -> u16 {
        self.known.get(&family).copied().unwrap_or(0)
    }

    /// Those read so far. There are only ever more.
    pub fn as_slice(&self) -> &[(ColumnFamilyId, u16)] {
        &self.all
    }
}
