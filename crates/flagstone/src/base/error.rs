//! The engine's error type: RocksDB's code and subcode, what happened, where, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::remedy::Remedy;

/// The result of every fallible operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of failure; names and numbers follow RocksDB's `Status::Code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Code {
    /// Something named (a column family, a file, a database) does not exist.
    NotFound = 1,
    /// Bytes read back are not what a correct writer wrote.
    Corruption = 2,
    /// The request is valid, but this engine does not support it.
    NotSupported = 3,
    /// The caller passed something invalid.
    InvalidArgument = 4,
    /// A call of the operating system failed.
    IoError = 5,
    /// The operation could not finish under the caller's limits, such as a read that must not touch
    /// the disk.
    Incomplete = 7,
    /// The database is closing.
    ShutdownInProgress = 8,
    /// A wait exceeded its time limit.
    TimedOut = 9,
    /// The operation was abandoned.
    Aborted = 10,
    /// Something needed is in use, for example the database's lock.
    Busy = 11,
    /// The transaction took longer than its `expiration`.
    Expired = 12,
    /// Repeating the operation may succeed.
    TryAgain = 13,
    /// The column family was dropped.
    ColumnFamilyDropped = 15,
}

/// Finer reason within a [`Code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SubCode {
    /// No finer reason.
    #[default]
    None,
    /// The device or quota is full.
    NoSpace,
    /// A path does not exist.
    PathNotFound,
    /// The merge operator refused its operands.
    MergeOperatorFailed,
    /// Another process or handle holds the database's lock.
    LockHeld,
    /// An earlier background error stopped the database from accepting writes.
    Poisoned,
    /// A requested compaction was canceled.
    ManualCompactionPaused,
    /// All compactions are aborted.
    CompactionAborted,
    /// A name or value that this engine does not know but another release may.
    OtherRelease,
    /// Another transaction held the lock of a key for longer than the time-out.
    LockTimeout,
    /// As many keys are locked as `max_num_locks` permits.
    LockLimit,
    /// Transactions would wait for each other.
    Deadlock,
    /// A key has more merge operands than the caller takes.
    MergeOperandsInsufficientCapacity,
    /// A batch would be larger than permitted.
    MemoryLimit,
    /// The files take as much as the `SstFileManager` allows.
    SpaceLimit,
    /// A file was encrypted with another key, or not at all.
    WrongKey,
    /// Bytes in memory are not what was put there.
    MemoryChanged,
}

/// What stands between what happened and what helps.
const REMEDY_FOLLOWS: &str = "; ";

