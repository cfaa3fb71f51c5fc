//! `atomic_flush`: what is written to several families without the WAL is found in all of them up
//! to one moment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::add_to_manifest;
use flagstone::base::{
    ColumnFamilyId, Comparator, DataPaths, FileNumber, InternalKeyBuf, Result, SubCode, ValueType,
};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, Ticker, salvage};
use flagstone::env::{Env, FileSystem};
use flagstone::manifest::{
    FamilySpec, FileMetadata, ManifestSettings, RecoverOptions, VersionEdit, VersionSet, dump,
    read_current,
};
use flagstone::options::{FlushOptions, Options, WriteOptions};
use testkit::{Call, CrashFs, FaultFs, Injection, Plan, Sort, Survival, compare, settings, steps};

const FAMILIES: [&str; 3] = ["default", "index", "counts"];
const DB: &str = "/db";

/// A database of three families on a disk that remembers every change, in a world without threads.
struct World {
    disk: CrashFs,
    fs: FaultFs,
    options: Options,
}

impl World {
    fn new(changes: &[(&str, &str)]) -> Self {
        let disk = CrashFs::new();
        let fs = FaultFs::above(&disk);
        let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), 0));
        settings::set(&mut options, &[("atomic_flush", "true")]);
        settings::set(&mut options, changes);
        Self { disk, fs, options }
    }

    fn open(&self) -> Db {
        open(&self.options).unwrap()
    }

    /// What a power loss leaves that comes after so many changes of the disk.
    fn after_power_loss(&self, at: usize, survival: Survival) -> Db {
        let disk = self.disk.after_crash(at, survival);
        open(&Options { env: steps::world(Arc::new(disk), 0), ..self.options.clone() }).unwrap()
    }

    /// The edits of the MANIFEST that counts.
    fn edits(&self) -> Vec<VersionEdit> {
        let manifest = read_current(&self.disk, Path::new(DB)).unwrap();
        dump(&self.disk, &manifest).unwrap().map(|(_, edit)| edit.unwrap()).collect()
    }
}

fn open(options: &Options) -> Result<Db> {
    let families: Vec<_> = FAMILIES.iter().map(|name| (*name, options.cf.clone())).collect();
    Db::open_with_families(DB, options, &families)
}

fn family(db: &Db, name: &str) -> ColumnFamily {
    db.column_family(name).unwrap()
}

/// A batch without the WAL that says in each of these families which it was.
fn put(db: &Db, names: &[&str], number: u32) -> Result<()> {
    let mut batch = WriteBatch::new();
    for name in names {
        batch.put_cf(&family(db, name), b"last", number.to_be_bytes())?;
        batch.put_cf(&family(db, name), format!("key{number}").as_bytes(), [number as u8; 40])?;
    }
    db.write_with(&WriteOptions { disable_wal: true, ..WriteOptions::default() }, batch)
}

/// The last batch that each family has.
fn last(db: &Db) -> [u32; 3] {
    FAMILIES.map(|name| {
        let value = db.get_cf(&family(db, name), "last").unwrap();
        value.map_or(0, |value| u32::from_be_bytes(value[..].try_into().unwrap()))
    })
}

fn tables(db: &Db) -> [usize; 3] {
    FAMILIES.map(|name| db.live_files().iter().filter(|file| file.column_family == name).count())
}

/// The user flushed one of three families. The others' part of the same batches was lost with the
/// power.
#[test]
fn a_flush_of_one_family_takes_the_others_along() {
    let world = World::new(&[]);
    let db = world.open();
    put(&db, &FAMILIES, 1).unwrap();
    put(&db, &FAMILIES, 2).unwrap();
    db.flush(&family(&db, "index"), &FlushOptions::default()).unwrap();
    assert_eq!(tables(&db), [1, 1, 1]);
    put(&db, &FAMILIES, 3).unwrap();
    let found = world.after_power_loss(world.disk.changes(), Survival::Lost);
    assert_eq!(last(&found), [2, 2, 2]);
    // Their edits follow one another and say how many are to come.
    let groups: Vec<_> =
        world.edits().iter().filter_map(|edit| edit.atomic_group_remaining).collect();
    assert_eq!(groups, [2, 1, 0]);
}

