//! Reading a value from front to back, piece by piece: it need not fit into memory.
//!
//! The record's header and key are checked first. The record's checksum covers all of it, so the last piece is handed out only
//! where that is right; pieces before it may be of a damaged value.

use std::sync::Arc;

use bytes::Bytes;

use super::format::{BlobIndex, RECORD_HEADER_SIZE, RecordHeader};
use super::reader::{BlobFileReader, CHECK_SIZE, check_header, read_exactly};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::CompressionType;
use crate::base::{Error, Result};

/// Whether the value that an index leads to is read in pieces where that can be: it is stored as it is, and has more than one.
pub fn is_read_in_pieces(index: &BlobIndex) -> bool {
    index.compression == CompressionType::None.to_byte() && index.size > CHECK_SIZE
}

/// How far a record is read.
pub(super) struct RecordWalk {
    user_key: Vec<u8>,
    index: BlobIndex,
    /// Where the record starts in the file.
    start: u64,
    /// The key in the record, which may have other bytes than `user_key`.
    key: Vec<u8>,
    header: RecordHeader,
    /// Of the key and what was read of the value.
    crc: u32,
    /// Bytes of the value that were read.
    at: u64,
}

impl RecordWalk {
    /// Reads what stands before the value of `user_key`, and checks it.
    ///
    /// # Errors
    /// As [`BlobFileReader::get`].
    pub(super) fn begin(reader: &BlobFileReader, user_key: &[u8], index: &BlobIndex) -> Result<Self> {
        let record = reader.record(user_key, index)?;
        let place = |error: Error| error.at(reader.file().path()).at_offset(record.start);
        let head = read_exactly(&**reader.file(), record.start, (index.offset - record.start) as usize)?;
        let header = check_header(&head, user_key.len(), index).map_err(place)?;
        let key = head[RECORD_HEADER_SIZE..].to_vec();
        reader.check_bytes(&key, user_key).map_err(place)?;
        let crc = crc32c(&key);
        Ok(Self { user_key: user_key.to_vec(), index: *index, start: record.start, key, header, crc, at: 0 })
    }

    /// The next piece as stored, of up to `CHECK_SIZE` bytes; `None` at the end.
    ///
    /// # Errors
    /// `Corruption`, instead of the last piece, if a checksum is wrong or the record is of another key; `IoError`.
    pub(super) fn next(&mut self, reader: &BlobFileReader) -> Result<Option<Vec<u8>>> {
        let length = CHECK_SIZE.min(self.index.size - self.at) as usize;
        let piece = read_exactly(&**reader.file(), self.index.offset + self.at, length)?;
        self.crc = crc32c_append(self.crc, &piece);
        self.at += length as u64;
        if self.at == self.index.size {
            let place = |error: Error| error.at(reader.file().path()).at_offset(self.start);
            self.header.check_blob_crc(self.crc).map_err(place)?;
            // It is sound: now the order may be asked about it.
            reader.check_key(&self.key, &self.user_key).map_err(place)?;
        }
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

/// A value that is stored as it is, being read from front to back.
pub struct BlobPieces {
    reader: Arc<BlobFileReader>,
    walk: RecordWalk,
}

impl BlobPieces {
    /// Bytes that one piece has at most.
    pub const PIECE_MAX: u64 = CHECK_SIZE;

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// `Corruption`, instead of the last piece, if the value is not what was written; `IoError`. No further piece is of use then.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>> {
        Ok(self.walk.next(&self.reader)?.map(Bytes::from))
    }

    /// Bytes of the whole value.
    pub fn size(&self) -> u64 {
        self.walk.index.size
    }

    /// What the record says of itself; its checksum of key and value is right only if no piece fails.
    pub fn header(&self) -> &RecordHeader {
        &self.walk.header
    }

    /// The key in the record: where the order takes other bytes for the same key, it may have those.
    pub fn key(&self) -> &[u8] {
        &self.walk.key
    }

    /// The last bytes of the value, or all that there are. No checksum covers them before the last piece is read.
    ///
    /// # Errors
    /// As [`BlobFileReader::get_range`].
    pub fn tail(&self, size: u64) -> Result<Vec<u8>> {
        let end = self.size();
        self.reader.get_range(&self.walk.key, &self.walk.index, end.saturating_sub(size)..end)
    }
}

impl BlobFileReader {
    /// Begins to read a value that is stored as it is, piece by piece.
    ///
    /// # Errors
    /// `NotSupported` if the file is compressed; as [`BlobFileReader::get`] otherwise, but that the value itself is checked as it
    /// is read.
    pub fn pieces(self: &Arc<Self>, user_key: &[u8], index: &BlobIndex) -> Result<BlobPieces> {
        if self.compression() != CompressionType::None {
            return Err(Error::not_supported("a compressed value in pieces").at(self.file().path()));
        }
        let walk = self.by_either_key(user_key, index, |key| {
            let walk = RecordWalk::begin(self, key, index)?;
            // A key of another length is asked about by the order, so its record must be sound.
            if key.len() != user_key.len() {
                self.check(key, index)?;
            }
            Ok(walk)
        })?;
        Ok(BlobPieces { reader: self.clone(), walk })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::base::compression::CompressionOptions;
    use crate::base::{ColumnFamilyId, FileNumber};
    use crate::blob::{
        BlobBuilderSettings, BlobFileBuilder, BlobFileScan, BlobSeparator, SeparationPolicy,
        UNCOMPRESSED_FROM,
    };
    use crate::env::memory::MemoryFileSystem;
    use crate::env::{File, FileSystem, OpenMode};

    const FAMILY: ColumnFamilyId = ColumnFamilyId(0);

    fn value(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at / 251 * 31 + at) as u8).collect()
    }

    fn created(number: u64) -> Arc<dyn File> {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/db")).unwrap();
        fs.open(&Path::new("/db").join(number.to_string()), OpenMode::Create).unwrap()
    }

    fn settings(compression: CompressionType) -> BlobBuilderSettings {
        let compression_options = CompressionOptions::default();
        BlobBuilderSettings { column_family: FAMILY, compression, compression_options, ..Default::default() }
    }

    /// A file of values of these sizes, all of the key `k`.
    fn written(sizes: &[usize]) -> (Arc<dyn File>, Vec<BlobIndex>) {
        let file = created(1);
        let mut builder =
            BlobFileBuilder::new(file.clone(), FileNumber(1), &settings(CompressionType::None)).unwrap();
        let indexes = sizes.iter().map(|size| builder.add(b"k", &value(*size)).unwrap()).collect();
        builder.finish().unwrap();
        (file, indexes)
    }

    fn opened(file: &Arc<dyn File>) -> Arc<BlobFileReader> {
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
            assert!(error.is_corruption() && error.path().is_some() && error.offset().is_some(), "{error}");
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
        assert!(moved(size, CompressionType::None, Some(size / 2)).is_err_and(|error| error.is_corruption()));

        // Where values are compressed, only one that is very large stays as it is, in a file of its own.
        assert_eq!(moved(size, CompressionType::Lz4, None).unwrap().0, None);
        let (index, files) = moved(UNCOMPRESSED_FROM, CompressionType::Lz4, None).unwrap();
        assert_eq!((files.len(), index.unwrap().compression), (2, 0));
        let found = opened(&files[0]).get(b"k", &index.unwrap(), true).unwrap();
        assert!(*found == value(UNCOMPRESSED_FROM as usize)[..]);
    }
}
