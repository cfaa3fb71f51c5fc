//! What a [`CompactionStream`](super::CompactionStream) needs besides its input, and what it
//! reports.

use std::sync::Arc;

use crate::base::{
    Comparator, Error, InternalKey, MAX_SEQUENCE_NUMBER, MergeOperator, Result, SequenceNumber,
    ValueType, WriteTimes, timestamp,
};
use crate::batch::MAX_ENTRY_SIZE;

/// Decides where the values of a compaction's output lie: moves large ones into blob files, and
/// rewrites or inlines those whose blob file is to go.
pub trait ValueSeparator {
    /// Asked once for each output entry of type `Value`, `BlobIndex` or `WideColumnEntity`. To
    /// store something else, writes it to `out` (which comes empty) and returns its type.
    ///
    /// # Errors
    /// What reading or writing blob files says; the compaction fails with it.
    fn place(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueType>>;
}

/// Leaves every value where it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepInPlace;

impl ValueSeparator for KeepInPlace {
    fn place(
        &mut self,
        _key: InternalKey<'_>,
        _value: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Option<ValueType>> {
        Ok(None)
    }
}

/// What a [`CompactionStream`](super::CompactionStream) needs to know besides its input.
#[derive(Clone)]
pub struct StreamSettings {
    /// The order of the user keys.
    pub comparator: Comparator,
    /// The live snapshots, ascending.
    pub snapshots: Vec<SequenceNumber>,
    /// The oldest snapshot that a transaction checks its conflicts against; `MAX_SEQUENCE_NUMBER`
    /// without transactions.
    pub write_conflict_snapshot: SequenceNumber,
    /// Whether nothing older lies below the output.
    pub bottommost: bool,
    /// Whether older data may be put underneath later, so that nothing that hides it may go.
    pub ingest_behind: bool,
    /// Whether a single deletion right over a deletion is told as a fault of its key.
    pub enforce_single_del_contracts: bool,
    /// The level that the compaction begins at, for the filter.
    pub level: u32,
    /// Combines merge operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The most bytes of a user key and a value that can be stored together.
    pub entry_size_max: usize,
    /// Larger sequence numbers do not become 0, because they tell when entries were written.
    pub zeroed_until: SequenceNumber,
    /// Of a flush, when entries were written: timed values get sequence numbers in the places of
    /// their times.
    pub times: Option<FlushedTimes>,
    /// Where keys have timestamps, what is kept of them.
    pub history: Option<History>,
}

/// When what is flushed was written, as far as that is known.
#[derive(Debug, Clone, Default)]
pub struct FlushedTimes(pub Option<Arc<WriteTimes>>);

impl FlushedTimes {
    /// The sequence number that a timed value of a memtable prefers, if it is smaller than its own.
    pub(super) fn preferred(&self, time: u64, own: SequenceNumber) -> Option<SequenceNumber> {
        let preferred = self.0.as_ref()?.sequence_at(time);
        (preferred < own).then_some(preferred)
    }
}

/// What is kept of the timestamps of keys.
///
/// Versions with timestamps from `low` on are kept apart; those before it are judged together, as
/// if they were versions of a key without timestamps.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// `full_history_ts_low`; `None` keeps everything.
    pub low: Option<Vec<u8>>,
    /// Whether the output has keys without their timestamps, which all are before `low` then.
    pub is_stripped: bool,
    /// What is newer goes.
    pub trim: Option<Vec<u8>>,
}

impl History {
    /// Whether what has that timestamp is judged without regard to it.
    pub(super) fn forgets(&self, comparator: &Comparator, timestamp: &[u8]) -> bool {
        let is_before = |low: &Vec<u8>| comparator.compare_timestamps(timestamp, low).is_lt();
        self.is_stripped || self.low.as_ref().is_some_and(is_before)
    }
}

impl StreamSettings {
    /// Those of a flush without snapshots and without a merge operator.
    pub fn new(comparator: Comparator) -> Self {
        Self {
            comparator,
            snapshots: Vec::new(),
            write_conflict_snapshot: MAX_SEQUENCE_NUMBER,
            bottommost: false,
            ingest_behind: false,
            enforce_single_del_contracts: true,
            level: 0,
            merge_operator: None,
            entry_size_max: MAX_ENTRY_SIZE,
            zeroed_until: MAX_SEQUENCE_NUMBER,
            times: None,
            history: None,
        }
    }

    /// The stripe of a sequence number, named by its newest member.
    #[inline]
    pub(super) fn stripe(&self, sequence: SequenceNumber) -> SequenceNumber {
        let older = self.snapshots.partition_point(|&snapshot| snapshot < sequence);
        self.snapshots.get(older).copied().unwrap_or(MAX_SEQUENCE_NUMBER)
    }

    /// Whether every snapshot sees a sequence number.
    #[inline]
    pub(super) fn all_see(&self, sequence: SequenceNumber) -> bool {
        self.snapshots.first().is_none_or(|&earliest| sequence <= earliest)
    }

    /// Whether what has that timestamp goes, because it is too new.
    #[inline]
    pub(super) fn trims(&self, user_key: &[u8]) -> bool {
        let Some(History { trim: Some(trim), .. }) = &self.history else { return false };
        let (_, stamp) = timestamp::split(user_key, trim.len());
        self.comparator.compare_timestamps(stamp, trim).is_gt()
    }

    /// Whether a version with that timestamp is not kept apart from others of its key.
    pub(super) fn is_before_history(&self, timestamp: &[u8]) -> bool {
        let history = self.history.as_ref();
        history.is_some_and(|history| history.forgets(&self.comparator, timestamp))
    }

    /// Whether nothing older lies below the output, nor ever will.
    pub(super) fn at_bottom(&self) -> bool {
        self.bottommost && !self.ingest_behind
    }
}

/// What a stream saw and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    /// Entries read.
    pub input_entries: u64,
    /// Entries dropped because a newer one of their key hides them from every snapshot.
    pub dropped_hidden: u64,
    /// Entries dropped because a range tombstone covers them.
    pub dropped_range_deleted: u64,
    /// Deletions and single deletions dropped because there is nothing left to delete.
    pub dropped_obsolete: u64,
    /// Entries that the filter dropped or turned into deletions.
    pub dropped_by_filter: u64,
    /// Entries that stay as they were, since no table can hold, or nobody read, what the filter
    /// made of them.
    pub unstorable_by_filter: u64,
    /// Keys whose operands the merge operator refuses, or that were deleted in both ways.
    pub key_faults: u64,
}

/// What is wrong with a key.
#[derive(Debug, Clone)]
pub struct KeyError {
    /// The key.
    pub user_key: Vec<u8>,
    /// What is wrong, in words that name the key.
    pub error: Error,
}
