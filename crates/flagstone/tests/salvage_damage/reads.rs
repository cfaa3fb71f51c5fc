//! Random databases, each with one damage, then opened and read as a whole: every answer is right
//! or an error that names the damaged file, and what the file did not hold can be read, and all of
//! it written to.
//!
//! 1. A database is lived and closed. What its sound files answer is the truth.
//! 2. One file is damaged: bits flipped, zeroed, cut off or removed.
//! 3. It is opened for reading, then for writing, and read by lookups, many at a time too, by
//!    cursors in both directions; it is compacted, read again, copied by a checkpoint, which is
//!    read, written to and flushed.
//!
//! Damage in a WAL ends history, by the recovery mode: of keys that it holds, any version that was
//! written is an answer then. A MANIFEST that is cut off, or has a hole, may be what a crash has
//! left, and nothing tells: then there must only be no panic and no hang. Nor does anything tell
//! where several bits of its last edit are wrong, and zeros are in it.
//!
//! `FLAGSTONE_READS=200` says how many databases; 12 by default. `FLAGSTONE_READS_SEED=7` takes
//! that one alone, and both together 200 from the seventh on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use flagstone::base::Error;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions, Options, ReadOptions};

use super::common::entries;
use super::damage::Damage;
use super::holdings::{Holdings, recorded_tables};
use super::life::{Extras, live, random_options};
use super::{Bytes, Files, SOURCE, TARGET, disk_of, file_name, files_of};

/// By family.
type Truth = BTreeMap<String, BTreeMap<Bytes, Bytes>>;

/// What is damaged, and what that may cost.
struct Trial {
    what: String,
    truth: Truth,
    holdings: Holdings,
    /// The damaged file.
    path: String,
    /// Every key that was ever written.
    keys: Vec<Bytes>,
    /// Whether history may end early: the damaged file is a WAL.
    may_end: bool,
    /// Whether bytes are wrong, so that there is an offset at which they are.
    is_flipped: bool,
    /// Which keys the file may concern; `None` for all.
    concerned: Option<BTreeSet<(String, Bytes)>>,
}

impl Trial {
    /// That an answer is right, or an error that says where the damage is, if the key is one that
    /// it may concern.
    fn check(&self, how: &str, family: &str, key: &[u8], answer: Result<Option<Bytes>, Error>) {
        let what = || format!("{}\n{how} {family} {}", self.what, key.escape_ascii());
        let truth = self.truth[family].get(key);
        match answer {
            Ok(found) if found.as_ref() == truth => {}
            Ok(found) => {
                let is_held = || match &found {
                    Some(value) => {
                        self.holdings.explain(&(family.to_string(), key.to_vec()), value, false)
                    }
                    None => true,
                };
                let short = |value: &Bytes| value[..value.len().min(20)].escape_ascii().to_string();
                assert!(
                    self.may_end && self.is_in_wal(family, key) && is_held(),
                    "{}: {:?}, not {:?}",
                    what(),
                    found.as_ref().map(short),
                    truth.map(short)
                );
            }
            Err(error) => {
                self.check_error(how, &error);
                let is_concerned =
                    |keys: &BTreeSet<_>| keys.contains(&(family.to_string(), key.to_vec()));
                assert!(self.concerned.as_ref().is_none_or(is_concerned), "{}: {error}", what());
            }
        }
    }

    fn is_in_wal(&self, family: &str, key: &[u8]) -> bool {
        let versions = self.holdings.versions.get(&(family.to_string(), key.to_vec()));
        let in_wal = |place: &(String, _)| place.0.ends_with(".log");
        versions.is_some_and(|versions| {
            versions.iter().any(|version| version.places.iter().any(in_wal))
        }) || self.holdings.has_ranges_in_wals()
    }

