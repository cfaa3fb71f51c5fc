use super::*;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

fn settings(memory_budget: u64, db_write_buffer_size: u64) -> DbSettings {
    let memory_budget = match memory_budget {
        0 => MemoryBudget::None,
        bytes => MemoryBudget::Bytes(bytes),
    };
    DbSettings { memory_budget, db_write_buffer_size, ..DbSettings::default() }
}

#[test]
fn the_cache_has_what_others_leave() {
    const MIB: u64 = 1 << 20;
    let of = |bytes, read_only| BudgetRule::new(&settings(bytes, 0), read_only).now();
    let budget = of(96 * MIB, false).unwrap();
    assert_eq!(memtable_bytes_max(&settings(96 * MIB, 0)), Some(24 * MIB));
    let account = Arc::new(MemoryAccount::default());
    let cache = |budget: &Budget| budget.cache(&account) as u64 / MIB;
    assert_eq!(cache(&budget), 96 - 16 - 24 - 12);
    let _memtables = account.hold(MemoryKind::Memtables, 24 << 20);
    let _jobs = account.hold(MemoryKind::Jobs, 4 << 20);
    assert_eq!(cache(&budget), 44, "that is in it already");
    let _tables = account.hold(MemoryKind::Tables, 6 << 20);
    let _kept = account.hold(MemoryKind::Memtables, 10 << 20);
    assert_eq!(cache(&budget), 28);
    let read_only = of(96 * MIB, true).unwrap();
    assert_eq!(cache(&read_only), 36, "nobody writes, but these are held");
    let _wal = account.hold(MemoryKind::WalBuffers, 1 << 20);
    let _write = account.hold(MemoryKind::Writes, 2 << 20);
    assert_eq!(cache(&budget), 28, "no more than always passes through");
    let _value = account.hold(MemoryKind::Values, 8 << 20);
    assert_eq!(cache(&budget), 20);
    let _more = account.hold(MemoryKind::Tables, 90 << 20);
    assert_eq!(cache(&budget), 3, "never nothing");
    let shares = |second_tier, blobs| {
        let shares = budget.caches(&account, &CachesWanted { blocks: None, second_tier, blobs });
        [shares.blocks, shares.second_tier, shares.blobs]
    };
    let few = CachesWanted { blocks: Some(7), second_tier: 0, blobs: 0 };
    assert_eq!(budget.caches(&account, &few).blocks, 7, "no more than was asked for");
    assert_eq!(shares(1 << 20, 0), [2 << 20, 1 << 20, 0]);
    assert_eq!(shares(usize::MAX, 0), [3 << 18, 9 << 18, 0]);
    assert_eq!(shares(0, 2 << 20), [1 << 20, 0, 2 << 20]);
    assert_eq!(shares(1 << 22, 1 << 21), [3 << 18, 6 << 18, 3 << 18]);
}

/// The memtables kept to the new size, and the cache went on leaving them the former one.
#[test]
fn the_caches_follow_what_memtables_are_given_later() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set("memory_budget", "64m").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let capacity = || db.inner().tables.caches().blocks().capacity() >> 20;
    let before = capacity();
    db.set_db_options(&[("db_write_buffer_size", "4m")]).unwrap();
    assert_eq!(capacity(), before + 12, "a quarter was for memtables");
    db.set_db_options(&[("db_write_buffer_size", "0")]).unwrap();
    assert_eq!(capacity(), before);
}

/// A quarter of the budget was kept for the next memtable while iterators or tables took more than
/// there was.
#[test]
fn nothing_is_kept_for_the_next_memtable_where_others_leave_nothing() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set("memory_budget", "64m").unwrap();
    let db = Db::open("/db", &options).unwrap();
    (0..6_000u32).for_each(|key| db.put(key.to_be_bytes(), [7; 1_000]).unwrap());
    db.flush_all().unwrap();
    db.inner().wait_until_idle().unwrap();
    let recycled = || db.memory_usage().recycled_arenas;
    assert!(recycled() > 1 << 20);
    let account = db.inner().tables.account();
    let others = account.hold(MemoryKind::Tables, 10 << 20);
    assert!(recycled() > 1 << 20, "there is room for all");
    let more = account.hold(MemoryKind::Cursors, 54 << 20);
    assert_eq!(recycled(), 0);
    drop((others, more));
}

#[test]
fn other_options_keep_within_it() {
    assert_eq!(memtable_bytes_max(&settings(64 << 20, 8 << 20)), Some(8 << 20));
    assert_eq!(memtable_bytes_max(&settings(64 << 20, 1 << 30)), Some(32 << 20));
    assert_eq!(memtable_bytes_max(&settings(0, 7)), Some(7));
    assert_eq!(BudgetRule::new(&settings(0, 7), false).now(), None);
    assert_eq!(memtable_bytes_max(&settings(0, 0)), None);
}
