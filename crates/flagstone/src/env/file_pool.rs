//! Files for reading, of which a limited number is open at a time (RocksDB's `max_open_files`).
//!
//! **Algorithm.**
//! 1. A read finds its file open, and marks it.
//! 2. If the file is not open, the read takes a place in the pool. While there are too many files,
//!    the oldest unmarked file is closed; a marked file that would be next loses its mark and
//!    becomes the youngest. Then the file is opened, without a lock.
//! 3. A reader of a file that is closed meanwhile keeps it until the read is done, so more files
//!    may be open for a short time.
//! 4. If the process cannot open another file, all files of the pool are closed, and the opening is
//!    tried once more.
//!
//! With no limit, files are not in the pool and cost nothing. In either case their reads keep
//! within the limits of the calls that cause them ([`BoundedFile`]).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustix::io::Errno;

use super::{Advice, BoundedFile, FileSystem, IoMode, RandomAccessFile, hint_temperature};
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Error, Result, Temperature};

/// Opens files for reading, and closes those that were not read from for long.
pub struct FilePool {
    fs: Arc<dyn FileSystem>,
    state: Mutex<State>,
}

struct State {
    /// How many files may be open; `None` for all.
    capacity: Option<usize>,
    /// How often one was opened again to be read.
    reopens: u64,
    /// Those that are, oldest first.
    open: VecDeque<Arc<Slot>>,
    /// Those that are being opened.
    opening: usize,
}

struct Slot {
    path: PathBuf,
    io: IoMode,
    temperature: Temperature,
    file: ArcSwapOption<Arc<dyn RandomAccessFile>>,
    is_used: AtomicBool,
}

impl FilePool {
    /// One of files that may all be open.
    pub fn new(fs: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self {
            fs,
            state: Mutex::new(State {
                capacity: None,
                reopens: 0,
                open: VecDeque::new(),
                opening: 0,
            }),
        })
    }

    /// Whether only so many files may be open.
    pub fn is_limited(&self) -> bool {
        self.state.lock().capacity.is_some()
    }

    /// How often a file was opened again that had been closed for others.
    pub fn reopens(&self) -> u64 {
        self.state.lock().reopens
    }

    /// So many files may be open from now on, at least one. Files that were opened while there was
    /// no limit stay open.
    pub fn set_capacity(&self, capacity: Option<usize>) {
        let mut state = self.state.lock();
        state.capacity = capacity.map(|capacity| capacity.max(1));
        state.make_room();
    }

    /// Opens a file for reading here and there.
    ///
    /// # Errors
    /// As [`FileSystem::open_random_access`]; the file's reads fail likewise if it cannot be opened
    /// again.
    pub fn open(
        self: &Arc<Self>,
        path: &Path,
        io: IoMode,
        temperature: Temperature,
    ) -> Result<Arc<dyn RandomAccessFile>> {
        let slot = Slot {
            path: path.to_path_buf(),
            io,
            temperature,
            file: ArcSwapOption::empty(),
            is_used: AtomicBool::new(true),
        };
        if self.state.lock().capacity.is_none() {
            return Ok(Arc::new(BoundedFile(slot.open(&*self.fs)?)));
        }
        let slot = Arc::new(slot);
        let file = self.open_slot(&slot)?;
        let (is_direct, read_block) = (file.is_direct(), file.read_block());
        let pooled = PooledFile { pool: self.clone(), slot, is_direct, read_block };
        Ok(Arc::new(BoundedFile(Arc::new(pooled))))
    }

    #[cold]
    fn open_slot(&self, slot: &Arc<Slot>) -> Result<Arc<dyn RandomAccessFile>> {
        {
            let mut state = self.state.lock();
            if let Some(file) = slot.file.load_full() {
                return Ok((*file).clone());
            }
            state.opening += 1;
            state.make_room();
        }
        let mut opened = slot.open(&*self.fs);
        if opened.as_ref().is_err_and(is_out_of_descriptors) {
            // Whoever has taken the others: these can be done without.
            self.state.lock().close_all();
            opened = slot.open(&*self.fs);
        }
        let mut state = self.state.lock();
        state.opening -= 1;
        let opened = opened?;
        if let Some(file) = slot.file.load_full() {
            // Another thread was faster.
            return Ok((*file).clone());
        }
        slot.file.store(Some(Arc::new(opened.clone())));
        state.open.push_back(slot.clone());
        Ok(opened)
    }
}

impl State {
    /// Closes files until there are no more than may be, with those that are being opened.
    fn make_room(&mut self) {
        let Some(capacity) = self.capacity else { return };
        // Each once: who reads all the time would else be waited for.
        let mut spared = self.open.len();
        while self.open.len() + self.opening > capacity {
            let Some(oldest) = self.open.pop_front() else { return };
            if spared > 0 && oldest.is_used.swap(false, Ordering::Relaxed) {
                spared -= 1;
                self.open.push_back(oldest);
            } else {
                oldest.file.store(None);
            }
        }
    }

    fn close_all(&mut self) {
        self.open.drain(..).for_each(|slot| slot.file.store(None));
    }
}

/// What the system answers where the process may open no more files.
pub(crate) fn out_of_descriptors() -> std::io::Error {
    Errno::MFILE.into()
}

/// Whether the process, or the system, has no room for one more open file: nothing is wrong with
/// the file then.
pub fn is_out_of_descriptors(error: &Error) -> bool {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    matches!(cause.and_then(Errno::from_io_error), Some(Errno::MFILE | Errno::NFILE))
}

impl Slot {
    fn open(&self, fs: &dyn FileSystem) -> Result<Arc<dyn RandomAccessFile>> {
        hint_temperature(fs, &self.path, self.temperature);
        let file = fs.open_random_access(&self.path, self.io)?;
        file.advise(Advice::Random);
        Ok(file)
    }
}

/// A file that is opened when it is read from.
struct PooledFile {
    pool: Arc<FilePool>,
    slot: Arc<Slot>,
    is_direct: bool,
    read_block: usize,
}

impl PooledFile {
    fn with<T>(&self, call: impl FnOnce(&dyn RandomAccessFile) -> Result<T>) -> Result<T> {
        // Read first: a line that all readers write to goes from one processor to the next.
        if !self.slot.is_used.load(Ordering::Relaxed) {
            self.slot.is_used.store(true, Ordering::Relaxed);
        }
        match self.slot.file.load_full() {
            Some(file) => call(&**file),
            None => {
                self.pool.state.lock().reopens += 1;
                call(&*self.pool.open_slot(&self.slot)?)
            }
        }
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        if self.slot.file.swap(None).is_some() {
            state.open.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
        }
    }
}

impl RandomAccessFile for PooledFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.with(|file| file.read_at(offset, buffer))
    }

    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.with(|file| file.is_unwritten(offset, bytes))
    }

    fn size(&self) -> Result<u64> {
        self.with(|file| file.size())
    }

    fn path(&self) -> &Path {
        &self.slot.path
    }

    fn is_direct(&self) -> bool {
        self.is_direct
    }

    fn read_block(&self) -> usize {
        self.read_block
    }

    fn advise(&self, advice: Advice) {
        if let Some(file) = self.slot.file.load_full() {
            file.advise(advice);
        }
    }
}

#[cfg(test)]
mod tests;
