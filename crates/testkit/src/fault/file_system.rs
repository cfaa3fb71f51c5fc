//! The calls, counted, and failed as planned.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::base::Result;
use flagstone::env::{
    self, AnyFile, DIRECT_BLOCK, FileAround, FileLock, FileSystem, Mapping, Metadata, OpenMode,
    RandomAccessFile,
};
use parking_lot::Mutex;

use super::files::{HistoryEpoch, Pasts};
use super::plan::{Call, Failure, Injection, Plan};
use crate::CrashFs;
use crate::crash::BLOCK_SIZE;

type Before = Arc<dyn Fn(Call, &Path) + Send + Sync>;

#[derive(Default)]
struct State {
    plan: Plan,
    /// Calls since the plan was made.
    number: u64,
    calls_max: Option<u64>,
    /// The kind of call that the plan has begun to fail.
    begun: Option<Call>,
    failed: Vec<Failure>,
    /// The calls since the plan was made, if they are to be remembered.
    record: Option<Vec<(Call, PathBuf)>>,
    pasts: Pasts,
    then: Option<Box<dyn FnOnce() + Send>>,
    before: Option<Before>,
    /// The moment of the disk's history at which the first call failed.
    failed_at: Option<usize>,
}

/// Counts and fails the calls of another file system; clones share the count.
#[derive(Clone)]
pub struct FaultFs {
    inner: Arc<dyn FileSystem>,
    /// The file system underneath, if it loses what failed syncs leave behind.
    disk: Option<CrashFs>,
    state: Arc<Mutex<State>>,
    /// Set when the process has ended whose file system this is.
    ended: Arc<AtomicBool>,
}

