//! What to do about a finding of the doctor, or an error.
//!
//! All advice is made from one enumeration, so that a test can go over it: for each remedy the test holds a state for which it is
//! given, and tries it there.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind};

use rustix::io::Errno;

macro_rules! remedies {
    ($($(#[doc = $about:literal])+ $name:ident $({ $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+ })?,)+) => {
        /// What to do.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Remedy { $($(#[doc = $about])+ $name $({ $($(#[doc = $doc])+ $field: $type,)+ })?,)+ }

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
        Self::Set { when: Cow::Borrowed(""), option, from: None, to: to.to_string(), but: Cow::Borrowed("") }
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

/// Bytes a second that a compaction is taken to read and write where a time is named.
const SPEED: u64 = 100 << 20;

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { when, option, from: Some(from), to, but } => {
                write!(f, "{when}set {option} from {from} to {to}{but}")
            }
            Self::Set { when, option, from: None, to, but } => write!(f, "{when}set {option}={to}{but}"),
            Self::SetBack { option, to, is_running: true } => {
                write!(f, "open the database with {option}={to}")
            }
            Self::SetBack { option, to, is_running: false } => write!(
                f,
                "set it back: flagstone flush --set {option}={to}; and in each program that opens the database with options of its \
                 own"
            ),
            Self::MoreMemory { when, what, but } => write!(f, "{when}{what}{but}"),
            Self::MindRateLimit { bytes_per_second } => {
                write!(f, "they may have no more than rate_limiter_bytes_per_sec={bytes_per_second}")
            }
            Self::SeeBelow { otherwise } => write!(
                f,
                "see below for what flushes and compactions are behind with; if nothing is, {}",
                sentence(otherwise)
            ),
            Self::MakeSpace { then } => write!(f, "make space{then}"),
            Self::MakeSpaceAndReserve { bytes: count } => write!(
                f,
                "make space; once more than {} are free, set reserved_disk_space from 0 to {count}, so that a full disk can be \
                 emptied (with less, it would suspend writes); on a disk too small for that, lower write_buffer_size or \
                 target_file_size_base",
                bytes(*count)
            ),
            Self::MakeSpaceForWal { is_running } => write!(
                f,
                "make space: {} a WAL reserves all of it; a smaller write_buffer_size wants less, allow_fallocate=false nothing",
                if *is_running { "from the next flush on" } else { "then" }
            ),
            Self::DropSnapshotFirst { seconds, taken_at, writes } => write!(
                f,
                "drop the snapshot that was taken {seconds} s ago at {taken_at} first, which keeps what {writes} writes since \
                 have deleted or overwritten"
            ),
            Self::LetGo { when, but } => {
                write!(f, "{when}drop what Db::hold_automatic_compactions has returned{but}")
            }
            Self::Compact { what, family, bottommost, is_running, but } => {
                let command = Compaction { family, bottommost: *bottommost, is_running: *is_running };
                write!(f, "{what}: {command}{but}")
            }
            Self::CollectGarbage { .. } => self.write_collection(f),
            Self::LetBurstPass { burst, most } => write!(
                f,
                "a burst of writes may leave up to burst_space_amplification ({burst}); compactions take it down to \
                 max_space_amplification ({most}) while the database is open"
            ),
            Self::AnotherStyle { when } => write!(f, "{when}open it with another compaction_style"),
            Self::SettleWal { may_skip } => f.write_str(settling(*may_skip)),
            Self::RaiseNumLevels { to } => write!(
                f,
                "set it to {to} or more; where there is to be less, first have a manual compaction move the tables up, by \
                 `change_level` (flagstone compact --change-level)"
            ),
            Self::HoldAllFiles { limit, wanted } => {
                let limit = limit.map_or_else(|| "not known".to_string(), |limit| limit.to_string());
                write!(
                    f,
                    "raise the hard limit of open files, which is {limit}, to {wanted} or more (ulimit -n NUMBER as root, \
                     LimitNOFILE=NUMBER of a service)"
                )
            }
            Self::ShowByKind { command } => write!(f, "by its name {command} shows it"),
            _ => f.write_str(self.words()),
        }
    }
}

/// What to do about a WAL that is damaged in its middle.
fn settling(may_skip: bool) -> &'static str {
    if may_skip {
        "do not open it for writing before this is settled: restore the WAL from a copy; or have every intact record, those \
         behind it too, in a new database: flagstone salvage; or open with wal_recovery_mode=kSkipAnyCorruptedRecords, which \
         goes on behind the damaged block of 32 KiB"
    } else {
        "do not open it for writing before this is settled: restore the WAL from a copy; or have every intact record, those \
         behind it too, in a new database: flagstone salvage"
    }
}

