//! Edits as records of a log: the framing is the WAL's, with headers that do not carry the file's number.
//!
//! A MANIFEST is read strictly: only a record cut off by the end of the file is taken for a crash and ignored.

use std::path::Path;
use std::sync::Arc;

use crate::base::{FileNumber, Result};
use crate::env::{File, FileSystem, OpenMode};
use crate::wal::{self, Damage, DamageKind, Event, WriterOptions};

/// The number by which a log's headers would know their file; a MANIFEST's do not.
const NO_NUMBER: FileNumber = FileNumber(0);

/// Appends records to a new MANIFEST.
pub(super) struct Writer(wal::Writer);

impl Writer {
    /// Starts at the front of `file`.
    pub fn new(file: Arc<dyn File>) -> Result<Self> {
        wal::Writer::new(file, NO_NUMBER, WriterOptions::default()).map(Self)
    }

    /// Appends a record; durable after [`Writer::sync`].
    ///
    /// After an error the file must not be used again.
    pub fn add(&mut self, record: &[u8]) -> Result<()> {
        self.0.add_record(record)
    }

    /// Makes what was added durable.
    ///
    /// After an error the file must not be used again.
    pub fn sync(&mut self) -> Result<()> {
        self.0.file().sync()
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.0.offset()
    }
}

/// Reads the records of a MANIFEST from front to back.
pub(super) struct Reader(wal::Reader);

impl Reader {
    /// Opens the MANIFEST at `path`.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        Ok(Self(wal::Reader::new(fs.open(path, OpenMode::Read)?, NO_NUMBER)))
    }

    /// The next record and the offset at which it starts; `None` at the end, also if that cuts a record off.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        use DamageKind::{TruncatedBody, TruncatedHeader, TruncatedRecord};
        match self.0.next_event()? {
            Event::Record(_) => Ok(Some((self.0.record_offset(), self.0.record()))),
            Event::End => Ok(None),
            Event::Damage(Damage { kind: TruncatedHeader | TruncatedBody | TruncatedRecord, .. }) => Ok(None),
            // Not the WAL's judgement, which ends at a record of an older life: a MANIFEST has none.
            Event::Damage(damage) => Err(damage.to_error(&**self.0.file())),
        }
    }

    /// Where the last record ends.
    pub fn good_until(&self) -> u64 {
        self.0.good_until()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.0.file().path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::memory::MemoryFileSystem;
    use crate::wal::BLOCK_SIZE;

    fn write(fs: &MemoryFileSystem, records: &[Vec<u8>]) -> Vec<u8> {
        fs.create_directory(Path::new("/db")).unwrap();
        let mut writer = Writer::new(fs.open(Path::new("/db/M"), OpenMode::Create).unwrap()).unwrap();
        for record in records {
            writer.add(record).unwrap();
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
        for at in (0..bytes.len()).step_by(101) {
            file.write_at(at as u64, &[bytes[at] ^ 0x20]).unwrap();
            if let Ok(read) = read(&fs) {
                assert!(read.len() < records.len() && read[..] == records[..read.len()], "{at}");
            }
            file.write_at(at as u64, &[bytes[at]]).unwrap();
        }
        // The first record's type becomes that of a recycled file's record.
        file.write_at(6, &[5]).unwrap();
        assert!(read(&fs).unwrap_err().is_corruption());
        file.write_at(6, &[bytes[6]]).unwrap();
        for size in (0..bytes.len()).rev().step_by(103) {
            file.truncate(size as u64).unwrap();
            let read = read(&fs).unwrap();
            assert!(read.len() < records.len() && read[..] == records[..read.len()], "{size}");
        }
    }
}
