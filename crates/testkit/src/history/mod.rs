//! Random lives of a database, compared with ordered maps.

use crate::{Family, Generator, Model, Step, compare, settings};
use flagstone::base::Snapshot;
use flagstone::db::{Db, Iter};
use flagstone::env::Env;
use flagstone::options::{Options, ReadOptions, WriteOptions};

const FAMILIES: [&str; 3] = ["default", "first", "second"];

/// Lives the life of this seed.
///
/// # Panics
/// When the engine says something else than the model.
pub fn live(seed: u64, steps: usize) {
    Life::begin(seed).live(steps);
}

/// An open iterator, the family as it was when it was opened, and the key that it must stand on.
struct Reader {
    iter: Iter,
    family: Family,
    at: Option<Vec<u8>>,
}

struct Life {
    env: Env,
    options: Options,
    db: Db,
    model: Model,
    generator: Generator,
    snapshots: Vec<(Snapshot, Model)>,
    readers: Vec<Reader>,
    /// Some writes go without the WAL; a clean close keeps them.
    unlogged: bool,
    checkpoints: usize,
}

impl Life {
    fn begin(seed: u64) -> Self {
        let env = Env::memory();
        let mut generator = Generator::new(seed);
        let options = settings::random(&env, &mut generator.random);
        let listed: Vec<_> = FAMILIES.iter().map(|name| (*name, options.cf.clone())).collect();
        let db = Db::open_with_families("/db", &options, &listed).expect("a new database");
        let model = Model::with_families(&FAMILIES);
        let unlogged = seed % 4 == 3;
        let (snapshots, readers) = (Vec::new(), Vec::new());
        Self { env, options, db, model, generator, snapshots, readers, unlogged, checkpoints: 0 }
    }

