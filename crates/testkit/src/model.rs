//! What the engine must hold, in ordered maps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Bound;

use flagstone::WideColumns;

use crate::components::{AnyCase, Padded, Thinning};

/// One change of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are named as the engine's calls")]
pub enum Edit {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    /// Sets the key to the entity of [`entity_columns`], whose default column is this value; it
    /// begins with [`ENTITY`].
    PutEntity {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        key: Vec<u8>,
    },
    /// Only of a key that was put once since it last did not exist; see
    /// [`Family::may_single_delete`].
    SingleDelete {
        key: Vec<u8>,
    },
    Merge {
        key: Vec<u8>,
        operand: Vec<u8>,
    },
    DeleteRange {
        begin: Vec<u8>,
        end: Vec<u8>,
    },
}

/// What the default column of an entity begins with, and no other value.
pub const ENTITY: &[u8] = b"entity:";

/// The columns of an entity with this default column: the other one repeats what was put, so that
/// it can be told whether both belong together, whatever was merged since.
pub fn entity_columns(value: &[u8]) -> [(&'static [u8], &[u8]); 2] {
    [(b"put", value), (b"", value)]
}

/// Whether these are the columns of a key with that value.
pub fn are_columns_of(columns: &WideColumns, value: &[u8]) -> bool {
    let is_entity =
        value.get(..ENTITY.len()).is_some_and(|start| start.eq_ignore_ascii_case(ENTITY));
    let default = columns.get("") == Some(value);
    match columns.get("put") {
        None => default && !is_entity && columns.len() == 1,
        Some(put) => {
            let merged = value.strip_prefix(put);
            let follows = |merged: &[u8]| merged.first().is_none_or(|first| *first == b',');
            default && is_entity && columns.len() == 2 && merged.is_some_and(follows)
        }
    }
}

/// The keys that are put once and removed by single deletions begin with this byte; no others do.
pub const SINGLE: u8 = b's';

/// The keys that begin with this byte are not put again until a range deletion has removed them,
/// which is all that does: there is nothing older to come back, if a compaction drops them without
/// a trace.
pub const ONCE: u8 = b'u';

/// The order of a family's keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// That of bytes.
    #[default]
    Bytewise,
    /// That of bytes backwards.
    Reversed,
    /// [`AnyCase`], in which keys with other bytes may be the same.
    AnyCase,
    /// [`Padded`], in which keys of different lengths may be the same.
    Padded,
}

impl Order {
    /// The bytes by which a model knows all keys that are the same as this one.
    pub fn known_as(self, key: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Bytewise | Self::Reversed => Cow::Borrowed(key),
            Self::AnyCase => AnyCase::known_as(key),
            Self::Padded => Cow::Borrowed(Padded::known_as(key)),
        }
    }
}

/// What compactions may have taken from a family by themselves: then more than one content is
/// right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Whether [`Thinning`] may have been at it.
    pub is_thinned: bool,
    /// What FIFO compaction may have dropped.
    pub fifo: Fifo,
}

/// What FIFO compaction may have dropped of a family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fifo {
    /// Nothing.
    #[default]
    Nothing,
    /// What was written first, and nothing that was written after something that is still there.
    Oldest,
    /// Of each key what was written first: other styles have left tables in deeper levels, which go
    /// before those of level 0.
    OldestOfKey,
}

impl Fifo {
    /// After a change of options that gives the family this style or another.
    #[must_use]
    pub fn goes_on(self, is_fifo: bool) -> Self {
        match (self, is_fifo) {
            (Self::Nothing, false) => Self::Nothing,
            (Self::Oldest, true) => Self::Oldest,
            _ => Self::OldestOfKey,
        }
    }
}

/// The contents of one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Keys, as the [`Order`] knows them, and values.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What follows speaks in this order.
    pub order: Order,
    /// What may be missing.
    pub losses: Losses,
    /// For the keys that were written since the contents were last known from the database, the
    /// number of the last write.
    written: BTreeMap<Vec<u8>, u64>,
    writes: u64,
}

/// One of a family's entries.
pub type Entry<'a> = (&'a Vec<u8>, &'a Vec<u8>);

impl Family {
    /// Nothing yet, in this order.
    pub fn empty(order: Order, losses: Losses) -> Self {
        Self { order, losses, ..Self::default() }
    }

