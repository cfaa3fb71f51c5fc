//! Remedies in words.

use std::fmt;

use super::{Remedy, bytes, sentence};

/// Bytes a second that a compaction is taken to read and write where a time is named.
const SPEED: u64 = 100 << 20;

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { when, option, from: Some(from), to, but } => {
                write!(f, "{when}set {option} from {from} to {to}{but}")
            }
            Self::Set { when, option, from: None, to, but } => {
                write!(f, "{when}set {option}={to}{but}")
            }
            Self::SetBack { .. } => self.write_setting_back(f),
            Self::DecideTransaction { .. } => self.write_decision(f),
            Self::MoreMemory { when, what, but } => write!(f, "{when}{what}{but}"),
            Self::MindRateLimit { bytes_per_second } => {
                write!(f, "they are limited to rate_limiter_bytes_per_sec={bytes_per_second}")
            }
            Self::SeeBelow { otherwise } => write!(
                f,
                "see below for what delays flushes and compactions; if nothing is listed, {}",
                sentence(otherwise)
            ),
            Self::MakeSpace { .. }
            | Self::MakeSpaceAndReserve { .. }
            | Self::MakeSpaceForWal { .. } => self.write_space(f),
            Self::DropSnapshotFirst { seconds, taken_at, writes } => write!(
                f,
                "first drop the snapshot taken {seconds} s ago at {taken_at}, which keeps what {writes} writes since then have \
                 deleted or overwritten"
            ),
            Self::LetGo { when, but } => {
                write!(f, "{when}drop the guard that Db::hold_automatic_compactions returned{but}")
            }
            Self::Compact { what, family, bottommost, is_running, but } => {
                let command =
                    Compaction { family, bottommost: *bottommost, is_running: *is_running };
                write!(f, "{what}: {command}{but}")
            }
            Self::CollectGarbage { .. } => self.write_collection(f),
            Self::LetBurstPass { burst, most } => write!(
                f,
                "a burst of writes may leave up to burst_space_amplification ({burst}); compactions take it down to \
                 max_space_amplification ({most}) while the database is open"
            ),
            Self::AnotherStyle { when } => {
                write!(f, "{when}open the database with another compaction_style")
            }
            Self::SettleWal { may_skip } => f.write_str(settling(*may_skip)),
            Self::RaiseNumLevels { to } => write!(
                f,
                "set it to {to} or more; for fewer levels, first move the tables up with a manual compaction with \
                 `change_level` (flagstone compact --change-level)"
            ),
            Self::HoldAllFiles { limit, wanted } => {
                let limit =
                    limit.map_or_else(|| "not known".to_string(), |limit| limit.to_string());
                write!(
                    f,
                    "raise the hard limit on open files, now {limit}, to {wanted} or more (ulimit -n NUMBER as root, \
                     LimitNOFILE=NUMBER for a service)"
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
        "do not open it for writing yet: restore the WAL from a copy; or run flagstone salvage, which saves every intact \
         record, including those after the damage, to a new database; or open with wal_recovery_mode=kSkipAnyCorruptedRecords, \
         which skips the damaged 32 KiB block"
    } else {
        "do not open it for writing yet: restore the WAL from a copy; or run flagstone salvage, which saves every intact \
         record, including those after the damage, to a new database"
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
            (true, true) => {
                return f.write_str("Db::compact_range with BottommostLevelCompaction::Force");
            }
            (false, false) => f.write_str("flagstone compact")?,
            (false, true) => f.write_str("flagstone compact --force-bottommost")?,
        }
        if self.family != crate::base::DEFAULT_COLUMN_FAMILY_NAME {
            write!(f, " --cf '{}'", self.family.replace('\'', "'\\''"))?;
        }
        Ok(())
    }
}

