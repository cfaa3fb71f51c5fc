//! The blob files of a memtable.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::base::compression::CompressionType;
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{FileNumber, Result};
use crate::blob::{BlobAppender, BlobFileReader, BlobFileSummary, BlobIndexes, NewBlob};
use crate::db::family::Family;
use crate::env::{BoundedFile, RandomAccessFile, WritableFile, read_until_end};
use crate::manifest::BlobFileClaim;

/// A blob file that holds values of one memtable, until the memtable's flush registers it. Its name
/// is durable.
pub(crate) struct DirectFile {
    number: FileNumber,
    file: Arc<dyn WritableFile>,
    compression: CompressionType,
    content: Content,
    /// Set when the file is sealed and synced.
    sealed: OnceLock<BlobFileSummary>,
    /// Declared last, so that the file is closed before it may be removed.
    claim: BlobFileClaim,
}

enum Content {
    /// Values of many writers.
    Appended(Box<BlobAppender>),
    /// One value, and the footer already.
    Whole { summary: BlobFileSummary, by_dead_process: bool },
}

impl DirectFile {
    /// A new file that values are appended to.
    pub(in crate::db) fn appended(appender: BlobAppender, claim: BlobFileClaim) -> Self {
        let (number, file, compression) =
            (appender.number(), appender.file().clone(), appender.compression());
        Self::new(number, file, compression, Content::Appended(Box::new(appender)), claim)
    }

    /// A file of one value. What a dead process wrote of it is written once more before it is
    /// synced: that process may have died of a failed sync, after which the system takes for clean
    /// what it has of the file.
    pub(in crate::db) fn whole(
        file: Arc<dyn WritableFile>,
        compression: CompressionType,
        summary: BlobFileSummary,
        by_dead_process: bool,
        claim: BlobFileClaim,
    ) -> Self {
        Self::new(
            summary.number,
            file,
            compression,
            Content::Whole { summary, by_dead_process },
            claim,
        )
    }

    fn new(
        number: FileNumber,
        file: Arc<dyn WritableFile>,
        compression: CompressionType,
        content: Content,
        claim: BlobFileClaim,
    ) -> Self {
        Self { number, file, compression, content, sealed: OnceLock::new(), claim }
    }

    /// A reader of it as it is now.
    pub(in crate::db) fn reader(&self, family: &Family) -> Arc<BlobFileReader> {
        let file = self.read_file();
        let reader = BlobFileReader::of_own(file, family.id, self.compression, None);
        Arc::new(reader.with_order(family.comparator()))
    }

    /// A reader of it as it is sealed, through `file`.
    pub(in crate::db) fn sealed_reader(
        &self,
        file: Arc<dyn RandomAccessFile>,
        family: &Family,
        total: &BlobFileSummary,
    ) -> Arc<BlobFileReader> {
        let reader = BlobFileReader::of_own(file, family.id, self.compression, Some(total));
        Arc::new(reader.with_order(family.comparator()))
    }

    pub(crate) fn number(&self) -> FileNumber {
        self.number
    }

    pub(in crate::db) fn path(&self) -> PathBuf {
        self.claim.path()
    }

    pub(in crate::db) fn file(&self) -> &Arc<dyn WritableFile> {
        &self.file
    }

    /// The file, for readers.
    pub(in crate::db) fn read_file(&self) -> Arc<dyn RandomAccessFile> {
        Arc::new(BoundedFile(self.file.clone()))
    }

    /// Syncs it, before it is sealed or then.
    pub(in crate::db) fn sync(&self) -> Result<()> {
        if let Content::Appended(appender) = &self.content {
            appender.note_sync();
        }
        self.file.sync()
    }

    /// What it holds, once it is sealed and synced.
    pub(in crate::db) fn sealed(&self) -> Option<BlobFileSummary> {
        self.sealed.get().copied()
    }

    /// Completes the file; it is still to be synced.
    pub(in crate::db) fn complete(&self) -> Result<BlobFileSummary> {
        match &self.content {
            Content::Appended(appender) => appender.seal(),
            Content::Whole { summary, by_dead_process } => {
                if *by_dead_process {
                    write_again(&*self.file)?;
                }
                Ok(*summary)
            }
        }
    }

    pub(in crate::db) fn set_sealed(&self, summary: BlobFileSummary) {
        let _ = self.sealed.set(summary);
    }

    /// Nothing that is durable names it, or ever will: it is removed when the last reader lets go.
    pub(in crate::db) fn give_up(&self) {
        self.claim.give_up();
    }
}

