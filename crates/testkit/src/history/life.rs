//! Living a case: every operation is done to the engine and to the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flagstone::base::{Code, Error, Snapshot};
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::{Env, FileSystem};
use flagstone::options::{
    ColumnFamilyOptions, CompactFilesOptions, CompactRangeOptions, CompactionControl, ReadOptions,
};

use super::along::Written;
use super::case::{Case, FAMILIES, World};
use super::journal::Journal;
use super::operation::Operation;
use super::patience::{Made, Patience};
use super::prepared;
use super::read::Reader;
use super::setup::{self, Setup};
use super::task::Scan;
use super::transact::{self, Running, Touched};
use crate::crash::CrashFs;
use crate::model::Model;
use crate::{compare, components, fakes, steps};

pub(super) const DIRECTORY: &str = "/db";

/// What a life consisted of.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Operations by kind.
    pub operations: BTreeMap<&'static str, u64>,
    /// Changes of the disk.
    pub changes: u64,
}

/// Lives a case from the creation of the database to a last comparison.
///
/// # Panics
/// When the engine says something else than the model, or fails.
pub fn live(case: &Case) -> Tally {
    let mut life = Life::begin(case);
    for operation in &case.operations {
        *life.tally.operations.entry(operation.kind()).or_default() += 1;
        life.made.begin();
        life.turn += 1;
        life.take(operation);
        life.rest();
    }
    for last in [Operation::Check, Operation::Reopen(Vec::new()), Operation::Check] {
        life.made.begin();
        life.take(&last);
    }
    life.tally.changes += life.fs.changes() as u64;
    life.end()
}

/// What a life holds of its open database.
#[derive(Default)]
pub(super) struct Held {
    pub(super) snapshots: Vec<(Snapshot, Model)>,
    pub(super) readers: Vec<Reader>,
    pub(super) scans: Vec<Scan>,
    /// Handles of families that were dropped: writes to them are passed over where asked.
    pub(super) gone: BTreeMap<String, ColumnFamily>,
    pub(super) transactions: Vec<Running>,
    /// What was written while they ran.
    pub(super) touched: Touched,
}

pub(super) struct Life {
    pub(super) fs: CrashFs,
    /// Files made by the operation under way.
    pub(super) made: Arc<Made>,
    pub(super) env: Env,
    pub(super) setup: Setup,
    pub(super) db: Db,
    pub(super) model: Model,
    pub(super) held: Held,
    /// Operations so far.
    pub(super) turn: u64,
    pub(super) journal: Journal,
    pub(super) written: Written,
    /// The moments of this disk at which the database was there, and was last opened.
    pub(super) created: usize,
    pub(super) opened: usize,
    /// When to do background work unasked, and how often in sixteen.
    pub(super) unasked: Option<(fastrand::Rng, u8)>,
    /// Whether any range was ever deleted.
    pub(super) has_ranges: bool,
    pub(super) tally: Tally,
}

impl Life {
    fn begin(case: &Case) -> Self {
        let (fs, made) = (CrashFs::new(), Arc::<Made>::default());
        let patient = Arc::new(Patience::new(fs.clone(), made.clone()));
        let (env, unasked) = match case.world {
            World::Threads => (Env::memory().with_fs(fakes::around(patient)), None),
            World::Steps { seed, eagerness } => {
                (steps::world(patient, seed), Some((fastrand::Rng::with_seed(seed), eagerness)))
            }
        };
        let setup = Setup::new(&env, &case.settings);
        let names = FAMILIES.map(str::to_string);
        let options = setup::audited(&setup.chosen);
        let db = Db::open_with_families(DIRECTORY, &options, &setup.chosen.listed(&names))
            .expect("a new database");
        let families = names.into_iter().map(|name| {
            let family = setup.empty(&name);
            (name, family)
        });
        let model = Model { families: families.collect() };
        Self {
            journal: Journal::new(model.clone(), setup.chosen.options.atomic_flush),
            written: Written::default(),
            created: fs.changes(),
            opened: fs.changes(),
            held: Held::default(),
            turn: 0,
            has_ranges: false,
            tally: Tally::default(),
            fs,
            made,
            env,
            setup,
            db,
            model,
            unasked,
        }
    }

    /// Background work that nobody asked for.
    fn rest(&mut self) {
        if let Some((random, eagerness)) = &mut self.unasked
            && random.u8(..16) < *eagerness
        {
            self.db.background_step().expect("background work");
        }
    }

