//! Power losses: a database is written on a file system that remembers every change, and opened as of any moment.
//!
//! Every batch carries its number, so that what is found after a crash names the point in history that it must equal
//! exactly. `FLAGSTONE_CRASH_STRIDE=1` visits every moment; by default every third is;
//! `FLAGSTONE_SEEDS=10` tells ten histories for each one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{BlobGarbageCollectionPolicy, CompactRangeOptions, Options, WriteOptions};
use testkit::{CrashFs, Edit, Family, Generator, Model, Survival, compare, settings};

const FAMILIES: [&str; 3] = ["default", "first", "second"];
const COUNTER: &[u8] = b"!number of the last batch";

/// A life on a recording disk, and what is known of each moment of it.
struct History {
    fs: CrashFs,
    options: Options,
    db: Db,
    generator: Generator,
    /// By number of batches.
    models: Vec<Model>,
    /// By batch: the moment at which its writing began.
    begun: Vec<usize>,
    /// Moments from which on so many batches are durable.
    durable: Vec<(usize, usize)>,
    /// For a family: the moments at which its creation and drop began and were acknowledged.
    created: Vec<(String, usize, usize)>,
    dropped: Vec<(String, usize, usize)>,
}

impl History {
    fn begin(seed: u64, changes: &[(&str, &str)]) -> Self {
        let fs = CrashFs::new();
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
        settings::set(&mut options, &[("write_buffer_size", "4096"), ("target_file_size_base", "4096")]);
        settings::set(&mut options, changes);
        let listed: Vec<_> = FAMILIES.iter().map(|name| (*name, options.cf.clone())).collect();
        let db = Db::open_with_families("/db", &options, &listed).unwrap();
        let models = vec![Model::with_families(&FAMILIES)];
        let mut history = Self {
            durable: vec![(fs.changes(), 0)],
            fs,
            options,
            db,
            generator: Generator::new(seed),
            models,
            begun: Vec::new(),
            created: Vec::new(),
            dropped: Vec::new(),
        };
        for name in FAMILIES {
            history.created.push((name.to_string(), 0, history.fs.changes()));
        }
        history
    }

    fn write(&mut self, sync: bool) {
        let mut model = self.models.last().unwrap().clone();
        let mut batch = self.generator.batch(&mut model);
        let number = self.models.len();
        for name in model.families.keys().cloned().collect::<Vec<_>>() {
            let value = number.to_string().into_bytes();
            batch.push((name, Edit::Put { key: COUNTER.to_vec(), value }));
        }
        model = self.models.last().unwrap().clone();
        model.apply(&batch);
        self.begun.push(self.fs.changes());
        self.models.push(model);
        let options = WriteOptions { sync, ..WriteOptions::default() };
        self.db.write_with(&options, compare::to_batch(&self.db, &batch)).unwrap();
        if sync {
            self.note_durable();
        }
    }

    fn writes(&mut self, count: usize) {
        for _ in 0..count {
            let sync = self.generator.random.u8(..8) == 0;
            self.write(sync);
        }
    }

    fn note_durable(&mut self) {
        self.durable.push((self.fs.changes(), self.models.len() - 1));
    }

    fn create(&mut self, name: &str) {
        let begun = self.fs.changes();
        self.db.create_column_family(name, &self.options.cf).unwrap();
        self.created.push((name.to_string(), begun, self.fs.changes()));
        let mut model = self.models.last().unwrap().clone();
        model.families.insert(name.to_string(), Family::default());
        *self.models.last_mut().unwrap() = model;
    }

    fn drop_family(&mut self, name: &str) {
        let begun = self.fs.changes();
        self.db.drop_column_family(&self.db.column_family(name).unwrap()).unwrap();
        self.dropped.push((name.to_string(), begun, self.fs.changes()));
    }

