//! Reads large values from blob files that may be damaged in part or missing.
//!
//! A record is used if it is intact: its header and its bytes have checksums, and it contains its
//! key. The file's own header and footer are not needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::directory::{Files, Listed};
use super::files::SourceFiles;
use super::history::RecordedBlobs;
use super::report::{SalvageReport, SalvagedFile, SalvagedKind};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::{CompressionType, decompress};
use crate::base::{Error, FileNumber, Result};
use crate::blob::{
    BlobFileScan, BlobIndex, BlobPieces, PART_SIZE_MAX, RECORD_HEADER_SIZE, RecordHeader,
    is_read_in_pieces,
};
use crate::env::{RandomAccessFile, read_until_end};

/// So many missing files are named.
const MISSING_NAMED: usize = 1000;
/// The largest value that there is.
const VALUE_SIZE_MAX: usize = u32::MAX as usize;

/// Blob files by the sizes that the MANIFEST has, which tell where a file has the name of another:
/// it has not the size of that one, but of one that is missed, and no other file has it. One that
/// was removed is not missed: what has its size by chance is a damaged file.
pub(super) fn by_recorded_sizes(
    recorded: &BTreeMap<FileNumber, RecordedBlobs>,
    files: Files,
    report: &mut SalvageReport,
) -> Files {
    let has_size = |number: &FileNumber, listed: &Listed| {
        recorded.get(number).is_some_and(|blobs| blobs.bytes == listed.bytes)
    };
    let is_missed = |number: &FileNumber| {
        files.get(number).is_none_or(|files| files.iter().all(|listed| !has_size(number, listed)))
    };
    let mut missed: BTreeMap<u64, Vec<FileNumber>> = BTreeMap::new();
    for (&number, blobs) in
        recorded.iter().filter(|(number, blobs)| !blobs.is_all_garbage() && is_missed(number))
    {
        missed.entry(blobs.bytes).or_default().push(number);
    }
    let is_stranger = |number: &FileNumber, listed: &Listed| {
        recorded.contains_key(number) && !has_size(number, listed)
    };
    let mut strangers: BTreeMap<u64, usize> = BTreeMap::new();
    for listed in files
        .iter()
        .flat_map(|(number, files)| files.iter().filter(|listed| is_stranger(number, listed)))
    {
        *strangers.entry(listed.bytes).or_default() += 1;
    }
    let mut found = Files::new();
    for (number, listed) in files
        .iter()
        .flat_map(|(number, files)| files.iter().map(|listed| (*number, listed.clone())))
    {
        let own = match missed.get(&listed.bytes).map(Vec::as_slice) {
            Some(&[own])
                if is_stranger(&number, &listed) && strangers.get(&listed.bytes) == Some(&1) =>
            {
                own
            }
            _ => number,
        };
        if own != number {
            report.note(format!(
                "{} is the blob file {own}.blob, judging by the size in the MANIFEST, and was read as such.",
                listed.path.display()
            ));
        }
        found.entry(own).or_default().push(listed);
    }
    found
}

/// An intact value.
pub(super) enum FoundBlob {
    /// Unfolded.
    Value(Vec<u8>),
    /// One that need not fit into memory, and is stored as it is.
    Large(LargeBlob),
}

impl FoundBlob {
    /// The value in memory.
    ///
    /// # Errors
    /// As [`StoredPieces::next`].
    pub(super) fn into_whole(self) -> Result<Vec<u8>> {
        let mut large = match self {
            Self::Value(value) => return Ok(value),
            Self::Large(large) => large,
        };
        let mut value = Vec::new();
        while let Some(piece) = large.pieces.next()? {
            value.extend_from_slice(&piece);
        }
        Ok(value)
    }
}

/// A large value whose record was found intact.
pub(super) struct LargeBlob {
    /// What the record says of itself.
    pub(super) header: RecordHeader,
    /// The value.
    pub(super) pieces: StoredPieces,
}

/// Bytes of a file, from front to back.
pub(super) struct StoredPieces {
    file: Arc<dyn RandomAccessFile>,
    at: u64,
    end: u64,
}

impl StoredPieces {
    /// The next ones; `None` at the end.
    ///
    /// # Errors
    /// `Corruption` if the file ends before; `IoError`.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>> {
        let mut piece = vec![0; BlobPieces::PIECE_MAX.min(self.end - self.at) as usize];
        let read = read_until_end(&*self.file, self.at, &mut piece)?;
        if read < piece.len() {
            return Err(Error::corruption("a large value is lost: the file ends before it does"));
        }
        self.at += read as u64;
        Ok(Some(Bytes::from(piece)).filter(|piece| !piece.is_empty()))
    }
}

/// The blob files of the source.
pub(super) struct Blobs {
    source: Arc<SourceFiles>,
    files: Files,
    /// Values taken from each, by number and place among those of that number.
    taken: BTreeMap<(FileNumber, usize), u64>,
    /// Files that are missing although something refers to them.
    missing: BTreeSet<FileNumber>,
}

impl Blobs {
    pub(super) fn new(source: Arc<SourceFiles>, files: Files) -> Self {
        Self { source, files, taken: BTreeMap::new(), missing: BTreeSet::new() }
    }

