//! Transactions that are prepared under a name, and committed or rolled back later, even by another
//! process: what two-phase commit needs of an engine.
//!
//! Locks are not the engine's business: whoever prepares keeps others from writing the same keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::{Code, ColumnFamilyId, Error, Result, key_in_words};
use crate::batch::WriteBatch;
use crate::db::handle::Db;
use crate::db::writing::pipeline::two_phase::{Decision, PreparedBatch};
use crate::options::WriteOptions;

/// A transaction that is prepared, and neither committed nor rolled back.
#[derive(Clone)]
pub struct PreparedTransaction(Arc<PreparedBatch>);

impl PreparedTransaction {
    /// Its name: any bytes.
    pub fn name(&self) -> &[u8] {
        &self.0.name
    }

    /// What its commit will write.
    pub fn operations(&self) -> &WriteBatch {
        &self.0.operations
    }

    /// The column families that it changes, which may have been dropped since.
    pub fn families(&self) -> BTreeSet<ColumnFamilyId> {
        families_of(self.operations())
    }

    /// The number of the WAL that is kept for it.
    pub fn wal_number(&self) -> u64 {
        self.0.wal.0
    }
}

impl std::fmt::Debug for PreparedTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedTransaction")
            .field("name", &format_args!("'{}'", self.name().escape_ascii()))
            .field("operations", &self.operations().count())
            .field("wal", &self.wal_number())
            .finish()
    }
}

fn families_of(batch: &WriteBatch) -> BTreeSet<ColumnFamilyId> {
    batch.iter().filter_map(|operation| operation.ok()?.family()).collect()
}

/// Prepares transactions of a database under names, and decides on them later.
#[derive(Debug, Clone, Copy)]
pub struct TwoPhase<'a> {
    db: &'a Db,
}

impl<'a> TwoPhase<'a> {
    /// Those of this database.
    pub fn of(db: &'a Db) -> Self {
        Self { db }
    }

    /// The right to keep locks on the keys of the database, as long as the returned value lives;
    /// `None` while another has it.
    ///
    /// # Errors
    /// `NotSupported` if the database is open for reading.
    pub(crate) fn claim_locks(&self) -> Result<Option<Arc<()>>> {
        let inner = self.db.inner();
        if inner.context.read_only {
            return Err(Error::not_supported(
                "the database is open read-only, and needs no locks; open it for writing",
            ));
        }
        let mut locks = inner.lifecycle.locks.lock();
        if locks.strong_count() > 0 {
            return Ok(None);
        }
        let claim = Arc::new(());
        *locks = Arc::downgrade(&claim);
        Ok(Some(claim))
    }

    /// Prepares the operations of a batch under a name: they are in the WAL, synced if the options
    /// ask for it, and nobody sees them before [`TwoPhase::commit`]. The WAL is kept until the
    /// transaction is decided, across restarts. The operations take memory meanwhile. Those on
    /// families with timestamps have any timestamps, which the commit replaces.
    ///
    /// # Errors
    /// `InvalidArgument` if the database is open without `allow_2pc`, for a name that is empty,
    /// longer than 512 bytes or already prepared, and with `disable_wal`; as [`Db::write`].
    pub fn prepare(
        &self,
        options: &WriteOptions,
        name: impl AsRef<[u8]>,
        batch: WriteBatch,
    ) -> Result<()> {
        let inner = self.db.inner();
        if !inner.context.settings.load().allow_2pc {
            return Err(Error::invalid_argument(
                "to prepare a transaction, open the database with allow_2pc",
            ));
        }
        inner.pipeline.two_phase().prepare(options, name.as_ref(), batch)
    }

    /// Writes what is prepared under a name, and `beside` together with it, which may be empty.
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name, `Busy` while another thread decides on it;
    /// as [`TwoPhase::prepare`]. After an error of a write that left nothing in the WAL, such as a
    /// full disk, the transaction is still prepared. Changes of families that were dropped are
    /// refused, or left out with [`WriteOptions::ignore_missing_column_families`].
    pub fn commit(
        &self,
        options: &WriteOptions,
        name: impl AsRef<[u8]>,
        beside: &WriteBatch,
    ) -> Result<()> {
        self.commit_as_of(options, name, beside, None)
    }

    /// As [`TwoPhase::commit`]. Keys of families with timestamps get `timestamp`.
    ///
    /// # Errors
    /// As [`TwoPhase::commit`]; `InvalidArgument` if there are such families, and the timestamp is
    /// missing or has another size than theirs.
    pub fn commit_as_of(
        &self,
        options: &WriteOptions,
        name: impl AsRef<[u8]>,
        beside: &WriteBatch,
        timestamp: Option<&[u8]>,
    ) -> Result<()> {
        let name = name.as_ref();
        let two_phase = self.db.inner().pipeline.two_phase();
        let decided = two_phase.decide(options, name, Decision::Commit { beside, timestamp });
        decided.map_err(|error| self.not_committed(error, name, options, beside))
    }

    /// Names the transaction in a refusal, and says what helps.
    fn not_committed(
        &self,
        error: Error,
        name: &[u8],
        options: &WriteOptions,
        beside: &WriteBatch,
    ) -> Error {
        if error.code() != Code::InvalidArgument {
            return error;
        }
        let error =
            error.context(format_args!("transaction '{}' is not committed", key_in_words(name)));
        let mut changed = families_of(beside);
        let prepared = self.prepared().into_iter().find(|one| one.name() == name);
        changed.extend(prepared.iter().flat_map(PreparedTransaction::families));
        changed.retain(|id| self.db.column_families().iter().all(|family| family.id() != *id));
        if options.ignore_missing_column_families || changed.is_empty() {
            return error;
        }
        Error::invalid_argument(format!(
            "{}; commit it with ignore_missing_column_families, or roll it back",
            error.message()
        ))
    }

    /// Gives up what is prepared under a name. Unless this is synced, a power loss may bring it
    /// back.
    ///
    /// # Errors
    /// As [`TwoPhase::commit`].
    pub fn rollback(&self, options: &WriteOptions, name: impl AsRef<[u8]>) -> Result<()> {
        let pipeline = &self.db.inner().pipeline;
        pipeline.two_phase().decide(options, name.as_ref(), Decision::Rollback)
    }

    /// The transactions that are prepared and not decided, by name.
    #[doc(alias = "GetAllPreparedTransactions")]
    pub fn prepared(&self) -> Vec<PreparedTransaction> {
        self.db
            .inner()
            .pipeline
            .two_phase()
            .prepared()
            .into_iter()
            .map(PreparedTransaction)
            .collect()
    }
}
