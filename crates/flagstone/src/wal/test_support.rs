//! Logs in memory, put together record by record.

use std::path::Path;
use std::sync::Arc;

use super::format::*;
use super::{Damage, Event, Reader};
use crate::base::FileNumber;
use crate::batch::WriteBatch;
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, RandomAccessFile, WritableFile};

/// The number that logs of tests have.
pub(super) const NUMBER: FileNumber = FileNumber(17);

/// A file in memory with these contents.
pub(super) fn file_of(contents: &[u8]) -> Arc<dyn WritableFile> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new("/db/000017.log"), IoMode::Buffered).unwrap();
    file.write_at(0, contents).unwrap();
    file
}

/// The whole of a file.
pub(super) fn contents_of(file: &dyn RandomAccessFile) -> Vec<u8> {
    let mut contents = vec![0; file.size().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut contents).unwrap(), contents.len());
    contents
}

/// Everything that a log of number [`NUMBER`] holds, up to its end.
pub(super) fn read_all(contents: &[u8]) -> (Vec<Vec<u8>>, Vec<Damage>) {
    let (mut records, mut damages) = (Vec::new(), Vec::new());
    let mut reader = Reader::new(file_of(contents), NUMBER);
    loop {
        match reader.next_event().unwrap() {
            Event::Record(record) => records.push(record.to_vec()),
            Event::Damage(damage) => damages.push(damage),
            Event::End => return (records, damages),
        }
    }
}

/// A physical record with a right checksum. `number` stands in types with the longer header.
pub(super) fn physical(record_type: u8, number: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; TYPE_OFFSET];
    out.push(record_type);
    let mut header_size = LEGACY_HEADER_SIZE;
    if is_recyclable(record_type) {
        out.extend_from_slice(&number.to_le_bytes());
        header_size = RECYCLABLE_HEADER_SIZE;
    }
    out.extend_from_slice(payload);
    finish_record(&mut out, 0, header_size);
    out
}

/// Fills up the block with zeros; a block that has not begun, too.
pub(super) fn pad(log: &mut Vec<u8>) {
    log.resize((log.len() + 1).next_multiple_of(BLOCK_SIZE), 0);
}

/// The batch that puts one key, with an empty value.
pub(super) fn put(key: &str, sequence: u64) -> Vec<u8> {
    let mut batch = WriteBatch::new();
    batch.put(key.as_bytes(), b"").unwrap();
    // Not by set_sequence, which refuses what is out of range.
    let mut bytes = batch.into_bytes();
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    bytes
}
