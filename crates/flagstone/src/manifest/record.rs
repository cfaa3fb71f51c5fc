//! The framing of edits in a MANIFEST: the one place of this module that knows the log format.
//!
//! ```text
//! file     = block*                       32768 bytes each, the last may be short
//! block    = fragment*, zeros             zeros where fewer than 7 bytes are left
//! fragment = fixed32 masked CRC32C of type and payload, fixed16 payload length, u8 type, payload
//! type     = 1 whole record, 2 first, 3 middle, 4 last fragment of one; 0 zeros up to the block's end
//! ```
//!
//! A MANIFEST is read strictly: only a record cut off by the end of the file is taken for a crash and ignored.

use std::path::Path;
use std::sync::Arc;

use crate::base::checksum::{crc32c, mask};
use crate::base::coding::{fixed32_at, put_fixed16, put_fixed32};
use crate::base::{Error, Result};
use crate::env::{File, FileSystem, OpenMode};

const BLOCK_SIZE: usize = 32768;
const HEADER_SIZE: usize = 7;

const ZERO: u8 = 0;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Appends records to a new MANIFEST.
pub(super) struct Writer {
    file: Arc<dyn File>,
    size: u64,
    pending: Vec<u8>,
}

impl Writer {
    /// Starts at the front of `file`.
    pub fn new(file: Arc<dyn File>) -> Self {
        Self { file, size: 0, pending: Vec::new() }
    }

    /// Adds a record, to be written by the next [`Writer::sync`].
    pub fn add(&mut self, mut record: &[u8]) {
        let mut kinds = (FULL, FIRST);
        loop {
            let mut left = BLOCK_SIZE - (self.size() % BLOCK_SIZE as u64) as usize;
            if left < HEADER_SIZE {
                self.pending.resize(self.pending.len() + left, 0);
                left = BLOCK_SIZE;
            }
            let (fragment, rest) = record.split_at(record.len().min(left - HEADER_SIZE));
            let (if_last, if_more) = kinds;
            put_fragment(&mut self.pending, if rest.is_empty() { if_last } else { if_more }, fragment);
            if rest.is_empty() {
                return;
            }
            (record, kinds) = (rest, (LAST, MIDDLE));
        }
    }

    /// Writes what was added and makes it durable.
    ///
    /// After an error the file must not be used again.
    pub fn sync(&mut self) -> Result<()> {
        self.file.write_at(self.size, &self.pending)?;
        self.size += self.pending.len() as u64;
        self.pending.clear();
        self.file.sync()
    }

    /// The file's size in bytes, once synced.
    pub fn size(&self) -> u64 {
        self.size + self.pending.len() as u64
    }
}

