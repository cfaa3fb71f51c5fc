//! The engine's only access to the world: file system, clock, randomness, threads, and free memory.
//!
//! The engine reaches the operating system only through these traits, so that tests can substitute
//! a recording, failing or in-memory world. Files are split by kind (`file`), so that each user and
//! each implementation needs only what that kind can do. A fake that changes a few calls of another
//! file or file system is written as [`FileAround`] or [`FileSystemAround`].

mod advised;
mod ahead;
mod any_file;
mod around;
mod behind;
mod buffered;
mod compaction_limiter;
mod copy;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod description_lock;
mod direct;
mod encryption;
pub(crate) mod failing_pages;
mod file;
mod file_manager;
mod file_pool;
mod file_system;
mod followed;
mod forks;
mod handed;
mod held;
mod limits;
mod linked;
mod mapping;
pub mod memory;
mod names;
#[cfg(target_os = "linux")]
mod niceness;
mod observed;
mod open_databases;
pub mod os;
mod os_lock;
mod published;
mod range_sync;
mod rate_limiter;
mod read_limits;
mod redirected;
mod reserve;
mod resources;
#[cfg(all(target_os = "linux", not(miri)))]
mod ring;
mod runs;
mod sharers;
mod sharing;
mod summed;
mod system;
mod thread_status;
mod threads;
mod together;
mod traced;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::Result;
pub(crate) use advised::AdvisedFiles;
pub use ahead::{Coming, ReadAhead};
pub use any_file::{AnyFile, OpenMode};
pub use around::{FileAround, FileSystemAround};
pub use behind::WriteBehind;
pub use buffered::BufferedWriter;
pub use compaction_limiter::CompactionLimiter;
pub(crate) use compaction_limiter::CompactionPermit;
pub use copy::{copy_file, copy_unsynced};
pub use direct::{
    AlignedBuffer, DIRECT_BLOCK, UnreservedFile, check_direct_reads, check_direct_writes,
};
#[cfg(feature = "encryption")]
pub use encryption::AesCipher;
pub use encryption::{BlockCipher, EncryptedFileSystem};
pub use failing_pages::read_around_failures;
pub use file::{
    Advice, IoMode, LogFile, Mapping, Metadata, RandomAccessFile, ReclaimableFile, WritableFile,
    read_until_end,
};
pub(crate) use file_manager::{ReservedSpace, TrackedFiles};
pub use file_manager::{SstFileManager, SstFileManagerOptions};
pub(crate) use file_pool::out_of_descriptors;
pub use file_pool::{FilePool, is_out_of_descriptors};
pub use file_system::{FileLock, FileSystem, read_file};
pub(crate) use file_system::{hint_temperature, remove_if_there};
pub(crate) use followed::FollowedFiles;
pub(crate) use forks::Process;
pub use handed::ChecksumHandoff;
pub(crate) use handed::HandedFiles;
pub(crate) use held::HeldFiles;
pub use limits::memory_limit;
pub(crate) use linked::LinkedFiles;
pub use names::{Names, NewNames, directory_of};
pub(crate) use observed::{FileObserver, ObservedFiles};
pub use observed::{FileOperation, FileOperationInfo};
pub(crate) use open_databases::{Directories, Listed, list_database, open_databases};
pub use published::{PublishedFile, process_start};
pub use range_sync::{RangeSyncedFile, RangeSyncs};
pub use rate_limiter::{
    IoPriority, IoWatch, LimitedFile, RateLimiter, RateLimiterMode, RateLimiterOptions,
};
pub(crate) use read_limits::{BoundedFile, ReadLimits};
pub(crate) use redirected::RedirectedFiles;
pub use resources::{MemoryState, Plenty, Resources};
pub use runs::{PAGE_RUN, PageRuns, page_run};
pub(crate) use sharers::{GroupMember, SharedGroup};
pub use summed::{SummedFile, read_for_checksum, read_in_pieces};
pub(crate) use thread_status::{Activity, Doing, enter_stage, list_thread};
pub use thread_status::{ThreadOperation, ThreadStage, ThreadStatus, ThreadType, thread_list};
pub(crate) use threads::{
    Asleep, GivingWay, JobLimits, Member, MemberId, Next, ReaderPool, Role, Seats, Turn,
};
pub use threads::{BackgroundThreads, BackgroundThreadsOptions};
pub use together::{Place, Take, read_together};
pub(crate) use traced::{CallRecorder, FileCall, FileCallClass, TracedFiles};
#[cfg(test)]
pub(crate) use traced::{Extent, FileCallKind};

