//! A random life of a database whose values expire, with a clock in hand.

#[path = "common/expiry.rs"]
mod expiry;

use std::collections::BTreeMap;
use std::sync::Arc;

use expiry::{compact, entries, world};
use flagstone::db::{TtlDb, TtlOptions};
use flagstone::env::Clock;
use flagstone::options::{Options, ReadOptions, WriteOptions};
use testkit::{CrashFs, compare, settings};

/// The process dies: what was written is there for the next one.
fn kill(db: &TtlDb, disk: &mut CrashFs, options: &mut Options) {
    db.base().sync_wal().expect("a sync");
    *disk = disk.kill();
    options.env.fs = Arc::new(disk.clone());
    // Whoever is dead cannot, but lets go of the lock.
    let _ = db.base().close();
}

/// A random life against a model: what lives, by the clock, is found, and nothing else, whatever was flushed, compacted,
/// killed and reopened meanwhile.
#[test]
fn a_life_agrees_with_a_model() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (env, clock) = world();
        let mut disk = CrashFs::new();
        let mut options = settings::random(&env.with_fs(Arc::new(disk.clone())), &mut random);
        // With an operator compactions ask what was merged onto a value before they drop it.
        let merges = seed % 2 == 1;
        options.cf.merge_operator = None;
        if merges {
            options.set("merge_operator", "stringappend").unwrap();
        }
        let ttl = random.u64(5..40);
        let mut db = TtlDb::open("/db", &options, TtlOptions::strict(ttl)).unwrap();
        let mut model: BTreeMap<String, (String, u64)> = BTreeMap::new();
        for step in 0..400 {
            let family = db.base().default_column_family().clone();
            let key = format!("{:02}", random.u32(..if merges { 10 } else { 60 }));
            let value = format!("{step}-").repeat(random.usize(1..60));
            let now = clock.unix_seconds();
            match random.u32(..100) {
                10..58 if merges => {
                    db.merge_cf(&family, &key, &value).unwrap();
                    let before = model.remove(&key).filter(|(_, expiry)| *expiry >= now);
                    let merged = before.map_or(value.clone(), |(before, _)| format!("{before},{value}"));
                    model.insert(key, (merged, now + ttl));
                }
                0..45 => {
                    db.put(&key, &value).unwrap();
                    model.insert(key, (value, now + ttl));
                }
                45..60 => {
                    let expiry = now + random.u64(..60);
                    db.put_until(&WriteOptions::default(), &family, &key, &value, expiry).unwrap();
                    model.insert(key, (value, expiry));
                }
                60..70 => {
                    db.delete_cf(&family, &key).unwrap();
                    model.remove(&key);
                }
                70..85 => clock.advance(random.u64(1..4)),
                85..90 => db.base().flush_all().unwrap(),
                90..92 => compact(&db),
                92..94 => {
                    match random.bool() {
                        true => db.base().close().unwrap(),
                        false => kill(&db, &mut disk, &mut options),
                    }
                    drop(db);
                    db = TtlDb::open("/db", &options, TtlOptions::strict(ttl)).unwrap();
                }
                _ => {
                    let expected = model.get(&key).filter(|(_, expiry)| *expiry >= now);
                    let found = db.get_with_expiry(&ReadOptions::default(), &family, &key).unwrap();
                    let found = found.map(|found| (found.value.into_vec(), found.expiry));
                    assert_eq!(found, expected.map(|(value, expiry)| (value.clone().into(), Some(*expiry))));
                }
            }
            if step % 40 == 39 {
                let now = clock.unix_seconds();
                let living = model.iter().filter(|(_, (_, expiry))| *expiry >= now);
                let expected: Vec<_> = living.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
                assert_eq!(entries(&db), expected, "seed {seed}, step {step}");
            }
        }
        compare::check_files(db.base());
    }
}
