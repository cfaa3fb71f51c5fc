//! Transactions that are prepared, and decided later: nobody sees them before, whatever happens to
//! the database meanwhile.

use std::collections::BTreeSet;

use flagstone::batch::WriteBatch;
use flagstone::db::{Db, TwoPhase};
use flagstone::options::WriteOptions;

use super::case::FAMILIES;
use super::life::Life;
use super::operation::Durability;
use super::write::allowed;
use crate::compare;
use crate::model::{Edit, Family};

/// No more are undecided at once.
const UNDECIDED_MAX: usize = 4;

fn options(durability: Durability) -> WriteOptions {
    WriteOptions { sync: durability == Durability::Synced, ..WriteOptions::default() }
}

/// Whether the family may be given the edit at any time.
fn fits(family: &Family, edit: &Edit) -> bool {
    match edit {
        Edit::Put { key, .. }
        | Edit::PutEntity { key, .. }
        | Edit::Delete { key }
        | Edit::Merge { key, .. } => family.may_overwrite(key) && allowed(family, edit).is_some(),
        Edit::SingleDelete { .. } | Edit::DeleteRange { .. } => false,
    }
}

/// The names of what a database lists as prepared.
pub(super) fn listed(db: &Db) -> BTreeSet<Vec<u8>> {
    TwoPhase::of(db).prepared().iter().map(|one| one.name().to_vec()).collect()
}

/// Prepares a transaction, unless too many are undecided, or none may be prepared.
pub(super) fn prepare(life: &mut Life, durability: Durability, edits: &[(String, Edit)]) {
    let is_allowed = life.setup.chosen.options.allow_2pc;
    if !is_allowed || life.journal.undecided().len() >= UNDECIDED_MAX {
        return;
    }
    // Others may be dropped meanwhile.
    let fits = |(name, edit): &&(String, Edit)| {
        FAMILIES.contains(&name.as_str()) && fits(&life.model.families[name], edit)
    };
    let edits: Vec<_> = edits.iter().filter(fits).cloned().collect();
    if edits.is_empty() {
        return;
    }
    let name = [&life.turn.to_le_bytes()[..3], b"\xff"].concat();
    let (begun, options) = (life.fs.changes(), options(durability));
    let batch = compare::to_batch(&life.db, &edits);
    TwoPhase::of(&life.db).prepare(&options, &name, batch).expect("a prepare");
    life.journal.prepared(begun, life.fs.changes(), &name, &edits);
    life.note_logged(&options);
}

/// Commits a transaction that is prepared, or rolls it back, if there is any.
pub(super) fn decide(life: &mut Life, index: usize, commits: bool, durability: Durability) {
    let undecided = life.journal.undecided();
    if undecided.is_empty() {
        return;
    }
    let (name, edits) = undecided.iter().nth(index % undecided.len()).expect("there are more");
    let fits = |(name, edit): &(String, Edit)| fits(&life.model.families[name], edit);
    if commits && edits.iter().all(fits) {
        commit(life, name, edits, durability);
    } else {
        roll_back(life, name, durability);
    }
}

fn commit(life: &mut Life, name: &[u8], edits: &[(String, Edit)], durability: Durability) {
    let (begun, options) = (life.fs.changes(), options(durability));
    let batch = compare::to_batch(&life.db, edits);
    for (of, edit) in edits {
        let family = life.model.families.get_mut(of).expect("it exists");
        family.apply(edit);
        life.held.touched.note(life.turn, of, family, edit);
    }
    TwoPhase::of(&life.db).commit(&options, name, &WriteBatch::new()).expect("a commit");
    life.written.note(&life.db, batch, true);
    life.journal.decided(begun, life.fs.changes(), name, edits);
    life.note_logged(&options);
}

fn roll_back(life: &mut Life, name: &[u8], durability: Durability) {
    let (begun, options) = (life.fs.changes(), options(durability));
    TwoPhase::of(&life.db).rollback(&options, name).expect("a rollback");
    life.journal.decided(begun, life.fs.changes(), name, &[]);
    life.note_logged(&options);
}

/// Compares what is listed as prepared.
pub(super) fn check(life: &Life) {
    let undecided = life.journal.undecided();
    let listed = listed(&life.db);
    assert!(
        undecided.keys().eq(&listed),
        "{listed:?} are listed as prepared, and {:?} are",
        undecided.keys()
    );
    for one in TwoPhase::of(&life.db).prepared() {
        let expected = compare::to_batch(&life.db, &undecided[one.name()]);
        assert_eq!(one.operations().body(), expected.body(), "what {one:?} will write");
    }
}
