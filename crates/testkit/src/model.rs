//! What the engine must hold, in ordered maps.

use std::collections::{BTreeMap, BTreeSet};

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

/// The contents of one family, in bytewise order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Keys and values.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

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
                if begin < end {
                    let gone: BTreeSet<_> =
                        self.entries.range(begin.clone()..end.clone()).map(|(key, _)| key.clone()).collect();
                    self.entries.retain(|key, _| !gone.contains(key));
                }
            }
        }
    }

    /// Whether the contract of single deletions allows one of this key.
    pub fn may_single_delete(&self, key: &[u8]) -> bool {
        key.first() == Some(&SINGLE) && self.entries.contains_key(key)
    }

    /// Whether the key may be put: those for single deletions not twice.
    pub fn may_put(&self, key: &[u8]) -> bool {
        key.first() != Some(&SINGLE) || !self.entries.contains_key(key)
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
