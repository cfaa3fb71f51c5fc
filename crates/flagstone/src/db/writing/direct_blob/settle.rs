//! What becomes of a memtable's blob files when it is flushed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result, Sometimes, counted};
use crate::blob::{BlobFileSummary, FOOTER_SIZE, GarbageDelta, GarbageMeter, HEADER_SIZE, Outflow};
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::family::generation::Generation;
use crate::db::tree::output::JobOutput;
use crate::db::writing::direct_blob::DirectBlobs;
use crate::manifest::BlobFileAddition;

/// The blob files of the memtables that a flush takes.
#[derive(Default)]
pub(in crate::db) struct DirectInputs {
    files: Vec<Arc<DirectFile>>,
    /// Those of a dead process: the flush moves their values to others.
    pub(in crate::db) recovered: BTreeSet<FileNumber>,
}

impl DirectInputs {
    /// Closes them to writers who are late.
    pub(in crate::db) fn of(memtables: &[Arc<Generation>]) -> Self {
        let mut inputs = Self::default();
        for memtable in memtables {
            let (files, recovered) = memtable.blobs.close();
            inputs.files.extend(files);
            inputs.recovered.extend(recovered);
        }
        inputs
    }
}

impl DirectBlobs {
    /// Seals and syncs the files that the output refers to, and says what of them is garbage
    /// already: what was overwritten in the memtable, and what its writer gave up.
    pub(in crate::db::writing) fn settle(
        &self,
        family: &Family,
        inputs: &DirectInputs,
        meter: &mut GarbageMeter,
        output: &mut JobOutput,
    ) -> Result<()> {
        for &number in &inputs.recovered {
            // The MANIFEST does not know it: there is no garbage to be recorded.
            meter.take(number);
        }
        for file in &inputs.files {
            let live = meter.take(file.number());
            if live.count == 0 {
                Sometimes::BlobFileAllGarbage.reached();
                output.unreferenced.push(file.clone());
                continue;
            }
            let total = self.seal(family, file)?;
            output.garbage.extend(garbage_of(total, live)?);
            let path = file.path();
            let size = total.total_bytes + (HEADER_SIZE + FOOTER_SIZE) as u64;
            let checksum = self.context.checksum_of_new_file(&path, size)?;
            let addition = BlobFileAddition {
                number: total.number,
                total_count: total.count,
                total_bytes: total.total_bytes,
                ..BlobFileAddition::default()
            };
            output.direct_files.push(addition.with_checksum(checksum));
        }
        Ok(())
    }

    fn seal(&self, family: &Family, file: &Arc<DirectFile>) -> Result<BlobFileSummary> {
        if let Some(total) = file.sealed() {
            return Ok(total);
        }
        let total = file.complete()?;
        self.syncs.sync_direct_files(std::slice::from_ref(file))?;
        let opened = if self.tables.may_read_through_writers_file(&**file.file()) {
            file.read_file()
        } else {
            self.tables.open_file(&file.path())?
        };
        self.tables.keep_blob_file(file.number(), file.sealed_reader(opened, family, &total));
        file.set_sealed(total);
        Ok(total)
    }
}

fn garbage_of(total: BlobFileSummary, live: Outflow) -> Result<Option<GarbageDelta>> {
    let number = total.number;
    let garbage =
        total.count.checked_sub(live.count).zip(total.total_bytes.checked_sub(live.bytes));
    let (count, bytes) = garbage.ok_or_else(|| {
        Error::corruption(format!(
            "the memtable refers to {} of {} bytes in blob file {number}, but the file has {} of {}",
            counted(live.count, "blob"),
            live.bytes,
            total.count,
            total.total_bytes
        ))
    })?;
    Ok((count > 0).then_some(GarbageDelta { number, count, bytes }))
}
