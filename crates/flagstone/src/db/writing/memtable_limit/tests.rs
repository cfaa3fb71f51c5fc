use crate::cache::MemoryKind;
use crate::db::handle::Db;
use crate::db::memory::tests::{fill, opened};
use crate::db::statistics::Ticker;
use crate::options::{ColumnFamilyOptions, ReadOptions};

/// Eight families that are written to in turn: none is ever full, but all together have a limit.
#[test]
fn memtables_of_all_families_share_a_limit() {
    const LIMIT: u64 = 1 << 20;
    let db = opened(&[("db_write_buffer_size", "1m"), ("disable_auto_compactions", "true")]);
    let create = |name: u32| {
        db.create_column_family(&format!("{name}"), &ColumnFamilyOptions::default()).unwrap()
    };
    let families: Vec<_> = (0..8).map(create).collect();
    for key in 0u32..40_000 {
        // Some have ten times as much as others.
        let family = &families[(key % 80).saturating_sub(72) as usize];
        db.put_cf(family, key.to_be_bytes(), [key as u8; 100]).unwrap();
        if key % 200 == 0 {
            let usage = db.memory_usage();
            // A piece of memory for each that is written to may be in excess.
            assert!(usage.active_memtables + usage.immutable_memtables < LIMIT * 5 / 4, "{usage}");
        }
    }
    let flushes = db.statistics().get(Ticker::Flushes);
    assert!((8..2_000).contains(&flushes), "{flushes} flushes of some 5 MB");
    for key in 0u32..40_000 {
        let family = &families[(key % 80).saturating_sub(72) as usize];
        assert_eq!(db.get_cf(family, key.to_be_bytes()).unwrap().unwrap(), [key as u8; 100][..]);
    }
    // A WAL that holds more than the limit is replayed within it.
    db.set_db_options(&[("db_write_buffer_size", "0")]).unwrap();
    fill(&db, 0..20_000);
    assert!(db.memory_usage().active_memtables > 2 * LIMIT);
    let tables = db.live_files().len();
    let path = db.path().to_path_buf();
    let mut options = (*db.inner().context.settings.load_full()).clone();
    db.close().unwrap();
    drop(db);
    options.db_write_buffer_size = LIMIT;
    let db = Db::open(path, &options).unwrap();
    let replayed = db.live_files().len() - tables;
    assert!((2..20).contains(&replayed), "{replayed} tables of what was replayed");
    assert!(db.get(19_999u32.to_be_bytes()).unwrap().is_some());
}

/// They were in no account: neither did writers wait for the flush of memtables full of them, nor
/// did an opening flush any.
#[test]
fn range_deletions_are_within_the_limit() {
    const LIMIT: u64 = 1 << 20;
    let db = opened(&[("disable_auto_compactions", "true")]);
    for at in 0..12_000u32 {
        let start = [&at.to_be_bytes()[..], &[0; 60]].concat();
        db.delete_range(&start, [&start[..], b"end"].concat()).unwrap();
    }
    let usage = db.memory_usage();
    let held = db.inner().tables.account().held(MemoryKind::Memtables) as u64;
    assert!(
        held > 3 * LIMIT && (usage.active_memtables, usage.kept_memtables) == (held, 0),
        "{held}, {usage}"
    );
    let path = db.path().to_path_buf();
    let mut options = (*db.inner().context.settings.load_full()).clone();
    db.close().unwrap();
    drop(db);
    options.db_write_buffer_size = LIMIT;
    let db = Db::open(path, &options).unwrap();
    let replayed = db.live_files().len();
    assert!((2..20).contains(&replayed), "{replayed} tables of what was replayed");

    db.flush_all().unwrap();
    db.inner().wait_until_idle().unwrap();
    assert!(db.inner().tables.account().held(MemoryKind::Memtables) < 100_000);
}

/// What an iterator had kept once let the limit of those written to rise by as much, and it stayed
/// there when it was gone.
#[test]
fn what_readers_kept_leaves_no_room_for_more() {
    const LIMIT: u64 = 1 << 20;
    let db = opened(&[("db_write_buffer_size", "1m"), ("disable_auto_compactions", "true")]);
    let mut kept = Vec::new();
    for round in 0..8 {
        fill(&db, round * 2_000..(round + 1) * 2_000);
        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        kept.push(iter);
        db.flush_all().unwrap();
    }
    let usage = db.memory_usage();
    assert!(usage.kept_memtables > LIMIT, "{usage}");
    // The flush looks once more at what there is when it has said that it is done.
    db.inner().wait_until_idle().unwrap();
    drop(kept);
    for key in 0..20_000 {
        fill(&db, key..key + 1);
        if key % 100 == 0 {
            let usage = db.memory_usage();
            assert!(usage.active_memtables < LIMIT * 3 / 4, "{usage}");
        }
    }
}

/// An empty memtable has memory, too: many of them took all of the limit, and every single write
/// was flushed.
#[test]
fn families_that_nobody_writes_to_take_nothing_of_the_limit() {
    let db = opened(&[("db_write_buffer_size", "1m"), ("disable_auto_compactions", "true")]);
    for name in 0..600 {
        db.create_column_family(&format!("{name}"), &ColumnFamilyOptions::default()).unwrap();
    }
    assert!(db.memory_usage().active_memtables > 1 << 19);
    fill(&db, 0..500);
    assert_eq!(db.statistics().get(Ticker::Flushes), 0);
}
