//! A key that was written in a way that cannot be costs itself, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::base::Snapshot;
use flagstone::base::merge::MergeOperator;
use flagstone::db::{Db, Severity};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, EventListener, KEY_FAULT_KEY_MAX,
    KEY_FAULTS_MAX, KeyFault, Options, ReadOptions,
};
use parking_lot::Mutex;
use testkit::{for_each_seed, steps};

/// Appends operands, of key `bad` only once it was told to.
#[derive(Default)]
struct Appending {
    takes_all: AtomicBool,
}

impl MergeOperator for Appending {
    fn name(&self) -> &str {
        "Appending"
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let takes = !key.starts_with(b"bad") || self.takes_all.load(Ordering::Relaxed);
        takes.then(|| [&[existing.unwrap_or_default()], operands].concat().concat())
    }
}

#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl EventListener for Diary {
    fn on_key_fault(&self, fault: &KeyFault) {
        self.0.lock().push(fault.to_string());
    }
}

struct World {
    options: Options,
    operator: Arc<Appending>,
    diary: Arc<Diary>,
}

impl World {
    fn new(settings: &str) -> Self {
        let (operator, diary) = (Arc::new(Appending::default()), Arc::new(Diary::default()));
        let env = steps::world(Arc::new(MemoryFileSystem::new()), 1);
        let mut options = Options { env, listeners: vec![diary.clone()], ..Options::default() };
        options
            .set_all("create_if_missing=true;level0_file_num_compaction_trigger=2")
            .expect("options");
        options.set_all(settings).expect("options");
        options.cf.merge_operator = Some(operator.clone());
        Self { options, operator, diary }
    }

    fn open(&self) -> Db {
        Db::open("/db", &self.options).expect("a database")
    }
}

fn work(db: &Db) {
    while db.background_step().expect("a step") {}
}

fn property(db: &Db, name: &str) -> String {
    db.property(db.default_column_family(), name).expect("a property")
}

/// One key with operands that the operator refuses failed each compaction that it took part in, and
/// each flush: the database was poisoned, and again soon after it was opened the next time.
#[test]
fn a_key_that_the_merge_operator_refuses_costs_itself_alone() {
    let world = World::new("");
    let db = world.open();
    db.put("bad", "1").unwrap();
    db.put("good", "1").unwrap();
    db.flush_all().unwrap();
    db.merge("bad", "2").unwrap();
    db.merge("bad", "3").unwrap();
    db.merge("good", "2").unwrap();
    db.flush_all().unwrap();
    work(&db);
    assert_eq!(
        db.live_files().iter().filter(|file| file.level == Some(0)).count(),
        0,
        "it was compacted"
    );
    assert_eq!(property(&db, "flagstone.background-error"), "healthy");
    db.put("later", "1").unwrap();
    assert_eq!(db.get("good").unwrap().unwrap(), "12");
    assert!(db.get("bad").unwrap_err().is_corruption());

    let faults = db.key_faults();
    assert_eq!(faults.len(), 1, "once, however often it is met");
    assert_eq!(faults[0].key, b"bad");
    let said = "family 'default': corruption: merge operator 'Appending' refused the 2 operands of key 'bad'";
    assert_eq!(property(&db, "flagstone.key-faults"), format!("{said}\n"));
    assert_eq!(*world.diary.0.lock(), [said]);
    let findings = db.doctor().unwrap();
    assert!(
        findings.iter().any(|found| found.severity == Severity::Broken && found.what == said),
        "{findings:?}"
    );

    world.operator.takes_all.store(true, Ordering::Relaxed);
    assert_eq!(db.get("bad").unwrap().unwrap(), "123", "nothing is lost");
    db.close().unwrap();
}

/// An application that forgot its merge operator had its database poisoned by the next compaction.
#[test]
fn without_a_merge_operator_operands_stay() {
    let mut world = World::new("");
    let db = world.open();
    for round in 0..2 {
        db.merge("key", "1").unwrap();
        db.put("other", format!("{round}")).unwrap();
        db.flush_all().unwrap();
    }
    db.close().unwrap();
    let operator = world.options.cf.merge_operator.take();
    let db = world.open();
    work(&db);
    assert_eq!(property(&db, "flagstone.background-error"), "healthy");
    assert_eq!(db.get("other").unwrap().unwrap(), "1");
    assert!(db.get("key").is_err());
    assert_eq!(db.key_faults().len(), 1);
    db.close().unwrap();
    world.options.cf.merge_operator = operator;
    assert_eq!(world.open().get("key").unwrap().unwrap(), "11");
}

