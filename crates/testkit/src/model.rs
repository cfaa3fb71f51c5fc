//! What the engine must hold, in ordered maps.

use std::collections::BTreeMap;
use std::ops::Bound;

/// One change of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are named as the engine's calls")]
pub enum Edit {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        key: Vec<u8>,
    },
    /// Only of a key that was put once since it last did not exist; see [`Family::may_single_delete`].
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

/// The keys that are put once and removed by single deletions begin with this byte; no others do.
pub const SINGLE: u8 = b's';

/// The contents of one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Keys and values.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether the family's order is that of bytes backwards. What follows speaks in the family's order.
    pub reversed: bool,
}

/// One of a family's entries.
pub type Entry<'a> = (&'a Vec<u8>, &'a Vec<u8>);

impl Family {
    /// Applies a change. Merge operands are appended after a comma, as by `stringappend`.
    pub fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Put { key, value } => drop(self.entries.insert(key.clone(), value.clone())),
            Edit::Delete { key } | Edit::SingleDelete { key } => drop(self.entries.remove(key)),
            Edit::Merge { key, operand } => match self.entries.get_mut(key) {
                Some(value) => {
                    value.push(b',');
                    value.extend_from_slice(operand);
                }
                None => drop(self.entries.insert(key.clone(), operand.clone())),
            },
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
        let (low, high) = match self.reversed {
            false => (Bound::Included(begin), Bound::Excluded(end)),
            true => (Bound::Excluded(end), Bound::Included(begin)),
        };
        self.entries.range::<[u8], _>((low, high)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether the contract of single deletions allows one of this key.
    pub fn may_single_delete(&self, key: &[u8]) -> bool {
        key.first() == Some(&SINGLE) && self.entries.contains_key(key)
    }

    /// Whether the key may be put: those for single deletions not twice.
    pub fn may_put(&self, key: &[u8]) -> bool {
        key.first() != Some(&SINGLE) || !self.entries.contains_key(key)
    }

    /// Whether `a` comes before `b`.
    pub fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        if self.reversed { b < a } else { a < b }
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let (forward, backward) = match self.reversed {
            false => (Some(self.entries.iter()), None),
            true => (None, Some(self.entries.iter().rev())),
        };
        forward.into_iter().flatten().chain(backward.into_iter().flatten())
    }

    /// The entries from `key` on.
    pub fn from(&self, key: &[u8]) -> impl Iterator<Item = Entry<'_>> {
        let above = (Bound::Included(key), Bound::Unbounded);
        let below = (Bound::Unbounded, Bound::Included(key));
        let (forward, backward) = match self.reversed {
            false => (Some(self.entries.range::<[u8], _>(above)), None),
            true => (None, Some(self.entries.range::<[u8], _>(below).rev())),
        };
        forward.into_iter().flatten().chain(backward.into_iter().flatten())
    }

    /// The entries from `key` back to the first.
    pub fn back_from(&self, key: &[u8]) -> impl Iterator<Item = Entry<'_>> {
        let above = (Bound::Included(key), Bound::Unbounded);
        let below = (Bound::Unbounded, Bound::Included(key));
        let (forward, backward) = match self.reversed {
            true => (Some(self.entries.range::<[u8], _>(above)), None),
            false => (None, Some(self.entries.range::<[u8], _>(below).rev())),
        };
        forward.into_iter().flatten().chain(backward.into_iter().flatten())
    }

    /// The first key.
    pub fn first(&self) -> Option<&Vec<u8>> {
        self.iter().next().map(|(key, _)| key)
    }

    /// The last key.
    pub fn last(&self) -> Option<&Vec<u8>> {
        let last = if self.reversed { self.entries.iter().next() } else { self.entries.iter().next_back() };
        last.map(|(key, _)| key)
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
            reversed: self.reversed,
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
        Self { families: names.iter().map(|name| ((*name).to_string(), Family::default())).collect() }
    }

    /// Applies a batch.
    pub fn apply(&mut self, batch: &[(String, Edit)]) {
        for (family, edit) in batch {
            self.families.get_mut(family).expect("a batch names families that exist").apply(edit);
        }
    }
}
