//! What every kind of memtable must do, and what happens when it is read while it is written.
//!
//! - `model`: what a memtable must hold, and comparisons with it
//! - `conformance`: stories that each kind lives in each order
//! - `concurrent`: readers while one or several write
//! - `filters`: what the filter over a memtable spares
//! - `measure`: nanoseconds, by hand

mod concurrent;
mod conformance;
mod filters;
mod measure;
mod model;

use std::sync::Arc;

use super::*;
use crate::base::{Comparator, InternalKeyComparator, PrefixExtractor, UserComparator};

/// All kinds; the prefixes are found in different ways.
fn kinds() -> Vec<MemTableKind> {
    let prefix_hash =
        |extractor, bucket_count| MemTableKind::PrefixHash { extractor, bucket_count };
    vec![
        MemTableKind::BTree,
        MemTableKind::SkipList,
        MemTableKind::Vector,
        prefix_hash(PrefixExtractor::FixedPrefix(2), 1 << 10),
        // Few buckets: many prefixes in one list.
        prefix_hash(PrefixExtractor::CappedPrefix(9), 4),
    ]
}

/// Orders by length, then bytes: no number of leading bytes may be trusted.
struct ByLength;

impl UserComparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

fn comparators() -> [Comparator; 3] {
    [Comparator::Bytewise, Comparator::ReverseBytewise, Comparator::Custom(Arc::new(ByLength))]
}

/// None, and a filter that is nearly full of ones after some hundred entries.
fn filters() -> [Option<MemTableFilterSettings>; 2] {
    let prefixes = Some(PrefixExtractor::FixedPrefix(2));
    [None, Some(MemTableFilterSettings { bytes: 256, whole_keys: true, prefixes })]
}

fn new_table(
    kind: MemTableKind,
    comparator: Comparator,
    filter: Option<MemTableFilterSettings>,
) -> MemTable {
    let settings = MemTableSettings { kind, filter, ..MemTableSettings::default() };
    MemTable::new(InternalKeyComparator::new(comparator), &settings)
}

/// A memtable of each kind in each order, with each filter. Miri, which takes seconds for each,
/// gets none that differs from another in safe code alone: no filter, and one of the orders in
/// which leading bytes say nothing.
fn each_table(check: impl Fn(MemTable)) {
    let [bytewise, reverse, custom] = comparators();
    let [none, some] = filters();
    let (orders, filters) = if cfg!(miri) {
        (vec![bytewise, custom], vec![none])
    } else {
        (vec![bytewise, reverse, custom], vec![none, some])
    };
    for kind in kinds() {
        for order in &orders {
            if kind == MemTableKind::BTree && !order.is_bytewise() {
                // It would be a skip list once more.
                continue;
            }
            filters
                .iter()
                .for_each(|filter| check(new_table(kind.clone(), order.clone(), filter.clone())));
        }
    }
}
