//! The order of the steps of a commit, without the database.
//!
//! With the commit lock held, a write goes through these steps:
//!
//! 1. **Check** ([`Steps::check`]): what may refuse the write. It consumes no sequence number and
//!    writes no byte, so that a refused write leaves nothing.
//! 2. **Append** ([`Steps::append`]): one record in the WAL, with the next sequence number. It
//!    takes no number yet. A write without the WAL leaves this step out.
//! 3. **Number** ([`Steps::take_numbers`]): takes the sequence numbers, and pins the memtables that
//!    the operations go to.
//! 4. **Finish** ([`Steps::finish`]): takes a turn in the order of publication
//!    ([`super::insertions`]), and says whether the write waits for a sync.
//!
//! Then, without the lock, the operations are inserted, side by side with those of others.
//!
//! An ordinary write goes through all of them. A prepared transaction is checked and appended; its
//! commit is appended as a record of its own, and then takes numbers for what was logged earlier,
//! with the WAL in which that lies. A check for conflicts is step 1.
//!
//! What the steps need of WAL, memtables and readers is [`CommitEnv`] (Pebble's `commitEnv`).

use crate::base::{Error, FileNumber, MAX_SEQUENCE_NUMBER, Mutant, Result, SequenceNumber};
use crate::batch::WriteBatch;

/// Sequence numbers, as the commit lock guards them.
#[derive(Debug, Default)]
pub(in crate::db::writing) struct Numbers {
    /// The last sequence number assigned.
    pub(in crate::db::writing) last: SequenceNumber,
    /// The last sequence number that a writer wants synced before it is published.
    pub(in crate::db::writing) sync_target: SequenceNumber,
    /// Records that took no sequence number: log data alone, or what is inserted later.
    pub(in crate::db::writing) unnumbered: u64,
    /// How many of them are synced.
    pub(in crate::db::writing) unnumbered_synced: u64,
    /// A lower bound on the last published sequence number. Where it is enough, the exact number is
    /// not loaded: that lies in a cache line that every write changes.
    published: SequenceNumber,
}

/// The WAL, the memtables and the readers, with the commit lock held.
pub(super) trait CommitEnv {
    /// The sequence numbers.
    fn numbers(&mut self) -> &mut Numbers;

    /// Whether the WAL is flushed by hand (`manual_wal_flush`): then a record behind a write that
    /// waits for its sync waits in memory, too.
    fn is_flushed_by_hand(&self) -> bool;

    /// Adds a record to the active WAL and returns its number. A record that `joins_sync` may wait
    /// in memory for the sync.
    ///
    /// # Errors
    /// Why the record is not in the WAL. Then nothing of it is, or the database is poisoned.
    fn append(&mut self, batch: &WriteBatch, joins_sync: bool) -> Result<FileNumber>;

    /// Pins the memtables that the operations of a batch go to, numbered from `first` on. They lie
    /// in the WAL `logged`, which is kept until the memtables are flushed; `None` if in no WAL.
    fn pin(&mut self, batch: &WriteBatch, first: SequenceNumber, logged: Option<FileNumber>);

    /// The last sequence number that readers see.
    fn published(&self) -> SequenceNumber;

    /// What says, once the operations are inserted, that they are.
    type Turn;

    /// Takes a turn behind all writes before this one. When they and this one are inserted, readers
    /// are shown all up to `publishes`, if that is given.
    fn take_turn(&mut self, publishes: Option<SequenceNumber>) -> Self::Turn;
}

/// What remains of a write once its steps are done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Committed {
    /// Its turn, which publishes it.
    Published,
    /// It waits for a sync up to `wanted`, or `for_its_own`, before all up to `last`, its own, is
    /// published.
    Waits { wanted: SequenceNumber, last: SequenceNumber, for_its_own: bool },
}

/// Whether a write waits for its sync, and with it all that came later.
pub(super) fn is_sync_awaited(numbers: &Numbers, published: SequenceNumber) -> bool {
    numbers.sync_target > published
}

