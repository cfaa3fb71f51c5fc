//! A damaged file costs what it held, and nothing else.

#[path = "../common/mod.rs"]
mod common;
mod order;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use common::{add_to_manifest, manifest_records};
use flagstone::base::{
    Code, ColumnFamilyId, CompactionFilter, Comparator, FileNumber, FilterDecision, FilteredKind,
    InternalKeyBuf, UserComparator, ValueType,
};
use flagstone::db::{Db, Severity};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{FileSystem, read_file};
use flagstone::manifest::{FileMetadata, VersionEdit};
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, CompactionControl,
    Options, ReadOptions,
};
use testkit::steps;

/// A database in memory whose files can be damaged.
struct World {
    fs: Arc<MemoryFileSystem>,
    options: Options,
}

impl World {
    fn new(settings: &str) -> Self {
        let fs = Arc::new(MemoryFileSystem::new());
        let mut options = Options { env: steps::world(fs.clone(), 1), ..Options::default() };
        options
            .set_all("create_if_missing=true;compression=kNoCompression;level0_file_num_compaction_trigger=2")
            .expect("options");
        options.set_all(settings).expect("options");
        Self { fs, options }
    }

    fn open(&self) -> Db {
        Db::open("/db", &self.options).expect("a database")
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let names = self.fs.list(Path::new("/db")).expect("a listing");
        let mut files: Vec<_> = names.iter().map(|name| Path::new("/db").join(name)).collect();
        files.retain(|path| path.extension().is_some_and(|found| found == extension));
        files.sort();
        files
    }

    /// Flips a bit of a file; what it was.
    fn damage(&self, path: &Path, at: usize) -> Vec<u8> {
        let before = read_file(&*self.fs, path, u64::MAX).expect("a file");
        let file = self.fs.reopen_writable(path).expect("a file");
        file.write_at(at as u64, &[before[at] ^ 1]).expect("a write");
        before
    }
}

/// Puts a value for each letter, flushed.
fn put(db: &Db, letters: &str, value: &str) {
    for letter in letters.chars() {
        db.put(letter.to_string(), format!("{letter} {value} {}", "x".repeat(100)))
            .expect("a write");
    }
    db.flush_all().expect("a flush");
}

fn begins(db: &Db, key: &str, value: &str) {
    let found = db.get(key).expect("a lookup").expect("a value");
    assert!(found.starts_with(format!("{key} {value} ").as_bytes()), "{key}");
}

fn everything() -> CompactRangeOptions {
    CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
        blob_garbage_collection_age_cutoff: 1.0,
        ..CompactRangeOptions::default()
    }
}

fn damaged(db: &Db) -> String {
    db.property(db.default_column_family(), "flagstone.damaged-files").expect("a property")
}

#[test]
fn a_table_that_a_compaction_cannot_read_is_set_aside_and_all_else_goes_on() {
    let world = World::new("");
    let db = world.open();
    put(&db, "abc", "old");
    db.compact_range(db.default_column_family(), None, None, &everything()).expect("a compaction");
    put(&db, "xyz", "old");
    db.compact_range(db.default_column_family(), Some(b"x"), None, &everything())
        .expect("a compaction");
    db.close().expect("a clean close");
    let tables = world.files("sst");
    assert_eq!(tables.len(), 2);
    let before = world.damage(&tables[0], 60);

    let db = world.open();
    for round in 0..6 {
        put(&db, "ay", &format!("new{round}"));
    }
    db.wait_for_compactions().expect("the compactions that are possible");
    let listed = damaged(&db);
    for said in [
        "family 'default', keys 'a' to 'c': corruption",
        "checksum",
        tables[0].to_str().expect("ASCII"),
    ] {
        assert!(listed.contains(said), "{listed}");
    }
    assert_eq!(db.damaged_files().len(), 1);
    assert!(db.get("b").expect_err("its block is damaged").is_corruption());
    begins(&db, "a", "new5");
    begins(&db, "y", "new5");
    begins(&db, "x", "old");

    let findings = db.doctor().expect("a diagnosis");
    assert_eq!(findings[0].severity, Severity::Broken, "{findings:?}");
    assert!(findings[0].what.contains("keys 'a' to 'c'"), "{findings:?}");
    let family = db.default_column_family();
    let error = db
        .compact_range(family, Some(b"a"), Some(b"c"), &everything())
        .expect_err("it is in the way");
    assert!(
        error.is_corruption() && error.to_string().contains("blocks the compaction"),
        "{error}"
    );
    put(&db, "mn", "new");
    begins(&db, "m", "new");
    assert_eq!(db.property(family, "flagstone.background-error").as_deref(), Some("healthy"));
    let level0: u64 = db
        .property(family, "rocksdb.num-files-at-level0")
        .expect("a property")
        .parse()
        .expect("a number");
    assert!(
        level0 < 8,
        "tables that wait for the damaged one are merged with one another: {level0}"
    );
    db.close().expect("a clean close");

    // Restored, it is as before.
    world.fs.put(&tables[0], Arc::new(before));
    let db = world.open();
    db.compact_range(db.default_column_family(), None, None, &everything()).expect("a compaction");
    begins(&db, "b", "old");
    assert_eq!(damaged(&db), "");
}

