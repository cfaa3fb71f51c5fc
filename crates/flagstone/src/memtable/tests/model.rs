//! What a memtable must hold.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::super::*;
use crate::base::{
    InternalIterator, InternalKeyBuf, InternalKeyComparator, SequenceNumber, ValueType,
};

pub(super) type Version = (SequenceNumber, ValueType, Vec<u8>);

pub(super) fn versions(table: &MemTable, key: &[u8], snapshot: SequenceNumber) -> Vec<Version> {
    let mut seen = Vec::new();
    table
        .get(key, snapshot, |sequence, value_type, value| {
            seen.push((sequence, value_type, value.to_vec()));
            ControlFlow::Continue(())
        })
        .expect("no checksums");
    seen
}

/// Keys, newest first within one.
pub(super) type ModelKey = (Vec<u8>, std::cmp::Reverse<SequenceNumber>);

#[derive(Default)]
pub(super) struct Model(pub(super) BTreeMap<ModelKey, Content>);

#[derive(Clone)]
pub(super) struct Content {
    value_type: ValueType,
    value: Vec<u8>,
}

impl Model {
    pub(super) fn insert(
        &mut self,
        key: Vec<u8>,
        sequence: SequenceNumber,
        value_type: ValueType,
        value: Vec<u8>,
    ) {
        self.0.insert((key, std::cmp::Reverse(sequence)), Content { value_type, value });
    }

    pub(super) fn sorted(&self, order: &InternalKeyComparator) -> Vec<(InternalKeyBuf, Vec<u8>)> {
        let entries = self.0.iter().map(|((key, sequence), content)| {
            (InternalKeyBuf::new(key, sequence.0, content.value_type), content.value.clone())
        });
        let mut all: Vec<_> = entries.collect();
        all.sort_by(|a, b| order.compare(a.0.as_key(), b.0.as_key()));
        all
    }

    pub(super) fn versions(&self, key: &[u8], snapshot: SequenceNumber) -> Vec<Version> {
        let from = (key.to_vec(), std::cmp::Reverse(snapshot));
        let to = (key.to_vec(), std::cmp::Reverse(0));
        let found = self.0.range(from..=to);
        found
            .map(|((_, sequence), content)| (sequence.0, content.value_type, content.value.clone()))
            .collect()
    }
}

pub(super) fn fill(
    table: &MemTable,
    keys: impl Fn(&mut fastrand::Rng) -> Vec<u8>,
    count: u64,
    seed: u64,
) -> Model {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    for sequence in 1..=count {
        let key = keys(&mut random);
        let value_type =
            random.choice([ValueType::Value, ValueType::Deletion, ValueType::Merge]).unwrap();
        let value = if value_type == ValueType::Deletion {
            vec![]
        } else {
            vec![random.u8(..); random.usize(..40)]
        };
        table.add(sequence, value_type, &key, &value);
        model.insert(key, sequence, value_type, value);
    }
    model
}

pub(super) fn assert_same(cursor: &MemTableIterator, expected: Option<&(InternalKeyBuf, Vec<u8>)>) {
    let found = cursor.valid().then(|| (cursor.key().to_buf(), cursor.value().to_vec()));
    assert_eq!(found.as_ref(), expected);
}

/// Walks, seeks and looks up everything, and compares with the model.
pub(super) fn check_against(
    table: &MemTable,
    model: &Model,
    probes: &[Vec<u8>],
    last: SequenceNumber,
) {
    let sorted = model.sorted(table.comparator());
    let mut cursor = table.iter();
    cursor.seek_to_first();
    for entry in &sorted {
        assert_same(&cursor, Some(entry));
        cursor.next();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last();
    for entry in sorted.iter().rev() {
        assert_same(&cursor, Some(entry));
        cursor.prev();
    }
    assert!(!cursor.valid());
    let mut random = fastrand::Rng::with_seed(7);
    for probe in probes {
        let snapshot = random.u64(0..=last + 1);
        assert_eq!(
            versions(table, probe, snapshot),
            model.versions(probe, snapshot),
            "{probe:?}@{snapshot}"
        );
        let target = InternalKeyBuf::for_seek(probe, snapshot);
        let order = |entry: &(InternalKeyBuf, Vec<u8>)| {
            table.comparator().compare(entry.0.as_key(), target.as_key())
        };
        let at = sorted.partition_point(|entry| order(entry).is_lt());
        cursor.seek(target.as_key());
        assert_same(&cursor, sorted.get(at));
        if cursor.valid() {
            cursor.next();
            assert_same(&cursor, sorted.get(at + 1));
        }
        cursor.seek_for_prev(target.as_key());
        assert_same(&cursor, at.checked_sub(1).map(|before| &sorted[before]));
        if let Some(entry) = sorted.get(at) {
            cursor.seek_for_prev(entry.0.as_key());
            assert_same(&cursor, Some(entry));
            cursor.prev();
            assert_same(&cursor, at.checked_sub(1).map(|before| &sorted[before]));
        }
    }
}
