use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::format::*;
use super::test_support::*;
use super::*;
use crate::base::{Code, Error, FileNumber, Result, SubCode};
use crate::env::os::OsFileSystem;
use crate::env::{AnyFile, FileAround, FileSystem, Mapping, RangeSyncs};

const LEGACY: WriterOptions = WriterOptions {
    recyclable: false,
    compression: WalCompression::None,
    reserves_nothing: false,
    range_syncs: None,
};
const RECYCLABLE_FILE: WriterOptions = WriterOptions { recyclable: true, ..LEGACY };
const ALL_OPTIONS: [WriterOptions; 4] = [
    LEGACY,
    RECYCLABLE_FILE,
    WriterOptions { compression: WalCompression::Zstd, ..LEGACY },
    WriterOptions { compression: WalCompression::Zstd, ..RECYCLABLE_FILE },
];

fn written(options: WriterOptions, records: &[&[u8]]) -> Vec<u8> {
    let mut writer = Writer::new(file_of(b""), NUMBER, options).unwrap();
    for record in records {
        writer.add_record(record).unwrap();
    }
    let contents = contents_of(&**writer.file());
    assert_eq!(writer.offset(), contents.len() as u64);
    contents
}

/// The types and payload lengths of the physical records.
fn shape(log: &[u8]) -> Vec<(u8, usize)> {
    let mut shape = Vec::new();
    for block in log.chunks(BLOCK_SIZE) {
        let mut rest = block;
        while let Some(header) = Header::parse(rest).filter(|header| header.record_type != ZERO) {
            shape.push((header.record_type, header.length));
            rest = &rest[header.size() + header.length..];
        }
        assert!(rest.iter().all(|byte| *byte == 0) && rest.len() < RECYCLABLE_HEADER_SIZE);
    }
    shape
}

#[test]
fn golden_records() {
    let first = b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x03foo\x03bar";
    let expected = [b"\xaf\xbf\xeb\x5e\x15\x00\x01", &first[..]].concat();
    assert_eq!(written(LEGACY, &[first]), expected);

    let last = b"\x0e\0\0\0\0\0\0\0\x01\0\0\0\x01\x04last\x01v";
    let expected = [b"\xf0\x91\xe5\xe6\x14\x00\x05\x11\0\0\0", &last[..]].concat();
    assert_eq!(written(RECYCLABLE_FILE, &[last]), expected);

    // The mark of a recovery that lost something: an empty batch.
    let empty = b"\x03\0\0\0\0\0\0\0\0\0\0\0";
    let expected = [b"\x0f\xa9\x26\x66\x0c\x00\x01", &empty[..]].concat();
    assert_eq!(written(LEGACY, &[empty]), expected);

    let compressed = written(ALL_OPTIONS[2], &[first]);
    assert_eq!(compressed[..11], *b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\0\0\0");
    assert_eq!(compressed[18..22], *b"\x28\xb5\x2f\xfd");
}

#[test]
fn long_records_are_cut_at_blocks() {
    let log = written(LEGACY, &[&[b'x'; 100_000]]);
    assert_eq!(shape(&log), [(FIRST, 32_761), (MIDDLE, 32_761), (MIDDLE, 32_761), (LAST, 1_717)]);
    assert_eq!(shape(&written(LEGACY, &[b""])), [(FULL, 0)]);
}

#[test]
fn a_block_end_is_padded_or_takes_an_empty_fragment() {
    let room = BLOCK_SIZE - LEGACY_HEADER_SIZE;
    for left in 0..LEGACY_HEADER_SIZE {
        let log = written(LEGACY, &[&vec![1; room - left], b"next"]);
        assert_eq!(shape(&log), [(FULL, room - left), (FULL, 4)], "{left}");
        assert_eq!(log.len(), BLOCK_SIZE + LEGACY_HEADER_SIZE + 4);
    }
    let log = written(LEGACY, &[&vec![1; room - LEGACY_HEADER_SIZE], b"next"]);
    assert_eq!(shape(&log), [(FULL, room - LEGACY_HEADER_SIZE), (FIRST, 0), (LAST, 4)]);
    let log = written(LEGACY, &[&vec![1; room - LEGACY_HEADER_SIZE], b""]);
    assert_eq!(shape(&log), [(FULL, room - LEGACY_HEADER_SIZE), (FULL, 0)]);
    let room = BLOCK_SIZE - RECYCLABLE_HEADER_SIZE;
    let log = written(RECYCLABLE_FILE, &[&vec![1; room - 10], b"next"]);
    assert_eq!(shape(&log), [(FULL + RECYCLABLE, room - 10), (FULL + RECYCLABLE, 4)]);
}

#[test]
fn fragments_of_compressed_records_do_not_line_up() {
    // RocksDB 7.8 garbled records with two fragments in a row that began at the same place of their
    // blocks.
    let mut random = fastrand::Rng::with_seed(3);
    let noise: Vec<u8> = (0..200_000).map(|_| random.u8(..)).collect();
    for options in &ALL_OPTIONS[2..] {
        for front in [0, 1, 5_000, 32_700, 32_730, 32_744] {
            let log = written(*options, &[&noise[..front], &noise]);
            let (records, damages) = read_all(&log);
            assert_eq!((records.len(), damages.len()), (2, 0));
            let fragments = shape(&log);
            assert!(
                fragments.iter().all(|(_, length)| *length < BLOCK_SIZE - RECYCLABLE_HEADER_SIZE)
            );
        }
    }
}

#[test]
fn records_in_parts_are_the_same_records() {
    let parts: [&[u8]; 4] = [&[1; 5], b"", &[2; 40_000], &[3; 40_000]];
    for options in ALL_OPTIONS {
        let mut writer = Writer::new(file_of(b""), NUMBER, options).unwrap();
        writer.add_record_parts(&parts).unwrap();
        writer.add_record_parts(&[]).unwrap();
        let contents = contents_of(&**writer.file());
        assert_eq!(contents, written(options, &[&parts.concat(), b""]));
        assert_eq!(read_all(&contents), (vec![parts.concat(), Vec::new()], Vec::new()));
    }
}

#[test]
fn whatever_is_written_is_read_back() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..60 {
        let records: Vec<Vec<u8>> = (0..random.usize(1..30))
            .map(|_| {
                let size = match random.u8(0..4) {
                    0 => random.usize(0..40),
                    1 => random.usize(0..2_000),
                    2 => BLOCK_SIZE - random.usize(0..60),
                    _ => random.usize(0..100_000),
                };
                let noise = random.usize(1..=40);
                (0..size).map(|i| if i % noise == 0 { random.u8(..) } else { 0 }).collect()
            })
            .collect();
        let options = ALL_OPTIONS[round % 4];
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let (read, damages) = read_all(&written(options, &slices));
        assert!(read == records && damages.is_empty(), "round {round}: {damages:?}");
    }
}

