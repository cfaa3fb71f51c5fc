//! Transactions: what each of them sees, and whether it may commit.
//!
//! A transaction reads the present, or what there was when it began, with its own changes. It must
//! not commit if a key that it tracks was written meanwhile, and must commit otherwise. There is
//! one exception: of a key that was not there when it was tracked, writes that cancel each other (a
//! put and its deletion) may be forgotten.

use std::collections::BTreeMap;

use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::options::WriteOptions;
use flagstone::{Db, Transaction};

use super::life::Life;
use super::operation::{Durability, TransactionStep};
use super::write::{allowed, removes_put_once};
use crate::compare;
use crate::model::{Edit, Family, Losses, Model};

/// No more transactions run at once.
const TRANSACTIONS_MAX: usize = 5;

/// A transaction that runs.
pub(super) struct Running {
    db: Db,
    transaction: Transaction,
    /// What it reads, if that is not the present.
    base: Option<Model>,
    begun: u64,
    edits: Vec<(String, Edit)>,
    tracked: Vec<Tracked>,
    /// How many edits and tracked keys there were.
    save_points: Vec<(usize, usize)>,
}

/// A key that nobody else may write.
struct Tracked {
    family: String,
    key: Vec<u8>,
    /// The last turn that may have written it.
    since: u64,
    /// It existed then.
    was_there: bool,
}

/// When keys were last written.
#[derive(Default)]
pub(super) struct Touched {
    keys: BTreeMap<(String, Vec<u8>), u64>,
    ranges: Vec<(u64, String, Vec<u8>, Vec<u8>)>,
}

impl Touched {
    /// Takes note of a change.
    pub(super) fn note(&mut self, turn: u64, name: &str, family: &Family, edit: &Edit) {
        match edit {
            Edit::Put { key, .. }
            | Edit::PutEntity { key, .. }
            | Edit::Delete { key }
            | Edit::SingleDelete { key }
            | Edit::Merge { key, .. } => {
                let key = family.known_as(key).into_owned();
                self.keys.insert((name.to_string(), key), turn);
            }
            Edit::DeleteRange { begin, end } => {
                self.ranges.push((turn, name.to_string(), begin.clone(), end.clone()));
            }
        }
    }

    fn is_since(&self, since: u64, name: &str, family: &Family, key: &[u8]) -> bool {
        let known = (name.to_string(), family.known_as(key).into_owned());
        let is_in =
            |begin: &[u8], end: &[u8]| !family.is_before(key, begin) && family.is_before(key, end);
        let mut ranges = self.ranges.iter().filter(|(turn, ..)| *turn > since);
        self.keys.get(&known).is_some_and(|turn| *turn > since)
            || ranges.any(|(_, of, begin, end)| of == name && is_in(begin, end))
    }
}

/// What a commit may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Success,
    Either,
    Conflict,
}

impl Running {
    fn touches(&self, name: &str) -> bool {
        self.edits.iter().any(|(family, _)| family == name)
            || self.tracked.iter().any(|tracked| tracked.family == name)
    }

    /// The family as the transaction sees it, if it exists.
    fn view(&self, present: &Model, name: &str) -> Option<Family> {
        let mut family = self.base.as_ref().unwrap_or(present).families.get(name)?.clone();
        for (_, edit) in self.edits.iter().filter(|(edited, _)| edited == name) {
            family.apply(edit);
        }
        Some(family)
    }

    fn track(&mut self, present: &Model, turn: u64, name: &str, key: &[u8]) {
        if self.tracked.iter().any(|tracked| tracked.family == name && tracked.key == key) {
            return;
        }
        let (seen, since) = match &self.base {
            Some(base) => (base, self.begun),
            None => (present, turn),
        };
        let was_there = seen.families[name].get(key).is_some();
        let (family, key) = (name.to_string(), key.to_vec());
        self.tracked.push(Tracked { family, key, since, was_there });
    }

    fn expected(&self, present: &Model, touched: &Touched) -> Expected {
        let mut expected = Expected::Success;
        for Tracked { family: name, key, since, was_there } in &self.tracked {
            let family = &present.families[name];
            if !touched.is_since(*since, name, family, key) {
                continue;
            }
            let may_be_forgotten = !was_there && family.get(key).is_none();
            // What goes by itself may take the traces of writes along.
            if may_be_forgotten || family.losses != Losses::default() {
                expected = Expected::Either;
                continue;
            }
            return Expected::Conflict;
        }
        expected
    }

    fn change(&mut self, name: &str, edit: &Edit) -> Result<()> {
        let family = self.db.column_family(name)?;
        // Secondaries of RocksDB could not read values in pieces, and so these are refused.
        if self.db.db_options().readable_by_rocksdb_secondaries {
            return compare::change(&mut self.transaction, &family, edit);
        }
        compare::change_in_pieces(&mut self.transaction, &family, edit)
    }

