//! Findings about transactions.

use super::diagnose::{Findings, KEPT_MANY, Severity, bytes, memtable_sizes};
use crate::base::{Remedy, counted, form};
use crate::db::{DatabaseFacts, Facts};

/// Seconds for which a transaction may reasonably wait for a lock.
const LOCK_WAIT_LONG: u64 = 5;

impl Findings {
    /// Prepared transactions that are not decided. A running database always has some for a moment;
    /// one that keeps many WALs has been forgotten.
    pub(super) fn prepared(&mut self, facts: &Facts) {
        let DatabaseFacts {
            is_running,
            prepared: count,
            prepared_name: name,
            prepared_wal: wal,
            prepared_kept_wals: wals,
            prepared_kept_bytes: kept,
            max_total_wal_size: cap,
            ..
        } = &facts.database;
        let are_many =
            *kept >= memtable_sizes(facts).max(KEPT_MANY) || *cap > 0 && *kept >= cap / 2;
        if *count == 0 || *is_running && !are_many {
            return;
        }
        let among = if *count > 1 { format!(", the oldest of {count},") } else { String::new() };
        let mut what =
            format!("transaction {name}{among} is prepared in {wal:06}.log and not decided");
        let severity = if are_many {
            let (files, are) = (counted(*wals, "WAL"), form(*wals, "is", "are"));
            what.push_str(&format!(
                ": {files} of {} {are} kept for it, and each opening reads them",
                bytes(*kept)
            ));
            Severity::Slow
        } else {
            what.push_str(": the database opens for writing only with allow_2pc");
            Severity::Note
        };
        let remedy = Remedy::DecideTransaction { name: name.clone(), is_running: *is_running };
        self.add(severity, what, remedy);
    }

    /// A lock that is waited for.
    pub(super) fn lock_waits(&mut self, facts: &DatabaseFacts) {
        let DatabaseFacts {
            lock_waits: waits,
            lock_wait_seconds: seconds,
            lock_waiter: waiter,
            lock_key: key,
            lock_holders: holders,
            ..
        } = facts;
        if *seconds < LOCK_WAIT_LONG {
            return;
        }
        let others = match waits.saturating_sub(1) {
            0 => String::new(),
            1 => "; 1 other waits, too".to_string(),
            others => format!("; {others} others wait, too"),
        };
        let what = format!(
            "transaction {waiter} has waited {seconds} s for the lock of {key}, which {holders} has{others}"
        );
        self.add(Severity::Slow, what, Remedy::EndLockHolder);
    }
}
