//! WALs whose blocks the next ones use: which are kept for that, which comes first, and that no
//! record of an earlier life is read.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::file_name::FileKind;
use crate::base::{Error, Result};
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::env::memory::MemoryFileSystem;
use crate::env::{Env, FileSystem, FileSystemAround, read_file};
use crate::options::{ColumnFamilyOptions, Options};

const DIRECTORY: &str = "/db";

struct World {
    fs: MemoryFileSystem,
    options: Options,
}

impl World {
    fn new(changes: &[(&str, &str)]) -> Self {
        let fs = MemoryFileSystem::new();
        let mut options =
            Options { env: Env::os().with_fs(Arc::new(fs.clone())), ..Options::default() };
        (options.create_if_missing, options.create_missing_column_families) = (true, true);
        options.set("recycle_log_file_num", "2").unwrap();
        changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        Self { fs, options }
    }

    fn open(&self) -> (Db, ColumnFamily) {
        let families = ["default", "other"].map(|name| (name, ColumnFamilyOptions::default()));
        let db = Db::open_with_families(DIRECTORY, &self.options, &families).unwrap();
        let other = db.column_family("other").unwrap();
        (db, other)
    }

    /// The numbers of the WALs that are there.
    fn wals(&self) -> Vec<u64> {
        let names = self.fs.list(Path::new(DIRECTORY)).unwrap();
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Wal(number)) => Some(number.0),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    fn bytes(&self, number: u64) -> Vec<u8> {
        let path = Path::new(DIRECTORY).join(format!("{number:06}.log"));
        read_file(&self.fs, &path, 1 << 30).unwrap()
    }

    /// What the next process finds if this one dies now.
    fn killed(&self) -> Self {
        let fs = MemoryFileSystem::new();
        for name in self.fs.list(Path::new(DIRECTORY)).unwrap() {
            let path = Path::new(DIRECTORY).join(name);
            fs.put(&path, Arc::new(read_file(&self.fs, &path, 1 << 30).unwrap()));
        }
        let env = self.options.env.clone().with_fs(Arc::new(fs.clone()));
        Self { fs, options: Options { env, ..self.options.clone() } }
    }
}

/// Writes to the family and flushes it: the WAL is switched.
fn switch(db: &Db, family: &ColumnFamily, key: &str, bytes: usize) {
    db.put_cf(family, key, vec![b'v'; bytes]).unwrap();
    db.flush(family, &Default::default()).unwrap();
    db.wait_for_compactions().unwrap();
}

/// A database whose other family keeps four WALs, which are obsolete together once it is flushed;
/// their numbers.
fn with_four_obsolete(world: &World) -> (Db, ColumnFamily, Vec<u64>) {
    let (db, other) = world.open();
    db.put_cf(&other, "kept", "in the first WAL").unwrap();
    (0..4).for_each(|nth| switch(&db, db.default_column_family(), &format!("k{nth}"), 5000));
    let wals = world.wals();
    assert_eq!(wals.len(), 5, "the other family needs all of them: {wals:?}");
    db.flush(&other, &Default::default()).unwrap();
    db.wait_for_compactions().unwrap();
    (db, other, wals)
}

#[test]
fn as_many_as_are_asked_for_are_kept_the_newest_of_them_and_the_oldest_is_taken_first() {
    let world = World::new(&[]);
    let (db, other, wals) = with_four_obsolete(&world);
    let now = world.wals();
    let (active, obsolete) = wals.split_last().unwrap();
    let kept: Vec<u64> =
        db.inner().tree.lock().wals.recyclable.iter().map(|number| number.0).collect();
    assert_eq!(kept.len(), 2, "{now:?}");
    assert!(obsolete.ends_with(&kept), "the newest of {obsolete:?}: {kept:?}");
    assert_eq!(now, [&kept[..], &[*active]].concat(), "the others are gone");

    let before = world.bytes(kept[0]);
    switch(&db, db.default_column_family(), "next", 10);
    let now = world.wals();
    assert!(!now.contains(&kept[0]) && now.contains(&kept[1]), "the oldest was taken: {now:?}");
    let new = *now.last().unwrap();
    assert!(new > *active);
    assert_eq!(world.bytes(new).len(), before.len(), "its blocks are used as they are");
    drop(other);
    db.close().unwrap();
    assert_eq!(world.wals(), [new], "what nothing uses takes no space");
}

