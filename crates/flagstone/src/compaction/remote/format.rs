//! The frame of the messages, and how their fields are read. Every byte is taken for hostile.
//!
//! ```text
//! message   magic (8 bytes), fixed32 version, body, fixed32 masked CRC32C of all before
//! order     body of "flagordr", result   body of "flagdone"; both of version 1
//!
//! body of an order
//!   token (16 bytes), database id lps, family varint32, family name lps
//!   MANIFEST number varint64, bytes of it varint64      what the worker must see at least
//!   first number varint64, count varint64               of the files that the worker makes
//!   options lps                                         the text of an OPTIONS file
//!   plan
//!   snapshots: count varint64, ascending, each as varint64 of the difference to the one before
//!   flushed until varint64
//!   is manual flag, blob collection option(flag), age cutoff option(fixed64 bits of a double)
//!   subcompactions option(varint32)
//! plan
//!   reason byte, levels: count varint32, each: level varint32, files: count varint32,
//!     each: number varint64, size varint64
//!   output level varint32, path varint32, is bottommost flag
//!   emptied blob files: numbers, tables below: numbers
//!   target, max, max with tables below: varint64 each
//!   compression byte, is bottommost flag, temperature byte
//! body of a result
//!   token (16 bytes), directory lps
//!   tables, blob files and garbage lps                  a version edit, as in a MANIFEST
//!   files: count varint32, each: number varint64, size varint64, XXH3-64 of its bytes fixed64
//!   is filtered flag, key faults: count varint32, each: key lps, words lps
//!   raw bytes, blob bytes, relocated blobs, relocated bytes, entries read, key faults,
//!     subcompactions, microseconds: varint64 each
//!
//! flag      byte 0 or 1;  option(x)   flag, then x if it is 1;  numbers   count varint32, varint64 each
//! ```

use crate::base::checksum::{crc32c, mask};
use crate::base::coding::{Decoder, fixed32_at, put_fixed32, put_varint32, put_varint64};
use crate::base::{Error, FileNumber, Result};

/// The form of both messages.
const VERSION: u32 = 1;

const MAGIC_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 4;

/// The random number that ties a result to its order.
pub type Token = [u8; 16];

/// Begins a message.
pub(super) fn begin(magic: &[u8; MAGIC_BYTES]) -> Vec<u8> {
    let mut out = magic.to_vec();
    put_fixed32(&mut out, VERSION);
    out
}

/// Ends a message.
pub(super) fn end(mut out: Vec<u8>) -> Vec<u8> {
    let sum = mask(crc32c(&out));
    put_fixed32(&mut out, sum);
    out
}

pub(super) fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.push(u8::from(flag));
}

pub(super) fn put_numbers<'a>(
    out: &mut Vec<u8>,
    numbers: impl ExactSizeIterator<Item = &'a FileNumber>,
) {
    put_varint32(out, numbers.len() as u32);
    numbers.for_each(|number| put_varint64(out, number.0));
}

/// The fields of a message.
pub(super) struct Fields<'a> {
    what: &'static str,
    rest: Decoder<'a>,
}

impl<'a> Fields<'a> {
    /// Checks the frame of a message.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for another version.
    pub(super) fn of(
        what: &'static str,
        magic: &[u8; MAGIC_BYTES],
        message: &'a [u8],
    ) -> Result<Self> {
        let fault = |why: &str| Error::corruption(format!("{what}: {why}"));
        let body = message.len().checked_sub(CHECKSUM_BYTES).filter(|end| *end >= MAGIC_BYTES + 4);
        let Some(end) = body else { return Err(fault("it is too short")) };
        if message[..MAGIC_BYTES] != magic[..] {
            return Err(fault("it does not begin as one"));
        }
        if fixed32_at(message, end) != Some(mask(crc32c(&message[..end]))) {
            return Err(fault("its checksum does not match"));
        }
        match fixed32_at(message, MAGIC_BYTES) {
            Some(VERSION) => Ok(Self { what, rest: Decoder::new(&message[MAGIC_BYTES + 4..end]) }),
            other => Err(Error::not_supported(format!(
                "{what} of version {}; this release has version {VERSION}: use the same release for the database and its \
                 workers",
                other.unwrap_or_default()
            ))),
        }
    }

    /// # Errors
    /// `Corruption` if anything is left.
    pub(super) fn end(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.fault("bytes at the end")) }
    }

    pub(super) fn fault(&self, field: &str) -> Error {
        Error::corruption(format!("{}: malformed {field}", self.what))
    }

    pub(super) fn v64(&mut self, field: &str) -> Result<u64> {
        self.rest.varint64().ok_or_else(|| self.fault(field))
    }

    pub(super) fn v32(&mut self, field: &str) -> Result<u32> {
        self.rest.varint32().ok_or_else(|| self.fault(field))
    }

    pub(super) fn fixed64(&mut self, field: &str) -> Result<u64> {
        self.rest.fixed64().ok_or_else(|| self.fault(field))
    }

    pub(super) fn byte(&mut self, field: &str) -> Result<u8> {
        self.rest.u8().ok_or_else(|| self.fault(field))
    }

    pub(super) fn flag(&mut self, field: &str) -> Result<bool> {
        match self.byte(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.fault(field)),
        }
    }

    pub(super) fn lps(&mut self, field: &str) -> Result<&'a [u8]> {
        self.rest.lps().ok_or_else(|| self.fault(field))
    }

    pub(super) fn text(&mut self, field: &str) -> Result<String> {
        let bytes = self.lps(field)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.fault(field))
    }

    pub(super) fn token(&mut self) -> Result<Token> {
        let bytes = self.rest.bytes(size_of::<Token>());
        bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| self.fault("token"))
    }

    pub(super) fn number(&mut self, field: &str) -> Result<FileNumber> {
        self.v64(field).map(FileNumber)
    }

    /// A list, of whose elements each takes at least a byte: a count that cannot be right costs no
    /// memory.
    pub(super) fn list<T>(
        &mut self,
        field: &str,
        mut element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.v32(field)? as usize;
        if count > self.rest.rest().len() {
            return Err(self.fault(field));
        }
        (0..count).map(|_| element(self)).collect()
    }

    pub(super) fn numbers(&mut self, field: &str) -> Result<Vec<FileNumber>> {
        self.list(field, |fields| fields.number(field))
    }

    pub(super) fn option<T>(
        &mut self,
        field: &str,
        value: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.flag(field)? { value(self).map(Some) } else { Ok(None) }
    }
}
