//! The history of a round, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use super::journal;
use super::plan::Life;
use super::round::in_use;
use crate::isolation::{History, Key, Outcome, Read, Step, Transaction, Value, judge};

/// So many anomalies of a round are told.
const TOLD_MAX: usize = 3;

/// What was judged.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Rounds.
    pub rounds: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that met a conflict, or were rolled back.
    pub failed: u64,
    /// Transactions that were about to commit when their process was killed.
    pub unknown: u64,
    /// Lists that were read.
    pub reads: u64,
}

/// Judges what the threads of a round saw and left, given what it found and what the next one did.
///
/// # Errors
/// What is wrong.
pub fn judge_round(life: &Life, round: u64, figures: &mut Figures) -> Result<(), String> {
    let history = history(life, round)?;
    figures.rounds += 1;
    for transaction in &history.transactions {
        let count = match transaction.outcome {
            Outcome::Committed => &mut figures.committed,
            Outcome::Failed => &mut figures.failed,
            Outcome::Unknown => &mut figures.unknown,
        };
        *count += 1;
        figures.reads += transaction.reads().count() as u64;
    }
    let anomalies = judge(&history);
    if anomalies.is_empty() {
        return Ok(());
    }
    let told = anomalies.iter().take(TOLD_MAX).map(|anomaly| anomaly.tell(&history));
    Err(told.collect::<Vec<_>>().join("\n"))
}

/// The lists that were there before, as if one transaction had appended them; what the threads did;
/// and a last read of everything.
fn history(life: &Life, round: u64) -> Result<History, String> {
    let before = found(life, round)?;
    let is_used = in_use(round, &before);
    let initial = is_used.iter().flat_map(|key| {
        let list = before.get(key).map_or(&[][..], Vec::as_slice);
        list.iter().map(|value| Step::Append { key: *key, value: *value })
    });
    let whole = |process: u64, time: (u64, u64), steps: Vec<Step>| Transaction {
        process,
        begun: time.0,
        ended: Some(time.1),
        outcome: Outcome::Committed,
        steps,
    };
    let threads = life.threads as u64;
    let mut transactions = vec![whole(threads, (0, 0), initial.collect())];
    for thread in 0..life.threads {
        let path = life.journal(round, thread);
        // The process may have been killed before the thread began.
        if path.exists() {
            transactions.extend(journal::read(&path)?.transactions);
        }
    }
    let mut keys = BTreeSet::new();
    for transaction in &transactions {
        keys.extend(transaction.appends().map(|(key, _)| key));
        keys.extend(transaction.reads().map(|(_, key, _)| key));
    }
    let after = found(life, round + 1)?;
    let read = |key: Key| {
        let list = after.get(&key).cloned().unwrap_or_default();
        Step::Read { how: Read::Plain, key, list }
    };
    let last = keys.into_iter().map(read).collect();
    transactions.push(whole(threads + 1, (u64::MAX - 1, u64::MAX), last));
    Ok(History { transactions })
}

/// What all lists held at the beginning of a round.
fn found(life: &Life, round: u64) -> Result<BTreeMap<Key, Vec<Value>>, String> {
    let path = life.found(round);
    let history = journal::read(&path)?;
    let [noted] = &history.transactions[..] else {
        return Err(format!("{}: nothing is noted", path.display()));
    };
    Ok(noted.reads().map(|(_, key, list)| (key, list.to_vec())).collect())
}