#[test]
fn of_two_tables_with_the_same_entry_the_newer_is_set_aside() {
    let mut world = World::new("disable_auto_compactions=true;merge_operator=stringappendtest");
    world.options.set("level_compaction_dynamic_level_bytes", "false").expect("an option");
    let db = world.open();
    // The operands wait for what lies far below, and are not merged with one another.
    put(&db, "a", "old");
    let down = CompactRangeOptions {
        change_level: true,
        target_level: 6,
        ..CompactRangeOptions::default()
    };
    db.compact_range(db.default_column_family(), None, None, &down).expect("a compaction");
    db.merge("a", "operand").expect("a write");
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");
    let table = world.files("sst").pop().expect("a table");
    let again = Path::new("/db/000099.sst");
    let bytes = read_file(&*world.fs, &table, u64::MAX).expect("a table");
    world.fs.put(again, Arc::new(bytes));
    let records = manifest_records(&world.options.env);
    let edits = records.iter().map(|record| VersionEdit::decode(record).expect("an edit"));
    let (level, table) = edits.flat_map(|edit| edit.new_files).next_back().expect("a table");
    let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
    let (number, epoch_number) = (FileNumber(99), table.epoch_number + 1);
    edit.add_file(level, FileMetadata { number, epoch_number, ..table });
    edit.next_file_number = Some(FileNumber(100));
    add_to_manifest(&world.options.env, &edit);

    world.options.set_all("disable_auto_compactions=false").expect("an option");
    assert_goes_on_without(&world, again, &["is also in table", "keys 'a' to 'a'"]);
}

/// This table is set aside, however often the database is opened, and all else is read and written.
fn assert_goes_on_without(world: &World, table: &Path, said: &[&str]) {
    for round in 0..2 {
        let db = world.open();
        let family = match round {
            0 => db.create_column_family("other", &world.options.cf).expect("a family"),
            _ => db.column_family("other").expect("it is there"),
        };
        db.put_cf(&family, "key", "value").expect("a write");
        for value in ["new", "newer"] {
            put(&db, "0xyz", value);
        }
        db.wait_for_compactions().expect("those that are possible");
        let listed = damaged(&db);
        for said in said.iter().copied().chain([table.to_str().expect("ASCII"), "offset 0"]) {
            assert!(listed.contains(said), "{said}: {listed}");
        }
        assert_eq!(db.damaged_files().len(), 1, "{listed}");
        assert_eq!(db.property(&family, "flagstone.background-error").as_deref(), Some("healthy"));
        begins(&db, "x", "newer");
        assert_eq!(db.get_cf(&family, "key").expect("a lookup").expect("a value"), "value");
        db.close().expect("a clean close");
    }
}

#[test]
fn what_is_damaged_is_not_answered_from_what_is_older() {
    let world = World::new("disable_auto_compactions=true");
    let db = world.open();
    put(&db, "abc", "old");
    put(&db, "abc", "new");
    db.close().expect("a clean close");
    world.damage(&world.files("sst")[1], 60);
    let db = world.open();
    for found in [db.get("b"), db.multi_get(&["b"]).remove(0)] {
        assert!(found.expect_err("the newer value cannot be read").is_corruption());
    }
    let listed = damaged(&db);
    assert!(listed.contains("keys 'a' to 'c'"), "{listed}");
    db.put("b", "newest").expect("a write");
    assert_eq!(db.get("b").expect("it is in memory").as_deref(), Some(&b"newest"[..]));
}