    fn live(&mut self) {
        self.writes(12);
        self.db.flush(self.db.default_column_family(), &Default::default()).unwrap();
        self.writes(10);
        self.create("extra");
        self.writes(10);
        self.db.flush_all().unwrap();
        self.note_durable();
        self.writes(6);
        self.drop_family("extra");
        let mut without = self.models.last().unwrap().clone();
        without.families.remove("extra");
        self.begun.push(self.fs.changes());
        self.models.push(without);
        self.db.put(COUNTER, (self.models.len() - 1).to_string()).unwrap();
        let value = (self.models.len() - 1).to_string().into_bytes();
        let last = self.models.last_mut().unwrap();
        last.families.get_mut("default").unwrap().apply(&Edit::Put { key: COUNTER.to_vec(), value });
        if self.generator.random.bool() {
            self.db.close().unwrap();
            self.note_durable();
            self.db = Db::open("/db", &self.options).unwrap();
        }
        self.writes(10);
        let everything = CompactRangeOptions {
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
            blob_garbage_collection_age_cutoff: 1.0,
            ..CompactRangeOptions::default()
        };
        for name in FAMILIES {
            self.db.compact_range(&self.db.column_family(name).unwrap(), None, None, &everything).unwrap();
        }
        self.writes(8);
        self.db.sync_wal().unwrap();
        self.note_durable();
        self.writes(6);
        self.db.close().unwrap();
        self.note_durable();
    }

    /// Opens what a crash after so many changes left, and compares it with history.
    fn check_crash(&self, at: usize, survival: Survival) {
        let story = format!("{survival:?} after change {at}, {}", self.fs.describe(at));
        let _telling = testkit::seeds::Telling(story.clone());
        let disk = self.fs.after_crash(at, survival);
        let options = Options { env: Env::memory().with_fs(Arc::new(disk.clone())), ..self.options.clone() };
        let mut listing = options.clone();
        listing.db.create_if_missing = false;
        let first = self.created[0].2;
        if at < first {
            // Not even the creation of the database was acknowledged; opening must not panic.
            if let Ok(db) = Db::open("/db", &options) {
                db.put("k", "v").unwrap_or_else(|error| panic!("{story}: {error}"));
            }
            return;
        }
        let db = Db::open("/db", &listing).unwrap_or_else(|error| panic!("{story}: {error}"));
        let found = db
            .get(COUNTER)
            .unwrap()
            .map_or(0, |number| std::str::from_utf8(&number).unwrap().parse::<usize>().unwrap());
        let least =
            self.durable.iter().filter(|(moment, _)| *moment <= at).map(|(_, batches)| *batches).max();
        assert!(Some(found) >= least, "{story}: {found} batches are there, {least:?} were durable");
        let most = self.begun.iter().filter(|moment| **moment <= at).count();
        assert!(found <= most, "{story}: {found} batches are there, {most} had been begun");
        self.check_families(&db, at, &story);
        let mut model = Model::default();
        for family in db.column_families() {
            let then = self.models[found].families.get(family.name()).cloned().unwrap_or_default();
            compare::check_scans(&db, &family, &then, &Default::default());
            model.families.insert(family.name().to_string(), then);
        }
        compare::check_files(&db);
        go_on(db, &listing, model);
    }

