//! Tables and logs that this engine does not write: a later RocksDB does, or nobody.
//! Longer than usual: they are made by hand in one way, and each has its story.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{add_record_to_manifest, add_to_manifest, create};
use flagstone::base::checksum::ChecksumType;
use flagstone::base::{
    Code, ColumnFamilyId, FileNumber, InternalKeyBuf, MAX_SEQUENCE_NUMBER, ValueType, file_name,
};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, salvage};
use flagstone::env::OpenMode;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::manifest::{
    BlobFileAddition, BlobReferences, EntryStats, FileMetadata, VersionEdit,
};
use flagstone::options::{
    BottommostLevelCompaction, CompactFilesOptions, CompactRangeOptions, Options,
    SizeApproximationOptions,
};
use flagstone::sst::{TableBuilder, TableBuilderSettings};
use flagstone::wal::{Writer, WriterOptions};
use testkit::{Call, FaultFs, steps};

/// The number of the first file made by hand.
const FIRST: u64 = 900;

/// A database with one large value, of the key `large`, in a table and a blob file, closed.
struct World {
    options: Options,
    table: FileNumber,
    blob_file: FileNumber,
}

impl World {
    fn new() -> Self {
        let mut options =
            Options { env: steps::world(Arc::new(MemoryFileSystem::new()), 1), ..create() };
        options
            .set_all("enable_blob_files=true;min_blob_size=50;disable_auto_compactions=true")
            .expect("options");
        let db = Db::open("/db", &options).expect("a database");
        db.put("large", vec![b'l'; 100]).expect("a write");
        db.flush_all().expect("a flush");
        let number = |is_table: bool| {
            let files = db.live_files();
            files.iter().find(|file| file.level.is_some() == is_table).expect("a file").number
        };
        let (table, blob_file) = (number(true), number(false));
        db.close().expect("a clean close");
        Self { options, table, blob_file }
    }

    fn open(&self) -> Db {
        Db::open("/db", &self.options).expect("a database")
    }

    /// Writes a table of these entries, of the sequence numbers 11, 12 and so on; what the MANIFEST
    /// is to say of it, which is also that it refers to the blob file.
    fn table(
        &self,
        number: u64,
        entries: &[(&str, ValueType, &[u8])],
        settings: TableBuilderSettings,
        more: impl FnOnce(&mut TableBuilder),
    ) -> FileMetadata {
        let number = FileNumber(number);
        let file = self.options.env.fs.open(&path_of(number), OpenMode::Create).expect("a file");
        let mut builder = TableBuilder::new(file, settings).expect("a table");
        for ((key, kind, value), sequence) in entries.iter().zip(11..) {
            builder
                .add(InternalKeyBuf::new(key.as_bytes(), sequence, *kind).as_key(), value)
                .expect("a table");
        }
        more(&mut builder);
        let summary = builder.finish().expect("a table");
        FileMetadata {
            number,
            size: summary.size,
            smallest: summary.smallest.expect("a key"),
            largest: summary.largest.expect("a key"),
            smallest_seqno: summary.smallest_sequence,
            largest_seqno: summary.largest_sequence,
            oldest_blob_file: Some(self.blob_file),
            ..FileMetadata::default()
        }
    }

    /// Changes bytes of a table.
    fn change(&self, table: &FileMetadata, change: impl FnOnce(&mut [u8])) {
        let file =
            self.options.env.fs.open(&path_of(table.number), OpenMode::Update).expect("a file");
        let mut bytes = vec![0; table.size as usize];
        file.read_at(0, &mut bytes).expect("a read");
        change(&mut bytes);
        file.write_at(0, &bytes).expect("a write");
    }

    /// Adds tables to level 0.
    fn add(&self, tables: &[FileMetadata]) {
        let mut edit = VersionEdit {
            next_file_number: Some(FileNumber(FIRST + 100)),
            last_sequence: Some(100),
            ..VersionEdit::default()
        };
        tables.iter().for_each(|table| edit.add_file(0, table.clone()));
        add_to_manifest(&self.options.env, &edit);
    }

