//! A file system of which a recorder may be told each call, also on files that were opened before.
//!
//! Every call goes on to the call of the same name, so nothing but its time changes: files keep
//! their descriptors and mappings, and writes of several buffers stay one. While the recorder is
//! off, a call costs one more load. A copy into a mapping is a call of its own; what the kernel
//! writes of it later is seen in syncs only. Reads that the kernel has in hand together are told
//! as they complete, each with the time since the first was handed over.

mod call;
mod file;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(crate) use call::{CallRecorder, Extent, FileCall, FileCallClass, FileCallKind};
use file::TracedFile;

use super::{
    Clock, FileLock, FileSystem, IoMode, LogFile, Metadata, PublishedFile, RandomAccessFile,
    ReclaimableFile, WritableFile,
};
use crate::base::{Result, Temperature};

/// A file system around another one.
pub(crate) struct TracedFiles<R> {
    fs: Arc<dyn FileSystem>,
    tap: Tap<R>,
}

impl<R: CallRecorder> TracedFiles<R> {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, clock: Arc<dyn Clock>, recorder: Arc<R>) -> Self {
        Self { fs, tap: Tap { clock, recorder } }
    }
}

/// How the recorder is told.
struct Tap<R> {
    clock: Arc<dyn Clock>,
    recorder: Arc<R>,
}

impl<R> Clone for Tap<R> {
    fn clone(&self) -> Self {
        Self { clock: self.clock.clone(), recorder: self.recorder.clone() }
    }
}

impl<R: CallRecorder> Tap<R> {
    /// Makes a call whose numbers are known when it has ended.
    #[inline]
    fn call<T>(
        &self,
        kind: FileCallKind,
        path: &Path,
        extent: impl FnOnce(&Result<T>) -> Extent,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.recorder.is_on() { self.told(kind, path, extent, work) } else { work() }
    }

    #[cold]
    fn told<T>(
        &self,
        kind: FileCallKind,
        path: &Path,
        extent: impl FnOnce(&Result<T>) -> Extent,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let begun = self.clock.now_nanos();
        let outcome = work();
        let nanos = self.clock.now_nanos().saturating_sub(begun);
        let (extent, error) = (extent(&outcome), outcome.as_ref().err());
        self.recorder.record(&FileCall { kind, path, nanos, extent, error });
        outcome
    }

    /// Makes a call that cannot fail.
    #[inline]
    fn plain(&self, kind: FileCallKind, path: &Path, extent: Extent, work: impl FnOnce()) {
        let _ = self.call(
            kind,
            path,
            |_: &Result<()>| extent,
            || {
                work();
                Ok(())
            },
        );
    }

    /// A read ended that the kernel had in hand since then.
    #[inline]
    fn read_together(&self, path: &Path, (offset, length): (u64, usize), since: Instant) {
        if self.recorder.is_on() {
            self.recorder.record(&FileCall {
                kind: FileCallKind::MultiRead,
                path,
                nanos: u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX),
                extent: Extent::bytes(offset, length as u64),
                error: None,
            });
        }
    }
}

/// Of a call without numbers.
fn none<T>(_: &Result<T>) -> Extent {
    Extent::NONE
}

impl<R: CallRecorder> TracedFiles<R> {
    fn open<F: RandomAccessFile + ?Sized>(
        &self,
        kind: FileCallKind,
        path: &Path,
        open: impl FnOnce(&dyn FileSystem) -> Result<Arc<F>>,
    ) -> Result<Arc<TracedFile<F, R>>> {
        let file = self.tap.call(kind, path, none, || open(&*self.fs))?;
        Ok(Arc::new(TracedFile::new(file, self.tap.clone())))
    }

    fn name<T>(
        &self,
        kind: FileCallKind,
        path: &Path,
        work: impl FnOnce(&dyn FileSystem) -> Result<T>,
    ) -> Result<T> {
        self.tap.call(kind, path, none, || work(&*self.fs))
    }
}

impl<R: CallRecorder> FileSystem for TracedFiles<R> {
    fn open_random_access(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        let open = |fs: &dyn FileSystem| fs.open_random_access(path, io);
        Ok(self.open(FileCallKind::OpenRandomAccess, path, open)?)
    }

    fn create_writable(&self, path: &Path, io: IoMode) -> Result<Arc<dyn WritableFile>> {
        let open = |fs: &dyn FileSystem| fs.create_writable(path, io);
        Ok(self.open(FileCallKind::CreateWritable, path, open)?)
    }

    fn reopen_writable(&self, path: &Path) -> Result<Arc<dyn WritableFile>> {
        let open = |fs: &dyn FileSystem| fs.reopen_writable(path);
        Ok(self.open(FileCallKind::ReopenWritable, path, open)?)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let open = |fs: &dyn FileSystem| fs.create_log(path);
        Ok(self.open(FileCallKind::CreateWritable, path, open)?)
    }

    fn reopen_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let open = |fs: &dyn FileSystem| fs.reopen_log(path);
        Ok(self.open(FileCallKind::ReopenLog, path, open)?)
    }

    fn open_reclaimable(&self, path: &Path) -> Result<Arc<dyn ReclaimableFile>> {
        let open = |fs: &dyn FileSystem| fs.open_reclaimable(path);
        Ok(self.open(FileCallKind::OpenReclaimable, path, open)?)
    }

    fn advise(&self, path: &Path, temperature: Temperature) {
        self.fs.advise(path, temperature);
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.name(FileCallKind::Rename, source, |fs| fs.rename(source, target))
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.name(FileCallKind::Link, source, |fs| fs.link(source, target))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.name(FileCallKind::Remove, path, |fs| fs.remove(path))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.name(FileCallKind::CreateDirectory, path, |fs| fs.create_directory(path))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.name(FileCallKind::RemoveDirectory, path, |fs| fs.remove_directory(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.name(FileCallKind::List, directory, |fs| fs.list(directory))
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.name(FileCallKind::SyncDirectory, directory, |fs| fs.sync_directory(directory))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let extent = |found: &Result<Metadata>| Extent::size(found.as_ref().ok().map(|it| it.size));
        self.tap.call(FileCallKind::FileSize, path, extent, || self.fs.metadata(path))
    }

    fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
        self.name(FileCallKind::FreeSpace, directory, |fs| fs.free_space(directory))
    }

    fn may_write_over(&self) -> bool {
        self.fs.may_write_over()
    }

    fn raise_open_files(&self) -> Option<u64> {
        self.fs.raise_open_files()
    }

    fn publish(&self, path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        self.fs.publish(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.name(FileCallKind::Lock, path, |fs| fs.lock(path))
    }

    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.name(FileCallKind::Lock, path, |fs| fs.lock_for_reading(path))
    }
}
