//! Random lives of a database beside a secondary or a follower: whenever that catches up, it has
//! what the primary has, or what that has flushed; and what it showed before it shows still.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::path::PathBuf;

use common::temporary;
use flagstone::base::Code;
use flagstone::db::{Db, Follower, Secondary};
use flagstone::env::Env;
use flagstone::options::{Options, WriteOptions};
use testkit::seeds::Telling;
use testkit::{Generator, Model, compare, for_each_seed, settings};

/// Settings of which each life has some.
const SETTINGS: &[(&str, &str)] = &[
    ("recycle_log_file_num", "0"),
    ("wal_write_mode", "plain"),
    ("wal_compression", "kZSTD"),
    ("atomic_flush", "true"),
    ("avoid_flush_during_recovery", "true"),
    ("allow_2pc", "true"),
    ("max_manifest_file_size", "2000"),
    ("min_write_buffer_number_to_merge", "2"),
    ("readable_by_rocksdb_secondaries", "true"),
    ("compaction_style", "kCompactionStyleUniversal"),
    ("memtable_factory", "skip_list"),
    ("max_total_wal_size", "20000"),
];

const BLOBS: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("blob_commit_min_size", "100"),
    ("blob_file_size", "4000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "0.5"),
];

/// What follows the primary.
enum Follows {
    Secondary(Box<Secondary>),
    Follower(Follower),
}

impl Follows {
    fn catch_up(&self) -> bool {
        let caught_up = match self {
            Self::Secondary(secondary) => secondary.catch_up(),
            Self::Follower(follower) => follower.catch_up(),
        };
        caught_up.unwrap()
    }

    fn now(&self) -> Db {
        match self {
            Self::Secondary(secondary) => secondary.now(),
            Self::Follower(follower) => follower.now(),
        }
    }
}

struct Life {
    path: PathBuf,
    own: PathBuf,
    options: Options,
    generator: Generator,
    model: Model,
    primary: Option<Db>,
    follows: Option<Follows>,
    /// It is a follower.
    by_links: bool,
    /// Earlier states, and what they have.
    kept: Vec<(Db, Model)>,
    created: u32,
}

impl Life {
    fn begin(path: PathBuf, own: PathBuf, seed: u64, by_links: bool) -> Self {
        let mut generator = Generator::new(seed);
        let mut options = settings::tiny(&Env::os());
        for setting in SETTINGS {
            if generator.random.u8(..4) == 0 {
                settings::set(&mut options, &[*setting]);
            }
        }
        if generator.random.bool() {
            settings::set(&mut options, BLOBS);
            let mode = ["commit", "flush", "auto"][generator.random.usize(..3)];
            settings::set(&mut options, &[("blob_write_mode", mode)]);
        }
        let model = Model::with_families(&["default"]);
        settings::set(&mut options, &[("follower_refresh_catchup_period_ms", "0")]);
        let (primary, follows, kept) = (None, None, Vec::new());
        let mut life = Self {
            path,
            own,
            options,
            generator,
            model,
            primary,
            follows,
            by_links,
            kept,
            created: 0,
        };
        life.open();
        life
    }

    fn open(&mut self) {
        self.primary = Some(Db::open(&self.path, &self.options).unwrap());
    }

    fn primary(&self) -> &Db {
        self.primary.as_ref().unwrap()
    }

    fn write(&mut self) {
        let edits = self.generator.batch(&mut self.model);
        let batch = compare::to_batch(self.primary(), &edits);
        let sync = self.generator.random.u8(..10) == 0;
        let options = WriteOptions { sync, ..WriteOptions::default() };
        self.primary().write_with(&options, batch).unwrap();
    }

    fn family(&mut self) -> Option<flagstone::db::ColumnFamily> {
        let families = self.primary().column_families();
        let at = self.generator.random.usize(..families.len());
        families.into_iter().nth(at)
    }

    fn step(&mut self) {
        match self.generator.random.u8(..60) {
            0..=1 => self.primary().flush_all().unwrap(),
            2 => {
                let family = self.family().unwrap();
                self.primary().compact_range(&family, None, None, &Default::default()).unwrap();
            }
            3 if self.created < 6 => {
                self.created += 1;
                let name = format!("family{}", self.created);
                self.primary().create_column_family(&name, &self.options.cf).unwrap();
                self.model.families.entry(name).or_default();
            }
            4 => {
                let family = self.family().unwrap();
                if family.name() != "default" {
                    self.primary().drop_column_family(&family).unwrap();
                    self.model.families.remove(family.name());
                }
            }
            5 => {
                // Half of the lives end with a close, the others with the end of the handle.
                if self.generator.random.bool() {
                    self.primary().close().unwrap();
                }
                self.primary = None;
                self.open();
            }
            6 => self.follows = None,
            7..=14 => self.catch_up(),
            15 => self.look_back(),
            _ => self.write(),
        }
    }

    fn begin_to_follow(&self) -> Follows {
        if self.by_links {
            let follower = Follower::open(&self.own, &self.path, &self.options);
            Follows::Follower(follower.unwrap())
        } else {
            let secondary = Secondary::open(&self.path, &self.own, &self.options);
            Follows::Secondary(Box::new(secondary.unwrap()))
        }
    }

    fn catch_up(&mut self) {
        let follows = self.follows.take().unwrap_or_else(|| self.begin_to_follow());
        if self.by_links {
            // What it may have by now is any part of what was written, and whole.
            follows.catch_up();
            follows.now().column_families().iter().for_each(|family| {
                common::entries(&follows.now(), family);
            });
            self.primary().flush_all().unwrap();
        }
        follows.catch_up();
        let now = follows.now();
        compare::check_database(&now, &self.model);
        let sequence = self.primary().latest_sequence_number();
        assert!(now.latest_sequence_number() <= sequence);
        let refused = now.put("a", "1").unwrap_err();
        assert_eq!(refused.code(), Code::NotSupported);
        if self.generator.random.u8(..4) == 0 {
            self.kept.push((now, self.model.clone()));
        }
        self.follows = Some(follows);
    }

    fn look_back(&mut self) {
        if self.kept.len() > 2 {
            let (state, model) = self.kept.remove(0);
            compare::check_database(&state, &model);
        }
    }
}

fn live(by_links: bool) {
    for_each_seed(12, |seed| {
        let directory = temporary();
        let (path, own) = (directory.path().join("db"), directory.path().join("own"));
        let mut life = Life::begin(path, own, seed, by_links);
        let _telling = Telling(format!("settings {:?}", life.options.db));
        for _ in 0..300 {
            life.step();
        }
        life.catch_up();
        for (state, model) in &life.kept {
            compare::check_database(state, model);
        }
    });
}

#[test]
fn it_has_what_the_primary_has() {
    live(false);
}

#[test]
fn a_follower_has_what_the_primary_has_flushed() {
    live(true);
}