    /// The key as the entries know it.
    pub fn known_as<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        self.order.known_as(key)
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.entries.get(&*self.known_as(key))
    }

    /// Whether the key is one of those for single deletions.
    pub fn is_single(&self, key: &[u8]) -> bool {
        self.known_as(key).first() == Some(&SINGLE)
    }

    /// Whether the key is one of those that only range deletions remove.
    pub fn is_once(&self, key: &[u8]) -> bool {
        self.known_as(key).first() == Some(&ONCE)
    }

    /// Whether the value of an entry may be found so.
    pub fn may_have(&self, (key, value): Entry<'_>, found: &[u8]) -> bool {
        let leaves = |left: &[u8]| {
            left == found || self.losses.is_thinned && Thinning::may_leave(key, left, found)
        };
        // Of merged operands the oldest may be gone.
        let commas = value.iter().enumerate().filter(|(_, byte)| **byte == b',' && self.is_fifo());
        leaves(value) || commas.into_iter().any(|(at, _)| leaves(&value[at + 1..]))
    }

    /// Whether a lookup of this key may find that.
    pub fn accepts(&self, key: &[u8], found: Option<&[u8]>) -> bool {
        let key = self.known_as(key);
        match (self.entries.get_key_value(&*key), found) {
            (Some(entry), Some(found)) => self.may_have(entry, found),
            (Some(_), None) => self.may_lack(&key),
            (None, found) => found.is_none(),
        }
    }

    /// Whether the entry of this key, as it is known, may be missing.
    pub fn may_lack(&self, key: &[u8]) -> bool {
        self.is_fifo() || self.losses.is_thinned && Thinning::may_remove(key)
    }

    fn is_fifo(&self) -> bool {
        self.losses.fifo != Fifo::Nothing
    }

    /// Whether what is missing is what may be missing together, given what is there of all entries.
    pub fn may_lack_all_but(&self, found: &BTreeSet<Cow<'_, [u8]>>) -> bool {
        if self.losses.is_thinned || self.losses.fifo != Fifo::Oldest {
            return true;
        }
        let last_write = |key: &&Vec<u8>| self.written.get(*key).copied().unwrap_or(0);
        let (there, gone): (Vec<_>, Vec<_>) =
            self.entries.keys().partition(|key| found.contains(key.as_slice()));
        match (there.iter().map(last_write).min(), gone.iter().map(last_write).max()) {
            (Some(oldest_there), Some(newest_gone)) => newest_gone <= oldest_there,
            _ => true,
        }
    }

    /// Whether the engine may hold that in place of this.
    pub fn may_be(&self, found: &Self) -> bool {
        if self.losses == Losses::default() {
            return self.entries == found.entries;
        }
        let accepts = |key, value: Option<&Vec<u8>>| self.accepts(key, value.map(Vec::as_slice));
        self.entries.keys().all(|key| accepts(key, found.entries.get(key)))
            && found.entries.keys().all(|key| self.entries.contains_key(key))
    }

    /// Of these entries, all in order, the first that an iterator may stop at, given the key that
    /// it stops at.
    pub fn stop<'a>(
        &self,
        mut entries: impl Iterator<Item = Entry<'a>>,
        found: Option<&[u8]>,
    ) -> Option<Entry<'a>> {
        let found = found.map(|key| self.known_as(key));
        entries.find(|(key, _)| found.as_deref() == Some(key.as_slice()) || !self.may_lack(key))
    }

    /// Applies a change. Merge operands are appended after a comma, as by `stringappend`.
    pub fn apply(&mut self, edit: &Edit) {
        if let Edit::Put { key, .. } | Edit::PutEntity { key, .. } | Edit::Merge { key, .. } = edit
        {
            self.writes += 1;
            self.written.insert(self.known_as(key).into_owned(), self.writes);
        }
        match edit {
            Edit::Put { key, value } | Edit::PutEntity { key, value } => {
                self.entries.insert(self.known_as(key).into_owned(), value.clone());
            }
            Edit::Delete { key } | Edit::SingleDelete { key } => {
                self.entries.remove(&*self.known_as(key));
            }
            Edit::Merge { key, operand } => {
                match self.entries.get_mut(&*self.order.known_as(key)) {
                    Some(value) => {
                        value.push(b',');
                        value.extend_from_slice(operand);
                    }
                    None => {
                        drop(self.entries.insert(self.known_as(key).into_owned(), operand.clone()))
                    }
                }
            }
            Edit::DeleteRange { begin, end } => {
                for gone in self.keys_between(begin, end) {
                    self.entries.remove(&gone);
                }
            }
        }
    }

    /// The keys from `begin` on and before `end`.
    pub fn keys_between(&self, begin: &[u8], end: &[u8]) -> Vec<Vec<u8>> {
        if !self.is_before(begin, end) {
            return Vec::new();
        }
        let (begin, end) = (&*self.known_as(begin), &*self.known_as(end));
        let (low, high) = match self.order {
            Order::Reversed => (Bound::Excluded(end), Bound::Included(begin)),
            Order::Bytewise | Order::AnyCase | Order::Padded => {
                (Bound::Included(begin), Bound::Excluded(end))
            }
        };
        self.entries.range::<[u8], _>((low, high)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether the contract of single deletions allows one of this key.
    pub fn may_single_delete(&self, key: &[u8]) -> bool {
        self.is_single(key) && self.get(key).is_some()
    }

    /// Whether the contracts of single deletions and of compactions that leave no trace allow a
    /// deletion or a merge of this key.
    pub fn may_overwrite(&self, key: &[u8]) -> bool {
        !self.is_single(key) && !self.is_once(key)
    }

    /// Whether the key may be put: those for single deletions, and for compactions that leave no
    /// trace, not twice.
    pub fn may_put(&self, key: &[u8]) -> bool {
        self.may_overwrite(key) || self.get(key).is_none()
    }

    /// Whether `a` comes before `b`.
    pub fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        match self.order {
            Order::Bytewise => a < b,
            Order::Reversed => b < a,
            Order::AnyCase | Order::Padded => self.known_as(a) < self.known_as(b),
        }
    }

    /// The first key that there can be, and one that none follows which generators make.
    pub fn ends(&self) -> (&'static [u8], &'static [u8]) {
        const FAR: &[u8] = &[0xff; 8];
        if self.is_reversed() { (FAR, b"") } else { (b"", FAR) }
    }

    fn is_reversed(&self) -> bool {
        self.order == Order::Reversed
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        self.run(self.entries.range::<[u8], _>(..), false)
    }

    /// All entries, from the last to the first.
    pub fn iter_back(&self) -> impl Iterator<Item = Entry<'_>> {
        self.run(self.entries.range::<[u8], _>(..), true)
    }

    /// The entries from `key` on.
    pub fn from<'a>(&'a self, key: &[u8]) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let key = &*self.known_as(key);
        let range = if !self.is_reversed() {
            (Bound::Included(key), Bound::Unbounded)
        } else {
            (Bound::Unbounded, Bound::Included(key))
        };
        self.run(self.entries.range::<[u8], _>(range), false)
    }

    /// The entries from `key` back to the first.
    pub fn back_from<'a>(&'a self, key: &[u8]) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let key = &*self.known_as(key);
        let range = if !self.is_reversed() {
            (Bound::Unbounded, Bound::Included(key))
        } else {
            (Bound::Included(key), Bound::Unbounded)
        };
        self.run(self.entries.range::<[u8], _>(range), true)
    }

    /// These entries in the family's order, or back.
    fn run<'a>(
        &self,
        entries: btree_map::Range<'a, Vec<u8>, Vec<u8>>,
        back: bool,
    ) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let (forward, backward) = if self.is_reversed() == back {
            (Some(entries), None)
        } else {
            (None, Some(entries.rev()))
        };
        forward.into_iter().flatten().chain(backward.into_iter().flatten())
    }

    /// What an iterator between these bounds sees.
    #[must_use]
    pub fn within(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Self {
        let inside = |key: &[u8]| {
            lower.is_none_or(|lower| !self.is_before(key, lower))
                && upper.is_none_or(|upper| self.is_before(key, upper))
        };
        let entries = self.entries.iter().filter(|(key, _)| inside(key));
        Self {
            entries: entries.map(|(key, value)| (key.clone(), value.clone())).collect(),
            order: self.order,
            losses: self.losses,
            ..Self::default()
        }
    }
}

/// All families by name. A clone is a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// The families that exist.
    pub families: BTreeMap<String, Family>,
}

impl Model {
    /// One with these empty families.
    pub fn with_families(names: &[&str]) -> Self {
        Self {
            families: names.iter().map(|name| ((*name).to_string(), Family::default())).collect(),
        }
    }

    /// Applies a batch.
    pub fn apply(&mut self, batch: &[(String, Edit)]) {
        for (family, edit) in batch {
            self.families.get_mut(family).expect("a batch names families that exist").apply(edit);
        }
    }
}
