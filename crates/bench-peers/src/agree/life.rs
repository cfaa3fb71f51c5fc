//! One life of a database, all of it from a seed: what is done in each turn, and what the database
//! must hold before it.

mod kept;

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::choices::Settings;
use super::material::Material;
use super::model::{Edit, Family, MergeOperator, Model, Pair, Traits};
use super::party::{Access, Depth, How, Opening, Who};
use kept::Kept;

/// RocksDB's order of bytes backwards.
pub const REVERSE: &str = "rocksdb.ReverseBytewiseComparator";

/// The families that there may be. The first is always there.
pub const FAMILIES: [&str; 4] = [super::DEFAULT, "first", "second", "backward"];

/// The most turns of a life.
const TURNS_MAX: usize = 7;

/// Whether a family has its keys backwards.
pub fn is_reversed(family: &str) -> bool {
    family == "backward"
}

/// What is done.
#[derive(Debug, Clone)]
pub enum Step {
    Write {
        batch: Vec<(String, Edit)>,
        how: How,
    },
    Flush {
        family: Option<String>,
    },
    FlushWal,
    Compact {
        family: String,
        begin: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
        depth: Depth,
    },
    /// Compacts tables chosen at random when the step runs: a plan does not know which exist.
    CompactFiles {
        family: String,
        seed: u64,
    },
    /// Removes the tables within a range, then deletes the remaining entries of the range: a plan
    /// does not know which tables exist. Snapshots end.
    DeleteFiles {
        family: String,
        begin: Vec<u8>,
        end: Vec<u8>,
        rest: Vec<(String, Edit)>,
    },
    CreateFamily {
        name: String,
        settings: Settings,
    },
    DropFamily {
        name: String,
    },
    SetOptions {
        family: String,
        settings: Settings,
    },
    /// Takes in tables that were made elsewhere, with these settings, the later the newer.
    Ingest {
        family: String,
        tables: Vec<Vec<Edit>>,
        settings: Settings,
    },
    /// Both engines look at the copy, and one may go on with it.
    Checkpoint {
        /// Memtables are flushed before.
        flushed: bool,
        who: Option<Who>,
    },
    /// The same with a backup, restored.
    BackUp {
        /// Memtables are flushed before.
        flushed: bool,
        who: Option<Who>,
    },
    /// The other engine looks at what is led by this one, which rests meanwhile.
    Visit,
    /// A secondary instance of Flagstone follows the engine that leads, until the turn ends.
    Follow,
    TakeSnapshot,
    DropSnapshot {
        index: usize,
    },
    /// Compares some of what is there and was there.
    Check {
        seed: u64,
    },
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The database is closed. Whether memtables are flushed before says
    /// `avoid_flush_during_shutdown`.
    Close,
    /// The process is killed.
    Kill,
}

/// From one opening to the next.
#[derive(Debug, Clone)]
pub struct Turn {
    pub who: Who,
    pub opening: Opening,
    pub before: Model,
    pub steps: Vec<Step>,
    pub ending: Ending,
}

impl Turn {
    /// Whether what it leaves is for Flagstone alone: values that were written to blob files at the
    /// commit RocksDB would not find after a crash.
    pub fn is_for_itself(&self) -> bool {
        self.who == Who::Flagstone && self.ending == Ending::Kill && !self.opening.for_a_crash
    }
}

/// The whole.
#[derive(Debug, Clone)]
pub struct Life {
    pub has_wal_dir: bool,
    pub has_paths: bool,
    /// Whether all logs are archived from the beginning, and each turn reads them.
    pub keeps_logs: bool,
    /// Whether values have a time to live.
    has_ttl: bool,
    pub turns: Vec<Turn>,
    /// What is there in the end.
    pub after: Model,
    kept: BTreeMap<&'static str, Kept>,
    without: Vec<String>,
}

fn one<T: Copy>(random: &mut SmallRng, of: &[T]) -> T {
    of[random.random_range(0..of.len())]
}