/// A single deletion over a plain one poisoned the database, at each opening anew.
#[test]
fn a_key_that_was_deleted_in_both_ways_is_deleted() {
    let world = World::new("");
    let db = world.open();
    db.put("key", "1").unwrap();
    db.put("other", "1").unwrap();
    db.flush_all().unwrap();
    db.delete("key").unwrap();
    db.single_delete("key").unwrap();
    db.flush_all().unwrap();
    assert!(property(&db, "flagstone.key-faults").contains("key@4"), "{:?}", db.key_faults());
    work(&db);
    assert_eq!(property(&db, "flagstone.background-error"), "healthy");
    db.put("later", "1").unwrap();
    assert_eq!(db.get("key").unwrap(), None);
    assert_eq!(property(&db, "flagstone.key-faults"), "", "nothing is left of it");
}

#[test]
fn of_very_many_such_keys_the_first_are_told() {
    let world = World::new("");
    let db = world.open();
    for round in 0..2 {
        for key in 0..1000 {
            db.put(format!("bad{key:04}"), "1").unwrap();
            db.merge(format!("bad{key:04}"), format!("{round}")).unwrap();
        }
        db.flush_all().unwrap();
    }
    work(&db);
    let faults = db.key_faults();
    assert!(!faults.is_empty() && faults.len() <= KEY_FAULTS_MAX, "{}", faults.len());
    let met = db.statistics().get(flagstone::db::Ticker::KeyFaults);
    let told = property(&db, "flagstone.key-faults");
    assert!(
        told.contains(" more faults of keys were met since the database was opened"),
        "{met}: {told}"
    );
    assert!(db.statistics().get(flagstone::db::Ticker::KeyFaults) >= 2000);
    world.operator.takes_all.store(true, Ordering::Relaxed);
    assert_eq!(db.get("bad0999").unwrap().unwrap(), "11");
}

/// Faults were told until the database was closed, whatever had become of the keys.
#[test]
fn a_fault_is_forgotten_once_the_key_is_mended_or_gone() {
    let world = World::new("disable_auto_compactions=true");
    let db = world.open();
    let compact = || {
        let whole = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        db.compact_range(db.default_column_family(), None, None, &whole).unwrap();
    };
    let faulty = || {
        db.key_faults().iter().map(|fault| fault.key.escape_ascii().to_string()).collect::<Vec<_>>()
    };
    for key in ["bad1", "bad2", "bad3"] {
        db.put(key, "1").unwrap();
        db.merge(key, "2").unwrap();
    }
    db.flush_all().unwrap();
    db.put("zzz", "elsewhere").unwrap();
    db.flush_all().unwrap();
    compact();
    assert_eq!(faulty(), ["bad1", "bad2", "bad3"]);
    db.put("bad1", "anew").unwrap();
    db.delete("bad3").unwrap();
    db.flush_all().unwrap();
    assert_eq!(faulty(), ["bad1", "bad2", "bad3"], "they are still there, below");
    compact();
    assert_eq!(faulty(), ["bad2"]);
    assert_eq!(world.diary.0.lock().len(), 3, "once of each");
    world.operator.takes_all.store(true, Ordering::Relaxed);
    compact();
    assert_eq!(faulty(), [""; 0]);
    assert_eq!(property(&db, "flagstone.key-faults"), "");
    assert_eq!(db.get("bad2").unwrap().unwrap(), "12");
}

/// A fault that one job met in two versions of a key was said to be one more, for which there was
/// no room.
#[test]
fn a_fault_that_is_met_in_two_versions_of_a_key_is_one() {
    let world = World::new("");
    let db = world.open();
    let _between = ["1", "2"].map(|value| {
        db.put("bad", value).unwrap();
        db.merge("bad", value).unwrap();
        db.snapshot()
    });
    db.flush_all().unwrap();
    assert_eq!(db.statistics().get(flagstone::db::Ticker::KeyFaults), 2);
    assert_eq!(db.key_faults().len(), 1);
    let told = property(&db, "flagstone.key-faults");
    assert!(!told.contains("more faults"), "{told}");
}

/// The keys and the words that named them took as much memory as the keys had bytes, and several
/// times that.
#[test]
fn of_a_long_key_the_beginning_is_told() {
    let world = World::new("");
    let db = world.open();
    let keys: Vec<_> =
        ["\0", "\u{1}"].map(|end| format!("bad{}{end}", "\n".repeat(100_000))).into();
    for key in &keys {
        db.put(key, "1").unwrap();
        db.merge(key, "2").unwrap();
    }
    db.flush_all().unwrap();
    let faults = db.key_faults();
    assert!(faults.len() == 2 && faults[0].key == keys[0].as_bytes()[..KEY_FAULT_KEY_MAX]);
    assert!(faults[0].error.message().contains("...[100004 bytes]"));
    assert!(property(&db, "flagstone.key-faults").len() < 10_000);
    assert!(db.get(&keys[0]).unwrap_err().message().len() < 10_000);
}

type Contents = BTreeMap<String, String>;