/// Also where a family has nothing itself: the others have, and it is theirs that is asked for.
#[test]
fn a_flush_of_a_family_without_writes_flushes_those_with() {
    let world = World::new(&[]);
    let db = world.open();
    put(&db, &["counts"], 1).unwrap();
    db.flush(&family(&db, "index"), &FlushOptions::default()).unwrap();
    assert_eq!(tables(&db), [0, 0, 1]);
    assert!(
        world.edits().iter().all(|edit| edit.atomic_group_remaining.is_none()),
        "one edit is no group"
    );
}

/// At every moment of a life, whatever of the unsynced survives.
#[test]
fn all_families_are_found_at_one_moment() {
    for changes in [
        &[][..],
        &[("enable_blob_files", "true"), ("min_blob_size", "20")],
        &[("enable_blob_files", "true"), ("min_blob_size", "20"), ("blob_commit_min_size", "20")],
        &[("max_manifest_file_size", "300")],
    ] {
        let world = World::new(changes);
        let db = world.open();
        let begin = world.disk.changes();
        let mut moments = vec![0];
        for number in 1..40 {
            let names = if number % 3 == 0 { &FAMILIES[1..] } else { &FAMILIES[..] };
            put(&db, names, number).unwrap();
            match number % 10 {
                4 => db.flush_all().unwrap(),
                7 => while db.background_step().unwrap() {},
                9 => db
                    .flush(
                        &family(&db, "counts"),
                        &FlushOptions { wait: false, ..FlushOptions::default() },
                    )
                    .unwrap(),
                _ => {}
            }
            moments.push(world.disk.changes());
        }
        db.close().unwrap();
        let expected = |upto: u32| match (1..=upto).rev().find(|number| number % 3 != 0) {
            Some(number) => [number, upto, upto],
            None => [0, upto, upto],
        };
        let mut seen = std::collections::BTreeSet::new();
        for at in begin..=world.disk.changes() {
            for survival in [Survival::Lost, Survival::Kept] {
                let found = last(&world.after_power_loss(at, survival));
                let upto = found[1];
                assert_eq!(
                    found,
                    expected(upto),
                    "{changes:?}, after {at}: {}",
                    world.disk.describe(at)
                );
                seen.insert(upto);
            }
        }
        assert!(seen.len() > 5 && seen.contains(&39), "flushes are seen: {seen:?}");
    }
}

/// Large groups are not synced edit by edit, and the MANIFEST's blocks end anywhere in them.
#[test]
fn a_group_that_goes_on_in_another_block_of_the_manifest_is_found_whole_or_not_at_all() {
    let disk = CrashFs::new();
    disk.create_directory(Path::new(DB)).unwrap();
    disk.sync_directory(Path::new("/")).unwrap();
    let names = ["default", "a", "b", "c", "d", "e"];
    let specs = names.map(|name| FamilySpec {
        name: name.to_string(),
        comparator: Comparator::Bytewise,
        persists_timestamps: true,
        paths: DataPaths::single(Path::new(DB)),
        num_levels: 7,
    });
    let [default, others @ ..] = specs.clone();
    let settings = ManifestSettings::default();
    let env = steps::world(Arc::new(disk.clone()), 0);
    let mut versions = VersionSet::create(env, Path::new(DB), default, settings).unwrap();
    versions.create_column_families(others.to_vec(), FileNumber(0)).unwrap();
    let (manifest, begin) = (versions.manifest_number(), disk.changes());
    let mut acknowledged = Vec::new();
    for round in 1..14 {
        let edit = |family: u64| {
            let key = |letter| {
                InternalKeyBuf::new(
                    &vec![letter; 700 + 60 * family as usize],
                    round,
                    ValueType::Value,
                )
            };
            let table = FileMetadata {
                number: FileNumber(100 * round + family),
                size: 1000,
                smallest: key(b'a'),
                largest: key(b'b'),
                smallest_seqno: round,
                largest_seqno: round,
                ..FileMetadata::default()
            };
            let mut edit = VersionEdit::new(ColumnFamilyId(family as u32));
            edit.add_file(0, table);
            edit
        };
        versions.log_and_apply_atomically((0..names.len() as u64).map(edit).collect()).unwrap();
        acknowledged.push(disk.changes());
    }
    assert_eq!(versions.manifest_number(), manifest, "all were appended");
    for at in begin..=disk.changes() {
        let done = acknowledged.iter().filter(|changes| **changes <= at).count();
        let chances = (0..5).map(Survival::Random);
        for survival in [Survival::Lost, Survival::Kept].into_iter().chain(chances) {
            let env = steps::world(Arc::new(disk.after_crash(at, survival)), 0);
            let options = RecoverOptions { families: specs.to_vec(), read_only: false, settings };
            let found = VersionSet::recover(env, Path::new(DB), options).unwrap_or_else(|error| {
                panic!("{survival:?} after {at}, {}: {error}", disk.describe(at))
            });
            let tables: Vec<_> =
                found.families().map(|family| family.current.num_files()).collect();
            let is_one_moment = tables.iter().all(|count| *count == tables[0]);
            assert!(
                is_one_moment && (done..=done + 1).contains(&tables[0]),
                "{survival:?} {at}: {tables:?}"
            );
        }
    }
}

