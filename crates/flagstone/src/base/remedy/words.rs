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
            Self::MoreMemory { when, what, but } => write!(f, "{when}{what}{but}"),
            Self::MindRateLimit { bytes_per_second } => {
                write!(
                    f,
                    "they may have no more than rate_limiter_bytes_per_sec={bytes_per_second}"
                )
            }
            Self::SeeBelow { otherwise } => write!(
                f,
                "see below for what flushes and compactions are behind with; if nothing is, {}",
                sentence(otherwise)
            ),
            Self::MakeSpace { .. }
            | Self::MakeSpaceAndReserve { .. }
            | Self::MakeSpaceForWal { .. } => self.write_space(f),
            Self::DropSnapshotFirst { seconds, taken_at, writes } => write!(
                f,
                "drop the snapshot that was taken {seconds} s ago at {taken_at} first, which keeps what {writes} writes since \
                 have deleted or overwritten"
            ),
            Self::LetGo { when, but } => {
                write!(f, "{when}drop what Db::hold_automatic_compactions has returned{but}")
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
            Self::AnotherStyle { when } => write!(f, "{when}open it with another compaction_style"),
            Self::SettleWal { may_skip } => f.write_str(settling(*may_skip)),
            Self::RaiseNumLevels { to } => write!(
                f,
                "set it to {to} or more; where there is to be less, first have a manual compaction move the tables up, by \
                 `change_level` (flagstone compact --change-level)"
            ),
            Self::HoldAllFiles { limit, wanted } => {
                let limit =
                    limit.map_or_else(|| "not known".to_string(), |limit| limit.to_string());
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
                "set it back: flagstone flush --set {option}={to}; and in each program that opens the database with options of \
                 its own"
            ),
            Self::SetBack { option, to, .. } => write!(f, "open the database with {option}={to}"),
            _ => Ok(()),
        }
    }

    fn write_space(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            _ => Ok(()),
        }
    }

    fn write_collection(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::CollectGarbage { family, by_request, is_running, bytes: count } = self else {
            return Ok(());
        };
        let seconds = count.div_ceil(SPEED).max(1);
        let time = format!("about {seconds} s where the disk reads and writes 100 MiB/s");
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
                write!(
                    f,
                    "wait: compactions collect it ({time}), as soon as reads pin no old files"
                )
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
            Self::EndOptionsFile => "if an editor has taken that end away, give it back",
            Self::CorrectLine => "remove or correct that line",
            Self::MoveOptionsAway => {
                "The OPTIONS file is damaged, or says what this program does not know. Where all comparators are built in and \
                 nothing is merged, the OPTIONS files may be moved away."
            }
            Self::DecidePrepared => {
                "with RocksDB, commit or roll back what is prepared, flush all families, and close the database"
            }
            Self::ReadUnstamped => "read it as it is, by `Db` or without --ttl",
            Self::NameEmptyTarget => {
                "name another, or remove what a salvage that was interrupted left there"
            }
            Self::RemoveOwner => {
                "if it is not, or does not use the directory any longer, remove that file"
            }
            Self::MakeNewCopy => {
                "make a new copy of the database (a checkpoint) and go on from there"
            }
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
            Self::CopyBesideWriter => {
                "While it is open there, that program makes a checkpoint by Db::checkpoint, or make a copy of the contents: \
                 flagstone dump --db DB | flagstone load --db COPY."
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
