//! Tables that are written outside of a database become part of it.

mod behind;
#[path = "../common/mod.rs"]
mod common;
mod referee;
mod refusals;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::{Code, Comparator};
use flagstone::db::{ColumnFamily, Db, ExternalFiles};
use flagstone::env::Env;
use flagstone::ingest::{SstFileInfo, SstFileWriter, SstFileWriterOptions};
use flagstone::options::{
    ColumnFamilyOptions, CompactRangeOptions, IngestExternalFileOptions, Options, ReadOptions,
};

const DB: &str = "/db";

/// A world in memory, with a directory for tables.
struct World {
    options: Options,
    tables: u32,
}

impl World {
    fn new() -> Self {
        let env = Env::memory();
        env.fs.create_directory(Path::new("/tables")).expect("a directory");
        let mut options = Options { env, ..Options::default() };
        options.db.create_if_missing = true;
        Self { options, tables: 0 }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.options.set(name, value).unwrap_or_else(|error| panic!("{name}: {error}"));
        self
    }

    fn open(&self) -> Db {
        Db::open(DB, &self.options).expect("a database")
    }

    fn writer(&mut self) -> SstFileWriter {
        self.tables += 1;
        let options = SstFileWriterOptions {
            env: self.options.env.clone(),
            ..SstFileWriterOptions::new(&self.options.cf)
        };
        let path = format!("/tables/{}.sst", self.tables);
        SstFileWriter::create(path, &options).expect("a writer")
    }

    /// A table with these keys, all with the same value.
    fn table(&mut self, keys: &[&str], value: &str) -> PathBuf {
        self.written(|writer| keys.iter().for_each(|key| writer.put(key, value).expect("a put")))
    }

    fn written(&mut self, fill: impl FnOnce(&mut SstFileWriter)) -> PathBuf {
        self.info(fill).path
    }

    fn info(&mut self, fill: impl FnOnce(&mut SstFileWriter)) -> SstFileInfo {
        let mut writer = self.writer();
        fill(&mut writer);
        writer.finish().expect("a table")
    }

    fn is_there(&self, path: &Path) -> bool {
        self.options.env.fs.metadata(path).is_ok()
    }

    /// The names in the database's directory that are those of tables.
    fn own_tables(&self) -> usize {
        let names = self.options.env.fs.list(Path::new(DB)).expect("a directory");
        names.iter().filter(|name| name.ends_with(".sst")).count()
    }
}

fn ingest(db: &Db, files: &[&PathBuf]) {
    db.ingest_external_files(db.default_column_family(), files, &Default::default())
        .unwrap_or_else(|error| panic!("{files:?}: {error}"));
}

/// All keys and values, as one text.
fn all(db: &Db) -> String {
    all_of(db, db.default_column_family(), &ReadOptions::default())
}

fn all_of(db: &Db, family: &ColumnFamily, options: &ReadOptions) -> String {
    let mut iter = db.iter_cf(family, options).expect("an iterator");
    let mut out = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let key = iter.key().escape_ascii().to_string();
        out.push(format!("{key}={}", iter.value().expect("a value").escape_ascii()));
        iter.next();
    }
    iter.status().expect("all is read");
    out.join(" ")
}

fn levels(db: &Db) -> Vec<usize> {
    let mut levels: Vec<_> = db.live_files().iter().filter_map(|file| file.level).collect();
    levels.sort_unstable();
    levels
}

