use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, WritableFile, read_file};
use std::path::Path;

fn new_file(fs: &MemoryFileSystem) -> Arc<dyn WritableFile> {
    fs.create_directory(Path::new("/db")).unwrap();
    fs.create_writable(Path::new("/db/000010.blob"), IoMode::Buffered).unwrap()
}

fn content(fs: &MemoryFileSystem) -> Vec<u8> {
    read_file(fs, Path::new("/db/000010.blob"), 1 << 20).unwrap()
}

#[test]
fn golden_file_of_two_values() {
    let fs = MemoryFileSystem::new();
    let settings = BlobBuilderSettings::default();
    let mut builder = BlobFileBuilder::new(new_file(&fs), FileNumber(10), &settings).unwrap();
    let first = builder.add(b"a2", b"twotwo").unwrap();
    let second = builder.add(b"a3", b"threee").unwrap();
    assert_eq!((first.offset, second.offset), (0x40, 0x68));
    let size = builder.file_size();
    let summary = builder.finish().unwrap();
    assert_eq!(summary, BlobFileSummary { number: FileNumber(10), count: 2, total_bytes: 80 });

    let mut expected = vec![0x37, 0x8f, 0x24, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    expected.extend_from_slice(&[0; 16]);
    for (crc, key_and_value) in
        [([0x72, 0xcc, 0x2e, 0x19], b"a2twotwo"), ([0x4e, 0xb5, 0xd3, 0x1b], b"a3threee")]
    {
        expected.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[0; 8]);
        expected.extend_from_slice(&[0xc9, 0x8f, 0x4e, 0x60]);
        expected.extend_from_slice(&crc);
        expected.extend_from_slice(key_and_value);
    }
    expected.extend_from_slice(&[0x37, 0x8f, 0x24, 0, 2]);
    expected.extend_from_slice(&[0; 23]);
    expected.extend_from_slice(&[0x33, 0xfc, 0x82, 0xc9]);
    assert_eq!(content(&fs), expected);
    assert_eq!(size, expected.len() as u64);
}

#[test]
fn values_are_stored_compressed_even_where_that_is_longer() {
    let fs = MemoryFileSystem::new();
    let settings =
        BlobBuilderSettings { compression: CompressionType::Lz4, ..BlobBuilderSettings::default() };
    let mut builder = BlobFileBuilder::new(new_file(&fs), FileNumber(10), &settings).unwrap();
    let index = builder.add(b"k", b"abcd").unwrap();
    builder.finish().unwrap();
    assert_eq!((index.size, index.compression), (6, 4));
    assert_eq!(content(&fs)[index.offset as usize..][..6], [0x04, 0x40, 0x61, 0x62, 0x63, 0x64]);
}
