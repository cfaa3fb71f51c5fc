//! The column families, and what was found of each.
//!
//! Names and numbers come from the MANIFEST, otherwise from the properties of tables. Tables of no
//! known family wait until all other tables are assigned (`unknown`).

mod doubts;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::choose::Version;
use super::flushed::Flushed;
use super::history::History;
use super::losses::Losses;
use super::stamps::{FamilyStamps, StampedDeletion, Stamps};
use super::tombstones::{Cover, Tombstones};
use super::unknown::{KeyRange, UnknownTable};
use crate::base::{
    ColumnFamilyId, Comparator, DEFAULT_COLUMN_FAMILY_NAME, FileNumber, InternalKeyBuf, Result,
    SequenceNumber,
};
use crate::options::{ColumnFamilyOptions, Options};
use crate::sst::{TableProperties, TableRemains};

/// Where tables go whose family nothing tells.
pub(super) const UNKNOWN_FAMILY: &str = "salvaged";

/// What has been found of a family.
pub(super) struct Family {
    pub(super) name: String,
    pub(super) comparator: Comparator,
    pub(super) options: ColumnFamilyOptions,
    /// Whether the options are the family's own, and not a guess.
    pub(super) has_own_options: bool,
    log_number: FileNumber,
    /// Tables in order, and tables whose records are not.
    pub(super) tables: Vec<(FileNumber, Arc<TableRemains>)>,
    pub(super) tombstones: Tombstones,
    /// Which writes tables hold.
    pub(super) flushed: Flushed,
    /// Whether WALs have records of it.
    is_in_logs: bool,
    /// What damaged and missing tables may have held.
    losses: Losses,
    /// The timestamps that its keys end in, if they do.
    pub(super) stamps: FamilyStamps,
}

impl Family {
    /// Adds a table; `bounds` as far as they are known. `is_certain` says that it counts.
    pub(super) fn add_table(
        &mut self,
        number: FileNumber,
        mut remains: TableRemains,
        bounds: Option<(InternalKeyBuf, InternalKeyBuf)>,
        properties: Option<&TableProperties>,
        is_certain: bool,
    ) {
        self.flushed.add_table(&remains, properties);
        for fault in &remains.faults {
            let whole = bounds.as_ref().map(|(smallest, largest)| user_range(smallest, largest));
            self.losses.add(fault.key_range.clone().or(whole));
        }
        self.tombstones.add_table(&self.comparator, number, &remains, bounds, is_certain);
        // Both are kept in another form, and the table until the family is written.
        (remains.faults, remains.tombstones) = (Vec::new(), Vec::new());
        self.tables.push((number, Arc::new(remains)));
    }

    /// Whether damage may have cost a key something; for a range deletion, any of its keys.
    pub(super) fn may_have_lost(&self, key: &[u8], end: Option<&[u8]>) -> bool {
        match end {
            Some(end) => self.losses.touch(&self.comparator, key, end),
            None => self.losses.hold(&self.comparator, key),
        }
    }

    /// What range deletions do to a version of a key. Where keys have timestamps, also the deletion
    /// from whose timestamp on it is deleted.
    pub(super) fn cover(&self, key: &[u8], version: &Version) -> (Cover, Option<StampedDeletion>) {
        let may_have_cost = || self.may_have_lost(key, None);
        match self.stamps.kind {
            Stamps::Kept(_) => {
                self.tombstones.cover_stamped(&self.comparator, key, version, may_have_cost)
            }
            _ => (self.tombstones.cover(key, version, may_have_cost), None),
        }
    }
}

/// The user keys between two bounds.
pub(super) fn user_range(
    smallest: &InternalKeyBuf,
    largest: &InternalKeyBuf,
) -> (Vec<u8>, Vec<u8>) {
    (smallest.as_key().user_key().to_vec(), largest.as_key().user_key().to_vec())
}

/// Where a table belongs.
pub(super) enum Home<'a> {
    /// To this family.
    Family(&'a mut Family),
    /// To one that was dropped.
    Dropped,
    /// Nothing tells.
    Unknown,
}

/// The options of families that the caller has.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) families: &'a [(&'a str, ColumnFamilyOptions)],
    /// Whether they are those of the families that there were last. Older ones do not tell which of
    /// them were dropped since, or what others were made.
    pub(super) are_newest: bool,
}

