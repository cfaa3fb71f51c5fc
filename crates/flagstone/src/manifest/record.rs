//! Edits as records of a log: the framing is the WAL's, with headers that do not carry the file's number.
//!
//! A MANIFEST is read strictly: only its last record may be incomplete, as a power loss leaves it, and is then ignored. Each
//! write is synced before the next begins, so that a damaged record with an intact one behind it was whole once; and a write
//! of which only parts reached the disk ([`is_torn_end`]) has zeros in the place of the others, for a MANIFEST only grows.
//!
//! One write may be several records: those of an atomic group that lie within one block, but for the last. What is left of them
//! does not make the group whole, and is ignored, too.

use std::path::Path;
use std::sync::Arc;

use super::edit::VersionEdit;
use crate::base::{FileNumber, Result};
use crate::env::{File, FileSystem, OpenMode};
use crate::wal::{self, Damage, DamageKind, Event, ReaderOptions, WriterOptions};

/// The number by which a log's headers would know their file; a MANIFEST's do not.
const NO_NUMBER: FileNumber = FileNumber(0);

/// The least that any storage writes as a whole: persistent memory does, in aligned pieces. Disks write 512 bytes and more.
const PIECE: usize = 8;

/// How a MANIFEST is read. Nobody is known to compress one, though a log may be: a few bytes must not become gigabytes.
pub fn reader_options() -> ReaderOptions {
    ReaderOptions { decompressed_size_max: 64 << 20, ..ReaderOptions::default() }
}

/// Appends records to a new MANIFEST.
pub(super) struct Writer {
    records: wal::Writer,
    /// Bytes that are reserved at a time; 0 for none.
    step: u64,
    /// Up to where the file has its blocks.
    reserved: u64,
}

impl Writer {
    /// Starts at the front of `file`.
    pub fn new(file: Arc<dyn File>) -> Result<Self> {
        let records = wal::Writer::new(file, NO_NUMBER, WriterOptions::default())?;
        Ok(Self { records, step: 0, reserved: 0 })
    }

    /// From now on reserves space, so many bytes at a time, without changing the file's size; what is left over is given back
    /// when the writer is dropped.
    pub fn reserving(mut self, step: u64) -> Self {
        self.step = step;
        self
    }

    /// Appends a record; durable after [`Writer::sync`].
    ///
    /// After an error the file must not be used again.
    pub fn add(&mut self, record: &[u8]) -> Result<()> {
        let end = self.size() + record.len() as u64;
        if self.step > 0 && end > self.reserved {
            self.reserve(end);
        }
        let added = self.records.add_record(record);
        if added.is_err() {
            // Nobody touches the file any more.
            (self.step, self.reserved) = (0, 0);
        }
        added
    }

    /// A file system that cannot, or has too little space, is no reason to fail: that shows where space is used.
    fn reserve(&mut self, end: u64) {
        let length = end.next_multiple_of(self.step);
        match self.records.file().allocate(length, true) {
            Ok(()) => self.reserved = length,
            Err(_) => {
                self.step = 0;
                // What the attempt took is for others.
                let _ = self.records.file().truncate(self.size());
            }
        }
    }

    /// Makes what was added durable.
    ///
    /// After an error the file must not be used again.
    pub fn sync(&mut self) -> Result<()> {
        let synced = self.records.file().sync();
        if synced.is_err() {
            (self.step, self.reserved) = (0, 0);
        }
        synced
    }

    /// Whether a record would begin and end in the present block.
    pub fn has_room_in_block(&self, record: &[u8]) -> bool {
        self.size() as usize % wal::BLOCK_SIZE + wal::LEGACY_HEADER_SIZE + record.len() <= wal::BLOCK_SIZE
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.records.offset()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.reserved > self.size() {
            // What is not given back now is when the file is removed.
            let _ = self.records.file().truncate(self.size());
        }
    }
}

/// Reads the records of a MANIFEST from front to back.
pub(super) struct Reader(wal::Reader);