/// What went wrong and where; the message also says what to do.
///
/// Cheap to clone, so that every later writer can get the same background error.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    subcode: SubCode,
    message: String,
    /// Length of the remedy at the end of the message.
    remedy_length: usize,
    /// The remedy as data.
    remedies: Vec<Remedy>,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with a code and a message for people.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            code,
            subcode: SubCode::None,
            message: message.into(),
            remedy_length: 0,
            remedies: Vec::new(),
            path: None,
            offset: None,
            source: None,
        }))
    }

    /// Bytes that no correct writer wrote.
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(Code::Corruption, message)
    }

    /// An invalid request.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A request that this engine does not support.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(Code::NotSupported, message)
    }

    /// Something named that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// An operation that could not finish under the caller's limits.
    pub fn incomplete(message: impl Into<String>) -> Self {
        Self::new(Code::Incomplete, message)
    }

    /// A failed call of the operating system. `doing` says what was attempted (`"read"`, `"sync"`,
    /// ...).
    pub fn io(doing: &str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        let subcode = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => SubCode::NoSpace,
            std::io::ErrorKind::NotFound => SubCode::PathNotFound,
            _ => SubCode::None,
        };
        let mut error = Self::new(Code::IoError, format!("cannot {doing}: {source}")).at(path);
        let inner = Arc::make_mut(&mut error.0);
        inner.subcode = subcode;
        inner.source = Some(Arc::new(source));
        error
    }

    /// Adds the file, unless the error names one already.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.path.get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    /// Adds the byte offset, unless the error has one already.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.offset.get_or_insert(offset);
        self
    }

    /// Sets the finer reason.
    #[must_use]
    pub fn with_subcode(mut self, subcode: SubCode) -> Self {
        Arc::make_mut(&mut self.0).subcode = subcode;
        self
    }

    /// Puts what was being done in front of the message.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.message = format!("{doing}: {}", inner.message);
        self
    }

    /// Appends what to do to the message.
    #[must_use]
    pub fn advise(mut self, remedy: Remedy) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        let length = inner.message.len();
        inner.message = format!("{}{REMEDY_FOLLOWS}{remedy}", inner.message);
        inner.remedy_length += inner.message.len() - length;
        inner.remedies.push(remedy);
        self
    }

    /// What to do, if the message ends with that.
    pub fn remedy(&self) -> Option<&str> {
        let start = self.0.message.len() - self.0.remedy_length;
        self.0.message[start..].strip_prefix(REMEDY_FOLLOWS)
    }

    /// What to do, as data; empty if the error does not say.
    pub fn remedies(&self) -> &[Remedy] {
        &self.0.remedies
    }

    /// The error without its remedy, for callers that print that separately.
    #[must_use]
    pub fn without_remedy(mut self) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.message.truncate(inner.message.len() - inner.remedy_length);
        inner.remedy_length = 0;
        inner.remedies.clear();
        self
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The finer reason.
    pub fn subcode(&self) -> SubCode {
        self.0.subcode
    }

    /// What happened, without the file and offset.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file concerned, if any.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte offset in [`Error::path`], if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Whether this is [`Code::Corruption`].
    pub fn is_corruption(&self) -> bool {
        self.code() == Code::Corruption
    }

    /// Whether space ran out: on the disk, or below the maximum size of a file.
    pub fn lacks_room(&self) -> bool {
        let source =
            self.0.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
        let is_too_large =
            source.is_some_and(|source| source.kind() == std::io::ErrorKind::FileTooLarge);
        self.subcode() == SubCode::NoSpace || is_too_large
    }

    /// Whether writes are to be tried again once there is space: the disk is full, or the files
    /// take what the `SstFileManager` allows.
    pub fn waits_for_space(&self) -> bool {
        matches!(self.subcode(), SubCode::NoSpace | SubCode::SpaceLimit)
    }

    /// Whether the operating system denied this process what another user, or one with higher
    /// limits, may do. It says nothing about the file's contents.
    pub fn is_refused(&self) -> bool {
        use std::io::ErrorKind::{OutOfMemory, PermissionDenied};
        let source =
            self.0.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
        source.is_some_and(|source| {
            matches!(source.kind(), PermissionDenied | OutOfMemory)
                || matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
        })
    }

    /// Whether this is [`Code::NotFound`], or a missing file.
    pub fn is_not_found(&self) -> bool {
        self.code() == Code::NotFound || self.subcode() == SubCode::PathNotFound
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0.code {
            Code::NotFound => "not found",
            Code::Corruption => "corruption",
            Code::NotSupported => "not supported",
            Code::InvalidArgument => "invalid argument",
            Code::IoError => "I/O error",
            Code::Incomplete => "incomplete",
            Code::ShutdownInProgress => "shutdown in progress",
            Code::TimedOut => "timed out",
            Code::Aborted => "aborted",
            Code::Busy => "busy",
            Code::Expired => "expired",
            Code::TryAgain => "try again",
            Code::ColumnFamilyDropped => "column family dropped",
        };
        write!(f, "{name}: {}", self.0.message)?;
        match (&self.0.path, self.0.offset) {
            (Some(path), Some(offset)) => write!(f, " ({}, offset {offset})", path_in_words(path)),
            (Some(path), None) => write!(f, " ({})", path_in_words(path)),
            (None, Some(offset)) => write!(f, " (offset {offset})"),
            (None, None) => Ok(()),
        }
    }
}

/// A path on one line: what a terminal would take for commands is escaped.
pub(crate) fn path_in_words(path: &Path) -> String {
    let mut words = String::new();
    for char in path.to_string_lossy().chars() {
        if char.is_control() { words.extend(char.escape_default()) } else { words.push(char) }
    }
    words
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// For functions that return [`std::io::Result`]: of the same kind as the system's error, if there
/// is one behind it.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;
        let of_system =
            error.0.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
        // Whoever meets an interrupted call tries it again; this one has failed.
        let of_system =
            of_system.map(std::io::Error::kind).filter(|kind| *kind != ErrorKind::Interrupted);
        let kind = of_system.unwrap_or(match error.code() {
            Code::NotFound | Code::ColumnFamilyDropped => ErrorKind::NotFound,
            Code::Corruption => ErrorKind::InvalidData,
            Code::NotSupported => ErrorKind::Unsupported,
            Code::InvalidArgument => ErrorKind::InvalidInput,
            Code::Incomplete => ErrorKind::WouldBlock,
            Code::TimedOut | Code::Expired => ErrorKind::TimedOut,
            Code::Busy => ErrorKind::ResourceBusy,
            _ if error.subcode() == SubCode::NoSpace => ErrorKind::StorageFull,
            Code::IoError | Code::ShutdownInProgress | Code::Aborted | Code::TryAgain => {
                ErrorKind::Other
            }
        });
        Self::new(kind, error)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests;
