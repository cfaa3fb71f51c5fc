//! Opening a directory that a crash left, and everything that must work with it then.
//!
//! 1. The newest OPTIONS file can be read.
//! 2. Every checkpoint's directory is opened, read and written to; or it is no database. (Its files
//!    are links to those of the original, which must not mind.)
//! 3. The database is opened, or there is none; then it can be made.
//! 4. What it holds is a moment of history. Files and sums are right, and nothing lies about.
//!    (Every fourth one was opened for reading before, which finds the same; every second one keeps
//!    in memory what recovery replays.)
//! 5. It is written to, closed and opened again, and holds what it then must. Where the closed
//!    directory is one that was opened before, with the same contents, it is not opened once more.
//! 6. Who read along is told, before and after, whether what it was given is what the database
//!    holds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use flagstone::base::file_name::{self, FileKind};
use flagstone::base::{Code, Error};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::read_file;
use flagstone::options::{ColumnFamilyOptions, Options, WriteOptions, file};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::aftermath::State;
use super::life::{LIVE_OPTION, Life, options, world};
use super::promises::{Found, Moment, Outcome, Promises};
use super::scenarios::Scenario;
use crate::balance;
use crate::compare::{self, Entries};
use crate::model::Edit;
use crate::remote;

/// Written to what a crash left.
const LATER: &[u8] = b"~later";

/// The families of a database, their numbers and what they hold.
pub(super) type Contents = Vec<(String, u32, Entries)>;

/// Reads all families.
pub(super) fn contents(db: &Db) -> Contents {
    let scan = |family: &_| compare::scan(db, family, &Default::default()).expect("a scan");
    let families = db.column_families();
    families.iter().map(|family| (family.name().to_string(), family.id().0, scan(family))).collect()
}

/// The value of the option that scenarios change.
pub(super) fn live_option(options: &ColumnFamilyOptions) -> u64 {
    options.get(LIVE_OPTION).and_then(|text| text.parse().ok()).expect("a number")
}

/// Opens directories of one life, and remembers what it has seen of them.
pub(super) struct Examiner<'a> {
    scenario: &'static Scenario,
    promises: &'a Promises,
    options: Options,
    /// Whether the database is opened for reading before.
    reads_first: bool,
    /// By the text of an OPTIONS file, the live option in it.
    read_options: HashMap<u128, u64>,
    /// Closed directories with their contents that were opened again.
    reopened: HashSet<u128>,
    /// Whether no power loss had taken anything before this life, and none has by now.
    was_whole: bool,
    is_whole: bool,
}

impl<'a> Examiner<'a> {
    pub fn new(life: &'a Life) -> Self {
        let options = options(life.scenario, life.variant);
        let (scenario, promises) = (life.scenario, &life.promises);
        Self {
            scenario,
            promises,
            options,
            read_options: HashMap::new(),
            reopened: HashSet::new(),
            reads_first: false,
            was_whole: life.is_whole,
            is_whole: false,
        }
    }

    /// What a directory holds, in which all `is_kept` that there was, but for the process.
    ///
    /// # Panics
    /// If it cannot be opened, or holds what never was.
    pub fn examine(&mut self, state: &State, hash: u128, at: Moment, is_kept: bool) -> Outcome {
        self.is_whole = is_kept && self.was_whole;
        let directory = Path::new(self.scenario.path);
        let option = self.option(state, directory);
        let fs = state.to_memory();
        self.vary(hash);
        let checkpoints = &self.promises.checkpoints;
        let paths: Vec<_> = checkpoints.iter().map(|checkpoint| checkpoint.path.clone()).collect();
        let checkpoints = paths.iter().map(|path| self.open(&fs, Path::new(path), None)).collect();
        let found = self.open(&fs, directory, Some(at));
        Outcome { found, option, checkpoints }
    }

    /// What is not the same for all states is drawn from the state, so that it is when the state is
    /// opened again.
    fn vary(&mut self, hash: u128) {
        self.options.db.avoid_flush_during_recovery = hash & 1 == 1;
        self.reads_first = hash & 6 == 6;
    }

    /// What the newest OPTIONS file says.
    fn option(&mut self, state: &State, directory: &Path) -> Option<u64> {
        let number = |path: &Path| match FileKind::parse(path.file_name()?.to_str()?) {
            Some(FileKind::Options(number)) => Some(number),
            _ => None,
        };
        let newest = state.list(directory).filter_map(number).max()?;
        let path = file_name::options(directory, newest);
        let stored = state.file(&path).expect("it was listed");
        let read = || {
            let fs = world(self.scenario, Arc::new(state.to_memory()), 1).fs;
            let text = read_file(&*fs, &path, u64::MAX).expect("it was listed");
            let text = String::from_utf8(text).expect("OPTIONS are text");
            let loaded =
                file::parse(&text).unwrap_or_else(|error| panic!("OPTIONS-{newest}: {error}"));
            live_option(&loaded.options.cf)
        };
        Some(*self.read_options.entry(xxh3_128(stored)).or_insert_with(read))
    }

