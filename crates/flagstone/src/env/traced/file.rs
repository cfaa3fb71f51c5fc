//! A file of which each call may be told.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::{CallRecorder, Extent, FileCallKind, Tap};
use crate::base::{Result, Temperature};
use crate::env::{
    Advice, AlignedBuffer, LogFile, Mapping, Metadata, RandomAccessFile, ReclaimableFile,
    WritableFile,
};

/// A file around one of any kind.
pub(super) struct TracedFile<F: RandomAccessFile + ?Sized, R: CallRecorder> {
    /// `None` only while it is dropped.
    file: Option<Arc<F>>,
    tap: Tap<R>,
}

impl<F: RandomAccessFile + ?Sized, R: CallRecorder> TracedFile<F, R> {
    pub(super) fn new(file: Arc<F>, tap: Tap<R>) -> Self {
        Self { file: Some(file), tap }
    }

    fn file(&self) -> &F {
        self.file.as_deref().expect("a file is there until it is dropped")
    }

    #[inline]
    fn call<T>(
        &self,
        kind: FileCallKind,
        extent: Extent,
        work: impl FnOnce(&F) -> Result<T>,
    ) -> Result<T> {
        let file = self.file();
        self.tap.call(kind, file.path(), |_| extent, || work(file))
    }

    /// What was read, or was to be.
    #[inline]
    fn read(
        &self,
        (offset, length): (u64, usize),
        work: impl FnOnce(&F) -> Result<usize>,
    ) -> Result<usize> {
        let file = self.file();
        let extent =
            |read: &Result<usize>| Extent::bytes(offset, *read.as_ref().unwrap_or(&length) as u64);
        self.tap.call(FileCallKind::Read, file.path(), extent, || work(file))
    }
}

impl<F: RandomAccessFile + ?Sized, R: CallRecorder> Drop for TracedFile<F, R> {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if self.tap.recorder.is_on() {
            let path = file.path().to_path_buf();
            self.tap.plain(FileCallKind::Close, &path, Extent::NONE, || drop(file));
        }
    }
}

impl<F: RandomAccessFile + ?Sized, R: CallRecorder> RandomAccessFile for TracedFile<F, R> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read((offset, buffer.len()), |file| file.read_at(offset, buffer))
    }

    fn size(&self) -> Result<u64> {
        let extent = |size: &Result<u64>| Extent::size(size.as_ref().ok().copied());
        self.tap.call(FileCallKind::FileSize, self.path(), extent, || self.file().size())
    }

    fn path(&self) -> &Path {
        self.file().path()
    }

    fn read_onto(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<usize> {
        self.read((offset, length), |file| file.read_onto(offset, length, buffer))
    }

    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.file().is_unwritten(offset, bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        let extent = |found: &Result<Metadata>| Extent::size(found.as_ref().ok().map(|it| it.size));
        self.tap.call(FileCallKind::FileSize, self.path(), extent, || self.file().metadata())
    }

    fn share(&self) -> Result<bool> {
        self.call(FileCallKind::Lock, Extent::NONE, |file| file.share())
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.file().descriptor()
    }

    fn note_read(&self, place: (u64, usize), since: Instant) {
        self.file().note_read(place, since);
        self.tap.read_together(self.path(), place, since);
    }

    fn is_direct(&self) -> bool {
        self.file().is_direct()
    }

    fn read_block(&self) -> usize {
        self.file().read_block()
    }

    fn temperature(&self) -> Temperature {
        self.file().temperature()
    }

    fn advise(&self, advice: Advice) {
        let file = self.file();
        match advice {
            Advice::WillNeed { offset, length } => {
                let extent = Extent::bytes(offset, length);
                let work = || file.advise(advice);
                self.tap.plain(FileCallKind::Prefetch, file.path(), extent, work);
            }
            _ => file.advise(advice),
        }
    }
}

impl<F: WritableFile + ?Sized, R: CallRecorder> WritableFile for TracedFile<F, R> {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let extent = Extent::bytes(offset, data.len() as u64);
        self.call(FileCallKind::Write, extent, |file| file.write_at(offset, data))
    }

    fn write_handed(&self, offset: u64, data: &[u8], crc32c: u32) -> Result<()> {
        let extent = Extent::bytes(offset, data.len() as u64);
        self.call(FileCallKind::Write, extent, |file| file.write_handed(offset, data, crc32c))
    }

    fn sync(&self) -> Result<()> {
        self.call(FileCallKind::Sync, Extent::NONE, |file| file.sync())
    }

    fn truncate(&self, length: u64) -> Result<()> {
        let extent = Extent::length(length);
        self.call(FileCallKind::Truncate, extent, |file| file.truncate(length))
    }

    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let extent = Extent::bytes(offset, length);
        self.call(FileCallKind::Write, extent, |file| file.write_vectored_at(offset, parts))
    }

    fn write_owned(&self, offset: u64, buffer: AlignedBuffer) -> Result<AlignedBuffer> {
        let extent = Extent::bytes(offset, buffer.as_slice().len() as u64);
        self.call(FileCallKind::Write, extent, |file| file.write_owned(offset, buffer))
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        let extent = Extent::bytes(range.start, range.end.saturating_sub(range.start));
        self.call(FileCallKind::RangeSync, extent, |file| file.range_sync(range, strict))
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        let extent = Extent::bytes(0, length);
        self.call(FileCallKind::Allocate, extent, |file| file.allocate(length, keep_size))
    }
}

impl<F: LogFile + ?Sized, R: CallRecorder> LogFile for TracedFile<F, R> {
    fn is_mappable(&self) -> bool {
        self.file().is_mappable()
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        let Some(mapping) = self.file().map(offset, length)? else { return Ok(None) };
        let (path, tap) = (self.path().into(), self.tap.clone());
        Ok(Some(Box::new(TracedMapping { mapping, offset, path, tap })))
    }
}

impl<F: ReclaimableFile + ?Sized, R: CallRecorder> ReclaimableFile for TracedFile<F, R> {
    fn claim(&self) -> Result<bool> {
        self.call(FileCallKind::Lock, Extent::NONE, |file| file.claim())
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let extent = Extent::bytes(range.start, range.end.saturating_sub(range.start));
        self.call(FileCallKind::PunchHole, extent, |file| file.punch_hole(range))
    }
}

/// A mapping of which each copy may be told.
struct TracedMapping<R> {
    mapping: Box<dyn Mapping>,
    /// Where it begins in the file.
    offset: u64,
    path: Box<Path>,
    tap: Tap<R>,
}

impl<R: CallRecorder> Mapping for TracedMapping<R> {
    #[inline]
    fn write(&mut self, at: usize, data: &[u8]) {
        let Self { mapping, offset, path, tap } = self;
        let extent = Extent::bytes(*offset + at as u64, data.len() as u64);
        tap.plain(FileCallKind::MappedWrite, path, extent, || mapping.write(at, data));
    }

    fn populate(&mut self, range: Range<usize>) -> Result<()> {
        let Self { mapping, offset, path, tap } = self;
        let extent = Extent::bytes(*offset + range.start as u64, range.len() as u64);
        tap.call(FileCallKind::Prefetch, path, |_| extent, || mapping.populate(range))
    }
}