/// What a database must hold whose merge operator sometimes refuses some keys.
struct Life {
    world: World,
    db: Option<Db>,
    contents: Contents,
    snapshots: Vec<(Snapshot, Contents)>,
    random: fastrand::Rng,
}

impl Life {
    fn db(&self) -> &Db {
        self.db.as_ref().expect("an open database")
    }

    fn key(&mut self) -> String {
        format!(
            "{}{}",
            self.random.choice(["bad", "good"]).expect("one of two"),
            self.random.u32(..4)
        )
    }

    fn write(&mut self) {
        let (key, value) = (self.key(), format!("{} ", self.random.u32(..1000)));
        match self.random.u32(..20) {
            0..6 => {
                self.db().put(&key, &value).expect("a put");
                self.contents.insert(key, value);
            }
            6 => {
                self.db().delete(&key).expect("a deletion");
                self.contents.remove(&key);
            }
            7 => {
                let (begin, end) = (key, self.key());
                if begin < end {
                    self.db().delete_range(&begin, &end).expect("a range deletion");
                    self.contents.retain(|key, _| *key < begin || *key >= end);
                }
            }
            _ if self.world.options.cf.merge_operator.is_none() => {}
            _ => {
                self.db().merge(&key, &value).expect("a merge");
                self.contents.entry(key).or_default().push_str(&value);
            }
        }
    }

    /// Opens it again, at times without a merge operator.
    fn reopen(&mut self, has_operator: bool) {
        self.snapshots.clear();
        if !has_operator {
            // Without one no opening takes operands from a WAL.
            self.db().flush_all().expect("a flush");
        }
        self.db.take().expect("an open database").close().expect("closed");
        let operator = self.world.operator.clone();
        self.world.options.cf.merge_operator =
            has_operator.then_some(operator as Arc<dyn MergeOperator>);
        self.db = Some(self.world.open());
    }

    fn step(&mut self) {
        match self.random.u32(..40) {
            0..30 => self.write(),
            30..32 => self.snapshots.push((self.db().snapshot(), self.contents.clone())),
            32 if !self.snapshots.is_empty() => {
                let at = self.random.usize(..self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            33..36 => self.db().flush_all().expect("a flush"),
            36 => work(self.db()),
            37 => {
                let whole = CompactRangeOptions::default();
                self.db()
                    .compact_range(self.db().default_column_family(), None, None, &whole)
                    .expect("a compaction");
            }
            38 => self.world.operator.takes_all.store(self.random.bool(), Ordering::Relaxed),
            _ => {
                let has_operator = self.random.bool();
                self.reopen(has_operator);
            }
        }
        assert_eq!(property(self.db(), "flagstone.background-error"), "healthy");
    }

    fn check(&mut self) {
        if self.world.options.cf.merge_operator.is_none() {
            self.reopen(true);
        }
        self.world.operator.takes_all.store(true, Ordering::Relaxed);
        let now = (self.db().snapshot(), self.contents.clone());
        for (snapshot, contents) in self.snapshots.iter().chain([&now]) {
            let options =
                ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            let mut iter = self.db().iter(&options).expect("a cursor");
            iter.seek_to_first();
            let mut seen = Contents::new();
            while let Some((key, value)) = iter.next_entry().expect("an entry") {
                let text = |bytes| String::from_utf8(bytes).expect("text");
                seen.insert(text(key), text(value));
            }
            assert_eq!(seen, *contents);
            for key in
                ["bad", "good"].iter().flat_map(|kind| (0..4).map(move |at| format!("{kind}{at}")))
            {
                let found = self.db().get_with(&options, self.db().default_column_family(), &key);
                let found = found.expect("a lookup").map(|value| value.to_vec());
                assert_eq!(
                    found.as_deref(),
                    contents.get(&key).map(|value| value.as_bytes()),
                    "{key}"
                );
            }
        }
    }
}

/// Whatever is refused meanwhile: in the end all is there, for every snapshot.
#[test]
fn what_is_refused_for_a_while_is_neither_lost_nor_out_of_order() {
    for_each_seed(20, |seed| {
        let settings = [
            "",
            "enable_blob_files=true;min_blob_size=3",
            "compaction_style=kCompactionStyleUniversal",
            "compaction_style=kCompactionStyleUniversal;num_levels=1;max_successive_merges=3",
        ];
        let world = World::new(settings[seed as usize % settings.len()]);
        let db = Some(world.open());
        let random = fastrand::Rng::with_seed(seed);
        let mut life = Life { world, db, contents: Contents::new(), snapshots: Vec::new(), random };
        for _ in 0..8 {
            (0..50).for_each(|_| life.step());
            life.check();
        }
        life.snapshots.clear();
        life.db.take().expect("an open database").close().expect("closed");
    });
}