#[test]
fn an_empty_database_takes_tables_into_its_last_level() {
    let mut world = World::new();
    let (first, second) = (world.table(&["a", "b"], "1"), world.table(&["c", "d"], "1"));
    let db = world.open();
    ingest(&db, &[&second, &first]);
    assert_eq!(all(&db), "a=1 b=1 c=1 d=1");
    assert_eq!(levels(&db), [6, 6]);
    assert_eq!(db.get("b").expect("a read").expect("a value"), "1");
    assert!(world.is_there(&first), "it was copied");
    drop(db);
    let db = world.open();
    assert_eq!(all(&db), "a=1 b=1 c=1 d=1");
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn every_kind_of_entry_counts() {
    let mut world = World::new();
    world.options.cf.merge_with("append", |_, before, added| {
        let parts = before.into_iter().chain(added.iter().copied());
        Some(parts.collect::<Vec<_>>().concat())
    });
    let table = world.written(|writer| {
        writer.delete("a").expect("a deletion");
        writer.merge("b", "+").expect("an operand");
        writer.put("c", "new").expect("a put");
        writer.single_delete("d").expect("a single deletion");
        writer.delete_range("e", "g").expect("a range deletion");
        writer.put("f", "new").expect("a put under the range deletion");
    });
    let db = world.open();
    for key in ["a", "b", "c", "d", "e", "f", "g"] {
        db.put(key, "old").expect("a put");
    }
    ingest(&db, &[&table]);
    let expected = "b=old+ c=new f=new g=old";
    assert_eq!(all(&db), expected);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    assert_eq!(all(&db), expected);
}

/// The memtable's entries are older, and would be found first.
#[test]
fn memtables_with_keys_in_its_range_are_flushed_first() {
    let mut world = World::new();
    let table = world.table(&["b", "d"], "new");
    let db = world.open();
    db.put("a", "old").expect("a put");
    db.put("b", "old").expect("a put");
    let options = IngestExternalFileOptions { allow_blocking_flush: false, ..Default::default() };
    let error = db
        .ingest_external_files(db.default_column_family(), &[&table], &options)
        .expect_err("a memtable is in the way");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!((levels(&db).len(), world.own_tables()), (0, 0));
    ingest(&db, &[&table]);
    assert_eq!(all(&db), "a=old b=new d=new");
    assert_eq!(levels(&db), [0, 0]);
    db.put("d", "newest").expect("a put");
    assert_eq!(all(&db), "a=old b=new d=newest");
}

/// Memtables without keys in the range stay where they are.
#[test]
fn other_memtables_are_not_flushed() {
    let mut world = World::new();
    let table = world.table(&["b", "d"], "new");
    let db = world.open();
    db.put("a", "old").expect("a put");
    db.put("e", "old").expect("a put");
    ingest(&db, &[&table]);
    assert_eq!(levels(&db), [6]);
    assert_eq!(all(&db), "a=old b=new d=new e=old");
    let table = world.table(&["b"], "newer");
    db.delete_range("aa", "bb").expect("a range deletion in memory");
    ingest(&db, &[&table]);
    assert_eq!(all(&db), "a=old b=newer d=new e=old");
    drop(db);
    assert_eq!(all(&world.open()), "a=old b=newer d=new e=old");
}

#[test]
fn later_tables_win_over_earlier_ones() {
    let mut world = World::new();
    let tables: Vec<_> =
        ["1", "2", "3"].map(|value| world.table(&["a", "b", "c"][..], value)).to_vec();
    let other = world.table(&["x"], "0");
    let db = world.open();
    db.put("b", "old").expect("a put");
    ingest(&db, &[&tables[0], &tables[1], &other, &tables[2]]);
    assert_eq!(all(&db), "a=3 b=3 c=3 x=0");
    let tables = db.live_files();
    let mut sequences: Vec<_> = tables.iter().map(|file| file.sequences).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [(1, 1), (2, 2), (2, 2), (3, 3), (4, 4)]);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    assert_eq!(all(&db), "a=3 b=3 c=3 x=0");
}

#[test]
fn what_began_before_does_not_see_it() {
    let mut world = World::new();
    let table = world.table(&["a", "b"], "new");
    let db = world.open();
    db.put("b", "old").expect("a put");
    let snapshot = db.snapshot();
    let as_of = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    let mut iter = db.iter(&ReadOptions::default()).expect("an iterator");
    ingest(&db, &[&table]);
    let family = db.default_column_family();
    assert_eq!(all_of(&db, family, &as_of), "b=old");
    iter.seek_to_first();
    assert_eq!(iter.key(), b"b");
    assert_eq!(iter.value().expect("a value"), b"old");
    assert_eq!(all(&db), "a=new b=new");
    db.compact_range(family, None, None, &CompactRangeOptions::default()).expect("a compaction");
    assert_eq!(all_of(&db, family, &as_of), "b=old");
    assert_eq!(db.latest_sequence_number(), 2);
}