/// Counts writes, and fails those that it is told to.
struct CountingFile {
    inner: AnyFile,
    writes: AtomicUsize,
    fails_at: usize,
}

impl FileAround for CountingFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if self.writes.fetch_add(1, Ordering::Relaxed) != self.fails_at {
            return self.inner.write_at(offset, data);
        }
        self.inner.write_at(offset, &data[..data.len() / 2])?;
        Err(crate::base::Error::io("write", self.inner.path(), std::io::Error::other("injected")))
    }
}

#[test]
fn a_record_is_one_write_and_a_failed_one_is_overwritten() {
    for options in ALL_OPTIONS {
        let file = Arc::new(CountingFile {
            inner: file_of(b"").into(),
            writes: AtomicUsize::new(0),
            fails_at: 1,
        });
        let mut writer = Writer::new(file.clone(), NUMBER, options).unwrap();
        writer.add_record(&[1; 100_000]).unwrap();
        let offset = writer.offset();
        assert!(writer.add_record(&[2; 70_000]).is_err());
        assert_eq!(writer.offset(), offset);
        writer.add_record(&[3; 70_000]).unwrap();
        assert_eq!(file.writes.load(Ordering::Relaxed), 3);
        let expected = vec![vec![1; 100_000], vec![3; 70_000]];
        assert_eq!(read_all(&contents_of(&*file)), (expected, Vec::new()));
    }
}

#[test]
fn only_the_low_half_of_the_number_is_written() {
    let number = FileNumber((7 << 32) | 5);
    let mut writer = Writer::new(file_of(b""), number, RECYCLABLE_FILE).unwrap();
    writer.add_record(b"x").unwrap();
    let mut reader = Reader::new(writer.file().clone(), number);
    assert_eq!(reader.next_event().unwrap(), Event::Record(b"x"));
    assert_eq!(reader.next_event().unwrap(), Event::End);
}