    /// Crashes at every change of the recovery from a crash, which must find the same again, and of the life after it.
    fn check_crash_of_recovery(&self, at: usize) {
        if at < self.created[0].2 {
            return;
        }
        let disk = self.fs.after_crash(at, Survival::Random(at as u64 * 104_729));
        let open = |fs: Arc<dyn flagstone::env::FileSystem>| {
            let mut options = Options { env: Env::memory().with_fs(fs), ..self.options.clone() };
            options.db.create_if_missing = false;
            Db::open("/db", &options)
        };
        let fs = CrashFs::with_files_of(&disk, Path::new("/db"));
        let before = fs.changes();
        let first = open(Arc::new(fs.clone())).unwrap();
        let found = contents(&first);
        let opened = fs.changes();
        let durable = live_on(&first, &fs);
        first.close().unwrap();
        drop(first);
        for second in before..=fs.changes() {
            for survival in [Survival::Lost, Survival::Random(second as u64)] {
                let story = format!(
                    "{survival:?} after change {second}, {}, of the recovery from {at}",
                    fs.describe(second)
                );
                let _telling = testkit::seeds::Telling(story.clone());
                let db = open(Arc::new(fs.after_crash(second, survival)))
                    .unwrap_or_else(|error| panic!("{story}: {error}"));
                let (before, later) = without_later(contents(&db));
                assert!(before == found, "the second recovery finds something else");
                assert!(second > opened || later == 0, "{later} batches are there that were not yet written");
                let least =
                    durable.iter().filter(|(moment, _)| *moment <= second).map(|(_, count)| *count).max();
                assert!(
                    later >= least.unwrap_or(0),
                    "{later} later batches are there, {least:?} were durable"
                );
                compare::check_files(&db);
            }
        }
    }

    fn check_families(&self, db: &Db, at: usize, story: &str) {
        for (name, begun, done) in &self.created {
            let exists = db.column_family(name).is_some();
            let dropped = self.dropped.iter().find(|(other, ..)| other == name);
            let may_be_gone = *done > at || dropped.is_some_and(|(_, begun, _)| *begun <= at);
            let may_be_there = *begun <= at && dropped.is_none_or(|(_, _, done)| *done > at);
            assert!(exists || may_be_gone, "{story}: family {name} is lost");
            assert!(!exists || may_be_there, "{story}: family {name} is back");
        }
    }

    fn check_all(&self, name: &str) {
        let stride = std::env::var("FLAGSTONE_CRASH_STRIDE").ok().and_then(|text| text.parse().ok());
        let mut states = 0;
        for at in (0..=self.fs.changes()).step_by(stride.unwrap_or(3)) {
            for survival in [Survival::Lost, Survival::Kept, Survival::Random(at as u64 * 7919)] {
                self.check_crash(at, survival);
                states += 1;
            }
        }
        for at in (0..=self.fs.changes()).step_by(30 * stride.unwrap_or(3)) {
            self.check_crash_of_recovery(at);
        }
        println!("{name}: {} changes, {states} states opened", self.fs.changes());
    }
}

/// Numbered batches over two families, some synced, and a flush of one; moments at which so many were durable.
fn live_on(db: &Db, fs: &CrashFs) -> Vec<(usize, usize)> {
    let mut durable = Vec::new();
    for number in 1..=8 {
        let put = |name: &str| {
            let key = format!("~later {number}").into_bytes();
            (name.to_string(), Edit::Put { key, value: vec![b'x'; 700] })
        };
        let options = WriteOptions { sync: number % 3 == 0, ..WriteOptions::default() };
        db.write_with(&options, compare::to_batch(db, &[put("default"), put("second")])).unwrap();
        if options.sync {
            durable.push((fs.changes(), number));
        }
        if number == 4 {
            db.flush(db.default_column_family(), &Default::default()).unwrap();
        }
    }
    durable
}

/// Takes the later batches away and counts them; they must be the first so many, and whole.
fn without_later(mut contents: Vec<(String, compare::Entries)>) -> (Vec<(String, compare::Entries)>, usize) {
    let mut counts = Vec::new();
    for (name, entries) in &mut contents {
        let later: Vec<_> =
            entries.extract_if(.., |(key, _)| key.starts_with(b"~later")).map(|(key, _)| key).collect();
        let expected: Vec<_> =
            (1..=later.len()).map(|number| format!("~later {number}").into_bytes()).collect();
        assert_eq!(later, expected, "a hole in history");
        if ["default", "second"].contains(&name.as_str()) {
            counts.push(later.len());
        }
    }
    assert_eq!(counts[0], counts[1], "half of a batch is there");
    (contents, counts[0])
}

