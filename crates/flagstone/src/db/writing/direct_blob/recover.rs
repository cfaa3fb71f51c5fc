//! Blobs that a replayed WAL names: first it is checked that they are whole, ahead of the replay;
//! then the memtable that gets their addresses is told of their files.

use std::sync::Arc;

use crate::base::compression::CompressionType;
use crate::base::{Code, Error, FileNumber, Result, Sometimes};
use crate::blob::{
    BlobFileReader, BlobFileSummary, BlobIndex, FOOTER_SIZE, HEADER_SIZE, RECORD_HEADER_SIZE,
};
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::family::generation::Generation;
use crate::db::writing::direct_blob::DirectBlobs;

impl DirectBlobs {
    /// Whether the blob is there, and whole.
    pub(in crate::db::writing) fn check_recovered(
        &self,
        family: &Family,
        key: &[u8],
        index: &BlobIndex,
    ) -> Result<()> {
        if CompressionType::from_byte(index.compression).is_none() {
            return Err(Error::not_supported(format!(
                "blob compression type {:#04x}",
                index.compression
            )));
        }
        if family.current.load().version.blob_files.contains_key(&index.file) {
            return self.tables.blob_file(family, index.file)?.check(key, index);
        }
        self.unsealed_reader(family, index.file)?.check(key, index)
    }

    /// What is not there, or not yet, of a blob that the WAL of another process names.
    ///
    /// # Errors
    /// `IoError`.
    pub(in crate::db::writing) fn find(
        &self,
        family: &Family,
        index: &BlobIndex,
    ) -> Result<Option<Error>> {
        if family.current.load().version.blob_files.contains_key(&index.file) {
            return Ok(None);
        }
        let reader = match self.unsealed_reader(family, index.file) {
            Err(error) if error.is_not_found() || error.is_corruption() => return Ok(Some(error)),
            opened => opened?,
        };
        let (size, end) = (reader.file().size()?, index.offset.saturating_add(index.size));
        Ok((size < end).then(|| {
            Error::corruption(format!("a value should end at {end}, the file has {size} bytes"))
                .at(reader.file().path())
        }))
    }

    fn unsealed_reader(&self, family: &Family, number: FileNumber) -> Result<Arc<BlobFileReader>> {
        self.tables.unsealed_blob_file(family, number).map_err(|error| {
            // The writer of the index knew what it is compressed with: the file's header is
            // damaged.
            let is_damage = error.code() == Code::NotSupported;
            if is_damage {
                Error::corruption(error.message()).at(error.path().unwrap_or(&self.context.path))
            } else {
                error
            }
        })
    }

    /// Tells a memtable, which gets the address of a blob that was found whole, of the file.
    pub(in crate::db::writing) fn take_recovered(
        &self,
        family: &Family,
        mem: &Generation,
        key: &[u8],
        index: &BlobIndex,
    ) -> Result<()> {
        if family.current.load().version.blob_files.contains_key(&index.file) {
            mem.blobs.note_known(index.file);
            return Ok(());
        }
        let reader = self.unsealed_reader(family, index.file)?;
        if self.holds_nothing_else(family, key, index, &reader)? && !self.context.read_only {
            self.adopt(family, mem, key, index, reader.compression())
        } else {
            Sometimes::BlobRecovered.reached();
            mem.blobs.note_recovered(index.file);
            Ok(())
        }
    }

    /// Whether the file consists of this one blob: then it stays as it is, be it larger than
    /// memory.
    fn holds_nothing_else(
        &self,
        family: &Family,
        key: &[u8],
        index: &BlobIndex,
        reader: &BlobFileReader,
    ) -> Result<bool> {
        let file = reader.file();
        let is_first = index.offset == (HEADER_SIZE + RECORD_HEADER_SIZE + key.len()) as u64;
        // Most are not, and need no question to the system.
        if !is_first || file.size()? != index.offset + index.size + FOOTER_SIZE as u64 {
            return Ok(false);
        }
        match BlobFileReader::open(file.clone(), family.id) {
            Ok(sealed) => Ok(sealed.count() == Some(1)),
            Err(error) if error.is_corruption() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn adopt(
        &self,
        family: &Family,
        mem: &Generation,
        key: &[u8],
        index: &BlobIndex,
        compression: CompressionType,
    ) -> Result<()> {
        Sometimes::WholeBlobRecovered.reached();
        let number = index.file;
        let paths = &family.paths;
        let file = self.context.env.fs.reopen_writable(&paths.blob(number))?;
        // Its maker may have died before that.
        self.context.names.before_making(paths.of_blobs()).sync()?;
        let total_bytes = index.record_bytes(key.len());
        let summary = BlobFileSummary { number, count: 1, total_bytes };
        let claim = self.disk.claim_blob_file(number, paths);
        mem.blobs.attach(Arc::new(DirectFile::whole(file, compression, summary, true, claim)));
        Ok(())
    }
}