    /// Opens one database (the original, if the moment of the crash is given) and does what must be
    /// possible with it; `None` if there is none.
    fn open(
        &mut self,
        fs: &MemoryFileSystem,
        directory: &Path,
        at: Option<Moment>,
    ) -> Option<Found> {
        self.options.env = world(self.scenario, Arc::new(fs.clone()), 1);
        remote::follow(&mut self.options);
        self.options.db.create_if_missing = false;
        let read = self.reads_first.then(|| Db::open_read_only(directory, &self.options));
        let read = read.and_then(Result::ok).map(|db| contents(&db));
        let db = match Db::open(directory, &self.options) {
            Ok(db) => db,
            Err(error) if is_absence(&error) && at.is_some() => {
                self.options.db.create_if_missing = true;
                let made = Db::open(directory, &self.options);
                made.unwrap_or_else(|error| panic!("making it anew: {error}"))
                    .close()
                    .expect("a clean close");
                return None;
            }
            Err(error) if is_absence(&error) => return None,
            Err(error) => panic!("opening {}: {error}", directory.display()),
        };
        let contents = contents(&db);
        if self.reads_first {
            assert!(read.as_ref() == Some(&contents), "opening for reading found something else");
        }
        let found = self.promises.recognise(&contents);
        compare::check_files(&db);
        let strays = db.check().expect("a listing").strays;
        assert!(strays.is_empty(), "these lie about: {strays:?}");
        if let Some(at) = at {
            self.promises.check_followed(&db, &found, at, self.is_whole);
        }
        self.go_on(&db, fs, contents, at.map(|at| (&found, at)));
        Some(found)
    }

    /// Writes, closes, opens again.
    fn go_on(
        &mut self,
        db: &Db,
        fs: &MemoryFileSystem,
        mut contents: Contents,
        original: Option<(&Found, Moment)>,
    ) {
        let put = |(name, ..): &(String, u32, Entries)| {
            (name.clone(), Edit::Put { key: LATER.to_vec(), value: b"on".to_vec() })
        };
        let batch: Vec<_> = contents.iter().map(put).collect();
        let synced = WriteOptions { sync: true, ..WriteOptions::default() };
        db.write_with(&synced, compare::to_batch(db, &batch)).expect("a write");
        for (.., entries) in &mut contents {
            let place = entries.partition_point(|(key, _)| key.as_slice() < LATER);
            entries.insert(place, (LATER.to_vec(), b"on".to_vec()));
        }
        if let Some((found, at)) = original {
            self.promises.check_lost(db, found, at, self.is_whole);
        }
        db.close().expect("a clean close");
        if !self.reopened.insert(hash(fs, &contents)) {
            return;
        }
        let again = Db::open(db.path(), &self.options)
            .unwrap_or_else(|error| panic!("opening again: {error}"));
        let found = self::contents(&again);
        assert_eq!(found.len(), contents.len(), "another opening finds other families");
        for ((name, _, found), (.., expected)) in found.iter().zip(&contents) {
            let differs =
                found.iter().zip(expected).find(|(one, other)| one != other).map(|(one, _)| &one.0);
            assert!(
                found == expected,
                "another opening finds something else in {name}, from {differs:?} on"
            );
        }
        compare::check_files(&again);
        if let Some((found, at)) = original {
            self.promises.check_lost(&again, found, at, self.is_whole);
        }
        balance::check_open(&self.options.env, &again);
        let directories =
            balance::directories(again.path(), &self.options, [&self.options.cf].into_iter());
        balance::close(again, &directories);
    }
}

/// Whether there is no database at all.
pub(super) fn is_absence(error: &Error) -> bool {
    error.code() == Code::InvalidArgument && error.message().contains("CURRENT is missing")
}

/// A directory with what it is known to hold.
fn hash(fs: &MemoryFileSystem, contents: &Contents) -> u128 {
    let mut hash = Xxh3::new();
    let files: BTreeMap<_, _> = fs.files().into_iter().collect();
    for (path, bytes) in files {
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update(&xxh3_128(&bytes).to_le_bytes());
    }
    for (name, id, entries) in contents {
        hash.update(name.as_bytes());
        hash.update(&id.to_le_bytes());
        for (key, value) in entries {
            for part in [key, value] {
                hash.update(&part.len().to_le_bytes());
                hash.update(part);
            }
        }
    }
    hash.digest128()
}