    pub(super) fn family(&self, name: &str) -> Option<ColumnFamily> {
        self.model
            .families
            .contains_key(name)
            .then(|| self.db.column_family(name).expect("it exists"))
    }

    /// A number below `limit` that differs from operation to operation, for what must make no
    /// difference.
    pub(super) fn any(&self, limit: usize) -> usize {
        let mixed = (self.turn + limit as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize % limit
    }

    /// The snapshot of that index, and what it holds; as of now without an index, or without
    /// snapshots.
    pub(super) fn moment(&self, snapshot: Option<usize>) -> (ReadOptions, &Model) {
        let plain = ReadOptions {
            total_order_seek: true,
            verify_checksums: self.any(3) > 0,
            fill_cache: self.any(4) > 0,
            readahead_size: [0, 100, 5000][self.any(5) % 3],
            ignore_range_deletions: !self.has_ranges && self.any(3) == 0,
            ..ReadOptions::default()
        };
        match snapshot {
            Some(index) if !self.held.snapshots.is_empty() => {
                let (snapshot, model) = &self.held.snapshots[index % self.held.snapshots.len()];
                let auto_refresh_iterator_with_snapshot = self.any(2) > 0;
                let snapshot = Some(snapshot.clone());
                (ReadOptions { snapshot, auto_refresh_iterator_with_snapshot, ..plain }, model)
            }
            _ => (plain, &self.model),
        }
    }

    fn take(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { durability, edits } => self.write(*durability, edits),
            Operation::PutStream { durability, family, key, buffer, pieces } => {
                self.put_stream(*durability, family, key, *buffer, pieces);
            }
            Operation::SetOptions { family, changes } => {
                self.set_options(family.as_deref(), changes)
            }
            Operation::CreateFamilies(names) => self.create_families(names),
            Operation::DropFamily(name) => self.drop_family(name),
            Operation::Checkpoint => self.checkpoint(),
            Operation::Reopen(settings) => self.reopen(settings),
            Operation::ReadOnly => self.read_only(),
            Operation::Pass(seconds) => {
                if self.unasked.is_some() {
                    self.env.clock.sleep(Duration::from_secs(*seconds));
                }
            }
            Operation::SyncWal => {
                self.db.sync_wal().expect("a sync");
                self.journal.synced(self.fs.changes());
            }
            Operation::FlushWal => {
                let sync = self.any(4) == 0;
                self.db.flush_wal(sync).expect("a flush of the WAL");
                if sync {
                    self.journal.synced(self.fs.changes())
                } else {
                    self.journal.written(self.fs.changes())
                }
            }
            Operation::Crash { power, back } => self.crash(*power, *back),
            Operation::Check => self.check(),
            Operation::Begin { in_snapshot } => transact::begin(self, *in_snapshot),
            Operation::GoOn { index, steps } => transact::go_on(self, *index, steps),
            Operation::Commit { index, durability } => transact::commit(self, *index, *durability),
            Operation::Abandon(index) => transact::abandon(self, *index),
            Operation::Prepare { durability, edits } => {
                prepared::prepare(self, *durability, edits);
            }
            Operation::Decide { index, commits, durability } => {
                prepared::decide(self, *index, *commits, *durability);
            }
            _ if self.takes_read(operation) => {}
            _ => self.take_tree(operation),
        }
    }

    /// What changes nothing that is stored; whether it is such an operation.
    fn takes_read(&mut self, operation: &Operation) -> bool {
        let (snapshots, readers, scans) =
            (self.held.snapshots.len(), self.held.readers.len(), self.held.scans.len());
        match operation {
            Operation::Get { family, snapshot, only_cached, keys } => {
                self.get(family, *snapshot, *only_cached, keys);
            }
            Operation::PrefixScan { family, snapshot, key } => {
                self.prefix_scan(family, *snapshot, key)
            }
            Operation::TakeSnapshot => {
                self.held.snapshots.push((self.db.snapshot(), self.model.clone()))
            }
            Operation::DropSnapshot(index) if snapshots > 0 => {
                self.held.snapshots.swap_remove(index % snapshots);
            }
            Operation::OpenIterator { family, snapshot, lower, upper } => {
                self.open_iterator(family, *snapshot, lower.as_deref(), upper.as_deref());
            }
            Operation::MoveIterator { index, moves } if readers > 0 => {
                self.held.readers[index % readers].walk(moves);
            }
            Operation::DropIterator(index) if readers > 0 => {
                self.held.readers.swap_remove(index % readers);
            }
            Operation::RefreshIterator(index) if readers > 0 => {
                self.refresh_iterator(index % readers)
            }
            Operation::OpenScan { family, snapshot, lower, upper } => {
                self.open_scan(family, *snapshot, lower.as_deref(), upper.as_deref());
            }
            Operation::NextBatch { index, from, max_entries } if scans > 0 => {
                self.held.scans[index % scans].next_batch(from.as_deref(), *max_entries);
            }
            Operation::DropSnapshot(_)
            | Operation::NextBatch { .. }
            | Operation::MoveIterator { .. }
            | Operation::DropIterator(_)
            | Operation::RefreshIterator(_) => {}
            _ => return false,
        }
        true
    }