impl Life {
    /// One of this seed, `without` these options; all else is the same.
    pub fn draw(seed: u64, without: &[String]) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let has_paths = random.random_bool(0.1);
        // In most lives one family is without merges.
        let has_merges =
            |name| FAMILIES.iter().position(|other| *other == name) != Some(seed as usize % 5);
        let mut kept =
            FAMILIES.map(|name| (name, Kept::draw(&mut random, name, has_paths, has_merges(name))));
        if random.random_bool(0.2) {
            kept.iter_mut().for_each(|(_, kept)| kept.may_have_blobs = false);
        }
        let has_ttl = !has_paths && random.random_bool(0.15);
        let keeps_logs = !has_ttl && random.random_bool(0.15);
        let mut life = Self {
            has_wal_dir: random.random_bool(0.15) && !has_ttl,
            has_paths,
            keeps_logs,
            has_ttl,
            turns: Vec::new(),
            after: Model::default(),
            kept: kept.into_iter().collect(),
            without: without.to_vec(),
        };
        let has_entities = random.random_bool(0.3) && !has_ttl && !keeps_logs;
        let has_times = random.random_bool(0.3) && !has_ttl && !keeps_logs;
        let mut material = Material::new(&mut random, has_entities, has_times);
        for name in FAMILIES.iter().take(random.random_range(1..=FAMILIES.len())) {
            life.add_family(name);
        }
        let mut who = one(&mut random, &[Who::Flagstone, Who::RocksDb]);
        for _ in 0..random.random_range(3..=TURNS_MAX) {
            let turn = life.draw_turn(who, &mut random, &mut material);
            let is_for_itself = turn.is_for_itself();
            life.turns.push(turn);
            // Mostly the other's turn, but what one engine alone makes of it may matter, too.
            if random.random_bool(0.85) && !is_for_itself {
                who = who.other();
            }
        }
        life
    }

    /// Whether an engine can follow as a secondary instance. RocksDB 11.8 looks for all tables in
    /// the first path, and a family is empty for it where a blob file is gone that is newer than
    /// the oldest.
    pub fn can_be_followed(&self, by: Who) -> bool {
        let by_rocksdb = !self.has_paths && self.kept.values().all(|kept| !kept.may_have_blobs);
        !self.has_ttl && (by == Who::Flagstone || by_rocksdb)
    }

    /// A family of this name, empty.
    pub fn new_family(&self, name: &str) -> Family {
        Family::new(self.kept[name].traits)
    }

    fn add_family(&mut self, name: &str) {
        self.after.families.insert(name.to_string(), self.new_family(name));
    }

    /// All batches until the end of a turn.
    fn batches(&self, turn: usize) -> impl Iterator<Item = &Vec<(String, Edit)>> {
        self.turns[..=turn].iter().flat_map(|turn| &turn.steps).filter_map(|step| match step {
            Step::Write { batch, .. } | Step::DeleteFiles { rest: batch, .. } => Some(batch),
            _ => None,
        })
    }

    /// All that was written until the end of a turn.
    pub fn logged(&self, turn: usize) -> Vec<Pair> {
        self.batches(turn).flatten().map(|(_, edit)| edit.logged()).collect()
    }

    /// Whether the last batch that was written until then deletes an empty range.
    pub fn ends_with_nothing(&self, turn: usize) -> bool {
        let is_nothing =
            |edit: &Edit| matches!(edit, Edit::DeleteRange { begin, end } if begin == end);
        self.batches(turn)
            .last()
            .is_some_and(|batch| batch.iter().any(|(_, edit)| is_nothing(edit)))
    }

    /// How families are opened by who wants nothing special.
    pub fn plain_opening(&self, model: &Model) -> Opening {
        let family = |name: &String| {
            let mut settings =
                self.kept[name.as_str()].settings(TURNS_MAX - 1, Settings::default());
            settings.leave_the_last_level();
            if self.has_ttl {
                settings.set("disable_auto_compactions", "true");
                // RocksDB flushes what it has replayed and has no room for, whatever it is told.
                settings.set("write_buffer_size", "67108864");
            }
            (name.clone(), settings)
        };
        let mut database = Settings::default();
        database.verify_tracked_wals();
        if self.has_ttl {
            // RocksDB opens a copy for writing, to look at it.
            database.set("avoid_flush_during_recovery", "true");
        }
        Opening {
            database,
            families: model.families.keys().map(family).collect(),
            from_file: false,
            for_a_crash: false,
            access: Access::Read,
            ttl: self.has_ttl.then_some(0),
        }
    }

    fn draw_turn(&mut self, who: Who, random: &mut SmallRng, material: &mut Material) -> Turn {
        let before = self.after.clone();
        let ending = one(random, &[Ending::Close, Ending::Close, Ending::Kill]);
        let for_a_crash =
            who == Who::Flagstone && ending == Ending::Kill && random.random_bool(0.6);
        let mut families: BTreeMap<&str, Settings> = BTreeMap::new();
        for name in FAMILIES {
            let drawn = self.draw_family(name, ending, for_a_crash, random, material);
            families.insert(name, self.kept[name].settings(self.turns.len(), drawn));
        }
        let mut database = Settings::of_database(random, &self.without);
        if families.values().any(Settings::wants_writers_one_by_one) {
            database.set("allow_concurrent_memtable_write", "false");
        }
        if self.keeps_logs {
            database.set("WAL_ttl_seconds", "100000");
            database.set("WAL_size_limit_MB", "0");
            // With it RocksDB 11.8 may stop handing out what its logs hold, without an error (seed
            // 300002 had it).
            database.set("allow_2pc", "false");
        }
        if database.get("background_close_inactive_wals") == "true" {
            // RocksDB 11.8 then truncates a WAL that it has recycled already.
            database.set("recycle_log_file_num", "0");
        }
        database.make_legal();
        let is_first = self.turns.is_empty();
        let is_followed = random.random_bool(0.3) && self.can_be_followed(Who::Flagstone);
        let opening = Opening {
            database,
            families: before
                .families
                .keys()
                .map(|name| (name.clone(), families[name.as_str()].clone()))
                .collect(),
            from_file: !is_first
                && !self.has_ttl
                && random.random_bool(0.25)
                && !(who == Who::RocksDb && (ending == Ending::Kill || self.may_loop())),
            for_a_crash,
            access: Access::Lead,
            ttl: self.has_ttl.then(|| one(random, &[0, 1_000_000])),
        };
        if opening.from_file {
            // The file may say that writers go side by side, which such a new family refuses.
            families.values_mut().for_each(|new| new.leave_out(&["enable_blob_direct_write"]));
        }
        // RocksDB refuses them where WALs are recycled, which an OPTIONS file may say.
        let may_be_unlogged = !self.keeps_logs
            && !is_followed
            && (who == Who::Flagstone
                || !opening.from_file
                    && ["", "0"].contains(&opening.database.get("recycle_log_file_num")));
        let may_be_visited = who == Who::RocksDb || for_a_crash;
        let steps = self.draw_steps(
            (who, ending),
            may_be_unlogged,
            may_be_visited,
            is_followed,
            &families,
            random,
            material,
        );
        Turn { who, opening, before, steps, ending }
    }

    /// Whether RocksDB may compact without end with an earlier OPTIONS file: Flagstone's does not
    /// have what keeps it from that.
    fn may_loop(&self) -> bool {
        let keeps_times = |family: &Settings| {
            ["preserve_internal_time_seconds", "preclude_last_level_data_seconds"]
                .iter()
                .any(|option| family.get(option) == "1000")
        };
        self.turns.iter().filter(|turn| turn.who == Who::Flagstone).any(|turn| {
            let opened = turn.opening.families.iter().map(|(_, family)| family);
            let created = turn.steps.iter().filter_map(|step| match step {
                Step::CreateFamily { settings, .. } => Some(settings),
                _ => None,
            });
            opened.chain(created).any(keeps_times)
        })
    }

    /// The settings of a family for one turn.
    fn draw_family(
        &self,
        name: &str,
        ending: Ending,
        for_a_crash: bool,
        random: &mut SmallRng,
        material: &Material,
    ) -> Settings {
        let mut drawn = Settings::of_family(random, &self.without);
        if for_a_crash || self.keeps_logs {
            drawn.write_blobs_at_flushes();
        }
        if material.has_entities && name == super::DEFAULT {
            // An entity of which columns lie in blob files is one that only RocksDB has.
            drawn.set("enable_blob_files", "false");
        }
        if self.keeps_logs || material.has_times && name == super::DEFAULT {
            // What the log has must be the values, and a time goes with a value.
            drawn.leave_out(&["enable_blob_direct_write"]);
        }
        if self.has_paths || ending == Ending::Kill {
            // RocksDB 11.8 writes to the database's directory, and looks in the first path; and it
            // does not find what was written so when it opens for reading what a killed process has
            // left.
            drawn.leave_out(&["enable_blob_direct_write"]);
        }
        drawn
    }

    fn draw_steps(
        &mut self,
        (who, ending): (Who, Ending),
        may_be_unlogged: bool,
        may_be_visited: bool,
        is_followed: bool,
        families: &BTreeMap<&str, Settings>,
        random: &mut SmallRng,
        material: &mut Material,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut is_unlogged = false;
        let count = one(random, &[10, 60, 60, 200]);
        let followed_from = is_followed.then(|| random.random_range(0..count));
        for number in 0..count {
            if followed_from == Some(number) {
                steps.push(Step::Follow);
            }
            let at = random.random_range(0..self.after.families.len());
            let name = self.after.families.keys().nth(at).cloned().unwrap_or_default();
            let step = match random.random_range(0..100) {
                0..8 => Step::Flush { family: Some(name) },
                8..10 => Step::Flush { family: None },
                10..15 => self.draw_compaction(name, random, material),
                15..17 => match self.create_family(families) {
                    Some(step) => step,
                    None => continue,
                },
                17 if name != super::DEFAULT => {
                    self.after.families.remove(&name);
                    Step::DropFamily { name }
                }
                18..21 => match self.draw_ingestion(name, families, material, random) {
                    Some(step) => step,
                    None => continue,
                },
                // RocksDB makes none of a database with several directories.
                21 if who == Who::Flagstone || !self.has_paths => {
                    draw_copy(who, is_unlogged, random)
                }
                32 => self.draw_deletion_of_files(name, random, material),
                31 if !is_unlogged && may_be_visited => Step::Visit,
                33..35 if who == Who::Flagstone => draw_compaction_of_files(name, random),
                22..25 => Step::TakeSnapshot,
                25..27 => Step::DropSnapshot { index: random.random_range(0..100) },
                27..29 => Step::Check { seed: random.random() },
                29 => Step::FlushWal,
                30 => match self.draw_change(name, material, random) {
                    Some(step) => step,
                    None => continue,
                },
                _ => self.draw_write(
                    may_be_unlogged,
                    !(who == Who::Flagstone && may_be_visited),
                    random,
                    material,
                ),
            };
            is_unlogged |= matches!(&step, Step::Write { how, .. } if how.unlogged);
            steps.push(step);
        }
        if is_unlogged || random.random_bool(0.2) {
            steps.push(Step::Flush { family: None });
        }
        if ending == Ending::Kill {
            steps.push(Step::FlushWal);
        }
        steps
    }

    /// Creates the first family that there is not; `None` if there are all.
    fn create_family(&mut self, families: &BTreeMap<&str, Settings>) -> Option<Step> {
        let new = FAMILIES.iter().find(|name| !self.after.families.contains_key(**name))?;
        self.add_family(new);
        Some(Step::CreateFamily { name: new.to_string(), settings: families[new].clone() })
    }

    fn draw_write(
        &mut self,
        may_be_unlogged: bool,
        may_be_streamed: bool,
        random: &mut SmallRng,
        material: &mut Material,
    ) -> Step {
        let unlogged = random.random_bool(0.05) && may_be_unlogged;
        let (sync, committed) = (random.random_bool(0.1) && !unlogged, random.random_bool(0.1));
        let batch = material.batch(&mut self.after, random);
        let streamed =
            random.random_bool(0.1) && !unlogged && self.may_be_streamed(&batch) && may_be_streamed;
        Step::Write { batch, how: How { sync, unlogged, committed, streamed } }
    }

    /// Whether the value of a batch may have a blob file of its own, which neither the log has nor
    /// RocksDB finds after a crash.
    fn may_be_streamed(&self, batch: &[(String, Edit)]) -> bool {
        !self.keeps_logs && batch.iter().all(|(name, _)| self.kept[name.as_str()].may_have_blobs)
    }

    /// Tables for a family, mostly of the kind that the family itself would write.
    fn draw_ingestion(
        &mut self,
        family: String,
        families: &BTreeMap<&str, Settings>,
        material: &mut Material,
        random: &mut SmallRng,
    ) -> Option<Step> {
        if self.has_ttl || self.keeps_logs {
            return None;
        }
        let mut tables = Vec::new();
        for _ in 0..one(random, &[1, 1, 2, 3]) {
            let edits = material.table(&self.after.families[&family], random);
            let batch: Vec<_> = edits.iter().map(|edit| (family.clone(), edit.clone())).collect();
            self.after.apply(&batch);
            if !edits.is_empty() {
                tables.push(edits);
            }
        }
        let settings = if random.random_bool(0.7) {
            families[family.as_str()].clone()
        } else {
            self.kept[family.as_str()].settings(TURNS_MAX - 1, Settings::default())
        };
        (!tables.is_empty()).then_some(Step::Ingest { family, tables, settings })
    }

    /// Options to change while the family is open, if any.
    fn draw_change(
        &self,
        family: String,
        material: &Material,
        random: &mut SmallRng,
    ) -> Option<Step> {
        let mut settings = Settings::of_change(random, &self.without);
        if !self.kept[family.as_str()].may_have_blobs
            || material.has_entities && family == super::DEFAULT
        {
            settings.leave_out(&["enable_blob_files"]);
        }
        (!settings.is_empty()).then_some(Step::SetOptions { family, settings })
    }

    fn draw_deletion_of_files(
        &mut self,
        name: String,
        random: &mut SmallRng,
        material: &mut Material,
    ) -> Step {
        let (mut begin, mut end) = (material.plain_key(random), material.plain_key(random));
        if self.after.families[&name].is_before(&end, &begin) {
            (begin, end) = (end, begin);
        }
        let range = Edit::DeleteRange { begin: begin.clone(), end: end.clone() };
        let rest = vec![(name.clone(), range), (name.clone(), Edit::Delete { key: end.clone() })];
        self.after.apply(&rest);
        Step::DeleteFiles { family: name, begin, end, rest }
    }

    fn draw_compaction(
        &self,
        family: String,
        random: &mut SmallRng,
        material: &mut Material,
    ) -> Step {
        let to_the_bottom = random.random_bool(0.5);
        let whole = random.random_bool(0.6);
        let (mut begin, mut end) = (material.key(random), material.key(random));
        if self.after.families[&family].is_before(&end, &begin) {
            (begin, end) = (end, begin);
        }
        let (begin, end) = if whole { (None, None) } else { (Some(begin), Some(end)) };
        let then_to = random.random_bool(0.25).then(|| random.random_range(-1..7));
        Step::Compact { family, begin, end, depth: Depth { to_the_bottom, then_to } }
    }
}

fn draw_compaction_of_files(family: String, random: &mut SmallRng) -> Step {
    Step::CompactFiles { family, seed: random.random() }
}

/// Without a flush RocksDB's backups and checkpoints have what is in the log alone.
fn draw_copy(who: Who, is_unlogged: bool, random: &mut SmallRng) -> Step {
    let led_by = one(random, &[None, Some(who), Some(who.other())]);
    let flushed = is_unlogged || random.random_bool(0.5);
    if random.random_bool(0.5) {
        Step::BackUp { flushed, who: led_by }
    } else {
        Step::Checkpoint { flushed, who: led_by }
    }
}