impl Reader {
    /// Opens the MANIFEST at `path`.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        Self::open_reading(fs, path, 0)
    }

    /// The same, to read so many bytes at a time; with 0 as many as seem good.
    pub fn open_reading(fs: &dyn FileSystem, path: &Path, readahead_size: usize) -> Result<Self> {
        let options = ReaderOptions { readahead_size, ..reader_options() };
        Ok(Self(wal::Reader::with_options(fs.open(path, OpenMode::Read)?, NO_NUMBER, options)))
    }

    /// The next record and the offset at which it starts; `None` at the end, also if the last record is incomplete.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        let damage = match self.0.next_event()? {
            Event::Record(_) => return Ok(Some((self.0.record_offset(), self.0.record()))),
            Event::End => return self.check_end().map(|()| None),
            Event::Damage(damage) => damage,
        };
        // Not the WAL's judgement, which ends at a record of an older life: a MANIFEST has none.
        if is_torn_end(&**self.0.file(), &damage)? && !self.has_more()? {
            Ok(None)
        } else {
            Err(damage.to_error(&**self.0.file()))
        }
    }

    /// # Errors
    /// `Corruption` if the file ends in zeros, and behind the first of them there are records.
    fn check_end(&self) -> Result<()> {
        let Some(zeros) = self.0.zeros_at_end() else { return Ok(()) };
        let file = &**self.0.file();
        let end = file.size()?;
        let mut offset = zeros;
        while offset < end {
            let rest = rest_of_block(file, offset)?;
            if holds_records(&rest) {
                let kind = DamageKind::Zeros { in_fragment: false };
                return Err(Damage { kind, offset: zeros, dropped: end - zeros }.to_error(file));
            }
            offset = (offset + 1).next_multiple_of(wal::BLOCK_SIZE as u64);
        }
        Ok(())
    }

    /// Whether there is any intact record in the blocks behind.
    fn has_more(&mut self) -> Result<bool> {
        loop {
            match self.0.next_event()? {
                Event::Record(_) => return Ok(true),
                Event::End => return Ok(false),
                Event::Damage(_) => {}
            }
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.0.file().path()
    }
}

/// Whether this may be what a power loss leaves of the last record, if no intact one follows in the blocks behind: it is cut
/// off, or parts of it are missing.
///
/// # Errors
/// `IoError`.
pub fn is_torn_end(file: &dyn File, damage: &Damage) -> Result<bool> {
    use DamageKind::{TruncatedBody, TruncatedHeader, TruncatedRecord};
    let rest = rest_of_block(file, damage.offset)?;
    let is_cut = matches!(damage.kind, TruncatedHeader | TruncatedBody | TruncatedRecord);
    if is_cut && wal::records_within(&rest).next().is_some_and(|(start, _)| start == 0) {
        // Its writer has gone on meanwhile.
        return Ok(true);
    }
    let may_be_torn = (is_cut || has_hole(damage.offset, &rest)) && !holds_records(&rest);
    Ok(may_be_torn && !wal::has_unknown_type(&rest) && !is_whole_but_for_a_bit(damage.offset, &rest))
}

/// Whether the record at the front of these bytes lacks no piece: one bit is wrong, and not where zeros stand in place of others.
fn is_whole_but_for_a_bit(offset: u64, bytes: &[u8]) -> bool {
    wal::byte_with_wrong_bit(bytes).is_some_and(|at| {
        let before = (offset as usize + at) % PIECE;
        let piece = &bytes[at.saturating_sub(before)..(at + PIECE - before).min(bytes.len())];
        piece.iter().any(|byte| *byte != 0)
    })
}

/// Whether a record says that its atomic group goes on behind it.
pub fn awaits_others(record: &[u8]) -> bool {
    let remaining = VersionEdit::decode(record).ok().and_then(|edit| edit.atomic_group_remaining);
    remaining.is_some_and(|remaining| remaining > 0)
}

/// What stands from `offset` on in its block.
fn rest_of_block(file: &dyn File, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; wal::BLOCK_SIZE - offset as usize % wal::BLOCK_SIZE];
    let filled = file.read_at(offset, &mut bytes)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// Whether pieces of a write are missing from these bytes, which begin at `offset`.
fn has_hole(offset: u64, bytes: &[u8]) -> bool {
    // The first piece ends where one does in the file.
    let first = (PIECE - offset as usize % PIECE).min(bytes.len());
    let (first, others) = bytes.split_at(first);
    let is_missing = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
    is_missing(first) || others.chunks(PIECE).any(is_missing)
}