impl FaultFs {
    /// One that lets everything through.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner, disk: None, state: Arc::default(), ended: Arc::default() }
    }

    /// One above a disk that loses what was not synced: for good, when the sync fails.
    pub fn above(disk: &CrashFs) -> Self {
        Self { disk: Some(disk.clone()), ..Self::new(Arc::new(disk.clone())) }
    }

    /// Fails the calls from now on as planned.
    pub fn plan(&self, plan: Plan) {
        let mut state = self.state.lock();
        (state.plan, state.number, state.begun) = (plan, 0, None);
        if let Some(record) = &mut state.record {
            record.clear();
        }
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.plan(Plan::Nothing);
    }

    /// Remembers the calls from now on, for [`FaultFs::recorded`].
    pub fn record(&self) {
        self.state.lock().record = Some(Vec::new());
    }

    /// The calls since the plan was made.
    pub fn recorded(&self) -> Vec<(Call, PathBuf)> {
        self.state.lock().record.clone().unwrap_or_default()
    }

    /// Panics when more calls than these have come since the plan was made: somebody goes round in
    /// circles.
    pub fn limit_calls(&self, calls_max: u64) {
        self.state.lock().calls_max = Some(calls_max);
    }

    /// Does this when the next call fails, before whoever made it hears of that.
    pub fn when_one_fails(&self, then: impl FnOnce() + Send + 'static) {
        self.state.lock().then = Some(Box::new(then));
    }

    /// Does this before every call, within which it may itself make calls.
    pub fn before_each(&self, before: impl Fn(Call, &Path) + Send + Sync + 'static) {
        self.state.lock().before = Some(Arc::new(before));
    }

    /// How many calls there have been since the plan was made.
    pub fn calls(&self) -> u64 {
        self.state.lock().number
    }

    /// The calls that were made to fail, oldest first.
    pub fn failed(&self) -> Vec<Failure> {
        self.state.lock().failed.clone()
    }

    /// The moment in the history of the [`CrashFs`] underneath at which the first call failed.
    pub fn failed_at(&self) -> Option<usize> {
        self.state.lock().failed_at
    }

    /// The process dies: whatever is still called through this handle does nothing.
    pub fn kill(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The file system for the next process: the plan goes on, but what that knows of its files it
    /// learns from the disk.
    #[must_use]
    pub fn new_process(&self) -> Self {
        self.state.lock().pasts = Pasts::default();
        Self { ended: Arc::default(), ..self.clone() }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn pass(&self, call: Call, path: &Path) -> Option<Injection> {
        self.pass_if(call, path, call.takes_space())
    }

    /// As [`FaultFs::pass`], for a call that perhaps `takes_space`.
    fn pass_if(&self, call: Call, path: &Path, takes_space: bool) -> Option<Injection> {
        if self.has_ended() {
            return Some(Injection::ReadOnly);
        }
        let before = self.state.lock().before.clone();
        if let Some(before) = before {
            before(call, path);
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let number = state.number;
        state.number += 1;
        assert!(
            state.calls_max.is_none_or(|max| number < max),
            "{number} calls, and no end: {call:?}"
        );
        if let Some(record) = &mut state.record {
            record.push((call, path.to_path_buf()));
        }
        let injection = state.plan.verdict(call, path, takes_space, number, &mut state.begun)?;
        state.failed.push(Failure { call, path: path.to_path_buf(), injection, takes_space });
        if state.failed_at.is_none() {
            state.failed_at = self.disk.as_ref().map(CrashFs::changes);
        }
        let then = state.then.take();
        drop(guard);
        if let Some(then) = then {
            then();
        }
        Some(injection)
    }

    /// Does the work, unless the call is to fail before it; says that it failed, if it is to.
    fn call<T>(&self, call: Call, path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.pass(call, path) {
            None => work(),
            Some(Injection::Late) => work().and(Err(Injection::Late.error(call, path))),
            Some(injection) => Err(injection.error(call, path)),
        }
    }
}

struct FaultFile {
    fs: FaultFs,
    inner: AnyFile,
    past: Arc<HistoryEpoch>,
}

impl FaultFile {
    /// How much of `length` bytes is read or written before it fails: of a direct file, whole
    /// blocks.
    fn half(&self, length: usize) -> usize {
        let half = length / 2;
        if self.is_direct() { half - half % DIRECT_BLOCK } else { half }
    }
}

impl FileAround for FaultFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self.fs.pass(Call::Read, self.path()) {
            None => self.inner.read_at(offset, buffer),
            Some(Injection::Short) => {
                let half = self.half(buffer.len());
                self.inner.read_at(offset, &mut buffer[..half])
            }
            Some(injection) => Err(injection.error(Call::Read, self.path())),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let takes_space = !self.past.has_reserved(offset + data.len() as u64);
        let Some(injection) = self.fs.pass_if(Call::Write, self.path(), takes_space) else {
            self.past.write(offset, data.len() as u64);
            return self.inner.write_at(offset, data);
        };
        let written = match injection {
            Injection::ReadOnly => 0,
            Injection::Late => data.len(),
            _ => self.half(data.len()),
        };
        self.inner.write_at(offset, &data[..written])?;
        Err(injection.error(Call::Write, self.path()))
    }

    fn sync(&self) -> Result<()> {
        self.past.begin_sync(self.path(), self.inner.size()?);
        let synced = self.fs.call(Call::Sync, self.path(), || self.inner.sync());
        self.past.end_sync(synced.is_err());
        if let Some(disk) =
            self.fs.disk.as_ref().filter(|_| synced.is_err() && !self.fs.has_ended())
        {
            disk.lose_unsynced(self.path());
        }
        synced
    }

    /// One that fails loses what a failed sync loses, and may be the only one who is told.
    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        let asked =
            self.fs.call(Call::RangeSync, self.path(), || self.inner.range_sync(range, strict));
        if asked.is_err() && !self.fs.has_ended() {
            self.past.end_sync(true);
            if let Some(disk) = &self.fs.disk {
                disk.lose_unsynced(self.path());
            }
        }
        asked
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.fs.call(Call::Allocate, self.path(), || {
            self.inner.allocate(length, keep_size)?;
            self.past.reserve(length);
            Ok(())
        })
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.fs.call(Call::Truncate, self.path(), || {
            self.inner.truncate(length)?;
            self.past.cut(length);
            Ok(())
        })
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let Some(injection) = self.fs.pass(Call::Punch, self.path()) else {
            return self.inner.punch_hole(range);
        };
        let end = match injection {
            Injection::ReadOnly => range.start,
            Injection::Late => range.end,
            // What is done by halves is done by whole blocks.
            _ => range.start + (range.end - range.start) / 2 / BLOCK_SIZE * BLOCK_SIZE,
        };
        self.inner.punch_hole(range.start..end)?;
        Err(injection.error(Call::Punch, self.path()))
    }

    fn size(&self) -> Result<u64> {
        self.fs.call(Call::Size, self.path(), || self.inner.size())
    }

    fn is_mappable(&self) -> bool {
        self.inner.is_mappable()
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        let mapping = self.fs.call(Call::Map, self.path(), || self.inner.map(offset, length))?;
        let (fs, past, path) = (self.fs.clone(), self.past.clone(), self.path().to_path_buf());
        Ok(mapping.map(|inner| {
            Box::new(FaultMapping { fs, inner, past, offset, path }) as Box<dyn Mapping>
        }))
    }
}