/// The new WAL's records are shorter than those that lie behind them, which end where these do or
/// not.
#[test]
fn nothing_of_an_earlier_life_is_read() {
    for bytes in [1, 60, 4000, 5000] {
        let world = World::new(&[("avoid_flush_during_recovery", "true")]);
        let (db, other, _) = with_four_obsolete(&world);
        switch(&db, db.default_column_family(), "switched", 10);
        db.delete("k0").unwrap();
        db.delete("k1").unwrap();
        let first = *world.wals().last().unwrap();
        for nth in 0..3 {
            db.put(format!("new{nth}"), vec![b'n'; bytes]).unwrap();
            let next = world.killed();
            assert!(next.wals().contains(&first));
            let (found, _) = next.open();
            for key in ["k0", "k1"] {
                assert_eq!(found.get(key).unwrap(), None, "{key}, {bytes} bytes");
            }
            for there in 0..3 {
                let value = found.get(format!("new{there}")).unwrap();
                assert_eq!(value.map(|value| value.len()), (there <= nth).then_some(bytes));
            }
            assert_eq!(
                found.latest_sequence_number(),
                db.latest_sequence_number(),
                "{bytes} bytes"
            );
            assert!(found.verify(|_| {}).faults.is_empty());
            found.close().unwrap();
        }
        drop(other);
        db.close().unwrap();
    }
}

/// The new record ends where one of an earlier life begins that is whole: only its number tells
/// that it is an earlier one's.
#[test]
fn whole_records_of_an_earlier_life_are_not_read() {
    let keys = ["k0", "k1", "k2", "k3"];
    let world = World::new(&[("avoid_flush_during_recovery", "true")]);
    let (db, other) = world.open();
    for round in 0..6 {
        keys.iter().for_each(|key| db.put(key, format!("round {round}")).unwrap());
        db.flush_all().unwrap();
    }
    keys.iter().for_each(|key| db.delete(key).unwrap());
    db.flush_all().unwrap();
    // Nothing is left that would hide what came back.
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    db.put("n0", "round 6").unwrap();
    let next = world.killed();
    let active = *next.wals().last().unwrap();
    assert!(next.bytes(active).windows(2).any(|bytes| bytes == b"k1"), "it has had another life");
    let (found, _) = next.open();
    assert_eq!(found.get("n0").unwrap().unwrap(), "round 6");
    keys.iter().for_each(|key| assert_eq!(found.get(key).unwrap(), None, "{key}"));
    found.close().unwrap();
    drop(other);
    db.close().unwrap();
}

/// Nothing tells of which kind the records are in what another life has left.
#[test]
fn wals_of_another_life_are_not_recycled() {
    let world = World::new(&[("avoid_flush_during_recovery", "true")]);
    let (db, other) = world.open();
    db.put_cf(&other, "kept", "in the first WAL").unwrap();
    switch(&db, db.default_column_family(), "k", 10);
    let next = world.killed();
    let old = next.wals();
    let (found, other) = next.open();
    switch(&found, &other, "kept", 10);
    let recyclable = found.inner().tree.lock().wals.recyclable.clone();
    assert!(recyclable.iter().all(|number| !old.contains(&number.0)), "{old:?}: {recyclable:?}");
    assert!(next.wals().iter().all(|number| !old.contains(number)), "{old:?}: {:?}", next.wals());
    found.close().unwrap();
    db.close().unwrap();
}

/// These modes cannot tell the end of a WAL from damage; an archive wants the WALs itself.
#[test]
fn where_a_wal_may_not_be_recycled_none_is() {
    for change in [
        ("recycle_log_file_num", "0"),
        ("wal_recovery_mode", "kTolerateCorruptedTailRecords"),
        ("wal_recovery_mode", "kAbsoluteConsistency"),
        ("WAL_ttl_seconds", "1000"),
    ] {
        let world = World::new(&[change]);
        let (db, other, _) = with_four_obsolete(&world);
        assert!(db.inner().tree.lock().wals.recyclable.is_empty(), "{change:?}");
        assert_eq!(world.wals().len(), 1, "{change:?}: {:?}", world.wals());
        drop(other);
        db.close().unwrap();
    }
}

/// A disk that is full where a file is renamed, while that is asked for.
struct Full {
    fs: MemoryFileSystem,
    is_full: Arc<AtomicBool>,
}

impl FileSystemAround for Full {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            Err(Error::io("rename", source, io::Error::from(io::ErrorKind::StorageFull)))
        } else {
            self.fs.rename(source, target)
        }
    }
}

/// Its number was forgotten: it lay there, on a full disk, until the database was opened again.
#[test]
fn a_wal_that_cannot_be_renamed_is_given_back() {
    let is_full = Arc::new(AtomicBool::new(false));
    let mut world = World::new(&[]);
    world.options.env.fs = Arc::new(Full { fs: world.fs.clone(), is_full: is_full.clone() });
    let (db, other, wals) = with_four_obsolete(&world);
    is_full.store(true, Ordering::Relaxed);
    db.put("k", "before").unwrap();
    assert!(db.flush_all().is_err());
    assert_eq!(world.wals(), wals[4..], "a full disk gets all of them back");
    is_full.store(false, Ordering::Relaxed);
    db.resume().unwrap();
    switch(&db, db.default_column_family(), "k", 10);
    drop(other);
    db.close().unwrap();
    assert_eq!(world.wals().len(), 1, "{:?}", world.wals());
}
