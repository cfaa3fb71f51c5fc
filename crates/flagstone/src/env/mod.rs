//! The seam to the world: file system, clock, randomness and threads.
//!
//! Nothing in the engine reaches the operating system but through these traits, so that tests can
//! put a recording, a failing or an in-memory world underneath. The traits are small on purpose:
//! every method taxes every fake; those that change a few calls of another one are written as
//! [`FileAround`] and [`FileSystemAround`].

mod ahead;
mod around;
mod behind;
mod buffered;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod description_lock;
mod direct;
pub(crate) mod failing_pages;
mod file_pool;
mod held;
mod limits;
mod mapping;
pub mod memory;
mod names;
#[cfg(target_os = "linux")]
mod niceness;
mod open_databases;
pub mod os;
mod os_lock;
mod range_sync;
mod rate_limiter;
mod reserve;
#[cfg(all(target_os = "linux", not(miri)))]
mod ring;
mod runs;
mod sharers;
mod sharing;
mod threads;
mod together;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::{Error, Result, Temperature};
pub use ahead::{Coming, ReadAhead};
pub use around::{FileAround, FileSystemAround};
pub use behind::WriteBehind;
pub use buffered::BufferedWriter;
pub use direct::{
    AlignedBuffer, DIRECT_BLOCK, UnreservedFile, check_direct_reads, check_direct_writes,
};
pub use failing_pages::read_around_failures;
pub(crate) use file_pool::out_of_descriptors;
pub use file_pool::{FilePool, is_out_of_descriptors};
pub(crate) use held::HeldFiles;
pub use limits::memory_limit;
pub use names::{Names, NewNames, directory_of};
pub(crate) use open_databases::{Directories, Listed, list_database, open_databases};
pub use range_sync::{RangeSyncedFile, RangeSyncs};
pub use rate_limiter::{
    IoPriority, IoWatch, LimitedFile, RateLimiter, RateLimiterMode, RateLimiterOptions,
};
pub use runs::{PAGE_RUN, PageRuns, page_run};
pub(crate) use sharers::{GroupMember, SharedGroup};
pub(crate) use threads::{
    Asleep, GivingWay, JobLimits, Member, MemberId, Next, ReaderPool, Role, Seats, Turn,
};
pub use threads::{BackgroundThreads, BackgroundThreadsOptions};
pub use together::{Place, Take, read_together};

/// How [`FileSystem::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// A new file for reading and writing; an existing one is emptied.
    Create,
    /// An existing file for reading and writing, its bytes kept (WAL recycling, cutting off a
    /// tail).
    Update,
    /// As `Read`, around the system's cache.
    ReadDirect,
    /// As `Create`, around the system's cache: writes are whole blocks of [`DIRECT_BLOCK`] bytes,
    /// in the file and in memory.
    CreateDirect,
}

impl OpenMode {
    /// Whether the file is new afterwards.
    pub fn creates(self) -> bool {
        matches!(self, Self::Create | Self::CreateDirect)
    }

    /// Whether it is only read.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadDirect)
    }

    /// Whether the system's cache is left out.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::ReadDirect | Self::CreateDirect)
    }
}

/// One open file. Offsets are the caller's, so that readers and a syncer may work on it at the same
/// time.
pub trait File: Send + Sync {
    /// Reads into `buffer` from `offset` until it is full or the file ends; the number of bytes
    /// read.
    ///
    /// # Errors
    /// `IoError` naming the file and offset.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Appends to `buffer` the bytes of the file from `offset` on, `length` of them or as many as
    /// there are; how many. Spares zeros that are written over at once, where it can: best with a
    /// buffer that has room for so many and no more.
    ///
    /// # Errors
    /// As [`File::read_at`].
    fn read_onto(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<usize> {
        let start = buffer.len();
        buffer.resize(start + length, 0);
        let filled = self.read_at(offset, &mut buffer[start..]);
        buffer.truncate(start + *filled.as_ref().unwrap_or(&0));
        filled
    }

    /// Writes all of `data` at `offset`, growing the file as needed.
    ///
    /// # Errors
    /// `IoError` (subcode `NoSpace` on a full device); any part of the data may have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Writes `parts` one behind the other from `offset` on, as one write of all of them. Copies
    /// them together unless the system has something better.
    ///
    /// # Errors
    /// As [`File::write_at`].
    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.write_at(offset, &parts.concat())
    }