impl Remedy {
    fn write_setting_back(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetBack { option, to, is_running: false } => write!(
                f,
                "reset it: flagstone flush --set {option}={to}; also reset it in each program that opens the database with its \
                 own options"
            ),
            Self::SetBack { option, to, .. } => write!(f, "open the database with {option}={to}"),
            _ => Ok(()),
        }
    }

    fn write_decision(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DecideTransaction { name, is_running: false } => write!(
                f,
                "unless the program that prepared it decides on it: flagstone transactions commit {name}, or rollback {name}"
            ),
            Self::DecideTransaction { name, .. } => write!(
                f,
                "commit it or roll it back (TransactionDb::prepared_transactions); when the database is closed: flagstone \
                 transactions commit {name}, or rollback {name}"
            ),
            _ => Ok(()),
        }
    }

    fn write_space(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MakeSpace { then } => write!(f, "make space{then}"),
            Self::MakeSpaceAndReserve { bytes: count } => write!(
                f,
                "free disk space; once more than {} are free, set reserved_disk_space from 0 to {count}, so that a full disk \
                 can be cleaned up (with less free space it would suspend writes); on a smaller disk, lower write_buffer_size \
                 or target_file_size_base",
                bytes(*count)
            ),
            Self::MakeSpaceForWal { is_running } => write!(
                f,
                "free disk space: {} a WAL can reserve all of it; a smaller write_buffer_size needs less, \
                 allow_fallocate=false nothing",
                if *is_running { "from the next flush on" } else { "then" }
            ),
            _ => Ok(()),
        }
    }

    fn write_collection(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::CollectGarbage { family, by_request, is_running, bytes: count } = self else {
            return Ok(());
        };
        let seconds = count.div_ceil(SPEED).max(1);
        let time = format!("about {seconds} s if the disk reads and writes 100 MiB/s");
        let command = Compaction { family, bottommost: false, is_running: false };
        match (*by_request, *is_running) {
            (true, true) => {
                write!(
                    f,
                    "compactions run only on request: Db::collect_blob_garbage collects it ({time})"
                )
            }
            (true, false) => {
                write!(f, "compactions run only on request: {command} collects it ({time})")
            }
            (false, true) => {
                write!(f, "wait: compactions collect it ({time}) once no read pins old files")
            }
            (false, false) => write!(
                f,
                "{command} collects it ({time}); so does any process that has the database open for writing, in the background"
            ),
        }
    }

    /// The words of those that name nothing.
    fn words(&self) -> &'static str {
        match self {
            Self::ShareSyncs => {
                "write several keys per batch, write from several threads at once (they share a sync), or leave \
                 WriteOptions::sync off and call sync_wal from time to time"
            }
            Self::LookAfterDisk => "check the disk",
            Self::Reopen => "check the disk, then close and reopen the database",
            Self::Flush => "flush now (flagstone flush)",
            Self::DropIterator => {
                "drop it, or refresh it from time to time with Iter::refresh or, if it has a snapshot, \
                 auto_refresh_iterator_with_snapshot"
            }
            Self::DropSnapshot => "drop it; a long read may be able to use a newer one",
            Self::DropOldestSnapshots => {
                "drop the oldest snapshots (`Db::pins` lists them); a later compaction can then include the table"
            }
            Self::DeleteRanges => "delete ranges with delete_range",
            Self::DeleteFewerRanges => "delete fewer and larger ranges",
            Self::ExpireByTtl => {
                "FIFO compaction keeps deletions as long as the tables they are in: let values expire by ttl, or open the \
                 database with another compaction_style"
            }
            Self::LeaveStrays => {
                "nothing to do: either a process that has the database open is writing them, or the next opening for writing \
                 removes them"
            }
            Self::LeaveTornEnd => {
                "nothing to do after a crash: the database opens without that record. If there was no crash, restore the WAL \
                 from a copy before opening the database for writing"
            }
            Self::LeaveEmptyWal => {
                "nothing to do if this is a copy made without its empty WAL, as RocksDB's checkpoints are; otherwise restore \
                 the WAL before opening the database for writing, or its contents are lost"
            }
            Self::RestoreOrSalvage => {
                "restore the file from a copy and reopen, or save what is left with flagstone salvage"
            }
            Self::CompactWithWriter => {
                "this need not be damage: do not restore the file unless flagstone verify says so. Compact it with the program \
                 that wrote it, then reopen the database; until then the file stays as it is"
            }
            Self::BePermitted => {
                "run this as the owner of the file (ls -l), or ask the owner for access; if a limit of this process is the \
                 reason, raise it (ulimit -n, ulimit -v)"
            }
            Self::MendKey => {
                "give the family a merge operator that accepts the operands; delete a key with delete or with single_delete, \
                 never with both. Until the key is put or deleted again, reading it may fail or return an unexpected value"
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
                "restore it from a copy; or open with `paranoid_checks=false` to read and write everything else; or save what \
                 is left with `flagstone salvage`"
            }
            Self::FindWal => {
                "restore it from a copy, or set `wal_dir` to the directory that holds it; or open with \
                 `wal_recovery_mode=kSkipAnyCorruptedRecords` to continue without its contents"
            }
            Self::FindWalDirectory => {
                "it holds the WALs: mount or restore it, or set `wal_dir` to another; or open with \
                 `wal_recovery_mode=kSkipAnyCorruptedRecords` to continue without their contents"
            }
            Self::MountWalDirectory => {
                "mount or restore the directory, or give its path: --set wal_dir=DIR. If the WALs are gone, save what the \
                 tables hold with flagstone salvage, or open with wal_recovery_mode=kSkipAnyCorruptedRecords"
            }
            Self::RestoreWal => "restore the WAL from a copy",
            Self::NameAllFamilies => "name all of them, or use `Db::open`, which opens all",
            Self::CreateMissingFamilies => "set `create_missing_column_families` to create it",
            Self::OpenWithOwnOptions => {
                "open each family with its own options through `Db::open_with_families`; `options::load_latest` reads them"
            }
            Self::EndOptionsFile => "if an editor removed that end, put it back",
            Self::CorrectLine => "remove or correct that line",
            Self::MoveOptionsAway => {
                "The OPTIONS file is damaged, or contains something that this program does not know. If all comparators are \
                 built in and no merge operator is used, the OPTIONS files may be moved away."
            }
            Self::DecidePrepared => {
                "open it as a TransactionDb (option allow_2pc), and commit the transactions that are prepared or roll them back \
                 (flagstone transactions)"
            }
            Self::EndLockHolder => {
                "commit the transaction that has it, or roll it back; with an `expiration`, others take over the locks of one \
                 that is forgotten"
            }
            Self::ReadUnstamped => "read it as it is, by `Db` or without --ttl",
            Self::NameEmptyTarget => {
                "name another, or remove what an interrupted salvage left there"
            }
            Self::RemoveOwner => {
                "if it does not, or no longer uses the directory, remove that file"
            }
            Self::MakeNewCopy => {
                "make a new copy of the database (a checkpoint) and go on from there"
            }
            Self::KeepWals => "set WAL_ttl_seconds or WAL_size_limit_MB to keep WALs longer",
            Self::SalvageWithoutCurrent => "save what is there with flagstone salvage",
            Self::CheckPath => "check --db",
            _ => self.words_of_commands(),
        }
    }

    fn words_of_commands(&self) -> &'static str {
        match self {
            Self::LookAgain => {
                "the database is being written to: a file that seems missing or damaged may be one that the writer has just \
                 removed. Call Db::verify or Db::doctor in the process that has it open, or check again when it is closed"
            }
            Self::CopyBesideWriter => {
                "While it is open there, that program can make a checkpoint (Db::checkpoint), or you can copy the contents: \
                 flagstone dump --db DB | flagstone load --db COPY."
            }
            Self::VerifyAndSalvage => {
                "flagstone verify lists all damage in a database; flagstone salvage saves what is intact."
            }
            Self::SeeWhatIsThere => {
                "Nothing has that name: check the path (ls). A relative path starts at the current directory."
            }
            Self::BeOwner => {
                "This user may not do that: run it as the owner of the file (ls -l), or ask the owner for access."
            }
            Self::MountWritable => {
                "The file system is mounted read-only: mount it writable, or copy the database. Commands that only read still \
                 work."
            }
            Self::MakeSpaceAndRepeat => {
                "Make space on that file system (df shows how much is left), and repeat the command."
            }
            Self::RaiseQuota => {
                "This user's quota is used up: remove files or have the quota raised, and repeat the command."
            }
            Self::PermitLargerFiles => {
                "The file would become larger than this process (ulimit -f) or the file system allows."
            }
            Self::PermitMoreMemory => {
                "The system has no memory left, or this process has reached its limit (ulimit -v, its cgroup)."
            }
            Self::PermitMoreFiles => {
                "This process may open no more files: raise ulimit -n, or give --set max_open_files=NUMBER."
            }
            Self::CopyFromDevice => {
                "The device or its connection failed: see the kernel's log (dmesg), copy what can be read, and save the \
                 database from the copy with flagstone salvage."
            }
            // Those with figures or names say them where they are written.
            _ => "",
        }
    }
}