    /// Reads a key, for update if asked, and compares it with what must be there.
    fn read(&mut self, view: &Family, name: &str, key: &[u8], for_update: bool) {
        let family = self.db.column_family(name).expect("it exists");
        let found = if for_update {
            self.transaction.get_for_update(&family, key)
        } else {
            self.transaction.get(&family, key)
        };
        let found = found.expect("a read of a transaction");
        // Changes over something that is gone: nobody can say what comes of it.
        if view.losses == Losses::default() {
            let found = found.as_deref();
            assert!(
                view.accepts(key, found),
                "a transaction reads {name} {key:?}: found {found:?}, expected {:?}",
                view.get(key)
            );
        }
    }
}

/// Begins one, unless too many run.
pub(super) fn begin(life: &mut Life, in_snapshot: bool) {
    if life.held.transactions.len() >= TRANSACTIONS_MAX {
        return;
    }
    let db = Db::around(&life.db).expect("a handle of an open database");
    let mut transaction = db.begin();
    if in_snapshot {
        transaction.set_snapshot();
    }
    life.held.transactions.push(Running {
        db,
        transaction,
        base: in_snapshot.then(|| life.model.clone()),
        begun: life.turn,
        edits: Vec::new(),
        tracked: Vec::new(),
        save_points: Vec::new(),
    });
}

/// Goes on with a transaction, if there is any.
pub(super) fn go_on(life: &mut Life, index: usize, steps: &[TransactionStep]) {
    let count = life.held.transactions.len();
    if count == 0 {
        return;
    }
    let running = &mut life.held.transactions[index % count];
    for step in steps {
        match step {
            TransactionStep::Get { family, key } | TransactionStep::Track { family, key } => {
                let Some(view) = running.view(&life.model, family) else { continue };
                let for_update = matches!(step, TransactionStep::Track { .. });
                running.read(&view, family, key, for_update);
                if for_update {
                    running.track(&life.model, life.turn, family, key);
                }
            }
            TransactionStep::Change(name, edit) => {
                let Some(view) = running.view(&life.model, name) else { continue };
                let Some(edit) = allowed(&view, edit) else { continue };
                let (Edit::Put { key, .. }
                | Edit::PutEntity { key, .. }
                | Edit::Delete { key }
                | Edit::SingleDelete { key }
                | Edit::Merge { key, .. }) = &edit
                else {
                    continue;
                };
                running.change(name, &edit).expect("a change of a transaction");
                running.track(&life.model, life.turn, name, key);
                running.edits.push((name.clone(), edit));
            }
            TransactionStep::SavePoint => {
                running.transaction.set_save_point();
                running.save_points.push((running.edits.len(), running.tracked.len()));
            }
            TransactionStep::RollBack => {
                let Some((edits, tracked)) = running.save_points.pop() else { continue };
                running.transaction.rollback_to_save_point().expect("there is a save point");
                running.edits.truncate(edits);
                running.tracked.truncate(tracked);
            }
        }
    }
}

/// Commits one, if there is any.
pub(super) fn commit(life: &mut Life, index: usize, durability: Durability) {
    let count = life.held.transactions.len();
    if count == 0 {
        return;
    }
    let mut running = life.held.transactions.swap_remove(index % count);
    let expected = running.expected(&life.model, &life.held.touched);
    let removes =
        |(name, edit): &(String, Edit)| removes_put_once(&life.model.families[name], edit);
    let must_be_logged = running.edits.iter().any(removes);
    let options = WriteOptions {
        sync: durability == Durability::Synced,
        disable_wal: durability == Durability::Unlogged && !must_be_logged,
        ..WriteOptions::default()
    };
    let begun = life.fs.changes();
    match running.transaction.commit_with(&options) {
        Ok(()) => assert!(expected != Expected::Conflict, "a conflict is missed"),
        Err(error) => {
            assert_eq!(error.code(), Code::Busy, "a commit: {error}");
            assert!(expected != Expected::Success, "a conflict where there is none: {error}");
            return;
        }
    }
    let edits = std::mem::take(&mut running.edits);
    if edits.is_empty() {
        return;
    }
    let mut batch = WriteBatch::new();
    for (name, edit) in &edits {
        let family = life.model.families.get_mut(name).expect("it exists");
        family.apply(edit);
        life.held.touched.note(life.turn, name, family, edit);
        compare::add(&mut batch, &life.db.column_family(name).expect("it exists"), edit);
    }
    life.written.note(&life.db, batch, !options.disable_wal);
    life.note_write(begun, edits, &options);
}

/// Drops one, if there is any.
pub(super) fn abandon(life: &mut Life, index: usize) {
    let count = life.held.transactions.len();
    if count > 0 {
        life.held.transactions.swap_remove(index % count);
    }
}

/// Drops the transactions that have to do with a family that goes.
pub(super) fn forget_family(life: &mut Life, name: &str) {
    life.held.transactions.retain(|running| !running.touches(name));
    for base in life.held.transactions.iter_mut().filter_map(|running| running.base.as_mut()) {
        base.families.remove(name);
    }
    life.held.touched.keys.retain(|(family, _), _| family != name);
    life.held.touched.ranges.retain(|(_, family, ..)| family != name);
}

/// Lets transactions see families that have come.
pub(super) fn add_families(life: &mut Life, created: &BTreeMap<String, Family>) {
    for base in life.held.transactions.iter_mut().filter_map(|running| running.base.as_mut()) {
        base.families.extend(created.clone());
    }
}