    /// Adds a table of one entry.
    fn add_entry(
        &self,
        key: &str,
        kind: ValueType,
        value: &[u8],
        settings: TableBuilderSettings,
    ) -> PathBuf {
        self.add(&[self.table(FIRST, &[(key, kind, value)], settings, |_| {})]);
        path_of(FileNumber(FIRST))
    }

    /// Adds a table of the key `m`, as RocksDB does without a flush while a memtable has keys
    /// around it.
    fn take_in_m(&self) {
        let entries = [("m", ValueType::Value, &b"taken in"[..])];
        let table = self.table(FIRST, &entries, TableBuilderSettings::default(), |_| {});
        self.add(&[FileMetadata { epoch_number: 5, oldest_blob_file: None, ..table }]);
    }

    /// The table goes that refers to the large value.
    fn remove_own_table(&self) {
        let mut edit = VersionEdit::default();
        edit.delete_file(0, self.table);
        add_to_manifest(&self.options.env, &edit);
    }

    /// A log of one record, a batch with this operation.
    fn add_log(&self, operation: &[u8]) {
        let batch = [&101u64.to_le_bytes()[..], &1u32.to_le_bytes(), operation].concat();
        let number = FileNumber(FIRST);
        let path = file_name::wal(Path::new("/db"), number);
        let file = self.options.env.fs.open(&path, OpenMode::Create).expect("a file");
        let mut writer = Writer::new(file, number, WriterOptions::default()).expect("a log");
        writer.add_record(&batch).expect("a write");
    }

    fn has_blob_file(&self, number: FileNumber) -> bool {
        self.options.env.fs.metadata(&file_name::blob(Path::new("/db"), number)).is_ok()
    }
}

fn path_of(table: FileNumber) -> PathBuf {
    file_name::table(Path::new("/db"), table)
}

fn without_checksums() -> TableBuilderSettings {
    TableBuilderSettings { checksum: ChecksumType::None, ..TableBuilderSettings::default() }
}

fn everything() -> CompactRangeOptions {
    CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    }
}

/// An entity of version 2, which RocksDB 11 writes: its default column lies in a blob file, its
/// column c1 is `x`.
fn entity_naming(blob_file: FileNumber) -> Vec<u8> {
    let mut index = vec![1];
    let mut number = blob_file.0;
    while number >= 0x80 {
        index.push(number as u8 | 0x80);
        number >>= 7;
    }
    index.extend([number as u8, 0x68, 0x0b, 0]);
    let head = [2, 2, 2, 2, 2, 0x11, 1, 0, 2, index.len() as u8, 1, b'c', b'1'];
    [&head[..], &index, b"x"].concat()
}

/// Compactions copied such an entity and took what it names for garbage: the blob file was removed.
#[test]
fn what_an_entity_of_a_later_version_names_is_not_taken_for_garbage() {
    let world = World::new();
    let entity = entity_naming(world.blob_file);
    assert_eq!(entity[..5], [2; 5]);
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
        world.options.env.fs.open(&path, OpenMode::Create).unwrap().write_at(0, &[0; 100]).unwrap();
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
    for (entity, code) in [
        (&entity_naming(world.blob_file)[..], Code::NotSupported),
        (b"\x01\x01", Code::InvalidArgument),
        (b"", Code::InvalidArgument),
    ] {
        let mut batch = WriteBatch::new();
        batch.put_entity(db.default_column_family(), b"key", entity).unwrap();
        assert_eq!(db.write(batch).unwrap_err().code(), code);
    }
    db.put("other", "value").unwrap();
    assert!(db.get("key").unwrap().is_none());
    db.close().unwrap();
    drop(db);
    assert_eq!(world.open().get("other").unwrap().unwrap(), "value");
}

