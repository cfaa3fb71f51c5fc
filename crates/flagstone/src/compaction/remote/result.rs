//! What a worker has done.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::format::{self, Fields, Token, put_flag};
use crate::base::coding::{put_fixed64, put_lps, put_varint32, put_varint64};
use crate::base::{FileNumber, Result};
use crate::compaction::JobCounts;
use crate::manifest::VersionEdit;

const MAGIC: &[u8; 8] = b"flagdone";

/// A file that a worker wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummedOutput {
    /// Its number.
    pub number: FileNumber,
    /// Its size in bytes.
    pub size: u64,
    /// XXH3-64 of its bytes.
    pub sum: u64,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompactionResult {
    /// That of the order.
    pub token: Token,
    /// Where the files lie.
    pub directory: PathBuf,
    /// The tables with their level, the blob files, and what became garbage in older ones. Nothing
    /// else is in it.
    pub changes: VersionEdit,
    /// All files that were written.
    pub files: Vec<SummedOutput>,
    /// Whether a filter made keys go, or older versions of them come back.
    pub is_filtered: bool,
    /// Keys that could not be processed normally, and what is wrong with them. Not all, if there
    /// are many.
    pub key_faults: Vec<(Vec<u8>, String)>,
    /// Figures.
    pub counts: JobCounts,
}

impl CompactionResult {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = format::begin(MAGIC);
        out.extend_from_slice(&self.token);
        put_lps(&mut out, self.directory.as_os_str().as_bytes());
        let mut changes = Vec::new();
        self.changes.encode(&mut changes);
        put_lps(&mut out, &changes);
        put_varint32(&mut out, self.files.len() as u32);
        for file in &self.files {
            put_varint64(&mut out, file.number.0);
            put_varint64(&mut out, file.size);
            put_fixed64(&mut out, file.sum);
        }
        put_flag(&mut out, self.is_filtered);
        put_varint32(&mut out, self.key_faults.len() as u32);
        for (key, words) in &self.key_faults {
            put_lps(&mut out, key);
            put_lps(&mut out, words.as_bytes());
        }
        self.counts.fields().into_iter().for_each(|count| put_varint64(&mut out, count));
        format::end(out)
    }

    /// Reads a message. What is in it need not be true.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for a message of another release.
    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut fields = Fields::of("the result of a compaction", MAGIC, message)?;
        let result = Self {
            token: fields.token()?,
            directory: Path::new(OsStr::from_bytes(fields.lps("directory")?)).to_path_buf(),
            changes: VersionEdit::decode(fields.lps("changes")?)?,
            files: fields.list("files", |fields| {
                Ok(SummedOutput {
                    number: fields.number("file")?,
                    size: fields.v64("size")?,
                    sum: fields.fixed64("checksum")?,
                })
            })?,
            is_filtered: fields.flag("filtered")?,
            key_faults: fields.list("key faults", |fields| {
                Ok((fields.lps("key")?.to_vec(), fields.text("key fault")?))
            })?,
            counts: JobCounts::read(&mut fields)?,
        };
        fields.end()?;
        Ok(result)
    }
}

impl JobCounts {
    fn fields(&self) -> [u64; 8] {
        [
            self.raw_bytes,
            self.blob_bytes,
            self.relocated_blobs,
            self.relocated_bytes,
            self.entries_read,
            self.key_faults,
            self.subcompactions,
            self.micros,
        ]
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let mut count = || fields.v64("count");
        Ok(Self {
            raw_bytes: count()?,
            blob_bytes: count()?,
            relocated_blobs: count()?,
            relocated_bytes: count()?,
            entries_read: count()?,
            key_faults: count()?,
            subcompactions: count()?,
            micros: count()?,
        })
    }
}
