//! What only a later RocksDB writes.

use super::*;

/// An entity of a version 3 that is not known. In version 2, which RocksDB 11 writes, its default
/// column would lie in a blob file, and its column c1 would be `x`.
fn entity_naming(blob_file: FileNumber) -> Vec<u8> {
    let mut index = vec![1];
    let mut number = blob_file.0;
    while number >= 0x80 {
        index.push(number as u8 | 0x80);
        number >>= 7;
    }
    index.extend([number as u8, 0x68, 0x0b, 0]);
    let head = [3, 2, 2, 2, 2, 0x11, 1, 0, 2, index.len() as u8, 1, b'c', b'1'];
    [&head[..], &index, b"x"].concat()
}

/// Compactions copied such an entity and took what it names for garbage: the blob file was removed.
#[test]
fn what_an_entity_of_a_later_version_names_is_not_taken_for_garbage() {
    let world = World::new();
    let entity = entity_naming(world.blob_file);
    assert_eq!(entity[..5], [3, 2, 2, 2, 2]);
    world.remove_own_table();
    let entries =
        [("e1", ValueType::WideColumnEntity, &entity[..]), ("small", ValueType::Value, b"value")];
    world.add(&[world.table(FIRST, &entries, TableBuilderSettings::default(), |_| {})]);
    let table = path_of(FileNumber(FIRST));
    let db = world.open();
    let refused = db.compact_range(db.default_column_family(), None, None, &everything());
    assert!(world.has_blob_file(world.blob_file), "{refused:?}");
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported, "{refused}");
    assert_eq!(refused.path(), Some(&*table), "{refused}");

    let faults = db.verify(|_| {}).faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].error.code(), Code::NotSupported, "{faults:?}");

    // All else goes on.
    assert_eq!(db.damaged_files().len(), 1);
    assert_eq!(db.get("e1").unwrap_err().code(), Code::NotSupported);
    assert_eq!(db.get("small").unwrap().unwrap(), "value");
    db.put("other", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    drop(world.open());
    assert!(world.has_blob_file(world.blob_file));

    let report =
        salvage(Path::new("/db"), Path::new("/new"), &world.options, &[], &mut |_| {}).unwrap();
    assert!(!report.is_complete());
    let lost = &report.lost_values[0];
    assert_eq!((&lost.key[..], lost.error.code()), (&b"e1"[..], Code::NotSupported), "{report:#?}");
    let db = Db::open("/new", &world.options).unwrap();
    assert!(db.get("e1").unwrap().is_none());
    assert_eq!(db.get("small").unwrap().unwrap(), "value");
}

/// The database was opened, and the blob file removed, which nothing else named.
#[test]
fn a_log_with_an_entity_of_a_later_version_is_not_replayed() {
    for mode in [
        "kTolerateCorruptedTailRecords",
        "kAbsoluteConsistency",
        "kPointInTimeRecovery",
        "kSkipAnyCorruptedRecords",
    ] {
        let mut world = World::new();
        world.options.set("wal_recovery_mode", mode).unwrap();
        let unsealed = FileNumber(FIRST - 1);
        let path = file_name::blob(Path::new("/db"), unsealed);
        world
            .options
            .env
            .fs
            .create_writable(&path, IoMode::Buffered)
            .unwrap()
            .write_at(0, &[0; 100])
            .unwrap();
        let entity = entity_naming(unsealed);
        world.add_log(&[&[0x16, 2, b'e', b'1', entity.len() as u8][..], &entity].concat());
        for open in [Db::open, Db::open_read_only] {
            let opened = open("/db", &world.options).map(|_| ());
            assert!(world.has_blob_file(unsealed), "{mode}: {opened:?}");
            let refused = opened.unwrap_err();
            assert_eq!(refused.code(), Code::NotSupported, "{mode}: {refused}");
            assert!(refused.path().unwrap().ends_with("000900.log"), "{mode}: {refused}");
        }
    }
}

/// Nobody could read it: nor could the database be opened again, since recovery refuses such.
#[test]
fn an_entity_that_cannot_be_read_cannot_be_written() {
    let world = World::new();
    let db = world.open();
    let mut of_version_2 = entity_naming(world.blob_file);
    of_version_2[0] = 2;
    for (entity, code) in [
        (&entity_naming(world.blob_file)[..], Code::NotSupported),
        // Only the engine knows where values lie.
        (&of_version_2, Code::NotSupported),
        (b"\x01\x01", Code::InvalidArgument),
        (b"", Code::InvalidArgument),
    ] {
        let mut batch = WriteBatch::new();
        batch.put_encoded_entity(db.default_column_family(), b"key", entity).unwrap();
        assert_eq!(db.write(batch).unwrap_err().code(), code);
    }
    db.put("other", "value").unwrap();
    assert!(db.get("key").unwrap().is_none());
    db.close().unwrap();
    drop(db);
    assert_eq!(world.open().get("other").unwrap().unwrap(), "value");
}

/// Such values lie in the table itself. They were looked for in a blob file without a number.
#[test]
fn an_embedded_blob_that_is_not_there_is_damage() {
    let world = World::new();
    let user_properties = vec![(b"rocksdb.embedded.blob.stats".to_vec(), vec![1, 5])];
    let settings = TableBuilderSettings { user_properties, ..TableBuilderSettings::default() };
    let table =
        world.add_entry("embedded", ValueType::BlobIndex, b"\x01\x00\x00\x05\x00", settings);
    let db = world.open();
    let refused = db.get("embedded").unwrap_err();
    assert_eq!((refused.code(), refused.offset()), (Code::Corruption, Some(0)), "{refused}");
    assert_eq!(refused.path(), Some(&*table), "{refused}");
    assert_eq!(db.damaged_files().len(), 1);
    db.put("other", "value").unwrap();
    assert_eq!(db.get("other").unwrap().unwrap(), "value");
}

