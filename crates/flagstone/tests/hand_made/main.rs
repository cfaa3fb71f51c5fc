//! Tables and logs that this engine does not write: a later RocksDB does, or nobody.

mod between;
#[path = "../common/mod.rs"]
mod common;
mod later_versions;
mod nonsense;

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
use flagstone::env::IoMode;
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
        let file = self
            .options
            .env
            .fs
            .create_writable(&path_of(number), IoMode::Buffered)
            .expect("a file");
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
        let file = self.options.env.fs.reopen_writable(&path_of(table.number)).expect("a file");
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
        let file = self.options.env.fs.create_writable(&path, IoMode::Buffered).expect("a file");
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

/// A compaction that came to such an entry failed without naming a file, and poisoned the database.
#[test]
fn a_value_that_cannot_be_read_costs_its_table_and_nothing_else() {
    for (kind, value, code) in [
        (ValueType::BlobIndex, &b"\x00\x05x"[..], Code::Corruption),
        (ValueType::BlobIndex, b"\x02\x05x", Code::Corruption),
        (ValueType::BlobIndex, b"\x01\x05", Code::Corruption),
        (ValueType::BlobIndex, b"", Code::Corruption),
        (ValueType::BlobIndex, b"\x01\x00\x20\x05\x00", Code::Corruption),
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

type Change = fn(&mut FileMetadata);

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
