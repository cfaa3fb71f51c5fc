//! The steps that a database's life is made of. Each does the background work that it makes, in the
//! same order whatever else the machine does: writers are held up as often as the life says, and no
//! oftener.

use std::sync::Arc;

use flagstone::base::Snapshot;
use flagstone::db::{Db, TtlDb, TtlOptions};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{
    BottommostLevelCompaction, ColumnFamilyOptions, CompactRangeOptions, Options,
};
use testkit::{HandClock, steps};

const PATH: &str = "/db";

/// A database, and what the doctor has said of it.
pub struct Life {
    env: Env,
    clock: Arc<HandClock>,
    /// By which everything is opened again.
    settings: String,
    ttl: u64,
    families: Vec<(String, ColumnFamilyOptions)>,
    open: Option<Handle>,
    snapshots: Vec<Snapshot>,
    random: fastrand::Rng,
    pub said: Vec<String>,
}

enum Handle {
    Plain(Db),
    Expiring(TtlDb),
}

impl Handle {
    fn db(&self) -> &Db {
        match self {
            Self::Plain(db) => db,
            Self::Expiring(db) => db.base(),
        }
    }
}

impl Default for Life {
    fn default() -> Self {
        let clock = Arc::new(HandClock::at(1_700_000_000));
        Self {
            env: Env { clock: clock.clone(), ..steps::world(Arc::new(MemoryFileSystem::new()), 1) },
            clock,
            settings: String::new(),
            ttl: 0,
            families: Vec::new(),
            open: None,
            snapshots: Vec::new(),
            random: fastrand::Rng::with_seed(7),
            said: Vec::new(),
        }
    }
}

/// Options of a database whose files are small.
fn options(settings: &str) -> Options {
    let mut options = super::common::create();
    let small = "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;memory_budget=0;\
                 compression=kNoCompression;";
    options
        .set_all(&format!("{small}{settings}"))
        .unwrap_or_else(|error| panic!("{settings}: {error}"));
    options
}

fn key(number: u64) -> String {
    format!("key{number:06}")
}

impl Life {
    pub fn step(&mut self, text: &str) {
        let (what, rest) = text.split_once(' ').unwrap_or((text, ""));
        let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
        // The last word is a family's name.
        let family = rest.rsplit(' ').next().filter(|word| word.parse::<u64>().is_err());
        match (what, &numbers[..]) {
            ("open", _) => self.open(rest),
            ("ttl", [seconds]) => self.ttl = *seconds,
            ("family", _) => self.make_family(rest),
            ("put", [from, to, size]) => self.put(family, *from..*to, *size),
            ("get", [from, to, rounds]) => self.get(*from..*to, *rounds),
            ("delete", [from, to]) => self.delete(family, *from..*to),
            ("delete-range", [from, to]) => self.delete_range(family, *from, *to),
            ("churn", [rounds, size]) => self.churn(*rounds, *size),
            ("flush", _) => self.db().flush_all().expect("a flush"),
            ("compact", _) => self.compact(),
            ("settle", _) => self.db().wait_for_compactions().expect("rest"),
            ("snapshot", _) => self.snapshots.push(self.db().snapshot()),
            ("clock", [seconds]) => self.clock.advance(*seconds),
            ("set", _) => self.set(rest),
            ("ask", _) => self.ask(),
            ("look", _) => {
                self.close();
                if !rest.is_empty() {
                    self.settings = rest.to_string();
                }
                self.open_for_reading();
                self.ask();
            }
            _ => panic!("there is no step '{text}'"),
        }
    }

    fn db(&self) -> &Db {
        self.open.as_ref().expect("it is open").db()
    }

    fn family(&self, name: Option<&str>) -> flagstone::db::ColumnFamily {
        match name.filter(|name| !name.is_empty()) {
            None => self.db().default_column_family().clone(),
            Some(name) => self.db().column_family(name).expect("it was made"),
        }
    }

    fn close(&mut self) {
        self.snapshots.clear();
        if let Some(open) = self.open.take() {
            open.db().close().expect("closed");
        }
    }