/// Lookups passed over all entries, and scans showed them.
#[test]
fn entries_are_found_in_a_table_whose_properties_lack_the_counts() {
    let world = World::new();
    let table = world.table(
        FIRST,
        &[("key", ValueType::Value, b"value")],
        without_checksums(),
        |builder| {
            builder.add_range_tombstone(b"large", b"m", 50);
        },
    );
    // In place of "rocksdb.num.entries" and "rocksdb.num.range-deletions" two that nobody knows.
    world.change(&table, |bytes| {
        for name in [&b"entries"[..], b"range-deletions"] {
            let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
            bytes[at + name.len() - 1] = b'S';
        }
    });
    world.add(&[table]);
    let db = world.open();
    assert_eq!(
        common::entries(&db, db.default_column_family()),
        [(b"key".to_vec(), b"value".to_vec())]
    );
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    assert_eq!(db.multi_get(&["key"]).remove(0).unwrap().unwrap(), "value");
    assert!(db.get("large").unwrap().is_none());
}

/// Sums of what files say of themselves panicked.
#[test]
fn counts_that_cannot_be_are_taken_for_very_many() {
    let mut world = World::new();
    let table = |number| {
        let entries = [("key", ValueType::Value, &b"value"[..])];
        let table = world.table(number, &entries, TableBuilderSettings::default(), |_| {});
        let entries = EntryStats { entries: u64::MAX, ..EntryStats::default() };
        FileMetadata { entry_stats: Some(entries), ..table }
    };
    world.add(&[table(FIRST), table(FIRST + 1)]);
    let immense = |number| BlobFileAddition {
        number: FileNumber(number),
        total_count: u64::MAX,
        total_bytes: u64::MAX,
        ..BlobFileAddition::default()
    };
    let blob_file_additions = vec![immense(FIRST + 2), immense(FIRST + 3)];
    add_to_manifest(
        &world.options.env,
        &VersionEdit { blob_file_additions, ..VersionEdit::default() },
    );
    world
        .options
        .set_all("disable_auto_compactions=false;level0_file_num_compaction_trigger=2;paranoid_checks=false")
        .unwrap();
    let read_only = Db::open_read_only("/db", &world.options).unwrap();
    assert!(!read_only.verify(|_| {}).faults.is_empty());
    assert!(!read_only.check().unwrap().faults.is_empty());
    drop(read_only);
    let db = world.open();
    db.wait_for_compactions().unwrap();
    for property in ["rocksdb.estimate-num-keys", "rocksdb.stats", "rocksdb.total-blob-file-size"] {
        db.property(db.default_column_family(), property).unwrap();
    }
    db.doctor().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

/// What RocksDB can compress and this engine cannot was taken for damage.
#[test]
fn compression_types_that_are_missing_here_are_not_supported() {
    for (compression, code) in [
        (6, Code::NotSupported),
        (0x80, Code::NotSupported),
        (0xfe, Code::NotSupported),
        (8, Code::Corruption),
        (0xff, Code::Corruption),
    ] {
        let world = World::new();
        let entries = [("key", ValueType::Value, &b"value"[..])];
        let table = world.table(FIRST, &entries, without_checksums(), |_| {});
        // Behind the block's one entry and its restarts.
        let at = 3 + "key".len() + 8 + "value".len() + 4 + 4;
        world.change(&table, |bytes| {
            assert_eq!(bytes[at], 0);
            bytes[at] = compression;
        });
        world.add(&[table]);
        let db = world.open();
        let refused = db.get("key").unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert_eq!(db.damaged_files().len(), 1);
    }
}

/// It was called malformed: RocksDB takes any bytes for a name.
#[test]
fn a_family_whose_name_is_no_text_is_not_supported() {
    let world = World::new();
    let edit = VersionEdit {
        family_added: Some("name".to_string()),
        comparator: Some("leveldb.BytewiseComparator".to_string()),
        ..VersionEdit::new(ColumnFamilyId(7))
    };
    let mut encoded = Vec::new();
    edit.encode(&mut encoded);
    let at = encoded.windows(4).position(|window| window == b"name").unwrap();
    encoded[at] = 0xff;
    add_record_to_manifest(&world.options.env, encoded);
    let refused = Db::open("/db", &world.options).map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported, "{refused}");
    assert!(refused.message().contains(r"column family name '\xffame' is not UTF-8"), "{refused}");
    assert!(refused.path().is_some(), "{refused}");
}

/// Whoever turned `persist_user_defined_timestamps` off for a family without timestamps could not
/// have it opened here.
#[test]
fn where_keys_have_no_timestamps_none_were_left_out() {
    let world = World::new();
    let edit = VersionEdit {
        comparator: Some("leveldb.BytewiseComparator".to_string()),
        persist_user_timestamps: Some(false),
        ..VersionEdit::default()
    };
    add_to_manifest(&world.options.env, &edit);
    let user_properties = vec![(b"rocksdb.user.defined.timestamps.persisted".to_vec(), vec![0])];
    let settings = TableBuilderSettings { user_properties, ..TableBuilderSettings::default() };
    world.add_entry("key", ValueType::Value, b"value", settings);
    assert_eq!(world.open().get("key").unwrap().unwrap(), "value");
}