/// How a family is compacted.
struct Compaction<'a> {
    family: &'a str,
    bottommost: bool,
    is_running: bool,
}

impl fmt::Display for Compaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_running, self.bottommost) {
            (true, false) => return f.write_str("Db::compact_range"),
            (true, true) => return f.write_str("Db::compact_range with BottommostLevelCompaction::Force"),
            (false, false) => f.write_str("flagstone compact")?,
            (false, true) => f.write_str("flagstone compact --force-bottommost")?,
        }
        if self.family != super::DEFAULT_COLUMN_FAMILY_NAME {
            write!(f, " --cf '{}'", self.family.replace('\'', "'\\''"))?;
        }
        Ok(())
    }
}

impl Remedy {
    fn write_collection(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::CollectGarbage { family, by_request, is_running, bytes: count } = self else {
            return Ok(());
        };
        let seconds = count.div_ceil(SPEED).max(1);
        let time = format!("about {seconds} s where the disk reads and writes 100 MiB/s");
        let command = Compaction { family, bottommost: false, is_running: false };
        match (*by_request, *is_running) {
            (true, true) => write!(f, "compactions run only on request: Db::collect_blob_garbage ({time})"),
            (true, false) => write!(f, "compactions run only on request: {command} ({time})"),
            (false, true) => {
                write!(f, "wait: compactions collect it ({time}), as soon as reads pin no old files")
            }
            (false, false) => write!(
                f,
                "{command} collects it ({time}); a process that has the database open for writing does so in the background, and \
                 without one nothing does"
            ),
        }
    }