/// All families and their entries.
fn contents(db: &Db) -> Vec<(String, compare::Entries)> {
    let families = db.column_families();
    let scan = |family: &_| compare::scan(db, family, &Default::default()).unwrap();
    families.iter().map(|family| (family.name().to_string(), scan(family))).collect()
}

/// Writes to the recovered database, and opens it once more.
fn go_on(db: Db, options: &Options, mut model: Model) {
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let batch = [("default".to_string(), Edit::Put { key: b"later".to_vec(), value: b"on".to_vec() })];
    db.write_with(&synced, compare::to_batch(&db, &batch)).unwrap();
    model.apply(&batch);
    db.close().unwrap();
    drop(db);
    let db = Db::open("/db", options).unwrap();
    compare::check_database(&db, &model);
}

fn story(name: &str, seed: u64, changes: &[(&str, &str)]) {
    testkit::for_each_seed(1, |more| {
        let mut history = History::begin(seed + 100 * more, changes);
        history.live();
        history.check_all(name);
    });
}

#[test]
fn every_crash_leaves_a_point_in_history() {
    story("plain", 1, &[]);
    story("plain, large keyspace", 7, &[]);
}

#[test]
fn also_with_blob_files_that_are_collected() {
    let blobs = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "30"),
        ("blob_file_size", "2000"),
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "1.0"),
    ];
    story("blobs", 2, &blobs);
}

#[test]
fn also_with_recycled_and_compressed_wals() {
    story("recycled", 3, &[("recycle_log_file_num", "2")]);
    story("compressed", 4, &[("wal_compression", "kZSTD")]);
}

#[test]
fn also_when_recovery_keeps_memtables_and_manifests_are_short() {
    story("kept in memory", 5, &[("avoid_flush_during_recovery", "true")]);
    story(
        "short MANIFESTs",
        6,
        &[("max_manifest_file_size", "500"), ("min_write_buffer_number_to_merge", "2")],
    );
}

#[test]
fn a_flush_waits_for_what_other_families_wrote_before() {
    // The WAL that a flush ended was not synced: after a power loss the flushed family was there, what the others had
    // written before, even in the same batch, was not.
    let fs = CrashFs::new();
    let options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).unwrap();
    let batch = [
        ("default".to_string(), Edit::Put { key: b"half".to_vec(), value: b"1".to_vec() }),
        ("other".to_string(), Edit::Put { key: b"half".to_vec(), value: b"2".to_vec() }),
    ];
    db.write(compare::to_batch(&db, &batch)).unwrap();
    db.flush(db.default_column_family(), &Default::default()).unwrap();

    let disk = fs.after_crash(fs.changes(), Survival::Lost);
    let options = Options { env: Env::memory().with_fs(Arc::new(disk)), ..options };
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("half").unwrap().unwrap(), "1");
    assert_eq!(db.get_cf(&db.column_family("other").unwrap(), "half").unwrap().unwrap(), "2");
}

#[test]
fn a_recycled_wal_ends_where_its_last_record_does() {
    // A recycled WAL kept the rest of its earlier life behind its last record. Where that began in the middle of an old
    // record it passed for damage, and with one family flushed behind it the database did not open again.
    let fs = MemoryFileSystem::new();
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs)));
    settings::set(&mut options, &[("recycle_log_file_num", "2"), ("write_buffer_size", "1000000")]);
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).unwrap();
    let other = db.column_family("other").unwrap();
    for round in 0..3 {
        db.put("long", vec![b'x'; 10_000]).unwrap();
        if round == 2 {
            break;
        }
        db.flush_all().unwrap();
    }
    db.flush_all().unwrap();
    db.put_cf(&other, "short", "y").unwrap();
    db.put("short", "x").unwrap();
    db.flush(db.default_column_family(), &Default::default()).unwrap();
    db.close().unwrap();
    drop((db, other));

    let db = Db::open("/db", &options).unwrap();
    let other = db.column_family("other").unwrap();
    assert_eq!(db.get_cf(&other, "short").unwrap().unwrap(), "y");
}
