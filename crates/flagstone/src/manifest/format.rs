//! The bytes of a version edit, shared by its writer and its reader.
//!
//! ```text
//! edit        = field*, in any order; each field a varint32 tag and a payload
//! v32, v64    = varint32, varint64;  key = length-prefixed internal key;  lps = length-prefixed bytes
//!
//!    1 Comparator            lps name                        102 NewFile3   v32 level, v64 number, v32 path id, v64 size,
//!    2 LogNumber             v64                                            key smallest, key largest, v64 v64 seqnos
//!    3 NextFileNumber        v64                             103 NewFile4   v32 level, v64 number, v64 size,
//!    4 LastSequence          v64                                            key smallest, key largest, v64 v64 seqnos,
//!    5 CompactCursor         v32 level, key                                 custom fields up to tag 1
//!    6 DeletedFile           v32 level, v64 number           200 ColumnFamily      v32 id the edit is about (absent: 0)
//!    7 NewFile               v32 level, v64 number,          201 ColumnFamilyAdd   lps name
//!                            v64 size, key, key              202 ColumnFamilyDrop
//!    9 PrevLogNumber         v64                             203 MaxColumnFamily   v32
//!   10 MinLogNumberToKeep    v64                             300 InAtomicGroup     v32 edits that follow
//!  100 NewFile2              as 7, then v64 v64 seqnos
//!  400 BlobFileAddition      v64 number, v64 count, v64 bytes, lps method, lps checksum, custom fields up to tag 0
//!  401 BlobFileGarbage       v64 number, v64 count, v64 bytes, custom fields up to tag 0
//! 8193 DbId                  lps                             8199 WalAddition2     lps of a WAL addition
//! 8194, 8195 (dead)          lps                             8200 WalDeletion2     lps of v64
//! 8196 WalAddition           WAL addition                    8201 PersistUserTimestamps  lps of one byte
//! 8197 WalDeletion           v64
//! 8198 FullHistoryTsLow      lps                             others with bit 8192: lps, skipped
//!
//! custom field = v32 tag, lps value (the last tag has none); an unknown tag with bit 64 must not be skipped
//! Flagstone's custom field 48 of a new file: v64 entries that refer to no blob, then for each blob file that the others do,
//!                ascending: v64 number minus the one before, v64 bytes of the records
//! WAL addition = v64 number, (v32 2, v64 synced size)?, v32 1
//! ```
//!
//! Writers use NewFile4 only, and track no WALs.

/// A field of an edit.
pub(super) mod tag {
    pub const COMPARATOR: u32 = 1;
    pub const LOG_NUMBER: u32 = 2;
    pub const NEXT_FILE_NUMBER: u32 = 3;
    pub const LAST_SEQUENCE: u32 = 4;
    pub const COMPACT_CURSOR: u32 = 5;
    pub const DELETED_FILE: u32 = 6;
    pub const NEW_FILE: u32 = 7;
    pub const PREV_LOG_NUMBER: u32 = 9;
    pub const MIN_LOG_NUMBER_TO_KEEP: u32 = 10;
    pub const NEW_FILE_2: u32 = 100;
    pub const NEW_FILE_3: u32 = 102;
    pub const NEW_FILE_4: u32 = 103;
    pub const COLUMN_FAMILY: u32 = 200;
    pub const COLUMN_FAMILY_ADD: u32 = 201;
    pub const COLUMN_FAMILY_DROP: u32 = 202;
    pub const MAX_COLUMN_FAMILY: u32 = 203;
    pub const IN_ATOMIC_GROUP: u32 = 300;
    pub const BLOB_FILE_ADDITION: u32 = 400;
    pub const BLOB_FILE_GARBAGE: u32 = 401;
    pub const DB_ID: u32 = 8193;
    pub const WAL_ADDITION: u32 = 8196;
    pub const WAL_DELETION: u32 = 8197;
    pub const FULL_HISTORY_TS_LOW: u32 = 8198;
    pub const WAL_ADDITION_2: u32 = 8199;
    pub const WAL_DELETION_2: u32 = 8200;
    pub const PERSIST_USER_TIMESTAMPS: u32 = 8201;

    /// Unknown tags with this bit are skipped; others are corruption.
    pub const IGNORABLE: u32 = 1 << 13;
}

/// A custom field of NewFile4.
pub(super) mod file_tag {
    pub const TERMINATE: u32 = 1;
    pub const NEED_COMPACTION: u32 = 2;
    pub const MIN_LOG_NUMBER_TO_KEEP: u32 = 3;
    pub const OLDEST_BLOB_FILE: u32 = 4;
    pub const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub const FILE_CREATION_TIME: u32 = 6;
    pub const FILE_CHECKSUM: u32 = 7;
    pub const FILE_CHECKSUM_FUNCTION: u32 = 8;
    pub const TEMPERATURE: u32 = 9;
    pub const MIN_TIMESTAMP: u32 = 10;
    pub const MAX_TIMESTAMP: u32 = 11;
    pub const UNIQUE_ID: u32 = 12;
    pub const EPOCH_NUMBER: u32 = 13;
    pub const COMPENSATED_RANGE_DELETION_SIZE: u32 = 14;
    pub const TAIL_SIZE: u32 = 15;
    pub const USER_TIMESTAMPS_PERSISTED: u32 = 16;
    /// Flagstone's own; RocksDB passes over it.
    pub const BLOB_REFERENCES: u32 = 48;
    /// Likewise.
    pub const ENTRY_STATS: u32 = 49;
    pub const PATH_ID: u32 = 65;
}

/// Unknown custom tags with this bit fail the decode; others are skipped.
pub(super) const CUSTOM_MUST_UNDERSTAND: u32 = 1 << 6;

/// Ends the custom fields of a blob file's addition and garbage.
pub(super) const BLOB_TERMINATE: u32 = 0;

/// Ends a WAL addition.
pub(super) const WAL_TERMINATE: u32 = 1;

/// The synced size within a WAL addition.
pub(super) const WAL_SYNCED_SIZE: u32 = 2;

/// The largest number that a file can have.
pub(super) const MAX_FILE_NUMBER: u64 = (1 << 62) - 1;

/// The largest index of a directory that a table can lie in.
pub(super) const MAX_PATH_ID: u32 = 3;

/// A bound for the level in an edit, far above any real tree, so that no table of levels is sized
/// by hostile input.
pub(super) const MAX_LEVEL: u32 = 1 << 10;
