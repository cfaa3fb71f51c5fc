//! Transactions of two phases: prepared under their names, and decided later, even by another
//! process.
//!
//! A prepared transaction keeps its locks until it is decided. While nobody has a handle of it,
//! they wait with its database ([`Parked`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Error, Result, key_in_words, timestamp};
use crate::batch::{Operation, WriteBatch};
use crate::db::TwoPhase;
use crate::front::database::Db;
use crate::front::locking::{Engine, Locking};
use crate::front::transaction::control::{Control, Locks};
use crate::front::transaction::{Transaction, TransactionState};
use crate::transactions::locks::{LockMode, Owner};
use crate::transactions::{TrackedKeys, Use, WriteBatchWithIndex};

/// What a prepared transaction holds while nobody has a handle of it.
pub(in crate::front) struct Parked {
    owner: Arc<Owner>,
    tracked: TrackedKeys,
}

/// Those of a database, by name.
pub(in crate::front) type AllParked = BTreeMap<Vec<u8>, Parked>;

impl Parked {
    pub(super) fn new(owner: Arc<Owner>, tracked: TrackedKeys) -> Self {
        Self { owner, tracked }
    }
}

/// The handle of a transaction that is prepared, without its changes.
fn unparked(db: &Db, locking: &Arc<Locking>, name: &[u8], parked: Parked) -> Transaction {
    let Parked { owner, tracked } = parked;
    let control = Control::Locks(Locks::of_prepared(locking, owner, name));
    let mut transaction = Transaction::with(db, control);
    transaction.tracked = tracked;
    transaction.state = TransactionState::Prepared;
    transaction
}

/// Returns handles of all prepared transactions that have none. After an error, all stay parked.
pub(in crate::front) fn all_unparked(db: &Db) -> Result<Vec<Transaction>> {
    let engine = db.stamping();
    let Some(locking) = engine.locking() else { return Ok(Vec::new()) };
    with_changes(db, locking, locking.unpark_all())
}

/// Returns a handle of the transaction that is prepared under this name, unless there is one.
pub(in crate::front) fn unparked_by_name(db: &Db, name: &[u8]) -> Result<Option<Transaction>> {
    let engine = db.stamping();
    let Some(locking) = engine.locking() else { return Ok(None) };
    Ok(with_changes(db, locking, locking.unpark(name))?.pop())
}

/// Makes handles of what was parked. After an error, all are parked again.
fn with_changes(db: &Db, locking: &Arc<Locking>, parked: AllParked) -> Result<Vec<Transaction>> {
    let engine = db.stamping();
    let mut unread: BTreeMap<_, _> = parked
        .into_iter()
        .map(|(name, parked)| {
            let transaction = unparked(db, locking, &name, parked);
            (name, transaction)
        })
        .collect();
    let mut all = Vec::with_capacity(unread.len());
    // A list from before might have one that is decided by now, and whose name is another's. No
    // other thread decides these, whose locks are here.
    for prepared in TwoPhase::of(db.engine()).prepared() {
        let Some(mut transaction) = unread.remove(prepared.name()) else { continue };
        transaction.batch = indexed(engine, prepared.operations()).map_err(|error| {
            let name = key_in_words(prepared.name());
            error.context(format_args!("cannot read what transaction '{name}' prepared"))
        })?;
        all.push(transaction);
    }
    Ok(all)
}

/// Locks the keys of all that is prepared, before anybody else can. Of two that prepared one key,
/// which takes `skip_concurrency_control`, the first one by name locks it.
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
                let key = timestamp::strip(key, family.comparator().timestamp_size());
                tracked.open(family, || Ok::<_, Error>(engine.lock_table(locking, id)))?;
                if tracked.count(id, key, Use::Write) {
                    continue;
                }
                if let Some(table) = tracked.locks(id).cloned()
                    && let Some(key) = engine.lock_if_free(locking, &table, &owner, key)?
                {
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
        let bare = |key| timestamp::strip(key, family.comparator().timestamp_size());
        match operation {
            Operation::Put { key, value, .. } => batch.put(family, bare(key), value)?,
            Operation::TimedPut { key, timed, .. } => {
                batch.put(family, bare(key), timed.value())?
            }
            Operation::PutEntity { key, entity, .. } => {
                batch.put_encoded_entity(family, key, entity)?
            }
            Operation::Delete { key, .. } => batch.delete(family, bare(key))?,
            Operation::SingleDelete { key, .. } => batch.single_delete(family, bare(key))?,
            Operation::Merge { key, operand, .. } => {
                batch.merge_unresolved(family, bare(key), operand)?
            }
            // Read by the commit alone.
            _ => {}
        }
    }
    Ok(batch)
}