    /// Writes a buffer at `offset`; one to be filled next comes back, empty. May return before it
    /// is written: what fails then, fails whatever is called next.
    ///
    /// # Errors
    /// As [`File::write_at`].
    fn write_owned(&self, offset: u64, mut buffer: AlignedBuffer) -> Result<AlignedBuffer> {
        self.write_at(offset, buffer.as_slice())?;
        buffer.resize(0);
        Ok(buffer)
    }

    /// Makes all completed writes and the size durable (`fdatasync`).
    ///
    /// # Errors
    /// `IoError`; the file's unsynced bytes must then be taken for lost, and the file never synced
    /// again.
    fn sync(&self) -> Result<()>;

    /// Asks the system to begin writing the bytes of a range to the device, so that a sync has less
    /// left to do; nothing is durable by that. If `strict`, all before the end of the range that it
    /// was asked for earlier is waited for. `false` where the system cannot.
    ///
    /// # Errors
    /// `IoError`; the file's unsynced bytes must then be taken for lost, and the file never synced
    /// again.
    fn range_sync(&self, _range: Range<u64>, _strict: bool) -> Result<bool> {
        Ok(false)
    }

    /// Reserves space for bytes `0..length`. `keep_size` leaves the file's size as it is; otherwise
    /// the file grows with zeros. May do nothing where the file system cannot.
    ///
    /// # Errors
    /// `IoError` with subcode `NoSpace` when there is too little.
    fn allocate(&self, length: u64, keep_size: bool) -> Result<()>;

    /// Sets the file's size; space beyond it is given back.
    ///
    /// # Errors
    /// `IoError`.
    fn truncate(&self, length: u64) -> Result<()>;

    /// Turns the bytes of a range into zeros and gives its whole blocks back to the file system;
    /// the file's size stays. `false` where the file system cannot: nothing has changed then.
    ///
    /// # Errors
    /// `IoError`; any part of the range may have been given back.
    fn punch_hole(&self, _range: Range<u64>) -> Result<bool> {
        Ok(false)
    }

    /// The file's size in bytes.
    ///
    /// # Errors
    /// `IoError`.
    fn size(&self) -> Result<u64>;

    /// What is known of the file, whatever has become of its name: at least its size.
    ///
    /// # Errors
    /// `IoError`.
    fn metadata(&self) -> Result<Metadata> {
        let size = self.size()?;
        Ok(Metadata {
            size,
            is_directory: false,
            modified: None,
            allocated: size,
            block_size: DIRECT_BLOCK as u64,
            links: 1,
            id: None,
        })
    }

    /// Tells writers in other handles and processes, until the file is closed, that it must stay as
    /// it is; `false` while one of them is changing it in place. Where there are no such locks,
    /// nothing is told.
    ///
    /// # Errors
    /// `IoError`.
    fn share(&self) -> Result<bool> {
        Ok(true)
    }

    /// Keeps readers waiting in [`File::share`] until the file is closed, so that it can be changed
    /// in place; `false` while one of them has it.
    ///
    /// # Errors
    /// `IoError`.
    fn claim(&self) -> Result<bool> {
        Ok(true)
    }

    /// Where the file is, for messages.
    fn path(&self) -> &Path;

    /// What the system knows the file by, if its reads need not come to [`File::read_at`]:
    /// [`read_together`] hands them to the kernel many at a time. It must read what `read_at`
    /// reads.
    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Whether it was opened to go around the system's cache. What is read from it may lie
    /// anywhere; what is written must be whole blocks.
    fn is_direct(&self) -> bool {
        false
    }

    /// What reads through [`File::descriptor`] must begin and end at multiples of.
    fn read_block(&self) -> usize {
        1
    }

