//! Transactions on a disk whose power may fail: each is there as a whole, or not at all.

use flagstone::base::Code;
use flagstone::db::TwoPhase;
use flagstone::{Db, Family, Transaction};

use super::life::{How, Life};
use super::promises::{Batch, NEVER};
use crate::compare;
use crate::model::Edit;

/// A key that no transaction leaves behind.
const NEVER_THERE: &[u8] = b"never";

fn begin(life: &Life) -> (Db, Transaction) {
    let db = Db::around(life.db()).expect("a handle of an open database");
    let transaction = db.begin();
    (db, transaction)
}

/// Puts what is taken back into a blob file.
fn never_in_pieces(transaction: &mut Transaction, family: &Family) {
    let edit = Edit::Put { key: NEVER_THERE.to_vec(), value: vec![b'n'; 200] };
    compare::change_in_pieces(transaction, family, &edit).expect("a change");
}

/// Commits a transaction that changes each of these families, and takes something back before.
pub(super) fn commit(life: &mut Life, how: How, families: &[&str]) {
    let mut edits = Vec::new();
    for name in families {
        let (put, again) = (life.put_edit(), life.put_edit());
        let merged = Edit::Merge { key: b"merged".to_vec(), operand: b"more".to_vec() };
        let deleted = Edit::Delete { key: format!("k{:02}", life.random.u8(..20)).into_bytes() };
        edits.extend([put, merged, deleted, again].map(|edit| (*name, edit)));
    }
    let (number, batch) = life.numbered(how, &edits);
    let earliest = life.earliest();
    let (db, mut transaction) = begin(life);
    let family = |name: &str| db.column_family(name).expect("it exists");
    transaction.set_save_point();
    transaction.put(&family(families[0]), NEVER_THERE, "taken back").expect("a change");
    never_in_pieces(&mut transaction, &family(families[0]));
    transaction.rollback_to_save_point().expect("there is a save point");
    for (name, edit) in &batch {
        compare::change_in_pieces(&mut transaction, &family(name), edit).expect("a change");
    }
    transaction.commit_with(&how.options()).expect("a commit");
    let edits = batch.into_iter().map(|(name, edit)| (life.family(&name), edit)).collect();
    life.note_write(
        Batch {
            number,
            is_logged: how != How::Unlogged,
            edits,
            span: life.written(earliest),
            durable: NEVER,
        },
        how,
    );
}

/// Begins a transaction whose key somebody else writes: nothing of it is ever there.
pub(super) fn conflict(life: &mut Life, name: &str) {
    let (db, mut transaction) = begin(life);
    let family = db.column_family(name).expect("it exists");
    let put = life.put_edit();
    let Edit::Put { key, .. } = &put else { unreachable!("a put") };
    transaction.get_for_update(&family, key).expect("a read");
    transaction.put(&family, NEVER_THERE, "refused").expect("a change");
    never_in_pieces(&mut transaction, &family);
    life.write(How::Logged, &[(name, put)]);
    let error = transaction.commit().expect_err("a conflict");
    assert_eq!(error.code(), Code::Busy, "a commit: {error}");
}

/// Drops a transaction.
pub(super) fn abandon(life: &mut Life, name: &str) {
    let (db, mut transaction) = begin(life);
    let family = db.column_family(name).expect("it exists");
    transaction.put(&family, NEVER_THERE, "dropped").expect("a change");
    never_in_pieces(&mut transaction, &family);
}

/// A transaction that is prepared.
pub(super) struct Prepared {
    name: &'static str,
    edits: Vec<(&'static str, Edit)>,
}

/// Prepares changes of each of these families: nobody sees them before they are committed.
pub(super) fn prepare(
    life: &mut Life,
    how: How,
    name: &'static str,
    families: &[&'static str],
) -> Prepared {
    let mut edits = Vec::new();
    for family in families {
        let deleted = Edit::Delete { key: format!("k{:02}", life.random.u8(..20)).into_bytes() };
        edits.extend([life.put_edit(), deleted, life.put_edit()].map(|edit| (*family, edit)));
    }
    let named: Vec<_> =
        edits.iter().map(|(family, edit)| ((*family).to_string(), edit.clone())).collect();
    let batch = compare::to_batch(life.db(), &named);
    TwoPhase::of(life.db()).prepare(&how.options(), name, batch).expect("a prepare");
    Prepared { name, edits }
}

/// Commits what is prepared. Its number is written with the commit: that is when it takes place.
pub(super) fn commit_prepared(life: &mut Life, how: How, prepared: Prepared) {
    let (number, batch) = life.numbered(how, &prepared.edits);
    let beside = compare::to_batch(life.db(), &batch[prepared.edits.len()..]);
    let earliest = life.earliest();
    let committed = TwoPhase::of(life.db()).commit(&how.options(), prepared.name, &beside);
    committed.expect("a commit of what is prepared");
    let edits = batch.into_iter().map(|(name, edit)| (life.family(&name), edit)).collect();
    let span = life.written(earliest);
    life.note_write(Batch { number, is_logged: true, edits, span, durable: NEVER }, how);
}

/// Rolls back what is prepared.
pub(super) fn roll_back(life: &Life, prepared: &Prepared) {
    let rolled_back = TwoPhase::of(life.db()).rollback(&How::Logged.options(), prepared.name);
    rolled_back.expect("a rollback of what is prepared");
}
