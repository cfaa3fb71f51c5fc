use std::path::Path;

use super::*;
use crate::base::{Code, ColumnFamilyId, FileNumber};
use crate::blob::{BlobBuilderSettings, BlobFileBuilder};
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, WritableFile};

const FAMILY: ColumnFamilyId = ColumnFamilyId(0);

fn large() -> Vec<u8> {
    (0..3_000_001u32).map(|at| (at / 251 * 31 + at) as u8).collect()
}

/// A file with a large value between small ones.
fn written(compression: CompressionType) -> (Arc<dyn WritableFile>, BlobIndex) {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new("/db/b"), IoMode::Buffered).unwrap();
    let settings = BlobBuilderSettings { column_family: FAMILY, compression, ..Default::default() };
    let mut builder = BlobFileBuilder::new(file.clone(), FileNumber(1), &settings).unwrap();
    builder.add(b"a", b"small").unwrap();
    let index = builder.add(b"key", &large()).unwrap();
    builder.add(b"z", b"small").unwrap();
    builder.finish().unwrap();
    (file, index)
}

#[test]
fn parts_are_those_of_the_value_whether_its_pieces_are_known_or_not() {
    let (file, index) = written(CompressionType::None);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    let value = large();
    let size = value.len() as u64;
    let (_, made) = reader.get_verified_range(b"key", &index, 0..0, None).unwrap();
    let made = made.expect("the first read makes them");
    #[expect(clippy::reversed_empty_ranges, reason = "hostile")]
    let ranges = [
        0..1,
        0..size,
        65_535..65_537,
        65_536..131_072,
        1_000_000..1_200_000,
        size - 1..size + 5,
        size..size + 1,
        u64::MAX - 1..u64::MAX,
        7..3,
    ];
    for range in ranges {
        let expected = (range.start.min(size)..range.end.min(size)).map(|at| value[at as usize]);
        let expected: Vec<u8> = expected.collect();
        for known in [None, Some(&made)] {
            let (part, new) =
                reader.get_verified_range(b"key", &index, range.clone(), known).unwrap();
            assert_eq!(part, expected, "{range:?}");
            assert_eq!(new.is_none(), known.is_some());
        }
    }
}

#[test]
fn damage_is_found_in_the_pieces_that_are_read() {
    let (file, index) = written(CompressionType::None);
    let reader = BlobFileReader::open(file.clone(), FAMILY).unwrap();
    let (_, made) = reader.get_verified_range(b"key", &index, 0..1, None).unwrap();
    file.write_at(index.offset + 1_000_000, b"?").unwrap();
    let read = |range, known| reader.get_verified_range(b"key", &index, range, known);
    assert!(read(0..1, None).unwrap_err().is_corruption(), "nothing is trusted of a damaged value");
    assert_eq!(read(0..5, made.as_ref()).unwrap().0, large()[..5]);
    let piece = 1_000_000 / PIECE_SIZE * PIECE_SIZE;
    for range in [999_999..1_000_001, piece..piece + 1, 0..2_000_000] {
        assert!(read(range, made.as_ref()).unwrap_err().is_corruption());
    }
    assert!(read(piece - 10..piece, made.as_ref()).is_ok());
}

#[test]
fn checksums_of_another_value_are_not_gone_by() {
    let (file, index) = written(CompressionType::None);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    let (_, made) = reader.get_verified_range(b"key", &index, 0..1, None).unwrap();
    assert!(
        reader.get_verified_range(b"kez", &index, 0..1, made.as_ref()).unwrap_err().is_corruption()
    );
    for size in [index.size - 1, index.size - PIECE_SIZE, u64::MAX] {
        let index = BlobIndex { size, ..index };
        assert!(reader.get_verified_range(b"key", &index, 0..1, made.as_ref()).is_err());
    }
    let shorter: PieceChecksums = made.unwrap()[1..].into();
    assert!(reader.get_verified_range(b"key", &index, 0..9, Some(&shorter)).unwrap().1.is_some());
}

#[test]
fn a_part_of_a_compressed_value_is_refused() {
    let (file, index) = written(CompressionType::Lz4);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    let refused = reader.get_verified_range(b"key", &index, 0..1, None).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported);
}
