//! Tables that were taken in between the keys of a database.

use super::*;

/// RocksDB takes in a table without a flush if a memtable has none of its keys, though it may have
/// some on both sides. What that is flushed to has the lower seqnos and the higher epoch number:
/// the database was refused.
#[test]
fn a_table_that_was_taken_in_between_keys_of_the_wal_is_in_nobodys_way() {
    let mut world = World::new();
    world.options.set("avoid_flush_during_shutdown", "true").unwrap();
    let db = world.open();
    ["a", "z"].iter().for_each(|key| db.put(key, "written").unwrap());
    db.close().unwrap();
    world.take_in_m();

    let db = world.open();
    let read = |db: &Db| ["a", "m", "z"].map(|key| db.get(key).unwrap().unwrap().to_vec());
    let all = [&b"written"[..], b"taken in", b"written"];
    assert_eq!(read(&db), all);
    db.put("m", "overwritten").unwrap();
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &everything()).unwrap();
    assert_eq!(read(&db), [&b"written"[..], b"overwritten", b"written"]);
    db.close().unwrap();
    drop(db);
    assert!(world.open().check().unwrap().faults.is_empty());
}

/// A database whose WAL has `a` and `z`; in level 0 there is a table of `m`, taken in since, and an
/// older one, with its number.
fn with_m_between_keys_of_the_wal(options: &str) -> (World, FileNumber) {
    let mut world = World::new();
    world.options.set_all("avoid_flush_during_shutdown=true;num_levels=1").expect("options");
    world.options.set_all(options).expect("options");
    let db = world.open();
    db.put("large", "small").expect("a write");
    db.flush_all().expect("a flush");
    let older = db.live_files().iter().map(|file| file.number).max().expect("a table");
    ["a", "z"].iter().for_each(|key| db.put(key, "written").expect("a write"));
    db.close().expect("a clean close");
    world.take_in_m();
    (world, older)
}

fn merge_m_with(db: &Db, older: FileNumber) {
    let tables = [FileNumber(FIRST), older];
    let written =
        db.compact_files(db.default_column_family(), &tables, 0, &CompactFilesOptions::default());
    assert_eq!(written.expect("a compaction").len(), 1);
}

/// The table that was taken in was merged with an older one, without the newer one around it, or
/// before that was flushed: the database was poisoned, at each opening anew.
#[test]
fn a_table_that_was_taken_in_between_keys_of_the_wal_is_merged_with_older_ones() {
    for options in ["avoid_flush_during_recovery=false", "avoid_flush_during_recovery=true"] {
        let (world, older) = with_m_between_keys_of_the_wal(options);
        let db = world.open();
        merge_m_with(&db, older);
        db.flush_all().unwrap();
        db.put("b", "written").unwrap();
        db.flush_all().unwrap();
        let read = |db: &Db| ["a", "b", "m", "z"].map(|key| db.get(key).unwrap().unwrap().to_vec());
        let all = [&b"written"[..], b"written", b"taken in", b"written"];
        assert_eq!(read(&db), all);
        db.close().unwrap();
        let db = world.open();
        assert_eq!(read(&db), all);
        db.compact_range(db.default_column_family(), None, None, &everything()).unwrap();
        assert_eq!(read(&db), all);
        assert!(db.check().unwrap().faults.is_empty());
    }
}

/// RocksDB had merged what it had taken in with what was older, or with more that it had taken in,
/// before it was closed: what was made of the WAL was refused, and so was the database.
#[test]
fn a_table_that_was_merged_before_keys_around_it_were_flushed_is_in_nobodys_way() {
    for sequence in [1, 12] {
        let mut world = World::new();
        world.options.set("avoid_flush_during_shutdown", "true").unwrap();
        let db = world.open();
        ["a", "z"].iter().for_each(|key| db.put(key, "written").unwrap());
        db.close().unwrap();
        let entries = [("m", ValueType::Value, &b"taken in"[..])];
        let other = InternalKeyBuf::new(b"n", sequence, ValueType::Value);
        let merged = world.table(FIRST, &entries, TableBuilderSettings::default(), |table| {
            table.add(other.as_key(), b"merged").expect("a table");
        });
        world.add(&[FileMetadata { epoch_number: 5, oldest_blob_file: None, ..merged }]);

        let db = world.open();
        let read = |db: &Db| ["a", "m", "n", "z"].map(|key| db.get(key).unwrap().unwrap().to_vec());
        let all = [&b"written"[..], b"taken in", b"merged", b"written"];
        assert_eq!(read(&db), all);
        db.put("m", "overwritten").unwrap();
        db.flush_all().unwrap();
        db.compact_range(db.default_column_family(), None, None, &everything()).unwrap();
        assert_eq!(read(&db), [&b"written"[..], b"overwritten", b"merged", b"written"]);
        assert!(db.check().unwrap().faults.is_empty());
    }
}

