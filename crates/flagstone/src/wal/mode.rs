//! What damage in a log means, by recovery mode.
//!
//! ```text
//! damage                                     Tolerate      Absolute    PointInTime   SkipAny
//! cut off at the file's end                  end           fail        stop          end
//! checksum, length: in a recycled file       end           fail        stop          skip
//! checksum, length: in another               fail          fail        stop          skip
//! damaged number in a record's header        fail          fail        stop          skip
//! any other bad record                       fail          fail        stop          skip
//! record of an older life, zeros             end           end         stop          skip
//! the same in front of the log's records     end           fail        stop          skip
//! the same inside a fragmented record        end           fail        stop          skip
//! a blob that a record names is not whole    end           fail        stop          skip
//! sequence numbers that were taken before    fail          fail        fail          skip
//! ```
//!
//! In files of other than recyclable records, zeros between records are passed over by the first
//! and the last of these: they are where a page was lost in a crash.

use super::damage::DamageKind;

/// What recovery does about damage in WALs (RocksDB's `wal_recovery_mode`; the numbers are stored
/// in options).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecoveryMode {
    /// Accepts a WAL that ends in the middle of a record. Fails on any other damage.
    TolerateCorruptedTailRecords = 0,
    /// Fails on any damage.
    AbsoluteConsistency = 1,
    /// Recovers everything before the damage, and nothing after it.
    #[default]
    PointInTimeRecovery = 2,
    /// Recovers everything that can be read.
    SkipAnyCorruptedRecords = 3,
}

/// What to do at one damaged place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The log ends here, as it may.
    End,
    /// Recovery keeps what it has, and takes no more.
    Stop,
    /// Go on with the next readable record.
    Skip,
    /// Recovery fails.
    Fail,
}

impl RecoveryMode {
    /// The verdict on damage in a log; `recyclable` says whether its headers carry its number.
    pub fn judge(self, kind: &DamageKind, recyclable: bool) -> Verdict {
        use DamageKind::*;
        match (self, kind) {
            (Self::PointInTimeRecovery, _) => Verdict::Stop,
            (Self::AbsoluteConsistency, Zeros { in_fragment: false }) if !recyclable => {
                Verdict::Fail
            }
            (_, Zeros { in_fragment: false }) if !recyclable => Verdict::Skip,
            (Self::SkipAnyCorruptedRecords, TruncatedHeader | TruncatedBody | TruncatedRecord) => {
                Verdict::End
            }
            (Self::SkipAnyCorruptedRecords, _) => Verdict::Skip,
            (_, OldRecord { in_fragment: false } | Zeros { in_fragment: false }) => Verdict::End,
            (Self::AbsoluteConsistency, _) => Verdict::Fail,
            (Self::TolerateCorruptedTailRecords, kind) => match kind {
                TruncatedHeader | TruncatedBody | TruncatedRecord => Verdict::End,
                OldRecord { .. } | Zeros { .. } => Verdict::End,
                Checksum | Length if recyclable => Verdict::End,
                _ => self.judge_bad_record(),
            },
        }
    }

    /// The verdict on a log that goes on where the end of the one before is lost.
    pub fn judge_lost_tail(self) -> Verdict {
        match self {
            Self::AbsoluteConsistency => Verdict::Fail,
            Self::PointInTimeRecovery => Verdict::Stop,
            Self::TolerateCorruptedTailRecords | Self::SkipAnyCorruptedRecords => Verdict::Skip,
        }
    }

    /// The verdict on a log that is gone, though the one after it tells of its records: no crash
    /// removes a file.
    pub fn judge_missing_wal(self) -> Verdict {
        match self {
            Self::SkipAnyCorruptedRecords => Verdict::Skip,
            _ => Verdict::Fail,
        }
    }

    /// The verdict on a record that is intact, but names a blob that is not: as if the record
    /// itself were torn.
    pub fn judge_lost_blob(self) -> Verdict {
        match self {
            Self::TolerateCorruptedTailRecords => Verdict::End,
            Self::AbsoluteConsistency => Verdict::Fail,
            Self::PointInTimeRecovery => Verdict::Stop,
            Self::SkipAnyCorruptedRecords => Verdict::Skip,
        }
    }

    /// The verdict on a batch that takes sequence numbers which were taken before.
    pub fn judge_overlap(self) -> Verdict {
        match self {
            Self::SkipAnyCorruptedRecords => Verdict::Skip,
            _ => Verdict::Fail,
        }
    }

    /// The verdict on a record that is intact, but holds what it must not.
    pub fn judge_bad_record(self) -> Verdict {
        match self {
            Self::TolerateCorruptedTailRecords | Self::AbsoluteConsistency => Verdict::Fail,
            Self::PointInTimeRecovery => Verdict::Stop,
            Self::SkipAnyCorruptedRecords => Verdict::Skip,
        }
    }
}