/// The blob files of one memtable.
#[derive(Default)]
pub(crate) struct GenerationBlobs {
    state: Mutex<State>,
    /// Bytes of the values, for whoever decides that the memtable is full.
    bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Takes the values that are committed; made for the first of them.
    appended: Option<Arc<DirectFile>>,
    whole: Vec<Arc<DirectFile>>,
    /// Files of a dead process that the memtable names; the flush moves the values to others.
    recovered: BTreeSet<FileNumber>,
    /// Files in the MANIFEST that the memtable names nevertheless.
    known: BTreeSet<FileNumber>,
    is_closed: bool,
}

impl GenerationBlobs {
    /// Sees to it that there is a file to append to.
    pub(in crate::db) fn prepare(&self, create: impl FnOnce() -> Result<DirectFile>) -> Result<()> {
        let appended = &mut self.state.lock().appended;
        if appended.is_none() {
            *appended = Some(Arc::new(create()?));
        }
        Ok(())
    }

    /// Appends values to the memtable's file. `None` if there is none, or the memtable is being
    /// flushed.
    pub(in crate::db) fn append(
        &self,
        blobs: &[NewBlob<'_>],
    ) -> Result<Option<(Arc<DirectFile>, BlobIndexes)>> {
        let file = {
            let state = self.state.lock();
            let open = state.appended.as_ref().filter(|_| !state.is_closed);
            let Some(file) = open else { return Ok(None) };
            file.clone()
        };
        let Content::Appended(appender) = &file.content else {
            unreachable!("made to be appended to")
        };
        let Some(indexes) = appender.append(blobs)? else { return Ok(None) };
        let bytes =
            indexes.iter().zip(blobs).map(|(index, blob)| index.record_bytes(blob.user_key.len()));
        self.bytes.fetch_add(bytes.sum(), Ordering::Relaxed);
        Ok(Some((file, indexes)))
    }

    /// Adds a file of one value, of which the memtable gets the address.
    pub(in crate::db) fn attach(&self, file: Arc<DirectFile>) {
        if let Content::Whole { summary, .. } = &file.content {
            self.bytes.fetch_add(summary.total_bytes, Ordering::Relaxed);
        }
        self.state.lock().whole.push(file);
    }

    /// Notes a file of a dead process.
    pub(in crate::db) fn note_recovered(&self, number: FileNumber) {
        self.state.lock().recovered.insert(number);
    }

    /// Notes a file in the MANIFEST that a replayed WAL names.
    pub(in crate::db) fn note_known(&self, number: FileNumber) {
        self.state.lock().known.insert(number);
    }

    /// Whether the memtable may name this file.
    pub(in crate::db) fn names(&self, number: FileNumber) -> bool {
        let is_known = self.state.lock().known.contains(&number);
        is_known || self.numbers().contains(&number)
    }

    /// Bytes of the values.
    #[inline]
    pub(in crate::db) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The numbers of all files.
    pub(in crate::db) fn numbers(&self) -> Vec<FileNumber> {
        let state = self.state.lock();
        let own = state.appended.iter().chain(&state.whole).map(|file| file.number());
        own.chain(state.recovered.iter().copied()).collect()
    }

    /// Whether there are none.
    pub(in crate::db) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.appended.is_none() && state.whole.is_empty() && state.recovered.is_empty()
    }

    /// Turns away whoever would still append; all files, and the numbers of those of a dead
    /// process.
    pub(in crate::db) fn close(&self) -> (Vec<Arc<DirectFile>>, BTreeSet<FileNumber>) {
        let mut state = self.state.lock();
        state.is_closed = true;
        (state.appended.iter().chain(&state.whole).cloned().collect(), state.recovered.clone())
    }

    /// The family is gone, and with it whatever named the files.
    pub(in crate::db) fn give_up(&self) {
        self.close().0.iter().for_each(|file| file.give_up());
    }
}

/// Kept WALs are written again through a buffer of this many bytes.
const REWRITE_BUFFER: usize = 1 << 20;

/// Writes to a file what it holds, and gives it its size: that it was cut off may be lost as any of
/// its bytes.
pub(in crate::db) fn write_again(file: &dyn WritableFile) -> Result<()> {
    let (size, mut offset) = (file.size()?, 0);
    let mut buffer = vec![0; REWRITE_BUFFER.min(size as usize)];
    while offset < size {
        let read = read_until_end(file, offset, &mut buffer)?;
        file.write_at(offset, &buffer[..read])?;
        offset += read as u64;
    }
    file.truncate(size)
}
