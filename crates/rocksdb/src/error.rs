//! Errors as texts, in RocksDB's form: the kind of a failure, a colon, what happened.

use std::fmt;

use flagstone::{Code, SubCode};

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// A named thing does not exist.
    NotFound,
    /// Bytes in a file are not what a correct writer wrote.
    Corruption,
    /// The request is not supported.
    NotSupported,
    /// The caller passed something that cannot be right.
    InvalidArgument,
    /// The operating system refused or failed; also a database that is open elsewhere.
    IOError,
    /// A merge is under way.
    MergeInProgress,
    /// The operation would have had to wait, or to read a file.
    Incomplete,
    /// The database is closing.
    ShutdownInProgress,
    /// A wait exceeded its limit.
    TimedOut,
    /// The operation was given up.
    Aborted,
    /// Something else holds what is needed.
    Busy,
    /// Something lived past its time.
    Expired,
    /// Repeating the operation may succeed.
    TryAgain,
    /// A compaction exceeds its limit.
    CompactionTooLarge,
    /// The column family was dropped.
    ColumnFamilyDropped,
    /// The text begins with no known kind.
    Unknown,
}

/// The texts that errors begin with, and what they stand for.
const KINDS: &[(&str, ErrorKind)] = &[
    ("NotFound", ErrorKind::NotFound),
    ("Corruption", ErrorKind::Corruption),
    ("Not implemented", ErrorKind::NotSupported),
    ("Invalid argument", ErrorKind::InvalidArgument),
    ("IO error", ErrorKind::IOError),
    ("Merge in progress", ErrorKind::MergeInProgress),
    ("Result incomplete", ErrorKind::Incomplete),
    ("Shutdown in progress", ErrorKind::ShutdownInProgress),
    ("Operation timed out", ErrorKind::TimedOut),
    ("Operation aborted", ErrorKind::Aborted),
    ("Resource busy", ErrorKind::Busy),
    ("Operation expired", ErrorKind::Expired),
    ("Operation failed. Try again.", ErrorKind::TryAgain),
    ("Compaction too large", ErrorKind::CompactionTooLarge),
    ("Column family dropped", ErrorKind::ColumnFamilyDropped),
];

/// A failure, as a text that begins with its kind: `Corruption: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    #[doc(hidden)]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    #[doc(hidden)]
    pub fn invalid_argument(what: impl fmt::Display) -> Self {
        Self::new(format!("Invalid argument: {what}"))
    }

    #[doc(hidden)]
    pub fn not_supported(what: impl fmt::Display) -> Self {
        Self::new(format!("Not implemented: {what}"))
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.message
    }

    /// The kind that the text begins with.
    pub fn kind(&self) -> ErrorKind {
        let beginning = self.message.split(':').next().unwrap_or_default();
        let known = KINDS.iter().find(|(text, _)| *text == beginning);
        known.map_or(ErrorKind::Unknown, |(_, kind)| kind.clone())
    }
}

impl From<flagstone::Error> for Error {
    fn from(error: flagstone::Error) -> Self {
        let beginning = match error.code() {
            Code::NotFound => "NotFound",
            Code::Corruption => "Corruption",
            Code::NotSupported => "Not implemented",
            Code::InvalidArgument => "Invalid argument",
            Code::IoError => "IO error",
            Code::Incomplete => "Result incomplete",
            Code::ShutdownInProgress => "Shutdown in progress",
            Code::TimedOut => "Operation timed out",
            Code::Aborted => "Operation aborted",
            // RocksDB reports a lock that is held as an I/O error.
            Code::Busy if error.subcode() == SubCode::LockHeld => "IO error",
            Code::Busy if error.subcode() == SubCode::LockLimit => "Operation aborted",
            Code::Busy => "Resource busy",
            Code::TryAgain => "Operation failed. Try again.",
            Code::ColumnFamilyDropped => "Column family dropped",
            Code::Expired => "Operation expired",
            _ => "Unknown",
        };
        let place = match (error.path(), error.offset()) {
            (Some(path), Some(offset)) => format!("{} offset {offset}: ", path.display()),
            (Some(path), None) => format!("{}: ", path.display()),
            (None, Some(offset)) => format!("offset {offset}: "),
            (None, None) => String::new(),
        };
        let finer = match error.subcode() {
            SubCode::LockHeld if error.message().contains("handle of this process") => {
                "lock hold by current process: "
            }
            SubCode::LockHeld => "While lock file: ",
            SubCode::NoSpace => "No space left on device: ",
            SubCode::MergeOperatorFailed => "Merge operator failed: ",
            SubCode::ManualCompactionPaused => "Manual compaction paused: ",
            SubCode::CompactionAborted => "All compactions aborted: ",
            SubCode::MergeOperandsInsufficientCapacity => {
                "Insufficient capacity for merge operands: "
            }
            SubCode::LockTimeout => "Timeout waiting to lock key: ",
            SubCode::LockLimit => "Failed to acquire lock due to max_num_locks limit: ",
            SubCode::Deadlock => "Deadlock: ",
            SubCode::MemoryLimit => "Memory limit reached: ",
            SubCode::SpaceLimit => "Space limit reached: ",
            _ => "",
        };
        Self { message: format!("{beginning}: {finer}{place}{}", error.message()) }
    }
}

impl AsRef<str> for Error {
    fn as_ref(&self) -> &str {
        &self.message
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.message
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
