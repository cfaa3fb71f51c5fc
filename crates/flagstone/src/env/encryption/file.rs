//! A file whose contents are decrypted when they are read, and encrypted when they are written.
//!
//! **Invariants.**
//! - A file of at least [`PREFIX_SIZE`] bytes has a prefix that is never written again. A shorter
//!   one has no contents: it is being created, or a crash has cut its prefix off.
//! - A file that is read while it is created gets its keystream with the first read that finds the
//!   prefix.
//! - A whole [`UNIT`] of zeros on the disk was never written, or is a hole, and reads as zeros, as
//!   it does without encryption: the readers of logs tell by zeros what a crash has torn. (That
//!   bytes are encrypted to so many zeros has a chance of 1 in 2^128.) The last bytes of a file are
//!   none.
//! - Limit: a crash after which a file's length outlives its bytes may take the first bytes of a
//!   unit along with the lost rest, if these were encrypted to zeros (one chance in 4,000).

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::BlockCipher;
use super::format::{self, PREFIX_SIZE, Prefix};
use super::keystream::Keystream;
use crate::base::checksum::crc32c;
use crate::base::file_name::FileKind;
use crate::base::perf::{self, PerfMetric};
use crate::base::{Error, Result, SubCode};
use crate::env::{Advice, AlignedBuffer, AnyFile, FileAround, Metadata, read_until_end};

/// Bytes that are lost or kept together: sectors and blocks of all disks are multiples of it.
const UNIT: u64 = 16;

/// How every CURRENT begins.
const CURRENT_BEGINS: &[u8] = b"MANIFEST-";

const SHIFT: u64 = PREFIX_SIZE as u64;
const _: () = assert!(SHIFT.is_multiple_of(UNIT));

/// The keystream of an existing file; `None` while it has no contents.
///
/// # Errors
/// `InvalidArgument` with subcode `WrongKey` if the file has another key; `Corruption` if it is not
/// an encrypted one; `IoError`.
pub(super) fn load(file: &AnyFile, cipher: &Arc<dyn BlockCipher>) -> Result<Option<Keystream>> {
    let mut prefix = [0; PREFIX_SIZE];
    let read = read_all(file, 0, &mut prefix)?;
    if read == 0 {
        return Ok(None);
    }
    if read < PREFIX_SIZE {
        if format::is_torn(&prefix[..read]) {
            return Ok(None);
        }
        let message = format!(
            "file has {read} bytes, too few for the prefix of an encrypted one: it is not encrypted"
        );
        return Err(Error::corruption(message).at(file.path()));
    }
    match format::parse(&prefix, cipher) {
        Prefix::Fits(keystream) => Ok(Some(keystream)),
        Prefix::OtherKey => Err(wrong_key("it was encrypted with another key", file.path())),
        Prefix::Unmarked(keystream) => {
            check_current(file, &keystream)?;
            Ok(Some(keystream))
        }
    }
}

/// Whether nothing is lost with what is in a file that has no contents, as [`load`] says.
///
/// # Errors
/// `Corruption` if it may be a file that is not encrypted; `IoError`.
pub(super) fn check_as_good_as_empty(file: &AnyFile) -> Result<()> {
    let mut prefix = [0; PREFIX_SIZE];
    let read = read_all(file, 0, &mut prefix)?;
    if format::is_certainly_torn(&prefix[..read]) {
        return Ok(());
    }
    let message = format!(
        "file has {read} bytes, too few for the prefix of an encrypted one, and no mark of one: it \
         is not written over"
    );
    Err(Error::corruption(message).at(file.path()))
}

/// Of RocksDB's files, CURRENT is read first, and tells a wrong key.
fn check_current(file: &AnyFile, keystream: &Keystream) -> Result<()> {
    let name = file.path().file_name().and_then(|name| name.to_str());
    if name.and_then(FileKind::parse) != Some(FileKind::Current) {
        return Ok(());
    }
    let mut begin = [0; CURRENT_BEGINS.len()];
    let read = read_all(file, SHIFT, &mut begin)?;
    keystream.apply(SHIFT, &mut begin[..read]);
    if read < begin.len() || begin == CURRENT_BEGINS {
        return Ok(());
    }
    Err(wrong_key("it is not encrypted, or with another key", file.path()))
}

fn wrong_key(what: &str, path: &Path) -> Error {
    let message = format!("the key does not fit this file: {what}");
    Error::invalid_argument(message).with_subcode(SubCode::WrongKey).at(path)
}

fn read_all(file: &AnyFile, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    read_until_end(&*file.clone().into_random_access(), offset, buffer)
}

/// Writes bytes from memory that the file's mode admits.
///
/// # Errors
/// As `WritableFile::write_at`.
pub(super) fn write_copied(file: &AnyFile, offset: u64, bytes: &[u8]) -> Result<()> {
    if !file.is_direct() {
        return file.write_at(offset, bytes);
    }
    file.write_at(offset, aligned(bytes).as_slice())
}

fn aligned(bytes: &[u8]) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::with_capacity(bytes.len());
    let rest = buffer.fill_from(bytes);
    assert!(rest.is_empty(), "the buffer was made for these bytes");
    buffer
}

