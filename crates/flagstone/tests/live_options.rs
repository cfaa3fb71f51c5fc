//! Options changed at random while the database works: every text that a row of the options may
//! have, in two families with options of their own, while others write, flush, compact and read.
//! Both families hold the same, whatever their options.
//!
//! What is done follows from a seed; how the threads meet does not. `FLAGSTONE_SEEDS=COUNT` lives
//! more lives.

use std::collections::BTreeMap;
use std::path::Path;

use flagstone::base::PrefixExtractor;
use flagstone::base::Snapshot;
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;
use flagstone::options::names::rows;
use flagstone::options::table::Settings;
use flagstone::options::{
    CfSettings, ColumnFamilyOptions, CompactionStyle, DbSettings, Options, ReadOptions,
    TableSettings, load_latest,
};
use testkit::seeds::{Telling, for_each_seed};
use testkit::{compare, settings};

const KEYS: u32 = 150;
const ROUNDS: u32 = 5;
const WRITES: u32 = 60;
const CHANGES: u32 = 3;
const READS: u32 = 4;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// What would change where files lie, what an opening does, or how much of the machine a test
/// takes.
const LEFT_OUT: [&str; 12] = [
    "create_if_missing",
    "create_missing_column_families",
    "error_if_exists",
    "wal_dir",
    "db_paths",
    "cf_paths",
    "memory_budget",
    "reserved_disk_space",
    "background_niceness",
    "use_direct_reads",
    "use_direct_io_for_flush_and_compaction",
    "compaction_options_fifo",
];

/// Within which bounds numbers are kept where others would only take time, memory, or threads.
fn bounds(name: &str) -> Option<(u64, u64)> {
    Some(match name {
        "write_buffer_size" => (1 << 10, 1 << 15),
        "db_write_buffer_size" | "max_total_wal_size" => (1 << 12, 1 << 20),
        "arena_block_size" => (0, 1 << 16),
        "compressed_secondary_cache_size" | "writable_file_max_buffer_size" => (1 << 12, 1 << 20),
        "delayed_write_rate" => (1 << 20, 1 << 40),
        "max_background_jobs" | "max_background_flushes" | "max_background_compactions" => (1, 4),
        "max_subcompactions" => (1, 3),
        _ => return None,
    })
}

/// Texts of rows from a seed, each in its range.
struct Texts {
    random: fastrand::Rng,
}

impl Texts {
    /// Every so many-th row, in random order: whether it is the database's, its name and a text.
    fn draw(
        &mut self,
        one_in: usize,
        is_drawn: fn(bool) -> bool,
    ) -> Vec<(bool, &'static str, String)> {
        let mut bits = || self.random.u64(..);
        let database = DbSettings::sample_all(&mut bits);
        let (family, table) =
            (CfSettings::sample_all(&mut bits), TableSettings::sample_all(&mut bits));
        let mut drawn = Vec::new();
        for row in rows().filter(|row| is_drawn(row.live) && !LEFT_OUT.contains(&row.name)) {
            if self.random.usize(..one_in) > 0 {
                continue;
            }
            let of_database = database.text(row.name);
            let is_database = of_database.is_some();
            let text =
                of_database.or_else(|| family.text(row.name)).or_else(|| table.text(row.name));
            let mut text = text.expect("a row is of one of them");
            if let (Some((least, most)), Ok(number)) = (bounds(row.name), text.parse::<u64>()) {
                text = number.clamp(least, most).to_string();
            }
            drawn.push((is_database, row.name, text));
        }
        self.random.shuffle(&mut drawn);
        drawn
    }
}

/// The options of the database and of its two families, as they were asked for.
struct Wanted {
    database: Options,
    families: [ColumnFamilyOptions; 2],
}

impl Wanted {
    fn drawn(texts: &mut Texts) -> Self {
        let mut database = settings::tiny(&Env::memory());
        database.cf.merge_operator = None;
        database.cf.prefix_extractor = Some(PrefixExtractor::FixedPrefix(4));
        let mut wanted = Self { families: [database.cf.clone(), database.cf.clone()], database };
        for family in 0..2 {
            for (is_database, name, text) in texts.draw(2, |_| true) {
                let _ = wanted.set(is_database, family, &[(name, &text)]);
            }
        }
        wanted
    }

    /// Changes the options, unless what comes of it would be refused.
    fn set(
        &mut self,
        is_database: bool,
        family: usize,
        changes: &[(&str, &str)],
    ) -> flagstone::base::Result<()> {
        if is_database {
            let mut options = self.database.clone();
            changes.iter().try_for_each(|(name, text)| options.set(name, text))?;
            options.validate_for_writing()?;
            self.database = options;
        } else {
            let mut options = self.families[family].clone();
            changes.iter().try_for_each(|(name, text)| options.set(name, text))?;
            options.validate_for_writing()?;
            // It drops what is too old or too much.
            if options.compaction_style != CompactionStyle::Fifo {
                self.families[family] = options;
            }
        }
        Ok(())
    }

    fn open(&self) -> Db {
        let [default, other] = self.families.clone();
        Db::open_with_families("/db", &self.database, &[("default", default), ("other", other)])
            .expect("it opens")
    }

    /// What is in force, and what the OPTIONS file says, follow from what was set.
    fn check(&self, db: &Db) {
        let path = Path::new("/db");
        let file = load_latest(&self.database.env, path).expect("it reads").expect("there is one");
        assert_eq!(file.options.db, self.database.db, "the database's");
        for (family, wanted) in families(db).iter().zip(&self.families) {
            let name = family.name();
            let (wanted, written) = (wanted.sanitized(), file.family(name).expect("it is listed"));
            for found in [&*family.options(), written] {
                assert_eq!(
                    (&found.settings, &found.table),
                    (&wanted.settings, &wanted.table),
                    "{name}"
                );
            }
        }
    }
}