/// One write, with the commit lock held.
pub(super) struct Steps<E> {
    env: E,
    /// The write is acknowledged after a sync only.
    is_synced: bool,
    /// The last sequence number before the write.
    before: SequenceNumber,
    /// A record with operations was appended.
    has_record: bool,
}

impl<E: CommitEnv> Steps<E> {
    #[inline]
    pub(super) fn new(mut env: E, is_synced: bool) -> Self {
        let before = env.numbers().last;
        Self { env, is_synced, before, has_record: false }
    }

    /// What the steps work on, for what has no order among them.
    #[inline]
    pub(super) fn env(&mut self) -> &mut E {
        &mut self.env
    }

    /// Refuses the write if `check` does, before it has left anything.
    #[inline]
    pub(super) fn check(&mut self, check: impl FnOnce(&mut E) -> Result<()>) -> Result<()> {
        debug_assert!(!self.has_record && self.before == self.env.numbers().last);
        check(&mut self.env)
    }

    /// Gives a batch the sequence numbers that it will take when it is inserted next.
    ///
    /// # Errors
    /// `NotSupported` if there are no more.
    #[inline]
    pub(super) fn number(&mut self, batch: &mut WriteBatch) -> Result<()> {
        let count = batch.count();
        self.number_for(batch, count)
    }

    /// The same of one with which another takes so many numbers.
    ///
    /// # Errors
    /// As [`Self::number`].
    #[inline]
    pub(super) fn number_for(&mut self, batch: &mut WriteBatch, count: u32) -> Result<()> {
        let last = self.env.numbers().last;
        if last + u64::from(count.max(1)) > MAX_SEQUENCE_NUMBER {
            return Err(Error::not_supported("the database has run out of sequence numbers"));
        }
        batch.set_sequence(last + 1);
        Ok(())
    }

    /// Logs a batch that is numbered, and inserts nothing. Returns the WAL that has it.
    ///
    /// # Errors
    /// Those of [`CommitEnv::append`].
    #[inline]
    pub(super) fn append(&mut self, batch: &WriteBatch) -> Result<FileNumber> {
        // Nothing of an empty batch is to be synced: what was before it may have been, and then
        // no sync writes its record.
        let joins_sync = self.is_synced && !batch.is_empty()
            || self.is_sync_awaited() && self.env.is_flushed_by_hand();
        let wal = self.env.append(batch, joins_sync)?;
        self.has_record |= !batch.is_empty();
        Ok(wal)
    }

    /// Takes the next sequence numbers for a batch, and returns the first. It was logged in the WAL
    /// `logged`, now or earlier, or in none.
    #[inline]
    pub(super) fn take_numbers(
        &mut self,
        batch: &WriteBatch,
        logged: Option<FileNumber>,
    ) -> SequenceNumber {
        let first = self.env.numbers().last + 1;
        self.env.pin(batch, first, logged);
        self.env.numbers().last = first - 1 + u64::from(batch.count());
        first
    }

    /// Takes the write's turn, and says what it waits for.
    #[inline]
    pub(super) fn finish(mut self) -> (Committed, E::Turn) {
        let last = self.env.numbers().last;
        let is_unnumbered = self.has_record && last == self.before;
        self.env.numbers().unnumbered += u64::from(is_unnumbered);
        if self.is_synced {
            self.env.numbers().sync_target = last;
        } else if !self.is_sync_awaited() {
            return (Committed::Published, self.env.take_turn(Some(last)));
        }
        let wanted = self.env.numbers().sync_target;
        let for_its_own = self.is_synced && is_unnumbered;
        let publishes = Mutant::PublishBeforeSync.is_on().then_some(last);
        (Committed::Waits { wanted, last, for_its_own }, self.env.take_turn(publishes))
    }

    #[inline]
    fn is_sync_awaited(&mut self) -> bool {
        let numbers = self.env.numbers();
        if !is_sync_awaited(numbers, numbers.published) {
            return false;
        }
        let published = self.env.published();
        self.env.numbers().published = published;
        is_sync_awaited(self.env.numbers(), published)
    }
}

#[cfg(test)]
mod tests;
