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
    /// Set an option to another value.
    Set {
        /// Condition that precedes the advice; mostly empty.
        when: Cow<'static, str>,
        /// The option.
        option: &'static str,
        /// Its current value, if worth mentioning.
        from: Option<String>,
        /// The better value.
        to: String,
        /// Further facts or alternatives that follow the advice.
        but: Cow<'static, str>,
    },
    /// Reset a setting that ignores damage.
    SetBack {
        /// The option.
        option: &'static str,
        /// The value that detects damage.
        to: &'static str,
        /// Whether the database is open.
        is_running: bool,
    },
    /// Give all memtables or all caches more memory.
    MoreMemory {
        /// As in `Set`.
        when: &'static str,
        /// What should get more.
        what: &'static str,
        /// As in `Set`.
        but: &'static str,
    },
    /// The rate limit, which applies to compactions as well.
    MindRateLimit {
        /// The limit.
        bytes_per_second: u64,
    },
    /// See other findings.
    SeeBelow {
        /// What to do if there are none.
        otherwise: Vec<Remedy>,
    },
    /// Use fewer syncs for the same writes.
    ShareSyncs,
    /// Check a disk that does not respond.
    LookAfterDisk,
    /// Reopen the database.
    Reopen,
    /// Free disk space.
    MakeSpace {
        /// What happens then.
        then: &'static str,
    },
    /// Free disk space, and reserve part of it.
    MakeSpaceAndReserve {
        /// Bytes to reserve.
        bytes: u64,
    },
    /// Free disk space for a WAL's reserve.
    MakeSpaceForWal {
        /// Whether the database is open.
        is_running: bool,
    },
    /// Flush all families.
    Flush,
    /// Drop an iterator.
    DropIterator,
    /// Drop a snapshot.
    DropSnapshot,
    /// Drop a snapshot before anything else can help.
    DropSnapshotFirst {
        /// Its age in seconds.
        seconds: u64,
        /// Where it was taken.
        taken_at: String,
        /// Operations written since then.
        writes: u64,
    },
    /// Drop the oldest snapshots.
    DropOldestSnapshots,
    /// Release the hold on automatic compactions.
    LetGo {
        /// As in `Set`.
        when: &'static str,
        /// As in `Set`.
        but: &'static str,
    },
    /// Compact a whole family.
    Compact {
        /// What to compact, or when to do it.
        what: &'static str,
        /// The family.
        family: String,
        /// Whether the last level is rewritten.
        bottommost: bool,
        /// Whether the database is open.
        is_running: bool,
        /// As in `Set`.
        but: String,
    },
    /// Collect garbage in blob files.
    CollectGarbage {
        /// The family.
        family: String,
        /// Whether compactions run only on request.
        by_request: bool,
        /// Whether the database is open.
        is_running: bool,
        /// Bytes to read and write for it.
        bytes: u64,
    },
    /// Nothing: a burst of writes may leave this much garbage.
    LetBurstPass {
        /// The option `burst_space_amplification`.
        burst: String,
        /// The option `max_space_amplification`.
        most: String,
    },
    /// Use another `compaction_style`.
    AnotherStyle {
        /// As in `Set`.
        when: &'static str,
    },
    /// Delete whole ranges.
    DeleteRanges,
    /// Delete fewer ranges.
    DeleteFewerRanges,
    /// Use a time to live, because FIFO compaction keeps deletions.
    ExpireByTtl,
    /// Nothing: the files will be removed.
    LeaveStrays,
    /// Nothing: the WAL ended with its process.
    LeaveTornEnd,
    /// Nothing: the WAL was empty.
    LeaveEmptyWal,
    /// Repair a WAL that is damaged in its middle.
    SettleWal {
        /// Whether another mode would skip the damage.
        may_skip: bool,
    },
    /// Restore a table or blob file from a copy, or salvage.
    RestoreOrSalvage,
    /// Compact a table that this engine cannot read with the program that wrote it.
    CompactWithWriter,
    /// Give the process access, or higher limits.
    BePermitted,
    /// Correct a key with contradictory writes.
    MendKey,
    /// Restore CURRENT and the MANIFEST from a copy.
    RestoreManifest,
    /// Restore a table or blob file from a copy, or open without it.
    RestoreOrGoWithout,
    /// Restore a WAL from a copy, or open without it.
    FindWal,
    /// Restore the directory of the WALs, or open without them.
    FindWalDirectory,
    /// Restore the directory of the WALs; for the command line.
    MountWalDirectory,
    /// Restore a WAL from a copy.
    RestoreWal,
    /// Raise `num_levels`.
    RaiseNumLevels {
        /// Minimum number of levels.
        to: usize,
    },
    /// Name all families when opening.
    NameAllFamilies,
    /// Create missing families when opening.
    CreateMissingFamilies,
    /// Open each family with its own options.
    OpenWithOwnOptions,
    /// Restore the end of an OPTIONS file.
    EndOptionsFile,
    /// Correct a line of an OPTIONS file.
    CorrectLine,
    /// Move OPTIONS files away.
    MoveOptionsAway,
    /// Commit or roll back transactions prepared by RocksDB.
    DecidePrepared,
    /// Commit a prepared transaction or roll it back.
    DecideTransaction {
        /// Its name, as `flagstone transactions` takes it.
        name: String,
        /// Whether the database is open.
        is_running: bool,
    },
    /// End a transaction that holds a lock.
    EndLockHolder,
    /// Read values without time stamps.
    ReadUnstamped,
    /// Name an empty directory for the salvaged database.
    NameEmptyTarget,
    /// Remove the mark of an owner that no longer exists.
    RemoveOwner,
    /// Make a new copy to continue from.
    MakeNewCopy,
    /// Keep WALs longer.
    KeepWals,
    /// Salvage a database that lost its CURRENT.
    SalvageWithoutCurrent,
    /// Check a path on the command line.
    CheckPath,
    /// Use another command, for another kind of file.
    ShowByKind {
        /// The command.
        command: &'static str,
    },
    /// Check again a database that was being written to.
    LookAgain,
    /// Copy a database that another process has open.
    CopyBesideWriter,
    /// Verify, then salvage.
    VerifyAndSalvage,
    /// Check a path that does not exist.
    SeeWhatIsThere,
    /// Run as a user that may.
    BeOwner,
    /// Mount the file system writable.
    MountWritable,
    /// Free disk space, and repeat the command.
    MakeSpaceAndRepeat,
    /// Raise a quota.
    RaiseQuota,
    /// Raise the limit on file sizes.
    PermitLargerFiles,
    /// Raise the limit on memory.
    PermitMoreMemory,
    /// Raise the limit on open files.
    PermitMoreFiles,
    /// Raise the limit on open files, so that a whole database can be held open.
    HoldAllFiles {
        /// The hard limit, if it is known.
        limit: Option<u64>,
        /// Number of files that a read-only handle holds, and some others.
        wanted: u64,
    },
    /// Copy the data from a failing device.
    CopyFromDevice,
}

impl Remedy {
    /// What to do about an error of the operating system, whatever was being done.
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

    /// Change an option from its current value `from`.
    pub fn set(option: &'static str, from: impl fmt::Display, to: impl fmt::Display) -> Self {
        let (from, to) = (Some(from.to_string()), to.to_string());
        Self::Set { when: Cow::Borrowed(""), option, from, to, but: Cow::Borrowed("") }
    }

    /// Set an option.
    pub fn set_to(option: &'static str, to: impl fmt::Display) -> Self {
        Self::Set {
            when: Cow::Borrowed(""),
            option,
            from: None,
            to: to.to_string(),
            but: Cow::Borrowed(""),
        }
    }

    /// Adds the condition that precedes the advice to set an option.
    #[must_use]
    pub fn when(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        if let Self::Set { when, .. } = &mut self {
            *when = text.into();
        }
        self
    }

    /// Adds facts or alternatives after the advice to set an option.
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
