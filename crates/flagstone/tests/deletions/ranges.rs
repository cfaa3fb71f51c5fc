//! What is asked of ranges of keys: to remove, to compact, to say how large they are.

use super::*;

#[test]
fn tables_within_a_range_are_removed() {
    for text in ["", "enable_blob_files=true;min_blob_size=10;blob_file_size=20000"] {
        let directory = temporary();
        let world = World::full(directory.path(), text, 100);
        let family = world.db.default_column_family();
        world.db.put(key(600), "new").unwrap();
        world.db.flush_all().unwrap();
        let (from, to) = (key(500), key(1500));
        let before = world.bytes();
        world.db.delete_files_in_ranges(family, &[(Some(&from), Some(&to))], false).unwrap();
        world.work();
        assert!(world.bytes() < before * 85 / 100, "{text}: {} of {before}", world.bytes());
        let left = world.keys();
        let within: Vec<_> = left.iter().filter(|key| **key >= from && **key < to).collect();
        assert!(within.len() < 700 && within.contains(&&key(600)), "{text}: {}", within.len());
        let outside = (0..500).chain(1500..KEYS).map(key);
        assert!(
            outside.filter(|key| !left.contains(key)).count() == 0,
            "{text}: nothing outside is touched"
        );
        world.db.delete_files_in_ranges(family, &[(None, None)], true).unwrap();
        assert_eq!(world.keys(), [key(600)], "{text}: level 0 stays");
        world.work();
        world.db.close().unwrap();
        check(directory.path(), &[key(600)]);
    }
}

/// A key may have its newest versions at the end of one table and older ones at the beginning of
/// the next. Where only the first lay within the range, it was dropped, and an older version was
/// seen again.
#[test]
fn tables_that_share_a_key_are_removed_together_or_not_at_all() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    let family = db.default_column_family();
    (0..10).for_each(|number| db.put(key(number), value(number, 1000)).unwrap());
    let versions = (100..115).map(|version| {
        db.put(key(10), value(version, 1000)).unwrap();
        (ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() }, version)
    });
    let versions: Vec<_> = versions.collect();
    (11..20).for_each(|number| db.put(key(number), value(number, 1000)).unwrap());
    let whole = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    // The first only moves the table.
    (0..2).for_each(|_| db.compact_range(family, None, None, &whole).unwrap());
    let files = db.live_files();
    let shared = |file: &&LiveFile| file.smallest == key(10);
    assert!(
        files.iter().filter(shared).count() > 1
            && files.iter().filter(shared).any(|file| file.largest > key(10))
    );

    db.delete_files_in_ranges(family, &[(None, Some(&key(10)))], true).unwrap();
    for (options, version) in &versions {
        assert_eq!(db.get_with(options, family, key(10)).unwrap().unwrap(), value(*version, 1000));
    }
    assert_eq!(db.get(key(10)).unwrap().unwrap(), value(114, 1000), "not an older one");

    db.delete_files_in_ranges(family, &[(None, Some(&key(19)))], true).unwrap();
    assert_eq!((db.live_files().len(), db.get(key(10)).unwrap()), (0, None));
    db.close().unwrap();
}

#[test]
fn what_is_suggested_is_compacted_when_there_is_time() {
    let directory = temporary();
    let world = World::full(directory.path(), "", 100);
    let family = world.db.default_column_family();
    for number in [7, 1700] {
        world.db.put(key(number), "new").unwrap();
        world.db.flush_all().unwrap();
    }
    world.work();
    let in_level0 = || world.db.live_files().iter().filter(|file| file.level == Some(0)).count();
    assert_eq!(in_level0(), 2);
    world.db.suggest_compact_range(family, Some(&key(1000)), None).unwrap();
    world.work();
    assert_eq!(in_level0(), 1);
    world.db.suggest_compact_range(family, None, None).unwrap();
    world.work();
    assert_eq!(in_level0(), 0);
}

#[test]
fn what_is_suggested_goes_on_where_it_is_moved() {
    let directory = temporary();
    let text = "level_compaction_dynamic_level_bytes=false";
    let world =
        World { options: options(text), db: Db::open(directory.path(), &options(text)).unwrap() };
    let family = world.db.default_column_family();
    world.db.put(key(1), "at the bottom").unwrap();
    let to_level3 =
        CompactRangeOptions { change_level: true, target_level: 3, ..Default::default() };
    world.db.compact_range(family, None, None, &to_level3).unwrap();
    world.db.put(key(2), "apart from it").unwrap();
    world.db.flush_all().unwrap();
    let places = || {
        let files = world.db.live_files();
        files.iter().map(|file| (file.number, file.level.unwrap())).collect::<BTreeMap<_, _>>()
    };
    let before = places();
    assert_eq!(before.values().copied().collect::<Vec<_>>(), [3, 0]);
    world.db.suggest_compact_range(family, None, None).unwrap();
    world.work();
    assert!(places().into_keys().eq(before.into_keys()), "nothing was rewritten");
    assert!(places().into_values().eq([3, 3]), "{:?}", places());
}

#[test]
fn sizes_are_about_right() {
    let directory = temporary();
    let world = World::full(directory.path(), "", 100);
    let family = world.db.default_column_family();
    let (files, both) = (
        SizeApproximationOptions::default(),
        SizeApproximationOptions {
            include_memtables: true,
            include_files: true,
            ..Default::default()
        },
    );
    let (first, middle, last) = (key(0), key(KEYS / 2), key(KEYS));
    let ranges: [(&[u8], &[u8]); 4] =
        [(&first, &last), (&first, &middle), (&middle, &last), (&last, &first)];
    let sizes = world.db.approximate_sizes(family, &ranges, &files).unwrap();
    let all = world.bytes();
    assert_eq!((sizes[0], sizes[3]), (all, 0));
    assert!(
        sizes[1..3].iter().all(|size| (all * 4 / 10..all * 6 / 10).contains(size)),
        "{sizes:?} of {all}"
    );
    for number in 0..500 {
        world.db.put(key(KEYS / 2 + number), value(number, 100)).unwrap();
    }
    let more = world.db.approximate_sizes(family, &ranges, &both).unwrap();
    assert_eq!(world.db.approximate_sizes(family, &ranges, &files).unwrap(), sizes);
    assert!((20_000..150_000).contains(&(more[2] - sizes[2])), "{more:?}, before {sizes:?}");
}