/// One family fills its memtable; those with little go along, and are not the reason why anybody
/// waits.
#[test]
fn a_full_memtable_flushes_all() {
    let world =
        World::new(&[("min_write_buffer_number_to_merge", "3"), ("max_write_buffer_number", "6")]);
    let db = world.open();
    put(&db, &FAMILIES, 1).unwrap();
    let mut number = 2;
    while tables(&db) == [0, 0, 0] {
        put(&db, &["index"], number).unwrap();
        while db.background_step().unwrap() {}
        number += 1;
        assert!(number < 1000, "the memtable is full by now");
    }
    assert_eq!(tables(&db), [1, 1, 1]);
}

/// The table of the second family could not be written; the first family's was done. None of them
/// counted, all were tried again.
#[test]
fn when_one_family_cannot_be_flushed_none_is() {
    for call in [Call::Write, Call::Sync] {
        for nth in 0..3 {
            let world = World::new(&[]);
            let db = world.open();
            put(&db, &FAMILIES, 1).unwrap();
            let tables_before = tables(&db);
            let counted = AtomicUsize::new(0);
            let fs = world.fs.clone();
            world.fs.before_each(move |now, path| {
                let is_table = path.extension().is_some_and(|extension| extension == "sst");
                if now == call && is_table && counted.fetch_add(1, Ordering::Relaxed) == nth {
                    fs.plan(Plan::Next { call, sort: Sort::Table, injection: Injection::NoSpace });
                }
            });
            let outcome = db.flush_all();
            assert_eq!(world.fs.failed().len(), 1, "{call:?} {nth}");
            if let Err(error) = outcome {
                assert_eq!(error.subcode(), SubCode::NoSpace, "{error}");
                assert_eq!(tables(&db), tables_before, "{call:?} {nth}");
            }
            let found = world.after_power_loss(world.disk.changes(), Survival::Kept);
            assert!(matches!(last(&found), [0, 0, 0] | [1, 1, 1]), "{call:?} {nth}");
            db.resume().unwrap();
            db.flush_all().unwrap();
            assert_eq!((tables(&db), last(&db)), ([1, 1, 1], [1, 1, 1]), "{call:?} {nth}");
            assert!(db.check().unwrap().strays.is_empty(), "what was written in vain is gone");
        }
    }
}

