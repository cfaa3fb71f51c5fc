//! Values that are written and read in pieces.

use super::*;

#[test]
fn a_value_in_pieces_is_seen_when_it_is_committed() {
    let world = World::new(&[]);
    let db = world.open();
    let family = db.default_column_family();
    let begin = || {
        db.put_stream(family, "key", &WriteOptions { sync: true, ..Default::default() }).unwrap()
    };
    let pieces = |writer: &mut ValueWriter, count: usize| {
        for i in 0..count {
            writer.write_all(&value(&format!("piece{i}"), 100_000)).unwrap();
        }
    };
    let mut short = begin();
    pieces(&mut short, 3);
    short.commit().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap().len(), 300_000);

    let mut given_up = begin();
    pieces(&mut given_up, 30);
    assert_eq!((given_up.size(), world.blob_files().len()), (3_000_000, 1));
    drop(given_up);

    let mut long = begin();
    pieces(&mut long, 30);
    let died_before = world.after_death();
    assert_eq!(db.get("key").unwrap().unwrap().len(), 300_000);
    long.commit().unwrap();
    let died_after = world.after_death();
    for (world, length) in [(&died_before, 300_000), (&died_after, 3_000_000)] {
        let db = world.open();
        assert_eq!(db.get("key").unwrap().unwrap().len(), length);
        assert_tidy(&db);
        assert_eq!(world.blob_files().len(), 1);
        db.close().unwrap();
        assert_eq!(world.open().get("key").unwrap().unwrap().len(), length);
    }
    db.flush_all().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap().len(), 3_000_000);
    assert_sound(&db);
    db.close().unwrap();
    assert_eq!(world.blob_files().len(), 1);
}

/// With a buffer smaller than an empty memtable, a large value waited for ever for a memtable that
/// was not full.
#[test]
fn a_buffer_may_be_tiny() {
    let db = World::new(&[("arena_block_size", "1"), ("write_buffer_size", "1024")]).open();
    db.put("key", value("key", 10_000)).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), value("key", 10_000));
}

/// The checksum in the file is that of the whole value, so the first part that is read costs all of
/// it; the next ones do not.
#[test]
fn parts_of_a_value_are_verified_and_later_ones_read_alone() {
    for settings in [
        &[][..],
        &[("blob_write_mode", "flush")],
        &[("blob_compression_type", "kLZ4Compression")],
        &[("cache_blobs", "true")],
        &[("enable_blob_files", "false")],
        &[("block_cache", "0")],
    ] {
        let world = World::new(settings);
        let db = world.open();
        let (small, large) = (value("small value", 100), value("large value", 1_000_000));
        db.put("small", &small).unwrap();
        db.put("large", &large).unwrap();
        let (options, family) = (ReadOptions::default(), db.default_column_family());
        let check = |key: &str, value: &[u8]| {
            for (start, end) in
                [(0, 10), (99, 200), (500_000, 500_001), (999_990, u64::MAX), (0, u64::MAX)]
            {
                let part =
                    db.get_range(&options, family, key, start..end).unwrap().expect("a value");
                let (start, end) = (value.len().min(start as usize), value.len().min(end as usize));
                assert_eq!(part.bytes, value[start..end], "{settings:?} {key}");
                assert_eq!(part.value_size, value.len() as u64);
            }
        };
        for _ in ["in memory", "in tables"] {
            check("small", &small);
            check("large", &large);
            assert!(db.get_range(&options, family, "none", 0..1).unwrap().is_none());
            db.flush_all().unwrap();
        }
        let unverified = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
        let part = db.get_range(&unverified, family, "large", 77..99).unwrap().unwrap();
        assert_eq!(part.bytes, large[77..99]);
    }
}

#[test]
fn damage_in_a_part_is_found_and_elsewhere_does_no_harm() {
    let world = World::new(&[("blob_write_mode", "flush")]);
    let db = world.open();
    let large = value("large value", 1_000_000);
    db.put("large", &large).unwrap();
    db.flush_all().unwrap();
    let part = |start, end| {
        db.get_range(&ReadOptions::default(), db.default_column_family(), "large", start..end)
            .map(|part| part.unwrap().bytes)
    };
    assert_eq!(part(0, 5).unwrap(), large[..5]);
    let path = world.blob_files().remove(0);
    let file = world.fs.reopen_writable(&path).unwrap();
    file.write_at(500_000, b"?").unwrap();
    assert_eq!(part(0, 5).unwrap(), large[..5]);
    assert_eq!(part(900_000, 900_009).unwrap(), large[900_000..900_009]);
    let error = part(499_000, 499_001).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains(".blob"), "{error}");
}

/// What an iterator has read ahead is the cursors' in the account, and no longer when the iterator
/// is gone.
#[test]
fn what_scans_read_ahead_is_accounted_for() {
    let world = World::new(&[("blob_write_mode", "flush")]);
    let db = world.open();
    for at in 0..300 {
        db.put(format!("key{at:03}"), value("value", 5000)).unwrap();
    }
    db.flush_all().unwrap();
    let before = db.memory_usage().cursors;
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    for _ in 0..200 {
        assert_eq!(iter.value().unwrap(), value("value", 5000));
        iter.next();
    }
    assert!(db.memory_usage().cursors > before + 100_000, "{}", db.memory_usage().cursors);
    drop(iter);
    // The cursor itself is kept for the next iterator.
    assert!(db.memory_usage().cursors < before + 20_000, "{}", db.memory_usage().cursors);
}
