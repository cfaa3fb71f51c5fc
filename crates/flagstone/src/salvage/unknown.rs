//! Tables whose family is unknown: neither the MANIFEST nor the tables name it.
//!
//! 1. They wait until all other tables have been examined, and the WALs have been searched for
//!    families. If there is only the default family, they belong to it.
//! 2. Otherwise two of them may belong to two families, or to one, and it is unknown which one's
//!    entries hide the other's. So tables with disjoint key ranges share a family, and overlapping
//!    tables do not. That way nothing valid is hidden; the user decides which version is right.
//! 3. Their keys count as lost for each family: entries for these keys in a family's WALs are used
//!    although tables had them.

use super::families::{Families, UNKNOWN_FAMILY};
use super::report::SalvageReport;
use crate::base::{
    Comparator, DEFAULT_COLUMN_FAMILY_NAME, Error, FileNumber, InternalKeyBuf, RangeTombstone,
    Result,
};
use crate::sst::{TableProperties, TableRemains};

/// A table that waits.
pub(super) struct UnknownTable {
    pub(super) number: FileNumber,
    pub(super) remains: TableRemains,
    pub(super) bounds: Option<(InternalKeyBuf, InternalKeyBuf)>,
    pub(super) properties: Option<TableProperties>,
}

/// Tables that share a family.
struct Group {
    name: String,
    comparator: Comparator,
    ranges: Vec<KeyRange>,
}

/// The user keys between which a table lies; `None` if its keys are in no order that is known.
pub(super) type KeyRange = Option<(Vec<u8>, Vec<u8>)>;

impl Group {
    fn has_room(&self, comparator: &Comparator, range: &KeyRange) -> bool {
        let is_apart = |other: &KeyRange| {
            let Some(((smallest, largest), (other_smallest, other_largest))) =
                range.as_ref().zip(other.as_ref())
            else {
                return false;
            };
            comparator.compare(largest, other_smallest).is_lt()
                || comparator.compare(other_largest, smallest).is_lt()
        };
        self.comparator.name() == comparator.name() && self.ranges.iter().all(is_apart)
    }
}

impl UnknownTable {
    fn is_empty(&self) -> bool {
        self.remains.entries == 0 && self.remains.tombstones.is_empty()
    }

    /// Between which user keys all lies that it holds, or has lost; `None` for anywhere. An empty
    /// first key stands for all before the last.
    fn reach(&self, comparator: &Comparator) -> KeyRange {
        let (mut smallest, mut largest) = self.range(comparator)?;
        for fault in &self.remains.faults {
            let (first, last) = fault.key_range.as_ref()?;
            if first.is_empty()
                || !smallest.is_empty() && comparator.compare(first, &smallest).is_lt()
            {
                smallest.clone_from(first);
            }
            if comparator.compare(last, &largest).is_gt() {
                largest.clone_from(last);
            }
        }
        Some((smallest, largest))
    }

    /// Between which user keys its entries and range deletions lie.
    fn range(&self, comparator: &Comparator) -> KeyRange {
        if !self.remains.is_sorted {
            return None;
        }
        let (mut smallest, mut largest) = self.remains.bounds.clone().unzip();
        for RangeTombstone { start, end, .. } in &self.remains.tombstones {
            let is_smaller = |known: &Vec<u8>| comparator.compare(start, known).is_lt();
            let is_larger = |known: &Vec<u8>| comparator.compare(end, known).is_gt();
            if smallest.as_ref().is_none_or(is_smaller) {
                smallest = Some(start.clone());
            }
            if largest.as_ref().is_none_or(is_larger) {
                largest = Some(end.clone());
            }
        }
        smallest.zip(largest)
    }
}

impl Families {
    /// Finds a family for each table that waits.
    ///
    /// # Errors
    /// As [`Families::new`].
    pub(super) fn place_unknown(&mut self, report: &mut SalvageReport) -> Result<()> {
        let is_certain = self.has_only_default();
        let mut groups: Vec<Group> = Vec::new();
        for table in std::mem::take(&mut self.unknown) {
            let UnknownTable { number, properties, .. } = &table;
            let comparator = self.comparator_of(*number, properties.as_ref())?;
            let range = table.range(&comparator);
            // Where a whole MANIFEST does not name it, what it was made from is there. What was
            // ingested was in no WAL.
            if !is_certain && !self.history().is_trusted && !table.remains.is_ingested() {
                self.note_loss_of_some(comparator.clone(), table.reach(&comparator));
            }
            let name = if is_certain {
                DEFAULT_COLUMN_FAMILY_NAME.to_string()
            } else if table.is_empty() {
                // What is damaged in it has been told.
                continue;
            } else {
                let name = self.share(&mut groups, *number, comparator, range.clone());
                let what = format!(
                    "nothing shows which family this table belongs to; its records are in family '{name}'"
                );
                let path = table.remains.path();
                if self.history().is_trusted {
                    // It is not named, and so what a job left behind: what that read is there.
                    report.note(format!(
                        "{}: {what}; an unfinished job left it behind",
                        path.display()
                    ))
                } else {
                    report.lose_whole(Error::corruption(what).at(path), range)
                }
                name
            };
            let UnknownTable { number, remains, bounds, properties } = table;
            let counts = self.history().counts(number);
            let family = self.open(&name, number, properties.as_ref())?;
            family.add_table(number, remains, bounds, properties.as_ref(), counts);
        }
        if groups.len() > 1 {
            let names: Vec<String> =
                groups.iter().map(|group| format!("'{}'", group.name)).collect();
            report.note(format!(
                "Nothing shows whether tables with the same range of keys belong to one family, or which is newer, so they are \
                 in families of their own: {}. These may hold older versions of keys, and deleted keys.",
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// The name of the first group that has room for a table, or of a new one.
    fn share(
        &self,
        groups: &mut Vec<Group>,
        number: FileNumber,
        comparator: Comparator,
        range: KeyRange,
    ) -> String {
        if let Some(group) = groups.iter_mut().find(|group| group.has_room(&comparator, &range)) {
            group.ranges.push(range);
            return group.name.clone();
        }
        let first = (groups.is_empty() && !self.is_taken(UNKNOWN_FAMILY))
            .then(|| UNKNOWN_FAMILY.to_string());
        let name =
            first.unwrap_or_else(|| self.free_name(&format!("{UNKNOWN_FAMILY}-table-{number}")));
        groups.push(Group { name: name.clone(), comparator, ranges: vec![range] });
        name
    }
}
