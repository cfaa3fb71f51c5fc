//! Orders of keys in which keys of other bytes are the same.

use super::*;

/// Letters of either case are the same. It says that it is the order of bytes, which it is for keys
/// in one case.
struct AnyCase;

impl UserComparator for AnyCase {
    fn name(&self) -> &str {
        "leveldb.BytewiseComparator"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn keys_that_are_the_same_in_other_bytes_find_their_large_values() {
    // A record of a blob file had to be of the very bytes of the key that was looked up: under an
    // order of the application's in which others are the same, its value was corruption to lookups.
    // Where a merge met it, so it was to a compaction, which set the table aside.
    for mode in ["commit", "flush"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = Comparator::Custom(Arc::new(AnyCase));
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "100"),
            ("blob_commit_min_size", "100"),
        ];
        settings::set(&mut options, &blobs);
        settings::set(
            &mut options,
            &[("blob_write_mode", mode), ("merge_operator", "stringappend")],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let large = [b'v'; 100_000];
        ["Cat", "Dog"].iter().for_each(|key| db.put(key, large).expect("a write"));
        let found = |key| db.get(key).expect("a lookup").expect("it was written");
        for flush in [false, true] {
            if flush {
                db.flush_all().expect("a flush");
            }
            assert_eq!(found("cAT"), large, "{mode}, {flush}");
            let several = db.multi_get(&["CAT", "dog"]);
            assert!(
                several
                    .into_iter()
                    .all(|value| value.expect("a lookup").expect("a value") == large)
            );
            let (family, reading) = (db.default_column_family(), ReadOptions::default());
            let part = db.get_range(&reading, family, "CAT", 70_000..70_003).expect("a lookup");
            assert_eq!(part.expect("a value").bytes, b"vvv"[..]);
        }
        db.merge("DOG", "woof").expect("a write");
        let merged = [&large[..], b",woof"].concat();
        assert_eq!(found("dog"), merged, "{mode}");
        db.flush_all().expect("a flush");
        let family = db.default_column_family();
        db.compact_range(family, None, None, &CompactRangeOptions::default())
            .expect("a compaction");
        assert!(db.damaged_files().is_empty(), "{mode}");
        assert_eq!(found("dog"), merged, "{mode}");
    }
}

/// Keys are numbers.
struct LeadingZeros;

impl UserComparator for LeadingZeros {
    fn name(&self) -> &str {
        "LeadingZeros"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let digits =
            |key: &[u8]| key.iter().copied().skip_while(|digit| *digit == b'0').collect::<Vec<_>>();
        digits(a).cmp(&digits(b))
    }
}

#[test]
fn compactions_leave_large_values_to_the_bytes_of_their_own_keys() {
    // At the bottom an older version got the bytes of the key's newest one, which are not those in
    // the record of its value: a snapshot's scan could not read it any more, nor a salvage. And a
    // merge asked for the value by the operand's bytes, and had its compaction set the table aside
    // if there were more of them.
    let mut options = settings::tiny(&Env::memory());
    options.cf.comparator = Comparator::Custom(Arc::new(LeadingZeros));
    let changes = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("merge_operator", "stringappend"),
    ];
    settings::set(&mut options, &changes);
    let db = Db::open("/db", &options).expect("a new database");
    let large = vec![b'v'; 10_000];
    db.put("8", &large).expect("a write");
    let before = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    db.put("008", "small").expect("a write");
    db.put("7", &large).expect("a write");
    db.merge("007", "more").expect("a write");
    db.flush_all().expect("a flush");
    let family = db.default_column_family();
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(family, None, None, &everything).expect("a compaction");
    assert!(db.damaged_files().is_empty());
    assert_eq!(
        db.get("007").expect("a lookup").expect("it was merged"),
        [&large[..], b",more"].concat()
    );
    let then = testkit::compare::scan(&db, family, &before).expect("a scan");
    assert_eq!(then, [(b"8".to_vec(), large)]);
}

