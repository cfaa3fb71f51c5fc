//! What the database must hold: an ordered map for each family.

use std::collections::BTreeMap;

/// One change of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    /// Columns by ascending name; readers see the one without a name.
    PutEntity {
        key: Vec<u8>,
        columns: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A put that says when its value was written, where the engine can; in seconds.
    TimedPut {
        key: Vec<u8>,
        value: Vec<u8>,
        time: u64,
    },
    Delete {
        key: Vec<u8>,
    },
    /// Only of a key that was put once since it last did not exist.
    SingleDelete {
        key: Vec<u8>,
    },
    Merge {
        key: Vec<u8>,
        operand: Vec<u8>,
    },
    /// From `begin` to before `end`, in the family's order.
    DeleteRange {
        begin: Vec<u8>,
        end: Vec<u8>,
    },
}

impl Edit {
    /// As [`super::party::Party::logged`] shows it.
    pub fn logged(&self) -> Pair {
        let (kind, key, value): (&[u8], _, &[u8]) = match self {
            Self::Put { key, value } => (b"put ", key, value),
            Self::PutEntity { key, .. } => (b"entity ", key, b""),
            Self::TimedPut { key, .. } => (b"timed ", key, b""),
            Self::Delete { key } => (b"delete ", key, b""),
            Self::SingleDelete { key } => (b"single delete ", key, b""),
            Self::Merge { key, operand } => (b"merge ", key, operand),
            Self::DeleteRange { begin, end } => (b"delete range ", begin, end),
        };
        ([kind, key].concat(), value.to_vec())
    }
}

/// What merge operands come to; each engine has an operator of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOperator {
    StringAppend,
    Uint64Add,
    Max,
    Put,
    BytesXor,
}

impl MergeOperator {
    pub const ALL: [Self; 5] =
        [Self::StringAppend, Self::Uint64Add, Self::Max, Self::Put, Self::BytesXor];

    pub fn name(self) -> &'static str {
        match self {
            Self::StringAppend => "stringappend",
            Self::Uint64Add => "uint64add",
            Self::Max => "max",
            Self::Put => "put",
            Self::BytesXor => "bytesxor",
        }
    }

    fn merge(self, value: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        // As RocksDB: a value of another size counts as 0.
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        match (self, value) {
            (Self::StringAppend, Some(value)) => [value, b",", operand].concat(),
            (Self::Uint64Add, _) => number(value.unwrap_or_default())
                .wrapping_add(number(operand))
                .to_le_bytes()
                .to_vec(),
            (Self::Max, Some(value)) if value > operand => value.to_vec(),
            (Self::BytesXor, Some(value)) => {
                let at = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
                let length = value.len().max(operand.len());
                (0..length).map(|index| at(value, index) ^ at(operand, index)).collect()
            }
            _ => operand.to_vec(),
        }
    }
}

/// What a family keeps for life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Its order is that of bytes backwards.
    pub reversed: bool,
    pub merge: MergeOperator,
    /// Whether anything is merged. RocksDB 11.8 finds no value by its key that was written to a
    /// blob file directly and merged onto in a memtable.
    pub has_merges: bool,
}

/// An entry.
pub type Pair = (Vec<u8>, Vec<u8>);

/// One family.
#[derive(Debug, Clone)]
pub struct Family {
    pub traits: Traits,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Family {
    pub fn new(traits: Traits) -> Self {
        Self { traits, entries: BTreeMap::new() }
    }

    pub fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.entries.get(key)
    }

    /// Whether `a` comes before `b` in the family's order.
    pub fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        if self.traits.reversed { b < a } else { a < b }
    }

    pub fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Put { key, value } | Edit::TimedPut { key, value, .. } => {
                drop(self.entries.insert(key.clone(), value.clone()))
            }
            Edit::PutEntity { key, columns } => {
                let default = columns.iter().find(|(name, _)| name.is_empty());
                let value = default.map(|(_, value)| value.clone()).unwrap_or_default();
                self.entries.insert(key.clone(), value);
            }
            Edit::Delete { key } | Edit::SingleDelete { key } => drop(self.entries.remove(key)),
            Edit::Merge { key, operand } => {
                let merged = self.traits.merge.merge(self.get(key).map(Vec::as_slice), operand);
                self.entries.insert(key.clone(), merged);
            }
            Edit::DeleteRange { begin, end } => {
                let outside = |key: &[u8]| self.is_before(key, begin) || !self.is_before(key, end);
                let gone: Vec<_> =
                    self.entries.keys().filter(|key| !outside(key)).cloned().collect();
                gone.iter().for_each(|key| drop(self.entries.remove(key)));
            }
        }
    }

    /// The entries between two bounds, the upper one not among them, in the family's order.
    pub fn within(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Vec<(&Vec<u8>, &Vec<u8>)> {
        let inside = |key: &[u8]| {
            lower.is_none_or(|lower| !self.is_before(key, lower))
                && upper.is_none_or(|upper| self.is_before(key, upper))
        };
        let mut found: Vec<_> = self.entries.iter().filter(|(key, _)| inside(key)).collect();
        if self.traits.reversed {
            found.reverse();
        }
        found
    }
}

/// All families by name. A clone is a snapshot.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub families: BTreeMap<String, Family>,
}

impl Model {
    /// Applies a batch; edits of families that do not exist are passed over.
    pub fn apply(&mut self, batch: &[(String, Edit)]) {
        for (name, edit) in batch {
            if let Some(family) = self.families.get_mut(name) {
                family.apply(edit);
            }
        }
    }
}

#[cfg(test)]
mod tests;
