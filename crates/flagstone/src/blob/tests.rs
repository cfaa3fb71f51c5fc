//! Blob files as a whole: written and read back, damaged, cut off, and written by RocksDB.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::base::compression::CompressionType;
use crate::base::file_name::{self, FileKind};
use crate::base::{Code, ColumnFamilyId, FileNumber};
use crate::env::memory::MemoryFileSystem;
use crate::env::os::OsFileSystem;
use crate::env::{self, AnyFile, FileSystem, IoMode, RandomAccessFile, WritableFile, read_file};

const FAMILY: ColumnFamilyId = ColumnFamilyId(3);
const NUMBER: FileNumber = FileNumber(10);

/// A blob file in memory, and the file system that it lies in.
struct Scene {
    fs: MemoryFileSystem,
    path: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/db")).unwrap();
        Self { fs, path: file_name::blob(Path::new("/db"), NUMBER) }
    }

    fn holding(bytes: &[u8]) -> Self {
        let scene = Self::new();
        scene.create().write_at(0, bytes).unwrap();
        scene
    }

    fn create(&self) -> Arc<dyn WritableFile> {
        self.fs.create_writable(&self.path, IoMode::Buffered).unwrap()
    }

    fn file(&self) -> Arc<dyn RandomAccessFile> {
        self.fs.open_random_access(&self.path, IoMode::Buffered).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        read_file(&self.fs, &self.path, 1 << 30).unwrap()
    }

    fn builder(&self, compression: CompressionType) -> BlobFileBuilder {
        let settings =
            BlobBuilderSettings { column_family: FAMILY, compression, ..Default::default() };
        BlobFileBuilder::new(self.create(), NUMBER, &settings).unwrap()
    }
}

type Entry = (Vec<u8>, Vec<u8>, BlobIndex);

/// A sealed file with a few values of different sizes.
fn written(compression: CompressionType) -> (Scene, Vec<Entry>) {
    let scene = Scene::new();
    let mut builder = scene.builder(compression);
    let sizes = [1, 5, 40, 700];
    let entries = sizes.iter().enumerate().map(|(i, &size)| {
        let (key, value) = (format!("key{i}").into_bytes(), vec![b'v' + i as u8; size]);
        let index = builder.add(&key, &value).unwrap();
        (key, value, index)
    });
    let entries: Vec<Entry> = entries.collect();
    builder.finish().unwrap();
    (scene, entries)
}

#[test]
fn every_value_comes_back_in_every_compression() {
    for compression in CompressionType::ALL {
        let (scene, entries) = written(compression);
        let reader = BlobFileReader::open(scene.file(), FAMILY).unwrap();
        assert_eq!(
            (reader.count(), reader.compression()),
            (Some(entries.len() as u64), compression)
        );
        for (key, value, index) in &entries {
            for verify in [false, true] {
                assert_eq!(
                    &*reader.get(key, index, verify).unwrap(),
                    value.as_slice(),
                    "{compression}"
                );
            }
        }
        let mut scan = BlobFileScan::new(scene.file()).unwrap();
        let records: Vec<_> = scan.by_ref().map(Result::unwrap).collect();
        assert_eq!(records.len(), entries.len());
        for (record, (key, value, index)) in records.iter().zip(&entries) {
            assert_eq!((&record.key, &scan.value(record).unwrap()), (key, value));
            assert_eq!(record.index(NUMBER), *index);
        }
    }
}

#[test]
fn many_values_are_read_in_one_batch_and_fail_one_by_one() {
    let (scene, entries) = written(CompressionType::None);
    let reader = BlobFileReader::open(scene.file(), FAMILY).unwrap();
    let mut requests: Vec<_> = entries
        .iter()
        .map(|(key, _, index)| BlobRequest { reader: &reader, user_key: key, index: *index })
        .collect();
    requests[1].user_key = b"KEY1";
    requests[2].index.size = u64::MAX;
    let (values, _) = get_together(&requests, true);
    assert_eq!(values[0].clone().unwrap().into_bytes(), entries[0].1);
    assert!(values[1].as_ref().unwrap_err().message().contains("another key"));
    assert!(values[2].as_ref().unwrap_err().message().contains("invalid blob offset"));
    assert_eq!(values[3].clone().unwrap().into_bytes(), entries[3].1);
}

#[test]
fn a_part_of_a_value_is_read_alone() {
    let (scene, entries) = written(CompressionType::None);
    let reader = BlobFileReader::open(scene.file(), FAMILY).unwrap();
    let (key, value, index) = &entries[2];
    for (range, expected) in [(0..3, &value[..3]), (38..99, &value[38..]), (99..100, &value[..0])] {
        assert_eq!(reader.get_range(key, index, range).unwrap(), expected);
    }
}