#[test]
fn a_salvage_leaves_large_values_to_the_bytes_of_their_own_keys() {
    // It asked for them by the bytes of the key's newest version: older ones, under merge operands
    // or in the place of one that is lost, came out as lost, too.
    let mut options = settings::tiny(&Env::memory());
    options.cf.comparator = Comparator::Custom(Arc::new(AnyCase));
    let blobs =
        [("enable_blob_files", "true"), ("min_blob_size", "100"), ("blob_commit_min_size", "100")];
    settings::set(&mut options, &blobs);
    settings::set(
        &mut options,
        &[("merge_operator", "stringappend"), ("disable_auto_compactions", "true")],
    );
    let db = Db::open("/db", &options).expect("a new database");
    let large = vec![b'v'; 10_000];
    ["cat", "Dog"].iter().for_each(|key| db.put(key, &large).expect("a write"));
    db.flush_all().expect("a flush");
    db.merge("CAT", "more").expect("a write");
    db.put("DOG", [b'w'; 10_000]).expect("a write");
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");
    let names = options.env.fs.list(Path::new("/db")).expect("a directory");
    let newest = names.iter().filter(|name| name.ends_with(".blob")).max().expect("there are two");
    options.env.fs.remove(&Path::new("/db").join(newest)).expect("a file");
    let families = [("default", options.cf.clone())];
    let report = salvage(Path::new("/db"), Path::new("/saved"), &options, &families, &mut |_| {})
        .expect("something is left");
    assert_eq!(report.lost_values.len(), 1, "{:?}", report.lost_values);
    let saved = Db::open("/saved", &options).expect("it opens");
    let found =
        testkit::compare::scan(&saved, saved.default_column_family(), &ReadOptions::default());
    let merged = [&large[..], b",more"].concat();
    assert_eq!(found.expect("a scan"), [(b"CAT".to_vec(), merged), (b"Dog".to_vec(), large)]);
}

#[test]
fn an_iterator_that_refreshes_itself_takes_its_step_whatever_bytes_its_key_has() {
    // It sought its key in the newer files and stepped on if it found those very bytes. Moving back
    // it stands on those of the oldest version; with that compacted away it found the others, and
    // stayed on its key, which a scan met twice.
    let mut options = settings::tiny(&Env::memory());
    options.cf.comparator = Comparator::Custom(Arc::new(AnyCase));
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    let db = Db::open("/db", &options).expect("a new database");
    let family = db.default_column_family();
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    let write = |letter: &str| {
        (100..200).for_each(|number| db.put(format!("{letter}{number}"), "v").expect("a write"));
        db.flush_all().expect("a flush");
    };
    write("k");
    // It looks for newer files every 32 steps.
    let rounds = (28..36).flat_map(|steps| [(steps, "K", false), (steps, "k", true)]);
    for (steps, letter, last_is_next) in rounds {
        write(letter);
        let reading = ReadOptions {
            snapshot: Some(db.snapshot()),
            auto_refresh_iterator_with_snapshot: true,
            ..ReadOptions::default()
        };
        let mut iter = db.iter(&reading).expect("an iterator");
        iter.seek_to_last();
        (0..steps).for_each(|_| iter.prev());
        db.compact_range(family, None, None, &everything).expect("a compaction");
        let expected = if last_is_next { 200 - steps } else { 198 - steps };
        if last_is_next {
            iter.next()
        } else {
            iter.prev()
        }
        let found = iter.key().escape_ascii().to_string().to_lowercase();
        assert_eq!(found, format!("k{expected}"), "{steps} steps, then next: {last_is_next}");
    }
}

#[test]
fn a_hash_of_bytes_hides_no_key_that_is_the_same_in_other_bytes() {
    // The hash index of a data block goes by bytes. Under such an order a lookup asked it all the
    // same, and missed keys that a scan showed. RocksDB writes none then.
    let any_case = Comparator::Custom(Arc::new(AnyCase));
    // Who finds such an index in a table, as another program has written it, does not ask it.
    for written_by in [any_case.clone(), Comparator::Bytewise] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = written_by;
        settings::set(&mut options, &[("table.data_block_index_type", "kDataBlockBinaryAndHash")]);
        let db = Db::open("/db", &options).expect("a new database");
        let key = |number: u32| format!("key{number:03}");
        (0..200).for_each(|number| db.put(key(number), "v").expect("a write"));
        db.flush_all().expect("a flush");
        db.close().expect("a clean close");
        options.cf.comparator = any_case.clone();
        let db = Db::open("/db", &options).expect("it is there");
        for number in 0..200 {
            let found = db.get(key(number).to_uppercase()).expect("a lookup");
            assert_eq!(found.expect("it was written"), b"v"[..], "{number}");
        }
    }
}

/// Spaces at the end of a key do not count.
struct AnyPadding;

impl UserComparator for AnyPadding {
    fn name(&self) -> &str {
        "AnyPadding"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.trim_ascii_end().cmp(b.trim_ascii_end())
    }
}

