//! Transactions that are prepared in the WAL, and decided later (write-committed).
//!
//! 1. *Prepare* logs a section with the operations, and inserts nothing: it takes no sequence
//!    number. The WAL that has it is kept.
//! 2. *Commit* logs a record of its own, and inserts the operations with the numbers behind it. The
//!    memtables that get them keep the WAL of the section until they are in tables. Keys of
//!    families with timestamps were prepared with any; the commit's record has what they get.
//! 3. *Rollback* logs a record, and the WAL is kept no longer.
//!
//! What is prepared is listed under the commit lock, by name. While somebody decides, nobody else
//! does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Code, ColumnFamilyId, Error, FileNumber, Result};
use crate::batch::{TRANSACTION_NAME_MAX, WriteBatch};
use crate::cache::{Held, MemoryKind};
use crate::db::tables::Tables;
use crate::db::writing::commit::Commit;
use crate::db::writing::direct_blob::BlobsOfBatch;
use crate::db::writing::pipeline::Pipeline;
use crate::db::writing::pipeline::named::NamedFamilies;
use crate::db::writing::pipeline::steps::Steps;
use crate::db::writing::pipeline::write::{Appended, Locked};
use crate::options::WriteOptions;

/// A transaction that is prepared.
pub(in crate::db) struct PreparedBatch {
    pub(in crate::db) name: Vec<u8>,
    pub(in crate::db) operations: Arc<WriteBatch>,
    /// The WAL that has its section.
    pub(in crate::db) wal: FileNumber,
    _counted: Held,
}

/// Those that are prepared and not decided, by name.
pub(in crate::db::writing) type PreparedBatches = BTreeMap<Vec<u8>, Listed>;

/// One of them.
pub(in crate::db::writing) struct Listed {
    batch: Arc<PreparedBatch>,
    is_being_decided: bool,
}

/// What becomes of a transaction.
#[derive(Clone, Copy)]
pub(in crate::db) enum Decision<'a> {
    /// It is committed, together with a batch that was prepared nowhere; as of the timestamp, if
    /// it writes to families with timestamps.
    Commit {
        beside: &'a WriteBatch,
        timestamp: Option<&'a [u8]>,
    },
    Rollback,
}

/// A record that prepares or decides, and the operations that belong to it.
struct Phase<'a> {
    record: WriteBatch,
    /// Must be fit to be inserted, now or later.
    operations: &'a WriteBatch,
    inserts: bool,
    /// The WAL that has the operations, if it is not the record's own.
    prepared_in: Option<FileNumber>,
}

impl PreparedBatch {
    pub(in crate::db) fn new(
        name: Vec<u8>,
        operations: Arc<WriteBatch>,
        wal: FileNumber,
        tables: &Tables,
    ) -> Self {
        // There may be many, and each may be there for long.
        let bytes = operations.memory_usage() + name.capacity() + size_of::<Self>();
        let counted = tables.account().hold(MemoryKind::Writes, bytes);
        Self { name, operations, wal, _counted: counted }
    }
}

/// Prepares and decides, by the pipeline.
pub(in crate::db) struct TwoPhase<'a> {
    pipeline: &'a Pipeline,
}

impl<'a> TwoPhase<'a> {
    pub(super) fn of(pipeline: &'a Pipeline) -> Self {
        Self { pipeline }
    }

    /// Prepares operations under a name.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is empty, too long, or already prepared, and for
    /// operations that no write may have; those of a write.
    pub(in crate::db) fn prepare(
        &self,
        options: &WriteOptions,
        name: &[u8],
        operations: WriteBatch,
    ) -> Result<()> {
        if name.is_empty() || name.len() > TRANSACTION_NAME_MAX {
            return Err(Error::invalid_argument(format!(
                "the name of a transaction has 1 to {TRANSACTION_NAME_MAX} bytes, and this one {}",
                name.len()
            )));
        }
        let families = operations.iter().filter_map(|operation| operation.ok()?.family());
        let mut sizes = families.map(|id| self.stamp_size(id)).filter(|size| *size > 0);
        let first = sizes.next();
        if sizes.any(|size| Some(size) != first) {
            return Err(Error::invalid_argument(
                "the transaction writes to column families whose timestamps differ in size: no commit could serve all",
            ));
        }
        let record = WriteBatch::prepared_section(name, &operations)?;
        let operations = Arc::new(operations);
        let phase = Phase { record, operations: &operations, inserts: false, prepared_in: None };
        let is_free = |commit: &mut Commit| {
            if !commit.prepared.contains_key(name) {
                return Ok(());
            }
            Err(Error::invalid_argument(format!(
                "a transaction named '{}' is prepared already",
                name.escape_ascii()
            )))
        };
        self.write_phase(options, phase, is_free, |commit, wal| {
            self.list(commit, name, &operations, wal);
        })
    }

