//! Lists in the database: a key each, whose value is its elements one after the other, 8 bytes
//! each. A merge appends its operand.

use flagstone::{ColumnFamilyOptions, Db, Family, Result};

use crate::isolation::{Key, Value};

/// The families that hold the lists.
pub(super) const FAMILIES: [&str; 2] = ["default", "other"];

/// So many lists are in use at a time.
pub(super) const IN_USE: usize = 6;

/// A list of so many elements is full: another takes its place.
pub(super) const LENGTH_MAX: usize = 40;

/// Has merges append their operands.
pub(super) fn appending(options: &mut ColumnFamilyOptions) {
    options.merge_with("testkit.append", |_key, existing, operands| {
        Some(existing.into_iter().chain(operands.iter().copied()).flatten().copied().collect())
    });
}

/// The families of a database.
pub(super) struct Lists([Family; FAMILIES.len()]);

impl Lists {
    pub(super) fn of(db: &Db) -> Result<Self> {
        let [first, second] = FAMILIES.map(|name| db.column_family(name));
        Ok(Self([first?, second?]))
    }

    /// Where a list lies.
    pub(super) fn family(&self, key: Key) -> &Family {
        &self.0[key as usize % FAMILIES.len()]
    }

    pub(super) fn families(&self) -> &[Family] {
        &self.0
    }
}

pub(super) fn to_bytes(key: Key) -> [u8; 8] {
    key.to_be_bytes()
}

pub(super) fn to_key(bytes: &[u8]) -> Key {
    Key::from_be_bytes(bytes.try_into().expect("keys have 8 bytes"))
}

pub(super) fn to_element(value: Value) -> [u8; 8] {
    value.to_le_bytes()
}

/// The elements of a list; none if there is no such key.
pub(super) fn to_list(value: Option<&[u8]>) -> Vec<Value> {
    let value = value.unwrap_or_default();
    let (elements, rest) = value.as_chunks::<8>();
    assert!(rest.is_empty(), "a list of {} bytes", value.len());
    elements.iter().map(|element| Value::from_le_bytes(*element)).collect()
}