/// The answer of a future that waits for nobody.
fn answer<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("without threads the first poll reads"),
    }
}

/// Of such a file only plain lookups told once.
#[test]
fn damage_is_told_of_whatever_lookup_meets_it() {
    type Lookup = fn(&Db, &ReadOptions) -> bool;
    let lookups: [(&str, Lookup); 5] = [
        ("part of a value", |db, options| {
            db.get_range(options, db.default_column_family(), "b", 0..1).is_err()
        }),
        ("async", |db, options| {
            answer(db.get_async(options, db.default_column_family(), b"b")).is_err()
        }),
        ("several, async", |db, options| {
            answer(db.multi_get_async(options, db.default_column_family(), vec![b"b".to_vec()]))
                .remove(0)
                .is_err()
        }),
        ("scan", |db, options| {
            let mut iter = db.iter(options).expect("a cursor");
            iter.seek_to_first();
            !iter.valid() && iter.status().is_err()
        }),
        ("scan of which nobody asks how it ended", |db, options| {
            let mut iter = db.iter(options).expect("a cursor");
            iter.seek("b");
            !iter.valid()
        }),
    ];
    for (name, lookup) in lookups {
        let world = World::new("disable_auto_compactions=true");
        let db = world.open();
        put(&db, "abc", "value");
        db.close().expect("a clean close");
        world.damage(&world.files("sst")[0], 60);
        let db = world.open();
        assert!(lookup(&db, &ReadOptions::default()), "{name}");
        assert!(damaged(&db).contains("keys 'a' to 'c'"), "{name}");
    }
}

#[test]
fn a_blob_file_that_cannot_be_read_keeps_only_its_own_from_being_collected() {
    let world = World::new("enable_blob_files=true;min_blob_size=50;blob_commit_min_size=50");
    let db = world.open();
    put(&db, "abc", "old");
    // Only files with garbage are emptied.
    put(&db, "a", "newer");
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    db.close().expect("a clean close");
    let blobs = world.files("blob");
    world.damage(&blobs[0], 300);
    let db = world.open();
    let family = db.default_column_family();
    let compacted = db.compact_range(family, None, None, &everything());
    let error = compacted.expect_err("its values cannot be moved");
    assert!(error.is_corruption(), "{error}");
    let listed = damaged(&db);
    assert!(listed.contains("keys 'a' to 'c'") && listed.contains(".blob"), "{listed}");
    for round in 0..4 {
        put(&db, "xyz", &format!("new{round}"));
    }
    db.wait_for_compactions().expect("the others");
    begins(&db, "x", "new3");
    assert_eq!(db.property(family, "flagstone.background-error").as_deref(), Some("healthy"));
}

/// One value that could not be read ended the collection of all blob files: its file was waited
/// for, without an end.
#[test]
fn other_blob_files_are_emptied_beside_one_that_cannot_be() {
    let mut world = World::new(
        "enable_blob_files=true;min_blob_size=50;blob_commit_min_size=50;blob_punch_holes=false;disable_auto_compactions=true",
    );
    let db = world.open();
    put(&db, "abcdefgh", "old");
    put(&db, "abcdef", "newer");
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    db.close().expect("a clean close");
    // The value of `g`, one of two in the file that live.
    world.damage(&world.files("blob")[0], 950);
    world.options.set_all("disable_auto_compactions=false").expect("an option");
    let db = world.open();
    db.wait_for_compactions().expect("what is possible");
    assert!(damaged(&db).contains(".blob"), "it is emptied first");
    // Files of which one value stays and three do not, far from the damaged one's keys.
    for letter in "ijklmnopqrstuvwxy".chars() {
        put(&db, &format!("{letter}zzz"), "new");
    }
    db.wait_for_compactions().expect("the others");
    let usage = db.space(db.default_column_family()).expect("addresses can be read");
    // Six records of 139 bytes are garbage in the damaged file, and some fifty were in the others.
    assert!(usage.garbage_bytes < 20 * 139, "{usage:?}");
    begins(&db, "i", "new");
}