    /// Commits a transaction, or rolls it back.
    ///
    /// # Errors
    /// `NotFound` if none of that name is prepared, `Busy` while another decides; those of a write.
    /// If the record was not logged, the transaction stays prepared. If it was logged and its sync
    /// failed, the database is poisoned, and its next opening tells.
    pub(in crate::db) fn decide(
        &self,
        options: &WriteOptions,
        name: &[u8],
        decision: Decision<'_>,
    ) -> Result<()> {
        // Behind a failed sync of the decision it is not listed any more, and may yet be prepared.
        self.pipeline.context.check_writable()?;
        let prepared = begin_deciding(&mut self.pipeline.commit.lock(), name)?;
        let decided = self.write_decision(options, &prepared, decision);
        if decided.is_err()
            && let Some(listed) = self.pipeline.commit.lock().prepared.get_mut(name)
        {
            listed.is_being_decided = false;
        }
        decided
    }

    fn write_decision(
        &self,
        options: &WriteOptions,
        prepared: &PreparedBatch,
        decision: Decision<'_>,
    ) -> Result<()> {
        let mut record = WriteBatch::new();
        let mut together = WriteBatch::new();
        let mut stamped = None;
        let inserted = match decision {
            Decision::Rollback => {
                record.push_rollback(&prepared.name)?;
                &together
            }
            Decision::Commit { beside, timestamp } => {
                record.append(beside)?;
                if self.has_timestamps(&prepared.operations) {
                    let timestamp = timestamp.ok_or_else(lacks_timestamp)?;
                    record.push_commit_with_timestamp(&prepared.name, timestamp)?;
                    let operations = stamped.insert(WriteBatch::clone(&prepared.operations));
                    // They may have come out of a WAL.
                    operations.know_stamps(|id| self.stamp_size(id))?;
                    operations.set_timestamps(timestamp, |id| self.stamp_size(id))?;
                } else {
                    record.push_commit(&prepared.name)?;
                }
                let operations = stamped.as_ref().unwrap_or(&prepared.operations);
                if beside.is_empty() {
                    operations
                } else {
                    together.append(beside)?;
                    together.append(operations)?;
                    &together
                }
            }
        };
        let phase =
            Phase { record, operations: inserted, inserts: true, prepared_in: Some(prepared.wal) };
        self.write_phase(
            options,
            phase,
            |_| Ok(()),
            |commit, _| {
                commit.prepared.remove(&prepared.name);
                self.pipeline.tree.note_decided(prepared.wal);
            },
        )
    }

    /// Whether a batch writes to a family with timestamps.
    fn has_timestamps(&self, batch: &WriteBatch) -> bool {
        let mut families = batch.iter().filter_map(|operation| operation.ok()?.family());
        families.any(|id| self.stamp_size(id) > 0)
    }

    fn stamp_size(&self, id: ColumnFamilyId) -> usize {
        self.pipeline.tree.stamp_size(id)
    }

    /// Undoes what a transaction of another policy has written, and prepares it once more, if it
    /// is to be. Synced.
    ///
    /// # Errors
    /// Those of a write.
    pub(in crate::db) fn prepare_anew(
        &self,
        name: &[u8],
        undone: &WriteBatch,
        operations: Option<WriteBatch>,
    ) -> Result<()> {
        let mut record = WriteBatch::new();
        record.append(undone)?;
        record.push_rollback(name)?;
        if let Some(operations) = &operations {
            record.push_section(name, operations)?;
        }
        let operations = operations.map(Arc::new);
        let phase = Phase { record, operations: undone, inserts: true, prepared_in: None };
        let options = WriteOptions { sync: true, ..WriteOptions::default() };
        let free = |_: &mut Commit| Ok(());
        self.write_phase(&options, phase, free, |commit, wal| {
            if let Some(operations) = &operations {
                self.list(commit, name, operations, wal);
            }
        })
    }