    /// Whether parts of the file may be written to through [`File::map`]: the system has mappings,
    /// and holds space that was allocated for sure, so that a full disk is not met where no error
    /// can be returned.
    fn is_mappable(&self) -> bool {
        false
    }

    /// Maps `length` bytes from `offset` for writing; `None` where that cannot be. The bytes must
    /// have been allocated, and the file must not be cut below their end while they are written to.
    ///
    /// # Errors
    /// `IoError`.
    fn map(&self, _offset: u64, _length: usize) -> Result<Option<Box<dyn Mapping>>> {
        Ok(None)
    }

    /// Tells the system what is coming; only a hint.
    fn advise(&self, _advice: Advice) {}
}

/// A stretch of a file as memory. What is written is in the file at once, outlives the process, and
/// is made durable by [`File::sync`], which is also where an error of the device shows.
pub trait Mapping: Send + Sync {
    /// Copies `data` to `at`, counted from the mapping's beginning.
    ///
    /// # Panics
    /// If that is not within the mapping.
    fn write(&mut self, at: usize, data: &[u8]);

    /// Fetches the pages of a range, so that writing to them neither waits nor meets an error.
    ///
    /// # Errors
    /// `IoError`: they must not be written to.
    fn populate(&mut self, range: Range<usize>) -> Result<()>;
}

/// A hint about coming accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Single blocks here and there: no readahead.
    Random,
    /// From front to back.
    Sequential,
    /// These bytes will be read soon.
    WillNeed {
        /// First byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// The cached pages of the file will not be used again.
    DontNeed,
}

/// What is known of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// When it was last written to, in seconds since 1970, where that is known.
    pub modified: Option<u64>,
    /// Bytes that it takes on the disk: fewer than its size where it has holes.
    pub allocated: u64,
    /// Bytes of a block: the smallest hole that gives space back.
    pub block_size: u64,
    /// How many names it has.
    pub links: u64,
    /// Its device and its number there: two names with the same are of one file, or directory.
    /// `None` where that is not known: then a directory is taken for another one if its path is
    /// another.
    pub id: Option<(u64, u64)>,
}

/// Files and directories.
pub trait FileSystem: Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// `IoError`, with subcode `PathNotFound` if it (or its directory) is missing.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;

    /// Says how often the file at `path` is expected to be read, before it is made or opened: of
    /// tables of which that is known. Only a hint; a file system of several devices may choose one
    /// by it.
    fn advise(&self, _path: &Path, _temperature: Temperature) {}

    /// Renames a file, replacing `target`; durable after [`FileSystem::sync_directory`].
    ///
    /// # Errors
    /// `IoError`.
    fn rename(&self, source: &Path, target: &Path) -> Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// `IoError`, also when the file system has no links.
    fn link(&self, source: &Path, target: &Path) -> Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `IoError`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes a directory and its parents; one that exists is fine.
    ///
    /// # Errors
    /// `IoError`.
    fn create_directory(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `IoError`.
    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// The names in a directory, in no particular order.
    ///
    /// # Errors
    /// `IoError`.
    fn list(&self, directory: &Path) -> Result<Vec<String>>;

    /// Makes the names in a directory durable. The engine calls it by way of [`Names`] alone.
    ///
    /// # Errors
    /// `IoError`.
    fn sync_directory(&self, directory: &Path) -> Result<()>;

    /// Size and kind.
    ///
    /// # Errors
    /// `IoError`, with subcode `PathNotFound` if there is no such thing.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// Bytes that may still be written below a directory; `None` where nobody knows.
    ///
    /// # Errors
    /// `IoError`.
    fn free_space(&self, _directory: &Path) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Lets this process have as many files open as the system allows it, and says how many that
    /// are; `None` where there is no limit, or none is known.
    fn raise_open_files(&self) -> Option<u64> {
        None
    }

    /// Takes the lock that keeps other processes (and other handles of this one) out; released on
    /// drop.
    ///
    /// # Errors
    /// `Busy` with subcode `LockHeld`, or `IoError`.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;

    /// Keeps others out who would write, as [`FileSystem::lock`] does, where the file can only be
    /// read: the lock's file must be there, and is not changed.
    ///
    /// # Errors
    /// As [`FileSystem::lock`].
    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.lock(path)
    }
}