/// A compaction that came to such an entry failed without naming a file, and poisoned the database.
#[test]
fn a_value_that_cannot_be_read_costs_its_table_and_nothing_else() {
    for (kind, value, code) in [
        (ValueType::BlobIndex, &b"\x00\x05x"[..], Code::Corruption),
        (ValueType::BlobIndex, b"\x02\x05x", Code::Corruption),
        (ValueType::BlobIndex, b"\x01\x05", Code::Corruption),
        (ValueType::BlobIndex, b"", Code::Corruption),
        (ValueType::BlobIndex, b"\x01\x00\x20\x05\x00", Code::NotSupported),
        (ValueType::WideColumnEntity, b"\x01\x01", Code::Corruption),
        (ValueType::ValuePreferredSeqno, b"short", Code::Corruption),
    ] {
        let world = World::new();
        let table = world.add_entry("strange", kind, value, TableBuilderSettings::default());
        // Lookups told the key, and nobody which file to restore.
        let db = world.open();
        let [alone, together] = [db.get("strange"), db.multi_get(&["other", "strange"]).remove(1)];
        for refused in [alone.unwrap_err(), together.unwrap_err()] {
            assert_eq!(refused.code(), code, "{refused}");
            assert!(refused.message().contains("key 'strange'"), "{refused}");
            assert_eq!((refused.path(), refused.offset()), (Some(&*table), Some(0)), "{refused}");
        }
        let damaged = db.damaged_files();
        assert_eq!(damaged.iter().map(|file| file.number.0).collect::<Vec<_>>(), [FIRST]);
        db.close().unwrap();
        drop(db);
        let db = world.open();
        let refused = db.compact_range(db.default_column_family(), None, None, &everything());
        let refused = refused.expect_err(&format!("{value:?}"));
        assert_eq!(refused.code(), code, "{refused}");
        assert_eq!(refused.path(), Some(&*table), "{refused}");
        let damaged = db.damaged_files();
        assert_eq!(damaged.iter().map(|file| file.number.0).collect::<Vec<_>>(), [FIRST]);
        db.put("other", "value").unwrap();
        db.flush_all().unwrap();
        assert_eq!(db.get("large").unwrap().unwrap().len(), 100);
        let refused = db.get("strange").unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.message().contains("key 'strange'"), "{refused}");
    }
}

/// What a compaction made of such an entry, or told of it as garbage, could not be part of the
/// tree: it poisoned the database.
#[test]
fn a_value_in_a_blob_file_that_nobody_knows_costs_its_table_and_nothing_else() {
    // File 8888, 5 bytes from the 32nd on, not compressed.
    let index = b"\x01\xb8\x45\x20\x05\x00";
    for newer in [None, Some("value")] {
        let world = World::new();
        let table = world.add_entry(
            "strange",
            ValueType::BlobIndex,
            index,
            TableBuilderSettings::default(),
        );
        let db = world.open();
        if let Some(newer) = newer {
            db.put("strange", newer).unwrap();
        }
        let refused =
            db.compact_range(db.default_column_family(), None, None, &everything()).unwrap_err();
        assert!(refused.is_corruption(), "{refused}");
        assert_eq!(refused.path(), Some(&*table), "{refused}");
        assert!(refused.message().contains("key 'strange'"), "{refused}");
        assert_eq!(db.damaged_files().len(), 1);
        db.put("other", "value").unwrap();
        db.flush_all().unwrap();
        assert_eq!(db.get("large").unwrap().unwrap().len(), 100);
    }
}

/// Their sizes were summed, which panicked.
#[test]
fn values_in_blob_files_that_are_as_large_as_can_be_are_taken_for_very_many_bytes() {
    let world = World::new();
    let of_file = world.blob_file.0 as u8;
    let index = [&[1, of_file, 32][..], &[0xff; 9], &[1, 0]].concat();
    let entries = ["huge", "larger"].map(|key| (key, ValueType::BlobIndex, &index[..]));
    world.add(&[world.table(FIRST, &entries, TableBuilderSettings::default(), |_| {})]);
    let db = world.open();
    let space = db.space(db.default_column_family()).unwrap();
    assert_eq!(space.live_bytes, u64::MAX);
}

