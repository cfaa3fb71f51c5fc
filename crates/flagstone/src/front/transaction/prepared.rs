//! Transactions of two phases: prepared under their names, and decided later, even by another
//! process.
//!
//! A prepared transaction keeps its locks until it is decided. While nobody has a handle of it,
//! they wait with its database ([`Parked`]).

use std::sync::Arc;

use crate::base::{Error, Result};
use crate::batch::{Operation, WriteBatch};
use crate::db::{PreparedTransaction, TwoPhase};
use crate::front::database::Db;
use crate::front::locking::{Engine, Locking};
use crate::front::transaction::control::{Control, Locks};
use crate::front::transaction::{Transaction, TransactionState};
use crate::transactions::locks::{LockMode, Owner, Patience};
use crate::transactions::{TrackedKeys, Use, WriteBatchWithIndex};

/// What a prepared transaction holds while nobody has a handle of it.
pub(in crate::front) struct Parked {
    owner: Arc<Owner>,
    tracked: TrackedKeys,
}

impl Parked {
    pub(super) fn new(owner: Arc<Owner>, tracked: TrackedKeys) -> Self {
        Self { owner, tracked }
    }
}

/// The handle of a transaction that is prepared, if nobody has it.
fn unparked(db: &Db, prepared: &PreparedTransaction) -> Result<Option<Transaction>> {
    let engine = db.stamping();
    let Some(locking) = engine.locking() else { return Ok(None) };
    let Some(Parked { owner, tracked }) = locking.unpark(prepared.name()) else {
        return Ok(None);
    };
    let batch = indexed(engine, prepared.operations())?;
    let control = Control::Locks(Locks::of_prepared(locking, owner, prepared.name()));
    let mut transaction = Transaction::with(db, control);
    (transaction.batch, transaction.tracked) = (batch, tracked);
    transaction.state = TransactionState::Prepared;
    Ok(Some(transaction))
}

/// The handles of all that are prepared and that nobody has.
pub(in crate::front) fn all_unparked(db: &Db) -> Result<Vec<Transaction>> {
    let prepared = TwoPhase::of(db.engine()).prepared();
    prepared.iter().filter_map(|one| unparked(db, one).transpose()).collect()
}

/// Locks the keys of all that is prepared, before anybody else can.
///
/// # Errors
/// `Busy` with `LockLimit` if they are more than may be locked.
pub(in crate::front) fn lock_prepared(engine: &Engine, locking: &Arc<Locking>) -> Result<()> {
    let families = engine.families();
    for prepared in TwoPhase::of(engine.base()).prepared() {
        let owner = locking.manager.begin(None);
        let mut tracked = TrackedKeys::default();
        if !locking.options.skip_concurrency_control {
            for operation in prepared.operations().iter() {
                let operation = operation?;
                let Some((id, (_, key, _))) = operation.family().zip(operation.entry()) else {
                    continue;
                };
                let Some(family) = families.get(&id) else { continue };
                tracked.open(family, || Ok::<_, Error>(engine.lock_table(locking, id)))?;
                if tracked.count(id, key, Use::Write) {
                    continue;
                }
                if let Some(table) = tracked.locks(id).cloned() {
                    let (mode, never) = (LockMode::Exclusive, Patience::default());
                    let key = engine.lock(locking, &table, &owner, key, mode, &never)?;
                    tracked.add(id, key, (0, LockMode::Exclusive), Use::Write);
                }
            }
        }
        owner.set_prepared();
        locking.names.lock().insert(prepared.name().to_vec(), owner.clone());
        locking.park(prepared.name().to_vec(), Parked { owner, tracked });
    }
    Ok(())
}

/// A batch with an index over operations that were prepared. Those of families that were dropped
/// are left out.
fn indexed(engine: &Engine, operations: &WriteBatch) -> Result<WriteBatchWithIndex> {
    let (mut batch, families) = (WriteBatchWithIndex::new(), engine.families());
    for operation in operations.iter() {
        let operation = operation?;
        let Some(family) = operation.family().and_then(|id| families.get(&id)) else { continue };
        match operation {
            Operation::Put { key, value, .. } => batch.put(family, key, value)?,
            Operation::PutEntity { key, entity, .. } => {
                batch.put_encoded_entity(family, key, entity)?
            }
            Operation::Delete { key, .. } => batch.delete(family, key)?,
            Operation::SingleDelete { key, .. } => batch.single_delete(family, key)?,
            Operation::Merge { key, operand, .. } => batch.merge(family, key, operand)?,
            // Read by the commit alone.
            _ => {}
        }
    }
    Ok(batch)
}