#[test]
fn an_index_that_leads_astray_is_an_error() {
    let (scene, entries) = written(CompressionType::None);
    let reader = BlobFileReader::open(scene.file(), FAMILY).unwrap();
    let (key, _, right) = &entries[1];
    let wrong = [
        BlobIndex { offset: 0, ..*right },
        BlobIndex { offset: right.offset + 1, ..*right },
        BlobIndex { offset: u64::MAX, ..*right },
        BlobIndex { size: right.size + 1, ..*right },
        BlobIndex { size: 1 << 50, ..*right },
        BlobIndex { compression: 7, ..*right },
    ];
    for index in wrong {
        let error = reader.get(key, &index, true).unwrap_err();
        assert!(error.is_corruption() && error.path().is_some(), "{index:?}: {error}");
    }
    // Not even without checksums may a read reach into the footer.
    let beyond = BlobIndex { offset: entries[3].2.offset + 1, ..entries[3].2 };
    assert!(reader.get(&entries[3].0, &beyond, false).is_err());
}

#[test]
fn a_file_of_another_family_is_refused() {
    let (scene, _) = written(CompressionType::None);
    let error = BlobFileReader::open(scene.file(), ColumnFamilyId(4)).err().unwrap();
    assert!(error.is_corruption() && error.message().contains("column family 3"), "{error}");
}

#[test]
fn a_flipped_byte_never_turns_into_a_wrong_value() {
    let (scene, entries) = written(CompressionType::None);
    let bytes = scene.bytes();
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 0x40;
        let broken = Scene::holding(&broken);
        let mut faults = 0;
        match BlobFileReader::open(broken.file(), FAMILY) {
            Err(_) => faults += 1,
            Ok(reader) => {
                for (key, value, index) in &entries {
                    match reader.get(key, index, true) {
                        Ok(read) => assert_eq!(&*read, value.as_slice(), "byte {at}"),
                        Err(error) => {
                            assert!(error.is_corruption());
                            faults += 1;
                        }
                    }
                }
            }
        }
        assert!(faults > 0, "byte {at}");
        let scan = BlobFileScan::new(broken.file());
        let noticed = scan.map_or(1, |scan| scan.filter(Result::is_err).count());
        // Family and compression are not the scan's to judge: no checksum covers them.
        let unjudged = (8..12).contains(&at) || at == 13;
        assert_eq!(noticed, usize::from(!unjudged), "scan, byte {at}");
    }
}

#[test]
fn a_file_cut_off_anywhere_still_gives_its_whole_records_from_the_front() {
    let (scene, entries) = written(CompressionType::None);
    let bytes = scene.bytes();
    for length in 0..bytes.len() {
        let cut = Scene::holding(&bytes[..length]);
        assert!(BlobFileReader::open(cut.file(), FAMILY).is_err(), "length {length}");
        let whole =
            entries.iter().take_while(|(_, _, index)| index.offset + index.size <= length as u64);
        let whole = whole.count();
        let Ok(reader) = BlobFileReader::open_unsealed(cut.file(), FAMILY) else {
            assert!(length < HEADER_SIZE);
            assert!(BlobFileScan::new(cut.file()).is_err());
            continue;
        };
        for (i, (key, value, index)) in entries.iter().enumerate() {
            match reader.get(key, index, true) {
                Ok(read) => assert!(i < whole && *read == **value),
                Err(error) => assert!(i >= whole && error.is_corruption(), "{error}"),
            }
        }
        let mut scan = BlobFileScan::new(cut.file()).unwrap();
        let found: Vec<_> =
            scan.by_ref().filter_map(Result::ok).map(|record| record.index(NUMBER)).collect();
        let expected: Vec<_> = entries[..whole].iter().map(|(_, _, index)| *index).collect();
        assert_eq!((found, scan.footer()), (expected, None));
    }
}

#[test]
fn a_scan_steps_over_a_damaged_value() {
    let (scene, entries) = written(CompressionType::None);
    let mut bytes = scene.bytes();
    bytes[entries[1].2.offset as usize] ^= 1;
    let broken = Scene::holding(&bytes);
    let results: Vec<_> = BlobFileScan::new(broken.file()).unwrap().collect();
    let states: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert_eq!(states, [true, false, true, true]);
    let error = results[1].as_ref().unwrap_err();
    assert!(error.message().contains("key 'key1'"), "{error}");
    assert_eq!(error.offset(), Some(entries[1].2.offset - 32 - 4));
}

#[test]
fn zeros_of_reserved_space_are_no_records() {
    let (scene, entries) = written(CompressionType::None);
    let mut bytes = scene.bytes();
    bytes.truncate(bytes.len() - FOOTER_SIZE);
    bytes.resize(4096, 0);
    let reserved = Scene::holding(&bytes);
    let records = BlobFileScan::new(reserved.file()).unwrap().filter_map(Result::ok);
    assert_eq!(records.count(), entries.len());
}

#[test]
fn sizes_from_a_hostile_record_are_not_believed() {
    let (scene, _) = written(CompressionType::None);
    let sizes = [
        (u64::MAX - 3, 1 << 60, "impossible blob record"),
        (3, PART_SIZE_MAX + 1, "impossible blob record"),
        (3, PART_SIZE_MAX, "extends beyond the file"),
    ];
    for (key_size, value_size, words) in sizes {
        let mut bytes = scene.bytes();
        bytes.truncate(HEADER_SIZE);
        bytes.extend_from_slice(&RecordHeader { key_size, value_size, blob_crc: 0 }.encode());
        let results: Vec<_> = BlobFileScan::new(Scene::holding(&bytes).file()).unwrap().collect();
        assert_eq!(results.len(), 1);
        let error = results[0].as_ref().unwrap_err();
        assert!(error.is_corruption() && error.message().contains(words), "{error}");
    }
}

