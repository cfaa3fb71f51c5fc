//! Filters of different sizes on different levels.

use crate::base::KeyBuffer;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{CompactFilesOptions, CompactRangeOptions, Options};
use crate::sst::{LookupKey, ReadSettings};

const KEYS: u32 = 10_000;

fn key(number: u32) -> [u8; 4] {
    // Neighbours lie far from each other, so that tables of any of them cover the same keys.
    number.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

fn opened(policy: &str, bits: &str) -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    for (name, value) in [
        ("filter_policy", policy),
        ("filter_bits_per_level", bits),
        ("disable_auto_compactions", "true"),
        ("level_compaction_dynamic_level_bytes", "false"),
    ] {
        options.set(name, value).unwrap();
    }
    Db::open("/db", &options).unwrap()
}

/// Writes one table to this level, of keys that no other has.
fn write_to(db: &Db, level: usize) {
    (0..KEYS).for_each(|number| db.put(key(level as u32 * KEYS + number), [7; 20]).unwrap());
    db.flush_all().unwrap();
    if level > 0 {
        let newest = db.live_files().iter().map(|file| file.number).max().unwrap();
        let options = CompactFilesOptions::default();
        db.compact_files(db.default_column_family(), &[newest], level, &options).unwrap();
    }
}

/// For each level that has a table: how many of as many keys, which it does not have, its filter
/// admits, and the bytes of that.
fn false_positives(db: &Db) -> Vec<(usize, u32, u64)> {
    let (inner, family) = (db.inner(), &db.default_column_family().0);
    let version = family.current.load().version.clone();
    let levels = version.files().map(|(level, file)| {
        let table = inner.tables.open(family, file).unwrap();
        let admits = |&number: &u32| {
            let target = KeyBuffer::for_seek(&key(1_000_000 + number), 1 << 50);
            table
                .admit(&LookupKey::new(target.as_key()), &ReadSettings::default(), false)
                .unwrap()
                .is_some()
        };
        let admitted = (0..KEYS).filter(admits).count();
        (level, admitted as u32, table.properties().filter_size)
    });
    levels.collect()
}

#[test]
fn filters_are_as_large_as_their_level_wants_them() {
    for (policy, smaller) in [("bloomfilter:10", 1.0), ("ribbonfilter:10:-1", 0.75)] {
        let db = opened(policy, "14:10:6:0");
        [4, 3, 2, 1, 0].into_iter().for_each(|level| write_to(&db, level));
        let found = false_positives(&db);
        let levels: Vec<_> = found.iter().map(|(level, ..)| *level).collect();
        assert_eq!(levels, [0, 1, 2, 3, 4], "{found:?}");
        let expected = [(14.0, 0.0018), (10.0, 0.0095), (6.0, 0.06)];
        for ((level, admitted, bytes), (bits, rate)) in found.iter().zip(expected) {
            let (admitted, rate) = (f64::from(*admitted), rate * f64::from(KEYS));
            assert!(
                (rate * 0.5..rate * 1.5 + 5.0).contains(&admitted),
                "{policy} level {level}: {found:?}"
            );
            let wanted = bits / 8.0 * f64::from(KEYS) * smaller;
            assert!(
                (wanted * 0.85..wanted * 1.1).contains(&(*bytes as f64)),
                "{policy} level {level}: {found:?}"
            );
        }
        let absent = (KEYS, 0);
        assert_eq!(
            found[3..].iter().map(|found| (found.1, found.2)).collect::<Vec<_>>(),
            [absent; 2]
        );
        for level in 0..5 {
            assert!(db.get(key(level * KEYS + 17)).unwrap().is_some());
        }

        // One that moves as it is keeps what it has; one that is rewritten does not.
        let family = db.default_column_family();
        let whole =
            CompactRangeOptions { change_level: true, target_level: 5, ..Default::default() };
        db.compact_range(family, None, None, &whole).unwrap();
        assert_eq!(false_positives(&db).iter().map(|found| found.2).collect::<Vec<_>>(), [0]);
        db.set_options(family, &[("filter_bits_per_level", "")]).unwrap();
        write_to(&db, 0);
        assert!(false_positives(&db)[0].1 > 20, "as the policy says");
    }
}

#[test]
fn a_table_that_moves_keeps_its_filter() {
    let db = opened("bloomfilter:10", "14:14:6");
    write_to(&db, 0);
    let before = false_positives(&db);
    let options = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &options).unwrap();
    let after = false_positives(&db);
    assert!(after[0].0 > 0 && before[0].2 == after[0].2, "{before:?} {after:?}");
}
