//! Transactions in random histories: in every fourth, so that the others stay as they are.

use super::{History, Kind};
use crate::history::operation::{Durability, Operation, TransactionStep};
use crate::model::Edit;

/// How often each kind comes, in histories with transactions.
const WEIGHTS: [(Kind, u32); 6] = [
    (Kind::Begin, 350),
    (Kind::GoOn, 1200),
    (Kind::Commit, 350),
    (Kind::Abandon, 30),
    (Kind::Prepare, 250),
    (Kind::Decide, 200),
];

/// Of so many keys that transactions used last one is chosen again.
const RECENT_MAX: usize = 6;

/// Whether the history of this seed has transactions.
pub(super) fn are_in(seed: u64) -> bool {
    seed % 4 == 3
}

/// Whether those of this seed may be prepared. In others that is passed over.
pub(super) fn prepares(seed: u64) -> bool {
    are_in(seed) && seed % 8 == 7
}

/// Adds them to a mixture, and has more be flushed and compacted while they run.
pub(super) fn add_to(mixture: &mut Vec<(Kind, u32)>) {
    for (kind, weight) in &mut *mixture {
        if matches!(kind, Kind::Flush | Kind::CompactRange) {
            *weight = (*weight).max(100) * 3;
        }
    }
    mixture.extend(WEIGHTS);
}

impl History {
    pub(super) fn of_transaction(&mut self, kind: Kind) -> Operation {
        match kind {
            Kind::Begin => Operation::Begin { in_snapshot: self.percent(40) },
            Kind::GoOn => self.go_on(),
            Kind::Commit => {
                Operation::Commit { index: self.below(100), durability: self.durability() }
            }
            Kind::Abandon => Operation::Abandon(self.below(100)),
            Kind::Prepare => {
                let count = 1 + self.below(4);
                let edits = (0..count).map(|_| (self.family(), self.edit())).collect();
                Operation::Prepare { durability: self.logged(), edits }
            }
            Kind::Decide => {
                let (index, commits) = (self.below(100), self.percent(70));
                Operation::Decide { index, commits, durability: self.logged() }
            }
            other => unreachable!("{other:?} is none of a transaction"),
        }
    }

    fn logged(&mut self) -> Durability {
        if self.percent(30) { Durability::Synced } else { Durability::Logged }
    }

    fn go_on(&mut self) -> Operation {
        let (index, count) = (self.below(100), 1 + self.below(4));
        let steps = (0..count).map(|_| self.transaction_step()).collect();
        Operation::GoOn { index, steps }
    }

    fn transaction_step(&mut self) -> TransactionStep {
        match self.below(12) {
            0..2 => {
                let (family, key) = self.used_key();
                TransactionStep::Get { family, key }
            }
            2..6 => {
                let (family, key) = self.used_key();
                TransactionStep::Track { family, key }
            }
            6..10 => {
                let (family, edit) = (self.family(), self.edit());
                let (family, edit) = self.of_recent_key(family, edit);
                TransactionStep::Change(family, edit)
            }
            10 => TransactionStep::SavePoint,
            _ => TransactionStep::RollBack,
        }
    }

    /// A key, which others will be likely to use, too.
    fn used_key(&mut self) -> (String, Vec<u8>) {
        if !self.recent.is_empty() && self.percent(30) {
            return self.recent[self.generator.random.usize(..self.recent.len())].clone();
        }
        let used = (self.family(), self.key());
        self.recent.push(used.clone());
        if self.recent.len() > RECENT_MAX {
            self.recent.remove(0);
        }
        used
    }

    /// The edit as it is, or of a key that a transaction used.
    pub(super) fn of_recent_key(&mut self, family: String, mut edit: Edit) -> (String, Edit) {
        if self.recent.is_empty() || !self.percent(25) {
            return (family, edit);
        }
        let recent = self.recent[self.generator.random.usize(..self.recent.len())].clone();
        match &mut edit {
            Edit::Put { key, .. }
            | Edit::PutEntity { key, .. }
            | Edit::Delete { key }
            | Edit::SingleDelete { key }
            | Edit::Merge { key, .. } => *key = recent.1,
            Edit::DeleteRange { begin, .. } => *begin = recent.1,
        }
        (recent.0, edit)
    }
}
