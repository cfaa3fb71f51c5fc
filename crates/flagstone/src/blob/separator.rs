//! Which values leave the tables for blob files, and the writer that takes them there.

use std::sync::Arc;

use super::builder::{BlobBuilderSettings, BlobFileBuilder, BlobFileSummary};
use super::format::BlobIndex;
use super::walk::BlobPieces;
use crate::base::compression::CompressionType;
use crate::base::{FileNumber, Result};
use crate::env::WritableFile;

/// A value that lies uncompressed in a blob file stays so from this many bytes on, whatever a
/// family's compression is: compressing it would take memory for all of it, twice.
pub const UNCOMPRESSED_FROM: u64 = 32 << 20;

/// Which values leave the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeparationPolicy {
    /// None.
    #[default]
    Never,
    /// Those of at least that many bytes; the empty value stays in any case.
    AtLeast {
        /// In bytes, uncompressed.
        min_blob_size: u64,
    },
}

impl SeparationPolicy {
    /// Whether a value of `size` bytes goes to a blob file.
    #[inline]
    pub fn separates(self, size: usize) -> bool {
        match self {
            Self::Never => false,
            Self::AtLeast { min_blob_size } => size > 0 && size as u64 >= min_blob_size,
        }
    }
}

/// What gives a new, empty blob file and its number: a closure.
pub trait OpenBlobFile: FnMut() -> Result<(FileNumber, Arc<dyn WritableFile>)> {}

impl<F: FnMut() -> Result<(FileNumber, Arc<dyn WritableFile>)>> OpenBlobFile for F {}

/// A sealed blob file that still has to be synced and registered.
pub struct FinishedBlobFile {
    /// What the MANIFEST is to say of it.
    pub summary: BlobFileSummary,
    /// The file, to be synced.
    pub file: Arc<dyn WritableFile>,
}

/// Takes the values of one flush or one part of a compaction to blob files, in the order of their
/// keys.
///
/// A file is opened when the first value for it arrives, through the closure given; it is sealed
/// once it has `blob_file_size` bytes.
pub struct BlobSeparator<F> {
    policy: SeparationPolicy,
    /// Longer values stay in the table: their codec cannot compress them, and all values of a file
    /// are compressed.
    value_size_max: usize,
    settings: BlobBuilderSettings,
    blob_file_size: u64,
    open_file: F,
    current: Option<BlobFileBuilder>,
    finished: Vec<FinishedBlobFile>,
}

impl<F> BlobSeparator<F>
where
    F: OpenBlobFile,
{
    /// A writer that has opened nothing yet. `open_file` gives an empty file and its number.
    pub fn new(
        policy: SeparationPolicy,
        settings: BlobBuilderSettings,
        blob_file_size: u64,
        open_file: F,
    ) -> Self {
        Self {
            policy,
            value_size_max: settings.compression.raw_size_max(),
            settings,
            blob_file_size,
            open_file,
            current: None,
            finished: Vec::new(),
        }
    }

    /// Whether a value of `size` bytes would leave.
    #[inline]
    pub fn separates(&self, size: usize) -> bool {
        size <= self.value_size_max && self.policy.separates(size)
    }

    /// Takes `value` to a blob file if the policy says so and the codec can; `None` if it stays in
    /// the table.
    ///
    /// # Errors
    /// Those of `open_file`, and `IoError`: the separator is then of no further use.
    pub fn separate(&mut self, user_key: &[u8], value: &[u8]) -> Result<Option<BlobIndex>> {
        if !self.separates(value.len()) {
            return Ok(None);
        }
        let index = self.builder()?.add(user_key, value)?;
        self.seal_if_full()?;
        Ok(Some(index))
    }

    /// Whether a value of `size` bytes, which lies uncompressed in a blob file, goes to another one
    /// piece by piece.
    pub fn takes_pieces(&self, size: u64) -> bool {
        let is_kept_as_it_is =
            self.settings.compression == CompressionType::None || size >= UNCOMPRESSED_FROM;
        is_kept_as_it_is && self.policy.separates(usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// [`Self::separate`] of a value that is read piece by piece. Where values are compressed it
    /// gets a file of its own, uncompressed. `None`, with nothing read, if it must be read as a
    /// whole.
    ///
    /// # Errors
    /// As [`Self::separate`]; those of the pieces.
    pub fn separate_pieces(
        &mut self,
        user_key: &[u8],
        pieces: &mut BlobPieces,
    ) -> Result<Option<BlobIndex>> {
        // The checksum in the header is of the record's own key.
        if pieces.key() != user_key || !self.takes_pieces(pieces.size()) {
            return Ok(None);
        }
        let header = *pieces.header();
        if self.settings.compression == CompressionType::None {
            let index =
                self.builder()?.add_pieces(user_key, &header, &mut || pieces.next_piece())?;
            self.seal_if_full()?;
            return Ok(Some(index));
        }
        let (number, file) = (self.open_file)()?;
        let settings =
            BlobBuilderSettings { compression: CompressionType::None, ..self.settings.clone() };
        let mut builder = BlobFileBuilder::new(file.clone(), number, &settings)?;
        let index = builder.add_pieces(user_key, &header, &mut || pieces.next_piece())?;
        self.finished.push(FinishedBlobFile { summary: builder.finish()?, file });
        Ok(Some(index))
    }

    /// The file to which the next value goes.
    fn builder(&mut self) -> Result<&mut BlobFileBuilder> {
        if self.current.is_none() {
            let (number, file) = (self.open_file)()?;
            self.current = Some(BlobFileBuilder::new(file, number, &self.settings)?);
        }
        Ok(self.current.as_mut().expect("it was opened"))
    }

    fn seal_if_full(&mut self) -> Result<()> {
        let is_full =
            self.current.as_ref().is_some_and(|builder| builder.file_size() >= self.blob_file_size);
        if is_full { self.seal() } else { Ok(()) }
    }

    /// Seals the last file; all files that were written, for the caller to sync and register.
    ///
    /// # Errors
    /// `IoError`.
    pub fn finish(mut self) -> Result<Vec<FinishedBlobFile>> {
        self.seal()?;
        Ok(self.finished)
    }

    fn seal(&mut self) -> Result<()> {
        if let Some(builder) = self.current.take() {
            let file = builder.file().clone();
            self.finished.push(FinishedBlobFile { summary: builder.finish()?, file });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
