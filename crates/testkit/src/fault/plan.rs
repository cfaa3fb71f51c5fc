//! Which calls fail, and how.

use std::io;
use std::path::{Path, PathBuf};

use flagstone::base::Error;

use super::files::{Sort, sort_of};

/// The calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "they are named as the methods of the traits; to move is to rename to another directory"
)]
pub enum Call {
    Open,
    Create,
    Update,
    Read,
    Write,
    Sync,
    RangeSync,
    Allocate,
    Truncate,
    Punch,
    Size,
    Rename,
    Move,
    Link,
    Remove,
    CreateDirectory,
    RemoveDirectory,
    List,
    SyncDirectory,
    Metadata,
    Lock,
    Map,
    Populate,
}

/// The calls by which an OPTIONS file is written and gets its name, one after the other.
pub const OPTIONS_FILE_CALLS: [(Call, Sort); 5] = [
    (Call::Create, Sort::Temporary),
    (Call::Write, Sort::Temporary),
    (Call::Sync, Sort::Temporary),
    (Call::Rename, Sort::Temporary),
    (Call::SyncDirectory, Sort::Directory),
];

impl Call {
    /// Whether the call takes space, so that a full disk makes it fail.
    pub fn takes_space(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Write
                | Self::Allocate
                | Self::Rename
                | Self::Move
                | Self::Link
                | Self::CreateDirectory
        )
    }

    /// Whether the call changes something.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Self::Open
                | Self::Update
                | Self::Read
                | Self::Size
                | Self::RangeSync
                | Self::List
                | Self::Metadata
                | Self::Map
                | Self::Populate
        )
    }

    /// The ways in which one such call fails.
    pub fn injections(self) -> &'static [Injection] {
        use Injection::{Io, Late, NoSpace, Short};
        match self {
            Self::Read => &[Io, Short],
            Self::Write => &[Io, NoSpace, Late],
            // Where space is taken only when a file is written back, a sync finds the disk full.
            Self::Sync | Self::SyncDirectory => &[Io, NoSpace, Late],
            Self::Create
            | Self::Allocate
            | Self::Rename
            | Self::Move
            | Self::Link
            | Self::Punch
            | Self::CreateDirectory => &[Io, NoSpace, Late],
            Self::Truncate | Self::Remove | Self::RemoveDirectory => &[Io, Late],
            Self::Open
            | Self::RangeSync
            | Self::Update
            | Self::Size
            | Self::List
            | Self::Metadata
            | Self::Lock
            | Self::Map
            | Self::Populate => &[Io],
        }
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Injection {
    /// The device failed; of a write, half was done.
    Io,
    /// The device is full; of a write, half was done.
    NoSpace,
    /// A read returns half of what is there and no error, against the contract of
    /// [`flagstone::env::RandomAccessFile::read_at`].
    Short,
    /// The device failed after all was done.
    Late,
    /// The file system has become read-only.
    ReadOnly,
}

impl Injection {
    pub(super) fn error(self, call: Call, path: &Path) -> Error {
        const EIO: i32 = 5;
        const ENOSPC: i32 = 28;
        const EROFS: i32 = 30;
        let number = match self {
            Self::NoSpace => ENOSPC,
            Self::ReadOnly => EROFS,
            Self::Io | Self::Short | Self::Late => EIO,
        };
        Error::io(&format!("{call:?} (injected)"), path, io::Error::from_raw_os_error(number))
    }
}

/// Which calls fail; `at` counts the calls from when the plan was made, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Plan {
    /// None.
    #[default]
    Nothing,
    /// The next of one kind on one sort of file.
    Next {
        /// The kind.
        call: Call,
        /// The sort.
        sort: Sort,
        /// How it fails.
        injection: Injection,
    },
    /// One.
    Once {
        /// Which.
        at: u64,
        /// How.
        injection: Injection,
    },
    /// Two: the second, `gap` calls later, with `EIO`.
    Twice {
        /// Which is the first.
        at: u64,
        /// How it fails.
        injection: Injection,
        /// At least 1.
        gap: u64,
    },
    /// One, and from then on all calls of its kind.
    Lasting {
        /// Which is the first.
        at: u64,
        /// How they fail.
        injection: Injection,
    },
    /// From one on all that take space, which what is written to a file's reserved space does not.
    Full {
        /// From which on.
        at: u64,
    },
    /// From one on all that change anything.
    ReadOnly {
        /// From which on.
        at: u64,
    },
}

impl Plan {
    /// The first call that fails.
    pub fn position(self) -> u64 {
        match self {
            Self::Nothing | Self::Next { .. } => 0,
            Self::Once { at, .. }
            | Self::Twice { at, .. }
            | Self::Lasting { at, .. }
            | Self::Full { at }
            | Self::ReadOnly { at } => at,
        }
    }

    /// Whether the database is closed before the fault is over, so that closing may fail, too: of
    /// those that last every second.
    pub fn lasts_to_the_end(self) -> bool {
        matches!(self, Self::Lasting { .. } | Self::ReadOnly { .. }) && self.position() % 2 == 1
    }

    /// What becomes of the call number `number`, which perhaps `takes_space`; `begun` is the kind
    /// of call that the plan has begun to fail.
    pub(super) fn verdict(
        self,
        call: Call,
        path: &Path,
        takes_space: bool,
        number: u64,
        begun: &mut Option<Call>,
    ) -> Option<Injection> {
        match self {
            Self::Nothing => None,
            Self::Next { call: wanted, sort, injection } => {
                let fails = begun.is_none() && call == wanted && sort_of(path) == sort;
                fails.then(|| {
                    *begun = Some(call);
                    injection
                })
            }
            Self::Once { at, injection } => (number == at).then_some(injection),
            Self::Twice { at, injection, .. } if number == at => Some(injection),
            Self::Twice { at, gap, .. } => (number == at + gap).then_some(Injection::Io),
            Self::Lasting { at, injection } => {
                if number == at {
                    *begun = Some(call);
                }
                (*begun == Some(call)).then_some(injection)
            }
            Self::Full { at } => (number >= at && takes_space).then_some(Injection::NoSpace),
            Self::ReadOnly { at } => {
                (number >= at && call.changes()).then_some(Injection::ReadOnly)
            }
        }
    }
}

/// A call that was made to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub call: Call,
    /// Of what; a rename's source.
    pub path: PathBuf,
    /// How.
    pub injection: Injection,
    /// Whether it would have taken space, and not what was reserved for it.
    pub takes_space: bool,
}
