//! Blobs that a replayed WAL names: first it is checked that they are whole, ahead of the replay;
//! then the memtable that gets their addresses is told of their files.

use std::sync::Arc;

use crate::base::compression::CompressionType;
use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{Code, ColumnFamilyId, Error, FileNumber, Mutant, Result, Sometimes};
use crate::batch::{BatchView, Operation};
use crate::blob::{
    BlobFileReader, BlobFileSummary, BlobIndex, FOOTER_SIZE, HEADER_SIZE, RECORD_HEADER_SIZE,
};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::family::generation::Generation;
use crate::db::opening::replay_inserts::Targets;
use crate::db::writing::pipeline::Pipeline;
use crate::env::{OpenMode, Task};
use crate::wal::{Checks, Fault};

/// Looks at the blobs that batches of WALs name, ahead of the replay and several at a time.
pub(in crate::db) struct BlobChecks {
    inner: Arc<DbInner>,
    targets: Arc<Targets>,
    checked: AtomicU64,
}

/// A blob that a batch names for a family that is to have it.
struct Named<'a> {
    /// Which of the batches.
    batch: usize,
    family: &'a Family,
    key: &'a [u8],
    index: &'a [u8],
}

impl BlobChecks {
    pub(in crate::db) fn new(inner: &Arc<DbInner>, targets: &Arc<Targets>) -> Self {
        Self { inner: inner.clone(), targets: targets.clone(), checked: AtomicU64::new(0) }
    }

    /// How many were looked at.
    pub(in crate::db) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    fn named<'a>(&'a self, batches: &[(FileNumber, BatchView<'a>)]) -> Vec<Named<'a>> {
        let mut named = Vec::new();
        for (batch, (wal, view)) in batches.iter().enumerate() {
            // They were all read, so that there is no error.
            for operation in view.iter().flatten() {
                let Operation::BlobIndex { cf, key, index } = operation else { continue };
                if let Some(target) = self.targets.wanting(cf, *wal) {
                    named.push(Named { batch, family: &target.family, key, index });
                }
            }
        }
        named
    }
}

impl Checks for BlobChecks {
    fn wants(&self, family: ColumnFamilyId, wal: FileNumber) -> bool {
        self.targets.wanting(family, wal).is_some()
    }

    fn check(&self, batches: &[(FileNumber, BatchView<'_>)]) -> Vec<Result<(), Fault>> {
        let named = self.named(batches);
        let next = AtomicUsize::new(0);
        let found = Mutex::new(batches.iter().map(|_| None).collect::<Vec<_>>());
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(blob) = named.get(at) else { break };
                if let Err(error) =
                    self.inner.pipeline.check_recovered_blob(blob.family, blob.key, blob.index)
                {
                    let fault = fault(blob.key, error);
                    // What is lost is lost, whatever else could not be looked at; and of several it
                    // is the first that is told.
                    let rank = (matches!(fault, Fault::Unknown(_)), at);
                    let before = &mut found.lock()[blob.batch];
                    if before.as_ref().is_none_or(|(other, _)| rank < *other) {
                        *before = Some((rank, fault));
                    }
                }
                self.checked.fetch_add(1, Ordering::Relaxed);
            }
        };
        if self.inner.tree.has_workers() {
            let jobs = self.inner.context.settings.load().max_background_jobs.max(1) as usize;
            let tasks =
                (0..jobs.min(named.len())).map(|_| -> Task<'_> { Box::new(work) }).collect();
            self.inner.context.env.spawner.run_all("flagstone-replay", tasks);
        } else {
            work();
        }
        let found = std::mem::take(&mut *found.lock());
        found.into_iter().map(|found| found.map_or(Ok(()), |(_, fault)| Err(fault))).collect()
    }
}

fn fault(key: &[u8], error: Error) -> Fault {
    if error.is_corruption() || error.is_not_found() {
        return Fault::Lost(
            error.context(format!("the value of key '{}' is not whole", key.escape_ascii())),
        );
    }
    Fault::Unknown(error)
}

impl Pipeline {
    /// Whether the blob is there, and whole.
    fn check_recovered_blob(&self, family: &Family, key: &[u8], index: &[u8]) -> Result<()> {
        let index = BlobIndex::decode(index)?;
        if CompressionType::from_byte(index.compression).is_none() {
            return Err(Error::not_supported(format!(
                "blob compression type {:#04x}",
                index.compression
            )));
        }
        if family.current.load().version.blob_files.contains_key(&index.file) {
            return self.tables.blob_file(family, index.file)?.check(key, &index);
        }
        let reader = self.unsealed_reader(family, index.file)?;
        if Mutant::TrustRecoveredBlobs.is_on() { Ok(()) } else { reader.check(key, &index) }
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
    pub(in crate::db) fn take_recovered_blob(
        &self,
        family: &Family,
        mem: &Generation,
        key: &[u8],
        index: &[u8],
    ) -> Result<()> {
        let index = BlobIndex::decode(index)?;
        if family.current.load().version.blob_files.contains_key(&index.file) {
            mem.blobs.note_known(index.file);
            return Ok(());
        }
        let reader = self.unsealed_reader(family, index.file)?;
        if self.holds_nothing_else(family, key, &index, &reader)? && !self.context.read_only {
            self.adopt(family, mem, key, &index, reader.compression())
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
        let file = self.context.env.fs.open(&paths.blob(number), OpenMode::Update)?;
        // Its maker may have died before that.
        self.context.names.before_making(paths.of_blobs()).sync()?;
        let total_bytes = index.record_bytes(key.len());
        let summary = BlobFileSummary { number, count: 1, total_bytes };
        let claim = self.disk.claim_blob_file(number, paths);
        mem.blobs.attach(Arc::new(DirectFile::whole(file, compression, summary, true, claim)));
        Ok(())
    }
}
