//! Taking the large values out of a batch before it is committed.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::compression::CompressionType;
use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Error, Result, Sometimes};
use crate::batch::{Operation, WriteBatch};
use crate::blob::{BlobAppender, BlobBuilderSettings, BlobIndex, BlobIndexes, NewBlob};
use crate::cache::MemoryKind;
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::family::generation::Generation;
use crate::db::statistics::Ticker;
use crate::db::writing::commit::Commit;
use crate::db::writing::direct_blob::DirectBlobs;
use crate::db::writing::pipeline::named::check_operation;
use crate::env::IoMode;
use crate::options::{PrepopulateBlobCache, WriteOptions};

/// What is to be written: a batch, or one value that was never copied into one.
#[derive(Clone, Copy)]
pub(in crate::db) enum Source<'a> {
    Batch(&'a WriteBatch),
    Put(ColumnFamilyId, &'a [u8], &'a [u8]),
}

impl<'a> Source<'a> {
    /// Shows each operation with its place in the order, and its bytes where it has some.
    fn each(
        &self,
        mut visit: impl FnMut(usize, Operation<'a>, &'a [u8]) -> Result<()>,
    ) -> Result<()> {
        match *self {
            Self::Put(cf, key, value) => visit(0, Operation::Put { cf, key, value }, &[]),
            Self::Batch(batch) => {
                let (body, mut operations) = (batch.body(), batch.iter());
                let (mut place, mut start) = (0, 0);
                while let Some(operation) = operations.next() {
                    let end = operations.offset();
                    visit(place, operation?, &body[start..end])?;
                    (place, start) = (place + 1, end);
                }
                Ok(())
            }
        }
    }
}

/// The blob files that a batch names.
pub(in crate::db) enum BlobsOfBatch<'a> {
    /// None.
    Nothing,
    /// Its large values were appended to files of the memtables that were active then.
    Separated { source: Source<'a>, synced: bool, used: FewUsed },
    /// Files of one value each, and the families of these values.
    Whole(SmallVec<[(ColumnFamilyId, Arc<DirectFile>); 1]>),
}

/// Mostly one: a put of one large value allocates nothing but the batch with its address.
type FewUsed = SmallVec<[Used; 1]>;

/// Where the values of one family went.
pub(in crate::db) struct Used {
    family: ColumnFamilyId,
    generation: Arc<Generation>,
    file: Arc<DirectFile>,
}

impl BlobsOfBatch<'_> {
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<DirectFile>> {
        let (used, whole) = match self {
            Self::Nothing => (&[][..], &[][..]),
            Self::Separated { used, .. } => (used.as_slice(), &[][..]),
            Self::Whole(files) => (&[][..], files.as_slice()),
        };
        used.iter().map(|used| &used.file).chain(whole.iter().map(|(_, file)| file))
    }

    /// Gives files of one value to the memtables that the batch goes to, once the WAL has it. Of a
    /// family that is gone, which the writer does not mind, the file goes, too.
    pub(in crate::db) fn attach(&self, commit: &Commit) {
        let Self::Whole(files) = self else { return };
        for (family, file) in files {
            match commit.target(*family) {
                Some(target) => target.to.mem.blobs.attach(file.clone()),
                None => file.give_up(),
            }
        }
    }

    /// Whether all values lie in files of the memtables that the batch will go to.
    fn is_current(&self, commit: &Commit) -> bool {
        let Self::Separated { used, .. } = self else { return true };
        used.iter().all(|used| {
            commit
                .target(used.family)
                .is_some_and(|target| Arc::ptr_eq(&target.to.mem, &used.generation))
        })
    }
}

pub(in crate::db) fn names_blobs() -> Error {
    Error::not_supported("a batch that names blobs cannot be written")
}

/// The large values of one family, in the order of the batch.
struct Group<'a> {
    family: Arc<Family>,
    blobs: SmallVec<[NewBlob<'a>; 1]>,
}

