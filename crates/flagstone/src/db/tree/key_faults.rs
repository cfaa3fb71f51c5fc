//! Keys that were written in a way that cannot be: flushes and compactions go on, and say so.
//!
//! 1. A merge operator that refuses a key's operands, or that is missing, has them stay as they
//!    are, with what they lie on. Who reads the key gets the error, and the value once the operator
//!    takes them.
//! 2. A single deletion right over a plain one goes: the plain one deletes all the same.
//!
//! RocksDB takes both for a background error, and refuses writes until it is opened again; it then
//! comes to the same key. Nothing would be won by that here either: no file is damaged, and all
//! other keys are as they should be.
//!
//! A fault is known until the tables are gone that may have the key, of what was written when it
//! was met last: whoever merges them meets it again, or there is none any more. Where nothing was
//! written of the key, it gives way when there are too many.

use std::collections::BTreeMap;

use crate::base::hash::hash64;
use crate::base::{ColumnFamilyId, FileNumber, counted, form};
use crate::compaction::KeyError;
use crate::db::context::Context;
use crate::db::events::Event;
use crate::db::family::Family;
use crate::db::statistics::Ticker;
use crate::db::tree::output::JobOutput;
use crate::manifest::VersionEdit;
use crate::options::{KEY_FAULT_KEY_MAX, KEY_FAULTS_MAX, KeyFault};

/// What is wrong with keys, as far as there is room.
#[derive(Default)]
pub(in crate::db) struct KeyFaults {
    known: BTreeMap<KeyOfFamily, Known>,
    /// How many were met that are not among them, for want of room.
    unlisted: u64,
}

/// A key, without what is left out of a long one, and a hash of all of it.
type KeyOfFamily = (ColumnFamilyId, Vec<u8>, u64);

struct Known {
    fault: KeyFault,
    /// That may have the key, of what was written when it was met last.
    tables: Vec<FileNumber>,
}

impl KeyFaults {
    /// The tables that edits remove for good, if that matters.
    pub(in crate::db) fn tables_removed(&self, edits: &[VersionEdit]) -> Vec<FileNumber> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let removed = edits.iter().flat_map(|edit| {
            let stays = |number| edit.new_files.iter().any(|(_, file)| file.number == number);
            edit.deleted_files
                .iter()
                .map(|(_, number)| *number)
                .filter(move |number| !stays(*number))
        });
        removed.collect()
    }

    /// Takes note of the faults that jobs have met, now that what they wrote counts, and these
    /// tables no longer do.
    pub(in crate::db) fn note(
        &mut self,
        context: &Context,
        removed: &[FileNumber],
        outputs: &[(&Family, &JobOutput)],
    ) {
        let mut fresh = Vec::new();
        for (family, output) in outputs.iter().filter(|(_, output)| output.counts.key_faults > 0) {
            context.statistics.add(Ticker::KeyFaults, output.counts.key_faults);
            self.unlisted += output.counts.key_faults - output.key_faults.len() as u64;
            for KeyError { user_key, error } in &output.key_faults {
                let user = family.comparator();
                let may_have_it = output.tables.iter().filter(|table| {
                    user.compare(table.smallest.user_key(), user_key).is_le()
                        && user.compare(table.largest.user_key(), user_key).is_ge()
                });
                let tables: Vec<_> = may_have_it.map(|table| table.number).collect();
                let key = user_key[..user_key.len().min(KEY_FAULT_KEY_MAX)].to_vec();
                let at = (family.id, key, hash64(user_key));
                match self.known.get_mut(&at) {
                    Some(known) => known.tables.extend(tables),
                    None => fresh.push((at, *family, error, tables)),
                }
            }
        }
        self.forget(removed);
        for (at, family, error, tables) in fresh {
            // It was met in several versions of the key.
            if self.known.contains_key(&at) {
                continue;
            }
            if !self.makes_room() {
                self.unlisted += 1;
                continue;
            }
            tracing::error!(family = family.name, %error, "a key cannot be processed normally; the job continues");
            let family_name = family.name.clone();
            let fault = KeyFault {
                family: family.id,
                family_name,
                key: at.1.clone(),
                error: error.clone(),
            };
            context.events.note(|| Event::KeyFault(fault.clone()));
            self.known.insert(at, Known { fault, tables });
        }
    }

    /// Forgets those whose tables were among these.
    fn forget(&mut self, removed: &[FileNumber]) {
        self.known.retain(|_, Known { tables, .. }| {
            let was_nowhere = tables.is_empty();
            tables.retain(|table| !removed.contains(table));
            was_nowhere || !tables.is_empty()
        });
    }

    /// Forgets those of a family that was dropped.
    pub(in crate::db) fn forget_family(&mut self, family: ColumnFamilyId) {
        self.known.retain(|(of, ..), _| *of != family);
    }

    /// Whether there is room for another.
    fn makes_room(&mut self) -> bool {
        if self.known.len() >= KEY_FAULTS_MAX {
            let is_nowhere = |(_, known): &(_, &Known)| known.tables.is_empty();
            let nowhere = self.known.iter().find(is_nowhere).map(|(at, _)| at.clone());
            nowhere.map(|at| self.known.remove(&at));
        }
        self.known.len() < KEY_FAULTS_MAX
    }

    /// Those that are known.
    pub(in crate::db) fn all(&self) -> Vec<KeyFault> {
        self.known.values().map(|known| known.fault.clone()).collect()
    }

    /// Those that are known, in words, and how many others there were.
    pub(in crate::db) fn lines(&self) -> impl Iterator<Item = String> {
        let unlisted = (self.unlisted > 0).then(|| {
            format!(
                "{} of keys {} met since the database was opened: too many to list",
                counted(self.unlisted, "more fault"),
                form(self.unlisted, "was", "were")
            )
        });
        self.known.values().map(|known| known.fault.to_string()).chain(unlisted)
    }
}
