use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::*;
use crate::base::{Comparator, InternalKeyComparator, UserComparator, ValueType};
use crate::memtable::{MemTable, MemTableKind, MemTableSettings};

fn table(kind: MemTableKind, protection_bytes: usize) -> MemTable {
    let settings = MemTableSettings { kind, protection_bytes, ..MemTableSettings::default() };
    MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings)
}

fn get(table: &MemTable, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut found = None;
    table.get(key, u64::MAX >> 8, |_, _, value| {
        found = Some(value.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(found)
}

const KINDS: [MemTableKind; 3] =
    [MemTableKind::BTree, MemTableKind::SkipList, MemTableKind::Vector];

struct AnyCase;

impl UserComparator for AnyCase {
    fn name(&self) -> &str {
        "any case"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn a_key_of_other_bytes_that_is_equal_finds_the_entry() {
    for kind in KINDS {
        let settings =
            MemTableSettings { kind, protection_bytes: 8, ..MemTableSettings::default() };
        let order = InternalKeyComparator::new(Comparator::Custom(Arc::new(AnyCase)));
        let table = MemTable::new(order, &settings);
        table.add(1, ValueType::Value, b"Key", b"one");
        assert_eq!(get(&table, b"kEY").unwrap().unwrap(), b"one");
    }
}

#[test]
fn readers_see_values_without_checksums() {
    for kind in KINDS {
        for bytes in [0, 1, 2, 4, 8] {
            let table = table(kind.clone(), bytes);
            table.add(1, ValueType::Value, b"a", b"one");
            table.add(2, ValueType::Deletion, b"b", b"");
            assert_eq!(get(&table, b"a").unwrap().unwrap(), b"one");
            assert_eq!(get(&table, b"b").unwrap().unwrap(), b"");
            let mut iter = table.iter();
            iter.seek_to_first();
            assert_eq!(iter.value(), b"one");
            iter.next();
            assert_eq!(iter.value(), b"");
            iter.prev();
            assert_eq!(iter.value(), b"one");
            iter.seek_to_last();
            iter.next();
            assert!(!iter.valid());
            iter.status().unwrap();
        }
    }
}

#[test]
fn an_entry_that_has_changed_is_corruption_to_all_readers() {
    for kind in KINDS {
        for bytes in [1, 2, 4, 8] {
            let table = table(kind.clone(), bytes);
            table.add(1, ValueType::Value, b"a", b"one");
            flips::flip_next();
            table.add(2, ValueType::Value, b"b", b"two");
            assert_eq!(get(&table, b"a").unwrap().unwrap(), b"one");
            let error = get(&table, b"b").unwrap_err();
            assert!(error.is_corruption() && error.to_string().contains("entry of b "), "{error}");
            let mut iter = table.iter();
            iter.seek_to_first();
            assert!(iter.valid());
            iter.next();
            assert!(!iter.valid() && iter.status().unwrap_err().is_corruption());
            iter.seek_to_last();
            assert!(!iter.valid() && iter.status().is_err());
            iter.seek_to_first();
            assert!(iter.valid() && iter.status().is_ok());
        }
    }
}

/// A checksum covers key, number and type, too.
#[test]
fn an_entry_in_the_place_of_another_is_corruption() {
    let protection = Protection::new(8, &Comparator::Bytewise).unwrap();
    let stored = protection.protect(&Entry { user_key: b"a", packed: 7, value: b"one" });
    assert_eq!(protection.check(b"a", 7, &stored).unwrap(), b"one");
    protection.check(b"b", 7, &stored).unwrap_err();
    protection.check(b"a", 8, &stored).unwrap_err();
    protection.check(b"a", 7, b"short").unwrap_err();
}