/// The families, by name.
pub(super) struct Families {
    pub(super) by_name: BTreeMap<String, Family>,
    pub(super) names: BTreeMap<ColumnFamilyId, String>,
    /// All that `names` has, had, or may come to have by `given`.
    taken: HashSet<String>,
    /// How many have other names than their places in the options say.
    out_of_order: usize,
    history: History,
    /// What the file IDENTITY says.
    identity: Option<String>,
    options: ColumnFamilyOptions,
    given: Vec<(String, ColumnFamilyOptions)>,
    /// Where each name stands there first.
    place_in_given: HashMap<String, usize>,
    /// [`Given::are_newest`].
    are_given_newest: bool,
    /// Those that have their names from their places in the options alone.
    named_by_order: BTreeSet<ColumnFamilyId>,
    /// Those of which nobody knows the name, or whose name a newer one has.
    renamed: BTreeSet<ColumnFamilyId>,
    /// Those of which WALs have records, where the MANIFEST does not tell all.
    in_logs: BTreeSet<ColumnFamilyId>,
    pub(super) unknown: Vec<UnknownTable>,
    /// What tables of which nothing tells the family may have held: its first and last key in an
    /// order; `None` is anything.
    held_of_some: Vec<(Comparator, KeyRange)>,
}

impl Families {
    /// Those that the MANIFEST knows. `identity` is what IDENTITY says; `given` are the options of
    /// families as far as the caller has them.
    ///
    /// # Errors
    /// `InvalidArgument` for a comparator that neither `options` nor `given` have, and that is not
    /// built in.
    pub(super) fn new(
        history: History,
        identity: Option<String>,
        options: &Options,
        given: Given<'_>,
    ) -> Result<Self> {
        let are_given_newest = given.are_newest;
        let given: Vec<_> = given
            .families
            .iter()
            .map(|(name, options)| ((*name).to_string(), options.clone()))
            .collect();
        let places = || given.iter().enumerate().rev();
        let recorded: Vec<_> =
            history.families.iter().map(|(&id, family)| (id, family.clone())).collect();
        let mut families = Self {
            by_name: BTreeMap::new(),
            names: BTreeMap::new(),
            taken: given.iter().map(|(name, _)| name.clone()).collect(),
            out_of_order: 0,
            history,
            identity,
            options: options.cf.clone(),
            place_in_given: places().map(|(place, (name, _))| (name.clone(), place)).collect(),
            given,
            are_given_newest,
            named_by_order: BTreeSet::new(),
            renamed: BTreeSet::new(),
            in_logs: BTreeSet::new(),
            unknown: Vec::new(),
            held_of_some: Vec::new(),
        };
        for (id, family) in recorded {
            let comparator = families.comparator(family.comparator.as_deref())?;
            families.add(&family.name, (comparator, family.persists_timestamps), family.log_number);
            if let Some(added) = families.by_name.get_mut(&family.name) {
                added.stamps.low = family.history_low;
            }
            families.set_name(id, family.name);
        }
        Ok(families)
    }

    /// Takes all families, in the order in which they were made as far as their numbers tell it.
    pub(super) fn take(&mut self) -> Vec<Family> {
        let mut by_name = std::mem::take(&mut self.by_name);
        let mut taken: Vec<Family> =
            self.names.values().filter_map(|name| by_name.remove(name)).collect();
        taken.extend(by_name.into_values());
        taken
    }

    /// What the MANIFEST says.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Takes note of which families WALs have records.
    pub(super) fn expect_in_logs(&mut self, ids: BTreeSet<ColumnFamilyId>) {
        self.in_logs = ids.into_iter().filter(|&id| !self.history.is_dropped(id)).collect();
    }

    /// Whether there is but the default family, by all that is left. Since older options were
    /// written another may have been made.
    pub(super) fn has_only_default(&self) -> bool {
        let known: BTreeSet<_> = self.names.keys().chain(&self.in_logs).collect();
        let counts =
            [known.len(), self.by_name.len(), self.given.len(), self.history.families_made()];
        (self.are_given_newest || self.history.is_trusted) && counts.iter().all(|&count| count <= 1)
    }

    /// Whether a family of that name is needed to hold what was found, or the MANIFEST names it.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether the options are those that there were last.
    pub(super) fn are_given_newest(&self) -> bool {
        self.are_given_newest
    }

