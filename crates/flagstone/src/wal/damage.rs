//! What a reader finds where a record should be.

use crate::base::Error;
use crate::env::RandomAccessFile;

/// A place in a log where there is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What is there.
    pub kind: DamageKind,
    /// Where in the file.
    pub offset: u64,
    /// How many bytes were dropped for it, those of a fragmented record before it included.
    pub dropped: u64,
}

/// What is in the place of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends inside a header.
    TruncatedHeader,
    /// The file ends inside a payload.
    TruncatedBody,
    /// The file ends after a part of a fragmented record.
    TruncatedRecord,
    /// The checksum does not match; the rest of the block is dropped.
    Checksum,
    /// The checksum matches only with the log's own number in the header, where another one stands:
    /// nobody writes that.
    Number,
    /// The record would cross its block's end; the rest of the block is dropped.
    Length,
    /// A new record begins where another should go on.
    PartialRecord,
    /// A record goes on that has not begun.
    MissingStart,
    /// Zeros inside a fragmented record, in a file without recyclable headers.
    MiddleOfRecord,
    /// A type that this version does not know and may not skip.
    UnknownType(u8),
    /// A recyclable header after others; nothing more is read from the file.
    MixedHeaders,
    /// A special record that is malformed or in the wrong place.
    BadSpecialRecord(&'static str),
    /// A compressed record that does not decompress.
    Decompression,
    /// An intact record of the file's life under another number: nothing was written here since.
    OldRecord {
        /// Whether a fragmented record should have gone on here.
        in_fragment: bool,
    },
    /// Zeros in a file with recyclable headers, or between the records of another: nothing was
    /// written here, or it was lost.
    Zeros {
        /// Whether a fragmented record should have gone on here.
        in_fragment: bool,
    },
}

impl Damage {
    /// It as an error in `file`.
    pub fn to_error(&self, file: &dyn RandomAccessFile) -> Error {
        let what = match &self.kind {
            DamageKind::TruncatedHeader => "truncated header of a log record",
            DamageKind::TruncatedBody => "truncated record body",
            DamageKind::TruncatedRecord => {
                "error reading trailing data: the log ends inside a fragmented record"
            }
            DamageKind::Checksum => "checksum mismatch of a log record",
            DamageKind::Number => "damaged number in the header of a log record",
            DamageKind::Length => "bad record length",
            DamageKind::PartialRecord => "partial record without end",
            DamageKind::MissingStart => "missing start of fragmented record",
            DamageKind::MiddleOfRecord => "error in middle of record",
            DamageKind::UnknownType(unknown) => {
                return self.error(&format!("unknown record type {unknown}"), file);
            }
            DamageKind::MixedHeaders => "recyclable record header after others",
            DamageKind::BadSpecialRecord(why) => why,
            DamageKind::Decompression => "a compressed log record does not decompress",
            DamageKind::OldRecord { in_fragment: true } => {
                "an older log's record inside a fragmented record"
            }
            DamageKind::OldRecord { in_fragment: false } => "the log ends at an older log's record",
            DamageKind::Zeros { in_fragment: true } => "zeros inside a fragmented record",
            DamageKind::Zeros { in_fragment: false } => "the log ends at zeros",
        };
        self.error(what, file)
    }

    fn error(&self, what: &str, file: &dyn RandomAccessFile) -> Error {
        let message = format!("{what} ({} bytes dropped)", self.dropped);
        Error::corruption(message).at(file.path()).at_offset(self.offset)
    }
}