/// A held lock; dropping it releases it.
pub trait FileLock: Send + Sync {}

/// Time.
pub trait Clock: Send + Sync {
    /// Microseconds that never go back, from an arbitrary start.
    fn now_us(&self) -> u64;

    /// The same, a few milliseconds late at most: where somebody only wants to know how old things
    /// are, and the system tells that for less.
    fn coarse_us(&self) -> u64 {
        self.now_us()
    }

    /// Seconds since 1970.
    fn unix_seconds(&self) -> u64;

    /// Waits.
    fn sleep(&self, duration: Duration);
}

/// Random bits for identities and choices that need no seed.
pub trait Random: Send + Sync {
    /// The next 64 bits.
    fn next_u64(&self) -> u64;
}

/// Work for a thread that is waited for: it may borrow.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Threads.
pub trait Spawn: Send + Sync {
    /// Starts a background thread.
    ///
    /// # Errors
    /// `IoError` if the system has none left.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>>;

    /// Runs tasks, which must not panic, and returns when all have ended: each in a thread of its
    /// own as far as the system has any, the calling thread among them. A world without threads
    /// runs one after the other.
    fn run_all(&self, _name: &str, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }

    /// Runs a task, which must not panic, and returns when it has ended: in a thread that gives way
    /// to others, by so many steps of niceness more than the calling one, where several want the
    /// processor. In the calling thread where threads do not compete for one, or (but on Linux)
    /// have no niceness of their own.
    fn run_giving_way(&self, _name: &str, _niceness: i32, task: Task<'_>) {
        task();
    }

    /// In a world without threads, where callers do the background work themselves one step at a
    /// time: which of `choices` kinds of step to try first. `None` where threads do it.
    fn choose_step(&self, _choices: usize) -> Option<usize> {
        None
    }
}

/// A started thread.
pub trait Join: Send + Sync {
    /// Waits for its end; `true` if it panicked.
    fn join(self: Box<Self>) -> bool;
}

/// The world that a database lives in.
#[derive(Clone)]
pub struct Env {
    /// Files.
    pub fs: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Threads.
    pub spawner: Arc<dyn Spawn>,
}

impl Env {
    /// The operating system's.
    pub fn os() -> Self {
        let system = Arc::new(os::System::new());
        Self {
            fs: Arc::new(os::OsFileSystem),
            clock: system.clone(),
            random: system.clone(),
            spawner: system,
        }
    }

    /// Files in memory; time, randomness and threads from the operating system.
    pub fn memory() -> Self {
        Self { fs: Arc::new(memory::MemoryFileSystem::new()), ..Self::os() }
    }

    /// This world with another file system.
    #[must_use]
    pub fn with_fs(self, fs: Arc<dyn FileSystem>) -> Self {
        Self { fs, ..self }
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::os()
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

/// Reads a whole file of at most `limit` bytes.
///
/// # Errors
/// `IoError`, or `Corruption` if the file is larger.
pub fn read_file(fs: &dyn FileSystem, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = fs.open(path, OpenMode::Read)?;
    let size = file.size()?;
    if size > limit {
        return Err(Error::corruption(format!("file has {size} bytes, more than {limit}")).at(path));
    }
    let mut bytes = vec![0; size as usize];
    let read = read_until_end(&*file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// [`File::read_at`] for files whose length nothing else tells: where it stops short of the end,
/// although it must not, it is called again. A log would else end in the middle, and nobody would
/// notice.
///
/// # Errors
/// `IoError`, also if the file cannot be read up to its size.
pub fn read_until_end(file: &dyn File, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = file.read_at(offset, buffer)?;
    while filled < buffer.len() {
        let end = offset + filled as u64;
        if file.size()? <= end {
            break;
        }
        let more = file.read_at(end, &mut buffer[filled..])?;
        if more == 0 {
            let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(crate::base::Error::io("read up to the file's size", file.path(), source)
                .at_offset(end));
        }
        filled += more;
    }
    Ok(filled)
}