    /// What changes where things are stored, and not what.
    fn take_tree(&mut self, operation: &Operation) {
        match operation {
            Operation::Flush { family: name, options } => {
                if let Some(family) = self.family(name) {
                    self.db.flush(&family, options).expect("a flush");
                    if options.wait {
                        self.note_flush(name);
                    }
                }
            }
            Operation::FlushAll => {
                self.db.flush_all().expect("a flush");
                self.note_flushes();
            }
            Operation::CompactRange { family, begin, end, options } => {
                self.compact_range(family, begin.as_deref(), end.as_deref(), options);
            }
            Operation::CompactFiles { family, level, tables, options } => {
                self.compact_files(family, *level, tables, options);
            }
            Operation::SuggestCompaction { family, begin, end } => {
                if let Some(family) = self.family(family) {
                    let suggested =
                        self.db.suggest_compact_range(&family, begin.as_deref(), end.as_deref());
                    suggested.expect("a suggestion");
                }
            }
            Operation::DeleteFiles { family, begin, end, include_end } => {
                self.delete_files(family, begin, end, *include_end);
            }
            Operation::Background(steps) => {
                for _ in 0..*steps {
                    self.db.background_step().expect("background work");
                }
            }
            Operation::Idle => self.db.wait_for_compactions().expect("it ends"),
            other => unreachable!("{other} is done elsewhere"),
        }
    }

    fn note_flush(&mut self, name: &str) {
        self.journal.flushed(self.fs.changes(), name);
    }

    pub(super) fn note_flushes(&mut self) {
        let moment = self.fs.changes();
        self.model.families.keys().for_each(|name| self.journal.flushed(moment, name));
    }

    fn compact_range(
        &mut self,
        name: &str,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) {
        let Some(family) = self.family(name) else { return };
        let control = self.cancels_at().map(|number| self.made.cancel_at(number));
        let options = &CompactRangeOptions { control, ..options.clone() };
        match self.db.compact_range(&family, begin, end, options) {
            Ok(()) => self.note_flush(name),
            Err(error) if was_canceled(options.control.as_ref(), &error) => {}
            Err(error) => {
                let is_no_directory =
                    error.code() == Code::InvalidArgument && options.target_path_id > 0;
                let may_not_move = matches!(
                    error.code(),
                    Code::InvalidArgument | Code::NotSupported | Code::Aborted
                );
                assert!(
                    is_no_directory || options.change_level && may_not_move,
                    "a compaction: {error}"
                );
            }
        }
    }

    /// Compacts tables of those that there are, in whatever level they have come to be: it may be
    /// that they cannot go there, or that another compaction is in the way.
    fn compact_files(
        &mut self,
        name: &str,
        level: usize,
        tables: &[usize],
        options: &CompactFilesOptions,
    ) {
        let Some(family) = self.family(name) else { return };
        let live = self.db.live_files().into_iter();
        let there: Vec<_> =
            live.filter(|file| file.column_family == name && file.level.is_some()).collect();
        if there.is_empty() {
            return;
        }
        let chosen: Vec<_> = tables.iter().map(|table| there[table % there.len()].number).collect();
        let level = level % family.options().num_levels as usize;
        let control = self.cancels_at().map(|number| self.made.cancel_at(number));
        let options = &CompactFilesOptions { control, ..options.clone() };
        if let Err(error) = self.db.compact_files(&family, &chosen, level, options) {
            let may_be = matches!(error.code(), Code::InvalidArgument | Code::Aborted);
            assert!(may_be || was_canceled(options.control.as_ref(), &error), "{error}");
        }
    }