    /// Opens it, again if need be, with other settings if any are given.
    fn open(&mut self, settings: &str) {
        self.close();
        if !settings.is_empty() {
            self.settings = settings.to_string();
        }
        let options = self.options();
        let listed = self.listed(&options);
        let listed: Vec<(&str, ColumnFamilyOptions)> =
            listed.iter().map(|(name, options)| (name.as_str(), options.clone())).collect();
        self.open = Some(match self.ttl {
            0 => Handle::Plain(Db::open_with_families(PATH, &options, &listed).expect("it opens")),
            ttl_seconds => {
                let ttl = TtlOptions { ttl_seconds, ..TtlOptions::default() };
                Handle::Expiring(TtlDb::open(PATH, &options, ttl).expect("it opens"))
            }
        });
    }

    fn open_for_reading(&mut self) {
        let options = self.options();
        let listed = self.listed(&options);
        let listed: Vec<(&str, ColumnFamilyOptions)> =
            listed.iter().map(|(name, options)| (name.as_str(), options.clone())).collect();
        let db = Db::open_read_only_with_families(PATH, &options, &listed).expect("it opens");
        self.open = Some(Handle::Plain(db));
    }

    fn options(&self) -> Options {
        let mut options = options(&self.settings);
        options.env = self.env.clone();
        options
    }

    fn listed(&self, options: &Options) -> Vec<(String, ColumnFamilyOptions)> {
        let default = ("default".to_string(), options.cf.clone());
        [default].into_iter().chain(self.families.iter().cloned()).collect()
    }

    fn make_family(&mut self, rest: &str) {
        let (name, settings) = rest.split_once(' ').unwrap_or((rest, ""));
        let options = options(settings).cf;
        self.db().create_column_family(name, &options).expect("a family");
        self.families.push((name.to_string(), options));
    }

    fn put(&mut self, family: Option<&str>, keys: std::ops::Range<u64>, size: u64) {
        let family = self.family(family);
        for number in keys {
            let value: Vec<u8> = (0..size).map(|_| self.random.u8(..)).collect();
            match self.open.as_ref().expect("it is open") {
                Handle::Plain(db) => db.put_cf(&family, key(number), value).expect("a put"),
                Handle::Expiring(db) => db.put(key(number), value).expect("a put"),
            }
            self.work();
        }
    }

    /// Flushes what is full, and compacts.
    fn work(&self) {
        while self.db().background_step().expect("a step") {}
    }

    fn get(&self, keys: std::ops::Range<u64>, rounds: u64) {
        (0..rounds)
            .flat_map(|_| keys.clone())
            .for_each(|number| drop(self.db().get(key(number)).expect("a read")));
    }

    fn delete(&self, family: Option<&str>, keys: std::ops::Range<u64>) {
        let family = self.family(family);
        for number in keys {
            self.db().delete_cf(&family, key(number)).expect("a deletion");
            self.work();
        }
    }

    fn delete_range(&self, family: Option<&str>, from: u64, to: u64) {
        self.db().delete_range_cf(&self.family(family), key(from), key(to)).expect("a deletion");
    }

    /// Overwrites and deletes at random in all families, with a flush after each round.
    fn churn(&mut self, rounds: u64, size: u64) {
        let names: Vec<String> =
            self.db().column_families().iter().map(|family| family.name().to_string()).collect();
        for _ in 0..rounds {
            for name in &names {
                for _ in 0..200 {
                    let number = self.random.u64(..2000);
                    match self.random.u8(..10) {
                        0 => self.delete(Some(name), number..number + 1),
                        _ => self.put(Some(name), number..number + 1, size),
                    }
                }
            }
            self.db().flush_all().expect("a flush");
        }
    }

    fn compact(&self) {
        let everything = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        for family in self.db().column_families() {
            self.db().compact_range(&family, None, None, &everything).expect("a compaction");
        }
    }

    fn set(&self, rest: &str) {
        let (name, value) = rest.split_once('=').expect("NAME=VALUE");
        let db = self.db();
        db.set_options(db.default_column_family(), &[(name, value)]).expect("it can change");
    }

    fn ask(&mut self) {
        let found = self.db().doctor().expect("it looks");
        if found.is_empty() {
            self.said.push("healthy".to_string());
        }
        let line = |finding: &flagstone::db::Finding| {
            format!("{}: {}: {}", finding.severity, finding.what, finding.advice())
        };
        self.said.extend(found.iter().map(line));
    }
}