    /// That it says which file is damaged, and where.
    fn check_error(&self, how: &str, error: &Error) {
        let name = file_name(&self.path);
        let is_named = error.path().is_some_and(|path| path.ends_with(name));
        assert!(is_named || error.to_string().contains(name), "{}\n{how}: {error}", self.what);
        let is_small = name == "CURRENT";
        let has_place = error.offset().is_some() || !is_named || !self.is_flipped || is_small;
        assert!(has_place, "{}\n{how}: {error:?}", self.what);
    }

    /// All of a database, by every kind of read.
    fn look(&self, when: &str, db: &Db) {
        for family in self.families(db) {
            let name = family.name().to_string();
            for key in &self.keys {
                let found = db.get_cf(&family, key).map(|found| found.map(|value| value.to_vec()));
                self.check(&format!("{when}, get"), &name, key, found);
            }
            for keys in self.keys.chunks(50) {
                let found = db.multi_get_with(&ReadOptions::default(), &family, keys);
                for (key, found) in keys.iter().zip(found) {
                    let found = found.map(|found| found.map(|value| value.to_vec()));
                    self.check(&format!("{when}, multi_get"), &name, key, found);
                }
            }
            for is_forward in [true, false] {
                self.scan(when, db, &family, is_forward);
            }
        }
    }

    /// What a cursor passes before it meets an error leaves nothing out.
    fn scan(&self, when: &str, db: &Db, family: &ColumnFamily, is_forward: bool) {
        let how = format!("{when}, cursor, forward {is_forward}");
        let name = family.name();
        let mut cursor = match db.iter_cf(family, &ReadOptions::default()) {
            Ok(cursor) => cursor,
            Err(error) => return self.check_error(&how, &error),
        };
        let mut found = BTreeMap::new();
        if is_forward {
            cursor.seek_to_first()
        } else {
            cursor.seek_to_last()
        }
        let mut last = None;
        while cursor.valid() {
            let key = cursor.key().to_vec();
            found.insert(key.clone(), cursor.value().map(|value| Some(value.to_vec())));
            last = Some(key);
            if is_forward { cursor.next() } else { cursor.prev() }
        }
        let end = cursor.status();
        let is_passed = |key: &Bytes| match (&end, &last) {
            (Ok(()), _) => true,
            (Err(_), None) => false,
            (Err(_), Some(last)) if is_forward => key <= last,
            (Err(_), Some(last)) => key >= last,
        };
        for key in self.keys.iter().filter(|key| is_passed(key)) {
            self.check(&how, name, key, found.remove(key).unwrap_or(Ok(None)));
        }
        assert!(found.is_empty(), "{}\n{how} {name}: {:?}", self.what, found.keys());
        if let Err(error) = &end {
            self.check_error(&how, error);
            let is_concerned =
                |keys: &BTreeSet<(String, Bytes)>| keys.iter().any(|(home, _)| home == name);
            assert!(
                self.concerned.as_ref().is_none_or(is_concerned),
                "{}\n{how} {name}: {error}",
                self.what
            );
        }
    }

    fn families(&self, db: &Db) -> Vec<ColumnFamily> {
        let families = db.column_families();
        let names: BTreeSet<&str> = families.iter().map(|family| family.name()).collect();
        let expected: BTreeSet<&str> = self.truth.keys().map(String::as_str).collect();
        assert_eq!(names, expected, "{}", self.what);
        families
    }

    /// What is written goes on, whatever is damaged.
    fn write(&self, db: &Db) {
        let fresh: Vec<&Bytes> = self.keys.iter().step_by(7).collect();
        for family in self.families(db) {
            for key in &fresh {
                db.put_cf(&family, *key, "fresh")
                    .unwrap_or_else(|error| panic!("{}\n{error}", self.what));
            }
        }
        for when in ["written", "flushed"] {
            for family in self.families(db) {
                for key in &fresh {
                    let found = db.get_cf(&family, *key);
                    let found =
                        found.unwrap_or_else(|error| panic!("{}\n{when}: {error}", self.what));
                    assert_eq!(found.as_deref(), Some(&b"fresh"[..]), "{}\n{when}", self.what);
                }
            }
            db.flush_all().unwrap_or_else(|error| panic!("{}\n{error}", self.what));
        }
    }
}

