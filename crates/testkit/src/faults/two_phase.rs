//! Transactions of two phases on a disk that fails: what is prepared is listed until it is decided,
//! whatever a process dies of.

use std::collections::BTreeMap;

use flagstone::base::Result;
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, TwoPhase};
use flagstone::options::{Options, WriteOptions};

use super::life::Life;
use super::past::Fate;

/// How a life writes its batches.
pub enum Way {
    /// As they are.
    Whole,
    /// By transactions, unless they delete ranges.
    Transactions,
    /// Each is prepared, and then committed.
    TwoPhases(Known),
}

/// The transactions that may be listed as prepared, by name.
pub struct Known {
    listings: BTreeMap<Vec<u8>, Listing>,
    /// Whether the WAL waits in memory: what is acknowledged may die with the process.
    waits_in_memory: bool,
}

/// Whether a transaction is listed as prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Must,
    May,
}

impl Known {
    /// What is known of an empty database.
    pub fn new(options: &Options) -> Self {
        Self { listings: BTreeMap::new(), waits_in_memory: options.manual_wal_flush }
    }

    fn note_prepare(&mut self, name: &[u8], fate: Fate) {
        self.note(name, fate, Some(Listing::Must));
    }

    fn note_decision(&mut self, name: &[u8], fate: Fate) {
        self.note(name, fate, None);
    }

    fn note(&mut self, name: &[u8], fate: Fate, acknowledged: Option<Listing>) {
        let listing = match fate {
            Fate::Acknowledged if !self.waits_in_memory => acknowledged,
            Fate::Acknowledged | Fate::Unknown => Some(Listing::May),
            Fate::Refused => return,
        };
        match listing {
            Some(listing) => self.listings.insert(name.to_vec(), listing),
            None => self.listings.remove(name),
        };
    }

    /// Compares with what a database lists; from now on that is known.
    ///
    /// # Panics
    /// When one is missing that was prepared, or listed that was decided, or never prepared.
    fn settle(&mut self, db: &Db) {
        let prepared = TwoPhase::of(db).prepared();
        let listed: BTreeMap<_, _> =
            prepared.iter().map(|one| (one.name().to_vec(), Listing::Must)).collect();
        for name in listed.keys() {
            assert!(self.listings.contains_key(name), "{} is listed", name.escape_ascii());
        }
        for (name, listing) in &self.listings {
            let may_miss = *listing == Listing::May;
            assert!(may_miss || listed.contains_key(name), "{} is lost", name.escape_ascii());
        }
        self.listings = listed;
    }
}

/// Prepares a batch, and commits it.
pub(super) fn write(
    db: &Db,
    number: usize,
    batch: WriteBatch,
    options: &WriteOptions,
    known: &mut Known,
) -> Result<()> {
    let name = format!("batch {number}").into_bytes();
    let prepared = TwoPhase::of(db).prepare(options, &name, batch);
    known.note_prepare(&name, Life::fate(&prepared));
    prepared?;
    let committed = TwoPhase::of(db).commit(options, &name, &WriteBatch::new());
    known.note_decision(&name, Life::fate(&committed));
    committed
}

/// Compares what is prepared with what is known of it, in a database that was just opened.
pub(super) fn settle(life: &mut Life) {
    if let (Way::TwoPhases(known), Some(db)) = (&mut life.way, &life.db) {
        known.settle(db);
    }
}

/// Prepares a transaction, and leaves it so.
pub(super) fn stand_by(life: &mut Life, name: &str) {
    let Some(db) = life.db.clone() else { return };
    let mut batch = WriteBatch::new();
    batch.put("never", vec![b'n'; 300]).expect("a small batch");
    let outcome = TwoPhase::of(&db).prepare(&WriteOptions::default(), name, batch);
    if let Way::TwoPhases(known) = &mut life.way {
        known.note_prepare(name.as_bytes(), Life::fate(&outcome));
    }
    life.hear("prepare", outcome);
}

/// Rolls back all that is prepared.
pub(super) fn roll_back_all(life: &mut Life) {
    let Some(db) = life.db.clone() else { return };
    for one in TwoPhase::of(&db).prepared() {
        let outcome = TwoPhase::of(&db).rollback(&WriteOptions::default(), one.name());
        if let Way::TwoPhases(known) = &mut life.way {
            known.note_decision(one.name(), Life::fate(&outcome));
        }
        life.hear("roll back", outcome);
    }
}
