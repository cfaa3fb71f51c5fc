//! A file that is written while what comes next is being made.
//!
//! [`File::write_owned`] hands a buffer to a thread of the file's own and returns the one that was written before: two
//! buffers are on their way in all. Every other call waits until nothing is being written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use super::direct::AlignedBuffer;
use super::{File, Join, Spawn};
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Code, Error, Result};

/// Writes behind its owner, who must not share it with other writers.
pub struct WriteBehind {
    spawner: Arc<dyn Spawn>,
    shared: Arc<Shared>,
    /// Started for the first buffer: many a file is smaller.
    thread: Mutex<Option<Box<dyn Join>>>,
}

struct Shared {
    file: Arc<dyn File>,
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
    pub fn new(file: Arc<dyn File>, spawner: Arc<dyn Spawn>) -> Self {
        let shared = Arc::new(Shared { file, state: Mutex::default(), changed: Condvar::new() });
        Self { spawner, shared, thread: Mutex::default() }
    }

    /// The file, once nothing is being written.
    fn settled(&self) -> Result<&Arc<dyn File>> {
        let mut state = self.shared.state.lock();
        self.shared.wait_until_idle(&mut state)?;
        Ok(&self.shared.file)
    }

    fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread =
                Some(self.spawner.spawn("flagstone-write", Box::new(move || shared.write_until_ended()))?);
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
            let written = catch_unwind(AssertUnwindSafe(|| self.file.write_at(offset, buffer.as_slice())));
            let panicked = |_| Err(Error::new(Code::Aborted, "writing panicked").at(self.file.path()));
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

impl File for WriteBehind {
    fn write_owned(&self, offset: u64, buffer: AlignedBuffer) -> Result<AlignedBuffer> {
        self.start()?;
        let mut state = self.shared.state.lock();
        self.shared.wait_until_idle(&mut state)?;
        let capacity = buffer.capacity();
        state.waiting = Some((offset, buffer));
        self.shared.changed.notify_all();
        Ok(state.idle.take().unwrap_or_else(|| AlignedBuffer::of_its_own(capacity)))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.settled()?.read_at(offset, buffer)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::env::memory::MemoryFileSystem;
    use crate::env::{self, BufferedWriter, Env, FileSystem, OpenMode, read_file};

    /// A file whose writes wait until they are let go, and fail if they are told to.
    struct Held {
        inner: Arc<dyn File>,
        held: Mutex<()>,
        fails: AtomicBool,
    }

    impl env::FileAround for Held {
        fn inner(&self) -> &dyn File {
            &*self.inner
        }

        fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
            let _held = self.held.lock();
            if self.fails.load(Ordering::Relaxed) {
                Err(Error::io("write", self.path(), std::io::Error::other("broken")))
            } else {
                self.inner.write_at(offset, data)
            }
        }
    }

    fn held(fs: &MemoryFileSystem) -> Arc<Held> {
        fs.create_directory(Path::new("/d")).unwrap();
        let inner = fs.open(Path::new("/d/f"), OpenMode::CreateDirect).unwrap();
        Arc::new(Held { inner, held: Mutex::default(), fails: AtomicBool::default() })
    }

    #[test]
    fn the_next_bytes_are_made_while_those_before_are_written() {
        let fs = MemoryFileSystem::new();
        let file = held(&fs);
        let behind = Arc::new(WriteBehind::new(file.clone(), Env::os().spawner));
        let mut writer = BufferedWriter::new(behind, 0, 4096);
        let content: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
        let still = file.held.lock();
        // One buffer is on its way, another is full.
        writer.append(&content[..8192]).unwrap();
        assert_eq!(file.size().unwrap(), 0);
        drop(still);
        content[8192..].chunks(700).for_each(|piece| writer.append(piece).unwrap());
        writer.sync().unwrap();
        assert!(read_file(&fs, Path::new("/d/f"), u64::MAX).unwrap() == content);
    }

    #[test]
    fn a_write_that_failed_is_heard_of_by_whoever_calls_next() {
        for call in 0..4 {
            let file = held(&MemoryFileSystem::new());
            let behind = WriteBehind::new(file.clone(), Env::os().spawner);
            let mut buffer = AlignedBuffer::with_capacity(4096);
            buffer.resize(4096);
            let mut buffer = behind.write_owned(0, buffer).unwrap();
            behind.sync().unwrap();
            file.fails.store(true, Ordering::Relaxed);
            buffer.resize(4096);
            let mut buffer = behind.write_owned(4096, buffer).unwrap();
            buffer.resize(4096);
            let error = match call {
                0 => behind.write_owned(8192, buffer).map(drop),
                1 => behind.write_at(8192, buffer.as_slice()),
                2 => behind.truncate(100),
                _ => behind.sync(),
            };
            assert!(error.unwrap_err().to_string().contains("broken"), "{call}");
            // Not forgotten by having been told once.
            behind.sync().unwrap_err();
        }
    }
}