/// The group's second edit found the disk full: the first one is in the MANIFEST, and does not
/// count.
#[test]
fn half_a_group_in_the_manifest_does_not_count() {
    let world = World::new(&[]);
    let db = world.open();
    db.flush_all().unwrap();
    put(&db, &FAMILIES, 1).unwrap();
    db.flush_all().unwrap();
    put(&db, &FAMILIES, 2).unwrap();
    let before = world.edits().len();
    let counted = AtomicUsize::new(0);
    let fs = world.fs.clone();
    world.fs.before_each(move |call, path| {
        let is_manifest =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"));
        if call == Call::Write && is_manifest && counted.fetch_add(1, Ordering::Relaxed) == 1 {
            fs.plan(Plan::Next { call, sort: Sort::Manifest, injection: Injection::NoSpace });
        }
    });
    db.flush_all().unwrap_err();
    let edits = world.edits();
    assert_eq!(edits.len(), before + 1);
    assert_eq!(edits.last().unwrap().atomic_group_remaining, Some(2));
    let found = world.after_power_loss(world.disk.changes(), Survival::Kept);
    assert_eq!(last(&found), [1, 1, 1]);
    // Whoever opens it begins a new MANIFEST, behind which nothing of the half is left.
    put(&found, &FAMILIES, 7).unwrap();
    found.close().unwrap();
    drop(found);
    db.resume().unwrap();
    db.flush_all().unwrap();
    let found = world.after_power_loss(world.disk.changes(), Survival::Lost);
    assert_eq!(last(&found), [2, 2, 2]);
}

/// A salvage took the tables of the half for a part of the database.
#[test]
fn a_salvage_leaves_half_a_group_out() {
    let world = World::new(&[]);
    let db = world.open();
    for number in 1..4 {
        put(&db, &FAMILIES, number).unwrap();
        db.flush_all().unwrap();
    }
    let manifest = read_current(&world.disk, Path::new(DB)).unwrap();
    let edits: Vec<_> = dump(&world.disk, &manifest).unwrap().collect();
    // At the beginning of the last edit.
    let (offset, last_edit) = edits.last().unwrap();
    assert_eq!(last_edit.as_ref().unwrap().atomic_group_remaining, Some(0));
    let disk = world.disk.after_crash(world.disk.changes(), Survival::Kept);
    disk.reopen_writable(&manifest).unwrap().truncate(*offset).unwrap();
    let options = Options { env: steps::world(Arc::new(disk), 0), ..world.options.clone() };
    let families: Vec<_> = FAMILIES.iter().map(|name| (*name, options.cf.clone())).collect();
    let report =
        salvage(Path::new(DB), Path::new("/saved"), &options, &families, &mut |_| {}).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    let saved = Db::open_with_families("/saved", &options, &families).unwrap();
    assert_eq!(last(&saved), [2, 2, 2]);
}

/// A family is dropped while its memtable waits with others.
#[test]
fn a_family_that_is_dropped_does_not_keep_the_others() {
    let world = World::new(&[]);
    let db = world.open();
    put(&db, &FAMILIES, 1).unwrap();
    db.flush(&family(&db, "index"), &FlushOptions { wait: false, ..FlushOptions::default() })
        .unwrap();
    db.drop_column_family(&family(&db, "index")).unwrap();
    while db.background_step().unwrap() {}
    let there: Vec<_> = db.live_files().iter().map(|file| file.column_family.clone()).collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert!(db.check().unwrap().strays.is_empty());
    db.close().unwrap();
    drop(db);
    let families = [("default", world.options.cf.clone()), ("counts", world.options.cf.clone())];
    let db = Db::open_with_families(DB, &world.options, &families).unwrap();
    assert!(db.get_cf(&family(&db, "counts"), "last").unwrap().is_some());
}

/// And while the flush writes it.
#[test]
fn a_family_that_is_dropped_during_its_flush_is_left_out() {
    let world = World::new(&[]);
    let db = world.open();
    put(&db, &FAMILIES, 1).unwrap();
    let (other, dropped) = (db.clone(), AtomicBool::new(false));
    world.fs.before_each(move |call, path| {
        let is_table = path.extension().is_some_and(|extension| extension == "sst");
        if call == Call::Sync && is_table && !dropped.swap(true, Ordering::Relaxed) {
            other.drop_column_family(&family(&other, "index")).unwrap();
        }
    });
    db.flush_all().unwrap();
    world.fs.before_each(|_, _| {});
    assert_eq!(db.live_files().len(), 2);
    assert!(db.check().unwrap().strays.is_empty());
    assert_eq!(db.statistics().get(Ticker::Flushes), 1);
}

