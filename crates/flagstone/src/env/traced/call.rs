//! Calls of a file system, as a recorder is told of them.

use std::path::Path;

use crate::base::Error;

/// What is done to files. Each kind has the name of RocksDB's call, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCallKind {
    OpenRandomAccess,
    CreateWritable,
    ReopenWritable,
    ReopenLog,
    OpenReclaimable,
    Close,
    Read,
    /// A read that the kernel had in hand together with others.
    MultiRead,
    Prefetch,
    Write,
    /// A copy into a mapping of the file.
    MappedWrite,
    Truncate,
    Allocate,
    PunchHole,
    Sync,
    RangeSync,
    SyncDirectory,
    FileSize,
    Rename,
    Link,
    Remove,
    CreateDirectory,
    RemoveDirectory,
    List,
    FreeSpace,
    Lock,
}

/// Which of a trace's filters a call falls under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCallClass {
    Read,
    Write,
    Sync,
    Other,
}

impl FileCallKind {
    /// Its name in a trace.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenRandomAccess => "NewRandomAccessFile",
            Self::CreateWritable => "NewWritableFile",
            Self::ReopenWritable => "ReopenWritableFile",
            Self::ReopenLog => "ReuseWritableFile",
            Self::OpenReclaimable => "NewRandomRWFile",
            Self::Close => "Close",
            Self::Read => "Read",
            Self::MultiRead => "MultiRead",
            Self::Prefetch => "Prefetch",
            Self::Write => "PositionedAppend",
            Self::MappedWrite => "MappedWrite",
            Self::Truncate => "Truncate",
            Self::Allocate => "Allocate",
            Self::PunchHole => "PunchHole",
            Self::Sync => "Sync",
            Self::RangeSync => "RangeSync",
            Self::SyncDirectory => "Fsync",
            Self::FileSize => "GetFileSize",
            Self::Rename => "RenameFile",
            Self::Link => "LinkFile",
            Self::Remove => "DeleteFile",
            Self::CreateDirectory => "CreateDirIfMissing",
            Self::RemoveDirectory => "DeleteDir",
            Self::List => "GetChildren",
            Self::FreeSpace => "GetFreeSpace",
            Self::Lock => "LockFile",
        }
    }

    pub(crate) fn class(self) -> FileCallClass {
        match self {
            Self::Read | Self::MultiRead | Self::Prefetch => FileCallClass::Read,
            Self::Write | Self::MappedWrite | Self::Truncate | Self::Allocate | Self::PunchHole => {
                FileCallClass::Write
            }
            Self::Sync | Self::RangeSync | Self::SyncDirectory => FileCallClass::Sync,
            _ => FileCallClass::Other,
        }
    }
}

/// The numbers of a call; `None` where it has no such number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Bytes of the file.
    pub(crate) size: Option<u64>,
    /// Bytes that were read, or were to be written; for a truncation the new size.
    pub(crate) length: Option<u64>,
    /// Offset of the first byte.
    pub(crate) offset: Option<u64>,
}

impl Extent {
    pub(crate) const NONE: Self = Self { size: None, length: None, offset: None };

    pub(crate) fn bytes(offset: u64, length: u64) -> Self {
        Self { size: None, length: Some(length), offset: Some(offset) }
    }

    pub(crate) fn length(length: u64) -> Self {
        Self { length: Some(length), ..Self::NONE }
    }

    pub(crate) fn size(size: Option<u64>) -> Self {
        Self { size, ..Self::NONE }
    }
}

/// A call that has ended.
pub(crate) struct FileCall<'a> {
    pub(crate) kind: FileCallKind,
    /// The file or directory; of a renamed or linked file its old name.
    pub(crate) path: &'a Path,
    /// Nanoseconds that it took.
    pub(crate) nanos: u64,
    pub(crate) extent: Extent,
    pub(crate) error: Option<&'a Error>,
}

/// Is told of calls, in the thread that made them, whatever locks that holds.
pub(crate) trait CallRecorder: Send + Sync + 'static {
    /// Whether it wants to be told.
    fn is_on(&self) -> bool;

    fn record(&self, call: &FileCall<'_>);
}