fn families(db: &Db) -> [ColumnFamily; 2] {
    [db.default_column_family().clone(), db.column_family("other").expect("it was created")]
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

/// Both families get the same, at once.
fn write(db: &Db, random: &mut fastrand::Rng, model: &mut Contents, round: u32) {
    let mut batch = WriteBatch::new();
    for _ in 0..random.usize(1..4) {
        let number = random.u32(..KEYS);
        match random.u8(..12) {
            0..=2 => {
                for family in families(db) {
                    batch.delete_cf(family.id(), key(number)).expect("a deletion");
                }
                model.remove(&key(number));
            }
            3 => {
                let (begin, end) = (key(number), key(number + random.u32(1..20)));
                for family in families(db) {
                    batch.delete_range_cf(family.id(), &begin, &end).expect("a range");
                }
                model.retain(|key, _| *key < begin || *key >= end);
            }
            _ => {
                let value = format!("{round} {number} ").repeat(1 << random.u32(..9)).into_bytes();
                for family in families(db) {
                    batch.put_cf(family.id(), key(number), &value).expect("a value");
                }
                model.insert(key(number), value);
            }
        }
    }
    db.write(batch).expect("a write");
    match random.u8(..30) {
        0 => db.flush_all().expect("a flush"),
        1 => {
            let family = &families(db)[random.usize(..2)];
            db.compact_range(family, None, None, &Default::default()).expect("a compaction");
        }
        2 => db.sync_wal().expect("a sync"),
        _ => {}
    }
}

/// What a family holds, the same forwards, backwards and key by key.
fn contents(db: &Db, family: &ColumnFamily, snapshot: &Snapshot) -> Contents {
    let options = ReadOptions {
        snapshot: Some(snapshot.clone()),
        total_order_seek: true,
        ..ReadOptions::default()
    };
    let forwards = compare::scan(db, family, &options).expect("a scan");
    assert!(forwards.is_sorted_by(|(one, _), (next, _)| one < next), "keys in order, each once");
    assert_eq!(forwards, compare::scan_back(db, family, &options).expect("a scan back"));
    let found = Contents::from_iter(forwards);
    let keys: Vec<_> = (0..KEYS + 20).step_by(7).map(key).collect();
    let together = db.multi_get_with(&options, family, &keys);
    for (key, value) in keys.iter().zip(together) {
        let value = value.expect("a lookup").map(|value| value.to_vec());
        assert_eq!(value.as_ref(), found.get(key), "{key:?} of several");
        let alone =
            db.get_with(&options, family, key).expect("a lookup").map(|value| value.to_vec());
        assert_eq!(alone, value, "{key:?} alone");
    }
    found
}

/// Several changes at once, as likely refused as not: then none of them.
fn change(db: &Db, texts: &mut Texts, wanted: &mut Wanted) {
    let drawn = texts.draw(8, |live| live);
    for several in drawn.chunks(3) {
        let (is_database, family) = (several[0].0, texts.random.usize(..2));
        let of_one = several.iter().filter(|(database, ..)| *database == is_database);
        let changes: Vec<_> = of_one.map(|(_, name, text)| (*name, text.as_str())).collect();
        let expected = wanted.set(is_database, family, &changes);
        let changed = if is_database {
            db.set_db_options(&changes)
        } else {
            db.set_options(&families(db)[family], &changes)
        };
        let told =
            |outcome: flagstone::base::Result<()>| outcome.map_err(|error| error.to_string());
        assert_eq!(told(changed), told(expected), "{changes:?}");
    }
}

fn live(seed: u64) {
    let telling = |what: &str| Telling(format!("seed {seed}, {what}"));
    let mut texts = Texts { random: fastrand::Rng::with_seed(seed) };
    let mut wanted = Wanted::drawn(&mut texts);
    let mut random = fastrand::Rng::with_seed(!seed);
    let mut model = Contents::new();
    let mut db = wanted.open();
    for round in 0..ROUNDS {
        let before = (db.snapshot(), model.clone());
        std::thread::scope(|scope| {
            let _writing = telling(&format!("round {round}"));
            scope.spawn(|| (0..WRITES).for_each(|_| write(&db, &mut random, &mut model, round)));
            scope.spawn(|| (0..CHANGES).for_each(|_| change(&db, &mut texts, &mut wanted)));
            for _ in 0..READS {
                let snapshot = db.snapshot();
                let [one, other] = families(&db).map(|family| contents(&db, &family, &snapshot));
                assert_eq!(one, other, "both have the same");
            }
        });
        let _checking = telling(&format!("after round {round}"));
        for family in families(&db) {
            assert_eq!(contents(&db, &family, &before.0), before.1, "as it was before the round");
            assert_eq!(contents(&db, &family, &db.snapshot()), model);
        }
        wanted.check(&db);
        let state = db.property(db.default_column_family(), "flagstone.background-error");
        assert_eq!(state.as_deref(), Some("healthy"));
        if texts.random.u8(..3) == 0 {
            drop(before);
            db.close().expect("a clean close");
            drop(db);
            db = wanted.open();
            wanted.check(&db);
        }
    }
    compare::check_files(&db);
    db.close().expect("a clean close");
}

#[test]
fn whatever_changes_nothing_is_lost() {
    for_each_seed(4, live);
}