#[test]
fn files_are_moved_linked_or_copied() {
    let mut world = World::new();
    let db = world.open();
    let family = db.default_column_family();
    let moved = world.table(&["a"], "1");
    let options = IngestExternalFileOptions { move_files: true, ..Default::default() };
    db.ingest_external_files(family, &[&moved], &options).expect("a moved table");
    assert!(!world.is_there(&moved));

    let linked = world.table(&["b"], "1");
    let options = IngestExternalFileOptions { link_files: true, ..Default::default() };
    db.ingest_external_files(family, &[&linked], &options).expect("a linked table");
    assert!(world.is_there(&linked));
    // The writer does not write over a file that a database has linked.
    let mut writer = SstFileWriter::create(
        &linked,
        &SstFileWriterOptions { env: world.options.env.clone(), ..Default::default() },
    )
    .expect("a writer");
    writer.put("z", "z").expect("a put");
    writer.finish().expect("another table");
    drop(db);
    assert_eq!(all(&world.open()), "a=1 b=1");
}

#[test]
fn several_families_take_theirs_together() {
    let mut world = World::new();
    let (of_one, of_two) = (world.table(&["a"], "one"), world.table(&["a"], "two"));
    let db = world.open();
    let one = db.create_column_family("one", &ColumnFamilyOptions::default()).expect("a family");
    let two = db.create_column_family("two", &ColumnFamilyOptions::default()).expect("a family");
    db.put_cf(&two, "a", "old").expect("a put");
    let groups = [ExternalFiles::new(&one, [&of_one]), ExternalFiles::new(&two, [&of_two])];
    db.ingest_together(&groups).expect("both");
    let read = ReadOptions::default();
    assert_eq!(all_of(&db, &one, &read), "a=one");
    assert_eq!(all_of(&db, &two, &read), "a=two");

    // One of them is refused: the other takes nothing either.
    let (good, missing) = (world.table(&["b"], "one"), PathBuf::from("/tables/missing.sst"));
    let groups = [ExternalFiles::new(&one, [good]), ExternalFiles::new(&two, [missing])];
    db.ingest_together(&groups).expect_err("a file is missing");
    assert_eq!(all_of(&db, &one, &read), "a=one");
    assert_eq!(world.own_tables(), 3);
    let groups = [ExternalFiles::new(&one, [&of_one]), ExternalFiles::new(&one, [&of_two])];
    let error = db.ingest_together(&groups).expect_err("the same family twice");
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn a_range_is_replaced_as_a_whole() {
    let mut world = World::new();
    let table = world.table(&["b", "d"], "new");
    let db = world.open();
    let family = db.default_column_family();
    for key in ["a", "b", "c", "d", "e"] {
        db.put(key, "old").expect("a put");
    }
    db.flush_all().expect("a flush");
    db.put("cc", "in memory").expect("a put");
    let snapshot = db.snapshot();
    let group = ExternalFiles {
        atomic_replace_range: Some((b"b".to_vec(), b"e".to_vec())),
        ..ExternalFiles::new(family, [&table])
    };
    db.ingest_together(std::slice::from_ref(&group)).expect("a replaced range");
    assert_eq!(all(&db), "a=old b=new d=new e=old");
    let as_of = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(all_of(&db, family, &as_of), "a=old b=old c=old cc=in memory d=old e=old");
    drop(as_of);
    db.compact_range(family, None, None, &CompactRangeOptions::default()).expect("a compaction");
    assert_eq!(all(&db), "a=old b=new d=new e=old");

    let outside = world.table(&["d", "e"], "new");
    let group = ExternalFiles { files: vec![outside], ..group };
    let error = db.ingest_together(&[group]).expect_err("'e' lies outside");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(all(&db), "a=old b=new d=new e=old");
}

/// Whole tables under the range deletion go without being read.
#[test]
fn what_a_range_deletion_covers_leaves_the_disk() {
    let mut world = World::new();
    let (old, new) = (world.table(&["b", "c"], "old"), world.table(&["bb"], "new"));
    let db = world.open();
    let family = db.default_column_family();
    ingest(&db, &[&old]);
    let group = ExternalFiles {
        atomic_replace_range: Some((b"a".to_vec(), b"d".to_vec())),
        ..ExternalFiles::new(family, [&new])
    };
    db.ingest_together(&[group]).expect("a replaced range");
    db.wait_for_compactions().expect("idle");
    assert_eq!(all(&db), "bb=new");
    let has_old = |file: &flagstone::db::LiveFile| file.sequences == (1, 1);
    assert!(!db.live_files().iter().any(has_old), "{:?}", db.live_files());
}

#[test]
fn a_range_is_emptied_without_tables() {
    let world = World::new();
    let db = world.open();
    for key in ["a", "b", "c"] {
        db.put(key, "old").expect("a put");
    }
    let none: [PathBuf; 0] = [];
    let group = ExternalFiles {
        atomic_replace_range: Some((b"b".to_vec(), b"c".to_vec())),
        ..ExternalFiles::new(db.default_column_family(), none)
    };
    db.ingest_together(&[group]).expect("an emptied range");
    assert_eq!(all(&db), "a=old c=old");
}

/// Replays go on behind the sequence numbers of what was ingested.
#[test]
fn writes_before_and_after_survive_a_reopening() {
    let mut world = World::new();
    let (first, second) = (world.table(&["b"], "1"), world.table(&["b"], "2"));
    let db = world.open();
    db.put("a", "1").expect("a put");
    ingest(&db, &[&first]);
    db.put("c", "1").expect("a put");
    ingest(&db, &[&second]);
    db.put("b", "3").expect("a put");
    let last = db.latest_sequence_number();
    assert_eq!(last, 5);
    drop(db);
    let db = world.open();
    assert_eq!(all(&db), "a=1 b=3 c=1");
    assert_eq!(db.latest_sequence_number(), last);
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn a_replica_hears_that_something_is_missing() {
    let mut world = World::new();
    let table = world.table(&["b"], "1");
    let db = world.open();
    db.put("a", "1").expect("a put");
    ingest(&db, &[&table]);
    db.put("c", "1").expect("a put");
    let mut updates = db.get_updates_since(1).expect("the first write");
    assert_eq!(updates.next_update().expect("a read").expect("a write").sequence, 1);
    let error = updates.next_update().expect_err("the ingested entries are in no WAL");
    assert_eq!(error.code(), Code::NotFound);
}

#[test]
fn a_table_of_another_database_keeps_its_sequence_numbers() {
    let world = World::new();
    let options = Options { env: world.options.env.clone(), ..world.options.clone() };
    let source = Db::open("/source", &options).expect("a database");
    for key in ["m", "n"] {
        source.put(key, "first").expect("a put");
        source.put(key, "second").expect("a put");
    }
    source.delete_range("x", "z").expect("a range deletion");
    source.flush_all().expect("a flush");
    let table = source.live_files()[0].path.clone();
    let db = world.open();
    let family = db.default_column_family();
    let error = db
        .ingest_external_files(family, &[&table], &Default::default())
        .expect_err("a database wrote it");
    assert_eq!(error.code(), Code::InvalidArgument);
    let options =
        IngestExternalFileOptions { allow_db_generated_files: true, ..Default::default() };
    db.put("m", "old").expect("a put");
    let error = db
        .ingest_external_files(family, &[&table], &options)
        .expect_err("it overlaps a key of the database");
    assert_eq!(error.code(), Code::InvalidArgument);
    db.compact_range(family, None, None, &CompactRangeOptions::default()).expect("a compaction");
    let other = Db::open("/other", &world.options).expect("a database");
    let family = other.default_column_family();
    other.put("a", "1").expect("a put");
    let snapshot = other.snapshot();
    other
        .ingest_external_files(family, &[&table], &options)
        .expect_err("the snapshot would see it");
    drop(snapshot);
    other.ingest_external_files(family, &[&table], &options).expect("a table of a database");
    assert_eq!(all(&other), "a=1 m=second n=second");
    assert_eq!(other.latest_sequence_number(), source.latest_sequence_number());
    other.put("n", "third").expect("a put");
    assert_eq!(all(&other), "a=1 m=second n=third");
}

#[test]
fn entries_may_keep_number_0_where_nothing_overlaps() {
    let mut world = World::new();
    let (first, second) = (world.table(&["b", "d"], "1"), world.table(&["c"], "2"));
    let db = world.open();
    let family = db.default_column_family();
    let options = IngestExternalFileOptions { allow_global_seqno: false, ..Default::default() };
    db.put("a", "1").expect("a put");
    let snapshot = db.snapshot();
    let error = db
        .ingest_external_files(family, &[&first], &options)
        .expect_err("the snapshot would see it");
    assert_eq!(error.code(), Code::InvalidArgument);
    drop(snapshot);
    db.ingest_external_files(family, &[&first], &options).expect("nothing overlaps");
    assert_eq!((all(&db), db.latest_sequence_number()), ("a=1 b=1 d=1".to_string(), 1));
    let error =
        db.ingest_external_files(family, &[&second], &options).expect_err("the first overlaps");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(levels(&db).len(), 1);
}

#[test]
fn the_sequence_number_is_written_into_the_file_on_request() {
    let mut world = World::new();
    let table = world.table(&["a"], "1");
    let db = world.open();
    let family = db.default_column_family();
    let options = IngestExternalFileOptions {
        write_global_seqno: true,
        link_files: true,
        ..Default::default()
    };
    db.put("x", "1").expect("a put");
    db.ingest_external_files(family, &[&table], &options).expect("a table");
    assert_eq!(all(&db), "a=1 x=1");
    let again = db.ingest_external_files(family, &[&table], &Default::default());
    let error = again.expect_err("it has the number of an earlier ingestion");
    assert_eq!(error.code(), Code::InvalidArgument);
    db.put("a", "2").expect("a put");
    // A copy of it gets another number; that of the original stays.
    let options = IngestExternalFileOptions { link_files: false, ..options };
    db.ingest_external_files(family, &[&table], &options).expect("the same table");
    let mut sequences: Vec<_> = db.live_files().iter().map(|file| file.sequences).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [(1, 3), (2, 2), (4, 4)]);
    assert_eq!(all(&db), "a=1 x=1");
    drop(db);
    let db = world.open();
    assert_eq!(all(&db), "a=1 x=1");
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn keys_ascend_by_the_comparator_of_the_family() {
    let mut world = World::new();
    world.options.cf.comparator = Comparator::ReverseBytewise;
    let table = world.table(&["c", "b", "a"], "1");
    let db = world.open();
    db.put("b", "old").expect("a put");
    db.put("bb", "old").expect("a put");
    ingest(&db, &[&table]);
    assert_eq!(all(&db), "c=1 bb=old b=1 a=1");
}

#[test]
fn every_style_of_compaction_takes_tables() {
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal", "kCompactionStyleFIFO"] {
        let mut world = World::new().set("compaction_style", style);
        let tables = [world.table(&["a", "c"], "1"), world.table(&["b", "d"], "2")];
        let db = world.open();
        db.put("b", "old").expect("a put");
        for table in &tables {
            ingest(&db, &[table]);
        }
        db.wait_for_compactions().expect("idle");
        assert_eq!(all(&db), "a=1 b=2 c=1 d=2", "{style}");
        drop(db);
        assert_eq!(all(&world.open()), "a=1 b=2 c=1 d=2", "{style}");
    }
}

/// Listeners hear of each table.
#[test]
fn listeners_hear_of_it() {
    #[derive(Default)]
    struct Heard(std::sync::Mutex<Vec<(String, PathBuf, u64)>>);
    impl flagstone::options::EventListener for Heard {
        fn on_external_file_ingested(&self, table: &flagstone::options::IngestionInfo) {
            let heard =
                (table.family_name.clone(), table.external_path.clone(), table.global_seqno);
            self.0.lock().expect("no panic").push(heard);
        }
    }
    let mut world = World::new();
    let heard = Arc::new(Heard::default());
    world.options.listeners.push(heard.clone());
    let table = world.table(&["a"], "1");
    let db = world.open();
    ingest(&db, &[&table]);
    db.close().expect("a clean close");
    let heard = heard.0.lock().expect("no panic");
    assert_eq!(*heard, [("default".to_string(), table, 1)]);
}
