//! A file that is written while the next data is being prepared.
//!
//! [`WritableFile::write_owned`] hands a buffer to the file's own thread and returns the buffer
//! written before, so two buffers are in use. Every other call waits until nothing is being
//! written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use super::direct::AlignedBuffer;
use super::{Join, RandomAccessFile, Spawn, WritableFile};
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Code, Error, Result};

/// Writes in the background for its owner, which must not share it with other writers.
pub struct WriteBehind {
    spawner: Arc<dyn Spawn>,
    shared: Arc<Shared>,
    /// Started for the first buffer: many a file is smaller.
    thread: Mutex<Option<Box<dyn Join>>>,
}

struct Shared {
    file: Arc<dyn WritableFile>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Option<(u64, AlignedBuffer)>,
    is_writing: bool,
    /// The one that was written last.
    idle: Option<AlignedBuffer>,
    /// Why nothing more is written.
    failed: Option<Error>,
    has_ended: bool,
}

impl WriteBehind {
    /// Writes to `file` in a thread of this spawner's.
    pub fn new(file: Arc<dyn WritableFile>, spawner: Arc<dyn Spawn>) -> Self {
        let shared = Arc::new(Shared { file, state: Mutex::default(), changed: Condvar::new() });
        Self { spawner, shared, thread: Mutex::default() }
    }

    /// The file, once nothing is being written.
    fn settled(&self) -> Result<&Arc<dyn WritableFile>> {
        let mut state = self.shared.state.lock();
        self.shared.wait_until_idle(&mut state)?;
        Ok(&self.shared.file)
    }

    fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = Some(
                self.spawner
                    .spawn("flagstone-write", Box::new(move || shared.write_until_ended()))?,
            );
        }
        Ok(())
    }
}

impl Shared {
    fn wait_until_idle(&self, state: &mut crate::base::sync::MutexGuard<'_, State>) -> Result<()> {
        while state.waiting.is_some() || state.is_writing {
            self.changed.wait(state);
        }
        state.failed.clone().map_or(Ok(()), Err)
    }

    fn write_until_ended(&self) {
        let mut state = self.state.lock();
        while !state.has_ended {
            let Some((offset, mut buffer)) = state.waiting.take() else {
                self.changed.wait(&mut state);
                continue;
            };
            state.is_writing = true;
            drop(state);
            let written =
                catch_unwind(AssertUnwindSafe(|| self.file.write_at(offset, buffer.as_slice())));
            let panicked =
                |_| Err(Error::new(Code::Aborted, "writing panicked").at(self.file.path()));
            buffer.resize(0);
            state = self.state.lock();
            state.failed = written.unwrap_or_else(panicked).err();
            state.idle = Some(buffer);
            state.is_writing = false;
            self.changed.notify_all();
        }
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        self.shared.state.lock().has_ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.get_mut().take() {
            thread.join();
        }
    }
}

impl RandomAccessFile for WriteBehind {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.settled()?.read_at(offset, buffer)
    }

    fn size(&self) -> Result<u64> {
        self.settled()?.size()
    }

    fn path(&self) -> &Path {
        self.shared.file.path()
    }

    fn is_direct(&self) -> bool {
        self.shared.file.is_direct()
    }
}

impl WritableFile for WriteBehind {
    fn write_owned(&self, offset: u64, buffer: AlignedBuffer) -> Result<AlignedBuffer> {
        self.start()?;
        let mut state = self.shared.state.lock();
        self.shared.wait_until_idle(&mut state)?;
        let capacity = buffer.capacity();
        state.waiting = Some((offset, buffer));
        self.shared.changed.notify_all();
        Ok(state.idle.take().unwrap_or_else(|| AlignedBuffer::of_its_own(capacity)))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.settled()?.write_at(offset, data)
    }

    fn sync(&self) -> Result<()> {
        self.settled()?.sync()
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.shared.file.allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.settled()?.truncate(length)
    }
}

#[cfg(test)]
mod tests;