/// Small records are copied into the mapping, large ones written by calls; both outgrow what was
/// reserved.
#[test]
fn mapped_records_are_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for step in [100, 5_000, 40_000, 6 << 20] {
        let file = OsFileSystem.create_log(&directory.path().join(step.to_string())).unwrap();
        if !file.is_mappable() {
            return;
        }
        let mut writer = Writer::of_log(file, NUMBER, RECYCLABLE_FILE).unwrap();
        writer.map(step).unwrap();
        let mut records = Vec::new();
        for _ in 0..300 {
            let size = [random.usize(0..40), random.usize(0..2_000), random.usize(0..70_000)]
                [random.usize(0..3)];
            records.push(vec![random.u8(..); size]);
            if random.bool() {
                writer.add_record(records.last().unwrap()).unwrap();
                assert_eq!(writer.written(), writer.offset(), "nothing before it waits in memory");
            } else {
                writer.gather_record(records.last().unwrap()).unwrap()
            }
            if random.u8(..) < 40 {
                writer.write_gathered().unwrap();
                assert_eq!(writer.written(), writer.offset());
            }
        }
        writer.gather_record(b"gathered").unwrap();
        let (read, _) = read_all(&contents_of(&**writer.file()));
        assert!(!read.contains(&b"gathered".to_vec()) && records.starts_with(&read), "step {step}");
        writer.add_record(b"not to be synced").unwrap();
        records.extend([b"gathered".to_vec(), b"not to be synced".to_vec()]);
        // Recovery finds zeros behind them; a log that has ended has none.
        let (read, _) = read_all(&contents_of(&**writer.file()));
        assert!(read == records, "step {step}");
        writer.cut().unwrap();
        assert_eq!(writer.file().size().unwrap(), writer.offset());
        writer.add_record(b"later").unwrap();
        records.push(b"later".to_vec());
        assert_eq!(read_all(&contents_of(&**writer.file())), (records, Vec::new()));
    }
}

/// Has room for what is written, and for one reserve.
struct ShortFile {
    inner: AnyFile,
    reserves: AtomicUsize,
}

impl FileAround for ShortFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn is_mappable(&self) -> bool {
        true
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        if self.reserves.fetch_add(1, Ordering::Relaxed) > 0 {
            let error = Error::new(Code::IoError, "no space left");
            return Err(error.with_subcode(SubCode::NoSpace));
        }
        self.inner.allocate(length, keep_size)
    }
}

/// What a reserve that failed had taken was given back with the end of a record that went beyond
/// the reserve before.
#[test]
fn a_reserve_that_fails_takes_nothing_from_a_long_record() {
    for gathers in [false, true] {
        let file = ShortFile { inner: file_of(b"").into(), reserves: AtomicUsize::new(0) };
        let mut writer = Writer::of_log(Arc::new(file), NUMBER, RECYCLABLE_FILE).unwrap();
        writer.map(100_000).unwrap();
        let records = [vec![1; 90_000], vec![2; 90_000], vec![3; 100]];
        writer.add_record(&records[0]).unwrap();
        writer.add_record(&records[1]).unwrap();
        if gathers {
            writer.gather_record(&records[2]).unwrap();
            writer.write_gathered().unwrap();
        } else {
            writer.add_record(&records[2]).unwrap();
        }
        let (read, damage) = read_all(&contents_of(&**writer.file()));
        assert!(read == records && damage.is_empty());
    }
}

/// Counts how often pages are fetched, and has none.
struct FetchedFile {
    inner: AnyFile,
    fetches: Arc<AtomicUsize>,
}

impl FileAround for FetchedFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn is_mappable(&self) -> bool {
        true
    }

    fn map(&self, _offset: u64, _length: usize) -> Result<Option<Box<dyn Mapping>>> {
        Ok(Some(Box::new(FetchedMapping(self.fetches.clone()))))
    }
}

struct FetchedMapping(Arc<AtomicUsize>);

impl Mapping for FetchedMapping {
    fn write(&mut self, _at: usize, _data: &[u8]) {}

    fn populate(&mut self, _range: Range<usize>) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Nine writes of a log waited for pages, and the slowest of a thousand was one of them.
#[test]
fn few_writes_wait_for_pages() {
    let every = RangeSyncs::new(1 << 20, false);
    for (range_syncs, expected) in [(None, 4..=4), (every, 16..=19)] {
        let fetches = Arc::<AtomicUsize>::default();
        let file = Arc::new(FetchedFile { inner: file_of(b"").into(), fetches: fetches.clone() });
        let options = WriterOptions { range_syncs, ..RECYCLABLE_FILE };
        let mut writer = Writer::of_log(file, NUMBER, options).unwrap();
        writer.map(20 << 20).unwrap();
        while writer.offset() < (16 << 20) - 5000 {
            writer.add_record(&[7; 1000]).unwrap();
        }
        let fetches = fetches.load(Ordering::Relaxed);
        assert!(expected.contains(&fetches), "{fetches} with {range_syncs:?}");
    }
}