    /// Of every eighth compaction the file at which somebody thinks better of it.
    fn cancels_at(&self) -> Option<u64> {
        (self.any(8) == 0).then(|| self.any(5) as u64)
    }

    /// Makes one change after the other, those that go together with what is set.
    fn set_options(&mut self, name: Option<&str>, changes: &[(String, String)]) {
        let family = name.map(|name| self.family(name));
        for (option, value) in changes {
            let change = [(option.as_str(), value.as_str())];
            match &family {
                Some(None) => {}
                None => {
                    let mut options = self.setup.chosen.options.clone();
                    if options
                        .set(option, value)
                        .and_then(|()| options.validate_for_writing())
                        .is_ok()
                    {
                        self.db
                            .set_db_options(&change)
                            .unwrap_or_else(|error| panic!("{change:?}: {error}"));
                        self.setup.chosen.options = options;
                    }
                }
                Some(Some(family)) => {
                    let mut options = self.setup.chosen.family(family.name()).clone();
                    let set =
                        options.set(option, value).and_then(|()| options.validate_for_writing());
                    if set.and_then(|()| components::check(&options)).is_ok() {
                        self.db
                            .set_options(family, &change)
                            .unwrap_or_else(|error| panic!("{change:?}: {error}"));
                        self.setup.chosen.own.insert(family.name().to_string(), options);
                    }
                }
            }
        }
    }

    fn create_families(&mut self, names: &[String]) {
        let missing: BTreeSet<_> =
            names.iter().filter(|name| !self.model.families.contains_key(*name)).collect();
        let new: Vec<_> = missing
            .iter()
            .map(|name| (name.as_str(), self.setup.chosen.family(name).clone()))
            .collect();
        let begun = self.fs.changes();
        self.db.create_column_families(&new).expect("new families");
        let empty = missing.into_iter().map(|name| (name.clone(), self.setup.empty(name)));
        let created: BTreeMap<_, _> = empty.collect();
        self.journal.created(begun, self.fs.changes(), created.clone());
        self.note_handed_over();
        for (_, model) in &mut self.held.snapshots {
            model.families.extend(created.clone());
        }
        transact::add_families(self, &created);
        self.model.families.extend(created);
    }

    fn drop_family(&mut self, name: &str) {
        if FAMILIES.contains(&name) {
            return;
        }
        let Some(family) = self.family(name) else { return };
        let begun = self.fs.changes();
        transact::forget_family(self, name);
        self.db.drop_column_family(&family).expect("it may be dropped");
        self.journal.dropped(begun, self.fs.changes(), name);
        self.note_handed_over();
        self.held.gone.insert(name.to_string(), family);
        self.forget_name(name);
        self.model.families.remove(name);
        for (_, model) in &mut self.held.snapshots {
            model.families.remove(name);
        }
    }

    pub(super) fn contents(&self, db: &Db) -> flagstone::base::Result<Model> {
        let mut model = Model::default();
        for family in db.column_families() {
            let options = ReadOptions { total_order_seek: true, ..ReadOptions::default() };
            let mut found = self.setup.empty(family.name());
            for (key, value) in compare::scan(db, &family, &options)? {
                found.entries.insert(found.known_as(&key).into_owned(), value);
            }
            model.families.insert(family.name().to_string(), found);
        }
        Ok(model)
    }

    fn checkpoint(&mut self) {
        let path = format!("/checkpoint-{}", self.turn);
        self.db.checkpoint(&path).expect("a checkpoint");
        self.note_flushes();
        let mut chosen = self.setup.chosen.clone();
        chosen.options.stand_alone();
        chosen.own.values_mut().for_each(ColumnFamilyOptions::stand_alone);
        let db = setup::open(&path, &chosen, self.model.families.keys());
        compare::check_database(&db, &self.model);
        compare::check_files(&db);
        db.close().expect("a clean close");
        drop(db);
        self.remove_tree(Path::new(&path));
    }

    fn remove_tree(&self, directory: &Path) {
        for name in self.fs.list(directory).expect("a listing") {
            let path = directory.join(name);
            if self.fs.metadata(&path).expect("it was listed").is_directory {
                self.remove_tree(&path)
            } else {
                self.fs.remove(&path).expect("a file in memory")
            }
        }
        self.fs.remove_directory(directory).expect("an empty directory");
    }
}

fn was_canceled(control: Option<&Arc<CompactionControl>>, error: &Error) -> bool {
    error.code() == Code::Incomplete && control.is_some_and(|control| control.is_canceled())
}