/// Such values lie in the table itself. They were looked for in a blob file without a number, in
/// vain.
#[test]
fn a_table_with_embedded_blobs_is_not_supported() {
    let world = World::new();
    let user_properties = vec![(b"rocksdb.embedded.blob.stats".to_vec(), vec![1, 5])];
    let settings = TableBuilderSettings { user_properties, ..TableBuilderSettings::default() };
    let table =
        world.add_entry("embedded", ValueType::BlobIndex, b"\x01\x00\x00\x05\x00", settings);
    let db = world.open();
    let refused = db.get("embedded").unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported, "{refused}");
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

type Change = fn(&mut FileMetadata);

/// What a MANIFEST says of tables, made as large as can be.
const IMMENSE: &[(&str, Change)] = &[
    ("sizes", |table| table.size = u64::MAX),
    ("tails", |table| table.tail_size = u64::MAX),
    ("deleted sizes", |table| table.compensated_range_deletion_size = u64::MAX),
    ("ancestors", |table| table.oldest_ancestor_time = u64::MAX),
    ("times", |table| {
        (table.oldest_ancestor_time, table.file_creation_time) = (u64::MAX, u64::MAX)
    }),
    ("epochs", |table| table.epoch_number = u64::MAX - (table.number.0 - FIRST)),
    ("seqnos", |table| (table.smallest_seqno, table.largest_seqno) = (0, MAX_SEQUENCE_NUMBER)),
    ("entries", |table| {
        let [entries, deletions, range_deletions, value_bytes] = [u64::MAX; 4];
        table.entry_stats = Some(EntryStats { entries, deletions, range_deletions, value_bytes });
    }),
    ("deletions", |table| {
        table.entry_stats =
            Some(EntryStats { entries: 1, deletions: u64::MAX, ..EntryStats::default() });
    }),
    ("references", |table| {
        let oldest = table.oldest_blob_file.expect("it has one");
        let files = vec![(oldest, u64::MAX), (FileNumber(FIRST + 2), u64::MAX)];
        table.blob_references = BlobReferences::new(u64::MAX, files);
    }),
    ("directories", |table| table.path_id = 3),
];

const STYLES: [&str; 6] = [
    "ttl=100;periodic_compaction_seconds=100",
    "compaction_style=kCompactionStyleUniversal",
    "compaction_style=kCompactionStyleFIFO",
    "level_compaction_dynamic_level_bytes=false;max_space_amplification=1.5;enable_blob_garbage_collection=true",
    "compaction_style=kCompactionStyleUniversal;periodic_compaction_seconds=100;max_space_amplification=1.5",
    "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={max_table_files_size=1000;};ttl=100",
];

const LOOKED_AT: [&str; 10] = [
    "rocksdb.blob-stats",
    "rocksdb.estimate-live-data-size",
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.levelstats",
    "rocksdb.live-blob-file-size",
    "rocksdb.live-sst-files-size",
    "rocksdb.sstables",
    "rocksdb.stats",
    "rocksdb.total-sst-files-size",
];

/// Three tables of the same keys and a blob file that is not there, of which the MANIFEST says
/// nonsense.
fn world_of_nonsense(change: Change, more: &VersionEdit) -> World {
    let world = World::new();
    let mut edit = VersionEdit {
        next_file_number: Some(FileNumber(FIRST + 100)),
        last_sequence: Some(100),
        ..VersionEdit::default()
    };
    edit.blob_file_additions.push(BlobFileAddition {
        number: FileNumber(FIRST + 2),
        total_count: 9,
        total_bytes: u64::MAX,
        ..BlobFileAddition::default()
    });
    for (number, level) in [(FIRST, 0), (FIRST + 1, 0), (FIRST + 3, 6)] {
        let entries = [("a", ValueType::Value, &b"value"[..]), ("key", ValueType::Value, b"value")];
        let table = world.table(number, &entries, TableBuilderSettings::default(), |_| {});
        let mut table = FileMetadata { epoch_number: number, ..table };
        change(&mut table);
        edit.add_file(level, table);
    }
    add_to_manifest(&world.options.env, &edit);
    add_to_manifest(&world.options.env, more);
    world
}

