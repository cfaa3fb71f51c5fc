//! What to do about a finding of the doctor, or an error.
//!
//! All advice is made from one enumeration, so that a test can go over it: for each remedy the test
//! holds a state for which it is given, and tries it there.

mod words;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind};

use rustix::io::Errno;

macro_rules! remedies {
    ($(
        $(#[doc = $about:literal])+
        $name:ident $({ $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+ })?,
    )+) => {
        /// What to do.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Remedy {
            $($(#[doc = $about])+ $name $({ $($(#[doc = $doc])+ $field: $type,)+ })?,)+
        }

        /// A remedy without its figures and names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RemedyKind { $($(#[doc = $about])+ $name,)+ }

        impl RemedyKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }

        impl Remedy {
            /// Which it is.
            pub fn kind(&self) -> RemedyKind {
                match self { $(Self::$name { .. } => RemedyKind::$name,)+ }
            }
        }
    };
}

remedies! {
    /// Another value of an option.
    Set {
        /// When to do it, with what follows it; mostly empty.
        when: Cow<'static, str>,
        /// The option.
        option: &'static str,
        /// Its value, if that is worth a word.
        from: Option<String>,
        /// The better value.
        to: String,
        /// What else is to be known, or can be done instead.
        but: Cow<'static, str>,
    },
    /// A setting that passes over damage, back to one that does not.
    SetBack {
        /// The option.
        option: &'static str,
        /// The value that notices damage.
        to: &'static str,
        /// The database is open.
        is_running: bool,
    },
    /// More memory for all memtables, or for all caches.
    MoreMemory {
        /// As that of `Set`.
        when: &'static str,
        /// What is to have more.
        what: &'static str,
        /// As that of `Set`.
        but: &'static str,
    },
    /// The limit that holds for compactions as well.
    MindRateLimit {
        /// It.
        bytes_per_second: u64,
    },
    /// What other findings say.
    SeeBelow {
        /// What helps where there are none.
        otherwise: Vec<Remedy>,
    },
    /// Fewer syncs for as many writes.
    ShareSyncs,
    /// A disk that does not answer.
    LookAfterDisk,
    /// A new handle.
    Reopen,
    /// Space on the disk.
    MakeSpace {
        /// What comes of it.
        then: &'static str,
    },
    /// Space on the disk, part of which is kept from then on.
    MakeSpaceAndReserve {
        /// Bytes to keep.
        bytes: u64,
    },
    /// Space on the disk, for what a WAL reserves.
    MakeSpaceForWal {
        /// The database is open.
        is_running: bool,
    },
    /// A flush of all families.
    Flush,
    /// An end of an iterator.
    DropIterator,
    /// An end of a snapshot.
    DropSnapshot,
    /// An end of a snapshot, before anything else helps.
    DropSnapshotFirst {
        /// Seconds for which it has been there.
        seconds: u64,
        /// Where it was taken.
        taken_at: String,
        /// Operations that were written since.
        writes: u64,
    },
    /// An end of the oldest snapshots.
    DropOldestSnapshots,
    /// An end of what holds automatic compactions.
    LetGo {
        /// As that of `Set`.
        when: &'static str,
        /// As that of `Set`.
        but: &'static str,
    },
    /// A compaction of a whole family.
    Compact {
        /// What to compact, or when.
        what: &'static str,
        /// The family.
        family: String,
        /// The last level is rewritten, too.
        bottommost: bool,
        /// The database is open.
        is_running: bool,
        /// As that of `Set`.
        but: String,
    },
    /// A collection of garbage in blob files.
    CollectGarbage {
        /// The family.
        family: String,
        /// No compaction runs unasked.
        by_request: bool,
        /// The database is open.
        is_running: bool,
        /// Bytes that are read and written for it.
        bytes: u64,
    },
    /// Nothing: an amount of garbage that a burst of writes may leave.
    LetBurstPass {
        /// The option `burst_space_amplification`.
        burst: String,
        /// The option `max_space_amplification`.
        most: String,
    },
    /// Another `compaction_style`.
    AnotherStyle {
        /// As that of `Set`.
        when: &'static str,
    },
    /// Deletions that take less space.
    DeleteRanges,
    /// Fewer deletions of ranges.
    DeleteFewerRanges,
    /// A time to live, as FIFO compaction keeps deletions.
    ExpireByTtl,
    /// Nothing: files that go.
    LeaveStrays,
    /// Nothing: a WAL that ends as a process dies.
    LeaveTornEnd,
    /// Nothing: a WAL that was empty.
    LeaveEmptyWal,
    /// A WAL that is damaged in its middle.
    SettleWal {
        /// Another mode would go on behind the damage.
        may_skip: bool,
    },
    /// A table, or a blob file, from a copy.
    RestoreOrSalvage,
    /// What this engine cannot read.
    CompactWithWriter,
    /// Rights, or limits, of the process.
    BePermitted,
    /// A key that was written in a way that cannot be.
    MendKey,
    /// CURRENT and MANIFEST from a copy.
    RestoreManifest,
    /// A table or blob file from a copy, or an opening without it.
    RestoreOrGoWithout,
    /// A WAL from a copy, or an opening without it.
    FindWal,
    /// A directory of WALs, or an opening without them.
    FindWalDirectory,
    /// A directory of WALs, for the command line.
    MountWalDirectory,
    /// A WAL from a copy.
    RestoreWal,
    /// More levels.
    RaiseNumLevels {
        /// At least so many.
        to: usize,
    },
    /// All families, when opening.
    NameAllFamilies,
    /// Families that are made when opening.
    CreateMissingFamilies,
    /// The options that each family was made with.
    OpenWithOwnOptions,
    /// The end of an OPTIONS file.
    EndOptionsFile,
    /// A line of an OPTIONS file.
    CorrectLine,
    /// OPTIONS files out of the way.
    MoveOptionsAway,
    /// Transactions that RocksDB prepared.
    DecidePrepared,
    /// Values without a time.
    ReadUnstamped,
    /// An empty directory for what is salvaged.
    NameEmptyTarget,
    /// An owner that is no more.
    RemoveOwner,
    /// A new copy to go on from.
    MakeNewCopy,
    /// Older WALs.
    KeepWals,
    /// What lost its CURRENT.
    SalvageWithoutCurrent,
    /// A path on the command line.
    CheckPath,
    /// Another command, for another kind of file.
    ShowByKind {
        /// The command.
        command: &'static str,
    },
    /// A database that is written to meanwhile.
    LookAgain,
    /// A copy of a database that another process has open.
    CopyBesideWriter,
    /// A damaged file, of which nothing better is known.
    VerifyAndSalvage,
    /// A name that is not there.
    SeeWhatIsThere,
    /// A user that may.
    BeOwner,
    /// A file system that can be written to.
    MountWritable,
    /// Space for a command.
    MakeSpaceAndRepeat,
    /// A quota.
    RaiseQuota,
    /// A limit of files' sizes.
    PermitLargerFiles,
    /// A limit of memory.
    PermitMoreMemory,
    /// A limit of open files.
    PermitMoreFiles,
    /// A limit of open files that a whole database is within.
    HoldAllFiles {
        /// The hard limit, if it is known.
        limit: Option<u64>,
        /// The files that a read-only handle holds, and some others.
        wanted: u64,
    },
    /// A device that fails.
    CopyFromDevice,
}

impl Remedy {
    /// What helps where the operating system refused, whatever was being done.
    pub fn of_system(error: &io::Error) -> Option<Self> {
        Some(match error.kind() {
            ErrorKind::NotFound => Self::SeeWhatIsThere,
            ErrorKind::PermissionDenied => Self::BeOwner,
            ErrorKind::ReadOnlyFilesystem => Self::MountWritable,
            ErrorKind::StorageFull => Self::MakeSpaceAndRepeat,
            ErrorKind::QuotaExceeded => Self::RaiseQuota,
            ErrorKind::FileTooLarge => Self::PermitLargerFiles,
            ErrorKind::OutOfMemory => Self::PermitMoreMemory,
            _ => match Errno::from_io_error(error) {
                Some(Errno::MFILE) => Self::PermitMoreFiles,
                Some(Errno::IO) => Self::CopyFromDevice,
                _ => return None,
            },
        })
    }

    /// Another value of an option, which has the value `from` now.
    pub fn set(option: &'static str, from: impl fmt::Display, to: impl fmt::Display) -> Self {
        let (from, to) = (Some(from.to_string()), to.to_string());
        Self::Set { when: Cow::Borrowed(""), option, from, to, but: Cow::Borrowed("") }
    }

    /// A value of an option.
    pub fn set_to(option: &'static str, to: impl fmt::Display) -> Self {
        Self::Set {
            when: Cow::Borrowed(""),
            option,
            from: None,
            to: to.to_string(),
            but: Cow::Borrowed(""),
        }
    }

    /// What stands in front of a new value of an option.
    #[must_use]
    pub fn when(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        if let Self::Set { when, .. } = &mut self {
            *when = text.into();
        }
        self
    }

    /// What stands behind a new value of an option.
    #[must_use]
    pub fn but(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        if let Self::Set { but, .. } = &mut self {
            *but = text.into();
        }
        self
    }
}

impl From<Remedy> for Vec<Remedy> {
    fn from(remedy: Remedy) -> Self {
        vec![remedy]
    }
}

/// Several remedies as one sentence.
pub fn sentence(remedies: &[Remedy]) -> String {
    remedies.iter().map(Remedy::to_string).collect::<Vec<_>>().join("; ")
}

/// Bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}