/// What it was merged to was said to be newer than what the WAL held, which a salvage without a
/// MANIFEST then passed over.
#[test]
fn a_salvage_has_what_lies_around_a_merged_table_that_was_taken_in() {
    let (world, older) = with_m_between_keys_of_the_wal("avoid_flush_during_recovery=true");
    let db = world.open();
    merge_m_with(&db, older);
    db.close().unwrap();
    let fs = &world.options.env.fs;
    let names = fs.list(Path::new("/db")).unwrap();
    let of_manifest =
        names.iter().filter(|name| *name == "CURRENT" || name.starts_with("MANIFEST"));
    assert!(of_manifest.map(|name| fs.remove(&Path::new("/db").join(name)).unwrap()).count() > 1);
    salvage(Path::new("/db"), Path::new("/new"), &world.options, &[], &mut |_| {}).unwrap();
    let db = Db::open("/new", &world.options).unwrap();
    let read = ["a", "large", "m", "z"].map(|key| db.get(key).unwrap().map(|value| value.to_vec()));
    let all = [&b"written"[..], b"small", b"taken in", b"written"];
    assert_eq!(read, all.map(|value| Some(value.to_vec())));
}

/// Of a key whose versions straddle three tables, those in the later ones are newer than the range
/// deletion that each table has over it: RocksDB cuts it at the last version in the first, and not
/// before the key.
#[test]
fn a_key_that_straddles_tables_beneath_a_range_deletion_is_read() {
    let mut world = World::new();
    world.options.set("merge_operator", "stringappend").unwrap();
    let table = |number: u64, entries: &[(&str, u64, ValueType, &str)]| {
        let path = path_of(FileNumber(number));
        let file = world.options.env.fs.create_writable(&path, IoMode::Buffered).unwrap();
        let mut builder = TableBuilder::new(file, TableBuilderSettings::default()).unwrap();
        for (key, sequence, kind, value) in entries {
            let key = InternalKeyBuf::new(key.as_bytes(), *sequence, *kind);
            builder.add(key.as_key(), value.as_bytes()).unwrap();
        }
        builder.add_range_tombstone(b"a", b"z", 10);
        let key = |(key, sequence, kind, _): &(&str, u64, ValueType, &str)| {
            InternalKeyBuf::new(key.as_bytes(), *sequence, *kind)
        };
        FileMetadata {
            number: FileNumber(number),
            size: builder.finish().unwrap().size,
            smallest: key(&entries[0]),
            largest: key(&entries[entries.len() - 1]),
            smallest_seqno: 10,
            largest_seqno: 20,
            epoch_number: 1,
            ..FileMetadata::default()
        }
    };
    let (value, operand) = (ValueType::Value, ValueType::Merge);
    let first =
        table(FIRST, &[("b", 20, value, "b"), ("m", 19, operand, "19"), ("m", 18, operand, "18")]);
    let second = table(FIRST + 1, &[("m", 17, operand, "17"), ("m", 16, operand, "16")]);
    let entries = [
        ("m", 15, operand, "15"),
        ("m", 9, value, "deleted"),
        ("n", 9, value, "deleted"),
        ("o", 12, value, "o"),
    ];
    let third = table(FIRST + 2, &entries);
    let mut edit = VersionEdit {
        next_file_number: Some(FileNumber(FIRST + 100)),
        last_sequence: Some(100),
        ..VersionEdit::default()
    };
    [first, second, third].into_iter().for_each(|table| edit.add_file(1, table));
    add_to_manifest(&world.options.env, &edit);
    let db = world.open();
    let keys = ["b", "m", "n", "o"];
    let expected = [Some("b"), Some("15,16,17,18,19"), None, Some("o")];
    let text = |value: Option<flagstone::db::Value>| {
        value.map(|value| String::from_utf8(value.to_vec()).unwrap())
    };
    assert_eq!(
        keys.map(|key| text(db.get(key).unwrap())),
        expected.map(|value| value.map(str::to_string))
    );
    let joint: Vec<_> = db.multi_get(&keys).into_iter().map(|found| text(found.unwrap())).collect();
    assert_eq!(joint, expected.map(|value| value.map(str::to_string)));
    let family = db.default_column_family();
    let part = db.get_range(&Default::default(), family, "m", 0..100).unwrap().unwrap();
    assert_eq!(&*part.bytes, b"15,16,17,18,19");
}
