//! The bytes of a write batch, shared by its writer ([`super::WriteBatch`]) and its reader
//! ([`super::BatchView`]).
//!
//! ```text
//! batch      = fixed64 sequence, fixed32 count, operation*
//! operation  = tag byte, [varint32 column family], fields      (the family stands only behind the longer tags)
//!
//! 00 / 04  Delete         key                    0f / 0e  DeleteRange   begin key, end key
//! 01 / 05  Put            key, value             11 / 10  BlobIndex     key, blob index
//! 02 / 06  Merge          key, operand           16 / 17  PutEntity     key, entity
//! 07 / 08  SingleDelete   key                    18 / 19  TimedPut      key, value followed by fixed64 write time
//! ```
//!
//! Those are counted, and each takes one sequence number. Not counted:
//!
//! ```text
//! 03  LogData   bytes              0a  EndPrepare   xid          09  BeginPrepare (write-committed)
//! 0d  Noop                         0b  Commit       xid          12  BeginPersistedPrepare (write-prepared)
//! 15  CommitWithTimestamp          0c  Rollback     xid          13  BeginUnprepare (write-unprepared)
//!     commit timestamp, xid
//! ```
//!
//! Keys, values, blobs and xids are length-prefixed slices. `count` is the number of counted
//! operations.

/// Where the count stands.
pub(super) const COUNT_OFFSET: usize = 8;
/// The bytes before the first operation.
pub const HEADER_SIZE: usize = COUNT_OFFSET + 4;
/// The most bytes that a key and its value have together, or the bounds of a range deletion: a
/// table's block has room for them, and it must be smaller than 4 GiB.
pub const MAX_ENTRY_SIZE: usize = u32::MAX as usize - (1 << 20);
/// The most bytes of log data, which go to no table.
pub(super) const MAX_LOG_DATA_SIZE: usize = u32::MAX as usize;

/// The two tags of a counted operation.
#[derive(Clone, Copy)]
pub(super) struct Tags {
    /// For the default family.
    pub short: u8,
    /// With a family number behind it.
    pub with_family: u8,
}

pub(super) const DELETE: Tags = Tags { short: 0x00, with_family: 0x04 };
pub(super) const PUT: Tags = Tags { short: 0x01, with_family: 0x05 };
pub(super) const MERGE: Tags = Tags { short: 0x02, with_family: 0x06 };
pub(super) const SINGLE_DELETE: Tags = Tags { short: 0x07, with_family: 0x08 };
pub(super) const DELETE_RANGE: Tags = Tags { short: 0x0f, with_family: 0x0e };
pub(super) const BLOB_INDEX: Tags = Tags { short: 0x11, with_family: 0x10 };
pub(super) const PUT_ENTITY: Tags = Tags { short: 0x16, with_family: 0x17 };
pub(super) const TIMED_PUT: Tags = Tags { short: 0x18, with_family: 0x19 };

pub(super) const LOG_DATA: u8 = 0x03;
pub(super) const BEGIN_PREPARE: u8 = 0x09;
pub(super) const END_PREPARE: u8 = 0x0a;
pub(super) const COMMIT: u8 = 0x0b;
pub(super) const ROLLBACK: u8 = 0x0c;
pub(super) const NOOP: u8 = 0x0d;
pub(super) const BEGIN_PERSISTED_PREPARE: u8 = 0x12;
pub(super) const BEGIN_UNPREPARE: u8 = 0x13;
pub(super) const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