#[test]
fn an_unknown_compression_is_not_supported() {
    let header = BlobFileHeader { column_family: FAMILY, compression: 0x99 };
    let scene = Scene::holding(&header.encode());
    let error = BlobFileReader::open_unsealed(scene.file(), FAMILY).err().unwrap();
    assert_eq!(error.code(), Code::NotSupported);
}

/// The values of a fixture by key, as RocksDB's own iterator returned them.
fn expected_values(name: &str) -> HashMap<Vec<u8>, Vec<u8>> {
    let path = fixtures().join(format!("{name}.expected"));
    let text = String::from_utf8(read_file(&OsFileSystem, &path, 1 << 30).unwrap()).unwrap();
    let hex = |digits: &str| -> Vec<u8> {
        (0..digits.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
            .collect()
    };
    let lines = text.lines().map(|line| {
        let mut fields = line.split(' ').skip(1).map(hex);
        (fields.next().unwrap(), fields.next().unwrap_or_default())
    });
    lines.collect()
}

fn fixtures() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rocksdb-7.8"))
}

#[test]
fn blob_files_of_rocksdb_are_read_whole() {
    let cases = [
        ("blob-none", CompressionType::None),
        ("blob-lz4", CompressionType::Lz4),
        ("blob-zstd", CompressionType::Zstd),
        ("blob-gc", CompressionType::None),
    ];
    for (name, compression) in cases {
        let expected = expected_values(name);
        let directory = fixtures().join(name);
        let mut current = HashMap::new();
        for file_name in OsFileSystem.list(&directory).unwrap() {
            let Some(FileKind::Blob(number)) = FileKind::parse(&file_name) else { continue };
            let file = OsFileSystem
                .open_random_access(&directory.join(&file_name), IoMode::Buffered)
                .unwrap();
            let reader = BlobFileReader::open(file.clone(), ColumnFamilyId::DEFAULT).unwrap();
            let mut scan = BlobFileScan::new(file.clone()).unwrap();
            let mut count = 0;
            while let Some(record) = scan.next() {
                let record = record.unwrap();
                let value = scan.value(&record).unwrap();
                assert_eq!(&*reader.get(&record.key, &record.index(number), true).unwrap(), &value);
                let found = expected.get(&record.key).is_some_and(|expected| *expected == value);
                *current.entry(record.key).or_insert(false) |= found;
                count += 1;
            }
            assert_eq!(reader.count(), Some(count));
            assert_eq!(scan.footer().map(|footer| footer.count), Some(count));
            assert_eq!(reader.compression(), compression);
        }
        // Every large value that the database holds lies in one of the files.
        for (key, value) in expected.iter().filter(|(_, value)| value.len() >= 200) {
            assert_eq!(
                current.get(key),
                Some(&true),
                "{name}: {} of {} bytes",
                key.escape_ascii(),
                value.len()
            );
        }
        assert!(current.values().any(|&found| found), "{name}");
    }
}

/// A file that goes on with zeros for longer than any memory, as a sparse one may.
struct Sparse(AnyFile);

const SPARSE_SIZE: u64 = 1 << 61;

impl env::FileAround for Sparse {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn size(&self) -> crate::base::Result<u64> {
        Ok(SPARSE_SIZE)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> crate::base::Result<usize> {
        buffer.fill(0);
        self.0.read_at(offset, buffer)?;
        Ok(buffer.len())
    }
}

/// Whoever read the value, or went through the file, asked for as much memory, and the process
/// ended.
#[test]
fn a_record_longer_than_any_is_damage_and_takes_no_memory() {
    let record = RecordHeader::with_crc(1, 1 << 60, 0).encode();
    let header = BlobFileHeader { column_family: FAMILY, compression: 0 }.encode();
    let scene = Scene::holding(&[&header[..], &record, b"k"].concat());
    let sparse = Arc::new(Sparse(scene.file().into()));
    let records: Vec<_> = BlobFileScan::new(sparse.clone()).unwrap().collect();
    assert!(matches!(&records[..], [Err(error)] if error.is_corruption()), "{records:?}");
    let reader = BlobFileReader::open_unsealed(sparse, FAMILY).unwrap();
    let offset = (HEADER_SIZE + RECORD_HEADER_SIZE + 1) as u64;
    let index = BlobIndex { file: NUMBER, offset, size: 1 << 60, compression: 0 };
    assert!(reader.get(b"k", &index, true).unwrap_err().is_corruption());
    assert!(reader.get(b"k", &index, false).unwrap_err().is_corruption());
    let request = BlobRequest { reader: &reader, user_key: b"k", index };
    let (values, _) = get_together(&[request, request], true);
    assert!(values.iter().all(|value| value.as_ref().is_err_and(|error| error.is_corruption())));
}
