//! Blobs that a replayed WAL names.

use std::sync::Arc;

use super::files::DirectFile;
use crate::base::compression::CompressionType;
use crate::base::{Code, Error, FileNumber, Mutant, Result, Sometimes};
use crate::batch::{BatchView, Operation};
use crate::blob::{BlobFileReader, BlobFileSummary, BlobIndex, FOOTER_SIZE, HEADER_SIZE, RECORD_HEADER_SIZE};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::generation::Generation;
use crate::env::OpenMode;
use crate::manifest::BlobFileClaim;

/// A blob that a batch names.
struct Named<'a> {
    family: Arc<Family>,
    mem: Arc<Generation>,
    key: &'a [u8],
    index: &'a [u8],
}

impl DbInner {
    /// Checks the blobs that a batch of the WAL names for families that are to have them, and tells their memtables of the
    /// files. What is wrong with one of them, if it is not whole: history then ends before this batch.
    pub(in crate::db) fn recover_blobs(
        &self,
        wal: FileNumber,
        batch: &BatchView<'_>,
    ) -> Result<Option<Error>> {
        for named in self.named_blobs(wal, batch)? {
            match self.recover_blob(&named) {
                Ok(()) => {}
                Err(error) if error.is_corruption() || error.is_not_found() => {
                    Sometimes::ReplayStoppedAtLostBlob.reached();
                    let key = named.key.escape_ascii();
                    return Ok(Some(error.context(format!("the value of key '{key}' is not whole"))));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn named_blobs<'a>(&self, wal: FileNumber, batch: &BatchView<'a>) -> Result<Vec<Named<'a>>> {
        let mut named = Vec::new();
        for operation in batch.iter() {
            let Operation::BlobIndex { cf, key, index } = operation? else { continue };
            let state = self.state.lock();
            if state.versions.family(cf).is_some_and(|family| family.log_number <= wal)
                && let Some(known) = state.families.get(&cf)
            {
                named.push(Named { family: known.family.clone(), mem: known.mem.clone(), key, index });
            }
        }
        Ok(named)
    }

    fn recover_blob(&self, named: &Named<'_>) -> Result<()> {
        let index = BlobIndex::decode(named.index)?;
        if CompressionType::from_byte(index.compression).is_none() {
            return Err(Error::not_supported(format!("blob compression type {:#04x}", index.compression)));
        }
        let version = named.family.current.load().version.clone();
        if version.blob_files.contains_key(&index.file) {
            named.mem.blobs.note_known(index.file);
            return self.tables.blob_file(&named.family, index.file)?.check(named.key, &index);
        }
        let reader = self.tables.unsealed_blob_file(&named.family, index.file).map_err(|error| {
            // The writer of the index knew what it is compressed with: the file's header is damaged.
            let is_damage = error.code() == Code::NotSupported;
            if is_damage {
                Error::corruption(error.message()).at(error.path().unwrap_or(&self.path))
            } else {
                error
            }
        })?;
        if !Mutant::TrustRecoveredBlobs.is_on() {
            reader.check(named.key, &index)?;
        }
        match self.holds_nothing_else(named, &index, &reader)? {
            true if !self.read_only => self.adopt(named, &index, reader.compression()),
            _ => {
                Sometimes::BlobRecovered.reached();
                named.mem.blobs.note_recovered(index.file);
                Ok(())
            }
        }
    }

    /// Whether the file consists of this one blob: then it stays as it is, be it larger than memory.
    fn holds_nothing_else(
        &self,
        named: &Named<'_>,
        index: &BlobIndex,
        reader: &BlobFileReader,
    ) -> Result<bool> {
        let file = reader.file();
        let is_first = index.offset == (HEADER_SIZE + RECORD_HEADER_SIZE + named.key.len()) as u64;
        let is_last = file.size()? == index.offset + index.size + FOOTER_SIZE as u64;
        if !(is_first && is_last) {
            return Ok(false);
        }
        match BlobFileReader::open(file.clone(), named.family.id) {
            Ok(sealed) => Ok(sealed.count() == Some(1)),
            Err(error) if error.is_corruption() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn adopt(&self, named: &Named<'_>, index: &BlobIndex, compression: CompressionType) -> Result<()> {
        Sometimes::WholeBlobRecovered.reached();
        let number = index.file;
        let paths = &named.family.paths;
        let file = self.env.fs.open(&paths.blob(number), OpenMode::Update)?;
        // Its maker may have died before that.
        self.names.before_making(paths.of_blobs()).sync()?;
        let total_bytes = index.record_bytes(named.key.len());
        let summary = BlobFileSummary { number, count: 1, total_bytes };
        let claim = BlobFileClaim::new(number, paths, &self.obsolete);
        named.mem.blobs.attach(Arc::new(DirectFile::whole(file, compression, summary, true, claim)));
        Ok(())
    }
}