#[test]
fn keys_that_are_the_same_in_more_or_fewer_bytes_find_their_large_values() {
    // The record of a value was sought before it at the length of the key that was looked up: where
    // the key that it was written with has another, it was corruption.
    for mode in ["commit", "flush"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = Comparator::Custom(Arc::new(AnyPadding));
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "100"),
            ("blob_commit_min_size", "100"),
        ];
        settings::set(&mut options, &blobs);
        settings::set(
            &mut options,
            &[("blob_write_mode", mode), ("merge_operator", "stringappend")],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let large = [b'v'; 100_000];
        let (long, wide) = (format!("bird{}", " ".repeat(9_000)), format!("cat{}", " ".repeat(50)));
        ["ant", long.as_str(), "cat  ", "dog"]
            .iter()
            .for_each(|key| db.put(key, large).expect("a write"));
        let found = |key: &str| db.get(key).expect("a lookup").expect("it was written");
        let (family, unverified) = (
            db.default_column_family(),
            ReadOptions { verify_checksums: false, ..ReadOptions::default() },
        );
        for flush in [false, true] {
            if flush {
                db.flush_all().expect("a flush");
            }
            for key in ["ant    ", "bird", "bird ", "cat", wide.as_str(), "dog "] {
                assert_eq!(found(key), large, "{mode}, {flush}");
                for options in [&ReadOptions::default(), &unverified] {
                    let part =
                        db.get_range(options, family, key, 70_000..70_003).expect("a lookup");
                    assert_eq!(part.expect("a value").bytes, b"vvv"[..]);
                }
            }
            let several = db.multi_get(&["ant ", "bird  ", "cat"]);
            assert!(
                several
                    .into_iter()
                    .all(|value| value.expect("a lookup").expect("a value") == large)
            );
            assert_eq!(db.get("an").expect("a lookup"), None);
        }
        db.merge("dog ", "woof").expect("a write");
        let merged = [&large[..], b",woof"].concat();
        assert_eq!(found("dog  "), merged, "{mode}");
        let mut cursor = db.iter(&ReadOptions::default()).expect("an iterator");
        let mut values = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            values.push(cursor.value().expect("a value").to_vec());
            cursor.next();
        }
        assert_eq!(values, [&large[..], &large, &large, &merged], "{mode}");
    }
}

/// Keys are numbers of eight bytes each; of others it knows nothing.
struct LittleEndian;

impl UserComparator for LittleEndian {
    fn name(&self) -> &str {
        "LittleEndian"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let number =
            |key: &[u8]| u64::from_le_bytes(key.try_into().expect("a key of the application"));
        number(a).cmp(&number(b))
    }
}

#[test]
fn an_order_is_asked_about_the_applications_keys_alone() {
    // An iterator over range deletions began by comparing its first key with an empty one: an order
    // that reads eight bytes of each key panicked, or read beyond it.
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.comparator = Comparator::Custom(Arc::new(LittleEndian));
        settings::set(
            &mut options,
            &[("compaction_style", style), ("merge_operator", "stringappend")],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let family = db.default_column_family();
        let key = u64::to_le_bytes;
        for number in 0..2000 {
            db.put(key(number), [7; 50]).expect("a write");
        }
        for compact in [false, true] {
            db.delete_range(key(100), key(300)).expect("a write");
            db.merge(key(200), "back").expect("a write");
            db.delete(key(301)).expect("a write");
            let bounds = ReadOptions {
                iterate_lower_bound: Some(key(50).to_vec()),
                iterate_upper_bound: Some(key(1000).to_vec()),
                ..ReadOptions::default()
            };
            for reading in [ReadOptions::default(), bounds] {
                let mut cursor = db.iter(&reading).expect("an iterator");
                cursor.seek(key(99));
                let mut met = Vec::new();
                while cursor.valid() && met.len() < 4 {
                    met.push(u64::from_le_bytes(cursor.key().try_into().expect("eight bytes")));
                    cursor.next();
                }
                assert_eq!(met, [99, 200, 300, 302], "{style}");
                cursor.seek_for_prev(key(301));
                let mut met = Vec::new();
                while cursor.valid() && met.len() < 3 {
                    met.push(u64::from_le_bytes(cursor.key().try_into().expect("eight bytes")));
                    cursor.prev();
                }
                assert_eq!(met, [300, 200, 99], "{style}");
                cursor.seek_to_last();
                assert!(cursor.valid(), "{style}");
            }
            let found =
                [99, 100, 200].map(|number| db.get(key(number)).expect("a lookup").is_some());
            assert_eq!(found, [true, false, true], "{style}");
            db.flush_all().expect("a flush");
            if compact {
                let (from, to) = (key(10), key(1500));
                let whole = CompactRangeOptions::default();
                db.compact_range(family, Some(&from), Some(&to), &whole).expect("a compaction");
                db.compact_range(family, None, None, &whole).expect("a compaction");
            }
        }
    }
}