/// Many write, the threads of the engine flush, and somebody asks for flushes of one family or the
/// other. Of each writer the same batches are found in all families, the first so many.
#[test]
fn flushes_of_threads_count_in_their_order() {
    let mut options = settings::tiny(&Env::memory());
    let changes = [
        ("atomic_flush", "true"),
        ("write_buffer_size", "4096"),
        ("max_write_buffer_number", "4"),
        ("max_background_flushes", "3"),
        ("max_background_compactions", "2"),
        ("avoid_flush_during_shutdown", "true"),
    ];
    settings::set(&mut options, &changes);
    let db = open(&options).unwrap();
    let write = |thread: u8| {
        for number in 0..150_u16 {
            let mut batch = WriteBatch::new();
            let key = [&[thread][..], &number.to_be_bytes()].concat();
            for (place, name) in FAMILIES.iter().enumerate() {
                // Memtables that fill up in one family or another.
                let length = if usize::from(number) % 3 == place { 300 } else { 5 };
                batch.put_cf(&family(&db, name), &key, vec![thread; length]).unwrap();
            }
            let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
            db.write_with(&unlogged, batch).unwrap();
            if number % 40 == 39 {
                let options = FlushOptions { wait: thread == 0, allow_write_stall: thread == 1 };
                db.flush(&family(&db, FAMILIES[usize::from(thread)]), &options).unwrap();
            }
        }
    };
    std::thread::scope(|scope| (0..3).for_each(|thread| drop(scope.spawn(move || write(thread)))));
    db.wait_for_compactions().unwrap();
    put(&db, &FAMILIES, 1).unwrap();
    db.close().unwrap();
    drop(db);
    let db = open(&options).unwrap();
    let found = FAMILIES.map(|name| keys(&db, name));
    assert!(found[0] == found[1] && found[0] == found[2], "{:?}", found.map(|keys| keys.len()));
    for thread in 0..3 {
        let own: Vec<_> =
            found[0].iter().filter(|key| key[0] == thread && key.len() == 3).collect();
        let numbers = own.iter().map(|key| u16::from_be_bytes([key[1], key[2]]));
        assert!(numbers.eq(0..own.len() as u16) && own.len() > 100, "{thread}: {own:?}");
    }
}

fn keys(db: &Db, name: &str) -> Vec<Vec<u8>> {
    let entries = compare::scan(db, &family(db, name), &Default::default()).unwrap();
    entries.into_iter().map(|(key, _)| key).collect()
}

/// Groups that no writer makes are damage, wherever they stand.
#[test]
fn groups_that_make_no_sense_are_damage() {
    for (remaining, is_damage) in [
        (&[Some(1), Some(0)][..], false),
        (&[Some(0)], false),
        (&[Some(2), Some(1)], false),
        (&[Some(u32::MAX)], false),
        (&[Some(2), Some(0)], true),
        (&[Some(1), Some(1)], true),
        (&[Some(1), None], true),
        (&[Some(1), Some(2)], true),
        (&[Some(u32::MAX), None], true),
    ] {
        let world = World::new(&[]);
        let db = world.open();
        put(&db, &FAMILIES, 1).unwrap();
        db.close().unwrap();
        drop(db);
        for atomic_group_remaining in remaining {
            let edit = VersionEdit {
                atomic_group_remaining: *atomic_group_remaining,
                ..VersionEdit::default()
            };
            add_to_manifest(&world.options.env, &edit);
        }
        match open(&world.options) {
            Ok(db) => assert!(!is_damage && last(&db) == [1, 1, 1], "{remaining:?}"),
            Err(error) => assert!(is_damage && error.is_corruption(), "{remaining:?}: {error}"),
        }
    }
}