/// What is known of the contents of a file of which this is known.
pub(super) fn without_prefix(found: Metadata) -> Metadata {
    Metadata { size: found.size.saturating_sub(SHIFT), ..found }
}

pub(super) struct EncryptedFile {
    file: AnyFile,
    cipher: Arc<dyn BlockCipher>,
    keystream: OnceLock<Keystream>,
}

impl EncryptedFile {
    /// `file`, whose keystream is known or not yet.
    pub fn new(file: AnyFile, cipher: Arc<dyn BlockCipher>, keystream: Option<Keystream>) -> Self {
        let known = OnceLock::new();
        keystream.into_iter().for_each(|keystream| drop(known.set(keystream)));
        Self { file, cipher, keystream: known }
    }

    fn keystream(&self) -> Result<Option<&Keystream>> {
        if let Some(known) = self.keystream.get() {
            return Ok(Some(known));
        }
        let Some(loaded) = load(&self.file, &self.cipher)? else { return Ok(None) };
        Ok(Some(self.keystream.get_or_init(|| loaded)))
    }

    /// Encrypts a copy of `data`, which `write` writes.
    fn write(
        &self,
        offset: u64,
        data: &[u8],
        write: impl FnOnce(&AnyFile, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(keystream) = self.keystream()? else {
            let refusal = Error::not_supported("the file was not opened for writing");
            return Err(refusal.at(self.file.path()));
        };
        if self.file.is_direct() {
            let mut buffer = aligned(data);
            encrypt(keystream, SHIFT + offset, buffer.as_mut_slice());
            return write(&self.file, SHIFT + offset, buffer.as_slice());
        }
        let mut copy = data.to_vec();
        encrypt(keystream, SHIFT + offset, &mut copy);
        write(&self.file, SHIFT + offset, &copy)
    }

    /// Decrypts what was read at `offset` of the file on the disk.
    fn decrypt(&self, keystream: &Keystream, offset: u64, data: &mut [u8]) -> Result<()> {
        let (mut begin, mut at) = (0, 0);
        while at < data.len() {
            let place = offset + at as u64;
            let unit = place - place % UNIT;
            let end = data.len().min(at + (unit + UNIT - place) as usize);
            let is_whole = end - at == UNIT as usize;
            let are_zeros = data[at..end].iter().all(|byte| *byte == 0);
            if are_zeros && (is_whole || self.is_hole(unit)?) {
                keystream.apply(offset + begin as u64, &mut data[begin..at]);
                begin = end;
            }
            at = end;
        }
        keystream.apply(offset + begin as u64, &mut data[begin..]);
        Ok(())
    }

    /// Whether a unit, of which some bytes are zeros, has no others.
    fn is_hole(&self, unit: u64) -> Result<bool> {
        let mut whole = [0; UNIT as usize];
        let read = read_all(&self.file, unit, &mut whole)?;
        Ok(read == whole.len() && whole.iter().all(|byte| *byte == 0))
    }
}

fn encrypt(keystream: &Keystream, offset: u64, data: &mut [u8]) {
    let _time = perf::time(PerfMetric::EncryptDataNanos);
    keystream.apply(offset, data);
}

impl FileAround for EncryptedFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let Some(keystream) = self.keystream()? else { return Ok(0) };
        let read = self.file.read_at(SHIFT + offset, buffer)?;
        let _time = perf::time(PerfMetric::DecryptDataNanos);
        self.decrypt(keystream, SHIFT + offset, &mut buffer[..read])?;
        Ok(read)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data, AnyFile::write_at)
    }

    fn write_handed(&self, offset: u64, data: &[u8], sum: u32) -> Result<()> {
        if crc32c(data) != sum {
            let message =
                "bytes that are to be written do not match the checksum handed over with them";
            return Err(Error::corruption(message).at(self.file.path()).at_offset(offset));
        }
        self.write(offset, data, |file, offset, data| file.write_handed(offset, data, crc32c(data)))
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        self.file.range_sync(SHIFT + range.start..SHIFT + range.end, strict)
    }

    /// With `keep_size` off, what the file grows by does not read as zeros. Only the reserve asks
    /// for it, which is never read: the engine maps no encrypted log.
    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.file.allocate(SHIFT + length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.file.truncate(SHIFT + length)
    }

    /// Whole units only, so that they read as zeros.
    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let start = range.start.next_multiple_of(UNIT);
        let end = range.end - range.end % UNIT;
        if start >= end {
            return Ok(true);
        }
        self.file.punch_hole(SHIFT + start..SHIFT + end)
    }

    /// Parts of a unit that were never written are decrypted like any other bytes.
    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        let mut stored = vec![0; bytes.len()];
        let read = read_all(&self.file, SHIFT + offset, &mut stored)?;
        Ok(read == stored.len() && stored.iter().all(|byte| *byte == 0))
    }

    fn size(&self) -> Result<u64> {
        Ok(self.file.size()?.saturating_sub(SHIFT))
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map(without_prefix)
    }

    fn advise(&self, advice: Advice) {
        self.file.advise(match advice {
            Advice::WillNeed { offset, length } => {
                Advice::WillNeed { offset: SHIFT + offset, length }
            }
            other => other,
        });
    }
}