    /// The value that `index` refers to. The key in its record has `suffix` more bytes, of a
    /// timestamp.
    ///
    /// # Errors
    /// `Corruption` naming file and offset if the record is not intact; `IoError`.
    pub(super) fn get(
        &mut self,
        (user_key, suffix): (&[u8], usize),
        index: &BlobIndex,
    ) -> Result<FoundBlob> {
        let Some(files) = self.files.get(&index.file) else {
            if self.missing.len() <= MISSING_NAMED {
                self.missing.insert(index.file);
            }
            return Err(Error::corruption(format!("the blob file {}.blob is missing", index.file)));
        };
        let mut why = None;
        for (place, listed) in files.iter().enumerate() {
            match self.read(listed, (user_key, suffix), index) {
                Ok(value) => {
                    *self.taken.entry((index.file, place)).or_default() += 1;
                    return Ok(value);
                }
                Err(error) => drop(why.get_or_insert(error)),
            }
        }
        Err(why.expect("there is a file of each number"))
    }

    fn read(
        &self,
        listed: &Listed,
        (user_key, suffix): (&[u8], usize),
        index: &BlobIndex,
    ) -> Result<FoundBlob> {
        let key_size = user_key.len() + suffix;
        let head_size = (RECORD_HEADER_SIZE + key_size) as u64;
        let place =
            |error: Error| error.at(&listed.path).at_offset(index.offset.saturating_sub(head_size));
        let bad = |what: &str| place(Error::corruption(format!("a large value is lost: {what}")));
        let end = index.offset.checked_add(index.size);
        let start = index.offset.checked_sub(head_size);
        let (Some(start), Some(end)) = (start, end) else {
            return Err(bad("its address is invalid"));
        };
        if end > listed.bytes {
            return Err(bad("the file ends before it does"));
        }
        if index.size > PART_SIZE_MAX {
            return Err(bad("its size is impossible"));
        }
        let file = self.source.at(&listed.path);
        let read = |offset: u64, size: u64| -> Result<Vec<u8>> {
            let mut bytes = vec![0; usize::try_from(size).map_err(|_| bad("it is too large"))?];
            if read_until_end(&*file, offset, &mut bytes).map_err(place)? == bytes.len() {
                Ok(bytes)
            } else {
                Err(bad("the file ends before it does"))
            }
        };
        let head = read(start, head_size)?;
        let header = RecordHeader::decode(&head).map_err(place)?;
        let stored_key = &head[RECORD_HEADER_SIZE..];
        let is_own = header.key_size == key_size as u64
            && header.value_size == index.size
            && stored_key.starts_with(user_key);
        if !is_own {
            return Err(bad("the record there has another key or size"));
        }
        let crc = crc32c(stored_key);
        if is_read_in_pieces(index) {
            let mut pieces = StoredPieces { file: file.clone(), at: index.offset, end };
            let mut crc = crc;
            while let Some(piece) = pieces.next().map_err(place)? {
                crc = crc32c_append(crc, &piece);
            }
            header.check_blob_crc(crc).map_err(place)?;
            let pieces = StoredPieces { file: file.clone(), at: index.offset, end };
            return Ok(FoundBlob::Large(LargeBlob { header, pieces }));
        }
        let stored = read(index.offset, index.size)?;
        header.check_blob_crc(crc32c_append(crc, &stored)).map_err(place)?;
        let kind = CompressionType::from_byte(index.compression)
            .ok_or_else(|| bad("unknown compression"))?;
        decompress(kind, &stored, None, VALUE_SIZE_MAX).map_err(place).map(FoundBlob::Value)
    }

    /// Lists the files in the report. Where nothing tells which tables there were, they may be what
    /// is missing of a file that nothing refers to.
    pub(super) fn describe(self, knows_tables: bool, report: &mut SalvageReport) {
        for (number, files) in self.files {
            let of_number = self.taken.range((number, 0)..=(number, usize::MAX));
            let is_wanted = of_number.map(|(_, count)| count).sum::<u64>() > 0;
            for (place, listed) in files.into_iter().enumerate() {
                let records = self.taken.get(&(number, place)).copied().unwrap_or(0);
                let holds_a_value = || {
                    let scan = BlobFileScan::new(self.source.at(&listed.path));
                    scan.is_ok_and(|mut records| {
                        records.next().is_some_and(|record| record.is_ok())
                    })
                };
                if !is_wanted && !knows_tables && holds_a_value() {
                    let what = "nothing that is left refers to the values in it: they are garbage, or the tables that referred \
                                to them are lost";
                    report.lose_whole(Error::corruption(what).at(&listed.path), None);
                }
                let why = if is_wanted {
                    "another file with its number holds the values that are referred to"
                } else {
                    "nothing that is left refers to it"
                };
                report.files.push(SalvagedFile {
                    path: listed.path,
                    kind: SalvagedKind::Blob,
                    bytes: listed.bytes,
                    records,
                    left_out: (records == 0).then(|| why.to_string()),
                });
            }
        }
        for number in self.missing.iter().take(MISSING_NAMED) {
            report.note(format!("{number}.blob is missing, although keys refer to it."));
        }
        if self.missing.len() > MISSING_NAMED {
            report.note("More blob files that keys refer to are missing.");
        }
    }
}