    /// Names those of which nothing but WALs tells.
    pub(super) fn name_those_in_logs(&mut self) {
        for id in self.in_logs.clone() {
            self.name_by_logs(id);
        }
    }

    fn set_name(&mut self, id: ColumnFamilyId, name: String) {
        self.taken.insert(name.clone());
        self.out_of_order += usize::from(!self.is_in_order(id, &name));
        if let Some(former) = self.names.insert(id, name) {
            self.out_of_order -= usize::from(!self.is_in_order(id, &former));
        }
    }

    /// Whether the options have the name in the place of this number.
    fn is_in_order(&self, id: ColumnFamilyId, name: &str) -> bool {
        self.given.get(id.0 as usize).is_some_and(|(given, _)| given == name)
    }

    /// What the options say of the family of that name.
    fn given(&self, name: &str) -> Option<&ColumnFamilyOptions> {
        self.place_in_given.get(name).map(|place| &self.given[*place].1)
    }

    /// Whether there is a family of that name, or may be.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || self.taken.contains(name)
    }

    /// `name`, or one like it where a family has that: what was salvaged before has such names.
    pub(super) fn free_name(&self, name: &str) -> String {
        let others = (2u64..).map(|nth| format!("{name}-{nth}"));
        let mut names = std::iter::once(name.to_string()).chain(others);
        names.find(|name| !self.is_taken(name)).expect("there are more numbers than families")
    }

    /// A name for a family where another one has its own, or nobody knows it.
    fn replacement_name(&mut self, id: ColumnFamilyId) -> String {
        self.renamed.insert(id);
        self.free_name(&format!("{UNKNOWN_FAMILY}-{id}"))
    }

    /// The comparator of that name; the default one where none is told.
    fn comparator(&self, name: Option<&str>) -> Result<Comparator> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(self.options.comparator.clone());
        };
        let known = self.given.iter().map(|(_, options)| options).chain([&self.options]);
        let known =
            known.map(|options| &options.comparator).find(|comparator| comparator.name() == name);
        known.map_or_else(|| Comparator::from_name(name), |comparator| Ok(comparator.clone()))
    }

    /// Adds a family with its comparator, and whether its tables have timestamps, if that is known.
    pub(super) fn add(
        &mut self,
        name: &str,
        (comparator, persists_timestamps): (Comparator, Option<bool>),
        log_number: FileNumber,
    ) {
        let own = self.given(name).cloned();
        let has_own_options = own.is_some();
        let mut options = own.unwrap_or_else(|| self.options.clone());
        options.comparator = comparator.clone();
        if comparator.timestamp_size() > 0 {
            let given = options.persist_user_defined_timestamps;
            options.persist_user_defined_timestamps = persists_timestamps.unwrap_or(given);
        }
        let stamps = Stamps::of(&options);
        let family = Family {
            name: name.to_string(),
            comparator: stamps.order(comparator),
            options,
            has_own_options,
            log_number,
            tables: Vec::new(),
            tombstones: Tombstones::default(),
            flushed: Flushed::default(),
            is_in_logs: false,
            losses: Losses::default(),
            stamps: FamilyStamps::new(stamps, None),
        };
        self.by_name.insert(name.to_string(), family);
    }

    /// The order of keys in a table.
    ///
    /// # Errors
    /// As [`Families::new`].
    pub(super) fn comparator_of(
        &self,
        table: FileNumber,
        properties: Option<&TableProperties>,
    ) -> Result<Comparator> {
        let (comparator, persists) = self.order_of(table, properties)?;
        let persists = persists.unwrap_or(self.options.persist_user_defined_timestamps);
        Ok(if persists { comparator } else { comparator.without_timestamps() })
    }

    /// The comparator of a table's family, and whether its tables have the timestamps of keys that
    /// end in some, if that is known.
    fn order_of(
        &self,
        table: FileNumber,
        properties: Option<&TableProperties>,
    ) -> Result<(Comparator, Option<bool>)> {
        let recorded = self
            .history
            .live
            .get(&table)
            .and_then(|table| self.history.families.get(&table.family));
        let name = recorded.and_then(|family| family.comparator.as_deref());
        let name = name.or(properties.map(|properties| properties.comparator.as_str()));
        let noted = || properties.map(TableProperties::has_timestamps);
        let named = || {
            let name = &properties?.column_family_name;
            self.given(name).map(|options| options.persist_user_defined_timestamps)
        };
        let persists = recorded.and_then(|family| family.persists_timestamps);
        Ok((self.comparator(name)?, persists.or_else(noted).or_else(named)))
    }

    /// The family of a table, by the MANIFEST, else by its properties.
    ///
    /// # Errors
    /// As [`Families::new`].
    pub(super) fn of_table(
        &mut self,
        table: FileNumber,
        properties: Option<&TableProperties>,
    ) -> Result<Home<'_>> {
        let recorded = self.history.live.get(&table).map(|table| table.family);
        let own = properties.and_then(|properties| properties.column_family).map(ColumnFamilyId);
        let id = recorded.or(own);
        if id.is_some_and(|id| self.history.is_dropped(id)) {
            return Ok(Home::Dropped);
        }
        let known = id.and_then(|id| self.names.get(&id)).cloned();
        let named = || {
            let name = properties.map(|properties| properties.column_family_name.clone());
            name.filter(|name| !name.is_empty())
        };
        let name = match (known.or_else(named), id) {
            (Some(name), Some(id)) => self.name_of(id, name),
            (Some(name), None) => name,
            (None, Some(id)) => {
                let name = self.replacement_name(id);
                self.set_name(id, name.clone());
                name
            }
            (None, None) => return Ok(Home::Unknown),
        };
        self.open(&name, table, properties).map(Home::Family)
    }

    /// The family of that name, which has a table with these properties.
    ///
    /// # Errors
    /// As [`Families::new`].
    pub(super) fn open(
        &mut self,
        name: &str,
        table: FileNumber,
        properties: Option<&TableProperties>,
    ) -> Result<&mut Family> {
        if !self.by_name.contains_key(name) || self.is_untouched(name) {
            let order = self.order_of(table, properties)?;
            let log_number =
                self.by_name.get(name).map_or(FileNumber(0), |family| family.log_number);
            self.add(name, order, log_number);
        }
        Ok(self.by_name.get_mut(name).expect("it is there now"))
    }

    /// The name under which a family is rebuilt that had the name `wanted`. Of two families of a
    /// name, the one that was made first had been dropped when the other was made; it makes way.
    fn name_of(&mut self, id: ColumnFamilyId, wanted: String) -> String {
        if let Some(known) = self.names.get(&id) {
            return known.clone();
        }
        // The default family cannot be dropped: what bears its name came from another database.
        let is_unique = wanted != DEFAULT_COLUMN_FAMILY_NAME;
        let other = self
            .names
            .iter()
            .find(|(_, name)| is_unique && **name == wanted)
            .map(|(&other, _)| other);
        let name = match other {
            Some(other) if other > id => self.replacement_name(id),
            Some(other) => {
                let name = self.replacement_name(other);
                if let Some(mut family) = self.by_name.remove(&wanted) {
                    family.name = name.clone();
                    self.by_name.insert(name.clone(), family);
                }
                self.set_name(other, name);
                wanted
            }
            None => wanted,
        };
        self.set_name(id, name.clone());
        name
    }

    /// Whether nothing is known of a family but that there must be one of this name.
    fn is_untouched(&self, name: &str) -> bool {
        let recorded = self
            .history
            .families
            .values()
            .any(|family| family.name == name && family.comparator.is_some());
        !recorded && self.by_name.get(name).is_some_and(|family| family.tables.is_empty())
    }

    /// The family of a record in a WAL, and whether its tables had the record; `None` if it was
    /// dropped.
    pub(super) fn for_log_record(
        &mut self,
        id: ColumnFamilyId,
        wal: FileNumber,
        sequence: SequenceNumber,
    ) -> Option<(&mut Family, bool)> {
        if self.history.is_dropped(id) {
            return None;
        }
        self.name_by_logs(id);
        let is_trusted = self.history.is_trusted;
        let family = self.by_name.get_mut(&self.names[&id])?;
        family.is_in_logs = true;
        let is_flushed = wal < family.log_number || !is_trusted && family.flushed.had(sequence);
        Some((family, is_flushed))
    }

    /// Gives a family a name that has none yet.
    fn name_by_logs(&mut self, id: ColumnFamilyId) {
        if self.names.contains_key(&id) {
            return;
        }
        let by_order = self.name_by_order(id);
        self.named_by_order.extend(by_order.is_some().then_some(id));
        let name = by_order.unwrap_or_else(|| self.replacement_name(id));
        let comparator = self.given(&name).unwrap_or(&self.options).comparator.clone();
        self.add(&name, (comparator, None), FileNumber(0));
        self.set_name(id, name);
    }

    /// The options that such a family gets.
    pub(super) fn options_by_order(&self, id: ColumnFamilyId) -> &ColumnFamilyOptions {
        let named = self.name_by_order(id).and_then(|name| self.given(&name));
        named.unwrap_or(&self.options)
    }

    /// The same of a record that tables have had for long: it counts where they have lost it.
    /// Whether a family of which nothing else knows was dropped nobody can tell.
    pub(super) fn for_archived_record(&mut self, id: ColumnFamilyId) -> Option<&mut Family> {
        let name = self.names.get(&id).filter(|_| !self.history.is_dropped(id))?;
        self.by_name.get_mut(name)
    }

    /// Whether damage may have cost any of them something.
    pub(super) fn have_losses(&self) -> bool {
        self.by_name.values().any(|family| !family.losses.is_empty())
    }

    /// The name of a family of which only WALs know: families are listed in the options in the
    /// order of their numbers, which are without gaps if none was dropped. What is known must agree
    /// with that, and no number be larger.
    fn name_by_order(&self, id: ColumnFamilyId) -> Option<String> {
        let (name, _) = self.given.get(id.0 as usize)?;
        let is_free = !self.by_name.contains_key(name);
        let has_place = |id: &ColumnFamilyId| (id.0 as usize) < self.given.len();
        let have_places =
            self.in_logs.last().into_iter().chain([&self.history.max_family]).all(has_place);
        (is_free && have_places && self.out_of_order == 0).then(|| name.clone())
    }

    /// Whether a WAL that is missing should be there.
    pub(super) fn need_log(&self, wal: FileNumber) -> bool {
        self.history.is_trusted && wal >= self.history.oldest_log
    }

    /// Takes note that a table of a family is gone, and what user keys it held.
    pub(super) fn note_loss(&mut self, id: ColumnFamilyId, range: (Vec<u8>, Vec<u8>)) {
        let name = self.names.get(&id);
        if let Some(family) = name.and_then(|name| self.by_name.get_mut(name)) {
            family.losses.add(Some(range));
        }
    }

    /// Takes note that all tables are gone of those families that have none, and of which writes
    /// were flushed; their names.
    pub(super) fn note_loss_of_tables(
        &mut self,
        flushed: &BTreeSet<ColumnFamilyId>,
    ) -> Vec<String> {
        let mut gone = Vec::new();
        for id in flushed.iter().filter(|id| !self.history.is_dropped(**id)) {
            let family = self.names.get(id).and_then(|name| self.by_name.get_mut(name));
            if let Some(family) = family.filter(|family| family.tables.is_empty()) {
                family.losses.add(None);
                gone.push(family.name.clone());
            }
        }
        gone
    }

    /// Takes note of what a table may have held whose family nothing tells.
    pub(super) fn note_loss_of_some(&mut self, order: Comparator, range: KeyRange) {
        self.held_of_some.push((order, range));
    }

    /// Takes note that nothing at all is known of a table. A whole MANIFEST would name it if it
    /// counted.
    pub(super) fn note_loss_of_anything(&mut self) {
        if !self.history.is_trusted {
            self.note_loss_of_some(self.options.comparator.clone(), None);
        }
    }

    /// Makes what tables say of writes ready to be asked for. IDENTITY may be damaged, as nothing
    /// protects it: a table must bear witness to it.
    pub(super) fn finish_flushed(&mut self) {
        let has_witness = |identity: &&String| {
            self.by_name.values().any(|family| family.flushed.has_tables_of(identity))
        };
        let own = self.history.database.clone();
        let own = own.or_else(|| self.identity.as_ref().filter(has_witness).cloned());
        self.by_name.values_mut().for_each(|family| family.flushed.finish(own.as_deref()));
    }

    /// Makes what was noted ready to be asked for. What is lost of some family may be lost of each.
    pub(super) fn finish_losses(&mut self) {
        for family in self.by_name.values_mut() {
            for (order, range) in &self.held_of_some {
                let is_its_order = order.name() == family.comparator.name();
                family.losses.add(range.clone().filter(|_| is_its_order));
            }
            family.losses.finish(&family.comparator);
        }
    }
}

#[cfg(test)]
mod tests;