/// Time.
pub trait Clock: Send + Sync {
    /// Monotonic time in microseconds since an arbitrary start.
    fn now_us(&self) -> u64;

    /// [`Clock::now_us`] in nanoseconds, as fine as the clock is.
    fn now_nanos(&self) -> u64 {
        self.now_us().saturating_mul(1000)
    }

    /// Like [`Clock::now_us`], but up to a few milliseconds late. For ages that need no precision,
    /// where the system reads this clock faster.
    fn coarse_us(&self) -> u64 {
        self.now_us()
    }

    /// Seconds since 1970.
    fn unix_seconds(&self) -> u64;

    /// Microseconds since 1970, or whole seconds of them where the clock has nothing finer.
    fn unix_micros(&self) -> u64 {
        self.unix_seconds().saturating_mul(1_000_000)
    }

    /// Sleeps.
    fn sleep(&self, duration: Duration);
}

/// Random bits for identities and for choices that need no seed.
pub trait Random: Send + Sync {
    /// The next 64 bits.
    fn next_u64(&self) -> u64;
}

/// Work for a thread that is waited for, so it may borrow.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// How far a thread stands back behind others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LowPriority {
    /// Niceness above the caller's.
    pub niceness: i32,
    /// Whether the disk serves it only when no other thread wants it (I/O class idle), where the
    /// scheduler of the device knows such classes. Without it, Linux derives a thread's priority
    /// for I/O from its niceness.
    pub idle_io: bool,
}

impl LowPriority {
    /// The caller's priority.
    pub const NONE: Self = Self::of_niceness(0);

    /// That of a niceness alone.
    pub const fn of_niceness(niceness: i32) -> Self {
        Self { niceness, idle_io: false }
    }
}

/// Threads.
pub trait Spawn: Send + Sync {
    /// Starts a background thread.
    ///
    /// # Errors
    /// `IoError` if the system has no thread left.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>>;

    /// Runs tasks, which must not panic, and returns when all have ended. Each runs in its own
    /// thread as far as the system has threads; the calling thread runs one too. A world without
    /// threads runs them one after the other.
    fn run_all(&self, _name: &str, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }

    /// Runs a task, which must not panic, in a thread with a priority below the caller's, and
    /// returns when it has ended. Runs it in the calling thread where threads do not compete for a
    /// processor or (except on Linux) have no priority of their own.
    fn run_giving_way(&self, _name: &str, _priority: LowPriority, task: Task<'_>) {
        task();
    }

    /// Which of `choices` kinds of step to try first, in a world without threads, where callers do
    /// the background work one step at a time. `None` if threads do it.
    fn choose_step(&self, _choices: usize) -> Option<usize> {
        None
    }
}

/// A started thread.
pub trait Join: Send + Sync {
    /// Waits for the thread to end; `true` if it panicked.
    fn join(self: Box<Self>) -> bool;
}

/// The world that a database uses.
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
    /// Processor time and memory.
    pub resources: Arc<dyn Resources>,
}

impl Env {
    /// The operating system's files, clock, randomness and threads.
    pub fn os() -> Self {
        let system = Arc::new(os::System::new());
        Self {
            fs: Arc::new(os::OsFileSystem),
            clock: system.clone(),
            random: system.clone(),
            spawner: system.clone(),
            resources: system,
        }
    }

    /// Files in memory; time, randomness and threads from the operating system.
    pub fn memory() -> Self {
        Self { fs: Arc::new(memory::MemoryFileSystem::new()), ..Self::os() }
    }

    /// This world with files that are encrypted on the disk: see [`EncryptedFileSystem`].
    ///
    /// # Errors
    /// `InvalidArgument` for a cipher whose blocks have an unsuitable size.
    pub fn encrypted(self, cipher: Arc<dyn BlockCipher>) -> Result<Self> {
        let fs = Arc::new(EncryptedFileSystem::new(&self, cipher)?);
        Ok(self.with_fs(fs))
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
