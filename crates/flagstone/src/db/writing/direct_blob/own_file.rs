//! A blob file for one value, which is written piece by piece.

use std::sync::Arc;

use crate::base::compression::CompressionType;
use crate::base::{Result, Sometimes};
use crate::batch::WriteBatch;
use crate::blob::BlobStream;
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::statistics::Ticker;
use crate::db::writing::direct_blob::separate::BlobsOfBatch;
use crate::db::writing::pipeline::Pipeline;
use crate::env::IoMode;
use crate::manifest::BlobFileClaim;
use crate::options::WriteOptions;

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

impl Pipeline {
    /// Begins a blob file for one value, and what removes it unless it is committed.
    pub(in crate::db) fn create_own_file(&self, family: &Family, key: &[u8]) -> Result<OwnFile> {
        let number = self.tree.file_numbers.allocate();
        let claim = self.disk.claim_blob_file(number, &family.paths);
        let mut own = OwnFile { stream: None, claim: Some(claim) };
        let name = self.context.names.before_making(family.paths.of_blobs());
        let file = {
            // Keeps the directory from being let go meanwhile.
            let mut commit = self.commit.lock();
            commit.wal()?;
            self.background.range_synced(
                self.context
                    .env
                    .fs
                    .create_writable(&family.paths.blob(number), IoMode::Buffered)?,
            )
        };
        name.sync()?;
        own.stream = Some(BlobStream::new(file, number, family.id, key)?);
        Ok(own)
    }

    pub(in crate::db) fn commit_own_file(
        &self,
        mut own: OwnFile,
        options: &WriteOptions,
        family: &Family,
        key: &[u8],
    ) -> Result<()> {
        let stream = own.stream.take().expect("committed once");
        let bytes = key.len() as u64 + stream.value_size();
        // The value was, piece by piece.
        self.admit(options, key.len() as u64)?;
        let file = stream.file().clone();
        let (index, summary) = stream.finish()?;
        let mut batch = WriteBatch::new();
        let mut encoded = Vec::new();
        index.encode(&mut encoded);
        batch.put_blob_index(family.id, key, &encoded)?;

        let claim = own.claim.take().expect("until it is committed");
        let file = Arc::new(DirectFile::whole(file, CompressionType::None, summary, false, claim));
        let reader = file.sealed_reader(file.file().clone(), family, &summary);
        self.tables.keep_blob_file(summary.number, reader);
        let blobs = BlobsOfBatch::Whole(family.id, file.clone());
        self.context.statistics.add(Ticker::BlobWriteBytes, summary.total_bytes);
        self.commit(options, &mut batch, blobs, bytes).inspect_err(|_| {
            // No memtable has it, so neither has the WAL; unless what a failed write left there
            // could not be cut off.
            if let Some(file) = Arc::into_inner(file)
                && !self.context.poison.is_fatal()
            {
                file.give_up();
            }
        })
    }
}