fn truth_of(db: &Db) -> Truth {
    let families = db.column_families();
    families
        .iter()
        .map(|family| (family.name().to_string(), entries(db, family).into_iter().collect()))
        .collect()
}

fn everything() -> CompactRangeOptions {
    CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    }
}

/// Lives a database, damages it and reads it; what came of it, in a line.
fn story(seed: u64, extras: &Extras) -> String {
    let mut random = Rng::with_seed(seed);
    let fs = MemoryFileSystem::new();
    let mut options = random_options(&mut random, extras, &fs);
    live(&mut random, extras, &options, &fs);
    let sound = files_of(&fs);
    options.db.create_if_missing = false;
    let (is_absolute, is_paranoid) = (random.bool(), random.bool());
    if is_absolute {
        options.set("wal_recovery_mode", "kAbsoluteConsistency").expect("an option");
    }
    options.set("paranoid_checks", &is_paranoid.to_string()).expect("an option");
    let disk = disk_of(&sound);
    let holdings = Holdings::of(&disk, &sound, false);
    let db = Db::open_read_only(SOURCE, &on(&options, &disk)).expect("it is sound");
    let truth = truth_of(&db);
    drop(db);

    let mut damage = Damage { spares_bits_of_tables: extras.unprotected, ..Damage::default() };
    let mut files = sound.clone();
    while damage.touched.is_empty() {
        damage.inflict(&mut random, &mut files);
    }
    let path = damage.touched[0].0.clone();
    let what = format!(
        "FLAGSTONE_READS_SEED={seed} {extras:?} {is_absolute} {is_paranoid}: {}",
        damage.words.join("; ")
    );
    let is_flipped = damage.words.iter().all(|words| words.contains("flipped"));
    let is_cut = files.get(&path).is_none_or(|bytes| bytes.len() < sound[&path].len());
    let trial = Trial {
        keys: holdings
            .versions
            .keys()
            .map(|(_, key)| key.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        // In a recycled WAL a header of which more than the number is damaged may be of its earlier
        // life: there it ends.
        may_end: path.ends_with(".log") && !(is_absolute && is_flipped && !extras.recycles),
        is_flipped,
        concerned: concerned_by(&path, &holdings, &disk, &truth),
        what,
        truth,
        holdings,
        path,
    };
    let may_be_torn = trial.path.contains("MANIFEST")
        && (!is_flipped || passes_for_torn(&damage, &options, &files));
    let word = if may_be_torn {
        let opened = Db::open(SOURCE, &on(&options, &disk_of(&files)));
        format!("{:?}", opened.map(|db| drop(db.verify(|_| {}))).err())
    } else {
        try_out(&trial, &options, &files, is_cut && is_paranoid)
    };
    format!("{}: {word}", trial.what)
}

/// Whether more than a bit is wrong in the last edit, and zeros are there, too: a power loss may
/// leave that.
fn passes_for_torn(damage: &Damage, options: &Options, files: &Files) -> bool {
    let mut options = options.clone();
    options.db.paranoid_checks = false;
    let opened = Db::open_read_only(SOURCE, &on(&options, &disk_of(files)));
    let is_noted = |db: Db| {
        let report = db.verify(|_| {});
        report.notes.iter().any(|note| note.to_string().contains("MANIFEST"))
    };
    damage.words.len() > 1 && opened.is_ok_and(is_noted)
}

/// These options for files on that disk.
fn on(options: &Options, disk: &MemoryFileSystem) -> Options {
    let mut options = options.clone();
    options.env = Env::os().with_fs(Arc::new(disk.clone()));
    options
}

/// Opens it for reading, then for writing, and does all there is to do; what came of it.
fn try_out(trial: &Trial, options: &Options, files: &Files, may_fail: bool) -> String {
    let told = |error: &Error| trial.check_error("open", error);
    let opened = Db::open_read_only(SOURCE, &on(options, &disk_of(files)));
    let read = opened.map(|db| trial.look("for reading", &db)).inspect_err(told);
    let disk = disk_of(files);
    let opened = Db::open(SOURCE, &on(options, &disk)).inspect_err(told);
    match (&read, opened) {
        (Ok(()), Ok(db)) => {
            live_on(trial, &db, options, &disk);
            "opened".to_string()
        }
        (Err(error), Err(_)) => {
            assert!(trial.concerned.is_none() || may_fail, "{}\nnot opened: {error}", trial.what);
            format!("not opened: {error}")
        }
        (Ok(()), Err(error)) => panic!("{}\nopened for reading only: {error}", trial.what),
        (Err(error), Ok(_)) => panic!("{}\nopened for writing only: {error}", trial.what),
    }
}

/// Reads, compacts, copies, writes.
fn live_on(trial: &Trial, db: &Db, options: &Options, disk: &MemoryFileSystem) {
    trial.look("for writing", db);
    for family in trial.families(db) {
        if let Err(error) = db.compact_range(&family, None, None, &everything()) {
            trial.check_error("compact_range", &error);
        }
    }
    trial.look("compacted", db);
    match db.checkpoint(TARGET) {
        Err(error) => trial.check_error("checkpoint", &error),
        Ok(()) => {
            let mut options = options.clone();
            options.stand_alone();
            let copy = Db::open(Path::new(TARGET), &on(&options, disk));
            match copy {
                Ok(copy) => trial.look("checkpoint", &copy),
                Err(error) => trial.check_error("opening a checkpoint", &error),
            }
        }
    }
    trial.write(db);
    let health = db.property(db.default_column_family(), "flagstone.background-error");
    assert_eq!(health.as_deref(), Some("healthy"), "{}", trial.what);
    db.close().unwrap_or_else(|error| panic!("{}\nclose: {error}", trial.what));
}

/// The keys that depend on a table or blob file: all of those that it lies between, or that it
/// holds a value of.
fn concerned_by(
    path: &str,
    holdings: &Holdings,
    disk: &MemoryFileSystem,
    truth: &Truth,
) -> Option<BTreeSet<(String, Bytes)>> {
    let keys = || holdings.versions.iter();
    if path.ends_with(".blob") {
        let refers = |place: &(String, _)| place.0 == path;
        let held = keys().filter(|(_, versions)| {
            versions.iter().any(|version| version.places.iter().any(refers))
        });
        return Some(held.map(|(key, _)| key.clone()).collect());
    }
    if !path.ends_with(".sst") {
        return None;
    }
    let tables = recorded_tables(disk);
    let (family, meta) = &tables[file_name(path)];
    let range = meta.smallest.as_key().user_key()..=meta.largest.as_key().user_key();
    let names = flagstone::manifest::list_column_families(
        &Env::os().with_fs(Arc::new(disk.clone())),
        Path::new(SOURCE),
    );
    let named = names
        .expect("families")
        .into_iter()
        .find(|named| named.id.0 == *family)
        .expect("a family")
        .name;
    let between = keys().map(|(key, _)| &key.1).filter(|key| range.contains(&key.as_slice()));
    let held: BTreeSet<_> = between.map(|key| (named.clone(), key.clone())).collect();
    truth.contains_key(&named).then_some(held)
}

#[test]
fn whatever_is_damaged_every_answer_is_right_or_says_where() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (first, count) = (number("FLAGSTONE_READS_SEED"), number("FLAGSTONE_READS"));
    let seeds = match first {
        Some(seed) => seed..seed + count.unwrap_or(1),
        None => 0..count.unwrap_or(12),
    };
    for seed in seeds {
        let extras = match seed % 4 {
            1 => Extras::draw(seed),
            3 => Extras::draw_all(seed),
            _ => Extras::default(),
        };
        match std::panic::catch_unwind(|| story(seed, &extras)) {
            Ok(word) => println!("{word}"),
            Err(_) => panic!("FLAGSTONE_READS_SEED={seed} repeats this"),
        }
    }
}
