//! What is uncertain about the families of the new database.

use super::Families;
use crate::base::{ColumnFamilyId, DEFAULT_COLUMN_FAMILY_NAME};

impl Families {
    /// What is not known of families that the MANIFEST, as far as it is left, or the options do not
    /// name: each may be one that was dropped.
    pub(in crate::salvage) fn doubts(&self) -> Vec<String> {
        let (named, unnamed): (Vec<_>, Vec<_>) = self.names.iter().partition(|(id, _)| {
            self.history.families.contains_key(id) && !self.renamed.contains(id)
        });
        let of_unnamed = unnamed.into_iter().filter_map(|(&id, name)| self.doubt(id, name));
        // Options are written whenever a family is made or dropped, which the default one never is.
        let is_confirmed = |name: &String| {
            self.history.is_trusted && !self.is_dropped_by_options(name)
                || name == DEFAULT_COLUMN_FAMILY_NAME
                || self.is_confirmed_by_options(name)
        };
        let contradiction = match (self.given.is_empty(), self.are_given_newest) {
            (true, _) => "but there are no options that would confirm it",
            (false, true) => "but not in the OPTIONS file",
            (false, false) => "but the newest options, which would confirm it, are lost",
        };
        let of_named = named.into_iter().filter(|(_, name)| !is_confirmed(name)).map(|(_, name)| {
            format!(
                "Family '{name}' is named in an intact part of the MANIFEST, {contradiction}; it may have been dropped."
            )
        });
        of_unnamed.chain(of_named).collect()
    }

    /// Whether the options lack a family in which something was written, which they were to name
    /// before that. Then the edit that dropped it is lost: zeros behind the last intact one pass
    /// for the end of a MANIFEST. Who lists some families alone need not name the default one.
    fn is_dropped_by_options(&self, name: &str) -> bool {
        let is_given = |wanted: &str| self.given(wanted).is_some();
        let holds_something = self
            .by_name
            .get(name)
            .is_some_and(|family| family.is_in_logs || !family.tables.is_empty());
        self.are_given_newest
            && is_given(DEFAULT_COLUMN_FAMILY_NAME)
            && !is_given(name)
            && holds_something
    }

    /// Whether the options name a family that there was last.
    fn is_confirmed_by_options(&self, name: &str) -> bool {
        self.are_given_newest && self.given(name).is_some()
    }

    fn doubt(&self, id: ColumnFamilyId, name: &str) -> Option<String> {
        if self.named_by_order.contains(&id) {
            let if_older = if self.are_given_newest {
                ""
            } else {
                " That file is not the newest; the family may have been dropped."
            };
            return Some(format!(
                "Only WALs are left of family '{name}'. They give its number, {id}; its name follows from its place in the \
                 OPTIONS file, and is wrong if a family had been dropped.{if_older}"
            ));
        }
        if self.renamed.contains(&id) {
            return Some(format!(
                "Family '{name}' is what is left of the family with the number {id}, whose name is unknown or belongs to a \
                 newer family; it may have been dropped."
            ));
        }
        let options = if self.are_given_newest {
            "the OPTIONS file"
        } else {
            "the newest options, which are lost"
        };
        (!self.is_confirmed_by_options(name)).then(|| {
            format!(
                "Family '{name}' is named in what is left of its tables, but neither in an intact part of the MANIFEST nor in \
                 {options}; it may have been dropped."
            )
        })
    }
}