/// Does with a database what can be done, whether it can or not.
fn live_with(options: &Options) {
    for open in [Db::open_read_only, Db::open, Db::open] {
        let Ok(db) = open("/db", options) else { continue };
        let family = db.default_column_family();
        let _ = (db.get("key"), db.multi_get(&["key", "large"]), db.delete_range("k", "l"));
        for value in [10, 200] {
            let _ = (db.put("b", vec![7; value]), db.flush_all());
        }
        let _ = db.wait_for_compactions();
        for name in LOOKED_AT {
            let _ = db.property(family, name);
        }
        let _ = (db.doctor(), db.space(family), db.verify(|_| {}), db.check(), db.live_files());
        let _ = db.approximate_sizes(family, &[(b"a", b"z")], &SizeApproximationOptions::default());
        let _ = (
            db.compact_range(family, None, None, &everything()),
            db.create_column_family("other", &options.cf),
        );
        let health = db.property(family, "flagstone.background-error").unwrap_or_default();
        assert!(!health.contains("panicked"), "{health}");
        let _ = db.close();
    }
}

/// Sums of what the MANIFEST says panicked, or began again at nothing: whatever it says, what
/// cannot be done is an error.
#[test]
fn no_number_of_a_manifest_makes_anything_panic() {
    let file_number = Some(FileNumber((1 << 62) - 1));
    let plain = VersionEdit::default;
    fn nothing(_: &mut FileMetadata) {}
    let all = [
        VersionEdit { last_sequence: Some(MAX_SEQUENCE_NUMBER), ..plain() },
        VersionEdit { last_sequence: Some(MAX_SEQUENCE_NUMBER - 1), ..plain() },
        VersionEdit { next_file_number: file_number, ..plain() },
        VersionEdit { log_number: file_number, ..plain() },
        VersionEdit { min_log_number_to_keep: file_number, ..plain() },
        VersionEdit { max_column_family: Some(ColumnFamilyId(u32::MAX)), ..plain() },
    ];
    let of_all = all.into_iter().map(|edit| (STYLES[0], "all", nothing as Change, edit));
    let of_tables = STYLES.iter().flat_map(|style| IMMENSE.iter().map(move |case| (*style, case)));
    let of_tables = of_tables.map(|(style, (name, change))| (style, *name, *change, plain()));
    let mut panicked = Vec::new();
    for (style, name, change, more) in of_all.chain(of_tables) {
        let mut options = world_of_nonsense(change, &more).options;
        options
            .set_all("disable_auto_compactions=false;level0_file_num_compaction_trigger=2")
            .unwrap();
        options.set_all("paranoid_checks=false").unwrap();
        options.set_all(style).unwrap();
        if catch_unwind(AssertUnwindSafe(|| live_with(&options))).is_err() {
            panicked.push((style, name, more));
        }
    }
    assert!(panicked.is_empty(), "{panicked:#?}");
}

