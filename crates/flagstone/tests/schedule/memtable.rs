//! The memtable's indexes: one or two writers, readers without a lock. Nodes of the B+tree are
//! small in this build, so that a few dozen entries make three levels.

use std::ops::ControlFlow;
use std::sync::Arc;

use flagstone::base::{
    Comparator, InternalIterator, InternalKeyBuf, InternalKeyComparator, PrefixExtractor,
    SequenceNumber, ValueType,
};
use flagstone::memtable::{
    ArenaPool, MemTable, MemTableFilterSettings, MemTableIterator, MemTableKind, MemTableSettings,
    RangeLook,
};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::explore::explore;
use crate::world::{join, thread};

/// How many entries are written.
const TOTAL: u64 = 22;

/// The key of the nth write; its value is the same bytes, so that a torn entry shows.
type KeyMaker = fn(u64) -> Vec<u8>;

fn scattered(n: u64) -> Vec<u8> {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec()
}

fn long_prefix(n: u64) -> Vec<u8> {
    format!("a long and common prefix {:04}", n * 7 % 1000).into_bytes()
}

fn ascending(n: u64) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

fn descending(n: u64) -> Vec<u8> {
    format!("{:08}", 1000 - n).into_bytes()
}

/// Two user keys with many versions each.
fn hot(n: u64) -> Vec<u8> {
    format!("hot {}", n % 2).into_bytes()
}

struct Shared {
    table: MemTable,
    key: KeyMaker,
    /// Which writes are over.
    over: Vec<AtomicBool>,
    /// The last of those up to which all are.
    published: AtomicU64,
}

impl Shared {
    fn new(table: MemTable, key: KeyMaker) -> Arc<Self> {
        let over = (0..=TOTAL).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Self { table, key, over, published: AtomicU64::new(0) })
    }

    /// Writes one entry, and publishes it once those before it are.
    fn write(&self, sequence: u64) {
        let key = (self.key)(sequence);
        self.table.add(sequence, ValueType::Value, &key, &key);
        self.over[sequence as usize].store(true, Ordering::SeqCst);
        loop {
            let next = self.published.load(Ordering::SeqCst) + 1;
            if !self.over.get(next as usize).is_some_and(|over| over.load(Ordering::SeqCst)) {
                return;
            }
            let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
            let _ = self.published.compare_exchange(next - 1, next, success, failure);
        }
    }
}

fn story(kind: MemTableKind, key: KeyMaker) {
    let pool = Arc::new(ArenaPool::new(1 << 16));
    let mut settings =
        MemTableSettings { kind, arena_block_size: 4096, arena_pool: Some(pool), filter: None };
    // The second lies in the memory of the first.
    for filter in
        [None, Some(MemTableFilterSettings { bytes: 64, whole_keys: true, prefixes: None })]
    {
        settings.filter = filter;
        let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
        let shared = Shared::new(table, key);
        let (searching, walking) = (shared.clone(), shared.clone());
        let readers = vec![thread(move || search(&searching)), thread(move || walk(&walking))];
        (1..=TOTAL).for_each(|sequence| shared.write(sequence));
        join(readers);
    }
}

/// Two writers take turns at the numbers, and need not keep to them; one thread reads. In the end
/// everything is there.
fn story_of_writers(kind: MemTableKind, key: KeyMaker) {
    let settings =
        MemTableSettings { kind, arena_block_size: 4096, arena_pool: None, filter: None };
    let table = MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings);
    let shared = Shared::new(table, key);
    let (other, reading) = (shared.clone(), shared.clone());
    let threads = vec![
        thread(move || (1..=TOTAL).step_by(2).for_each(|sequence| other.write(sequence))),
        thread(move || {
            search(&reading);
            walk(&reading);
        }),
    ];
    (2..=TOTAL).step_by(2).for_each(|sequence| shared.write(sequence));
    join(threads);
    walk(&shared);
    for n in 1..=TOTAL {
        let mut found = None;
        shared.table.get(&key(n), n, |sequence, _, value| {
            found = Some((sequence, value.to_vec()));
            ControlFlow::Break(())
        });
        assert_eq!(found, Some((n, key(n))), "{n} at the end");
    }
    assert_eq!(shared.table.num_entries(), TOTAL);
    assert_eq!(shared.table.first_sequence(), Some(1));
    assert_eq!(shared.table.largest_sequence(), Some(TOTAL));
}

/// Everything published is found, by lookups and by both kinds of seek.
fn search(shared: &Shared) {
    for round in 1..=4 {
        let last = shared.published.load(Ordering::Acquire);
        let mut cursor = shared.table.iter();
        let Some(n) = (last * round / 4).checked_sub(1).map(|n| n + 1) else { continue };
        let key = (shared.key)(n);
        // The newest that was published when the reader began, or one that came after it.
        let newest = (n..=last).rev().find(|&other| (shared.key)(other) == key).expect("n itself");
        let mut found = None;
        shared.table.get(&key, last, |sequence, kind, value| {
            found = Some((sequence, kind, value.to_vec()));
            ControlFlow::Break(())
        });
        assert_eq!(found, Some((newest, ValueType::Value, key.clone())), "{n} of {last}");
        cursor.seek(InternalKeyBuf::for_seek(&key, last).as_key());
        assert_eq!(at(&cursor), (&key[..], newest), "seek to {n} of {last}");
        cursor.seek_for_prev(InternalKeyBuf::new(&key, n, ValueType::Value).as_key());
        assert_eq!(at(&cursor), (&key[..], n), "seek back to {n} of {last}");
    }
}