#[test]
fn a_table_that_is_missing_at_open_is_refused_with_what_helps() {
    let world = World::new("");
    let db = world.open();
    put(&db, "abc", "old");
    db.close().expect("a clean close");
    world.fs.remove(&world.files("sst")[0]).expect("a removal");
    let error = Db::open("/db", &world.options).expect_err("a file is missing");
    assert!(error.is_corruption() && error.to_string().contains("flagstone salvage"), "{error}");
}

#[test]
fn without_paranoia_all_but_the_missing_table_is_read_and_written() {
    let mut world = World::new("disable_auto_compactions=true");
    let db = world.open();
    put(&db, "abc", "old");
    put(&db, "xyz", "old");
    db.close().expect("a clean close");
    world.fs.remove(&world.files("sst")[0]).expect("a removal");
    let refused = Db::open("/db", &world.options).expect_err("a file is missing");
    assert!(refused.to_string().contains("paranoid_checks=false"), "{refused}");

    world.options.set("paranoid_checks", "false").expect("an option");
    let db = world.open();
    begins(&db, "x", "old");
    assert!(db.get("a").is_err());
    assert!(damaged(&db).contains(".sst"), "{}", damaged(&db));
    put(&db, "xyz", "new");
    begins(&db, "y", "new");
    db.close().expect("a clean close");
    begins(&world.open(), "z", "new");
}

/// Writers waited, without an end, for a compaction that the table set aside kept from being made.
#[test]
fn writers_do_not_wait_for_compactions_that_cannot_be_made() {
    let world = World::new(
        "level0_slowdown_writes_trigger=3;level0_stop_writes_trigger=3;disable_auto_compactions=true",
    );
    let db = world.open();
    for round in 0..3 {
        put(&db, "abc", &format!("{round}"));
    }
    db.close().expect("a clean close");
    for table in world.files("sst") {
        world.damage(&table, 60);
    }
    let mut options = world.options.clone();
    options.set_all("disable_auto_compactions=false").expect("an option");
    let db = Db::open("/db", &options).expect("a database");
    for round in 0..10 {
        put(&db, "abc", &format!("new{round}"));
    }
    begins(&db, "b", "new9");
    let stopped = db.property(db.default_column_family(), "rocksdb.is-write-stopped");
    assert_eq!(stopped.as_deref(), Some("0"));
}

/// FIFO compaction dropped nothing any more, neither by size nor by age, once a table could not be
/// read: neither where it was to be merged with others nor where it was to be dropped itself, and
/// its references to blob files to be counted.
#[test]
fn fifo_compaction_drops_a_damaged_table_with_the_others() {
    for settings in [
        "enable_blob_files=true;min_blob_size=50;compaction_options_fifo={max_table_files_size=5000;}",
        "compaction_options_fifo={max_table_files_size=5000;allow_compaction=true;}",
    ] {
        let style = "compaction_style=kCompactionStyleFIFO;disable_auto_compactions=true";
        let world = World::new(&format!("{style};{settings}"));
        let db = world.open();
        put(&db, "abc", "old");
        db.close().expect("a clean close");
        world.damage(&world.files("sst")[0], 20);
        let mut options = world.options.clone();
        options.set_all("disable_auto_compactions=false").expect("an option");
        let db = Db::open("/db", &options).expect("a database");
        for round in 0..40 {
            put(&db, "xyz", &format!("new{round}"));
        }
        db.wait_for_compactions().expect("all that is wanted");
        let tables = db.live_files().iter().filter(|file| file.level.is_some()).count();
        assert!(tables < 10, "{settings}: {tables} tables");
        assert_eq!(world.files("blob").len(), if settings.contains("blob") { tables } else { 0 });
        assert!(
            damaged(&db).contains("keys 'a' to 'c': corruption"),
            "{settings}: {}",
            damaged(&db)
        );
        begins(&db, "x", "new39");
        assert_eq!(db.get("a").expect("it is gone"), None);
        db.close().expect("a clean close");
    }
}