/// What of a batch is large: the values by family, and for each of them in order, where it stands
/// and whose it is.
#[derive(Default)]
struct LargeValues<'a> {
    groups: SmallVec<[Group<'a>; 1]>,
    places: SmallVec<[(usize, usize); 1]>,
}

impl DirectBlobs {
    /// Writes the large values of a batch to the blob files of the active memtables; the batch with
    /// their addresses in their place. `None` if it has no values that are large for such a write.
    ///
    /// `prepare` sees to it that a family's active memtable has room, and a file to append to.
    pub(in crate::db::writing) fn separate<'a>(
        &self,
        source: Source<'a>,
        options: &WriteOptions,
        mut prepare: impl FnMut(&Family) -> Result<()>,
    ) -> Result<Option<(WriteBatch, BlobsOfBatch<'a>)>> {
        let synced = options.sync;
        let large = self.large_values(&source, synced)?;
        if large.groups.is_empty() {
            return Ok(None);
        }
        // The values of a batch that is refused are garbage, in a file that may get no other
        // entries.
        self.check_families(&source, options.ignore_missing_column_families)?;
        let (batch, used) = self.separate_values(&source, &large, false, &mut prepare)?;
        Ok(Some((batch, BlobsOfBatch::Separated { source, synced, used })))
    }

    /// With the commit lock held: writes the values again if a memtable was switched since.
    pub(in crate::db::writing) fn refresh(
        &self,
        batch: &mut WriteBatch,
        blobs: &mut BlobsOfBatch<'_>,
        commit: &mut Commit,
        mut prepare: impl FnMut(&mut Commit, &Family) -> Result<()>,
    ) -> Result<()> {
        // To make a file for some of them may switch the memtable that others were written for. It
        // does not go on for ever: only what has entries is switched, and nobody adds any
        // meanwhile.
        while !blobs.is_current(commit) {
            let BlobsOfBatch::Separated { source, synced, used } = blobs else { return Ok(()) };
            Sometimes::BlobWrittenAgain.reached();
            let large = self.large_values(source, *synced)?;
            (*batch, *used) =
                self.separate_values(source, &large, true, &mut |family| prepare(commit, family))?;
        }
        Ok(())
    }

    pub(in crate::db) fn check_families(
        &self,
        source: &Source<'_>,
        ignore_missing: bool,
    ) -> Result<()> {
        let families = self.tree.families.read();
        source.each(|_, operation, _| {
            let family = operation.family().and_then(|id| families.get(&id));
            check_operation(&operation, family.map(|family| &**family), ignore_missing)
        })
    }

    fn large_values<'a>(&self, source: &Source<'a>, synced: bool) -> Result<LargeValues<'a>> {
        let mut large = LargeValues::default();
        let is_paused = self.pauses.load(Ordering::Acquire) > 0;
        let smallest = if is_paused { u64::MAX } else { self.limits.direct_blob_min() };
        source.each(|place, operation, _| {
            let (cf, key, value) = match operation {
                Operation::Put { cf, key, value } => (cf, key, value),
                // Only the engine knows where values lie.
                operation if operation.names_blobs() => return Err(names_blobs()),
                _ => return Ok(()),
            };
            if (value.len() as u64) < smallest {
                return Ok(());
            }
            let known = large.groups.iter().find(|group| group.family.id == cf);
            let family = match known {
                Some(group) => Some(group.family.clone()),
                None => self.tree.families.read().get(&cf).cloned(),
            };
            let Some(family) = family.filter(|family| family.separates(value.len(), synced)) else {
                return Ok(());
            };
            let known = large.groups.iter().position(|group| group.family.id == cf);
            let index = known.unwrap_or_else(|| {
                large.groups.push(Group { family, blobs: SmallVec::new() });
                large.groups.len() - 1
            });
            large.groups[index].blobs.push(NewBlob { user_key: key, value });
            large.places.push((place, index));
            Ok(())
        })?;
        Ok(large)
    }

    fn separate_values<'a>(
        &self,
        source: &Source<'a>,
        large: &LargeValues<'a>,
        is_locked: bool,
        prepare: &mut dyn FnMut(&Family) -> Result<()>,
    ) -> Result<(WriteBatch, FewUsed)> {
        let mut used = FewUsed::new();
        let mut addresses: SmallVec<[_; 1]> = SmallVec::new();
        for group in &large.groups {
            let written = self.write_group(group, is_locked, prepare)?;
            addresses.push(written.map(|(one, indexes)| {
                used.push(one);
                indexes.into_iter()
            }));
        }
        let mut batch = WriteBatch::new();
        let (mut places, mut encoded) =
            (large.places.iter().peekable(), Vec::with_capacity(BlobIndex::SIZE_MAX));
        source.each(|place, operation, bytes| {
            let large = places.next_if(|(next, _)| *next == place);
            let address = large.and_then(|&(_, group)| addresses[group].as_mut()?.next());
            match (operation, address) {
                (Operation::Put { cf, key, .. }, Some(index)) => {
                    encoded.clear();
                    index.encode(&mut encoded);
                    batch.put_blob_index(cf, key, &encoded)
                }
                (Operation::Put { cf, key, value }, None) if bytes.is_empty() => {
                    batch.put_cf(cf, key, value)
                }
                (operation, _) => batch.push_encoded(bytes, operation.is_counted()),
            }
        })?;
        if let Source::Batch(from) = source {
            batch.stamp_as(from);
        }
        Ok((batch, used))
    }

    /// Appends values to the file of the family's active memtable; `None` if the family is dropped.
    fn write_group(
        &self,
        group: &Group<'_>,
        is_locked: bool,
        prepare: &mut dyn FnMut(&Family) -> Result<()>,
    ) -> Result<Option<(Used, BlobIndexes)>> {
        let family = &group.family;
        // The compressor's output has room for a value that does not become shorter.
        let compressed: usize = match family.options.load().blob_compression() {
            CompressionType::None => 0,
            _ => group.blobs.iter().map(|blob| blob.value.len()).sum(),
        };
        let _compressed = self.tables.account().hold_large(MemoryKind::Writes, compressed);
        while !family.is_dropped() {
            let generation = family.current.load().mem.clone();
            // A full memtable is switched before the next batch goes to it: the values would be
            // written again.
            let appended = if family.is_full(&generation) && !is_locked {
                None
            } else {
                generation.blobs.append(&group.blobs)?
            };
            if let Some((file, indexes)) = appended {
                let sizes = indexes.iter().zip(&group.blobs);
                let bytes =
                    sizes.map(|(index, blob)| index.record_bytes(blob.user_key.len())).sum();
                self.context.statistics.add(Ticker::BlobWriteBytes, bytes);
                if family.options.load().prepopulate_blob_cache == PrepopulateBlobCache::FlushOnly {
                    for (index, blob) in indexes.iter().zip(&group.blobs) {
                        self.tables.prepopulate_blob(family, blob.user_key, index, blob.value);
                    }
                }
                return Ok(Some((Used { family: family.id, generation, file }, indexes)));
            }
            prepare(family)?;
        }
        Ok(None)
    }

    pub(in crate::db::writing) fn create_file(&self, family: &Family) -> Result<DirectFile> {
        let number = self.tree.file_numbers.allocate();
        let path = family.paths.blob(number);
        let options = family.options.load();
        let settings = BlobBuilderSettings {
            column_family: family.id,
            compression: options.blob_compression(),
            ..BlobBuilderSettings::default()
        };
        let name = self.context.names.before_making(family.paths.of_blobs());
        let create = || {
            let file = self
                .background
                .range_synced(self.context.env.fs.create_writable(&path, IoMode::Buffered)?);
            name.sync()?;
            BlobAppender::new(file, number, settings)
        };
        let appender = create().inspect_err(|_| {
            // On a full disk this is tried again with every write.
            let _ = self.context.env.fs.remove(&path);
        })?;
        let claim = self.disk.claim_blob_file(number, &family.paths);
        let file = DirectFile::appended(appender, claim);
        self.tables.keep_blob_file(number, file.reader(family));
        Ok(file)
    }
}

#[cfg(test)]
mod tests;