/// A walk in either direction is ordered, whole, and meets everything published before it began.
fn walk(shared: &Shared) {
    for forward in [true, false, true] {
        let last = shared.published.load(Ordering::Acquire);
        let mut cursor = shared.table.iter();
        if forward {
            cursor.seek_to_first()
        } else {
            cursor.seek_to_last()
        }
        let (mut met, mut before) = (0, None::<InternalKeyBuf>);
        while cursor.valid() {
            let key = cursor.key();
            assert_eq!(key.user_key(), cursor.value(), "a torn entry");
            met += u64::from(key.sequence() <= last);
            if let Some(before) = &before {
                let order = shared.table.comparator().compare(before.as_key(), key);
                let is_sorted = if forward { order.is_lt() } else { order.is_gt() };
                assert!(is_sorted, "entries out of order: {before:?} {key:?}");
            }
            before.get_or_insert_with(|| key.to_buf()).set_from(key);
            if forward { cursor.next() } else { cursor.prev() }
        }
        assert_eq!(met, last, "entries published before a walk (forward: {forward})");
    }
}

fn at(cursor: &MemTableIterator) -> (&[u8], SequenceNumber) {
    assert!(cursor.valid(), "what was published is there");
    (cursor.key().user_key(), cursor.key().sequence())
}

#[test]
fn btree_scattered() {
    explore("memtable::btree_scattered", 300, || story(MemTableKind::BTree, scattered));
}

#[test]
fn btree_long_prefix() {
    explore("memtable::btree_long_prefix", 300, || story(MemTableKind::BTree, long_prefix));
}

#[test]
fn btree_ascending() {
    explore("memtable::btree_ascending", 300, || story(MemTableKind::BTree, ascending));
}

#[test]
fn btree_descending() {
    explore("memtable::btree_descending", 300, || story(MemTableKind::BTree, descending));
}

#[test]
fn btree_hot() {
    explore("memtable::btree_hot", 300, || story(MemTableKind::BTree, hot));
}

#[test]
fn btree_writers_scattered() {
    explore("memtable::btree_writers_scattered", 600, || {
        story_of_writers(MemTableKind::BTree, scattered);
    });
}

#[test]
fn btree_writers_long_prefix() {
    explore("memtable::btree_writers_long_prefix", 600, || {
        story_of_writers(MemTableKind::BTree, long_prefix);
    });
}

#[test]
fn btree_writers_ascending() {
    explore("memtable::btree_writers_ascending", 600, || {
        story_of_writers(MemTableKind::BTree, ascending);
    });
}

#[test]
fn btree_writers_descending() {
    explore("memtable::btree_writers_descending", 600, || {
        story_of_writers(MemTableKind::BTree, descending);
    });
}

#[test]
fn skiplist_writers_scattered() {
    explore("memtable::skiplist_writers_scattered", 300, || {
        story_of_writers(MemTableKind::SkipList, scattered);
    });
}

#[test]
fn skiplist_writers_ascending() {
    explore("memtable::skiplist_writers_ascending", 300, || {
        story_of_writers(MemTableKind::SkipList, ascending);
    });
}

#[test]
fn vector_writers_scattered() {
    explore("memtable::vector_writers_scattered", 300, || {
        story_of_writers(MemTableKind::Vector, scattered);
    });
}

#[test]
fn prefix_hash_writers_scattered() {
    explore("memtable::prefix_hash_writers_scattered", 300, || {
        story_of_writers(prefix_hash(), scattered);
    });
}

#[test]
fn skiplist_scattered() {
    explore("memtable::skiplist_scattered", 300, || story(MemTableKind::SkipList, scattered));
}

#[test]
fn skiplist_hot() {
    explore("memtable::skiplist_hot", 300, || story(MemTableKind::SkipList, hot));
}

#[test]
fn vector_scattered() {
    explore("memtable::vector_scattered", 300, || story(MemTableKind::Vector, scattered));
}

#[test]
fn vector_hot() {
    explore("memtable::vector_hot", 300, || story(MemTableKind::Vector, hot));
}

/// Each prefix in lists of its own.
fn prefix_hash() -> MemTableKind {
    MemTableKind::PrefixHash { extractor: PrefixExtractor::FixedPrefix(2), bucket_count: 4 }
}

#[test]
fn prefix_hash_scattered() {
    explore("memtable::prefix_hash_scattered", 300, || story(prefix_hash(), scattered));
}

#[test]
fn prefix_hash_ascending() {
    explore("memtable::prefix_hash_ascending", 300, || story(prefix_hash(), ascending));
}

#[test]
fn prefix_hash_hot() {
    explore("memtable::prefix_hash_hot", 300, || story(prefix_hash(), hot));
}

/// Range tombstones: a reader sees every deletion published before.
#[test]
fn range_deletes() {
    explore("memtable::range_deletes", 300, || {
        const DELETES: u64 = 6;
        let settings = MemTableSettings::default();
        let table =
            Arc::new(MemTable::new(InternalKeyComparator::new(Comparator::Bytewise), &settings));
        let published = Arc::new(AtomicU64::new(0));
        let readers = (0..2).map(|_| {
            let (table, published) = (table.clone(), published.clone());
            thread(move || {
                for _ in 0..DELETES {
                    let last = published.load(Ordering::Acquire);
                    for n in 1..=last {
                        let look = table.seek_range_tombstones(&[n as u8], last);
                        assert!(!matches!(look, RangeLook::Uncovered), "{n} of {last}");
                        let covering = table.covering_sequence(&[n as u8], last);
                        assert_eq!(covering, n, "{n} of {last}");
                    }
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        for n in 1..=DELETES {
            table.add_range_tombstone(n, &[n as u8], &[n as u8, 0]);
            published.store(n, Ordering::Release);
        }
        join(readers);
    });
}
