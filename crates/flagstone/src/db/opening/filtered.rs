//! What a program's WAL filter makes of the records of a replay.
//!
//! 1. The filter sees each record with operations once, in the order of the log.
//! 2. A record that is left out keeps its sequence numbers, as one does whose families have it
//!    already. Operations that replace it begin at its number and may not be more, so that they
//!    take none of the next record's.
//! 3. A filter that stops leaves out all that follows: the replay reads on, and the recovery writes
//!    down that the WALs are done with.
//! 4. Records that prepare or decide transactions stay: what other records say of them would have
//!    no meaning without them.

use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result, file_name};
use crate::batch::{BatchView, WriteBatch};
use crate::db::DbInner;
use crate::options::{RecoveryMode, ReplayedFamily, WalDecision, WalFilter};
use crate::wal::{Applied, ReplayRecord, is_plain};

/// The records of a replay, as far as a filter lets them pass.
pub(in crate::db) struct FilteredRecords<'a> {
    inner: &'a DbInner,
    filter: Arc<dyn WalFilter>,
    mode: RecoveryMode,
    has_stopped: bool,
}

impl<'a> FilteredRecords<'a> {
    /// Begins with the families of a database; nothing without a filter.
    pub(in crate::db) fn begin(inner: &'a DbInner) -> Option<Self> {
        let settings = inner.context.settings.load();
        let filter = settings.wal_filter.clone()?;
        inner.context.log.info(|| format!("WAL filter '{}'", filter.name()));
        let families = inner.tree.families_to_replay();
        let told: Vec<_> = families
            .iter()
            .map(|(family, log)| ReplayedFamily::new(family.id, &family.name, *log))
            .collect();
        filter.families(&told);
        Some(Self { inner, filter, mode: settings.wal_recovery_mode, has_stopped: false })
    }

    /// Asks the filter about a record, and applies what is to be applied of it.
    ///
    /// # Errors
    /// `Corruption` if the filter finds damage that the recovery mode does not accept;
    /// `InvalidArgument` for too many operations; `NotSupported` for a record of prepared
    /// transactions that is not to be replayed as it is; what `apply` returns.
    pub(in crate::db) fn pass(
        &mut self,
        record: &ReplayRecord<'_>,
        apply: impl FnOnce(&ReplayRecord<'_>) -> Result<Applied>,
    ) -> Result<Applied> {
        if record.batch.count() == 0 {
            return apply(record);
        }
        let decision = self.decide(record)?;
        if !is_plain(record.summary) && !matches!(decision, WalDecision::Replay) {
            let message =
                "a WAL filter cannot leave out or change what prepares or decides transactions";
            return Err(self.refusal(Error::not_supported(message)));
        }
        match decision {
            WalDecision::Replay => apply(record),
            WalDecision::Replace(batch) => self.replace(record, batch, apply),
            _ => Ok(Applied::Until(record.batch.end_without_empty_ranges()?)),
        }
    }

    /// What the filter says, or what follows from what it said before.
    fn decide(&mut self, record: &ReplayRecord<'_>) -> Result<WalDecision> {
        if self.has_stopped {
            return Ok(WalDecision::LeaveOut);
        }
        let batch = WriteBatch::from_bytes(record.batch.data().to_vec())?;
        let path = file_name::wal(&self.inner.context.wal_directory, record.wal);
        let decision = match self.filter.record(record.wal, &path, &batch) {
            WalDecision::Damaged => self.judge_damage(record.wal, &path)?,
            WalDecision::Fail(error) => return Err(self.refusal(error)),
            decision => decision,
        };
        self.has_stopped = matches!(decision, WalDecision::Stop);
        Ok(decision)
    }

    /// If history ends at damage, no family may hold, in tables, writes from behind it.
    fn judge_damage(&self, wal: FileNumber, path: &Path) -> Result<WalDecision> {
        let found = |what: String| Err(self.refusal(Error::corruption(what).at(path)));
        match self.mode {
            RecoveryMode::SkipAnyCorruptedRecords => Ok(WalDecision::LeaveOut),
            RecoveryMode::PointInTimeRecovery => match self.inner.tree.family_ahead_of(wal) {
                None => Ok(WalDecision::Stop),
                Some(family) => {
                    found(format!("column family '{family}' is ahead of the damage that was found"))
                }
            },
            _ => found("damage was found".to_string()),
        }
    }

    fn replace(
        &self,
        record: &ReplayRecord<'_>,
        mut batch: WriteBatch,
        apply: impl FnOnce(&ReplayRecord<'_>) -> Result<Applied>,
    ) -> Result<Applied> {
        let (new, old) = (batch.count(), record.batch.count());
        if new > old {
            let message = format!("a WAL filter replaces {old} operations by {new}");
            return Err(self.refusal(Error::invalid_argument(message)));
        }
        if record.summary.names_blobs {
            let message = "a record with values in blob files cannot be replaced";
            return Err(self.refusal(Error::not_supported(message)));
        }
        batch.set_sequence(record.batch.sequence());
        let piece = Arc::new(batch.into_bytes());
        let batch = BatchView::parse(&piece)?;
        let summary = batch.validate()?;
        if !is_plain(summary) {
            let message = "a WAL filter may not prepare or decide transactions";
            return Err(self.refusal(Error::invalid_argument(message)));
        }
        let applied = apply(&ReplayRecord { batch, summary, piece: &piece, ..*record })?;
        let end = record.batch.end_without_empty_ranges()?;
        Ok(match applied {
            Applied::Until(next) => Applied::Until(next.max(end)),
            failed @ Applied::Failed(_) => failed,
        })
    }

    fn refusal(&self, error: Error) -> Error {
        error.context(format!("WAL filter '{}'", self.filter.name()))
    }
}