/// Whether there is an intact record within these bytes of a block, other than those of an atomic group whose end is not there.
fn holds_records(bytes: &[u8]) -> bool {
    !wal::records_within(bytes).all(|(_, record)| record.is_some_and(awaits_others))
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

    /// It took as many gigabytes as the file had megabytes.
    #[test]
    fn what_a_compressed_manifest_may_become_is_limited() {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/db")).unwrap();
        for (size, is_read) in [(1 << 20, true), (65 << 20, false)] {
            let options =
                WriterOptions { compression: wal::WalCompression::Zstd, ..WriterOptions::default() };
            let file = fs.open(Path::new("/db/M"), OpenMode::Create).unwrap();
            let mut writer = wal::Writer::new(file, NO_NUMBER, options).unwrap();
            writer.add_record(&vec![7; size]).unwrap();
            writer.file().sync().unwrap();
            let outcome = read(&fs);
            assert_eq!(outcome.is_ok_and(|records| records[0].len() == size), is_read, "{size}");
        }
    }

    #[test]
    fn a_torn_last_record_is_ignored() {
        // After a power loss the file had its new size, but not all of its new bytes: the database did not open.
        let fs = MemoryFileSystem::new();
        let records: Vec<_> = (1..5).map(|i| vec![i as u8; i * 57]).collect();
        let bytes = write(&fs, &records);
        let file = fs.open(Path::new("/db/M"), OpenMode::Update).unwrap();
        let last = bytes.len() - 4 * 57 - 7;
        for sector in [8, 16, 512] {
            for start in (0..bytes.len()).step_by(sector) {
                let lost = start.max(last)..(start + sector).min(bytes.len());
                if lost.is_empty() {
                    continue;
                }
                file.write_at(lost.start as u64, &vec![0; lost.len()]).unwrap();
                assert_eq!(read(&fs).unwrap(), records[..3], "{lost:?}");
                file.write_at(0, &bytes).unwrap();
            }
        }
        // Bytes that another record follows were synced before that was written.
        let before = last - 3 * 57 - 7;
        file.write_at(before as u64 + 8, &[0; 64]).unwrap();
        assert!(read(&fs).unwrap_err().is_corruption());
        file.write_at(0, &bytes).unwrap();
        // Nothing is missing here.
        file.write_at(last as u64 + 30, &[0x55]).unwrap();
        assert!(read(&fs).unwrap_err().is_corruption());
    }

    /// All but the last edit of a large group are one write, of which a power loss may leave any parts.
    #[test]
    fn what_is_left_of_a_torn_group_is_no_damage() {
        let fs = MemoryFileSystem::new();
        let edit = |remaining: u32| {
            let edit = VersionEdit {
                atomic_group_remaining: Some(remaining),
                family_added: Some("a name ".repeat(20)),
                ..VersionEdit::default()
            };
            super::super::commit::encoded(&edit)
        };
        let before = [vec![1; 300], vec![2; 31]];
        let group: Vec<_> = (0..6).rev().map(edit).collect();
        let written = [&before[..], &group[..5]].concat();
        let bytes = write(&fs, &written);
        let begin = 300 + 31 + 2 * 7;
        let file = fs.open(Path::new("/db/M"), OpenMode::Update).unwrap();
        for sector in [8, 64, 512] {
            for start in (0..bytes.len()).step_by(sector) {
                for end in [start + sector, start + 3 * sector, bytes.len()] {
                    let lost = start.max(begin)..end.min(bytes.len());
                    if lost.is_empty() {
                        continue;
                    }
                    file.write_at(lost.start as u64, &vec![0; lost.len()]).unwrap();
                    let found = read(&fs).unwrap_or_else(|error| panic!("{lost:?}: {error}"));
                    assert!(found.len() >= 2 && found[..] == written[..found.len()], "{lost:?}");
                    file.write_at(0, &bytes).unwrap();
                }
            }
        }
        // A group that is there to its end was synced before that was written.
        let whole = write(&fs, &[&before[..], &group[..]].concat());
        file.write_at(begin as u64 + 8, &[0; 16]).unwrap();
        assert!(read(&fs).unwrap_err().is_corruption());
        file.write_at(0, &whole).unwrap();
        assert_eq!(read(&fs).unwrap().len(), 8);
    }

    /// A bit of a record's type or length, or zeros instead of its header, and it was taken for the last, be there as many behind
    /// it as there are: an older state was opened without a word.
    #[test]
    fn damage_is_no_end_where_records_follow() {
        let fs = MemoryFileSystem::new();
        // In one block, and in the last of three.
        for first in [40, 2 * BLOCK_SIZE] {
            let records: Vec<_> = [first, 300, 5, 0, 70, 280, 9].iter().map(|&size| vec![7; size]).collect();
            let bytes = write(&fs, &records);
            let file = fs.open(Path::new("/db/M"), OpenMode::Update).unwrap();
            let last = bytes.len() - 9 - 7;
            let begin = last - (300 + 5 + 70 + 280) - 5 * 7;
            let flips = (begin..last).flat_map(|at| (0..8).map(move |bit| (at, Some(bit))));
            let holes = (begin..last).map(|at| (at, None));
            for (at, flipped) in flips.chain(holes) {
                let damage = match flipped {
                    Some(bit) => vec![bytes[at] ^ 1 << bit],
                    None => vec![0; 7.min(last - at)],
                };
                file.write_at(at as u64, &damage).unwrap();
                if damage[..] != bytes[at..at + damage.len()] {
                    let found = read(&fs).expect_err(&format!("{at} of {}: {damage:?}", bytes.len()));
                    assert!(found.is_corruption() && found.offset().is_some(), "{found}");
                }
                file.write_at(at as u64, &bytes[at..at + damage.len()]).unwrap();
            }
            assert_eq!(read(&fs).unwrap(), records);
        }
    }

    /// Where eight zeros are in an edit, as in the number of a key that a compaction has taken to the bottom, a bit that had
    /// changed anywhere in the last one passed for what a power loss leaves: an older state was opened without a word.
    #[test]
    fn a_wrong_bit_in_the_last_record_is_no_hole() {
        let fs = MemoryFileSystem::new();
        for before in 40..48 {
            let last = [&[0x55; 20][..], &[0; 20], &[0xaa; 20]].concat();
            let bytes = write(&fs, &[vec![7; before], last]);
            let file = fs.open(Path::new("/db/M"), OpenMode::Update).unwrap();
            for (at, bit) in (before + 7..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                file.write_at(at as u64, &[bytes[at] ^ 1 << bit]).unwrap();
                let found = read(&fs).expect_err(&format!("{at} of {}, bit {bit}", bytes.len()));
                assert!(found.is_corruption() && found.offset().is_some(), "{found}");
                file.write_at(at as u64, &[bytes[at]]).unwrap();
            }
        }
    }

    /// It passed for a record that a power loss had cut off, and an older state was opened.
    #[test]
    fn what_begins_like_no_record_is_damage_and_not_an_end() {
        let fs = MemoryFileSystem::new();
        let bytes = write(&fs, &[vec![1; 300], vec![2; 310]]);
        let file = fs.open(Path::new("/db/M"), OpenMode::Update).unwrap();
        // Its length goes past the end of the file.
        file.write_at(307, &vec![0x55; bytes.len() - 307]).unwrap();
        let found = read(&fs).unwrap_err();
        assert!(found.is_corruption() && found.offset() == Some(307), "{found}");
        // The type is the first byte of a piece that is not there.
        file.write_at(312, &[0; 8]).unwrap();
        assert_eq!(read(&fs).unwrap().len(), 1);
    }

    /// Another process reads while the writer appends: what was cut off is whole when it is looked at again.
    #[test]
    fn what_has_grown_since_it_was_read_was_the_end() {
        let fs = MemoryFileSystem::new();
        write(&fs, &[vec![1; 300], vec![2; 31], vec![3; 5]]);
        let file = fs.open(Path::new("/db/M"), OpenMode::Read).unwrap();
        for kind in [DamageKind::TruncatedHeader, DamageKind::TruncatedBody] {
            let damage = |offset| Damage { kind: kind.clone(), offset, dropped: 9 };
            assert!(is_torn_end(&*file, &damage(307)).unwrap());
            assert!(
                !is_torn_end(&*file, &damage(308)).unwrap(),
                "of what is damaged there, nothing becomes whole"
            );
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
