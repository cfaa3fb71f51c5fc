use crate::compaction::pick::Overwriting;
use crate::db::handle::Db;
use crate::db::jobs::overwriting;
use crate::env::Env;
use crate::options::Options;

/// A database that was only ever added to was overwritten as fast as memory let it: half of its
/// room was gone before the first merge told that there was anything to collect.
#[test]
fn the_first_flush_of_overwrites_tells_that_keys_are_overwritten() {
    tells_what_is_overwritten(20_000);
}

/// Values that lie in the memtable until they are flushed were not looked at: a load of 1 KiB took
/// 1.6 times its space before anybody was delayed.
#[test]
fn so_does_one_that_moves_small_values_to_a_blob_file() {
    tells_what_is_overwritten(1000);
}

/// What a flush found was not told to those who work out what writers may do: whoever did so for
/// another reason, before the flush was done, held an invariant for broken (a debug build panicked,
/// with the state lock held).
#[test]
fn what_a_flush_finds_is_told_at_once() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let settings =
        [("create_if_missing", "true"), ("enable_blob_files", "true"), ("min_blob_size", "1000")];
    settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    let db = Db::open("/db", &options).unwrap();
    let put = || (0..16).for_each(|key: u32| db.put(key.to_string(), [7; 2000]).unwrap());
    put();
    db.flush_all().unwrap();
    put();
    let (inner, family) = (db.inner(), &db.default_column_family().0);
    let memtable = family.current.load().mem.clone();
    overwriting::sample_overwrites(&inner.jobs, family, &[memtable]);
    let mut state = inner.tree.lock();
    inner.tree.update_stall(&mut state);
    assert!(state.agenda.pressures.is_felt(family.id));
}

fn tells_what_is_overwritten(value_size: usize) {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let settings = [
        ("create_if_missing", "true"),
        ("enable_blob_files", "true"),
        ("min_blob_size", "1000"),
        ("disable_auto_compactions", "true"),
    ];
    settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    let db = Db::open("/db", &options).unwrap();
    let put = |keys: std::ops::Range<u32>| {
        keys.for_each(|key| db.put(format!("key{key:03}"), vec![7; value_size]).unwrap());
        db.flush_all().unwrap();
        let state = db.inner().tree.lock();
        state.families.values().next().unwrap().overwriting
    };
    let seen = |share| {
        let mut seen = Overwriting::default();
        seen.note_share(share);
        seen
    };
    assert_eq!(put(0..16), seen(0.0));
    assert_eq!(put(100..164), seen(0.0), "beside them");
    assert_eq!(put(0..16), seen(1.0));
    assert_eq!(put(200..216), seen(0.5), "it is believed by halves that there are no more");
}
