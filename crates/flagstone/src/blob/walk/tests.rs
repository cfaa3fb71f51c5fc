use std::path::Path;

use super::*;
use crate::base::compression::CompressionOptions;
use crate::base::{ColumnFamilyId, FileNumber};
use crate::blob::{
    BlobBuilderSettings, BlobFileBuilder, BlobFileScan, BlobSeparator, SeparationPolicy,
    UNCOMPRESSED_FROM,
};
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, WritableFile};

const FAMILY: ColumnFamilyId = ColumnFamilyId(0);

fn value(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 251 * 31 + at) as u8).collect()
}

fn created(number: u64) -> Arc<dyn WritableFile> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    fs.create_writable(&Path::new("/db").join(number.to_string()), IoMode::Buffered).unwrap()
}

fn settings(compression: CompressionType) -> BlobBuilderSettings {
    let compression_options = CompressionOptions::default();
    BlobBuilderSettings {
        column_family: FAMILY,
        compression,
        compression_options,
        ..Default::default()
    }
}

/// A file of values of these sizes, all of the key `k`.
fn written(sizes: &[usize]) -> (Arc<dyn WritableFile>, Vec<BlobIndex>) {
    let file = created(1);
    let mut builder =
        BlobFileBuilder::new(file.clone(), FileNumber(1), &settings(CompressionType::None))
            .unwrap();
    let indexes = sizes.iter().map(|size| builder.add(b"k", &value(*size)).unwrap()).collect();
    builder.finish().unwrap();
    (file, indexes)
}

fn opened(file: &Arc<dyn WritableFile>) -> Arc<BlobFileReader> {
    Arc::new(BlobFileReader::open(file.clone(), FAMILY).unwrap())
}

/// The bytes that come, and the error that ends them.
fn all(mut pieces: BlobPieces) -> (Vec<u8>, Option<Error>) {
    let mut bytes = Vec::new();
    loop {
        match pieces.next_piece() {
            Ok(Some(piece)) => {
                assert!(piece.len() as u64 <= BlobPieces::PIECE_MAX);
                bytes.extend_from_slice(&piece);
            }
            Ok(None) => return (bytes, None),
            Err(error) => return (bytes, Some(error)),
        }
    }
}

#[test]
fn pieces_together_are_the_value() {
    let piece = CHECK_SIZE as usize;
    let sizes = [0, 1, piece - 1, piece, piece + 1, 3 * piece];
    let (file, indexes) = written(&sizes);
    for (size, index) in sizes.iter().zip(&indexes) {
        let mut pieces = opened(&file).pieces(b"k", index).unwrap();
        assert_eq!(pieces.size(), *size as u64);
        assert_eq!(pieces.tail(3).unwrap(), value(*size)[size.saturating_sub(3)..]);
        let (bytes, error) = all(opened(&file).pieces(b"k", index).unwrap());
        assert!(bytes == value(*size) && error.is_none(), "{size}: {error:?}");
        while pieces.next_piece().unwrap().is_some() {}
        assert!(pieces.next_piece().unwrap().is_none(), "the end stays the end");
    }
}

/// A damaged byte is found, wherever it lies, and the last piece is never handed out then.
#[test]
fn damage_comes_out_instead_of_the_last_piece() {
    let size = 2 * CHECK_SIZE + 10;
    for at in [0, CHECK_SIZE, size - 1] {
        let (file, indexes) = written(&[size as usize]);
        let byte = value(size as usize)[at as usize];
        file.write_at(indexes[0].offset + at, &[byte ^ 1]).unwrap();
        let (bytes, error) = all(opened(&file).pieces(b"k", &indexes[0]).unwrap());
        assert_eq!(bytes.len() as u64, 2 * CHECK_SIZE);
        let error = error.unwrap();
        assert!(
            error.is_corruption() && error.path().is_some() && error.offset().is_some(),
            "{error}"
        );
    }
    let (file, indexes) = written(&[size as usize]);
    assert!(opened(&file).pieces(b"l", &indexes[0]).is_err_and(|error| error.is_corruption()));
    // In the part of the header that has a checksum of its own.
    file.write_at(indexes[0].offset - 10, b"?").unwrap();
    assert!(opened(&file).pieces(b"k", &indexes[0]).is_err_and(|error| error.is_corruption()));
}

/// It was read, and written, as a whole.
#[test]
fn a_value_goes_to_another_file_piece_by_piece() {
    let size = 3 * CHECK_SIZE + 5;
    let moved = |size: u64, compression, damage: Option<u64>| {
        let (file, indexes) = written(&[size as usize]);
        if let Some(at) = damage {
            file.write_at(indexes[0].offset + at, b"\x01\x02\x03").unwrap();
        }
        let mut files = Vec::new();
        let policy = SeparationPolicy::AtLeast { min_blob_size: 100 };
        let mut number = 10;
        let open = || {
            number += 1;
            let file = created(number);
            files.push(file.clone());
            Ok((FileNumber(number), file))
        };
        let mut separator = BlobSeparator::new(policy, settings(compression), u64::MAX, open);
        let mut pieces = opened(&file).pieces(b"k", &indexes[0]).unwrap();
        let index = separator.separate_pieces(b"k", &mut pieces)?;
        if index.is_some() {
            separator.separate(b"small", &[7; 200]).unwrap();
        }
        separator.finish().unwrap();
        Ok::<_, Error>((index, files))
    };
    let (index, files) = moved(size, CompressionType::None, None).unwrap();
    let found = opened(&files[0]).get(b"k", &index.unwrap(), true).unwrap();
    assert!(*found == value(size as usize)[..] && files.len() == 1);
    assert_eq!(BlobFileScan::new(files[0].clone()).unwrap().map(Result::unwrap).count(), 2);
    assert!(
        moved(size, CompressionType::None, Some(size / 2))
            .is_err_and(|error| error.is_corruption())
    );

    // Where values are compressed, only one that is very large stays as it is, in a file of its
    // own.
    assert_eq!(moved(size, CompressionType::Lz4, None).unwrap().0, None);
    let (index, files) = moved(UNCOMPRESSED_FROM, CompressionType::Lz4, None).unwrap();
    assert_eq!((files.len(), index.unwrap().compression), (2, 0));
    let found = opened(&files[0]).get(b"k", &index.unwrap(), true).unwrap();
    assert!(*found == value(UNCOMPRESSED_FROM as usize)[..]);
}