fn put_fragment(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let start = out.len();
    put_fixed32(out, 0);
    put_fixed16(out, payload.len() as u16);
    out.push(kind);
    out.extend_from_slice(payload);
    let crc = mask(crc32c(&out[start + 6..]));
    out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Reads the records of a MANIFEST from front to back.
pub(super) struct Reader {
    file: Arc<dyn File>,
    block: Vec<u8>,
    /// The file offset of the block.
    block_start: u64,
    /// The offset in the block of what comes next.
    at: usize,
    record: Vec<u8>,
}

/// A fragment, or why there is none.
enum Fragment {
    Some { kind: u8, start: usize, end: usize },
    EndOfFile,
}

impl Reader {
    /// Opens the MANIFEST at `path`.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        let file = fs.open(path, OpenMode::Read)?;
        let mut reader = Self { file, block: Vec::new(), block_start: 0, at: 0, record: Vec::new() };
        reader.load(0)?;
        Ok(reader)
    }

    /// The next record and the offset at which it starts; `None` at the end, also if that cuts a record off.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.record.clear();
        let mut record_start = None;
        loop {
            let Fragment::Some { kind, start, end } = self.next_fragment(record_start.is_some())? else {
                return Ok(None);
            };
            let offset = self.block_start + (start - HEADER_SIZE) as u64;
            match (kind, record_start) {
                (FULL, None) => {
                    self.record.extend_from_slice(&self.block[start..end]);
                    return Ok(Some((offset, &self.record)));
                }
                (FIRST, None) => record_start = Some(offset),
                (MIDDLE | LAST, Some(_)) => {}
                (FULL | FIRST, Some(_)) => return Err(self.corrupt("a record without an end", offset)),
                (MIDDLE | LAST, None) => return Err(self.corrupt("a record without a start", offset)),
                (kind, _) => return Err(self.corrupt(&format!("unknown record type {kind}"), offset)),
            }
            self.record.extend_from_slice(&self.block[start..end]);
            if let (LAST, Some(record_start)) = (kind, record_start) {
                return Ok(Some((record_start, &self.record)));
            }
        }
    }

    fn next_fragment(&mut self, within_record: bool) -> Result<Fragment> {
        loop {
            let is_last_block = self.block.len() < BLOCK_SIZE;
            let rest = &self.block[self.at..];
            if rest.len() < HEADER_SIZE {
                if is_last_block {
                    return Ok(Fragment::EndOfFile);
                }
                self.load(self.block_start + BLOCK_SIZE as u64)?;
                continue;
            }
            let offset = self.block_start + self.at as u64;
            let (length, kind) = (usize::from(u16::from_le_bytes([rest[4], rest[5]])), rest[6]);
            if kind == ZERO && length == 0 {
                if within_record {
                    return Err(self.corrupt("zeros in the middle of a record", offset));
                }
                self.at = self.block.len();
                continue;
            }
            let Some(covered) = rest.get(6..HEADER_SIZE + length) else {
                return match is_last_block {
                    true => Ok(Fragment::EndOfFile),
                    false => Err(self.corrupt("a record longer than its block", offset)),
                };
            };
            if fixed32_at(rest, 0) != Some(mask(crc32c(covered))) {
                return Err(self.corrupt("record checksum mismatch", offset));
            }
            let start = self.at + HEADER_SIZE;
            self.at = start + length;
            return Ok(Fragment::Some { kind, start, end: self.at });
        }
    }

    fn load(&mut self, offset: u64) -> Result<()> {
        self.block.resize(BLOCK_SIZE, 0);
        let read = self.file.read_at(offset, &mut self.block)?;
        self.block.truncate(read);
        (self.block_start, self.at) = (offset, 0);
        Ok(())
    }

    /// A corruption of this file.
    pub fn corrupt(&self, what: &str, offset: u64) -> Error {
        Error::corruption(format!("MANIFEST: {what}")).at(self.path()).at_offset(offset)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::memory::MemoryFileSystem;

    fn write(fs: &MemoryFileSystem, records: &[Vec<u8>]) -> Vec<u8> {
        fs.create_directory(Path::new("/db")).unwrap();
        let mut writer = Writer::new(fs.open(Path::new("/db/M"), OpenMode::Create).unwrap());
        for record in records {
            writer.add(record);
        }
        writer.sync().unwrap();
        crate::env::read_file(fs, Path::new("/db/M"), u64::MAX).unwrap()
    }

    fn read(fs: &MemoryFileSystem) -> Result<Vec<Vec<u8>>> {
        let mut reader = Reader::open(fs, Path::new("/db/M"))?;
        let mut records = Vec::new();
        while let Some((_, record)) = reader.next()? {
            records.push(record.to_vec());
        }
        Ok(records)
    }

    #[test]
    fn the_minimal_manifest_of_the_specification() {
        let bytes = write(&MemoryFileSystem::new(), &[vec![2, 0, 3, 2, 4, 0]]);
        assert_eq!(bytes, [0xc4, 0xc1, 0x9f, 0x5b, 6, 0, 1, 2, 0, 3, 2, 4, 0]);
    }

    #[test]
    fn records_of_all_sizes_come_back() {
        let fs = MemoryFileSystem::new();
        // The second sizes leave 7, 6 and 0 bytes in the first block.
        for second in [BLOCK_SIZE - 24, BLOCK_SIZE - 23, BLOCK_SIZE - 17, 100_000, 0] {
            let records = [vec![1; 3], vec![2; second], vec![3; 5], vec![]];
            write(&fs, &records);
            assert_eq!(read(&fs).unwrap(), records, "{second}");
        }
    }

    #[test]
    fn a_cut_record_is_ignored_and_a_changed_one_is_not() {
        let fs = MemoryFileSystem::new();
        let records: Vec<_> = (0..40).map(|i| vec![i as u8; i * 57]).collect();
        let bytes = write(&fs, &records);
        let file = fs.open(Path::new("/db/M"), OpenMode::Update).unwrap();
        for at in (0..bytes.len()).step_by(29) {
            file.write_at(at as u64, &[bytes[at] ^ 0x20]).unwrap();
            if let Ok(read) = read(&fs) {
                assert!(read.len() < records.len() && read[..] == records[..read.len()], "{at}");
            }
            file.write_at(at as u64, &[bytes[at]]).unwrap();
        }
        for size in (0..bytes.len()).rev().step_by(31) {
            file.truncate(size as u64).unwrap();
            let read = read(&fs).unwrap();
            assert!(read.len() < records.len() && read[..] == records[..read.len()], "{size}");
        }
    }
}