    /// The words of those that name nothing.
    fn words(&self) -> &'static str {
        match self {
            Self::ShareSyncs => {
                "write several keys in a batch, from several threads at once (one sync serves all), or without \
                 WriteOptions::sync and with sync_wal now and then"
            }
            Self::LookAfterDisk => "they do not go on: look after the disk",
            Self::Reopen => "look after the disk, then close the database and open it again",
            Self::Flush => "flush now (flagstone flush)",
            Self::DropIterator => {
                "drop it, or refresh it now and then: Iter::refresh, or with a snapshot auto_refresh_iterator_with_snapshot"
            }
            Self::DropSnapshot => "drop it, and take a new one where a long read can do with that",
            Self::DropOldestSnapshots => {
                "drop the oldest snapshots (`Db::pins` names them); a later compaction takes the table then"
            }
            Self::DeleteRanges => "delete ranges by delete_range",
            Self::DeleteFewerRanges => "delete fewer and larger ranges",
            Self::ExpireByTtl => {
                "FIFO compaction keeps deletions for as long as the tables that they are in: let values expire by ttl, or \
                 open it with another compaction_style"
            }
            Self::LeaveStrays => {
                "nothing to do: a process that has it open is writing them, or the next opening for writing removes them"
            }
            Self::LeaveTornEnd => {
                "nothing to do after a crash: openings go on without that record. After none, restore the WAL from a copy before \
                 the database is opened for writing"
            }
            Self::LeaveEmptyWal => {
                "nothing to do if this is a copy that was made without an empty WAL, as RocksDB's checkpoints are; else \
                 restore it before the database is opened for writing: what it held is lost"
            }
            Self::RestoreOrSalvage => {
                "restore the file from a copy and reopen, or save what is left: flagstone salvage"
            }
            Self::CompactWithWriter => {
                "this need not be damage, and the file is not to be restored unless flagstone verify says so: have the program \
                 compact it that wrote it, and open the database again; until then the file stays as it is"
            }
            Self::BePermitted => {
                "run this as the owner of the file (ls -l), or have the owner permit it to this user; raise the limits of this \
                 process where they are the reason (ulimit -n, ulimit -v)"
            }
            Self::MendKey => {
                "give the family a merge operator that takes the operands; delete a key with delete or with single_delete, never \
                 with both. What is read of the key may be an error, or other than expected, until it is put or deleted anew"
            }
            _ => self.words_of_errors(),
        }
    }

    fn words_of_errors(&self) -> &'static str {
        match self {
            Self::RestoreManifest => {
                "restore CURRENT and the MANIFEST from a copy, or save what is left with `flagstone salvage`"
            }
            Self::RestoreOrGoWithout => {
                "restore it from a copy; or open with `paranoid_checks=false`, to read and write all else; or save what is left \
                 with `flagstone salvage`"
            }
            Self::FindWal => {
                "restore it from a copy, or name the directory that it lies in (`wal_dir`); or open with \
                 `wal_recovery_mode=kSkipAnyCorruptedRecords`, to go on without what it held"
            }
            Self::FindWalDirectory => {
                "the WALs lie in there: mount it or restore it, or name another (`wal_dir`); or open with \
                 `wal_recovery_mode=kSkipAnyCorruptedRecords`, to go on without what they held"
            }
            Self::MountWalDirectory => {
                "mount or restore the directory, or say where it is: --set wal_dir=DIR. If the WALs are gone, have what the \
                 tables hold by flagstone salvage, or open with wal_recovery_mode=kSkipAnyCorruptedRecords"
            }
            Self::RestoreWal => "restore the WAL from a copy",
            Self::NameAllFamilies => "name all, or open with `Db::open`, which does",
            Self::CreateMissingFamilies => "set `create_missing_column_families` to make it",
            Self::OpenWithOwnOptions => {
                "open each family with its own, by `Db::open_with_families`; `options::load_latest` reads which those are"
            }
            Self::EndOptionsFile => "if somebody has changed it and it is whole, give it that end",
            Self::MoveOptionsAway => {
                "The OPTIONS file is damaged, or says what this program does not know. Where all comparators are built in and \
                 nothing is merged, the OPTIONS files may be moved away."
            }
            Self::DecidePrepared => {
                "with RocksDB, commit or roll back what is prepared, flush all families, and close the database"
            }
            Self::ReadUnstamped => "read it as it is, by `Db` or without --ttl",
            Self::NameEmptyTarget => "name another, or remove what a salvage that was interrupted left there",
            Self::RemoveOwner => "if it is not, or does not use the directory any longer, remove that file",
            Self::MakeNewCopy => "make a new copy of the database (a checkpoint) and go on from there",
            Self::KeepWals => "WAL_ttl_seconds and WAL_size_limit_MB keep WALs for longer",
            Self::SalvageWithoutCurrent => "save what is there by flagstone salvage",
            Self::CheckPath => "check --db",
            _ => self.words_of_commands(),
        }
    }

    fn words_of_commands(&self) -> &'static str {
        match self {
            Self::LookAgain => {
                "the database is being written to: what is missing or damaged here may be what the writer has removed meanwhile. \
                 Ask Db::verify or Db::doctor in the process that has it open, or look again when it is closed"
            }
            Self::VerifyAndSalvage => {
                "flagstone verify lists all that is damaged in a database, flagstone salvage saves what is intact."
            }
            Self::SeeWhatIsThere => {
                "There is nothing by that name: see whether it is right (ls). A relative one begins at the current directory."
            }
            Self::BeOwner => {
                "This user may not do that: run it as the owner of the file (ls -l), or have the owner permit it."
            }
            Self::MountWritable => {
                "The file system is mounted read-only: mount it writable, or copy the database. Commands that only read work as \
                 it is."
            }
            Self::MakeSpaceAndRepeat => {
                "Make space on that file system (df shows how much it has), and repeat the command."
            }
            Self::RaiseQuota => {
                "This user's quota is used up: remove files, or have it raised, and repeat the command."
            }
            Self::PermitLargerFiles => {
                "The file would become larger than this process (ulimit -f) or the file system permits."
            }
            Self::PermitMoreMemory => {
                "The system has no memory left, or permits this process no more (ulimit -v, its cgroup)."
            }
            Self::PermitMoreFiles => {
                "This process may open no more files: raise ulimit -n, or have --set max_open_files=NUMBER."
            }
            Self::CopyFromDevice => {
                "The device failed, or its connection: see the kernel's log (dmesg), copy what can be read, and save the \
                 database from the copy by flagstone salvage."
            }
            // Those with figures or names say them where they are written.
            _ => "",
        }
    }
}
