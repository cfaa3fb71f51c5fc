//! A blob file for one value, which is written piece by piece.

use std::sync::Arc;

use crate::base::compression::CompressionType;
use crate::base::{Result, Sometimes};
use crate::blob::BlobStream;
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::statistics::Ticker;
use crate::db::writing::direct_blob::DirectBlobs;
use crate::env::{IoMode, WritableFile};
use crate::manifest::BlobFileClaim;

/// A blob file for one value; obsolete unless it is committed.
pub(in crate::db) struct OwnFile {
    pub(in crate::db) stream: Option<BlobStream>,
    claim: Option<BlobFileClaim>,
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            Sometimes::BlobStreamGivenUp.reached();
            self.stream = None;
            claim.give_up();
        }
    }
}

impl OwnFile {
    /// Bytes of the value so far.
    pub(in crate::db::writing) fn value_size(&self) -> u64 {
        self.stream.as_ref().map_or(0, BlobStream::value_size)
    }
}

impl DirectBlobs {
    /// Begins a blob file for one value, and what removes it unless it is committed. `guarded` has
    /// the file made while the directory is not let go.
    pub(in crate::db::writing) fn create_own_file(
        &self,
        family: &Family,
        key: &[u8],
        guarded: impl FnOnce(
            &dyn Fn() -> Result<Arc<dyn WritableFile>>,
        ) -> Result<Arc<dyn WritableFile>>,
    ) -> Result<OwnFile> {
        let number = self.tree.file_numbers.allocate();
        let claim = self.disk.claim_blob_file(number, &family.paths);
        let mut own = OwnFile { stream: None, claim: Some(claim) };
        let name = self.context.names.before_making(family.paths.of_blobs());
        let file = guarded(&|| {
            let path = family.paths.blob(number);
            let file = self.context.env.fs.create_writable(&path, IoMode::Buffered)?;
            Ok(self.background.range_synced(file))
        })?;
        name.sync()?;
        own.stream = Some(BlobStream::new(file, number, family.id, key)?);
        Ok(own)
    }

    /// Completes a file; the address of its value, encoded, and the file.
    pub(in crate::db::writing) fn complete_own_file(
        &self,
        mut own: OwnFile,
        family: &Family,
    ) -> Result<(Vec<u8>, Arc<DirectFile>)> {
        let stream = own.stream.take().expect("committed once");
        let file = stream.file().clone();
        let (index, summary) = stream.finish()?;
        let mut encoded = Vec::new();
        index.encode(&mut encoded);

        let claim = own.claim.take().expect("until it is committed");
        let file = Arc::new(DirectFile::whole(file, CompressionType::None, summary, false, claim));
        let reader = file.sealed_reader(file.read_file(), family, &summary);
        self.tables.keep_blob_file(summary.number, reader);
        self.context.statistics.add(Ticker::BlobWriteBytes, summary.total_bytes);
        Ok((encoded, file))
    }

    /// Has a file removed whose value was not committed.
    pub(in crate::db::writing) fn give_up_uncommitted(&self, file: Arc<DirectFile>) {
        // No memtable has it, so neither has the WAL; unless what a failed write left there could
        // not be cut off.
        if let Some(file) = Arc::into_inner(file)
            && !self.context.poison.is_fatal()
        {
            file.give_up();
        }
    }
}