struct FaultMapping {
    fs: FaultFs,
    inner: Box<dyn Mapping>,
    past: Arc<HistoryEpoch>,
    offset: u64,
    path: PathBuf,
}

impl Mapping for FaultMapping {
    fn write(&mut self, at: usize, data: &[u8]) {
        if !self.fs.has_ended() {
            self.past.write(self.offset + at as u64, data.len() as u64);
            self.inner.write(at, data);
        }
    }

    fn populate(&mut self, range: Range<usize>) -> Result<()> {
        self.fs.call(Call::Populate, &self.path, || self.inner.populate(range))
    }
}

impl env::FileSystemAround for FaultFs {
    fn inner(&self) -> &dyn FileSystem {
        &*self.inner
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let call = match mode {
            OpenMode::RandomAccess(_) => Call::Open,
            OpenMode::CreateWritable(_) | OpenMode::CreateLog => Call::Create,
            OpenMode::ReopenWritable | OpenMode::ReopenLog | OpenMode::Reclaimable => Call::Update,
        };
        let inner = self.call(call, path, || mode.open(&*self.inner, path))?;
        let past = self.state.lock().pasts.opened(path, mode.creates());
        Ok(AnyFile::around(FaultFile { fs: self.clone(), inner, past }))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        let call = if source.parent() == target.parent() { Call::Rename } else { Call::Move };
        self.call(call, source, || {
            self.inner.rename(source, target)?;
            self.state.lock().pasts.renamed(source, target);
            Ok(())
        })
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.call(Call::Link, source, || {
            self.inner.link(source, target)?;
            self.state.lock().pasts.linked(source, target);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call(Call::Remove, path, || {
            self.inner.remove(path)?;
            self.state.lock().pasts.removed(path);
            Ok(())
        })
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.call(Call::CreateDirectory, path, || self.inner.create_directory(path))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.call(Call::RemoveDirectory, path, || self.inner.remove_directory(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.call(Call::List, directory, || self.inner.list(directory))
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.call(Call::SyncDirectory, directory, || self.inner.sync_directory(directory))
            .inspect_err(|_| {
                if let Some(disk) = self.disk.as_ref().filter(|_| !self.has_ended()) {
                    disk.lose_names(directory);
                }
            })
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.call(Call::Metadata, path, || self.inner.metadata(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.call(Call::Lock, path, || self.inner.lock(path))
    }

    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        env::FileSystemAround::lock(self, path)
    }
}

#[cfg(test)]
mod tests;