/// RocksDB 11 goes by the tables' epochs and opens such a level 0; what was made of some of its
/// tables was refused for their sequence numbers, which only RocksDB before 7.10 goes by, and with
/// that the database was poisoned, at each opening anew.
#[test]
fn tables_whose_epochs_and_sequence_numbers_contradict_each_other_are_merged() {
    let mut world = World::new();
    world.remove_own_table();
    let large = vec![b'x'; 40_000];
    let table =
        |number: u64, epoch_number: u64, entries: &[(&str, ValueType, &[u8])]| FileMetadata {
            epoch_number,
            oldest_blob_file: None,
            ..world.table(FIRST + number, entries, TableBuilderSettings::default(), |_| {})
        };
    let put = ValueType::Value;
    world.add(&[
        table(0, 9, &[("k", put, b"newest")]),
        table(1, 8, &[("a", put, b"first"), ("k", put, b"newer")]),
        table(2, 7, &[("a", put, b"old"), ("b", put, &large), ("k", put, b"old")]),
    ]);
    world
        .options
        .set_all("disable_auto_compactions=false;compaction_style=kCompactionStyleUniversal;level0_file_num_compaction_trigger=2")
        .expect("options");
    world
        .options
        .set("compaction_options_universal", "{max_size_amplification_percent=1000000;}")
        .expect("options");
    for round in 0..2 {
        let db = world.open();
        db.wait_for_compactions().expect("two of the three are merged");
        let family = db.default_column_family();
        assert_eq!(db.property(family, "flagstone.background-error").as_deref(), Some("healthy"));
        assert_eq!(
            db.live_files().iter().filter(|file| file.level.is_some()).count(),
            2,
            "round {round}"
        );
        assert_eq!(db.get("a").expect("a lookup").as_deref(), Some(&b"first"[..]));
        assert_eq!(db.get("b").expect("a lookup").map(|value| value.len()), Some(40_000));
        db.close().expect("a clean close");
    }
}

/// The next table got the same epoch number, and could not be part of the tree.
#[test]
fn an_epoch_number_that_leaves_none_for_what_is_newer_is_refused() {
    let world = World::new();
    let table = world.table(
        FIRST,
        &[("k", ValueType::Value, b"v")],
        TableBuilderSettings::default(),
        |_| {},
    );
    world.add(&[FileMetadata { epoch_number: u64::MAX, ..table }]);
    let error = Db::open("/db", &world.options).expect_err("no table could follow");
    assert!(error.is_corruption() && error.message().contains("epoch number"), "{error}");
    assert!(error.path().is_some() && error.offset().is_some(), "{error}");
}

/// A compaction in parts could not know that it had read all of them: it read all in search of
/// entries out of order, of which there were none, and once more in one part.
#[test]
fn tables_that_do_not_say_how_many_entries_they_have_are_read_once() {
    let reads_in_parts = |parts: u32| {
        let mut world = World::new();
        let keys: Vec<_> =
            (0..500).map(|number| format!("{number:03}")).chain(["z".to_string()]).collect();
        let entries: Vec<_> =
            keys.iter().map(|key| (&key[..], ValueType::Value, &b"value"[..])).collect();
        let settings = TableBuilderSettings {
            checksum: ChecksumType::None,
            block_size: 500,
            ..TableBuilderSettings::default()
        };
        let table = world.table(FIRST, &entries, settings, |_| {});
        world.change(&table, |bytes| {
            let at =
                bytes.windows(8).rposition(|found| found.ends_with(b"entries") && found[0] != b'_');
            bytes[at.expect("a property") + 7] = b'z';
        });
        world.add(&[table]);
        let (fs, reads) =
            (FaultFs::new(world.options.env.fs.clone()), Arc::new(AtomicUsize::new(0)));
        let (table, counted) = (path_of(FileNumber(FIRST)), reads.clone());
        fs.before_each(move |call, path| {
            counted.fetch_add(usize::from(call == Call::Read && path == table), Ordering::Relaxed);
        });
        world.options.env.fs = Arc::new(fs);
        world.options.set_all("target_file_size_base=1000").expect("options");
        let db = world.open();
        assert_eq!(db.get("z").expect("a lookup").as_deref(), Some(&b"value"[..]));
        let before = reads.load(Ordering::Relaxed);
        let options =
            CompactRangeOptions { max_subcompactions: parts, ..CompactRangeOptions::default() };
        db.compact_range(db.default_column_family(), None, None, &options).expect("a compaction");
        assert_eq!(
            db.live_files().iter().filter(|file| file.number == FileNumber(FIRST)).count(),
            0
        );
        reads.load(Ordering::Relaxed) - before
    };
    assert_eq!(reads_in_parts(4), reads_in_parts(1));
}

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
        let file = world.options.env.fs.open(&path, OpenMode::Create).unwrap();
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
