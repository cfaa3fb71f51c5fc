//! Keys that were written in a way that cannot be: flushes and compactions go on, and say so.
//!
//! 1. A merge operator that refuses a key's operands, or that is missing, has them stay as they are, with what they lie on. Who
//!    reads the key gets the error, and the value once the operator takes them.
//! 2. A single deletion right over a plain one goes: the plain one deletes all the same.
//!
//! RocksDB takes both for a background error, and refuses writes until it is opened again; it then comes to the same key. Nothing
//! would be won by that here either: no file is damaged, and all other keys are as they should be.

use crate::compaction::KeyError;
use crate::db::events::Event;
use crate::db::family::Family;
use crate::db::statistics::Ticker;
use crate::db::{Db, DbInner};
use crate::options::{KEY_FAULTS_MAX, KeyFault};

impl Db {
    /// What is wrong with keys that flushes and compactions have met since the database was opened, of at most
    /// [`KEY_FAULTS_MAX`] keys; `flagstone.key.faults` counts all.
    pub fn key_faults(&self) -> Vec<KeyFault> {
        self.inner().state.lock().key_faults.values().cloned().collect()
    }
}

impl DbInner {
    /// Takes note of `count` faults, of which these are the first.
    pub(super) fn note_key_faults(&self, family: &Family, count: u64, faults: Vec<KeyError>) {
        if count == 0 {
            return;
        }
        self.statistics.add(Ticker::KeyFaults, count);
        let mut state = self.state.lock();
        for KeyError { user_key, error } in faults {
            let at = (family.id, user_key);
            if state.key_faults.len() >= KEY_FAULTS_MAX || state.key_faults.contains_key(&at) {
                continue;
            }
            tracing::error!(family = family.name, %error, "a key cannot be treated as it should: the job goes on");
            let (family, family_name) = (family.id, family.name.clone());
            let fault = KeyFault { family, family_name, key: at.1.clone(), error };
            self.events.note(|| Event::KeyFault(fault.clone()));
            state.key_faults.insert(at, fault);
        }
    }

    /// The faults of keys in words, a line each.
    pub(in crate::db) fn key_faults_text(&self) -> String {
        let state = self.state.lock();
        state.key_faults.values().map(|fault| format!("{fault}\n")).collect()
    }
}
