//! Blobs that WALs name, looked at ahead of the replay.

use std::sync::Arc;

use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{ColumnFamilyId, Error, FileNumber};
use crate::batch::BatchView;
use crate::blob::{BlobIndex, references};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::opening::replay_inserts::Targets;
use crate::env::Task;
use crate::wal::{Checks, Fault, StampedFamily};

/// Looks at the blobs that batches of WALs name, ahead of the replay and several at a time.
pub(in crate::db) struct BlobChecks {
    inner: Arc<DbInner>,
    targets: Arc<Targets>,
    checked: AtomicU64,
    stamped: Vec<StampedFamily>,
}

/// A blob that a batch names for a family that is to have it.
struct Named<'a> {
    /// Which of the batches.
    batch: usize,
    family: &'a Family,
    key: &'a [u8],
    index: BlobIndex,
}

impl BlobChecks {
    pub(in crate::db) fn new(inner: &Arc<DbInner>, targets: &Arc<Targets>) -> Self {
        let (inner, targets) = (inner.clone(), targets.clone());
        let stamped = targets.stamped();
        Self { inner, targets, checked: AtomicU64::new(0), stamped }
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
                let (Some(cf), Some((kind, key, value))) = (operation.family(), operation.entry())
                else {
                    continue;
                };
                if !operation.names_blobs() {
                    continue;
                }
                let Some(target) = self.targets.wanting(cf, *wal) else { continue };
                for index in references(Some(kind), value) {
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

    fn stamped(&self) -> Option<&[StampedFamily]> {
        Some(&self.stamped)
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
                    self.inner.pipeline.check_recovered_blob(blob.family, blob.key, &blob.index)
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
            error.context(format!("the value of key '{}' is incomplete", key.escape_ascii())),
        );
    }
    Fault::Unknown(error)
}