    /// Lists what was prepared in this WAL, and keeps that.
    fn list(
        &self,
        commit: &mut Commit,
        name: &[u8],
        operations: &Arc<WriteBatch>,
        wal: FileNumber,
    ) {
        self.pipeline.tree.keep_prepared(wal);
        let tables = &self.pipeline.tables;
        let batch = PreparedBatch::new(name.to_vec(), operations.clone(), wal, tables);
        let listed = Listed { batch: Arc::new(batch), is_being_decided: false };
        commit.prepared.insert(name.to_vec(), listed);
    }

    /// Lists what a replay found prepared. Its WAL is kept already.
    pub(in crate::db) fn take_up(&self, batch: PreparedBatch) {
        let (name, batch) = (batch.name.clone(), Arc::new(batch));
        self.pipeline
            .commit
            .lock()
            .prepared
            .insert(name, Listed { batch, is_being_decided: false });
    }

    /// What is prepared and not decided, by name.
    pub(in crate::db) fn prepared(&self) -> Vec<Arc<PreparedBatch>> {
        self.pipeline.commit.lock().prepared.values().map(|listed| listed.batch.clone()).collect()
    }

    /// Logs a record and inserts what belongs to it. Under the commit lock, `check` may refuse it,
    /// and `note` hears in which WAL it is.
    fn write_phase(
        &self,
        options: &WriteOptions,
        phase: Phase<'_>,
        check: impl FnOnce(&mut Commit) -> Result<()>,
        note: impl FnOnce(&mut Commit, FileNumber),
    ) -> Result<()> {
        if options.disable_wal {
            let message = "a transaction is prepared and decided in the WAL (disable_wal is set)";
            return Err(Error::invalid_argument(message));
        }
        let written = self.write_phase_admitted(options, phase, check, note);
        written.inspect_err(|error| self.pipeline.tree.refused(error))
    }

    fn write_phase_admitted(
        &self,
        options: &WriteOptions,
        phase: Phase<'_>,
        check: impl FnOnce(&mut Commit) -> Result<()>,
        note: impl FnOnce(&mut Commit, FileNumber),
    ) -> Result<()> {
        let Phase { mut record, operations, inserts, prepared_in } = phase;
        let bytes = record.byte_size().max(operations.byte_size()) as u64;
        self.pipeline.admission.admit(options, bytes)?;
        let families = NamedFamilies::of(operations, &BlobsOfBatch::Nothing)?;
        let nothing = WriteBatch::new();
        let inserted = if inserts { operations } else { &nothing };
        let mut pins = self.pipeline.memtables.shown.pins();
        let mut blobs = BlobsOfBatch::Nothing;
        let appended = {
            let commit = &mut self.pipeline.lock_to_write(!options.no_slowdown)?;
            let locked = Locked {
                pipeline: self.pipeline,
                commit,
                families: &families,
                blobs: &mut blobs,
                tail: None,
                pins: &mut pins,
            };
            let mut steps = Steps::new(locked, options.sync);
            steps.check(|locked| {
                check(locked.commit)?;
                locked.check_operations(operations, options)
            })?;
            steps.number_for(&mut record, inserted.count())?;
            let wal = steps.append(&record)?;
            let mut first = record.sequence();
            if !inserted.is_empty() {
                first = steps.take_numbers(inserted, Some(prepared_in.unwrap_or(wal)));
            }
            note(steps.env().commit, wal);
            let ahead = steps.env().commit.wal()?.fetch_ahead();
            let (committed, turn) = steps.finish();
            Appended { first, committed, turn, ahead }
        };
        self.pipeline.insert_and_publish(pins, &families, inserted, appended)
    }
}

fn lacks_timestamp() -> Error {
    Error::invalid_argument(
        "the transaction writes to a column family with timestamps; commit it as of one (set_commit_timestamp)",
    )
}

/// Lets one caller decide.
///
/// # Errors
/// `NotFound`, `Busy`.
fn begin_deciding(commit: &mut Commit, name: &[u8]) -> Result<Arc<PreparedBatch>> {
    let Some(listed) = commit.prepared.get_mut(name) else {
        return Err(Error::not_found(format!(
            "no transaction named '{}' is prepared",
            name.escape_ascii()
        )));
    };
    if std::mem::replace(&mut listed.is_being_decided, true) {
        return Err(Error::new(
            Code::Busy,
            format!("transaction '{}' is being committed or rolled back", name.escape_ascii()),
        ));
    }
    Ok(listed.batch.clone())
}
