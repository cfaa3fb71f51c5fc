//! Up to which write a family's tables are complete, according to the tables themselves. Used if no
//! MANIFEST says so.
//!
//! Each table refers to the database that wrote it. Tables of another database say nothing about
//! this one's WALs: believing them would lose what is only in these WALs. They are right only if
//! this database continues the other one, for example as a restored backup. So a write that such a
//! table may contain is used, and reported as doubtful.

use std::collections::BTreeMap;

use crate::base::SequenceNumber;
use crate::sst::{TableProperties, TableRemains};

/// What the tables of a family say.
#[derive(Default)]
pub(super) struct Flushed {
    /// By the identity of the database that wrote them; an empty one where nothing tells it.
    said: BTreeMap<String, SequenceNumber>,
    until: SequenceNumber,
    until_of_others: SequenceNumber,
    /// Whether a write may count twice.
    is_doubtful: bool,
}

impl Flushed {
    /// Adds what a table says.
    pub(super) fn add_table(
        &mut self,
        remains: &TableRemains,
        properties: Option<&TableProperties>,
    ) {
        // Only flushes know it.
        let is_flush = properties.is_some_and(|properties| properties.oldest_key_time > 0);
        let noted = properties.and_then(TableProperties::flushed_until);
        self.is_doubtful |= noted.is_none() && !is_flush;
        // The sequence number of what was ingested was given it then: older writes may not have
        // been flushed by that time. What it was merged to says so.
        let own = if remains.is_ingested() { 0 } else { remains.largest_sequence };
        // Of a table without checksums it may be damaged.
        let identity =
            properties.filter(|_| remains.has_checksums()).map(|found| found.db_identity.as_str());
        self.note(identity.unwrap_or_default(), noted.unwrap_or(own));
    }

    fn note(&mut self, identity: &str, until: SequenceNumber) {
        let said = self.said.entry(identity.to_string()).or_default();
        *said = until.max(*said);
    }

    /// Whether a table was written by this database.
    pub(super) fn has_tables_of(&self, identity: &str) -> bool {
        self.said.contains_key(identity)
    }

    /// Tells this database's tables from others; if its identity is not known, all are its own.
    pub(super) fn finish(&mut self, own: Option<&str>) {
        for (identity, until) in std::mem::take(&mut self.said) {
            let is_own = identity.is_empty() || own.is_none_or(|own| own == identity);
            let so_far = if is_own { &mut self.until } else { &mut self.until_of_others };
            *so_far = until.max(*so_far);
        }
    }

    /// Whether tables had a write that a WAL has.
    pub(super) fn had(&mut self, sequence: SequenceNumber) -> bool {
        let had = sequence <= self.until;
        self.is_doubtful |= !had && sequence <= self.until_of_others;
        had
    }

    /// Whether it is certain that no write counts twice.
    pub(super) fn is_certain(&self) -> bool {
        !self.is_doubtful
    }
}

#[cfg(test)]
mod tests;