    fn live(mut self, steps: usize) {
        for _ in 0..steps {
            let step = self.generator.step(&mut self.model);
            self.take(step);
        }
        self.check();
        self.reopen();
        self.check();
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Write { batch, sync } => {
                let disable_wal = self.unlogged && !sync && self.generator.random.bool();
                let options = WriteOptions { sync, disable_wal, ..WriteOptions::default() };
                self.db.write_with(&options, compare::to_batch(&self.db, &batch)).expect("a write");
            }
            Step::TakeSnapshot => self.snapshots.push((self.db.snapshot(), self.model.clone())),
            Step::DropSnapshot(index) if !self.snapshots.is_empty() => {
                self.snapshots.swap_remove(index % self.snapshots.len());
            }
            Step::OpenIterator => self.open_iterator(),
            Step::MoveIterator(index) if !self.readers.is_empty() => {
                let index = index % self.readers.len();
                self.readers[index].walk(&mut self.generator);
            }
            Step::DropIterator(index) if !self.readers.is_empty() => {
                self.readers.swap_remove(index % self.readers.len());
            }
            Step::Flush(family) => {
                let family = self.db.column_family(&family).expect("it exists");
                self.db.flush(&family, &Default::default()).expect("a flush");
            }
            Step::FlushAll => self.db.flush_all().expect("a flush"),
            Step::CompactRange { family, begin, end } => {
                let family = self.db.column_family(&family).expect("it exists");
                self.db
                    .compact_range(&family, begin.as_deref(), end.as_deref(), &Default::default())
                    .expect("a compaction");
            }
            Step::SetOptions(family) => {
                let family = self.db.column_family(&family).expect("it exists");
                let changes = settings::random_live(&mut self.generator.random);
                self.db.set_options(&family, &changes).unwrap_or_else(|error| panic!("{changes:?}: {error}"));
            }
            Step::CreateFamily(name) if !self.model.families.contains_key(&name) => {
                self.db.create_column_family(&name, &self.options.cf).expect("a new family");
                self.model.families.insert(name, Family::default());
            }
            Step::DropFamily(name) if self.model.families.contains_key(&name) => {
                let family = self.db.column_family(&name).expect("it exists");
                self.db.drop_column_family(&family).expect("it may be dropped");
                self.model.families.remove(&name);
                for (_, model) in &mut self.snapshots {
                    model.families.remove(&name);
                }
            }
            Step::Reopen => self.reopen(),
            Step::Check => self.check(),
            _ => {}
        }
    }

    fn open_iterator(&mut self) {
        let names: Vec<_> = self.model.families.keys().cloned().collect();
        let name = &names[self.generator.random.usize(..names.len())];
        let mut options = ReadOptions { total_order_seek: true, ..ReadOptions::default() };
        let mut family = self.model.families[name].clone();
        if let Some((snapshot, then)) = self.snapshots.last()
            && self.generator.random.bool()
            && let Some(known) = then.families.get(name)
        {
            options.snapshot = Some(snapshot.clone());
            family = known.clone();
        }
        if self.generator.random.u8(..3) == 0 {
            let lower = self.generator.key();
            family.entries = family.entries.split_off(&lower);
            options.iterate_lower_bound = Some(lower);
        }
        if self.generator.random.u8(..3) == 0 {
            let upper = self.generator.key();
            family.entries.split_off(&upper);
            options.iterate_upper_bound = Some(upper);
        }
        let handle = self.db.column_family(name).expect("it exists");
        let iter = self.db.iter_cf(&handle, &options).expect("an iterator");
        self.readers.push(Reader { iter, family, at: None });
    }

    /// Closes, and opens with other options.
    fn reopen(&mut self) {
        self.snapshots.clear();
        self.readers.clear();
        self.db.close().expect("a clean close");
        self.options = settings::random(&self.env, &mut self.generator.random);
        let listed: Vec<_> =
            self.model.families.keys().map(|name| (name.as_str(), self.options.cf.clone())).collect();
        // The old handle goes first, so that the lock is free.
        let opened = Db::open_with_families("/db", &self.options, &listed);
        self.db = opened.unwrap_or_else(|error| panic!("reopening: {error}"));
    }

    fn check(&mut self) {
        let now = (None, self.model.clone());
        let then = self.snapshots.iter().map(|(snapshot, model)| (Some(snapshot.clone()), model.clone()));
        let moments: Vec<_> = then.chain([now]).collect();
        for (snapshot, model) in moments {
            let options = ReadOptions { snapshot, total_order_seek: true, ..ReadOptions::default() };
            for (name, family) in &model.families {
                let handle = self.db.column_family(name).expect("it exists");
                compare::check_scans(&self.db, &handle, family, &options);
                let keys: Vec<_> = (0..30).map(|_| self.generator.key()).collect();
                compare::check_lookups(&self.db, &handle, family, &options, &keys);
                self.check_prefix_scan(name, family, &options);
            }
        }
        for reader in &mut self.readers {
            reader.walk(&mut self.generator);
        }
        compare::check_files(&self.db);
        match self.generator.random.u8(..3) {
            0 => self.check_from_outside(),
            1 => self.check_checkpoint(),
            _ => {}
        }
    }

    /// Reads the files as they are, WAL included, as after the process was killed.
    fn check_from_outside(&self) {
        if self.unlogged {
            return;
        }
        let listed: Vec<_> =
            self.model.families.keys().map(|name| (name.as_str(), self.options.cf.clone())).collect();
        // A flush may be under way. It used to remove a WAL between the reading of the MANIFEST and that of the WALs:
        // what it held was missing without an error.
        let db = Db::open_read_only_with_families("/db", &self.options, &listed).expect("the files open");
        for (name, family) in &self.model.families {
            let handle = db.column_family(name).expect("it exists");
            // A compaction may have removed a table since.
            if let Ok(found) = compare::scan(&db, &handle, &ReadOptions::default()) {
                compare::check_entries(name, &found, family);
            }
        }
    }

    fn check_checkpoint(&mut self) {
        self.checkpoints += 1;
        let path = format!("/checkpoint-{}", self.checkpoints);
        self.db.checkpoint(&path).expect("a checkpoint");
        let db = Db::open(&path, &self.options).expect("the checkpoint opens");
        compare::check_database(&db, &self.model);
        compare::check_files(&db);
    }

    /// With a prefix extractor, a seek that may use the filter finds the keys of its own prefix.
    fn check_prefix_scan(&mut self, name: &str, family: &Family, options: &ReadOptions) {
        let Some(extractor) = &self.options.cf.prefix_extractor else { return };
        let options = ReadOptions { total_order_seek: false, prefix_same_as_start: true, ..options.clone() };
        let target = self.generator.key();
        let Some(prefix) = extractor.prefix(&target) else { return };
        let handle = self.db.column_family(name).expect("it exists");
        let mut iter = self.db.iter_cf(&handle, &options).expect("an iterator");
        iter.seek(&target);
        let expected = family.entries.range(target.clone()..);
        for (key, value) in expected.take_while(|(key, _)| extractor.prefix(key) == Some(prefix)) {
            assert!(iter.valid(), "{}: {} is missing in a prefix scan", name, key.escape_ascii());
            assert_eq!(iter.key(), key);
            assert_eq!(iter.value().expect("a value"), value);
            iter.next();
        }
        iter.status().expect("no error");
        assert!(!iter.valid(), "a prefix scan ends with its prefix; found {}", iter.key().escape_ascii());
    }
}

impl Reader {
    /// A few random moves, each checked.
    fn walk(&mut self, generator: &mut Generator) {
        for _ in 0..generator.random.usize(1..12) {
            let entries = &self.family.entries;
            let choice = generator.random.u8(..10);
            self.at = match (choice, self.at.take()) {
                (0, _) => {
                    self.iter.seek_to_first();
                    entries.keys().next().cloned()
                }
                (1, _) => {
                    self.iter.seek_to_last();
                    entries.keys().next_back().cloned()
                }
                (2, _) => {
                    let target = generator.key();
                    self.iter.seek(&target);
                    entries.range(target..).next().map(|(key, _)| key.clone())
                }
                (3, _) | (_, None) => {
                    let target = generator.key();
                    self.iter.seek_for_prev(&target);
                    entries.range(..=target).next_back().map(|(key, _)| key.clone())
                }
                (4..=6, Some(at)) => {
                    self.iter.next();
                    entries.range(at.clone()..).find(|(key, _)| **key != at).map(|(key, _)| key.clone())
                }
                (_, Some(at)) => {
                    self.iter.prev();
                    entries.range(..at).next_back().map(|(key, _)| key.clone())
                }
            };
            self.iter.status().expect("no error");
            let found = self.iter.valid().then(|| self.iter.key().escape_ascii().to_string());
            let expected = self.at.as_ref().map(|key| key.escape_ascii().to_string());
            assert_eq!(found, expected, "after move {choice}");
            if let Some(at) = &self.at {
                assert_eq!(self.iter.value().expect("a value"), entries[at]);
            }
        }
    }
}
