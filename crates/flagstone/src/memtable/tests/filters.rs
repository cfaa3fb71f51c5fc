//! What the filter over a memtable spares, and what it must not.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::*;
use crate::base::{
    Comparator, InternalIterator, InternalKeyComparator, PrefixExtractor, UserComparator, ValueType,
};
use crate::cache::{MemoryAccount, MemoryKind};

/// As the bytes are ordered; counts how often two keys are compared.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl UserComparator for Counting {
    fn name(&self) -> &str {
        "test.Counting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        a.cmp(b)
    }
}

/// A memtable with every even key below 2000, and how many comparisons something costs.
struct World {
    table: MemTable,
    order: Arc<Counting>,
}

fn key(n: u32) -> Vec<u8> {
    format!("user{n:04}").into_bytes()
}

impl World {
    fn with(whole_keys: bool, prefixes: Option<PrefixExtractor>) -> Self {
        let order = Arc::new(Counting::default());
        let filter = Some(MemTableFilterSettings { bytes: 2000, whole_keys, prefixes });
        let settings = MemTableSettings { filter, ..MemTableSettings::default() };
        let comparator = InternalKeyComparator::new(Comparator::Custom(order.clone()));
        let table = MemTable::new(comparator, &settings);
        for n in (0..2000).step_by(2) {
            table.add(u64::from(n) + 1, ValueType::Value, &key(n), b"value");
        }
        Self { table, order }
    }

    fn compared(&self, action: impl FnOnce()) -> usize {
        let count = || self.order.0.load(std::sync::atomic::Ordering::Relaxed);
        let before = count();
        action();
        count() - before
    }

    fn finds(&self, key: &[u8]) -> bool {
        let mut found = false;
        self.table
            .get(key, u64::MAX, |_, _, _| {
                found = true;
                ControlFlow::Break(())
            })
            .expect("no checksums");
        found
    }
}

#[test]
fn absent_keys_are_ruled_out_and_present_ones_found() {
    let world = World::with(true, None);
    for n in 0..2000 {
        assert_eq!(world.finds(&key(n)), n % 2 == 0, "{n}");
    }
    let searched =
        (1..2000).step_by(2).filter(|n| world.compared(|| _ = world.finds(&key(*n))) > 0);
    // With sixteen bits a key, about one of a thousand.
    let searched = searched.count();
    assert!(searched < 10, "{searched} of 1000 absent keys were searched");
}

/// As in RocksDB: only where whole keys are not in the filter, a lookup asks for the prefix.
#[test]
fn without_whole_keys_lookups_ask_for_prefixes() {
    let world = World::with(false, Some(PrefixExtractor::FixedPrefix(6)));
    assert!(world.compared(|| assert!(!world.finds(b"user0001"))) > 0);
    assert_eq!(world.compared(|| assert!(!world.finds(b"user9999"))), 0);
    // Without prefix it is never ruled out.
    assert!(world.compared(|| assert!(!world.finds(b"user"))) > 0);
    assert!(world.finds(b"user0002"));
}

#[test]
fn a_cursor_asks_for_prefixes_only_while_it_is_confined() {
    let world = World::with(true, Some(PrefixExtractor::FixedPrefix(6)));
    let mut cursor = world.table.prefix_iter();
    let target = crate::base::InternalKeyBuf::for_seek(b"user3000", u64::MAX >> 8);
    let compared = world.compared(|| cursor.seek_for_prev(target.as_key()));
    assert!(cursor.valid() && cursor.key().user_key() == key(1998) && compared > 0);
    cursor.confine(true);
    assert_eq!(world.compared(|| cursor.seek_for_prev(target.as_key())), 0);
    assert!(!cursor.valid());
    // What was ruled out is no more when the next seek finds something, or goes elsewhere.
    cursor.seek_to_last();
    assert!(cursor.valid());
    cursor.seek(target.as_key());
    assert!(!cursor.valid());
    cursor.seek(crate::base::InternalKeyBuf::for_seek(&key(7), u64::MAX >> 8).as_key());
    assert!(cursor.valid() && cursor.key().user_key() == key(8));
}

#[test]
fn its_memory_is_the_memtables_from_the_first_entry_on() {
    let account = Arc::new(MemoryAccount::default());
    let arena_pool = Some(Arc::new(ArenaPool::accounted(0, account.clone())));
    let filter = Some(MemTableFilterSettings { bytes: 100_000, whole_keys: true, prefixes: None });
    let settings = MemTableSettings { filter, arena_pool, ..MemTableSettings::default() };
    let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
    assert!(table.memory_usage() < 10_000 && account.held(MemoryKind::Memtables) < 10_000);
    table.add(1, ValueType::Value, b"key", b"value");
    let whole_lines = 100_032;
    assert!(table.memory_usage() >= whole_lines && table.memory_reserved() >= table.memory_usage());
    assert_eq!(account.held(MemoryKind::Memtables), table.memory_reserved());
    drop(table);
    assert_eq!(account.held(MemoryKind::Memtables), 0);
}
